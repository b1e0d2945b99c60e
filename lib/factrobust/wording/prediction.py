"""Predict questions that were not fitted on, and say how good predictions are.

Rows are questions, of a table such as `Study.predictors`; regressions are those of
`wording.regression`. Fits are taken as given: intervals resample questions, or whole relations,
each with all its repeats.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust import draws, intervals
from factrobust.intervals import Array, Interval, bootstrap_statistic, ratio_of_sums
from factrobust.tables import stacked
from factrobust.wording.regression import (
    COLUMNS,
    FULL,
    evidence,
    fit,
    mixed,
    predict,
    undefined,
)

Sums = tuple[Array, Array]  # above and below a fraction
RELATION = "relation alone"
# What may foretell a right answer, from the cheapest on: the relation is known without asking, the
# sum is of one answer, bare SCons needs all wordings, and Cert ten samples more.
SUM = "relation + sum"
SUM_AND_BARE = "relation + sum + bare SCons"
CHEAP = {
    SUM: ("QCat", "logprob_sum"),
    SUM_AND_BARE: ("QCat", "logprob_sum", "scons_bare"),
}
WITH_SAMPLES = {
    "relation + sum + bare SCons + Cert": ("QCat", "logprob_sum", "scons_bare", "cert"),
    "the paper's model": ("QCat", "SCons", "Cert"),
}
UNSEEN = "none: the category is not among the rows fitted on"


def folds(groups: pd.DataFrame, k: int, seed: int | str = 0) -> NDArray[np.int64]:
    """Fold 0 ... k - 1 of each row, [row], stratified by relation and outcome. Rows of a stratum
    are ordered by a hash of seed and group_id and dealt out in turn: the folds' sizes, and their
    shares of a stratum, differ by at most 1."""
    lots = [draws.hash48(seed, name) for name in groups["group_id"]]
    outcome, _ = pd.factorize(groups["correct"], sort=True)
    relation, _ = pd.factorize(groups["relation"], sort=True)
    order = np.lexsort([np.array(lots), outcome, relation])
    fold = np.empty(len(groups), dtype=np.int64)
    fold[order] = (np.arange(len(groups)) + draws.hash48(seed)) % k
    return fold


def cross_validate(
    groups: pd.DataFrame,
    predictors: Sequence[str] = FULL,
    *,
    k: int = 5,
    repeats: int = 10,
    seed: int = 0,
    interactions: bool = True,
) -> pd.DataFrame:
    """Out-of-fold probabilities of every question from `repeats` stratified k-fold splits.

    QCat by itself is `relation_share`. `evidence` is that of `regression.evidence`. prior is the
    share of right answers in the training rows. The probability is NaN where nothing can be fitted
    or the category is new; `fit` says why.
    """
    asked = ["model", "group_id", "relation", "correct"]
    used = [COLUMNS.get(predictor, predictor) for predictor in predictors]
    groups = groups[list(dict.fromkeys([*asked, *used]))]
    tables = []
    for (_, part), repeat in product(groups.groupby("model", sort=False), range(repeats)):
        fold = folds(part, k, f"{seed}/{repeat}")
        for j in range(k):
            train = part[fold != j]
            test = part[fold == j]
            predicted = _predicted(train, test, predictors, interactions)
            tables.append(predicted.assign(repeat=repeat, fold=j))
    columns = [
        "model",
        "repeat",
        "fold",
        "group_id",
        "relation",
        "correct",
        "probability",
        "evidence",
        "prior",
        "fit",
    ]
    return pd.concat(tables, ignore_index=True)[columns]


def ladder(
    groups: pd.DataFrame,
    sets: Mapping[str, Sequence[str]],
    *,
    repeats: int = 3,
    seed: int = 0,
) -> pd.DataFrame:
    """`cross_validate` for every `predictor`: "majority" (the training rows' share of right
    answers), RELATION, and each of `sets` (name: predictors), those of the paper's names with
    interactions."""
    every = {"majority": (), RELATION: ("QCat",), **sets}
    tables = {}
    for name, predictors in every.items():
        tables[name] = cross_validate(
            groups,
            predictors,
            repeats=repeats,
            seed=seed,
            interactions=set(predictors) <= set(FULL),
        )
    return stacked(tables, "predictor")


def judged(
    groups: pd.DataFrame,
    sets: Mapping[str, Sequence[str]],
    *,
    reference: str,
    repeats: int = 3,
    seed: int = 0,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """How well `ladder`'s predictions tell right answers from wrong ones: a row a model, predictor
    and measure, `brier` or `auc_within` (of the `evidence`, over all pairs of a right and a wrong
    answer of one relation), as `compared` has it. Only relations with right and wrong answers count
    (`mixed`)."""
    answered = groups.dropna(subset=["logprob_sum"])
    rows = ladder(mixed(answered), sets, repeats=repeats, seed=seed)
    rows = rows[rows["predictor"] != "majority"]
    by_probability = compared(rows, reference=reference, n_boot=n_boot)
    by_evidence = compared(
        rows.drop(columns="fold"),
        value="evidence",
        reference=reference,
        n_boot=n_boot,
    )
    brier = by_probability[by_probability["measure"] == "brier"]
    auc = by_evidence[by_evidence["measure"] == "auc_within"]
    return pd.concat([brier, auc], ignore_index=True)


def relation_share(train: pd.DataFrame, test: pd.DataFrame) -> Array:
    """Share of right answers in each test row's relation among the training rows, [row]. One answer
    with the overall share is added to each relation, so that no share is 0 or 1."""
    right = train.groupby("relation")["correct"].agg(["sum", "size"]).astype(float)
    known = right.reindex(test["relation"], fill_value=0.0).to_numpy()
    return (known[:, 0] + train["correct"].mean()) / (known[:, 1] + 1)


def _predicted(
    train: pd.DataFrame,
    test: pd.DataFrame,
    predictors: Sequence[str],
    interactions: bool = True,
) -> pd.DataFrame:
    """The test rows with probability (or NaN), prior (share of right training answers) and
    `fit`."""
    table = test[["model", "group_id", "relation", "correct"]].assign(prior=train["correct"].mean())
    if tuple(predictors) == ("QCat",):
        return table.assign(
            probability=relation_share(train, test),
            evidence=0.0,
            fit="shares",
        )
    if (reason := undefined(train)) is not None:
        return table.assign(
            probability=np.nan,
            evidence=np.nan,
            fit=f"none: {reason}",
        )
    # slopes are in units of all rows, in which the predictors of all folds can be compared
    fitted = fit(train, predictors, interactions=interactions)
    table = table.assign(probability=predict(fitted, test), fit=fitted.method)
    table["evidence"] = evidence(fitted, test)
    table.loc[table["probability"].isna(), "fit"] = UNSEEN
    return table


def compared(
    table: pd.DataFrame,
    by: Sequence[str] = ("model",),
    value: str | Mapping[str, str] = "probability",
    *,
    reference: str = RELATION,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """How well the values of each `predictor` tell right answers from wrong ones, on the same
    questions.

    `table` has a row a question, predictor and repeat; or a row a question, with `value`
    {predictor: column}. Returns a row a measure, predictor and combination of `by`. auc is the
    share of pairs of a right and a wrong answer that the right one wins, ties half; auc_within of
    pairs of one relation, pooled. Pairs are of one fold, summed over folds and repeats.
    Probabilities also have an accuracy (1/2 at probability 1/2) and a brier score.

    `difference` is to the predictor `reference`. Questions without a value under all predictors are
    left out (n_missing). Intervals draw whole relations.
    """
    if not isinstance(value, str):
        keys = [*by, "group_id", "relation", "correct"]
        named = table[keys].assign(**{name: table[column] for name, column in value.items()})
        table = named.melt(keys, list(value), "predictor", value_name="score")
        value = "score"
    rows: list[tuple] = []
    for key, part in table.groupby(list(by), sort=False):
        is_lacking = ~np.isfinite(part[value].astype(float))
        lacking = part.loc[is_lacking, "group_id"]
        known = part[~part["group_id"].isin(lacking)]
        counts = (
            known["group_id"].nunique(),
            known["relation"].nunique(),
            lacking.nunique(),
        )
        sums = {name: _sums(part, value) for name, part in known.groupby("predictor", sort=False)}
        for name, measures in sums.items():
            for measure, found in measures.items():
                mean = _of_relations([found], n_boot)
                difference = intervals.NOTHING
                if reference in sums:
                    difference = _of_relations([found, sums[reference][measure]], n_boot)
                rows.append((*key, name, measure, *mean[:3], *difference[:3], *counts))
    columns = [
        *by,
        "predictor",
        "measure",
        "mean",
        "low",
        "high",
        "difference",
        "difference_low",
        "difference_high",
        "n",
        "relations",
        "n_missing",
    ]
    return pd.DataFrame(rows, columns=columns)


def _sums(rows: pd.DataFrame, value: str) -> dict[str, Sums]:
    """Of each measure of `compared`, the sums above and below its fraction: [relation], or of pairs
    [relation of the right answer, of the wrong one]."""
    relation, names = pd.factorize(rows["relation"], sort=True)
    score = rows[value].to_numpy(dtype=float)
    correct = rows["correct"].to_numpy(dtype=float)
    above, below = _pairs(rows, score, correct, relation, len(names))
    pairs: dict[str, Sums] = {
        "auc": (above, below),
        "auc_within": (np.diag(above), np.diag(below)),
    }
    if value != "probability":
        return pairs
    hit = np.where(score == 0.5, 0.5, (score > 0.5) == correct)
    each = np.bincount(relation).astype(float)
    hits = np.bincount(relation, hit).astype(float)
    squares = np.bincount(relation, (score - correct) ** 2).astype(float)
    return {"accuracy": (hits, each), "brier": (squares, each)} | pairs


def _pairs(
    rows: pd.DataFrame,
    score: Array,
    correct: Array,
    relation: NDArray,
    n: int,
) -> Sums:
    """The pairs of a right and a wrong answer that the right one wins, and all, of one fold and
    repeat each: [relation of the right answer, of the wrong one]."""
    folds = rows.reindex(columns=["repeat", "fold"], fill_value=0)
    _, level = np.unique(np.round(score, 12), return_inverse=True)
    above = np.zeros((n, n))
    below = np.zeros((n, n))
    for at in folds.groupby(["repeat", "fold"]).indices.values():
        right, wrong = np.zeros((2, level.max() + 1, n))
        np.add.at(right, (level[at], relation[at]), correct[at])
        np.add.at(wrong, (level[at], relation[at]), 1 - correct[at])
        lower = np.cumsum(wrong, axis=0) - wrong / 2
        above += right.T @ lower  # exact: multiples of 1/2
        below += np.outer(right.sum(axis=0), wrong.sum(axis=0))
    return above, below


def _fraction(weights: Array, above: Array, below: Array) -> Array:
    """The ratio of sums in resamples that draw relations `weights` times, [resample]; NaN for 0 /
    0. A relation drawn twice is two relations, and its answers make no pairs with their copies."""
    if above.ndim == 1:
        return ratio_of_sums(weights, above, below)
    won = _drawn_pairs(weights, above)
    pairs = _drawn_pairs(weights, below)
    return intervals.ratio(won, pairs)


def _drawn_pairs(weights: Array, pairs: Array) -> Array:
    """Sums of pairs [relation, relation] in resamples; exact, too."""
    across = pairs * (1 - np.eye(len(pairs)))
    within = np.diag(pairs)
    return np.sum(weights @ across * weights + weights * within, axis=1)


def _of_relations(terms: Sequence[Sums], n_boot: int) -> Interval:
    """A pooled ratio, or the difference of two, and its bootstrap interval."""

    def statistic(weights: Array, _: Array) -> Array:
        first, *others = (_fraction(weights, *term) for term in terms)
        return first - sum(others)

    return bootstrap_statistic(statistic, [np.arange(len(terms[0][0]))], n_boot=n_boot)
