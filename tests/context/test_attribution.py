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
    table = pd.DataFrame(
        {
            "model": "m",
            "question_id": ids,
            "base_id": "b",
            "source": sources,
        }
    )
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
    assert found.auc == 3.5 / 4
    assert found.n_context == 2
    assert found.n_not == 2
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


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=30))
def test_auc_is_the_share_of_pairs(rows: list[tuple[bool, int]]) -> None:
    context, others = ([x for y, x in rows if y is z] for z in (True, False))
    pairs = [(a > b) + (a == b) / 2 for a in context for b in others]
    found = auc([y for y, _ in rows], [x for _, x in rows])
    assert found.auc == pytest.approx(np.mean(pairs) if pairs else np.nan, nan_ok=True)
    assert not pairs or 0 <= found.low <= found.auc <= found.high <= 1


def case(parametric: str, contextual: str, one: str, two: str, placebo: str = "") -> tuple:
    slots = [(["Lima"], ["Oslo"], ["Rome"]), (["Bonn"], ["Bern"], ["Baku"])]
    sentence = "The capital of Kenya is Lima. The capital of Germany is Bonn"
    given = (parametric, contextual, one, two, placebo or contextual)
    return (*given, slots, sentence, "changed elsewhere" if placebo else "")


def test_causes_by_hand() -> None:
    rows = [
        case("Nairobi", "Lima", "Oslo", "Rome", "Lima"),
        case("Lima", "Lima", "Oslo", "Rome"),  # memory says so, too
        case("Nairobi", "Lima", "Bern", "Rome", "Quito"),  # follows, from another sentence
        case("Nairobi", "Lima", "Oslo", "Lima"),  # follows once
        case("Nairobi", "Nairobi", "Nairobi", "Nairobi"),
        case("Lima", "Lima", "Lima", "Lima"),  # stays, though the passage says so, too
        case("Nairobi", "Kisumu", "Kisumu", "Kisumu"),
        case("Nairobi", "", "Oslo", "Rome"),
    ]
    names = ["parametric", "contextual", "text_1", "text_2", "text_placebo", "slots", "sentence"]
    table = pd.DataFrame(rows, columns=[*names, "placebo"]).assign(stated="x")
    found = attribution.caused(table)
    causes = ["context", "both", "slots", "half", "memory", "memory", "moved", "none"]
    assert found["cause"].tolist() == causes
    assert found["from_context"].tolist() == [True] * 3 + [False] * 5
    assert found["moved_1"].tolist() == [1, 1, 1, 1, 0, 0, 0, 1]
    assert found["moved_2"].tolist() == [1, 1, 1, 0, 0, 0, 0, 1]
    assert found["moved_placebo"].dropna().to_dict() == {0: 0, 2: 1}
    assert found["stated"].tolist() == [True] * 4 + [False, True, False, False]
    # Not defined where memory and passage agree, and where nothing is said.
    assert found["defined"].tolist() == [True, False, True, True, True, False, True, False]


def test_a_context_says_what_stands_there_side_by_side() -> None:
    context = "Lima, as is known, lies on the coast. Nairobi is in Kenya"
    answers = ["Lima", "the coast of Kenya", "nairobi", "", "Nairob"]
    found = attribution.by_words(["x"] * 5, answers, [context] * 5)
    assert found["stated"].tolist() == [True, False, True, False, False]
    assert found["says"].tolist() == [True, True, True, False, True]


def test_pairs_within_by_hand() -> None:
    rows = [  # relation, tokens, from_context, score
        ("a", 1, True, 3.0),
        ("a", 1, False, 1.0),
        ("a", 1, False, 3.0),
        ("a", 2, True, 9.0),
        ("b", 2, False, 5.0),
        ("b", 2, True, 2.0),
        ("b", 2, True, np.nan),
    ]
    names = ["base_id", "tokens", "from_context", "x"]
    table = pd.DataFrame(rows, columns=names).assign(model="m")
    alike = attribution.won_pairs(table, ["x"], ["base_id", "tokens"])
    # a: 3 > 1 and 3 = 3; the answer of two tokens has no partner. b: 2 < 5.
    assert alike[["base_id", "won", "pairs"]].to_numpy().tolist() == [["a", 1.5, 2], ["b", 0, 1]]
    within = attribution.won_pairs(table, ["x"], ["base_id"])
    assert within[["won", "pairs"]].to_numpy().tolist() == [[3.5, 4], [0, 1]]


def law(n: int) -> pd.DataFrame:
    """Cases that come from the context with probability expit(2 x - 2); y says nothing."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, size=n)
    y = rng.normal(size=n)
    follows = rng.random(n) < expit(2 * x - 2)
    relations = [f"r{i % 10}" for i in range(n)]
    return pd.DataFrame(
        {
            "base_id": relations,
            "x": x,
            "y": y,
            "from_context": follows,
        }
    )


def test_two_features_recover_a_law() -> None:
    table = law(4000)
    told = attribution.told_by_two(table, ["x", "y"], n_folds=2)
    assert np.abs(told - expit(2 * table["x"] - 2)).max() < 0.1


def test_no_relation_is_told_by_a_fit_on_itself() -> None:
    table = law(200)
    turned = table["from_context"] ^ (table["base_id"] == "r0")
    one = attribution.told_by_two(table, ["x", "y"], k=2, n_folds=1)
    again = attribution.told_by_two(table.assign(from_context=turned), ["x", "y"], k=2, n_folds=1)
    same = pd.Series(one == again).groupby(table["base_id"]).all()
    assert same["r0"]
    assert same.sum() == 5  # its fold
    mean = attribution.told_by_two(table, ["x", "y"], k=2, n_folds=3)
    assert not np.allclose(mean, one)  # over other folds
