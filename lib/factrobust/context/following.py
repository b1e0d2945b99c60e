"""Does an answer follow its context, and what of the context changes that?

An answer follows the context if its source is contextual; log P0, the memory's perplexity without a
context (nats a token), says how weak it is.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from factrobust.intervals import bootstrap_mean


def followed(marked: pd.DataFrame) -> pd.DataFrame:
    """The answers with followed (1 or 0), log_p0, and the pull of their context, log P2 - log P3
    (nats a token), which still tells where nearly every answer follows."""
    logs = np.log(marked[["p0", "p2", "p3"]])
    return marked.assign(
        followed=(marked["source"] == "contextual").astype(float),
        log_p0=logs["p0"],
        pull=logs["p2"] - logs["p3"],
    )


def effects(
    rows: pd.DataFrame,
    factors: Sequence[str],
    value: str = "followed",
    *,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """What each factor of a context changes on average, a row a model and factor.

    with_it and without_it are means of `value` over facts; mean, low and high are of each fact's
    difference, with facts drawn; n counts them. p_value is of the randomisation: the share of
    `n_boot` random arrangements of a factor over a fact's contexts (and the real one) with as large
    an absolute difference. Facts whose contexts all have the factor, or all lack it, are left out.
    """
    table = []
    for (model, part), factor in product(rows.groupby("model", sort=False), factors):
        part = part.assign(
            on=part[factor].astype(float),
            y=part[value].astype(float),
        )
        n_values = part.groupby("question_id")["on"].transform("nunique")
        part = part[n_values == 2]
        means = part.groupby(["question_id", "on"])["y"].mean().unstack()
        with_it = means[1.0]
        without_it = means[0.0]
        difference = bootstrap_mean(with_it - without_it, n_boot=n_boot)
        p_value = _randomised(part, difference.mean, n_boot)
        table.append((model, factor, with_it.mean(), without_it.mean(), *difference, p_value))
    columns = [
        "model",
        "factor",
        "with_it",
        "without_it",
        "mean",
        "low",
        "high",
        "n",
        "p_value",
    ]
    return pd.DataFrame(table, columns=columns)


def _randomised(rows: pd.DataFrame, found: float, n: int) -> float:
    """Share of arrangements of `on` within facts whose mean difference is as large as `found`."""
    generator = np.random.default_rng(0)
    rows = rows.sort_values("question_id", kind="stable")
    starts = np.flatnonzero(~rows["question_id"].duplicated())
    total = np.zeros(n)
    for fact in np.split(rows[["on", "y"]].to_numpy(), starts[1:]):
        on, y = fact.T
        drawn = generator.permuted(np.tile(on, (n, 1)), axis=1)
        weights = drawn / on.sum() - (1 - drawn) / (1 - on).sum()
        total += weights @ y
    as_large = np.abs(total) / len(starts) >= abs(found) - 1e-12
    return float((as_large.sum() + 1) / (n + 1))
