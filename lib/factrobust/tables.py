"""Read a CSV that a person may have typed, and say what is wrong with it in one sentence."""

import ast
import csv
import difflib
import io
import json
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
# White space, and signs that nobody sees, which some programs leave around a text.
BLANK = (
    " \t\n\r\f\v\xa0\u200b\u200c\u200d\u200e\u200f\u2060\u202a\u202b\u202c\u202d\u202e\u00ad\ufeff"
)
# A cell that is a list: whole in brackets, or one that begins with a bracket and a quote.
IS_LIST = re.compile(r"\[.*\]$|\{.*\}$|\(\s*[\"'].*\)$|[\[{]\s*[\"']", re.DOTALL)
LIST_IN_TEXT = re.compile(r'"\s*[\[{].*[\]}]\s*"', re.DOTALL)  # "[\"a\"]", encoded twice
NOTHING = ("", "null", "none", "nan", "<na>", "nat", "n/a", "#n/a")  # no name
# What NumPy and Python print around a list.
WRAPPED = re.compile(
    r"(?:array|set|frozenset|list|tuple)\((.*?)(?:,\s*dtype=[\w.'<>]+)?\)",
    re.DOTALL,
)
# What a spreadsheet or a program writes in the place of a value: no answer.
NO_VALUE = re.compile(
    r"#(?:N/A|REF!|VALUE!|NAME\?|DIV/0!|NUM!|NULL!)|nan|NaN|NULL|null|NaT|<NA>|"
    r"[+-]?\d(?:\.\d+)?E[+]\d+"
)
# UTF-8 that was read as Windows' or Latin letters: a capital that begins a letter of two bytes, and
# a sign that stands behind no capital in any language ("Ã©", "Å¡"); the quotes and dashes that also
# end words only before a letter ("Ã–sterreich"); "â€™". Then as a Mac's letters ("√©", "‚Äô"), as
# DOS's ("├®") and as Cyrillic ones ("РњРѕСЃ"); letters as a page names them ("&eacute;"); U+FFFD
# and control characters.
_SIGNS = "\x80-\x9f¡-ª¬-º¼-¿€‚ƒ„†‡ˆ‰Š‹ŒŽ˜™š›œžŸ"
_CYRILLIC = "[РС][ЂЃђЅ°±Ііґµ¶·ё№є»јЅѕїѓЉљЊњЌќЋћЏџЎўЈ]"
DAMAGED = re.compile(
    rf"[ÂÃÄÅÎÏÐÑ][{_SIGNS}]|Ã[\xa0«»](?=\w)|[ÂÃ][–—‘’“”…•](?=\w)|(?<=[a-zà-ÿ])[ÂÃ](?=\W|$)|Å‘|á[º»][{_SIGNS}“”]|â€|ï»¿|"
    rf"[├┬]\S|‚Ä[ôòúùìî¶¢]|(?<=[a-zA-Z])√[^\s\dπ]|√[^\s\w(π](?=[a-zA-Z])|(?:{_CYRILLIC}){{3}}|"
    r"&(?:[a-zA-Z]{2,8}|#\d+);|\ufffd|[\x01-\x08\x0e-\x1f\x7f]"
)


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
    path: str | Path,
    *,
    required: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> pd.DataFrame:
    """Read a CSV or a TSV into a DataFrame of stripped strings, indexed by the line in the file.

    Cells are separated by commas, or by semicolons as some spreadsheets write them; in a .tsv by
    tabs. A header in other letters ("Question", "Fact ID") is read as the column that is meant.
    Empty lines are skipped; further columns are kept as notes. Raises FactsError for a bad file.
    """
    path = Path(path)
    text, skipped = _without_mark(read_text(path))
    if not text.strip(BLANK + ",;"):
        columns = ",".join(required) or "the names of its columns"
        raise FactsError(f"{path} is empty; write a header ({columns}) and a row below it.")
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=_separator(path, text, required),
        strict=True,
    )
    rows = {}
    try:
        first = next(row for row in reader if any(cell.strip(BLANK) for cell in row))
        header = _meant(_named(first), [*required, *optional])
        _check_header(path, header, required, optional)
        end = reader.line_num
        for row in reader:
            line, end = end + 1, reader.line_num  # a quoted cell may span lines
            if not any(cell.strip(BLANK) for cell in row):
                continue
            cells = [cell.strip(BLANK) for cell in row]
            if len(cells) <= len(first) and not any(cells[len(header) :]):
                cells = cells[: len(header)]
            if len(cells) != len(header):
                raise FactsError(
                    f"{path}, line {line + skipped}: the row has {len(cells)} cells and the header "
                    f"{len(header)}; put a cell that contains a {_name(reader)} in double quotes."
                )
            rows[line + skipped] = cells
    except csv.Error as error:
        raise FactsError(
            f"{path}, line {reader.line_num + skipped}: not a CSV row ({error}); close the double "
            "quotes."
        ) from error
    if not rows:
        raise FactsError(f"{path} has a header but no rows; add at least one row below it.")
    lines = pd.Index(rows, name="line")
    return pd.DataFrame(
        [*rows.values()],
        columns=header,
        index=lines,
        dtype=str,
    )


