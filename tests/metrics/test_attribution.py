"""Scores, Kolmogorov-Smirnov, ROC and thresholds by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics import attribution, prediction
from factrobust.metrics.attribution import decisions, error_rates
from factrobust.metrics.prediction import cross_validate


def marked(sources: list[str], **columns: object) -> pd.DataFrame:
    ids = [f"b/{i}" for i in range(len(sources))]
    table = pd.DataFrame({"model": "m", "question_id": ids, "category": "c", "base_id": "b"})
    return table.assign(source=sources, **columns)


def cases(from_context: list[int], x: list[float]) -> pd.DataFrame:
    """Cases whose only score, shift, is x."""
    sources = ["contextual" if y else "parametric" for y in from_context]
    return attribution.cases(marked(sources, first_shift=x))


def test_scores_by_hand() -> None:
    table = attribution.cases(
        marked(
            ["contextual", "other", "parametric", "empty"],
            p0=[2.0, 1, 1, 1],
            p1=[16.0, 1, 1, 1],
            p2=[8.0, 1, 1, 1],
            p3=[4.0, 1, np.nan, 1],
            p4=[5.0, 1, 7.0, 1],
            first_entropy=[0.5, 1, 0, 1],
            first_entropy_context=[0.25, 1, 0, 1],
            first_shift=[0.3, 1, 0, 1],
        )
    )
    assert table["question_id"].tolist() == ["b/0", "b/2"]
    assert table["from_context"].tolist() == [True, False]
    ln2 = np.log(2)
    expected = {
        "log_p2_p3": ln2,
        "minus_log_p4": -np.log(5),
        "minus_log_p3": -2 * ln2,
        "log_p1_p3": 2 * ln2,
        "log_p2_p0": 2 * ln2,
        "log_p0": ln2,
        "minus_log_p1": -4 * ln2,
        "entropy": 0.5,
        "minus_entropy_context": -0.25,
        "shift": 0.3,
    }
    assert table[list(expected)].iloc[0].to_dict() == pytest.approx(expected)
    assert list(expected) == attribution.scores_table()["score"].tolist()
    assert np.isnan(table["log_p2_p3"][1])  # its P3 is missing
    assert table["minus_log_p4"][1] == pytest.approx(-np.log(7))


def test_kolmogorov_smirnov_by_hand() -> None:
    # Memory 1, 2, 3, 4 and context 3, 4, 5, 6: at 2, half of one and none of the other is passed.
    rows = cases([0] * 4 + [1] * 5, [1, 2, 3, 4, 3, 4, 5, 6, np.nan])
    table = attribution.separation(rows, ["shift"])
    row = table.iloc[0]
    assert row["ks"] == pytest.approx(0.5)
    # 54 of the C(8, 4) = 70 orders of two samples of four have a distance of 1/2 or more.
    assert row["p_value"] == pytest.approx(54 / 70)
    assert row[["n_parametric", "n_contextual", "n_missing"]].tolist() == [4, 4, 1]
    assert row[["median_parametric", "median_contextual"]].tolist() == [2.5, 4.5]
    one = attribution.separation(cases([1, 1], [1, 2]), ["shift"])
    assert one[["ks", "p_value", "median_parametric"]].isna().all(axis=None)


def test_auc_by_hand() -> None:
    # Pairs (context, memory): 3 > 1, 3 > 2, 2 > 1, 2 = 2: three and a half of four.
    table = attribution.auc_table(cases([1, 0, 1, 0, 1], [3, 1, 2, 2, np.nan]), n_boot=100)
    assert table.columns.tolist() == [
        *("model", "score", "queries", "auc", "low", "high", "n", "n_missing")
    ]
    assert table[["auc", "n", "n_missing"]].values.tolist() == [[3.5 / 4, 4, 1]]


def test_auc_by_category_and_score() -> None:
    rows = marked(
        ["contextual", "parametric"] * 4,
        category=["a"] * 4 + ["b"] * 4,
        p2=[4.0, 1, 4, 1, 1, 4, 1, 4],
        p3=2.0,
        p4=2.0,
    )
    assert "minus_log_p4" not in attribution.cases(rows.assign(p4=np.nan))
    table = attribution.auc_table(attribution.cases(rows), by=["model", "category"], n_boot=20)
    found = table.set_index(["category", "score"])
    assert found.loc["a", "auc"][["log_p2_p3", "minus_log_p4"]].tolist() == [1, 0.5]
    assert found.loc["b", "auc"]["log_p2_p3"] == 0
    assert found.loc["a", "queries"][["log_p2_p3", "minus_log_p4"]].tolist() == [2, 1]


def test_roc_curve_by_hand() -> None:
    curve = attribution.roc_curve(cases([1, 0, 1, 0], [3, 1, 2, 2]), "shift")
    assert curve.columns.tolist() == ["model", "score", "threshold", "fpr", "tpr"]
    assert curve[["threshold", "fpr", "tpr"]].to_numpy().tolist() == [
        [np.inf, 0, 0],
        [3, 0, 0.5],
        [2, 0.5, 1],
        [1, 1, 1],
    ]
    assert attribution.roc_curve(cases([1, 1], [1, 2]), "shift").empty


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=30))
def test_area_under_the_curve_is_the_auc(rows: list[tuple[bool, int]]) -> None:
    y, x = [r[0] for r in rows], [float(r[1]) for r in rows]
    curve = attribution.roc_curve(cases(y, x), "shift")
    if 0 < sum(y) < len(y):
        area = attribution.auc_table(cases(y, x), ["shift"], n_boot=1)["auc"].item()
        assert np.trapezoid(curve["tpr"], curve["fpr"]) == pytest.approx(area)
    else:
        assert curve.empty


@pytest.mark.parametrize(
    ("y", "x", "false_alarms", "threshold"),
    [
        ([0, 0, 1, 1], [1, 2, 4, 5], None, 3.0),  # the middle of the gap
        ([0, 1, 0, 1], [1, 2, 3, 4], None, 3.5),  # J is 1/2 at 4 and at 2: the higher one
        ([1, 1, 0, 0], [1, 2, 4, 5], None, np.inf),  # never
        ([0, 0, 1, 1], [1, 1, 1, 1], None, np.inf),
        ([0, 1, 0, 1], [1, 2, 3, 4], 0.0, 3.5),
        ([0, 1, 0, 1], [1, 2, 3, 4], 0.5, 1.5),
        ([0, 1, 0, 1], [1, 2, 3, 4], 1.0, 1.5),
        ([0, 1, 0, 1], [2, 1, 3, 4], 1.0, -np.inf),  # always
        ([0, 1, 1], [np.nan, 2, 3], None, np.nan),
        ([], [], None, np.nan),
    ],
)
def test_thresholds(y: list, x: list, false_alarms: float | None, threshold: float) -> None:
    found = attribution.choose_threshold(y, x, false_alarms=false_alarms)
    assert found == pytest.approx(threshold, nan_ok=True)


def test_a_false_alarm_rate_that_is_reached_exactly() -> None:
    # One of 20 answers from memory above 0.5: a rate of exactly 0.05, also in floating point.
    y, x = [0] * 20 + [1], [0.0] * 19 + [1.0, 0.5]
    assert attribution.choose_threshold(y, x, false_alarms=0.05) == 0.25
    assert attribution.choose_threshold(y, x, false_alarms=0.049) == np.inf


def simulated(n: int) -> pd.DataFrame:
    """Half of the answers from context, with log P4 lower by two standard deviations."""
    rng = np.random.default_rng(0)
    context = np.arange(n) % 2 == 0
    log_p4 = rng.normal(size=n) + np.where(context, 5, 7)
    rows = pd.DataFrame(
        {
            "model": "m",
            "question_id": [f"b{i % 5}/{i}" for i in range(n)],
            "category": [f"c{i % 3}" for i in range(n)],
            "base_id": [f"b{i % 5}" for i in range(n)],
            "source": np.where(context, "contextual", "parametric"),
            "p3": np.exp(rng.exponential(size=n)),
            "p4": np.exp(np.maximum(log_p4, 0)),
        }
    )
    return attribution.cases(rows)


def rates(from_context: list[bool], says_context: list[bool | None]) -> pd.DataFrame:
    says = pd.array(says_context, dtype="boolean")
    decided = pd.DataFrame({"model": "m", "from_context": from_context, "says_context": says})
    return error_rates(decided, n_boot=100).set_index("measure")


def test_error_rates_by_hand() -> None:
    said = [True, True, True, False, None, True, False, False, False, None]
    table = rates([True] * 5 + [False] * 5, said)
    quarters = dict.fromkeys(("fpr", "fnr", "false_discovery"), 1 / 4)
    halves = {"baseline": 1 / 2, "says_context": 1 / 2}
    assert table["mean"].to_dict() == pytest.approx(
        {**quarters, "accuracy": 6 / 8, "balanced_accuracy": 3 / 4, **halves}
    )
    assert table["n"].to_dict() == dict.fromkeys(table.index, 8) | dict.fromkeys(quarters, 4)
    assert table["n_missing"].eq(2).all()
    assert (table["low"] <= table["mean"]).all()
    assert (table["mean"] <= table["high"]).all()
    # Bounds of shares are exact: the upper bound p of 0 in 8 has (1 - p) ** 8 = 0.025.
    table = rates([True] * 8 + [False], [True] * 8 + [False])
    assert table.loc["fnr", ["mean", "low"]].tolist() == [0, 0]
    assert table.loc["fnr", "high"] == pytest.approx(1 - 0.025 ** (1 / 8))
    # Of answers of one source.
    table = rates([True, True], [True, False])["mean"]
    assert table[["fnr", "false_discovery", "baseline"]].tolist() == [0.5, 0, 1]
    assert table[["fpr", "balanced_accuracy"]].isna().all()


def test_thresholds_are_chosen_on_the_other_folds() -> None:
    table = simulated(300)
    decided = decisions(table, seed=1)
    assert decided["question_id"].tolist() == table["question_id"].tolist()
    assert decided["fold"].value_counts().tolist() == [60] * 5
    for fold, part in decided.groupby("fold"):
        train = table[decided["fold"] != fold]
        chosen = attribution.choose_threshold(train["from_context"], train["minus_log_p4"])
        assert part["threshold"].unique().tolist() == [chosen]
        said = table.loc[part.index, "minus_log_p4"] >= chosen
        assert part["says_context"].tolist() == said.tolist()
    # Two normals two standard deviations apart, cut in the middle: 84% on both sides.
    found = error_rates(decided, n_boot=50).set_index("measure")["mean"]
    assert found["balanced_accuracy"] == pytest.approx(0.841, abs=0.05)


def test_a_false_alarm_rate_holds_about() -> None:
    decided = decisions(simulated(1000), false_alarms=0.1)
    found = error_rates(decided, n_boot=50).set_index("measure")["mean"]
    assert found["fpr"] == pytest.approx(0.1, abs=0.03)
    # Normals: a share 1 - Phi(z - 2), where Phi(z) = 0.9, is recognised.
    assert 1 - found["fnr"] == pytest.approx(0.764, abs=0.05)


def test_thresholds_that_carry_over_to_another_category() -> None:
    table = simulated(90)
    decided = decisions(table, over="category")
    assert decided["fold"].tolist() == table["category"].tolist()
    others = table[table["category"] != "c1"]
    chosen = attribution.choose_threshold(others["from_context"], others["minus_log_p4"])
    assert decided.loc[decided["fold"] == "c1", "threshold"].unique().tolist() == [chosen]
    # Of the only category nothing can be said.
    alone = decisions(table[table["category"] == "c1"], over="category")
    assert alone["says_context"].isna().all()


def test_cases_are_questions_to_a_logistic_regression() -> None:
    table = simulated(300)
    names = {"group_id": "question_id", "relation": "category", "correct": "from_context"}
    assert all((table[theirs] == table[ours]).all() for theirs, ours in names.items())
    found = cross_validate(table, ["minus_log_p4", "minus_log_p3"], repeats=1)
    # Equal variances: the logit is linear with slope 2 in log P4, and P(right) = Phi(1).
    quality = prediction.prediction_quality(found, n_boot=20).set_index("measure")["mean"]
    assert quality["accuracy"] == pytest.approx(0.841, abs=0.05)
    assert quality["auc"] == pytest.approx(0.921, abs=0.04)  # Phi(sqrt 2)
