"""Read a CSV that a person may have typed, and say what is wrong with it in one sentence."""

import csv
import difflib
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa
from numpy.typing import ArrayLike

from factrobust.paths import noted

ANSWER_TYPES = ("Numerical", "Location", "Human", "Entity")


class Loaded(NamedTuple):
    """A data set, with what a reader should know about it."""

    table: pd.DataFrame
    counts: dict[str, Any]  # of rows that were left out or have a fault, by reason
    dates: pd.DataFrame = pd.DataFrame()  # the dates to ask temporal facts with


class FactsError(ValueError):
    """A table of facts or relations cannot be used: one sentence with file, line and remedy."""


class TooFewError(ValueError):
    """Too few cases are left for what a notebook shows, as under a profile that asks little."""


def read_csv(path: str | Path, **options: Any) -> pd.DataFrame:
    """pandas.read_csv of a file of this repository, which what is saved then names as an input."""
    table: pd.DataFrame = pd.read_csv(noted(path), **options)
    return table


def read_table(
    path: str | Path, *, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> pd.DataFrame:
    """Read a CSV or a TSV into a DataFrame of stripped strings, indexed by the line in the file.
    Raises FactsError for a bad file. Empty lines are skipped; further columns are kept as notes."""
    path = Path(path)
    comma = "\t" if path.suffix == ".tsv" else ","
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=comma, strict=True)
    rows = {}
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header, required, optional)
        end = reader.line_num
        for row in reader:
            line, end = end + 1, reader.line_num  # a quoted cell may span lines
            if row and len(row) != len(header):
                raise FactsError(
                    f"{path}, line {line}: the row has {len(row)} cells and the header "
                    f"{len(header)}; put a cell that contains a comma in double quotes."
                )
            if row:
                rows[line] = [cell.strip() for cell in row]
    except csv.Error as error:
        raise FactsError(
            f"{path}, line {reader.line_num}: not a CSV row ({error}); close the double quotes."
        ) from error
    if not rows:
        raise FactsError(f"{path} has a header but no rows; add at least one row below it.")
    lines = pd.Index(rows, name="line")
    return pd.DataFrame([*rows.values()], columns=header, index=lines, dtype=str)


def csv_schema(required: Iterable[str], **checks: Any) -> pa.DataFrameSchema:
    """The schema of a CSV of texts. `checks` gives each column a check, a list of checks, or None."""
    needed = {*required}
    columns = {n: pa.Column(str, check, required=n in needed) for n, check in checks.items()}
    return pa.DataFrameSchema(columns)


def read_checked(path: str | Path, schema: pa.DataFrameSchema) -> pd.DataFrame:
    """Read a CSV (`read_table`) and check it against its schema (`check_table`)."""
    optional = [name for name, column in schema.columns.items() if not column.required]
    required = [name for name in schema.columns if name not in optional]
    frame = read_table(path, required=required, optional=optional)
    check_table(frame, schema, path)
    return frame


def complete_table(
    frame: pd.DataFrame, schema: pa.DataFrameSchema, **defaults: str | pd.Series
) -> pd.DataFrame:
    """Add the columns of the schema that the table lacks, with their default or ""; notes come last."""
    notes = [column for column in frame if column not in schema.columns]
    missing = {name: defaults.get(name, "") for name in schema.columns if name not in frame}
    return frame.assign(**missing)[[*schema.columns, *notes]]