def _named(header: Sequence[str]) -> list[str]:
    """The header without the empty names that a spreadsheet writes behind its last column."""
    names = list(header)
    while not names[-1].strip(BLANK):
        names.pop()
    return names


def _without_mark(text: str) -> tuple[str, int]:
    """The text without a first line such as "sep=;", which is for Excel, and how many lines that
    was."""
    mark = re.match(r"sep=.\r?\n", text)
    return (text[mark.end() :], 1) if mark else (text, 0)


def _separator(path: Path, text: str, required: Sequence[str]) -> str:
    """What stands between cells: that by which the first line holds most of the required columns, a
    comma in doubt."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    first = (text.strip().splitlines() or [""])[0]  # a sign may be blank to Python alone

    def found(separator: str) -> tuple[int, int]:
        names = [name.strip(BLANK + '"') for name in first.split(separator)]
        return len({*_meant(names, required)} & {*required}), len(names)

    return max(",;\t", key=found)  # the first of equals


def _name(reader: Any) -> str:
    return {",": "comma", ";": "semicolon", "\t": "tab"}[reader.dialect.delimiter]


def _meant(header: Sequence[str], known: Sequence[str]) -> list[str]:
    """The header's names, and those of `known` that are written in another way ("Fact ID") as
    known."""
    names = [name.strip(BLANK) for name in header]
    plain = [re.sub(r"[\s-]+", "_", name.casefold()) for name in names]
    return [
        other if other in known and other not in names else name
        for name, other in zip(names, plain, strict=True)
    ]


def csv_schema(required: Iterable[str], **checks: Any) -> pa.DataFrameSchema:
    """The schema of a CSV of texts. `checks` gives each column a check, a list of checks, or
    None."""
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
    frame: pd.DataFrame,
    schema: pa.DataFrameSchema,
    **defaults: str | pd.Series,
) -> pd.DataFrame:
    """Add the columns of the schema that the table lacks, with their default or ""; notes come
    last."""
    notes = [column for column in frame if column not in schema.columns]
    missing = {name: defaults.get(name, "") for name in schema.columns if name not in frame}
    return frame.assign(**missing)[[*schema.columns, *notes]]


def read_text(path: Path) -> str:
    """The text of a file, without a byte-order mark. Raises FactsError if it is not UTF-8."""
    try:
        # -sig: spreadsheets write a byte-order mark before the header
        text = noted(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise FactsError(
            f"{path}, line {line}: the text is not UTF-8; save the file as 'CSV UTF-8' in the "
            "spreadsheet, or convert it with iconv."
        ) from error
    before, nul, _ = text.partition("\0")
    if nul:
        line = before.count("\n") + 1
        raise FactsError(
            f"{path}, line {line}: there is a NUL character, as in a file that was damaged or is "
            "UTF-16; save it anew as 'CSV UTF-8', or delete the character."
        )
    return text


def _check_header(
    path: Path,
    header: list[str],
    required: Sequence[str],
    optional: Sequence[str],
) -> None:
    """Raise FactsError for a column that is missing, twice there, or written wrongly."""
    extra = [name for name in header if name not in required and name not in optional]
    for name in dict.fromkeys([*header, *required, *optional]):
        alike = [other for other in header if _meant([other], [name]) == [name]]
        if header.count(name) > 1:
            fault = f"the column {name!r} occurs twice; rename or remove one"
        elif len(alike) > 1 and name not in extra:
            fault = f"the columns {' and '.join(alike)} have one name; rename or remove one"
        elif name in header:
            continue
        elif near := difflib.get_close_matches(name, extra, n=1, cutoff=0.75):
            fault = (
                f"the column {name!r} is missing; rename {near[0]!r} to {name!r} if that is meant, "
                "or else give that column of notes a name less alike"
            )
        elif name in required:
            fault = (
                f"the column {name!r} is missing; add it to the header, or rename the column that "
                f"holds it (there are {', '.join(header)})"
            )
        else:
            continue
        raise FactsError(f"{path}, line 1: {fault}.")


def check_table(
    frame: pd.DataFrame,
    schema: pa.DataFrameSchema,
    path: str | Path,
) -> None:
    """Validate string columns against a pandera schema; raise FactsError for the first bad line.
    The `error` of a check is the end of the sentence, after the cell: "is no number; write ..."."""
    try:
        schema.validate(frame, lazy=True)
    except pa.errors.SchemaErrors as errors:
        first = errors.failure_cases.sort_values("index", kind="stable").iloc[0]
        cell = repr(first["failure_case"]) if first["failure_case"] else "cell"
        raise FactsError(
            f"{path}, {frame.index.name} {first['index']}: the {first['column']} {cell} "
            f"{first['check']}."
        ) from errors


def refuse(frame: pd.DataFrame, wrong: ArrayLike, path: str | Path, fault: str) -> None:
    """Raise FactsError for the first row where `wrong` [row] is true, if any. `fault` says why;
    names of columns in braces stand for the row's cells."""
    for line in frame.index[np.asarray(wrong)][:1]:
        what = fault.format(**frame.loc[line])
        raise FactsError(f"{path}, {frame.index.name} {line}: {what}.")


