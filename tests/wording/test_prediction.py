"""Splits, predictions that only the training rows determine, and their scores by hand."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.wording import prediction
from factrobust.wording.regression import fit, predict


def test_folds_are_stratified_and_drawn_by_the_seed(simulate) -> None:
    groups = simulate(103, relations="abcde")
    fold = prediction.folds(groups, 5)
    assert sorted(np.bincount(fold).tolist()) == [20, 20, 21, 21, 21]
    counts = groups.assign(fold=fold).groupby(["relation", "correct", "fold"]).size().unstack()
    counts = counts.reindex(columns=range(5)).fillna(0)
    assert (counts.max(axis=1) - counts.min(axis=1)).max() <= 1
    # They depend on questions and seed only.
    fold = pd.Series(prediction.folds(groups, 4, 7), index=groups["group_id"])
    shuffled = groups.sample(frac=1, random_state=0)
    again = pd.Series(prediction.folds(shuffled, 4, 7), index=shuffled["group_id"])
    assert again[fold.index].tolist() == fold.tolist()
    assert prediction.folds(groups, 4, 8).tolist() != fold.tolist()


def test_a_category_in_the_test_rows_only(simulate) -> None:
    groups = simulate(300)
    table = pd.concat([groups[:1].assign(relation="z"), groups[1:]])
    held = [prediction.folds(table, 5, seed)[0] == 0 for seed in range(20)]
    assert 0 < sum(held) < 20
    made = prediction.cross_validate(table, repeats=1)
    unseen = made[made["probability"].isna()]
    assert unseen["relation"].tolist() == ["z"]
    assert unseen["fit"].tolist() == [prediction.UNSEEN]
    scored = prediction.compared(made.assign(predictor="all"), n_boot=50)
    assert scored[["n", "n_missing"]].drop_duplicates().values.tolist() == [[299, 1]]


def test_cross_validation_predicts_each_question_once_a_repeat(simulate) -> None:
    groups = pd.concat([simulate(150, model="n", seed=1), simulate(150)])
    made = prediction.cross_validate(groups, k=3, repeats=2)
    assert made["model"].unique().tolist() == ["n", "m"]  # in the order in which they come
    assert not made.duplicated(["model", "repeat", "group_id"]).any()
    assert len(made) == 2 * 2 * 150
    assert made["probability"].between(0, 1).all()
    one = made[(made["model"] == "n") & (made["repeat"] == 1) & (made["fold"] == 2)]
    rows = groups[groups["model"] == "n"]
    held = rows["group_id"].isin(one["group_id"])
    expected = predict(fit(rows[~held]), rows[held])
    assert one["probability"].tolist() == pytest.approx(expected.tolist())
    assert one["prior"].unique().tolist() == [rows["correct"][~held].mean()]
    assert (made.groupby(["model", "repeat"])["fold"].nunique() == 3).all()
    first, second = (made[made["repeat"] == r].set_index(["model", "group_id"]) for r in (0, 1))
    assert (first["fold"] != second["fold"].reindex(first.index)).any()


def test_nothing_leaks_from_held_out_questions(simulate) -> None:
    groups = simulate(200)
    plain = prediction.cross_validate(groups, repeats=1)
    fold = plain.set_index("group_id")["fold"]
    # One held-out question becomes an outlier: the others of its fold are predicted as before.
    spoiled = groups.assign(cert=groups["cert"].mask(groups["group_id"] == "a/0", 1e6))
    made = prediction.cross_validate(spoiled, repeats=1)
    same_fold = (plain["fold"] == fold["a/0"]) & (plain["group_id"] != "a/0")
    assert made["probability"][same_fold].tolist() == plain["probability"][same_fold].tolist()
    others = plain["fold"] != fold["a/0"]
    assert (made["probability"][others] != plain["probability"][others]).any()
    assert made["group_id"].tolist() == plain["group_id"].tolist()


def table(correct: list, probability: list, **columns: object) -> pd.DataFrame:
    values = {"model": "m", "group_id": [f"q{i}" for i in range(len(correct))], "prior": 0.5}
    return pd.DataFrame(values | {"correct": correct, "probability": probability} | columns)


def test_the_relation_alone_by_hand() -> None:
    train = pd.DataFrame({"relation": list("aaab"), "correct": [True, True, False, False]})
    test = pd.DataFrame({"relation": list("abz")})
    # One answer with the overall share, 1/2, is added to 2 of 3, 0 of 1 and 0 of 0.
    shares = prediction.relation_share(train, test)
    assert shares.tolist() == pytest.approx([2.5 / 4, 0.5 / 2, 0.5])
    # Each question left out, one by one.
    groups = table([True, True, False, False, True], [0.0] * 5, relation=list("aaabb"))
    made = prediction.cross_validate(groups, ["QCat"], k=5, repeats=1).set_index("group_id")
    # Without itself: a right answer of a leaves 1 of 2 (overall 2 of 4), the wrong one 2 of 2 (3 of 4).
    right = (1 + 0.5) / 3
    wrong = (2 + 0.75) / 3
    expected = [right, right, wrong, (1 + 0.75) / 2, (0 + 0.5) / 2]
    assert made["probability"].sort_index().tolist() == pytest.approx(expected)


def scores(rows: list[tuple], **columns: object) -> pd.DataFrame:
    """One predictor's scores, from (relation, correct, score)."""
    frame = pd.DataFrame(rows, columns=["relation", "correct", "score"])
    names = [f"q{i}" for i in range(len(frame))]
    return frame.assign(**({"model": "m", "group_id": names, "predictor": "x"} | columns))


