"""How well do scores and probabilities tell that an answer came from the context (thesis, 6.1.3)?

A case is an answer with its outcome `from_context`. On the thesis's questions it is told by words
(`cases`); where the context's answers were exchanged, by what followed (`caused`). There every way of
telling is a logistic regression on `features`, fitted on other relations than it is tested on.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import rankdata

from factrobust import draws
from factrobust.context.metrics import PERPLEXITIES
from factrobust.context.rules import coverage, degeneracy, same_answer, states, swap_source
from factrobust.regression import ridge
from factrobust.statistics import NOTHING, TAILS, TWO_SIDED, Array, bootstrap_mean, exact_table
from factrobust.tables import stacked

OUTCOME = "from_context"
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
    telling = marked["sound"] & marked["source"].isin(["parametric", "contextual", "other"])
    rows = marked[telling].reset_index(drop=True)
    table = rows[["model", "question_id", "base_id", "source"]]
    table = table.assign(**{OUTCOME: rows["source"] == "contextual"})
    for name, weights in SCORES.items():
        terms = rows.reindex(columns=list(weights)).astype(float)
        if terms.notna().any().all():
            terms = terms.transform(lambda x: np.log(x) if x.name in PERPLEXITIES else x)
            table[name] = (terms * weights).sum(axis=1, skipna=False)
    return table


def caused(answers: pd.DataFrame) -> pd.DataFrame:
    """Measured answers of `context.probe.swapped` with what the exchange and the words say of them.

    Adds cause (`rules.swap_source`), from_context (context or both), changed (memory says otherwise),
    stated (the passage holds the answer's words), rule (both of these: the two-line rule), coverage, and
    defined: whether a score can tell. It cannot where the answer says nothing, and where memory says what
    the passage says, too.
    """
    rows = answers[["parametric", "contextual", "text_1", "text_2", "slots"]].to_numpy()
    causes = [swap_source(memory, given, two, slots) for memory, given, *two, slots in rows]
    told = by_words(answers["parametric"], answers["contextual"], answers["sentence"])
    told = told.set_axis(answers.index).assign(cause=causes)
    return answers.assign(**told, **{OUTCOME: told["cause"].isin(["context", "both"])})


def by_words(memory: Iterable[str], given: Iterable[str], contexts: Iterable[str]) -> pd.DataFrame:
    """What words say of answers without and with a context, [row]: the columns of `caused` but its first
    two, and says (whether the answer with a context says anything)."""
    rows = list(zip(memory, given, contexts, strict=True))
    table = pd.DataFrame({
        "changed": [not same_answer(m, a) for m, a, _ in rows],
        "stated": [states(c, a) for _, a, c in rows],
        "coverage": [coverage(c, a) for _, a, c in rows],
        "says": [degeneracy(a) is None for _, a, _ in rows],
    })  # fmt: skip
    rule, agrees = table["changed"] & table["stated"], ~table["changed"] & table["stated"]
    return table.assign(rule=rule, defined=table["says"] & ~agrees)


# What a way of telling sees, from the dullest on. Those of texts need no probabilities.
TEXTS = ("rule", "changed", "stated", "coverage")
WAYS: Mapping[str, tuple[str, ...]] = {
    "constant": (),
    "two-line rule": ("rule",),
    "answer's perplexity (thesis)": ("given",),
    "sequence probability (lm-polygraph)": ("total",),
    "first-token entropy (lm-polygraph)": ("entropy",),
    "pointwise mutual information (lm-polygraph)": ("raised",),
    "shift of the first token": ("shift",),
    "words in the passage (ragas)": ("coverage",),
    "NLI: entailed by the passage": ("entailed",),
    "P0, P1, P4": ("given", "memory", "raised"),
    "all that texts tell": TEXTS,
    "texts and perplexities": (*TEXTS, "given", "memory", "raised"),
}
AGAINST = "two-line rule"  # the way that the others' log losses are compared with
PRECISION = (1.0, 1e-9)  # of the coefficients' normal priors; of the constant's, so that it settles
LEAST = 1e-3  # a probability counts as at least this, and at most 1 minus this, in the log loss
Detector = Mapping[str, float]  # the coefficient of each feature, and of "constant"


def features(table: pd.DataFrame) -> pd.DataFrame:
    """What the regressions see of `caused` answers: the flags as 0 and 1, and in nats (0 where an answer
    is empty) given = log P4, total = -n log P4 of n tokens, memory = log P0, raised = log P1 - log P4;
    entropy (of the ten likeliest first tokens with the passage) and shift (`metrics.first_shift`)."""
    log = np.log(table.reindex(columns=["p0", "p1", "p4"]).astype(float))
    values = {"given": log["p4"], "memory": log["p0"], "raised": log["p1"] - log["p4"]}
    n = table.get("n_tokens_counterfactual", pd.Series(1.0, table.index))
    values |= {"total": -n * log["p4"], "entropy": table.get("first_entropy_context")}
    values |= {"shift": table.get("first_shift"), "entailed": table.get("entailed")}
    values |= {name: table[name] for name in TEXTS}
    return pd.DataFrame(values, table.index, dtype=float).fillna(0.0)


def fit(cases: pd.DataFrame, names: Sequence[str] = TEXTS) -> Detector:
    """Coefficients of a logistic regression of from_context on the features `names`, with slight priors
    (PRECISION)."""
    x = np.column_stack([np.ones(len(cases)), features(cases)[list(names)].to_numpy()])
    precision = np.where(np.arange(x.shape[1]) > 0, *PRECISION)
    beta, _ = ridge(x, cases[OUTCOME].to_numpy(dtype=float), precision)
    return dict(zip(["constant", *names], beta.tolist(), strict=True))


def probability(table: pd.DataFrame, detector: Detector) -> Array:
    """Probability that each answer came from the context, [row]. ValueError for a detector that has no
    constant, or what is none of the `features`."""
    seen = features(table)
    if "constant" not in detector or not set(detector) <= {"constant", *seen}:
        raise ValueError(
            f"detector has {sorted(detector)}; write a number for 'constant' and for some of "
            f"{sorted(map(str, seen))}"
        )
    weights = pd.Series(detector).drop("constant").astype(float)
    return expit(detector["constant"] + seen[weights.index].to_numpy() @ weights.to_numpy())


def held_out(
    cases: pd.DataFrame,
    *,
    ways: Mapping[str, Sequence[str]] = WAYS,
    over: str = "base_id",
    k: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """Probabilities of the `defined` ones of the cases by each of the ways, fitted on the defined cases
    of other values of `over` (relations, or models) in `k` folds.

    Adds case (number of the row), way and probability. Cases that are not defined get one, too: by the
    same fits, to show what a score would say of them. A way that sees `entailed` is left out where the
    cases have no such column (P(entailment) of the answer, by an NLI model).
    """
    ways = {
        way: used for way, used in ways.items() if "entailed" not in used or "entailed" in cases
    }
    table = cases.assign(case=np.arange(len(cases)))
    names = sorted(cases[over].unique(), key=lambda name: draws.hash48(seed, name))
    folds = table[over].map({name: i % k for i, name in enumerate(names)}).to_numpy()
    told = {way: np.full(len(table), np.nan) for way in ways}
    for (way, used), fold in product(ways.items(), np.unique(folds)):
        here = folds == fold
        told[way][here] = probability(table[here], fit(table[~here & table["defined"]], used))
    return stacked({way: table.assign(probability=p) for way, p in told.items()}, "way")


def scores_table(said: pd.DataFrame, *, n_boot: int = 2000) -> pd.DataFrame:
    """How good the probabilities of `held_out` are, of the defined cases: a row a model and way,
    with brier (mean squared error), log_loss (nats) and gain (the log loss of AGAINST minus its
    own), each with _low and _high (base questions are drawn), n, n_context, auc."""
    table = said[said["defined"]]
    y, p = table[OUTCOME].astype(float), table["probability"].clip(LEAST, 1 - LEAST)
    loss = -np.log(p.where(y == 1, 1 - p))
    usual = loss[table["way"] == AGAINST].set_axis(table.loc[table["way"] == AGAINST, "case"])
    values = {"brier": (table["probability"] - y) ** 2, "log_loss": loss}
    table = table.assign(**values, gain=usual.reindex(table["case"]).to_numpy() - loss)
    rows = []
    for (model, way), part in table.groupby(["model", "way"], sort=False):
        facts = part["base_id"]
        bounds = [bootstrap_mean(part[x], facts, n_boot=n_boot)[:3] for x in (*values, "gain")]
        bounds[-1] = NOTHING[:3] if way == AGAINST else bounds[-1]
        ranked = auc(part[OUTCOME], part["probability"]).auc
        rows.append((model, way, *np.ravel(bounds), len(part), int(part[OUTCOME].sum()), ranked))
    names = [f"{x}{end}" for x in (*values, "gain") for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=["model", "way", *names, "n", "n_context", "auc"])


def strata(said: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Whether probabilities hold in parts of the cases: the number that should be from the context
    by the probabilities, and the number that is. Columns: by, expected (the mean probability), mean
    (the share from the context), low, high (exact binomial), n."""
    expected = said.groupby(list(by))["probability"].mean().rename("expected").reset_index()
    return expected.merge(exact_table(said, by, OUTCOME), on=list(by))


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
