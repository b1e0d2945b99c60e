"""Does an answer come from memory or from the context (thesis, 3.2.2 and 3.3)?

Results are the rows of `probes.context.ask`: the answer without context (parametric), the one that
the context states (counterfactual), the answer given with the context (contextual), and perplexities.

Two rules, here and in all functions that take `rule`:

"published" is what the thesis's code does (listing 5). Source: lower-case both answers, delete the
letters "the" wherever they stand, and commas; they are equal if one begins the other, so that an
empty answer equals any, "1" equals "1969", and "Netherlands" loses letters. (The text, 3.2.2, has
another rule: punctuation and stop words removed, one a subsequence of the other.) Preference:
parametric if P4 > P3, the perplexity of the answer given over that of the counterfactual, which
says nothing of the parametric answer; a missing perplexity is contextual (but without any P4, as in
results computed elsewhere, all preferences are missing).

"robust" is the default. Source: the rules of `metrics.others`, by which an answer of kind 1 is
parametric and one of kind 5 contextual, and empty answers are "empty". Preference: the text's
definition (3.3.3, figure 4), parametric if P2 < P3, contextual if P2 > P3; equal perplexities are a
"tie" (answers of one token do tie), missing ones are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from factrobust.metrics.other_rules import NEGATION
from factrobust.metrics.others import JUDGED, Decision, Judge, decide, judged
from factrobust.metrics.text import contains, exact_match, normalise
from factrobust.metrics.text_values import Quantity, agreement, date, meet, quantity

RULES = ("robust", "published")
SOURCES = ("parametric", "contextual", "other", "empty")
PREFERENCES = ("parametric", "contextual", "tie")
ANSWERS = ("parametric", "counterfactual", "contextual")
CORRECT = {
    "parametric_correct": "parametric",
    "counterfactual_correct": "counterfactual",
    "correct": "contextual",
}
_SOURCE_OF = {None: "empty", 1: "parametric", 5: "contextual"}


def perplexity(logprobs: ArrayLike) -> float:
    """exp of the mean negative natural log-probability of an answer's tokens, [token].

    It equals 2 to the mean negative log2 probability (equations 1 and 2). NaN without tokens.
    """
    x = np.asarray(logprobs, dtype=float)
    return float(np.exp(-x.mean())) if x.size else np.nan


def published_equal(a: str, b: str) -> bool:
    """Whether the thesis's code takes two answers for equal (see above)."""
    a, b = (x.lower().replace("the", "").replace(",", "").strip() for x in (a, b))
    return a.startswith(b) or b.startswith(a)


def published_source(parametric: str, counterfactual: str, contextual: str) -> str:
    """Source of an answer by the published comparison: parametric is tested first."""
    if published_equal(contextual, parametric):
        return "parametric"
    return "contextual" if published_equal(contextual, counterfactual) else "other"


def right(text: str, answers: Sequence[str]) -> bool:
    """Whether a text states an accepted answer: its words, or the same date or number.

    A date must be as precise as the answer. What the text negates it does not state ("not Paris").
    """
    before = NEGATION.split(text)[0].strip()
    stated = before or text.partition(" but ")[2].strip()
    if exact_match(text, answers) or contains(stated, answers):
        return True
    when, number = date(stated), quantity(stated)
    for answer in answers:
        then, value = date(answer), quantity(answer)
        if when and then and then.month:
            if agreement(when, then) == sum(part is not None for part in then):
                return True
        elif number and value and meet(number, value) and _width(number) <= _width(value):
            return True
    return False


def preference(results: pd.DataFrame, rule: str = "robust") -> pd.Series:
    """Which source the perplexities prefer, [row]: one of PREFERENCES, or None where missing."""
    _check_rule(rule)
    _check_columns(results, ["p3", "p4"] if rule == "published" else ["p2", "p3"])
    if rule == "published":
        parametric = results["p4"] > results["p3"]
        values = np.where(parametric, "parametric", "contextual").astype(object)
        if results["p4"].isna().all():
            values[:] = None
    else:
        p2, p3 = (results[name].to_numpy(dtype=float) for name in ("p2", "p3"))
        values = np.full(len(results), None, dtype=object)
        for name, holds in zip(PREFERENCES, (p2 < p3, p2 > p3, p2 == p3), strict=True):
            values[holds] = name
    return pd.Series(values, index=results.index, dtype=object, name="preference")


