"""How thin the repository is, beside its limits: the last line of `make lint`, which fails above one."""

import sys
from collections.abc import Iterable

import nbformat

from factrobust.paths import BUILD, ROOT
from factrobust.reproduce.profiles import find_notebooks

REPLAYED = BUILD / "replayed.txt"  # written by tests/test_house.py, which replays notebook 1.2


def lines(texts: Iterable[str]) -> int:
    return sum(len(text.splitlines()) for text in texts)


def main() -> None:
    library, tests = (sorted((ROOT / name).rglob("*.py")) for name in ("lib", "tests"))
    notebooks = [nbformat.read(ROOT / name, as_version=4) for name in find_notebooks(ROOT)]
    code = [cell.source for node in notebooks for cell in node.cells if cell.cell_type == "code"]
    counts = [
        (lines(path.read_text("utf-8") for path in library), 16_000, "lines of lib/"),
        (len(library), 92, "files"),
        (lines(path.read_text("utf-8") for path in tests), 18_000, "lines of tests/"),
        (lines(code), 3_200, "lines of notebook code"),
    ]
    if REPLAYED.exists():
        counts.append((len(REPLAYED.read_text().split()), 25, "modules in a replay of 1.2"))
    shown = (f"{count:,} {what} (at most {limit:,})" for count, limit, what in counts)
    print(f"Thinness: {', '.join(shown)}")
    if above := [what for count, limit, what in counts if count > limit]:
        sys.exit(f"Too many {', '.join(above)}: take out as much as came in.")


if __name__ == "__main__":
    main()
