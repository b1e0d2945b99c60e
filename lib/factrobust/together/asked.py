"""A model's answers to a few questions, with their probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from factrobust import endings
from factrobust.decoding import probe
from factrobust.models.prompts import FORMATS, render
from factrobust.together.opened import chosen_format, in_format, opened


def text(name: Any, questions: Sequence[str], dtype: str | None = None) -> str:
    """The prompt format, and of each question a line: the greedy answer and how likely it is."""
    model = opened(name, dtype)
    usual = "instruction" if model.chat else "two-shot"  # questions bring no beginnings of answers
    model = in_format(model, chosen_format(name) or usual)
    form = FORMATS[model.prompt_format]
    sent = render(model.prompt_format, questions, [""] * len(questions), model.chat)
    found = endings.ask(model, sent, max_new_tokens=probe.LONG, stop=form.stop)
    lines = [f"asked in the prompt format {model.prompt_format}"]
    for question, said in zip(questions, found, strict=True):
        chance = f" (probability {np.exp(sum(said.logprobs)):.3f})" if said.logprobs else ""
        lines.append(f"{question} {endings.said(said.text, said.prompt).strip()}{chance}")
    return "\n".join(lines)
