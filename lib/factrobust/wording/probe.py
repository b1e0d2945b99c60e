"""Part 3: ask a question and its paraphrases greedily, sample answers, compare what came back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from factrobust.endings import first_sentence
from factrobust.models.interface import Model, need
from factrobust.models.prompts import as_asked, in_chunks, prompts
from factrobust.models.sentences import Encoder, Entailment
from factrobust.text import clusters

MAX_NEW_TOKENS = 16
TEMPERATURE, SAMPLES = 0.5, 10  # paper 3, 4.1.3
SAME, ENTAILED = 0.8, 0.5  # two texts say the same from this cosine on; P(entailment) both ways
# Not the format's own stop strings, which may cut at any full stop ("J. K. Rowling") or comma.
STOP = ("\n",)


def paper_format(prompt_format: str, chat: object) -> str:
    """How paper 3 asks a model of this format and chat template (3.1): a tuned one by its template,
    one that wants the bare question like that, others by "Question: ... Answer:"."""
    if chat:
        return "chat"
    return prompt_format if prompt_format == "question" else "question-answer"


def greedy(
    model: Model,
    questions: pd.DataFrame,
    *,
    prompt_format: str | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
) -> pd.DataFrame:
    """Greedy answers to `schemas.Questions`, in their order: `schemas.Responses` with the
    questions' columns. text is the first sentence, raw the first line. Equal prompts are asked
    once."""
    sent = prompts(model, questions, prompt_format)
    answers = {
        generation.prompt: (first_sentence(generation.text), generation.text, generation.logprobs)
        for chunk in in_chunks(sent)
        for generation in model.generate(chunk, max_new_tokens=max_new_tokens, stop=STOP)
    }
    responses = pd.DataFrame([answers[p] for p in sent], columns=["text", "raw", "logprobs"])
    table = as_asked(model, questions, prompt_format).assign(prompt=pd.Series(sent, dtype="str"))
    return table.assign(**responses.astype({"text": "str", "raw": "str"}))


def sampled(
    model: Model,
    questions: pd.DataFrame,
    *,
    n: int = SAMPLES,
    seed: int = 0,
    prompt_format: str | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
) -> pd.DataFrame:
    """n sampled answers to each question (in the paper the originals), one row a sample. Columns:
    model, prompt_format, the questions', sample (0 ... n - 1), text (the first sentence), logprobs
    (untempered, of all that was said). Equal prompts are asked once."""
    sent = prompts(model, questions, prompt_format)
    options: dict[str, Any] = {"n": n, "seed": seed, "max_new_tokens": max_new_tokens}
    samples: dict[str, list[tuple[str, list[float]]]] = {}
    for chunk in in_chunks(sent):
        groups = model.sample(chunk, temperature=TEMPERATURE, stop=STOP, **options)
        texts = ([(first_sentence(g.text), g.logprobs) for g in group] for group in groups)
        samples |= zip(chunk, texts, strict=True)
    rows = np.repeat(np.arange(len(questions)), n)
    drawn = [sample for prompt in sent for sample in samples[prompt]]
    table = pd.DataFrame(drawn, columns=["text", "logprobs"]).astype({"text": "str"})
    table.insert(0, "sample", np.tile(np.arange(n), len(questions)))
    return as_asked(model, questions.iloc[rows], prompt_format).assign(**table)


def meanings(groups: pd.Series, encoder: Encoder, nli: Entailment | None = None) -> pd.Series:
    """The cluster of each text of each group, a list (`text.clusters`), with the same index. Texts
    say the same where each entails the other with a probability of ENTAILED or more (Kuhn et al.,
    2022); without an NLI model, where their cosine is SAME or more."""

    def same(pairs: list[tuple[str, str]]) -> np.ndarray:
        if nli is None:
            return encoder.similarity(pairs) >= SAME
        back = nli.probability([(b, a) for a, b in pairs])
        return np.minimum(nli.probability(pairs), back) >= ENTAILED

    return pd.Series(clusters(groups.tolist(), same), groups.index, name="clusters")


def compared(pairs: pd.DataFrame, encoder: Encoder, nli: Entailment | None = None) -> pd.DataFrame:
    """`pairs` with the cosine of answer_1 and answer_2, and with an NLI model the probability that
    the first entails the second (forward), and the second the first (backward)."""
    both = pairs[["answer_1", "answer_2"]].values.tolist()
    table = pairs.assign(cosine=encoder.similarity(both))
    if nli is None:
        return table
    forward = nli.probability([(a, b) for a, b in both])
    return table.assign(forward=forward, backward=nli.probability([(b, a) for a, b in both]))


def predictable(groups: pd.DataFrame, models: Sequence[Model]) -> pd.DataFrame:
    """The rows of `schemas.Groups` of models that are sometimes right and sometimes wrong.
    LacksError if there is no such model."""
    share = groups.groupby("model")["correct"].transform("mean")
    known = groups[share.between(0, 1, inclusive="neither")]
    need(len(known), models, "all answers are right, or all are wrong; ask other questions")
    return known
