import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics.first_token import first_entropy, first_shift


def tops(**probabilities: float) -> list[tuple[str, float]]:
    return [(token, math.log(p)) for token, p in probabilities.items()]


def test_entropy_in_nats_of_what_is_listed():
    assert first_entropy(tops(a=0.5, b=0.5)) == pytest.approx(math.log(2))
    assert first_entropy(tops(a=0.25, b=0.25)) == pytest.approx(math.log(2))  # renormalised
    expected = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))
    assert first_entropy(tops(a=0.8, b=0.2)) == pytest.approx(expected)
    assert first_entropy([*tops(a=0.8, b=0.2), ("c", -1e9)]) == pytest.approx(expected)
    assert math.isnan(first_entropy([]))
    assert math.isnan(first_entropy(tops(a=1.0)))


def test_shift_by_hand():
    same = tops(a=0.7, b=0.2)
    assert first_shift(same, same) == 0
    # Nothing in common and nothing beyond the lists: the largest distance.
    assert first_shift(tops(a=0.5, b=0.5), tops(c=1.0)) == pytest.approx(math.sqrt(math.log(2)))
    # (0.8, 0.2) and (0.3, 0.7); their middle is (0.55, 0.45).
    divergence = 0.5 * (
        0.8 * math.log(0.8 / 0.55)
        + 0.2 * math.log(0.2 / 0.45)
        + 0.3 * math.log(0.3 / 0.55)
        + 0.7 * math.log(0.7 / 0.45)
    )
    assert first_shift(tops(a=0.8, b=0.2), tops(b=0.7, a=0.3)) == pytest.approx(
        math.sqrt(divergence)
    )


def test_what_is_beyond_both_lists_is_common():
    # a against b with 0.4 each, and a rest of 0.6 that both share.
    expected = math.sqrt(0.4 * math.log(2))
    assert first_shift(tops(a=0.4), tops(b=0.4)) == pytest.approx(expected)


def test_no_list_no_distance():
    assert math.isnan(first_shift([], tops(a=1.0)))
    assert math.isnan(first_shift(tops(a=1.0), []))


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)), min_size=2, max_size=6))
@settings(deadline=None)
def test_shift_is_a_distance(weights):
    p, q = (np.array(column) / sum(column) for column in zip(*weights, strict=True))
    one, other = ([(str(i), float(np.log(x))) for i, x in enumerate(side)] for side in (p, q))
    shift = first_shift(one, other)
    assert 0 <= shift <= math.sqrt(math.log(2)) + 1e-9
    assert shift == pytest.approx(first_shift(other[::-1], one), abs=1e-9)
