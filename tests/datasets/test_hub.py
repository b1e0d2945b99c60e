import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.datasets.hub import fetch, json_lists, mended, mended_texts, read_rows
from factrobust.datasets.tables import FactsError


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_rows_are_read_and_placed(tmp_path, delimiter):
    path = tmp_path / "rows.txt"
    lines = ["id,text,note", '1,"one\nmore",x', "2,NA,", ""]
    path.write_bytes("\r\n".join(lines).replace(",", delimiter).encode("utf-8-sig"))
    frame = read_rows(path, ("text", "id"))
    assert frame.to_dict("index") == {
        "line 2": {"text": "one\nmore", "id": "1"},
        "line 4": {"text": "NA", "id": "2"},  # a text, not a missing value
    }


def test_a_folder_with_a_parquet_file(tmp_path):
    frame = pd.DataFrame({"id": [7, 8], "text": ["seven", None]})
    frame.to_parquet(tmp_path / "0000.parquet")
    (tmp_path / "README.md").write_text("about")
    rows = read_rows(tmp_path, ("id", "text"))
    assert rows.to_dict("index") == {
        "row 1": {"id": "7", "text": "seven"},
        "row 2": {"id": "8", "text": ""},
    }
    frame.to_csv(tmp_path / "again.csv")
    with pytest.raises(FactsError, match=r"holds 2 tables .* give the path of one"):
        read_rows(tmp_path, ("id", "text"))


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
        ("", r": the column 'id' is missing; it has none\."),
        ("id,text\n", r" has no rows; fetch it anew\."),
        (b"id,text\n1,\xe9t\xe9\n", r" cannot be read \(.*utf-8.*\); check the path and"),
        (None, r" cannot be read \(.*No such file"),
    ],
)
def test_a_bad_file_gives_one_sentence(tmp_path, content, what):
    path = tmp_path / "rows.csv"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FactsError, match=f"rows.csv'?{what}" if content else what):
        read_rows(path, ("id", "text"))


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


def test_fetch_asks_the_hub(tmp_path, monkeypatch):
    import huggingface_hub

    asked = []

    def snapshot_download(repo, **options):
        asked.append((repo, options))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert fetch("someone/something", "abc", "*.tsv") == tmp_path
    options = {"repo_type": "dataset", "revision": "abc", "allow_patterns": "*.tsv"}
    assert asked == [("someone/something", options)]

    def fails(repo, **options):
        raise TimeoutError

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fails)
    with pytest.raises(
        ConnectionError, match=r"at abc from the hub \(TimeoutError\): download its"
    ):
        fetch("someone/something", "abc", "*.tsv")
