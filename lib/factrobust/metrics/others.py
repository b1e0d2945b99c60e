"""The seven kinds of answers that are neither the parametric one nor the context's (thesis, 5.3).

The thesis sorted them by hand. Here the ordered rules of `metrics.other_rules` decide, the first
that applies; they sort the examples of tables 15 and 16 as the thesis does. Kinds 2, 3 and 6 need
knowledge of the world: without accepted answers they are guesses from the form of the answer and of
the question, and a judge may decide them instead. The rules read English; they know no chemical
symbols (209Bi is Bismuth-209), no ambiguous names (Rome, Georgia) and no namesakes that no listed
word tells apart (John Adams and John Quincy Adams).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from factrobust.metrics.other_rules import RULES, Row
from factrobust.metrics.phrases import clean, empty


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
Judge = Callable[[Mapping[str, Any]], int]


class Decision(NamedTuple):
    """A kind, 1 to 7, and the rule that decided; None for an empty answer."""

    kind: int | None
    rule: str


def decide(
    parametric: str,
    counterfactual: str,
    contextual: str,
    *,
    accepted: Sequence[str] = (),
    synonyms: Mapping[str, frozenset[str]] | None = None,
    right_answers: str | None = None,
) -> Decision:
    """The kind of the contextual answer, whatever its source (see `Row` for what may be known).

    Kind 1 includes the parametric answer itself, and kind 5 the counterfactual. Where both fit
    equally, it is 1: as in the thesis, the parametric answer is compared first.
    """
    if empty(contextual):
        return Decision(None, "empty")
    p, c, a = (clean(text) for text in (parametric, counterfactual, contextual))
    row = Row(p, c, a, accepted, synonyms or {}, right_answers)
    found = ((rule.decide(row), rule.name) for rule in RULES)
    return next(Decision(kind, name) for kind, name in found if kind is not None)


def judged(judge: Judge, row: Mapping[str, Any]) -> int:
    """The kind that a judge gives a row whose kind by the rules is one of JUDGED.

    `judge` gets a row of the results (object, base_id and the answers among them) and returns 2, 3
    or 6. Raises ValueError if it returns anything else.
    """
    if (verdict := judge(row)) not in JUDGED:
        raise ValueError(
            f"the judge says {verdict!r} of {row.get('question_id', 'a row')}; it must return 2 "
            "(plainly wrong), 3 (question misread) or 6 (another right answer)"
        )
    return int(verdict)


def kinds_table() -> pd.DataFrame:
    """The seven kinds: kind, label, definition."""
    return pd.DataFrame([(k, *kind) for k, kind in KINDS.items()], columns=["kind", *Kind._fields])


def rules_table() -> pd.DataFrame:
    """The rules in their order: order, rule, kinds (that it can give), definition."""
    rows = [(i, rule.name, rule.kinds, rule.definition) for i, rule in enumerate(RULES, 1)]
    return pd.DataFrame(rows, columns=["order", "rule", "kinds", "definition"])
