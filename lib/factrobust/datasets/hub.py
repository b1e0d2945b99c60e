"""Files that others published: fetch them from the hub, read their rows, mend their letters."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from factrobust.datasets.formats import check_columns, check_format, is_parquet, read_records
from factrobust.tables import FactsError, decoded

SUFFIXES = (".tsv", ".csv", ".parquet")
# A wrong encoding that UTF-8 was once read in, and what it makes of the first bytes of the letters
# that are common in names: é becomes Ã© or √©, – becomes â€“ or ‚Äì.
GARBLED = {"cp1252": "ÂÃÄÅÈáâ", "latin-1": "ÂÃÄÅÈáâ", "mac_roman": "¬√ƒ≈∆»·‚"}


def fetch(repo: str, revision: str, pattern: str) -> tuple[list[Path], str]:
    """The files of a data set on the hub whose paths match the pattern, and the commit they are of.

    A commit, or the first seven or more of its digits, that the hub's cache holds is read without
    asking the hub. A branch or a tag may have moved, so the hub is asked, and the cache only where
    the hub cannot be reached. Raises ConnectionError when neither has the files.
    """
    from huggingface_hub import snapshot_download

    get = partial(snapshot_download, repo, repo_type="dataset", allow_patterns=pattern)
    if re.fullmatch("[0-9a-f]{7,40}", revision):
        for commit in _cached(repo, revision):
            if files := _whole(Path(get(revision=commit, local_files_only=True)), pattern):
                return files, commit
    try:
        folder = Path(get(revision=revision))
    except Exception as error:  # the hub's client raises a dozen unrelated types
        raise ConnectionError(_not_fetched(repo, revision, pattern, error)) from error
    if not (files := _whole(folder, pattern)):
        raise ConnectionError(
            f"Neither the hub nor its cache has all of {pattern} of {repo} at {revision}: go online "
            "once, or download it and pass its path instead."
        )
    return files, folder.name


def _cached(repo: str, beginning: str = "") -> list[str]:
    """The commits in the hub's cache that begin so."""
    from huggingface_hub import constants

    place = Path(constants.HF_HUB_CACHE, f"datasets--{repo.replace('/', '--')}", "snapshots")
    return sorted(folder.name for folder in place.glob(f"{beginning}*"))


def _whole(folder: Path, pattern: str) -> list[Path]:
    """The files of a snapshot that match; none if one of their parts ("-of-00002") is missing."""
    inside = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*")}
    files = [inside[p] for p in sorted(inside) if fnmatchcase(p, pattern) and inside[p].is_file()]
    parts = [int(n) for file in files for n in re.findall(r"-of-(\d+)", file.name)]
    return files if len(files) >= max(parts, default=1) else []


def _not_fetched(repo: str, revision: str, pattern: str, error: Exception) -> str:
    from huggingface_hub import errors

    instead = f"download its {pattern} and pass its path instead."
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{repo} has no revision {revision!r} on the hub: give one that it has, or {instead}"
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"The hub does not show {repo} without a login: run `hf auth login`, or {instead}"
    held = ", ".join(_cached(repo))
    why = type(error.__cause__ or error).__name__
    return (
        f"Could not fetch {repo} at {revision} from the hub ({why}), and its cache holds "
        f"{f'only {held}' if held else 'nothing'} of it: go online once, or {instead}"
    )


def located(
    path: str | Path | None, repo: str, revision: str, pattern: str
) -> tuple[list[Path], str]:
    """The file at the path, or without a path those of the hub, and how their source is called."""
    if path is not None:
        return [Path(path)], f"{repo}, {Path(path).name}"
    files, commit = fetch(repo, revision, pattern)
    return files, f"{repo}@{commit}"


