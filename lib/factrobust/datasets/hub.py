"""Files that others published: from the hub, its cache or a path, and what they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar

import pandas as pd
import pandera.pandas as pa

from factrobust.tables import FactsError, check_table, read_checked

SUFFIXES = (".parquet", ".json", ".jsonl", ".csv", ".tsv", ".label")
PARQUET = b"PAR1"  # how its files begin
Row = TypeVar("Row")


def local_files(path: Path) -> list[Path]:
    """The file at the path, or the data files of a folder and those below it."""
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.rglob("*")) if file.suffix in SUFFIXES]
    if not files:
        raise FactsError(
            f"{path} holds no data ({', '.join(SUFFIXES)}); give a file or its folder."
        )
    return files


def fetch(repo: str, revision: str, pattern: str) -> tuple[list[Path], str]:
    """The files of a data set on the hub whose paths match the pattern, and the commit they are of.

    Its cache serves where the hub cannot be reached, with a branch or short commit as it was when it
    was fetched. Raises ConnectionError when neither has the files.
    """
    from huggingface_hub import snapshot_download

    remedy = f"go online once, or download its {pattern} and give its path instead."
    try:
        folder = Path(
            snapshot_download(repo, repo_type="dataset", revision=revision, allow_patterns=pattern)
        )
    except Exception as error:  # the hub's client raises a dozen unrelated types
        raise ConnectionError(
            f"Could not fetch {repo} at {revision} from the hub ({_said(error)}): {remedy}"
        ) from error
    if not (files := _whole(folder, pattern)):
        raise ConnectionError(
            f"Neither the hub nor its cache has all of {pattern} of {repo} at {revision}: {remedy}"
        )
    return files, folder.name


def _whole(folder: Path, pattern: str) -> list[Path]:
    """The files of a snapshot that match; none if one of their parts ("-of-00002") is missing."""
    # rglob, as the hub's client lets * stand for folders too
    files = [path for path in sorted(folder.rglob(pattern)) if path.is_file()]
    parts = [int(n) for file in files for n in re.findall(r"-of-(\d+)", file.name)]
    return files if len(files) >= max(parts, default=1) else []


def _said(error: Exception) -> str:
    """The first sentence of an error, on one line."""
    return shorten(f"{type(error).__name__}: {error}".split(". ")[0], 120)


def read_json(path: Path, name: str, *, lines: bool = False) -> Any:
    """What a JSON file of the set `name` holds, or the list of a file of JSON lines, or of the rows
    of a parquet file. Raises FactsError for one that cannot be read, which says where it breaks."""
    head, at = b"", ""
    try:
        with path.open("rb") as file:
            head = file.read(40)
        if head.startswith(PARQUET):
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as table:
                return table.read().to_pylist()
        text = path.read_text(encoding="utf-8-sig")
        if not lines:
            return json.loads(text)
        rows = []
        for number, line in enumerate(text.split("\n"), 1):
            at = f", line {number}"
            rows += [json.loads(line)] if line.strip() else []
        return rows
    except (OSError, ValueError) as error:  # json, the decoder and pyarrow raise ValueErrors
        raise FactsError(
            f"{path}{at} cannot be read as {name} ({_said(error)}); it begins {head!r}: fetch "
            "the set's own file anew, unpacked."
        ) from error


def adapted(
    path: Path, name: str, adapter: Callable[[Any], Iterable[Row]], content: Any
) -> Iterator[Row]:
    """What an adapter makes of each row of a file's content; FactsError for the first that it cannot."""
    number = 1
    try:
        for row in adapter(content):
            yield row
            number += 1
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise FactsError(
            f"{path}, row {number}: not as in {name}'s files ({_said(error)}); give one that has "
            "answers, fetch it anew, or mend the row."
        ) from error


def read_rows(path: Path, schema: pa.DataFrameSchema, name: str) -> pd.DataFrame:
    """The schema's columns of a CSV, TSV or parquet file as texts, checked, indexed by line or row."""
    columns = list(schema.columns)
    if path.suffix != ".parquet":
        delimiter = "\t" if path.suffix == ".tsv" else ","
        return read_checked(path, schema, delimiter=delimiter)[columns]
    try:
        rows = pd.read_parquet(path, columns=columns)
    except (OSError, ValueError) as error:
        raise FactsError(
            f"{path} cannot be read as {name} ({_said(error)}); fetch the set's own file anew."
        ) from error
    rows = rows.astype("str").fillna("").set_axis(pd.RangeIndex(1, len(rows) + 1, name="row"))
    check_table(rows, schema, path)
    return rows
