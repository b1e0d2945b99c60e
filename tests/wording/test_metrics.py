"""Right answers by both rules, and one row a question, by hand."""

import numpy as np
import pandas as pd
import pytest

from factrobust.wording import metrics


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
def test_rules(text: str, answers: list[str], substring: bool, correct: bool) -> None:
    marked = metrics.mark_by_rules(said([text]).assign(answers=[answers]))
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
def test_an_answer_inside_something_longer_is_not_stated(text, answers, question, right) -> None:
    known = ["Equatorial Guinea", "Guinea-Bissau", "American football", "punk rock", "test pilot"]
    every = pd.DataFrame({"relation": "capital", "answers": [known, answers]})
    row = said([text]).assign(answers=[answers], question=question)
    assert metrics.mark_by_rules(row, every)["correct"].tolist() == [right]
    other = metrics.mark_by_rules(row, every.assign(relation="sport"))["correct"].tolist()
    assert other == [right or text in {"Guinea-Bissau", "American football"}]


def questions() -> pd.DataFrame:
    rows = [("capital/france", k, ["Paris"], 9.0) for k in range(3)]
    rows += [("capital/niger", k, ["Niamey", "Nia"], 5.0) for k in range(2)]
    table = pd.DataFrame(rows, columns=["group_id", "variant", "answers", "log_popularity"])
    ids = table["group_id"] + "#" + table["variant"].astype("str")
    return table.assign(question_id=ids, relation="capital")


def said(texts: list[str], model: str = "m") -> pd.DataFrame:
    asked = {"model": model, "prompt_format": "question", "question": "What is it?"}
    logprobs = [[-0.5, -1.5], [-1.0], [], [-2.0], [-0.5]][: len(texts)]
    return questions()[: len(texts)].assign(**asked, text=texts, logprobs=logprobs)


def test_log_p_of_an_answer_is_the_sum_over_its_tokens():
    sums = metrics.sums_of_logprobs(pd.Series([[-0.5, -1.5], [-2.0], []]))
    assert sums.tolist()[:2] == [-2.0, -2.0]
    assert np.isnan(sums[2])


def test_what_a_measure_tells_beside_the_person():
    """Of four relations two ask for people. Correctness follows the rival exactly but for 0.1 of noise,
    which the measure knows: given the rival, r is 1; alone it is that of the four means."""
    right = {
        "author": [1, 0, 0, 0, 0],
        "mother": [0] * 5,
        "color": [1] * 4 + [0],
        "sport": [1] * 3 + [0] * 2,
    }
    rows = [
        ("m", relation, correct, value)
        for (relation, answers), value in zip(right.items(), [0.3, 0.1, 0.1, -0.1], strict=True)
        for correct in answers
    ]
    table = pd.DataFrame(rows, columns=["model", "relation", "correct", "value"])
    [found] = metrics.given_person(table, ["value"]).to_dict("records")
    # Means .2, 0, .8, .6: deviations -.2, -.4, .4, .2 and of the measure .2, 0, 0, -.2.
    assert found["r"] == pytest.approx(-0.08 / np.sqrt(0.4 * 0.08))
    assert found["person"] == pytest.approx(-0.6 / np.sqrt(0.4 * 1))
    assert found["given"] == pytest.approx(1)
    assert found["n"] == 4


def test_equal_pairs_by_hand():
    groups = [
        ["Paris", "paris.", "the Paris", "Lyon"],  # 3 of 6 pairs; shares 3/4, 1/4
        ["Paris", "Lyon"],
        ["", " ", "Lyon"],
        ["Paris", "Paris"],
        ["Paris"],
        [],
    ]
    expected = [1 / 2, 0, 1 / 3, 1, np.nan, np.nan]
    assert metrics.equal_pairs(groups).tolist() == pytest.approx(expected, nan_ok=True)


def test_rouge_l_by_hand():
    groups = [
        ["the police killed the gunman", "police kill the gunman"],  # 2 of 3 and 3 words
        ["a b c d", "b x d", "b x d"],  # 2 of 4 and 3 words, twice; and equal ones
        ["x y", "y x"],  # one of two, whichever
        ["", "", "Paris"],
        ["Paris"],
        ["x y x z", "y x x"],  # y x, or x x: 2 of 4 and 3
    ]
    # Articles are gone: "police killed gunman", "b c d".
    expected = [4 / 6, (4 / 6 + 4 / 6 + 1) / 3, 2 / 4, 1 / 3, np.nan, 4 / 7]
    assert metrics.rouge_l(groups).tolist() == pytest.approx(expected, nan_ok=True)
    # A text without tokens has no mean.
    rows = said(["Paris", "Lyon", ""]).assign(logprobs=[[-1.0, -3.0], [-1.0], []])
    assert metrics.text_groups(rows)["logprob"].tolist() == [-1.5]


