"""Values as text: exact and short."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.records import decode, encode


@settings(deadline=None, max_examples=300)
@given(st.floats(width=32, allow_nan=False))
def test_a_float32_comes_back_exactly(number: float) -> None:
    back = decode(encode(np.float32(number)))
    assert type(back) is float
    assert back == number
    assert math.copysign(1, back) == math.copysign(1, number)


@settings(deadline=None, max_examples=300)
@given(st.floats(allow_nan=False))
def test_a_double_comes_back_exactly(number: float) -> None:
    assert decode(encode(number)) == number


def test_texts_of_numbers_are_short() -> None:
    assert encode(np.float32(0.1)) == "0.1"
    assert encode(float(np.float32(0.1))) == "0.1"  # the same number, however it is held
    assert encode(0.1) == "0.1E0"  # this double is not a float32
    assert encode(1e-300) == "1E-300"
    assert encode([1.0, 1, True, None, -math.inf]) == "[1.0,1,true,null,-Infinity]"
    assert math.isnan(decode(encode(math.nan)))


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_nested_values_come_back_equal(value: object) -> None:
    assert decode(encode(value)) == value


def test_arrays_come_back_as_lists_of_the_same_numbers() -> None:
    array = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    back = decode(encode({"a": array, "n": np.int64(3), "b": np.True_}))
    assert back == {"a": array.tolist(), "n": 3, "b": True}
    assert np.array_equal(np.array(back["a"], dtype=np.float32), array)


@pytest.mark.parametrize("value", [{1: "a"}, {"a"}, object(), np.datetime64("2020")])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="A record cannot hold"):
        encode(value)
