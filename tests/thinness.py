"""How thin the repository is, beside its limits: the last line of `make lint`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from factrobust.paths import ROOT
from factrobust.reproduce.notebook import kernel_environment
from factrobust.reproduce.profiles import LAPTOP, find_notebooks

REPLAYED = "notebooks/1-decoding/1.2-temperature.ipynb"
COUNT = "import sys\nprint(sum(name.split('.')[0] == 'factrobust' for name in sys.modules))"


def lines(texts: Iterable[str]) -> int:
    return sum(len(text.splitlines()) for text in texts)


def imported() -> int:
    """Modules of the library that a replay of notebook 1.2 imports, the package itself among them."""
    node = nbformat.read(ROOT / REPLAYED, as_version=4)
    node.cells.append(nbformat.v4.new_code_cell(COUNT))
    with tempfile.TemporaryDirectory() as out:
        environment = kernel_environment(
            ROOT, REPLAYED, out=Path(out), records="replay", profile=LAPTOP
        )
        folder = str((ROOT / REPLAYED).parent)
        NotebookClient(node, kernel_name="python3").execute(cwd=folder, env=environment)
    return int(node.cells[-1].outputs[0].text)


def main() -> None:
    library, tests = (sorted((ROOT / name).rglob("*.py")) for name in ("lib", "tests"))
    notebooks = [nbformat.read(ROOT / name, as_version=4) for name in find_notebooks(ROOT)]
    code = [cell.source for node in notebooks for cell in node.cells if cell.cell_type == "code"]
    counts = [
        (lines(path.read_text("utf-8") for path in library), 13_000, "lines of lib/"),
        (len(library), 75, "files"),
        (lines(path.read_text("utf-8") for path in tests), 16_000, "lines of tests/"),
        (imported(), 25, "modules in a replay of 1.2"),
        (lines(code), 1_700, "lines of notebook code"),
    ]
    shown = (f"{count:,} {what} (at most {limit:,})" for count, limit, what in counts)
    print(f"Thinness: {', '.join(shown)}")


if __name__ == "__main__":
    main()
