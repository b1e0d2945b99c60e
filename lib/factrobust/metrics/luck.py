"""Part 2, beyond the paper: how much of robustness is luck, small margins, or rounding, and how near
to the boundaries of a fact's validity do the first errors lie?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from factrobust.metrics.time import CELL, GLOBAL, KEY, cells, chance, matches

SIDES = ("before", "after")
# What differs between two scorings of a fact at one precision, and how precisions and facts join.
CHANGES = {"false_ties_first": "sum", "false_ties_second": "sum", "largest_difference": "max"}


def margin_curves(matched: pd.DataFrame, margins: Sequence[float]) -> pd.DataFrame:
    """R(m): is the lowest correct logprob more than m above the highest incorrect one?

    `margins` are the required margins m in nats; R(0) is the paper's R, m < 0 forgives errors of up
    to -m, m > 0 asks for a factor of e^m in probability. One row for each row of `matched`, a table
    `schemas.Matched`, and m (`required`). Undefined rows are left out.
    """
    defined = matched.loc[matched["margin"].notna(), [*CELL, "margin"]]
    table = defined.merge(pd.Series(margins, dtype=float, name="required"), how="cross")
    return table.assign(robust=table.pop("margin") > table["required"])


def by_number_of_dates(scores: pd.DataFrame, incorrect: Sequence[int]) -> pd.DataFrame:
    """Probability that a fact is robust when fewer of its incorrect dates are tested.

    For every k of `incorrect`, the share of all ways to choose k of a fact's n incorrect dates for
    which every match is won. It is counted, not sampled: C(b, k) / C(n, k) if b of them lie strictly
    below the lowest correct one. `n_incorrect` is k. Only facts that have the largest number of
    `incorrect` dates at the precision, so that all points of a curve are of the same facts.
    """
    rows = []
    for cell, good, bad in cells(scores):
        if len(good) and len(bad) >= max(incorrect):
            below = int(np.searchsorted(bad, good[0], side="left"))
            for k in incorrect:
                robust = math.comb(below, k) / math.comb(len(bad), k)
                rows.append((*cell, len(good), k, robust, chance(len(good), k)))
    return pd.DataFrame(rows, columns=[*CELL, "n_correct", "n_incorrect", "robust", "chance"])


def compare_scorings(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """The same statements scored twice, for example in float32 and bfloat16: what changes?

    One row a cell of `schemas.Matched`: matches, robust_first, robust_second, equal (boolean: the same
    verdict, NA if undefined), false_ties_first (pairs of a correct and an incorrect date that are
    equal as floats in the first and differ in the second), false_ties_second (the other way),
    largest_difference (of logprob, over all dates, in nats).
    """
    matched = [matches(table) for table in (first, second)]
    on = [*CELL, "date"]
    both = first.merge(second[[*on, "logprob"]], on=on, suffixes=("", "_second"))
    rows = []
    for cell, part in both.groupby(CELL, sort=False):
        x = part[["logprob", "logprob_second"]].to_numpy()
        good, bad = (x[part["label"] == label] for label in ("correct", "incorrect"))
        tied = good[:, None] == bad  # [correct, incorrect, scoring]
        false_ties = [int((tied[..., k] & ~tied[..., 1 - k]).sum()) for k in (0, 1)]
        rows.append((*cell, *false_ties, np.abs(x[:, 0] - x[:, 1]).max()))
    single = pd.DataFrame(rows, columns=[*CELL, *CHANGES])
    joint = single.groupby(KEY, sort=False).agg(CHANGES).assign(precision=GLOBAL)
    changes = pd.concat([single, joint.reset_index()], ignore_index=True)
    table = matched[0][[*CELL, "matches", "robust"]].merge(
        matched[1][[*CELL, "robust"]], on=CELL, suffixes=("_first", "_second")
    )
    table["equal"] = table["robust_first"] == table["robust_second"]
    return table.merge(changes, on=CELL)


def summarise_scorings(compared: pd.DataFrame) -> pd.DataFrame:
    """`compare_scorings` over facts: `equal` is the share of equal verdicts among the `facts` that are
    defined."""
    facts = compared.groupby(["model", "prompt_format", "precision"], sort=False)
    table = facts["equal"].agg(facts="count", equal="mean")
    return table.join(facts.agg({"matches": "sum"} | CHANGES)).reset_index()


def round_to_bfloat16(values: pd.Series) -> pd.Series:
    """Numbers rounded to the nearest bfloat16 (8 significant bits; ties to even), as float64."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return pd.Series(rounded.view(np.float32).astype(float), index=values.index)


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
