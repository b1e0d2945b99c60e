"""Questions of one's own, for cards: a CSV with question and answer, as a person or a spreadsheet
writes it.

Further columns, if you like: aliases, relation, context (a sentence to put before the question),
start and end (when the answer began and ceased to hold; an empty end: it still holds)."""

import re
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust import tables
from factrobust.tables import FactsError
from factrobust.text import normalise

SOURCE = "own"  # in the column of that name
REQUIRED = ("question", "answer")


def _says_something() -> pa.Check:
    """Check that something is left of a cell where texts are compared."""
    return pa.Check(
        lambda cells: cells.map(lambda cell: cell == "" or normalise(cell) != ""),
        error="has no letter, digit or sign that an answer is compared by; write the right answer, "
        "or delete the line",
    )


SCHEMA = tables.csv_schema(
    REQUIRED,
    question=[
        tables.filled("write the question, or delete the line"),
        tables.legible(),
    ],
    answer=[
        tables.filled("write the right answer, or delete the line"),
        tables.one_value(),
        tables.legible(),
        _says_something(),
    ],
    relation=tables.filled("name what kind of fact it is, or drop the column"),
    aliases=[tables.list_of_texts(), tables.legible()],
    context=tables.legible(),
    start=None,
    end=None,
)
STILL = ("", "present", "now", "today", "ongoing", "current", "-", "–", "—", "...", "…")
EMPTY = (*STILL, *tables.NOTHING)
FOREVER = "2099"  # from then on an end is a database's way to say that something still holds
LAST = 2020  # the last year that part 2 samples
# Not calendar.month_name, which follows the locale.
MONTHS = "January February March April May June July August September October November December"
WRITE = "write YYYY, YYYY-MM or YYYY-MM-DD"
CLOCK = re.compile(r"[T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp]\.?[Mm]\.?)?(Z|[+-]\d{2}:?\d{2})?$")
YEAR_FIRST = re.compile(r"(\d{3,4})[-/. ](\d{1,2})(?:[-/. ](\d{1,2}))?")
NUMBERS = re.compile(r"(\d{1,2})([-/. ])(\d{1,2})[-/. ](\d{4})")  # the year has no two digits
MONTH_AND_YEAR = re.compile(r"(\d{1,2})[-/. ](\d{4})")
DAY_FIRST = re.compile(r"(?:(\d{1,2})\.?[- ])?([A-Za-z]+)\.?,?[- ](\d{4})")  # 17 May 1995, May 1995
MONTH_FIRST = re.compile(r"([A-Za-z]+)\.? (\d{1,2}),? (\d{4})")  # May 17, 1995
ASKING = [
    "who",
    "whose",
    "what",
    "which",
    "when",
    "where",
    "how",
    "in",
    "is",
    "was",
    "did",
    "to",
    "for",
]


