"""The committed records: a folder of parquet files, one model and operation each, and an index.

index.json holds the schema, the notebooks that the records serve, and each file's model, operation,
number of calls and SHA-256.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from factrobust.records.call import SCHEMA, Call, RecordsError

INDEX = "index.json"
COLUMNS = ("model", "operation", "prompt", "parameters", "value")
REBUILD = "`make reproduce && make records`"


@dataclass(frozen=True)
class File:
    """What the index says about one parquet file."""

    model: str
    operation: str
    calls: int
    sha256: str


@dataclass(frozen=True)
class Index:
    """The notebooks that the records serve, and the files by name."""

    notebooks: list[str]
    files: dict[str, File]


def read_index(folder: Path) -> Index:
    """A folder's index; an empty one where there is none."""
    file = folder / INDEX
    if not file.is_file():
        return Index([], {})
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
        if given["schema"] != SCHEMA:
            raise RecordsError(
                f"{folder} holds records of schema {given['schema']}, but this library reads "
                f"schema {SCHEMA}: run {REBUILD}, or use the library's version that wrote it."
            )
        files = {name: File(**about) for name, about in given["files"].items()}
        return Index(given["notebooks"], files)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(file, f"{type(error).__name__}: {error}") from error


def write_index(folder: Path, index: Index) -> None:
    """Write what `read_index` reads; the same index gives the same bytes."""
    text = json.dumps({"schema": SCHEMA, **asdict(index)}, indent=1)
    (folder / INDEX).write_text(text + "\n", encoding="utf-8")


def read_rows(file: Path, sha256: str) -> list[tuple[Call, str]]:
    """Each call of a file with its value's text; RecordsError unless it has that SHA-256."""
    import pyarrow.parquet as pq

    try:
        data = file.read_bytes()
    except OSError as error:
        raise _damaged(file, error.strerror or str(error)) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise _damaged(file, "it does not match its checksum in the index")
    table = pq.read_table(io.BytesIO(data))
    columns = [table.column(name).to_pylist() for name in COLUMNS]
    return [(Call(*fields), text) for *fields, text in zip(*columns, strict=True)]


def _damaged(file: Path, why: str) -> RecordsError:
    return RecordsError(
        f"{file} is damaged ({why}): restore it with `git checkout -- '{file}'`, or run {REBUILD}."
    )
