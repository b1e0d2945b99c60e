"""Which words name something, and which answers are wordings of one another."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics import phrases
from factrobust.metrics.phrases import alike, content, core, phrase_of, same, segments


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
    assert all(map(phrases.empty, ["", "  ", "...", "the", "The, the"]))
    assert not any(map(phrases.empty, ["A", "5", "there"]))


def test_clean_keeps_a_minus() -> None:
    assert phrases.clean(" -71.") == phrases.clean("(−71)") == "-71"
    assert phrases.clean("- Paris -") == "Paris"
    assert phrases.clean("“Guernica”") == "Guernica"
    assert phrases.clean("²⁰⁹Bi") == "209Bi"


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_can_be_compared(a: str, b: str) -> None:
    assert alike(a, b) == alike(b, a)
    assert phrases.clean(phrases.clean(a)) == phrases.clean(a)
    assert isinstance(phrase_of(a, b), bool)
    assert core(a) == core(phrases.clean(a))
