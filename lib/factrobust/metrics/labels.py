"""How often is a rule right, measured against labels that were given without knowing its verdicts?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from factrobust.statistics import Interval, binomial_interval


class Agreement(NamedTuple):
    """Of two series of labels: the share of equal ones with exact bounds, and Cohen's kappa (1960)."""

    share: Interval
    kappa: float


def agreement(one: pd.Series, other: pd.Series) -> Agreement:
    """How well two series of labels of the same rows agree, [row].

    kappa is 1 for full agreement and 0 for that of chance, drawn from each series' own shares; NaN
    where both give one label throughout.
    """
    share = exact_share(one == other)
    chance = (one.value_counts(normalize=True) * other.value_counts(normalize=True)).sum()
    kappa = (share.mean - chance) / (1 - chance) if chance < 1 else float("nan")
    return Agreement(share, float(kappa))


def exact_share(values: pd.Series) -> Interval:
    """The share of true ones with its exact bounds; NaN without a row."""
    if not len(values):
        return Interval(np.nan, np.nan, np.nan, 0)
    low, high = binomial_interval([values.sum()], [len(values)])
    return Interval(float(values.mean()), float(low[0]), float(high[0]), len(values))


def rule_errors(
    labels: pd.DataFrame, rules: Sequence[str], truth: str, by: Sequence[str] = ()
) -> pd.DataFrame:
    """How often the columns `rules` (bool) differ from the column `truth` (bool), with exact bounds.

    A row a rule, combination of `by`, and what is counted, with mean, low, high, n: the "error" of all
    rows, and the shares of "false positives" among the rows that are not true, of "false negatives"
    among those that are.
    """
    rows = []
    for key, part in labels.groupby(list(by)) if by else [((), labels)]:
        for rule in rules:
            wrong, true = part[rule] != part[truth], part[truth]
            counted = {"error": wrong, "false positives": wrong[~true]}
            counted["false negatives"] = wrong[true]
            rows += [(*key, rule, name, *exact_share(of)) for name, of in counted.items()]
    return pd.DataFrame(rows, columns=[*by, "rule", "what", *Interval._fields])
