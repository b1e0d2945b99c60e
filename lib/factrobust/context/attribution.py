"""How well do scores and probabilities tell that an answer came from the context (thesis, 6.1.3)?

A case is an answer with its outcome `from_context`: it says what the context states. Answers from
memory, or with a third content, are not from the context. A user passes an answer on as grounded,
or withholds it; passing a wrong one costs `cost` times as much as withholding a right one.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import rankdata

from factrobust.context.metrics import PERPLEXITIES
from factrobust.statistics import NOTHING, TAILS, TWO_SIDED, bootstrap_mean, paired_difference

OUTCOME = "from_context"


class Score(NamedTuple):
    """A weighted sum of columns, perplexities by their natural logarithm."""

    weights: dict[str, float]
    queries: int  # 1: with the context only; 2: without it, too
    definition: str


SCORES = {
    "minus_log_p4": Score({"p4": -1}, 1, "-log P4: the answer given is expected"),
    "log_p2_p3": Score({"p2": 1, "p3": -1}, 2, "log P2 - log P3: the context's answer fits better"),
    "log_p1_p3": Score({"p1": 1, "p3": -1}, 2, "log P1 - log P3: the context raised its answer"),
    "log_p2_p0": Score({"p2": 1, "p0": -1}, 2, "log P2 - log P0: it lowered the parametric answer"),
    "log_p0": Score({"p0": 1}, 2, "log P0: memory was unsure of the parametric answer"),
    "entropy": Score({"first_entropy": 1}, 2, "entropy of the ten likeliest first tokens, without"),
    "minus_entropy_context": Score(
        {"first_entropy_context": -1}, 1, "minus the same entropy, with the context"
    ),
    "shift": Score(
        {"first_shift": 1}, 2, "how far the context moves the ten likeliest first tokens"
    ),
}


def cases(marked: pd.DataFrame) -> pd.DataFrame:
    """The sound answers (`schemas.MarkedContext`) that say something, from memory, context or
    neither.

    Columns: model, question_id, base_id, source, from_context, and the SCORES for which `marked`
    has numbers (nats; NaN where one is missing); higher means context.
    """
    telling = marked["sound"] & marked["source"].isin(["parametric", "contextual", "other"])
    rows = marked[telling].reset_index(drop=True)
    table = rows[["model", "question_id", "base_id", "source"]]
    table = table.assign(**{OUTCOME: rows["source"] == "contextual"})
    for name, score in SCORES.items():
        terms = rows.reindex(columns=list(score.weights)).astype(float)
        if terms.notna().any().all():
            terms = terms.transform(lambda x: np.log(x) if x.name in PERPLEXITIES else x)
            table[name] = (terms * score.weights).sum(axis=1, skipna=False)
    return table


class Auc(NamedTuple):
    """An AUC with its bounds, and the numbers of cases with and without the outcome."""

    auc: float
    low: float
    high: float
    n_context: int
    n_not: int


def auc(from_context: ArrayLike, score: ArrayLike) -> Auc:
    """Probability that a case from the context has the higher score, [row]; ties count half.

    The 95% bounds are of Hanley and McNeil (Radiology 143, 1982) on the logit scale, with the
    larger of the two variances that the formula gives. For an AUC of 1 or 0 the bound is that of
    min(n_context, n_not) successes in as many trials. Cases count as independent; NaN without one
    of either sort.
    """
    y, x = np.asarray(from_context, dtype=bool), np.asarray(score, dtype=float)
    y, x = y[np.isfinite(x)], x[np.isfinite(x)]
    m, n = int(y.sum()), int((~y).sum())
    if not m or not n:
        return Auc(np.nan, np.nan, np.nan, m, n)
    a = float((rankdata(x)[y].sum() - m * (m + 1) / 2) / (m * n))
    if a in (0, 1):
        least = TAILS[0] ** (1 / min(m, n))
        return Auc(a, least if a else 0.0, 1.0 if a else 1 - least, m, n)
    of_one, of_other = a / (2 - a) - a**2, 2 * a**2 / (1 + a) - a**2
    sums = [(k - 1) * of_one + (j - 1) * of_other for k, j in ((m, n), (n, m))]
    variance = (a * (1 - a) + max(sums)) / (m * n)
    half = TWO_SIDED * np.sqrt(variance) / (a * (1 - a))
    return Auc(a, float(expit(logit(a) - half)), float(expit(logit(a) + half)), m, n)


def auc_table(
    table: pd.DataFrame, scores: Sequence[str] = tuple(SCORES), outcome: str = OUTCOME
) -> pd.DataFrame:
    """`auc` of the columns `scores`, a row a model and score."""
    models = table.groupby("model", sort=False)
    rows = [(m, name, *auc(part[outcome], part[name])) for m, part in models for name in scores]
    return pd.DataFrame(rows, columns=["model", "score", *Auc._fields])


def cost_table(
    answers: pd.DataFrame,
    costs: Sequence[float] = (1, 3, 10),
    by: Sequence[str] = ("model",),
    *,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """What the mistakes of each way of telling cost an answer, if passing a wrong one costs `cost`.

    `answers` has way, probability, from_context and case (which names the same answer under all
    ways). An answer is passed if (1 - p) cost <= p. Columns: by, way, cost, mean, low, high,
    passed_wrong and withheld (shares of all answers), difference, difference_low, difference_high
    (to the way "always"), n. Intervals draw whole questions.
    """
    rows = []
    for (key, table), cost in product(answers.groupby(list(by), sort=False, observed=True), costs):
        y, p = table[OUTCOME].to_numpy(dtype=bool), table["probability"].to_numpy()
        passed = (1 - p) * cost <= p
        lost = table.assign(wrong=passed & ~y, withheld=~passed & y).set_index("case")
        lost["loss"] = cost * lost["wrong"] + lost["withheld"]
        always = lost.loc[lost["way"] == "always", "loss"]
        for way, part in lost.groupby("way", sort=False):
            loss, questions = part["loss"], part["question_id"]
            mean, apart = bootstrap_mean(loss, questions, n_boot=n_boot), NOTHING
            if way != "always" and len(always):
                apart = paired_difference(loss, always[loss.index], questions, n_boot=n_boot)
            kinds = part["wrong"].mean(), part["withheld"].mean()
            rows.append((*key, way, cost, *mean[:3], *kinds, *apart[:3], len(loss)))
    columns = ["way", "cost", "mean", "low", "high", "passed_wrong", "withheld", "difference"]
    return pd.DataFrame(rows, columns=[*by, *columns, "difference_low", "difference_high", "n"])


def brier_table(
    answers: pd.DataFrame, by: Sequence[str] = ("model",), *, n_boot: int = 2000
) -> pd.DataFrame:
    """Mean squared error of each way's probabilities, with intervals that draw questions, and
    `auc`."""
    rows = []
    for key, part in answers.groupby([*by, "way"], sort=False):
        squares = (part["probability"] - part[OUTCOME]) ** 2
        brier = bootstrap_mean(squares, part["question_id"], n_boot=n_boot)
        rows.append((*key, *brier[:3], *auc(part[OUTCOME], part["probability"])))
    columns = ["brier", "brier_low", "brier_high", *Auc._fields]
    return pd.DataFrame(rows, columns=[*by, "way", *columns])
