from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.datasets.hub import (
    fetch,
    json_lists,
    located,
    mended,
    mended_texts,
    read_lines,
    read_rows,
)
from factrobust.tables import FactsError


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_rows_are_read_and_placed(tmp_path, delimiter):
    path = tmp_path / "rows.txt"
    lines = ["id,text,note", '1,"one\nmore",x', "2,NA,", ""]
    path.write_bytes("\r\n".join(lines).replace(",", delimiter).encode("utf-8-sig"))
    frame = read_rows(path, ("text", "id"), "PopQA")
    assert frame.to_dict("index") == {
        "line 2": {"text": "one\nmore", "id": "1"},
        "line 4": {"text": "NA", "id": "2"},  # a text, not a missing value
    }


def test_a_folder_with_a_parquet_file(tmp_path):
    frame = pd.DataFrame({"id": [7, 8], "text": ["seven", None]})
    frame.to_parquet(tmp_path / "0000.parquet")
    (tmp_path / "README.md").write_text("about")
    rows = read_rows(tmp_path, ("id", "text"), "PopQA")
    assert rows.to_dict("index") == {
        "row 1": {"id": "7", "text": "seven"},
        "row 2": {"id": "8", "text": ""},
    }
    frame.to_csv(tmp_path / "again.csv")
    with pytest.raises(FactsError, match=r"holds 2 tables .* give the path of one"):
        read_rows(tmp_path, ("id", "text"), "PopQA")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("id,text\n1,a\n2,b,c\n", r", line 3: the row has 3 cells and the header 2; fetch"),
        ("id,text\n1,a\n2\n", r", line 3: the row has 1 cells and the header 2"),
        (
            'id,text\n1,a\n2,"cut sho',
            r", line 3: the row cannot be read \(unexpected end of data\)",
        ),
        ("id,words\n1,a\n", r": the column 'text' is missing; it has id, words\."),
        ("", r" is empty; fetch PopQA anew\."),
        ("\n", r" is empty; fetch PopQA anew\."),
        ('{"data": [{"title": "A", "paragraphs": []}]}', r" looks like SQuAD, not PopQA; load it"),
        ("id,text\n", r" has no rows; fetch it anew\."),
        (b"id,text\n1,\xe9t\xe9\n", r", line 2: the text is not UTF-8; fetch it anew, or convert"),
        ("id,text\n1,a\n".encode("utf-16"), r", line 1: the text is not UTF-8; fetch it anew"),
        (None, r" cannot be read \(No such file or directory\); check the path of the file\."),
    ],
)
def test_a_bad_file_gives_one_sentence(tmp_path, content, what):
    path = tmp_path / "rows.csv"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FactsError, match=f"rows.csv'?{what}" if content else what):
        read_rows(path, ("id", "text"), "PopQA")


def test_json_lists_name_row_and_column(tmp_path):
    cells = pd.Series(['["a", "b"]', '["a", "b"]', '["caf\\u00e9"]'], name="aliases")
    assert list(json_lists(cells, tmp_path)) == [(cells[0], ["a", "b"]), (cells[2], ["café"])]
    for bad in ('["politician", "political lead', "politician", '"politician"', "[1]", ""):
        cells = pd.Series(["[]", bad], index=["line 2", "line 3"], name="possible_answers")
        message = (
            f"/answers.tsv, line 3: the possible_answers {bad!r} is no whole JSON list of texts;"
        )
        with pytest.raises(FactsError) as error:
            list(json_lists(cells, tmp_path / "answers.tsv"))
        assert message in str(error.value)


def test_a_long_cell_is_shown_by_its_ends(tmp_path):
    cells = pd.Series(["[" + '"politician", ' * 9], name="aliases")
    shown = r"""the aliases '\["politician", "poli\.\.\.", "politician", ' is no whole JSON list"""
    with pytest.raises(FactsError, match=shown):
        list(json_lists(cells, tmp_path))


@pytest.mark.parametrize(
    ("garbled", "whole"),
    [
        ("Leona Deti√®ge", "Leona Detiège"),
        ("√ûorsteinn Bachmann", "Þorsteinn Bachmann"),
        ("Ivica Brziƒá", "Ivica Brzić"),
        ("Leipzig‚ÄìDresden", "Leipzig–Dresden"),
        ("\uf8ffüèà", "🏈"),
        ("BeyoncÃ©", "Beyoncé"),
        ("donâ€™t", "don’t"),
        ("Ã\x81rpÃ¡d", "Árpád"),
        ("–ú–æ—Å–∫–≤–∞", "Москва"),
        ("Bra»ôov", "Brașov"),
        ("Hu·∫ø", "Huế"),
    ],
)
def test_mojibake_is_mended(garbled, whole):
    assert mended(garbled) == (whole, True)


@pytest.mark.parametrize(
    "text",
    [
        "Beyoncé",
        "L’État",
        "«États»",
        "São Paulo",
        "Paris–Évreux",
        "CAFÉ™",
        "Århus",
        "√2",
        "北京",
        "Łódź",
    ],
)
def test_right_letters_stay(text):
    assert mended(text) == (text, False)


def test_lost_letters_are_counted():
    texts, count = mended_texts(pd.Series(["Deti\ufffdge", "Oslo", "Mjösa", "MjÃ¶sa"]))
    assert texts.tolist() == ["Deti\ufffdge", "Oslo", "Mjösa", "Mjösa"]
    assert count == 2


