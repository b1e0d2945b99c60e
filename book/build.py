"""The book: all notebooks, the course with its slides, explorables and the library's reference as a folder of pages.

python book/build.py [FOLDER]     # into build/book/html, without a network or a kernel
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import api  # noqa: E402
import explorables  # noqa: E402
import slides  # noqa: E402

NOTEBOOKS = ("notebooks/**/*.ipynb", "notebooks/*.md", "notebooks/course/*.md", "figures/**/*.png")

# A link of a page to another file: its words, and where it leads.
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")


def assemble(source: Path) -> None:
    """Lay out what Sphinx reads: notebooks and figures in their places, beside the pages of this folder."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(HERE / "pages", source)
    for pattern in NOTEBOOKS:
        for path in ROOT.glob(pattern):
            if ".ipynb_checkpoints" not in path.parts:
                place = source / path.relative_to(ROOT)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
    for page in source.glob("notebooks/**/*.md"):
        page.write_text(without_ways_out(page.read_text(encoding="utf-8"), page), encoding="utf-8")
    for page in source.glob("notebooks/**/*.ipynb"):
        book = nbformat.read(page, as_version=4)
        for cell in book.cells:
            if cell.cell_type == "markdown":
                cell.source = without_ways_out(cell.source, page)
        nbformat.write(book, page)
    index = source / "index.md"
    parts = sorted(path.name for path in (source / "notebooks").glob("[0-9]-*/"))
    trees = "\n\n".join(map(toctree, parts))
    index.write_text(index.read_text("utf-8").replace("PARTS", trees), encoding="utf-8")
    api.main(source / "reference")
    explorables.main(source / "_extra" / "explorables")
    slides.main(source / "_extra" / "slides")


def without_ways_out(text: str, page: Path) -> str:
    """The text of a page; of links to what is not in the book, such as README, their words alone."""

    def kept(link: re.Match[str]) -> str:
        return link[0] if (page.parent / link[2]).exists() else link[1]

    return LINK.sub(kept, text)


def toctree(part: str) -> str:
    """The table of contents of a part of the notebooks ("1-decoding")."""
    caption = part.replace("-", " ", 1).capitalize()
    return f"```{{toctree}}\n:caption: {caption}\n:maxdepth: 1\n:glob:\n\nnotebooks/{part}/*\n```"


def main(folder: Path) -> int:
    source = folder / "source"
    assemble(source)
    strict = ["-q", "-W", "--keep-going", "-j", "2"]
    options = [*strict, "-b", "html", "-c", str(HERE), "-d", str(folder / "work")]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(folder / "html")]
    status = subprocess.run(command, check=False).returncode
    if not status:
        print(
            f"The book is {folder / 'html' / 'index.html'}: open it in a browser, or copy the folder."
        )
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if sys.argv[1:] else ROOT / "build" / "book").resolve()))