def areas(table: pd.DataFrame, **options: object) -> pd.Series:
    found = prediction.compared(table, value="score", n_boot=50, **options)
    return found.set_index(["predictor", "measure"])["mean"]


ANSWER = st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 4))


@settings(deadline=None)
@given(st.lists(ANSWER, min_size=1, max_size=25))
def test_auc_within_relations_against_every_pair(rows: list[tuple]) -> None:
    pairs = {"auc": [], "auc_within": []}
    for (a, right, x), (b, wrong, z) in product(rows, rows):
        if right and not wrong:
            pairs["auc"].append((x > z) + (x == z) / 2)
            pairs["auc_within"] += pairs["auc"][-1:] if a == b else []
    found = areas(scores(rows))["x"]
    for name, won in pairs.items():
        assert found[name] == pytest.approx(np.mean(won) if won else np.nan, nan_ok=True)


def test_only_pairs_of_one_fold_of_one_repeat_count() -> None:
    """There each right answer is above each wrong one; but a fit shifts all its values."""
    cells = list(product((0, 1), (0, 1), (1, 0, 1, 0)))
    values = [0.5 * fold + 0.4 * repeat + 0.2 * right for repeat, fold, right in cells]
    table = scores([("a", right, x) for (_, _, right), x in zip(cells, values, strict=True)])
    table = table.assign(repeat=[r for r, _, _ in cells], fold=[f for _, f, _ in cells])
    table["group_id"] = [f"q{i % 8}" for i in range(16)]
    assert areas(table)["x"].tolist() == [1, 1]


def test_comparison_by_hand() -> None:
    relation = list("aabb")
    correct = [True, False, True, False]
    base = table(correct, [0.5] * 4, predictor="relation alone", relation=relation)
    other = table(correct, [0.9, 0.2, 0.4, 0.6], predictor="x", relation=relation)
    found = prediction.compared(pd.concat([base, other]), n_boot=200)
    rows = found.set_index(["predictor", "measure"])
    measures = ["accuracy", "brier", "auc", "auc_within"]
    assert rows.loc["relation alone"].loc[measures, "mean"].tolist() == [0.5, 0.25, 0.5, 0.5]
    brier = (0.01 + 0.04 + 0.36 + 0.36) / 4
    assert rows.loc["x"].loc[measures, "mean"].tolist() == pytest.approx([0.5, brier, 0.75, 0.5])
    apart = rows.loc["x"].loc[measures, "difference"].tolist()
    assert apart == pytest.approx([0, brier - 0.25, 0.25, 0])
    # Relation a by itself is all right, b all wrong: those are the resamples that draw one twice.
    bounds = rows.loc[("x", "accuracy"), ["low", "high", "difference_low", "difference_high"]]
    assert bounds.tolist() == [0, 1, -0.5, 0.5]
    assert rows.loc[("x", "auc_within"), ["low", "high"]].tolist() == [0, 1]
    assert (found[["n", "relations", "n_missing"]] == [4, 2, 0]).all(axis=None)


