"""Causes, pairs that are won, and a fit, by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from factrobust.context import attribution

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


def law(n: int) -> pd.DataFrame:
    """Cases that come from the context with probability expit(2 x - 2); y says nothing."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(0, 2, size=n), "y": rng.normal(size=n)})
    follows = rng.random(n) < expit(2 * table["x"] - 2)
    return table.assign(from_context=follows, base_id=[f"r{i % 10}" for i in range(n)])


def test_two_features_recover_a_law():
    table = law(4000)
    told = attribution.told_by_two(table, ["x", "y"], n_folds=2)
    assert np.abs(told - expit(2 * table["x"] - 2)).max() < 0.1


def test_no_relation_is_told_by_a_fit_on_itself():
    table = law(200)
    turned = table["from_context"] ^ (table["base_id"] == "r0")
    one = attribution.told_by_two(table, ["x", "y"], k=2, n_folds=1)
    again = attribution.told_by_two(table.assign(from_context=turned), ["x", "y"], k=2, n_folds=1)
    same = pd.Series(one == again).groupby(table["base_id"]).all()
    assert same["r0"]
    assert same.sum() == 5  # its fold
    mean = attribution.told_by_two(table, ["x", "y"], k=2, n_folds=3)
    assert not np.allclose(mean, one)  # over other folds
