"""The first sentence of an answer, example by example."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.probes.sentences import first_sentence

EXAMPLES = {
    # A sentence ends, and its full stop goes.
    " Nairobi.": "Nairobi",
    " Nairobi. The capital of Kenya is Nairobi.": "Nairobi",
    "nairobi. it is large.": "nairobi",
    "Paris .": "Paris",
    "Paris...": "Paris",
    "Paris... The city of love": "Paris",
    "In 1945. It ended in May.": "In 1945",
    "Vitamin C. It is an acid.": "Vitamin C",
    "K. The symbol of potassium": "K",
    "George V. He was king.": "George V",
    "8. The atomic number of oxygen": "8",
    "World War II. It": "World War II",
    "a 5.5 km run. It": "a 5.5 km run",
    "东京。日本的首都": "东京",
    # Other marks stay, with the quotes that they close.
    "Mamma Mia!": "Mamma Mia!",
    "Who? I do not know.": "Who?",
    "Jeopardy! The host was Alex Trebek.": "Jeopardy!",
    'It is called "Paris." The name is old.': 'It is called "Paris."',
    "Paris (in France). It": "Paris (in France)",
    # No sentence ends here.
    "Washington, D.C.": "Washington, D.C.",
    "Washington, D.C": "Washington, D.C",
    "J. K. Rowling": "J. K. Rowling",
    "J.K. Rowling": "J.K. Rowling",
    "A. A. Milne": "A. A. Milne",
    "(J. K. Rowling)": "(J. K. Rowling)",
    "St. Louis": "St. Louis",
    "Mt. Everest": "Mt. Everest",
    "Dr. No": "Dr. No",
    "Dr. Who": "Dr. Who",
    "U.S.": "U.S.",
    "U.S. Route 66": "U.S. Route 66",
    "Robert Downey Jr.": "Robert Downey Jr.",
    "Martin Luther King Jr. was a minister": "Martin Luther King Jr. was a minister",
    "Warner Bros. Pictures": "Warner Bros. Pictures",
    "Apple Inc.": "Apple Inc.",
    "Symphony No. 9": "Symphony No. 9",
    "at 7 p.m. on Dec. 5": "at 7 p.m. on Dec. 5",
    "Yahoo! is a company": "Yahoo! is a company",
    "1. Nairobi": "1. Nairobi",
    "3.14": "3.14",
    "factrobust.org": "factrobust.org",
    # After an abbreviation it ends if the next word begins one.
    "Washington, D.C. It is the capital.": "Washington, D.C.",
    "Washington, D.C. is the capital. It": "Washington, D.C. is the capital",
    "J. K. Rowling. She wrote it.": "J. K. Rowling",
    "St. Louis. The city": "St. Louis",
    "The U.S. The country": "The U.S.",
    "Sammy Davis Jr. He sang.": "Sammy Davis Jr.",
    "by A. A. Milne": "by A. A. Milne",
    # Lines.
    "Nairobi \nQuestion: What else?": "Nairobi",
    "\n\n Nairobi\r\nMombasa": "Nairobi",
    # Nothing to cut, or nothing at all.
    "Nairobi": "Nairobi",
    "": "",
    " \n ": "",
    "...": "...",
    ". Nairobi. It": ". Nairobi",
}


@pytest.mark.parametrize(("text", "sentence"), EXAMPLES.items(), ids=lambda text: repr(text)[:30])
def test_examples(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Mamma Mia! Here We Go Again", "Mamma Mia!"),
        ("He lives in the U.S. Nobody knows.", "He lives in the U.S. Nobody knows"),
    ],
)
def test_known_failures_are_as_documented(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


@settings(deadline=None)
@given(st.text(alphabet="Ab U.S!?1 \n\"'。)(", max_size=30) | st.text())
def test_is_the_beginning_of_one_line(text: str) -> None:
    sentence = first_sentence(text)
    assert text.strip().startswith(sentence)
    assert sentence == sentence.strip()
    assert len(sentence.splitlines()) <= 1
    assert bool(sentence) == bool(text.strip())


@settings(deadline=None)
@given(st.from_regex(r"[A-H][a-h]{3,8}( [A-H][a-h]{3,8}){0,3}", fullmatch=True))
def test_plain_names_are_kept_whole(name: str) -> None:
    for written in (name, f" {name}.", f"{name}. {name}", f"{name}\n{name}"):
        assert first_sentence(written) == name
