"""Part 2, beyond the paper: would other dates do as well as those at which the fact held?

In order of time, a fact's correct dates at a precision are one block among its incorrect ones. Any
other block of as many dates, with a date on both sides, is a placebo: its win rate W and robustness
R show what drift with the years gives to wrong dates. With balanced dates (`time.dates.thinned`),
scores that only rise or fall have W = 1/2 and R = 0 at the validity and, on average, at the
placebos.

`value` is the column of `schemas.Scores` that counts: logprob, or freed (of what other objects
share).
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust.statistics import Array, in_ranges, paired_difference
from factrobust.time.dates import parse
from factrobust.time.metrics import CELL, KEY, chance, match_table

MEASURES = ("win_rate", "robust")
BOUNDARIES = {"before": "start", "after": "end"}
YEARS = {"up to 5": 5.0, "5 to 20": 20.0, "over 20": np.inf}  # from the validity
LENGTHS = {"up to 1": 1.0, "1 to 3": 3.0, "over 3": np.inf}  # of the validity


def windows(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """W and R of every block of a fact's dates that could be its validity (equations 1 and 2).

    A row a cell and block: before (dates before it), true (it is the validity), win_rate (ties are
    not won), robust (0 or 1). Cells are those of `in_time`.
    """
    rows = []
    for cell, values, k, first in in_time(scores, value):
        matches = k * (len(values) - k)
        for before, wins in enumerate(_wins(values, k), 1):
            rows.append((*cell, before, before == first, wins / matches, float(wins == matches)))
    table = pd.DataFrame(rows, columns=[*CELL, "before", "true", *MEASURES])
    return table.astype({"true": bool} | dict.fromkeys(MEASURES, float))


def in_time(scores: pd.DataFrame, value: str = "logprob") -> Iterator[tuple[Any, Array, int, int]]:
    """Each cell with incorrect dates on both sides and all values: the values in order of time, the
    number of its correct dates, and the place of the first."""
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

    A row a cell: blocks (their number), and for W and R win_rate, placebo_win_rate,
    win_rate_difference, robust, ... Cells without another block are left out.
    """
    true, others = blocks[blocks["true"]], blocks[~blocks["true"]]
    cells = others.groupby(CELL, sort=False)[[*MEASURES]].mean()
    table = true.set_index(CELL)[[*MEASURES]].join(cells.add_prefix("placebo_"), how="inner")
    table.insert(0, "blocks", blocks.groupby(CELL, sort=False).size().reindex(table.index))
    for measure in MEASURES:
        table[f"{measure}_difference"] = table[measure] - table[f"placebo_{measure}"]
    return table.reset_index()


def placebo_test(
    blocks: pd.DataFrame,
    facts: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    n_boot: int = 2000,
    n_draws: int = 9999,
) -> pd.DataFrame:
    """Is the validity above its placebos? A row a model, format, precision, `by` (of facts) and
    measure.

    validity and placebo are means over facts; mean, low and high are of the difference, with whole
    subjects drawn (`facts` has fact_id and subject); n counts facts, subjects their subjects. p is
    of a permutation test: in each of `n_draws` draws every fact's true block is drawn among all of
    its own, facts of one subject at the same quantile; p = (1 + draws with at least the mean seen)
    / (1 + n_draws). Drift spreads the win rates of blocks, not of the balanced validity: then p
    errs on the safe side.
    """
    keys, rows = [*KEY[:2], "precision", *by], []
    found = placebo(blocks).merge(facts[["fact_id", "subject", *by]], on="fact_id")
    every = found[[*CELL, "subject", *by]].merge(blocks, on=CELL)
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
    values = blocks[[*MEASURES]]
    least = values[blocks["true"]].mean() - 1e-9
    return {
        m: (1 + (values[m].to_numpy()[drawn].mean(axis=1) >= least[m]).sum()) / (1 + n_draws)
        for m in MEASURES
    }


