"""Matches between dates, by hand and against a double loop over all pairs; what is read from them."""

import math

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust import schemas
from factrobust.tables import TooFewError
from factrobust.temporal import metrics


def table(correct: list, incorrect: list, transitional: list = (), **columns) -> pd.DataFrame:
    """Scores of one fact: incorrect dates from 1900 on (alpha < 0), then the others."""
    scores = pd.DataFrame({"logprob": [*incorrect, *correct, *transitional]}, dtype=float)
    scores["label"] = [
        *(["incorrect"] * len(incorrect)),
        *(["correct"] * len(correct)),
        *(["transitional"] * len(transitional)),
    ]
    scores["year"] = 1900 + scores.index
    scores["date"] = scores["year"].astype(str)
    scores["years_off"] = np.where(scores["label"] == "incorrect", -1.0, 0.0)
    scores["alpha"] = scores["years_off"]
    scores["other_logprobs"] = [[] for _ in scores.index]
    usual = {"model": "m", "prompt_format": "question", "fact_id": "f", "precision": "year"}
    return scores.assign(**usual | {"n_tokens": 1} | columns)


def three(*dates: tuple, **columns: object) -> pd.DataFrame:
    """Correct and incorrect scores at the year, the month and the day."""
    parts = []
    for precision, (correct, incorrect) in zip(("year", "month", "day"), dates, strict=True):
        parts.append(table(correct, incorrect, precision=precision, **columns))
    return pd.concat(parts)


def cell(scores: pd.DataFrame, precision: str = "year") -> pd.Series:
    """The one row of their matches at a precision."""
    matched = metrics.matches(scores)
    [row] = matched[matched["precision"] == precision].to_dict("records")
    return row


@pytest.mark.parametrize(
    ("correct", "incorrect", "wins", "ties", "margin"),
    [
        # -1 beats all three, -2 ties with one and beats two, -3 beats one and loses to two.
        ([-1, -2, -3], [-2, -2.5, -4], 6, 1, -1),
        ([-1, -2], [-2, -3], 3, 1, 0),  # a tie is no win
        ([-1, np.nextafter(-2, 0)], [-2, -3], 4, 0, np.nextafter(-2, 0) + 2),  # nor a near tie one
        ([0.0], [-0.0], 0, 1, 0),
    ],
)
def test_one_fact_by_hand(correct, incorrect, wins, ties, margin) -> None:
    row = cell(table(correct, incorrect, transitional=[9]))
    n = len(correct) * len(incorrect)
    counts = [len(correct), len(incorrect), n, wins, ties]
    assert [row[name] for name in metrics.COUNTS] == counts
    assert row["win_rate"] == wins / n
    assert row["robust"] == (wins == n)
    assert row["margin"] == margin
    assert row["chance"] == pytest.approx(metrics.chance(len(correct), len(incorrect)))


def test_matches_have_the_columns_of_their_table() -> None:
    matched = schemas.Matched.validate(metrics.matches(table([-1], [-2])))
    assert list(matched) == list(schemas.Matched.columns)


def test_the_rule_of_later_years_wins_against_earlier_ones_once_for_all_models() -> None:
    # Incorrect in 1900 and 1904, correct in 1902 and 1903: each is later than one of the two.
    scores = table([-9, -9], [-1, -2], year=[1900, 1904, 1902, 1903])
    both = pd.concat([scores, scores.assign(logprob=0.0, model="n")])
    rule = metrics.later_is_likelier(both)
    assert rule["model"].unique().tolist() == ["later is likelier"]
    assert cell(rule)["matches"] == 4
    assert cell(rule)["wins"] == 2
    assert metrics.later_is_likelier(scores).equals(rule)  # of one model alone, too
    nearer = metrics.arch(both.assign(year=[1950, 1955, 1960, 1970] * 2), 1958)
    assert nearer["model"].unique().tolist() == ["nearer to 1958"]
    assert nearer["logprob"].tolist() == [-8, -3, -2, -12]


def test_global_joins_the_precisions() -> None:
    year = [-1, -2], [-3]  # both win
    month = [-1], [-2, -3]  # it wins twice
    day = [-1, -5], [-2, -6]  # the first wins twice, the second once
    row = cell(three(year, month, day), "global")
    assert [row[name] for name in metrics.COUNTS] == [5, 5, 2 + 2 + 4, 2 + 2 + 3, 0]
    assert row["win_rate"] == 7 / 8
    assert not row["robust"]
    assert row["margin"] == -5 - -2
    assert row["chance"] == pytest.approx(1 / 3 * 1 / 3 * 1 / 6)


