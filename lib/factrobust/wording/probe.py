"""Part 3: ask a question and its paraphrases greedily, sample answers, compare what came back."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from factrobust.endings import (
    answer_text,
    count_covering,
    first_sentence,
    generate_answers,
    split_lead,
)
from factrobust.models.interface import Generation, Model, need
from factrobust.models.prompts import as_asked, in_chunks, prompts

MAX_NEW_TOKENS = 16
TEMPERATURE, SAMPLES = 0.5, 10  # paper 3, 4.1.3
# Not the format's own stop strings, which may cut at any full stop ("J. K. Rowling") or comma.
STOP = ("\n",)


def paper_format(prompt_format: str, chat: object) -> str:
    """How paper 3 asks a model of this format and chat template (3.1): a tuned one by its template,
    one that wants the bare question like that, others by "Question: ... Answer:"."""
    if chat:
        return "chat"
    return prompt_format if prompt_format == "question" else "question-answer"


def greedy_responses(
    model: Model,
    questions: pd.DataFrame,
    *,
    prompt_format: str | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
    skip_newlines: bool = True,
    go_on: bool = False,
) -> pd.DataFrame:
    """Greedy answers to `schemas.Questions`, in their order: `schemas.Responses` with the
    questions' columns. Leading newlines are skipped, if wanted; text is the first sentence, raw the
    first line with what was before it. Equal prompts are asked once. To `go_on` is the rule of the
    card and of `ground`: labels are skipped, too, and a model is asked again where its answer has
    not begun (`endings.generate_answers`)."""
    sent = prompts(model, questions, prompt_format)
    generate = partial(generate_answers, model) if go_on else model.generate
    answers: dict[str, tuple[str, str, list[float]]] = {}
    for chunk in in_chunks(sent):
        generations = generate(
            chunk,
            stop=STOP,
            max_new_tokens=max_new_tokens,
            skip_blank=skip_newlines,
        )
        for generation in generations:
            answers[generation.prompt] = _sentence_of(generation, go_on)
    columns = ["text", "raw", "logprobs"]
    responses = pd.DataFrame([answers[prompt] for prompt in sent], columns=columns)
    responses = responses.astype({"text": "str", "raw": "str"})
    table = as_asked(model, questions, prompt_format)
    table["prompt"] = pd.Series(sent, dtype="str")
    return table.assign(**responses)


def _sentence_of(answer: Generation, go_on: bool) -> tuple[str, str, list[float]]:
    """The first sentence after leading newlines (or labels), all text, and the log-probabilities of
    the tokens up to that sentence's end (of all, where a model tells no texts of tokens)."""
    lead = ""
    text = first_sentence(answer.text)
    if go_on:
        lead, *_ = split_lead(answer.text, answer.prompt)
        text = first_sentence(answer_text(answer.text, answer.prompt))
    n_tokens = count_covering(answer, lead + text)
    return text, answer.text, answer.logprobs[:n_tokens]


def sampled_responses(
    model: Model,
    questions: pd.DataFrame,
    *,
    n: int = SAMPLES,
    seed: int = 0,
    prompt_format: str | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
    skip_newlines: bool = True,
) -> pd.DataFrame:
    """n sampled answers to each question (in the paper the originals), one row a sample. Columns:
    model, prompt_format, the questions', sample (0 ... n - 1), text (the first sentence of
    what `endings.answer_text` has), logprobs (untempered, up to the line's end).
    Equal prompts are asked once."""
    sent = prompts(model, questions, prompt_format)
    samples: dict[str, list[Generation]] = {}
    for chunk in in_chunks(sent):
        drawn = model.sample(
            chunk,
            n=n,
            seed=seed,
            max_new_tokens=max_new_tokens,
            temperature=TEMPERATURE,
            stop=STOP,
            skip_blank=skip_newlines,
        )
        samples |= zip(chunk, drawn, strict=True)
    rows = []
    for prompt in sent:
        for generation in samples[prompt]:
            text = first_sentence(answer_text(generation.text, generation.prompt))
            rows.append((text, generation.logprobs))
    table = pd.DataFrame(rows, columns=["text", "logprobs"]).astype({"text": "str"})
    table.insert(
        0,
        "sample",
        np.tile(np.arange(n), len(questions)),
    )
    of_question = np.repeat(np.arange(len(questions)), n)
    return as_asked(model, questions.iloc[of_question], prompt_format).assign(**table)


def predictable(groups: pd.DataFrame, models: Sequence[Model]) -> pd.DataFrame:
    """The rows (questions with `model` and `correct`) of models that are sometimes right and
    sometimes wrong. LacksError if there is no such model."""
    share = groups.groupby("model")["correct"].transform("mean")
    known = groups[share.between(0, 1, inclusive="neither")]
    need(
        len(known),
        models,
        "all answers are right, or all are wrong; ask other questions",
    )
    return known
