"""How well do scores tell that an answer came from the context (thesis, 6.1.3)?

A case is an answer with its outcome `from_context`, told by what follows when the context's answers
are exchanged (`caused`).
"""

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import expit

from factrobust import draws
from factrobust.context.rules import degeneracy, same_answer, swap_source
from factrobust.intervals import Array
from factrobust.regression import ridge
from factrobust.tables import TooFewError, stacked
from factrobust.text import contains

OUTCOME = "from_context"
FOLLOWS = ("context", "both", "slots")  # of `rules.CAUSES`
SCORES = ["minus_log_p4", "log_p0", "minus_tokens"]
# Of the normal priors of coefficients, and of the constant's, so that it settles.
PRECISION = 1.0
CONSTANTS_PRECISION = 1e-9


def caused(answers: pd.DataFrame) -> pd.DataFrame:
    """Measured answers of `context.probe.swapped` with what the exchange and the words say of them.

    Adds cause (`rules.swap_source`), from_context (it follows slots: context, both or slots),
    moved_slots and moved_placebo (the answer after the first exchange of the slots, and after that
    of the placebo, is another; NaN without a placebo), and the columns of `by_words`.
    """
    texts = answers[["parametric", "contextual", "text_1", "text_2", "text_placebo", "slots"]]
    rows = []
    for memory, given, first, second, placebo, slots in texts.itertuples(index=False):
        cause = swap_source(memory, given, (first, second), slots)
        moved = [float(not same_answer(given, other)) for other in (first, placebo)]
        rows.append((cause, cause in FOLLOWS, *moved))
    columns = ["cause", OUTCOME, "moved_slots", "moved_placebo"]
    table = pd.DataFrame(rows, answers.index, columns)
    table.loc[answers["placebo"] == "", "moved_placebo"] = np.nan
    words = by_words(answers["parametric"], answers["contextual"], answers["sentence"])
    return answers.join(table).join(words.set_index(answers.index))


def by_words(
    memory: Iterable[str],
    given: Iterable[str],
    contexts: Iterable[str],
) -> pd.DataFrame:
    """What words say of answers without and with a context, [row]: changed (memory says otherwise),
    stated (the context holds the answer), says (the answer says anything), and defined (they can
    tell the source: not where memory says what the context says, too)."""
    rows = []
    for without, answer, context in zip(memory, given, contexts, strict=True):
        changed = not same_answer(without, answer)
        stated = contains(context, [answer])
        says = degeneracy(answer) is None
        rows.append((changed, stated, says, says and (changed or not stated)))
    return pd.DataFrame(rows, columns=["changed", "stated", "says", "defined"])


def with_scores(answers: pd.DataFrame) -> pd.DataFrame:
    """Measured answers with their SCORES, of which higher ones shall mean that the answer came from
    the context: it was expected there, memory was unsure of its own, and it is short; and tokens,
    its number of them."""
    tokens = answers["logprobs_p4"].map(len)
    return answers.assign(
        minus_log_p4=-np.log(answers["p4"]),
        log_p0=np.log(answers["p0"]),
        minus_tokens=-tokens,
        tokens=tokens,
    )


def won_pairs(
    cases: pd.DataFrame,
    scores: Sequence[str],
    within: Sequence[str] = (),
) -> pd.DataFrame:
    """Pairs of a case from the context and one that is not, of one model and relation (base_id) and
    alike in the columns `within`: a row a model, relation and score, with pairs, and won, how many
    the former's score is higher in (ties count half). The AUC within relations is the sum of won
    over that of pairs."""
    known = cases.dropna(subset=list(scores))
    rows = []
    for (model, relation, *_), alike in known.groupby(["model", "base_id", *within], sort=False):
        follows = alike[OUTCOME].to_numpy(dtype=bool)
        for score in scores:
            value = alike[score].to_numpy(dtype=float)
            lead = value[follows][:, None] - value[~follows]
            won = np.heaviside(lead, 0.5).sum()
            rows.append((model, relation, score, won, float(lead.size)))
    columns = ["model", "base_id", "score"]
    table = pd.DataFrame(rows, columns=[*columns, "won", "pairs"])
    sums = table.groupby(columns, sort=False).sum().reset_index()
    return sums[sums["pairs"] > 0].reset_index(drop=True)


def gains(won: pd.DataFrame, ways: Sequence[str], over: str) -> pd.DataFrame:
    """How many more pairs each of `ways` wins than `over`, which are scores of `won_pairs`: a row a
    model, relation and score ("<way> minus <over>"), with pairs, and gained. TooFewError without a
    pair."""
    if won.empty:
        raise TooFewError(
            "In no relation does one answer follow its passage and another not, so there are none "
            "to tell apart: ask more facts."
        )
    wide = won.pivot(
        index=["model", "base_id", "pairs"],
        columns="score",
        values="won",
    ).reset_index()
    tables = {}
    for way in ways:
        tables[f"{way} minus {over}"] = wide.assign(gained=wide[way] - wide[over])
    return stacked(tables, "score")


def told_by(
    cases: pd.DataFrame,
    names: Sequence[str],
    *,
    of_others: bool = False,
    k: int = 5,
    n_folds: int = 12,
) -> Array:
    """Probability of from_context by the columns `names`, [row]: a logistic regression fitted on
    other relations, in k folds of them, of the same model or `of_others` alone. The mean over
    `n_folds` ways of making folds, so that no luck of one is left."""
    x = np.column_stack([np.ones(len(cases)), *(cases[name] for name in names)])
    y = cases[OUTCOME].to_numpy(dtype=float)
    precision = np.array([CONSTANTS_PRECISION, *[PRECISION] * len(names)])
    probability = np.zeros(len(cases))
    for seed in range(n_folds):
        relations = cases["base_id"].unique()
        by_lot = sorted(relations, key=lambda name: draws.hash48(seed, name))
        fold_of = {name: i % k for i, name in enumerate(by_lot)}
        folds = cases["base_id"].map(fold_of)
        for model, fold in product(cases["model"].unique(), range(k)):
            is_model = cases["model"] == model
            is_fitted_on = ~is_model if of_others else is_model
            test = (is_model & (folds == fold)).to_numpy()
            train = (is_fitted_on & (folds != fold)).to_numpy()
            slopes, _ = ridge(x[train], y[train], precision)
            probability[test] += expit(x[test] @ slopes) / n_folds
    return probability
