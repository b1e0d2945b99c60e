"""Which questions are asked without their passages, and what is counted."""

import numpy as np
import pandas as pd
import pytest

from factrobust.datasets import facts as fact_tables
from factrobust.datasets.closed_book import (
    COUNTS,
    NEEDS_PASSAGE,
    Question,
    check_split,
    closed_book,
    short_answers,
)
from factrobust.tables import FactsError

BERGEN = Question("1", "In which town is Bryggen?", ["Bergen"], "Bryggen", "bridge")


def asked(*questions: Question, max_words: int | None = 5) -> pd.DataFrame:
    return closed_book(questions, "MySet", "me/my-set@abc", max_words=max_words)


def counted(table: pd.DataFrame) -> dict[str, int]:
    """The counts that are not 0."""
    return {name: n for name, n in table.attrs["counts"].items() if n}


def test_columns() -> None:
    table = asked(BERGEN)
    assert tuple(table.columns) == (*fact_tables.COLUMNS, "question", "prefix", "kind")
    row = table.iloc[0].to_dict()
    assert np.isnan(row.pop("popularity"))
    assert row == {
        "fact_id": "myset/1",
        "subject": "Bryggen",
        "relation": "myset",
        "object": "Bergen",
        "aliases": [],
        "answer_type": "",
        "domain": "MySet",
        "popularity_source": "",
        "source": "me/my-set@abc",
        "question": "In which town is Bryggen?",
        "prefix": "",
        "kind": "bridge",
    }
    assert counted(table) == {"questions": 1, "kept": 1}
    assert tuple(table.attrs["counts"]) == COUNTS


def test_white_space_and_the_quotes_of_a_csv_go() -> None:
    table = asked(
        Question("1", " Who  wrote\n it? ", [" Ann "]),
        Question("2", '"Who sang ""Fjord""?"', ["Bo"]),
        Question("3", '"Fjord" or "Fjell"', ["Fjord"]),  # quotes of its own
    )
    assert table["question"].tolist() == [
        "Who wrote it?",
        'Who sang "Fjord"?',
        '"Fjord" or "Fjell"',
    ]
    assert table["object"].tolist() == ["Ann", "Bo", "Fjord"]


def test_answers_keep_their_first_spelling_and_order() -> None:
    table = asked(Question("1", "Q?", ["", "Oslo", "Bergen", "oslo", " ", "BERGEN", "Moss"]))
    assert table.loc[0, ["object", "aliases"]].tolist() == ["Oslo", ["Bergen", "Moss"]]
    assert counted(table) == {"questions": 1, "kept": 1, "repeated_answers": 2, "empty_answers": 2}


def test_a_repeated_question_is_one_fact_with_the_answers_of_both() -> None:
    again = Question("2", "in which town  is bryggen?", ["in Bergen", "bergen", "Bergen, Norway"])
    table = asked(BERGEN, again)
    assert table.loc[0, ["fact_id", "object"]].tolist() == ["myset/1", "Bergen"]
    assert table.loc[0, "aliases"] == ["in Bergen", "Bergen, Norway"]
    assert counted(table) == {"questions": 2, "kept": 1, "repeated_questions": 1}


def test_a_question_with_other_answers_elsewhere_needs_its_passage() -> None:
    table = asked(
        BERGEN,
        Question("2", "When was it built?", ["1702"]),
        Question("3", "When was it built?", ["in 1702", "1702."]),  # a full stop is no difference
        Question("4", "When was it built?", ["1954"]),
    )
    assert table["fact_id"].tolist() == ["myset/1"]
    assert counted(table) == {"questions": 4, "kept": 1, "ambiguous_questions": 3}
    table = asked(
        *[Question(n, "When was it built?", [a]) for n, a in (("2", "1702"), ("3", "1702."))]
    )
    assert counted(table) == {"questions": 2, "kept": 1, "repeated_questions": 1}


def test_what_cannot_be_answered_is_left_out_and_counted_once() -> None:
    table = asked(
        BERGEN,
        Question("2", "  ", []),  # no question: its answers do not matter
        Question("3", "Who built it?", ["", " "]),
        Question("4", "According to the passage, who built it?", ["Ann"]),
        Question("5", "How was it built?", ["by all the people of the town", "with their own hands, and slowly"]),
        Question("6", "Why was it built?", ["for the trade in fish from the north", "fish trade"]),
    )  # fmt: skip
    assert table["fact_id"].tolist() == ["myset/1", "myset/6"]
    counts = table.attrs["counts"]
    assert counted(table) == {
        "questions": 6,
        "kept": 2,
        "empty_questions": 1,
        "no_answers": 1,
        "needs_passage": 1,
        "long_answers": 1,
        "empty_answers": 2,
    }
    left_out = counts["empty_questions"] + counts["no_answers"] + counts["needs_passage"]
    left_out += counts["ambiguous_questions"] + counts["long_answers"]
    assert counts["questions"] == counts["kept"] + counts["repeated_questions"] + left_out


def test_long_answers_may_stay() -> None:
    table = asked(Question("1", "How?", ["one two three four five six"]), max_words=None)
    assert counted(table) == {"questions": 1, "kept": 1}
    short, n = short_answers(table, 6)
    assert (len(short), n) == (1, 0)
    short, n = short_answers(pd.concat([table, asked(BERGEN)], ignore_index=True), 5)
    assert (short["object"].tolist(), short.index.tolist(), n) == (["Bergen"], [0], 1)


@pytest.mark.parametrize(
    "question",
    [
        "According to the text, how old is she?",
        "Who, in this paragraph, is called a fool?",
        "How many prizes does the article say she won?",
        "What is the article's title?",
        "What was feared, according to the author?",
        "Which of the towns listed above is the oldest?",
        "When were the aforementioned laws passed?",
    ],
)
def test_questions_that_speak_of_their_passage(question: str) -> None:
    assert NEEDS_PASSAGE.search(question)


@pytest.mark.parametrize(
    "question",
    [
        "The passage of what act gave the colony its own government?",
        "What does the article 34 forbid?",
        "Which article of the treaty bans cartels?",
        "Who wrote the article 'I Accuse'?",
        "Which text that Luther translated was printed first?",
        "Who is the author of the book?",
        "Who was, according to the author of Emma, a heroine that nobody would like?",
        "According to legend, who threw gold into the Rhine?",
        "Which king is the most mentioned person in the book?",
        "Which dogs pull sleds above the Arctic Circle?",
        "What context did the graph need?",
    ],
)
def test_questions_that_do_not(question: str) -> None:
    assert not NEEDS_PASSAGE.search(question)


def test_bad_sets() -> None:
    with pytest.raises(FactsError, match=r"me/my-set@abc: two questions have the id of myset/1;"):
        asked(BERGEN, BERGEN._replace(question="Another?"))
    with pytest.raises(
        FactsError,
        match=r"my-set@abc: no question can be asked closed-book \(2 questions, 2 no_answers\); give",
    ):
        asked(Question("1", "Q?", []), Question("2", "R?", []))
    with pytest.raises(FactsError, match=r"no question can be asked closed-book \(0 questions\)"):
        asked()
    with pytest.raises(ValueError, match="no split 'dev': ask for 'train' or 'validation'"):
        check_split("dev")
