"""Does an answer come from memory or from the context (thesis, 3.2.2 and 3.3)?

Responses of `context.probe.ask_counterfactual` become results with perplexities (`measured`), and
marked results with the source of each answer, by two rules:

`mark_sources` is ours (`decide`); "same" rows, where parametric and counterfactual answers say the
same, are left out of every share. `by_code` is the thesis's code (`published_source`), with its
preference: parametric if P4 > P3, which says nothing of the parametric answer; a missing perplexity
is contextual.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factrobust.context.rules import KINDS, decide, degeneracy, published_source, right
from factrobust.intervals import binomial_interval, bootstrap_mean, exact_share
from factrobust.text import normalise

SOURCES = ("parametric", "contextual", "other", "none")
PREFERENCES = ("parametric", "contextual")
ANSWERS = ("parametric", "counterfactual", "contextual")
PERPLEXITIES = ("p0", "p1", "p2", "p3", "p4")
QUANTILES = {
    "5%": 0.05,
    "25%": 0.25,
    "50%": 0.5,
    "75%": 0.75,
    "95%": 0.95,
}
CORRECT = {"parametric_correct": "parametric", "correct": "contextual"}
ORDERED: dict[str, tuple] = {
    "source": SOURCES,
    "preference": PREFERENCES,
    "kind": tuple(KINDS),
}


def measured(responses: pd.DataFrame) -> pd.DataFrame:
    """Responses of `context.probe.ask_counterfactual` or `ask_known` with their numbers:
    `schemas.ContextResults`."""
    columns = {f"logprobs_{name}": name for name in PERPLEXITIES}
    lists = responses.reindex(columns=list(columns)).rename(columns=columns).astype(object)
    numbers = lists.map(perplexity, na_action="ignore").astype(float)
    lengths = lists[["p0", "p1"]].map(len, na_action="ignore").astype(float)
    return responses.assign(
        **numbers,
        n_tokens_parametric=lengths["p0"],
        n_tokens_counterfactual=lengths["p1"],
    )


def perplexity(logprobs: Sequence[float]) -> float:
    """exp of the mean negative natural log-probability of an answer's tokens, [token] (equations 1
    and 2). NaN without tokens."""
    if not len(logprobs):
        return math.nan
    mean = math.fsum(logprobs) / len(logprobs)
    return math.inf if mean < -709 else math.exp(-mean)


def answer_source_label(marked: pd.DataFrame) -> Any:
    """What each answer with a context says, [row]: "its memory" if right, else "the context" if it
    states the same, else "something else"."""
    pairs = zip(marked["contextual"], marked["counterfactual"], strict=True)
    follows = [right(text, [stated]) for text, stated in pairs]
    answers: Any = [marked["correct"].astype(bool), follows]
    return np.select(answers, ["its memory", "the context"], "something else")


def mark_sources(results: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """The source of each answer of `schemas.ContextResults` by our rules: `schemas.MarkedContext`.

    Source is "same" or one of SOURCES; kind is 1 to 7, of `context.rules`. An answer is `sound` if
    none of the three texts is degenerate and the first two differ. `questions` are those asked
    (`schemas.ContextQuestions`): if only one answer is right, the accepted ones are names of one
    thing.
    """
    asked = questions.set_index("question_id").loc[results["question_id"]]
    accepted = asked["answers"].tolist()
    names = _names(questions)
    texts = results[["base_id", *ANSWERS]].itertuples(index=False)
    rows = []
    for answers, right_answers, (base_id, *given) in zip(
        accepted, asked["right_answers"], texts, strict=True
    ):
        one_name = [names.get((base_id, normalise(text)), text) for text in given]
        source, kind = decide(*one_name, accepted=answers, right_answers=right_answers)
        is_sound = source != "same" and not any(map(degeneracy, given))
        rows.append((source, kind, is_sound))
    columns: Any = {"source": object, "kind": "Int64", "sound": bool}
    verdicts = pd.DataFrame(rows, results.index, [*columns]).astype(columns)
    marked = results.assign(**verdicts)
    for column, answer in CORRECT.items():
        pairs = zip(results[answer], accepted, strict=True)
        rights = [right(*pair) if pair[1] else None for pair in pairs]
        marked[column] = pd.array(rights, dtype="boolean")
    return marked


def by_code(marked: pd.DataFrame) -> pd.DataFrame:
    """The same answers by the thesis's code: source (`published_source`) and preference. Its kind
    is that of answers which it calls other."""
    texts = marked[[*ANSWERS]].itertuples(index=False)
    sources = np.array([published_source(*three) for three in texts], dtype=object)
    prefers = np.where(marked["p4"] > marked["p3"], "parametric", "contextual")
    kinds = marked["kind"].where(sources == "other")
    return marked.assign(source=sources, preference=prefers, kind=kinds)


def _names(questions: pd.DataFrame) -> dict[tuple[str, str], str]:
    """One name for all accepted spellings of an answer, by base question and normalised spelling,
    if one answer is right; the first question's, where two accept a spelling."""
    found: dict[tuple[str, str], str] = {}
    of_one = questions[questions["right_answers"] != "several"]
    for base_id, answers in of_one[["base_id", "answers"]].itertuples(index=False):
        for spelling in filter(None, map(normalise, answers)):
            found.setdefault((base_id, spelling), answers[0])
    return found


