"""How well do scores tell that an answer came from the context (thesis, 6.1.3)?

A case is an answer with its outcome `from_context`. On the thesis's questions it is told by words
(`cases`); where the context's answers were exchanged, by what followed (`caused`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import rankdata

from factrobust import draws
from factrobust.context.metrics import PERPLEXITIES
from factrobust.context.rules import degeneracy, same_answer, swap_source
from factrobust.intervals import TAILS, TWO_SIDED, Array
from factrobust.regression import ridge
from factrobust.text import contains

OUTCOME = "from_context"
FOLLOWS = ("context", "both", "slots")  # of `rules.CAUSES`
PRECISION = (
    1.0,
    1e-9,
)  # of the coefficients' normal priors; of the constant's, so that it settles
# Weights of columns, perplexities by their natural logarithm: nats, higher means context.
SCORES: Mapping[str, Mapping[str, float]] = {
    "minus_log_p4": {"p4": -1},  # the answer given is expected
    "log_p2_p3": {"p2": 1, "p3": -1},  # the context's answer fits better
    "log_p1_p3": {"p1": 1, "p3": -1},  # the context raised its answer
    "log_p0": {"p0": 1},  # memory was unsure of the parametric answer
}


def cases(marked: pd.DataFrame) -> pd.DataFrame:
    """The sound answers (`schemas.MarkedContext`) that say something, from memory, context or
    neither. Columns: model, question_id, base_id, source, from_context, and the SCORES for which
    `marked` has numbers (nats; NaN where one is missing); higher means context."""
    says = marked["source"].isin(["parametric", "contextual", "other"])
    rows = marked[marked["sound"] & says].reset_index(drop=True)
    table = rows[["model", "question_id", "base_id", "source"]].copy()
    table[OUTCOME] = rows["source"] == "contextual"
    for name, weights in SCORES.items():
        terms = rows.reindex(columns=list(weights)).astype(float)
        if not terms.notna().any().all():
            continue
        perplexities = terms.columns.intersection(list(PERPLEXITIES))
        terms[perplexities] = np.log(terms[perplexities])
        table[name] = (terms * weights).sum(axis=1, skipna=False)
    return table


def caused(answers: pd.DataFrame) -> pd.DataFrame:
    """Measured answers of `context.probe.swapped` with what the exchange and the words say of them.

    Adds cause (`rules.swap_source`), from_context (it follows slots: context, both or slots),
    moved_1, moved_2 and moved_placebo (the answer after an exchange is another; NaN without a
    placebo), stated (the passage holds the answer), says (the answer says anything), and defined (a
    score can tell: not where memory says what the passage says, too).
    """
    table = by_words(answers["parametric"], answers["contextual"], answers["sentence"])
    table.index = answers.index
    causes = []
    columns = answers[["parametric", "contextual", "text_1", "text_2", "slots"]]
    for memory, given, first, second, slots in columns.itertuples(index=False):
        causes.append(swap_source(memory, given, (first, second), slots))
    table["cause"] = causes
    table[OUTCOME] = table["cause"].isin(FOLLOWS)
    for name in ("1", "2", "placebo"):
        pairs = zip(answers["contextual"], answers[f"text_{name}"], strict=True)
        table[f"moved_{name}"] = [float(not same_answer(given, other)) for given, other in pairs]
    table.loc[answers["placebo"] == "", "moved_placebo"] = np.nan
    return answers.drop(columns="stated").assign(**table)


def by_words(
    memory: Iterable[str],
    given: Iterable[str],
    contexts: Iterable[str],
) -> pd.DataFrame:
    """What words say of answers without and with a context, [row]: changed (memory says otherwise),
    stated (the context says the answer, `rules.right`), says, and defined as in `caused`."""
    rows = []
    for without, answer, context in zip(memory, given, contexts, strict=True):
        changed = not same_answer(without, answer)
        stated = contains(context, [answer])
        says = degeneracy(answer) is None
        agrees = stated and not changed
        rows.append((changed, stated, says, says and not agrees))
    return pd.DataFrame(rows, columns=["changed", "stated", "says", "defined"])


def won_pairs(
    table: pd.DataFrame,
    scores: Sequence[str],
    within: Sequence[str],
    outcome: str = OUTCOME,
) -> pd.DataFrame:
    """Pairs of a case with the outcome and one without, alike in the columns `within`: a row a
    model, relation (base_id) and score, with pairs, and won, how many the former's score is higher
    in (ties count half). The AUC within is the sum of won over that of pairs."""
    known = table.dropna(subset=list(scores))
    rows = []
    for (model, relation), part in known.groupby(["model", "base_id"], sort=False):
        for score in scores:
            won = pairs = 0.0
            for _, alike in part.groupby(list(within)):
                has = alike[outcome].to_numpy(dtype=bool)
                value = alike[score].to_numpy(dtype=float)
                lead = value[has][:, None] - value[~has]
                won += float((lead > 0).sum() + (lead == 0).sum() / 2)
                pairs += lead.size
            if pairs:
                rows.append((model, relation, score, won, pairs))
    return pd.DataFrame(rows, columns=["model", "base_id", "score", "won", "pairs"])


def told_by_two(
    cases: pd.DataFrame,
    names: Sequence[str],
    *,
    over: str = "base_id",
    k: int = 5,
    n_folds: int = 12,
) -> Array:
    """Probability of from_context by the columns `names`, [row]: a logistic regression fitted on
    other values of `over` (relations, or models), in k folds of them. The mean over `n_folds` ways
    of making folds, so that no luck of one is left."""
    columns = cases[list(names)].to_numpy(dtype=float)
    x = np.column_stack([np.ones(len(cases)), columns])
    y = cases[OUTCOME].to_numpy(dtype=float)
    precision = np.full(x.shape[1], PRECISION[0])
    precision[0] = PRECISION[1]
    probability = np.zeros(len(cases))
    for seed in range(n_folds):
        values = sorted(cases[over].unique(), key=lambda name: draws.hash48(seed, name))
        fold_of = {name: i % k for i, name in enumerate(values)}
        folds = cases[over].map(fold_of).to_numpy()
        for fold in np.unique(folds):
            test = folds == fold
            slopes, _ = ridge(x[~test], y[~test], precision)
            probability[test] += expit(x[test] @ slopes) / n_folds
    return probability


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
    score = np.asarray(score, dtype=float)
    is_finite = np.isfinite(score)
    score = score[is_finite]
    y = np.asarray(from_context, dtype=bool)[is_finite]
    m = int(y.sum())
    n = int((~y).sum())
    if not m or not n:
        return Auc(np.nan, np.nan, np.nan, m, n)
    wins = rankdata(score)[y].sum() - m * (m + 1) / 2
    a = float(wins / (m * n))
    if a in (0, 1):
        least = TAILS[0] ** (1 / min(m, n))
        low, high = (least, 1.0) if a == 1 else (0.0, 1 - least)
        return Auc(a, low, high, m, n)
    of_one = a / (2 - a) - a**2
    of_other = 2 * a**2 / (1 + a) - a**2
    sums = (
        (m - 1) * of_one + (n - 1) * of_other,
        (n - 1) * of_one + (m - 1) * of_other,
    )
    variance = (a * (1 - a) + max(sums)) / (m * n)
    half = TWO_SIDED * np.sqrt(variance) / (a * (1 - a))
    low = float(expit(logit(a) - half))
    high = float(expit(logit(a) + half))
    return Auc(a, low, high, m, n)
