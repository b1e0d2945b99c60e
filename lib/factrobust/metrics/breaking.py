"""Part 1: what ten samples a temperature can tell of a breaking temperature, and what they miss.

The paper reads t_b off samples: the first temperature at which fewer than half of them are right.
Given P_t, the probability of a right sample at each temperature, that estimate has a distribution
which needs no simulation; everything here follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from factrobust.metrics.decoding import KEY, THRESHOLD, top_entropy


def breaking_distribution(probabilities: ArrayLike, n: int) -> NDArray[np.float64]:
    """How often the paper's scan breaks at each temperature, and (last) at none of them.

    `probabilities` [fact, temperature] are P_t, ascending in t; the result is [fact, temperature + 1]
    and its rows sum to 1. The scan stops at the first temperature where fewer than half of `n`
    samples are right. They are independent between temperatures, so with
    q_i = P(Bin(n, P_i) < n / 2) it stops at the i-th with probability q_i (1 - q_1) ... (1 - q_{i-1}).
    """
    p = np.atleast_2d(np.asarray(probabilities, dtype=float))
    fails = binom.cdf(np.ceil(THRESHOLD * n) - 1, n, np.clip(p, 0, 1))
    reached = np.cumprod(np.hstack([np.ones((len(p), 1)), 1 - fails]), axis=1)
    return reached * np.hstack([fails, np.ones((len(p), 1))])


def sampling_error(
    curves: pd.DataFrame, temperatures: Sequence[float], counts: Sequence[int]
) -> pd.DataFrame:
    """What sampling adds to t_b: one row a model, fact and number of samples a temperature (`n`).

    From a table `schemas.Curves` that holds every one of the evenly spaced `temperatures`. `on_grid`
    is the first of them where P_t is below one half: what infinitely many samples find unless P_t is
    one half exactly. `expected` is the mean of the sampled t_b, `bias` that less `on_grid`, `sd` its
    standard deviation. A fact that does not break counts as one that breaks a step after the last
    temperature.
    """
    grid = np.asarray(temperatures, dtype=float)
    at = curves["temperature"].to_numpy()[:, None]
    near = curves[np.isclose(at, grid).any(axis=1)]
    near = near.assign(temperature=near["temperature"].round(6))
    wide = near.pivot(index=KEY, columns="temperature", values="logprob")
    probabilities = np.exp(wide.to_numpy())
    steps = np.append(grid, grid[-1] + (grid[-1] - grid[-2]))
    below = np.hstack([probabilities < THRESHOLD, np.ones((len(wide), 1), dtype=bool)])
    on_grid = steps[below.argmax(axis=1)]
    tables = []
    for n in counts:
        shares = breaking_distribution(probabilities, n)
        expected = shares @ steps
        sd = np.sqrt(np.maximum(shares @ steps**2 - expected**2, 0))
        found = {"n": n, "on_grid": on_grid, "expected": expected, "bias": expected - on_grid}
        tables.append(wide.index.to_frame(index=False).assign(**found, sd=sd))
    return pd.concat(tables, ignore_index=True)


def merged_entropy(tokens: Sequence[str], logprobs: Sequence[float]) -> float:
    """`decoding.top_entropy` where tokens that differ in case or spaces alone count as one.

    " red", "Red" and " RED" begin the same answer, and indecision between them is none about the
    fact. The logarithm's base stays the number of tokens given, so that merging never adds entropy.
    """
    groups: dict[str, list[float]] = {}
    for token, logprob in zip(tokens, logprobs, strict=True):
        groups.setdefault(token.strip().casefold(), []).append(logprob)
    merged = [np.logaddexp.reduce(parts) for parts in groups.values()]
    if len(merged) == 1:
        return 0.0
    return top_entropy(merged) * float(np.log(len(merged)) / np.log(len(tokens)))


def entropies(known: pd.DataFrame) -> pd.DataFrame:
    """The entropy of each greedy answer in four ways, mean over its tokens: a row an answer.

    From `schemas.MarkedAnswers`. `published`: over the ten likeliest tokens, renormalised (equation
    1); `not renormalised`: the same sum over their probabilities as they stand; `merged`:
    `merged_entropy`; `vocabulary`: over all tokens. Base 10 throughout, so that the last may exceed 1.
    """
    ten = [[np.asarray(at, dtype=float) for at in answer] for answer in known["top_logprobs"]]
    plain = [np.mean([-np.exp(at) @ at / np.log(at.size) for at in answer]) for answer in ten]
    pairs = zip(known["top_tokens"], known["top_logprobs"], strict=True)
    merged = [
        np.mean([merged_entropy(*at) for at in zip(*answer, strict=True)]) for answer in pairs
    ]
    whole = [np.mean(at) / np.log(10) for at in known["entropies"]]
    table = known[KEY].assign(published=known["entropy"], merged=merged, vocabulary=whole)
    return table.assign(**{"not renormalised": plain})


def spellings(names: Iterable[str], said: str = "") -> list[str]:
    """Other ways to begin an answer with one of these names, none of which begins another.

    Each name as it stands, in small letters, with a capital, and with "the" or "The" before it.
    `said` is the answer given: what it begins with, or what begins with it, is left out, as is
    every form that begins with an earlier one or is its beginning. An output then begins with
    at most one of `said` and these, so that their probabilities may be added up.
    """
    found = [said] if said else []
    for name in names:
        bare = name.removeprefix("The ").removeprefix("the ")
        for form in (
            name,
            bare,
            f"The {bare}",
            f"the {bare}",
            bare[:1].upper() + bare[1:],
            bare.lower(),
        ):
            if not any(form.startswith(other) or other.startswith(form) for other in found):
                found.append(form)
    return found[1:] if said else found
