"""The library's reference, read from its sources: nothing is imported, so torch need not be there.

A page a package, with each module's text and its public functions and classes.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

LIB = Path(__file__).resolve().parents[1] / "lib" / "factrobust"
TITLES = {
    "": "factrobust", "decoding": "1 decoding", "temporal": "2 time", "wording": "3 wording",
    "context": "4 context", "exposure": "5 exposure", "together": "6 together", "models": "models", "datasets": "datasets",
    "plots": "plots", "reproduce": "reproduce",
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


def public(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    for node in body:
        named = isinstance(node, Function | ast.ClassDef)
        if named and not node.name.startswith("_") and ast.get_docstring(node):
            yield node


def signature(node: Function | ast.ClassDef) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    back = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){back}"


def entry(node: Function | ast.ClassDef, level: int) -> str:
    text = f"{'#' * level} `{node.name}`\n\n```text\n{signature(node)}\n```\n\n"
    text += f"```text\n{ast.get_docstring(node)}\n```\n"
    if isinstance(node, ast.ClassDef):
        for part in public(node.body):
            text += f"\n- **`{signature(part)}`**: `` {' '.join((ast.get_docstring(part) or '').split())} ``\n"
    return text


def page(package: str) -> str:
    """The page of a package; of "" that of the modules that stand alone."""
    folder = LIB / package
    text = f"# {TITLES.get(package, package)}\n"
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        about, parts = ast.get_docstring(tree), list(public(tree.body))
        if about or parts:
            name = ".".join(("factrobust", *path.relative_to(LIB).with_suffix("").parts))
            text += f"\n## {name.removesuffix('.__init__')}\n\n```text\n{about or ''}\n```\n\n"
            text += "\n".join(entry(node, 3) for node in parts)
    return text


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    packages = ["", *sorted(p.name for p in LIB.iterdir() if (p / "__init__.py").exists())]
    for package in packages:
        (folder / f"{package or 'base'}.md").write_text(page(package), encoding="utf-8")
    lines = "\n".join(package or "base" for package in packages)
    index = (
        "# The library\n\nRead from the sources. Every function says shapes, units and errors.\n\n"
    )
    index += f"```{{toctree}}\n:maxdepth: 1\n\n{lines}\n```\n"
    (folder / "index.md").write_text(index, encoding="utf-8")
