"""How often are the rules that tell an answer's source right (thesis, 3.2.2 and 6.1.1)?

They are measured against labels that were given to answers without knowing any rule's verdict
(`datasets.contexts.load_labels`). A rule is a function of the parametric answer, the counterfactual and
the answer given, in this order, and says where the last comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pandas as pd

from factrobust.metrics.context import exact_share, published_source, robust_source, text_source
from factrobust.statistics import Interval

Rule = Callable[[str, str, str], str]
RULES: Mapping[str, Rule] = {"code": published_source, "text": text_source, "ours": robust_source}
TEXTS = ["parametric", "counterfactual", "answer"]
NO_ANSWER = ("none", "empty", "other")  # what a rule may say of an answer that says nothing


class Agreement(NamedTuple):
    """Of two series of labels: the share of equal ones with exact bounds, and Cohen's kappa (1960)."""

    share: Interval
    kappa: float


def agreement(one: pd.Series, other: pd.Series) -> Agreement:
    """How well two series of labels of the same answers agree, [answer].

    kappa is 1 for full agreement and 0 for that of chance, drawn from each series' own shares; NaN
    where both give one label throughout.
    """
    share = exact_share((one == other).to_numpy(dtype=float))
    chance = (one.value_counts(normalize=True) * other.value_counts(normalize=True)).sum()
    return Agreement(
        share, float((share.mean - chance) / (1 - chance)) if chance < 1 else float("nan")
    )


def verdicts(labels: pd.DataFrame, rules: Mapping[str, Rule] = RULES) -> pd.DataFrame:
    """What each rule says of each labelled answer: the columns of `labels`, rule, verdict, right.

    A verdict is right if it is the label; of an answer that says nothing also "empty" or "other".
    """
    parts = [
        labels.assign(rule=name, verdict=[rule(*texts) for texts in labels[TEXTS].to_numpy()])
        for name, rule in rules.items()
    ]
    table = pd.concat(parts, ignore_index=True)
    nothing = (table["label"] == "none") & table["verdict"].isin(NO_ANSWER)
    return table.assign(right=(table["verdict"] == table["label"]) | nothing)


def confusion(said: pd.DataFrame) -> pd.DataFrame:
    """How often each rule gave each verdict to each label: rows (rule, label), columns verdicts."""
    return pd.crosstab([said["rule"], said["label"]], said["verdict"])


def right_shares(said: pd.DataFrame) -> pd.DataFrame:
    """How often each rule is right, with exact bounds: rule, label ("all", then each that was given),
    share, low, high, n."""
    whole = said.assign(label="all")
    rows = [
        (*key, *exact_share(part["right"].to_numpy(dtype=float)))
        for key, part in pd.concat([whole, said]).groupby(["rule", "label"], sort=False)
    ]
    return pd.DataFrame(rows, columns=["rule", "label", "share", *Interval._fields[1:]])
