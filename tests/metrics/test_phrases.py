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


@pytest.mark.parametrize(
    ("v", "w", "equal"),
    [
        ("Bogotá", "bogota", True),
        ("Austria", "Austrian", True),
        ("Egypt", "Egyptian", True),
        ("Hindu", "Hinduism", True),
        ("Buddhism", "Buddhist", True),
        ("French", "France", True),
        ("Dutch", "Netherlands", True),
        ("Niger", "Nigeria", False),
        ("Roman", "Romania", False),
        ("Paris", "Parish", False),
        ("self-portrait", "self-portraits", True),
        ("Adam", "Adams", False),
        ("art", "arts", False),  # too short for endings
        ("1969", "19691", False),
    ],
)
def test_same_words(v: str, w: str, equal: bool) -> None:
    assert same(v, w) is same(w, v) is equal


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ("the city of Paris", "Paris", True),
        ("New York", "New York City", True),
        ("Oxford University", "the University of Oxford", True),
        ("Sadi Carnot in 1824", "Sadi Carnot", True),
        ("Emperor Constantine", "Constantine the Great", True),
        ("Alaric", "Alaric I", True),
        ("Elizabeth I", "Elizabeth II", False),
        ("Louis", "Louis XIV", False),
        ("Mexico", "Mexico City", False),
        ("York", "New York", False),
        ("Korea", "North Korea", False),
        ("Guinea", "Equatorial Guinea", False),
        ("Dominica", "the Dominican Republic", False),
        ("United Kingdom", "United States", False),
        ("university", "Harvard University", False),  # only the generic word is shared
        ("Tokyo", "a b c d Tokyo", False),  # less than half
        ("", "Paris", False),
        ("the", "a", False),
    ],
)
def test_alike(a: str, b: str, equal: bool) -> None:
    assert alike(a, b) is alike(b, a) is equal


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
