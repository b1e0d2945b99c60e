"""Matches between dates, by hand; what is read from them."""

import pandas as pd
import pytest
from frames import assert_rows, frame

from factrobust import schemas
from factrobust.tables import TooFewError
from factrobust.temporal import metrics

CELL = {
    "model": "m",
    "prompt_format": "question",
    "fact_id": "f",
    "precision": "year",
}


def scores(correct: str, incorrect: str, **columns: object) -> pd.DataFrame:
    """Scores of one fact, log-probabilities as texts, and a high one at a transitional date."""
    values = {"incorrect": incorrect, "correct": correct, "transitional": "9"}
    table = pd.DataFrame(values.items(), columns=["label", "logprob"])
    table["logprob"] = table["logprob"].str.split()
    table = table.explode("logprob").dropna().astype({"logprob": float})
    return table.assign(**CELL).assign(**columns)


def three(*dates: tuple[str, str], **columns: object) -> pd.DataFrame:
    """Correct and incorrect scores at the year, the month and the day."""
    parts = []
    for precision, (correct, incorrect) in zip(("year", "month", "day"), dates, strict=True):
        parts.append(scores(correct, incorrect, precision=precision, **columns))
    return pd.concat(parts)


def row_of(scores: pd.DataFrame, precision: str = "year") -> pd.Series:
    """The one row of their matches at a precision."""
    matched = metrics.matches(scores)
    [row] = matched[matched["precision"] == precision].to_dict("records")
    return row


# -1 beats all three, -2 ties with one and beats two, -3 beats one and loses to two. Then a tie is no
# win, nor is a near tie one; and of four against two equal ones in any order, two win both, one ties
# with both, and one loses both.
FACT = frame("""
    correct                 incorrect   n_correct  n_incorrect  matches  wins  ties  margin
    -1 -2 -3                -2 -2.5 -4  3          3            9        6     1     -1
    -1 -2                   -2 -3       2          2            4        3     1     0
    -1 -1.9999999999999998  -2 -3       2          2            4        4     0     2.220446049250313e-16
    0.0                     -0.0        1          1            1        0     1     0
    -4 -1 -3 -2             -3 -3       4          2            8        4     2     -1
""")


@pytest.mark.parametrize("case", FACT.to_dict("records"))
def test_one_fact_by_hand(case) -> None:
    row = row_of(scores(case["correct"], case["incorrect"]))
    for name in (*metrics.COUNTS, "margin"):
        assert row[name] == case[name]
    assert row["win_rate"] == case["wins"] / case["matches"]
    assert row["robust"] == (case["wins"] == case["matches"])
    assert row["chance"] == metrics.chance(case["n_correct"], case["n_incorrect"])


def test_chance_by_hand() -> None:
    """All correct dates are first in C! I! of (C + I)! orders."""
    assert metrics.chance(1, 1) == 1 / 2
    assert metrics.chance(2, 5) == pytest.approx(1 / 21)  # 2 x 120 / 5040
    assert metrics.chance(5000, 5000) == 0  # too small for a float, and no overflow


def test_global_joins_the_precisions() -> None:
    # Both win; it wins twice; the first wins twice, the second once.
    table = three(("-1 -2", "-3"), ("-1", "-2 -3"), ("-1 -5", "-2 -6"))
    row = row_of(table, "global")
    counts = [row[name] for name in metrics.COUNTS]
    assert counts == [5, 5, 2 + 2 + 4, 2 + 2 + 3, 0]
    assert row["win_rate"] == 7 / 8
    assert not row["robust"]
    assert row["margin"] == -5 - -2
    assert row["chance"] == pytest.approx(1 / 54)  # 1 / 3 x 1 / 3 x 1 / 6


def test_global_is_robust_where_all_precisions_are() -> None:
    table = three(("-1", "-3"), ("-1", "-2"), ("-1", "-9"))
    row = row_of(table, "global")
    assert row["robust"]
    assert row["margin"] == 1  # the smallest of 2, 1 and 8


@pytest.mark.parametrize("known", ["-1", "-9"])
def test_global_is_undefined_where_one_precision_is(known) -> None:
    partly = three((known, "-3"), (known, ""), (known, "-2"))
    for found in (partly, partly[partly["precision"] != "month"]):
        row = pd.Series(row_of(found, "global"))
        assert row["matches"] == 2
        assert row[["robust", "win_rate", "margin", "chance"]].isna().all()


def test_cells_are_kept_apart_and_in_order() -> None:
    won = three(*[("-1", "-2")] * 3, fact_id="z")
    lost = three(*[("-3", "-2")] * 3, fact_id="z")
    parts = [
        won,
        lost.assign(fact_id="a"),
        lost.assign(model="n"),
        lost.assign(prompt_format="chat"),
    ]
    table = pd.concat(parts, ignore_index=True)
    matched = schemas.Matched.validate(metrics.matches(table))
    assert list(matched) == list(schemas.Matched.columns)
    first = matched.drop_duplicates(metrics.KEY)
    assert_rows(
        first,
        """
        model  prompt_format  fact_id  win_rate
        m      question       z        1
        m      question       a        0
        n      question       z        0
        m      chat           z        0
        """,
    )
    # Rows of different precisions and labels mixed: the result is ordered all the same.
    mixed = metrics.matches(table.sample(frac=1, random_state=3))
    assert mixed["precision"].tolist() == ["year", "month", "day", "global"] * 4
    both = mixed.merge(matched, on=[*metrics.CELL, "win_rate", "robust", "margin"])
    assert len(both) == len(matched) == 16


