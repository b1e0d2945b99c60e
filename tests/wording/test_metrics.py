"""Right answers by both rules, and what is measured of them, by hand."""

import numpy as np
import pandas as pd
from frames import assert_rows, frame
from numpy.testing import assert_allclose

from factrobust.wording import metrics

# The paper's example; capitals: capitalize lowers the rest, and no all-capital spelling is tried;
# inside of words; letters of other alphabets; empty answers (-).
RULES = """
    substring  correct  answers          text
    True       True     director         film director
    True       True     actor            He is an Actor.
    True       True     Actor            he is an actor
    False      True     actor            ACTOR
    True       True     United Kingdom   the united kingdom
    True       True     United Kingdom   the United kingdom
    True       False    Niger            Nigeria
    True       False    un               Hungary
    False      True     Sao Paulo        São Paulo
    True       True     Lima|Sao Paulo   Sao Paulo
    True       False    rock             rock'n'roll
    False      False    Paris            -
    False      False    -                Paris
"""


def asked(text):
    """Answers to questions about a capital; | parts accepted answers."""
    rows = frame(text).replace("-", "")
    return rows.assign(answers=rows["answers"].str.split("|"), relation="capital")


def test_rules():
    rows = asked(RULES)
    marked = metrics.mark_by_rules(rows[["text", "answers", "relation"]].assign(question="What?"))
    expected = rows[["text", "substring", "correct"]]
    pd.testing.assert_frame_equal(marked[[*expected]], expected)


def test_no_accepted_answer_is_never_right():
    row = pd.DataFrame({"text": "Paris", "answers": [[]], "question": "", "relation": "capital"})
    assert_rows(
        metrics.mark_by_rules(row),
        """
        substring  correct
        False      False
        """,
    )


# An answer of another fact; once by itself; accepted as it is; a direction; small letters, a kind
# of it; words of the question; plurals of names.
LONGER = """
    right  answers                   text                                    question
    False  Guinea                    It is Equatorial Guinea.                -
    True   Guinea                    Equatorial Guinea and Guinea            -
    True   Guinea|Equatorial Guinea  Equatorial Guinea                       -
    False  Guinea                    Guinea-Bissau                           -
    False  Mexico                    New Mexico                              -
    True   Mexico                    the north of Mexico                     -
    True   Korea|South Korea         South Korea                             -
    True   rock                      punk rock                               -
    False  football                  American football                       -
    True   pilot                     a test pilot                            -
    False  football                  Chelsea Football Club plays rugby       What does Chelsea Football Club play?
    True   football                  Chelsea Football Club plays football    What does Chelsea Football Club play?
    True   Singapore                 The capital of Singapore is Singapore.  What is the capital of Singapore?
    False  Singapore                 The capital of Singapore                What is the capital of Singapore?
    False  US|USA                    Boston, Massachusetts                   -
    True   Austen                    It is Jane Austen's novel.              -
    True   Sikh                      the holy book of the Sikhs              -
    False  composer                  debated among composers                 -
"""


def test_an_answer_inside_something_longer_is_not_stated():
    names = ["Equatorial Guinea", "Guinea-Bissau", "American football", "punk rock", "test pilot"]
    rows = asked(LONGER)
    known = pd.DataFrame({"relation": "capital", "answers": [names]})
    found = metrics.mark_by_rules(rows, pd.concat([known, rows]))["correct"]
    pd.testing.assert_series_equal(found, rows["right"], check_names=False)
    # Names of another relation are no longer ones.
    elsewhere = metrics.mark_by_rules(rows, known.assign(relation="sport"))["correct"]
    changed = rows.loc[elsewhere != rows["right"], "text"].tolist()
    assert changed == ["Guinea-Bissau", "American football"]


def test_what_a_measure_tells_beside_the_person():
    """Of four relations two ask for people. Correctness follows the rival but for 0.1 of noise,
    which the measure knows: given the rival, r is 1; alone it is that of the four means."""
    right = {
        "author": [1, 0, 0, 0, 0],
        "mother": [0] * 5,
        "color": [1, 1, 1, 1, 0],
        "sport": [1, 1, 1, 0, 0],
    }
    table = pd.DataFrame({"relation": [*right], "correct": [*right.values()]})
    table = table.assign(model="m", surety=[0.3, 0.1, 0.1, -0.1]).explode("correct")
    found = metrics.given_person(table, ["surety"])
    # Means .2, 0, .8, .6: deviations -.2, -.4, .4, .2 and of the measure .2, 0, 0, -.2.
    r = -0.08 / np.sqrt(0.4 * 0.08)
    person = -0.6 / np.sqrt(0.4 * 1)
    assert_allclose(found[["r", "person", "given", "n"]], [[r, person, 1, 4]])


def test_the_commonest_answer_leaves_the_question_itself_out():
    """genre: rock stands three times, so each of these is hit by the two others; jazz is not. In
    color each has only the other one's answer, which is wrong."""
    table = frame("""
        relation  answers    right
        genre     rock       True
        genre     rock|punk  True
        genre     jazz       False
        genre     rock       True
        color     Rock       False
        color     red        False
    """)
    table["answers"] = table["answers"].str.split("|")
    assert metrics.commonest_answer(table)["correct"].tolist() == table["right"].tolist()


def test_what_an_answer_says_beyond_its_question():
    rows = frame("""
        question                       text                           rest
        What is the capital of Japan?  The capital of Japan is Tokyo  tokyo
        Who wrote Dune?                dune, wrote                    -
        Who wrote Dune?                Frank Herbert                  frank herbert
    """).set_axis([5, 6, 7])
    found = metrics.without_question(rows)["text"]
    assert found.to_dict() == rows["rest"].replace("-", "").to_dict()


def test_pairs_of_answers_have_their_numbers():
    sets = pd.DataFrame({"model": ["m"], "group_id": ["a"], "texts": [["x", "", "y"]]})
    assert_rows(
        metrics.answer_pairs(sets).replace("", "-"),
        """
        first  second  answer_1  answer_2
        0      1       x         -
        0      2       x         y
        1      2       -         y
        """,
    )


def test_correlations_across_relations_and_within_them():
    """Across: of the means 2 and 1 with 1/2 and 2/3. Within: sums of products -1 - 2, of squares of
    x 2 + 6 and of the outcome 1/2 + 2/3."""
    table = frame("""
        model  relation  x  correct
        m      a         1  True
        m      a         3  False
        m      b         0  True
        m      b         0  True
        m      b         3  False
    """)
    found = metrics.relation_correlations(table, ["x"], n_boot=20).set_index("level")
    levels = ["across relations", "within relations"]
    assert_allclose(found["r"][levels], [-1, -3 / np.sqrt(8 * 7 / 6)])
    assert found["n"][levels].tolist() == [2, 5]
