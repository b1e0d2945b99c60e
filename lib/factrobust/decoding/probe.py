"""Part 1: ask for facts greedily, sample the answers, temper the greedy answer. Facts have the
columns `question` and `prefix`; there is one row a response, marked by the metrics."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from factrobust.models.interface import Model
from factrobust.models.prompts import FORMATS, prompts

MAX_NEW_TOKENS = 5  # paper 1, 4.1.1
LONG = 20  # enough for a date, or for words before the name
TEMPERATURES = tuple(round(0.2 * k, 1) for k in range(1, 11))  # paper 1, 4.2
# The paper's, and 12 a decade around them. As low as 0.01 because known answers that nearly tie with
# another one break below 0.1.
GRID = tuple(np.unique(np.round([*TEMPERATURES, *np.geomspace(0.01, 10, 37)], 6)).tolist())
SAMPLES = 10  # a temperature, paper 1, 4.2
ALTERNATIVES = 10  # for the entropy of an answer, paper 1, 4.3
ABOUT = (
    "fact_id",
    "domain",
    "answer_type",
    "object",
    "aliases",
)  # a fact's columns in its samples


def greedy_answers(
    model: Model,
    facts: pd.DataFrame,
    *,
    max_new_tokens: int = MAX_NEW_TOKENS,
    temperatures: Sequence[float] = GRID,
    prompt_format: str | None = None,
) -> pd.DataFrame:
    """Greedy answers, one row a fact in their order: `schemas.Answers` with the facts' columns.
    Where answers can be tempered, their `curve` at `temperatures` comes along. ModelError if the
    model gives no alternatives, which the entropy needs. The prompt format is the model's own, or
    another."""
    prompt_format = prompt_format or model.prompt_format
    how: dict[str, Any] = {
        "max_new_tokens": max_new_tokens,
        "alternatives": ALTERNATIVES,
    }
    how["temperatures"] = () if "temper" in model.lacks else temperatures
    stop = FORMATS[prompt_format].stop
    generations = model.generate(prompts(model, facts, prompt_format), stop=stop, **how)
    columns = [
        "prompt",
        "text",
        "token_ids",
        "logprobs",
        "curve",
        "entropies",
    ]
    answers = pd.DataFrame(list(map(vars, generations)), columns=columns)
    for k, name in enumerate(("top_tokens", "top_logprobs")):
        tops: Any = [[[pair[k] for pair in at] for at in g.top_logprobs] for g in generations]
        answers[name] = tops
    asked = {
        "model": model.name,
        "prompt_format": prompt_format,
    }
    return facts.reset_index(drop=True).assign(**asked, **answers)


def truths(model: Model, responses: pd.DataFrame) -> pd.Series:
    """log P of the right answer (nats, all its tokens) to each prompt of a model's
    `schemas.Answers`, [row]."""
    answers = responses[responses["model"] == model.name]
    separators = answers["prompt_format"].map(lambda name: FORMATS[name].separator)
    scores = model.score(
        answers["prompt"].tolist(),
        (separators + answers["object"]).tolist(),
    )
    return pd.Series(
        [float(tokens.sum()) for tokens in scores],
        answers.index,
    )


def sampled_answers(
    model: Model,
    facts: pd.DataFrame,
    *,
    temperatures: Sequence[float] = TEMPERATURES,
    n: int = SAMPLES,
    seed: int = 0,
    max_new_tokens: int = MAX_NEW_TOKENS,
    **cuts: Any,
) -> pd.DataFrame:
    """The paper's procedure: n samples at each temperature, one row a sample. `cuts` truncate
    (top_k, top_p, min_p of `Model.sample`). Returns `schemas.Samples` with ABOUT of the facts."""
    # All temperatures of a prompt in one call: they share its computation.
    sent = [prompt for prompt in prompts(model, facts) for _ in temperatures]
    how = {
        "n": n,
        "seed": seed,
        "max_new_tokens": max_new_tokens,
    } | cuts
    stop = FORMATS[model.prompt_format].stop
    each = [*temperatures] * len(facts)
    groups = model.sample(sent, temperature=each, stop=stop, **how)
    samples = [vars(generation) for group in groups for generation in group]
    columns = ["text", "token_ids", "logprobs", "tempered_logprobs"]
    rows = np.repeat(np.arange(len(facts)), len(temperatures) * n)
    table = facts[list(ABOUT)].iloc[rows].reset_index(drop=True)
    return table.assign(
        model=model.name,
        temperature=np.tile(
            np.repeat(np.asarray(temperatures, dtype=float), n),
            len(facts),
        ),
        sample=np.tile(np.arange(n), len(sent)),
        **pd.DataFrame(samples, columns=columns),
    )


def answer_curves(
    responses: pd.DataFrame,
    temperatures: Sequence[float] = GRID,
) -> pd.DataFrame:
    """log P_t of greedy answers at their temperatures: `schemas.Answers` to `schemas.Curves`. An
    output counts that begins with the answer's tokens ("Niger" goes on to "ia"); other tokens for
    the same text do not count. Answers that cannot be tempered are left out."""
    found = responses[responses["curve"].map(len) > 0]
    return _curves(
        found,
        np.array(found["curve"].tolist(), dtype=float),
        temperatures,
    )


def truncated_curves(
    model: Model,
    responses: pd.DataFrame,
    temperatures: Sequence[float] = TEMPERATURES,
    **cuts: Any,
) -> pd.DataFrame:
    """As `answer_curves`, but under truncation (`Model.temper`: top_k, top_p, min_p)."""
    prompts, ids = (responses[column].tolist() for column in ("prompt", "token_ids"))
    return _curves(
        responses,
        model.temper(prompts, ids, temperatures, **cuts),
        temperatures,
    )


def _curves(
    responses: pd.DataFrame,
    logprobs: np.ndarray,
    temperatures: Sequence[float],
) -> pd.DataFrame:
    repeated = responses[["model", "fact_id"]].loc[responses.index.repeat(len(temperatures))]
    return repeated.assign(
        temperature=np.tile(
            np.asarray(temperatures, dtype=float),
            len(responses),
        ),
        logprob=logprobs.ravel(),
    ).reset_index(drop=True)
