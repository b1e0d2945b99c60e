"""Predict questions that were not fitted on: one split, repeated cross-validation, transfer.

Tables are those of `metrics.wording.groups`; regressions those of `metrics.regression`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust import draws
from factrobust.metrics.calibration import relative_gain
from factrobust.metrics.regression import FULL, NUMERIC, Fit, fit, predict, seen, undefined
from factrobust.statistics import bootstrap_mean, bootstrap_statistic

ABLATION = (
    FULL,
    ("QCat", "SCons", "Cert"),
    ("SPop", "SCons", "Cert"),
    ("SCons", "Cert"),
    ("Cert",),
    ("SCons",),
)  # table 6
UNSEEN = "none: the category is not among the rows fitted on"
MINIMUM = 0.1  # correctness of the categories in the right half of table 5


def folds(
    groups: pd.DataFrame,
    k: int,
    seed: int | str = 0,
    strata: Sequence[str] = ("relation", "correct"),
) -> NDArray[np.int64]:
    """Fold 0 ... k - 1 of each row, [row], stratified.

    Rows are ordered by `strata` and then by a hash of the seed and group_id, and dealt out in turn
    from a fold that the seed draws: the folds' sizes, and the rows of a stratum in each, differ by
    at most 1. Raises ValueError for
    fewer than 2 folds or more folds than rows.
    """
    if not 2 <= k <= len(groups):
        raise ValueError(
            f"{len(groups)} questions cannot be split into {k} folds; take 2 or more folds, and no "
            "more than questions"
        )
    drawn = [draws.number(seed, name) for name in groups["group_id"]]
    strata_codes = [pd.factorize(groups[name], sort=True)[0] for name in reversed(strata)]
    order = np.lexsort([np.array(drawn), *strata_codes])
    fold = np.empty(len(groups), dtype=np.int64)
    fold[order] = (np.arange(len(groups)) + draws.number(seed)) % k
    return fold


def performance(
    groups: pd.DataFrame,
    predictors: Sequence[str] = FULL,
    *,
    k: int = 5,
    seed: int = 0,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """Accuracy on a held-out k-th of the questions, 20% for k = 5 (table 5).

    Two rows a model: `categories` is "all", or "correctness > 0.1": only the categories of which
    the model answers more than that share of all questions, split anew. Columns: model, predictors,
    categories, n_categories, pseudo_r2 (McFadden, of the rows fitted on), accuracy (of the test
    rows at probability 0.5), low, high, baseline (accuracy of the training rows' more frequent
    outcome on the same test rows), gain (percent of the baseline), gain_low, gain_high, n_train,
    n_test, n_unseen (test rows of categories that no training row has; they are dropped), fit (how
    it was fitted, or "none: " and why no regression can be). Intervals resample test questions.
    """
    rows = []
    for model, part in groups.groupby("model", sort=False):
        share = part.groupby("relation")["correct"].mean()
        easy = part["relation"].isin(share.index[share > MINIMUM])
        for categories, kept in (("all", part), (f"correctness > {MINIMUM}", part[easy])):
            row = {"model": model, "predictors": ", ".join(predictors), "categories": categories}
            row["n_categories"] = kept["relation"].nunique()
            rows.append(row | _held_out(kept, predictors, k, seed, n_boot))
    names = ["model", "predictors", "categories", "n_categories", "pseudo_r2", "accuracy", "low"]
    names += ["high", "baseline", "gain", "gain_low", "gain_high", "n_train", "n_test", "n_unseen"]
    return pd.DataFrame(rows, columns=[*names, "fit"])


def ablation(
    groups: pd.DataFrame,
    sets: Sequence[Sequence[str]] = ABLATION,
    *,
    k: int = 5,
    seed: int = 0,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """`performance` of each set of predictors, on the same splits (table 6)."""
    tables = [performance(groups, s, k=k, seed=seed, n_boot=n_boot) for s in sets]
    return pd.concat(tables, ignore_index=True)


def cross_validate(
    groups: pd.DataFrame,
    predictors: Sequence[str] = FULL,
    *,
    k: int = 5,
    repeats: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Out-of-fold probabilities of every question from `repeats` stratified k-fold splits.

    Columns: model, repeat, fold, group_id, relation, correct, probability, prior (share of right
    answers in the training rows), fit. The probability is NaN, and `fit` says why, where no
    regression can be fitted or the training rows lack the category.
    """
    tables = []
    for _, part in groups.groupby("model", sort=False):
        for repeat in range(repeats):
            fold = folds(part, k, f"{seed}/{repeat}")
            for j in range(k):
                test = _predicted(_fit(part[fold != j], predictors), part[fold == j])
                tables.append(test.assign(repeat=repeat, fold=j))
    columns = ["model", "repeat", "fold", "group_id", "relation", "correct"]
    return pd.concat(tables, ignore_index=True)[[*columns, "probability", "prior", "fit"]]


