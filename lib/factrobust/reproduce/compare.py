"""What moved: two versions of a table, of all tables; the working tree and what git holds of it.

A run rewrites figures/ and notebooks/ in place, and another processor rounds otherwise. So a replay
of the committed records is compared with git's copy: what is staged, or else what was committed.
"""

import csv
import io
import math
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

RTOL = 1e-6
ATOL = 1e-9  # below this, floats count as zero
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?!\w)")
ROUNDING = 0.01  # relative; what was seen of other processors stays below
FOLDERS = ("figures", "notebooks")
ENDINGS = (".csv", ".json", ".ipynb")
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
    """Compare two CSV texts with a header line cell by cell; other columns or numbers of rows end
    it."""
    header, *rows = csv.reader(io.StringIO(new))
    old_header, *old_rows = csv.reader(io.StringIO(old))
    if header != old_header:
        before = ", ".join(old_header)
        now = ", ".join(header)
        return Comparison(0, [], [f"columns: {before} -> {now}"])
    if len(rows) != len(old_rows):
        return Comparison(0, [], [f"rows: {len(old_rows)} -> {len(rows)}"])
    numbers = 0
    moves: list[tuple[float, str]] = []
    others: list[str] = []
    for number, (row, old_row) in enumerate(zip(rows, old_rows, strict=True), start=1):
        for column, cell, old_cell in zip(header, row, old_row, strict=True):
            was_number = NUMBER.fullmatch(old_cell)
            numbers += bool(was_number)
            if cell == old_cell:
                continue
            place = f"row {number}, column {column}: "
            if not was_number or not NUMBER.fullmatch(cell):
                others.append(f"{place}{old_cell!r} -> {cell!r}")
            elif not close(cell, old_cell):
                old_value = float(old_cell)
                value = float(cell)
                move = math.inf
                if old_value:
                    move = abs(value - old_value) / abs(old_value)
                values = f"{old_value:.6g} -> {value:.6g}"
                moves.append((move, f"{place}{values} ({move:.2g} relative)"))
    return Comparison(numbers, moves, others)


def present(root: Path) -> dict[str, str]:
    """The texts in FOLDERS with one of ENDINGS as they are now, by path relative to the root."""
    texts = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.*")):
            if path.suffix in ENDINGS:
                texts[path.relative_to(root).as_posix()] = path.read_text("utf-8")
    return texts


class NotHeldError(RuntimeError):
    """Git cannot say what it holds, so there is nothing to compare with."""


def held_by_git(root: Path) -> dict[str, str]:
    """The same as git would commit them now. NotHeldError without git, outside of a clone, where
    git does not trust the folder's owner, or where a folder is not in it."""
    git = ["git", "-C", str(root)]
    try:
        where = _output([*git, "rev-parse", "--path-format=absolute", "--git-path", "index"])
        index = Path(where.decode().strip())
        with tempfile.TemporaryDirectory() as folder:
            # write-tree locks the index that it reads, and others may hold or want that lock.
            copied = Path(folder) / "index"
            if index.exists():  # in a new repository there is none
                shutil.copy(index, copied)
            written = _output([*git, "write-tree"], GIT_INDEX_FILE=str(copied))
        tree = written.decode().strip()
        archive = _output([*git, "archive", tree, *FOLDERS])
    except FileNotFoundError:
        raise NotHeldError(f"Nothing is compared: git is not installed. {REMEDY}") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[0] if lines else "no reason"
        remedy = REMEDY
        if "dubious" in reason:
            trust = f"git config --global --add safe.directory '{root}'"
            remedy = f"Let git read this folder: {trust}."
        raise NotHeldError(f"Nothing is compared: git says {reason!r}. {remedy}") from None
    texts = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            content = files.extractfile(member)  # None for a folder
            if content and member.name.endswith(ENDINGS):
                texts[member.name] = content.read().decode()
    return texts


def _output(command: list[str], **variables: str) -> bytes:
    """What a command prints, run with these variables in its environment."""
    environment = os.environ | variables
    return subprocess.run(command, check=True, capture_output=True, env=environment).stdout


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[list[str], str]:
    """What a reader should know of the differences between the tables of two versions of
    `present`, and how many numbers differ, as the end of a sentence."""
    # 1. Compare the tables that both have.
    count = 0
    numbers = 0
    moves = []
    others = []
    for path in sorted(old.keys() & new.keys()):
        if not path.endswith(".csv"):
            continue
        table = compare_tables(new[path], old[path])
        count += 1
        numbers += table.numbers
        moves += [(move, place, path) for move, place in table.moves]
        others += [f"Changed in {path}, {what}" for what in table.others[:1]]
    moves.sort(reverse=True)
    # 2. Tell.
    lines = [f"Compared with what git holds: {numbers:,} numbers in {count} tables."]
    if moves:
        noun = "numbers" if len(moves) > 1 else "number"
        lines.append(
            f"{len(moves)} {noun} moved by more than {RTOL:g} (relative); the largest moves:"
        )
        lines += _first([f"  {path}: {place}" for _, place, path in moves])
        lines.append(meaning(moves[0][0]))
    else:
        lines.append(f"No number moved by more than {RTOL:g} (relative).")
    return lines + _first(others), f"{len(moves) or 'none'} of {numbers:,} numbers moved"


def meaning(largest: float) -> str:
    """What the largest relative move of a run says, in a sentence."""
    if largest <= ROUNDING:
        return (
            "Moves of this size are no fault: another processor adds the same numbers in another "
            "order, and `make test` compares with git's copy, not with these files."
        )
    return (
        f"Moves above {ROUNDING:g} are no fault where a number near zero, or a count of few cases "
        "that stand at a threshold, is rounded otherwise by another processor; all others come "
        "from a change of code, data or versions."
    )


def _first(lines: list[str]) -> list[str]:
    if len(lines) <= SHOWN:
        return lines
    return [*lines[:SHOWN], f"... and {len(lines) - SHOWN} more"]
