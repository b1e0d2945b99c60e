"""Which questions are asked without their passages, what is counted, and the sets in their
formats."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factrobust import schemas
from factrobust.datasets.closed_book import Question, closed_book
from factrobust.datasets.official import SETS, load_official
from factrobust.tables import FactsError, Loaded

BERGEN = Question("1", "In which town is Bryggen?", ["Bergen"], "Bryggen")


def asked(*questions: Question) -> Loaded:
    return closed_book(questions, "MySet", "me/my-set@abc")


def counted(loaded: Loaded) -> dict[str, int]:
    """The counts that are not 0."""
    return {name: n for name, n in loaded.counts.items() if n}


def test_columns() -> None:
    loaded = asked(BERGEN)
    assert tuple(loaded.table.columns) == tuple(schemas.AskedFacts.columns)
    row = loaded.table.iloc[0].to_dict()
    assert np.isnan(row.pop("popularity"))
    unknown = dict.fromkeys(("answer_type", "popularity_source", "prefix"), "")
    named = {"fact_id": "myset/1", "subject": "Bryggen", "relation": "myset/bryggen"}
    asked_for = {"question": "In which town is Bryggen?", "object": "Bergen", "aliases": []}
    assert row == unknown | named | asked_for | {"domain": "MySet", "source": "me/my-set@abc"}
    assert counted(loaded) == {"questions": 1}


def test_texts_are_cleaned() -> None:
    loaded = asked(
        Question("1", " Who  wrote\n it? ", [" Ann "]),
        Question("2", '"Who sang ""Fjord""?"', ["Bo"]),  # the quotes of a CSV
        Question("3", '"Fjord" or "Fjell"', ["", "Oslo", "Bergen", "oslo", " ", "BERGEN", "Moss"]),
    )
    questions = ["Who wrote it?", 'Who sang "Fjord"?', '"Fjord" or "Fjell"']
    assert loaded.table["question"].tolist() == questions
    assert loaded.table["relation"].tolist() == ["myset/1", "myset/2", "myset/3"]  # no subject
    assert loaded.table["object"].tolist() == ["Ann", "Bo", "Oslo"]
    assert loaded.table.loc[2, "aliases"] == ["Bergen", "Moss"]
    assert counted(loaded) == {"questions": 3}


def test_a_repeated_question_is_one_fact_unless_its_answers_differ() -> None:
    again = Question("2", "in which town  is bryggen?", ["in Bergen", "bergen", "Bergen, Norway"])
    loaded = asked(BERGEN, again)
    assert loaded.table.loc[0, ["fact_id", "object"]].tolist() == ["myset/1", "Bergen"]
    assert loaded.table.loc[0, "aliases"] == ["in Bergen", "Bergen, Norway"]
    assert counted(loaded) == {"questions": 2, "repeated_questions": 1}
    # With other answers elsewhere it needs its passage.
    loaded = asked(
        BERGEN,
        Question("2", "When was it built?", ["1702"]),
        Question("3", "When was it built?", ["in 1702", "1702."]),  # a full stop is no difference
        Question("4", "When was it built?", ["1954"]),
    )
    assert loaded.table["fact_id"].tolist() == ["myset/1"]
    assert counted(loaded) == {"questions": 4, "ambiguous_questions": 3}
    loaded = asked(*[Question(n, "When was it?", [n]) for n in ("1702", "1702.")])
    assert counted(loaded) == {"questions": 2, "repeated_questions": 1}


def test_what_cannot_be_answered_is_left_out_and_counted_once() -> None:
    loaded = asked(
        BERGEN,
        Question("2", "  ", []),  # no question: its answers do not matter
        Question("3", "Who built it?", ["", " "]),
        Question("4", "According to the passage, who built it?", ["Ann"]),
        Question("5", "Was it built?", ["Yes"]),
    )
    assert loaded.table["fact_id"].tolist() == ["myset/1", "myset/5"]
    reasons = ("empty_questions", "no_answers", "needs_passage")  # 5 - 3 = 2 facts are left
    assert counted(loaded) == {"questions": 5} | dict.fromkeys(reasons, 1)


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
    "squad": {"questions": 7, "ambiguous_questions": 2}
    | dict.fromkeys(("repeated_questions", "needs_passage"), 1),
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
    return pd.DataFrame(
        {"title": article["title"], **row, "answers": {"text": [a["text"] for a in row["answers"]]}}
        for article in json.loads(text)["data"]
        for paragraph in article["paragraphs"]
        for row in paragraph["qas"]
    )


@pytest.mark.parametrize("name", FILES)
def test_an_official_file_and_the_hubs_copy_say_the_same(name, hub_cache) -> None:
    loaded = load_official(name, FILES[name])
    assert loaded.table.loc[0, COLUMNS].tolist() == FIRST[name]
    repo = SETS[name].hub.partition("@")[0]
    assert set(loaded.table["source"]) == {f"{repo}, {FILES[name].name}"}
    assert counted(loaded) == COUNTED[name]
    part = SETS[name].files.replace("*", "00000-of-00001")
    file = hub_cache(*SETS[name].hub.split("@"), part, hub_copy(name))
    for path in (file, None):
        copy = load_official(name, path)
        pd.testing.assert_frame_equal(copy.table[COLUMNS], loaded.table[COLUMNS])
        assert copy.counts == loaded.counts
    assert set(copy.table["source"]) == {SETS[name].hub}


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("squad", '"answers"', '"answer"', "KeyError: 'answers'"),
        ("squad", '"text": "Vänern"', '"text": 5', "AttributeError: 'int'"),
        ("trivia_qa", '"Aliases"', '"Alias"', "KeyError: 'aliases'"),
        ("hotpot_qa", '"answer"', '"no answer"', "KeyError: 'answer'"),
    ],
)
def test_a_bad_file_gives_one_sentence(tmp_path, name, old, new, sentence) -> None:
    path = tmp_path / "dev.json"
    text = FILES[name].read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FactsError, match=rf"dev\.json cannot be read as {name} \({sentence}"):
        load_official(name, path)
