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
from factrobust.intervals import Array, Interval, bootstrap_statistic
from factrobust.wording.regression import FULL, design, evidence, fit_logistic, mixed, predict

Sums = tuple[Array, Array]  # above and below a fraction, [relation, relation]
FOLDS = 5
RELATION = "relation alone"
# What may foretell a right answer, from the cheapest on: the relation is known without asking, the
# sum is of one answer, and bare SCons needs all wordings.
SUM = "relation + sum"
SUM_AND_BARE = "relation + sum + bare SCons"
CHEAP = {
    SUM: ("QCat", "logprob_sum"),
    SUM_AND_BARE: ("QCat", "logprob_sum", "scons_bare"),
}


def folds(groups: pd.DataFrame, seed: int | str) -> NDArray[np.int64]:
    """Fold 0 ... FOLDS - 1 of each row, [row], stratified by relation and outcome. Rows of a
    stratum are ordered by a hash of seed and group_id and dealt out in turn: the folds' sizes, and
    their shares of a stratum, differ by at most 1."""
    lots = [draws.hash48(seed, name) for name in groups["group_id"]]
    rows = groups[["relation", "correct"]].assign(lot=lots).reset_index(drop=True)
    order = rows.sort_values(["relation", "correct", "lot"]).index.to_numpy()
    fold = np.empty(len(groups), dtype=np.int64)
    fold[order] = (np.arange(len(groups)) + draws.hash48(seed)) % FOLDS
    return fold


def ladder(
    groups: pd.DataFrame,
    sets: Mapping[str, Sequence[str]],
    *,
    repeats: int = 3,
    seed: int = 0,
) -> pd.DataFrame:
    """Out-of-fold probabilities of every question and `predictor`, from `repeats` stratified
    splits.

    Predictors are "majority" (the training rows' share of right answers), RELATION
    (`relation_share`), and each of `sets` (name: predictors), those of the paper's names with
    interactions. `evidence` is that of `regression.evidence`. Both are NaN where the training rows
    are all right or all wrong, or lack the relation.
    """
    every = {"majority": (), RELATION: ("QCat",), **sets}
    tables = []
    for _, part in groups.groupby("model", sort=False):
        splits = [folds(part, f"{seed}/{repeat}") for repeat in range(repeats)]
        for name, predictors in every.items():
            whole = design(part, predictors, interactions=set(predictors) <= set(FULL))
            for (repeat, fold), j in product(enumerate(splits), range(FOLDS)):
                held_out = _held_out(part, whole, fold == j, name)
                tables.append(held_out.assign(predictor=name, repeat=repeat, fold=j))
    return pd.concat(tables, ignore_index=True)


