"""Files that others published: fetch them from the hub, read their rows, mend their letters."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from factrobust.datasets.tables import FactsError

SUFFIXES = (".tsv", ".csv", ".parquet")
# A wrong encoding that UTF-8 was once read in, and what it makes of the first bytes of the letters
# that are common in names: é becomes Ã© or √©, – becomes â€“ or ‚Äì.
GARBLED = {"cp1252": "ÂÃÄÅÈáâ", "latin-1": "ÂÃÄÅÈáâ", "mac_roman": "¬√ƒ≈∆»·‚"}


def fetch(repo: str, revision: str, pattern: str) -> Path:
    """The folder with the files of a data set on the hub whose names match the pattern.

    Raises ConnectionError when they cannot be fetched.
    """
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(
            repo, repo_type="dataset", revision=revision, allow_patterns=pattern
        )
    except Exception as error:  # the hub's client raises a dozen unrelated types
        raise ConnectionError(
            f"Could not fetch {repo} at {revision} from the hub ({type(error).__name__}): download "
            f"its {pattern} and pass its path instead."
        ) from error
    return Path(folder)


def read_rows(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The given columns of a table as texts, indexed by where a row stands ("line 2", "row 1").

    `path` is a file with commas or tabs (the header tells which), a parquet file, or a folder that
    holds one of them. Raises FactsError for a file that cannot be read, lacks a column, has no rows,
    or holds a row with more or fewer cells than the header.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        if len(files) != 1:
            raise FactsError(
                f"{path} holds {len(files)} tables ({', '.join(SUFFIXES)}); give the path of one."
            )
        path = files[0]
    try:
        frame = _parquet(path, columns) if path.suffix == ".parquet" else _lines(path, columns)
    except FactsError:
        raise
    except (OSError, ValueError) as error:
        raise FactsError(
            f"{path} cannot be read ({error}); check the path and that it is a table in UTF-8 or a "
            "parquet file."
        ) from error
    if frame.empty:
        raise FactsError(f"{path} has no rows; fetch it anew.")
    return frame


def _lines(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    rows, where, end = [], [], 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        delimiter = "\t" if "\t" in file.readline() else ","
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = next(reader, [])
            _check_columns(path, header, columns)
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


def _parquet(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    frame = pd.read_parquet(path)
    _check_columns(path, list(frame.columns), columns)
    frame = frame[list(columns)].astype("str").fillna("")
    return frame.set_axis([f"row {number}" for number in range(1, len(frame) + 1)])


def _check_columns(path: Path, found: Sequence[str], columns: Sequence[str]) -> None:
    for name in columns:
        if name not in found:
            raise FactsError(
                f"{path}: the column {name!r} is missing; it has {', '.join(found) or 'none'}."
            )


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
