"""AUC, Brier score, calibration and risk-coverage, by hand on small cases."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factrobust.metrics import calibration


def table(correct: list, probability: list, **columns: object) -> pd.DataFrame:
    values = {"model": "m", "group_id": [f"q{i}" for i in range(len(correct))], "prior": 0.5}
    return pd.DataFrame(values | {"correct": correct, "probability": probability} | columns)


def auc(correct: list, score: list) -> float:
    return calibration.ranking(table(correct, score), ["probability"], n_boot=1)["mean"].item()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=20))
@example([(True, 3)])  # undefined without a wrong answer
@settings(deadline=None)
def test_auc_is_the_share_of_pairs_won(rows: list[tuple[bool, int]]) -> None:
    good, bad = ([x for y, x in rows if y is right] for right in (True, False))
    pairs = [(a > b) + (a == b) / 2 for a, b in product(good, bad)]
    expected = np.mean(pairs) if pairs else np.nan
    assert auc(*map(list, zip(*rows, strict=True))) == pytest.approx(expected, nan_ok=True)


def test_scores_by_hand() -> None:
    # Two repeats of four questions; the prior calls every question wrong.
    first = table([True, False, True, False], [0.9, 0.2, 0.4, 0.6], repeat=0, prior=0.25)
    second = table([True, False, True, False], [0.8, 0.3, 0.7, 0.1], repeat=1, prior=0.25)
    quality = calibration.prediction_quality(pd.concat([first, second]), n_boot=200)
    mean = quality.set_index("measure")["mean"]
    assert mean["accuracy"] == pytest.approx((0.5 + 1) / 2)
    assert mean["baseline"] == 0.5
    assert mean["gain"] == pytest.approx(50)
    assert mean["auc"] == pytest.approx((3 / 4 + 1) / 2)
    squares = [0.01, 0.04, 0.36, 0.36, 0.04, 0.09, 0.09, 0.01]
    assert mean["brier"] == pytest.approx(sum(squares) / 8)
    assert mean["brier_baseline"] == pytest.approx((2 * 0.75**2 + 2 * 0.25**2) / 4)
    assert quality["n"].tolist() == [4] * 6  # questions, not rows
    assert (quality["low"] <= quality["mean"]).all()
    assert (quality["mean"] <= quality["high"]).all()
    shuffled = pd.concat([second, first]).sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(quality, calibration.prediction_quality(shuffled, n_boot=200))


def test_more_repeats_do_not_narrow_intervals() -> None:
    rng = np.random.default_rng(0)
    one = table((rng.random(60) < 0.5).tolist(), rng.random(60).tolist(), repeat=0)
    many = pd.concat([one.assign(repeat=i) for i in range(8)])
    pd.testing.assert_frame_equal(
        calibration.prediction_quality(one), calibration.prediction_quality(many)
    )


def test_scores_count_what_is_missing() -> None:
    rows = table([True, False, True], [0.9, 0.2, np.nan])
    quality = calibration.prediction_quality(rows, n_boot=50).set_index("measure")
    assert quality[["n", "n_missing"]].drop_duplicates().values.tolist() == [[2, 1]]
    assert quality.loc["accuracy", "mean"] == 1
    nothing = calibration.prediction_quality(
        rows.assign(probability=np.nan, prior=np.nan), n_boot=50
    )
    assert nothing[["n", "n_missing"]].drop_duplicates().values.tolist() == [[0, 3]]
    assert nothing["mean"].isna().all()
    with pytest.raises(ValueError, match="duplicate"):
        calibration.prediction_quality(pd.concat([rows, rows]))


def test_scores_by_other_columns() -> None:
    rows = pd.concat(
        [
            table([True, False], [0.9, 0.2], fitted_on="a", predicted="a"),
            table([True, False], [0.2, 0.9], fitted_on="a", predicted="b"),
        ]
    )
    quality = calibration.prediction_quality(rows, ["fitted_on", "predicted"], n_boot=50)
    auc = quality[quality["measure"] == "auc"].set_index(["fitted_on", "predicted"])["mean"]
    assert auc.to_dict() == {("a", "a"): 1, ("a", "b"): 0}


def test_calibration_curve_by_hand() -> None:
    rows = table([True, False, True, True, True], [0.05, 0.09, 0.1, 0.95, 1.0])
    curve = calibration.calibration_curve(rows, bins=10, n_boot=100)
    assert curve["bin"].tolist() == pytest.approx([0, 0.1, 0.9])
    assert curve["predicted"].tolist() == pytest.approx([0.07, 0.1, 0.975])
    assert curve["observed"].tolist() == [0.5, 1, 1]
    assert curve["n"].tolist() == [2, 1, 2]
    twice = pd.concat([rows.assign(repeat=0), rows.assign(repeat=1)])
    twice = pd.concat([twice, table([True], [np.nan], repeat=0)])
    again = calibration.calibration_curve(twice, bins=10, n_boot=100)
    assert again["rows"].tolist() == [4, 2, 4]
    pd.testing.assert_frame_equal(again.drop(columns="rows"), curve.drop(columns="rows"))


def test_risk_coverage_by_hand() -> None:
    rows = table([True, False, True, False], [0.9, 0.8, 0.7, 0.1])
    curve = calibration.risk_coverage(rows, coverages=[0.25, 0.5, 0.75, 1], n_boot=100)
    assert curve["accuracy"].tolist() == pytest.approx([1, 1 / 2, 2 / 3, 1 / 2])
    assert curve["coverage"].tolist() == [0.25, 0.5, 0.75, 1]
    assert curve["n"].tolist() == [4] * 4
    assert curve["score"].unique().tolist() == ["probability"]
    # Between questions: one and a half of them, the second wrong.
    between = calibration.risk_coverage(rows, coverages=[0.375], n_boot=10)
    assert between["accuracy"].tolist() == pytest.approx([1 / 1.5])


def test_equal_scores_are_answered_in_random_order() -> None:
    rows = table([True, False, False, True], [0.0] * 4, cert=[0.9, 0.5, 0.5, 0.5])
    curve = calibration.risk_coverage(rows, "cert", coverages=[0.25, 0.5, 0.75], n_boot=100)
    # The second question is one of three, of which one is right.
    assert curve["accuracy"].tolist() == pytest.approx([1, (1 + 1 / 3) / 2, (1 + 2 / 3) / 3])
    assert curve["score"].unique().tolist() == ["cert"]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=6), st.data())
def test_risk_coverage_against_every_order(rows: list, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(rows)))
    orders = [
        order for order in permutations(rows) if all(a[1] >= b[1] for a, b in pairwise(order))
    ]
    expected = np.mean([np.mean([y for y, _ in order[:k]]) for order in orders])
    y, x = map(list, zip(*rows, strict=True))
    curve = calibration.risk_coverage(table(y, x), coverages=[k / len(rows)], n_boot=1)
    assert curve["accuracy"].tolist() == pytest.approx([expected])


def test_risk_coverage_averages_repeats_and_counts_what_is_missing() -> None:
    first = table([True, False, True], [0.9, 0.1, np.nan], repeat=0)
    second = table([True, False, True], [0.1, 0.9, 0.5], repeat=1)
    curve = calibration.risk_coverage(pd.concat([first, second]), coverages=[0.5, 1], n_boot=50)
    assert curve["accuracy"].tolist() == pytest.approx([0.5, 0.5])
    assert curve[["n", "n_missing"]].values.tolist() == [[2, 1]] * 2


def test_resamples_weigh_questions() -> None:
    """A question drawn w times counts as w questions."""
    y, x = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.9, 0.8, 0.8, 0.2])
    times = np.array([2, 1, 3, 0])
    correct, score = np.repeat(y, times).tolist(), np.repeat(x, times).tolist()
    weights = times[None, :].astype(float)
    assert calibration._auc(weights, y, x)[0] == pytest.approx(auc(correct, score))
    for coverage in (0.25, 0.5, 0.9, 1):
        curve = calibration.risk_coverage(table(correct, score), coverages=[coverage], n_boot=1)
        found = calibration._covered(coverage, weights, y, x)
        assert found.tolist() == pytest.approx(curve["accuracy"].tolist())


def test_relative_gain_by_hand() -> None:
    weights = np.array([[1.0, 1, 1, 1], [2, 0, 0, 2], [0, 2, 0, 0]])
    right, base = np.array([1.0, 0, 1, 1]), np.array([1.0, 0, 0, 1])
    gain = calibration.relative_gain(weights, right, base)
    assert gain.tolist() == pytest.approx([50, 0, np.nan], nan_ok=True)
    # Flan-UL2 in table 5: 0.915 against 0.874 is +4.69%.
    gain = calibration.relative_gain(np.ones((1, 1)), np.array([0.915]), np.array([0.874]))
    assert gain.round(2).tolist() == [4.69]


def test_ranking_by_hand() -> None:
    # Right 0.8, 0.4; wrong 0.6, 0.4, 0.1: of six pairs 0.8 wins 3; 0.4 wins 1 and ties 1.
    rows = table([1, 0, 1, 0, 0], [0.8, 0.6, 0.4, 0.4, 0.1])
    rows = rows.assign(turned=-rows["probability"], gone=[np.nan, 1.0, 2.0, 3.0, 4.0])
    found = calibration.ranking(rows, ["probability", "turned", "gone"], n_boot=50)
    assert found["measure"].tolist() == ["probability", "turned", "gone"]
    # Without the first row the one right answer, 2, beats 1 and loses to 3 and 4.
    assert found["mean"].tolist() == pytest.approx([4.5 / 6, 1.5 / 6, 1 / 3])
    assert found["n"].tolist() == [5, 5, 4]
    assert found["n_missing"].tolist() == [0, 0, 1]