def counts_by(
    marked: pd.DataFrame,
    by: Sequence[str] = ("model",),
    value: str = "source",
    *,
    group: str = "question_id",
    n_boot: int = 2000,
) -> pd.DataFrame:
    """How often each value occurs, and its share of the rows that have one (tables 8 to 10, 13,
    14).

    `value` is source, preference or kind, whose values are all listed, or another column. Columns:
    `by`, value, count, total (rows with a value), share, low, high, n (`group`s), n_missing (other
    rows).

    Bounds are exact binomial (Clopper-Pearson) where each group has one row, because resampling
    calls 0 of 8 sure; else whole groups are resampled.
    """
    rows = []
    order = ORDERED.get(value, tuple(marked[value].dropna().unique()))
    for key, part in _groups(marked, by):
        known = part[part[value].isin(order)]
        n = len(known)
        groups = known[group]
        has_repeats = groups.duplicated().any()
        for name in order:
            hits = known[value] == name
            if has_repeats:
                share = bootstrap_mean(hits, groups, n_boot=n_boot)
            else:
                share = exact_share(hits)
            rows.append((*key, name, int(hits.sum()), n, *share, len(part) - n))
    columns = [*by, value, "count", "total", "share", "low", "high", "n", "n_missing"]
    return pd.DataFrame(rows, columns=columns)


def with_shares(counts: pd.DataFrame, by: Sequence[str] = ("model",)) -> pd.DataFrame:
    """Counts that a paper prints with their shares of the total over the columns `by`. `counts` has
    those, count, and what was counted. Adds total, share, low, high (exact binomial) and n."""
    total = counts.groupby(list(by), sort=False)["count"].transform("sum")
    low, high = binomial_interval(counts["count"], total)
    share = counts["count"] / total
    return counts.assign(total=total, share=share, low=low, high=high, n=total)


def perplexity_table(
    marked: pd.DataFrame,
    by: Sequence[str] = ("model", "source"),
    *,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """Distribution of P4 (tables 11 and 12), which the thesis groups by P4 > P3. Columns: `by`,
    count, mean, low, high (of the mean), n (questions), std, QUANTILES, n_missing (rows without a
    finite number). Rows whose source is "same" are left out."""
    rows = []
    for key, part in _groups(marked[marked["source"] != "same"], by):
        known = part[np.isfinite(part["p4"])]
        numbers = known["p4"]
        row = [
            *key,
            len(known),
            *bootstrap_mean(numbers, known["question_id"], n_boot=n_boot),
            numbers.std(),
            *numbers.quantile(list(QUANTILES.values())),
            len(part) - len(known),
        ]
        rows.append(row)
    columns = [*by, "count", "mean", "low", "high", "n", "std", *QUANTILES, "n_missing"]
    return pd.DataFrame(rows, columns=columns)


def _groups(
    table: pd.DataFrame,
    by: Sequence[str],
) -> Iterator[tuple[Any, pd.DataFrame]]:
    """The parts of a table by the columns `by`, in the order of ORDERED or of the first rows;
    missing last."""
    ranked = table.copy()
    for name in by:
        order = dict.fromkeys([*ORDERED.get(name, ()), *table[name].dropna().unique()])
        ranked[name] = pd.Categorical(table[name], list(order))
    return iter(ranked.groupby(list(by), observed=True, dropna=False))
