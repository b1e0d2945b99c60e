"""What the builders of the embedded tables share: their command line, and how they write."""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from factrobust.tables import FactsError

Files = Iterator[tuple[Path, str]]  # paths and texts, each made when the one before is written


def command_line(
    arguments: list[str] | None,
    folder: Path,
    files: Callable[[Path], Files],
    script: str,
    about: str | None,
) -> int:
    """Write the `files` of a folder that differ from a fresh build, or check whether one does, as
    the command says; the exit status."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on difference")
    check = parser.parse_args(arguments).check
    written = []
    try:
        for path, text in files(folder):
            if path.exists() and path.read_text(encoding="utf-8") == text:
                continue
            if check:
                print(f"{path.name} differs; run python data/{Path(script).name}")
                return 1
            path.write_text(text, encoding="utf-8")
            written.append(path.name)
    except FactsError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{', '.join(written)} written" if written else "up to date")
    return 0


def with_counts(readme: Path, counts: str, script: str) -> tuple[Path, str]:
    """A README in which what a script counted stands between its two markers."""
    begin = f"<!-- counts: written by {Path(script).name} -->\n"
    end = "\n<!-- end of counts -->"
    head, _, rest = readme.read_text(encoding="utf-8").partition(begin)
    _, _, tail = rest.partition(end)
    return readme, head + begin + counts + end + tail
