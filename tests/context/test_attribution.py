"""Scores, areas under the curve with few cases, and the costs of mistakes, by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.context import attribution
from factrobust.context.attribution import auc, brier_table, cost_table


def marked(sources: list[str], **columns: object) -> pd.DataFrame:
    ids = [f"b/{i}" for i in range(len(sources))]
    table = pd.DataFrame({"model": "m", "question_id": ids, "base_id": "b", "source": sources})
    return table.assign(sound=True, **columns)


def test_scores_by_hand() -> None:
    names = [*("p0", "p1", "p2", "p3", "p4", "first_entropy", "first_entropy_context")]
    names += ["first_shift"]
    sources = ["contextual", "other", "parametric", "none", "same"]
    rows = marked(sources, **dict.fromkeys(names, 1.0))
    rows.loc[0, names] = [2.0, 16.0, 8.0, 4.0, 5.0, 0.5, 0.25, 0.3]
    rows.loc[2, "p3"] = np.nan
    table = attribution.cases(rows)
    assert table["question_id"].tolist() == ["b/0", "b/1", "b/2"]
    assert table["from_context"].tolist() == [True, False, False]
    ln2 = np.log(2)
    expected = {"minus_log_p4": -np.log(5), "log_p2_p3": ln2, "log_p1_p3": 2 * ln2}
    expected |= {"log_p2_p0": 2 * ln2, "log_p0": ln2}
    expected |= {"entropy": 0.5, "minus_entropy_context": -0.25, "shift": 0.3}
    assert table[list(expected)].iloc[0].to_dict() == pytest.approx(expected)
    assert list(expected) == list(attribution.SCORES)
    assert np.isnan(table["log_p2_p3"][2])  # its P3 is missing
    sound = [True, True, False, True, True]
    assert len(attribution.cases(rows.assign(sound=sound))) == 2
    assert "minus_log_p4" not in attribution.cases(rows.assign(p4=np.nan))


def test_auc_by_hand() -> None:
    # Pairs (context, other): 3 > 1, 3 > 2, 2 > 1, 2 = 2: three and a half of four.
    found = auc([1, 0, 1, 0, 1], [3, 1, 2, 2, np.nan])
    assert (found.auc, found.n_context, found.n_not) == (3.5 / 4, 2, 2)
    assert np.isnan(auc([1, 1], [1, 2])[:3]).all()


def test_bounds_of_an_auc_of_four_cases() -> None:
    # Hanley and McNeil: A = 0.92878, Q1 = 0.86702, Q2 = 0.89448, a standard error of 0.08943, which is
    # 1.3519 on the logit scale: 2.5681 +- 2.6497. A bootstrap says [0.85, 0.99].
    x = np.r_[np.arange(344.0) + 1, [320, 320, 320, 320]]
    y = np.r_[np.zeros(344), np.ones(4)]
    found = auc(y, x)
    assert found[:3] == pytest.approx((0.9288, 0.4796, 0.9946), abs=1e-4)
    assert auc(1 - y, -x)[:3] == pytest.approx(found[:3])
    # Bounds of complete separation are exact.
    found = auc([0] * 9 + [1] * 4, range(13))
    assert found[:3] == (1, pytest.approx(0.025**0.25), 1)  # 4 of 4
    assert auc([1] * 4 + [0] * 9, range(13))[:3] == (0, 0, pytest.approx(1 - 0.025**0.25))


def test_bounds_hold_with_few_cases() -> None:
    """Two normals one standard deviation apart: the AUC is Phi(1 / sqrt 2) = 0.760."""
    rng, held = np.random.default_rng(0), 0
    y = np.r_[np.ones(5), np.zeros(60)]
    for _ in range(400):
        found = auc(y, rng.normal(size=65) + y)
        held += found.low <= 0.7602 <= found.high
    assert held / 400 > 0.93


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=30))
def test_auc_is_the_share_of_pairs(rows: list[tuple[bool, int]]) -> None:
    context, others = ([x for y, x in rows if y is z] for z in (True, False))
    pairs = [(a > b) + (a == b) / 2 for a in context for b in others]
    found = auc([y for y, _ in rows], [x for _, x in rows])
    assert found.auc == pytest.approx(np.mean(pairs) if pairs else np.nan, nan_ok=True)
    assert not pairs or 0 <= found.low <= found.auc <= found.high <= 1


def test_auc_table() -> None:
    table = pd.DataFrame({"model": list("aabb"), "from_context": [1, 0, 1, 0], "x": [2, 1, 1, 2]})
    found = attribution.auc_table(table, ["x"])
    assert [*found] == [*("model", "score", "auc", "low", "high", "n_context", "n_not")]
    assert found["auc"].tolist() == [1, 0]


def said() -> pd.DataFrame:
    """Four answers, two of them from the context, by three ways."""
    cases = pd.DataFrame({"question_id": list("abcd"), "from_context": [True, True, False, False]})
    cases = cases.assign(model="m", case=range(4))
    ways = {"always": [1.0] * 4, "never": [0.0] * 4, "p": [0.9, 0.6, 0.6, 0.2]}
    return pd.concat(cases.assign(way=way, probability=p) for way, p in ways.items())


def test_costs_and_brier_scores_by_hand() -> None:
    found = cost_table(said(), costs=(1, 3), n_boot=200).set_index(["way", "cost"])
    # At 1 the third is passed, at 3 only the first: passing needs p >= 3/4.
    assert found["mean"].to_dict() == {
        ("always", 1): 2 / 4, ("always", 3): 6 / 4,
        ("never", 1): 2 / 4, ("never", 3): 2 / 4,
        ("p", 1): 1 / 4, ("p", 3): 1 / 4,
    }  # fmt: skip
    assert found.loc[("p", 1), ["passed_wrong", "withheld"]].tolist() == [1 / 4, 0]
    assert found.loc[("p", 3), ["passed_wrong", "withheld"]].tolist() == [0, 1 / 4]
    assert found.loc[("p", 3), "difference"] == -5 / 4
    assert found.loc["always", "difference"].isna().all()
    assert (found["low"] <= found["mean"]).all()
    assert found["n"].eq(4).all()
    # 3 times 1/4 is 3/4: passing and withholding cost alike, and the answer is passed.
    rows = said().query("way == 'p'").assign(probability=0.75)
    assert cost_table(rows, costs=(3,), n_boot=10)["passed_wrong"].item() == 1 / 2
    # Brier scores of the same.
    found = brier_table(said(), n_boot=50).set_index("way")
    assert found["brier"].tolist() == pytest.approx([1 / 2, 1 / 2, (0.01 + 0.16 + 0.36 + 0.04) / 4])
    assert found["auc"].tolist() == [0.5, 0.5, 3.5 / 4]
