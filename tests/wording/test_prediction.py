"""Splits, predictions that only the training rows determine, and their scores by hand."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from factrobust.wording import prediction
from factrobust.wording.regression import FULL, design, fit_logistic, predict


@pytest.fixture(scope="module")
def groups(simulate):
    return simulate(200)


def of_full(groups, repeats):
    """Predictions of the paper's own set of predictors."""
    rows = prediction.ladder(groups, {"full": FULL}, repeats=repeats)
    return rows[rows["predictor"] == "full"].reset_index(drop=True)


def test_folds_are_stratified_and_drawn_by_the_seed(groups):
    folds = prediction.folds(groups, 7)
    assert np.bincount(folds).tolist() == [40] * 5
    counts = groups.groupby(["relation", "correct", folds]).size().unstack()
    assert (counts.max(axis=1) - counts.min(axis=1)).max() <= 1
    # They depend on questions and seed only.
    order = np.random.default_rng(0).permutation(len(groups))
    again = prediction.folds(groups.iloc[order], 7)
    assert again.tolist() == folds[order].tolist()
    assert prediction.folds(groups, 8).tolist() != folds.tolist()


def test_each_question_is_predicted_once_a_repeat_by_the_others(groups):
    """Nothing leaks: the probabilities are those of a fit on a table without the held-out ones."""
    made = of_full(groups, repeats=2)
    folds = made.pivot(index="group_id", columns="repeat", values="fold")
    assert folds.shape == (200, 2)
    assert (folds[0] != folds[1]).any()
    one = made.query("repeat == 1 and fold == 2")
    held = groups["group_id"].isin(one["group_id"])
    fitted = fit_logistic(design(groups[~held]), groups["correct"][~held])
    expected = predict(fitted, design(groups[held]))
    assert_allclose(one["probability"], expected, rtol=1e-6)


def test_a_relation_in_the_test_rows_only_is_not_predicted(groups):
    is_new = groups["group_id"] == "q0"
    table = groups.assign(relation=groups["relation"].mask(is_new, "z"))
    rows = of_full(table, repeats=1)
    assert rows.loc[rows["probability"].isna(), "group_id"].tolist() == ["q0"]
    scored = prediction.compare_predictors(rows, n_boot=50)
    assert scored["n"].eq(199).all()
    assert scored["n_missing"].eq(1).all()


def test_the_relation_alone_by_hand():
    """One answer with the overall share, 1/2, is added to 2 of 3, 0 of 1 and 0 of 0."""
    train = pd.DataFrame({"relation": [*"aaab"], "correct": [True, True, False, False]})
    test = pd.DataFrame({"relation": [*"abz"]})
    assert_allclose(prediction.relation_share(train, test), [2.5 / 4, 0.5 / 2, 0.5])


def test_the_dull_baselines_know_the_training_rows_alone(groups):
    rows = prediction.ladder(groups, {}, repeats=1)
    for (name, _), part in rows.groupby(["predictor", "fold"]):
        train = groups[~groups["group_id"].isin(part["group_id"])]
        expected = train["correct"].mean()
        if name == prediction.RELATION:
            expected = prediction.relation_share(train, part)
        assert_allclose(part["probability"], expected)


def scores(rows):
    """One predictor's scores, of relation, correct and score."""
    names = [f"q{i}" for i in range(len(rows))]
    return rows.assign(model="m", predictor="x", group_id=names)


def found(table, *names, n_boot=200):
    """low, mean and high of measures of the predictor x."""
    rows = prediction.compare_predictors(table, value="score", n_boot=n_boot).set_index("measure")
    return rows.loc[[*names], ["low", "mean", "high"]].to_numpy().tolist()


ANSWER = st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 4))


@settings(deadline=None)
@given(st.lists(ANSWER, min_size=1, max_size=25))
def test_auc_within_relations_against_every_pair(rows):
    table = pd.DataFrame(rows, columns=["relation", "correct", "score"])
    pairs = table[table["correct"]].merge(table[~table["correct"]], how="cross")
    lead = pairs["score_x"] - pairs["score_y"]
    won = (np.sign(lead.astype(float)) + 1) / 2
    is_within = pairs["relation_x"] == pairs["relation_y"]
    [[_, auc, _], [_, within, _]] = found(scores(table), "auc", "auc_within", n_boot=50)
    assert_allclose([auc, within], [won.mean(), won[is_within].mean()])


def test_only_pairs_of_one_fold_of_one_repeat_count():
    """There each right answer is above each wrong one; but a fit shifts all its values."""
    table = pd.DataFrame(product((0, 1), (0, 1), (1, 0)), columns=["repeat", "fold", "correct"])
    shift = 0.5 * table["fold"] + 0.4 * table["repeat"]
    table = scores(table.assign(relation="a", score=shift + 0.2 * table["correct"]))
    table["group_id"] = [*"abcd"] * 2
    [[_, auc, _], [_, within, _]] = found(table, "auc", "auc_within")
    assert auc == within == 1
    [[_, over_folds, _]] = found(table.drop(columns="fold"), "auc")
    assert over_folds < 1


