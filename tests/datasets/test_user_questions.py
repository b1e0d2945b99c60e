"""A CSV of one's own questions, as people and spreadsheets write it."""

import json

import pytest
from frames import assert_rows, frame

from factrobust.datasets.user_questions import iso_date, read_questions
from factrobust.tables import FactsError

FRANCE = "Who was the president of France?"


def write(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "mine.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_a_file_as_excel_writes_it(tmp_path):
    text = "Question;Answer;Aliases\r\nWho?;1969.0;'69|1969\r\n;;\r\nWhat?;C++;\r\n"
    for mark, encoding in (("", "utf-8-sig"), ("sep=;\r\n", "utf-8"), ("", "utf-8")):
        table = read_questions(write(tmp_path, mark + text, encoding))
        assert table["question"].tolist() == ["Who?", "What?"]
        assert table["object"].tolist() == ["1969", "C++"]
        assert table["aliases"].tolist() == [["1969.0", "'69"], []]


ALIASES = frame("""
    cell                                              names
    "[""Obama"", ""Barack Hussein Obama II""]"        Obama & Barack Hussein Obama II
    "['Obama', 'B. Obama']"                           Obama & B. Obama
    "['Obama' 'B. Obama']"                            Obama & B. Obama
    "['Obama', ""O'Bama""]"                           Obama & O'Bama
    "(""Obama"",)"                                    Obama
    "{Obama,""B. Obama""}"                            Obama & B. Obama
    Obama; B. Obama                                   Obama & B. Obama
    Obama|B. Obama; Jr.                               Obama & B. Obama; Jr.
    "[""Obama"", null]"                               Obama
    [sic] Obama                                       [sic] Obama
    (What's the Story) Morning Glory?                 (What's the Story) Morning Glory?
    [Sn]                                              Sn
    ('Til) I Kissed You                               ('Til) I Kissed You
    "[44, 44.0]"                                      44
    "array(['Obama', 'B. Obama'], dtype=object)"      Obama & B. Obama
    frozenset({'Obama'})                              Obama
""")


def aliases(tmp_path, cell):
    path = write(tmp_path, f"question,answer,aliases\nWho?,Barack Obama,{cell}\n")
    [names] = read_questions(path)["aliases"]
    return names


def test_aliases_as_programs_write_them(tmp_path):
    """Among them NumPy's lists and PostgreSQL's."""
    for cell, names in ALIASES.itertuples(index=False):
        assert aliases(tmp_path, cell) == names.split(" & "), cell
    assert aliases(tmp_path, "\u200bObama\ufeff | ") == ["Obama"]
    assert aliases(tmp_path, '"Obama\nB. Obama; Jr."') == ["Obama", "B. Obama; Jr."]
    twice = json.dumps(json.dumps(["Obama", "B. Obama"])).replace('"', '""')
    assert aliases(tmp_path, f'"{twice}"') == ["Obama", "B. Obama"]
    for none in ("[]", "None", "nan", "set()"):
        assert aliases(tmp_path, none) == []


DATES = frame("""
    cell                  date
    1995                  1995
    1995.0                1995
    1995-5                1995-05
    1995/05/17            1995-05-17
    17/05/1995            1995-05-17
    17.5.1995             1995-05-17
    17-05-1995            1995-05-17
    1995-05-17 00:00:00   1995-05-17
    1995-05-17T00:00:00Z  1995-05-17
    17/05/1995 12:30      1995-05-17
    05/1995               1995-05
    17 May 1995           1995-05-17
    17-May-1995           1995-05-17
    May 17, 1995          1995-05-17
    Sept 1995             1995-09
    september 1995        1995-09
    476                   0476
    1995.05               1995-05
    31/02/1995            none
    17/05/95              none
    34836                 none
    soon                  none
    17 Mai 1995           none
    1995.5                none
""")


def test_dates_as_spreadsheets_write_them():
    """1995.5 may be May, or the middle of the year."""
    for cell, date in DATES.itertuples(index=False):
        assert (iso_date(cell, day_first=True) or "none") == date, cell


def test_the_file_shows_whether_dates_begin_with_the_day(tmp_path):
    def dates(*cells):
        rows = [f"Who was {n}?,A,{cell},{cell}" for n, cell in enumerate(cells)]
        text = "\n".join(["question,answer,start,end", *rows, ""])
        return read_questions(write(tmp_path, text))["start"].tolist()

    assert dates("05/17/1995", "05/06/1995") == ["1995-05-17", "1995-05-06"]
    assert dates("17/05/1995", "05/06/1995") == ["1995-05-17", "1995-06-05"]
    assert dates("05/05/1995") == ["1995-05-05"]
    with pytest.raises(FactsError, match="line 2: nothing tells whether '05/06/1995' begins with"):
        dates("05/06/1995")
    with pytest.raises(FactsError, match="line 3 begins with its day and that in line 2 with"):
        dates("05/17/1995", "17/05/1995")


PRESIDENTS = """question,answer,start,end
Who was the president of France?,Chirac,1995,2007-05-16
Who was the president of France?,Sarkozy,2007-05-16,2012
Who was the president of France?,Macron,2017,
"""


def test_a_question_with_several_times_is_asked_in_a_year_of_each(tmp_path):
    """And one with a single time as it stands."""
    table = read_questions(write(tmp_path, PRESIDENTS))
    expected = """
        question                                   fact_id
        In 2001, who was the president of France?  FRANCE (1995 to 2007-05-16)
        In 2009, who was the president of France?  FRANCE (2007-05-16 to 2012)
        In 2018, who was the president of France?  FRANCE (2017 to now)
    """
    assert_rows(table, expected.replace("FRANCE", FRANCE))
    assert {*table["subject"]} == {FRANCE}
    first = "".join(PRESIDENTS.splitlines(keepends=True)[:2])
    alone = read_questions(write(tmp_path, first))
    assert alone["question"].tolist() == [FRANCE]


def test_an_end_that_a_database_writes_for_none_is_none(tmp_path):
    """Else the fact would be asked of the year 6004."""
    rows = "question,answer,start,end\n"
    for number, end in enumerate(["2098", "2099-12-31", "9999", "present", "NaT", "None"]):
        rows += f"{number}?,A,2010,{end}\n"
    assert read_questions(write(tmp_path, rows))["end"].tolist() == ["2098", *[""] * 5]


ODD = "None|Nan|√2|E = mc²|(I Can't Get No) Satisfaction|C&A|Рі|1E5|‚Ärzte‘"


@pytest.mark.parametrize("answer", ODD.split("|"))
def test_an_answer_that_only_looks_like_a_fault_is_one(tmp_path, answer):
    path = write(tmp_path, f"question,answer\nWho?,{answer}\n")
    assert read_questions(path)["object"].tolist() == [answer]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("A,17/05/95,", "line 2: the start '17/05/95' is no date of the calendar; write YYYY"),
        ("A,1995,20007", "line 2: the end '20007' is no date"),
        ("A,2007,1995", r"line 2: the end \(1995\) is before the start \(2007\); swap the two"),
        ("A,2007-05,2007-04-30", "is before the start"),
        ("A,,1995", r"line 2: there is an end \(1995\) and no start; write when it began"),
        ("A,1995,2007\nWho?,B,1995,2007", "line 3: .*already in line 2"),
        ("Bjarne StroustrupÂ\u00a0,,", "line 2: the answer .* holds damaged letters"),
        ("Ã–sterreich,,", "holds damaged letters"),
        ("S\ufffdo TomÃ©,,", "holds damaged letters"),
        ("\u200b,,", "line 2: the answer cell is empty"),
        ("Nai\0robi,,", "line 2: there is a NUL character"),
        ("Beyonc√©,,", "holds damaged letters"),  # UTF-8 as a Mac's letters
        ("Jos├®,,", "holds damaged letters"),  # as DOS's
        ("РњРѕСЃРєРІР°,,", "holds damaged letters"),  # as Cyrillic ones
        ("Jos&eacute;,,", "holds damaged letters"),
        ("#N/A,,", "line 2: the answer '#N/A' is no single answer; write it out"),
        ("nan,,", "is no single answer"),
        ("1.97E+03,,", "is no single answer"),
        ("\"['Bob', 'Al']\",,", "is no single answer"),
        ("Bob|Al,,", "is no single answer"),
        ("?,,", r"line 2: the answer '\?' has no letter, digit or sign that an answer is compared"),
        ("A,,\n who?,B,,", "line 3: .*already in line 2"),
        ("A,,\nIs  José?,B,,\nis Jose\u0301?,A,,", "line 4: .*already in line 3"),
        (
            "A,1995,2001\nWho?,B,1996,2000",
            "line 3: 'In 1998, who.' would be asked here and for line",
        ),
    ],
)
def test_what_cannot_be_asked_is_named_with_its_line(tmp_path, row, fault):
    path = write(tmp_path, f"question,answer,start,end\nWho?,{row}\n")
    with pytest.raises(FactsError, match=fault):
        read_questions(path)


def test_a_column_that_is_there_in_two_ways(tmp_path):
    path = write(tmp_path, "question,answer,Answer\nWho?,A,B\n")
    with pytest.raises(FactsError, match="line 1: the columns answer and Answer have one name"):
        read_questions(path)


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(FactsError, match=r"none\.csv is no file; give the CSV with your questions"):
        read_questions(tmp_path / "none.csv")
