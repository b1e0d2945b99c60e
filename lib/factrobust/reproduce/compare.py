"""Are two texts or tables the same up to a numeric tolerance?"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

RTOL = 1e-6
ATOL = 1e-9  # below this, floats count as zero
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?!\w)")


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
    new, old = list(NUMBER.finditer(test)), list(NUMBER.finditer(reference))
    if len(new) != len(old):
        return test
    parts, end = [], 0
    for a, b in zip(new, old, strict=True):
        agreed = close(a.group(), b.group(), rtol, atol)
        parts += [test[end : a.start()], b.group() if agreed else a.group()]
        end = a.end()
    return "".join(parts) + test[end:]


def tolerance(tags: Iterable[str]) -> tuple[float, float]:
    """(rtol, atol) of a cell from its tags, such as "rtol=0.02"; the defaults without one."""
    given = dict(tag.split("=", 1) for tag in tags if tag.startswith(("rtol=", "atol=")))
    return float(given.get("rtol", RTOL)), float(given.get("atol", ATOL))


@dataclass(frozen=True)
class Move:
    """A number of a table that is not close to what it was."""

    row: str
    column: str
    old: float
    new: float

    @property
    def absolute(self) -> float:
        """|new - old|, in the column's unit."""
        return abs(self.new - self.old)

    @property
    def relative(self) -> float:
        """|new - old| / |old|: infinite when it was zero."""
        return self.absolute / abs(self.old) if self.old else math.inf

    def __str__(self) -> str:
        share = f", {self.relative:.2g} relative" if math.isfinite(self.relative) else ""
        return f"row {self.row}, column {self.column}: {self.old:.6g} -> {self.new:.6g}{share}"


@dataclass
class Comparison:
    """What differs between two versions of a table (CSV text with a header line)."""

    numbers: int = 0
    moves: list[Move] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # changed words, columns, number of rows

    @property
    def same(self) -> bool:
        """Whether nothing differs beyond the tolerance."""
        return not (self.moves or self.others)

    def __str__(self) -> str:
        lines = self.others + [str(move) for move in self.moves]
        more = [f"... and {len(lines) - 8} more"] if len(lines) > 8 else []
        return "\n".join(lines[:8] + more)


def compare_tables(new: str, old: str, rtol: float = RTOL, atol: float = ATOL) -> Comparison:
    """Compare two CSV texts cell by cell, rows and columns in order.

    When the columns or the number of rows differ, only that is reported: pairing the rows of
    different tables would report nonsense.
    """
    new_rows, old_rows = list(csv.reader(io.StringIO(new))), list(csv.reader(io.StringIO(old)))
    result = Comparison()
    header = old_rows[0] if old_rows else []
    if (new_header := new_rows[0] if new_rows else []) != header:
        result.others.append(f"columns: {', '.join(header)} -> {', '.join(new_header)}")
        return result
    if len(new_rows) != len(old_rows):
        result.others.append(f"rows: {len(old_rows) - 1} -> {len(new_rows) - 1}")
        return result
    for number, (was, now) in enumerate(zip(old_rows[1:], new_rows[1:], strict=True), start=1):
        words = [cell for cell in was if cell and _number(cell) is None]
        row = f"{number} ({', '.join(words[:3])})" if words else str(number)
        if len(was) != len(now):
            result.others.append(f"row {row}: {len(was)} cells -> {len(now)}")
            continue
        names = [*header, *(f"{i + 1}" for i in range(len(header), len(was)))]
        for column, a, b in zip(names, was, now, strict=True):
            x, y = _number(a), _number(b)
            if x is None or y is None:
                if a != b:
                    result.others.append(f"row {row}, column {column}: {a!r} -> {b!r}")
                continue
            result.numbers += 1
            if not close(b, a, rtol, atol):
                result.moves.append(Move(row, column, x, y))
    return result


def _number(cell: str) -> float | None:
    """The finite number that a cell holds. inf and nan are words here: they have no distance."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
