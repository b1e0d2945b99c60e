"""From the working store to the committed files: what the notebooks used, and nothing else.

python data/export_records.py              # for the project's own, as `make records` does
python data/export_records.py --restore    # back: `make reproduce` then asks what is missing alone
"""

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from factrobust.models.records import (
    COLUMNS,
    INDEX,
    INSERT,
    SCHEMA,
    Call,
    RecordsError,
    key_of,
    opened,
    places,
    read_index,
    read_texts,
)

COUNTS = "calls.csv"
CHUNK_BYTES = 8_000_000  # text a parquet file: digits shrink to less than half, so it stays < 5 MB

Row = tuple[str, ...]  # the COLUMNS


def export(path: Path, folder: Path) -> list[Path]:
    """Write the calls of a working store that notebooks used as committed records, and COUNTS.

    Returns the parquet files. They depend on the records alone: unchanged records give the same
    bytes. Files of an earlier export that are no longer needed are removed, after the new ones are
    in place. Raises RecordsError when nothing was used, or when a notebook that the folder's
    records serve has not run with this store: its calls would be lost.
    """
    with opened(path) as db:
        query = f"""SELECT {", ".join(COLUMNS)}, first FROM calls
                    JOIN (SELECT key, MIN(notebook) AS first FROM used GROUP BY key) USING (key)
                    ORDER BY model, operation, prompt, parameters"""
        marked = db.execute(query).fetchall()
        used = db.execute("SELECT DISTINCT notebook FROM used ORDER BY 1").fetchall()
    notebooks = [name for (name,) in used]
    if not notebooks:
        raise RecordsError(f"{path} has nothing to export: run `make reproduce` first.")
    served: list[str] = []
    with suppress(RecordsError):  # damaged, or of another schema: this export is the remedy
        served = read_index(folder)["notebooks"]
    if idle := sorted(set(served) - set(notebooks)):
        raise RecordsError(
            f"The export would drop the records of {', '.join(idle)}, which did not run with "
            f"{path}: run `make reproduce` first, or delete {folder} if these notebooks are gone."
        )
    folder.mkdir(parents=True, exist_ok=True)
    files = _write_files(folder, (row[:-1] for row in marked))
    count_calls(marked).to_csv(folder / COUNTS, index=False, lineterminator="\n")
    index = {"schema": SCHEMA, "notebooks": notebooks, "files": files}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    for old in folder.glob("*.parquet"):
        if old.name not in files:
            old.unlink()
    return [folder / name for name in files]


def restore(path: Path, folder: Path) -> int:
    """Put the committed records into a working store, which keeps what it has; their number."""
    files = read_index(folder)["files"]
    with opened(path) as db:
        for name, about in files.items():
            texts = read_texts(folder / name, about["sha256"])
            calls = ((Call(*call), text) for call, text in texts.items())
            db.executemany(INSERT, ((key_of(call), *call, text) for call, text in calls))
    return sum(about["calls"] for about in files.values())


def count_calls(marked: Iterable[Row]) -> pd.DataFrame:
    """The calls of each model and operation that a notebook is the first to make, for `make plan`.

    Each call counts once, so that the calls of all rows are the records. `characters` are those of the
    prompts and of the answers to score, `written` the most tokens that the answers may have.
    """
    counted: Counter[Row] = Counter()
    characters, written = counted.copy(), counted.copy()
    for model, operation, prompt, parameters, _, notebook in marked:
        asked, row = json.loads(parameters), (notebook, model, operation)
        counted[row] += 1
        characters[row] += len(prompt) + len(str(asked.get("answer", "")))
        written[row] += asked.get("max_new_tokens", 0) * asked.get("n", 1)
    rows = [(*row, counted[row], characters[row], written[row]) for row in sorted(counted)]
    names = ["notebook", "model", "operation", "calls", "characters", "written"]
    return pd.DataFrame(rows, columns=names)


def _write_files(folder: Path, rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Write the parquet files; return what the index says about them."""
    files = {}
    parts: Counter[str] = Counter()
    for chunk in _chunks(rows):
        model, operation = chunk[0][:2]
        stem = f"{model.removeprefix('sha256:')}.{operation}"
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", stem)
        file = folder / f"{stem}.{parts[stem]:02}.parquet"
        parts[stem] += 1  # by name, not by model: two models whose names look alike share no file
        table = pa.table(list(map(list, zip(*chunk, strict=True))), names=COLUMNS)
        pq.write_table(
            table, file, compression="zstd", compression_level=9,
            row_group_size=len(chunk), use_dictionary=list(COLUMNS[:-1]),
        )  # fmt: skip
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        about = {"model": model, "operation": operation, "calls": len(chunk), "sha256": sha256}
        files[file.name] = about
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
    """Write the committed records anew, and say how large they are; or put them back."""
    working, committed = places()
    try:
        if sys.argv[1:] == ["--restore"]:
            print(f"{restore(working, committed):,} answers are in {working}")
            return
        files = export(working, committed)
    except (RecordsError, OSError) as error:
        sys.exit(str(error))
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"{len(files)} files, {size:.1f} MB, in {committed}")


if __name__ == "__main__":
    main()
