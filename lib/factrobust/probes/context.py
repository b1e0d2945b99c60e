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

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factrobust.metrics.context import first_entropy, first_shift, perplexity, right
from factrobust.models.interface import Generation, LacksError, Model
from factrobust.models.prompts import FORMATS, render
from factrobust.probes.endings import STOP, check_rule, ending, unsure
from factrobust.tables import FactsError, read_table, slug
from factrobust.text import normalise

COLUMNS = (
    *("model", "question_id", "category", "base_id", "object"),
    *("parametric", "counterfactual", "contextual"),
    *("p0", "p1", "p2", "p3", "p4"),
    *("n_tokens_parametric", "n_tokens_counterfactual"),
    *("first_entropy", "first_entropy_context", "first_shift"),
)
# The answer that each perplexity is of.
SCORED = {
    "p0": "parametric",
    "p1": "counterfactual",
    "p2": "parametric",
    "p3": "counterfactual",
    "p4": "contextual",
}
TEXTS = ("category", "base_id", "object", "parametric", "counterfactual", "contextual")
REQUIRED = (*TEXTS, "p0", "p1", "p2", "p3")
THESIS = {
    "Category": "category",
    "Base_Question": "base_id",
    "Thing": "object",
    "Object": "object",
    "Question": "question",
    "Prefix": "prefix",
    "base_proba": "p0",
    "base_cf_proba": "p1",
    "ctx_param_proba": "p2",
    "ctx_cf_proba": "p3",
    "ctx_proba": "p4",
}
JUDGED = ("comparison", "preference", "Num", "")  # what marking decides anew, and row numbers
LOWEST = 1 - 1e-6  # of a perplexity: 1, but for rounding


def read_results(path: str | Path, *, model: str | None = None) -> pd.DataFrame:
    """Return results that were computed elsewhere as the table of `probes.context.ask`.

    `path` is a CSV or parquet file with the columns category, base_id, object, parametric,
    counterfactual, contextual and p0 ... p3, or with the thesis's names for them (Category,
    Base_Question, Thing, base_proba, base_cf_proba, ctx_param_proba, ctx_cf_proba). p4 (ctx_proba)
    and the further columns of `ask` may be there; without them they are NaN. model is the file's
    name unless there is such a column or it is given. Columns of its own are kept, but for the
    thesis's verdicts (comparison, preference).

    attrs["counts"] holds "questions" and the numbers of empty answers. Raises FactsError with file,
    line and remedy for a missing column, and for a perplexity of an answer with letters or digits
    that is missing, no number, or below 1.
    """
    path = Path(path)
    given, row = _read(path)
    table = given.drop(columns=[name for name in JUDGED if name in given])
    if {"Thing", "Object"} <= set(table):  # one of the two was never filled in
        table = table.drop(columns="Thing" if table["Thing"].eq("").all() else "Object")
    table = table.rename(columns=THESIS)
    if missing := [name for name in REQUIRED if name not in table]:
        names = {ours: theirs for theirs, ours in THESIS.items()}
        wanted = ", ".join(f"{n} ({names[n]})" if n in names else n for n in missing)
        raise FactsError(
            f"{path}: these columns are missing: {wanted}; add them, by our name or, in brackets, "
            "the thesis's."
        )
    for column in TEXTS:
        table[column] = table[column].fillna("").astype("str")
    for column, answer in SCORED.items():
        if column in table:
            table[column] = _numbers(table, column, answer, f"{path}, {row}")
    if "model" not in table:
        table["model"] = model or path.stem
    if "question_id" not in table:
        table["question_id"] = table["base_id"] + "/" + table["object"].map(slug)
    for column in COLUMNS[12:]:
        values = table[column] if column in table else pd.Series(np.nan, index=table.index)
        numbers = pd.to_numeric(values, errors="coerce")
        counted = column.startswith("n_tokens")
        table[column] = numbers.astype("Int64") if counted else numbers.astype(float)
    rest = [name for name in table if name not in COLUMNS]
    table = table[[*COLUMNS, *rest]].reset_index(drop=True)
    table.attrs["counts"] = {"questions": len(table)} | count_empty(table)
    return table


def count_empty(results: pd.DataFrame) -> dict[str, int]:
    """How many answers of each sort have no letter or digit, as {"empty_parametric": 3, ...}."""
    return {f"empty_{name}": int(_empty(results[name]).sum()) for name in TEXTS[3:]}


def _read(path: Path) -> tuple[pd.DataFrame, str]:
    """The file's table, indexed by line or row, and the word for that."""
    if path.suffix != ".parquet":
        return read_table(path, required=(), optional=()), "line"
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise FactsError(f"{path} cannot be read ({error}); check the path.") from error
    return table.set_axis(range(1, len(table) + 1)), "row"


def _numbers(table: pd.DataFrame, column: str, answer: str, where: str) -> pd.Series:
    values = pd.to_numeric(table[column], errors="coerce").astype(float)
    counted = ~_empty(table[answer])
    for line in values.index[counted & ~(values >= LOWEST)][:1]:
        cell: Any = table.at[line, column]
        told = "missing" if pd.isna(cell) or cell == "" else cell
        raise FactsError(
            f"{where} {line}: the perplexity {column} of the {answer} answer "
            f"{table.at[line, answer]!r} is {told}, and not a number from 1 up; compute it, or "
            "delete the row."
        )
    return values