def read_questions(path: str | Path) -> pd.DataFrame:
    """Questions of a CSV as they are asked: `schemas.AskedFacts` with start, end and context.

    A question that stands there with several times is asked in a year of each ("In 2001, who was
    the president of France?"), and `subject` keeps it without a year. Raises FactsError with the
    line for what cannot be asked."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise FactsError(f"{path} is no file; give the CSV with your questions.")
    table = tables.read_checked(path, SCHEMA)
    table = tables.complete_table(table, SCHEMA, relation="own")
    table["start"], table["end"] = read_periods(table, path)
    tables.check_unique(table, ["question", "start", "end"], path)
    table["object"], table["aliases"] = tables.accepted_names(table["answer"], table["aliases"])
    table["subject"] = table["question"]
    table["fact_id"] = _names(table)
    table["question"] = _asked(table)
    _check_asked(table, path)
    table = table.drop(columns="answer").assign(
        domain="own",
        prefix="",
        popularity=np.nan,
        answer_type="",
        popularity_source="",
        source=SOURCE,
    )
    return table.reset_index(drop=True)


def _names(table: pd.DataFrame) -> pd.Series:
    """The question, with its time where the fact has one."""
    end = table["end"].where(table["end"] != "", "now")
    period = " (" + table["start"] + " to " + end + ")"
    return table["question"] + period.where(table["start"] != "", "")


def _asked(table: pd.DataFrame) -> pd.Series:
    """The questions; one that occurs several times is asked in the year in the middle of its
    time."""
    several = table["question"].str.casefold().duplicated(keep=False) & (table["start"] != "")
    return table["question"].where(~several, at_year(table, middles(table)))


def _check_asked(table: pd.DataFrame, path: Path) -> None:
    """FactsError if two lines are asked the same question, of which each has another answer."""
    asked = table["question"].str.casefold()
    first = asked.index.to_series().groupby(asked).transform("first")
    tables.refuse(
        table.assign(first=first), first != table.index, path,
        "{question!r} would be asked here and for line {first}, since both held then; write the "
        "two answers in one line, or times that do not overlap",
    )  # fmt: skip


def middles(table: pd.DataFrame) -> pd.Series:
    """The year in the middle of each time, as a text; "" without one. What still holds is asked of
    up to the last year that part 2 samples."""
    years = []
    for start, end in zip(table["start"], table["end"], strict=True):
        first = int(start[:4] or 0)
        last = int(end[:4]) if end else max(first, LAST)
        years.append(str((first + last) // 2) if start else "")
    return pd.Series(years, index=table.index, dtype=object)


def at_year(table: pd.DataFrame, years: pd.Series) -> pd.Series:
    """The questions (`subject`) as they go on after "In 2001, "."""
    asked = "In " + years + ", " + table["subject"].map(continued)
    return asked.astype(object)


def continued(question: str) -> str:
    """A question as it goes on after other words: small, if it begins with a word that asks."""
    first = question.split(maxsplit=1)[0]
    asks = first.casefold().rstrip("?,:") in ASKING
    return question[:1].lower() + question[1:] if asks else question


# -- dates -----------------------------------------------------------------------------------------


def read_periods(table: pd.DataFrame, path: str | Path) -> tuple[pd.Series, pd.Series]:
    """The columns start and end as ISO dates, "" where there is none. FactsError with the line for
    what is no date, a start that is missing, and an end before its start."""
    written = pd.concat([table["start"], table["end"]])
    day_first = _day_comes_first(written, path)
    columns = []
    for name in ("start", "end"):
        cells = table[name].where(~table[name].str.casefold().isin(EMPTY), "")
        found = cells.map(lambda cell: iso_date(cell, day_first))
        tables.refuse(
            table, (found == "") & (cells != ""), path,
            f"the {name} {{{name}!r}} is no date of the calendar; {WRITE}",
        )  # fmt: skip
        columns.append(found)
    start, end = columns
    end = end.where(end < FOREVER, "")
    tables.refuse(
        table, (start == "") & (end != ""), path,
        "there is an end ({end}) and no start; write when it began, or leave both empty",
    )  # fmt: skip
    tables.refuse(
        table, [*map(is_early, start, end)], path,
        "the end ({end}) is before the start ({start}); swap the two, or mend the wrong one",
    )  # fmt: skip
    return start, end


def _day_comes_first(cells: pd.Series, path: str | Path) -> bool:
    """Whether dates such as 17/05/1995 begin with the day and not with the month, as those of the
    file itself show. FactsError if they show both, or nothing."""
    lines: dict[str, int] = {}  # of the first date of each kind
    for line, cell in zip(cells.index.tolist(), cells.tolist(), strict=True):
        found = re.match(r"(\d{1,2})[-/ ](\d{1,2})[-/ ]\d{4}\b", cell)
        if not found or found[1] == found[2]:
            continue
        one = int(found[1])
        two = int(found[2])
        kind = "day" if one > 12 else "month" if two > 12 else f"{cell!r}"
        lines.setdefault(kind, line)
    if "day" in lines and "month" in lines:
        raise FactsError(
            f"{path}: the date in line {lines['day']} begins with its day and that in line "
            f"{lines['month']} with its month; {WRITE}."
        )
    if "day" not in lines and "month" not in lines:
        for cell, line in lines.items():
            raise FactsError(
                f"{path}, line {line}: nothing tells whether {cell} begins with its day or with "
                f"its month; {WRITE}."
            )
    return "month" not in lines


def is_early(start: str, end: str) -> bool:
    """Whether an end is before its start; each as precise as it is. An empty end is none."""
    precision = min(len(start), len(end))
    return end[:precision] < start[:precision]


def iso_date(cell: str, day_first: bool) -> str:
    """A date as people and spreadsheets write it, as YYYY, YYYY-MM or YYYY-MM-DD; "" for what is
    none.

    Read are ISO dates, also without zeros or with a time of day, 17/05/1995 and 05/17/1995
    (`day_first` tells which), 17.05.1995, 05/1995, 17 May 1995, 17-May-1995, May 17, 1995, May
    1995, and 1995.0."""
    text = CLOCK.sub("", tables.whole_number(cell))
    widths = zip(_parts(text, day_first), (4, 2, 2), strict=False)
    numbers = [f"{number:0{width}d}" for number, width in widths]
    year, month, day = map(int, [*numbers, *["1", "1", "1"][len(numbers) :]])
    try:
        date(year, month, day)
    except ValueError:
        return ""
    return "-".join(numbers)


def _parts(text: str, day_first: bool) -> tuple[int, ...]:
    """The year of a date, perhaps its month, perhaps its day; nothing for another text."""
    if re.fullmatch(r"\d{3,4}", text):
        return (int(text),)
    if re.fullmatch(r"\d{4}\.\d", text):  # a month, or a part of a year
        return ()
    if found := MONTH_AND_YEAR.fullmatch(text):
        return int(found[2]), int(found[1])
    if found := YEAR_FIRST.fullmatch(text):
        return tuple(int(part) for part in found.groups() if part)
    if found := NUMBERS.fullmatch(text):
        one, mark, two, year = found.groups()
        day, month = (one, two) if day_first or mark == "." else (two, one)
        return int(year), int(month), int(day)
    if found := DAY_FIRST.fullmatch(text):
        day, name, year = found.groups()
        return (int(year), _month(name), int(day)) if day else (int(year), _month(name))
    if found := MONTH_FIRST.fullmatch(text):
        name, day, year = found.groups()
        return int(year), _month(name), int(day)
    return ()


def _month(name: str) -> int:
    """1 to 12 for a month's name or its first letters; 0, which no date has, for another word."""
    names = [month.casefold() for month in MONTHS.split()]
    short = name.casefold()
    return next(
        (n for n, whole in enumerate(names, 1) if short in (whole, whole[:3], whole[:4])),
        0,
    )
