"""Part 2, beyond the paper: would other years do as well?

In order of time, a fact's correct dates are one block among its incorrect ones, and any other block
of as many dates, with a date on both sides, could be its validity (`windows`). Name and question are
the same, so what they share with the era is in both. The other nulls are in `time.cube`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from factrobust.statistics import Array, paired_difference
from factrobust.time.metrics import CELL, KEY

MEASURES = ["win_rate", "robust"]


def windows(scores: pd.DataFrame) -> pd.DataFrame:
    """W and R of every block of a fact's dates that could be its validity (equations 1 and 2). A
    row a cell and block: before (dates before it), true (it is the validity), win_rate (ties are
    not won), robust (0 or 1). Cells are those of `in_time`."""
    rows = []
    for cell, values, k, first in in_time(scores):
        for before in range(1, len(values) - k):
            block = np.s_[before : before + k]
            won = values[block][:, None] > np.delete(values, block)
            rows.append((*cell, before, before == first, won.mean(), won.all()))
    table = pd.DataFrame(rows, columns=[*CELL, "before", "true", *MEASURES])
    return table.astype({"true": bool} | dict.fromkeys(MEASURES, float))


def in_time(scores: pd.DataFrame) -> Iterator[tuple[Any, Array, int, int]]:
    """Each cell with incorrect dates on both sides and all values: the values in order of time, the
    number of its correct dates, and the place of the first."""
    dated = scores[scores["label"] != "transitional"].sort_values("date", kind="stable")
    every, right = dated["logprob"].to_numpy(dtype=float), (dated["label"] == "correct").to_numpy()
    for cell, places in dated.groupby(CELL, sort=False).indices.items():
        values, correct = every[places], right[places]
        k, first, last = correct.sum(), correct.argmax(), len(correct) - correct[::-1].argmax()
        if k and first > 0 and last < len(correct) and not np.isnan(values).any():
            yield cell, values, int(k), int(first)


def placebo(blocks: pd.DataFrame) -> pd.DataFrame:
    """The validity of each cell of `windows` beside the mean of its other blocks, exactly. A row a
    cell: win_rate, placebo_win_rate, win_rate_difference, robust, ... Cells without another block are
    left out."""
    true, others = blocks[blocks["true"]], blocks[~blocks["true"]]
    cells = others.groupby(CELL, sort=False)[MEASURES].mean()
    table = true.set_index(CELL)[MEASURES].join(cells.add_prefix("placebo_"), how="inner")
    for measure in MEASURES:
        table[f"{measure}_difference"] = table[measure] - table[f"placebo_{measure}"]
    return table.reset_index()


def placebo_test(
    blocks: pd.DataFrame, facts: pd.DataFrame, *, n_boot: int = 2000, n_draws: int = 9999
) -> pd.DataFrame:
    """Is the validity above the other `windows` of its cell? A row a model, format, precision and
    measure.

    validity and placebo are means over facts; mean, low and high are of the difference, with whole
    subjects drawn (`facts` has fact_id and subject); n counts facts, subjects their subjects. p is of
    a permutation test: in each of `n_draws` draws every fact's validity is drawn among all of its
    blocks, facts of one subject at the same quantile; p = (1 + draws with at least the mean seen) /
    (1 + n_draws).
    """
    keys, rows = [*KEY[:2], "precision"], []
    found = placebo(blocks).merge(facts[["fact_id", "subject"]], on="fact_id")
    every = found[[*CELL, "subject"]].merge(blocks, on=CELL)
    parts = dict(iter(every.sort_values(["fact_id", "before"]).groupby(keys)))
    for key, part in found.groupby(keys, sort=False):
        p = _permuted(parts[key], n_draws)
        for measure in MEASURES:
            pair = part[measure], part[f"placebo_{measure}"]
            apart = paired_difference(*pair, part["subject"], n_boot=n_boot)
            means = [one.mean() for one in pair]
            rows.append((*key, measure, *means, *apart._replace(n=len(part)), apart.n, p[measure]))
    columns = ["measure", "validity", "placebo", "mean", "low", "high", "n", "subjects", "p"]
    return pd.DataFrame(rows, columns=[*keys, *columns])


def _permuted(blocks: pd.DataFrame, n_draws: int) -> dict[str, float]:
    """The p-values of MEASURES; `blocks` are sorted by fact, then by place."""
    sizes = blocks.groupby("fact_id").size().to_numpy()
    first = np.cumsum([0, *sizes[:-1]])
    number = pd.factorize(blocks["subject"].iloc[first], sort=True)[0]
    quantile = np.random.default_rng(0).random((n_draws, number.max() + 1))
    drawn = first + (quantile[:, number] * sizes).astype(int)  # [draw, fact] the number of a block
    least = blocks.loc[blocks["true"], MEASURES].mean() - 1e-9
    p = {}
    for measure in MEASURES:
        means = blocks[measure].to_numpy()[drawn].mean(axis=1)
        p[measure] = (1 + (means >= least[measure]).sum()) / (1 + n_draws)
    return p
