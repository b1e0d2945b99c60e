"""When does a generated text state the right answer?

Paper 1 selects known facts by exact match (4.1.2) and counts a sampled answer as right if it
contains the truth (4.2). The paper does not say how strings are compared; we compare after the usual
normalisation of SQuAD's evaluation (case, punctuation, articles, white space) and without diacritics.
SQuAD's rule deletes all punctuation; we keep a decimal point ("1.5" is not 15), and let other marks
separate words that touch ("Paris,France").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

ARTICLES = re.compile(r"\b(?:a|an|the)\b")
IN_NUMBER = re.compile(r"(?<=\d),(?=\d{3}\b)")  # 1,000
SEPARATES = re.compile(r"[^\w\s.'’`\u200b-\u200d\u00ad]|_|(?<=\d)\.(?!\d)")
VANISHES = re.compile(r"[^\w\s.]|(?<!\d)\.|\.(?!\d)")
# Letters that have no decomposition.
PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)


@lru_cache(maxsize=100_000)
def normalise(text: str) -> str:
    """Lower case, no diacritics, no punctuation, no articles, single spaces.

    Apostrophes and full stops inside a word vanish ("U.S." -> "us", "O'Neill" -> "oneill"), as do
    the commas of thousands ("1,000" -> "1000"); any other mark separates ("Coca-Cola" -> "coca
    cola"). A decimal point stays ("1.5"). A text that is only articles stays as it is.
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in decomposed if not unicodedata.combining(c)).translate(PLAIN)
    words = VANISHES.sub("", SEPARATES.sub(" ", IN_NUMBER.sub("", plain))).split()
    without = ARTICLES.sub(" ", " ".join(words)).split()
    return " ".join(without or words)


def exact_match(text: str, answers: Sequence[str]) -> bool:
    """Whether the text is one of the accepted answers, after normalisation."""
    found = normalise(text)
    return bool(found) and any(found == normalise(a) for a in _listed(answers))


def contains(text: str, answers: Sequence[str], *, whole_words: bool = True) -> bool:
    """Whether an accepted answer occurs in the text, after normalisation.

    The paper's "contains" reads as a substring test, which finds the number 8 in "18" and Niger in
    "Nigeria": `whole_words=False` is that reading. By default an answer must begin and end with a
    word.
    """
    found = normalise(text)
    edge = " " if whole_words else ""
    return any(
        f"{edge}{gold}{edge}" in f"{edge}{found}{edge}"
        for a in _listed(answers)
        if (gold := normalise(a))
    )


def _listed(answers: Sequence[str]) -> Sequence[str]:
    if isinstance(answers, str):  # its letters would be taken for answers
        raise ValueError(f"answers must be a list of strings; put {answers!r} into a list")
    return answers
