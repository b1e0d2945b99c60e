"""The breaking temperature: where a fact's accuracy falls below one half (paper 1, 4.3 and 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

THRESHOLD = 0.5


def first_break(
    temperatures: ArrayLike, accuracy: ArrayLike, threshold: float = THRESHOLD
) -> float:
    """The lowest tried temperature at which the accuracy is below the threshold; inf if none is.

    The paper's t_b: `temperatures` ascending [t], `accuracy` the share of right samples at each [t].
    """
    t, a = _curve(temperatures, accuracy)
    below = np.flatnonzero(a < threshold)
    return float(t[below[0]]) if below.size else float("inf")


def crossing(temperatures: ArrayLike, logprobs: ArrayLike, threshold: float = THRESHOLD) -> float:
    """The temperature at which P_t(answer) falls to the threshold, between the grid points.

    `logprobs` are log P_t(answer | prompt) on the ascending grid `temperatures`. For a greedy answer
    P_t falls from 1 (ties aside), because every term exp((z_j - z_a) / t) grows with t; so there is
    one root, and a cubic spline through the log odds against log t finds it (on
    `temperature_grid` to better than 0.001 of t_b; a finer grid finds it more closely). inf if P_t is
    not below the threshold at the highest temperature; nan if it is below already at the lowest (an
    answer that ties with another one, or that is not the greedy one).
    """
    t, logs = _curve(temperatures, logprobs)
    if not 0 < threshold < 1:
        raise ValueError(f"the threshold is a probability between 0 and 1, not {threshold}")
    goal = np.log(threshold)
    if logs[0] < goal:
        return float("nan")
    below = np.flatnonzero(logs < goal)
    if not below.size:
        return float("inf")
    # The six points around the first crossing. Log odds are nearly straight there, log P is not;
    # beyond these bounds float32 probabilities are 1 or 0.
    hi = int(below[0])
    window = slice(max(0, hi - 3), min(len(t), hi + 3))
    odds = np.log(np.expm1(np.clip(-logs[window], 1e-7, 500)))
    curve = CubicSpline(np.log(t[window]), odds - np.log(np.expm1(-goal)))
    return float(np.exp(brentq(curve, np.log(t[hi - 1]), np.log(t[hi]), xtol=1e-10)))


def bisect_break(
    accuracy: Callable[[float], float], temperatures: Sequence[float], threshold: float = THRESHOLD
) -> tuple[float, int]:
    """Appendix E's binary search: (t_b on the grid, number of temperatures sampled).

    Assumes that accuracy falls with temperature. `accuracy(t)` samples one temperature. It equals
    `first_break` on a falling curve of T temperatures with at most ceil(log2(T + 1)) evaluations, and
    may differ on a noisy one.
    """
    low, high, calls = 0, len(temperatures), 0
    while low < high:
        middle = (low + high) // 2
        calls += 1
        if accuracy(temperatures[middle]) < threshold:
            high = middle
        else:
            low = middle + 1
    return (float(temperatures[low]) if low < len(temperatures) else float("inf")), calls


def temperature_grid(paper: Sequence[float], top: float = 10.0, per_decade: int = 12) -> np.ndarray:
    """The paper's temperatures and a geometric grid from 0.01 to `top` around them, ascending.

    It begins that low because known answers that nearly tie with another one break below 0.1.
    """
    n = int(np.ceil(np.log10(top / 0.01) * per_decade)) + 1
    return np.unique(np.round(np.concatenate([np.asarray(paper), np.geomspace(0.01, top, n)]), 6))


def _curve(temperatures: ArrayLike, values: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    t, v = np.asarray(temperatures, dtype=float), np.asarray(values, dtype=float)
    if t.shape != v.shape or t.ndim != 1 or t.size == 0:
        raise ValueError(f"need one value a temperature, not shapes {t.shape} and {v.shape}")
    if np.any(np.diff(t) <= 0):
        raise ValueError("temperatures must ascend without repeats; sort them first")
    if t[0] <= 0 or not np.isfinite(t[-1]):
        raise ValueError("temperatures must be finite and above 0; leave temperature 0 out")
    if np.isnan(v).any():
        raise ValueError("a value of the curve is missing (nan); drop the fact or compute it again")
    return t, v
