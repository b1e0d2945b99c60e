"""Dates and quantities in short answers, so that they are compared by value, not by spelling.

"12 July 1997" is "July 12, 1997", "480 pages in a standard edition" is "480 pages", and "1" is not
"1969". English only. Not read: numerals that begin a name ("101 Dalmatians"), Roman numerals,
decimal commas, powers of ten; units are told apart, not converted (96 minutes are not 1.6 hours).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from factrobust.datasets import dates
from factrobust.metrics.phrases import WORDS

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
_WORDS = {word: i for i, word in enumerate(WORDS["numbers"].split())}
_SPELLED = re.compile(rf"({'|'.join(_WORDS)})\b(?=\s*(?:([^\W\d_]+)|$))", re.IGNORECASE)


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
        value = float(_WORDS[found[1].lower()])
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
