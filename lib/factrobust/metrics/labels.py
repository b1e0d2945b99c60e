"""How often is a rule right, measured against labels that were given without knowing its verdicts?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from factrobust.statistics import Interval, exact_share, exact_table


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


def rule_errors(labels: pd.DataFrame, rules: Sequence[str], truth: str) -> pd.DataFrame:
    """How often the columns `rules` (bool) differ from the column `truth` (bool), with exact bounds.

    A row a rule and what is counted, with mean, low, high, n: the "error" of all rows, and the shares
    of "false positives" among the rows that are not true, of "false negatives" among those that are.
    """
    rows = labels.melt([truth], list(rules), "rule", value_name="said")
    rows["wrong"] = rows["said"] != rows[truth]
    of = {
        "error": rows,
        "false positives": rows[~rows[truth]],
        "false negatives": rows[rows[truth]],
    }
    parts = (part.assign(what=name) for name, part in of.items())
    return exact_table(pd.concat(parts), ["rule", "what"], "wrong")