# Three facts in three wordings; the means of facts are 1, 1/3, 1/3, of wordings 2/3, 2/3, 1/3, of all
# 5/9. Sums of squares: of facts 3 (16 + 4 + 4) / 81 = 8/9, of wordings 3 (1 + 1 + 4) / 81 = 2/9, of all
# 9 (5/9) (4/9) = 20/9, so 10/9 is left.
def marked(tables: dict[str, np.ndarray], model: str = "m") -> pd.DataFrame:
    parts = []
    for relation, table in tables.items():
        cells = [(f"{relation}/{i}", v, bool(x)) for (i, v), x in np.ndenumerate(table)]
        part = pd.DataFrame(cells, columns=["group_id", "variant", "correct"])
        parts.append(part.assign(model=model, relation=relation))
    return pd.concat(parts, ignore_index=True)


def test_the_commonest_answer_leaves_the_question_itself_out():
    answers = [["rock"], ["rock", "punk"], ["jazz"], ["rock"], ["Rock"], ["red"]]
    relations = ["genre"] * 4 + ["color"] * 2
    questions = pd.DataFrame({"relation": relations, "answers": answers})
    # genre: rock stands three times, so each of these is hit by the two others; jazz is not. In color
    # each has only the other one's answer, which is wrong.
    assert metrics.commonest_answer(questions)["correct"].tolist() == [
        True,
        True,
        False,
        True,
        False,
        False,
    ]


def test_what_an_answer_says_beyond_its_question():
    asked = pd.DataFrame({"question": ["What is the capital of Japan?", *["Who wrote Dune?"] * 2]})
    asked["text"] = ["The capital of Japan is Tokyo", "dune, wrote", "Frank Herbert"]
    asked.index = [5, 6, 7]
    told = metrics.without_question(asked)["text"]
    assert told.to_dict() == {5: "tokyo", 6: "", 7: "frank herbert"}


def test_the_gallery_shows_what_is_typical_of_each_kind():
    scons = [0.9, 0.8, 0.7, 0.65, 0.4, 0.3, 0.2, 0.1]
    groups = pd.DataFrame({"model": "m", "group_id": [*"abcdefgh"], "scons": scons})
    groups["relation"] = "r"
    groups["correct"] = [True, True, True, False, True, False, False, False]
    table = metrics.gallery(groups)
    # The median is 0.525; medians of the kinds are 0.8 (a, b, c), 0.65, 0.4 and 0.2 (f, g, h).
    assert table[["group_id", "n", "consistent"]].values.tolist() == [
        *(["b", 3, True], ["d", 1, True], ["e", 1, False], ["g", 3, False]),
    ]
    assert metrics.gallery(groups.assign(correct=True))["group_id"].tolist() == ["b", "f"]


def test_pairs_of_answers_have_their_numbers():
    sets = pd.DataFrame({"model": ["m"], "group_id": ["a"], "texts": [["x", "", "y"]]})
    table = metrics.answer_pairs(sets)
    assert table[["first", "second", "answer_1", "answer_2"]].values.tolist() == [
        *([0, 1, "x", ""], [0, 2, "x", "y"], [1, 2, "", "y"]),
    ]


def test_correlations_across_relations_and_within_them():
    rows = [("a", 1, True), ("a", 3, False), *[("b", 0, True)] * 2, ("b", 3, False)]
    table = pd.DataFrame(rows, columns=["relation", "x", "correct"]).assign(model="m")
    found = metrics.relation_correlations(table, ["x"], n_boot=20).set_index("level")
    # Across: of the means 2 and 1 with 1/2 and 2/3. Within: sums of products -1 - 2, of squares of x
    # 2 + 6 and of the outcome 1/2 + 2/3.
    expected = {"across relations": -1, "within relations": -3 / np.sqrt(8 * 7 / 6)}
    assert found["r"].to_dict() == pytest.approx(expected)
    assert found["n"].to_dict() == {"across relations": 2, "within relations": 5}


def test_between_and_within_relations():
    table = pd.DataFrame({"relation": list("aabb"), "x": [0.0, 0.2, 0.8, 1.0]})
    table = table.assign(
        model="m",
        group_id=list("pqrs"),
        correct=[True, False, True, True],
    )
    between, within = metrics.between_and_within(table, {"x": "SCons"}, bins=2)
    assert between[["relation", "x", "mean", "n"]].values.tolist() == [
        ["a", pytest.approx(0.1), 0.5, 2],
        ["b", pytest.approx(0.9), 1.0, 2],
    ]
    assert within["x"].tolist() == pytest.approx([-0.1, 0.1, -0.1, 0.1])
    assert within["correct"].tolist() == [0.5, -0.5, 0, 0]
