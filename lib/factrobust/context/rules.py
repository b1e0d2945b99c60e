"""Where does an answer come from: the model's memory, the context, or neither (thesis, 3.2.2, 5.3)?

Two rules compare the parametric answer, the counterfactual and the answer given with a context:
`published_source` is the thesis's code (listing 5), `decide` is ours, which compares what answers
name (`named`). Whether a text says an answer is told by `right` in all rooms.

The rules read English. Of the thesis's seven kinds of others (tables 13 to 16) they tell 1, 4, 5
and 7 by words, kind 3 only by a shared unit ("70 years" after "100 years", where memory said "12
months"). Kind 6 needs the right answers. Names are not translated, units not converted.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

from factrobust.paths import DATA, noted
from factrobust.text import contains, exact_match, normalise

# Lists of English words, each as it stands in the file.
_FILE = noted(DATA / "words.yaml", at_import=True)
WORDS: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
_FUNCTION = frozenset(WORDS["function"].split())
_GENERIC = frozenset(WORDS["generic"].split())
_NAMESAKES = frozenset(WORDS["namesakes"].split())
_ENDINGS = frozenset(WORDS["endings"].split())
_UNITS = frozenset(WORDS["units"].split())
_MONTHS = {m[:3]: m for m in WORDS["months"].split()}
MONTHS = [month.capitalize() for month in _MONTHS.values()]
_PART = re.compile(r"[,;:(\[]|\b(?:which|who|whose|but|where)\b", re.IGNORECASE)
_NUMBER = re.compile(r"((?:minus)?\d[\d.]*)(?:st|nd|rd|th|s)?")
NEGATION = re.compile(
    r"\b(?:not|never|nor|neither|no longer|rather than|instead of|unlike)\b|n['’]t\b",
    re.IGNORECASE,
)
DIGITS = 10  # of a number that count; a text may be cut off at 20 tokens
_UNKNOWN = re.compile(
    r"\W*(?:not (?:known|specified|applicable|available|clear|certain|mentioned|given|provided)"
    r"|unknown|unclear|uncertain|none(?! other)|n/a|nothing)\b",
    re.IGNORECASE,
)
_OPTION = re.compile(r"\s*(?:[(\[{]\s*(?:\w|[ivxIVX]{2,4})|[A-E](?=\W)|[a-e])(?!\w)[^\w]*")
_MARK = re.compile(r"(?<!\w)[A-Z]:")


def published_source(parametric: str, counterfactual: str, answer: str) -> str:
    """Source by the thesis's code: lower case, the letters "the" and commas deleted anywhere; equal
    is what begins the other, so an empty answer equals any and "1" equals "1969". Parametric comes
    first."""
    a = _plain(answer)
    p = _plain(parametric)
    c = _plain(counterfactual)
    if a.startswith(p) or p.startswith(a):
        return "parametric"
    return "contextual" if a.startswith(c) or c.startswith(a) else "other"


def _plain(text: str) -> str:
    return text.lower().replace("the", "").replace(",", "").strip()


class Named(NamedTuple):
    """What a text names: its words but function words, those of its first part, its numbers and
    months, its units, and whether a number begins it."""

    words: tuple[str, ...]
    first: tuple[str, ...]
    values: frozenset[str]
    units: frozenset[str]
    leads: bool


@lru_cache(maxsize=100_000)
def named(text: str) -> Named:
    """Read a text. Generic nouns ("the city of Paris") count where nothing else is named."""
    parts = list(filter(None, map(_words, _PART.split(_whole(text)))))
    words = tuple(word for part in parts for word in part)
    first = parts[0] if parts else ()
    values = frozenset(filter(_is_value, words))
    units = frozenset(filter(_is_unit, words))
    leads = bool(words) and words[0] in values
    return Named(words, first, values, units, leads)


def _whole(text: str) -> str:
    """The text with numbers and dates that no comma cuts, the sign of a number in letters, and
    initials in one word (J. R. R. Tolkien)."""
    plain = re.sub(r"(?<=\d),(?=\d)|,(?= \d{3})", "", text)
    plain = re.sub(r"(?<![^\W_])([A-Z])\.\s?(?=[A-Z]\.)", r"\1", plain)
    return re.sub(r"(?<!\w)[-−](?=\d)", "minus", plain)


def _words(text: str) -> tuple[str, ...]:
    words = [_value(word) for word in normalise(text).split() if word not in _FUNCTION]
    telling = [word for word in words if word not in _GENERIC]
    return tuple(telling or words)


def _value(word: str) -> str:
    if found := _NUMBER.fullmatch(word):
        return found[1][:DIGITS]
    month = _MONTHS.get(word[:3], "")
    return month if month.startswith(word) else word


def _is_value(word: str) -> bool:
    return word[-1].isdigit() or word in _MONTHS.values()


def _is_unit(word: str) -> bool:
    return word in _UNITS or word.removesuffix("s") in _UNITS


def _same(v: str, w: str) -> bool:
    """Whether words are the same but for common endings (Austria, Austrian)."""
    short, long = sorted((v, w), key=len)
    if short == long:
        return True
    if len(short) < 4 or _is_value(short):
        return False
    return long.startswith(short) and long[len(short) :] in _ENDINGS


def within(some: Collection[str], others: Collection[str]) -> bool:
    """Whether there are some words, and all of them are among the others."""
    return bool(some) and _shared(some, others) == set(some)


def _shared(some: Collection[str], others: Collection[str]) -> set[str]:
    """Those of some words that are among the others, but for common endings."""
    return {word for word in some if any(_same(word, other) for other in others)}


def agree(a: Named, b: Named) -> bool:
    """Whether one names all that the other names, or that its first part does. Numbers of one must
    be among the other's; where a number begins one of them this is enough, unless units differ.
    Words that make another bearer of a name ("North Korea") must be in both."""
    if a.values and b.values:
        if not (a.values <= b.values or b.values <= a.values):
            return False
        if a.leads or b.leads:
            return not (a.units and b.units) or bool(a.units & b.units)
    if _NAMESAKES & (set(a.first) ^ set(b.first)):
        return False
    in_b = within(a.words, b.words) or within(a.first, b.words)
    return in_b or within(b.words, a.words) or within(b.first, a.words)


@lru_cache(maxsize=100_000)
def same_answer(one: str, other: str) -> bool:
    """Whether two texts say the same: the same letters and digits, the same leading number, or each
    names all that the other does."""
    if _letters(one) == _letters(other):
        return True
    a = named(one)
    b = named(other)
    if not agree(a, b):
        return False
    if a.leads and b.leads and a.values == b.values:
        return True
    return within(a.words, b.words) and within(b.words, a.words)


@lru_cache(maxsize=100_000)
def _letters(text: str) -> str:
    return normalise(_whole(text))


@lru_cache(maxsize=100_000)
def degeneracy(text: str) -> str | None:
    """Why a text is hardly an answer, or None.

    "empty": no letter or digit, or only "the"; "option": the mark of an option, as "(D", "b)" or
    "d" (a capital alone may be a chemical symbol); "marks": a capital and a colon, which continue
    the prompt's form ("A: Jazz B: Rock"); "repeats": six words or more, less than half of them
    different.
    """
    words = re.findall(r"[^\W_]+", text.lower())
    if set(words) <= {"the"}:
        return "empty"
    if _OPTION.fullmatch(text):
        return "option"
    if _MARK.search(text):
        return "marks"
    n = len(words)
    return "repeats" if n >= 6 and 2 * len(set(words)) < n else None


KINDS = {
    1: "parametric answer, phrased otherwise",
    2: "plainly wrong",
    3: "question misread because of the context",
    4: "context negated",
    5: "context, phrased otherwise",
    6: "another right answer",
    7: "mix of both",
}


class Decision(NamedTuple):
    """Where an answer comes from, and its kind (1 to 7, or None)."""

    source: str
    kind: int | None


def decide(
    parametric: str,
    counterfactual: str,
    answer: str,
    *,
    accepted: Sequence[str] = (),
    right_answers: str | None = None,
) -> Decision:
    """Source and kind of an answer by our rules, the first that applies.

    The source is "same" where parametric and counterfactual answers say the same, "none" for an
    answer that says nothing (`degeneracy`), both without a kind; "parametric" for kind 1,
    "contextual" for 5, else "other". `accepted` are the right answers, `right_answers` is "one",
    "several" or None.
    """
    if same_answer(parametric, counterfactual):
        return Decision("same", None)
    if degeneracy(answer):
        return Decision("none", None)
    kind = _kind(parametric, counterfactual, answer)
    if kind is None:
        one_of_several = not accepted and right_answers == "several"
        kind = 6 if one_of_several or exact_match(answer, accepted) else 2
    return Decision({1: "parametric", 5: "contextual"}.get(kind, "other"), kind)


@lru_cache(maxsize=100_000)
def _kind(parametric: str, counterfactual: str, answer: str) -> int | None:
    """Kind by what the three texts say alone, or None."""
    # 1. The same letters.
    if _letters(answer) == _letters(parametric):
        return 1
    if _letters(answer) == _letters(counterfactual):
        return 5
    # 2. No answer: as a text that says no more, else wrong.
    if _UNKNOWN.match(answer):
        for kind, text in ((1, parametric), (5, counterfactual)):
            if not text or _UNKNOWN.match(text):
                return kind
        return 2
    a = named(answer)
    p = named(parametric)
    c = named(counterfactual)
    only_p = set(p.words) - _shared(p.words, c.words)
    only_c = set(c.words) - _shared(c.words, p.words)
    # 3. The context's words, denied.
    denied_before = _denied(counterfactual)
    denied = _shared(_denied(answer), only_c)
    if denied - _shared(denied, denied_before):
        return 4
    # 4. Parts of both.
    of_p = _shared(a.words, only_p)
    of_c = _shared(a.words, only_c)
    if a.values & of_p and a.values & of_c:
        return 7
    as_p = agree(a, p)
    as_c = agree(a, c)
    is_mixed = of_p and of_c and within(a.words, (*p.words, *c.words))
    if is_mixed and (as_p == as_c or len(p.first) < len(p.words)):
        return 7
    # 5. One of them.
    if as_c and (not as_p or len(of_c) > len(of_p)):
        return 5
    if as_p or as_c:
        return 1
    # 6. A unit of the context alone.
    return 3 if (a.units & c.units) - p.units else None


Slot = Sequence[Sequence[str]]  # an answer's names in a passage, and after each of two exchanges
CAUSES = ("context", "both", "slots", "half", "moved", "memory", "none")


def swap_source(
    memory: str,
    answer: str,
    swapped: Sequence[str],
    slots: Sequence[Slot],
) -> str:
    """What an answer follows if the context's answers are exchanged: one of CAUSES.

    `memory` is the answer without a context, `answer` the one with it, `swapped` the answers after
    each exchange. It follows a slot if it says (`right`) what stands there, before and after both
    exchanges.

    "context": it follows a slot; "both": it does, and memory says the same; "slots": it says each
    time what stands in some slot, but not in one and the same; "half": it does after one exchange
    alone; "memory": it never changes, and memory says the same; "moved": all else, such as an
    answer that memory does not give, and no slot holds: decoding is greedy, so the context moved
    it; "none": it says nothing.
    """
    if degeneracy(answer):
        return "none"
    texts = (answer, *swapped)
    # Whether each text says what stands in a slot at its time, [slot][text].
    follows = []
    for slot in slots:
        follows.append([right(text, names) for text, names in zip(texts, slot, strict=True)])
    if any(map(all, follows)):
        agrees = same_answer(memory, answer) or right(memory, [answer])
        return "both" if agrees else "context"
    if all(same_answer(answer, text) for text in (memory, *swapped)):
        return "memory"
    first, *others = map(any, zip(*follows, strict=True)) if follows else (False,)
    if first and any(others):
        return "slots" if all(others) else "half"
    return "moved"


def _denied(text: str) -> tuple[str, ...]:
    cue = NEGATION.search(text)
    return named(text[cue.end() :]).words if cue else ()


def right(text: str, answers: Sequence[str]) -> bool:
    """Whether a text states an accepted answer: its words, or the same leading numbers, in any
    order. A date must be as precise as the answer. What is negated is not stated ("not Paris")."""
    before = NEGATION.split(text)[0].strip()
    stated = before or text.partition(" but ")[2].strip()
    if exact_match(text, answers) or contains(stated, answers):
        return True
    given = named(stated)
    return given.leads and any(_same_number(given, gold) for gold in map(named, answers))


def _same_number(given: Named, gold: Named) -> bool:
    """Whether a text gives an answer's leading numbers, in no other unit."""
    if not gold.leads or not gold.values <= given.values:
        return False
    return not gold.units or not given.units - gold.units
