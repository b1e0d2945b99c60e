"""From the working store to the committed files: what the notebooks used, and nothing else."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from factrobust.records import (
    COLUMNS,
    INDEX,
    File,
    Index,
    RecordsError,
    read_index,
    read_rows,
    store,
    write_index,
)
from factrobust.records.store import Row

CHUNK_BYTES = 8_000_000  # text a parquet file: digits shrink to less than half, so it stays < 5 MB
AGAIN = "`make reproduce`"


def export(path: Path, folder: Path) -> list[Path]:
    """Write the calls of a working store that notebooks used as committed records.

    Returns the parquet files. They depend on the records alone: unchanged records give the same
    bytes. Files of an earlier export that are no longer needed are removed, after the new ones are
    in place. Raises RecordsError when nothing was used, or when a notebook that the folder's
    records serve has not run with this store: its calls would be lost.
    """
    notebooks, rows = _used(path)
    if not notebooks:
        raise RecordsError(f"{path} has nothing to export: run `make reproduce` first.")
    served: list[str] = []
    with suppress(RecordsError):  # damaged, or of another schema: this export is the remedy
        served = read_index(folder).notebooks
    if idle := sorted(set(served) - set(notebooks)):
        raise RecordsError(
            f"The export would drop the records of {', '.join(idle)}, which did not run with "
            f"{path}: run {AGAIN} first, or delete {folder} if these notebooks are gone."
        )
    with store.explained(folder, "write"):
        folder.mkdir(parents=True, exist_ok=True)
        # Complete before the first old file goes: a full disk leaves everything as it was.
        with tempfile.TemporaryDirectory(dir=folder) as half:
            files = _write_files(Path(half), rows)
            write_index(Path(half), Index(notebooks, files))
            for name in [*files, INDEX]:
                os.replace(Path(half, name), folder / name)
        for file in folder.glob("*.parquet"):
            if file.name not in files:
                file.unlink()
    return [folder / name for name in files]


def _used(path: Path) -> tuple[list[str], list[Row]]:
    """The notebooks with marks in a store, and the rows that they used, in the calls' order."""
    if not path.exists():
        return [], []
    with store.opened(path, "read") as db:
        db.execute("BEGIN")
        notebooks = db.execute("SELECT DISTINCT notebook FROM used ORDER BY notebook").fetchall()
        lost = "SELECT count(DISTINCT key) FROM used WHERE key NOT IN (SELECT key FROM calls)"
        if number := db.execute(lost).fetchone()[0]:
            raise RecordsError(f"{path} lacks {number} results that notebooks used: run {AGAIN}.")
        query = """SELECT * FROM calls WHERE key IN (SELECT key FROM used)
                   ORDER BY model, operation, prompt, parameters"""
        rows = db.execute(query).fetchall()
    if not all(map(store.is_sound, rows)):
        raise store.damaged(path)
    return [name for (name,) in notebooks], rows


def _write_files(folder: Path, rows: Iterable[Row]) -> dict[str, File]:
    """Write the parquet files; return what the index says about them."""
    files = {}
    parts: Counter[str] = Counter()
    for chunk in _chunks(rows):
        model, operation = chunk[0][1:3]
        stem = f"{model.removeprefix('sha256:')}.{operation}"
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", stem)
        name = f"{stem}.{parts[stem]:02}.parquet"
        parts[stem] += 1  # by name, not by model: two models whose names look alike share no file
        _write_file(folder / name, chunk)
        sha256 = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        files[name] = File(model, operation, len(chunk), sha256)
    return files


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows of one model and operation, CHUNK_BYTES of text at most."""
    chunk: list[Row] = []
    size = 0
    for row in rows:
        length = len("".join(row[3:6]).encode())
        if chunk and (chunk[0][1:3] != row[1:3] or size + length > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(row)
        size += length
    yield chunk


def _write_file(file: Path, rows: Sequence[Row]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(zip(*rows, strict=True))[1:6]
    table = pa.table(dict(zip(COLUMNS, map(list, columns), strict=True)))
    pq.write_table(
        table, file, compression="zstd", compression_level=9, row_group_size=len(rows),
        use_dictionary=list(COLUMNS[:-1]),
    )  # fmt: skip


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
