"""Splits, predictions that only the training rows determine, and their scores by hand."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.wording import prediction
from factrobust.wording.regression import FULL, design, fit, predict

SETS = {"full": FULL}


@pytest.fixture(scope="module")
def groups(simulate):
    return simulate(200)


@pytest.fixture(scope="module")
def made(groups):
    rows = prediction.ladder(groups, SETS, repeats=2)
    return rows[rows["predictor"] == "full"].reset_index(drop=True)


def test_folds_are_stratified_and_drawn_by_the_seed(groups):
    fold = pd.Series(
        prediction.folds(groups, 7),
        index=groups["group_id"],
    )
    assert fold.value_counts().tolist() == [40] * 5
    cells = [
        groups["relation"],
        groups["correct"],
        fold.to_numpy(),
    ]
    counts = groups.groupby(cells).size().unstack().fillna(0)
    assert (counts.max(axis=1) - counts.min(axis=1)).max() <= 1
    # They depend on questions and seed only.
    shuffled = groups.sample(frac=1, random_state=0)
    again = pd.Series(
        prediction.folds(shuffled, 7),
        index=shuffled["group_id"],
    )
    assert again[fold.index].tolist() == fold.tolist()
    assert prediction.folds(groups, 8).tolist() != fold.tolist()


def test_each_question_is_predicted_once_a_repeat_by_the_others(groups, made):
    assert len(made) == 2 * 200
    assert not made.duplicated(["repeat", "group_id"]).any()
    one = made[(made["repeat"] == 1) & (made["fold"] == 2)]
    held = groups["group_id"].isin(one["group_id"])
    fitted = fit(
        design(groups[~held]),
        groups["correct"][~held],
    )
    expected = predict(fitted, design(groups[held]))
    assert one["probability"].tolist() == pytest.approx(expected.tolist())
    folds = made.pivot(index="group_id", columns="repeat", values="fold")
    assert (folds[0] != folds[1]).any()


def test_nothing_leaks_from_held_out_questions(groups, made):
    """One becomes an outlier: the others of its fold are predicted as before."""
    outlier = groups["group_id"] == "q0"
    spoiled = groups.assign(cert=groups["cert"].mask(outlier, 1e6))
    rows = prediction.ladder(spoiled, SETS, repeats=1)
    rows = rows[rows["predictor"] == "full"].reset_index(drop=True)
    plain = made[made["repeat"] == 0]
    is_beside = plain["fold"] == plain.set_index("group_id")["fold"]["q0"]
    is_other = plain["group_id"] != "q0"
    same = np.isclose(
        rows["probability"],
        plain["probability"],
        atol=1e-9,
    )
    assert same[is_beside & is_other].all()
    assert not same[~is_beside].all()


def test_a_relation_in_the_test_rows_only_is_not_predicted(groups):
    table = groups.assign(relation=groups["relation"].mask(groups["group_id"] == "q0", "z"))
    rows = prediction.ladder(table, SETS, repeats=1)
    new = rows[rows["probability"].isna()]
    assert set(new["group_id"]) == {"q0"}
    assert set(new["predictor"]) == {"majority", "full"}
    scored = prediction.compared(
        rows[rows["predictor"] == "full"],
        n_boot=50,
    )
    assert scored[["n", "n_missing"]].drop_duplicates().values.tolist() == [[199, 1]]


def test_the_relation_alone_by_hand():
    """One answer with the overall share, 1/2, is added to 2 of 3, 0 of 1 and 0 of 0."""
    train = pd.DataFrame({"relation": [*"aaab"], "correct": [True, True, False, False]})
    test = pd.DataFrame({"relation": [*"abz"]})
    shares = prediction.relation_share(train, test)
    assert shares.tolist() == pytest.approx([2.5 / 4, 0.5 / 2, 0.5])


def test_the_dull_baselines_know_the_training_rows_alone(groups):
    rows = prediction.ladder(groups, {}, repeats=1)
    for (name, _), part in rows.groupby(["predictor", "fold"]):
        train = groups[~groups["group_id"].isin(part["group_id"])]
        expected = np.full(len(part), train["correct"].mean())
        if name == prediction.RELATION:
            expected = prediction.relation_share(train, part)
        assert part["probability"].to_numpy() == pytest.approx(expected)


def scores(rows, **columns):
    """One predictor's scores, from (relation, correct, score)."""
    frame = pd.DataFrame(rows, columns=["relation", "correct", "score"])
    about = {
        "model": "m",
        "predictor": "x",
        "group_id": [f"q{i}" for i in range(len(frame))],
    }
    return frame.assign(**about | columns)


def found(table, *names, **options):
    """The mean and bounds of measures of the predictor x."""
    rows = prediction.compared(
        table,
        **{"value": "score", "n_boot": 200} | options,
    )
    rows = rows[rows["predictor"] == "x"].set_index("measure")
    return rows.loc[[*names], ["low", "mean", "high"]].to_numpy().tolist()


ANSWER = st.tuples(
    st.sampled_from("abc"),
    st.booleans(),
    st.integers(0, 4),
)


@settings(deadline=None)
@given(st.lists(ANSWER, min_size=1, max_size=25))
def test_auc_within_relations_against_every_pair(rows):
    pairs = {"auc": [], "auc_within": []}
    for (a, right, x), (b, wrong, z) in product(rows, rows):
        if right and not wrong:
            won = (x > z) + (x == z) / 2
            pairs["auc"].append(won)
            if a == b:
                pairs["auc_within"].append(won)
    made = found(scores(rows), *pairs, n_boot=50)
    for won, (_, mean, _) in zip(pairs.values(), made, strict=True):
        assert mean == pytest.approx(
            np.mean(won) if won else np.nan,
            nan_ok=True,
        )