def read_text(path: Path) -> str:
    """The text of a file, without a byte-order mark. Raises FactsError if it is not UTF-8."""
    try:
        # -sig: spreadsheets write a byte-order mark before the header
        return noted(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise FactsError(
            f"{path}, line {line}: the text is not UTF-8; save the file as 'CSV UTF-8' in the "
            "spreadsheet, or convert it with iconv."
        ) from error


def _check_header(
    path: Path, header: list[str], required: Sequence[str], optional: Sequence[str]
) -> None:
    extra = [name for name in header if name not in required and name not in optional]
    for name in dict.fromkeys([*header, *required, *optional]):
        if header.count(name) > 1:
            fault = f"the column {name!r} occurs twice; rename or remove one"
        elif name in header:
            continue
        elif near := difflib.get_close_matches(name, extra, n=1, cutoff=0.75):
            fault = f"the column {name!r} is missing; rename {near[0]!r}, or call a note otherwise"
        elif name in required:
            fault = f"the column {name!r} is missing; add it to the header ({', '.join(header)})"
        else:
            continue
        raise FactsError(f"{path}, line 1: {fault}.")


def check_table(frame: pd.DataFrame, schema: pa.DataFrameSchema, path: str | Path) -> None:
    """Validate string columns against a pandera schema; raise FactsError for the first bad line.
    The `error` of a check is the end of the sentence, after the cell: "is no number; write ..."."""
    try:
        schema.validate(frame, lazy=True)
    except pa.errors.SchemaErrors as errors:
        first = errors.failure_cases.sort_values("index", kind="stable").iloc[0]
        cell = repr(first["failure_case"]) if first["failure_case"] else "cell"
        raise FactsError(
            f"{path}, {frame.index.name} {first['index']}: the {first['column']} {cell} {first['check']}."
        ) from errors


def refuse(frame: pd.DataFrame, wrong: ArrayLike, path: str | Path, fault: str) -> None:
    """Raise FactsError for the first row where `wrong` [row] is true, if any. `fault` says why; names
    of columns in braces stand for the row's cells."""
    for line in frame.index[np.asarray(wrong)][:1]:
        what = fault.format(**frame.loc[line])
        raise FactsError(f"{path}, {frame.index.name} {line}: {what}.")


def check_unique(frame: pd.DataFrame, columns: list[str], path: str | Path) -> None:
    """Raise FactsError if two lines are equal in all these columns; upper and lower case are equal."""
    keys = [frame[name].str.casefold() for name in columns]
    first = frame.index.to_series().groupby(keys).transform("first")
    what = ", ".join(f"{name} {{{name}!r}}" for name in columns)
    refuse(
        frame.assign(first=first), first != frame.index, path,
        f"{what} is already in {frame.index.name} {{first}}; delete one of the two, or write further "
        "accepted answers as aliases",
    )  # fmt: skip


def filled(remedy: str) -> pa.Check:
    return pa.Check(lambda cells: cells.str.strip() != "", error=f"is empty; {remedy}")


def one_of(known: Iterable[str], remedy: str = "choose one of") -> pa.Check:
    words = sorted(known)
    return pa.Check.isin(words, error=f"is unknown; {remedy} {', '.join(words)}")


def number(remedy: str) -> pa.Check:
    """Check that a cell is empty or a finite number of 0 or more."""

    def is_number(cells: pd.Series) -> pd.Series:
        values = pd.to_numeric(cells, errors="coerce")
        return (np.isfinite(values) & (values >= 0)) | (cells == "")

    return pa.Check(is_number, error=f"is not a number of 0 or more; {remedy}")


def stacked(tables: Mapping[Any, pd.DataFrame], column: str) -> pd.DataFrame:
    """The tables below each other. A last `column` holds the key of the table that a row is from."""
    return pd.concat([t.assign(**{column: k}) for k, t in tables.items()], ignore_index=True)


def melted(table: pd.DataFrame, by: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """Stack the columns `values` into one of numbers, "value", beside the columns `by`. The one name of
    `by` that the table lacks says which of `values` a number is from. Missing numbers are left out."""
    [name] = {*by} - {*table}
    long = table.melt([column for column in by if column != name], list(values), name)
    return long.dropna(subset="value").astype({"value": float})


def alias_lists(aliases: pd.Series, objects: pd.Series) -> list[list[str]]:
    """The list of aliases of each row, without the object itself. A cell joins them with |."""
    pairs = zip(aliases.str.split("|"), objects, strict=True)
    return [[a for cell in cells if (a := cell.strip()) and a != name] for cells, name in pairs]


def slug(text: str) -> str:
    """Lower-case words with hyphens between them, without accents and "the"; C++ is c-plus-plus."""
    text = text.removeprefix("the ").replace("+", " plus ").replace("#", " sharp ")
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return re.sub(r"[^\w]+", "-", plain.casefold()).strip("-_")
