import json
from pathlib import Path

import pandas as pd
import pytest

from factrobust.datasets.trivia_qa import HUB, REVISION, UNKNOWN, load_trivia_qa
from factrobust.tables import FactsError

# Of the official format, written for this.
FILE = Path(__file__).parent / "data" / "trivia_qa-unfiltered-dev.json"
COLUMNS = ["fact_id", "question", "object", "aliases", "kind"]
ROWS = [
    [
        "triviaqa/tc_1",
        'Which ship sails in "The Rime of the Long Fjord"?',
        "H.M.S. Heron",
        ["HMS Heron", "The Heron", "h m s heron", "heron"],
        "WikipediaEntity",
    ],
    [
        "triviaqa/tc_2",
        "How many strings has a hardanger fiddle in all, most often?",
        "9",
        ["nine"],
        "Numerical",
    ],
]


@pytest.fixture
def copy() -> pd.DataFrame:
    """The same questions in the columns of the hub's copy."""
    rows = [
        {
            "question": record["Question"],
            "question_id": record["QuestionId"],
            "search_results": {"title": ["long"]},
            "answer": {
                "aliases": record["Answer"]["Aliases"],
                "normalized_aliases": record["Answer"]["NormalizedAliases"],
                "type": record["Answer"]["Type"],
                "value": record["Answer"]["Value"],
            },
        }
        for record in json.loads(FILE.read_text(encoding="utf-8"))["Data"]
    ]
    return pd.DataFrame(rows)


def test_official_file() -> None:
    table = load_trivia_qa(FILE)
    assert table[COLUMNS].to_numpy().tolist() == ROWS
    assert set(table["domain"]) == {"TriviaQA"}
    assert set(table["source"]) == {"mandarjoshi/trivia_qa, trivia_qa-unfiltered-dev.json"}
    # Of tc_1's 8 spellings one is empty and two repeat another but for case; of tc_2's 5, three do;
    # tc_3 has one sentence twice.
    assert {name: n for name, n in table.attrs["counts"].items() if n} == {
        "questions": 3,
        "kept": 2,
        "long_answers": 1,
        "repeated_answers": 2 + 3 + 1,
        "empty_answers": 1,
    }


def test_the_cached_copy_at_the_pinned_revision(hub_cache, copy) -> None:
    name = "unfiltered.nocontext/validation-00000-of-00001.parquet"
    hub_cache(HUB, REVISION, name, copy)
    table = load_trivia_qa()
    assert table[COLUMNS].to_numpy().tolist() == ROWS
    assert set(table["source"]) == {f"mandarjoshi/trivia_qa@{REVISION}"}
    with pytest.raises(ConnectionError, match=r"all of unfiltered\.nocontext/train-\*\.parquet of"):
        load_trivia_qa(split="train")


def test_a_copy_of_the_test_split_has_no_answers(copy, tmp_path) -> None:
    copy["answer"] = [a | {"value": UNKNOWN, "aliases": []} for a in copy["answer"]]
    copy.to_parquet(tmp_path / "test.parquet")
    with pytest.raises(FactsError, match=r"closed-book \(3 questions, 3 no_answers\)"):
        load_trivia_qa(tmp_path / "test.parquet")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            '"Answer"',
            '"NoAnswer"',
            r"record 1: there is no 'Answer' \(test questions are published",
        ),
        ('"Value": "9"', '"Value": 9', r"record 2: 'Value' is no text; fetch"),
        ('"hms heron"', "7", r"record 1: 'NormalizedAliases' is no list of texts"),
        ('"QuestionId": "tc_2"', '"QuestionId": 2', r"record 2: 'QuestionId' is no text"),
        ('"Data": [', '"Data": 1, "More": [', r"dev\.json: 'Data' is no list"),
    ],
)
def test_a_bad_file_gives_one_sentence(tmp_path, old, new, sentence) -> None:
    path = tmp_path / "dev.json"
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FactsError, match=sentence):
        load_trivia_qa(path)


def test_another_set_is_told() -> None:
    with pytest.raises(
        FactsError, match=r"dev\.json looks like SQuAD, not TriviaQA; load it as SQu"
    ):
        load_trivia_qa(FILE.with_name("squad-dev.json"))
