"""Successions: who held an office when, a row a term, and the years to ask for the holder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from factrobust import schemas, tables
from factrobust.datasets.dates import YEARS, parse
from factrobust.datasets.temporal import SCHEMA as FACTS
from factrobust.datasets.temporal import whole_years
from factrobust.draws import need_count
from factrobust.paths import DATA

FILE = DATA / "successions.csv"  # for provenance
COLUMNS = schemas.names(schemas.Terms)
_CHECKS = {
    "chain": tables.filled("write a short name, the same for all terms of an office"),
    "office": tables.filled("write what was held, such as the president of France"),
    "holder": tables.filled("write who held the office, or delete the line"),
    "start": FACTS.columns["start"].checks,
    "end": FACTS.columns["end"].checks[1:],  # it may be empty
}
_TYPED = [name for name in COLUMNS if name != "term"]
SCHEMA = tables.csv_schema(_CHECKS, **{name: _CHECKS.get(name) for name in _TYPED})


def load_successions(path: str | Path | None = None, offices: Sequence[str] = ()) -> pd.DataFrame:
    """Return the terms of offices, each office's in the order of time: a table `schemas.Terms`.

    `path` is a CSV of your own (default: the embedded table); it needs chain, office, holder, start
    and end, and each chain's terms in order. An empty end says that the term lasted beyond 2020. Gaps
    are allowed, for acting holders and vacancies, and so is a holder's return. question and prefix may
    be given; else they are "who was {office}?" and "{office} was", to go on after a date. `offices` names
    the chains that are kept, by default all.

    Raises FactsError with file and line for a bad file: a bound that is no date, a term that ends
    before it begins or begins before the last one ends; ValueError for an office that the table has
    not.
    """
    path = FILE if path is None else Path(path)
    frame = tables.read_checked(path, SCHEMA)
    _check_chains(frame, path)
    known = frame["chain"].unique().tolist()
    for name in offices:
        if name not in known:
            raise ValueError(f"{path} has no office {name!r}; it has {', '.join(known)}.")
    frame = frame[frame["chain"].isin(offices or known)]
    frame = tables.complete_table(frame, SCHEMA)
    asked = {"question": "who was " + frame["office"] + "?", "prefix": frame["office"] + " was"}
    for column, usual in asked.items():
        frame[column] = frame[column].mask(frame[column] == "", usual)
    frame["aliases"] = tables.alias_lists(frame["aliases"], frame["holder"])
    frame["term"] = frame.groupby("chain").cumcount()
    notes = [name for name in frame if name not in COLUMNS]
    return frame[[*COLUMNS, *notes]].reset_index(drop=True)


def _ends(terms: pd.DataFrame) -> pd.Series:
    return terms["end"].replace("", str(YEARS[1] + 1))


def _check_chains(frame: pd.DataFrame, path: Path) -> None:
    """Raise FactsError for the first term that does not fit into its chain."""
    begun, over = parse(frame["start"]), parse(_ends(frame))
    chains = frame.assign(begun=begun[1], over=over[0]).groupby("chain")
    before = chains["over"].shift()  # NaT, which is before nothing, of a first term
    for wrong, fault in (
        (begun[0] > over[1], "ends before it begins; swap the two dates, or mend the wrong one"),
        (
            before > begun[1],
            "begins before the last one of its chain ends; mend a date, or put the terms in order",
        ),
    ):
        for line in frame.index[wrong][:1]:
            raise tables.FactsError(
                f"{path}, line {line}: the term of {frame.at[line, 'holder']!r} {fault}."
            )


def moments(terms: pd.DataFrame, n_years: int | None = None) -> pd.DataFrame:
    """The years to ask for the holder: chain, term, year and holder, who is right, in their order.

    Of the calendar years wholly inside a term (the bounds do not touch them; a short term has none) at
    most `n_years`, evenly spaced: of one the middle year, or the later of two. None takes all.

    Raises ValueError for a number that is no count.
    """
    need_count("n_years", n_years)
    ends = _ends(terms)
    first = parse(terms["start"])[1].astype("datetime64[Y]").astype(int) + 1971
    inside = whole_years(terms["start"], ends).to_numpy()
    asked = inside if n_years is None else np.minimum(inside, n_years)
    rows = np.repeat(np.arange(len(terms)), asked)
    nth = np.arange(len(rows)) - np.repeat(asked.cumsum() - asked, asked)
    # As in `dates.thinned`: the i-th of n kept ones stands at floor((i + 1/2) total / n).
    places = (2 * nth + 1) * inside[rows] // (2 * asked[rows])
    table = terms[["chain", "term", "holder"]].iloc[rows].reset_index(drop=True)
    return table.assign(year=first[rows] + places)[["chain", "term", "year", "holder"]]
