"""The versions without a changed word, what flips in them, and how far wordings lie apart."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows

from factrobust.text import normalise
from factrobust.wording import facts, floor


def answers(right, variants=range(9)):
    """Marked answers of one model to a table [fact, wording] of right (1) and wrong ones (0)."""
    wide = pd.DataFrame(right).astype(bool)
    wide.columns = variants[: wide.shape[1]]
    wide.index = [f"f{i}" for i in wide.index]
    table = wide.stack().rename("correct").rename_axis(["group_id", "variant"]).reset_index()
    return floor.with_kind(table.assign(model="m", prompt_format="chat", relation="capital"))


def test_no_word_changes_in_what_is_called_so():
    questions = facts.load_questions().table
    originals = questions[questions["variant"] == 0].set_index("group_id")["question"]
    versions = floor.unworded(questions)
    before = originals[versions["group_id"]].tolist()
    assert len(versions) == 5 * len(originals)
    assert versions["question_id"].is_unique
    assert (versions["question"] != before).all()
    assert versions["question"].map(normalise).tolist() == [*map(normalise, before)]
    one = versions[versions["group_id"] == versions["group_id"][0]]
    assert one["variant"].tolist() == [*range(1000, 1005)]
    assert one["question"].tolist() == [
        "what is the capital of the United States?",
        "What is the capital of the United States",
        "What is the capital of the United States ?",
        "What is the capital of the United States??",
        '"What is the capital of the United States?"',
    ]
    assert floor.unworded(questions.assign(question="Name the author.")).empty


def test_flips_go_both_ways():
    marked = answers([[1, 0, 1], [0, 0, 1]], variants=(0, 1, 1000))
    assert_rows(
        floor.flipped_answers(marked),
        """
        group_id  variant  kind             was    flipped
        f0        1        paraphrase       True   True
        f0        1000     no word changed  True   False
        f1        1        paraphrase       False  False
        f1        1000     no word changed  False  True
        """,
    )


# {f0, f1} against {f2, f3}: chosen 1 - 0, measured 0 - 1, both ways: -1. Else both halves hold one
# of each, the wordings tie, best and worst are the same one: 0. Two of six orders: mean -1/3.
TURNED = [[1, 0], [1, 0], [0, 1], [0, 1]]
# Halves of three. Three alike (2 of 20 orders): -1. Else two of a half choose what one of three in
# the other half is right under: 1/3 - 2/3. Mean: -(0.1 + 0.9 / 3).
OF_SIX = [[1, 0]] * 3 + [[0, 1]] * 3


@pytest.mark.parametrize(
    ("right", "gap", "within"),
    [
        ([[1, 0]] * 4, 1, 0),  # the first wording is always right, the second never
        ([[1, 1]] * 4, 0, 0),
        ([[1, 1], [0, 0]] * 2, 0, 0),  # facts differ, wordings do not
        (TURNED, -1 / 3, 0.15),  # three standard errors of 100 halvings
        (OF_SIX, -0.4, 0.06),
    ],
)
def test_the_best_wording_is_chosen_on_facts_on_which_it_is_not_measured(right, gap, within):
    [found] = floor.worst_to_best(answers(right)).to_dict("records")
    assert found["gap"] == pytest.approx(gap, abs=within)
    assert found["n"] == len(right)


def test_wordings_that_are_equally_good_lie_no_distance_apart():
    right = np.random.default_rng(0).random((40, 30, 6)) < 0.5  # relation, fact, wording
    tables = [answers(facts).assign(relation=str(k)) for k, facts in enumerate(right)]
    gaps = floor.worst_to_best(pd.concat(tables))["gap"]
    assert len(gaps) == 40
    assert abs(gaps.mean()) < 3 * gaps.sem() < 0.1
    plain = np.ptp(right.mean(axis=1), axis=1)  # what a plain distance would report
    assert plain.mean() > 0.15


def test_small_relations_are_left_out():
    assert floor.worst_to_best(answers([[1, 0]] * 3)).empty
