import json
from pathlib import Path

import pandas as pd
import pytest

from factrobust.datasets.squad import HUB, REVISION, load_squad
from factrobust.tables import FactsError

FILE = Path(__file__).parent / "data" / "squad-dev.json"  # of the official format, written for this
COLUMNS = ["fact_id", "subject", "question", "object", "aliases"]
ROWS = [
    [
        "squad/a1",
        "Lake Vänern",
        "What is the largest lake of Sweden?",
        "Vänern",
        ["Lake Vänern", "the lake"],
    ],
    ["squad/b2", "Oslo Opera", "When was the opera house of Oslo opened?", "2008", []],
]


@pytest.fixture
def copy() -> pd.DataFrame:
    """The same questions in the columns of the hub's copy."""
    rows = [
        {
            "id": asked["id"],
            "title": article["title"],
            "context": paragraph["context"],
            "question": asked["question"],
            "answers": {"text": [a["text"] for a in asked["answers"]], "answer_start": [0]},
        }
        for article in json.loads(FILE.read_text(encoding="utf-8"))["data"]
        for paragraph in article["paragraphs"]
        for asked in paragraph["qas"]
    ]
    return pd.DataFrame(rows)


def test_official_file() -> None:
    table = load_squad(FILE)
    assert table[COLUMNS].to_numpy().tolist() == ROWS
    assert set(table["source"]) == {"rajpurkar/squad, squad-dev.json"}
    assert set(table["domain"]) == {"SQuAD"}
    # "When was it begun?" is asked of two buildings; a5 has no short answer. a1 has Vänern twice.
    assert {name: n for name, n in table.attrs["counts"].items() if n} == {
        "questions": 7,
        "kept": 2,
        "repeated_questions": 1,
        "needs_passage": 1,
        "ambiguous_questions": 2,
        "long_answers": 1,
        "repeated_answers": 1,
    }
    assert "squad/a5" in set(load_squad(FILE, max_words=None)["fact_id"])


def test_the_cached_copy_at_the_pinned_revision(hub_cache, copy) -> None:
    hub_cache(HUB, REVISION, "plain_text/validation-00000-of-00001.parquet", copy)
    table = load_squad()
    assert table[COLUMNS].to_numpy().tolist() == ROWS
    assert set(table["source"]) == {f"rajpurkar/squad@{REVISION}"}
    with pytest.raises(
        ConnectionError, match=r"all of plain_text/train-\*\.parquet of rajpurkar/s"
    ):
        load_squad(split="train")
    with pytest.raises(
        ConnectionError, match=f"at 0123abc .* its cache holds only {REVISION} of it"
    ):
        load_squad(revision="0123abc")
    with pytest.raises(ValueError, match="no split 'dev'"):
        load_squad(split="dev")


def test_a_local_copy(copy, tmp_path) -> None:
    copy.to_parquet(tmp_path / "copy.parquet")
    assert load_squad(tmp_path / "copy.parquet")[COLUMNS].to_numpy().tolist() == ROWS
    copy.drop(columns="answers").to_parquet(tmp_path / "copy.parquet")
    with pytest.raises(FactsError, match=r"copy\.parquet: the column 'answers' is missing; it has"):
        load_squad(tmp_path / "copy.parquet")
    copy.assign(answers="a").to_parquet(tmp_path / "copy.parquet")
    with pytest.raises(FactsError, match=r"copy\.parquet, row 1: 'answers' is no object; fetch"):
        load_squad(tmp_path / "copy.parquet")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            '"answers"',
            '"answer"',
            r"article 'Lake_Vänern', question a1: there is no 'answers'; fet",
        ),
        ('"text": "Vänern"', '"text": 5', r"question a1: 'text' is no text; fetch"),
        ('"title"', '"name"', r"json, an article: there is no 'title'"),
        ('"question"', '"query"', r"question a1: there is no 'question'"),
        ('"version": "1.1"', '"version": "v2.0"', r"json is SQuAD 2\.0; give a file of SQuAD 1\.1"),
        ('"id": "b2"', '"id": "a1"', r"squad, dev\.json: two questions have the id of squad/a1;"),
    ],
)
def test_a_bad_file_gives_one_sentence(tmp_path, old, new, sentence) -> None:
    path = tmp_path / "dev.json"
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FactsError, match=sentence):
        load_squad(path)


def test_another_set_is_told() -> None:
    with pytest.raises(
        FactsError, match=r"dev\.json looks like HotpotQA, not SQuAD; load it as Hot"
    ):
        load_squad(FILE.with_name("hotpot_qa-dev.json"))