def _held_out(
    part: pd.DataFrame,
    whole: pd.DataFrame,
    held: NDArray[np.bool_],
    predictor: str,
) -> pd.DataFrame:
    """The questions that are `held` out, with the probability and evidence that the others tell;
    `whole` is their design."""
    train = part[~held]
    test = part.loc[held, ["model", "group_id", "relation", "correct"]]
    if predictor == RELATION:
        return test.assign(probability=relation_share(train, test), evidence=0.0)
    if train["correct"].nunique() < 2:
        return test.assign(probability=np.nan, evidence=np.nan)
    fitted = fit_logistic(whole[~held], train["correct"])
    found = test.assign(
        probability=predict(fitted, whole[held]),
        evidence=evidence(fitted, whole[held]),
    )
    is_new = ~test["relation"].isin(train["relation"])
    found.loc[is_new, ["probability", "evidence"]] = np.nan
    return found


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
    answer of one relation), as `compare_predictors` has it. Only relations with right and wrong
    answers count (`mixed`)."""
    answered = groups.dropna(subset=["logprob_sum"])
    rows = ladder(
        mixed(answered),
        sets,
        repeats=repeats,
        seed=seed,
    )
    rows = rows[rows["predictor"] != "majority"]
    by_probability = compare_predictors(rows, reference=reference, n_boot=n_boot)
    by_evidence = compare_predictors(
        rows.drop(columns="fold"),
        value="evidence",
        reference=reference,
        n_boot=n_boot,
    )
    brier = by_probability.query("measure == 'brier'")
    auc = by_evidence.query("measure == 'auc_within'")
    return pd.concat([brier, auc], ignore_index=True)


def relation_share(train: pd.DataFrame, test: pd.DataFrame) -> Array:
    """Share of right answers in each test row's relation among the training rows, [row]. One answer
    with the overall share is added to each relation, so that no share is 0 or 1."""
    right = train.groupby("relation")["correct"].agg(["sum", "size"]).astype(float)
    known = right.reindex(test["relation"], fill_value=0.0).to_numpy()
    return (known[:, 0] + train["correct"].mean()) / (known[:, 1] + 1)


def compare_predictors(
    table: pd.DataFrame,
    by: Sequence[str] = ("model",),
    value: str = "probability",
    *,
    reference: str = RELATION,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """How well the values of each `predictor` tell right answers from wrong ones, on the same
    questions.

    `table` has a row a question, predictor and, if there are any, repeat. Returns a row a measure,
    predictor and combination of `by`. auc is the share of pairs of a right and a wrong answer that
    the right one wins, ties half; auc_within of pairs of one relation, pooled. Pairs are of one
    fold, summed over folds and repeats. Probabilities also have an accuracy (1/2 at probability
    1/2) and a brier score.

    `difference` is to the predictor `reference`. Questions without a value under all predictors are
    left out (n_missing). Intervals draw whole relations.
    """
    rows: list[tuple] = []
    for key, part in table.groupby(list(by), sort=False):
        lacking = part.loc[part[value].isna(), "group_id"]
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
    """Of each measure of `compare_predictors`, the sums above and below its fraction: of pairs
    [relation of the right answer, of the wrong one], of answers in the diagonal."""
    relation, names = pd.factorize(rows["relation"], sort=True)
    score = rows[value].to_numpy(dtype=float)
    correct = rows["correct"].to_numpy(dtype=float)
    of_one = np.eye(len(names))
    above, below = _pairs(
        rows,
        score,
        correct > 0,
        of_one[relation],
    )
    found: dict[str, Sums] = {
        "auc": (above, below),
        "auc_within": (above * of_one, below * of_one),
    }
    if value == "probability":
        hit = np.where(
            score == 0.5,
            0.5,
            (score > 0.5) == correct,
        )
        each = np.diag(np.bincount(relation).astype(float))
        found["accuracy"] = (np.diag(np.bincount(relation, hit)), each)
        found["brier"] = (np.diag(np.bincount(relation, (score - correct) ** 2)), each)
    return found


def _pairs(
    rows: pd.DataFrame,
    score: Array,
    right: NDArray[np.bool_],
    relation: Array,
) -> Sums:
    """The pairs of a right and a wrong answer that the right one wins, and all, of one fold and
    repeat each: [relation of the right answer, of the wrong one]. `relation` is [row, relation], 1
    for a row's own."""
    score = np.round(score, 12)
    above = below = np.zeros((relation.shape[1],) * 2)
    folds = rows.reindex(columns=["repeat", "fold"], fill_value=0)
    for at in folds.groupby(["repeat", "fold"]).indices.values():
        good = at[right[at]]
        bad = at[~right[at]]
        sign = np.sign(score[good][:, None] - score[bad])
        above = above + relation[good].T @ (sign + 1) @ relation[bad] / 2  # exact: multiples of 1/2
        below = below + np.outer(
            relation[good].sum(0),
            relation[bad].sum(0),
        )
    return above, below


def _drawn(weights: Array, sums: Array) -> Array:
    """Sums [relation, relation] in resamples that draw relations `weights` times, [resample]; of
    pairs exact, too. A relation drawn twice is two, and makes no pairs with its copy."""
    within = np.diag(sums)
    across = sums - np.diag(within)
    return (weights @ across * weights + weights * within).sum(axis=1)


def _of_relations(terms: Sequence[Sums], n_boot: int) -> Interval:
    """A pooled ratio, or the difference of two, and its bootstrap interval."""

    def statistic(weights: Array, _: Array) -> Array:
        drawn = [[_drawn(weights, sums) for sums in term] for term in terms]
        first, *others = (intervals.ratio(above, below) for above, below in drawn)
        return first - sum(others)

    return bootstrap_statistic(
        statistic,
        [np.arange(len(terms[0][0]))],
        n_boot=n_boot,
    )