def test_comparison_by_hand():
    """Relation a by itself is all right, b all wrong: those are the resamples that draw one
    twice."""
    table = frame("""
        relation  correct  probability
        a         1        0.9
        a         0        0.2
        b         1        0.4
        b         0        0.6
    """)
    base = table.assign(probability=0.5)
    both = pd.concat([scores(base).assign(predictor="relation alone"), scores(table)])
    # The Brier score is (0.01 + 0.04 + 0.36 + 0.36) / 4.
    expected = """
        predictor       measure     mean    difference  difference_low  difference_high
        relation alone  accuracy    0.5     0           0               0
        relation alone  auc         0.5     0           0               0
        relation alone  auc_within  0.5     0           0               0
        relation alone  brier       0.25    0           0               0
        x               accuracy    0.5     0           -0.5            0.5
        x               auc         0.75    0.25        -0.5            0.5
        x               auc_within  0.5     0           -0.5            0.5
        x               brier       0.1925  -0.0575     -0.225          0.11
    """
    made = prediction.compare_predictors(both, n_boot=200)
    assert_rows(made.sort_values(["predictor", "measure"]), expected)
    assert (made[["n", "relations", "n_missing"]] == [4, 2, 0]).all(axis=None)


def test_comparison_leaves_out_what_one_predictor_lacks():
    table = frame("""
        relation  correct  score
        a         1        0.9
        a         0        0.2
        a         0        0.5
    """)
    lacking = table.assign(score=[0.9, 0.2, np.nan])
    both = pd.concat([scores(table), scores(lacking).assign(predictor="y")])
    made = prediction.compare_predictors(both, value="score", reference="y", n_boot=50)
    assert_rows(
        made,
        """
        predictor  measure     difference  n  n_missing
        x          auc         0           2  1
        x          auc_within  0           2  1
        y          auc         0           2  1
        y          auc_within  0           2  1
        """,
    )


def test_a_relation_drawn_twice_makes_no_pairs_with_its_copy():
    """Two relations: a wins 1 of 2 pairs inside, b its only one, and across 3 of 4 are won."""
    table = scores(
        frame("""
            relation  correct  score
            a         1        0.5
            a         0        0.4
            a         0        0.6
            b         1        0.9
            b         0        0.1
        """)
    )
    # Twice a: 2 of 4 pairs, not 4 of 8. Twice b: all. Once each: 1 + 1 + (1 + 2) of 2 + 1 + 1 + 2.
    bounds = found(table, "auc", "auc_within")
    assert_allclose(bounds, [[0.5, 5 / 6, 1], [0.5, 2 / 3, 1]])
    # Twice a and once b: 2 + 1 + 2 * 3 of 4 + 1 + 2 * 3.
    above, below = prediction._sums(table, "score")["auc"]
    drawn = np.array([[1.0, 1], [2, 0], [2, 1]])
    won = prediction._drawn(drawn, above) / prediction._drawn(drawn, below)
    assert_allclose(won, [5 / 6, 1 / 2, 9 / 11])


def test_what_is_judged_is_the_brier_score_of_a_fold_and_the_auc_over_all_pairs(simulate):
    """The AUC of relation + sum is that of the sum; the relation alone has 1/2. A relation that is
    never right is left out, and so is an answer without a token."""
    groups = simulate(240).rename(columns={"log_popularity": "logprob_sum"})
    groups["scons_bare"] = groups["scons"]
    groups["correct"] &= groups["relation"] != "c"
    groups.loc[0, "logprob_sum"] = np.nan
    made = prediction.judged(groups, prediction.CHEAP, reference=prediction.SUM, n_boot=50)
    assert made["n"].eq(159).all()
    assert made["relations"].eq(2).all()
    means = made.set_index(["measure", "predictor"])["mean"]
    used = groups[groups["relation"] != "c"].dropna()
    [[_, expected, _]] = found(scores(used.assign(score=used["logprob_sum"])), "auc_within")
    assert means["auc_within", prediction.SUM] == pytest.approx(expected, abs=0.005)
    assert means["auc_within", prediction.RELATION] == 0.5
    rows = prediction.ladder(used, {"one": prediction.CHEAP[prediction.SUM]})
    of_one = rows[rows["predictor"] == "one"]
    over_folds = of_one.drop(columns="fold").assign(predictor="x", score=of_one["evidence"])
    [[_, exact, _]] = found(over_folds, "auc_within")
    assert means["auc_within", prediction.SUM] == pytest.approx(exact)
    brier = np.mean((of_one["probability"] - of_one["correct"]) ** 2)
    assert means["brier", prediction.SUM] == pytest.approx(brier)
