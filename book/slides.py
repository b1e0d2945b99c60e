"""Slides of the course's four weeks, for a projector: reveal.js in a folder, without a network.

python book/slides.py FOLDER     # writes week-1.html, ..., and reveal/, which they share

A slide an exercise; below it its solution, and below that what follows. They are the cells of the solved
notebooks, as nbconvert writes them for reveal.js, whose files are those of the package sphinx-revealjs.
"""

import re
import shutil
import sys
from html import unescape
from importlib.util import find_spec
from pathlib import Path

import nbformat
from latex2mathml.converter import convert
from nbconvert import SlidesExporter

HERE = Path(__file__).resolve().parent
COURSE = HERE.parent / "notebooks" / "course"
FORMULA = re.compile(r"(\$\$?)([^$]+)\1")
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
OPTIONS = {
    "extra_template_basedirs": [str(HERE)],
    "template_name": "slides",
    "reveal_url_prefix": "reveal",
    "reveal_theme": "white",  # whose fonts lie beside it
    "exclude_input_prompt": True,
    "exclude_output_prompt": True,
    "embed_images": True,
}


def deck(week: str) -> str:
    """The page of a week's slides."""
    solved = nbformat.read(COURSE / f"week-{week}-solved.ipynb", as_version=4)
    first, _, *middle, last = solved.cells  # the second imports
    # Of the first cell not that it is the solved notebook, nor where the other one is.
    first.source = first.source.replace(", solved", "").rpartition("\n\n")[0]
    solved.cells = [slide(first)]
    for task, solution, _, use in zip(*[iter(middle)] * 4, strict=True):
        solved.cells += [slide(task), slide(solution, "subslide"), slide(use, "subslide")]
    solved.cells.append(slide(last))
    about = {"metadata": {"name": f"Week {week}"}}
    page, _ = SlidesExporter(**OPTIONS).from_notebook_node(solved, about)
    head, main, body = page.partition("<main>")
    return head + main + FORMULA.sub(drawn, body)


def slide(cell: nbformat.NotebookNode, kind: str = "slide") -> nbformat.NotebookNode:
    """A cell that begins a slide, to the right or below; of its links the words."""
    cell.metadata["slideshow"] = {"slide_type": kind}
    if cell.cell_type == "markdown":
        cell.source = LINK.sub(r"\1", cell.source)
    return cell


def drawn(found: re.Match[str]) -> str:
    """A formula as MathML, which browsers draw by themselves; between two dollars each as a block."""
    display = "block" if found[1] == "$$" else "inline"
    return convert(unescape(found[2]).strip(), display=display)


def main(folder: Path) -> None:
    package = find_spec("sphinx_revealjs")
    if package is None or package.origin is None:
        sys.exit("The package sphinx-revealjs is missing: `make book` installs it.")
    dist = Path(package.origin).parent / "_static" / "revealjs" / "dist"
    shutil.copytree(
        dist,
        folder / "reveal" / "dist",
        ignore=shutil.ignore_patterns("*.map", "*.esm.js"),
        dirs_exist_ok=True,
    )
    for week in "1234":
        (folder / f"week-{week}.html").write_text(deck(week), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
