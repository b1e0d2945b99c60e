"""Files that others published: found on the hub, in its cache or at a path, and read."""

import huggingface_hub
import pandas as pd
import pytest

from factrobust.datasets.hub import fetch, local_files, read_json, read_rows, reading
from factrobust.tables import FactsError

COMMIT, OTHER = "0" * 40, "1" * 40
FRAME = pd.DataFrame({"id": [1]})
CHECKS = {"text": None, "id": None}


def test_offline_a_branch_is_the_commit_that_it_was(hub_cache):
    file = hub_cache("some/set", COMMIT, "rows.parquet", FRAME, ref="main")
    hub_cache("some/set", OTHER, "rows.parquet", FRAME)
    for revision in ("main", COMMIT):
        assert fetch("some/set", revision, "*.parquet") == ([file], COMMIT)
    with pytest.raises(ConnectionError, match=r"at 1111112 from the hub .*: go online once, or"):
        fetch("some/set", "1111112", "*.parquet")


def test_a_file_in_parts_is_read_whole_or_not_at_all(hub_cache):
    second = hub_cache("some/set", COMMIT, "a/train-00001-of-00002.parquet", FRAME)
    with pytest.raises(ConnectionError, match=r"has all of a/train-\*\.parquet of some/set at 0"):
        fetch("some/set", COMMIT, "a/train-*.parquet")
    first = hub_cache("some/set", COMMIT, "a/train-00000-of-00002.parquet", FRAME)
    assert fetch("some/set", COMMIT, "a/train-*.parquet") == ([first, second], COMMIT)


def test_what_the_hub_refuses_is_told_in_one_sentence(monkeypatch):
    def refuses(repo, **options):
        raise OSError("Log in\nfirst. More follows.")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuses)
    with pytest.raises(ConnectionError, match=r"at v9 from the hub \(OSError: Log in first\)"):
        fetch("some/set", "v9", "*.tsv")


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_rows_are_read_and_placed(tmp_path, delimiter):
    path = tmp_path / ("rows.csv" if delimiter == "," else "rows.tsv")
    lines = ["id,text,note", '1,"one\nmore",x', "2,NA,", "", ""]
    path.write_bytes("\r\n".join(lines).replace(",", delimiter).encode("utf-8-sig"))
    rows = read_rows(path, CHECKS)
    assert rows.index.name == "line"
    assert rows.to_dict("index") == {
        2: {"text": "one\nmore", "id": "1"},
        4: {"text": "NA", "id": "2"},  # a text, not a missing value
    }


def test_rows_of_parquet(tmp_path):
    path = tmp_path / "0000.parquet"
    pd.DataFrame({"id": [7, 8], "text": ["seven", None]}).to_parquet(path)
    rows = read_rows(path, CHECKS)
    assert rows.index.name == "row"
    assert rows.to_dict("index") == {1: {"text": "seven", "id": "7"}, 2: {"text": "", "id": "8"}}
    FRAME.to_parquet(path)
    assert read_json(path) == [{"id": 1}]


def test_the_files_of_a_folder(tmp_path):
    with pytest.raises(FactsError, match=r"holds no data \(\.parquet, .*; give a file or its"):
        local_files(tmp_path)
    (tmp_path / "inner").mkdir()
    for name in ("b.csv", "README.md", "inner/a.parquet"):
        (tmp_path / name).write_text("")
    assert local_files(tmp_path) == [tmp_path / "b.csv", tmp_path / "inner" / "a.parquet"]
    assert local_files(tmp_path / "README.md") == [tmp_path / "README.md"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", b'{"a": "\xe9"}', r"a\.json cannot be read as X \(UnicodeDecodeError"),
        ("a.json", b'{"a": "cut', r"\(JSONDecodeError: Unterminated string .*line 1 column 7"),
        ("a.json", b"[]", r"\(IndexError: .*\); give the set's own file, with answers, unpacked"),
        ("a.json", None, r"\(FileNotFoundError"),
        ("a.parquet", b"PAR1 and no more", r"\(ArrowInvalid"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, name, content, sentence):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FactsError, match=sentence), reading(path, "X"):
        read_json(path)[0]
