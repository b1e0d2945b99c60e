"""What moved: two versions of a table, of all tables; the working tree and its commit."""

import csv
import io
import math
import re
import subprocess
import tarfile
from collections.abc import Mapping
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

RTOL = 1e-6
ATOL = 1e-9  # below this, floats count as zero
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?!\w)")
SHOWN = 8  # lines of a list before "and 5 more"


def close(new: str, old: str) -> bool:
    """Whether two written numbers agree: integers exactly, floats up to RTOL or ATOL."""
    if new == old:
        return True
    if not any(mark in new + old for mark in ".eE"):
        return False
    return math.isclose(float(new), float(old), rel_tol=RTOL, abs_tol=ATOL)


class Comparison(NamedTuple):
    """What differs between two versions of a table.

    `numbers` were compared; `moves` holds each that is not close to what it was: its relative move
    (infinite from zero) and where it stands; `others` changed words, columns, number of rows.
    """

    numbers: int
    moves: list[tuple[float, str]]
    others: list[str]


def compare_tables(new: str, old: str) -> Comparison:
    """Compare two CSV texts with a header line cell by cell, rows and columns in order.

    When the columns or the number of rows differ, only that is reported: pairing the rows of
    different tables would report nonsense.
    """
    (header, *now), (old_header, *was) = (csv.reader(io.StringIO(text)) for text in (new, old))
    if header != old_header:
        return Comparison(0, [], [f"columns: {', '.join(old_header)} -> {', '.join(header)}"])
    if len(now) != len(was):
        return Comparison(0, [], [f"rows: {len(was)} -> {len(now)}"])
    numbers = sum(bool(NUMBER.fullmatch(cell)) for row in was for cell in row)
    result = Comparison(numbers, [], [])
    cells = product(range(1, len(was) + 1), header)
    for (row, column), a, b in zip(cells, chain(*was), chain(*now), strict=True):
        if a == b:
            continue
        place = f"row {row}, column {column}: "
        if not (NUMBER.fullmatch(a) and NUMBER.fullmatch(b)):
            result.others.append(f"{place}{a!r} -> {b!r}")
        elif not close(b, a):
            x, y = float(a), float(b)
            move = abs(y - x) / abs(x) if x else math.inf
            result.moves.append((move, f"{place}{x:.6g} -> {y:.6g} ({move:.2g} relative)"))
    return result


def present(root: Path) -> dict[str, str]:
    """The tables (figures/**/*.csv) as they are now, by path relative to the root."""
    paths = sorted(root.glob("figures/**/*.csv"))
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in paths}


def committed(root: Path) -> dict[str, str] | None:
    """The same tables in the last commit; None without a commit or git."""
    command = ["git", "-C", str(root), "archive", "HEAD", ":(glob)figures/**/*.csv"]
    try:
        archive = subprocess.run(command, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return {f.name: file.read().decode() for f in files if (file := files.extractfile(f))}


def differences(old: Mapping[str, str], new: Mapping[str, str], against: str) -> list[str]:
    """What a reader should know of the differences between two versions of `present`'s tables; `git
    diff` tells the rest."""
    both = sorted(old.keys() & new.keys())
    tables = {path: compare_tables(new[path], old[path]) for path in both}
    moves = [(*move, path) for path, table in tables.items() for move in table.moves]
    numbers = sum(table.numbers for table in tables.values())
    end = "; the largest moves:" if moves else "."
    moved = f"{len(moves) or 'No'} number{'s' * (len(moves) > 1)} moved by more than {RTOL:g}"
    lines = [f"Compared with {against}: {numbers:,} numbers in {len(tables)} tables."]
    lines += [f"{moved} (relative){end}"]
    lines += _first([f"  {path}: {place}" for _, place, path in sorted(moves, reverse=True)])
    others = {path: table.others[0] for path, table in tables.items() if table.others}
    return lines + _first([f"Changed in {path}, {what}" for path, what in others.items()])


def _first(lines: list[str]) -> list[str]:
    more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return lines[:SHOWN] + more
