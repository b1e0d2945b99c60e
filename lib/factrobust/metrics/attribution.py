"""Can perplexity tell whether an answer came from memory or from the context (thesis, 3.3.3, 6.1.3)?

A case is an answer whose source is parametric or contextual; the outcome to be predicted is
`from_context`. Scores are oriented so that higher means context (`SCORES`). A user of retrieved
texts says "from the context" above a threshold: the false-alarm rate, fpr, is the share of answers
from memory that pass for grounded in the context; fnr is the share of grounded ones held back.

Mind what a score knows. The source is decided by comparing the answer with the parametric one and
the counterfactual; greedy decoding gives the likelier of two beginnings, so P2 < P3 nearly says the
same again. It also costs a second query. What the thesis proposes, and a user has at hand, is P4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from factrobust.metrics import prediction
from factrobust.metrics.context import PERPLEXITIES, exact_share
from factrobust.statistics import Interval, bootstrap_statistic, ratio_of_sums

Array = NDArray[np.float64]
OUTCOME = "from_context"


class Score(NamedTuple):
    """A weighted sum of columns, perplexities by their natural logarithm."""

    weights: dict[str, float]
    queries: int  # 1: with the context only; 2: without it, too
    definition: str


SCORES = {
    "log_p2_p3": Score({"p2": 1, "p3": -1}, 2, "log P2 - log P3: the context's answer fits better"),
    "minus_log_p4": Score({"p4": -1}, 1, "-log P4: the answer given is expected"),
    "minus_log_p3": Score({"p3": -1}, 1, "-log P3: the context's answer is expected"),
    "log_p1_p3": Score({"p1": 1, "p3": -1}, 2, "log P1 - log P3: the context raised its answer"),
    "log_p2_p0": Score({"p2": 1, "p0": -1}, 2, "log P2 - log P0: it lowered the parametric answer"),
    "log_p0": Score({"p0": 1}, 2, "log P0: memory was unsure of the parametric answer"),
    "minus_log_p1": Score({"p1": -1}, 2, "-log P1: memory allows the context's answer"),
    "entropy": Score({"first_entropy": 1}, 2, "entropy of the first token without context"),
    "minus_entropy_context": Score(
        {"first_entropy_context": -1}, 1, "minus the entropy of the first token with it"
    ),
    "shift": Score({"first_shift": 1}, 2, "how far the context moves the first token"),
}


def scores_table() -> pd.DataFrame:
    """The scores: score, queries (1: with the context only, 2: without it, too), definition."""
    rows = [(name, score.queries, score.definition) for name, score in SCORES.items()]
    return pd.DataFrame(rows, columns=["score", "queries", "definition"])


def cases(marked: pd.DataFrame) -> pd.DataFrame:
    """The answers from memory or context, with their scores; others and empty answers are left out.

    Columns: model, question_id, category, base_id, source, from_context (bool), and the SCORES for
    whose columns `marked` has numbers (natural logarithms, nats; NaN where one is missing). For
    `metrics.prediction` the question, the category and the outcome stand there by part 3's names, too:
    group_id, relation, correct.
    """
    rows = marked[marked["source"].isin(["parametric", "contextual"])].reset_index(drop=True)
    outcome = rows["source"] == "contextual"
    table = rows[["model", "question_id", "category", "base_id", "source"]].assign(
        **{OUTCOME: outcome},
        group_id=rows["question_id"],
        relation=rows["category"],
        correct=outcome,
    )
    for name, score in SCORES.items():
        terms = rows.reindex(columns=list(score.weights)).astype(float)
        if terms.notna().any().all():
            terms = terms.transform(lambda x: np.log(x) if x.name in PERPLEXITIES else x)
            table[name] = (terms * score.weights).sum(axis=1, skipna=False)
    return table


def separation(
    table: pd.DataFrame, scores: Sequence[str], by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """Two-sample Kolmogorov-Smirnov tests between the scores of the two sources.

    ks is the largest distance of the two distribution functions, 0 to 1, and its p_value takes
    questions for independent; n_missing counts rows without the score. NaN without answers of either
    source.
    """
    from scipy.stats import ks_2samp

    rows = []
    for key, part in table.groupby(list(by), sort=False, observed=True):
        for name in scores:
            known = part[np.isfinite(part[name].to_numpy(dtype=float))]
            memory, context = (known.loc[known[OUTCOME] == x, name] for x in (False, True))
            found = ks_2samp(memory, context) if len(memory) and len(context) else (np.nan,) * 2
            counts = (len(memory), len(context), len(part) - len(known))
            rows.append((*key, name, *counts, memory.median(), context.median(), *found))
    columns = ["score", "n_parametric", "n_contextual", "n_missing", "median_parametric"]
    return pd.DataFrame(rows, columns=[*by, *columns, "median_contextual", "ks", "p_value"])


def auc_table(
    table: pd.DataFrame,
    scores: Sequence[str] | None = None,
    by: Sequence[str] = ("model",),
    *,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """Area under the ROC curve: the probability that a contextual answer has the higher score.

    Columns as of `prediction.ranking`, with score, queries (see SCORES) and auc. NaN without answers
    of either source.
    """
    names = scores or [name for name in SCORES if name in table]
    found = prediction.ranking(table, names, by, n_boot=n_boot)
    found = found.rename(columns={"measure": "score", "mean": "auc"})
    queries = [SCORES[name].queries for name in found["score"]]
    found.insert(len(by) + 1, "queries", queries)
    return found


def roc_curve(table: pd.DataFrame, score: str) -> pd.DataFrame:
    """The ROC curve of each model, from "never the context" to "always".

    The context is said from the threshold on, of which the first is infinite; tpr is 1 - fnr. Models
    without answers of either source are left out.
    """
    rows: list[tuple] = []
    for model, part in table.groupby("model", sort=False):
        curve = np.transpose(_curve(part[OUTCOME], part[score]))
        if np.isfinite(curve[0, 1:]).all():
            rows += [(model, score, *point) for point in curve]
    return pd.DataFrame(rows, columns=["model", "score", "threshold", "fpr", "tpr"])


def choose_threshold(
    from_context: ArrayLike, score: ArrayLike, *, false_alarms: float | None = None
) -> float:
    """The threshold from which on an answer is said to come from the context.

    By default the one with the largest tpr - fpr (Youden, Cancer 3, 1950), the highest of several;
    with `false_alarms`, the one of the largest tpr whose fpr is at most so much. It is put in the
    middle between two scores; infinite if "never" or "always" is best. NaN without answers of
    either source.
    """
    thresholds, fpr, tpr = _curve(from_context, score)
    if np.isnan([fpr[0], tpr[0]]).any():
        return np.nan
    gain = tpr - fpr if false_alarms is None else np.where(fpr <= false_alarms, tpr, -1.0)
    best = int(np.argmax(np.round(gain, 12)))
    if best + 1 == len(thresholds):
        return float(-np.inf)
    return float((thresholds[best] + thresholds[best + 1]) / 2)


def _curve(from_context: ArrayLike, score: ArrayLike) -> tuple[Array, Array, Array]:
    """Thresholds, highest first, with the rates of both sources at or above each, [threshold]."""
    y, x = np.asarray(from_context, dtype=bool), np.asarray(score, dtype=float)
    y, x = y[np.isfinite(x)], x[np.isfinite(x)]
    thresholds = np.r_[np.inf, np.unique(x)[::-1]]

    def reached(rows: Array) -> Array:
        """Share of the rows, as a quotient of counts: 1/20 is then 0.05."""
        if not len(rows):
            return np.full(len(thresholds), np.nan)
        return np.asarray((len(rows) - np.searchsorted(np.sort(rows), thresholds)) / len(rows))

    return thresholds, reached(x[~y]), reached(x[y])


def decisions(
    table: pd.DataFrame,
    *,
    false_alarms: float | None = None,
    over: str | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """What a threshold on -log P4 says of answers that it was not chosen on.

    Each model's questions are split into five stratified folds, or, with `over`, into the values of
    a column, such as category or base_id: then thresholds have to carry over to other questions. A
    fold's threshold is `choose_threshold` of the rows outside it. Returns the cases with fold,
    threshold and says_context (boolean, missing without score or threshold).
    """
    parts = []
    for _, part in table.groupby("model", sort=False, observed=True):
        fold = prediction.folds(part, 5, seed) if over is None else part[over].to_numpy()
        score, threshold = part["minus_log_p4"], pd.Series(np.nan, index=part.index)
        for j in pd.unique(fold):
            train = part[fold != j]
            threshold[fold == j] = choose_threshold(
                train[OUTCOME], train["minus_log_p4"], false_alarms=false_alarms
            )
        says = (score >= threshold).astype("boolean").mask(score.isna() | threshold.isna())
        parts.append(part.assign(fold=fold, threshold=threshold, says_context=says))
    return pd.concat(parts, ignore_index=True)


def error_rates(
    decided: pd.DataFrame, by: Sequence[str] = ("model",), *, n_boot: int = 2000
) -> pd.DataFrame:
    """How often `decisions` are wrong.

    One row a measure and combination of `by`: fpr (parametric answers that pass for contextual; n
    counts these answers), fnr (contextual answers taken for parametric), false_discovery (parametric
    answers among those said to be contextual), accuracy, balanced_accuracy (1 - (fpr + fnr) / 2),
    baseline (accuracy of always saying the more frequent source), says_context (share). NaN where
    nothing is to be counted; n_missing rows have no decision. Bounds of shares are exact
    (Clopper-Pearson); the balanced accuracy's resample answers.
    """
    rows = []
    for key, part in decided.groupby(list(by), sort=False, observed=True):
        known = part.dropna(subset=["says_context"])
        y, said = (known[name].to_numpy(dtype=float) for name in (OUTCOME, "says_context"))

        measured = {
            "fpr": exact_share(said[y == 0]),
            "fnr": exact_share(1 - said[y == 1]),
            "false_discovery": exact_share(1 - y[said == 1]),
            "accuracy": exact_share(said == y),
            "balanced_accuracy": bootstrap_statistic(_balanced, [y, said], n_boot=n_boot),
            "baseline": exact_share(y if y.sum() * 2 >= len(y) else 1 - y),
            "says_context": exact_share(said),
        }
        missing = len(part) - len(known)
        rows += [(*key, name, *interval, missing) for name, interval in measured.items()]
    return pd.DataFrame(rows, columns=[*by, "measure", *Interval._fields, "n_missing"])


def _balanced(weights: Array, y: Array, said: Array) -> Array:
    """Mean of the two sources' shares of right decisions, NaN without one of them, [resample]."""
    shares = [ratio_of_sums(weights, (y == x) & (said == x), y == x) for x in (0, 1)]
    return np.mean(shares, axis=0)