def test_global_is_robust_where_all_precisions_are() -> None:
    row = cell(three(([-1], [-3]), ([-1], [-2]), ([-1], [-9])), "global")
    assert row["robust"]
    assert row["margin"] == 1  # the smallest of 2, 1 and 8
    # And undefined where one is, whatever the others say.
    for known in (-1, -9):
        partly = three(([known], [-3]), ([known], []), ([known], [-2]))
        for scores in (partly, partly[partly["precision"] != "month"]):
            row = cell(scores, "global")
            assert row["matches"] == 2
            assert pd.isna([row[name] for name in ("robust", "win_rate", "margin", "chance")]).all()


def test_cells_are_apart_and_in_order() -> None:
    lost = three(*[([-3], [-2])] * 3, fact_id="z")
    others = [lost.assign(**{x: y}) for x, y in (("model", "n"), ("prompt_format", "chat"))]
    won = three(*[([-1], [-2])] * 3, fact_id="z")
    scores = pd.concat([won, lost.assign(fact_id="a"), *others])
    # Rows of different precisions and labels mixed: the result is ordered all the same.
    matched = metrics.matches(scores.sample(frac=1, random_state=3))
    assert matched["precision"].tolist() == ["year", "month", "day", "global"] * 4
    verdicts = matched.set_index(["model", "prompt_format", "fact_id"])["win_rate"]
    assert verdicts["m", "question", "z"].eq(1).all()
    assert verdicts.drop(("m", "question", "z")).eq(0).all()
    first = metrics.matches(scores).drop_duplicates(metrics.KEY)
    assert first["fact_id"].tolist() == ["z", "a", "z", "z"]


LABEL = st.sampled_from(["correct", "incorrect", "transitional"])
ANSWER = st.tuples(st.sampled_from("abc"), LABEL, st.integers(-5, 0))


@settings(deadline=None, max_examples=30)
@given(st.lists(ANSWER, min_size=1, max_size=40))
def test_brute_force(rows: list[tuple[str, str, int]]) -> None:
    scores = table([], [float(x) for _, _, x in rows])
    scores = scores.assign(fact_id=[f for f, _, _ in rows], label=[s for _, s, _ in rows])
    matched = metrics.matches(scores)
    for row in matched[matched["precision"] == "year"].itertuples():
        fact = scores[scores["fact_id"] == row.fact_id]
        good, bad = (fact.loc[fact["label"] == s, "logprob"] for s in ("correct", "incorrect"))
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
    assert metrics.chance(correct, incorrect) == pytest.approx(expected)
    assert metrics.chance(5000, 5000) == 0  # too small for a float, and no overflow


def test_positions() -> None:
    scores = table([-1, -3], [-4]).assign(alpha=[-0.2, 0.49, 0.6])
    placed = metrics.positions(scores)
    assert placed["position"].tolist() == [-0.25, 0.25, 0.75]
    edges = scores.assign(label="transitional", alpha=[-0.6, -0.45, 0.5])
    assert metrics.positions(edges)["position"].tolist() == [-0.5, -0.5, 0.5]
    assert placed["relative"].tolist() == [-2, 1, -1]
    assert metrics.positions(table([], [-4]))["relative"].isna().all()


def test_popularity_bins_hold_equal_numbers_of_facts() -> None:
    names = [*"abcdefghij"]
    scores = pd.concat([table([-1], [-2], fact_id=name) for name in names])
    facts = pd.DataFrame({"fact_id": [*names, "not asked"], "popularity": [*range(9, -1, -1), 50]})
    binned = metrics.popularity_bins(metrics.matches(scores), facts, bins=5)
    assert len(binned) == 20  # year and global
    by_fact = binned.drop_duplicates("fact_id").set_index("fact_id")
    assert by_fact.loc[names, "popularity_bin"].tolist() == [4, 4, 3, 3, 2, 2, 1, 1, 0, 0]
    assert by_fact.loc["a", "popularity"] == 8.5
    # Equal values are parted by a hash, the same in any order.
    equal = facts.assign(popularity=3.0)
    parted = metrics.popularity_bins(metrics.matches(scores), equal, bins=2)
    again = metrics.popularity_bins(metrics.matches(scores), equal[::-1], bins=2)
    assert parted["popularity_bin"].value_counts().to_dict() == {0: 10, 1: 10}
    pd.testing.assert_frame_equal(parted, again)
    # Facts without a value are left out.
    some = facts.assign(popularity=facts["popularity"].where(facts["fact_id"].isin([*"bd"])))
    binned = metrics.popularity_bins(metrics.matches(scores), some, bins=2)
    assert binned["fact_id"].unique().tolist() == ["b", "d"]


