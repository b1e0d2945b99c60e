"""Do two short answers say the same? Their words and parts, and the dates and quantities in them.

Words are compared without case and accents, and without articles, function words, titles before a
name ("Emperor Hadrian") and generic nouns ("the city of Paris"), so that what is compared is what
names the thing. Dates and quantities are compared by value, not by spelling: "12 July 1997" is "July
12, 1997", "480 pages in a standard edition" is "480 pages", and "1" is not "1969". English only. Not
read: numerals that begin a name ("101 Dalmatians"), Roman numerals, decimal commas, powers of ten;
units are told apart, not converted (96 minutes are not 1.6 hours).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

from factrobust.datasets import dates
from factrobust.paths import DATA
from factrobust.text import PLAIN

# -- words ------------------------------------------------------------------------------------------

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


# -- dates and quantities ---------------------------------------------------------------------------

MONTHS = [name.lower() for name in dates.MONTHS.split()]
_MONTH = "|".join(f"{m[:3]}(?:{m[3:]})?" if m != "september" else "sept?(?:ember)?" for m in MONTHS)
_MONTH = rf"(?P<month>{_MONTH})\b\.?"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?!\d)"
_ERA = r"\s*(?P<era>bce?|ce|ad|[bc]\.\s?[ce]\.(?:\s?e\.)?|a\.\s?d\.)(?!\w)"
_YEAR = rf"(?P<year>\d{{1,4}})(?!\w)(?:{_ERA})?"
_OWN_YEAR = rf"(?P<year>\d{{3,4}}(?!\w)(?:{_ERA})?|\d{{1,4}}{_ERA.replace('era', 'needed')})"
_FORMS = [
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?<!\w)(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>[0-2]\d|3[01]))?(?!\w)",
        rf"\b{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_OWN_YEAR}",
        rf"\b{_MONTH}\s+{_DAY}(?:(?:,\s*|\s+){_YEAR})?",
    )
]
_BARE_YEAR = re.compile(rf"(?<!\w)(?<!\d[.,]){_OWN_YEAR}(?!\w|[.,]\d)", re.IGNORECASE)
_WEEKDAYS = "|".join(
    f"{day}day" for day in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")
)
_HEDGES = "approximately|approx|about|around|roughly|nearly|almost|circa|over|more than|less than|at least|"
_HEDGES += f"up to|between|from|on|in|at|the|an?|year|early|late|ad|{_WEEKDAYS}"
_LEAD = re.compile(rf"(?:(?:{_HEDGES})(?!\w)[.,]?\s*|ca?\.\s*|[~≈(]\s*)*", re.IGNORECASE)
_LABEL = re.compile(r"(?:(?:op|opus|no|number|group|period)\b\.?\s*)?(?:US)?", re.IGNORECASE)

_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?"
_SIGNED = rf"(?:(?<!\w)[-−])?(?:{_DIGITS})"
_QUANTITY = re.compile(
    rf"(?P<currency>[$€£]?)\s?(?<!\w)(?<!\d\.)(?P<low>{_SIGNED})(?:\s*(?:[-–—]|to)\s*(?P<high>{_DIGITS}))?"
    r"(?:st|nd|rd|th)?(?P<glued>[^\W\d_]*)"
    r"\s*(?P<scale>thousand|million|billion|trillion)?\b\s*(?:degrees?\s+)?"
    r"(?P<unit>°\s?[CFK]\b|°|%|[^\W\d_]+(?:/[^\W\d_]+)?)?"
)
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_UNITS = {
    spelling: unit
    for unit, others in WORDS["units"].items()
    for name in (unit, *others.split())
    for spelling in (name, name if len(name) < 3 else f"{name}s")
}
_NUMBERS = {word: i for i, word in enumerate(WORDS["numbers"].split())}
_SPELLED = re.compile(rf"({'|'.join(_NUMBERS)})\b(?=\s*(?:([^\W\d_]+)|$))", re.IGNORECASE)


class Date(NamedTuple):
    """A date, or what is given of it; years BC are negative."""

    year: int | None
    month: int | None = None
    day: int | None = None


class Quantity(NamedTuple):
    """A number or range with its unit, "" if none of the known ones follows."""

    low: float
    high: float
    unit: str = ""


@lru_cache(maxsize=100_000)
def date(text: str, *, anywhere: bool = False) -> Date | None:
    """The date with a month, or the bare year, that the text begins with, or None.

    Words such as "on" or "around" may stand before it. With `anywhere`, the first date with a month
    in the text, else the first number of three or four digits, or with an era, as a year.
    """
    start = _lead(text)
    for form in _FORMS:
        if found := form.search(text) if anywhere else form.match(text, start):
            parts = found.groupdict()
            day = parts.get("day")
            return Date(_year(parts), _month(parts["month"]), int(day) if day else None)
    found = _BARE_YEAR.search(text) if anywhere else _BARE_YEAR.match(text, start)
    return Date(_year(found.groupdict())) if found else None


def shared_parts(a: Date, b: Date) -> int:
    """Of how many parts (year, month, day) two dates say the same: 0 if they contradict each other,
    or share neither the year nor month and day."""
    shared = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if None not in (x, y)]
    same = all(a[i] == b[i] for i in shared)
    return len(shared) if same and (0 in shared or len(shared) == 2) else 0


@lru_cache(maxsize=100_000)
def quantity(text: str) -> Quantity | None:
    """The number or range that the text begins with, or None.

    Words such as "approximately" or "group" may stand before it. Numbers up to twenty may be
    spelled out if a known unit, or nothing, follows.
    """
    start = _lead(text)
    if found := _SPELLED.match(text, start):
        unit = _UNITS.get((found[2] or "").lower(), "")
        value = float(_NUMBERS[found[1].lower()])
        return Quantity(value, value, unit) if unit or not found[2] else None
    if labelled := _LABEL.match(text, start):
        start = labelled.end()
    found = _QUANTITY.match(text, start)
    return _read(found) if found else None


@lru_cache(maxsize=100_000)
def quantities(text: str) -> tuple[Quantity, ...]:
    """All numbers and ranges of the text."""
    return tuple(filter(None, map(_read, _QUANTITY.finditer(text))))


def meet(a: Quantity, b: Quantity) -> bool:
    """Whether two quantities overlap in value and their units do not contradict each other."""
    slack = 1e-9 * max(abs(a.high), abs(b.high))
    overlap = a.low <= b.high + slack and b.low <= a.high + slack
    return overlap and (a.unit == b.unit or not (a.unit and b.unit))


def _lead(text: str) -> int:
    found = _LEAD.match(text)
    return found.end() if found else 0


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    return next(i for i, name in enumerate(MONTHS, 1) if name.startswith(text.lower()[:3]))


def _year(parts: dict[str, str | None]) -> int | None:
    if not (year := parts.get("year")):
        return None
    era = parts.get("era") or parts.get("needed") or ""
    return int(re.sub(r"\D", "", year)) * (-1 if era.lower().startswith("b") else 1)


def _read(found: re.Match[str]) -> Quantity | None:
    parts = found.groupdict(default="")
    word = parts["glued"] or parts["unit"]
    unit = _UNITS.get(word.lower().replace(" ", ""), "")
    if not unit and (parts["glued"] or word[:1].isupper()):
        return None  # a formula, a code or a name: 209Bi, 101 Dalmatians
    low = float(parts["low"].replace(",", "").replace("−", "-"))
    high = float(parts["high"].replace(",", "")) if parts["high"] else low
    if parts["glued"] == "s" and low >= 100 and low % 10 == 0:  # the 1980s, the 1800s
        return Quantity(low, low + (9 if low % 100 else 99))
    scale = _SCALES.get(parts["scale"], 1.0)
    low, high = low * scale, max(low, high) * scale
    return Quantity(low, high, _UNITS.get(parts["currency"], "") or unit)
