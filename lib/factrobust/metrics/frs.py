"""The Factual Robustness Score (paper 1, section 5.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def raw_score(entropy: ArrayLike, breaking_temperature: ArrayLike, d: float = 1.0) -> NDArray:
    """Equation 3: f(H, d, t_b) = (1 - H)^d (t_b + 1) - H / (t_b + 1), in [-1, inf).

    `entropy` in [0, 1], `breaking_temperature` >= 0 (inf: never breaks, f = inf, or 0 where H = 1),
    `d` >= 0. Arguments broadcast. nan in, nan out. Raises ValueError outside these ranges.

    The paper calls its bound f >= -1 (appendix B.1); -1 is reached at H = 1, t_b = 0.
    """
    h, t = np.asarray(entropy, dtype=float), np.asarray(breaking_temperature, dtype=float)
    if np.any((h < 0) | (h > 1)):
        raise ValueError(
            "entropy must lie in [0, 1]; it is scaled by its maximum, log of the top k"
        )
    if np.any(t < 0):
        raise ValueError("a breaking temperature must not be negative")
    if d < 0:
        raise ValueError(f"d must not be negative, not {d}")
    h, t = np.broadcast_arrays(h, t)
    certainty = (1 - h) ** d
    # 0 * inf is undefined; the limit for H = 1 (appendix B.1) is 0.
    reward = np.where(certainty == 0, 0.0, certainty * np.where(certainty == 0, 0.0, t + 1))
    return reward - h / (t + 1)


def score(
    entropy: ArrayLike,
    breaking_temperature: ArrayLike,
    d: float = 1.0,
    *,
    unbroken: float | None = 1.0,
) -> NDArray:
    """Equation 4: FRS = (f + 1) / (f + 2), in [0, 1].

    A breaking temperature of inf means that the fact did not break on the temperatures tried: it
    scores `unbroken`, by the paper exactly 1 whatever its entropy (caption of figure 4). A fact that
    breaks at t_b = 2 scores at most 0.8, so the scores jump there. `unbroken=None` applies the
    equation's limit instead (1, or 1/2 where H = 1), for breaking temperatures that are exact.
    """
    f = raw_score(entropy, breaking_temperature, d)
    with np.errstate(invalid="ignore"):
        scaled = np.where(np.isinf(f), 1.0, (f + 1) / (f + 2))
    if unbroken is None:
        return scaled
    return np.where(np.isinf(np.asarray(breaking_temperature, dtype=float)), unbroken, scaled)
