"""The versions without a changed word, what flips in them, and how far wordings lie apart."""

import numpy as np
import pandas as pd
import pytest

from factrobust.text import normalise
from factrobust.wording import facts, floor


def answers(rows):
    """(group_id, variant, correct) as marked answers of one model and prompt to one relation."""
    table = pd.DataFrame(rows, columns=["group_id", "variant", "correct"])
    return floor.with_kind(
        table.assign(
            model="m",
            prompt_format="chat",
            relation="capital",
        )
    )


def test_no_word_changes_in_what_is_called_so():
    questions = facts.load_questions().table
    originals = questions[questions["variant"] == 0].set_index("group_id")["question"]
    versions = floor.unworded(questions)
    assert len(versions) == len(floor.UNWORDED) * len(originals)
    before = originals[versions["group_id"]]
    assert (versions["question"].to_numpy() != before.to_numpy()).all()
    assert versions["question"].map(normalise).tolist() == before.map(normalise).tolist()
    one = versions[versions["group_id"] == versions["group_id"].iloc[0]]
    assert one["question"].tolist() == [
        "what is the capital of the United States?",
        "What is the capital of the United States",
        "What is the capital of the United States ?",
        "What is the capital of the United States??",
        '"What is the capital of the United States?"',
    ]
    assert versions["question_id"].is_unique


def test_a_question_without_a_mark_has_no_such_versions():
    questions = facts.load_questions().table.head(1).assign(question="Name the author.")
    assert floor.unworded(questions).empty


def test_flips_go_both_ways():
    marked = answers(
        [
            ("a", 0, True),
            ("a", 1, False),
            ("a", 1000, True),
            ("b", 0, False),
            ("b", 1, False),
            ("b", 1000, True),
        ]
    )
    found = floor.flips(marked).set_index(["group_id", "variant"])
    assert found["flipped"].to_dict() == {
        ("a", 1): True,
        ("a", 1000): False,
        ("b", 1): False,
        ("b", 1000): True,
    }
    assert found["kind"].tolist() == ["paraphrase", "no word changed"] * 2
    assert found["was"].tolist() == [True, True, False, False]


def table(right):
    """Marked answers of a table [fact, wording]."""
    rows = [(f"f{i}", v, bool(x)) for i, facts in enumerate(right) for v, x in enumerate(facts)]
    return answers(rows)


@pytest.mark.parametrize(
    ("right", "gap"),
    [
        ([[1, 0]] * 4, 1),  # the first wording is always right, the second never
        ([[1, 1]] * 4, 0),
        ([[1, 1], [0, 0]] * 2, 0),  # facts differ, wordings do not
        # Of the three ways to halve these facts, one chooses on {a, b} and measures on {c, d}.
        ([[1, 0], [1, 0], [0, 1], [0, 1]], None),
    ],
)
def test_the_best_wording_is_chosen_on_facts_on_which_it_is_not_measured(right, gap):
    found = floor.worst_to_best(table(right), splits=600)
    assert found["n"].tolist() == [4]
    if gap is None:
        # {a, b} against {c, d}: chosen 1 - 0, measured 0 - 1, both ways: -1. Else both halves hold one of
        # each, the wordings tie, best and worst are the same one: 0. Two of six orders: mean -1/3.
        gap = pytest.approx(-1 / 3, abs=0.06)
    assert found["gap"].tolist() == [gap]


def test_wordings_that_are_equally_good_lie_no_distance_apart():
    right = np.random.default_rng(0).random((40, 30, 6)) < 0.5  # relation, fact, wording
    gaps = [floor.worst_to_best(table(x), splits=10)["gap"].item() for x in right]
    assert abs(np.mean(gaps)) < 0.04
    ranges = [np.ptp(x.mean(0)) for x in right]
    assert np.mean(ranges) > 0.15  # which a plain distance would report


def test_small_relations_are_left_out():
    assert floor.worst_to_best(table([[1, 0]] * 3)).empty
