import pandas as pd
import pytest

from factrobust.draws import sample_evenly
from factrobust.tables import FactsError, nearest, read_table, read_text, slug


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("the United States", "united-states"),
        ("The Shining", "the-shining"),
        ("São Tomé, D.C.", "sao-tome-d-c"),
        ("C", "c"),
        ("C++", "c-plus-plus"),
        ("C#", "c-sharp"),
        ("東京", "東京"),
    ],
)
def test_slug(text, name):
    assert slug(text) == name


def test_nearest_forgives_letters_but_invents_nothing():
    assert nearest("Captial", ["capital", "color"]) == "capital"
    assert nearest("mountain", ["capital", "color"]) is None


def test_cells_are_stripped_and_indexed_by_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('name, n\r\n x ,1\r\n"a, ""b""",2\r\n', newline="")
    table = read_table(path, required=["name"], optional=["n"])
    assert table.to_dict("index") == {2: {"name": "x", "n": "1"}, 3: {"name": 'a, "b"', "n": "2"}}


def test_bytes_that_are_not_utf_8_are_placed(tmp_path):
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa\xc3\xa9")
    assert read_text(tmp_path / "x") == "aé"
    (tmp_path / "x").write_bytes(b"a\n\xe9t")
    with pytest.raises(FactsError, match=r"/x, line 2: the text is not UTF-8; save the file as"):
        read_text(tmp_path / "x")


def test_a_sample_is_even_over_domains_then_relations():
    rows = [("A", "r"), ("A", "r"), ("A", "s"), ("B", "t"), ("B", "t"), ("C", "u")]
    frame = pd.DataFrame(rows, columns=["domain", "relation"])
    frame["fact_id"] = [f"fact-{n}" for n in frame.index]
    sizes = {n: sample_evenly(frame, n, 7)["domain"].value_counts().to_dict() for n in (3, 5, 9)}
    assert sizes == {
        3: {"A": 1, "B": 1, "C": 1},
        5: {"A": 2, "B": 2, "C": 1},
        9: {"A": 3, "B": 2, "C": 1},
    }
    assert set(sample_evenly(frame, 5, 7).query("domain == 'A'")["relation"]) == {"r", "s"}
    mixed = sample_evenly(frame.sample(frac=1, random_state=1), 4, 7)
    assert set(mixed["fact_id"]) == set(sample_evenly(frame, 4, 7)["fact_id"])
    assert sample_evenly(frame, 4, 7).index.is_monotonic_increasing
    picks = {tuple(sample_evenly(frame, 3, seed)["fact_id"]) for seed in range(9)}
    assert len(picks) > 1
    with pytest.raises(ValueError, match="limit is 0; give a whole number"):
        sample_evenly(frame, 0, 7)
