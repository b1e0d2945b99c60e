"""Part 3: ask a question and its paraphrases greedily, sample answers, compare what came back.

Questions are a table of `datasets.wordings.paraphrased` or `load_questions`, or of a loader of
PopQA: one row a question, and group_id tells which ones are paraphrases of each other. Which answers
are right is decided later, by the metrics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from factrobust import probes
from factrobust.models.interface import LacksError, Model
from factrobust.models.prompts import FORMATS
from factrobust.models.sentences import Encoder, Entailment
from factrobust.probes.endings import first_sentence
from factrobust.text import mean_entailment

MAX_NEW_TOKENS = 16
TEMPERATURE, SAMPLES = 0.5, 10  # paper 3, 4.1.3
# Not the format's own stop strings, which may cut at any full stop ("J. K. Rowling") or comma.
STOP = ("\n",)


def paper_format(prompt_format: str, chat: object) -> str:
    """How paper 3 asks a model of this own format and chat template (section 3.1).

    A tuned one by its template, one that wants the bare question (an encoder-decoder) like that,
    others by "Question: ... Answer:".
    """
    if chat:
        return "chat"
    return prompt_format if prompt_format == "question" else "question-answer"


def prompts(model: Model, questions: pd.DataFrame, prompt_format: str | None = None) -> list[str]:
    """`probes.prompts`; raises ValueError also for a question without the prefix of its format."""
    name = prompt_format or model.prompt_format
    sent = probes.prompts(model, questions, name)
    without = ~questions["prefix"].fillna("").str.strip().astype(bool)
    if FORMATS[name].prefix and without.any():
        raise ValueError(
            f"the format {name!r} begins the answer with a prefix, and {without.sum()} question(s), "
            f"such as {questions.loc[without, 'question_id'].iloc[0]}, have none; fill in the column "
            "prefix or choose another format"
        )
    return sent


def greedy(
    model: Model,
    questions: pd.DataFrame,
    *,
    prompt_format: str | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
) -> pd.DataFrame:
    """Greedy answers, one row a question in their order; equal prompts are asked once.

    Columns: model, prompt_format, those of the questions, prompt, text (the first sentence), raw (the
    answer's first line, as it came), logprobs (list: natural log-probabilities of its tokens). Raises
    ValueError as `prompts` does.
    """
    sent = prompts(model, questions, prompt_format)
    answers = {
        generation.prompt: (first_sentence(generation.text), generation.text, generation.logprobs)
        for chunk in probes.in_chunks(sent)
        for generation in model.generate(chunk, max_new_tokens=max_new_tokens, stop=STOP)
    }
    responses = pd.DataFrame([answers[p] for p in sent], columns=["text", "raw", "logprobs"])
    table = _asked(model, questions, prompt_format).assign(prompt=pd.Series(sent, dtype="str"))
    return table.assign(**responses.astype({"text": "str", "raw": "str"}))


def sampled(
    model: Model,
    questions: pd.DataFrame,
    *,
    temperature: float = TEMPERATURE,
    n: int = SAMPLES,
    seed: int = 0,
    prompt_format: str | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
) -> pd.DataFrame:
    """n sampled answers to each question, one row a sample; equal prompts are asked once.

    The paper samples the original questions only: pass the rows of variant 0. Columns: model,
    prompt_format, those of the questions, sample (0 ... n - 1), text (the first sentence). Raises
    ValueError as `prompts` does.
    """
    sent = prompts(model, questions, prompt_format)
    options: dict[str, Any] = {"temperature": temperature, "n": n, "seed": seed}
    options["max_new_tokens"] = max_new_tokens
    samples: dict[str, list[str]] = {}
    for chunk in probes.in_chunks(sent):
        groups = model.sample(chunk, stop=STOP, **options)
        texts = ([first_sentence(g.text) for g in group] for group in groups)
        samples |= zip(chunk, texts, strict=True)
    rows = np.repeat(np.arange(len(questions)), n)
    return _asked(model, questions.iloc[rows], prompt_format).assign(
        sample=np.tile(np.arange(n), len(questions)),
        text=pd.Series([text for prompt in sent for text in samples[prompt]], dtype="str"),
    )


def _asked(model: Model, questions: pd.DataFrame, prompt_format: str | None) -> pd.DataFrame:
    """The questions with model and prompt format before their columns."""
    table = questions.reset_index(drop=True)
    table.insert(0, "model", model.name)
    table.insert(1, "prompt_format", prompt_format or model.prompt_format)
    return table


def consistency(encoder: Encoder, groups: pd.DataFrame | pd.Series) -> pd.Series:
    """Mean pairwise cosine of each group of texts, raw: SCons of answers, Cert of samples.

    `groups` is the table of `metrics.wording.text_groups` (or any with a column `texts`), or a Series
    of lists of texts. Returns the Series int_sim with the same index, in [-1, 1]. Raises ValueError
    for a group of fewer than two texts.
    """
    texts = groups["texts"] if isinstance(groups, pd.DataFrame) else groups
    short = (texts.map(len) < 2).to_numpy(dtype=bool)
    if short.any():
        named = isinstance(groups, pd.DataFrame) and "group_id" in groups
        name = (groups["group_id"] if named else texts.index.to_series())[short].iloc[0]
        raise ValueError(
            f"{short.sum()} group(s) have fewer than two texts, such as {name}; similarity is "
            "between two or more: leave such groups out"
        )
    return pd.Series(encoder.similarity(texts.tolist()), index=texts.index, name="int_sim")


def entailment(nli: Entailment, groups: pd.DataFrame) -> pd.Series:
    """Mean probability that one text of a group entails another, over both directions, in [0, 1].

    `groups` is the table of `metrics.wording.text_groups`; a pair that occurs in several groups is
    asked once. Returns the Series entailment with the same index (see `text.mean_entailment`).
    """
    values = mean_entailment(groups["texts"].tolist(), nli.probability)
    return pd.Series(values, index=groups.index, name="entailment")


def compared(pairs: pd.DataFrame, encoder: Encoder, nli: Entailment | None = None) -> pd.DataFrame:
    """`pairs` with how alike answer_1 and answer_2 are: cosine, and with an NLI model how probable it
    is that the first entails the second (forward) and the second the first (backward)."""
    both = pairs[["answer_1", "answer_2"]].values.tolist()
    table = pairs.assign(cosine=encoder.similarity(both))
    if nli is None:
        return table
    forward = nli.probability([(a, b) for a, b in both])
    return table.assign(forward=forward, backward=nli.probability([(b, a) for a, b in both]))


def predictable(groups: pd.DataFrame) -> pd.DataFrame:
    """The rows (`metrics.wording.groups`) of models that are sometimes right and sometimes wrong.

    Raises LacksError if there is no such model: nothing can be predicted of them.
    """
    right = groups.groupby("model", sort=False)["correct"].agg(["mean", "size"])
    constant = right[right["mean"].isin([0, 1])]
    if len(right) and len(constant) == len(right):
        share, n = constant.iloc[0]
        raise LacksError(
            f"{constant.index[0]}: all {n:.0f} answers are {'right' if share else 'wrong'}, so there "
            "is nothing to predict; ask other questions"
        )
    return groups[~groups["model"].isin(constant.index)]
