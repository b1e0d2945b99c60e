"""The library's reference, read from its sources: nothing is imported, so torch need not be there.

A page a package, with each module's text and its public functions and classes.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

LIB = Path(__file__).resolve().parents[1] / "lib" / "factrobust"
# Of the rooms, which have the names of the notebooks' parts; other pages have their package's.
TITLES = {
    "": "factrobust",
    "decoding": "1 decoding",
    "temporal": "2 time",
    "wording": "3 wording",
    "context": "4 context",
    "exposure": "5 exposure",
    "together": "6 together",
}
ENTRY = "### `{}`\n\n```text\n{}\n```\n\n```text\n{}\n```\n"
MODULE = "\n## {}\n\n```text\n{}\n```\n\n"
INDEX = """# The library

Read from the sources. Every function says shapes, units and errors.

```{toctree}
:maxdepth: 1

%s
```
"""
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


def entry(node: Function | ast.ClassDef) -> str:
    """A function or class with its text, and the methods of a class."""
    text = ENTRY.format(node.name, signature(node), ast.get_docstring(node))
    methods = public(node.body) if isinstance(node, ast.ClassDef) else []
    for part in methods:
        about = " ".join((ast.get_docstring(part) or "").split())
        text += f"\n- **`{signature(part)}`**: `` {about} ``\n"
    return text


def page(package: str) -> str:
    """The page of a package; of "" that of the modules that stand alone."""
    text = f"# {TITLES.get(package, package)}\n"
    for path in sorted((LIB / package).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        about = ast.get_docstring(tree) or ""
        parts = [entry(node) for node in public(tree.body)]
        if about or parts:
            names = path.relative_to(LIB).with_suffix("").parts
            name = ".".join(("factrobust", *names)).removesuffix(".__init__")
            text += MODULE.format(name, about)
            text += "\n".join(parts)
    return text


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    packages = ["", *sorted(p.name for p in LIB.iterdir() if (p / "__init__.py").exists())]
    for package in packages:
        (folder / f"{package or 'base'}.md").write_text(page(package), encoding="utf-8")
    names = [package or "base" for package in packages]
    (folder / "index.md").write_text(INDEX % "\n".join(names), encoding="utf-8")
