"""Look after a store: count what it holds, check every row, save what is sound."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from factrobust.records import store
from factrobust.records.committed import read_index, read_rows


def info(path: Path, folder: Path) -> str:
    """A table of what the working file and the committed folder hold, and who used it."""
    lines = [f"working store {path}"]
    if path.exists():
        with store.opened(path, "read") as db:
            query = """SELECT model, operation, count(*), sum(length(value)) FROM calls
                       GROUP BY model, operation ORDER BY model, operation"""
            for model, operation, count, size in db.execute(query):
                lines.append(f"  {model}, {operation}: {count} calls, {size} characters")
            query = "SELECT notebook, count(*) FROM used GROUP BY notebook ORDER BY notebook"
            lines += [f"  {name}: uses {count} calls" for name, count in db.execute(query)]
    lines.append(f"committed records {folder}")
    for name, about in read_index(folder).files.items():
        lines.append(f"  {name}: {about.calls} calls, {(folder / name).stat().st_size} B")
    return "\n".join(lines)


def verify(path: Path, folder: Path) -> dict[str, int]:
    """Read every row of a working file and a committed folder; count them by place.

    Raises RecordsError at the first row or file that is not as it was written.
    """
    counts = {}
    if path.exists():
        with store.opened(path, "read") as db:
            if (said := db.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(f"malformed: {said.splitlines()[0]}")
            counts[str(path)] = 0
            for row in db.execute("SELECT * FROM calls"):
                if not store.is_sound(row):
                    raise store.damaged(path)
                counts[str(path)] += 1
    for name, about in read_index(folder).files.items():
        counts[str(folder / name)] = len(read_rows(folder / name, about.sha256))
    return counts


def repair(path: Path) -> tuple[int, Path]:
    """Move a damaged working file aside and leave its sound rows in a new one.

    Returns how many rows were saved and where the damaged file lies now. The notebooks' marks are
    kept too, so that an export notices which results are lost.
    """
    aside, new = (path.with_name(path.name + end) for end in (".damaged", ".repaired"))
    new.unlink(missing_ok=True)
    with store.explained(path, "repair"):
        if not path.is_file():
            raise FileNotFoundError("there is no such file")
        with closing(sqlite3.connect(path)) as bad:
            bad.execute("PRAGMA writable_schema = ON")  # else a truncated file is not even opened
            bad.execute("SELECT count(*) FROM sqlite_master")  # nothing can be read without it
            with store.writing(new) as good:
                saved = _save(bad, good)
        # A journal belongs to its file: left behind, it would be played into the new one.
        for end in ("-journal", ""):
            if path.with_name(path.name + end).exists():
                os.replace(path.with_name(path.name + end), aside.with_name(aside.name + end))
        os.replace(new, path)
    return saved, aside


def _save(bad: sqlite3.Connection, good: sqlite3.Connection) -> int:
    for order in ("", "DESC"):  # from both ends up to the pages that cannot be read
        with suppress(sqlite3.DatabaseError):
            for row in bad.execute(f"SELECT * FROM calls ORDER BY rowid {order}"):
                if store.is_sound(row):
                    good.execute(store.INSERT, row)
    with suppress(sqlite3.DatabaseError):
        marks = bad.execute("SELECT key, notebook FROM used")
        good.executemany("INSERT OR IGNORE INTO used VALUES (?, ?)", marks)
    saved: int = good.execute("SELECT count(*) FROM calls").fetchone()[0]
    return saved
