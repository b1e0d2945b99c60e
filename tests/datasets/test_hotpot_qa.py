import json
from pathlib import Path

import pandas as pd
import pytest

from factrobust.datasets.hotpot_qa import HUB, REVISION, load_hotpot_qa
from factrobust.tables import FactsError

FILE = Path(__file__).parent / "data" / "hotpot_qa-dev.json"  # of the official format, written here
COLUMNS = ["fact_id", "object", "aliases", "kind"]
ROWS = [
    ["hotpotqa/5a1", "Bergen", [], "bridge"],
    ["hotpotqa/5a2", "yes", [], "comparison"],
    ["hotpotqa/5a3", "Bergen", [], "comparison"],
]


@pytest.fixture
def copy() -> pd.DataFrame:
    """The same questions in the columns of the hub's copy."""
    frame = pd.DataFrame(json.loads(FILE.read_text(encoding="utf-8")))
    return frame.rename(columns={"_id": "id"})[["id", "question", "answer", "type", "level"]]


def test_official_file() -> None:
    table = load_hotpot_qa(FILE)
    assert table[COLUMNS].to_numpy().tolist() == ROWS
    assert table.loc[2, "question"] == "Which is the older town, Bergen or Bodø?"
    assert set(table["source"]) == {"hotpotqa/hotpot_qa, hotpot_qa-dev.json"}
    assert {name: n for name, n in table.attrs["counts"].items() if n} == {
        "questions": 4,
        "kept": 3,
        "long_answers": 1,
        "yes_or_no": 1,
    }


def test_the_cached_copy_at_the_pinned_revision(hub_cache, copy) -> None:
    hub_cache(HUB, REVISION, "distractor/validation-00000-of-00001.parquet", copy)
    hub_cache(HUB, REVISION, "distractor/train-00000-of-00002.parquet", copy[:2])
    table = load_hotpot_qa()
    assert table[COLUMNS].to_numpy().tolist() == ROWS
    assert set(table["source"]) == {f"hotpotqa/hotpot_qa@{REVISION}"}
    with pytest.raises(
        ConnectionError, match=r"all of distractor/train-\*\.parquet of hotpotqa/hot"
    ):
        load_hotpot_qa(split="train")  # one of its two parts is missing
    hub_cache(HUB, REVISION, "distractor/train-00001-of-00002.parquet", copy[2:])
    assert load_hotpot_qa(split="train")[COLUMNS].to_numpy().tolist() == ROWS


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            '"answer"',
            '"no answer"',
            r"record 1: there is no 'answer' \(test questions are published",
        ),
        ('"_id": "5a3"', '"_id": 53', r"record 3: '_id' is no text; fetch"),
        ('"_id": "5a3"', '"_id": "5a1"', r"two questions have the id of hotpotqa/5a1; remove"),
    ],
)
def test_a_bad_file_gives_one_sentence(tmp_path, old, new, sentence) -> None:
    path = tmp_path / "dev.json"
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FactsError, match=sentence):
        load_hotpot_qa(path)


def test_another_set_is_told(tmp_path) -> None:
    with pytest.raises(
        FactsError, match=r"dev\.json looks like TriviaQA, not HotpotQA; load it as"
    ):
        load_hotpot_qa(FILE.with_name("trivia_qa-unfiltered-dev.json"))
    (tmp_path / "odd.json").write_text('{"a": 1}')
    with pytest.raises(FactsError, match=r"odd\.json holds no list of records; give an official"):
        load_hotpot_qa(tmp_path / "odd.json")
