"""How good are predicted probabilities of being right, or any other score of certainty?

Predictions are the rows of `metrics.held_out`: several predictions a
question, one a repeat. Scores are computed within each repeat and averaged over repeats, and the
intervals resample questions, each with all its repeats; the fits are taken as given. A question
without a number in some repeat is left out, and counted in n_missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust.statistics import (
    Interval,
    bootstrap_mean,
    bootstrap_statistic,
    interval_table,
    ratio_of_sums,
    unit_bins,
)

Array = NDArray[np.float64]
COVERAGES = tuple(round(0.1 * i, 1) for i in range(1, 11))


def prediction_quality(
    predictions: pd.DataFrame, by: Sequence[str] = ("model",), *, n_boot: int = 2000
) -> pd.DataFrame:
    """Quality of predictions, one row a measure and combination of `by`.

    Measures are accuracy (at probability 0.5), baseline (accuracy of the training rows' more
    frequent outcome), gain (percent of the baseline), auc, brier, brier_baseline (of the training
    rows' share of right answers as the only probability).
    """
    rows: list[tuple] = []
    for key, part in predictions.groupby(list(by), sort=False):
        y, p, missing = _wide(part, "probability")
        prior = _wide(part, "prior")[1].reindex(y.index).to_numpy()
        right, chance = y.to_numpy()[:, None], p.to_numpy()
        hit = ((chance > 0.5) == right).mean(axis=1)
        base = ((prior > 0.5) == right).mean(axis=1)
        measured = {
            "accuracy": bootstrap_mean(hit, n_boot=n_boot),
            "baseline": bootstrap_mean(base, n_boot=n_boot),
            "gain": bootstrap_statistic(relative_gain, [hit, base], n_boot=n_boot),
            "auc": bootstrap_statistic(_mean_auc, [y, *chance.T], n_boot=n_boot),
            "brier": bootstrap_mean(((chance - right) ** 2).mean(axis=1), n_boot=n_boot),
            "brier_baseline": bootstrap_mean(((prior - right) ** 2).mean(axis=1), n_boot=n_boot),
        }
        rows += [(*key, name, *interval, missing) for name, interval in measured.items()]
    return pd.DataFrame(rows, columns=[*by, "measure", *Interval._fields, "n_missing"])


def ranking(
    table: pd.DataFrame,
    columns: Sequence[str],
    by: Sequence[str] = ("model",),
    *,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """AUC of single measures, which need not be probabilities: higher must mean more certain.

    `table` has a row a question: `by`, group_id, correct and the measures in `columns`.
    """
    rows = []
    for (key, part), name in product(table.groupby(list(by), sort=False), columns):
        y, x, missing = _wide(part, name)
        area = bootstrap_statistic(_mean_auc, [y, *x.to_numpy().T], n_boot=n_boot)
        rows.append((*key, name, *area, missing))
    return pd.DataFrame(rows, columns=[*by, "measure", *Interval._fields, "n_missing"])


def calibration_curve(predictions: pd.DataFrame, *, bins: int, n_boot: int = 2000) -> pd.DataFrame:
    """Share of right answers a model and bin of predicted probability, all repeats together.

    A bin is named by its lower edge; `predicted` is the mean probability there, n counts questions,
    `rows` predictions. Empty bins are left out; rows without a probability, too.
    """
    rows = predictions.dropna(subset=["probability"])
    rows = rows.assign(
        bin=unit_bins(rows["probability"], bins), correct=rows["correct"].astype(float)
    )
    columns = ["model", "bin"]
    observed = interval_table(rows, columns, "correct", "group_id", n_boot=n_boot)
    predicted = rows.groupby(columns)["probability"].agg(predicted="mean", rows="size")
    table = observed.rename(columns={"mean": "observed"}).merge(predicted, on=columns)
    return table[[*columns, "predicted", "observed", "low", "high", "n", "rows"]]


def risk_coverage(
    table: pd.DataFrame,
    score: str = "probability",
    *,
    coverages: Sequence[float] = COVERAGES,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """Accuracy of a model when only the share of questions with the highest score is answered.

    `table` holds predictions, or one row a question (`schemas.Groups`) with any column as `score`;
    higher means more certain. Equal scores are answered in random order: the accuracy is the
    expected one, as it is where a coverage is no whole number of questions.
    """
    rows = []
    for model, part in table.groupby("model", sort=False):
        y, x, missing = _wide(part, score)
        for coverage in coverages:
            accuracy = partial(_mean_over, partial(_covered, coverage))
            interval = bootstrap_statistic(accuracy, [y, *x.to_numpy().T], n_boot=n_boot)
            rows.append((model, score, coverage, *interval, missing))
    names = ["model", "score", "coverage", "accuracy", "low", "high", "n", "n_missing"]
    return pd.DataFrame(rows, columns=names)


def relative_gain(weights: Array, right: Array, base: Array) -> Array:
    """Percent by which `right` exceeds `base` [row], rows counted `weights` [resample, row] times."""
    return 100 * (ratio_of_sums(weights, right, base) - 1)


def _wide(part: pd.DataFrame, column: str) -> tuple[pd.Series, pd.DataFrame, int]:
    """Outcomes [question], `column` [question, repeat], and how many questions lack a number."""
    rows = part if "repeat" in part else part.assign(repeat=0)
    wide = rows.pivot(index="group_id", columns="repeat", values=column).astype(float)
    complete = wide.replace([np.inf, -np.inf], np.nan).dropna()
    outcome = rows.drop_duplicates("group_id").set_index("group_id")["correct"].astype(float)
    return outcome.loc[complete.index], complete, len(wide) - len(complete)


def _mean_over(
    measure: Callable[[Array, Array, Array], Array], weights: Array, y: Array, *repeats: Array
) -> Array:
    return np.mean([measure(weights, y, x) for x in repeats], axis=0)


def _auc(weights: Array, y: Array, x: Array) -> Array:
    """Area under the ROC curve of scores x for outcomes y [row], counted `weights` [resample, row]
    times: the probability that a right answer has a higher score than a wrong one, ties counted
    half, [resample]. NaN without a right or without a wrong answer."""
    drawn, good = _by_score(weights, x, y)
    bad = drawn - good
    wins = np.sum(good * (np.cumsum(bad, axis=1) - bad / 2), axis=1)
    pairs = good.sum(axis=1) * bad.sum(axis=1)
    return np.where(pairs > 0, wins / np.where(pairs > 0, pairs, 1.0), np.nan)


_mean_auc = partial(_mean_over, _auc)


def _covered(coverage: float, weights: Array, y: Array, x: Array) -> Array:
    """Accuracy among the `coverage` highest scores of each resample, [resample]."""
    drawn, right = _by_score(weights, -x, y)
    before = np.cumsum(drawn, axis=1) - drawn
    wanted = coverage * drawn.sum(axis=1, keepdims=True)
    taken = np.clip(wanted - before, 0.0, drawn)  # of each block of equal scores
    return np.sum(taken * right / np.where(drawn > 0, drawn, 1.0), axis=1) / wanted[:, 0]


def _by_score(weights: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Rows drawn, and right ones among them, of each distinct score, lowest first:
    [resample, distinct score]."""
    order = np.argsort(x, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(x[order]) > 0])
    drawn = weights[:, order]
    right = np.add.reduceat(drawn * y[order], starts, axis=1)
    return np.add.reduceat(drawn, starts, axis=1), right
