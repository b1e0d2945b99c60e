"""Ask facts with contexts that are true, irrelevant or false, which needs their truth to be known.

All three are sentences of one form. The last two state the same answer, that of another fact of the
relation: about its own subject, which is true and beside the question, or about the subject that is
asked for, which is false. They differ in one name, so that a model that reads whom a context is about
is told from one that repeats whatever stands there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factrobust.metrics.first_token import first_shift
from factrobust.metrics.grounding import right
from factrobust.models.interface import LacksError, Model
from factrobust.probes.context import MAX_NEW_TOKENS, greedy
from factrobust.probes.context_results import COLUMNS, count_empty

KINDS = ("true", "irrelevant", "false")
NEEDED = ("question_id", "base_id", "prefix", "answers")


def known_contexts(
    questions: pd.DataFrame, pool: pd.DataFrame | None = None, *, seed: int = 0
) -> pd.DataFrame:
    """The contexts of each question, one row a question, in their order.

    `questions` and `pool`, from which the other facts are drawn (default: the questions), are tables
    of `datasets.context.facts_as_questions`. Columns: question_id, the KINDS (sentences without a
    full stop, for `probes.context.greedy`), other (the question_id of the other fact), stated (list
    of str, its accepted answers).

    Uniform over the facts of the pool with the same base_id of which neither accepts the other's
    answer. A question's draw depends on the seed and on these facts, not on their order; in a larger
    pool it differs only if an added fact is drawn. Raises ValueError for a question without an
    accepted answer, and for one to which there is no such other fact.
    """
    pool = questions if pool is None else pool
    for table in (questions, pool):
        _check(table)
    groups = {key: part.to_dict("records") for key, part in pool.groupby("base_id", sort=False)}
    rows = []
    for asked in questions.to_dict("records"):
        other = _other(asked, groups.get(asked["base_id"], []), seed)
        rows.append(
            {
                "question_id": asked["question_id"],
                "true": f"{asked['prefix']} {asked['answers'][0]}",
                "irrelevant": f"{other['prefix']} {other['answers'][0]}",
                "false": f"{asked['prefix']} {other['answers'][0]}",
                "other": other["question_id"],
                "stated": other["answers"],
            }
        )
    return pd.DataFrame(rows, columns=["question_id", *KINDS, "other", "stated"])


def ask_known(
    model: Model,
    questions: pd.DataFrame,
    pool: pd.DataFrame | None = None,
    *,
    seed: int = 0,
    max_new_tokens: int = MAX_NEW_TOKENS,
    rule: str = "robust",
    prompt_format: str | None = None,
) -> pd.DataFrame:
    """Ask each question without a context and with each of its `known_contexts`.

    Returns the columns of `probes.context.ask` and context, one of KINDS: for each of these a row a
    question, in their order. parametric is the answer without context, counterfactual what the
    context states (the truth in a true one), contextual the answer with it. Nothing is scored: p1,
    p2, p3 and n_tokens_counterfactual are NaN; p0 and p4 come from generation. attrs["counts"] holds
    "questions" and, over the rows, the numbers of empty answers. Raises ValueError as
    `known_contexts` and `probes.context.greedy` do.
    """
    made = known_contexts(questions, pool, seed=seed)
    options: dict[str, Any] = {"rule": rule, "prompt_format": prompt_format}
    options["max_new_tokens"] = max_new_tokens
    memory = greedy(model, questions, **options)
    p = pd.concat([memory] * len(KINDS), ignore_index=True)
    sentences = made.melt(value_vars=KINDS, var_name="context")
    asked = pd.concat([questions] * len(KINDS), ignore_index=True)
    answers = greedy(model, asked, sentences["value"].tolist(), **options)
    truth = sentences["context"] == "true"
    stated = pd.concat([made["stated"]] * len(KINDS), ignore_index=True)
    pairs = zip(p["first"], answers["first"], strict=True)
    results = answers.assign(
        context=sentences["context"],
        parametric=p["text"],
        counterfactual=asked["answers"].where(truth, stated).str[0],
        contextual=answers["text"],
        p0=p["perplexity"],
        p1=np.nan,
        p2=np.nan,
        p3=np.nan,
        p4=answers["perplexity"],
        n_tokens_parametric=p["token_ids"].map(len).astype(np.int64),
        n_tokens_counterfactual=np.nan,
        first_entropy=p["first_entropy"],
        first_entropy_context=answers["first_entropy"],
        first_shift=np.array([first_shift(a, b) for a, b in pairs], dtype=np.float64),
    )[[*COLUMNS, "context"]]
    results.attrs["counts"] = {"questions": len(questions)} | count_empty(results)
    return results


def _other(asked: Mapping[Any, Any], facts: list[dict[Any, Any]], seed: int) -> dict[Any, Any]:
    """The fact of the smallest of independent uniform numbers, of those whose answer is another."""
    for fact in sorted(facts, key=lambda f: _number(seed, asked["question_id"], f["question_id"])):
        same = right(fact["answers"][0], asked["answers"])
        if not same and not right(asked["answers"][0], fact["answers"]):
            return fact
    raise ValueError(
        f"to {asked['question_id']} there is no other fact of {asked['base_id']!r} with another "
        "answer, which a false context states; give a larger pool, or leave the question out"
    )


def _check(table: pd.DataFrame) -> None:
    if missing := [name for name in NEEDED if name not in table]:
        raise ValueError(
            f"the questions have no column {', '.join(missing)}; take those of "
            "datasets.context.facts_as_questions"
        )
    if (unknown := table["answers"].str.len() == 0).any():
        raise ValueError(
            f"the answer to {table['question_id'][unknown].iloc[0]} is not known, and a true context "
            "states it; take the questions of datasets.context.facts_as_questions"
        )


def _number(*key: object) -> bytes:
    return hashlib.blake2b("\n".join(map(str, key)).encode(), digest_size=8).digest()


def need_right(marked: pd.DataFrame, models: Sequence[Model]) -> None:
    """Raise LacksError if no answer (`metrics.grounding.mark`) is right, with a context or without
    one: there is nothing that a context could change."""
    if models and not marked[["correct", "parametric_correct"]].to_numpy(dtype=bool).any():
        names = ", ".join(model.name for model in models)
        raise LacksError(
            f"{names}: no answer is right, with a context or without one, so there is nothing that a "
            "context could change; ask easier questions, or another model"
        )
