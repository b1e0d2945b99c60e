"""Initial uncertainty of an answer (paper 1, 4.3): entropy over the ten likeliest tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def top_entropy(top_logprobs: Sequence[float]) -> float:
    """Entropy of one position, in [0, 1]: H = -sum p log_k p over the k given tokens.

    `top_logprobs` are the natural-log probabilities of the k likeliest tokens (the paper: k = 10,
    log base 10, equation 1). They are renormalised to sum to one, so that the maximum is exactly 1.
    Raises ValueError for fewer than two tokens, whose entropy has no scale.
    """
    logs = np.asarray(top_logprobs, dtype=float)
    if logs.size < 2:
        raise ValueError(f"entropy needs at least two alternatives a position, not {logs.size}")
    logs = logs - np.logaddexp.reduce(logs)
    p = np.exp(logs)
    # p log p tends to 0 with p.
    terms = np.where(p > 0, p * np.where(p > 0, logs, 0.0), 0.0)
    return float(np.clip(-terms.sum() / np.log(logs.size), 0.0, 1.0))


def answer_entropy(top_logprobs: Sequence[Sequence[float]]) -> float:
    """Mean entropy over the answer's tokens (4.3); nan for an answer without tokens."""
    if not len(top_logprobs):
        return float("nan")
    return float(np.mean([top_entropy(at) for at in top_logprobs]))
