"""Part 1: ask for facts greedily, sample the answers, temper the greedy answer.

Every function takes facts with the columns `question` and `prefix` (`datasets.facts.questions`) and
returns one row a response. What is right or wrong is decided later, by the metrics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from factrobust.datasets.facts import answers
from factrobust.models.interface import Model
from factrobust.models.prompts import FORMATS
from factrobust.probes import need, prompts
from factrobust.schemas import Curves, names

MAX_NEW_TOKENS = 5  # paper 1, 4.1.1
TEMPERATURES = tuple(round(0.2 * k, 1) for k in range(1, 11))  # paper 1, 4.2
SAMPLES = 10  # a temperature, paper 1, 4.2
ALTERNATIVES = 10  # for the entropy of an answer, paper 1, 4.3
ABOUT = ("fact_id", "domain", "answer_type", "object", "aliases")  # a fact's columns in its samples


def greedy(
    model: Model, facts: pd.DataFrame, *, max_new_tokens: int = MAX_NEW_TOKENS
) -> pd.DataFrame:
    """Greedy answers, one row a fact in their order: `schemas.Answers` with the facts' columns.

    The first answer tells whether the model gives the alternatives that an entropy needs, and with it
    the FRS; ModelError if not. Raises ValueError for a fact whose every accepted answer has more words
    than `max_new_tokens`: a token holds at most one word, so such an answer could never be given.
    """
    words = [min(len(a.split()) for a in accepted) for accepted in answers(facts)]
    if long := facts["fact_id"][np.array(words, dtype=int) > max_new_tokens].tolist():
        raise ValueError(
            f"{len(long)} fact(s) have no accepted answer of at most {max_new_tokens} words, such as "
            f"{long[0]}; add a shorter alias, drop them, or raise max_new_tokens"
        )
    generations = model.generate(
        prompts(model, facts),
        max_new_tokens=max_new_tokens,
        stop=FORMATS[model.prompt_format].stop,
        alternatives=ALTERNATIVES,
    )
    rows = [
        (g.prompt, g.text, g.token_ids, g.logprobs, [[p for _, p in at] for at in g.top_logprobs])
        for g in generations
    ]
    columns = ["prompt", "text", "token_ids", "logprobs", "top_logprobs"]
    return facts.reset_index(drop=True).assign(
        model=model.name, prompt_format=model.prompt_format, **pd.DataFrame(rows, columns=columns)
    )


def sampled(
    model: Model,
    facts: pd.DataFrame,
    *,
    temperatures: Sequence[float] = TEMPERATURES,
    n: int = SAMPLES,
    seed: int = 0,
    max_new_tokens: int = MAX_NEW_TOKENS,
) -> pd.DataFrame:
    """The paper's procedure: n samples at each temperature, one row a sample.

    Returns a table `schemas.Samples` with the columns ABOUT of the facts.
    """
    # All temperatures of a prompt in one call: they share its computation.
    sent = [prompt for prompt in prompts(model, facts) for _ in temperatures]
    groups = model.sample(
        sent,
        temperature=[*temperatures] * len(facts),
        n=n,
        max_new_tokens=max_new_tokens,
        stop=FORMATS[model.prompt_format].stop,
        seed=seed,
    )
    samples = [(g.text, g.token_ids, g.logprobs, g.tempered_logprobs) for x in groups for g in x]
    columns = ["text", "token_ids", "logprobs", "tempered_logprobs"]
    rows = np.repeat(np.arange(len(facts)), len(temperatures) * n)
    table = facts[list(ABOUT)].iloc[rows].reset_index(drop=True)
    return table.assign(
        model=model.name,
        temperature=np.tile(np.repeat(np.asarray(temperatures, dtype=float), n), len(facts)),
        sample=np.tile(np.arange(n), len(sent)),
        **pd.DataFrame(samples, columns=columns),
    )


def temperature_grid(paper: Sequence[float]) -> np.ndarray:
    """The paper's temperatures and a geometric grid, 12 a decade from 0.01 to 10, around them.

    It begins that low because known answers that nearly tie with another one break below 0.1.
    """
    return np.unique(np.round([*paper, *np.geomspace(0.01, 10, 37)], 6))


def tempered(model: Model, responses: pd.DataFrame, temperatures: Sequence[float]) -> pd.DataFrame:
    """log P_t of greedy answers at every temperature: from `schemas.Answers` to `schemas.Curves`.

    The answer scored is the text that the model gave, its leading space included, so that its
    probability falls monotonically with t. It is the probability that an output begins with this
    text: "Nigeria" counts for "Niger".
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
    return pd.concat(parts or [pd.DataFrame(columns=names(Curves))])


def need_known(known: pd.DataFrame, models: Sequence[Model]) -> None:
    """Raise LacksError if no model knows a single fact (`metrics.decoding.select_known`)."""
    why = "none of the greedy answers is right, so there is no known fact to shake; ask easier "
    need(not known.empty, models, f"{why}questions, or a model that knows some")


def temperable(models: Sequence[Model]) -> list[Model]:
    """The models whose answers can be tempered: all but endpoints.

    Raises LacksError if that leaves none.
    """
    found = [model for model in models if "temper" not in model.lacks]
    if models and not found:
        models[0].require("temper")
    return found
