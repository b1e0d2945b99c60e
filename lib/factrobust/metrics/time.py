"""Part 2's matches: does every correct date beat every incorrect one?

A match sets a correct date of a fact against an incorrect one at the same precision; the correct
date wins if the object is more probable after it, strictly (paper 2, equation 1). Transitional
dates play no matches. Scores are the rows of `probes.time.scored`.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust.datasets.dates import LABELS, PRECISIONS

KEY = ["model", "prompt_format", "fact_id"]
CELL = [*KEY, "precision"]
COUNTS = ["n_correct", "n_incorrect", "matches", "wins", "ties"]
GLOBAL = "global"


def matches(scores: pd.DataFrame) -> pd.DataFrame:
    """Win rate W and robustness R of each model, prompt format, fact and precision (3.2.2).

    Columns: model, prompt_format, fact_id, precision, n_correct, n_incorrect, matches (their
    product), wins, ties (equal as floats; they are not won), win_rate (wins / matches, equation 2),
    robust (boolean: all matches won), margin (lowest correct minus highest incorrect logprob, so
    robust means margin > 0), chance (see `chance`). A fact without correct or without incorrect
    dates plays no match: win_rate, margin and chance are NaN and robust is NA, never 1.

    Rows of precision "global" join the three precisions: counts are summed, win_rate is over all
    matches, robust means robust at all three, margin is the lowest, chance the product (as if the
    precisions were independent). They are undefined where one of the three is undefined or was not
    asked.
    """
    check(scores)
    single = _single(scores)
    facts = single.groupby(KEY, sort=False)
    joint = facts.agg(
        **{name: (name, "sum") for name in COUNTS},
        margin=("margin", "min"),
        chance=("chance", "prod"),
    ).assign(precision=GLOBAL)
    partial = facts["margin"].count() < len(PRECISIONS)
    joint.loc[partial, ["margin", "chance"]] = np.nan
    table = pd.concat([single, joint.reset_index()], ignore_index=True)
    known = table["margin"].notna()
    table["win_rate"] = (table["wins"] / table["matches"].where(known)).astype(float)
    table["robust"] = (table["margin"] > 0).astype("boolean").mask(~known)
    fact = table.groupby(KEY, sort=False).ngroup()
    order = np.lexsort((table["precision"].map([*PRECISIONS, GLOBAL].index), fact))
    columns = [*CELL, *COUNTS, "win_rate", "robust", "margin", "chance"]
    return table[columns].iloc[order].reset_index(drop=True)


def _single(scores: pd.DataFrame) -> pd.DataFrame:
    """The rows of `matches` at single precisions, before the columns that follow from others."""
    cell = scores.groupby(CELL, sort=False).ngroup().to_numpy()
    cells = scores.drop_duplicates(CELL)[CELL].reset_index(drop=True)
    x = scores["logprob"].to_numpy(dtype=float)
    good, bad = ((scores["label"] == k).to_numpy(dtype=bool) for k in ("correct", "incorrect"))
    n = len(cells)
    n_correct, n_incorrect = (np.bincount(cell[k], minlength=n) for k in (good, bad))
    lowest, highest = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(lowest, cell[good], x[good])
    np.maximum.at(highest, cell[bad], x[bad])
    chances = [chance(c, i) for c, i in zip(n_correct.tolist(), n_incorrect.tolist(), strict=True)]
    return cells.assign(
        n_correct=n_correct,
        n_incorrect=n_incorrect,
        matches=n_correct * n_incorrect,
        wins=_wins(cell, x, good, bad, n),
        ties=tied_pairs(cell, good, bad, [x], n),
        margin=np.where(n_correct * n_incorrect > 0, lowest - highest, np.nan),
        chance=np.array(chances, dtype=float),
    )


def chance(n_correct: int, n_incorrect: int) -> float:
    """Probability 1 / C(n_correct + n_incorrect, n_correct) that all correct dates come first.

    It holds for scores in random order without ties. Scores that change smoothly with the year
    come out robust by luck more often than that. NaN where there is no match.
    """
    if n_correct < 1 or n_incorrect < 1:
        return math.nan
    return 1 / math.comb(n_correct + n_incorrect, n_correct)


def undefined_counts(matched: pd.DataFrame) -> pd.DataFrame:
    """How many facts have no value: model, prompt_format, precision, facts, undefined."""
    groups = matched.groupby(["model", "prompt_format", "precision"], sort=False)["win_rate"]
    table = groups.agg(facts="size", undefined=lambda rate: int(rate.isna().sum()))
    return table.astype(int).reset_index()


def positions(scores: pd.DataFrame, width: float = 0.25) -> pd.DataFrame:
    """Scores with the position of their date, for log-probability against alpha (figure 3).

    Adds `position`, the centre of the bin of alpha (bins of `width` from 0 on, so that 0.5, the
    edge of the validity, is an edge of bins if `width` divides it), and `relative`, the logprob
    minus the mean over the fact's correct dates at this precision (NaN without any): far positions
    hold other facts than near ones, which would move the plain mean.
    """
    if not width > 0:
        raise ValueError(f"the width of a bin of alpha must be positive, not {width}")
    correct = scores["logprob"].where(scores["label"] == "correct")
    mean = correct.groupby([scores[name] for name in CELL]).transform("mean")
    return scores.assign(
        position=(np.floor(scores["alpha"] / width) + 0.5) * width,
        relative=scores["logprob"] - mean,
    )


def popularity_bins(
    matched: pd.DataFrame, facts: pd.DataFrame, *, column: str = "popularity", bins: int = 5
) -> pd.DataFrame:
    """Matched rows with the popularity of their fact in bins of equal numbers of facts (figure 8).

    `column` of `facts` is popularity, subject_popularity or object_popularity. Adds popularity_bin
    (0: least popular) and popularity (mean of `column` over the bin's facts). Equal values are
    ordered by a hash of fact_id. Rows of facts without a value are left out. Raises ValueError for
    more bins than facts.
    """
    asked = facts[facts["fact_id"].isin(matched["fact_id"])].dropna(subset=[column])
    if not 1 <= bins <= max(len(asked), 1):
        raise ValueError(
            f"{bins} bins for {len(asked)} facts that have a value of {column}; "
            "ask for at least 1 and at most as many"
        )
    ordered = asked.assign(lot=asked["fact_id"].map(_lot)).sort_values([column, "lot"])
    number = np.arange(len(ordered)) * bins // max(len(ordered), 1)
    ordered = ordered[["fact_id"]].assign(popularity_bin=number, popularity=ordered[column])
    ordered["popularity"] = ordered.groupby("popularity_bin")["popularity"].transform("mean")
    return matched.merge(ordered, on="fact_id", validate="many_to_one")


def check(scores: pd.DataFrame) -> None:
    """Raise ValueError for scores that would be counted wrongly, naming the first such row."""
    unknown = ~scores["precision"].isin(PRECISIONS) | ~scores["label"].isin(LABELS)
    for bad, what in (
        (unknown, f"have a precision not in {PRECISIONS} or a label not in {LABELS}; correct them"),
        (~np.isfinite(scores["logprob"]), "have a logprob that is no finite number; drop them"),
        (scores.duplicated([*CELL, "date"]), "repeat a date of their fact; drop the duplicates"),
    ):
        if bad.any():
            row = scores[bad].iloc[0]
            raise ValueError(
                f"{bad.sum()} score(s), such as {row['fact_id']} at {row['date']} "
                f"({row['precision']}), {what}"
            )


def tied_pairs(
    cell: NDArray, good: NDArray, bad: NDArray, values: list[NDArray], cells: int
) -> NDArray[np.int64]:
    """Pairs of a `good` and a `bad` row [row] of the same cell that are equal in every one of
    `values` [row], compared as floats; counted for each of the cells 0, 1, ... [cell]."""
    rows = pd.DataFrame({"cell": cell, **{f"value {i}": x for i, x in enumerate(values)}})
    block = rows.groupby(list(rows), sort=False).ngroup().to_numpy()
    blocks = int(block.max()) + 1 if len(block) else 0
    pairs = np.bincount(block[good], minlength=blocks) * np.bincount(block[bad], minlength=blocks)
    cell_of = np.zeros(blocks, dtype=np.intp)
    cell_of[block] = cell
    return np.bincount(cell_of, weights=pairs, minlength=cells).astype(np.int64)


def _wins(cell: NDArray, x: NDArray, good: NDArray, bad: NDArray, cells: int) -> NDArray[np.int64]:
    """Pairs in which the good row has the larger x, strictly."""
    # Within a cell and an equal x, good rows come first: only smaller bad ones are before them.
    order = np.lexsort((bad, x, cell))
    cell, good, bad = cell[order], good[order], bad[order]
    before = np.cumsum(bad) - bad
    per_cell = np.bincount(cell, weights=bad, minlength=cells)
    earlier = np.cumsum(per_cell) - per_cell  # bad rows of the cells before this one
    beaten = before[good] - earlier[cell[good]]
    return np.bincount(cell[good], weights=beaten, minlength=cells).astype(np.int64)


def _lot(fact_id: str) -> int:
    return int(hashlib.sha256(fact_id.encode()).hexdigest()[:12], 16)
