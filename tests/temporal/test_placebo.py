"""The true block of dates, and the cube of dates, names and subjects, by hand."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame

from factrobust.temporal import placebo
from factrobust.temporal.dates import same_years
from factrobust.temporal.metrics import matches

CELL = {
    "model": "m",
    "prompt_format": "question",
    "fact_id": "f",
    "precision": "year",
}


def test_blocks_of_dates_by_hand() -> None:
    """Of f's 1 5 4 6 3 2, 5 and 4 win 3 + 3 of 8 matches, 4 and 6 win 3 + 4, and 6 and 3 win 4 + 2; of
    g's, 2 and 5 win 1 + 3, and 6 and 3 win 4 + 2. In h all are ties; i has no value at a date, and j
    no incorrect date before."""
    values = frame("""
        date  label         f   g   h   i    j
        1990  incorrect     1   1   1   1    NaN
        1991  incorrect     5   2   1   2    NaN
        1992  correct       4   5   1   5    5
        1993  correct       6   6   1   6    6
        1994  transitional  99  99  99  99   99
        1995  incorrect     3   3   1   NaN  3
        1996  incorrect     2   4   1   4    4
    """)
    scores = values.melt(["date", "label"], var_name="fact_id", value_name="logprob")
    is_asked = (scores["fact_id"] != "j") | scores["logprob"].notna()
    asked = scores[is_asked].assign(model="m", prompt_format="question", precision="year")
    found = placebo.windows(asked.sample(frac=1, random_state=1)).sort_values(["fact_id", "before"])
    assert_rows(
        found,
        """
        fact_id  before  true   win_rate  robust
        f        1       False  0.75      0
        f        2       True   0.875     0
        f        3       False  0.75      0
        g        1       False  0.5       0
        g        2       True   1         1
        g        3       False  0.75      0
        h        1       False  0         0
        h        2       True   0         0
        h        3       False  0         0
        """,
    )


def test_the_grid_holds_what_began_and_ended_in_it() -> None:
    facts = frame("""
        fact_id  start       end
        f        1960        1970
        g        1971-05     1980-01-02
        long     1940        2019
        other    2001        2009
    """)
    dates = same_years(facts, range(1950, 2021, 10))
    assert dates["fact_id"].unique().tolist() == ["f", "g", "other"]
    of_g = dates[dates["fact_id"] == "g"]
    assert of_g["date"].tolist() == [str(year) for year in range(1950, 2021, 10)]
    assert of_g["label"].tolist() == ["incorrect"] * 3 + ["transitional"] + ["incorrect"] * 4
    assert len(same_years(facts)) == 3 * 24  # every third year from 1950 to 2019


# ---- the cube ------------------------------------------------------------------------------------


def cube(dates: pd.DataFrame, **columns: object) -> pd.DataFrame:
    """Scores at dates, a row a date and subject; `values` are of the right name, then wrong ones."""
    values = dates["values"].map(lambda cell: [float(value) for value in cell.split()])
    scores = dates.assign(
        date=dates["year"].astype(str),
        logprob=values.str[0],
        other_logprobs=values.str[1:],
    )
    return scores.assign(**CELL).assign(**columns)


HAND = frame("""
    year  label         asked_of  values
    2000  correct       0         -1 -5
    2000  correct       1         -2 -4
    2001  correct       0         -3 -4
    2001  correct       1         -2 -4
    2003  transitional  0         99 99
    2003  transitional  1         99 99
    1990  incorrect     0         -2 -4
    1990  incorrect     1         -3 -5
    2010  incorrect     0         -6 -6
    2010  incorrect     1         -1 -4
