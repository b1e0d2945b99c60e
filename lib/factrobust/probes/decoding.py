"""Part 1: ask for facts greedily, sample the answers, temper the greedy answer.

Every function takes facts with the columns `question` and `prefix` (`datasets.facts.questions`) and
returns one row a response. What is right or wrong is decided later, by the metrics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from factrobust.datasets.facts import answers
from factrobust.models.base import Model
from factrobust.models.prompts import FORMATS, render

MAX_NEW_TOKENS = 5  # paper 1, 4.1.1
TEMPERATURES = tuple(round(0.2 * k, 1) for k in range(1, 11))  # paper 1, 4.2
SAMPLES = 10  # a temperature, paper 1, 4.2


def prompts(model: Model, facts: pd.DataFrame, prompt_format: str | None = None) -> list[str]:
    """The exact text sent for each fact, in the model's own format unless one is given."""
    return render(
        prompt_format or model.prompt_format,
        facts["question"].tolist(),
        facts["prefix"].tolist(),
        model.chat,
    )


def greedy(
    model: Model,
    facts: pd.DataFrame,
    *,
    prompt_format: str | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
) -> pd.DataFrame:
    """Greedy answers: model, fact_id, prompt_format, prompt, text, token_ids, logprobs, top_logprobs.

    Raises ValueError for a fact whose every accepted answer has more words than `max_new_tokens`:
    a token holds at most one word, so such an answer could never be given.
    """
    _check_length(facts, max_new_tokens)
    name = prompt_format or model.prompt_format
    made = model.generate(
        prompts(model, facts, name), max_new_tokens=max_new_tokens, stop=FORMATS[name].stop
    )
    return pd.DataFrame(
        {
            "model": model.name,
            "fact_id": facts["fact_id"].to_numpy(),
            "prompt_format": name,
            "prompt": [g.prompt for g in made],
            "text": [g.text for g in made],
            "token_ids": [g.token_ids for g in made],
            "logprobs": [g.logprobs for g in made],
            "top_logprobs": [[[p for _, p in at] for at in g.top_logprobs] for g in made],
        }
    )


def sampled(
    model: Model,
    facts: pd.DataFrame,
    *,
    temperatures: Sequence[float] = TEMPERATURES,
    n: int = SAMPLES,
    seed: int = 0,
    prompt_format: str | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
) -> pd.DataFrame:
    """The paper's procedure: n samples at each temperature, one row a sample.

    Columns: model, fact_id, temperature, sample, text, token_ids, logprobs, tempered_logprobs.
    """
    _check_length(facts, max_new_tokens)
    name = prompt_format or model.prompt_format
    # All temperatures of a prompt in one call: they share its computation.
    asked = [
        (fact, prompt, t)
        for fact, prompt in zip(facts["fact_id"], prompts(model, facts, name), strict=True)
        for t in temperatures
    ]
    made = model.sample(
        [prompt for _, prompt, _ in asked],
        temperature=[t for _, _, t in asked],
        n=n,
        max_new_tokens=max_new_tokens,
        stop=FORMATS[name].stop,
        seed=seed,
    )
    rows = [
        (model.name, fact, t, k, g.text, g.token_ids, g.logprobs, g.tempered_logprobs)
        for (fact, _, t), group in zip(asked, made, strict=True)
        for k, g in enumerate(group)
    ]
    columns = ["model", "fact_id", "temperature", "sample", "text", "token_ids", "logprobs"]
    return pd.DataFrame(rows, columns=[*columns, "tempered_logprobs"])


def tempered(model: Model, responses: pd.DataFrame, temperatures: Sequence[float]) -> pd.DataFrame:
    """log P_t of the greedy answers at every temperature, one row an answer and temperature.

    `responses` come from `greedy`; the answer scored is the text that the model gave, its leading
    space included, so that its probability falls monotonically with t. It is the probability that an
    output begins with this text: "Nigeria" counts for "Niger". Columns: model, fact_id, temperature,
    logprob.
    """
    given = [text.rstrip() for text in responses["text"]]
    curves = model.temper(responses["prompt"].tolist(), given, temperatures)
    return pd.DataFrame(
        {
            "model": model.name,
            "fact_id": responses["fact_id"].repeat(len(temperatures)).to_numpy(),
            "temperature": np.tile(np.asarray(temperatures, dtype=float), len(responses)),
            "logprob": curves.ravel(),
        }
    )


def _check_length(facts: pd.DataFrame, max_new_tokens: int) -> None:
    long = [
        fact
        for fact, accepted in zip(facts["fact_id"], answers(facts), strict=True)
        if min(len(a.split()) for a in accepted) > max_new_tokens
    ]
    if long:
        raise ValueError(
            f"{len(long)} fact(s) have no accepted answer of at most {max_new_tokens} words, such as "
            f"{long[0]}; add a shorter alias, drop them, or raise max_new_tokens"
        )
