"""Whose official file is this, and what does it hold: JSON and parquet files of known data sets."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from factrobust.tables import FactsError, decoded

HEAD = 2**16  # bytes in which a file shows what it is
PARQUET = b"PAR1"
# What is downloaded in place of a file, by how it begins.
STAND_INS = {
    b"\x1f\x8b": ("is packed by gzip", "unpack it"),
    b"PK\x03\x04": ("is a zip archive", "unpack it"),
    b"version https://git-lfs": ("is a pointer of Git LFS, not the file", "fetch the file itself"),
    b"<": ("is a web page", "download the file itself"),
}
# How the official files of a data set begin.
FORMATS = {
    "SQuAD": r'\s*\{.*"paragraphs"\s*:',
    "TriviaQA": r'\s*\{\s*"Data"\s*:',
    "HotpotQA": r'\s*\[\s*\{.*"(_id|supporting_facts)"\s*:',
    "PopQA": r"[^\n{\[]*\bs_pop\b",
    "PopQA-TP": r"[^\n{\[]*\btemplate_id\b",
    "TempLAMA": r'\s*\{[^\n]*"query"\s*:[^\n]*_X_',
    "TimeStress": r"[^\n]*\bSubjectLabel\b",
    "TREC": r"(ABBR|ENTY|DESC|HUM|LOC|NUM):\w+ ",
}
# What a cut may leave of true, false, null, a number or an escape, or nothing at all.
HALF_A_WORD = re.compile(r"(tr?u?|fa?l?s?|nu?l?|-|\.|e[+-]?|\\?u[\da-f]{0,3})?", re.IGNORECASE)
KINDS: dict[type, str] = {str: "text", list: "list", dict: "object"}


def check_format(path: Path, name: str) -> None:
    """Refuse a file that shows at its beginning that it is no file of the data set `name`.

    Raises FactsError for a file that cannot be opened or is empty, for an archive, a web page or a
    pointer, and for the official files of another data set.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise FactsError(
            f"{path} cannot be read ({error.strerror or error}); check the path of the file."
        ) from error
    if not head.strip():
        raise FactsError(f"{path} is empty; fetch {name} anew.")
    for begin, (what, remedy) in STAND_INS.items():
        if head.lstrip().startswith(begin):
            raise FactsError(f"{path} {what}; {remedy}.")
    text = "" if head.startswith(PARQUET) else head.decode("utf-8-sig", errors="replace")
    alike = [known for known, begin in FORMATS.items() if re.match(begin, text, re.DOTALL)]
    if alike and name not in alike:
        raise FactsError(
            f"{path} looks like {alike[0]}, not {name}; load it as {alike[0]}, or give a file of "
            f"{name}."
        )


def is_parquet(path: Path) -> bool:
    """Whether a file begins as a parquet file does."""
    try:
        with path.open("rb") as file:
            return file.read(len(PARQUET)) == PARQUET
    except OSError:  # `check_format` says what is wrong
        return False


def read_json(path: Path, name: str) -> Any:
    """What the data set's JSON file holds. Raises FactsError, which says where the file breaks."""
    check_format(path, name)
    data = path.read_bytes()
    # JSON ends in ASCII: other bytes there are the half of a letter that a cut went through.
    text = decoded(
        data.rstrip(bytes(range(128, 256))),
        path,
        f"fetch {name} anew, or convert the file with iconv",
    )
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FactsError(
            f"{path}{_broken(text, error, len(data))}; fetch the official file of {name} anew."
        ) from error


def _broken(text: str, error: json.JSONDecodeError, size: int) -> str:
    """Where and how a JSON text breaks, in lines, columns (letters) and bytes, all from 1."""
    if error.msg == "Extra data":
        return (
            f", line {error.lineno}: more follows the end of the JSON, as in a file of JSON lines"
        )
    if error.msg.startswith("Unterminated") or HALF_A_WORD.fullmatch(text[error.pos :].strip()):
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n") - 1
        return (
            f" is cut short: it ends inside the JSON, at line {line}, column {column} (byte {size})"
        )
    place = f"line {error.lineno}, column {error.colno}"
    byte = len(text[: error.pos].encode()) + 1
    return f", {place} (byte {byte}): the JSON is broken ({error.msg})"


def read_records(path: Path, name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a parquet file. Raises FactsError for one that cannot be read or has no rows."""
    import pyarrow.parquet as pq

    check_format(path, name)
    try:
        with pq.ParquetFile(path) as file:
            check_columns(path, file.schema_arrow.names, columns)
            rows: list[dict[str, Any]] = file.read(columns=list(columns)).to_pylist()
    except FactsError:
        raise
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split()).split(". ")[0]
        raise FactsError(
            f"{path} cannot be read as parquet ({said}); fetch {name} anew."
        ) from error
    if not rows:
        raise FactsError(f"{path} has no rows; fetch {name} anew.")
    return rows


def check_columns(path: Path, found: Sequence[str], columns: Sequence[str]) -> None:
    """Raise FactsError for the first of the columns that a table lacks."""
    for name in columns:
        if name not in found:
            has = shorten(", ".join(found) or "none", 200, placeholder=" ...")
            raise FactsError(f"{path}: the column {name!r} is missing; it has {has}.")


def field(record: Any, key: str, kind: type, where: str) -> Any:
    """record[key], of that type. Raises FactsError with the place of a record that has none."""
    if isinstance(record, dict) and isinstance(record.get(key), kind):
        return record[key]
    is_there = isinstance(record, dict) and record.get(key) is not None
    what = f"{key!r} is no {KINDS[kind]}" if is_there else f"there is no {key!r}"
    hint = " (test questions are published without)" if key in ("answer", "Answer") else ""
    raise FactsError(f"{where}: {what}{hint}; fetch the file anew, or give another.")


def texts(record: Any, key: str, where: str) -> list[str]:
    """record[key], a list of texts. Raises FactsError as `field` does."""
    values: list[str] = field(record, key, list, where)
    if not all(isinstance(value, str) for value in values):
        raise FactsError(f"{where}: {key!r} is no list of texts; fetch the file anew.")
    return values