""")


def test_each_name_after_the_question_of_each_subject_by_hand() -> None:
    scores = cube(HAND)
    # Own: -1 beats -2 and -6, -3 beats -6: three of four; means -2 and -4. Its wrong name: -5 beats
    # -6, -4 beats -6 and ties with -4: two of four. Wrong subject: -2 beats -3 twice; -4 beats -5 twice.
    assert_rows(
        placebo.date_gains(scores.sample(frac=1, random_state=2)),
        """
        asked_of  name  nats  win_rate  robust
        0         0     2.0   0.75      0
        0         1     0.5   0.5       0
        1         0     0.0   0.5       0
        1         1     0.5   0.5       0
        """,
    )
    assert matches(scores[scores["asked_of"] == 0])["win_rate"][0] == 0.75
    robust = HAND.replace("-3 -4", "-1.5 -4")
    assert placebo.date_gains(cube(robust))["robust"].tolist() == [1, 0, 0, 0]


def test_a_split_sets_the_same_correct_dates_against_some_incorrect_ones() -> None:
    scores = cube(HAND)
    scores["side"] = np.where(scores["year"] < 2000, "before", "after")
    found = placebo.date_gains(scores, "side")
    assert_rows(
        found[(found["asked_of"] == 0) & (found["name"] == 0)],
        """
        side    nats  win_rate  robust
        before  0     0.5       0
        after   4     1         1
        """,
    )


def test_what_has_no_cube() -> None:
    parts = [
        cube(HAND[HAND["asked_of"] == 0], fact_id="no other subject"),
        cube(HAND.assign(values="-1"), fact_id="no other name"),
        cube(HAND, fact_id="never", label="incorrect"),
        cube(HAND, fact_id="always", label="correct"),
    ]
    assert placebo.date_gains(pd.concat(parts)).empty


def test_wrong_names_and_subjects_are_averaged_by_fact() -> None:
    """Two wrong names and two wrong subjects; correct minus incorrect is the number itself."""
    dates = frame("""
        year  label      asked_of  values
        1990  incorrect  0         0 0 0
        1990  incorrect  1         0 0 0
        1990  incorrect  2         0 0 0
        2000  correct    0         1 2 4
        2000  correct    1         8 16 32
        2000  correct    2         64 128 256
    """)
    corners = placebo.corners(placebo.date_gains(cube(dates)))
    assert_rows(
        corners[corners["measure"] == "nats"],
        """
        corner          value
        own             1
        other names     3
        other subjects  36
        both other      108
        """,
    )
    assert_rows(
        placebo.effects(corners).query("measure == 'nats'"),
        """
        effect             value
        the date           108
        the name's era     -72
        the subject's era  -105
        the fact           70
        """,
    )  # 36 - 108, 3 - 108 and 1 - 3 - 36 + 108; together they are 1
    assert_rows(
        placebo.leads(corners).query("measure == 'nats'"),
        """
        null            value
        other names     -2
        other subjects  -35
        both other      -107
        """,
    )


PLANTED = {
    "the date": np.s_[:, :],
    "the name's era": np.s_[:, 0],
    "the subject's era": np.s_[0, :],
    "the fact": np.s_[0, 0],
}


@pytest.mark.parametrize("effect", PLANTED)
def test_what_is_planted_is_seen_where_it_is_and_nowhere_else(effect: str) -> None:
    rng = np.random.default_rng(4)
    base = rng.normal(size=(3, 3))  # names are likelier here or there, whatever the year
    raised = base.copy()
    raised[PLANTED[effect]] += 0.5
    parts = []
    for year, label, values in ((1990, "incorrect", base), (2000, "correct", raised)):
        texts = [" ".join(map(str, row)) for row in values]
        dates = pd.DataFrame({"asked_of": range(3), "values": texts})
        parts.append(cube(dates.assign(year=year, label=label)))
    found = placebo.bars(pd.concat(parts)).set_index("effect")["value"]
    assert found.to_dict() == pytest.approx(dict.fromkeys(PLANTED, 0.0) | {effect: 0.5})


def test_often_minus_never_by_hand() -> None:
    """Of the first resample (4 + 1) / 2 - 2, of the second (3 x 1 + 4) / 4 - 2 weighs facts as drawn."""
    values = np.array([4.0, 1.0, 2.0])
    often = np.array([True, True, False])
    weights = np.array([[1.0, 1.0, 1.0], [1.0, 3.0, 2.0], [1.0, 1.0, 0.0]])
    difference = placebo.often_minus_never(weights, values, often)
    np.testing.assert_allclose(difference, [0.5, -0.25, np.nan])
