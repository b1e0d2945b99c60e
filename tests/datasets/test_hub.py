"""Files that others published: found on the hub, in its cache or at a path, and read."""

from pathlib import Path

import huggingface_hub
import pandas as pd
import pytest

from factrobust.datasets.hub import adapted, fetch, local_files, read_json, read_rows
from factrobust.tables import FactsError, csv_schema

COMMIT, OTHER = "0" * 40, "1" * 40
FRAME = pd.DataFrame({"id": [1]})
SCHEMA = csv_schema(("text", "id"), {})


def test_offline_a_branch_is_the_commit_that_it_was(hub_cache):
    file = hub_cache("some/set", COMMIT, "rows.parquet", FRAME, ref="main")
    hub_cache("some/set", OTHER, "rows.parquet", FRAME)
    for revision in ("main", COMMIT):
        assert fetch("some/set", revision, "*.parquet") == ([file], COMMIT)
    with pytest.raises(ConnectionError, match="at 1111112 from"):
        fetch("some/set", "1111112", "*.parquet")


def test_a_file_in_parts_is_read_whole_or_not_at_all(hub_cache):
    second = hub_cache("some/set", COMMIT, "a/train-00001-of-00002.parquet", FRAME)
    with pytest.raises(
        ConnectionError, match=r"has all of a/train-\*\.parquet of some/set at 0{40}"
    ):
        fetch("some/set", COMMIT, "a/train-*.parquet")
    first = hub_cache("some/set", COMMIT, "a/train-00000-of-00002.parquet", FRAME)
    assert fetch("some/set", COMMIT, "a/train-*.parquet") == ([first, second], COMMIT)


def test_what_the_hub_refuses_is_told_in_one_sentence(hub_cache, monkeypatch):
    with pytest.raises(ConnectionError, match=r"from the hub .*: go online once, or"):
        fetch("some/set", COMMIT, "*.tsv")

    def refuses(repo, **options):
        raise OSError("Log in\nfirst. More follows.")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuses)
    with pytest.raises(
        ConnectionError, match=r"some/set at v9 from the hub \(OSError: Log in first\)"
    ):
        fetch("some/set", "v9", "*.tsv")


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_rows_are_read_and_placed(tmp_path, delimiter):
    path = tmp_path / ("rows.csv" if delimiter == "," else "rows.tsv")
    lines = ["id,text,note", '1,"one\nmore",x', "2,NA,", "", ""]
    path.write_bytes("\r\n".join(lines).replace(",", delimiter).encode("utf-8-sig"))
    rows = read_rows(path, SCHEMA, "PopQA")
    assert rows.index.name == "line"
    assert rows.to_dict("index") == {
        2: {"text": "one\nmore", "id": "1"},
        4: {"text": "NA", "id": "2"},  # a text, not a missing value
    }


def test_rows_of_parquet(tmp_path):
    path = tmp_path / "0000.parquet"
    pd.DataFrame({"id": [7, 8], "text": ["seven", None]}).to_parquet(path)
    rows = read_rows(path, SCHEMA, "PopQA")
    assert rows.index.name == "row"
    assert rows.to_dict("index") == {1: {"text": "seven", "id": "7"}, 2: {"text": "", "id": "8"}}
    FRAME.to_parquet(path)
    with pytest.raises(FactsError, match=r"0000\.parquet cannot be read as PopQA \(.*text"):
        read_rows(path, SCHEMA, "PopQA")


def test_the_files_of_a_folder(tmp_path):
    with pytest.raises(
        FactsError, match=r"holds no data \(\.parquet, .*; give a file or its folder"
    ):
        local_files(tmp_path)
    (tmp_path / "inner").mkdir()
    for name in ("b.csv", "README.md", "inner/a.parquet"):
        (tmp_path / name).write_text("")
    assert local_files(tmp_path) == [tmp_path / "b.csv", tmp_path / "inner" / "a.parquet"]
    assert local_files(tmp_path / "README.md") == [tmp_path / "README.md"]


def test_json_lines_and_parquet(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes('\ufeff{"a": "é\u2028"}\n\n{"a": 2}\n'.encode())
    assert read_json(path, "a set", lines=True) == [{"a": "é\u2028"}, {"a": 2}]
    FRAME.to_parquet(path)
    assert read_json(path, "a set") == [{"id": 1}]


@pytest.mark.parametrize(
    ("content", "lines", "sentence"),
    [
        (b'{"a": 1}\n{"a": "cut', True, r"rows, line 2 cannot be read as a set \(.*Unterminated"),
        (b'{"a": "\xe9"}', False, r"rows cannot be read as a set \(UnicodeDecodeError"),
        (b'{"a": "cut', False, r"\(JSONDecodeError: Unterminated string .*line 1 column 7"),
        (b"", False, r"it begins b'': fetch the set's own file anew, unpacked\.$"),
        (b"<!DOCTYPE html>", False, r"it begins b'<!DOCTYPE html>': fetch"),
        (b"PAR1 and no more", False, r"rows cannot be read as a set \(ArrowInvalid"),
        (None, False, r"rows cannot be read as a set \(FileNotFoundError"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, content, lines, sentence):
    path = tmp_path / "rows"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FactsError, match=sentence):
        read_json(path, "a set", lines=lines)


def test_a_row_that_an_adapter_cannot_read_is_placed():
    rows = adapted(Path("x.json"), "a set", lambda rows: (row["a"] for row in rows), [{"a": 5}, {}])
    assert next(rows) == 5
    with pytest.raises(
        FactsError, match=r"^x\.json, row 2: not as in a set's files \(KeyError: 'a'\)"
    ):
        next(rows)
