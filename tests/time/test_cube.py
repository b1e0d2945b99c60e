"""The cube of date, subject and name: by hand, and with a planted date, name, subject and fact."""

import numpy as np
import pandas as pd
import pytest

from factrobust.time import cube
from factrobust.time.metrics import matches

CELL = {"model": "m", "prompt_format": "question", "fact_id": "f", "precision": "year"}
LABELS = {
    1990: "incorrect",
    2000: "correct",
    2001: "correct",
    2003: "transitional",
    2010: "incorrect",
}


def asked(values: dict[int, list[list[float]]], **columns: object) -> pd.DataFrame:
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
    found = cube.measured(asked(HAND).sample(frac=1, random_state=2))
    # Own: -1 beats -2 and -6, -3 beats -6: three of four; means -2 and -4. Its wrong name: -5 beats
    # -6, -4 beats -6 and ties with -4: two of four. Wrong subject: -2 beats -3 twice; -4 beats -5 twice.
    assert found[["asked_of", "name", *cube.MEASURES]].values.tolist() == [
        [0, 0, 2.0, 3 / 4, 0],
        [0, 1, 0.5, 2 / 4, 0],
        [1, 0, 0.0, 2 / 4, 0],
        [1, 1, 0.5, 2 / 4, 0],
    ]
    own = asked(HAND).query("asked_of == 0")
    assert matches(own)["win_rate"][0] == 3 / 4
    robust = cube.measured(asked({**HAND, 2001: [[-1.5, -4.0], [-2.0, -4.0]]}))
    assert robust["robust"].tolist() == [1, 0, 0, 0]


def test_a_split_sets_the_same_correct_dates_against_some_incorrect_ones() -> None:
    scores = asked(HAND)
    scores["side"] = np.where(scores["year"] < 2000, "before", "after")
    found = cube.measured(scores, "side").set_index(["side", "asked_of", "name"])
    assert found.loc[("before", 0, 0), [*cube.MEASURES]].tolist() == [-2 + 2, 1 / 2, 0]
    assert found.loc[("after", 0, 0), [*cube.MEASURES]].tolist() == [-2 + 6, 1, 1]
    both = found.groupby(["asked_of", "name"])["nats"].mean()
    assert both.tolist() == cube.measured(scores)["nats"].tolist()


def test_what_has_no_cube() -> None:
    alone = asked({year: rows[:1] for year, rows in HAND.items()}, fact_id="no other subject")
    bare = asked(
        {y: [row[:1] for row in rows] for y, rows in HAND.items()}, fact_id="no other name"
    )
    never = asked(HAND, fact_id="never", label="incorrect")
    always = asked(HAND, fact_id="always", label="correct")
    assert cube.measured(pd.concat([alone, bare, never, always])).empty


def test_wrong_names_and_subjects_are_averaged_by_fact() -> None:
    # Two wrong names and two wrong subjects; correct minus incorrect is the number itself.
    values = [[1.0, 2.0, 4.0], [8.0, 16.0, 32.0], [64.0, 128.0, 256.0]]
    zeros = [[0.0] * 3] * 3
    found = cube.corners(cube.measured(asked({2000: values, 1990: zeros})))
    nats = found[found["measure"] == "nats"].set_index("corner")["value"]
    expected = {"own": 1, "other names": 3, "other subjects": 36, "both other": 432 / 4}
    assert nats.to_dict() == expected
    parts = cube.effects(found).query("measure == 'nats'").set_index("effect")["value"]
    assert parts.to_dict() == {
        "the date": 108,
        "the name's era": 36 - 108,
        "the subject's era": 3 - 108,
        "the fact": 1 - 3 - 36 + 108,
    }
    assert parts.sum() == expected["own"]
    leads = cube.leads(found).query("measure == 'nats'").set_index("null")["value"]
    assert leads.to_dict() == {"other names": -2, "other subjects": -35, "both other": -107}


PLANTED = {"the date": 0.5, "the name's era": 0.3, "the subject's era": -0.2, "the fact": 0.7}


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
        parts.append(asked(values, fact_id=fact))
    found = cube.effects(cube.corners(cube.measured(pd.concat(parts))))
    nats = found[found["measure"] == "nats"].groupby("effect")["value"].mean()
    assert nats.to_dict() == pytest.approx(dict.fromkeys(PLANTED, 0.0) | {effect: size})
