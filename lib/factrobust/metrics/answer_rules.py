"""The seven kinds of answers that are neither the parametric one nor the context's (thesis, 5.3).

The thesis sorted them by hand. Here ordered RULES decide, the first that applies: each sees the three
answers of a question and what is known of the right ones, and gives a kind or passes. Dates and
quantities are compared by value, everything else by the words that name something
(`metrics.short_answers`). They sort the examples of tables 15 and 16 as the thesis does. Kinds 2, 3 and 6 need
knowledge of the world: without accepted answers they are guesses from the form of the answer and of
the question, and a judge may decide them instead. The rules read English; they know no chemical
symbols (209Bi is Bismuth-209), no ambiguous names (Rome, Georgia) and no namesakes that no listed
word tells apart (John Adams and John Quincy Adams).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from factrobust.metrics.short_answers import (
    WORDS,
    Date,
    Quantity,
    alike,
    clean,
    content,
    core,
    date,
    empty,
    fold,
    inside,
    meet,
    phrase_of,
    quantities,
    quantity,
    segments,
    shared_parts,
    specific,
    words,
)
from factrobust.text import normalise

_NONE = re.compile(
    r"(?:not (?:known|specified|applicable|available|clear|certain|mentioned|given|provided)|unknown|"
    r"unclear|uncertain|none(?! other)|n/a|nothing)\b",
    re.IGNORECASE,
)
NEGATION = re.compile(
    r"\b(?:not|never|nor|neither|no longer|rather than|instead of|as opposed to|unlike)\b|n't\b",
    re.IGNORECASE,
)
_THING = {word: thing for thing, listed in WORDS["things"].items() for word in listed.split()}


class Row(NamedTuple):
    """The three answers of a question, cleaned, and what is known of the right ones.

    `accepted` are the right answers, `synonyms` maps a normalised spelling to the names it stands
    for, `right_answers` is "one", "several" or None.
    """

    parametric: str
    counterfactual: str
    contextual: str
    accepted: Sequence[str] = ()
    synonyms: Mapping[str, frozenset[str]] = MappingProxyType({})
    right_answers: str | None = None


class Rule(NamedTuple):
    name: str
    kinds: str
    definition: str
    decide: Callable[[Row], int | None]


def _either(of: Callable[[str], bool], row: Row) -> int | None:
    """1 if it holds of the parametric answer, else 5 if of the counterfactual."""
    return 1 if of(row.parametric) else 5 if of(row.counterfactual) else None


def _same_text(row: Row) -> int | None:
    def equal(other: str) -> bool:
        a, b = quantity(row.contextual), quantity(other)
        same = normalise(row.contextual) == normalise(other) != ""
        return same and not (a and b and not meet(a, b))  # -71 is not 71

    return _either(equal, row)


def _synonym(row: Row) -> int | None:
    names = row.synonyms.get(normalise(row.contextual), frozenset())
    return _either(lambda other: bool(names & row.synonyms.get(normalise(other), frozenset())), row)


def _no_answer(row: Row) -> int | None:
    if not _NONE.match(row.contextual):
        return None
    return _either(lambda other: empty(other) or bool(_NONE.match(other)), row) or 2


def _negation(row: Row) -> int | None:
    theirs, p = _negated(row.counterfactual), content(row.parametric)
    for word in _negated(row.contextual):
        its = inside(word, content(row.counterfactual)) and not inside(word, theirs)
        if its and not inside(word, p):
            return 4
    return None


def _negated(text: str) -> tuple[str, ...]:
    cue = NEGATION.search(text)
    return content(text[cue.end() :]) if cue else ()


def _dates(row: Row) -> tuple[Date, Date | None, Date | None] | None:
    """The answer's date and those in the two others, if it is one, with a month in it or in theirs."""
    a = date(row.contextual)
    p, c = (date(text, anywhere=True) for text in (row.parametric, row.counterfactual))
    if a is None or not any(other and (a.month or other.month) for other in (p, c)):
        return None
    return a, p, c


def _date(row: Row) -> int | None:
    if (found := _dates(row)) is None:
        return None
    a, p, c = found
    if p is not None and c is not None:
        parts = [(x == y, x == z) for x, y, z in zip(a, p, c, strict=True) if x is not None]
        if (True, False) in parts and (False, True) in parts and (False, False) not in parts:
            return 7
    as_p, as_c = (shared_parts(a, other) if other else 0 for other in (p, c))
    if not (as_p or as_c):
        return None
    return 1 if as_p >= as_c else 5


def _has_quantities(row: Row) -> bool:
    """Whether the answer begins with a number and one that it is compared with holds one."""
    others = (row.parametric, row.counterfactual)
    return quantity(row.contextual) is not None and any(
        quantity(x) or quantities(x) for x in others
    )


def _quantity(row: Row) -> int | None:
    a = quantity(row.contextual)
    if a is None or _dates(row) or not _has_quantities(row):
        return None
    p, c = quantity(row.parametric), quantity(row.counterfactual)

    def leads(text: str) -> bool:
        return (other := quantity(text)) is not None and meet(a, other)

    def holds(text: str) -> bool:
        return any(meet(a, other) for other in quantities(text))

    if found := _either(leads, row) or _either(holds, row):
        return found
    if p and c and a.unit and p.unit and c.unit and p.unit != c.unit:
        of_p, of_c = (meet(a._replace(unit=""), Quantity(x.low, x.high)) for x in (p, c))
        if (of_p and a.unit == c.unit) or (of_c and a.unit == p.unit):
            return 7
        return 3 if a.unit == c.unit else None
    return None


