"""Right answers by both rules, and what is measured of them, by hand."""

import numpy as np
import pandas as pd
import pytest

from factrobust.wording import metrics


def said(text, answers, question="What is it?"):
    """One answer to a question about a capital."""
    about = {"text": text, "answers": [answers], "question": question}
    return pd.DataFrame(about | {"relation": "capital"})


@pytest.mark.parametrize(
    ("text", "answers", "substring", "correct"),
    [
        ("film director", ["director"], True, True),  # the paper's example
        ("He is an Actor.", ["actor"], True, True),  # capitalised
        ("he is an actor", ["Actor"], True, True),  # lower case
        ("ACTOR", ["actor"], False, True),  # no such spelling is tried
        ("the united kingdom", ["United Kingdom"], True, True),
        ("the United kingdom", ["United Kingdom"], True, True),  # capitalize lowers the rest
        ("Nigeria", ["Niger"], True, False),
        ("Hungary", ["un"], True, False),
        ("São Paulo", ["Sao Paulo"], False, True),
        ("Sao Paulo", ["Lima", "Sao Paulo "], True, True),
        ("rock'n'roll", ["rock"], True, False),
        ("", ["Paris"], False, False),
        ("Paris", ["", "  "], False, False),
        ("Paris", [], False, False),
    ],
)
def test_rules(text, answers, substring, correct):
    marked = metrics.mark_by_rules(said(text, answers))
    assert marked[["substring", "correct"]].values.tolist() == [[substring, correct]]


CLUB = "What does Chelsea Football Club play?"
SINGAPORE = "What is the capital of Singapore?"


@pytest.mark.parametrize(
    ("text", "answers", "question", "right"),
    [
        ("It is Equatorial Guinea.", ["Guinea"], "", False),  # an answer of another fact
        ("Equatorial Guinea and Guinea", ["Guinea"], "", True),  # once by itself
        ("Equatorial Guinea", ["Guinea", "Equatorial Guinea"], "", True),  # accepted as it is
        ("Guinea-Bissau", ["Guinea"], "", False),
        ("New Mexico", ["Mexico"], "", False),
        ("the north of Mexico", ["Mexico"], "", True),
        ("South Korea", ["Korea", "South Korea"], "", True),
        ("punk rock", ["rock"], "", True),  # in small letters: a kind of it
        ("American football", ["football"], "", False),
        ("a test pilot", ["pilot"], "", True),
        ("Chelsea Football Club plays rugby", ["football"], CLUB, False),
        ("Chelsea Football Club plays football", ["football"], CLUB, True),
        ("The capital of Singapore is Singapore.", ["Singapore"], SINGAPORE, True),
        ("The capital of Singapore", ["Singapore"], SINGAPORE, False),
        ("Boston, Massachusetts", ["US", "USA"], "", False),
        ("It is Jane Austen's novel.", ["Austen"], "", True),
        ("the holy book of the Sikhs", ["Sikh"], "", True),
        ("debated among composers", ["composer"], "", False),  # no name
    ],
)
def test_an_answer_inside_something_longer_is_not_stated(text, answers, question, right):
    known = ["Equatorial Guinea", "Guinea-Bissau", "American football", "punk rock", "test pilot"]
    every = pd.DataFrame({"relation": "capital", "answers": [known, answers]})
    row = said(text, answers, question)
    assert metrics.mark_by_rules(row, every)["correct"].tolist() == [right]
    other = metrics.mark_by_rules(row, every.assign(relation="sport"))["correct"].tolist()
    assert other == [right or text in {"Guinea-Bissau", "American football"}]


def test_what_a_measure_tells_beside_the_person():
    """Of four relations two ask for people. Correctness follows the rival but for 0.1 of noise,
    which the measure knows: given the rival, r is 1; alone it is that of the four means."""
    right = {
        "author": [1, 0, 0, 0, 0],
        "mother": [0] * 5,
    }
    right |= {
        "color": [1, 1, 1, 1, 0],
        "sport": [1, 1, 1, 0, 0],
    }
    table = pd.DataFrame({"relation": [*right], "correct": [*right.values()]})
    table = table.assign(model="m", told=[0.3, 0.1, 0.1, -0.1]).explode("correct")
    [found] = metrics.given_person(table, ["told"]).to_dict("records")
    # Means .2, 0, .8, .6: deviations -.2, -.4, .4, .2 and of the measure .2, 0, 0, -.2.
    assert found["r"] == pytest.approx(-0.08 / np.sqrt(0.4 * 0.08))
    assert found["person"] == pytest.approx(-0.6 / np.sqrt(0.4 * 1))
    assert found["given"] == pytest.approx(1)
    assert found["n"] == 4


def test_the_commonest_answer_leaves_the_question_itself_out():
    """genre: rock stands three times, so each of these is hit by the two others; jazz is not. In
    color each has only the other one's answer, which is wrong."""
    answers = [
        ["rock"],
        ["rock", "punk"],
        ["jazz"],
        ["rock"],
        ["Rock"],
        ["red"],
    ]
    relations = ["genre"] * 4 + ["color"] * 2
    table = pd.DataFrame({"relation": relations, "answers": answers})
    right = metrics.commonest_answer(table)["correct"].tolist()
    assert right == [True, True, False, True, False, False]


def test_what_an_answer_says_beyond_its_question():
    asked = pd.DataFrame(
        [
            ("What is the capital of Japan?", "The capital of Japan is Tokyo"),
            ("Who wrote Dune?", "dune, wrote"),
            ("Who wrote Dune?", "Frank Herbert"),
        ],
        columns=["question", "text"],
        index=[5, 6, 7],
    )
    told = metrics.without_question(asked)["text"]
    assert told.to_dict() == {
        5: "tokyo",
        6: "",
        7: "frank herbert",
    }


def test_pairs_of_answers_have_their_numbers():
    sets = pd.DataFrame({"model": ["m"], "group_id": ["a"], "texts": [["x", "", "y"]]})
    table = metrics.answer_pairs(sets)
    pairs = table[["first", "second", "answer_1", "answer_2"]].values.tolist()
    assert pairs == [
        [0, 1, "x", ""],
        [0, 2, "x", "y"],
        [1, 2, "", "y"],
    ]


def test_correlations_across_relations_and_within_them():
    """Across: of the means 2 and 1 with 1/2 and 2/3. Within: sums of products -1 - 2, of squares of
    x 2 + 6 and of the outcome 1/2 + 2/3."""
    rows = [
        ("a", 1, True),
        ("a", 3, False),
        *[("b", 0, True)] * 2,
        ("b", 3, False),
    ]
    table = pd.DataFrame(rows, columns=["relation", "x", "correct"]).assign(model="m")
    found = metrics.relation_correlations(table, ["x"], n_boot=20).set_index("level")
    expected = {
        "across relations": -1,
        "within relations": -3 / np.sqrt(8 * 7 / 6),
    }
    assert found["r"].to_dict() == pytest.approx(expected)
    assert found["n"].to_dict() == {"across relations": 2, "within relations": 5}