def test_only_pairs_of_one_fold_of_one_repeat_count():
    """There each right answer is above each wrong one; but a fit shifts all its values."""
    cells = [*product((0, 1), (0, 1), (1, 0, 1, 0))]
    rows = [("a", right, 0.5 * fold + 0.4 * repeat + 0.2 * right) for repeat, fold, right in cells]
    table = scores(
        rows,
        repeat=[repeat for repeat, _, _ in cells],
        fold=[fold for _, fold, _ in cells],
        group_id=[f"q{i % 8}" for i in range(16)],
    )
    assert [mean for _, mean, _ in found(table, "auc", "auc_within")] == [
        1,
        1,
    ]
    assert found(table.drop(columns="fold"), "auc")[0][1] < 1


def test_comparison_by_hand():
    """Relation a by itself is all right, b all wrong: those are the resamples that draw one
    twice."""
    rows = [
        ("a", True, 0.9),
        ("a", False, 0.2),
        ("b", True, 0.4),
        ("b", False, 0.6),
    ]
    table = scores(rows).rename(columns={"score": "probability"})
    base = table.assign(predictor="relation alone", probability=0.5)
    made = prediction.compared(pd.concat([base, table]), n_boot=200)
    made = made.set_index(["predictor", "measure"])
    brier = (0.01 + 0.04 + 0.36 + 0.36) / 4
    expected = {
        "accuracy": (0.5, 0.5, 0, -0.5, 0.5),
        "brier": (0.25, brier, brier - 0.25, -0.225, 0.11),
        "auc": (0.5, 0.75, 0.25, -0.5, 0.5),
        "auc_within": (0.5, 0.5, 0, -0.5, 0.5),
    }
    apart = ["difference", "difference_low", "difference_high"]
    for measure, numbers in expected.items():
        alone = made.loc[("relation alone", measure), "mean"]
        row = made.loc[("x", measure)]
        assert [alone, row["mean"], *row[apart]] == pytest.approx(numbers)
    assert (made[["n", "relations", "n_missing"]] == [4, 2, 0]).all(axis=None)


def test_comparison_leaves_out_what_one_predictor_lacks():
    rows = [
        ("a", 1, 0.9),
        ("a", 0, 0.2),
        ("a", 0, 0.5),
    ]
    lacking = scores(
        [*rows[:2], ("a", 0, np.nan)],
        predictor="y",
    )
    made = prediction.compared(
        pd.concat([scores(rows), lacking]),
        value="score",
        reference="y",
        n_boot=50,
    )
    assert (made[["n", "n_missing"]] == [2, 1]).all(axis=None)
    assert made["measure"].unique().tolist() == ["auc", "auc_within"]
    assert (made["difference"] == 0).all()


def test_a_relation_drawn_twice_makes_no_pairs_with_its_copy():
    """Two relations: a wins 1 of 2 pairs inside, b its only one, and across 3 of 4 are won."""
    rows = [
        ("a", 1, 0.5),
        ("a", 0, 0.4),
        ("a", 0, 0.6),
        ("b", 1, 0.9),
        ("b", 0, 0.1),
    ]
    # Twice a: 2 of 4 pairs, not 4 of 8. Twice b: all. Once each: 1 + 1 + (1 + 2) of 2 + 1 + 1 + 2.
    bounds = [*found(scores(rows), "auc", "auc_within")]
    assert bounds == [
        pytest.approx([0.5, 5 / 6, 1]),
        pytest.approx([0.5, 2 / 3, 1]),
    ]
    # Twice a and once b: 2 + 1 + 2 * 3 of 4 + 1 + 2 * 3.
    above, below = prediction._sums(scores(rows), "score")["auc"]
    drawn = np.array([[1.0, 1], [2, 0], [2, 1]])
    won = prediction._drawn(drawn, above) / prediction._drawn(drawn, below)
    assert won.tolist() == pytest.approx([5 / 6, 1 / 2, 9 / 11])


def test_what_is_judged_is_the_brier_score_of_a_fold_and_the_auc_over_all_pairs(simulate):
    """The AUC of relation + sum is that of the sum; the relation alone has 1/2. A relation that is
    never right is left out, and so is an answer without a token."""
    groups = simulate(240).rename(columns={"log_popularity": "logprob_sum"})
    groups["scons_bare"] = groups["scons"]
    groups["correct"] &= groups["relation"] != "c"
    groups.loc[0, "logprob_sum"] = np.nan
    made = prediction.judged(
        groups,
        prediction.CHEAP,
        reference=prediction.SUM,
        n_boot=50,
    )
    assert (made[["n", "relations"]] == [159, 2]).all(axis=None)
    made = made.set_index(["measure", "predictor"])["mean"]
    told = groups[groups["relation"] != "c"].dropna()
    [[_, auc, _]] = found(
        told.assign(predictor="x", score=told["logprob_sum"]),
        "auc_within",
    )
    assert made["auc_within", prediction.SUM] == pytest.approx(
        auc,
        abs=0.005,
    )
    assert made["auc_within", prediction.RELATION] == 0.5
    assert made["auc_within", prediction.SUM_AND_BARE] > made["auc_within", prediction.SUM]
    rows = prediction.ladder(told, {"one": prediction.CHEAP[prediction.SUM]})
    rows = rows[rows["predictor"] == "one"]
    brier = ((rows["probability"] - rows["correct"]) ** 2).mean()
    assert made["brier", prediction.SUM] == pytest.approx(brier)
