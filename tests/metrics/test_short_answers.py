"""Which words name something, which answers are wordings of one another; dates and quantities."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.datasets.dates import MONTHS, verbalise
from factrobust.metrics import short_answers
from factrobust.metrics.short_answers import (
    Date,
    Quantity,
    alike,
    content,
    core,
    date,
    meet,
    phrase_of,
    quantities,
    quantity,
    same,
    segments,
    shared_parts,
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("the city of Paris", "Paris"),
        ("the City of Mexico", "Mexico"),
        ("Mexico City", "Mexico City"),
        ("the University of Oxford", "Oxford"),
        ("Oxford University", "Oxford University"),
        ("the United Kingdom of Great Britain", "United Kingdom Great Britain"),
        ("Emperor Hadrian", "Hadrian"),
        ("Diocletian Himself", "Diocletian"),
        ("Martin Luther King", "Martin Luther King"),
        ("King", "King"),
        ("a British mathematician and writer", "British mathematician writer"),
        ("Tolkien's books", "Tolkien books"),
        ("the", ""),
    ],
)
def test_content(text: str, left: str) -> None:
    assert " ".join(content(text)) == left


def test_segments_and_cores() -> None:
    text = "the art collector and patron, Francesco del Giocondo (a merchant, who lived in 1500)"
    assert segments(text) == (
        "the art collector and patron",
        "Francesco del Giocondo",
        "a merchant",
        "lived in 1500",
    )
    assert core(text) == "Francesco del Giocondo"
    assert core("physics, mainly") == "physics"
    assert core("  the city. ") == "the city"  # nothing is named: the whole text
    assert core("") == ""


SAME = (
    "Bogotá/bogota Austria/Austrian Egypt/Egyptian Hindu/Hinduism Buddhism/Buddhist French/France "
)
SAME += "Dutch/Netherlands self-portrait/self-portraits"
OTHERS = "Niger/Nigeria Roman/Romania Paris/Parish Adam/Adams 1969/19691 art/arts"  # too short


@pytest.mark.parametrize("pair", [*SAME.split(), *OTHERS.split()])
def test_same_words(pair: str) -> None:
    v, w = pair.split("/")
    assert same(v, w) is same(w, v) is (pair in SAME.split())


ALIKE = """the city of Paris = Paris
New York = New York City
Oxford University = the University of Oxford
Sadi Carnot in 1824 = Sadi Carnot
Emperor Constantine = Constantine the Great
Alaric = Alaric I"""
DIFFERENT = """Elizabeth I = Elizabeth II
Louis = Louis XIV
Mexico = Mexico City
York = New York
Korea = North Korea
Guinea = Equatorial Guinea
Dominica = the Dominican Republic
United Kingdom = United States
university = Harvard University
Tokyo = a b c d Tokyo
the = a"""


@pytest.mark.parametrize("pair", [*ALIKE.splitlines(), *DIFFERENT.splitlines(), " = Paris"])
def test_alike(pair: str) -> None:
    a, b = pair.split(" = ")
    assert alike(a, b) is alike(b, a) is (pair in ALIKE.splitlines())


@pytest.mark.parametrize(
    ("a", "b", "part"),
    [
        ("Chinese", "a Chinese historical figure of note", True),
        ("Renaissance movement", "the artistic movement of Renaissance Humanism", True),
        ("physicist", "a physicist, a chemist and a writer of books", True),  # it begins so
        ("chemist", "a physicist, a chemist and a writer of books", False),  # no name
        ("Guinea", "the state of Papua New Guinea", False),
        ("York", "the streets of New York", False),
        ("Tokyo Osaka", "Osaka, then Tokyo", False),
        ("", "Paris", False),
    ],
)
def test_phrase_of(a: str, b: str, part: bool) -> None:
    assert phrase_of(a, b) is part


def test_empty() -> None:
    assert all(map(short_answers.empty, ["", "  ", "...", "the", "The, the"]))
    assert not any(map(short_answers.empty, ["A", "5", "there"]))


def test_clean_keeps_a_minus() -> None:
    assert short_answers.clean(" -71.") == short_answers.clean("(−71)") == "-71"
    assert short_answers.clean("- Paris -") == "Paris"
    assert short_answers.clean("“Guernica”") == "Guernica"
    assert short_answers.clean("²⁰⁹Bi") == "209Bi"


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_can_be_compared(a: str, b: str) -> None:
    assert alike(a, b) == alike(b, a)
    assert short_answers.clean(short_answers.clean(a)) == short_answers.clean(a)
    assert isinstance(phrase_of(a, b), bool)
    assert core(a) == core(short_answers.clean(a))


# -- dates and quantities ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("January 21, 1924", (1924, 1, 21)),
        ("Jan. 21 1924", (1924, 1, 21)),
        ("21 January 1924", (1924, 1, 21)),
        ("the 21st of January, 1924", (1924, 1, 21)),
        ("12th December 1815", (1815, 12, 12)),
        ("1924-01-21", (1924, 1, 21)),
        ("1924-01", (1924, 1, None)),
        ("Sunday, January 5, 1930", (1930, 1, 5)),
        ("on Sept. 5, 1990", (1990, 9, 5)),
        ("March 1912", (1912, 3, None)),
        ("March 15", (None, 3, 15)),
        ("26 April 121 AD", (121, 4, 26)),
        ("July 13, 180 AD", (180, 7, 13)),
        ("April 44 BC", (-44, 4, None)),
        ("March 15, 44 BCE", (-44, 3, 15)),
        ("c.1450", (1450, None, None)),
        ("around the year 1450 A.D.", (1450, None, None)),
        ("AD 121", (121, None, None)),
        ("9 CE", (9, None, None)),
        ("9", None),
        ("12,345", None),
        ("1984.5", None),
        ("Mayor", None),
        ("marching 5", None),
        ("Apollo in July 1969", None),
        ("", None),
    ],
)
def test_date(text: str, read: tuple | None) -> None:
    assert date(text) == (None if read is None else Date(*read))


def test_a_date_anywhere() -> None:
    text = "12 months, from February 6, 2022, to February 6, 202"
    assert date(text) != Date(2022, 2, 6)
    assert date(text, anywhere=True) == Date(2022, 2, 6)
    assert date("put forward by him in 1905", anywhere=True) == Date(1905)
    assert date("by nobody", anywhere=True) is None


@settings(deadline=None)
@given(st.dates())
def test_every_date_in_three_spellings(day) -> None:
    iso = day.isoformat()
    american = verbalise(iso).removeprefix("On ")
    british = f"{day.day} {MONTHS.split()[day.month - 1]} {day.year}"
    expected = Date(day.year, day.month, day.day)
    assert [date(x) for x in (iso, american, british)] == [expected] * 3


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        (Date(1924, 1, 21), Date(1924, 1, 21), 3),
        (Date(1924, 1, 21), Date(1924, 1), 2),
        (Date(1924, 1, 21), Date(1924), 1),
        (Date(1924, 1, 21), Date(1924, 3, 21), 0),
        (Date(1924, 1, 21), Date(1925, 1, 21), 0),
        (Date(None, 7, 4), Date(1776, 7, 4), 2),
        (Date(None, 7), Date(1776, 7, 4), 0),  # some July is not that July
        (Date(44), Date(-44), 0),
    ],
)
def test_shared_parts(a: Date, b: Date, shared: int) -> None:
    assert shared_parts(a, b) == shared_parts(b, a) == shared


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("4", (4, 4, "")),
        ("3 of the periodic table", (3, 3, "")),
        ("group 11", (11, 11, "")),
        ("Op. 316", (316, 316, "")),
        ("eleven", (11, 11, "")),
        ("twelve months", (12, 12, "month")),
        ("approximately 7-8 minutes", (7, 8, "minute")),
        ("7 to 8 min", (7, 8, "minute")),
        ("1,234,567", (1234567, 1234567, "")),
        ("$1.2 million", (1.2e6, 1.2e6, "dollar")),
        ("1.2 million dollars", (1.2e6, 1.2e6, "dollar")),
        ("-71", (-71, -71, "")),
        ("−71 °C", (-71, -71, "celsius")),
        ("25 degrees Celsius", (25, 25, "celsius")),
        ("1337K", (1337, 1337, "kelvin")),
        ("15.999", (15.999, 15.999, "")),
        ("5%", (5, 5, "percent")),
        ("44 BC", (44, 44, "bc")),
        ("122-128 AD", (122, 128, "ad")),
        ("the 15th century", (15, 15, "century")),
        ("the 1980s", (1980, 1989, "")),
        ("the 1800s", (1800, 1899, "")),
        ("1999-02", (1999, 1999, "")),  # no range
        ("seven Samurai", None),
        ("101 Dalmatians", None),
        ("209Bi", None),
        ("Lithium-7", None),
        ("Paris", None),
        ("", None),
    ],
)
def test_quantity(text: str, read: tuple | None) -> None:
    assert quantity(text) == (None if read is None else Quantity(*read))


def test_all_quantities_of_a_text() -> None:
    text = "12,110 lines of verse, which is about 480 pages"
    assert quantities(text) == (Quantity(12110, 12110, "line"), Quantity(480, 480, "page"))
    assert quantities("202 K (-71") == (Quantity(202, 202, "kelvin"), Quantity(-71, -71))
    assert quantities("pi is 3.14159") == (Quantity(3.14159, 3.14159),)
    assert quantities("none") == ()


@pytest.mark.parametrize(
    ("a", "b", "met"),
    [
        ("480 pages", "480 pages in a standard edition", True),
        ("480", "480 pages", True),  # no unit contradicts none
        ("12 months", "12 years", False),
        ("7-8 minutes", "8 minutes", True),
        ("7-8 minutes", "9 minutes", False),
        ("0.1", "0.10", True),
        ("1", "1969", False),
        ("44 BC", "44 AD", False),
        ("-71", "71", False),
        ("1,000,000", "1 million", True),
        ("1985", "the 1980s", True),
    ],
)
def test_meet(a: str, b: str, met: bool) -> None:
    x, y = quantity(a), quantity(b)
    assert x is not None
    assert y is not None
    assert meet(x, y) is meet(y, x) is met


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    found, when = quantity(text), date(text)
    assert found is None or found.low <= found.high
    assert when is None or when != Date(None)
