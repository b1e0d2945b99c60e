"""Where does an answer come from: the model's memory, the context, or neither (thesis, 3.2.2, 5.3)?

Three rules compare the parametric answer, the counterfactual and the answer given with a context:
`published_source` is the thesis's code (listing 5), `text_source` its text, `decide` ours, which
compares what answers name (`named`). `verdicts` holds them against hand labels.

The rules read English. Of the thesis's seven kinds of others (tables 13 to 16) they tell 1, 4, 5 and 7
by words, kind 3 only by a shared unit ("70 years" after "100 years", where memory said "12 months").
Kind 6 needs the right answers. Names are not translated, units not converted.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pandas as pd
import yaml

from factrobust.paths import DATA, noted
from factrobust.tables import stacked
from factrobust.text import contains, exact_match, normalise

# Lists of English words, each as it stands in the file.
_FILE = noted(DATA / "words.yaml", at_import=True)
WORDS: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
_FUNCTION, _GENERIC, _NAMESAKES, _ENDINGS, _UNITS = (
    frozenset(WORDS[name].split())
    for name in ("function", "generic", "namesakes", "endings", "units")
)
_MONTHS = {m[:3]: m for m in WORDS["months"].split()}
_PART = re.compile(r"[,;:(\[]|\b(?:which|who|whose|but|where)\b", re.IGNORECASE)
_NUMBER = re.compile(r"((?:minus)?\d[\d.]*)(?:st|nd|rd|th|s)?")
NEGATION = re.compile(
    r"\b(?:not|never|nor|neither|no longer|rather than|instead of|unlike)\b|n['’]t\b", re.IGNORECASE
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
    texts = (answer, parametric, counterfactual)
    a, p, c = (x.lower().replace("the", "").replace(",", "").strip() for x in texts)
    if a.startswith(p) or p.startswith(a):
        return "parametric"
    return "contextual" if a.startswith(c) or c.startswith(a) else "other"


def text_source(parametric: str, counterfactual: str, answer: str) -> str:
    """Source by the thesis's text (3.2.2): what follows a full stop, punctuation and stop words are
    removed; equal is whose words are a subsequence of the other's. Ours: stop words are `function`
    of data/words.yaml, case does not count, and the parametric answer comes first."""

    def left(text: str) -> list[str]:
        words = re.sub(r"[^\w\s]|_", "", text.partition(".")[0].lower()).split()
        return [word for word in words if word not in _FUNCTION]

    def within(one: list[str], other: list[str]) -> bool:
        short, long = sorted((one, other), key=len)
        rest = iter(long)
        return all(word in rest for word in short)

    a, p, c = map(left, (answer, parametric, counterfactual))
    return "parametric" if within(a, p) else "contextual" if within(a, c) else "other"


SourceRule = Callable[[str, str, str], str]
RULES: Mapping[str, SourceRule] = {
    "code": published_source, "text": text_source, "ours": lambda *texts: decide(*texts).source,
}  # fmt: skip


def verdicts(labels: pd.DataFrame, rules: Mapping[str, SourceRule] = RULES) -> pd.DataFrame:
    """What each rule says of labelled answers (`load_labels("context")`): the columns of `labels`,
    rule, verdict, right (the verdict is the label, or "other" where nothing is said)."""
    texts = labels[["parametric", "counterfactual", "answer"]].to_numpy()
    verdicts = {name: [of(*row) for row in texts] for name, of in rules.items()}
    table = stacked({name: labels.assign(verdict=v) for name, v in verdicts.items()}, "rule")
    nothing = (table["label"] == "none") & (table["verdict"] == "other")
    return table.assign(right=(table["verdict"] == table["label"]) | nothing)


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
    parts = [words for part in _PART.split(_whole(text)) if (words := _words(part))]
    words = tuple(word for part in parts for word in part)
    values = frozenset(filter(_is_value, words))
    units = frozenset(w for w in words if w in _UNITS or w.removesuffix("s") in _UNITS)
    leads = bool(words) and words[0] in values
    return Named(words, parts[0] if parts else (), values, units, leads)


def _whole(text: str) -> str:
    """The text with numbers and dates that no comma cuts, the sign of a number in letters, and initials
    in one word (J. R. R. Tolkien)."""
    plain = re.sub(r"(?<=\d),(?=\d)|,(?= \d{3})", "", text)
    plain = re.sub(r"(?<![^\W_])([A-Z])\.\s?(?=[A-Z]\.)", r"\1", plain)
    return re.sub(r"(?<!\w)[-−](?=\d)", "minus", plain)


def _words(text: str) -> tuple[str, ...]:
    words = [_value(w) for w in normalise(text).split() if w not in _FUNCTION]
    return tuple(w for w in words if w not in _GENERIC) or tuple(words)


def _value(word: str) -> str:
    if found := _NUMBER.fullmatch(word):
        return found[1][:DIGITS]
    month = _MONTHS.get(word[:3], "")
    return month if month.startswith(word) else word


def _is_value(word: str) -> bool:
    return word[-1].isdigit() or word in _MONTHS.values()


def _same(v: str, w: str) -> bool:
    """Whether words are the same but for common endings (Austria, Austrian)."""
    v, w = sorted((v, w), key=len)
    ends = len(v) >= 4 and not _is_value(v) and w.startswith(v) and w[len(v) :] in _ENDINGS
    return v == w or ends


def within(some: Collection[str], others: Collection[str]) -> bool:
    """Whether there are some, and all of them are among the others."""
    return bool(some) and all(any(_same(v, w) for w in others) for v in some)


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
    pairs = ((a.words, b.words), (a.first, b.words))
    return any(within(x, y) for x, y in (*pairs, (b.words, a.words), (b.first, a.words)))


@lru_cache(maxsize=100_000)
def same_answer(one: str, other: str) -> bool:
    """Whether two texts say the same: the same letters and digits, the same leading number, or each
    names all that the other does."""
    if _letters(one) == _letters(other):
        return True
    a, b = named(one), named(other)
    numbers = a.leads and b.leads and a.values == b.values
    return agree(a, b) and (numbers or (within(a.words, b.words) and within(b.words, a.words)))


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
    return "repeats" if len(words) >= 6 and 2 * len(set(words)) < len(words) else None


class Kind(NamedTuple):
    label: str
    definition: str


KINDS = {
    1: Kind("parametric answer, phrased otherwise", "says what the model says without context"),
    2: Kind("plainly wrong", "neither memory nor context, and not right"),
    3: Kind("question misread because of the context", "answers what the context seems to ask"),
    4: Kind("context negated", "says that the context is not so"),
    5: Kind("context, phrased otherwise", "says what the context says"),
    6: Kind("another right answer", "right, but not what the model says without context"),
    7: Kind("mix of both", "joins parts of the parametric answer and of the context"),
}


class Decision(NamedTuple):
    """Where an answer comes from, its kind (1 to 7, or None), and the rule that decided."""

    source: str
    kind: int | None
    rule: str


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
        return Decision("same", None, "same")
    if degeneracy(answer):
        return Decision("none", None, "nothing said")
    kind, rule = _kind(parametric, counterfactual, answer)
    if kind is None:
        several = not accepted and right_answers == "several"
        kind, rule = (6, "one of several") if several else (2, "rest")
        if exact_match(answer, accepted):
            kind, rule = 6, "accepted"
    return Decision({1: "parametric", 5: "contextual"}.get(kind, "other"), kind, rule)


@lru_cache(maxsize=100_000)
def _kind(parametric: str, counterfactual: str, answer: str) -> tuple[int | None, str]:
    """Kind by what the three texts say alone, or None, and the rule."""
    others = {1: parametric, 5: counterfactual}
    for kind, other in others.items():
        if _letters(answer) == _letters(other):
            return kind, "same text"
    if _UNKNOWN.match(answer):
        silent = (kind for kind, x in others.items() if not x or _UNKNOWN.match(x))
        return next(silent, 2), "no answer"
    a, p, c = map(named, (answer, parametric, counterfactual))
    only_p, only_c = ([w for w in x.words if not within([w], y.words)] for x, y in ((p, c), (c, p)))
    denied = _denied(answer)
    if any(within([w], only_c) and not within([w], _denied(counterfactual)) for w in denied):
        return 4, "negation"
    mine, theirs = ([w for w in a.words if within([w], only)] for only in (only_p, only_c))
    if a.values & {*mine} and a.values & {*theirs}:
        return 7, "numbers of both"
    as_p, as_c = agree(a, p), agree(a, c)
    mixed = mine and theirs and within(a.words, (*p.words, *c.words))
    if mixed and (as_p == as_c or len(p.first) < len(p.words)):
        return 7, "words of both"
    if as_p or as_c:
        return 5 if as_c and (not as_p or len(theirs) > len(mine)) else 1, "agrees"
    if (a.units & c.units) - p.units:
        return 3, "unit of the context"
    return None, ""


Slot = Sequence[Sequence[str]]  # an answer's names in a passage, and after each of two exchanges


def swap_source(memory: str, answer: str, swapped: Sequence[str], slots: Sequence[Slot]) -> str:
    """Where an answer comes from, by what happens if the context's answers are exchanged.

    `memory` is the answer without a context, `answer` the one with it, `swapped` the answers after each
    exchange. The answer *follows* if it states a slot's answer, and each of `swapped` one of those that
    stand there then (of the same slot or not: a model may take another sentence). "context": it follows;
    "both": it follows, and memory says the same; "memory": it stays the same throughout and is what
    memory says; "neither": all else; "none": it says nothing.
    """
    if degeneracy(answer):
        return "none"
    texts = (answer, *swapped)
    if all(any(right(text, slot[i]) for slot in slots) for i, text in enumerate(texts)):
        return "both" if same_answer(memory, answer) or right(memory, [answer]) else "context"
    stays = all(same_answer(answer, text) for text in (memory, *swapped))
    return "memory" if stays else "neither"


def states(context: str, answer: str) -> bool:
    """Whether a context holds an answer: the words of its first part side by side, in any order, and
    with at most one other between them. A denied answer counts, since models repeat it (4.5)."""
    some, words = named(answer).first, named(context).words
    side = len(some) + 1
    near = any(within(some, words[i : i + side]) for i in range(max(len(words) - side, 0) + 1))
    return not degeneracy(answer) and (near or contains(context, [answer]))


def coverage(context: str, answer: str) -> float:
    """The share of an answer's words that stand in a context; 0 for an answer without words."""
    words = named(answer).words
    return sum(within([w], named(context).words) for w in words) / max(len(words), 1)


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
    return given.leads and any(
        gold.leads and gold.values <= given.values and not (gold.units and given.units - gold.units)
        for gold in map(named, answers)
    )
