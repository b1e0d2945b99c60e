"""Matches between dates, by hand and against a double loop over all pairs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics import time
from factrobust.statistics import interval_table

COUNTS = ["n_correct", "n_incorrect", "matches", "wins", "ties"]


def table(
    correct: list[float], incorrect: list[float], transitional: list[float] = (), **columns: object
) -> pd.DataFrame:
    """Scores of one fact: incorrect dates from 1900 on (alpha < 0), then the others."""
    labels = ["incorrect"] * len(incorrect) + ["correct"] * len(correct)
    labels += ["transitional"] * len(transitional)
    years = [1900 + i for i in range(len(labels))]
    values = {"model": "m", "prompt_format": "question", "fact_id": "f", "precision": "year"}
    return pd.DataFrame(
        values
        | {
            "date": [str(year) for year in years],
            "year": years,
            "alpha": [-1.0 if label == "incorrect" else 0.0 for label in labels],
            "years_off": [-1.0 if label == "incorrect" else 0.0 for label in labels],
            "label": labels,
            "logprob": [*incorrect, *correct, *transitional],
            "n_tokens": 1,
        }
        | columns
    )


def three(year: tuple, month: tuple, day: tuple, **columns: object) -> pd.DataFrame:
    parts = zip(("year", "month", "day"), (year, month, day), strict=True)
    return pd.concat([table(*given, precision=p, **columns) for p, given in parts])


def cell(matched: pd.DataFrame, precision: str = "year") -> pd.Series:
    rows = matched[matched["precision"] == precision]
    assert len(rows) == 1
    return rows.iloc[0]


def test_one_fact_by_hand() -> None:
    # -1 beats all three, -2 ties with one and beats two, -3 beats one and loses to two.
    row = cell(time.matches(table([-1, -2, -3], [-2, -2.5, -4], transitional=[9])))
    assert row[COUNTS].tolist() == [3, 3, 9, 6, 1]
    assert row["win_rate"] == 6 / 9
    assert not row["robust"]
    assert row["margin"] == -1
    assert row["chance"] == 1 / 20


def test_columns_and_dtypes() -> None:
    matched = time.matches(table([-1], [-2]))
    assert list(matched) == [
        *("model", "prompt_format", "fact_id", "precision", "n_correct", "n_incorrect", "matches"),
        *("wins", "ties", "win_rate", "robust", "margin", "chance"),
    ]
    assert matched["robust"].dtype == "boolean"
    assert matched[COUNTS].dtypes.map(lambda d: d.kind).eq("i").all()
    empty = time.matches(table([], []))
    assert list(empty) == list(matched)
    assert empty.dtypes.to_list() == matched.dtypes.to_list()
    assert len(empty) == 0


def test_a_tie_is_no_win() -> None:
    row = cell(time.matches(table([-1, -2], [-2, -3])))
    assert (row["ties"], row["win_rate"], row["margin"]) == (1, 3 / 4, 0)
    assert not row["robust"]
    # Only exactly equal floats tie.
    row = cell(time.matches(table([-1, np.nextafter(-2, 0)], [-2, -3])))
    assert (row["ties"], row["win_rate"]) == (0, 1)
    assert row["robust"]
    assert cell(time.matches(table([0.0], [-0.0])))["ties"] == 1


@pytest.mark.parametrize(("correct", "incorrect"), [([-1], []), ([], [-1]), ([], [])])
def test_without_matches_nothing_is_defined(correct: list, incorrect: list) -> None:
    row = cell(time.matches(table(correct, incorrect, transitional=[-1])))
    assert row[["win_rate", "margin", "chance"]].isna().all()
    assert row["robust"] is pd.NA
    assert row["matches"] == 0


def test_global_joins_the_precisions() -> None:
    scores = three(([-1, -2], [-3]), ([-1], [-2, -3]), ([-1, -5], [-2, -6]))
    row = cell(time.matches(scores), "global")
    assert row[COUNTS].tolist() == [5, 5, 2 + 2 + 4, 2 + 2 + 3, 0]
    assert row["win_rate"] == 7 / 8
    assert not row["robust"]
    assert row["margin"] == -3
    assert row["chance"] == pytest.approx(1 / 3 / 3 / 6)
    robust = three(([-1], [-3]), ([-1], [-2]), ([-1], [-9]))
    row = cell(time.matches(robust), "global")
    assert row["robust"]
    assert row["margin"] == 1


@pytest.mark.parametrize("known", [-1, -9])
def test_global_is_undefined_where_a_precision_is(known: float) -> None:
    partly = three(([known], [-3]), ([known], []), ([known], [-2]))
    for scores in (partly, partly[partly["precision"] != "month"]):
        row = cell(time.matches(scores), "global")
        assert row["robust"] is pd.NA
        assert row[["win_rate", "margin", "chance"]].isna().all()
        assert row["matches"] == 2


def test_cells_are_apart_and_in_order() -> None:
    scores = pd.concat(
        [
            three(([-1], [-2]), ([-1], [-2]), ([-1], [-2]), fact_id="z"),
            three(([-3], [-2]), ([-3], [-2]), ([-3], [-2]), fact_id="a"),
            three(([-3], [-2]), ([-3], [-2]), ([-3], [-2]), fact_id="z", model="n"),
            three(([-3], [-2]), ([-3], [-2]), ([-3], [-2]), fact_id="z", prompt_format="chat"),
        ]
    )
    # Rows of different precisions and labels mixed: the result is ordered all the same.
    matched = time.matches(scores.sample(frac=1, random_state=3))
    assert matched["precision"].tolist() == ["year", "month", "day", "global"] * 4
    verdicts = matched.set_index(["model", "prompt_format", "fact_id"])["win_rate"]
    assert verdicts["m", "question", "z"].eq(1).all()
    assert verdicts.drop(("m", "question", "z")).eq(0).all()
    first = time.matches(scores).drop_duplicates(time.KEY)
    assert first["fact_id"].tolist() == ["z", "a", "z", "z"]


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from(["correct", "incorrect", "transitional"]),
            st.integers(-5, 0),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_brute_force(rows: list[tuple[str, str, int]]) -> None:
    scores = table([], [float(x) for _, _, x in rows])
    scores = scores.assign(fact_id=[f for f, _, _ in rows], label=[s for _, s, _ in rows])
    matched = time.matches(scores)
    for row in matched[matched["precision"] == "year"].itertuples():
        own = scores[scores["fact_id"] == row.fact_id]
        good, bad = (own.loc[own["label"] == s, "logprob"] for s in ("correct", "incorrect"))
        assert row.wins == sum(g > b for g in good for b in bad)
        assert row.ties == sum(g == b for g in good for b in bad)
        assert row.matches == len(good) * len(bad)
        if row.matches:
            assert row.robust == (row.wins == row.matches) == (row.margin > 0)


@pytest.mark.parametrize(("correct", "incorrect"), [(1, 1), (2, 5), (9, 56)])
def test_chance(correct: int, incorrect: int) -> None:
    # All correct dates first: C! I! of (C + I)! orders.
    orders = math.factorial(correct) * math.factorial(incorrect)
    expected = orders / math.factorial(correct + incorrect)
    assert time.chance(correct, incorrect) == pytest.approx(expected)


def test_chance_is_the_share_of_robust_facts_at_random() -> None:
    rng = np.random.default_rng(4)
    scores = pd.concat(
        [table([*rng.normal(size=2)], [*rng.normal(size=3)], fact_id=str(i)) for i in range(3000)]
    )
    matched = time.matches(scores)
    year = matched[matched["precision"] == "year"]
    assert year["chance"].eq(1 / 10).all()
    assert year["robust"].mean() == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 3000))
    assert year["win_rate"].mean() == pytest.approx(0.5, abs=0.03)


def test_chance_without_a_match_is_undefined() -> None:
    assert math.isnan(time.chance(0, 5))
    assert math.isnan(time.chance(5, 0))
    assert time.chance(5000, 5000) == 0  # too small for a float, and no overflow


def test_undefined_counts() -> None:
    scores = pd.concat(
        [table([-1], [-2]), table([-1], [], fact_id="g"), table([], [], fact_id="h")]
    )
    counted = time.undefined_counts(time.matches(scores)).set_index("precision")
    assert counted.loc["year", ["facts", "undefined"]].tolist() == [2, 1]
    assert counted.loc["global", ["facts", "undefined"]].tolist() == [2, 2]


def test_matches_go_into_interval_tables() -> None:
    scores = pd.concat([table([-1], [-2]), table([-3], [-2], fact_id="g")])
    matched = time.matches(scores).dropna(subset=["robust"])
    row = interval_table(matched, ["model", "precision"], "robust").iloc[0]
    assert row[["precision", "mean", "n"]].tolist() == ["year", 0.5, 2]


def test_positions() -> None:
    scores = table([-1, -3], [-4]).assign(alpha=[-0.6, -0.5, 0.49])
    placed = time.positions(scores)
    assert placed["position"].tolist() == [-0.625, -0.375, 0.375]
    assert placed["relative"].tolist() == [-2, 1, -1]
    assert time.positions(table([], [-4]))["relative"].isna().all()
    with pytest.raises(ValueError, match="must be positive, not 0"):
        time.positions(scores, 0)


def test_popularity_bins_hold_equal_numbers_of_facts() -> None:
    names = [f"f{i}" for i in range(10)]
    scores = pd.concat([table([-1], [-2], fact_id=name) for name in names])
    facts = pd.DataFrame(
        {"fact_id": [*names, "not asked"], "popularity": [*range(9, -1, -1), 50.0]}
    )
    binned = time.popularity_bins(time.matches(scores), facts, bins=5)
    assert len(binned) == 20  # year and global
    by_fact = binned.drop_duplicates("fact_id").set_index("fact_id")
    assert by_fact.loc[names, "popularity_bin"].tolist() == [4, 4, 3, 3, 2, 2, 1, 1, 0, 0]
    assert by_fact.loc["f0", "popularity"] == 8.5
    # Equal values are parted by a hash, the same in any order.
    equal = facts.assign(popularity=3.0)
    parted = time.popularity_bins(time.matches(scores), equal, bins=2)
    again = time.popularity_bins(time.matches(scores), equal[::-1], bins=2)
    assert parted["popularity_bin"].value_counts().to_dict() == {0: 10, 1: 10}
    pd.testing.assert_frame_equal(parted, again)


def test_popularity_bins_leave_out_facts_without_a_value() -> None:
    scores = pd.concat([table([-1], [-2], fact_id=name) for name in "fgh"])
    facts = pd.DataFrame({"fact_id": list("fgh"), "object_popularity": [1.0, np.nan, 2.0]})
    binned = time.popularity_bins(time.matches(scores), facts, column="object_popularity", bins=2)
    assert binned["fact_id"].unique().tolist() == ["f", "h"]
    with pytest.raises(
        ValueError, match="3 bins for 2 facts that have a value of object_popularity"
    ):
        time.popularity_bins(time.matches(scores), facts, column="object_popularity", bins=3)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"precision": "week"},
            r"3 score\(s\), such as f at 1900 \(week\), have a precision not in",
        ),
        ({"label": "right"}, "or a label not in"),
        (
            {"logprob": [-1, np.nan, -np.inf]},
            r"2 score\(s\), such as f at 1901 \(year\).*no finite",
        ),
        ({"date": ["1900", "1901", "1900"]}, r"f at 1900 \(year\), repeat a date"),
    ],
)
def test_bad_scores(columns: dict, message: str) -> None:
    scores = table([-1, -2], [-3])
    with pytest.raises(ValueError, match=message):
        time.matches(scores.assign(**columns))


def test_many_dates_are_fast() -> None:
    # 4 million matches: far too many for a loop over pairs.
    rng = np.random.default_rng(5)
    row = cell(time.matches(table(list(rng.normal(size=2000)), list(rng.normal(size=2000)))))
    assert row["matches"] == 4_000_000
    assert row["win_rate"] == pytest.approx(0.5, abs=0.05)