def _empty(texts: pd.Series) -> pd.Series:
    return ~texts.map(lambda text: any(c.isalnum() for c in text)).astype(bool)


def counterfactuals(answers: pd.DataFrame, *, seed: int = 0, rule: str = "robust") -> np.ndarray:
    """For each row, the number of the row whose answer is its counterfactual; -1 if there is none.

    `answers` has base_id, object and text (the parametric answers). Drawn among the rows of the same
    base question, uniformly, so that a frequent answer is drawn more often, as in the thesis.
    `robust` draws answers that are not empty and differ after normalising (`factrobust.text`),
    `published` any that is another string.

    A row's draw depends on the seed, its base question and object, and on the rows that it is drawn
    from, not on their order; of a larger table it differs only if an added row is drawn. Raises
    ValueError for an unknown rule.
    """
    check_rule(rule)
    texts, objects = answers["text"].tolist(), answers["object"].tolist()
    same = [normalise(text) for text in texts] if rule == "robust" else texts
    drawn = np.full(len(answers), -1, dtype=np.int64)
    for base_id, rows in answers.groupby("base_id", sort=False).indices.items():
        given = [j for j in rows if texts[j] or rule == "published"]
        for i in rows:
            others = [j for j in given if same[j] != same[i]]
            # The smallest of independent uniform numbers is each one's equally often.
            numbers = (_number(seed, base_id, objects[i], objects[j]) for j in others)
            drawn[i] = min(zip(numbers, others, strict=True), default=(b"", -1))[1]
    return drawn


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
    `metrics.context`).

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


KINDS = ("true", "irrelevant", "false")
KNOWN_NEEDED = ("question_id", "base_id", "prefix", "answers")


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
        _check_known(table)
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


def _check_known(table: pd.DataFrame) -> None:
    if missing := [name for name in KNOWN_NEEDED if name not in table]:
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
    """Raise LacksError if no answer (`metrics.context.mark`) is right, with a context or without
    one: there is nothing that a context could change."""
    if models and not marked[["correct", "parametric_correct"]].to_numpy(dtype=bool).any():
        names = ", ".join(model.name for model in models)
        raise LacksError(
            f"{names}: no answer is right, with a context or without one, so there is nothing that a "
            "context could change; ask easier questions, or another model"
        )


def answer_tokens(
    model: Model, questions: pd.DataFrame, result: Mapping[Any, Any] | pd.Series
) -> pd.DataFrame:
    """How likely each token of both answers is, without and with the counterfactual in the prompt.

    `result` is a row of `probes.context.ask` with its defaults, `questions` what was asked. Columns:
    answer ("parametric" or "counterfactual"), context (bool), position (1, 2, ...), token,
    probability. The mean of -log2 of an answer's probabilities is log2 of its perplexity. Raises
    ValueError if the model's answers are not those of the result, or if one of them is empty.
    """
    same = questions[questions["base_id"] == result["base_id"]]
    answers, own = greedy(model, same), same[same["question_id"] == result["question_id"]]
    p = answers[answers["question_id"].eq(result["question_id"])]
    p = p[p["text"] == result["parametric"]]
    q = answers[answers["text"] == result["counterfactual"]]
    if p.empty or q.empty or not (result["parametric"] and result["counterfactual"]):
        raise ValueError(
            f"{model.name} does not give the answers of {result['question_id']}, or one is empty; "
            "take a row of its own results in which both answers have words"
        )
    context = f"{own['prefix'].iloc[0]} {result['counterfactual']}"
    prompts = {False: p["prompt"].iloc[0], True: context_prompts(model, own, [context])[0]}
    given = {"parametric": p.iloc[0], "counterfactual": q.iloc[0]}
    keys = [(answer, context) for answer in given for context in prompts]
    logprobs = model.score(
        [prompts[context] for _, context in keys], [given[name]["token_ids"] for name, _ in keys]
    )
    texts = {
        name: _texts(model, row["prompt"], len(row["token_ids"])) for name, row in given.items()
    }
    rows = [
        (*key, i, token, np.exp(logprob))
        for key, values in zip(keys, logprobs, strict=True)
        for i, (token, logprob) in enumerate(zip(texts[key[0]], values, strict=True), 1)
    ]
    columns = ["answer", "context", "position", "token", "probability"]
    return pd.DataFrame(rows, columns=columns).astype({"probability": float})


def _texts(model: Model, prompt: str, n: int) -> list[str]:
    """The first n tokens of the greedy answer."""
    made = model.generate([prompt], max_new_tokens=MAX_NEW_TOKENS, stop=STOP["robust"])[0]
    if len(made.top_logprobs) < n:  # `greedy` went on behind the full stop of an initial
        made = model.generate([prompt], max_new_tokens=MAX_NEW_TOKENS, stop=("\n",))[0]
    return [alternatives[0][0] for alternatives in made.top_logprobs[:n]]
