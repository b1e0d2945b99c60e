"""How sure is a model of the first token of its answer, and what does another prompt change?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from factrobust.metrics.entropy import top_entropy

Alternatives = Sequence[tuple[str, float]]  # (token, natural log-probability), the likeliest ones


def first_entropy(alternatives: Alternatives) -> float:
    """Entropy in nats of the likeliest first tokens, renormalised to sum to one.

    It is at most ln k for k tokens (models give ten); NaN for fewer than two.
    """
    logs = [p for _, p in alternatives]
    return top_entropy(logs) * float(np.log(len(logs))) if len(logs) > 1 else float("nan")


def first_shift(one: Alternatives, other: Alternatives) -> float:
    """Jensen-Shannon distance of two first-token distributions, 0 (equal) to sqrt(ln 2).

    The square root of the divergence, with the natural logarithm, over the union of the tokens of
    both lists and the rest. A token that is in one list only counts in the other's rest, so what is
    beyond the lists makes the distance somewhat too large. NaN if a list is empty.
    """
    if not one or not other:
        return float("nan")
    pair: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for column, alternatives in enumerate((one, other)):
        for token, logprob in alternatives:
            pair[token][column] += float(np.exp(logprob))
    p = np.array([*pair.values(), [0.0, 0.0]])
    p[-1] = np.clip(1 - p.sum(axis=0), 0, 1)
    middle = p.mean(axis=1, keepdims=True)
    # p log p tends to 0 with p.
    terms = np.where(p > 0, p * np.log(np.where(p > 0, p, 1) / np.where(middle > 0, middle, 1)), 0)
    return float(np.sqrt(max(0.0, terms.sum() / 2)))
