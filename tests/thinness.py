"""How large and how dense the code is: the last lines of `make lint`. Nothing is forbidden here.

A reader pays by idea, not by line. So size is counted in syntax nodes, the parts of which a
statement is made, and density in nodes a line of code: comments, docstrings and blank lines do not
count. At 6.5 nodes a line there is one idea on most lines."""

import ast
import io
import tokenize
from collections.abc import Iterable
from typing import NamedTuple

import nbformat

from factrobust.paths import BUILD, ROOT
from factrobust.reproduce.profiles import find_notebooks

AIM = 6.5  # nodes a line of code, at most
REPLAYED = BUILD / "replayed.txt"  # written by tests/test_house.py, which replays notebook 1.1
LAYOUT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Size(NamedTuple):
    """Of a piece of code, or of several."""

    nodes: int
    lines: int

    def __str__(self) -> str:
        density = self.nodes / max(self.lines, 1)
        return f"{self.nodes:,} nodes on {self.lines:,} lines of code ({density:.2f} a line)"


def size(source: str) -> Size:
    """The syntax nodes and the lines of code in a text of Python.

    Whether a name is read or written (ast.Load, ast.Store, ast.Del) is no node of its own.
    """
    # 1. The nodes, without a docstring's two: the statement and the text in it.
    nodes = 0
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        nodes += not isinstance(node, ast.expr_context)
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node) is not None:
            nodes -= 2
            docstrings.add(node.body[0].lineno)
    # 2. The lines from each token's first to its last.
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        first = token.start[0]
        last = token.end[0]
        is_docstring = token.type == tokenize.STRING and first in docstrings
        if token.type not in LAYOUT and not is_docstring:
            lines.update(range(first, last + 1))
    return Size(nodes, len(lines))


def together(sources: Iterable[str]) -> Size:
    nodes, lines = zip(*map(size, sources), strict=True)
    return Size(sum(nodes), sum(lines))


def main() -> None:
    for folder in ("lib", "tests", "data"):
        files = sorted((ROOT / folder).rglob("*.py"))
        found = together(path.read_text("utf-8") for path in files)
        print(f"{folder}/: {found} in {len(files)} files")
    cells = []
    for name in find_notebooks(ROOT):
        notebook = nbformat.read(ROOT / name, as_version=4)
        cells += [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    print(f"notebooks: {together(cells)} in {len(cells)} cells")
    if REPLAYED.exists():
        print(f"A replay of 1.1 loads {len(REPLAYED.read_text().split())} modules of ours.")
    print(f"The aim is {AIM} nodes a line of code.")


if __name__ == "__main__":
    main()