def test_popularity_has_ten_facts_a_bin_or_is_left_out() -> None:
    """Twenty subjects fill two bins, and no three; of nineteen objects there are too few for two."""
    names = [f"f{i:02}" for i in range(20)]
    matched = pd.DataFrame({"model": "m", "fact_id": names})
    subjects = pd.DataFrame({"fact_id": names, "what": "subject", "popularity": range(20)})
    known = pd.concat([subjects, subjects.head(19).assign(what="object")])
    binned = metrics.by_popularity(matched, known, bins=2)
    assert set(binned["what"]) == {"subject"}
    assert binned.set_index("fact_id").loc[names, "popularity"].tolist() == [4.5] * 10 + [14.5] * 10
    with pytest.raises(TooFewError, match=r"^No popularity is known of 30 facts, 10 for each"):
        metrics.by_popularity(matched, known, bins=3)


def robust_at(text: str, **columns: object) -> pd.DataFrame:
    """Rows of `matches` from a column a precision: 1 is robust, ? undefined, - no row."""
    table = frame(text).astype(str)
    table["global"] = (
        (table[["year", "month", "day"]] == "1").all(axis=1).map({True: "1", False: "0"})
    )
    rows = table.melt("fact_id", var_name="precision", value_name="robust")
    rows = rows[rows["robust"] != "-"]
    rows["robust"] = rows["robust"].map({"1": True, "0": False, "?": pd.NA}).astype("boolean")
    return rows.assign(model="m", prompt_format="question").assign(**columns)


FACTS = """
    fact_id  year  month  day
    a        1     1      1
    b        1     0      0
    c        1     1      0
    d        0     0      0
    e        1     ?      0
    f        0     1      -
"""


def test_verdicts_and_their_variance() -> None:
    table = metrics.verdicts(robust_at(FACTS))
    assert list(table) == ["model", "prompt_format", "fact_id", "year", "month", "day"]
    assert_rows(table, FACTS.replace("?", "NaN").replace("-", "NaN"))
    shots = robust_at(FACTS.replace("b        1     0      0", "b        1     1      1"))
    both = pd.concat([robust_at(FACTS), shots.assign(prompt_format="shots")])
    pairs = metrics.paired_variances(both, "question", "shots")
    assert list(pairs) == ["model", "fact_id", "standard", "few_shot"]
    # Three of one, or one of three: 1/3 x 2/3. The others, e and f, lack one.
    assert pairs["fact_id"].tolist() == list("abcd")
    assert pairs["standard"].tolist() == pytest.approx([0, 2 / 9, 2 / 9, 0])
    assert pairs["few_shot"].tolist() == pytest.approx([0, 0, 2 / 9, 0])


ENTERED = frame("""
    model    precision  fact_id  win_rate  robust
    tuned    year       a        0.7       0
    tuned    year       b        1.0       1
    tuned    year       c        0.8       0
    tuned    year       d        1.0       1
    tuned    year       f        1.0       1
    base     year       a        0.5       0
    base     year       b        0.9       0
    base     year       c        1.0       1
    base     year       e        0.1       0
    tuned    day        c        1.0       1
    base     day        c        1.0       1
    another  year       a        0.7       0
""")


def test_duels_by_hand() -> None:
    """Of the three facts that both have, a and b are won and c is lost; a is robust for neither.
    Where nothing is won or lost, that is told, too."""
    table = ENTERED.assign(prompt_format="question").astype({"robust": float})
    found = metrics.duels(table, [("tuned", "base")])
    assert set(found["first"]) == {"tuned"}
    assert set(found["second"]) == {"base"}
    cells = found.assign(facts=found["share"] * found["n"])
    assert_rows(
        cells.pivot(index=["precision", "metric", "n"], columns="outcome", values="facts")
        .reset_index()
        .sort_values(["precision", "metric"]),
        """
        precision  metric    n  win  tie  lose
        day        robust    1  0    1    0
        day        win_rate  1  0    1    0
        year       robust    3  1    1    1
        year       win_rate  3  2    0    1
        """,
    )


def test_a_row_of_duels_for_each_pair_and_none_without_a_second_model() -> None:
    table = ENTERED.assign(prompt_format="question").astype({"robust": float})
    pairs = [("tuned", "base"), ("tuned", "another")]
    found = metrics.duels(table, pairs).query("metric == 'win_rate' and outcome == 'tie'")
    shares = found[["second", "precision", "share", "n"]].to_numpy().tolist()
    # Of a alone has the third model a win rate, the same.
    assert shares == [["base", "day", 1, 1], ["base", "year", 0, 3], ["another", "year", 1, 1]]
    with pytest.raises(TooFewError, match=r"^A single model meets no other: name a second one"):
        metrics.duels(table, [])
