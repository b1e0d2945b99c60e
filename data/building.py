"""What the builders of the embedded tables share: their command line, and how they write."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from factrobust.tables import FactsError

Update = Callable[[Path, bool], list[str]]


def command_line(
    arguments: list[str] | None,
    folder: Path,
    update: Update,
    script: str,
    about: str | None,
) -> int:
    """Run a builder's `update` as its command says; the exit status.

    `update(folder, check)` gives the names of the files that differ from a fresh build, and writes
    them unless it is to check alone.
    """
    parser = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on difference")
    check = parser.parse_args(arguments).check
    try:
        changed = update(folder, check)
    except FactsError as error:
        print(error, file=sys.stderr)
        return 1
    names = ", ".join(changed)
    if not changed:
        print("up to date")
    elif check:
        print(f"{names} differ; run python data/{Path(script).name}")
    else:
        print(f"{names} written")
    return int(check and bool(changed))


def put(path: Path, text: str, check: bool) -> list[str]:
    """The name of a file if its text is another one, which is written unless `check`."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return []
    if not check:
        path.write_text(text, encoding="utf-8")
    return [path.name]


def put_counts(readme: Path, counts: str, script: str, check: bool) -> list[str]:
    """`put` of a README in which what a script counted stands between its two markers."""
    begin = f"<!-- counts: written by {Path(script).name} -->\n"
    end = "\n<!-- end of counts -->"
    head, _, rest = readme.read_text(encoding="utf-8").partition(begin)
    _, _, tail = rest.partition(end)
    return put(readme, head + begin + counts + end + tail, check)
