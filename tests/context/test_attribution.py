"""Scores, areas under the curve with few cases, causes, fits and how good they are, by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from factrobust.context import attribution
from factrobust.context.attribution import auc


def marked(sources: list[str], **columns: object) -> pd.DataFrame:
    ids = [f"b/{i}" for i in range(len(sources))]
    table = pd.DataFrame({"model": "m", "question_id": ids, "base_id": "b", "source": sources})
    return table.assign(sound=True, **columns)


def test_scores_by_hand() -> None:
    names = ["p0", "p1", "p2", "p3", "p4"]
    sources = ["contextual", "other", "parametric", "none", "same"]
    rows = marked(sources, **dict.fromkeys(names, 1.0))
    rows.loc[0, names] = [2.0, 16.0, 8.0, 4.0, 5.0]
    rows.loc[2, "p3"] = np.nan
    table = attribution.cases(rows)
    assert table["question_id"].tolist() == ["b/0", "b/1", "b/2"]
    assert table["from_context"].tolist() == [True, False, False]
    ln2 = np.log(2)
    expected = {"minus_log_p4": -np.log(5), "log_p2_p3": ln2, "log_p1_p3": 2 * ln2}
    expected |= {"log_p0": ln2}
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


def case(parametric: str, contextual: str, one: str, two: str) -> tuple:
    slots = [(["Lima"], ["Oslo"], ["Rome"]), (["Bonn"], ["Bern"], ["Baku"])]
    sentence = "The capital of Kenya is Lima. The capital of Germany is Bonn"
    return (parametric, contextual, one, two, slots, sentence)


def test_causes_by_hand() -> None:
    rows = [
        case("Nairobi", "Lima", "Oslo", "Rome"),  # follows
        case("Lima", "Lima", "Oslo", "Rome"),  # follows, and memory says so, too
        case("Nairobi", "Bonn", "Bern", "Baku"),  # follows what is said of another subject
        case("Nairobi", "Lima", "Bern", "Rome"),  # follows, from another sentence
        case("Nairobi", "Lima", "Oslo", "Lima"),  # follows once
        case("Nairobi", "Nairobi", "Nairobi", "Nairobi"),
        case("Lima", "Lima", "Lima", "Lima"),  # stays, though the passage says so, too
        case("Nairobi", "Kisumu", "Kisumu", "Kisumu"),
        case("Nairobi", "", "Oslo", "Rome"),
    ]
    names = ["parametric", "contextual", "text_1", "text_2", "slots", "sentence"]
    found = attribution.caused(pd.DataFrame(rows, columns=names))
    causes = [
        "context",
        "both",
        "context",
        "context",
        "neither",
        "memory",
        "memory",
        "neither",
        "none",
    ]
    assert found["cause"].tolist() == causes
    assert found["from_context"].tolist() == [True] * 4 + [False] * 5
    assert found["rule"].tolist() == [True, False, True, True, True] + [False] * 4
    # Not defined where memory and passage agree, and where nothing is said.
    assert found["defined"].tolist() == [True, False, True, True, True, True, False, True, False]
    assert found["coverage"].tolist() == [1, 1, 1, 1, 1, 0, 1, 0, 0]


def law(n: int) -> pd.DataFrame:
    """Cases that come from the context with probability expit(2 log P0 - 2)."""
    rng = np.random.default_rng(0)
    log_p0 = rng.uniform(0, 2, size=n)
    table = pd.DataFrame({"p0": np.exp(log_p0), "p1": 2.0, "p4": 2.0, "model": "m"})
    follows = rng.random(n) < expit(2 * log_p0 - 2)
    table = table.assign(base_id=[f"r{i % 10}" for i in range(n)], from_context=follows)
    texts = dict.fromkeys(attribution.TEXTS, 0.0)
    return table.assign(question_id=[f"q{i}" for i in range(n)], defined=True, **texts)


WAYS = {"constant": (), "two-line rule": ("rule",), "p0": ("memory",)}


def test_the_fit_recovers_a_law_and_its_scores() -> None:
    table = law(4000)
    found = attribution.fit(table, ["memory"])
    assert found["memory"] == pytest.approx(2, abs=0.2)
    assert found["constant"] == pytest.approx(-2, abs=0.2)
    said = attribution.held_out(table, ways=WAYS)
    scores = attribution.scores_table(said, n_boot=50).set_index("way")
    p = expit(2 * np.log(table["p0"]) - 2)
    assert scores.loc["p0", "brier"] == pytest.approx((p * (1 - p)).mean(), abs=0.01)
    entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p)).mean()
    assert scores.loc["p0", "log_loss"] == pytest.approx(entropy, abs=0.02)
    share = table["from_context"].mean()
    assert scores.loc["constant", "brier"] == pytest.approx(share * (1 - share), abs=0.005)
    assert scores.loc["p0", "gain"] > scores.loc["p0", "gain_low"] > 0
    held = attribution.strata(said[said["way"] == "p0"], ["model"]).iloc[0]
    assert held["low"] < held["expected"] < held["high"]


def test_no_relation_is_told_by_a_fit_on_itself() -> None:
    table = law(200)
    one, again = (
        attribution.held_out(rows, ways=WAYS, k=2).query("way == 'p0'").set_index("case")
        for rows in (table, table.assign(
            from_context=table["from_context"] ^ (table["base_id"] == "r0")))
    )  # fmt: skip
    same = (one["probability"] == again["probability"]).groupby(table["base_id"]).all()
    assert same["r0"]
    assert same.sum() == 5  # its fold
    # What is not defined is no case of a fit, but gets a probability.
    left_out = attribution.held_out(table.assign(defined=table["base_id"] != "r0"), ways=WAYS, k=2)
    assert left_out["probability"].notna().all()
    assert attribution.scores_table(left_out, n_boot=10)["n"].eq(180).all()


def test_scores_and_strata_by_hand() -> None:
    rows = pd.DataFrame(
        {"from_context": [True, False], "defined": True, "model": "m", "case": [0, 1]}
    )
    rows = rows.assign(base_id=["a", "b"])
    ways = {"two-line rule": [0.5, 0.5], "p": [0.8, 0.4]}
    said = pd.concat(rows.assign(way=way, probability=p) for way, p in ways.items())
    found = attribution.scores_table(said, n_boot=10).set_index("way")
    assert found["brier"].tolist() == pytest.approx([0.25, (0.04 + 0.16) / 2])
    losses = [np.log(2), -(np.log(0.8) + np.log(0.6)) / 2]
    assert found["log_loss"].tolist() == pytest.approx(losses)
    assert found.loc["p", "gain"] == pytest.approx(losses[0] - losses[1])
    [held] = attribution.strata(said[said["way"] == "p"], ["model"]).to_dict("records")
    assert (held["expected"], held["mean"], held["n"]) == (pytest.approx(0.6), 0.5, 2)
    assert held["low"] == pytest.approx(1 - 0.975**0.5, abs=1e-6)  # one of two, exact
