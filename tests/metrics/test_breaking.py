"""The breaking temperature against closed forms and a root finder on the true curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import logsumexp

from factrobust.metrics.decoding import bisect_break, crossing, first_break
from factrobust.probes.decoding import temperature_grid

PAPER = [round(0.2 * k, 1) for k in range(1, 11)]
GRID = temperature_grid(PAPER)
LOGITS = list[np.ndarray]  # one array a token of the answer, the answer's token first


def log_p(tokens: LOGITS, t: float) -> float:
    return float(sum(z[0] / t - logsumexp(z / t) for z in tokens))


def curve(tokens: LOGITS) -> np.ndarray:
    return np.array([log_p(tokens, t) for t in GRID], dtype=np.float32)  # what a model gives


def competitors(gap: float, k: int) -> np.ndarray:
    """The answer ahead of k equal others: P_t = 1 / (1 + k exp(-gap / t))."""
    return np.array([0.0] + [-gap] * k)


def test_the_grid_holds_the_papers_temperatures() -> None:
    assert set(PAPER) <= set(GRID.tolist())
    assert GRID[0] == 0.01
    assert GRID[-1] == 10
    assert np.all(np.diff(GRID) > 0)


@pytest.mark.parametrize(
    ("accuracy", "t_b"),
    [
        ([1.0, 0.9, 0.4], 0.6),
        ([1.0, 0.5, 0.5], np.inf),  # one half is not below one half
        ([1.0, 0.4, 0.9], 0.4),  # the first drop counts, also if the accuracy comes back
        ([0.4, 1.0, 1.0], 0.2),
        ([1.0, 1.0, 1.0], np.inf),
    ],
)
def test_first_break(accuracy: list[float], t_b: float) -> None:
    assert first_break([0.2, 0.4, 0.6], accuracy) == t_b


def test_first_break_at_another_threshold() -> None:
    assert first_break([0.2, 0.4], [0.9, 0.7], threshold=0.8) == 0.4


@pytest.mark.parametrize("k", [2, 3, 9, 1000, 200_000])
@pytest.mark.parametrize("gap", [0.05, 0.7, 3.0, 12.0])
def test_equal_competitors_break_at_gap_over_log_k(gap: float, k: int) -> None:
    t_b = gap / math.log(k)
    if GRID[0] < t_b < GRID[-1]:
        logs = np.array([-np.log1p(k * np.exp(-gap / t)) for t in GRID], dtype=np.float32)
        assert crossing(GRID, logs) == pytest.approx(t_b, rel=1e-3)


def test_other_thresholds_have_closed_forms_too() -> None:
    # P_t = p where gap / t = log(k p / (1 - p)).
    for p in (0.3, 0.8, 0.95):
        t_b = 2.0 / math.log(5 * p / (1 - p))
        assert crossing(GRID, curve([competitors(2.0, 5)]), p) == pytest.approx(t_b, rel=1e-3)


def test_two_equal_tokens_break_each_at_a_root_of_one_half() -> None:
    # (1 + k exp(-g / t))^-2 = 1/2 where g / t = log(k / (sqrt 2 - 1)).
    t_b = 1.5 / math.log(4 / (math.sqrt(2) - 1))
    tokens = [competitors(1.5, 4), competitors(1.5, 4)]
    assert crossing(GRID, curve(tokens)) == pytest.approx(t_b, rel=1e-3)


def test_one_competitor_never_wins() -> None:
    logs = curve([competitors(0.5, 1)])
    assert np.all(logs >= np.float32(np.log(0.5)))
    assert crossing(GRID, logs) == np.inf


def test_an_answer_that_is_not_the_greedy_one_has_no_crossing() -> None:
    logs = curve([np.array([0.0, 1.0, -1.0])])
    assert logs[0] < logs[20]  # it gains from heat first
    assert np.isnan(crossing(GRID, logs))


def test_a_near_tie_breaks_at_a_low_temperature_and_is_not_lost() -> None:
    # Two near ties, each P = 1 / (1 + exp(-0.02 / t)): below one half from t = 0.0227 on.
    tokens = [competitors(0.02, 1)] * 2
    assert crossing(GRID, curve(tokens)) == pytest.approx(
        0.02 / -math.log(math.sqrt(2) - 1), rel=1e-3
    )


def test_random_logits_keep_the_promise_of_the_docstring() -> None:
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(150):
        tokens = []
        for _ in range(rng.integers(1, 6)):
            z = np.sort(rng.normal(0, rng.uniform(0.3, 4), int(10 ** rng.uniform(0.4, 3.6))))[::-1]
            z[1:] -= rng.exponential(rng.choice([0.3, 3.0, 15.0]))
            tokens.append(z)
        logs = curve(tokens)
        assert np.all(np.diff(logs) <= 1e-5)  # falls, but for rounding
        if np.log(0.5) > log_p(tokens, GRID[-1]) and log_p(tokens, GRID[0]) > np.log(0.5):
            exact = brentq(lambda t, z=tokens: log_p(z, t) - np.log(0.5), GRID[0], GRID[-1])
            errors.append(abs(crossing(GRID, logs) / exact - 1))
    assert len(errors) > 100
    assert max(errors) < 1e-3


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.integers(2, 500))
@settings(deadline=None, max_examples=30)
def test_a_wider_gap_breaks_later(a: float, b: float, k: int) -> None:
    low, high = sorted((a, b))
    if high - low > 0.01 * high:
        first, second = (crossing(GRID, curve([competitors(g, k)])) for g in (low, high))
        assert first < second or first == second == np.inf


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.floats(0, 1), min_size=n, max_size=n))
    )
)
@example((1, [0.4]))
@example((1, [0.5]))
@settings(deadline=None)
def test_bisection_equals_the_first_break_of_a_falling_curve(case: tuple[int, list[float]]) -> None:
    n, values = case
    temperatures = [0.2 * (i + 1) for i in range(n)]
    falling = dict(zip(temperatures, sorted(values, reverse=True), strict=True))
    asked: list[float] = []

    def accuracy(t: float) -> float:
        asked.append(t)
        return falling[t]

    t_b, calls = bisect_break(accuracy, temperatures)
    assert t_b == first_break(temperatures, list(falling.values()))
    assert calls == len(asked) <= math.ceil(math.log2(n + 1))
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize("measure", [first_break, crossing])
@pytest.mark.parametrize(
    ("temperatures", "values", "message"),
    [
        ([0.2, 0.4], [-0.1], "one value a temperature"),
        ([], [], "one value a temperature"),
        ([0.4, 0.2], [-0.1, -0.2], "must ascend"),
        ([0.2, 0.2], [-0.1, -0.2], "must ascend"),
        ([0.0, 0.2], [-0.1, -0.2], "above 0"),
        ([0.2, np.inf], [-0.1, -0.2], "finite"),
        ([0.2, 0.4], [-0.1, np.nan], "missing"),
    ],
)
def test_bad_curves(measure, temperatures, values, message) -> None:
    with pytest.raises(ValueError, match=message):
        measure(temperatures, values)


def test_bad_threshold() -> None:
    with pytest.raises(ValueError, match="between 0 and 1, not 1"):
        crossing([0.2, 0.4], [-0.1, -2.0], 1)
