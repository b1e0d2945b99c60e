"""What all probes share: prompts of tables of questions, and what to say where a model lacks something.

A probe returns what was said, one row a response, and marks nothing.
"""

from collections.abc import Iterator, Sequence

import pandas as pd

from factrobust.models.interface import LacksError, Model
from factrobust.models.prompts import render

# Prompts at a time: an answer with its alternatives takes 30 kB until they are dropped.
CHUNK = 4096


def prompts(model: Model, questions: pd.DataFrame, prompt_format: str | None = None) -> list[str]:
    """The exact text sent for each question, in the model's own format unless one is given.

    `questions` has the columns question and prefix. Raises ValueError for an unknown format, or a
    chat format asked of a model without a template.
    """
    name, prefixes = prompt_format or model.prompt_format, questions["prefix"].tolist()
    return render(name, questions["question"].tolist(), prefixes, model.chat)


def as_asked(
    model: Model, questions: pd.DataFrame, prompt_format: str | None = None
) -> pd.DataFrame:
    """The questions with model and prompt format before their columns."""
    how = {"model": model.name, "prompt_format": prompt_format or model.prompt_format}
    return questions.assign(**how)[[*how, *questions]].reset_index(drop=True)


def in_chunks(prompts: Sequence[str]) -> Iterator[list[str]]:
    """The distinct prompts in their order, CHUNK at a time."""
    distinct = list(dict.fromkeys(prompts))
    return (distinct[i : i + CHUNK] for i in range(0, len(distinct), CHUNK))


def need(found: object, models: Sequence[Model], why: str) -> None:
    """Raise LacksError if nothing is found: why there is nothing to look at of these models."""
    if models and not found:
        raise LacksError(f"{', '.join(model.name for model in models)}: {why}")
