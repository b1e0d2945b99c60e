"""Are two short answers wordings of one another? Words, parts and cores of answers.

Words are compared without case and accents, and without articles, function words, titles before a
name ("Emperor Hadrian") and generic nouns ("the city of Paris"), so that what is compared is what
names the thing. English only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import yaml

from factrobust.paths import DATA
from factrobust.text import PLAIN

# Lists of English words, each as it stands in the file.
WORDS: dict[str, Any] = yaml.safe_load((DATA / "words.yaml").read_text(encoding="utf-8"))
_FUNCTION, _TITLES, _PLACES, _NAMESAKES, _ENDINGS = (
    frozenset(WORDS[name].split())
    for name in ("function", "titles", "places", "namesakes", "endings")
)
_GENERIC = _PLACES | frozenset(WORDS["generic"].split())
_DEMONYMS: dict[str, str] = WORDS["demonyms"]
_NUMERAL = re.compile(r"(?!i$)[ivx]+|\d{1,3}(?:st|nd|rd|th)?")
_SPLIT = re.compile(
    r"[,;(\[]|\b(?:which|who|whose|but|where|in the (?:early|mid|late))\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")
_EDGES = " \t\n.,:;!?\"'“”‘’()[]{}*_-–—"


def clean(text: str) -> str:
    """The text in compatibility form with plain apostrophes and without punctuation around it, but
    for the sign of a number."""
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    minus = "-" if re.match(r"\W*[-−]\d", plain) else ""
    return minus + re.sub(r"\s+", " ", plain).strip(_EDGES + "−")


@lru_cache(maxsize=100_000)
def fold(word: str) -> str:
    """The word in lower case, without diacritics."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).translate(PLAIN)


@lru_cache(maxsize=100_000)
def words(text: str) -> tuple[str, ...]:
    """All words as written; a possessive 's is no word."""
    return tuple(_WORD.findall(text.replace("'s", "")))


@lru_cache(maxsize=100_000)
def content(text: str) -> tuple[str, ...]:
    """The words that name something, as written.

    Generic nouns stay where they are part of a name, capitalised and not before "of" at its beginning
    ("Mexico City", not "the City of Mexico"); so do titles at the end ("Martin Luther King").
    """
    all_words = words(text)
    names: list[str] = []
    for i, word in enumerate(all_words):
        plain, following = fold(word), all_words[i + 1 : i + 2]
        named = word[0].isupper() and (bool(names) or fold("".join(following)) != "of")
        if plain in _FUNCTION or (plain in _GENERIC and not named):
            continue
        if plain in _TITLES and not names and following:
            continue
        names.append(word)
    return tuple(names)


def specific(word: str) -> bool:
    """Whether the word is a name or a number, but no generic noun or title."""
    return (word[0].isupper() or word[0].isdigit()) and fold(word) not in _GENERIC | _TITLES


@lru_cache(maxsize=100_000)
def same(v: str, w: str) -> bool:
    """Whether two words are the same but for case, accents and common endings (Austria, Austrian)."""
    name = v[:1].isupper() and w[:1].isupper()
    v, w = sorted((fold(v), fold(w)), key=len)
    if v == w or _DEMONYMS.get(v) == w or _DEMONYMS.get(w) == v:
        return True
    if name and w == f"{v}s":
        return False  # Adam, Adams
    if v.isdigit() or len(v) < 4:
        return False
    stem = v[:-3]  # Buddhism, Buddhist
    both = {v[-3:], w[-3:]} == {"ism", "ist"} and len(stem) >= 4
    return (w.startswith(v) and w[len(v) :] in _ENDINGS) or (both and stem == w[:-3])


def inside(word: str, others: Sequence[str]) -> bool:
    """Whether the word is among the others."""
    return any(same(word, other) for other in others)


def empty(text: str) -> bool:
    """Whether a text holds no word but "the"."""
    return all(fold(word) == "the" for word in words(text))


@lru_cache(maxsize=100_000)
def segments(text: str) -> tuple[str, ...]:
    """The parts between commas, semicolons, opening brackets, and words such as "which"; those that
    name nothing are left out."""
    parts = (clean(part) for part in _SPLIT.split(clean(text)))
    return tuple(part for part in parts if content(part))


@lru_cache(maxsize=100_000)
def core(text: str) -> str:
    """The first part with a name or a number, else the first part, else the text."""
    parts = segments(text)
    named = [part for part in parts if any(map(specific, content(part)))]
    return (*named, *parts, clean(text))[0]


def alike(a: str, b: str) -> bool:
    """Whether two parts hold the same words, or one all of the other's and at most twice as many,
    where no word more makes another bearer of the name of it."""
    short, long = sorted((_words(a), _words(b)), key=len)
    if not short or len(long) > 2 * len(short) or not all(inside(w, long) for w in short):
        return False
    extra = [w for w in long if not inside(w, short)]
    shared = any(fold(w) not in _GENERIC | _NAMESAKES for w in short)
    return (shared or not extra) and not _other_bearer(extra, len(short))


def phrase_of(a: str, b: str) -> bool:
    """Whether the words of a stand side by side in b, a name or number among them, or begin b, and
    the words beside them make no other bearer of the name (York in New York)."""
    part, whole = _words(a), _words(b)
    if not part or not any(fold(w) not in _GENERIC | _NAMESAKES for w in part):
        return False
    starts = range(len(whole) - len(part) + 1) if any(map(specific, part)) else range(1)
    for i in starts:
        end = i + len(part)
        if end <= len(whole) and all(same(v, w) for v, w in zip(part, whole[i:end], strict=True)):
            beside = [*whole[max(i - 1, 0) : i], *whole[end : end + 1]]
            if not _other_bearer(beside, len(part)):
                return True
    return False


def _words(text: str) -> tuple[str, ...]:
    return content(text) or words(text)


def _other_bearer(extra: Sequence[str], shared: int) -> bool:
    plain = [fold(w) for w in extra]
    place = shared == 1 and any(w in _PLACES for w in plain)
    return place or any(w in _NAMESAKES or _NUMERAL.fullmatch(w) for w in plain)
