"""Variance of right answers by fact and wording, controls and examples, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import wording_effects as effects

# Three facts in three wordings; the means of facts are 1, 1/3, 1/3, of wordings 2/3, 2/3, 1/3, of all
# 5/9. Sums of squares: of facts 3 (16 + 4 + 4) / 81 = 8/9, of wordings 3 (1 + 1 + 4) / 81 = 2/9, of all
# 9 (5/9) (4/9) = 20/9, so 10/9 is left.
BY_HAND = np.array([[1, 1, 1], [0, 1, 0], [1, 0, 0]], float)


def marked(tables: dict[str, np.ndarray], model: str = "m") -> pd.DataFrame:
    rows = [
        (model, relation, f"{relation}/{i}", v, bool(x))
        for relation, table in tables.items()
        for i, row in enumerate(table)
        for v, x in enumerate(row)
    ]
    return pd.DataFrame(rows, columns=["model", "relation", "group_id", "variant", "correct"])


def moments(x: np.ndarray) -> np.ndarray:
    """Components by the method of moments, from the mean squares."""
    n, v = x.shape
    squares = effects.sums_of_squares(x) / [n - 1, v - 1, (n - 1) * (v - 1)]
    return np.array([(squares[0] - squares[2]) / v, (squares[1] - squares[2]) / n, squares[2]])


def test_sums_of_squares_and_components_by_hand() -> None:
    assert effects.sums_of_squares(BY_HAND) == pytest.approx([8 / 9, 2 / 9, 10 / 9])
    # Mean squares 4/9, 1/9, 5/18: (8/18 - 5/18) / 3 and (2/18 - 5/18) / 3, which is below 0.
    found = effects.components(np.ones((1, 3)), *BY_HAND.T)[:, 0]
    assert found == pytest.approx([1 / 18, -1 / 18, 5 / 18])


def test_components_are_those_of_the_mean_squares() -> None:
    x = (np.random.default_rng(0).random((14, 6)) < np.linspace(0.1, 0.9, 6)).astype(float)
    found = effects.components(np.ones((1, 14)), *x.T)[:, 0]
    assert found == pytest.approx(moments(x))


def test_a_fact_drawn_twice_makes_no_common_effect_of_wordings() -> None:
    weights = np.array([[2.0, 1.0, 0.0], [3.0, 0.0, 0.0]])
    parts = effects.components(weights, *BY_HAND.T)
    # The pairs of facts 0 and 1 alone: fact 0 has no d, so that nothing is in common.
    assert parts[1, 0] == pytest.approx(0)
    # Of sum d^2 / 2, 0 and 1/3, the mean over three draws is 1/9; (1 - 1/3)^2 / 2 = 2/9 less 1/27.
    assert parts[[0, 2], 0] == pytest.approx([2 / 9 - 1 / 27, 1 / 9])
    assert np.isnan(parts[:, 1]).all()  # one fact and its copies


def test_components_find_known_variances() -> None:
    rng = np.random.default_rng(1)
    chances = {}
    for k in range(40):  # facts know, wordings do not matter: a share of 0
        known = rng.random((40, 1)) < 0.5
        chances[f"r{k}"] = rng.random((40, 5)) < np.where(known, 0.9, 0.1)
    table = effects.variance_shares(marked(chances), n_boot=200).set_index(["relation", "source"])
    overall = table.loc["all"]
    # Of the variance 0.25, facts have 0.4^2 = 0.16 and each answer has 0.9 * 0.1 = 0.09.
    assert overall.loc["fact", "share"] == pytest.approx(0.64, abs=0.02)
    assert overall.loc["interaction", "share"] == pytest.approx(0.36, abs=0.02)
    assert overall.loc["wording", "share"] == pytest.approx(0, abs=0.01)
    assert overall["n"].eq(40).all()
    wording = table.xs("wording", level="source").drop("all")
    assert wording["n"].eq(40).all()
    assert ((wording["low"] <= 0) & (wording["high"] >= 0)).mean() > 0.8
    assert (wording["p"] < 0.05).mean() < 0.15  # the null holds


def test_intervals_over_facts_hold_the_true_share_of_wordings() -> None:
    rng, chances = np.random.default_rng(2), np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    tables = {f"r{k}": rng.random((30, 5)) < chances for k in range(100)}
    table = effects.variance_shares(marked(tables), n_boot=200)
    shares = table[(table["source"] == "wording") & (table["relation"] != "all")]
    # Wordings have the variance 0.1 (n - 1), answers the mean of p (1 - p), 0.17.
    true = 0.1 / 0.27
    assert shares["share"].mean() == pytest.approx(true, abs=0.02)
    assert 0.88 <= ((shares["low"] <= true) & (true <= shares["high"])).mean() <= 0.99


def test_wordings_that_decide_have_all_of_the_variance_and_a_small_p() -> None:
    decides = np.tile([1.0, 0.0, 0.0, 1.0], (12, 1))
    table = effects.variance_shares(marked({"a": decides, "b": np.ones((3, 4))}), n_boot=99)
    assert set(table["relation"]) == {"a", "all"}  # b does not vary
    by = table[table["relation"] == "a"].set_index("source")
    assert by["share"].tolist() == pytest.approx([0, 1, 0])
    assert by["squares"].tolist() == pytest.approx([0, 1, 0])
    assert by.loc["wording", "p"] == pytest.approx(1 / 100)
    assert by.drop("wording")["p"].isna().all()


def test_facts_that_lack_a_wording_and_lone_facts_are_left_out() -> None:
    rows = marked({"a": BY_HAND, "b": BY_HAND[:1]})
    short = rows.drop(index=rows.index[2])  # a/0 in wording 2
    table = effects.variance_shares(short, n_boot=20)
    assert table.groupby("relation")["n"].first().to_dict() == {"a": 2, "all": 1}
    assert effects.variance_shares(rows[rows["relation"] == "b"], n_boot=20).empty


def test_what_an_answer_says_beyond_its_question() -> None:
    asked = pd.DataFrame({
        "question": ["What is the capital of Japan?", "Who wrote Dune?", "Who wrote Dune?"],
        "text": ["The capital of Japan is Tokyo", "dune, wrote", "Frank Herbert"],
    }, index=[5, 6, 7])  # fmt: skip
    told = effects.without_question(asked)["text"]
    assert told.to_dict() == {5: "tokyo", 6: "", 7: "frank herbert"}


def test_the_gallery_shows_what_is_typical_of_each_kind() -> None:
    scons = [0.9, 0.8, 0.7, 0.65, 0.4, 0.3, 0.2, 0.1]
    right = [True, True, True, False, True, False, False, False]
    groups = pd.DataFrame(
        {"model": "m", "group_id": [*"abcdefgh"], "scons": scons, "correct": right}
    )
    table = effects.gallery(groups)
    # The median is 0.525; medians of the kinds are 0.8 (a, b, c), 0.65, 0.4 and 0.2 (f, g, h).
    assert table["group_id"].tolist() == ["b", "d", "e", "g"]
    assert table["n"].tolist() == [3, 1, 1, 3]
    assert table["consistent"].tolist() == [True, True, False, False]
    assert effects.gallery(groups.assign(correct=True))["group_id"].tolist() == ["b", "f"]


def test_pairs_of_answers_have_their_numbers() -> None:
    sets = pd.DataFrame({"model": ["m"], "group_id": ["a"], "texts": [["x", "", "y"]]})
    table = effects.answer_pairs(sets)
    assert table[["first", "second"]].values.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert table[["answer_1", "answer_2"]].values.tolist() == [["x", ""], ["x", "y"], ["", "y"]]
