"""Did an answer come from the context? A detector to call, and what its evaluation needs.

    from factrobust import ground, load_model

    found = ground(load_model("gemma-3-270m"), "What is the capital of Kenya?",
                   "The capital of Kenya is Lima", prefix="The capital of Kenya is")
    found.answer, found.source, found.probability

The question is asked without the context (memory's answer) and with it, and both answers are scored
both ways: the thesis's P0 to P4 (`context.probe`), with the answer given for the counterfactual, so
P3 is P4. The probability is of a logistic regression on `features`, fitted on known contexts of
small models (`fit`, `data/fit_ground.py`); for another model fit it anew, or test it on your own
cases (`held_out`).
"""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from factrobust import draws
from factrobust.context.metrics import measured
from factrobust.context.probe import ABOUT, greedy, scored
from factrobust.context.rules import decide, degeneracy, named, same_answer, within
from factrobust.models.interface import Model
from factrobust.paths import DATA, noted
from factrobust.regression import ridge
from factrobust.statistics import Array
from factrobust.tables import stacked
from factrobust.text import contains

Detector = Mapping[str, float]  # the coefficient of each feature, and of "constant"
FILE = DATA / "ground.json"
PRECISION = (1.0, 1e-9)  # of the coefficients' normal priors; of the constant's, so that it settles
PERPLEXITIES = ("given", "memory", "raised", "lowered")
# What a detector may know, from the least to the most.
WAYS = {
    "P4": PERPLEXITIES[:1],
    "P0 to P4": PERPLEXITIES,
    "... and both answers": (*PERPLEXITIES, "changed"),
    "... and the context's words": (*PERPLEXITIES, "changed", "stated"),
}


class Grounded(NamedTuple):
    """What `ground` finds. source: which has the answer, "context", "memory", "both" or "neither";
    probability: that the answer came from the context."""

    memory: str
    answer: str
    p0: float
    p1: float
    p2: float
    p3: float
    p4: float
    source: str
    probability: float


def ground(
    model: Model, question: str, context: str, *, prefix: str = "", detector: Detector | None = None
) -> Grounded:
    """Ask a model a question with a context, and tell whether the answer came from it.

    `prefix` begins the answer, which small models need; `detector` is by default that of
    data/ground.json. Raises ValueError for an empty question or context.
    """
    if not question.strip() or not context.strip():
        raise ValueError("question and context must not be empty: an answer has no source then")
    questions = pd.DataFrame([dict.fromkeys(ABOUT, "") | {"question": question, "prefix": prefix}])
    table = ask(model, questions, [context.strip().removesuffix(".")])
    row = table.iloc[0]
    sources = (("memory", "both"), ("neither", "context"))
    source = sources[bool(row["changed"])][bool(row["stated"])]
    found = float(probability(table, load() if detector is None else detector)[0])
    p0, p1, p2, p3, p4 = row[["p0", "p1", "p2", "p3", "p4"]].astype(float)
    return Grounded(row["parametric"], row["contextual"], p0, p1, p2, p3, p4, source, found)


def ask(model: Model, questions: pd.DataFrame, contexts: Sequence[str]) -> pd.DataFrame:
    """Ask each question (`schemas.ContextQuestions`) without and with its context, [question].

    Columns of `schemas.ContextResults` but counterfactual; changed (the answers do not say the
    same), stated (the context's words hold the contextual answer).
    """
    memory, given = greedy(model, questions), greedy(model, questions, contexts)
    table = measured(scored(model, memory, given, given["token_ids"].map(tuple)))
    texts = list(zip(memory["text"], given["text"], contexts, strict=True))
    changed = [not same_answer(p, a) for p, a, _ in texts]
    return table.assign(changed=changed, stated=[states(context, a) for _, a, context in texts])


def states(context: str, answer: str) -> bool:
    """Whether a context holds the words of an answer, or of its first part."""
    found = within(named(answer).first, named(context).words)
    return not degeneracy(answer) and (found or contains(context, [answer]))


def outcomes(table: pd.DataFrame, stated: Sequence[str]) -> pd.DataFrame:
    """The rows of `ask` whose source can be told, with `from_context`, by `context.rules.decide`.

    `stated` is what each context states, "" for nothing, [row]. Left out are rows whose memory says
    what the context states, and texts that say nothing.
    """
    triples = zip(table["parametric"], stated, table["contextual"], strict=True)
    sources = np.array([decide(*texts).source for texts in triples], dtype=object)
    silent = table[["parametric", "contextual"]].map(degeneracy).notna().any(axis=1)
    silent_context = np.asarray(stated, dtype=object) == ""
    sources[silent_context & (sources == "contextual")] = "other"
    table = table.assign(source=sources, from_context=sources == "contextual")
    return table[~silent & (sources != "same")].reset_index(drop=True)


