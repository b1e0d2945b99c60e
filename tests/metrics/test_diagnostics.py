"""Figure 5's points by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics.regression import binned_correctness
from factrobust.statistics import binomial_interval


def test_by_hand() -> None:
    groups = pd.DataFrame(
        {
            "model": "m",
            "relation": ["a"] * 5 + ["b"],
            # Category a: its central 95% (0.05 ... 0.75 of 0.0, 0.5 ... ) leaves out both ends.
            "scons": [0.0, 0.5, 0.5, 0.6, 1.0, 1.0],
            "correct": [True, True, False, True, False, True],
        }
    )
    table = binned_correctness(groups, ["SCons"], bins=2)
    assert list(table) == [
        *("model", "relation", "predictor", "midpoint", "correct", "low", "high", "n")
    ]
    assert table["predictor"].unique().tolist() == ["SCons"]
    found = table[["relation", "midpoint", "correct", "n"]].values.tolist()
    # 0.5 lies on the edge of the bins, and belongs to the upper; 1.0 is in the last.
    assert found == [["a", 0.75, pytest.approx(2 / 3), 3], ["b", 0.75, 1.0, 1]]
    low, high = binomial_interval([2, 1], [3, 1])
    assert table["low"].tolist() == pytest.approx(low.tolist())
    assert table["high"].tolist() == pytest.approx(high.tolist())


def test_bins_of_each_model_and_predictor(simulate) -> None:
    groups = pd.concat([simulate(900), simulate(900, model="n", seed=1)])
    groups["cert"] = 0.7  # no range: one bin
    table = binned_correctness(groups)
    assert table["predictor"].unique().tolist() == ["Cert", "SCons", "SPop"]
    cert = table[table["predictor"] == "Cert"]
    assert cert["midpoint"].tolist() == pytest.approx([0.7] * 6)
    shares = groups.groupby(["model", "relation"])["correct"].mean()
    assert cert["correct"].tolist() == pytest.approx(shares.tolist())
    scons = table[(table["predictor"] == "SCons") & (table["model"] == "m")]
    x = groups.loc[groups["model"] == "m", "scons"]
    width = (x.max() - x.min()) / 15
    steps = (scons["midpoint"] - x.min()) / width - 0.5
    assert np.allclose(steps, steps.round())
    # 95% of each category's 300 questions are kept.
    assert scons.groupby("relation")["n"].sum().between(282, 286).all()


def test_rows_without_a_value_are_left_out(simulate) -> None:
    groups = simulate(60, "a")
    lacking = groups.assign(log_popularity=groups["log_popularity"].mask(groups.index < 10))
    expected = binned_correctness(groups[10:], ["SPop"])
    pd.testing.assert_frame_equal(
        binned_correctness(lacking, ["SPop"]).reset_index(drop=True),
        expected.reset_index(drop=True),
    )
