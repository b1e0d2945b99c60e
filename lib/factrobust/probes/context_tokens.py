"""The probabilities behind the perplexities of one question of part 4, token by token (figure 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from factrobust.models.interface import Model
from factrobust.probes.context import MAX_NEW_TOKENS, context_prompts, greedy
from factrobust.probes.endings import STOP


def answer_tokens(
    model: Model, questions: pd.DataFrame, result: Mapping[Any, Any] | pd.Series
) -> pd.DataFrame:
    """How likely each token of both answers is, without and with the counterfactual in the prompt.

    `result` is a row of `probes.context.ask` with its defaults, `questions` what was asked. Columns:
    answer ("parametric" or "counterfactual"), context (bool), position (1, 2, ...), token,
    probability. The mean of -log2 of an answer's probabilities is log2 of its perplexity. Raises
    ValueError if the model's answers are not those of the result, or if one of them is empty.
    """
    same = questions[questions["base_id"] == result["base_id"]]
    answers, own = greedy(model, same), same[same["question_id"] == result["question_id"]]
    p = answers[answers["question_id"].eq(result["question_id"])]
    p = p[p["text"] == result["parametric"]]
    q = answers[answers["text"] == result["counterfactual"]]
    if p.empty or q.empty or not (result["parametric"] and result["counterfactual"]):
        raise ValueError(
            f"{model.name} does not give the answers of {result['question_id']}, or one is empty; "
            "take a row of its own results in which both answers have words"
        )
    context = f"{own['prefix'].iloc[0]} {result['counterfactual']}"
    prompts = {False: p["prompt"].iloc[0], True: context_prompts(model, own, [context])[0]}
    given = {"parametric": p.iloc[0], "counterfactual": q.iloc[0]}
    keys = [(answer, context) for answer in given for context in prompts]
    logprobs = model.score(
        [prompts[context] for _, context in keys], [given[name]["token_ids"] for name, _ in keys]
    )
    texts = {
        name: _texts(model, row["prompt"], len(row["token_ids"])) for name, row in given.items()
    }
    rows = [
        (*key, i, token, np.exp(logprob))
        for key, values in zip(keys, logprobs, strict=True)
        for i, (token, logprob) in enumerate(zip(texts[key[0]], values, strict=True), 1)
    ]
    columns = ["answer", "context", "position", "token", "probability"]
    return pd.DataFrame(rows, columns=columns).astype({"probability": float})


def _texts(model: Model, prompt: str, n: int) -> list[str]:
    """The first n tokens of the greedy answer."""
    made = model.generate([prompt], max_new_tokens=MAX_NEW_TOKENS, stop=STOP["robust"])[0]
    if len(made.top_logprobs) < n:  # `greedy` went on behind the full stop of an initial
        made = model.generate([prompt], max_new_tokens=MAX_NEW_TOKENS, stop=("\n",))[0]
    return [alternatives[0][0] for alternatives in made.top_logprobs[:n]]
