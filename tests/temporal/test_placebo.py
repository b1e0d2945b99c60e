"""The true block of dates, and the cube of dates, names and subjects, by hand."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame

from factrobust.temporal import placebo
from factrobust.temporal.dates import grid
from factrobust.temporal.metrics import matches
from factrobust.temporal.placebo import windows

CELL = {
    "model": "m",
    "prompt_format": "question",
    "fact_id": "f",
    "precision": "year",
}


def six(*values: float, labels: str = "iiccii", **columns: object) -> pd.DataFrame:
    """Scores of dates in order of time, incorrect, correct, incorrect; a transitional one beside."""
    names = {"i": "incorrect", "c": "correct"}
    table = pd.DataFrame({"logprob": [*values, 99.0]})
    table["other_logprobs"] = [[]] * len(table)
    table["label"] = [*(names[letter] for letter in labels), "transitional"]
    return table.assign(date=[str(1990 + i) for i in range(len(table))], **CELL | columns)


# Blocks of two among 1 5 | 4 6 | 3 2 that begin after one, two and three dates:
# 5 4 against 1 6 3 2 win 3 + 3 of 8 matches, 4 6 against 1 5 3 2 win 3 + 4, 6 3 win 4 + 2.
MIXED = (1, 5, 4, 6, 3, 2)
# 2 5 against 1 6 3 4 win 1 + 3, 5 6 against 1 2 3 4 all eight, 6 3 against 1 2 5 4 win 4 + 2.
KNOWN = (1, 2, 5, 6, 3, 4)


def test_the_true_block_is_that_of_the_matches() -> None:
    scores = pd.concat([six(*MIXED), six(*KNOWN, fact_id="g"), six(1, 1, 1, 1, 1, 1, fact_id="h")])
    found = windows(scores)
    matched = matches(scores)
    true = found[found["true"]].set_index("fact_id")
    year = matched[matched["precision"] == "year"].set_index("fact_id")
    assert true["win_rate"].to_dict() == year["win_rate"].to_dict() == {"f": 7 / 8, "g": 1, "h": 0}
    assert true["robust"].to_dict() == year["robust"].to_dict()


FACTS = frame("""
    fact_id  subject  relation  start       end
    f        a        head      1960        1970
    g        b        head      1971-05     1980-01-02
    h        c        head      1981-06-01  2000
    long     d        head      1940        2019
    other    e        club      2001        2009
""")


def test_the_grid_holds_what_began_and_ended_in_it() -> None:
    dates = grid(FACTS, range(1950, 2021, 10))
    assert dates["fact_id"].unique().tolist() == ["f", "g", "h", "other"]
    own = dates[dates["fact_id"] == "g"]
    assert own["date"].tolist() == [str(year) for year in range(1950, 2021, 10)]
    assert own["label"].tolist() == ["incorrect"] * 3 + ["transitional"] + ["incorrect"] * 4
    assert len(grid(FACTS)) == 4 * 24  # every third year from 1950 to 2019


LABELS = {
    1990: "incorrect",
    2000: "correct",
    2001: "correct",
    2003: "transitional",
    2010: "incorrect",
}


def asked_of_all(values: dict[int, list[list[float]]], **columns: object) -> pd.DataFrame:
    """Scores {year: [subject][name]}, the fact's own subject and name first."""
    rows = []
    for year, of_subjects in values.items():
        for place, (first, *others) in enumerate(of_subjects):
            rows.append((str(year), year, LABELS[year], place, first, others))
    names = ["date", "year", "label", "asked_of", "logprob", "other_logprobs"]
    return pd.DataFrame(rows, columns=names).assign(**CELL | columns)


HAND = {
    2000: [[-1.0, -5.0], [-2.0, -4.0]],
    2001: [[-3.0, -4.0], [-2.0, -4.0]],
    2003: [[99.0, 99.0], [99.0, 99.0]],
    1990: [[-2.0, -4.0], [-3.0, -5.0]],
    2010: [[-6.0, -6.0], [-1.0, -4.0]],
}


def test_each_name_after_the_question_of_each_subject_by_hand() -> None:
    found = placebo.measured(asked_of_all(HAND).sample(frac=1, random_state=2))
    # Own: -1 beats -2 and -6, -3 beats -6: three of four; means -2 and -4. Its wrong name: -5 beats
    # -6, -4 beats -6 and ties with -4: two of four. Wrong subject: -2 beats -3 twice; -4 beats -5 twice.
    assert_rows(
        found,
        """
        asked_of  name  nats  win_rate  robust
        0         0     2.0   0.75      0
        0         1     0.5   0.5       0
        1         0     0.0   0.5       0
        1         1     0.5   0.5       0
        """,
    )
    own = asked_of_all(HAND).query("asked_of == 0")
    assert matches(own)["win_rate"][0] == 3 / 4
    robust = placebo.measured(asked_of_all({**HAND, 2001: [[-1.5, -4.0], [-2.0, -4.0]]}))
    assert robust["robust"].tolist() == [1, 0, 0, 0]


