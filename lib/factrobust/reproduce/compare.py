"""What moved: two versions of a text, of a table, of all results; the working tree and its commit."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

RTOL = 1e-6
ATOL = 1e-9  # below this, floats count as zero
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?!\w)")
SHOWN = 8  # lines of a list before "and 5 more"


def close(new: str, old: str, rtol: float = RTOL, atol: float = ATOL) -> bool:
    """Whether two written numbers agree: integers exactly, floats up to the tolerance."""
    if new == old:
        return True
    if not any(mark in new + old for mark in ".eE"):
        return False
    return math.isclose(float(new), float(old), rel_tol=rtol, abs_tol=atol)


def align(test: str, reference: str, rtol: float = RTOL, atol: float = ATOL) -> str:
    """`test` with each number that is close to its counterpart in `reference` replaced by that.

    So the result equals `reference` exactly if the two agree, and otherwise differs from it only
    where they do not. Numbers are paired in order; if their count differs, nothing is replaced.
    """
    old = NUMBER.findall(reference)
    if len(NUMBER.findall(test)) != len(old):
        return test
    counterparts = iter(old)

    def nearest(new: re.Match[str]) -> str:
        counterpart = next(counterparts)
        return counterpart if close(new[0], counterpart, rtol, atol) else new[0]

    return NUMBER.sub(nearest, test)


def tolerance(tags: Iterable[str]) -> tuple[float, float]:
    """(rtol, atol) of a cell from its tags, such as "rtol=0.02"; the defaults without one."""
    values = dict(tag.split("=", 1) for tag in tags if tag.startswith(("rtol=", "atol=")))
    return float(values.get("rtol", RTOL)), float(values.get("atol", ATOL))


@dataclass
class Comparison:
    """What differs between two versions of a table.

    `moves` holds each number that is not close to what it was: its relative move (infinite from
    zero) and where it stands; `others` changed words, columns, number of rows.
    """

    numbers: int = 0
    moves: list[tuple[float, str]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Whether nothing differs beyond the tolerance."""
        return not (self.moves or self.others)

    def __str__(self) -> str:
        return "\n".join(_first(self.others + [place for _, place in self.moves]))


def compare_tables(new: str, old: str) -> Comparison:
    """Compare two CSV texts with a header line cell by cell, rows and columns in order.

    When the columns or the number of rows differ, only that is reported: pairing the rows of
    different tables would report nonsense.
    """
    now, was = (
        pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False) for text in (new, old)
    )
    header, old_header = (", ".join(map(str, table)) for table in (now, was))
    if header != old_header:
        return Comparison(others=[f"columns: {old_header} -> {header}"])
    if len(now) != len(was):
        return Comparison(others=[f"rows: {len(was)} -> {len(now)}"])
    # inf and nan are words here: they have no distance.
    values = was.apply(pd.to_numeric, errors="coerce").to_numpy(float)
    result = Comparison(numbers=int(np.isfinite(values).sum()))
    for row, column in np.argwhere((now != was).to_numpy()):
        a, b = str(was.iat[row, column]), str(now.iat[row, column])
        words = [word for word in was.iloc[row] if word and not NUMBER.fullmatch(word)][:3]
        place = f"row {row + 1} ({', '.join(words)})" if words else f"row {row + 1}"
        place += f", column {was.columns[column]}: "
        if not (NUMBER.fullmatch(a) and NUMBER.fullmatch(b)):
            result.others.append(f"{place}{a!r} -> {b!r}")
        elif not close(b, a):
            x, y = float(a), float(b)
            move = abs(y - x) / abs(x) if x else math.inf
            result.moves.append((move, f"{place}{x:.6g} -> {y:.6g} ({move:.2g} relative)"))
    return result


def present(root: Path) -> dict[str, bytes]:
    """The tables (figures/**/*.csv) and notebooks as they are now, by path relative to the root."""
    paths = [*root.glob("figures/**/*.csv"), *root.glob("notebooks/**/*.ipynb")]
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(paths)
        if ".ipynb_checkpoints" not in path.parts
    }


def committed(root: Path) -> dict[str, bytes] | None:
    """The same files in the last commit; None without a commit or git."""
    wanted = [":(glob)figures/**/*.csv", ":(glob)notebooks/**/*.ipynb"]
    command = ["git", "-C", str(root), "archive", "--format=tar", "HEAD", *wanted]
    try:
        archive = subprocess.run(command, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        return {f.name: file.read() for f in files if (file := files.extractfile(f))}


def describe(old: Mapping[str, bytes], new: Mapping[str, bytes], against: str) -> list[str]:
    """What a reader should know of the differences between two versions of `present`'s files."""
    both = sorted(old.keys() & new.keys())
    tables = {
        path: compare_tables(new[path].decode(), old[path].decode())
        for path in both
        if path.endswith(".csv")
    }
    moves = [(*move, path) for path, table in tables.items() for move in table.moves]
    lines = [
        f"Compared with {against}: {sum(table.numbers for table in tables.values()):,} numbers in "
        f"{len(tables)} tables, {len(both) - len(tables)} notebooks.",
        f"{len(moves) or 'No'} number{'s' * (len(moves) > 1)} moved by more than {RTOL:g} (relative)"
        + ("; the largest moves:" if moves else "."),
    ]
    lines += _first([f"  {path}: {place}" for _, place, path in sorted(moves, reverse=True)])
    lines += _first(
        [f"Changed in {path}, {table.others[0]}" for path, table in tables.items() if table.others]
    )
    books = [path for path in both if path not in tables]
    texts = [
        path for path in books if align(_texts(new[path]), _texts(old[path])) != _texts(old[path])
    ]
    for what, paths in {
        "Text outputs changed": texts,
        "New": sorted(new.keys() - old.keys()),
        "No longer there": sorted(old.keys() - new.keys()),
    }.items():
        lines += [f"{what}: {', '.join(_first(paths))}."] if paths else []
    return lines


def _texts(notebook: bytes) -> str:
    """Everything that a notebook's code cells print or display as text."""
    texts = []
    for cell in json.loads(notebook)["cells"]:
        for output in cell.get("outputs", []):
            shown: dict[str, Any] = {"text/": output.get("text", ""), **output.get("data", {})}
            texts += ["".join(shown[mime]) for mime in sorted(shown) if mime.startswith("text/")]
    return "\n".join(texts)


def _first(lines: list[str]) -> list[str]:
    more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return lines[:SHOWN] + more
