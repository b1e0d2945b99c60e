"""Entropy over the likeliest tokens, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics.decoding import answer_entropy, top_entropy

CERTAIN = [0.0] + [-math.inf] * 9


@pytest.mark.parametrize("mass", [1.0, 0.3, 1e-6])
def test_ten_equal_alternatives_have_entropy_one_whatever_their_mass(mass: float) -> None:
    assert top_entropy([math.log(mass / 10)] * 10) == pytest.approx(1)


def test_a_certain_token_has_entropy_zero() -> None:
    assert top_entropy(CERTAIN) == 0
    assert top_entropy([0.0] + [-1e9] * 9) == 0


def test_two_equal_tokens_of_ten() -> None:
    # - 2 x 0.5 log10 0.5 = log10 2
    assert top_entropy([math.log(0.5)] * 2 + [-math.inf] * 8) == pytest.approx(0.30103, abs=1e-5)


def test_the_base_is_the_number_of_alternatives() -> None:
    # - (0.75 log2 0.75 + 0.25 log2 0.25) = 0.811278 for two; over log2(4) = 2 for four.
    quarter = [math.log(0.75), math.log(0.25)]
    assert top_entropy(quarter) == pytest.approx(0.811278, abs=1e-6)
    assert top_entropy([*quarter, -math.inf, -math.inf]) == pytest.approx(0.405639, abs=1e-6)


@given(st.lists(st.floats(-20, 0), min_size=2, max_size=12), st.floats(-30, 30))
@settings(deadline=None)
def test_only_the_ratios_count(logs: list[float], shift: float) -> None:
    expected = top_entropy(logs)
    assert 0 <= expected <= 1
    assert top_entropy([x + shift for x in logs]) == pytest.approx(expected, abs=1e-9)
    assert top_entropy(logs[::-1]) == pytest.approx(expected, abs=1e-9)


def test_an_answer_has_the_mean_over_its_tokens() -> None:
    uniform = [math.log(0.1)] * 10
    assert answer_entropy([uniform, CERTAIN, CERTAIN, CERTAIN]) == pytest.approx(0.25)


def test_without_tokens_no_entropy() -> None:
    assert np.isnan(answer_entropy([]))


def test_one_alternative_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two alternatives a position, not 1"):
        answer_entropy([[0.0]])
