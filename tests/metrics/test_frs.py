"""Equations 3 and 4, and what appendix B says of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics.decoding import frs as score
from factrobust.metrics.decoding import raw_frs as raw_score

ENTROPY = st.floats(0, 1)
TEMPERATURE = st.floats(0, 50)
D = st.sampled_from([0.5, 1, 2, 5, 10, 50])


@pytest.mark.parametrize(
    ("h", "t_b", "d", "f", "frs"),
    [
        (0.0, 0.0, 1, 1.0, 2 / 3),
        (1.0, 0.0, 1, -1.0, 0.0),
        (0.5, 1.0, 1, 0.75, 1.75 / 2.75),  # 0.5 x 2 - 0.5 / 2
        (0.5, 1.0, 2, 0.25, 1.25 / 2.25),  # 0.25 x 2 - 0.5 / 2
        (0.2, 0.6, 1, 1.155, 2.155 / 3.155),  # 0.8 x 1.6 - 0.2 / 1.6
        (0.0, 2.0, 50, 3.0, 0.8),
        (1.0, 3.0, 5, -0.25, 0.75 / 1.75),
    ],
)
def test_by_hand(h: float, t_b: float, d: float, f: float, frs: float) -> None:
    assert float(raw_score(h, t_b, d)) == pytest.approx(f)
    assert float(score(h, t_b, d)) == pytest.approx(frs)


@given(ENTROPY, TEMPERATURE, D)
@settings(deadline=None)
def test_bounds(h: float, t_b: float, d: float) -> None:
    assert float(raw_score(h, t_b, d)) >= -1
    assert 0 <= float(score(h, t_b, d)) < 1


@given(ENTROPY)
@settings(deadline=None)
def test_appendix_b_at_temperature_zero(h: float) -> None:
    assert float(raw_score(h, 0)) == pytest.approx(1 - 2 * h)


def test_appendix_b_at_infinity() -> None:
    assert raw_score([0, 0.5, 1], np.inf).tolist() == [np.inf, np.inf, 0]
    assert score([0, 0.5, 1], np.inf, unbroken=None).tolist() == [1, 1, 0.5]
    # The equation approaches its limit.
    assert score([0.5, 1], 1e9, unbroken=None) == pytest.approx([1, 0.5], abs=1e-8)


@given(ENTROPY, TEMPERATURE, TEMPERATURE, D)
@settings(deadline=None)
def test_rises_with_the_breaking_temperature(h: float, a: float, b: float, d: float) -> None:
    low, high = sorted((a, b))
    assert score(h, low, d) <= score(h, high, d) + 1e-12
    if high - low > 1e-3:
        assert score(h, low, d) < score(h, high, d)


@given(ENTROPY, ENTROPY, TEMPERATURE, D)
@settings(deadline=None)
def test_falls_with_entropy(a: float, b: float, t_b: float, d: float) -> None:
    low, high = sorted((a, b))
    assert score(low, t_b, d) >= score(high, t_b, d) - 1e-12
    if high - low > 1e-3:
        assert score(low, t_b, d) > score(high, t_b, d)


def test_d_punishes_uncertainty_alone() -> None:
    ds = (0.5, 1, 2, 5, 10, 50)
    assert [float(score(0, 1.2, d)) for d in ds] == pytest.approx([3.2 / 4.2] * 6)
    uncertain = [float(score(0.3, 1.2, d)) for d in ds]
    assert uncertain == sorted(uncertain, reverse=True)
    assert len(set(uncertain)) == 6
    # In the limit only the penalty is left: f = -H / (t_b + 1).
    assert float(raw_score(0.3, 1.2, 5000)) == pytest.approx(-0.3 / 2.2)


@given(ENTROPY, st.floats(0, 2), D)
@settings(deadline=None)
def test_what_breaks_by_two_scores_at_most_four_fifths(h: float, t_b: float, d: float) -> None:
    assert float(score(h, t_b, d)) <= 0.8  # appendix G: no scores between 0.8 and 1


def test_figure_4_jumps_from_four_fifths_to_one() -> None:
    assert float(score(0.0, 2.0)) == pytest.approx(0.8)
    assert score([0.0, 0.9, 1.0], np.inf).tolist() == [1, 1, 1]  # whatever the entropy
    assert float(score(0.5, np.inf, unbroken=0.9)) == 0.9
    # The equation itself has no jump: an exact t_b just beyond 2 scores just beyond 0.8.
    assert float(score(0.0, 2.001)) == pytest.approx(0.8, abs=1e-4)


def test_nan_stays_nan_and_shapes_broadcast() -> None:
    assert np.isnan(raw_score(np.nan, 1))
    assert np.isnan(score(0.5, np.nan))
    assert score([[0.1], [0.2]], [0.5, 1.0, np.inf]).shape == (2, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.2, 1, 1), "entropy must lie in"),
        ((-0.1, 1, 1), "entropy must lie in"),
        ((0.5, -0.1, 1), "must not be negative"),
        ((0.5, 1, -1), "d must not be negative, not -1"),
    ],
)
def test_out_of_range(arguments: tuple[float, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score(*arguments)
