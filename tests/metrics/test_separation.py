"""Separable rows against brute force in one dimension, and categories by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics.regression import null_space, separable


def with_intercept(x: list[float]) -> np.ndarray:
    return np.column_stack([np.ones(len(x)), x])


def brute_force(x: list[int], y: list[int]) -> list[bool]:
    """With an intercept and one predictor, all directions are thresholds, rising or falling."""
    towards = np.where(np.array(y) > 0, 1, -1)
    found = np.zeros(len(x), dtype=bool)
    for sign in (1, -1):
        for threshold in np.arange(-1, 7.5, 0.5):
            moves = sign * (np.array(x) - threshold) * towards
            if moves.min() >= 0:
                found |= moves > 0
    # The intercept alone separates when all outcomes are equal.
    return [True] * len(x) if len(set(y)) == 1 else found.tolist()


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1)), min_size=1, max_size=9).filter(
        lambda rows: len({x for x, _ in rows}) > 1
    )
)
def test_one_predictor_against_brute_force(rows: list[tuple[int, int]]) -> None:
    x, y = map(list, zip(*rows, strict=True))
    found = separable(with_intercept(x), np.array(y, dtype=float))
    assert found.tolist() == brute_force(x, y)


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ([0, 1, 2, 3], [0, 0, 1, 1], [True] * 4),  # perfect
        ([0, 1, 1, 2], [0, 0, 1, 1], [True, False, False, True]),  # quasi-complete
        ([0, 1, 2, 3], [0, 1, 0, 1], [False] * 4),
    ],
)
def test_by_hand(x: list[float], y: list[float], expected: list[bool]) -> None:
    assert separable(with_intercept(x), np.array(y, dtype=float)).tolist() == expected


def test_only_the_category_without_a_right_answer_is_separable() -> None:
    category = np.repeat([0, 1], 4)
    x = np.tile([0.0, 1.0, 2.0, 3.0], 2)
    design = np.column_stack([np.ones(8), category, x, category * x])
    y = np.array([0, 1, 0, 1, 0, 0, 0, 0], dtype=float)
    apart = separable(design, y)
    assert apart.tolist() == [False] * 4 + [True] * 4
    # The first category fixes intercept and slope; the second leaves its own two open.
    directions = null_space(design[~apart])
    assert np.linalg.norm(directions, axis=1).tolist() == pytest.approx([0, 1, 0, 1], abs=1e-9)


def test_null_space() -> None:
    x = np.array([1.0, 2.0, 4.0])
    assert null_space(np.column_stack([np.ones(3), x])).shape == (2, 0)
    design = np.column_stack([np.ones(3), x, 2 * x - 1])
    directions = null_space(design)
    assert directions.shape == (3, 1)
    assert (directions / directions[2]).ravel().tolist() == pytest.approx([1, -2, 1])
    assert null_space(np.zeros((0, 2))).shape == (2, 2)
    assert null_space(np.ones((1, 3))).shape == (3, 2)  # fewer rows than columns
    assert null_space(np.zeros((2, 3))).shape == (3, 3)
