"""Margins, fewer dates and rounded scores, by hand and against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics import luck


def table(correct: list[float], incorrect: list[float], **columns: object) -> pd.DataFrame:
    """The first incorrect date lies before the correct ones, the others after."""
    values = {"model": "m", "prompt_format": "question", "fact_id": "f", "precision": "year"}
    dated = [("incorrect", value) for value in incorrect]
    dated[1:1] = [("correct", value) for value in correct]
    found = pd.DataFrame(dated, columns=["label", "logprob"])
    return found.assign(date=[str(1900 + i) for i in found.index], **values | columns)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=4),
    st.lists(st.integers(0, 6), min_size=2, max_size=5),
    st.integers(1, 2),
)
def test_fewer_dates_against_enumeration(good: list[int], bad: list[int], k: int) -> None:
    scores = table([float(x) for x in good], [float(x) for x in bad])
    counted = luck.by_number_of_dates(scores, [k])
    ways = [min(good) > max(chosen) for chosen in combinations(bad, k)]
    assert counted["robust"].tolist() == pytest.approx([np.mean(ways)])
    assert counted[["n_correct", "n_incorrect"]].values.tolist() == [[len(good), k]]


def test_fewer_dates_by_hand() -> None:
    # Of five incorrect dates one beats the weakest correct one: of k, it is among them in k/5.
    scores = table([-1, -3], [-2, -4, -5, -6, -7])
    counted = luck.by_number_of_dates(scores, [1, 2, 5])
    assert counted["robust"].tolist() == pytest.approx([4 / 5, 3 / 5, 0])
    assert counted["chance"].tolist() == pytest.approx([1 / 3, 1 / 6, 1 / 21])
    # In order of time -2 | -1 -3 | -4 -5 -6 -7. The blocks -3 -4, -4 -5 and -5 -6 have 3, 2 and 1 of
    # the five dates outside of them below both of theirs.
    assert counted["placebo"].tolist() == pytest.approx([6 / 15, (3 + 1) / 30, 0])
    alone = luck.by_number_of_dates(table([-1], [-2, -3]), [1])
    assert alone[["robust", "placebo"]].fillna(-1).values.tolist() == [[1, -1]]


def test_fewer_dates_keep_the_facts_that_have_the_most() -> None:
    one_sided = table([-1], [-2], fact_id="h")
    scores = pd.concat([table([-1], [-2, -3, -4]), table([-1], [-2, -3], fact_id="g"), one_sided])
    assert luck.by_number_of_dates(scores, [1, 3])["fact_id"].unique().tolist() == ["f"]
    assert luck.by_number_of_dates(scores, [1])["fact_id"].unique().tolist() == ["f", "g"]
    assert luck.by_number_of_dates(table([], [-1, -2]), [1]).empty


def test_bfloat16_rounds_as_torch_does() -> None:
    import torch

    values = pd.Series(np.random.default_rng(0).normal(-20, 8, 1000).astype(np.float32))
    values.iloc[:4] = [-20.0, -20.0625, -20.1875, 0.1]  # two ties, one down and one up
    expected = torch.tensor(values.to_numpy()).bfloat16().float().numpy()
    assert (luck.round_to_bfloat16(values).to_numpy() == expected).all()
