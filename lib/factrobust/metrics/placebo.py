"""Part 2, beyond the paper: would other dates do as well as those at which the fact held?

In order of time, a fact's correct dates at a precision are one block among its incorrect ones
(transitional dates are out). Any other block of as many dates, with at least one date on both sides,
is a placebo: its win rate W and robustness R say what the scores' drift with the years gives to dates
that are not the validity. Where dates are balanced (`datasets.dates.thinned`), scores that only rise
or only fall have W = 1/2 and R = 0 at the validity, and the same on average over the placebos; what is
left is a bump. A bump that all objects have at the same years is taken away by `freed` scores.

Functions of a table `schemas.Scores` take which column of it counts: logprob or freed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust.metrics.time import CELL, KEY, Array, chance
from factrobust.statistics import paired_difference

MEASURES = ("win_rate", "robust")


def blocks(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """W and R of every block of a fact's dates that could be its validity (equations 1 and 2).

    One row a cell (model, prompt_format, fact_id, precision) and block: before (dates before it), true
    (whether it is the validity), win_rate (ties are not won) and robust (0 or 1). Cells whose validity
    has no incorrect date on one side, or that miss a value, are left out.
    """
    rows = []
    for cell, values, k, first in in_time(scores, value):
        matches = k * (len(values) - k)
        for before, wins in enumerate(_wins(values, k), 1):
            rows.append((*cell, before, before == first, wins / matches, float(wins == matches)))
    table = pd.DataFrame(rows, columns=[*CELL, "before", "true", *MEASURES])
    return table.astype({"true": bool} | dict.fromkeys(MEASURES, float))


def in_time(scores: pd.DataFrame, value: str = "logprob") -> Iterator[tuple[Any, Array, int, int]]:
    """Each cell that `blocks` keeps: its values in order of time, and of its correct dates, which
    stand together, the number and the place of the first."""
    dated = scores[scores["label"] != "transitional"].sort_values("date", kind="stable")
    every, right = dated[value].to_numpy(dtype=float), (dated["label"] == "correct").to_numpy()
    for cell, places in dated.groupby(CELL, sort=False).indices.items():
        values, correct = every[places], right[places]
        k, first, last = correct.sum(), correct.argmax(), len(correct) - correct[::-1].argmax()
        if k and first > 0 and last < len(correct) and not np.isnan(values).any():
            yield cell, values, int(k), int(first)


def _wins(values: Array, k: int) -> NDArray[np.int64]:
    """Matches won by each block of k values, from the one that begins at 1 to the last but one."""
    greater = (values[:, None] > values).astype(np.int64)
    sums = np.pad(greater.cumsum(0).cumsum(1), ((1, 0), (1, 0)))  # of all rows and columns before
    low = np.arange(1, len(values) - k)
    rows, inside = sums[low + k] - sums[low], np.arange(len(low))
    return rows[:, -1] - rows[inside, low + k] + rows[inside, low]


def placebo(blocks: pd.DataFrame) -> pd.DataFrame:
    """The validity beside the mean of all other `blocks` of its fact, exactly.

    One row a cell: blocks (their number, with the true one), and for W and R win_rate,
    placebo_win_rate, win_rate_difference (first minus second), robust, ... Cells without another block
    are left out.
    """
    true, others = blocks[blocks["true"]], blocks[~blocks["true"]]
    cells = others.groupby(CELL, sort=False)[[*MEASURES]].mean()
    table = true.set_index(CELL)[[*MEASURES]].join(cells.add_prefix("placebo_"), how="inner")
    table.insert(0, "blocks", blocks.groupby(CELL, sort=False).size().reindex(table.index))
    for measure in MEASURES:
        table[f"{measure}_difference"] = table[measure] - table[f"placebo_{measure}"]
    return table.reset_index()


def side_by_side(found: pd.DataFrame, measure: str = "win_rate") -> pd.DataFrame:
    """`placebo` with the measure of the validity and of the other blocks in rows of their own: a column
    dates says which, and the column of the measure's name how much."""
    names = {measure: "validity", f"placebo_{measure}": "other blocks"}
    table = found[[*CELL, *names]].rename(columns=names)
    return table.melt(CELL, [*names.values()], "dates", measure)


