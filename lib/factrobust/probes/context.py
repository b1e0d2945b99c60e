"""Part 4: ask a question from memory, then again with a counterfactual in the context.

A question's parametric answer p is greedy and without context; the counterfactual q is the
parametric answer to the same base question about another object; the contextual answer is greedy
with q in the context. P0 ... P4 say how surprising these answers are (the thesis, table 6; P4 has
no name there):

    P0 = PPL(p | Q)    P1 = PPL(q | Q)    P2 = PPL(p | Q')    P3 = PPL(q | Q')    P4 = PPL(answer | Q')

with Q the prompt without context and Q' with it. Where an answer came from is decided later, by the
metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd

from factrobust.metrics.first_token import first_entropy, first_shift
from factrobust.metrics.grounding import perplexity
from factrobust.models.interface import Generation, LacksError, Model
from factrobust.models.prompts import FORMATS, render
from factrobust.probes.context_results import COLUMNS, count_empty, read_results
from factrobust.probes.counterfactuals import counterfactuals
from factrobust.probes.endings import STOP, check_rule, ending, unsure

__all__ = ["MAX_NEW_TOKENS", "ask", "context_prompts", "greedy", "read_results"]

MAX_NEW_TOKENS = 20  # the thesis, appendix D
NEEDED = ("question_id", "category", "base_id", "object", "question", "prefix")
# Prompts at a time: an answer with its alternatives takes 30 kB until they are dropped.
CHUNK = 4096


def context_prompts(
    model: Model,
    questions: pd.DataFrame,
    contexts: Sequence[str] | None = None,
    *,
    prompt_format: str | None = None,
) -> list[str]:
    """The exact text sent for each question, with a context each or without.

    "Context: [The capital of Kenya is Lima]. Q: What is the capital of Kenya? A: The capital of
    Kenya is", without the first sentence if there is no context (the thesis's format; one space
    where its code has two). The answer follows after a space. In the format "prefix" this is the
    whole prompt; in "chat-prefix" the user's message ends with "A:" and the answer prefix begins the
    assistant's turn. Default: the one that goes with the model's own format.

    Raises ValueError for another format, a chat format asked of a model without a template, and
    contexts that are not one a question.
    """
    own = "chat-prefix" if FORMATS[model.prompt_format].chat else "prefix"
    name = prompt_format or own
    if name not in ("prefix", "chat-prefix"):
        raise ValueError(
            f"prompt format {name!r} does not begin the answer with a prefix, which the context "
            "repeats; choose prefix or chat-prefix"
        )
    asked = [f"Q: {question} A:" for question in questions["question"]]
    if contexts is not None:
        if len(contexts) != len(asked):
            raise ValueError(f"{len(contexts)} contexts for {len(asked)} questions; give one each")
        asked = [f"Context: [{c}]. {q}" for c, q in zip(contexts, asked, strict=True)]
    return render(name, asked, questions["prefix"].tolist(), model.chat)


def greedy(
    model: Model,
    questions: pd.DataFrame,
    contexts: Sequence[str] | None = None,
    *,
    max_new_tokens: int = MAX_NEW_TOKENS,
    rule: str = "robust",
    prompt_format: str | None = None,
) -> pd.DataFrame:
    """Greedy answers, one row a question in their order; equal prompts are asked once.

    Columns: model, question_id, category, base_id, object, prompt, text (up to its end by `rule`,
    see `probes.endings`; empty if it has no letter or digit), token_ids (the fewest that cover it),
    perplexity (of these, as generated; NaN for an empty answer), first (list of the likeliest first
    tokens and their natural log-probabilities), first_entropy (nats; NaN if generation ended
    at once). Raises ValueError as `context_prompts` does, and for an unknown rule.
    """
    check_rule(rule)
    model.require("token_ids")  # what is scored afterwards
    sent = context_prompts(model, questions, contexts, prompt_format=prompt_format)
    answered = {}
    for chunk in _chunks(sent):
        for made in _generated(model, chunk, max_new_tokens, rule):
            text, n = ending(made, rule)
            first = made.top_logprobs[0] if made.top_logprobs else []
            answered[made.prompt] = (
                text,
                made.token_ids[:n],
                perplexity(made.logprobs[:n]),
                first,
                first_entropy(first),
            )
    names = ["text", "token_ids", "perplexity", "first", "first_entropy"]
    rows = pd.DataFrame([answered[prompt] for prompt in sent], columns=names)
    table = questions[list(NEEDED[:4])].reset_index(drop=True)
    table.insert(0, "model", model.name)
    return table.assign(prompt=pd.Series(sent, dtype="str"), **rows).astype(
        {"text": "str", "perplexity": float, "first_entropy": float}
    )


def _generated(
    model: Model, prompts: list[str], max_new_tokens: int, rule: str
) -> Iterator[Generation]:
    """Generations long enough for `ending`: those that stopped at an initial's full stop go on."""
    made = model.generate(prompts, max_new_tokens=max_new_tokens, stop=STOP[rule])
    again = [
        g.prompt
        for g in made
        if rule == "robust" and unsure(g.text) and len(g.token_ids) < max_new_tokens
    ]
    longer = model.generate(again, max_new_tokens=max_new_tokens, stop=("\n",)) if again else []
    replaced = {g.prompt: g for g in longer}
    return (replaced.get(g.prompt, g) for g in made)