def _by_value(row: Row) -> bool:
    return _dates(row) is not None or _has_quantities(row)


def _mix(row: Row) -> int | None:
    if _by_value(row):
        return None
    p, c = content(row.parametric), content(row.counterfactual)
    main = core(row.contextual)
    options = [content(main)]
    if len(segments(row.parametric)) > 1:  # else what follows a name is only the context's form
        parts = segments(row.contextual)
        later = [s for s in parts[parts.index(main) + 1 :] if specific(s)] if main in parts else []
        options.append(options[0] + tuple(w for s in later for w in content(s)))
    for option in options:
        in_p, in_c = ([inside(w, other) for w in option] for other in (p, c))
        mine = [w for w, x, y in zip(option, in_p, in_c, strict=True) if x and not y]
        theirs = [w for w, x, y in zip(option, in_p, in_c, strict=True) if y and not x]
        known = all(x or y for x, y in zip(in_p, in_c, strict=True))
        # All of the context's answer, and of memory's but its form: 5.
        form = not any(map(specific, mine)) and all(inside(w, option) for w in c)
        if known and mine and any(map(specific, theirs)) and not form:
            return 7
    return None


def _wording(row: Row) -> int | None:
    if _by_value(row):
        return None
    main = core(row.contextual)
    first = (*segments(row.contextual), main)[0]

    def states(text: str) -> bool:
        parts = segments(text) or (text,)
        heart = core(text)
        return (
            any(alike(main, part) or phrase_of(main, part) for part in parts)
            or (any(map(specific, content(heart))) and phrase_of(heart, main))
            or alike(first, heart)  # and goes on: the part with a name may come later
        )

    found = _either(states, row)
    of_c = alike(main, core(row.counterfactual)) and not alike(main, core(row.parametric))
    return 5 if found == 1 and of_c else found


def _thing(row: Row) -> int | None:
    texts = (row.parametric, row.counterfactual, row.contextual)
    p, c, a = (next((t for w in words(x) if (t := _THING.get(fold(w)))), None) for x in texts)
    return 3 if a is not None and a == c and p is not None and p != a else None


def _accepted(row: Row) -> int | None:
    main = core(row.contextual)
    return 6 if any(alike(main, clean(name)) for name in row.accepted) else None


def _several(row: Row) -> int | None:
    named = bool(content(row.contextual))  # an "A: A: A" answers nothing
    return 6 if named and not row.accepted and row.right_answers == "several" else None


RULES = (
    Rule("same text", "1 5", "equal after normalisation", _same_text),
    Rule(
        "synonym", "1 5", "another spelling of the same name among the accepted answers", _synonym
    ),
    Rule("no answer", "1 5 2", "says that the answer is not known, as the other does", _no_answer),
    Rule("negation", "4", "negates a word that only the context holds", _negation),
    Rule("date", "1 5 7", "the same date, or year, month and day from both", _date),
    Rule("quantity", "1 5 7 3", "the same number, or the unit of the context alone", _quantity),
    Rule("names of both", "7", "each word from one of the two, and some only from each", _mix),
    Rule("core", "1 5", "what is named is named in a part of the other", _wording),
    Rule("kind of thing", "3", "a sea, a country ... as in the context, not in memory", _thing),
    Rule("accepted", "6", "among the accepted answers", _accepted),
    Rule("one of several", "6", "the question has several right answers (unverified)", _several),
    Rule("rest", "2", "no other rule applies", lambda row: 2),
)


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
JUDGED = (2, 3, 6)  # what a judge may decide
Judge = Callable[[Mapping[Any, Any]], int]


class Decision(NamedTuple):
    """A kind, 1 to 7, and the rule that decided; None for an empty answer."""

    kind: int | None
    rule: str


def decide(parametric: str, counterfactual: str, contextual: str, **known: Any) -> Decision:
    """The kind of the contextual answer, whatever its source.

    `known` may be accepted, synonyms and right_answers, see `Row`. Kind 1 includes the parametric
    answer itself, and kind 5 the counterfactual. Where both fit equally, it is 1: as in the thesis,
    the parametric answer is compared first.
    """
    if empty(contextual):
        return Decision(None, "empty")
    row = Row(clean(parametric), clean(counterfactual), clean(contextual), **known)
    decisions = (Decision(rule.decide(row), rule.name) for rule in RULES)
    return next(decision for decision in decisions if decision.kind is not None)


def judged(judge: Judge, row: Mapping[Any, Any], decision: Decision) -> Decision:
    """The decision of a judge, where the rules can but guess (JUDGED); else theirs.

    `judge` gets a row of the results (object, base_id and the answers among them) and returns 2, 3
    or 6 (ValueError if not).
    """
    if decision.kind not in JUDGED:
        return decision
    if (kind := judge(row)) not in JUDGED:
        raise ValueError(f"the judge says {kind!r} of {row['question_id']}, and not 2, 3 or 6")
    return Decision(int(kind), "judge")


def kinds_table() -> pd.DataFrame:
    """The seven kinds: kind, label, definition."""
    return pd.DataFrame([(k, *kind) for k, kind in KINDS.items()], columns=["kind", *Kind._fields])


def rules_table() -> pd.DataFrame:
    """The rules in their order: order, rule, kinds (that it can give), definition."""
    rows = [(i, rule.name, rule.kinds, rule.definition) for i, rule in enumerate(RULES, 1)]
    return pd.DataFrame(rows, columns=["order", "rule", "kinds", "definition"])
