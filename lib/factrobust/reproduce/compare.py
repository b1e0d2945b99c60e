"""What moved: two versions of a table, of all tables; the working tree and what git holds of it.

A run rewrites figures/ and notebooks/ in place, and another processor rounds otherwise. So a replay of
the committed records is compared with git's copy: what is staged, or else what was committed.
"""

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
ROUNDING = 0.01  # relative; what was seen of other processors stays below
FOLDERS, ENDINGS = ("figures", "notebooks"), (".csv", ".json", ".ipynb")
REMEDY = "Work in a clone of the repository, made with git."
SHOWN = 8  # lines of a list before "and 5 more"


def close(new: str, old: str) -> bool:
    """Whether two written numbers agree: integers exactly, floats up to RTOL or ATOL."""
    if new == old:
        return True
    if not any(mark in new + old for mark in ".eE"):
        return False
    return math.isclose(float(new), float(old), rel_tol=RTOL, abs_tol=ATOL)


class Comparison(NamedTuple):
    """What differs between two versions of a table."""

    numbers: int  # that were compared
    moves: list[tuple[float, str]]  # relative (infinite from zero), and where
    others: list[str]  # words, columns, number of rows


def compare_tables(new: str, old: str) -> Comparison:
    """Compare two CSV texts with a header line cell by cell; other columns or numbers of rows end it."""
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
    """The texts in FOLDERS with one of ENDINGS as they are now, by path relative to the root."""
    paths = (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.*")))
    texts = {p.relative_to(root).as_posix(): p for p in paths if p.suffix in ENDINGS}
    return {name: path.read_text("utf-8") for name, path in texts.items()}


class NotHeldError(RuntimeError):
    """Git cannot say what it holds, so there is nothing to compare with."""


def held_by_git(root: Path) -> dict[str, str]:
    """The same as git would commit them now. NotHeldError without git, outside of a clone, where git
    does not trust the folder's owner, or where a folder is not in it."""
    git = ["git", "-C", str(root)]
    try:
        tree = _output([*git, "write-tree"]).decode().strip()
        archive = _output([*git, "archive", tree, *FOLDERS])
    except FileNotFoundError:
        raise NotHeldError(f"Nothing is compared: git is not installed. {REMEDY}") from None
    except subprocess.CalledProcessError as error:
        [reason, *_] = error.stderr.decode(errors="replace").strip().splitlines() or ["no reason"]
        owner = f"git config --global --add safe.directory '{root}'"
        remedy = f"Let git read this folder: {owner}." if "dubious" in reason else REMEDY
        raise NotHeldError(f"Nothing is compared: git says {reason!r}. {remedy}") from None
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        named = {f.name: files.extractfile(f) for f in files if f.name.endswith(ENDINGS)}
        return {name: file.read().decode() for name, file in named.items() if file}


def _output(command: list[str]) -> bytes:
    return subprocess.run(command, check=True, capture_output=True).stdout


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What a reader should know of the differences between the tables of two versions of `present`."""
    both = sorted(path for path in old.keys() & new.keys() if path.endswith(".csv"))
    tables = {path: compare_tables(new[path], old[path]) for path in both}
    moves = [(*move, path) for path, table in tables.items() for move in table.moves]
    numbers = sum(table.numbers for table in tables.values())
    end = "; the largest moves:" if moves else "."
    moved = f"{len(moves) or 'No'} number{'s' * (len(moves) > 1)} moved by more than {RTOL:g}"
    lines = [f"Compared with what git holds: {numbers:,} numbers in {len(tables)} tables."]
    lines += [f"{moved} (relative){end}"]
    lines += _first([f"  {path}: {place}" for _, place, path in sorted(moves, reverse=True)])
    lines += [meaning(max(move for move, *_ in moves))] if moves else []
    others = {path: table.others[0] for path, table in tables.items() if table.others}
    return lines + _first([f"Changed in {path}, {what}" for path, what in others.items()])


def moved(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """How many numbers of two versions of `present` differ, as the end of a sentence."""
    both = [path for path in old.keys() & new.keys() if path.endswith(".csv")]
    tables = [compare_tables(new[path], old[path]) for path in both]
    numbers = sum(table.numbers for table in tables)
    moves = sum(len(table.moves) for table in tables)
    return f"{moves or 'none'} of {numbers:,} numbers moved"


def meaning(largest: float) -> str:
    """What the largest relative move of a run says, in a sentence."""
    if largest <= ROUNDING:
        return (
            "Moves of this size are no fault: another processor adds the same numbers in another "
            "order, and `make test` compares with git's copy, not with these files."
        )
    return (
        f"Moves above {ROUNDING:g} are no fault where a number near zero, or a count of few cases "
        "that stand at a threshold, is rounded otherwise by another processor; all others come from "
        "a change of code, data or versions."
    )


def _first(lines: list[str]) -> list[str]:
    more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return lines[:SHOWN] + more
