"""Dates as intervals of days: parse, classify, place, sample, put into words (paper 2, section
3.2).

A date, and each bound of a validity, is ISO text with its own precision: "1976", "2005-11" or
"2005-11-19". It stands for the closed interval of its days; days are numpy's datetime64[D].
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from factrobust import schemas
from factrobust.draws import hash64, need_count

PRECISIONS = ("year", "month", "day")
LABELS = ("correct", "incorrect", "transitional")
RULES = ("strict", "published")  # of labels
COLUMNS = tuple(schemas.Dates.columns)
YEARS = (1000, 2020)  # the first and the last year that is sampled
GRID = range(1950, 2021, 3)  # the years of `same_years`
# alpha runs from -5 to 5 in steps of 1/20
REACH = 5
STEPS = 20
DAYS_A_YEAR = 365.2425
# Not calendar.month_name, which follows the locale.
MONTHS = "January February March April May June July August September October November December"

Days = NDArray[np.datetime64]
Span = tuple[Days, Days]  # first and last day


def is_date(text: str) -> bool:
    """Whether text is YYYY, YYYY-MM or YYYY-MM-DD and names a date of the calendar."""
    if not re.fullmatch(r"(?!0000)[0-9]{4}(-[0-9]{2}){0,2}", text):
        return False
    try:
        np.datetime64(text)
    except ValueError:
        return False
    return True


def parse(dates: ArrayLike) -> Span:
    """First and last day of each date, shaped like `dates`. ValueError for a text that is no
    date."""
    texts = np.asarray(dates, dtype=str)
    for text in np.unique(texts):
        if not is_date(str(text)):
            raise ValueError(f"{str(text)!r} is no date: write YYYY, YYYY-MM or YYYY-MM-DD.")
    first = texts.astype("datetime64[D]")
    last = texts.astype("datetime64[D]")
    for unit, length in (("Y", 4), ("M", 7)):
        coarse = np.strings.str_len(texts) == length
        last = np.where(
            coarse,
            _days(texts.astype(f"datetime64[{unit}]"))[1],
            last,
        )
    return first, last


def _days(dates: Days) -> Span:
    """First and last day of dates whose numpy unit is their precision."""
    return dates.astype("datetime64[D]"), (dates + 1).astype("datetime64[D]") - 1


def _take(span: Span, rows: NDArray[np.intp]) -> Span:
    return span[0][rows], span[1][rows]


def classify(
    date: Span,
    start: Span,
    end: Span,
    *,
    rule: str = "strict",
) -> NDArray[np.str_]:
    """Label each date "correct", "incorrect" or "transitional" for a fact valid from start to end.

    rule="strict": correct dates lie wholly between the bounds, incorrect ones wholly outside; one that
    shares a day with a bound is transitional, because the change came on some day of the bound.

    rule="published" (the authors' code): the period runs from the start's first day to the end's
    last. Dates wholly within are correct, disjoint ones incorrect, others transitional. So the
    whole of the year is correct for a bound known to the year (table 1: 2018-12-30 for a player who
    left in May 2018).
    """
    rules = {
        "strict": (start[1] + 1, end[0] - 1),
        "published": (start[0], end[1]),
    }
    first, last = rules[rule]
    correct = (date[0] >= first) & (date[1] <= last)
    incorrect = (date[1] < start[0]) | (date[0] > end[1])
    return np.select(
        [correct, incorrect],
        ["correct", "incorrect"],
        "transitional",
    )


def position(date: Span, start: Span, end: Span) -> tuple[NDArray, NDArray]:
    """Where a date's middle lies: alpha, and the signed distance to the validity in years. The
    validity runs from the start's first to the end's last day. alpha is -0.5 on the first day and
    0.5 on the last. years_off is 0 inside, negative before, positive after."""
    bounds = (date[0], date[1], start[0], end[1])
    first, last, valid_from, valid_to = (day.astype(float) for day in bounds)
    length = valid_to - valid_from
    alpha = (first + last - valid_from - valid_to) / 2 / length
    outside = np.maximum(abs(alpha) - 0.5, 0) * length
    years_off = np.sign(alpha) * outside / DAYS_A_YEAR
    return alpha, years_off + 0.0  # no negative zeros


def sample_dates(
    facts: pd.DataFrame,
    *,
    rule: str = "strict",
    seed: int = 0,
) -> pd.DataFrame:
    """Sample dates around each fact's validity (paper 2, section 3.2.2): `schemas.Dates`.

    `facts` is a table `schemas.TemporalFacts`; the rows are in its order, then by precision and
    date.

    alpha = -5, -4.95, ..., 5 gives days, and these give years, once each, within YEARS. Each year
    is tested by itself, by a month of it, and by a day of that month, drawn by a hash of (seed,
    fact_id, year); the authors draw from one stream. As in their code, rule="published" leaves out
    the month and the day of a transitional year. Incorrect dates are so for all periods of the same
    subject, relation and object. Raises ValueError for a bound that is no date.
    """
    start = parse(facts["start"])
    end = parse(facts["end"])
    fact, years = _years(start[0], end[1])
    names = facts["fact_id"].to_numpy()[fact]
    bounds = _take(start, fact), _take(end, fact)
    parts: list[pd.DataFrame] = []
    for precision, dates in zip(
        PRECISIONS,
        _moments(names, years, seed),
        strict=True,
    ):
        span = _days(dates)
        part = pd.DataFrame({"fact_id": names, "precision": precision})
        part["date"] = np.datetime_as_string(dates)
        part["year"] = years.astype(int) + 1970
        part["alpha"], part["years_off"] = position(span, *bounds)
        part["label"] = classify(span, *bounds, rule=rule)
        part["fact"] = fact
        part["first"], part["last"] = span
        if parts and rule == "published":
            part = part[parts[0]["label"] != "transitional"]
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    table = table[_alone(table, facts, start, end, rule)]
    # The parts are sorted by fact and date already.
    return table.sort_values("fact", kind="stable")[list(COLUMNS)].reset_index(drop=True)


def same_years(facts: pd.DataFrame, years: Sequence[int] = GRID) -> pd.DataFrame:
    """The same years for every fact that began and ended within them, strictly labelled:
    `schemas.Dates`."""
    valid_from, _ = parse(facts["start"])
    _, valid_to = parse(facts["end"])
    first, last = parse([str(year) for year in years])
    inside = (valid_from >= first[0]) & (valid_to <= last[-1])
    asked = pd.DataFrame({"precision": "year", "year": years})
    table = facts[inside].merge(asked, how="cross")
    table["date"] = table["year"].astype(str)
    date, *bounds = (parse(table[name]) for name in ("date", "start", "end"))
    table["alpha"], table["years_off"] = position(date, *bounds)
    table["label"] = classify(date, *bounds)
    return table[list(COLUMNS)]


def _years(first: Days, last: Days) -> tuple[NDArray[np.intp], Days]:
    """The sampled years of all facts: index of the fact, and the year as datetime64[Y]."""
    most = REACH * STEPS
    step = np.arange(-most, most + 1) + STEPS // 2  # alpha -0.5 is step 0
    # Integers, rounded down: numpy's own division of a negative time rounds it up.
    ahead = step * (last - first).astype(int)[:, None] // STEPS
    days = first[:, None] + ahead.astype("timedelta64[D]")
    years = days.astype("datetime64[Y]")
    number = years.astype(int) + 1970
    kept = (number >= YEARS[0]) & (number <= YEARS[1])
    kept[:, 1:] &= number[:, 1:] != number[:, :-1]
    return np.nonzero(kept)[0], years[kept]


def _moments(names: NDArray[Any], years: Days, seed: int) -> tuple[Days, Days, Days]:
    """Each year, a month of it and a day of that month, as datetime64 of unit Y, M and D."""
    keys = zip(names, years.astype(int) + 1970, strict=True)
    drawn = [hash64(f"{seed}/{name}/{year}", 7) for name, year in keys]
    lots = np.array(drawn, dtype=np.int64)
    months = years.astype("datetime64[M]") + (lots % 12).astype("timedelta64[M]")
    first, last = _days(months)
    day = lots // 12 % ((last - first).astype(int) + 1)
    return (
        years,
        months,
        first + day.astype("timedelta64[D]"),
    )


def _alone(
    table: pd.DataFrame,
    facts: pd.DataFrame,
    start: Span,
    end: Span,
    rule: str,
) -> NDArray[np.bool_]:
    """False for the incorrect dates that another period of the same fact may hold."""
    what = ["subject", "relation", "object"]
    periods = facts[what].assign(fact=np.arange(len(facts)))
    pairs = periods.merge(periods, on=what, suffixes=("", "_other"))
    pairs = pairs.loc[
        pairs["fact"] != pairs["fact_other"],
        ["fact", "fact_other"],
    ]
    incorrect = table.loc[
        table["label"] == "incorrect",
        ["fact", "first", "last"],
    ]
    both = incorrect.reset_index().merge(pairs, on="fact")
    date = (
        both["first"].to_numpy(),
        both["last"].to_numpy(),
    )
    other = both["fact_other"].to_numpy()
    label = classify(
        date,
        _take(start, other),
        _take(end, other),
        rule=rule,
    )
    return ~table.index.isin(both.loc[label != "incorrect", "index"])


def thinned(
    dates: pd.DataFrame,
    *,
    sampling: str = "balanced",
    n_correct: int | None = None,
    n_incorrect: int | None = None,
) -> pd.DataFrame:
    """Keep some of each fact's dates (`schemas.Dates`), evenly spaced; transitional ones stay.

    sampling="balanced" (ours): at each precision at most n_correct correct dates, and on both sides
    of the validity the same number of incorrect ones, at most n_incorrect. None lies over a year
    farther off than the other side reaches: years end in 2020, and early ones may be unlikely for
    other reasons. With an empty side no incorrect date stays (see `balance`).

    sampling="published": the paper's dates. n_correct and n_incorrect, of both sides together, thin
    its years by their label as years, and all precisions keep the same years. ValueError for a bad
    count.
    """
    need_count("n_correct", n_correct)
    need_count("n_incorrect", n_incorrect)
    counts = {
        "correct": n_correct,
        "incorrect": n_incorrect,
    }
    if sampling == "published":
        years = dates[dates["precision"] == "year"]
        groups = [years["fact_id"], years["label"]]
        dropped = years[~even(groups, years["label"].map(counts))]
        keys = pd.factorize(dates["fact_id"])[0] * 10_000 + dates["year"]
        return dates[~keys.isin(keys[dropped.index])]
    cell = [dates["fact_id"], dates["precision"]]
    incorrect = dates["label"] == "incorrect"
    side = np.sign(dates["years_off"]).where(incorrect, 0)
    far = dates["years_off"].abs()
    before = far.where(side < 0).groupby(cell).transform("max")
    after = far.where(side > 0).groupby(cell).transform("max")
    near = far <= np.minimum(before, after) + 1  # NaN: an empty side
    dates = dates[near | ~incorrect]
    cell = [part[dates.index] for part in cell]
    side = side[dates.index]
    before = (side < 0).groupby(cell).transform("sum")
    after = (side > 0).groupby(cell).transform("sum")
    limit = dates["label"].map(counts).fillna(len(dates))
    both_sides = np.minimum(before, after)
    limit = limit.where(side == 0, np.minimum(limit, both_sides))
    return dates[even([*cell, dates["label"], side], limit)]


def even(groups: list[pd.Series], count: pd.Series) -> pd.Series:
    """Whether each row is among the `count` rows of its group that stay, evenly spaced (NaN: all
    stay)."""
    grouped = count.groupby(groups)
    place = grouped.cumcount()
    total = grouped.transform("size")
    n = np.minimum(count.fillna(np.inf), total).astype(int)
    # The i-th of n kept ones stands at place floor((i + 1/2) total / n): the middles of n parts.
    kept_before = -((total - 2 * n * place) // (2 * total))
    kept_up_to_it = -((total - 2 * n * (place + 1)) // (2 * total))
    return kept_before != kept_up_to_it


def balance(dates: pd.DataFrame) -> pd.DataFrame:
    """How many incorrect dates lie before the validity and after it: a row a precision, with facts,
    one_sided (facts with none on a side), before and after (dates a fact); and win_rate, what the rule
    that later dates are likelier is worth."""
    facts = dates.groupby("precision", sort=False)["fact_id"].nunique()
    wrong = dates[dates["label"] == "incorrect"]
    early = (wrong["years_off"] < 0).groupby([wrong["precision"], wrong["fact_id"]])
    sides = pd.DataFrame(
        {
            "win_rate": early.mean(),
            "before": early.sum(),
            "n": early.size(),
        }
    )
    sides["both"] = sides["win_rate"].between(0, 1, inclusive="neither")
    sums = sides.groupby("precision").sum().reindex(facts.index, fill_value=0)
    table = pd.DataFrame(
        {
            "facts": facts,
            "one_sided": facts - sums["both"],
        }
    )
    table["before"] = sums["before"] / facts
    table["after"] = (sums["n"] - sums["before"]) / facts
    table["win_rate"] = sides["win_rate"].groupby("precision").mean()
    return table.reset_index()


@cache
def verbalise(date: str) -> str:
    """A date as it opens a question (appendix E): "In 2019", "In December 2019", "On December 1,
    2019"."""
    parse(date)  # checks it
    year, *rest = map(int, date.split("-"))
    if not rest:
        return f"In {year}"
    month = MONTHS.split()[rest[0] - 1]
    if len(rest) == 1:
        return f"In {month} {year}"
    return f"On {month} {rest[1]}, {year}"
