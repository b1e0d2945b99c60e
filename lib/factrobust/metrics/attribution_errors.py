"""How often does a user of perplexity err about an answer's source, on answers not fitted on?

Tables are those of `metrics.attribution.cases`. A threshold on one score, or a logistic regression
on several, is fitted on some of the questions and applied to the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust.metrics import held_out
from factrobust.metrics.attribution import KEY, NAMES, OUTCOME, as_questions, choose_threshold
from factrobust.statistics import Interval, binomial_interval, bootstrap_statistic

Array = NDArray[np.float64]
STRATA = ("category", OUTCOME)
MISSING = "none: a predictor is missing"


def decisions(
    table: pd.DataFrame,
    score: str = "minus_log_p4",
    *,
    false_alarms: float | None = None,
    over: str | None = None,
    k: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """What a threshold says of answers that it was not chosen on.

    Each model's questions are split into k stratified folds, or, with `over`, into the values of a
    column, such as category or base_id: then thresholds have to carry over to other questions. A
    fold's threshold is `choose_threshold` of the rows outside it. Columns: model, question_id,
    category, base_id, from_context, fold, score (its name), threshold, says_context (boolean,
    missing without score or threshold).
    """
    parts = []
    for _, part in table.groupby("model", sort=False, observed=True):
        if over is None:
            fold = held_out.folds(as_questions(part), k, seed, [NAMES[name] for name in STRATA])
        else:
            fold = part[over].to_numpy()
        threshold = pd.Series(np.nan, index=part.index)
        for j in pd.unique(fold):
            train = part[fold != j]
            threshold[fold == j] = choose_threshold(
                train[OUTCOME], train[score], false_alarms=false_alarms
            )
        kept = part[[name for name in (*KEY, OUTCOME) if name in part]]
        says = (part[score] >= threshold).astype("boolean")
        says = says.mask(part[score].isna() | threshold.isna())
        parts.append(kept.assign(fold=fold, score=score, threshold=threshold, says_context=says))
    return pd.concat(parts, ignore_index=True)


def error_rates(
    decided: pd.DataFrame, by: Sequence[str] = ("model",), *, n_boot: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How often `decisions` are wrong.

    Columns: those of `by`, measure, mean, low, high, n, n_missing (rows without a decision).
    Measures: fpr (parametric answers that pass for contextual; n counts these answers), fnr
    (contextual answers taken for parametric), false_discovery (parametric answers among those said
    to be contextual), accuracy, balanced_accuracy (1 - (fpr + fnr) / 2), baseline (accuracy of
    always saying the more frequent source), says_context (share). NaN where nothing is to be
    counted. Bounds of shares are exact (Clopper-Pearson), for resampling would be sure of a 0 of 8;
    the balanced accuracy's resample answers.
    """
    rows = []
    for key, part in decided.groupby(list(by), sort=False, observed=True):
        known = part.dropna(subset=["says_context"])
        y, said = (known[name].to_numpy(dtype=float) for name in (OUTCOME, "says_context"))

        measured = {
            "fpr": _share(said[y == 0]),
            "fnr": _share(1 - said[y == 1]),
            "false_discovery": _share(1 - y[said == 1]),
            "accuracy": _share(said == y),
            "balanced_accuracy": bootstrap_statistic(
                _balanced, [y, said], n_boot=n_boot, seed=seed
            ),
            "baseline": _share(y if y.sum() * 2 >= len(y) else 1 - y),
            "says_context": _share(said),
        }
        missing = len(part) - len(known)
        rows += [(*key, name, *interval, missing) for name, interval in measured.items()]
    return pd.DataFrame(rows, columns=[*by, "measure", *Interval._fields, "n_missing"])


def predict(
    table: pd.DataFrame,
    predictors: Sequence[str],
    *,
    k: int = 5,
    repeats: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    """Probability that an answer came from the context, by logistic regression, out of fold.

    `predictors` are scores of the table; with "category" among them, each score has a slope of its
    own in each category (`metrics.prediction`). Columns: model, repeat, fold, question_id, category,
    from_context, probability, prior (share of contextual answers among the rows fitted on), fit (how
    it was fitted, or why not). Questions without a predictor have no probability and fold -1.
    `metrics.calibration` measures the result as it does part 3's, after `as_questions`; with one
    repeat, `probability` also is a score for `decisions`.
    """
    names = ["QCat" if name == "category" else name for name in predictors]
    numeric = [name for name in predictors if name != "category"]
    finite = np.isfinite(table[numeric].to_numpy(dtype=float)).all(axis=1)
    found = held_out.cross_validate(
        as_questions(table[finite]), names, k=k, repeats=repeats, seed=seed
    )
    found = found.rename(columns={new: old for old, new in NAMES.items()})
    lost = table.loc[~finite, ["model", "question_id", "category", OUTCOME]]
    lost = lost.assign(fold=-1, probability=np.nan, prior=np.nan, fit=MISSING)
    parts = [found, *(lost.assign(repeat=i) for i in range(repeats) if len(lost))]
    return pd.concat(parts, ignore_index=True)[found.columns.tolist()]


def _share(hits: Array) -> Interval:
    """Share of hits with its exact bounds."""
    n = len(hits)
    if not n:
        return Interval(np.nan, np.nan, np.nan, 0)
    low, high = binomial_interval(np.sum(hits), n)
    return Interval(float(np.mean(hits)), float(low), float(high), n)


def _balanced(weights: Array, y: Array, said: Array) -> Array:
    """Mean of the two sources' shares of right decisions, NaN without one of them, [resample]."""
    shares = []
    for source in (0.0, 1.0):
        of = weights * (y == source)
        total = of.sum(axis=1)
        hits = np.einsum("ij,j->i", of, (said == source).astype(float))
        shares.append(np.where(total > 0, hits / np.where(total > 0, total, 1.0), np.nan))
    return (shares[0] + shares[1]) / 2
