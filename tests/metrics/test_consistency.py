"""int_sim by hand on the paper's examples and against all pairs; the measures beside it."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics import consistency

WORDS = ["guitarist", "samurai", "film director", "actor", "director", "cotonou", "bamako"]


def one_hot(texts: list[str]) -> np.ndarray:
    """Every text at right angles to every other."""
    return np.array([[float(text == word) for word in WORDS] for text in texts])


def test_four_equal_answers_of_table_4() -> None:
    def embed(texts: list[str]) -> np.ndarray:
        assert texts == ["guitarist"]
        return np.array([[0.3, -1.2, 0.5]], dtype=np.float32)

    assert consistency.int_sim([["guitarist"] * 4], embed).tolist() == pytest.approx([1.0])


def test_int_sim_by_hand() -> None:
    groups = [
        ["samurai", "samurai", "film director", "actor", "director"],  # one pair of ten
        ["cotonou", "bamako", "bamako", "bamako", "bamako"],  # six of ten
        ["samurai"],
        [],
        ["samurai", " samurai "],
    ]
    values = consistency.int_sim(groups, one_hot)
    assert values.tolist() == pytest.approx([0.1, 0.6, np.nan, np.nan, 1.0], nan_ok=True)

    angles = {"a": 0.0, "b": np.pi / 3, "c": np.pi}

    def on_circle(texts: list[str]) -> np.ndarray:
        return np.array([[2 * np.cos(angles[t]), 2 * np.sin(angles[t])] for t in texts])

    # cos 60 = 1/2, cos 180 = -1, cos 120 = -1/2; lengths do not count.
    assert consistency.int_sim([["a", "b", "c"]], on_circle).tolist() == pytest.approx([-1 / 3])


def test_empty_texts_equal_each_other_only() -> None:
    groups = [["", "  "], ["", "actor"], ["", "\n", "actor", "actor"], ["", "", "actor"]]
    values = consistency.int_sim(groups, one_hot)
    assert values.tolist() == pytest.approx([1, 0, 2 / 6, 1 / 3])
    nobody = consistency.int_sim([["", ""]], lambda texts: pytest.fail("nothing to embed"))
    assert nobody.tolist() == [1]


@settings(deadline=None, max_examples=80)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=9), min_size=1, max_size=5),
    st.integers(1, 200),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_closed_form_is_pair_by_pair(
    numbers: list[list[int]], dimension: int, seed: int, single: bool
) -> None:
    vectors = np.random.default_rng(seed).normal(size=(10, dimension))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    if single:
        vectors = vectors.astype(np.float32)
    groups = [["" if i == 0 else str(i) for i in group] for group in numbers]

    def cosine(a: int, b: int) -> float:
        if 0 in (a, b):
            return float(a == b)
        return float(np.dot(vectors[a].astype(float), vectors[b].astype(float)))

    values = consistency.int_sim(groups, lambda texts: vectors[[int(t) for t in texts]])
    for group, value in zip(numbers, values, strict=True):
        pairs = [cosine(a, b) for a, b in combinations(group, 2)]
        assert value == pytest.approx(np.mean(pairs) if pairs else np.nan, abs=1e-6, nan_ok=True)


def test_distinct_texts_are_embedded_once() -> None:
    calls = []

    def embed(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        return one_hot(texts)

    consistency.int_sim([["actor", "samurai "], ["samurai", "", "actor"]], embed)
    assert calls == [["actor", "samurai"]]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 0.0], [0.0, 0.0]], "1 text.* such as 'b', have a vector that is zero"),
        ([[np.nan, 0.0], [1.0, 0.0]], "such as 'a'"),
        ([[1.0, 0.0]], "2 texts were embedded as an array of shape"),
        ([1.0, 0.0], "one vector a text"),
    ],
)
def test_vectors_without_direction(vectors: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        consistency.int_sim([["a", "b"]], lambda texts: vectors)


def test_clip_keeps_to_the_unit_interval() -> None:
    assert consistency.clip([-0.2, 0.3, 1.0000001]).tolist() == [0, 0.3, 1]
    assert np.isnan(consistency.clip([np.nan])[0])


def test_agreement_and_entropy_by_hand() -> None:
    groups = [
        ["Paris", "paris.", "the Paris", "Lyon"],  # 3 of 6 pairs; shares 3/4, 1/4
        ["Paris", "Lyon"],
        ["", " ", "Lyon"],
        ["Paris", "Paris"],
        ["Paris"],
        [],
    ]
    expected = [1 / 2, 0, 1 / 3, 1, np.nan, np.nan]
    assert consistency.agreement(groups).tolist() == pytest.approx(expected, nan_ok=True)
    quarter = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    third = -(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3))
    entropies = [quarter, np.log(2), third, 0, np.nan, np.nan]
    assert consistency.semantic_entropy(groups).tolist() == pytest.approx(entropies, nan_ok=True)


@given(st.lists(st.sampled_from("abcd"), min_size=2, max_size=10))
def test_agreement_is_int_sim_of_unrelated_texts(texts: list[str]) -> None:
    def embed(distinct: list[str]) -> np.ndarray:
        return np.eye(len(distinct))

    # "a" is an article, and alone it stays as it is.
    assert consistency.agreement([texts])[0] == pytest.approx(
        consistency.int_sim([texts], embed)[0]
    )


def test_entailment_on_table_3() -> None:
    table = pd.DataFrame(
        [
            ("politician", "german politician", 0.075),
            ("german politician", "politician", 0.588),
            ("actress", "actress", 0.927),
        ],
        columns=["premise", "hypothesis", "entailment"],
    )
    groups = [["politician", "german politician"], ["actress", "actress"], ["actress"]]
    values = consistency.entailment(groups, table)
    assert values.tolist() == pytest.approx([(0.075 + 0.588) / 2, 0.927, np.nan], nan_ok=True)
    # Of six ordered pairs two are both empty (1), four mix (0).
    assert consistency.entailment([["", "", "actress"]], table).tolist() == pytest.approx([2 / 6])
    with pytest.raises(ValueError, match="no entailment of 'actress' by 'politician'"):
        consistency.entailment([["politician", "actress"]], table)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=2, max_size=7))
def test_entailment_is_the_mean_over_ordered_pairs(texts: list[str]) -> None:
    needed = consistency.entailment_pairs([texts])
    pairs = list(zip(needed["premise"], needed["hypothesis"], strict=True))
    assert set(pairs) == {p for p in permutations(texts, 2) if all(p)}
    assert len(set(pairs)) == len(pairs)
    known = {pair: (i + 1) / 10 for i, pair in enumerate(pairs)}
    table = needed.assign(entailment=list(known.values()))
    by_pair = [known.get(p, float(p == ("", ""))) for p in permutations(texts, 2)]
    assert consistency.entailment([texts], table)[0] == pytest.approx(np.mean(by_pair))


def test_neither_torch_nor_statsmodels_is_imported() -> None:
    names = ("consistency", "wording", "calibration", "held_out", "coefficients", "diagnostics")
    lines = [f"import factrobust.metrics.{name}" for name in names]
    lines += ["import sys", "print(sorted({'torch', 'statsmodels', 'patsy'} & set(sys.modules)))"]
    out = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"
