"""Part 4: ask a question from memory, then again with an answer to another one in the context.

The parametric answer p is greedy without context; the counterfactual q is the parametric answer to
the same base question about another object (`ask`), or what the context states (`ask_known`); the
contextual answer is greedy with q in the context. `context.metrics.measured` makes perplexities of
log-probabilities (the thesis, table 6; P4 has no name there), with Q the prompt without context and
Q' with it:

    P0 = PPL(p | Q)    P1 = PPL(q | Q)    P2 = PPL(p | Q')    P3 = PPL(q | Q')    P4 = PPL(answer | Q')
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy

import numpy as np
import pandas as pd

from factrobust.draws import hash64
from factrobust.endings import STOP, ending, unsure
from factrobust.models.interface import Generation, Model
from factrobust.models.prompts import FORMATS, in_chunks, render
from factrobust.text import normalise

MAX_NEW_TOKENS = 20  # the thesis, appendix D
ANSWERS = ("parametric", "counterfactual")  # those that are scored
Tokens = tuple[int, ...] | str  # an answer to be scored
ABOUT = ("question_id", "category", "base_id", "object")  # a question's columns in its response


def context_prompts(
    model: Model, questions: pd.DataFrame, contexts: Sequence[str] | None = None
) -> list[str]:
    """The exact text sent for each question, with a context each or without (the thesis's format).

    "Context: [The capital of Kenya is Lima]. Q: What is the capital of Kenya? A: The capital of
    Kenya is". The answer follows after a space. In a format for chats the prefix begins the
    assistant's turn.
    """
    texts = [f"Q: {question} A:" for question in questions["question"]]
    if contexts is not None:
        texts = [f"Context: [{c}]. {text}" for c, text in zip(contexts, texts, strict=True)]
    name = "chat-prefix" if FORMATS[model.prompt_format].chat else "prefix"
    prompts = render(name, texts, questions["prefix"].tolist(), model.chat)
    return [prompt.removesuffix(" ") for prompt in prompts]  # of a question without a prefix


def greedy(
    model: Model, questions: pd.DataFrame, contexts: Sequence[str] | None = None
) -> pd.DataFrame:
    """Greedy answers, one row a question in their order; equal prompts are asked once.

    Columns: model, ABOUT, prompt, text (`endings.ending`), token_ids, tokens (their texts) and
    logprobs of the fewest tokens that cover it; first (the likeliest first tokens with
    log-probabilities; may be empty).
    """
    model.require("token_ids")  # what is scored afterwards
    prompts = context_prompts(model, questions, contexts)
    answers = {}
    for chunk in in_chunks(prompts):
        for generation in _generated(model, chunk):
            text, n = ending(generation)
            top = generation.top_logprobs
            tokens = [alternatives[0][0] for alternatives in top[:n]]
            of_tokens = generation.token_ids[:n], tokens, generation.logprobs[:n]
            answers[generation.prompt] = (text, *of_tokens, top[0] if top else [])
    table = questions.assign(model=model.name)[["model", *ABOUT]].reset_index(drop=True)
    columns = ["text", "token_ids", "tokens", "logprobs", "first"]
    responses = pd.DataFrame([answers[prompt] for prompt in prompts], columns=columns)
    return table.assign(prompt=pd.Series(prompts, dtype="str"), **responses).astype({"text": "str"})


def _generated(model: Model, prompts: list[str]) -> Iterator[Generation]:
    """Generations long enough for `ending`: those that stopped at an initial's full stop go on."""
    generations = model.generate(prompts, max_new_tokens=MAX_NEW_TOKENS, stop=STOP)
    again = [g.prompt for g in generations if unsure(g.text) and len(g.token_ids) < MAX_NEW_TOKENS]
    longer = model.generate(again, max_new_tokens=MAX_NEW_TOKENS, stop=("\n",)) if again else []
    replaced = {g.prompt: g for g in longer}
    return (replaced.get(g.prompt, g) for g in generations)


def ask(model: Model, questions: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Ask each of `schemas.ContextQuestions` without and with a counterfactual, in their order.

    Questions without a differing answer to the base question are left out. Columns: model, ABOUT,
    parametric, counterfactual, contextual; token_ids and tokens of the first two
    (token_ids_parametric, ...), logprobs_p0 ... logprobs_p4, first and first_context, as in
    `greedy`.
    """
    memory = greedy(model, questions)
    p, q, contextual = _with_context(model, questions, memory, counterfactuals(memory, seed=seed))
    return scored(model, p, contextual, q["token_ids"].map(tuple)).assign(
        counterfactual=q["text"],
        token_ids_counterfactual=q["token_ids"],
        tokens_counterfactual=q["tokens"],
    )


def _with_context(
    model: Model, questions: pd.DataFrame, memory: pd.DataFrame, drawn: np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The answers p, q and contextual to the questions for which q was drawn (`counterfactuals`)."""
    found = drawn >= 0
    p = memory[found].reset_index(drop=True)
    q = memory.iloc[drawn[found]].reset_index(drop=True)
    contexts = questions.loc[found, "prefix"].reset_index(drop=True) + " " + q["text"]
    return p, q, greedy(model, questions[found], contexts.tolist())


def ask_again(
    model: Model, questions: pd.DataFrame, few: pd.Series, seeds: Sequence[int]
) -> pd.DataFrame:
    """Ask the question_ids `few` of the questions with other draws of counterfactuals, nothing
    scored.

    A row a question with a counterfactual and a seed: the columns of `ask` without q's tokens, draw
    (the seed), and prompt: "own", or "raw" for a model with a chat template, with the first seed's
    contexts.
    """
    memory, parts = greedy(model, questions), []
    for seed in seeds:
        drawn = counterfactuals(memory, seed=seed)
        drawn[~questions["question_id"].isin(few).to_numpy()] = -1
        p, q, contextual = _with_context(model, questions, memory, drawn)
        answers = _responses(p, contextual)
        parts.append(answers.assign(counterfactual=q["text"], draw=seed, prompt="own"))
    if FORMATS[model.prompt_format].chat:
        raw = copy(model)
        raw.prompt_format, stated = "prefix", parts[0]["counterfactual"]
        same = questions.set_index("question_id", drop=False).loc[parts[0]["question_id"]]
        contexts = (same["prefix"] + " " + stated.to_numpy()).tolist()
        answers = _responses(greedy(raw, same), greedy(raw, same, contexts))
        parts.append(answers.assign(counterfactual=stated, draw=seeds[0], prompt="raw"))
    return pd.concat(parts, ignore_index=True)


def _responses(memory: pd.DataFrame, contextual: pd.DataFrame) -> pd.DataFrame:
    """Answers from memory beside those in context to the same questions, as `ask` names them."""
    return memory[["model", *ABOUT]].assign(
        parametric=memory["text"],
        contextual=contextual["text"],
        token_ids_parametric=memory["token_ids"],
        tokens_parametric=memory["tokens"],
        logprobs_p0=memory["logprobs"],
        logprobs_p4=contextual["logprobs"],
        first=memory["first"],
        first_context=contextual["first"],
    )


def scored(
    model: Model, memory: pd.DataFrame, contextual: pd.DataFrame, stated: Iterable[Tokens]
) -> pd.DataFrame:
    """Answers from memory and in context with logprobs_p0 ... logprobs_p4, as `ask` names them; q
    is `stated`, token ids or a text [row].

    An equal answer after an equal prompt keeps the numbers of its generation: computed twice they
    differ in the last digits, and P4 > P3 would be chance.
    """
    found: dict[tuple[str, Tokens], list[float]] = {}
    for table in (memory, contextual):
        keys = zip(table["prompt"], map(tuple, table["token_ids"]), strict=True)
        found |= zip(keys, table["logprobs"], strict=True)
    p, q = memory["token_ids"].map(tuple), list(stated)
    cells: dict[str, tuple[pd.DataFrame, Iterable[Tokens]]] = {
        "p1": (memory, q), "p2": (contextual, p), "p3": (contextual, q),
    }  # fmt: skip
    pairs = {name: list(zip(at["prompt"], x, strict=True)) for name, (at, x) in cells.items()}
    every = dict.fromkeys(pair for column in pairs.values() for pair in column)
    if new := [pair for pair in every if pair[1] and pair not in found]:
        answers = [x if isinstance(x, str) else list(x) for _, x in new]
        values = model.score([prompt for prompt, _ in new], answers)
        found |= {pair: logprobs.tolist() for pair, logprobs in zip(new, values, strict=True)}
    lists = {name: [found[x] if x[1] else [] for x in column] for name, column in pairs.items()}
    return _responses(memory, contextual).assign(
        **{f"logprobs_{name}": pd.Series(x, dtype=object) for name, x in lists.items()}
    )


def counterfactuals(answers: pd.DataFrame, *, seed: int = 0) -> np.ndarray:
    """For each row, the number of the row whose answer is its counterfactual; -1 if there is none.

    `answers` has base_id, object and text (parametric). Drawn uniformly among the rows of the same
    base question, as in the thesis, but (ours) only of answers that are not empty and differ after
    normalising. A draw depends on the seed, the base question and the objects, not on the rows'
    order.
    """
    texts, objects = answers["text"].tolist(), answers["object"].tolist()
    spellings = [normalise(text) for text in texts]
    drawn = np.full(len(answers), -1, dtype=np.int64)
    for base_id, rows in answers.groupby("base_id", sort=False).indices.items():
        stated = [j for j in rows if texts[j]]
        for i in rows:
            others = [j for j in stated if spellings[j] != spellings[i]]
            lots = (hash64(f"{seed}\n{base_id}\n{objects[i]}\n{objects[j]}") for j in others)
            drawn[i] = min(zip(lots, others, strict=True), default=(0, -1))[1]
    return drawn


def margins(model: Model, questions: pd.DataFrame, rivals: Sequence[Sequence[str]]) -> np.ndarray:
    """How much likelier the right answer is without a context than its likeliest rival, [question].
    log P of the likeliest accepted answer minus that of the likeliest of `rivals`, in nats, summed
    over tokens."""
    prompts = context_prompts(model, questions)
    sides = [*zip(prompts, questions["answers"], strict=True), *zip(prompts, rivals, strict=True)]
    pairs = [(prompt, f" {text}") for prompt, texts in sides for text in texts]
    scored = iter(model.score(*map(list, zip(*pairs, strict=True)))) if pairs else iter(())
    best = [max(float(next(scored).sum()) for _ in texts) for _, texts in sides]
    return np.subtract(*np.reshape(best, (2, -1)))


def ask_known(model: Model, questions: pd.DataFrame, contexts: pd.DataFrame) -> pd.DataFrame:
    """Ask the questions of `contexts` without a context and with it, a row each of these.

    `contexts` (of `context.facts`) has question_id, sentence, stated (the answer in it), and more.
    Returns the columns of `ask`, with what the context states as counterfactual, and those of
    `contexts`. It is scored as a text, unless one of the answers is the same; token_ids and tokens
    are of the parametric answer alone.
    """
    rows = questions.set_index("question_id", drop=False).loc[contexts["question_id"]]
    p, contextual = greedy(model, rows), greedy(model, rows, contexts["sentence"].tolist())
    stated: Sequence[Tokens] = (" " + contexts["stated"]).tolist()
    for answers in (contextual, p):
        texts = zip(stated, answers["tokens"].str.join(""), answers["token_ids"], strict=True)
        stated = [tuple(ids) if text == x else x for x, text, ids in texts]
    about = contexts.drop(columns=["question_id", "stated"]).reset_index(drop=True)
    table = scored(model, p, contextual, stated)
    return table.assign(counterfactual=contexts["stated"].to_numpy(), **about)


SAID = {"first": "parametric", "second": "contextual", "both": "same", "neither": "other"}


def judge(model: Model, answers: pd.DataFrame) -> list[str]:
    """Where a model, asked as a judge, says that answers come from, [row]: values of SAID.
    `answers` has question, parametric, counterfactual and answer. The likeliest of four words ends
    a sentence about them."""
    texts = [
        f"Question: {row.question}\nFirst answer: {row.parametric}\nSecond answer: "
        f"{row.counterfactual}\nThird answer: {row.answer}\nWhich of the first two answers says the "
        "same as the third: first, second, both or neither?"
        for row in answers.itertuples()
    ]
    name = "chat-prefix" if FORMATS[model.prompt_format].chat else "prefix"
    prompts = render(name, texts, ["It is"] * len(texts), model.chat)
    pairs = [(prompt, f" {word}") for prompt in prompts for word in SAID]
    values = model.score([prompt for prompt, _ in pairs], [word for _, word in pairs])
    sums = np.reshape([value.sum() for value in values], (-1, len(SAID)))
    return [list(SAID.values())[best] for best in sums.argmax(axis=1)]


def answer_tokens(model: Model, questions: pd.DataFrame, response: pd.Series) -> pd.DataFrame:
    """How likely each token of both answers is, without and with the counterfactual in the prompt.
    `response` is a row of `ask`, `questions` what was asked. Columns: answer ("parametric" or
    "counterfactual"), context (bool), position (1, 2, ...), token, probability."""
    question = questions[questions["question_id"] == response["question_id"]]
    context = f"{question['prefix'].iloc[0]} {response['counterfactual']}"
    prompts = [context_prompts(model, question, stated)[0] for stated in (None, [context])]
    cells = [(answer, stated) for answer in ANSWERS for stated in (False, True)]
    ids = [response[f"token_ids_{answer}"] for answer, _ in cells]
    logprobs = model.score([prompts[stated] for _, stated in cells], ids)
    table = pd.DataFrame(cells, columns=["answer", "context"]).assign(
        token=[response[f"tokens_{answer}"] for answer, _ in cells],
        probability=[np.exp(values) for values in logprobs],
    )
    table = table.explode(["token", "probability"], ignore_index=True)
    table.insert(2, "position", table.groupby(["answer", "context"]).cumcount() + 1)
    return table.astype({"probability": float})