def test_rules_that_know_nothing_of_facts() -> None:
    """Incorrect in 1900 and 1904, correct in 1902 and 1903: each is later than one of the two."""
    table = scores("-9 -9", "-1 -2", year=[1900, 1904, 1902, 1903, 1950])
    both = pd.concat([table, table.assign(model="n")])
    later = metrics.later_is_likelier(both)
    assert later["model"].unique().tolist() == ["later is likelier"]  # once for all models
    assert row_of(later)["wins"] == 2
    assert metrics.later_is_likelier(table).equals(later)  # of one model alone, too
    nearer = metrics.arch(both, 1903)
    assert nearer["model"].unique().tolist() == ["nearer to 1903"]
    assert nearer["logprob"].tolist() == [-3, -1, -1, 0, -47]


def test_positions_by_hand() -> None:
    """Centres of bins, and the edge of a transitional date; what is above the correct dates' mean."""
    text = """
        fact_id  label         logprob  alpha  position  relative
        f        correct       -1       -0.2   -0.25     1
        f        correct       -3       0.49   0.25      -1
        f        incorrect     -4       0.6    0.75      -2
        f        transitional  -2       -0.6   -0.5      0
        f        transitional  -2       -0.45  -0.5      0
        f        transitional  -2       0.5    0.5       0
        g        incorrect     -4       -0.6   -0.75     NaN
    """
    dates = frame(text).drop(columns=["position", "relative"])
    cells = dates.assign(model="m", prompt_format="question", precision="year")
    assert_rows(metrics.with_positions(cells), text)


def test_popularity_bins_hold_equal_numbers_of_facts() -> None:
    # i has no value, and j is not asked.
    facts = frame("""
        fact_id  popularity
        a        7
        b        6
        c        5
        d        4
        e        3
        f        2
        g        1
        h        0
        i        NaN
        j        50
    """)
    asked = list("abcdefghi")
    matched = pd.DataFrame({"fact_id": asked * 2})
    binned = metrics.popularity_bins(matched, facts, bins=4)
    assert binned["fact_id"].tolist() == list("abcdefgh") * 2
    assert binned["popularity_bin"].tolist() == [3, 3, 2, 2, 1, 1, 0, 0] * 2
    assert binned["popularity"][0] == 6.5  # the mean of 7 and 6
    # Equal values are parted by a hash, the same in any order.
    equal = facts.assign(popularity=3.0)
    parted = metrics.popularity_bins(matched, equal[:8], bins=2)
    assert parted["popularity_bin"].value_counts().to_dict() == {0: 8, 1: 8}
    backward = metrics.popularity_bins(matched, equal[7::-1], bins=2)
    assert backward.equals(parted)


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


ROBUST = """
    fact_id  year  month  day
    a        1     1      1
    b        1     0      0
    c        1     1      0
    d        0     0      0
    e        1     NaN    0
    f        0     1      NaN
"""
FEW_SHOT = ROBUST.replace("b        1     0      0", "b        1     1      1")


def matched_of(text: str, prompt_format: str) -> pd.DataFrame:
    """Rows of `matches` from a column a precision; "global" is there, too."""
    table = frame(text).assign(model="m", prompt_format=prompt_format)
    table["global"] = 1
    return table.melt(metrics.KEY, var_name="precision", value_name="robust")


def test_verdicts_and_their_variance() -> None:
    standard = matched_of(ROBUST, "question")
    table = metrics.robust_by_precision(standard)
    assert list(table) == ["model", "prompt_format", "fact_id", "year", "month", "day"]
    assert_rows(table, ROBUST)
    both = pd.concat([standard, matched_of(FEW_SHOT, "shots")])
    # Three of one, or one of three: 1/3 x 2/3. The others, e and f, lack one.
    pairs = metrics.paired_variances(both, "question", "shots")
    pairs[["standard", "few_shot"]] *= 9
    assert_rows(
        pairs,
        """
        model  fact_id  standard  few_shot
        m      a        0         0
        m      b        2         0
        m      c        2         2
        m      d        0         0
        """,
    )


DEFINED = frame("""
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
    found = metrics.duels(DEFINED, [("tuned", "base")])
    assert set(found["first"]) == {"tuned"}
    assert set(found["second"]) == {"base"}
    found["facts"] = found["share"] * found["n"]
    cells = found.pivot(index=["precision", "metric", "n"], columns="outcome", values="facts")
    assert_rows(
        cells.reset_index(),
        """
        precision  metric    n  win  tie  lose
        day        robust    1  0    1    0
        day        win_rate  1  0    1    0
        year       robust    3  1    1    1
        year       win_rate  3  2    0    1
        """,
    )


def test_a_row_of_duels_for_each_pair_and_none_without_a_second_model() -> None:
    pairs = [("tuned", "base"), ("tuned", "another")]
    found = metrics.duels(DEFINED, pairs).query("metric == 'win_rate' and outcome == 'tie'")
    shares = found[["second", "precision", "share", "n"]].to_numpy().tolist()
    # Of a alone has the third model a win rate, the same.
    assert shares == [["base", "day", 1, 1], ["base", "year", 0, 3], ["another", "year", 1, 1]]
    with pytest.raises(TooFewError, match=r"^A single model meets no other: name a second one"):
        metrics.duels(DEFINED, [])
