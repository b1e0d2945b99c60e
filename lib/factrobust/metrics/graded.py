"""Part 2, beyond the paper: how near to the truth, where robustness is all or nothing?

Incorrect dates one by one, by their side and distance; the two boundaries of a validity apart; and
the years that a model's scores themselves point at. Every function takes a table `schemas.Scores` and
which column of it counts, logprob or freed (of the drift that other objects share).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from factrobust.datasets.dates import parse
from factrobust.metrics.time import CELL, KEY, Array, match_table

SIDES = ("before", "after")
BOUNDARIES = {"before": "start", "after": "end"}
YEARS = {"up to 5": 5.0, "5 to 20": 20.0, "over 20": np.inf}  # from the validity
LENGTHS = {"up to 1": 1.0, "1 to 3": 3.0, "over 3": np.inf}  # of the validity


def beaten(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """How each incorrect date fares: the win rate W by side and distance.

    The columns of the scores and side ("before" the start or "after" the end), won (share of the
    correct dates of its fact and precision that are likelier, strictly), drawn (equally likely ones),
    and its distance from the validity in bins of years (YEARS) and of lengths of the validity (LENGTHS).
    Facts without a correct date at a precision, or that miss a value, are left out there.
    """
    missing = scores[value].isna().groupby([scores[name] for name in CELL]).transform("any")
    rows = scores[~missing]
    pairs = match_table(rows, value).rename(columns={"incorrect": "date"})
    pairs = pairs.assign(won=pairs["outcome"] == "won", drawn=pairs["outcome"] == "tied")
    shares = pairs.groupby([*CELL, "date"])[["won", "drawn"]].mean().reset_index()
    table = rows[rows["label"] == "incorrect"].merge(shares, on=[*CELL, "date"])
    far = {"years": table["years_off"].abs(), "lengths": table["alpha"].abs() - 0.5}
    for (column, by), bins in zip(far.items(), (YEARS, LENGTHS), strict=True):
        table[column] = np.array([*bins])[np.searchsorted([*bins.values()], by)]
    return table.assign(side=np.where(table["years_off"] < 0, *SIDES))


def boundary_auc(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """How well the dates at a boundary are told apart: a row a cell of the scores and boundary.

    boundary is "start" (correct dates against those before them) or "end" (against those after
    them), auc the share of pairs in which the correct date is likelier, ties half: 1/2 without
    knowledge. Scores that only rise have 1 at the start and 0 at the end.
    """
    table = beaten(scores, value)
    table = table.assign(auc=table["won"] + table["drawn"] / 2)
    table["boundary"] = table["side"].map(BOUNDARIES)
    return table.groupby([*CELL, "boundary"], sort=False)["auc"].mean().reset_index()


def decoded_block(values: Array) -> tuple[int, int]:
    """First and last place of the block whose mean stands out most from that of the others.

    It maximises (mean inside - mean outside) sqrt(n_inside n_outside / n), which is the most likely
    step up of a profile with two levels and equal variances; not the whole, the first of equals.
    """
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values - np.mean(values))])
    size = np.arange(n + 1) - np.arange(n + 1)[:, None]  # [begin, end), so far as begin < end
    proper = (size > 0) & (size < n)
    inside = np.where(proper, sums - sums[:, None], 0.0)  # of a mean of 0 outside has minus that
    scale = np.sqrt(np.where(proper, size * (n - size) / n, 1.0))
    found = np.where(proper, inside / scale, -np.inf)
    begin, end = np.unravel_index(found.argmax(), found.shape)
    return int(begin), int(end) - 1


def decoded(scores: pd.DataFrame, facts: pd.DataFrame, value: str = "freed") -> pd.DataFrame:
    """Start and end of each fact as the scores of its years tell them, beside two dull guesses.

    `scores` are of a grid of years (`datasets.dates.grid`). A row a model, prompt_format, fact_id and
    boundary ("start", "end"): relation, subject, year (the true one), decoded (the year of
    `decoded_block`), error (their distance in years); and the same error of dull_error, the median
    start or end of the relation's other `facts`, and placebo_error, the mean over the blocks decoded
    from the other facts of the relation (NaN without any).
    """
    rows = []
    for key, part in scores.sort_values("year").groupby(KEY, sort=False):
        first, last = decoded_block(part[value].to_numpy(dtype=float))
        rows += [
            (*key, boundary, part["year"].iloc[place])
            for boundary, place in (("start", first), ("end", last))
        ]
    table = pd.DataFrame(rows, columns=[*KEY, "boundary", "decoded"])
    bounds = [
        facts[["fact_id", "relation", "subject"]].assign(
            boundary=name, year=parse(facts[name])[side].astype("datetime64[Y]").astype(int) + 1970
        )
        for name, side in (("start", 0), ("end", 1))
    ]
    truth = pd.concat(bounds, ignore_index=True)
    table = table.merge(truth, on=["fact_id", "boundary"], validate="many_to_one")
    table["error"] = (table["decoded"] - table["year"]).abs()
    same = truth.groupby(["relation", "boundary"])["year"]
    years = {key: np.sort(part) for key, part in same}
    table["dull_error"] = [
        abs(_median_without(years[relation, boundary], year) - year)
        for relation, boundary, year in table[["relation", "boundary", "year"]].values.tolist()
    ]
    for _, part in table.groupby([*KEY[:2], "relation", "boundary"]):
        apart = np.abs(part["decoded"].to_numpy() - part["year"].to_numpy()[:, None])
        rest = apart.sum(axis=1) - np.diag(apart)
        table.loc[part.index, "placebo_error"] = rest / (len(part) - 1) if len(part) > 1 else np.nan
    return table


def _median_without(years: Array, own: int) -> float:
    """The median of years without one of those that are `own`; NaN where none is left."""
    others = np.delete(years, np.searchsorted(years, own))
    return float(np.median(others)) if len(others) else np.nan