def test_comparison_leaves_out_what_one_predictor_lacks() -> None:
    rows = [
        ("a", 1, 0.9),
        ("a", 0, 0.2),
        ("a", 0, 0.5),
    ]
    lacking = scores([*rows[:2], ("a", 0, np.nan)], predictor="y")
    both = pd.concat([scores(rows), lacking])
    found = prediction.compared(
        both,
        value="score",
        reference="y",
        n_boot=50,
    )
    assert (found[["n", "n_missing"]] == [2, 1]).all(axis=None)
    assert found["measure"].unique().tolist() == ["auc", "auc_within"]
    assert (found["difference"] == 0).all()
    wide = scores(rows).assign(other=lacking["score"])
    columns = {"x": "score", "y": "other"}
    assert prediction.compared(
        wide,
        value=columns,
        reference="y",
        n_boot=50,
    ).equals(found)


def test_a_relation_drawn_twice_makes_no_pairs_with_its_copy() -> None:
    """Two relations: a wins 1 of 2 pairs inside, b its only one, and across 3 of 4 are won."""
    table = scores(
        [
            ("a", 1, 0.5),
            ("a", 0, 0.4),
            ("a", 0, 0.6),
            ("b", 1, 0.9),
            ("b", 0, 0.1),
        ]
    )
    found = prediction.compared(table, value="score").set_index("measure")
    # Twice a: 2 of 4 pairs, not 4 of 8. Twice b: all. Once each: 1 + 1 + (1 + 2) of 2 + 1 + 1 + 2.
    for measure, mean in (("auc", 5 / 6), ("auc_within", 2 / 3)):
        bounds = found.loc[measure, ["low", "mean", "high"]].tolist()
        assert bounds == pytest.approx([0.5, mean, 1])
    sums = prediction._sums(table, "score")["auc"]
    drawn = np.array(
        [
            [1.0, 1],
            [2, 0],
            [2, 1],
        ]
    )
    # Twice a and once b: 2 + 1 + 2 * 3 of 4 + 1 + 2 * 3.
    assert prediction._fraction(drawn, *sums).tolist() == pytest.approx([5 / 6, 1 / 2, 9 / 11])


def test_the_table_of_predictions_by_what_is_known(simulate) -> None:
    """The AUC of relation + sum is that of the sum, over all pairs; the relation alone has 1/2. A relation
    that is never right is left out, and so are answers without a token."""
    groups = simulate(240, "abcd").rename(columns={"log_popularity": "logprob_sum"})
    groups["scons_bare"] = groups["scons"]
    groups["correct"] &= groups["relation"] != "d"
    groups.loc[0, "logprob_sum"] = np.nan
    made = prediction.judged(groups, prediction.CHEAP, reference=prediction.SUM, n_boot=50)
    found = made.set_index(["measure", "predictor"])["mean"]
    told = groups[groups["relation"] != "d"].dropna()
    alone = prediction.compared(
        told,
        value={"sum": "logprob_sum"},
        reference="sum",
        n_boot=50,
    )
    [auc] = alone.loc[alone["measure"] == "auc_within", "mean"]
    assert found["auc_within", prediction.SUM] == pytest.approx(auc, abs=0.005)
    assert found["auc_within", prediction.RELATION] == 0.5
    assert found["auc_within", prediction.SUM_AND_BARE] > found["auc_within", prediction.SUM] > 0.6
    assert made["n"].unique().tolist() == [179]
    assert made["relations"].unique().tolist() == [3]
    # The Brier score by hand, of the same folds.
    rows = prediction.ladder(told, {"one": prediction.CHEAP[prediction.SUM]}, repeats=3, seed=0)
    rows = rows[rows["predictor"] == "one"]
    brier = ((rows["probability"] - rows["correct"]) ** 2).mean()
    assert found["brier", prediction.SUM] == pytest.approx(brier)