def features(table: pd.DataFrame) -> pd.DataFrame:
    """What the regression sees of rows of `ask`; natural logarithms, 0 where an answer is empty.

    given: log P4; memory: log P0; raised: log P1 - log P4; lowered: log P2 - log P0; changed,
    stated: 0, 1.
    """
    log = np.log(table[["p0", "p1", "p2", "p4"]].astype(float))
    values = {"given": log["p4"], "memory": log["p0"]}
    values |= {"raised": log["p1"] - log["p4"], "lowered": log["p2"] - log["p0"]}
    flags = {name: table[name].astype(float) for name in ("changed", "stated")}
    return pd.DataFrame(values | flags).fillna(0.0)


def fit(
    cases: pd.DataFrame, names: Sequence[str] = WAYS["... and the context's words"]
) -> Detector:
    """Coefficients of a logistic regression of from_context on the features `names` of `outcomes`,
    with slight priors (PRECISION)."""
    x = np.column_stack([np.ones(len(cases)), features(cases)[list(names)].to_numpy()])
    precision = np.where(np.arange(x.shape[1]) > 0, *PRECISION)
    beta, _ = ridge(x, cases["from_context"].to_numpy(dtype=float), precision)
    return dict(zip(["constant", *names], beta.tolist(), strict=True))


def probability(table: pd.DataFrame, detector: Detector) -> Array:
    """Probability that each answer came from the context, [row]."""
    weights = pd.Series(detector).drop("constant")
    logit = detector["constant"] + features(table)[weights.index].to_numpy() @ weights.to_numpy()
    return np.asarray(1 / (1 + np.exp(-logit)))


def load() -> Detector:
    """The coefficients of data/ground.json."""
    return dict(json.loads(noted(FILE).read_text(encoding="utf-8"))["coefficients"])


def held_out(
    cases: pd.DataFrame, *, over: str = "base_id", k: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Probabilities of cases (`outcomes`) by every way of telling, each by a fit on cases of other
    values of `over` (relations, or models).

    Adds case (number of the row), way and probability: the regressions of WAYS, "always" the
    context, "asked twice" (the answers differ), "found in it" (its words hold the answer).
    """
    table = cases.assign(case=np.arange(len(cases)))
    names = sorted(cases[over].unique(), key=lambda name: draws.hash48(seed, name))
    folds = table[over].map({name: i % k for i, name in enumerate(names)}).to_numpy()
    ways: dict[str, Any] = {"always": 1.0, "asked twice": table["changed"]}
    ways |= {"found in it": table["stated"]} | {way: np.full(len(table), np.nan) for way in WAYS}
    for (way, used), fold in product(WAYS.items(), np.unique(folds)):
        here = folds == fold
        ways[way][here] = probability(table[here], fit(table[~here], used))
    return stacked({way: table.assign(probability=p) for way, p in ways.items()}, "way")


def cases(model: Model, questions: pd.DataFrame, contexts: pd.DataFrame) -> pd.DataFrame:
    """`outcomes` of asking a model with each of the `contexts` (question_id, context, sentence,
    stated, as of `retrieved`), with their context as `kind`."""
    rows = questions.set_index("question_id", drop=False).loc[contexts["question_id"]]
    table = ask(model, rows, contexts["sentence"].tolist())
    return outcomes(table.assign(kind=contexts["context"].to_numpy()), contexts["stated"].tolist())


def retrieved(questions: pd.DataFrame, pool: pd.DataFrame) -> pd.DataFrame:
    """What BM25 finds for questions, as contexts for `cases`, three of each question.

    "retrieved" is among the sentences of the `pool`'s facts (`context.facts.facts_as_questions`);
    "fact missing" the same without the fact asked for; "question" among the pool's questions, which
    state nothing.
    """
    answers = pool["answers"].str[0]
    states_it = dict(zip(pool["prefix"] + " " + answers, answers, strict=True))
    facts = (questions["prefix"] + " " + questions["answers"].str[0]).tolist()
    queries, sentences = questions["question"].tolist(), list(states_it)
    found = {
        "retrieved": retrieve(queries, sentences),
        "fact missing": retrieve(queries, sentences, facts),
        "question": retrieve(queries, pool["question"].tolist()),
    }
    ids = questions[["question_id"]]
    table = stacked({kind: ids.assign(sentence=texts) for kind, texts in found.items()}, "context")
    table["stated"] = [states_it.get(text, "") for text in table["sentence"]]
    return table[table["sentence"] != ""].reset_index(drop=True)


def retrieve(
    queries: Sequence[str], passages: Sequence[str], but: Sequence[str] | None = None
) -> list[str]:
    """The passage that BM25 ranks first for each query, the first of equals, not the one that `but`
    names; "" where no passage shares a word."""
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(passages), show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(list(queries), show_progress=False)
    found = index.retrieve(tokens, k=len(passages), show_progress=False)
    best, left_out = [], but or [""] * len(queries)
    for row, scores, excluded in zip(found.documents, found.scores, left_out, strict=True):
        ranked = np.lexsort([row, -scores.round(4)])  # bm25s leaves equals in an order by processor
        texts = (passages[row[i]] for i in ranked if scores[i] > 0)
        best.append(next((text for text in texts if text != excluded), ""))
    return best