def by_number_of_dates(scores: pd.DataFrame, incorrect: Sequence[int]) -> pd.DataFrame:
    """Probability that a fact is robust when fewer of its incorrect dates are tested.

    For every k of `incorrect`: the share C(b, k) / C(n, k) of the choices of k of n incorrect dates
    with every match won, where b lie below the lowest correct one. A row a cell and k
    (n_incorrect): n_correct, robust, placebo (the mean over other blocks, or NaN), chance. Only
    facts with max(incorrect) incorrect dates, so that all points of a curve are of the same facts.
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


def beaten(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """How each incorrect date fares: the columns of the scores, and

    side ("before" or "after"), won (share of the fact's correct dates that are strictly likelier),
    drawn (equally likely), years and lengths (its distance in YEARS and LENGTHS). Facts without a
    correct date at a precision, or without a value, are left out there.
    """
    missing = scores[value].isna().groupby([scores[name] for name in CELL]).transform("any")
    rows = scores[~missing]
    pairs = match_table(rows, value).rename(columns={"incorrect": "date"})
    pairs = pairs.assign(won=pairs["outcome"] == "won", drawn=pairs["outcome"] == "tied")
    shares = pairs.groupby([*CELL, "date"])[["won", "drawn"]].mean().reset_index()
    table = rows[rows["label"] == "incorrect"].merge(shares, on=[*CELL, "date"])
    far = {"years": table["years_off"].abs(), "lengths": table["alpha"].abs() - 0.5}
    for (column, by), bins in zip(far.items(), (YEARS, LENGTHS), strict=True):
        table[column] = in_ranges(by, bins)
    return table.assign(side=np.where(table["years_off"] < 0, *BOUNDARIES))


def boundary_auc(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """How well the dates at a boundary are told apart: a row a cell of the scores and boundary.

    auc is the share of pairs in which the correct date is likelier than one before the "start", or
    after the "end"; ties count half. Scores that only rise have 1 at the start and 0 at the end.
    """
    table = beaten(scores, value)
    boundary = table["side"].map(BOUNDARIES)
    table = table.assign(auc=table["won"] + table["drawn"] / 2, boundary=boundary)
    return table.groupby([*CELL, "boundary"], sort=False)["auc"].mean().reset_index()


def decoded_block(values: Array) -> tuple[int, int]:
    """First and last place of the block whose mean stands out most from that of the others.

    It maximises (mean inside - mean outside) sqrt(n_inside n_outside / n), the likeliest step of a
    profile with two levels and equal variances; never the whole, and the first of equals.
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

    `scores` are of `time.dates.grid`. A row a model, prompt_format, fact_id and boundary ("start",
    "end"): relation, subject, year (the truth), decoded (of `decoded_block`), error (years);
    dull_error is that of the median of the relation's other `facts`, placebo_error the mean over
    the blocks of other facts.
    """
    rows, sides = [], list(BOUNDARIES.values())
    for key, part in scores.sort_values("year").groupby(KEY, sort=False):
        first, last = decoded_block(part[value].to_numpy(dtype=float))
        found = part["year"].iloc[[first, last]]
        rows += [(*key, boundary, year) for boundary, year in zip(sides, found, strict=True)]
    table = pd.DataFrame(rows, columns=[*KEY, "boundary", "decoded"])
    truth = facts.melt(["fact_id", "relation", "subject"], sides, "boundary")
    days = np.where(truth["boundary"] == "start", *parse(truth.pop("value")))
    truth["year"] = days.astype("datetime64[Y]").astype(int) + 1970
    years = truth.groupby(["relation", "boundary"])["year"]
    others = years.transform(lambda part: [part.drop(fact).median() for fact in part.index])
    truth["dull_error"] = (truth["year"] - others).abs()
    table = table.merge(truth, on=["fact_id", "boundary"], validate="many_to_one")
    table["error"] = (table["decoded"] - table["year"]).abs()
    for _, part in table.groupby([*KEY[:2], "relation", "boundary"]):
        apart = np.abs(part["decoded"].to_numpy() - part["year"].to_numpy()[:, None])
        rest = apart.sum(axis=1) - np.diag(apart)
        table.loc[part.index, "placebo_error"] = rest / (len(part) - 1) if len(part) > 1 else np.nan
    return table
