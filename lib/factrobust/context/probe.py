"""Part 4: ask a question from memory, then again with an answer to another one in the context.

The parametric answer p is greedy without context; the counterfactual q is the parametric answer to
the same base question about another object (`ask`), or what the context states (`ask_known`); the
contextual answer is greedy with q in the context. Perplexities (the thesis, table 6; P4 has no name
there) are, with Q the prompt without context and Q' with it:

    P0 = PPL(p | Q)    P1 = PPL(q | Q)    P2 = PPL(p | Q')    P3 = PPL(q | Q')    P4 = PPL(answer | Q')
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np
import pandas as pd

from factrobust.draws import hash64
from factrobust.endings import STOP, ending, unsure
from factrobust.endings import ask as ask_on
from factrobust.models.interface import Generation, Model
from factrobust.models.prompts import FORMATS, in_chunks, render
from factrobust.text import normalise

MAX_NEW_TOKENS = 20  # the thesis, appendix D
ANSWERS = ("parametric", "counterfactual")  # those that are scored
Tokens = tuple[int, ...] | str  # an answer to be scored
ABOUT = ("question_id", "category", "base_id", "object")  # a question's columns in its response


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
        texts = [f"Context: [{c}]. {text}" for c, text in zip(contexts, texts, strict=True)]
    name = "chat-prefix" if FORMATS[model.prompt_format].chat else "prefix"
    prompts = render(name, texts, questions["prefix"].tolist(), model.chat)
    return [prompt.removesuffix(" ") for prompt in prompts]  # of a question without a prefix


def greedy(
    model: Model,
    questions: pd.DataFrame,
    contexts: Sequence[str] | None = None,
    *,
    prompts: Sequence[str] | None = None,
    scored: bool = True,
    go_on: bool = False,
) -> pd.DataFrame:
    """Greedy answers, one row a question in their order; equal prompts are asked once. `prompts` are by
    default `context_prompts`; answers that will not be `scored` need no model that knows token ids. To
    `go_on` a model is asked again where its answer has not begun (`endings.ask`).

    Columns: model, ABOUT, prompt, text (`endings.ending`), token_ids, tokens (their texts) and
    logprobs of the fewest tokens that cover it; first (the likeliest first tokens with
    log-probabilities; may be empty).
    """
    if scored:
        model.require("token_ids")
    prompts = context_prompts(model, questions, contexts) if prompts is None else list(prompts)
    answers = {}
    for chunk in in_chunks(prompts):
        for generation in _generated(model, chunk, go_on):
            text, n = ending(generation, begun=go_on)
            top = list(islice(generation.top_logprobs, max(n, 1)))
            tokens = [alternatives[0][0] for alternatives in top[:n]]
            of_tokens = generation.token_ids[:n], tokens, generation.logprobs[:n]
            answers[generation.prompt] = (text, *of_tokens, top[0] if top else [])
    table = questions.assign(model=model.name)[["model", *ABOUT]].reset_index(drop=True)
    columns = ["text", "token_ids", "tokens", "logprobs", "first"]
    responses = pd.DataFrame([answers[prompt] for prompt in prompts], columns=columns)
    return table.assign(prompt=pd.Series(prompts, dtype="str"), **responses).astype({"text": "str"})


def _generated(model: Model, prompts: list[str], go_on: bool) -> Iterator[Generation]:
    """Generations long enough for `ending`: those that stopped at an initial's full stop go on."""
    generate = partial(ask_on, model) if go_on else model.generate
    generations = generate(prompts, max_new_tokens=MAX_NEW_TOKENS, stop=STOP)
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
    drawn = counterfactuals(memory, seed=seed)
    found = drawn >= 0
    p = memory[found].reset_index(drop=True)
    q = memory.iloc[drawn[found]].reset_index(drop=True)
    contexts = questions.loc[found, "prefix"].reset_index(drop=True) + " " + q["text"]
    contextual = greedy(model, questions[found], contexts.tolist())
    return scored(model, p, contextual, q["token_ids"].map(tuple)).assign(
        counterfactual=q["text"],
        token_ids_counterfactual=q["token_ids"],
        tokens_counterfactual=q["tokens"],
    )