def mark(
    results: pd.DataFrame,
    questions: pd.DataFrame | None = None,
    rule: str = "robust",
    *,
    judge: Judge | None = None,
) -> pd.DataFrame:
    """Results with the source of each answer and what it prefers, by one of RULES.

    Adds source (one of SOURCES; "published" knows no "empty"), kind (1 to 7, see `metrics.others`,
    of the answers that this rule or the published one calls other; else missing), kind_rule (what
    decided it), preference, and parametric_correct, counterfactual_correct and correct (of the
    contextual answer), missing where no answer is accepted. `questions` has question_id and answers
    (list), and may have right_answers ("one" or "several"): if only one is right, the answers are
    names of one thing, and answers to the same base question that share it are the same. `judge`
    decides between kinds 2, 3 and 6. Raises ValueError for another rule, a question that is not
    among `questions`, or perplexities below 1.
    """
    _check_rule(rule)
    rows = _records(results, questions)
    synonyms = _synonyms(questions)
    made = [_decided(row, synonyms.get(row["base_id"], {})) for row in rows]
    published = [published_source(*(row[name] for name in ANSWERS)) for row in rows]
    robust = [_SOURCE_OF.get(decision.kind, "other") for decision in made]
    source = published if rule == "published" else robust
    for i, row in enumerate(rows):
        if made[i].kind is None or "other" not in (published[i], source[i]):
            made[i] = Decision(None, "")
        elif judge is not None and made[i].kind in JUDGED:
            made[i] = Decision(judged(judge, row), "judge")
    return results.assign(
        source=pd.Series(source, index=results.index, dtype=object),
        kind=pd.array([d.kind for d in made], dtype="Int64"),
        kind_rule=pd.Series([d.rule or None for d in made], index=results.index, dtype=object),
        preference=preference(results, rule),
        **{
            column: pd.array(
                [right(row[text], row["answers"]) if row["answers"] else None for row in rows],
                dtype="boolean",
            )
            for column, text in CORRECT.items()
        },
    )


def changes(results: pd.DataFrame, questions: pd.DataFrame | None = None) -> pd.DataFrame:
    """What changes between the rules: how often each pair of verdicts occurs, most frequent first.

    Columns: model, verdict ("source" or "preference"), published, robust, n, share (of the model's
    rows), kind_rule (what most often decided the robust source; "" where the rules agree), example
    (a question_id). A missing preference is "".
    """
    by_rule = {rule: mark(results, questions, rule) for rule in RULES}
    rows = pd.concat(
        results[["model", "question_id"]].assign(
            verdict=verdict,
            **{rule: by_rule[rule][verdict].fillna("") for rule in ("published", "robust")},
            kind_rule=by_rule["robust"]["kind_rule"].fillna("") if verdict == "source" else "",
        )
        for verdict in ("source", "preference")
    )
    rows.loc[rows["published"] == rows["robust"], "kind_rule"] = ""
    table = rows.groupby(["model", "verdict", "published", "robust"], sort=False).agg(
        n=("question_id", "size"),
        kind_rule=("kind_rule", lambda names: names.value_counts().index[0]),
        example=("question_id", "first"),
    )
    table.insert(1, "share", table["n"] / table["n"].groupby(["model", "verdict"]).transform("sum"))
    table = table.reset_index()
    model, verdict = (pd.factorize(table[name])[0] for name in ("model", "verdict"))
    return table.iloc[np.lexsort([-table["n"].to_numpy(), verdict, model])].reset_index(drop=True)


def _width(number: Quantity) -> float:
    return number.high - number.low


def _check_rule(rule: str) -> None:
    if rule not in RULES:
        raise ValueError(f"there is no rule {rule!r}; choose one of {', '.join(RULES)}")


def _check_columns(results: pd.DataFrame, needed: Sequence[str]) -> None:
    if absent := [name for name in needed if name not in results]:
        raise ValueError(
            f"the results have no column {absent[0]!r}; they have {', '.join(results.columns)}"
        )


def _records(results: pd.DataFrame, questions: pd.DataFrame | None) -> list[dict[Any, Any]]:
    """The rows with texts for answers (missing ones are empty), answers and right_answers."""
    _check_columns(results, ["question_id", "base_id", *ANSWERS])
    for name in ("p0", "p1", "p2", "p3", "p4"):
        if name in results and (low := results[name] < 1 - 1e-6).any():
            raise ValueError(
                f"the {name} of {results['question_id'][low].iloc[0]} is {results[name][low].iloc[0]}, "
                "and a perplexity is at least 1; give exp of the mean negative log-probability"
            )
    known: dict[Any, dict[Any, Any]] = {}
    if questions is not None:
        columns = [c for c in ("question_id", "answers", "right_answers") if c in questions]
        known = {row["question_id"]: row for row in questions[columns].to_dict("records")}
        if (lost := ~results["question_id"].isin(list(known))).any():
            raise ValueError(
                f"{lost.sum()} row(s), such as {results['question_id'][lost].iloc[0]}, belong to no "
                "question; pass the questions that were asked"
            )
    rows = results.to_dict("records")
    for row in rows:
        about = known.get(row["question_id"], {})
        row |= {name: row[name] if isinstance(row[name], str) else "" for name in ANSWERS}
        row |= {
            "answers": list(about.get("answers", ())),
            "right_answers": about.get("right_answers"),
        }
    return rows


def _synonyms(questions: pd.DataFrame | None) -> dict[str, dict[str, frozenset[str]]]:
    """For each base question, which questions accept a normalised answer, if one answer is right."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for row in [] if questions is None else questions.to_dict("records"):
        if row.get("right_answers") == "several":
            continue
        names = found.setdefault(row["base_id"], {})
        for answer in filter(None, map(normalise, row["answers"])):
            names[answer] = names.get(answer, frozenset()) | {row["question_id"]}
    return found


def _decided(row: Mapping[str, Any], synonyms: Mapping[str, frozenset[str]]) -> Decision:
    return decide(
        *(row[name] for name in ANSWERS),
        accepted=row["answers"],
        synonyms=synonyms,
        right_answers=row["right_answers"],
    )
