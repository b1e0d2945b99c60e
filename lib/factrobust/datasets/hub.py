"""Files that others published: from the hub, its cache or a path, and what they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import pandas as pd

from factrobust.tables import FactsError, check_table, csv_schema, read_checked

SUFFIXES = (".parquet", ".json", ".jsonl", ".csv", ".tsv", ".label")


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
    # rglob, as the hub's client lets * stand for folders too
    files = [path for path in sorted(folder.rglob(pattern)) if path.is_file()]
    parts = [int(n) for file in files for n in re.findall(r"-of-(\d+)", file.name)]
    if len(files) < max(parts, default=1):
        raise ConnectionError(
            f"Neither the hub nor its cache has all of {pattern} of {repo} at {revision}: {remedy}"
        )
    return files, folder.name


def _said(error: Exception) -> str:
    """The first sentence of an error, on one line."""
    return shorten(f"{type(error).__name__}: {error}".split(". ")[0], 120)


@contextmanager
def reading(path: object, name: str) -> Iterator[None]:
    """Raises FactsError, which names the file, for what is not as in the files of the set `name`."""
    try:
        yield
    except (FactsError, ConnectionError):
        raise
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise FactsError(
            f"{path} cannot be read as {name} ({_said(error)}); give the set's own file, with "
            "answers, unpacked, or fetch it anew."
        ) from error


def read_json(path: Path) -> Any:
    """What a JSON file holds, or a list of the rows of a parquet file."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_dict("records")
    return json.loads(path.read_text(encoding="utf-8-sig"))


def read_rows(path: Path, checks: Mapping[str, Any]) -> pd.DataFrame:
    """The columns of a CSV, TSV or parquet file that have a check, as texts, by line or row."""
    schema = csv_schema(checks, **checks)
    if path.suffix != ".parquet":
        delimiter = "\t" if path.suffix == ".tsv" else ","
        return read_checked(path, schema, delimiter=delimiter)[[*checks]]
    rows = pd.read_parquet(path, columns=[*checks]).astype("str").fillna("")
    rows.index = pd.RangeIndex(1, len(rows) + 1, name="row")
    check_table(rows, schema, path)
    return rows
