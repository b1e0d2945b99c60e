"""Which questions are asked without their passages, what is counted, and the sets in their formats."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factrobust import schemas
from factrobust.datasets.closed_book import COUNTS, NEEDS_PASSAGE, UNKNOWN, Question, closed_book
from factrobust.datasets.official import SETS, load_official
from factrobust.tables import FactsError, Loaded

BERGEN = Question("1", "In which town is Bryggen?", ["Bergen"], "Bryggen", "bridge")


def asked(*questions: Question) -> Loaded:
    return closed_book(questions, "MySet", "me/my-set@abc")


def counted(loaded: Loaded) -> dict[str, int]:
    """The counts that are not 0."""
    return {name: n for name, n in loaded.counts.items() if n}


def test_columns() -> None:
    loaded = asked(BERGEN)
    assert tuple(loaded.table.columns) == (*schemas.names(schemas.AskedFacts), "kind")
    row = loaded.table.iloc[0].to_dict()
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
    assert counted(loaded) == {"questions": 1}
    assert tuple(loaded.counts) == COUNTS


def test_white_space_and_the_quotes_of_a_csv_go() -> None:
    loaded = asked(
        Question("1", " Who  wrote\n it? ", [" Ann "]),
        Question("2", '"Who sang ""Fjord""?"', ["Bo"]),
        Question("3", '"Fjord" or "Fjell"', ["Fjord"]),  # quotes of its own
    )
    assert loaded.table["question"].tolist() == [
        "Who wrote it?",
        'Who sang "Fjord"?',
        '"Fjord" or "Fjell"',
    ]
    assert loaded.table["object"].tolist() == ["Ann", "Bo", "Fjord"]


def test_answers_keep_their_first_spelling_and_order() -> None:
    loaded = asked(Question("1", "Q?", ["", "Oslo", "Bergen", "oslo", " ", "BERGEN", "Moss"]))
    assert loaded.table.loc[0, ["object", "aliases"]].tolist() == ["Oslo", ["Bergen", "Moss"]]
    assert counted(loaded) == {"questions": 1, "repeated_answers": 2, "empty_answers": 2}


def test_a_repeated_question_is_one_fact_with_the_answers_of_both() -> None:
    again = Question("2", "in which town  is bryggen?", ["in Bergen", "bergen", "Bergen, Norway"])
    loaded = asked(BERGEN, again)
    assert loaded.table.loc[0, ["fact_id", "object"]].tolist() == ["myset/1", "Bergen"]
    assert loaded.table.loc[0, "aliases"] == ["in Bergen", "Bergen, Norway"]
    assert counted(loaded) == {"questions": 2, "repeated_questions": 1}


def test_a_question_with_other_answers_elsewhere_needs_its_passage() -> None:
    loaded = asked(
        BERGEN,
        Question("2", "When was it built?", ["1702"]),
        Question("3", "When was it built?", ["in 1702", "1702."]),  # a full stop is no difference
        Question("4", "When was it built?", ["1954"]),
    )
    assert loaded.table["fact_id"].tolist() == ["myset/1"]
    assert counted(loaded) == {"questions": 4, "ambiguous_questions": 3}
    loaded = asked(
        *[Question(n, "When was it built?", [a]) for n, a in (("2", "1702"), ("3", "1702."))]
    )
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
    counts = loaded.counts
    assert counted(loaded) == {
        "questions": 5,
        "empty_questions": 1,
        "no_answers": 1,
        "needs_passage": 1,
        "empty_answers": 2,
        "yes_or_no": 1,
    }
    left_out = counts["empty_questions"] + counts["no_answers"] + counts["needs_passage"]
    assert counts["questions"] == len(loaded.table) + left_out


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


# ---- the sets: files of the official formats, written for this, and the hub's copies -------------

DATA = Path(__file__).parent / "data"
FILES = {
    "squad": DATA / "squad-dev.json",
    "trivia_qa": DATA / "trivia_qa-unfiltered-dev.json",
    "hotpot_qa": DATA / "hotpot_qa-dev.json",
}
COLUMNS = ["fact_id", "subject", "question", "object", "aliases", "kind"]
MERCHANTS = (
    "In which town stands the row of houses that the Hanseatic merchants left in western Norway?"
)
FIRST = {
    "squad": [
        *("squad/a1", "Lake Vänern", "What is the largest lake of Sweden?", "Vänern"),
        *(["Lake Vänern", "the lake"], ""),
    ],
    "trivia_qa": [
        *("triviaqa/tc_1", "", 'Which ship sails in "The Rime of the Long Fjord"?'),
        *("H.M.S. Heron", ["HMS Heron", "The Heron", "h m s heron", "heron"], "WikipediaEntity"),
    ],
    "hotpot_qa": ["hotpotqa/5a1", "", MERCHANTS, "Bergen", [], "bridge"],
}
COUNTED = {
    # "When was it begun?" is asked of two buildings. a1 has Vänern twice.
    "squad": {
        "questions": 7,
        "repeated_questions": 1,
        "needs_passage": 1,
        "ambiguous_questions": 2,
        "repeated_answers": 1,
    },
    # Of tc_1's 8 spellings one is empty and two repeat another but for case; of tc_2's 5, three do;
    # tc_3 has one sentence twice.
    "trivia_qa": {"questions": 3, "repeated_answers": 2 + 3 + 1, "empty_answers": 1},
    "hotpot_qa": {"questions": 4, "yes_or_no": 1},
}


def hub_copy(name: str) -> pd.DataFrame:
    """The same questions in the columns of the hub's copy."""
    content = json.loads(FILES[name].read_text(encoding="utf-8"))
    if name == "hotpot_qa":
        columns = ["_id", "question", "answer", "type"]
        return pd.DataFrame(content)[columns].rename(columns={"_id": "id"})
    if name == "trivia_qa":
        keys = {"QuestionId": "question_id", "Question": "question", "Answer": "answer"}
        rows = [{keys[key]: row[key] for key in keys} for row in content["Data"]]
        keys = {"Value": "value", "Aliases": "aliases", "NormalizedAliases": "normalized_aliases"}
        keys["Type"] = "type"
        for row in rows:
            row["answer"] = {keys[key]: row["answer"][key] for key in keys}
        return pd.DataFrame(rows)
    return pd.DataFrame(
        {
            "id": question["id"],
            "title": article["title"],
            "question": question["question"],
            "answers": {"text": [answer["text"] for answer in question["answers"]]},
        }
        for article in content["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    )


@pytest.mark.parametrize("name", FILES)
def test_an_official_file_and_the_hubs_copy_say_the_same(
    name: str, tmp_path: Path, hub_cache: Callable[..., Path]
) -> None:
    loaded = load_official(name, FILES[name])
    assert loaded.table.loc[0, COLUMNS].tolist() == FIRST[name]
    assert set(loaded.table["source"]) == {
        f"{SETS[name].hub.partition('@')[0]}, {FILES[name].name}"
    }
    assert counted(loaded) == COUNTED[name]
    assert loaded.files == [FILES[name]]
    part = SETS[name].files.replace("*", "00000-of-00001")
    file = hub_cache(*SETS[name].hub.split("@"), part, hub_copy(name))
    for path in (None, file):
        copy = load_official(name, path)
        pd.testing.assert_frame_equal(copy.table[COLUMNS], loaded.table[COLUMNS])
        assert copy.counts == loaded.counts
    source = load_official(name).table["source"]
    assert set(source) == {SETS[name].hub}


def test_the_answers_of_a_test_split_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    copy = hub_copy("trivia_qa")
    copy["answer"] = [answer | {"value": UNKNOWN} for answer in copy["answer"]]
    copy.to_parquet(path)
    assert load_official("trivia_qa", path).counts["no_answers"] == len(copy)


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("squad", '"answers"', '"answer"', r"row 1: not as in SQuAD's files \(KeyError: 'answers'"),
        ("squad", '"text": "Vänern"', '"text": 5', r"row 1: .*\(TypeError: its id, its question"),
        ("trivia_qa", '"Aliases"', '"Alias"', r"row 1: .*\(KeyError: 'aliases'"),
        ("hotpot_qa", '"answer"', '"no answer"', r"row 1: .*\(KeyError: 'answer'\); give one that"),
        ("hotpot_qa", '"_id": "5a3"', '"_id": 53', r"row 3: .*\(TypeError: its id, its question"),
    ],
)
def test_a_bad_file_gives_one_sentence(
    tmp_path: Path, name: str, old: str, new: str, sentence: str
) -> None:
    path = tmp_path / "dev.json"
    text = FILES[name].read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FactsError, match=rf"dev\.json, {sentence}"):
        load_official(name, path)