def _responses(memory: pd.DataFrame, contextual: pd.DataFrame) -> pd.DataFrame:
    """Answers from memory beside those in context to the same questions, as `ask` names them."""
    return memory[["model", *ABOUT]].assign(
        parametric=memory["text"],
        contextual=contextual["text"],
        token_ids_parametric=memory["token_ids"],
        tokens_parametric=memory["tokens"],
        logprobs_p0=memory["logprobs"],
        logprobs_p4=contextual["logprobs"],
    )


def scored(
    model: Model,
    memory: pd.DataFrame,
    contextual: pd.DataFrame,
    stated: Iterable[Tokens],
) -> pd.DataFrame:
    """Answers from memory and in context with logprobs_p0 ... logprobs_p4, as `ask` names them; q
    is `stated`, token ids or a text [row]."""
    p, q = memory["token_ids"].map(tuple), list(stated)
    sides: list[tuple[pd.DataFrame, Iterable[Tokens]]] = [
        (memory, q),
        (contextual, p),
        (contextual, q),
    ]
    pairs = [pair for at, x in sides for pair in zip(at["prompt"], x, strict=True)]
    values = iter(score_once(model, pairs, (memory, contextual)))
    lists = {name: [next(values) for _ in q] for name in ("p1", "p2", "p3")}
    return _responses(memory, contextual).assign(
        **{f"logprobs_{name}": pd.Series(x, dtype=object) for name, x in lists.items()}
    )


def score_once(
    model: Model,
    pairs: Iterable[tuple[str, Tokens]],
    known: Sequence[pd.DataFrame] = (),
) -> list[list[float]]:
    """log P of the tokens of each answer after its prompt, [pair][token]; none of an empty answer.
    Equal pairs are asked once. Answers of the tables `known` (of `greedy`) keep the numbers of
    their generation: computed twice they differ in the last digits, and P4 > P3 would be chance."""
    found: dict[tuple[str, Tokens], list[float]] = {}
    for table in known:
        keys = zip(table["prompt"], map(tuple, table["token_ids"]), strict=True)
        found |= zip(keys, table["logprobs"], strict=True)
    every = list(pairs)
    if new := [pair for pair in dict.fromkeys(every) if pair[1] and pair not in found]:
        answers = [x if isinstance(x, str) else list(x) for _, x in new]
        values = model.score([prompt for prompt, _ in new], answers)
        found |= zip(new, (logprobs.tolist() for logprobs in values), strict=True)
    return [found[pair] if pair[1] else [] for pair in every]


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
    asked = scored(model, p, contextual, stated)
    return asked.assign(counterfactual=contexts["stated"].to_numpy(), **about)


def swapped(model: Model, questions: pd.DataFrame, passages: pd.DataFrame) -> pd.DataFrame:
    """Ask the questions of `passages` (`context.passages`) without a passage, with it, with its slots'
    answers exchanged twice, and with another answer exchanged, a row a passage.

    Columns: those of `passages` and `greedy`'s as `ask` names them, without the counterfactual;
    logprobs_p0, logprobs_p1 (of the answer given, after the question alone; p2 and p3 are not asked)
    and logprobs_p4; text_1 and text_2 (the answers to the exchanged passages) and text_placebo (to the
    passage itself, where it has no placebo).
    """
    rows = questions.set_index("question_id", drop=False).loc[passages["question_id"]]
    memory, columns = greedy(model, rows), ["sentence", "swap_1", "swap_2", "placebo"]
    # All at once: passages that begin alike share their computation.
    placebos = passages["placebo"].where(passages["placebo"] != "", passages["sentence"])
    asked = passages.assign(placebo=placebos)
    texts = [text for column in columns for text in asked[column]]
    every = greedy(model, pd.concat([rows] * len(columns)), texts)
    n = len(rows)
    given, *others = (every[i * n :][:n].reset_index(drop=True) for i in range(len(columns)))
    pairs = zip(memory["prompt"], given["token_ids"].map(tuple), strict=True)
    p1 = pd.Series(score_once(model, pairs, (memory,)), dtype=object)
    table = _responses(memory, given).assign(logprobs_p1=p1)
    swaps = dict(
        zip(("text_1", "text_2", "text_placebo"), (x["text"] for x in others), strict=True)
    )
    return table.assign(
        **swaps,
        **passages.reset_index(drop=True).drop(columns="question_id"),
    )


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