@settings(deadline=None)
@given(st.text("abc '-éèüñøßÅÉćžőșğế–’“"), st.sampled_from(["mac_roman", "latin-1"]))
def test_names_survive_being_garbled(name, encoding):
    assert mended(name.encode().decode(encoding)) == (name, not name.isascii())


COMMIT, OTHER = "0" * 40, "1" * 40
FRAME = pd.DataFrame({"id": [1]})


def test_a_cached_commit_is_read_without_the_hub(hub_cache, monkeypatch):
    import huggingface_hub

    file = hub_cache("some/set", COMMIT, "data/test-0.tsv", b"id\n1\n")
    hub_cache("some/set", COMMIT, "data/train-0.tsv", b"id\n2\n")
    snapshot_download = huggingface_hub.snapshot_download
    asked = []

    def watched(repo, **options):
        asked.append(options.get("local_files_only", False))
        return snapshot_download(repo, **options)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", watched)
    assert fetch("some/set", COMMIT, "data/test-*.tsv") == ([file], COMMIT)
    assert asked == [True]
    assert located(None, "some/set", COMMIT, "*/test-*.tsv") == ([file], f"some/set@{COMMIT}")
    assert located("x/a.tsv", "some/set", COMMIT, "*") == ([Path("x/a.tsv")], "some/set, a.tsv")


def test_a_commit_may_be_named_by_its_first_digits(hub_cache):
    file = hub_cache("some/set", COMMIT, "rows.tsv", b"id\n1\n")
    other = hub_cache("some/set", OTHER, "rows.tsv", b"id\n2\n", ref="main")
    assert fetch("some/set", "1111111", "*.tsv") == ([other], OTHER)
    assert fetch("some/set", "00000000", "*.tsv") == ([file], COMMIT)
    with pytest.raises(ConnectionError, match=f"at 1111112 .* only {COMMIT}, {OTHER} of it"):
        fetch("some/set", "1111112", "*.tsv")
    with pytest.raises(ConnectionError, match="Could not fetch some/set at 111111 "):
        fetch("some/set", "111111", "*.tsv")  # too few digits for a commit


def test_a_branch_offline_is_the_commit_that_it_was(hub_cache):
    file = hub_cache("some/set", COMMIT, "rows.parquet", FRAME, ref="main")
    hub_cache("some/set", OTHER, "rows.parquet", FRAME)
    assert fetch("some/set", "main", "*.parquet") == ([file], COMMIT)


def test_a_file_in_parts_is_read_whole_or_not_at_all(hub_cache):
    second = hub_cache("some/set", COMMIT, "a/train-00001-of-00002.parquet", FRAME)
    sentence = (
        r"Neither the hub nor its cache has all of a/train-\*\.parquet of some/set at 0{40}: go"
    )
    with pytest.raises(ConnectionError, match=sentence):
        fetch("some/set", COMMIT, "a/train-*.parquet")
    first = hub_cache("some/set", COMMIT, "a/train-00000-of-00002.parquet", FRAME)
    assert fetch("some/set", COMMIT, "a/train-*.parquet") == ([first, second], COMMIT)


def test_what_is_not_in_the_cache_is_told_offline(hub_cache):
    with pytest.raises(ConnectionError) as error:
        fetch("some/set", COMMIT, "*.tsv")
    assert str(error.value) == (
        f"Could not fetch some/set at {COMMIT} from the hub (OfflineModeIsEnabled), and its cache "
        "holds nothing of it: go online once, or download its *.tsv and pass its path instead."
    )
    hub_cache("some/set", COMMIT, "rows.tsv", b"id\n1\n", ref="main")
    with pytest.raises(ConnectionError, match=f"at {OTHER} .* its cache holds only {COMMIT} of it"):
        fetch("some/set", OTHER, "*.tsv")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("RevisionNotFoundError", "some/set has no revision 'v9' on the hub: give one that it has, or"),
        ("RepositoryNotFoundError", "The hub does not show some/set without a login: run `hf auth"),
        ("GatedRepoError", "The hub does not show some/set without a login: run `hf auth login`, or"),
        ("HfHubHTTPError", r"Could not fetch some/set at v9 from the hub \(HfHubHTTPError\)"),
    ],
)  # fmt: skip
def test_what_the_hub_refuses(hub_cache, monkeypatch, name, sentence):
    import huggingface_hub
    from huggingface_hub import errors

    refusal = getattr(errors, name)

    def refuses(repo, **options):
        raise refusal.__new__(refusal)  # its own __init__ wants the server's response

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuses)
    with pytest.raises(ConnectionError, match=sentence):
        fetch("some/set", "v9", "*.tsv")


def test_json_lines_are_placed(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes('\ufeff{"a": "é\u2028"}\n\n{"a": 2}\n'.encode())
    assert list(read_lines(path, "TempLAMA")) == [
        (f"{path}, line 1", {"a": "é\u2028"}),
        (f"{path}, line 3", {"a": 2}),
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"a": 1}\n{"a": "cut', r"rows\.jsonl, line 2, column 7: not JSON \(Unterminated string"),
        (b'{"a": 1}\n[1]\n', r"rows\.jsonl, line 2: no JSON object; write"),
        (b'{"a": "\xe9"}', r"rows\.jsonl, line 1: the text is not UTF-8; fetch it anew, or"),
        (b"\n\n", r"rows\.jsonl is empty; fetch TempLAMA anew"),
        (b'[{"_id": "1"}]', r"rows\.jsonl looks like HotpotQA, not TempLAMA"),
    ],
)
def test_bad_json_lines(tmp_path, content, sentence):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(FactsError, match=sentence):
        list(read_lines(path, "TempLAMA"))