def check_unique(frame: pd.DataFrame, columns: list[str], path: str | Path) -> None:
    """Raise FactsError if two lines are equal in all these columns. Upper and lower case are equal,
    composed and decomposed letters, and one space and several."""
    keys = [frame[name].map(_plain) for name in columns]
    first = frame.index.to_series().groupby(keys).transform("first")
    what = ", ".join(f"{name} {{{name}!r}}" for name in columns)
    refuse(
        frame.assign(first=first), first != frame.index, path,
        f"{what} is already in {frame.index.name} {{first}}; delete one of the two, or write "
        "further accepted answers as aliases",
    )  # fmt: skip


def _plain(cell: str) -> str:
    """A cell as it is compared with others."""
    composed = unicodedata.normalize("NFC", cell)
    return " ".join(composed.casefold().split())


def filled(remedy: str) -> pa.Check:
    return pa.Check(lambda cells: cells.str.strip() != "", error=f"is empty; {remedy}")


def one_value() -> pa.Check:
    """Check that a cell is neither a list nor what stands where a value is missing or was cut."""
    return pa.Check(
        lambda cells: cells.map(lambda cell: not (NO_VALUE.fullmatch(cell) or _is_several(cell))),
        error="is no single answer; write it out, and further ones as aliases",
    )


def _is_several(cell: str) -> bool:
    """Whether a cell is a list, or names joined as aliases are."""
    is_joined = "|" in cell.strip("|")
    return is_joined or (re.match(r"[\[{(]\s*[\"']", cell) is not None and cell[-1] in "])}")


def list_of_texts() -> pa.Check:
    """Check that a cell with several texts can be read (`names_in`)."""
    return pa.Check(
        lambda cells: cells.map(is_list),
        error='looks like a list and is none; join the names with |, or write ["a", "b"]',
    )


