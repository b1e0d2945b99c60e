"""Which questions are asked without their passages, what is counted, and the sets in their
formats."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from frames import assert_rows

from factrobust import schemas
from factrobust.datasets.closed_book import Question, closed_book
from factrobust.datasets.facts import accepted_answers
from factrobust.datasets.official import SETS, load_official
from factrobust.tables import Loaded

BERGEN = Question("1", "In which town is Bryggen?", ["Bergen"], "Bryggen")


def asked(*questions: Question) -> Loaded:
    return closed_book(questions, "MySet", "me/my-set@abc")


def counted(loaded: Loaded) -> dict[str, int]:
    """The counts that are not 0."""
    return {name: n for name, n in loaded.counts.items() if n}


def test_columns() -> None:
    loaded = asked(BERGEN)
    assert tuple(loaded.table.columns) == tuple(schemas.AskedFacts.columns)
    assert loaded.table["popularity"].isna().all()
    assert loaded.table.drop(columns="popularity").to_dict("records") == [
        {
            "fact_id": "myset/1",
            "subject": "Bryggen",
            "relation": "myset/bryggen",
            "question": "In which town is Bryggen?",
            "object": "Bergen",
            "aliases": [],
            "domain": "MySet",
            "source": "me/my-set@abc",
            "answer_type": "",
            "popularity_source": "",
            "prefix": "",
        }
    ]
    assert counted(loaded) == {"questions": 1}


def test_texts_are_cleaned() -> None:
    """Quotes are those of a CSV; without a subject the relation is the question alone."""
    loaded = asked(
        Question("1", " Who  wrote\n it? ", [" Ann "]),
        Question("2", '"Who sang ""Fjord""?"', ["Bo"]),
        Question("3", '"Fjord" or "Fjell"', ["", "Oslo", "Bergen", "oslo", " ", "BERGEN", "Moss"]),
    )
    expected = """
        relation  question            object
        myset/1   Who wrote it?       Ann
        myset/2   Who sang "Fjord"?   Bo
        myset/3   "Fjord" or "Fjell"  Oslo
    """
    assert_rows(loaded.table, expected)
    assert loaded.table["aliases"][2] == ["Bergen", "Moss"]
    assert counted(loaded) == {"questions": 3}


BUILT = "When was it built?"


@pytest.mark.parametrize(
    ("questions", "facts", "counts"),
    [
        # In other letters it is the same question.
        (
            [BERGEN, Question("2", "in which town  is bryggen?", ["in Bergen", "bergen"])],
            [("myset/1", ["Bergen", "in Bergen"])],
            {"repeated_questions": 1},
        ),
        # With other answers elsewhere it needs its passage.
        (
            [Question("2", BUILT, ["1702"]), Question("3", BUILT, ["1954"]), BERGEN],
            [("myset/1", ["Bergen"])],
            {"ambiguous_questions": 2},
        ),
        # A full stop is no difference.
        (
            [Question("1", BUILT, ["1702"]), Question("2", BUILT, ["in 1702", "1702."])],
            [("myset/1", ["1702", "in 1702", "1702."])],
            {"repeated_questions": 1},
        ),
        # What cannot be answered is left out and counted once: a blank question, whatever its
        # answers; blank answers; a question of its passage.
        (
            [
                Question("2", "  ", []),
                Question("3", "Who built it?", ["", " "]),
                Question("4", "According to the passage, who built it?", ["Ann"]),
                Question("5", "Was it built?", ["Yes"]),
            ],
            [("myset/5", ["Yes"])],
            {"empty_questions": 1, "no_answers": 1, "needs_passage": 1},
        ),
    ],
)
def test_which_questions_are_facts(questions, facts, counts) -> None:
    loaded = asked(*questions)
    assert [*zip(loaded.table["fact_id"], accepted_answers(loaded.table), strict=True)] == facts
    assert counted(loaded) == {"questions": len(questions)} | counts


# ---- the sets: files of the official formats, written for this, and the hub's copies -------------

DATA = Path(__file__).parent / "data"
FILES = {
    "squad": DATA / "squad-dev.json",
    "trivia_qa": DATA / "trivia_qa-unfiltered-dev.json",
    "hotpot_qa": DATA / "hotpot_qa-dev.json",
}
COLUMNS = ["fact_id", "subject", "question", "object", "aliases"]
ASKED = """What is the largest lake of Sweden?
Which ship sails in "The Rime of the Long Fjord"?
In which town stands the row of houses that the Hanseatic merchants left in western Norway?"""
LAKE, SHIP, TOWN = ASKED.splitlines()
HERON = ["HMS Heron", "The Heron", "h m s heron", "heron"]
FIRST = {
    "squad": ["squad/a1", "Lake Vänern", LAKE, "Vänern", ["Lake Vänern", "the lake"]],
    "trivia_qa": ["triviaqa/tc_1", "", SHIP, "H.M.S. Heron", HERON],
    "hotpot_qa": ["hotpotqa/5a1", "", TOWN, "Bergen", []],
}
COUNTED = {
    # "When was it begun?" is asked of two buildings. a1 has Vänern twice.
    "squad": {
        "questions": 7,
        "ambiguous_questions": 2,
        "repeated_questions": 1,
        "needs_passage": 1,
    },
    # Of tc_1's 8 spellings one is empty and two repeat another but for case; of tc_2's 5, three do;
    # tc_3 has one sentence twice.
    "trivia_qa": {"questions": 3},
    "hotpot_qa": {"questions": 4},
}


def hub_copy(name: str) -> pd.DataFrame:
    """The same questions in the columns of the hub's copy."""
    text = FILES[name].read_text(encoding="utf-8")
    if name == "hotpot_qa":
        rows = pd.DataFrame(json.loads(text))[["_id", "question", "answer", "type"]]
        return rows.rename(columns={"_id": "id"})
    if name == "trivia_qa":  # QuestionId is question_id there
        text = re.sub(r"(?<=[a-z])([A-Z])(?=\w*\":)", r"_\1", text)
        text = re.sub(r'"\w+":', lambda key: key[0].lower(), text)
        return pd.DataFrame(json.loads(text)["data"])[["question_id", "question", "answer"]]
    rows = []
    for article in json.loads(text)["data"]:
        for paragraph in article["paragraphs"]:
            for row in paragraph["qas"]:
                texts = [answer["text"] for answer in row["answers"]]
                rows.append(row | {"title": article["title"], "answers": {"text": texts}})
    return pd.DataFrame(rows)


@pytest.mark.parametrize("name", FILES)
def test_an_official_file_and_the_hubs_copy_say_the_same(name, hub_cache) -> None:
    official = load_official(name, FILES[name])
    table = official.table
    assert table.loc[0, COLUMNS].tolist() == FIRST[name]
    repo, commit = SETS[name].hub.split("@")
    assert {*table["source"]} == {f"{repo}, {FILES[name].name}"}
    assert counted(official) == COUNTED[name]
    part = SETS[name].files.replace("*", "00000-of-00001")
    file = hub_cache(repo, commit, part, hub_copy(name))
    for path in (file, None):
        copy = load_official(name, path)
        pd.testing.assert_frame_equal(copy.table[COLUMNS], table[COLUMNS])
        assert copy.counts == official.counts
    assert {*copy.table["source"]} == {SETS[name].hub}
