"""Does an answer come from memory or from the context (thesis, 3.2.2 and 3.3)?

Responses of `context.probe.ask` become results with perplexities (`measured`), and marked results
with the source of each answer (`mark_sources`). A `rule` tells sources:

"published" is the thesis's code. Source: `published_source`. Preference: parametric if P4 > P3,
which says nothing of the parametric answer; a missing perplexity is contextual.

"robust" is ours. Source: `decide`; "same" rows, where parametric and counterfactual answers say the
same, are left out of every share. Preference: the text's definition (3.3.3, figure 4), parametric
if P2 < P3, contextual if P2 > P3, "tie" if equal (as answers of one token), missing if one is
missing.
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
PREFERENCES = ("parametric", "contextual", "tie")
ANSWERS = ("parametric", "counterfactual", "contextual")
PERPLEXITIES = ("p0", "p1", "p2", "p3", "p4")
QUANTILES = {
    "5%": 0.05,
    "25%": 0.25,
    "50%": 0.5,
    "75%": 0.75,
    "95%": 0.95,
}
CORRECT = {f"{name}_correct": name for name in ANSWERS[:2]} | {"correct": ANSWERS[2]}
ORDERED: dict[str, tuple] = {
    "source": SOURCES,
    "preference": PREFERENCES,
    "kind": tuple(KINDS),
}


def measured(responses: pd.DataFrame) -> pd.DataFrame:
    """Responses of `context.probe.ask` or `ask_known` with their numbers:
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


def answer_counts(
    results: pd.DataFrame,
    questions: pd.DataFrame,
    models: Sequence[str],
) -> pd.DataFrame:
    """What became of the questions, a row a model (the index). Columns: questions,
    no_counterfactual (left out by `context.probe.ask`), and how many of each of ANSWERS have no
    letter or digit: empty_parametric, ..."""
    is_empty = results[list(ANSWERS)].map(_is_empty).astype(bool)
    counts = is_empty.groupby(results["model"]).sum().add_prefix("empty_")
    counts = counts.reindex(pd.Index(models), fill_value=0)
    if "context" not in results:
        answered = results.groupby("model").size().reindex(counts.index, fill_value=0)
        counts.insert(0, "no_counterfactual", len(questions) - answered)
    counts.insert(0, "questions", len(questions))
    return counts.rename_axis("model")


def _is_empty(text: str) -> bool:
    """Whether a text has no letter and no digit."""
    return not any(character.isalnum() for character in text)


def answer_source_label(marked: pd.DataFrame) -> Any:
    """What each answer with a context says, [row]: "its memory" if right, else "the context" if it
    states the same, else "something else"."""
    pairs = zip(marked["contextual"], marked["counterfactual"], strict=True)
    follows = [right(text, [stated]) for text, stated in pairs]
    answers: Any = [marked["correct"].astype(bool), follows]
    return np.select(answers, ["its memory", "the context"], "something else")


def preference(results: pd.DataFrame, rule: str = "robust") -> pd.Series:
    """Which source the perplexities prefer, [row]: one of PREFERENCES, or None where missing."""
    p2 = results["p2"]
    p3 = results["p3"]
    p4 = results["p4"]
    by_rule: dict[str, Any] = {
        "published": np.where(p4 > p3, "parametric", "contextual"),
        "robust": np.select([p2 < p3, p2 > p3, p2 == p3], PREFERENCES, None),  # type: ignore[call-overload]
    }
    return pd.Series(by_rule[rule], index=results.index, dtype=object, name="preference")


def mark_sources(
    results: pd.DataFrame,
    questions: pd.DataFrame,
    rule: str = "robust",
) -> pd.DataFrame:
    """The source of each answer of `schemas.ContextResults` by a rule: `schemas.MarkedContext`.

    Source is "same" or one of SOURCES ("published" knows no "none"); kind (1 to 7, of
    `context.rules`) is of answers that this rule or the published one calls other. An answer is
    `sound` if none of the three texts is degenerate and the first two differ. `questions` are those
    asked (`schemas.ContextQuestions`): if only one answer is right, the accepted ones are names of
    one thing.
    """
    asked = questions.set_index("question_id").loc[results["question_id"]]
    accepted = asked["answers"].tolist()
    names = _names(questions)
    texts = results[["base_id", *ANSWERS]].itertuples(index=False)
    rows = zip(accepted, asked["right_answers"], texts, strict=True)
    sources = []
    is_sound = []
    kinds = []
    for answers, right_answers, (base_id, *given) in rows:
        one_name = [names.get((base_id, normalise(text)), text) for text in given]
        decision = decide(*one_name, accepted=answers, right_answers=right_answers)
        published = published_source(*given)
        source = published if rule == "published" else decision.source
        sources.append(source)
        is_sound.append(decision.source != "same" and not any(map(degeneracy, given)))
        kinds.append(decision.kind if "other" in (published, source) else None)
    marked = results.assign(
        source=pd.Series(sources, results.index, dtype=object),
        sound=pd.Series(is_sound, results.index, dtype=bool),
        kind=pd.Series(kinds, results.index, dtype="Int64"),
    )
    marked["preference"] = preference(results, rule).mask(marked["source"] == "same", None)
    for column, answer in CORRECT.items():
        verdicts = []
        for text, answers in zip(results[answer], accepted, strict=True):
            verdicts.append(right(text, answers) if answers else None)
        marked[column] = pd.array(verdicts, dtype="boolean")
    return marked


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


def shares(counts: pd.DataFrame, by: Sequence[str] = ("model",)) -> pd.DataFrame:
    """Counts that a paper prints with their shares of the total over the columns `by`. `counts` has
    those, count, and what was counted. Adds total, share, low, high (exact binomial) and n."""
    total = counts.groupby(list(by), sort=False)["count"].transform("sum")
    low, high = binomial_interval(counts["count"], total)
    return counts.assign(
        total=total,
        share=counts["count"] / total,
        low=low,
        high=high,
        n=total,
    )


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
        is_known = np.isfinite(part["p4"].to_numpy(dtype=float))
        known = part[is_known]
        numbers = known["p4"].astype(float)
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


def p0_exceptions(results: pd.DataFrame) -> pd.DataFrame:
    """How often P0 > P1, which the thesis excludes by definition (3.3.2). Both are means a token,
    so the numbers of tokens matter; greedy decoding finds the likeliest first token. Columns:
    model, tokens ("as many" of both answers, or "not"), n, exceptions, share, low, high (exact),
    n_missing."""
    as_many = results["n_tokens_parametric"] == results["n_tokens_counterfactual"]
    is_known = results[["p0", "p1"]].notna().all(axis=1)
    rows = pd.DataFrame(
        {
            "model": results["model"],
            "tokens": np.where(as_many, "as many", "not"),
            "n": is_known,
            "exceptions": results["p0"] > results["p1"],
            "n_missing": ~is_known,
        }
    )
    table = rows.groupby(["model", "tokens"], sort=False).sum().reset_index()
    table["share"] = table["exceptions"] / table["n"]
    table["low"], table["high"] = binomial_interval(table["exceptions"], table["n"])
    return table[["model", "tokens", "n", "exceptions", "share", "low", "high", "n_missing"]]


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
