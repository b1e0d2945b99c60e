"""Causes, pairs that are won, and a fit, by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from factrobust.context import attribution
from factrobust.tables import TooFewError

SLOTS = [(["Lima"], ["Oslo"], ["Rome"]), (["Bonn"], ["Bern"], ["Baku"])]
SENTENCE = "The capital of Kenya is Lima. The capital of Germany is Bonn"


def test_causes_by_hand():
    # Memory, the answer, those after the two exchanges and the placebo; cause, moved_slots,
    # moved_placebo, stated, defined.
    rows = [
        ("Nairobi", "Lima", "Oslo", "Rome", "Lima", "context", 1, 0, True, True),
        ("Lima", "Lima", "Oslo", "Rome", None, "both", 1, None, True, False),  # memory agrees
        ("Nairobi", "Lima", "Bern", "Rome", "Quito", "slots", 1, 1, True, True),
        ("Nairobi", "Lima", "Oslo", "Lima", None, "half", 1, None, True, True),
        ("Nairobi", "Nairobi", "Nairobi", "Nairobi", None, "memory", 0, None, False, True),
        ("Lima", "Lima", "Lima", "Lima", None, "memory", 0, None, True, False),
        ("Nairobi", "Kisumu", "Kisumu", "Kisumu", None, "moved", 0, None, False, True),
        ("Nairobi", "", "Oslo", "Rome", None, "none", 1, None, False, False),  # nothing is said
    ]
    texts = ["parametric", "contextual", "text_1", "text_2", "text_placebo"]
    found = ["cause", "moved_slots", "moved_placebo", "stated", "defined"]
    table = pd.DataFrame(rows, columns=[*texts, *found])
    placebo = table["text_placebo"].fillna("")
    asked = table[texts].assign(
        text_placebo=placebo, placebo=placebo, slots=[SLOTS] * len(rows), sentence=SENTENCE
    )
    made = attribution.caused(asked)
    pd.testing.assert_frame_equal(made[found], table[found], check_dtype=False)
    assert made["from_context"].tolist() == [True] * 3 + [False] * 5


def test_a_context_states_what_stands_there_side_by_side():
    context = "Lima, as is known, lies on the coast. Nairobi is in Kenya"
    answers = ["Lima", "the coast of Kenya", "nairobi", "", "Nairob"]
    found = attribution.by_words(["x"] * 5, answers, [context] * 5)
    assert found["stated"].tolist() == [True, False, True, False, False]
    assert found["says"].tolist() == [True, True, True, False, True]


def test_scores_by_hand():
    answers = pd.DataFrame({"p0": [2.0], "p4": [5.0], "logprobs_p4": [[-1.0, -2.0, -3.0]]})
    scores = attribution.scored(answers)[[*attribution.SCORES, "tokens"]].iloc[0].tolist()
    assert scores == pytest.approx([-np.log(5), np.log(2), -3, 3])


def test_pairs_within_by_hand():
    rows = [  # relation, tokens, from_context, score
        ("a", 1, True, 3.0),
        ("a", 1, False, 1.0),
        ("a", 1, False, 3.0),
        ("a", 2, True, 9.0),
        ("b", 2, False, 5.0),
        ("b", 2, True, 2.0),
        ("b", 2, True, np.nan),
        ("c", 1, True, 1.0),
    ]
    names = ["base_id", "tokens", "from_context", "x"]
    table = pd.DataFrame(rows, columns=names).assign(model="m")
    found = ["base_id", "won", "pairs"]
    # a: 3 > 1 and 3 = 3, and 9 > 1 and 9 > 3; b: 2 < 5; c has no partner.
    within = attribution.won_pairs(table, ["x"])[found].to_numpy().tolist()
    assert within == [["a", 3.5, 4], ["b", 0, 1]]
    alike = attribution.won_pairs(table, ["x"], ["tokens"])[found].to_numpy().tolist()
    assert alike == [["a", 1.5, 2], ["b", 0, 1]]


def test_gains_by_hand():
    """Of the two pairs of relation a, x wins both and y one; of the one of b, x none and y it."""
    rows = [  # relation, from_context, x, y
        ("a", True, 3.0, 1.0),
        ("a", False, 1.0, 0.0),
        ("a", False, 2.0, 5.0),
        ("b", True, 0.0, 1.0),
        ("b", False, 1.0, 0.0),
    ]
    table = pd.DataFrame(rows, columns=["base_id", "from_context", "x", "y"]).assign(model="m")
    won = attribution.won_pairs(table, ["x", "y"])
    found = attribution.gains(won, ["x"], "y")
    columns = ["base_id", "score", "pairs", "gained"]
    assert found[columns].to_numpy().tolist() == [
        ["a", "x minus y", 2, 1],
        ["b", "x minus y", 1, -1],
    ]
    alone = attribution.won_pairs(table[table["from_context"]], ["x", "y"])
    with pytest.raises(TooFewError, match=r"^In no relation does one answer follow its passage"):
        attribution.gains(alone, ["x"], "y")


def law(n: int, model: str = "m") -> pd.DataFrame:
    """Cases that come from the context with probability expit(2 x - 2); y says nothing."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, size=n)
    follows = rng.random(n) < expit(2 * x - 2)
    relations = [f"r{i % 10}" for i in range(n)]
    table = pd.DataFrame({"model": model, "base_id": relations, "x": x, "from_context": follows})
    return table.assign(y=rng.normal(size=n))


def test_two_features_recover_a_law():
    table = law(4000)
    told = attribution.told_by(table, ["x", "y"], n_folds=2)
    truth = expit(2 * table["x"] - 2)
    assert np.abs(told - truth).max() < 0.1


def unchanged(table: pd.DataFrame, rows: pd.Series, **how: bool) -> pd.Series:
    """Which rows are told the same if the outcome of some `rows` is another."""
    turned = table.assign(from_context=table["from_context"] ^ rows)
    told = [attribution.told_by(t, ["x", "y"], k=2, n_folds=1, **how) for t in (table, turned)]
    return pd.Series(told[0] == told[1], table.index)


def test_no_relation_is_told_by_a_fit_on_itself():
    table = law(200)
    same = unchanged(table, table["base_id"] == "r0").groupby(table["base_id"]).all()
    assert same["r0"]
    assert same.sum() == 5  # its fold
    one, three = (attribution.told_by(table, ["x"], k=2, n_folds=n) for n in (1, 3))
    assert not np.allclose(one, three)  # over other folds


def test_no_model_is_told_by_a_fit_on_itself_nor_on_its_relation_in_others():
    table = pd.concat([law(200), law(100, "other")], ignore_index=True)
    is_own = table["model"] == "m"
    assert unchanged(table, is_own, of_others=True)[is_own].all()
    of_r0 = unchanged(table, ~is_own & (table["base_id"] == "r0"), of_others=True)[is_own]
    assert of_r0[table["base_id"] == "r0"].all()
    assert of_r0.sum() == 100  # a fold of two
