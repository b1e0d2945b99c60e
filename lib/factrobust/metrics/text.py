"""When does a generated text state the right answer?

Paper 1 selects known facts by exact match (4.1.2) and counts a sampled answer as right if it
contains the truth (4.2). The paper does not say how strings are compared; we compare after the usual
normalisation of SQuAD's evaluation (case, punctuation, articles, white space) and without diacritics.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

ARTICLES = re.compile(r"\b(?:a|an|the)\b")
NOT_WORD = re.compile(r"[^\w\s]|_")


@lru_cache(maxsize=100_000)
def normalise(text: str) -> str:
    """Lower case, no diacritics, no punctuation, no articles, single spaces.

    Punctuation inside a word vanishes ("U.S." -> "us", "O'Neill" -> "oneill"), a hyphen or slash
    separates ("Coca-Cola" -> "coca cola"). A text that is only an article stays as it is.
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in decomposed if not unicodedata.combining(c))
    words = NOT_WORD.sub("", re.sub(r"[-–—/]", " ", plain)).split()
    without = ARTICLES.sub(" ", " ".join(words)).split()
    return " ".join(without or words)


def exact_match(text: str, answers: Sequence[str]) -> bool:
    """Whether the text is one of the accepted answers, after normalisation."""
    found = normalise(text)
    return bool(found) and any(found == normalise(a) for a in answers)


def contains(text: str, answers: Sequence[str], *, whole_words: bool = True) -> bool:
    """Whether an accepted answer occurs in the text, after normalisation.

    The paper's "contains" reads as a substring test, which finds the number 8 in "18" and Niger in
    "Nigeria": `whole_words=False` is that reading. By default an answer must begin and end with a
    word.
    """
    found = normalise(text)
    edge = " " if whole_words else ""
    return any(
        f"{edge}{gold}{edge}" in f"{edge}{found}{edge}" for a in answers if (gold := normalise(a))
    )
