"""Causes, pairs that are won, and a fit, by hand."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from numpy.testing import assert_allclose
from scipy.special import expit

from factrobust.context import attribution
from factrobust.tables import TooFewError

SLOTS = [(["Lima"], ["Oslo"], ["Rome"]), (["Bonn"], ["Bern"], ["Baku"])]
SENTENCE = "The capital of Kenya is Lima. The capital of Germany is Bonn"
# Memory, the answer, those after both exchanges and after that of the placebo: - says nothing.
ANSWERS = """
    parametric  contextual  text_1   text_2   text_placebo
    Nairobi     Lima        Oslo     Rome     Lima
    Lima        Lima        Oslo     Rome     -
    Nairobi     Lima        Bern     Rome     Quito
    Nairobi     Lima        Oslo     Lima     -
    Nairobi     Nairobi     Nairobi  Nairobi  -
    Lima        Lima        Lima     Lima     -
    Nairobi     Kisumu      Kisumu   Kisumu   -
    Nairobi     -           Oslo     Rome     -
"""
# In the second and the sixth row memory agrees.
CAUSES = """
    cause    from_context  moved_slots  moved_placebo  stated  defined
    context  True          1            0              True    True
    both     True          1            NaN            True    False
    slots    True          1            1              True    True
    half     False         1            NaN            True    True
    memory   False         0            NaN            False   True
    memory   False         0            NaN            True    False
    moved    False         0            NaN            False   True
    none     False         1            NaN            False   False
"""


def test_causes_by_hand():
    answers = frame(ANSWERS).replace("-", "")
    slots = [SLOTS] * len(answers)
    placebo = answers["text_placebo"]
    made = attribution.caused(answers.assign(placebo=placebo, slots=slots, sentence=SENTENCE))
    assert_rows(made, CAUSES)


def test_a_context_states_what_stands_there_side_by_side():
    context = "Lima, as is known, lies on the coast. Nairobi is in Kenya"
    answers = ["Lima", "the coast of Kenya", "nairobi", "", "Nairob"]
    found = attribution.by_words(["x"] * 5, answers, [context] * 5)
    assert found["stated"].tolist() == [True, False, True, False, False]
    assert found["says"].tolist() == [True, True, True, False, True]


def test_scores_by_hand():
    answers = pd.DataFrame({"p0": [2.0], "p4": [5.0], "logprobs_p4": [[-1.0, -2.0, -3.0]]})
    scores = attribution.with_scores(answers)
    columns = ["minus_log_p4", "log_p0", "minus_tokens", "tokens"]
    assert_allclose(scores[columns], [[-np.log(5), np.log(2), -3, 3]])


def test_pairs_within_by_hand():
    table = frame("""
        base_id  tokens  from_context  x
        a        1       True          3
        a        1       False         1
        a        1       False         3
        a        2       True          9
        b        2       False         5
        b        2       True          2
        b        2       True          NaN
        c        1       True          1
    """).assign(model="m")
    # a: 3 > 1 and 3 = 3, and 9 > 1 and 9 > 3; b: 2 < 5; c has no partner.
    within = """
        base_id  won  pairs
        a        3.5  4
        b        0    1
    """
    alike = """
        base_id  won  pairs
        a        1.5  2
        b        0    1
    """
    assert_rows(attribution.won_pairs(table, ["x"]), within)
    assert_rows(attribution.won_pairs(table, ["x"], ["tokens"]), alike)


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


def law(n, model="m"):
    """Cases that come from the context with probability expit(2 x - 2); y says nothing."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, size=n)
    follows = rng.random(n) < expit(2 * x - 2)
    relations = [f"r{i % 10}" for i in range(n)]
    table = pd.DataFrame({"model": model, "base_id": relations, "x": x, "from_context": follows})
    return table.assign(y=rng.normal(size=n))


def test_two_features_recover_a_law():
    table = law(4000)
    probability = attribution.told_by(table, ["x", "y"], n_folds=2)
    truth = expit(2 * table["x"] - 2)
    assert_allclose(probability, truth, atol=0.1)


def unchanged(table, rows, of_others=False):
    """Which rows are told the same if the outcome of some `rows` is another."""
    turned = table.assign(from_context=table["from_context"] ^ rows)
    found = []
    for outcomes in (table, turned):
        probability = attribution.told_by(outcomes, ["x", "y"], of_others=of_others, k=2, n_folds=1)
        found.append(probability)
    return pd.Series(found[0] == found[1], table.index)


def test_no_relation_is_told_by_a_fit_on_itself():
    table = law(200)
    same = unchanged(table, table["base_id"] == "r0")
    relations = same.groupby(table["base_id"]).all()
    assert relations["r0"]
    assert relations.sum() == 5  # its fold
    one = attribution.told_by(table, ["x"], k=2, n_folds=1)
    three = attribution.told_by(table, ["x"], k=2, n_folds=3)
    assert not np.allclose(one, three)  # over other folds


def test_no_model_is_told_by_a_fit_on_itself_nor_on_its_relation_in_others():
    table = pd.concat([law(200), law(100, "other")], ignore_index=True)
    is_own = table["model"] == "m"
    is_r0 = table["base_id"] == "r0"
    assert unchanged(table, is_own, of_others=True)[is_own].all()
    same = unchanged(table, ~is_own & is_r0, of_others=True)
    assert same[is_own & is_r0].all()
    assert same[is_own].sum() == 100  # a fold of two