def test_a_split_sets_the_same_correct_dates_against_some_incorrect_ones() -> None:
    scores = asked_of_all(HAND)
    scores["side"] = np.where(scores["year"] < 2000, "before", "after")
    found = placebo.measured(scores, "side").set_index(["side", "asked_of", "name"])
    assert found.loc[("before", 0, 0), [*placebo.CUBE_MEASURES]].tolist() == [-2 + 2, 1 / 2, 0]
    assert found.loc[("after", 0, 0), [*placebo.CUBE_MEASURES]].tolist() == [-2 + 6, 1, 1]
    both = found.groupby(["asked_of", "name"])["nats"].mean()
    assert both.tolist() == placebo.measured(scores)["nats"].tolist()


def test_what_has_no_cube() -> None:
    alone = asked_of_all(
        {year: rows[:1] for year, rows in HAND.items()}, fact_id="no other subject"
    )
    bare = asked_of_all(
        {y: [row[:1] for row in rows] for y, rows in HAND.items()}, fact_id="no other name"
    )
    never = asked_of_all(HAND, fact_id="never", label="incorrect")
    always = asked_of_all(HAND, fact_id="always", label="correct")
    assert placebo.measured(pd.concat([alone, bare, never, always])).empty


def test_wrong_names_and_subjects_are_averaged_by_fact() -> None:
    # Two wrong names and two wrong subjects; correct minus incorrect is the number itself.
    values = [[1.0, 2.0, 4.0], [8.0, 16.0, 32.0], [64.0, 128.0, 256.0]]
    zeros = [[0.0] * 3] * 3
    found = placebo.corners(placebo.measured(asked_of_all({2000: values, 1990: zeros})))
    nats = found[found["measure"] == "nats"].set_index("corner")["value"]
    expected = {
        "own": 1,
        "other names": 3,
        "other subjects": 36,
        "both other": 432 / 4,
    }
    assert nats.to_dict() == expected
    parts = placebo.effects(found).query("measure == 'nats'").set_index("effect")["value"]
    assert parts.to_dict() == {
        "the date": 108,
        "the name's era": 36 - 108,
        "the subject's era": 3 - 108,
        "the fact": 1 - 3 - 36 + 108,
    }
    assert parts.sum() == expected["own"]
    leads = placebo.leads(found).query("measure == 'nats'").set_index("null")["value"]
    assert leads.to_dict() == {"other names": -2, "other subjects": -35, "both other": -107}


PLANTED = {
    "the date": 0.5,
    "the name's era": 0.3,
    "the subject's era": -0.2,
    "the fact": 0.7,
}


@pytest.mark.parametrize("effect", PLANTED)
def test_what_is_planted_is_seen_where_it_is_and_nowhere_else(effect: str) -> None:
    size = PLANTED[effect]
    rng = np.random.default_rng(4)
    bases = rng.normal(size=(3, 3))  # names are likelier here or there, whatever the year
    parts = []
    for fact in "abc":
        values = {}
        for year, label in LABELS.items():
            rises = np.zeros((3, 3))
            where = {
                "the date": np.s_[:, :],
                "the name's era": np.s_[:, 0],
                "the subject's era": np.s_[0, :],
                "the fact": np.s_[0, 0],
            }
            rises[where[effect]] = size * (label == "correct")
            values[year] = (bases + rises).tolist()
        parts.append(asked_of_all(values, fact_id=fact))
    found = placebo.effects(placebo.corners(placebo.measured(pd.concat(parts))))
    nats = found[found["measure"] == "nats"].groupby("effect")["value"].mean()
    assert nats.to_dict() == pytest.approx(dict.fromkeys(PLANTED, 0.0) | {effect: size})


def test_often_minus_never_by_hand() -> None:
    """Of the first resample (4 + 1) / 2 - 2, of the second (3 x 1 + 4) / 4 - 2 weighs facts as drawn."""
    values = np.array([4.0, 1.0, 2.0])
    often = np.array([True, True, False])
    weights = np.array(
        [
            [1.0, 1.0, 1.0],
            [1.0, 3.0, 2.0],
            [1.0, 1.0, 0.0],
        ]
    )
    apart = placebo.often_minus_never(weights, values, often)
    np.testing.assert_allclose(apart, [0.5, -0.25, np.nan])
