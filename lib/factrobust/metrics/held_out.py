"""Predict questions that were not fitted on: one split, repeated cross-validation, transfer.

Rows are questions, of a table `schemas.Groups`; regressions are those of `metrics.regression`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust import draws
from factrobust.metrics.calibration import relative_gain
from factrobust.metrics.regression import FULL, NUMERIC, Fit, fit, predict, undefined
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
    at most 1. Raises ValueError for more folds than rows.
    """
    if k > len(groups):
        raise ValueError(f"{len(groups)} questions cannot be split into {k} folds")
    drawn = [draws.number(seed, name) for name in groups["group_id"]]
    strata_codes = [pd.factorize(groups[name], sort=True)[0] for name in reversed(strata)]
    order = np.lexsort([np.array(drawn), *strata_codes])
    fold = np.empty(len(groups), dtype=np.int64)
    fold[order] = (np.arange(len(groups)) + draws.number(seed)) % k
    return fold


def ablation(groups: pd.DataFrame, *, seed: int = 0, n_boot: int = 2000) -> pd.DataFrame:
    """Accuracy on a held-out fifth of the questions (table 5), by sets of predictors (table 6).

    Two rows a set and model: `categories` is "all", or "correctness > 0.1": only the categories of
    which the model answers more than that share of all questions, split anew. McFadden's pseudo_r2
    is of the rows fitted on, the accuracy of the n_test others at probability 0.5, the baseline that
    of the training rows' more frequent outcome there, the gain in percent of it. n_unseen test rows
    of categories that no training row has are dropped. `fit` says how it was fitted, or "none: " and
    why no regression can be. Intervals resample test questions.
    """
    rows = []
    for predictors, (model, part) in product(ABLATION, groups.groupby("model", sort=False)):
        share = part.groupby("relation")["correct"].mean()
        easy = part["relation"].isin(share.index[share > MINIMUM])
        for categories, chosen in (("all", part), (f"correctness > {MINIMUM}", part[easy])):
            row = {"model": model, "predictors": ", ".join(predictors), "categories": categories}
            row["n_categories"] = chosen["relation"].nunique()
            rows.append(row | _held_out(chosen, predictors, seed, n_boot))
    names = ["model", "predictors", "categories", "n_categories", "pseudo_r2", "accuracy", "low"]
    names += ["high", "baseline", "gain", "gain_low", "gain_high", "n_train", "n_test", "n_unseen"]
    return pd.DataFrame(rows, columns=[*names, "fit"])


def cross_validate(
    groups: pd.DataFrame,
    predictors: Sequence[str] = FULL,
    *,
    k: int = 5,
    repeats: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Out-of-fold probabilities of every question from `repeats` stratified k-fold splits.

    The prior is the share of right answers in the training rows. The probability is NaN, and `fit`
    says why, where no regression can be fitted or the training rows lack the category.
    """
    tables = []
    for _, part in groups.groupby("model", sort=False):
        for repeat in range(repeats):
            fold = folds(part, k, f"{seed}/{repeat}")
            for j in range(k):
                test, _ = _predicted(part[fold != j], part[fold == j], predictors)
                tables.append(test.assign(repeat=repeat, fold=j))
    columns = ["model", "repeat", "fold", "group_id", "relation", "correct"]
    return pd.concat(tables, ignore_index=True)[[*columns, "probability", "prior", "fit"]]


def predict_across_models(
    groups: pd.DataFrame, *, k: int = 5, repeats: int = 1, seed: int = 0
) -> pd.DataFrame:
    """Fit on one model, predict another, by the numeric predictors; else as `cross_validate`.

    Every ordered pair is predicted out of fold: the rows of `fitted_on` outside a fold predict the
    rows of `predicted` in it. So a question never predicts itself, under another model either, and
    the pairs of one with itself are plain cross-validation.
    """
    tables = []
    questions = groups.drop_duplicates("group_id")  # one fold a question, whatever the model
    for repeat in range(repeats):
        dealt = folds(questions, k, f"{seed}/{repeat}", ["relation"])
        fold = groups["group_id"].map(dict(zip(questions["group_id"], dealt, strict=True)))
        for source, j in product(groups["model"].unique(), range(k)):
            train = groups[(groups["model"] == source) & (fold != j)]
            test, _ = _predicted(train, groups[fold == j], NUMERIC)
            test = test.assign(predicted=test["model"])
            tables.append(test.assign(fitted_on=source, repeat=repeat, fold=j))
    return pd.concat(tables, ignore_index=True)


def _predicted(
    train: pd.DataFrame, test: pd.DataFrame, predictors: Sequence[str]
) -> tuple[pd.DataFrame, Fit | None]:
    """The test rows with probability (NaN where there is none), prior (share of right answers in the
    training rows) and how it was fitted; and the fit."""
    table = test[["model", "group_id", "relation", "correct"]].assign(prior=train["correct"].mean())
    if (reason := undefined(train)) is not None:
        return table.assign(probability=np.nan, fit=f"none: {reason}"), None
    fitted = fit(train, predictors)
    table = table.assign(probability=predict(fitted, test), fit=fitted.method)
    table.loc[table["probability"].isna(), "fit"] = UNSEEN
    return table, fitted


def _held_out(
    groups: pd.DataFrame, predictors: Sequence[str], seed: int, n_boot: int
) -> dict[str, float | str]:
    """The numbers of `ablation` for one model and set of categories."""
    few = f"{len(groups)} questions are too few to hold one in 5 out" if len(groups) < 5 else None
    if (reason := undefined(groups) or few) is not None:
        return {"n_train": 0, "n_test": 0, "n_unseen": 0, "fit": f"none: {reason}"}
    outside = folds(groups, 5, seed) != 0
    test, fitted = _predicted(groups[outside], groups[~outside], predictors)
    seen = test.dropna(subset=["probability"])
    row: dict[str, float | str] = {"n_train": int(outside.sum()), "n_test": len(seen)}
    if fitted is None:
        return row | {"n_unseen": 0, "fit": test["fit"].iloc[0]}
    row |= {"n_unseen": len(test) - len(seen), "fit": fitted.method}
    right, base = (
        ((seen[name] > 0.5) == seen["correct"]).to_numpy(dtype=float)
        for name in ("probability", "prior")
    )
    accuracy = bootstrap_mean(right, n_boot=n_boot)
    gain = bootstrap_statistic(relative_gain, [right, base], n_boot=n_boot)
    row |= {"pseudo_r2": fitted.pseudo_r2, "baseline": float(base.mean())}
    row |= {"accuracy": accuracy.mean, "low": accuracy.low, "high": accuracy.high}
    return row | {"gain": gain.mean, "gain_low": gain.low, "gain_high": gain.high}
