"""Errors of thresholds and of logistic regressions on held-out answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import attribution, attribution_errors, calibration
from factrobust.metrics.attribution_errors import decisions, error_rates, predict


def simulated(n: int, model: str = "m", apart: float = 2.0, seed: int = 0) -> pd.DataFrame:
    """Half of the answers from context, with log P4 lower by `apart` standard deviations."""
    rng = np.random.default_rng(seed)
    context = np.arange(n) % 2 == 0
    log_p4 = rng.normal(size=n) + np.where(context, 5, 5 + apart)
    rows = pd.DataFrame(
        {
            "model": model,
            "question_id": [f"b{i % 5}/{i}" for i in range(n)],
            "category": [f"c{i % 3}" for i in range(n)],
            "base_id": [f"b{i % 5}" for i in range(n)],
            "source": np.where(context, "contextual", "parametric"),
            "p3": np.exp(rng.exponential(size=n)),
            "p4": np.exp(np.maximum(log_p4, 0)),
        }
    )
    return attribution.cases(rows)


def test_error_rates_by_hand() -> None:
    decided = pd.DataFrame(
        {
            "model": "m",
            "from_context": [True] * 5 + [False] * 5,
            "says_context": pd.array(
                [True, True, True, False, None, True, False, False, False, None], dtype="boolean"
            ),
        }
    )
    table = error_rates(decided, n_boot=100).set_index("measure")
    expected = {
        "fpr": 1 / 4,
        "fnr": 1 / 4,
        "false_discovery": 1 / 4,
        "accuracy": 6 / 8,
        "balanced_accuracy": 3 / 4,
        "baseline": 1 / 2,
        "says_context": 1 / 2,
    }
    assert table["mean"].to_dict() == pytest.approx(expected)
    assert table["n"].to_dict() == dict.fromkeys(expected, 8) | {
        "fpr": 4, "fnr": 4, "false_discovery": 4
    }  # fmt: skip
    assert table["n_missing"].eq(2).all()
    assert (table["low"] <= table["mean"]).all()
    assert (table["mean"] <= table["high"]).all()


def test_bounds_of_rates_are_exact() -> None:
    decided = pd.DataFrame({"model": "m", "from_context": [True] * 8 + [False]})
    decided["says_context"] = pd.array([True] * 8 + [False], dtype="boolean")
    table = error_rates(decided, n_boot=50).set_index("measure")
    # The upper bound p of 0 in 8 has (1 - p) ** 8 = 0.025.
    assert table.loc["fnr", ["mean", "low"]].tolist() == [0, 0]
    assert table.loc["fnr", "high"] == pytest.approx(1 - 0.025 ** (1 / 8))
    assert table.loc["fpr", "high"] == pytest.approx(1 - 0.025)


def test_error_rates_of_one_source() -> None:
    decided = pd.DataFrame({"model": "m", "from_context": [True, True]})
    decided["says_context"] = pd.array([True, False], dtype="boolean")
    table = error_rates(decided, n_boot=50).set_index("measure")["mean"]
    assert table[["fnr", "false_discovery", "baseline"]].tolist() == [0.5, 0, 1]
    assert table[["fpr", "balanced_accuracy"]].isna().all()


def test_thresholds_are_chosen_on_the_other_folds() -> None:
    table = simulated(300)
    decided = decisions(table, k=5, seed=1)
    assert decided["question_id"].tolist() == table["question_id"].tolist()
    assert decided["fold"].value_counts().tolist() == [60] * 5
    for fold, part in decided.groupby("fold"):
        train = table[decided["fold"] != fold]
        chosen = attribution.choose_threshold(train["from_context"], train["minus_log_p4"])
        assert part["threshold"].unique().tolist() == [chosen]
        said = table.loc[part.index, "minus_log_p4"] >= chosen
        assert part["says_context"].tolist() == said.tolist()
    # Two normals two standard deviations apart, cut in the middle: 84% on both sides.
    rates = error_rates(decided, n_boot=50).set_index("measure")["mean"]
    assert rates["balanced_accuracy"] == pytest.approx(0.841, abs=0.05)


def test_decisions_do_not_depend_on_the_order_of_rows() -> None:
    table = simulated(60)
    shuffled = table.sample(frac=1, random_state=0)
    a, b = (decisions(t).set_index("question_id")["says_context"] for t in (table, shuffled))
    assert a.equals(b.reindex(a.index))


def test_a_false_alarm_rate_holds_about() -> None:
    table = pd.concat([simulated(1000), simulated(1000, "n", apart=1.0, seed=3)])
    decided = decisions(table, false_alarms=0.1)
    rates = error_rates(decided, n_boot=50).set_index(["model", "measure"])["mean"]
    assert rates["m", "fpr"] == pytest.approx(0.1, abs=0.03)
    # Normals: a share 1 - Phi(z - apart), where Phi(z) = 0.9, is recognised.
    assert 1 - rates["m", "fnr"] == pytest.approx(0.764, abs=0.05)
    assert 1 - rates["n", "fnr"] == pytest.approx(0.389, abs=0.07)


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


def test_answers_without_a_score_are_counted() -> None:
    table = simulated(50)
    table.loc[7, "minus_log_p4"] = np.nan
    decided = decisions(table)
    assert decided["says_context"].isna().sum() == 1
    assert error_rates(decided, n_boot=10)["n_missing"].eq(1).all()


def test_logistic_regression_out_of_fold() -> None:
    table = simulated(300)
    table.loc[11, "minus_log_p4"] = np.nan
    found = predict(table, ["minus_log_p4", "minus_log_p3"], repeats=2)
    assert found.columns.tolist() == [
        *("model", "repeat", "fold", "question_id", "category", "from_context"),
        *("probability", "prior", "fit"),
    ]
    assert len(found) == 600
    lost = found[found["probability"].isna()]
    assert lost["question_id"].unique().tolist() == ["b1/11"]
    assert lost["fold"].tolist() == [-1, -1]
    assert lost["fit"].unique().tolist() == [attribution_errors.MISSING]
    # Equal variances: the logit is linear with slope 2 in log P4, and P(right) = Phi(1).
    scores = calibration.scores(attribution.as_questions(found), n_boot=20).set_index("measure")
    assert scores.loc["accuracy", "mean"] == pytest.approx(0.841, abs=0.05)
    assert scores.loc["auc", "mean"] == pytest.approx(0.921, abs=0.04)  # Phi(sqrt 2)
    assert scores["n_missing"].eq(1).all()
    again = decisions(found[found["repeat"] == 0], "probability")
    assert error_rates(again, n_boot=10).set_index("measure")["mean"]["accuracy"] > 0.75


def test_logistic_regression_by_category() -> None:
    found = predict(simulated(120), ["category", "minus_log_p4"])
    assert found["probability"].between(0, 1).all()
    plain = predict(simulated(120), ["minus_log_p4"])
    assert not np.allclose(found["probability"], plain["probability"])
