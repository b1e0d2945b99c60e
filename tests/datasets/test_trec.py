"""TREC's file format, and the embedded typed questions."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from factrobust.datasets.facts import load_question_types, load_relations
from factrobust.datasets.trec import HUB, REVISION, load_trec
from factrobust.tables import FactsError

FILES = Path(__file__).parent / "data"  # of the official names and format, lines written for this


def test_official_format() -> None:
    assert load_trec(FILES).to_numpy().tolist() == [
        ["When did the lighthouse of Alexandria fall ?", "Numerical"],
        ["Who sang at the opening of the Café de Flore ?", "Human"],
        ["Which city has a sister city called Kyoto ?", "Location"],  # byte 0xF0 is a space
        ["What animal barks ?", "Entity"],
        ["What is a dhow ?", "Description"],
        ["What does NATO stand for ?", "Abbreviation"],
        ["Which band\x85 played at Live Aid ?", "Human"],  # 0x85 does not end a line
    ]


def test_split_chooses_the_file_of_a_folder_only() -> None:
    assert load_trec(FILES, "test")["answer_type"].tolist() == ["Location", "Numerical"]
    assert len(load_trec(FILES / "TREC_10.label", "train")) == 2
    with pytest.raises(ValueError, match="no split 'dev'"):
        load_trec(FILES, "dev")


@pytest.mark.parametrize(
    "line", ["", "Who wrote it ?", "ANIMAL:x What barks ?", "HUM:ind", "HUM Who ?"]
)
def test_malformed_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "train_5500.label"
    file.write_text(f"HUM:ind Who ?\n{line}\nLOC:city Where ?\n", encoding="latin-1")
    with pytest.raises(ValueError, match=r"train_5500\.label, line 2: expected 'HUM:ind Who"):
        load_trec(tmp_path)


def test_missing_file_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"TREC_10\.label.*download .* and pass its folder"):
        load_trec(tmp_path, "test")


def test_a_copy_in_utf_8_reads_the_same(tmp_path: Path) -> None:
    text = (FILES / "train_5500.label").read_bytes().replace(b"\xf0", b" ").decode("latin-1")
    (tmp_path / "train_5500.label").write_text(text, encoding="utf-8", newline="")
    pd.testing.assert_frame_equal(load_trec(tmp_path), load_trec(FILES))


def test_another_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "train_5500.label"
    file.write_text("")
    with pytest.raises(FactsError, match=r"train_5500\.label is empty; fetch TREC anew"):
        load_trec(tmp_path)
    with pytest.raises(FactsError, match=r"dev\.json looks like SQuAD, not TREC; load it as SQuAD"):
        load_trec(FILES / "squad-dev.json")


def test_the_cached_copy_at_the_pinned_revision(hub_cache: Callable[..., Path]) -> None:
    table = {"text": [" What is a dhow ? ", "Who ?"], "coarse_label": [2, 3], "fine_label": [1, 2]}
    file = hub_cache(HUB, REVISION, "default/test/0000.parquet", pd.DataFrame(table))
    rows = [["What is a dhow ?", "Description"], ["Who ?", "Human"]]
    assert load_trec("CogComp/trec", "test").to_numpy().tolist() == rows
    assert load_trec(file).to_numpy().tolist() == rows
    with pytest.raises(ConnectionError, match=r"all of default/train/\*\.parquet of CogComp/trec"):
        load_trec()
    with pytest.raises(
        ConnectionError, match=f"at abc from the hub .* its cache holds only {REVISION}"
    ):
        load_trec(split="test", revision="abc")


def test_embedded_questions() -> None:
    typed = load_question_types()
    assert typed["answer_type"].value_counts().to_dict() == {
        "Entity": 126, "Human": 126, "Location": 125, "Numerical": 126
    }  # fmt: skip
    # No type is given away by these two openings alone.
    opening = typed["question"].str.split().str[0]
    assert pd.crosstab(opening, typed["answer_type"]).loc[["What", "Which"]].min().min() >= 4


def test_named_relations_are_those_of_the_facts_table() -> None:
    typed = load_question_types()
    named = typed[typed["relation"] != ""]
    relations = load_relations()
    assert (relations.loc[named["relation"], "answer_type"].array == named["answer_type"]).all()
    # Every type has questions left when relations are held out.
    left = typed.loc[typed["relation"] == "", "answer_type"].value_counts()
    assert left.sum() == 334
    assert left.min() >= 45


def test_embedded_splits_partition_the_questions() -> None:
    train, test = load_question_types("train"), load_question_types("test")
    assert (len(train), len(test)) == (403, 100)
    assert test["answer_type"].value_counts().eq(25).all()
    both = pd.concat([train, test])["question"]
    assert set(both) == set(load_question_types()["question"])
    with pytest.raises(ValueError, match="no split 'dev'"):
        load_question_types("dev")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("question,type\nWho?,Human\n", "'answer_type' is missing"),
        (
            "question,answer_type\nWho?,Human\nWhere?,Place\n",
            "line 3: the answer_type 'Place' is unk",
        ),
        ("question,answer_type\nWho?,Human\nwho?,Human\n", "line 3: .* already in line 2"),
        ("question,answer_type\nWho,Human\n", "line 2: the question 'Who' does not end as"),
    ],
)
def test_bad_question_file_is_refused(tmp_path: Path, rows: str, message: str) -> None:
    file = tmp_path / "typed.csv"
    file.write_text(rows, encoding="utf-8")
    with pytest.raises(FactsError, match=message):
        load_question_types(path=file)