def ask(
    model: Model,
    questions: pd.DataFrame,
    *,
    seed: int = 0,
    max_new_tokens: int = MAX_NEW_TOKENS,
    rule: str = "robust",
    prompt_format: str | None = None,
) -> pd.DataFrame:
    """Ask each question without and with a counterfactual; one row a question, in their order.

    `questions` is a table of `datasets.context`. `rule` ends the answers and draws the
    counterfactuals. Columns: model, question_id, category, base_id, object, parametric,
    counterfactual, contextual (texts), p0 ... p4 (perplexities, NaN for an empty answer),
    n_tokens_parametric, n_tokens_counterfactual, first_entropy, first_entropy_context (nats, of the
    first token's ten likeliest) and first_shift (between these two distributions; see
    `metrics.first_token`).

    Answers are scored by the token ids that were generated, and what generation told already (P0, P4,
    and P2 or P3 if the contextual answer is p or q token by token) is taken from it. P0 <= P1 is no
    theorem: greedy decoding finds the likeliest first token, not the likeliest answer.

    attrs["counts"]: "questions", "no_counterfactual" (no other answer to the base question differs:
    left out), "empty_parametric", "empty_counterfactual" and "empty_contextual" (kept).
    Raises ValueError for a base question about one object only, and as `greedy` does.
    """
    _check(questions)
    answer = partial(
        greedy, model, max_new_tokens=max_new_tokens, rule=rule, prompt_format=prompt_format
    )
    answers = answer(questions)
    drawn = counterfactuals(answers, seed=seed, rule=rule)
    kept = drawn >= 0
    p = answers[kept].reset_index(drop=True)
    q = answers.iloc[drawn[kept]].reset_index(drop=True)
    asked = questions[kept].reset_index(drop=True)
    made = answer(asked, (asked["prefix"] + " " + q["text"]).tolist())
    wanted = [(p, q), (made, p), (made, q)]
    p1, p2, p3 = _perplexities(model, [p, made], [(a["prompt"], b["token_ids"]) for a, b in wanted])
    results = p[["model", "question_id", "category", "base_id", "object"]].assign(
        parametric=p["text"],
        counterfactual=q["text"],
        contextual=made["text"],
        p0=p["perplexity"],
        p1=p1,
        p2=p2,
        p3=p3,
        p4=made["perplexity"],
        n_tokens_parametric=p["token_ids"].map(len).astype(np.int64),
        n_tokens_counterfactual=q["token_ids"].map(len).astype(np.int64),
        first_entropy=p["first_entropy"],
        first_entropy_context=made["first_entropy"],
        first_shift=np.array(
            [first_shift(a, b) for a, b in zip(p["first"], made["first"], strict=True)],
            dtype=np.float64,
        ),
    )[list(COLUMNS)]
    counts = {"questions": len(questions), "no_counterfactual": int((~kept).sum())}
    results.attrs["counts"] = counts | count_empty(results)
    return results


def _perplexities(
    model: Model, known: Sequence[pd.DataFrame], wanted: Sequence[tuple[pd.Series, pd.Series]]
) -> list[np.ndarray]:
    """Perplexities of token ids after prompts, a column each; one call scores what is not `known`.

    Equal token ids after an equal prompt get exactly the number that generation told: computed twice,
    they would differ in the last digits, and P4 > P3 would be a matter of chance.
    """
    found: dict[tuple[str, tuple[int, ...]], float] = {}
    for table in known:
        keys = zip(table["prompt"], map(tuple, table["token_ids"]), strict=True)
        found |= zip(keys, table["perplexity"], strict=True)
    columns = [list(zip(prompts, map(tuple, ids), strict=True)) for prompts, ids in wanted]
    todo = list(dict.fromkeys(k for keys in columns for k in keys if k[1] and k not in found))
    if todo:
        values = model.score([prompt for prompt, _ in todo], [list(ids) for _, ids in todo])
        found |= {key: perplexity(v.tolist()) for key, v in zip(todo, values, strict=True)}
    return [
        np.array([found[k] if k[1] else np.nan for k in keys], dtype=np.float64) for keys in columns
    ]


def _check(questions: pd.DataFrame) -> None:
    if missing := [name for name in NEEDED if name not in questions]:
        raise ValueError(
            f"the questions have no column {', '.join(missing)}; take a table of datasets.context"
        )
    if (again := questions["question_id"].duplicated()).any():
        raise ValueError(
            f"the question {questions['question_id'][again].iloc[0]} is there twice; ask it once"
        )
    sizes = questions.groupby("base_id", sort=False)["object"].nunique()
    if (single := sizes.index[sizes == 1]).size:
        raise ValueError(
            f"{single.size} base question(s) are asked about one object only, such as {single[0]}, "
            "and a counterfactual is the answer for another one; keep two or more objects of each"
        )


def _chunks(sent: Sequence[str]) -> Iterator[list[str]]:
    distinct = list(dict.fromkeys(sent))
    return (distinct[i : i + CHUNK] for i in range(0, len(distinct), CHUNK))


def need_sources(cases: pd.DataFrame, models: Sequence[Model]) -> None:
    """Raise LacksError if no model has answers of two sources (`metrics.attribution.cases`): there is
    nothing to tell apart."""
    if models and (cases.groupby("model")["source"].nunique() < 2).all():
        names = ", ".join(model.name for model in models)
        raise LacksError(
            f"{names}: no answers from memory beside answers from the context, so there is nothing "
            "to tell apart; ask more questions, or another model"
        )
