"""Counterfactuals are other answers, drawn with a stream of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from factrobust.metrics.text import normalise
from factrobust.probes.counterfactuals import counterfactuals

ALPHA = 1e-4


def table(*texts: str, base: str = "b") -> pd.DataFrame:
    """Answers to one base question about objects 0, 1, ..."""
    return pd.DataFrame(
        {"base_id": base, "object": [str(i) for i in range(len(texts))], "text": list(texts)}
    )


answers = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from(["", "Paris", "the paris", "Rome", "Oslo"])),
    min_size=1,
    max_size=12,
).map(
    lambda rows: pd.DataFrame(
        [(base, str(i), text) for i, (base, text) in enumerate(rows)],
        columns=["base_id", "object", "text"],
    )
)


@given(answers, st.integers(0, 3), st.sampled_from(["robust", "published"]))
@settings(deadline=None)
def test_never_an_equal_answer(rows: pd.DataFrame, seed: int, rule: str) -> None:
    drawn = counterfactuals(rows, seed=seed, rule=rule)
    for i, j in enumerate(drawn):
        mine = rows.loc[i]
        others = rows[(rows["base_id"] == mine["base_id"]) & (rows["text"] != mine["text"])]
        if rule == "robust":
            differs = others["text"].map(normalise) != normalise(mine["text"])
            others = others[differs & (others["text"] != "")]
        assert (j in others.index) if len(others) else j == -1


@given(answers, st.randoms(use_true_random=False), st.integers(0, 3))
@settings(deadline=None)
def test_the_order_does_not_matter(rows: pd.DataFrame, random: object, seed: int) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    turned = rows.iloc[order].reset_index(drop=True)
    drawn, again = (counterfactuals(t, seed=seed) for t in (rows, turned))
    there = {i: (order[j] if j >= 0 else -1) for i, j in zip(order, again, strict=True)}
    assert [there[i] for i in range(len(rows))] == drawn.tolist()


def test_other_base_questions_do_not_matter() -> None:
    one, two = table("Oslo", "Rome", "Paris"), table("1", "2", base="c")
    both = pd.concat([two, one], ignore_index=True)
    assert (counterfactuals(both)[2:] - 2).tolist() == counterfactuals(one).tolist()


def test_more_rows_change_a_draw_only_if_one_is_drawn() -> None:
    texts = [f"answer {i}" for i in range(40)]
    few, many = counterfactuals(table(*texts[:20])), counterfactuals(table(*texts))
    assert all(b in (a, *range(20, 40)) for a, b in zip(few, many, strict=False))
    assert (few == many[:20]).any()


def test_uniform_over_questions_and_another_seed_another_draw() -> None:
    rows = table("Oslo", "Rome", "Rome", "Rome", "Paris")
    draws = np.array([counterfactuals(rows, seed=seed)[0] for seed in range(2000)])
    # Rome stands there three times of four.
    low, high = binom.interval(1 - ALPHA, len(draws), 0.25)
    for row in (1, 2, 3, 4):
        assert low <= (draws == row).sum() <= high


def test_rules_differ_in_spelling_and_empties() -> None:
    rows = table("Paris", "the paris", "")
    assert counterfactuals(rows).tolist() == [-1, -1, counterfactuals(rows)[2]]
    assert counterfactuals(rows)[2] in (0, 1)
    assert (counterfactuals(rows, rule="published") >= 0).all()
    with pytest.raises(ValueError, match="rule 'thesis' is unknown"):
        counterfactuals(rows, rule="thesis")


def test_nothing_to_draw_from() -> None:
    assert counterfactuals(table("Oslo", "Oslo")).tolist() == [-1, -1]
    assert counterfactuals(table()).tolist() == []
