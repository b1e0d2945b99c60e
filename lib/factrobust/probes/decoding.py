"""Part 1: ask for facts greedily, sample the answers, temper the greedy answer.

Every function takes facts with the columns `question` and `prefix` (`datasets.facts.questions`) and
returns one row a response. What is right or wrong is decided later, by the metrics; `bisected` alone
needs to know at once, and asks the same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from factrobust.datasets.facts import answers
from factrobust.models.interface import Model
from factrobust.models.prompts import FORMATS
from factrobust.probes import lacking, prompts
from factrobust.text import contains

MAX_NEW_TOKENS = 5  # paper 1, 4.1.1
TEMPERATURES = tuple(round(0.2 * k, 1) for k in range(1, 11))  # paper 1, 4.2
SAMPLES = 10  # a temperature, paper 1, 4.2
ALTERNATIVES = 10  # for the entropy of an answer, paper 1, 4.3
ABOUT = ("fact_id", "domain", "answer_type", "object", "aliases")  # a fact's columns in its samples


def greedy(
    model: Model,
    facts: pd.DataFrame,
    *,
    prompt_format: str | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
    alternatives: int = ALTERNATIVES,
) -> pd.DataFrame:
    """Greedy answers, one row a fact in their order.

    Columns: those of the facts, model, prompt_format, prompt, text, token_ids, logprobs, top_logprobs.
    The first answer tells whether the model gives the `alternatives` that an entropy needs, and with
    it the FRS; ModelError if not. Pass 0 where the texts are enough, as for accuracies.
    Raises ValueError for a fact whose every accepted answer has more words than `max_new_tokens`:
    a token holds at most one word, so such an answer could never be given.
    """
    _check_length(facts, max_new_tokens)
    name = prompt_format or model.prompt_format
    generations = model.generate(
        prompts(model, facts, name),
        max_new_tokens=max_new_tokens,
        stop=FORMATS[name].stop,
        alternatives=alternatives,
    )
    responses = {
        "prompt": [g.prompt for g in generations],
        "text": [g.text for g in generations],
        "token_ids": [g.token_ids for g in generations],
        "logprobs": [g.logprobs for g in generations],
        "top_logprobs": [[[p for _, p in at] for at in g.top_logprobs] for g in generations],
    }
    table = facts.reset_index(drop=True).assign(model=model.name, prompt_format=name)
    return table.assign(**pd.DataFrame(responses))


def sampled(
    model: Model,
    facts: pd.DataFrame,
    *,
    temperatures: Sequence[float] = TEMPERATURES,
    n: int = SAMPLES,
    **options: Any,
) -> pd.DataFrame:
    """The paper's procedure: n samples at each temperature, one row a sample.

    `options`: seed (default: 0), prompt_format and max_new_tokens, as for `greedy`. Columns: model,
    those of the fact (ABOUT), temperature, sample, text, token_ids, logprobs, tempered_logprobs.
    """
    # All temperatures of a prompt in one call: they share its computation.
    cells = [(i, t) for i in range(len(facts)) for t in temperatures]
    return _samples(model, facts, cells, n, **options)


def bisected(
    model: Model,
    facts: pd.DataFrame,
    *,
    temperatures: Sequence[float] = TEMPERATURES,
    n: int = SAMPLES,
    threshold: float = 0.5,
    **options: Any,
) -> pd.DataFrame:
    """Samples at those temperatures alone that a binary search for t_b visits (appendix E.2).

    All facts are searched at once, in rounds: 3 or 4 of the paper's 10 temperatures each. The rows
    are those that `sampled` gives there, so `metrics.decoding.sampled_breaking` reads t_b from them
    as usual. It is the grid's t_b if a fact's accuracy falls with temperature. Where it does not, by
    chance or in truth, the search may miss an early fall below `threshold` and find a later one; the
    paper does not say what to do then, and its grid is `sampled`. Accuracy against temperature
    (figure 1) cannot be drawn from these rows: which facts stand at a temperature depends on their
    answers. `options` are those of `sampled`.
    """
    grid, accepted = sorted(temperatures), answers(facts)
    bounds = [(0, len(grid))] * len(facts)  # t_b is one of grid[low:high], or above them
    rounds: list[pd.DataFrame] = []
    while searched := [i for i, (low, high) in enumerate(bounds) if low < high]:
        middles = [sum(bounds[i]) // 2 for i in searched]
        cells = [(i, grid[middle]) for i, middle in zip(searched, middles, strict=True)]
        rounds.append(_samples(model, facts, cells, n, **options))
        texts = rounds[-1]["text"].tolist()
        for k, (i, middle) in enumerate(zip(searched, middles, strict=True)):
            right = np.mean([contains(text, accepted[i]) for text in texts[k * n : (k + 1) * n]])
            low, high = bounds[i]
            bounds[i] = (low, middle) if right < threshold else (middle + 1, high)
    return pd.concat(rounds or [_samples(model, facts, [], n, **options)], ignore_index=True)


def _samples(
    model: Model,
    facts: pd.DataFrame,
    cells: Sequence[tuple[int, float]],
    n: int,
    *,
    seed: int = 0,
    prompt_format: str | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
) -> pd.DataFrame:
    """n samples in each cell, a row number of `facts` and a temperature, as `sampled` returns them."""
    _check_length(facts, max_new_tokens)
    name = prompt_format or model.prompt_format
    sent = prompts(model, facts, name)
    groups = model.sample(
        [sent[i] for i, _ in cells],
        temperature=[t for _, t in cells],
        n=n,
        max_new_tokens=max_new_tokens,
        stop=FORMATS[name].stop,
        seed=seed,
    )
    samples = [g for group in groups for g in group]
    table = facts[[column for column in ABOUT if column in facts]]
    table = table.iloc[[i for i, _ in cells for _ in range(n)]].reset_index(drop=True)
    table.insert(0, "model", model.name)
    columns = {
        "temperature": np.repeat([float(t) for _, t in cells], n),
        "sample": np.tile(np.arange(n), len(cells)),
        "text": [g.text for g in samples],
        "token_ids": [g.token_ids for g in samples],
        "logprobs": [g.logprobs for g in samples],
        "tempered_logprobs": [g.tempered_logprobs for g in samples],
    }
    return table.assign(**pd.DataFrame(columns))


def temperature_grid(paper: Sequence[float], top: float = 10.0, per_decade: int = 12) -> np.ndarray:
    """The paper's temperatures and a geometric grid from 0.01 to `top` around them, ascending.

    It begins that low because known answers that nearly tie with another one break below 0.1.
    """
    n = int(np.ceil(np.log10(top / 0.01) * per_decade)) + 1
    return np.unique(np.round(np.concatenate([np.asarray(paper), np.geomspace(0.01, top, n)]), 6))


def tempered(model: Model, responses: pd.DataFrame, temperatures: Sequence[float]) -> pd.DataFrame:
    """log P_t of the greedy answers at every temperature, one row an answer and temperature.

    `responses` come from `greedy`; the answer scored is the text that the model gave, its leading
    space included, so that its probability falls monotonically with t. It is the probability that an
    output begins with this text: "Nigeria" counts for "Niger". Columns: model, fact_id, temperature,
    logprob.
    """
    said = [text.rstrip() for text in responses["text"]]
    logprobs = model.temper(responses["prompt"].tolist(), said, temperatures)
    return pd.DataFrame(
        {
            "model": model.name,
            "fact_id": responses["fact_id"].repeat(len(temperatures)).to_numpy(),
            "temperature": np.tile(np.asarray(temperatures, dtype=float), len(responses)),
            "logprob": logprobs.ravel(),
        }
    )


def curves(models: Sequence[Model], responses: pd.DataFrame) -> pd.DataFrame:
    """`tempered` for the answers of several models, on the paper's temperatures and a fine grid
    around them (`temperature_grid`). Without models, a table without rows."""
    grid = temperature_grid(TEMPERATURES).tolist()
    parts = [tempered(model, responses[responses["model"] == model.name], grid) for model in models]
    if not parts:
        return pd.DataFrame(columns=["model", "fact_id", "temperature", "logprob"])
    return pd.concat(parts)


def need_known(known: pd.DataFrame, models: Sequence[Model]) -> None:
    """Raise LacksError if no model knows a single fact (`metrics.decoding.select_known`): there is
    nothing that a temperature could shake."""
    if known.empty and models:
        raise lacking(
            models,
            "none of the greedy answers is right, so there is no known fact to shake; ask easier "
            "questions, or a model that knows some",
        )


def temperable(models: Sequence[Model]) -> list[Model]:
    """The models whose answers can be tempered: all but endpoints.

    Raises LacksError if that leaves none.
    """
    found = [model for model in models if "temper" not in model.lacks]
    if models and not found:
        models[0].require("temper")
    return found


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
