"""From the working store to the committed files: what the notebooks used, and nothing else.

`python -m factrobust.records.export` does it for the project's own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from factrobust.records import COLUMNS, INDEX, SCHEMA, File, RecordsError, places, read_index
from factrobust.records.store import opened

CHUNK_BYTES = 8_000_000  # text a parquet file: digits shrink to less than half, so it stays < 5 MB

Row = tuple[str, ...]  # the COLUMNS


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
            f"{path}: run `make reproduce` first, or delete {folder} if these notebooks are gone."
        )
    folder.mkdir(parents=True, exist_ok=True)
    # Complete before the first old file goes: a full disk leaves everything as it was.
    with tempfile.TemporaryDirectory(dir=folder) as half:
        files = _write_files(Path(half), rows)
        about = {name: file._asdict() for name, file in files.items()}
        index = {"schema": SCHEMA, "notebooks": notebooks, "files": about}
        Path(half, INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
        for name in [*files, INDEX]:
            os.replace(Path(half, name), folder / name)
    for old in folder.glob("*.parquet"):
        if old.name not in files:
            old.unlink()
    return [folder / name for name in files]


def _used(path: Path) -> tuple[list[str], list[Row]]:
    """The notebooks with marks in a store, and the rows that they used, in the calls' order."""
    if not path.exists():
        return [], []
    with opened(path) as db:
        notebooks = db.execute("SELECT DISTINCT notebook FROM used ORDER BY notebook").fetchall()
        query = f"""SELECT {", ".join(COLUMNS)} FROM calls WHERE key IN (SELECT key FROM used)
                    ORDER BY model, operation, prompt, parameters"""
        return [name for (name,) in notebooks], db.execute(query).fetchall()


def _write_files(folder: Path, rows: Iterable[Row]) -> dict[str, File]:
    """Write the parquet files; return what the index says about them."""
    files = {}
    parts: Counter[str] = Counter()
    for chunk in _chunks(rows):
        model, operation = chunk[0][:2]
        stem = f"{model.removeprefix('sha256:')}.{operation}"
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", stem)
        name = f"{stem}.{parts[stem]:02}.parquet"
        parts[stem] += 1  # by name, not by model: two models whose names look alike share no file
        columns = map(list, zip(*chunk, strict=True))
        table = pa.table(dict(zip(COLUMNS, columns, strict=True)))
        pq.write_table(
            table, folder / name, compression="zstd", compression_level=9,
            row_group_size=len(chunk), use_dictionary=list(COLUMNS[:-1]),
        )  # fmt: skip
        sha256 = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        files[name] = File(model, operation, len(chunk), sha256)
    return files


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows of one model and operation, CHUNK_BYTES of text at most."""
    chunk: list[Row] = []
    size = 0
    for row in rows:
        length = len("".join(row[2:]).encode())
        if chunk and (chunk[0][:2] != row[:2] or size + length > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(row)
        size += length
    yield chunk


def main() -> None:
    """Write the committed records anew, and say how large they are."""
    working, committed = places()
    try:
        files = export(working, committed)
    except (RecordsError, OSError) as error:
        sys.exit(str(error))
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"{len(files)} files, {size:.1f} MB, in {committed}")


if __name__ == "__main__":
    main()