def legible() -> pa.Check:
    """Check that a cell was not damaged on its way: no text that was read in another encoding than
    it was written in ("NaÃ¯ve"), no sign of a lost letter, no control characters."""
    return pa.Check(
        lambda cells: ~cells.str.contains(DAMAGED),
        error="holds damaged letters (saved or opened in another encoding); type it anew, and save "
        "the file as 'CSV UTF-8'",
    )


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
    """The tables below each other. A last `column` holds the key of the table that a row is
    from."""
    return pd.concat(
        [t.assign(**{column: k}) for k, t in tables.items()],
        ignore_index=True,
    )


def melted(
    table: pd.DataFrame,
    by: Sequence[str],
    values: Sequence[str],
) -> pd.DataFrame:
    """Stack the columns `values` into one of numbers, "value", beside the columns `by`. The one
    name of `by` that the table lacks says which of `values` a number is from. Missing numbers are
    left out."""
    [name] = {*by} - {*table}
    long = table.melt([column for column in by if column != name], list(values), name)
    return long.dropna(subset="value").astype({"value": float})


def names_in(cell: str) -> list[str]:
    """The texts of a cell that may hold several: a line each, joined with | or ;, or a list as
    JSON (also as a text in JSON), Python, NumPy or PostgreSQL write it. ValueError for a list that
    cannot be read."""
    cell = cell.strip(BLANK)
    if LIST_IN_TEXT.fullmatch(cell):
        cell = str(json.loads(cell))
    if cell.casefold() in NOTHING:
        return []
    if found := WRAPPED.fullmatch(cell):
        cell = found[1].strip() or "[]"
    if IS_LIST.match(cell):
        parts = [str(part).strip(BLANK) for part in _listed(cell) if part is not None]
        return [whole_number(part) for part in parts if part.casefold() not in NOTHING]
    separator = next((sign for sign in "|\n" if sign in cell), ";")
    texts = (text.strip(BLANK) for text in cell.split(separator))
    return [text for text in texts if text]


def _listed(cell: str) -> list[Any]:
    """What a cell holds that is a list."""
    try:
        found = json.loads(cell)
    except json.JSONDecodeError:
        inside = cell[1:-1].strip()
        plain = cell[0] == "{" and "'" not in cell  # PostgreSQL's
        if plain or not re.search("[\"']", cell):
            return next(csv.reader([inside], skipinitialspace=True), [])
        spaced = re.sub(
            r"(?<=[\"'])\s+(?=[\"'])",
            ", ",
            inside,
        )  # NumPy's has no commas
        found = ast.literal_eval(f"[{spaced}]") if cell[-1] in "]})" else None
    if not isinstance(found, list) or any(isinstance(part, list | dict | tuple) for part in found):
        raise ValueError("no list of texts")
    return found


def whole_number(text: str) -> str:
    """The text; that of a whole number which a program has made a decimal one ("1969.0") without
    its zeros."""
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", text)


def is_list(cell: str) -> bool:
    """Whether `names_in` can read the cell."""
    try:
        names_in(cell)
    except (ValueError, SyntaxError, TypeError):
        return False
    return True


def accepted_names(
    answers: pd.Series,
    aliases: pd.Series,
) -> tuple[list[str], list[list[str]]]:
    """The answer of each row, and its aliases (`names_in` each cell). Of a whole number that was
    made a decimal one the whole one is the answer, and what was typed an alias."""
    names, others = [], []
    for typed, cell in zip(answers, aliases, strict=True):
        name = whole_number(typed)
        names.append(name)
        others.append([other for other in dict.fromkeys([typed, *names_in(cell)]) if other != name])
    return names, others


def alias_lists(aliases: pd.Series, objects: pd.Series) -> list[list[str]]:
    """The list of aliases of each row (`names_in` a cell), without the object itself."""
    pairs = zip(aliases.map(names_in), objects, strict=True)
    return [[alias for alias in texts if alias != name] for texts, name in pairs]


def slug(text: str) -> str:
    """Lower-case words with hyphens between them, without accents and "the"; C++ is c-plus-plus."""
    text = text.removeprefix("the ").replace("+", " plus ").replace("#", " sharp ")
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return re.sub(r"[^\w]+", "-", plain.casefold()).strip("-_")
