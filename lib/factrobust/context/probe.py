"""Part 4: ask a question from memory, then again with an answer to another one in the context.

The parametric answer p is greedy without context; the counterfactual q is the parametric answer to
the same base question about another object (`ask_counterfactual`), or what the context states
(`ask_known`); the contextual answer is greedy with q in the context. Perplexities (the thesis,
table 6; P4 has no name there) are, with Q the prompt without context and Q' with it:

    P0 = PPL(p | Q)    P2 = PPL(p | Q')
    P1 = PPL(q | Q)    P3 = PPL(q | Q')    P4 = PPL(answer | Q')
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from factrobust.draws import by_lot
from factrobust.endings import STOP, ending, generate_answers, unsure
from factrobust.models.interface import Generation, Model
from factrobust.models.prompts import FORMATS, in_chunks, render
from factrobust.text import normalise

MAX_NEW_TOKENS = 20  # the thesis, appendix D
ANSWERS = ("parametric", "counterfactual")  # those that are scored
Tokens = tuple[int, ...] | str  # an answer to be scored
ABOUT = (
    "question_id",
    "category",
    "base_id",
    "object",
)  # a question's columns in its response


def context_prompts(
    model: Model,
    questions: pd.DataFrame,
    contexts: Sequence[str] | None = None,
) -> list[str]:
    """The exact text sent for each question, with a context each or without (the thesis's format):
    "Context: [The capital of Kenya is Lima]. Q: What is the capital of Kenya? A: The capital of
    Kenya is". In a format for chats the prefix begins the assistant's turn."""
    texts = [f"Q: {question} A:" for question in questions["question"]]
    if contexts is not None:
        pairs = zip(contexts, texts, strict=True)
        texts = [f"Context: [{context}]. {text}" for context, text in pairs]
    name = "chat-prefix" if FORMATS[model.prompt_format].chat else "prefix"
    prompts = render(name, texts, questions["prefix"].tolist(), model.chat)
    return [prompt.removesuffix(" ") for prompt in prompts]  # of a question without a prefix


def answer_questions(
    model: Model,
    questions: pd.DataFrame,
    contexts: Sequence[str] | None = None,
    *,
    prompts: Sequence[str] | None = None,
    scored: bool = True,
    go_on: bool = False,
) -> pd.DataFrame:
    """Greedy answers, one row a question in their order; equal prompts are asked once. `prompts`
    are by default `context_prompts`; answers that will not be `scored` need no model that knows
    token ids. To `go_on` a model is asked again where its answer has not begun
    (`endings.generate_answers`).

    Columns: model, ABOUT, prompt, text (`endings.ending`), token_ids, tokens (their texts) and
    logprobs of the fewest tokens that cover it.
    """
    if scored:
        model.require("token_ids")
    if prompts is None:
        prompts = context_prompts(model, questions, contexts)
    answers = {}
    for chunk in in_chunks(list(prompts)):
        for generation in _generated(model, chunk, go_on):
            answers[generation.prompt] = _answer(generation, go_on)
    columns = ["text", "token_ids", "tokens", "logprobs"]
    responses = pd.DataFrame([answers[prompt] for prompt in prompts], columns=columns)
    table = questions.assign(model=model.name)[["model", *ABOUT]].reset_index(drop=True)
    table["prompt"] = pd.Series(list(prompts), dtype="str")
    return table.assign(**responses).astype({"text": "str"})


def _answer(generation: Generation, go_on: bool) -> tuple[Any, ...]:
    """text, token_ids, tokens and logprobs of `answer_questions`."""
    text, n = ending(generation, skip_lead=go_on)
    tokens = [alternatives[0][0] for alternatives in islice(generation.top_logprobs, n)]
    return text, generation.token_ids[:n], tokens, generation.logprobs[:n]


def _generated(model: Model, prompts: list[str], go_on: bool) -> list[Generation]:
    """Generations long enough for `ending`: those that stopped at an initial's full stop go on."""
    generate = partial(generate_answers, model) if go_on else model.generate
    found = {}
    for generation in generate(prompts, max_new_tokens=MAX_NEW_TOKENS, stop=STOP):
        found[generation.prompt] = generation
    stopped = []
    for prompt, generation in found.items():
        if unsure(generation.text) and len(generation.token_ids) < MAX_NEW_TOKENS:
            stopped.append(prompt)
    if stopped:
        for generation in model.generate(stopped, max_new_tokens=MAX_NEW_TOKENS, stop=("\n",)):
            found[generation.prompt] = generation
    return [*found.values()]


def ask_counterfactual(model: Model, questions: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Ask each of `schemas.ContextQuestions` without and with a counterfactual, in their order.

    Questions without a differing answer to the base question are left out. Columns: model, ABOUT,
    parametric, counterfactual, contextual; token_ids and tokens of the first two
    (token_ids_parametric, ...), and logprobs_p0 ... logprobs_p4, as in `answer_questions`.
    """
    memory = answer_questions(model, questions)
    drawn = counterfactuals(memory, seed=seed)
    found = drawn >= 0
    p = memory[found].reset_index(drop=True)
    q = memory.iloc[drawn[found]].reset_index(drop=True)
    contexts = questions.loc[found, "prefix"].reset_index(drop=True) + " " + q["text"]
    contextual = answer_questions(model, questions[found], contexts.tolist())
    return scored_answers(model, p, contextual, q["token_ids"].map(tuple)).assign(
        counterfactual=q["text"],
        token_ids_counterfactual=q["token_ids"],
        tokens_counterfactual=q["tokens"],
    )


def _responses(memory: pd.DataFrame, contextual: pd.DataFrame) -> pd.DataFrame:
    """Answers from memory beside those in context to the same questions, as `ask_counterfactual`
    names them."""
    return memory[["model", *ABOUT]].assign(
        parametric=memory["text"],
        contextual=contextual["text"],
        token_ids_parametric=memory["token_ids"],
        tokens_parametric=memory["tokens"],
        logprobs_p0=memory["logprobs"],
        logprobs_p4=contextual["logprobs"],
    )


def scored_answers(
    model: Model,
    memory: pd.DataFrame,
    contextual: pd.DataFrame,
    stated: Iterable[Tokens],
) -> pd.DataFrame:
    """Answers from memory and in context with logprobs_p0 ... logprobs_p4, as `ask_counterfactual`
    names them; q is `stated`, token ids or a text [row]."""
    answers = list(stated)
    parametric = memory["token_ids"].map(tuple).tolist()
    n = len(answers)
    pairs = [
        *zip(memory["prompt"], answers, strict=True),
        *zip(contextual["prompt"], parametric, strict=True),
        *zip(contextual["prompt"], answers, strict=True),
    ]
    logprobs = pd.Series(score_once(model, pairs, (memory, contextual)), dtype=object)
    return _responses(memory, contextual).assign(
        logprobs_p1=logprobs[:n].array,
        logprobs_p2=logprobs[n : 2 * n].array,
        logprobs_p3=logprobs[2 * n :].array,
    )


def score_once(
    model: Model,
    pairs: Iterable[tuple[str, Tokens]],
    known: Sequence[pd.DataFrame] = (),
) -> list[list[float]]:
    """log P of the tokens of each answer after its prompt, [pair][token]; none of an empty answer.
    Equal pairs are asked once. Answers of the tables `known` (of `answer_questions`) keep the
    numbers of their generation: computed twice they differ in the last digits, and P4 > P3 would be
    chance."""
    found: dict[tuple[str, Tokens], list[float]] = {}
    for table in known:
        keys = zip(table["prompt"], map(tuple, table["token_ids"]), strict=True)
        found |= zip(keys, table["logprobs"], strict=True)
    pairs = list(pairs)
    new = [pair for pair in dict.fromkeys(pairs) if pair[1] and pair not in found]
    if new:
        prompts = [prompt for prompt, _ in new]
        answers = [answer if isinstance(answer, str) else list(answer) for _, answer in new]
        for pair, logprobs in zip(new, model.score(prompts, answers), strict=True):
            found[pair] = logprobs.tolist()
    return [found[pair] if pair[1] else [] for pair in pairs]


def counterfactuals(answers: pd.DataFrame, *, seed: int = 0) -> np.ndarray:
    """For each row, the number of the row whose answer is its counterfactual; -1 if there is none.

    `answers` has base_id, object and text (parametric). Drawn uniformly among the rows of the same
    base question, as in the thesis, but (ours) only of answers that are not empty and differ after
    normalising. A draw depends on the seed, the base question and the objects, not on the rows'
    order.
    """
    texts = answers["text"].tolist()
    objects = answers["object"].tolist()
    spellings = list(map(normalise, texts))
    drawn = np.full(len(answers), -1, dtype=np.int64)
    for base_id, places in answers.groupby("base_id", sort=False).indices.items():
        rows = np.asarray(places)
        names = tuple(objects[j] for j in rows)
        for i in rows:
            lots = rows[by_lot(f"{seed}\n{base_id}\n{objects[i]}\n", names)]
            others = (j for j in lots if texts[j] and spellings[j] != spellings[i])
            drawn[i] = next(others, -1)
    return drawn


def ask_known(
    model: Model,
    questions: pd.DataFrame,
    contexts: pd.DataFrame,
) -> pd.DataFrame:
    """Ask the questions of `contexts` without a context and with it, a row each of these.

    `contexts` (of `facts.known_contexts`) has question_id, sentence, stated (the answer in it), and
    more. Returns the columns of `ask_counterfactual`, with what the context states as
    counterfactual, and those of `contexts`. It is scored as a text, unless one of the answers is
    the same; token_ids and tokens are of the parametric answer alone.
    """
    rows = questions.set_index("question_id", drop=False).loc[contexts["question_id"]]
    memory = answer_questions(model, rows)
    contextual = answer_questions(model, rows, contexts["sentence"].tolist())
    stated: list[Tokens] = [f" {answer}" for answer in contexts["stated"]]
    for answers in (contextual, memory):
        texts = answers["tokens"].str.join("")
        for i, (text, token_ids) in enumerate(zip(texts, answers["token_ids"], strict=True)):
            if text == stated[i]:
                stated[i] = tuple(token_ids)
    about = contexts.drop(columns=["question_id", "stated"]).reset_index(drop=True)
    asked = scored_answers(model, memory, contextual, stated)
    return asked.assign(counterfactual=contexts["stated"].to_numpy(), **about)


def swapped(
    model: Model,
    questions: pd.DataFrame,
    passages: pd.DataFrame,
) -> pd.DataFrame:
    """Ask the questions of `passages` without a passage, with it, with its slots' answers exchanged
    twice, and with another answer exchanged, a row a passage.

    Columns: those of `passages` and `answer_questions`'s as `ask_counterfactual` names them;
    logprobs_p0, logprobs_p1 (of the answer given, after the question alone; p2 and p3 are not
    asked) and logprobs_p4; text_1 and text_2 (the answers to the exchanged passages) and
    text_placebo (to the passage itself, where it has no placebo).
    """
    rows = questions.set_index("question_id", drop=False).loc[passages["question_id"]]
    passages = passages.reset_index(drop=True)
    memory = answer_questions(model, rows)
    # 1. All passages at once: those that begin alike share their computation.
    placebos = passages["placebo"].where(passages["placebo"] != "", passages["sentence"])
    asked = [passages["sentence"], passages["swap_1"], passages["swap_2"], placebos]
    answers = answer_questions(model, pd.concat([rows] * len(asked)), pd.concat(asked).tolist())
    _, first, second, placebo = np.split(answers["text"].to_numpy(), len(asked))
    # 2. The answer given, after the question alone.
    given = answers[: len(rows)]
    pairs = zip(memory["prompt"], given["token_ids"].map(tuple), strict=True)
    p1 = pd.Series(score_once(model, pairs, (memory,)), dtype=object)
    return _responses(memory, given).assign(
        logprobs_p1=p1,
        text_1=first,
        text_2=second,
        text_placebo=placebo,
        **passages.drop(columns="question_id"),
    )


def answer_tokens(
    model: Model,
    questions: pd.DataFrame,
    response: pd.Series,
) -> pd.DataFrame:
    """How likely each token of both answers is, without and with the counterfactual in the prompt.
    `response` is a row of `ask_counterfactual`, `questions` what was asked. Columns: answer
    ("parametric" or "counterfactual"), context (bool), position (1, 2, ...), token, probability."""
    question = questions[questions["question_id"] == response["question_id"]]
    context = f"{question['prefix'].iloc[0]} {response['counterfactual']}"
    prompts = [*context_prompts(model, question), *context_prompts(model, question, [context])]
    rows: list[tuple] = []
    for answer in ANSWERS:
        scores = model.score(prompts, [response[f"token_ids_{answer}"]] * 2)
        for with_context, logprobs in zip((False, True), scores, strict=True):
            tokens = zip(response[f"tokens_{answer}"], np.exp(logprobs).tolist(), strict=True)
            for position, scored_token in enumerate(tokens, 1):
                rows.append((answer, with_context, position, *scored_token))
    return pd.DataFrame(rows, columns=["answer", "context", "position", "token", "probability"])
