"""Files that are not what they are called, and files that break."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from factrobust.datasets.formats import (
    check_format,
    field,
    is_parquet,
    read_json,
    read_records,
    texts,
)
from factrobust.tables import FactsError

DATA = Path(__file__).parent / "data"
BEGINNINGS = {
    "SQuAD": (DATA / "squad-dev.json").read_bytes(),
    "TriviaQA": (DATA / "trivia_qa-unfiltered-dev.json").read_bytes(),
    "HotpotQA": (DATA / "hotpot_qa-dev.json").read_bytes(),
    "TREC": (DATA / "TREC_10.label").read_bytes(),
    "PopQA": b"id\tsubj\tprop\ts_pop\tquestion\n1\ta\tsport\t4\tQ?\n",
    "PopQA-TP": b"paraphrase,template_id,prop,possible_answers,id\nQ?,0,sport,[],1\n",
    "TempLAMA": b'{"query": "Ann plays for _X_.", "answer": [{"name": "Reds"}], "date": "2010"}\n',
    "TimeStress": b'{"SubjectID": "Q1", "SubjectLabel": "Ann"}\n',
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_file_is_told_by_its_beginning(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(BEGINNINGS[name])
    check_format(path, name)
    for other in BEGINNINGS.keys() - {name}:
        with pytest.raises(FactsError, match=f"file looks like {name}, not {other}; load it as"):
            check_format(path, other)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "file is empty; fetch SQuAD anew."),
        (b" \n", "file is empty; fetch SQuAD anew."),
        (b"\x1f\x8b\x08\x00", "file is packed by gzip; unpack it."),
        (b"PK\x03\x04...", "file is a zip archive; unpack it."),
        (b"version https://git-lfs.github.com/spec/v1\noid", "file is a pointer of Git LFS, not"),
        (b"\n<!DOCTYPE html>", "file is a web page; download the file itself."),
    ],
)
def test_what_stands_in_for_a_file(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(FactsError, match=re.escape(sentence)):
        check_format(path, "SQuAD")


def test_a_file_of_no_known_form_passes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("something else")
    check_format(path, "SQuAD")
    with pytest.raises(FactsError, match=r"nowhere cannot be read \(No such file or directory\)"):
        check_format(tmp_path / "nowhere", "SQuAD")
    with pytest.raises(FactsError, match=r"cannot be read \(Is a directory\); check the path"):
        check_format(tmp_path, "SQuAD")


@pytest.mark.parametrize("name", ["squad-dev.json", "trivia_qa-unfiltered-dev.json"])
def test_every_cut_is_told_with_its_place(tmp_path: Path, name: str) -> None:
    whole = (DATA / name).read_bytes().rstrip()
    path = tmp_path / "cut.json"
    for end in range(1, len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(FactsError) as error:
            read_json(path, "SQuAD" if name.startswith("squad") else "TriviaQA")
        place = re.search(
            r"is cut short: .* line (\d+), column \d+ \(byte (\d+)\);", str(error.value)
        )
        assert place, (end, str(error.value))
        assert int(place[2]) == end
        assert int(place[1]) == whole[:end].count(b"\n") + 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"é": 1,\n "b": 2 "c": 3, "d": 4}', "line 2, column 9 (byte 19): the JSON is broken (Exp"),
        ('{"a": 1}\n{"a": 2}', "line 2: more follows the end of the JSON, as in a file of JSON lines"),
        ('{"a": 1', " is cut short: it ends inside the JSON, at line 1, column 7 (byte 7); fetch"),
        ('{"a": tru', " is cut short: it ends inside the JSON, at line 1, column 9 (byte 9); fetch"),
        ('{"a": 1,}', ": the JSON is broken ("),
        ('{"a": "\\u00', " is cut short: it ends inside the JSON, at line 1, column 11 (byte 11)"),
        ('{"a": -1.', " is cut short: it ends inside the JSON, at line 1, column 9 (byte 9)"),
        (b'{"a":\n "caf\xe9"}', "file, line 2: the text is not UTF-8; fetch SQuAD anew, or convert"),
        ('{"a": 1}'.encode("utf-16"), "file, line 1: the text is not UTF-8; fetch SQuAD anew"),
    ],
)  # fmt: skip
def test_broken_json(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FactsError, match=re.escape(sentence)):
        read_json(path, "SQuAD")


def test_whole_json(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes('\ufeff{"a": ["é"]}\n'.encode())
    assert read_json(path, "SQuAD") == {"a": ["é"]}


def test_parquet_records(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    frame = pd.DataFrame({"id": ["1"], "answers": [{"text": ["a", "b"]}], "context": ["long"]})
    frame.to_parquet(path)
    assert is_parquet(path)
    assert read_records(path, "SQuAD", ("id", "answers")) == [
        {"id": "1", "answers": {"text": ["a", "b"]}}
    ]
    with pytest.raises(FactsError, match=r"column 'title' is missing; it has id, answers, context"):
        read_records(path, "SQuAD", ("id", "title"))
    frame[:0].to_parquet(path)
    with pytest.raises(FactsError, match=r"rows\.parquet has no rows; fetch SQuAD anew"):
        read_records(path, "SQuAD", ("id",))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(FactsError, match=r"rows\.parquet cannot be read as parquet \(.*; fetch"):
        read_records(path, "SQuAD", ("id",))
    assert not is_parquet(tmp_path / "nowhere")


def test_a_long_header_is_shown_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({f"column{n}": [1] for n in range(99)}).to_parquet(path)
    with pytest.raises(FactsError, match=r"it has column0, .* \.\.\.\.$") as error:
        read_records(path, "SQuAD", ("id",))
    assert len(str(error.value)) < len(str(path)) + 260


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({}, "here: there is no 'answer' (test questions are published without); fetch the file"),
        ({"answer": None}, "here: there is no 'answer' (test"),
        ({"answer": ["a"]}, "here: 'answer' is no text (test"),
        ([], "here: there is no 'answer'"),
    ],
)
def test_a_field_that_is_not_there(record: object, sentence: str) -> None:
    with pytest.raises(FactsError, match=re.escape(sentence)):
        field(record, "answer", str, "here")
    assert field({"answer": "a"}, "answer", str, "here") == "a"


def test_a_list_of_texts() -> None:
    assert texts({"a": ["b"]}, "a", "here") == ["b"]
    with pytest.raises(FactsError, match="here: 'a' is no list of texts; fetch the file anew"):
        texts({"a": ["b", 1]}, "a", "here")
    with pytest.raises(FactsError, match="here: 'a' is no list; fetch"):
        texts(json.loads('{"a": "b"}'), "a", "here")
