"""What every table of ours is read by, and small steps with tables."""

import pandas as pd
import pytest
from frames import cells, frame
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.tables import FactsError, melted, read_table, read_text, slug, stacked

SLUGS = """
    the United States  united-states
    The Shining        the-shining
    São Tomé, D.C.     sao-tome-d-c
    C                  c
    C++                c-plus-plus
    C#                 c-sharp
    東京               東京
"""


@pytest.mark.parametrize(("text", "name"), cells(SLUGS))
def test_slug(text, name):
    assert slug(text) == name


def test_stacked_tables_and_melted_columns_say_which_they_are():
    table = stacked({"a": pd.DataFrame({"x": [1]}), "b": pd.DataFrame({"x": [2, 3]})}, "of")
    assert table.values.tolist() == [[1, "a"], [2, "b"], [3, "b"]]
    table = frame("""
        fact  sure  right  z
        f     0.5   True   1
        g     NaN   False  1
    """)
    long = melted(table, ["measure", "fact"], ["right", "sure"])
    found = long[["measure", "fact", "value"]].values.tolist()
    assert found == [["right", "f", 1.0], ["right", "g", 0.0], ["sure", "f", 0.5]]


def test_cells_are_stripped_and_indexed_by_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('name, n\r\n x ,1\r\n\r\n"a, ""b""",2\r\n', newline="")
    table = read_table(path, required=["name"], optional=["n"])
    assert table.to_dict("index") == {2: {"name": "x", "n": "1"}, 4: {"name": 'a, "b"', "n": "2"}}


def test_columns_without_a_name_behind_the_last_one_are_none(tmp_path):
    """As a spreadsheet writes them; but what stands in one is no longer anybody's."""
    path = tmp_path / "a.csv"
    path.write_text("name,n,,\nx,1,,\ny,2\nz,3, \n")
    table = read_table(path, required=["name"], optional=["n"])
    assert table.to_numpy().tolist() == [["x", "1"], ["y", "2"], ["z", "3"]]
    for row, n in (("x,1,,", 4), ("x,1,", 3)):
        path.write_text(f"name,n\n{row}\n")  # the comma may be one inside of a cell
        with pytest.raises(FactsError, match=f"the row has {n} cells and the header 2"):
            read_table(path, required=["name"], optional=["n"])
    path.write_text("name,n,,\nx,1,Rome,\n")
    with pytest.raises(FactsError, match="the row has 4 cells and the header 2"):
        read_table(path, required=["name"], optional=["n"])


def test_a_sign_that_is_blank_to_python_alone(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("\x1c")
    with pytest.raises(FactsError, match=r"x\.csv, line 1: the column 'a' is missing"):
        read_table(path, required=["a"])


def test_bytes_that_are_not_utf_8_are_placed(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbfa\xc3\xa9")
    assert read_text(path) == "aé"
    path.write_bytes(b"a\n\xe9t")
    with pytest.raises(FactsError, match=r"/x, line 2: the text is not UTF-8; save the file as"):
        read_text(path)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80), st.sampled_from([b"", b"a,b\n", b"a,b\nx,"]))
def test_no_file_whatever_raises_anything_else(tmp_path_factory, data, header):
    path = tmp_path_factory.mktemp("any") / "any.csv"
    path.write_bytes(header + data)
    message = str(path)
    try:
        read_table(path, required=["a"], optional=["b"])
    except FactsError as error:
        message = str(error)
    assert message.startswith(str(path))
