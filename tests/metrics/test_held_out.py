"""Splits, and predictions that only the training rows determine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import calibration, held_out
from factrobust.metrics.regression import fit, predict


def test_folds_are_stratified(simulate) -> None:
    groups = simulate(103, relations="abcde")
    fold = held_out.folds(groups, 5)
    assert sorted(np.bincount(fold).tolist()) == [20, 20, 21, 21, 21]
    counts = groups.assign(fold=fold).groupby(["relation", "correct", "fold"]).size().unstack()
    counts = counts.reindex(columns=range(5)).fillna(0)
    assert (counts.max(axis=1) - counts.min(axis=1)).max() <= 1


def test_folds_depend_on_questions_and_seed_only(simulate) -> None:
    groups = simulate(100)
    fold = pd.Series(held_out.folds(groups, 4, 7), index=groups["group_id"])
    shuffled = groups.sample(frac=1, random_state=0)
    again = pd.Series(held_out.folds(shuffled, 4, 7), index=shuffled["group_id"])
    assert again[fold.index].tolist() == fold.tolist()
    assert held_out.folds(groups, 4, 8).tolist() != fold.tolist()
    with pytest.raises(ValueError, match="100 questions cannot be split into 101 folds"):
        held_out.folds(groups, 101)


def performance(groups: pd.DataFrame, **options: int) -> pd.DataFrame:
    """The rows with all predictors."""
    table = held_out.ablation(groups, **options)
    return table[table["predictors"] == "QCat, SPop, SCons, Cert"]


def test_performance_by_hand(simulate) -> None:
    groups = simulate(500)
    row = performance(groups, n_boot=200).iloc[0]
    test = held_out.folds(groups, 5, 0) == 0
    assert [row["n_train"], row["n_test"], row["n_unseen"]] == [400, 100, 0]
    made = fit(groups[~test])
    right = (predict(made, groups[test]) > 0.5) == groups["correct"][test]
    majority = groups["correct"][~test].mean() > 0.5
    base = (groups["correct"][test] == majority).mean()
    assert row["accuracy"] == pytest.approx(right.mean())
    assert row["baseline"] == pytest.approx(base)
    assert row["gain"] == pytest.approx(100 * (right.mean() / base - 1))
    assert row["pseudo_r2"] == pytest.approx(made.pseudo_r2)
    assert row["low"] < row["accuracy"] < row["high"]
    assert row["gain_low"] < row["gain"] < row["gain_high"]
    assert row["fit"] == "maximum likelihood"


def test_categories_above_a_tenth(simulate) -> None:
    groups = simulate(400, relations="abcd")
    rank = groups.groupby("relation").cumcount()
    groups["correct"] &= (groups["relation"] != "a") | (rank < 10)  # at most 10 of 100
    groups["correct"] &= groups["relation"] != "d"
    table = performance(groups, n_boot=50)
    assert table["categories"].tolist() == ["all", "correctness > 0.1"]
    assert table["n_categories"].tolist() == [4, 2]
    assert (table["n_train"] + table["n_test"]).tolist() == [400, 200]
    assert table["fit"].tolist() == ["penalised (separated)", "maximum likelihood"]
    pd.testing.assert_series_equal(
        table.iloc[1].drop(["categories", "n_categories"]),
        performance(groups[groups["relation"].isin(["b", "c"])], n_boot=50)
        .iloc[0]
        .drop(["categories", "n_categories"]),
        check_names=False,
    )


def test_performance_where_nothing_can_be_fitted(simulate) -> None:
    wrong = simulate(50, model="n", correct=False)
    few = simulate(4, model="o", correct=[True, False, True, False])
    table = performance(pd.concat([simulate(300), wrong, few]), n_boot=50)
    rows = table.set_index(["model", "categories"])
    assert rows.loc[("n", "all"), "fit"] == "none: all 50 answers are wrong"
    assert rows.loc[("n", "correctness > 0.1"), "fit"] == "none: there are no questions"
    assert rows.loc[("o", "all"), "fit"] == "none: 4 questions are too few to hold one in 5 out"
    assert rows.loc["n", ["accuracy", "baseline", "pseudo_r2"]].isna().all(axis=None)
    assert rows.loc[("m", "all"), "fit"] == "maximum likelihood"


def test_a_category_in_the_test_rows_only(simulate) -> None:
    groups = simulate(300)
    table = pd.concat([groups[:1].assign(relation="z"), groups[1:]])
    held = [held_out.folds(table, 5, seed)[0] == 0 for seed in range(20)]
    assert 0 < sum(held) < 20
    row = performance(table, seed=held.index(True), n_boot=50).iloc[0]
    assert [row["n_train"], row["n_test"], row["n_unseen"]] == [240, 59, 1]
    assert row["fit"] == "maximum likelihood"
    made = held_out.cross_validate(table, repeats=1)
    unseen = made[made["probability"].isna()]
    assert unseen["relation"].tolist() == ["z"]
    assert unseen["fit"].tolist() == [held_out.UNSEEN]
    scored = calibration.prediction_quality(made, n_boot=50)
    assert scored[["n", "n_missing"]].drop_duplicates().values.tolist() == [[299, 1]]


def test_ablation_shares_its_splits(simulate) -> None:
    groups = simulate(300)
    table = held_out.ablation(groups, n_boot=50)
    assert table["predictors"].unique().tolist() == [
        *("QCat, SPop, SCons, Cert", "QCat, SCons, Cert", "SPop, SCons, Cert", "SCons, Cert"),
        *("Cert", "SCons"),
    ]
    everything = table[table["categories"] == "all"]
    assert everything["baseline"].nunique() == 1
    assert everything["pseudo_r2"].idxmax() == everything.index[0]
    assert (everything["n_test"] == 60).all()


def test_cross_validation_predicts_each_question_once_a_repeat(simulate) -> None:
    groups = pd.concat([simulate(150), simulate(150, model="n", seed=1)])
    made = held_out.cross_validate(groups, k=3, repeats=2)
    assert not made.duplicated(["model", "repeat", "group_id"]).any()
    assert len(made) == 2 * 2 * 150
    assert made["probability"].between(0, 1).all()
    one = made[(made["model"] == "n") & (made["repeat"] == 1) & (made["fold"] == 2)]
    rows = groups[groups["model"] == "n"]
    held = rows["group_id"].isin(one["group_id"])
    assert one["probability"].tolist() == pytest.approx(
        predict(fit(rows[~held]), rows[held]).tolist()
    )
    assert one["prior"].unique().tolist() == [rows["correct"][~held].mean()]
    assert (made.groupby(["model", "repeat"])["fold"].nunique() == 3).all()
    first, second = (made[made["repeat"] == r].set_index(["model", "group_id"]) for r in (0, 1))
    assert (first["fold"] != second["fold"].reindex(first.index)).any()


def test_nothing_leaks_from_held_out_questions(simulate) -> None:
    groups = simulate(200)
    plain = held_out.cross_validate(groups, repeats=1)
    fold = plain.set_index("group_id")["fold"]
    # One held-out question becomes an outlier: the others of its fold are predicted as before.
    spoiled = groups.assign(cert=groups["cert"].mask(groups["group_id"] == "a/0", 1e6))
    made = held_out.cross_validate(spoiled, repeats=1)
    same_fold = (plain["fold"] == fold["a/0"]) & (plain["group_id"] != "a/0")
    assert made["probability"][same_fold].tolist() == plain["probability"][same_fold].tolist()
    others = plain["fold"] != fold["a/0"]
    assert (made["probability"][others] != plain["probability"][others]).any()
    assert made["group_id"].tolist() == plain["group_id"].tolist()


def test_transfer(simulate) -> None:
    groups = pd.concat([simulate(120), simulate(120, model="n", seed=1)])
    both = held_out.predict_across_models(groups, k=4, repeats=2)
    pairs = both.groupby(["fitted_on", "predicted", "repeat"]).size()
    assert pairs.to_dict() == {(a, b, repeat): 120 for a in "mn" for b in "mn" for repeat in (0, 1)}
    made = both[both["repeat"] == 0]
    assert (made["model"] == made["predicted"]).all()
    assert (made.groupby("group_id")["fold"].nunique() == 1).all()
    cell = made[(made["fitted_on"] == "m") & (made["predicted"] == "n") & (made["fold"] == 2)]
    m, n = (groups[groups["model"] == name] for name in "mn")
    held = m["group_id"].isin(cell["group_id"])
    trained = fit(m[~held], ["SPop", "SCons", "Cert"])
    expected = predict(trained, n[n["group_id"].isin(cell["group_id"])])
    assert cell["probability"].tolist() == pytest.approx(expected.tolist())
    silent = held_out.predict_across_models(
        groups.assign(correct=groups["correct"] & (groups["model"] == "n"))
    )
    from_m = silent["fitted_on"] == "m"
    assert silent.loc[from_m, "probability"].isna().all()
    assert silent.loc[from_m, "fit"].str.match("none: all .* answers are wrong").all()
    assert silent.loc[~from_m, "probability"].notna().all()