def placebo_test(
    blocks: pd.DataFrame, facts: pd.DataFrame, *, n_boot: int = 2000, n_draws: int = 9999
) -> pd.DataFrame:
    """Is the validity above its placebos, over facts? A row a model, format, precision and measure.

    validity and placebo are means over facts, mean, low and high those of the difference, with whole
    subjects drawn (`facts` has fact_id and subject); n counts facts, subjects their subjects. p is that
    of a permutation test against "above": if the place of the validity said nothing about the scores,
    each block were as likely to be the true one, so in each of `n_draws` draws every fact's block is
    drawn among all of its own, and p = (1 + draws with at least the mean seen) / (1 + n_draws). Facts
    of one subject, whose questions are the same, are drawn at the same quantile of their blocks. Drift
    spreads the win rates of blocks, not that of the balanced validity: then p errs on the safe side.
    """
    subject = facts.set_index("fact_id")["subject"]
    by, rows = [*KEY[:2], "precision"], []
    found = placebo(blocks)
    every = found[CELL].merge(blocks, on=CELL).sort_values(["fact_id", "before"])
    parts = dict(iter(every.groupby(by)))
    for key, part in found.groupby(by, sort=False):
        groups = part["fact_id"].map(subject)
        for measure in MEASURES:
            pair = part[measure], part[f"placebo_{measure}"]
            apart = paired_difference(*pair, groups, n_boot=n_boot)
            p = _permuted(parts[key], parts[key]["fact_id"].map(subject), measure, n_draws)
            means = [float(one.mean()) for one in pair]
            rows.append((*key, measure, *means, *apart._replace(n=len(part)), apart.n, p))
    columns = ["measure", "validity", "placebo", "mean", "low", "high", "n", "subjects", "p"]
    return pd.DataFrame(rows, columns=[*by, *columns])


def _permuted(blocks: pd.DataFrame, subjects: pd.Series, measure: str, n_draws: int) -> float:
    """The p-value of one measure; `blocks` are sorted by fact, then by place."""
    sizes = blocks.groupby("fact_id").size().to_numpy()
    first = np.cumsum([0, *sizes[:-1]])
    number = pd.factorize(subjects.iloc[first], sort=True)[0]
    values = blocks[measure].to_numpy()
    quantile = np.random.default_rng(0).random((n_draws, number.max() + 1))
    drawn = values[first + (quantile[:, number] * sizes).astype(int)].mean(axis=1)
    seen = values[blocks["true"].to_numpy()].mean()
    return float((1 + (drawn >= seen - 1e-9).sum()) / (1 + n_draws))


def by_number_of_dates(scores: pd.DataFrame, incorrect: Sequence[int]) -> pd.DataFrame:
    """Probability that a fact is robust when fewer of its incorrect dates are tested.

    For every k of `incorrect`, the share of all ways to choose k of a fact's n incorrect dates for
    which every match is won. It is counted, not sampled: C(b, k) / C(n, k) if b of them lie strictly
    below the lowest correct one. A row a cell of the scores and k (`n_incorrect`): n_correct, robust,
    placebo, the mean of the same over the other blocks of as many dates (NaN without any), and chance. Only facts that have dates on both sides and the largest number of `incorrect`
    dates at the precision, so that all points of a curve are of the same facts.
    """
    rows = []
    for cell, values, size, first in in_time(scores):
        n = len(values) - size
        below = [int((values < values[b : b + size].min()).sum()) for b in range(1, n)]
        for k in incorrect if n >= max(incorrect) else ():
            robust = [math.comb(number, k) / math.comb(n, k) for number in below]
            true = robust.pop(first - 1)
            others = np.mean(robust) if robust else np.nan
            rows.append((*cell, size, k, true, others, chance(size, k)))
    columns = [*CELL, "n_correct", "n_incorrect", "robust", "placebo", "chance"]
    return pd.DataFrame(rows, columns=columns)