def transfer(
    groups: pd.DataFrame,
    over: str,
    predictors: Sequence[str] = NUMERIC,
    *,
    k: int = 5,
    repeats: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    """Fit on one model, predict another (over="model"), or likewise with relations.

    Every ordered pair is predicted out of fold: the rows of `fitted_on` outside a fold predict the
    rows of `predicted` in it. So a question never predicts itself, under another model either, and
    the pairs of one with itself are plain cross-validation. Columns: fitted_on, predicted, and those
    of `cross_validate`. Relations are compared within each model, and QCat cannot carry over from
    one to another. Raises ValueError for another `over`, or QCat over relations.
    """
    if over not in ("model", "relation"):
        raise ValueError(f"transfer goes over 'model' or 'relation', not {over!r}")
    if over == "relation" and "QCat" in predictors:
        raise ValueError("QCat cannot carry over to another relation; leave it out")
    parts = [part for _, part in groups.groupby("model", sort=False)]
    tables = []
    for part in parts if over == "relation" else [groups]:
        questions = part.drop_duplicates("group_id")  # one fold a question, whatever the model
        for repeat in range(repeats):
            dealt = folds(questions, k, f"{seed}/{repeat}", ["relation"])
            fold = part["group_id"].map(dict(zip(questions["group_id"], dealt, strict=True)))
            for source, j in product(part[over].unique(), range(k)):
                made = _fit(part[(part[over] == source) & (fold != j)], predictors)
                table = _predicted(made, part[fold == j])
                names = {"fitted_on": source, "predicted": table[over], "repeat": repeat, "fold": j}
                tables.append(table.assign(**names))
    columns = ["fitted_on", "predicted", "model", "repeat", "fold", "group_id", "relation"]
    columns += ["correct", "probability", "prior", "fit"]
    return pd.concat(tables, ignore_index=True)[columns]


class _Made(NamedTuple):
    fitted: Fit | None
    prior: float  # share of right answers in the rows fitted on
    method: str


def _fit(train: pd.DataFrame, predictors: Sequence[str]) -> _Made:
    """The fit of the training rows, or why there is none."""
    prior = float(train["correct"].mean()) if len(train) else np.nan
    if (reason := undefined(train)) is not None:
        return _Made(None, prior, f"none: {reason}")
    fitted = fit(train, predictors)
    return _Made(fitted, prior, fitted.estimates.method)


def _predicted(made: _Made, test: pd.DataFrame) -> pd.DataFrame:
    """The test rows with probability (NaN where there is none), prior and fit."""
    table = test[["model", "group_id", "relation", "correct"]].assign(
        probability=np.nan, prior=made.prior, fit=made.method
    )
    if made.fitted is not None:
        known = seen(made.fitted, test)
        table.loc[known, "probability"] = predict(made.fitted, test[known])
        table.loc[~known, "fit"] = UNSEEN
    return table


def _held_out(
    groups: pd.DataFrame, predictors: Sequence[str], k: int, seed: int, n_boot: int
) -> dict[str, float | str]:
    """The numbers of `performance` for one model and set of categories."""
    few = f"{len(groups)} questions are too few to hold one in {k} out" if len(groups) < k else None
    if (reason := undefined(groups) or few) is not None:
        return {"n_train": 0, "n_test": 0, "n_unseen": 0, "fit": f"none: {reason}"}
    outside = folds(groups, k, seed) != 0
    made = _fit(groups[outside], predictors)
    test = _predicted(made, groups[~outside])
    row: dict[str, float | str] = {"n_train": int(outside.sum()), "fit": made.method}
    row["n_unseen"] = int((test["fit"] == UNSEEN).sum())
    test = test.dropna(subset=["probability"])
    row["n_test"] = len(test)
    if made.fitted is None or test.empty:
        return row
    row["pseudo_r2"] = made.fitted.pseudo_r2
    right = ((test["probability"] > 0.5) == test["correct"]).to_numpy(dtype=float)
    base = ((test["prior"] > 0.5) == test["correct"]).to_numpy(dtype=float)
    accuracy = bootstrap_mean(right, n_boot=n_boot, seed=seed)
    gain = bootstrap_statistic(relative_gain, [right, base], n_boot=n_boot, seed=seed)
    row |= {"accuracy": accuracy.mean, "low": accuracy.low, "high": accuracy.high}
    row |= {"baseline": float(base.mean()), "gain": gain.mean}
    return row | {"gain_low": gain.low, "gain_high": gain.high}
