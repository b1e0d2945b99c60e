"""Part 2: how near to the boundaries of a fact's validity do the first errors lie?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from factrobust.metrics.time import CELL, check

SIDES = ("before", "after")


def nearest_misses(scores: pd.DataFrame) -> pd.DataFrame:
    """The incorrect date nearest to the start, and to the end, that beats or ties a correct date.

    A miss is an incorrect date whose logprob is at least that of the weakest correct date of its
    fact and precision. One row for each model, prompt_format, fact_id, precision and side ("before"
    the start or "after" the end) on which incorrect dates were tested: tested (number of incorrect
    dates there), misses (of them), nearest_tested (years_off of the nearest tested one: no miss can
    be nearer), date and years_off of the nearest miss (missing and NaN without a miss). years_off
    is signed, in years from the boundary to the date's middle: negative before the start.

    Facts without a correct date at a precision have no weakest one and are left out there.
    """
    check(scores)
    scores = scores.reset_index(drop=True)
    correct = scores["logprob"].where(scores["label"] == "correct")
    weakest = correct.groupby([scores[name] for name in CELL]).transform("min")
    wrong = scores[(scores["label"] == "incorrect") & weakest.notna()]
    wrong = wrong.assign(
        side=np.where(wrong["alpha"] < 0, *SIDES),
        miss=wrong["logprob"] >= weakest[wrong.index],
        distance=wrong["years_off"].abs(),
    )
    where = [*CELL, "side"]
    near = wrong.sort_values("distance", kind="stable")
    groups = wrong.groupby(where, sort=False)
    table = groups.agg(tested=("miss", "size"), misses=("miss", "sum")).reset_index()
    first = near.drop_duplicates(where).rename(columns={"years_off": "nearest_tested"})
    missed = near[near["miss"]].drop_duplicates(where)
    table = table.merge(first[[*where, "nearest_tested"]], on=where)
    return table.merge(missed[[*where, "date", "years_off"]], on=where, how="left")