def read_rows(path: Path, columns: Sequence[str], name: str) -> pd.DataFrame:
    """The given columns of a table as texts, indexed by where a row stands ("line 2", "row 1").

    `path` is a file with commas or tabs (the header tells which), a parquet file, or a folder that
    holds one of them; `name` is the data set it should be of. Raises FactsError for a file of
    another, one that cannot be read, lacks a column or has no rows, and for a row with more or fewer
    cells than the header.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        if len(files) != 1:
            raise FactsError(
                f"{path} holds {len(files)} tables ({', '.join(SUFFIXES)}); give the path of one."
            )
        path = files[0]
    if is_parquet(path):
        frame = pd.DataFrame(read_records(path, name, columns)).astype("str").fillna("")
        return frame.set_axis([f"row {number}" for number in range(1, len(frame) + 1)])
    check_format(path, name)
    frame = _lines(path, columns)
    if frame.empty:
        raise FactsError(f"{path} has no rows; fetch it anew.")
    return frame


def _lines(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    rows, where = [], []
    text = decoded(path.read_bytes(), path, "fetch it anew, or convert it with iconv")
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    end = 0
    try:
        header = next(reader, [])
        check_columns(path, header, columns)
        places = [header.index(name) for name in columns]
        end = reader.line_num
        for cells in reader:
            start, end = end + 1, reader.line_num  # a quoted cell may span lines
            if cells and len(cells) != len(header):
                raise FactsError(
                    f"{path}, line {start}: the row has {len(cells)} cells and the header "
                    f"{len(header)}; fetch the file anew, or mend the row's quotes."
                )
            if cells:
                rows.append([cells[place] for place in places])
                where.append(f"line {start}")
    except csv.Error as error:
        raise FactsError(
            f"{path}, line {end + 1}: the row cannot be read ({error}); fetch the file anew, or "
            "mend the row's quotes."
        ) from error
    return pd.DataFrame(rows, columns=list(columns), index=where, dtype="str")


def read_lines(path: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object of a file of JSON lines, after where it stands ("facts.jsonl, line 3").

    Raises FactsError for a file of another data set than `name`, and with the place of a line that
    is no JSON object.
    """
    check_format(path, name)
    text = decoded(path.read_bytes(), path, "fetch it anew, or convert it with iconv")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise FactsError(
                    f"{where}, column {error.colno}: not JSON ({error.msg}); fetch the file anew, "
                    "or mend the line."
                ) from error
            if not isinstance(row, dict):
                raise FactsError(f"{where}: no JSON object; write {{...}} in each line.")
            yield where, row


def json_lists(cells: pd.Series, path: Path) -> Iterator[tuple[str, list[str]]]:
    """Each different cell and the list of texts that it holds as JSON.

    Raises FactsError with place and column for a cell that is cut short or no list of texts.
    """
    for where, cell in cells.drop_duplicates().items():
        try:
            texts = json.loads(cell)
        except json.JSONDecodeError:
            texts = None
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            shown = cell if len(cell) <= 40 else f"{cell[:20]}...{cell[-17:]}"
            raise FactsError(
                f"{path}, {where}: the {cells.name} {shown!r} is no whole JSON list of texts; fetch "
                "the file anew, or mend the cell."
            )
        yield cell, texts


def mended(text: str) -> tuple[str, bool]:
    """The text without mojibake, and whether it had any.

    UTF-8 that was read in another encoding is read rightly: "DetiÃ¨ge" and "Deti√®ge" become
    "Detiège". That needs the whole text to be such, and a typical letter or at least three wrong
    ones, since a few right texts would pass too ("L’État"). A text with U+FFFD, whose letters are
    lost, stays as it is and counts.
    """
    if text.isascii():
        return text, False
    for encoding, typical in GARBLED.items():
        try:
            whole = text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        if len(text) - len(whole) >= 3 or any(letter in text for letter in typical):
            return whole, True
    return text, "\ufffd" in text


def mended_texts(texts: pd.Series) -> tuple[pd.Series, int]:
    """The texts without mojibake, and how many had some."""
    pairs = [mended(text) for text in texts]
    whole = pd.Series([text for text, _ in pairs], index=texts.index, dtype="str")
    return whole, sum(garbled for _, garbled in pairs)
