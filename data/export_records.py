"""From the working stores to the committed files: what the notebooks used, and nothing else.

python data/export_records.py  # as `make records` does
"""

import hashlib
import json
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from factrobust.models.records import (
    COLUMNS,
    INDEX,
    NOTEBOOKS,
    SCHEMA,
    Call,
    RecordsError,
    asked_again,
    decode,
    key_of,
    keys_in,
    places,
    read_columns,
    read_index,
)
from factrobust.paths import ROOT
from factrobust.reproduce.again import SAME, compare
from factrobust.reproduce.notebook import USED
from factrobust.reproduce.profiles import find_notebooks

COUNTS = "calls.csv"
CHUNK_BYTES = 8_000_000  # text a parquet file: digits shrink to less than half, so it stays < 5 MB

CALLER = ["notebook", "model", "operation"]
Row = tuple[str, ...]  # the COLUMNS and the NOTEBOOKS


def export(
    folder: Path,
    *,
    new: Path,
    again: Path,
    used: Mapping[str, set[bytes]],
    there: Collection[str],
) -> list[Path]:
    """Write the committed records of `folder` anew, and COUNTS; return the parquet files.

    They hold every answer that a notebook uses. Of a notebook that ran to its end since the last
    export `used` has the keys of its calls. Of every other notebook the committed answers stay, as
    long as it is among `there`. So a run that was interrupted, or of some notebooks alone, drops
    nothing.

    An answer that is committed already keeps its value, unless the store `again` of a run that
    asked everything again holds one that is not the same (`reproduce.again.compare`). What is not
    committed comes from `again` or from the working store `new`.

    The files depend on the records alone: unchanged records give the same bytes. Files that are no
    longer needed are removed, after the new ones are in place. RecordsError for committed records
    that are damaged, and where there is nothing to write."""
    # 1. The answers.
    texts, users = committed(folder)
    for call, text in stored(again).items():
        if call not in texts or not _same(texts[call], text):
            texts[call] = text
    texts = stored(new) | texts
    # 2. Those that a notebook uses.
    rows = []
    for call, text in texts.items():
        key = key_of(call)
        before_run = users.get(call, set()) - used.keys()
        now = {notebook for notebook, keys in used.items() if key in keys}
        notebooks = sorted((before_run | now) & {*there})
        if notebooks:
            rows.append((*call, text, "\n".join(notebooks)))
    if not rows:
        raise RecordsError(f"There is nothing to export to {folder}: run `make reproduce` first.")
    rows.sort()
    # 3. The files.
    folder.mkdir(parents=True, exist_ok=True)
    files = _write_files(folder, rows)
    count_calls(rows).to_csv(folder / COUNTS, index=False, lineterminator="\n")
    index = {"schema": SCHEMA, "files": files}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    for old in folder.glob("*.parquet"):
        if old.name not in files:
            old.unlink()
    return [folder / name for name in files]


def committed(folder: Path) -> tuple[dict[Call, str], dict[Call, set[str]]]:
    """The text of each committed answer, and the notebooks that use it. None of an older schema,
    whose answers mean something else."""
    index = folder / INDEX
    if index.is_file() and json.loads(index.read_text("utf-8"))["schema"] != SCHEMA:
        return {}, {}
    texts, users = {}, {}
    for name, about in read_index(folder)["files"].items():
        columns = read_columns(folder / name, about["sha256"], [*COLUMNS, NOTEBOOKS])
        for *call, text, notebooks in zip(*columns, strict=True):
            texts[Call(*call)] = text
            users[Call(*call)] = set(notebooks.split("\n"))
    return texts, users


def stored(path: Path) -> dict[Call, str]:
    """The text of each answer in a working store; none if there is no such file."""
    if not path.exists():
        return {}
    try:
        with closing(sqlite3.connect(path)) as db:
            rows = db.execute(f"SELECT {', '.join(COLUMNS)} FROM calls").fetchall()
    except sqlite3.Error as error:
        raise RecordsError(f"{path} cannot be read ({error}): move it away.") from error
    return {Call(*call): text for *call, text in rows}


def _same(committed: str, asked: str) -> bool:
    return committed == asked or compare(decode(committed), decode(asked))[0] in SAME


def used_by_notebook(folder: Path) -> dict[str, set[bytes]]:
    """The keys of the calls that each notebook made when it last ran to its end here."""
    found = {}
    for file in folder.glob(f"**/*.{USED}"):
        notebook = file.relative_to(folder).with_suffix("")
        found[notebook.as_posix()] = keys_in(file)
    return found


def count_calls(rows: Iterable[Row]) -> pd.DataFrame:
    """The calls of each model and operation that a notebook is the first to make, for `make plan`.

    Each call counts once, so that the calls of all rows are the records. `characters` are those of
    the prompts and of the answers to score, `written` the most tokens that the answers may have.
    """
    asked = []
    for model, operation, prompt, parameters, _, notebooks in rows:
        how = json.loads(parameters)
        first, *_ = notebooks.split("\n")
        characters = len(prompt) + len(str(how.get("answer", "")))
        written = how.get("max_new_tokens", 0) * how.get("n", 1)
        asked.append((first, model, operation, 1, characters, written))
    table = pd.DataFrame(asked, columns=[*CALLER, "calls", "characters", "written"])
    return table.groupby(CALLER).sum().reset_index()


def _write_files(folder: Path, rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Write the parquet files; return what the index says about them."""
    files = {}
    names = [*COLUMNS, NOTEBOOKS]
    parts: Counter[str] = Counter()
    for chunk in _chunks(rows):
        model, operation = chunk[0][:2]
        stem = f"{model.removeprefix('sha256:')}.{operation}"
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", stem)
        file = folder / f"{stem}.{parts[stem]:02}.parquet"
        parts[stem] += 1  # by name, not by model: two models whose names look alike share no file
        columns = [[*column] for column in zip(*chunk, strict=True)]
        pq.write_table(
            pa.table(columns, names=names),
            file,
            compression="zstd",
            compression_level=9,
            row_group_size=len(chunk),
            use_dictionary=[*COLUMNS[:-1], NOTEBOOKS],
        )
        files[file.name] = {
            "model": model,
            "operation": operation,
            "calls": len(chunk),
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        }
    return files


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows of one model and operation, CHUNK_BYTES of text at most."""
    chunk: list[Row] = []
    size = 0
    for row in rows:
        length = len("".join(row[2:5]).encode())
        if chunk and (chunk[0][:2] != row[:2] or size + length > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(row)
        size += length
    yield chunk


def main() -> None:
    """Write the committed records anew, and say how large they are."""
    working, folder = places()
    done = asked_again().with_name("asked.sqlite")
    try:
        files = export(
            folder,
            new=working,
            again=done if done.exists() else asked_again(),
            used=used_by_notebook(working.with_name("used")),
            there=find_notebooks(ROOT),
        )
    except (RecordsError, OSError) as error:
        sys.exit(str(error))
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"{len(files)} files, {size:.1f} MB, in {folder}")


if __name__ == "__main__":
    main()
