"""The names that a notebook's parameter `data` may hold."""

from pathlib import Path

import pandas as pd
import pytest

from factrobust import schemas
from factrobust.datasets.facts import load_question_types
from factrobust.datasets.named import load_named, load_named_types
from factrobust.datasets.official import SETS

DATA = Path(__file__).parent / "data"
COMMIT = "0" * 40
SQUAD = f"squad:{DATA / 'squad-dev.json'}"
TRIVIA = f"trivia_qa:{DATA / 'trivia_qa-unfiltered-dev.json'}"
HOTPOT = f"hotpot_qa:{DATA / 'hotpot_qa-dev.json'}"


def test_several_sets_over_which_a_limit_is_spread() -> None:
    table, counts, _ = load_named([SQUAD, TRIVIA, HOTPOT])
    assert tuple(table.columns) == tuple(schemas.AskedFacts.columns)
    assert table["domain"].tolist() == ["SQuAD"] * 2 + ["TriviaQA"] * 2 + ["HotpotQA"] * 3
    assert (counts[TRIVIA]["questions"], counts[TRIVIA]["long_answers"]) == (3, 1)
    three = load_named([SQUAD, TRIVIA, HOTPOT], limit=3, seed=1).table
    assert three["domain"].tolist() == ["SQuAD", "TriviaQA", "HotpotQA"]


def test_a_csv_of_your_own_and_long_answers(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "subject,relation,object\nBhutan,capital,a town of no name\n"  # five words
        "Utopia,capital,a town of no name here\n"
    )
    table, counts, _ = load_named([str(path)])
    assert table["question"].tolist() == ["What is the capital of Bhutan?"]
    assert counts == {str(path): {"long_answers": 1, "kept": 1}}


def test_a_revision(hub_cache) -> None:
    row = {"id": "1", "title": "A", "question": "Q?", "answers": {"text": ["a"]}}
    hub_cache("rajpurkar/squad", COMMIT, "plain_text/validation-0.parquet", pd.DataFrame([row]))
    table, _, _ = load_named([f"squad@{COMMIT}"])
    assert table["source"].tolist() == [f"rajpurkar/squad@{COMMIT}"]
    with pytest.raises(ConnectionError, match=SETS["squad"].hub.replace("@", " at ")):
        load_named(["squad"])


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["sqaud"], "no data set is called 'sqaud'; known are embedded, world, world-1, "),
        (["popqa@"], "no data set is called 'popqa@'; known are"),
        (["facts.tsv"], r"no data set is called 'facts\.tsv'; known are embedded"),
        ([], "no data set is named; give embedded, an official"),
        (
            [SQUAD, f"squad:{DATA}/../data/squad-dev.json"],
            "two facts of squad:.* are called squad/a1",
        ),
    ],
)
def test_names_that_are_not_known(names: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load_named(names)


def test_typed_questions_are_ours_or_trec() -> None:
    train, test = load_named_types()
    assert len(train) == 403
    assert len(test) == 100
    pd.testing.assert_frame_equal(test, load_question_types("test"))
    train, test = load_named_types(f"trec:{DATA}")
    assert len(train) == 7
    assert test["answer_type"].tolist() == ["Location", "Numerical"]
    assert set(train["relation"]) == {""}  # none of the facts table's
