"""What was lost and gained between two models, two prompts, or before and after a change of weights.

factrobust.diff("smollm2-135m-instruct", "smollm2-taught")
make diff A=gemma-3-270m B='gemma-3-270m~round 4' FAIL_IF='known_drop>0.05'
"""

import argparse
import operator
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from factrobust import statistics
from factrobust.models.interface import ModelError
from factrobust.models.records import RecordsError
from factrobust.together.card import ENOUGH, Card, Fact, card, or_nan

SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
NUMBERS: Mapping[
    str, Callable[[Fact], float]
] = {  # the first of all facts, others of those both know
    "known": lambda fact: float(fact.known),
    "wordings": Fact.worded,
    "false_context": lambda fact: fact.behind("false"),
    "kept": lambda fact: or_nan(fact.kept),
    "logprob": lambda fact: or_nan(fact.logprob),
}


class Diff(NamedTuple):
    """Two cards of the same facts. `changes`: the facts that one alone knows; `table`: each of NUMBERS
    in a and b, the drop from a to b with its interval, paired over facts, n, and for known McNemar's
    exact p."""

    a: Card
    b: Card
    changes: pd.DataFrame
    table: pd.DataFrame

    def fails(self, condition: str) -> bool:
        """Whether a condition such as "known_drop>0.05" holds. ValueError for another text."""
        drops = dict(zip(self.table["name"] + "_drop", self.table["drop"], strict=True))
        found = re.fullmatch(r"\s*(\w+)\s*(>=|<=|>|<)\s*(-?\d*\.?\d+)\s*", condition)
        if not found or found[1] not in drops:
            text = f"{condition!r} is no condition; write one such as known_drop>0.05, of"
            raise ValueError(f"{text} {', '.join(drops)}")
        return bool(SIGNS[found[2]](drops[found[1]], float(found[3])))


def diff(a: Any, b: Any, data: str | Path | None = None, **how: Any) -> Diff:
    """Ask `b` the facts that the card of `a` asks (or a card given as `b`), and compare them in pairs.
    Errors as for `card`."""
    one = a if isinstance(a, Card) else card(a, data, **how)
    names = [fact.fact_id for fact in one.facts]
    other = b if isinstance(b, Card) else card(b, data, **how, facts=names)
    second = {fact.fact_id: fact for fact in other.facts}
    pairs = [(fact, second[fact.fact_id]) for fact in one.facts if fact.fact_id in second]
    if not pairs:
        raise ModelError(f"{one.model} and {other.model} share no fact; make both cards anew")
    rows = [(f.relation, f.question, f.accepted[0], f.answer, g.answer) for f, g in pairs]
    every = pd.DataFrame(rows, columns=["relation", "question", "right", "answer_a", "answer_b"])
    every = every.assign(known_a=[f.known for f, _ in pairs], known_b=[g.known for _, g in pairs])
    table = [_paired(name, number, pairs) for name, number in NUMBERS.items()]
    names = ["name", "a", "b", "drop", "low", "high", "n", "p_value"]
    found = pd.DataFrame([row for row in table if row], columns=names)
    return Diff(one, other, every[every["known_a"] != every["known_b"]], found)


def _paired(name: str, number: Callable[[Fact], float], pairs: Any) -> tuple[Any, ...] | None:
    both = [(f, g) for f, g in pairs if name == "known" or (f.known and g.known)]
    rows = [(f.relation, number(f), number(g)) for f, g in both]
    part = pd.DataFrame(rows, columns=["relation", "a", "b"]).dropna()
    if part.empty:
        return None
    drawn = part["relation"] if part["relation"].nunique() >= ENOUGH else None
    apart, p_value = statistics.paired_difference(part["a"], part["b"], drawn), float("nan")
    if name == "known":
        from scipy.stats import binomtest

        lost, changed = int((part["a"] > part["b"]).sum()), int((part["a"] != part["b"]).sum())
        p_value = float(binomtest(lost, changed).pvalue) if changed else 1.0
    return (name, part["a"].mean(), part["b"].mean(), *apart[:3], len(part), p_value)


def main(arguments: list[str] | None = None) -> None:
    """`make card`, `make diff` and `make answers`. The exit status is 1 if a condition of --fail-if
    holds, and 2, with one sentence, for what cannot be done."""
    parser = argparse.ArgumentParser(prog="make")
    parser.add_argument("command", choices=["card", "diff", "answers"])
    parser.add_argument("models", nargs="*")
    for option in ("--data", "--out", "--fail-if"):
        parser.add_argument(option, default="")
    given = parser.parse_args(arguments)
    if len(given.models) != {"card": 1, "diff": 2, "answers": 0}[given.command]:
        parser.error("make card needs MODEL=..., make diff A=... and B=...")
    try:
        if given.command == "card":
            made = card(given.models[0], given.data or None)
            print(*made.notes, *made.save(given.out or "build/cards"), sep="\n")
        elif given.command == "answers":
            from factrobust.together.answers import write

            print(*write(given.out or "build/answers"), sep="\n")
        else:
            found = diff(given.models[0], given.models[1], given.data or None)
            print(
                found.table.round(3).to_string(index=False), found.changes.to_string(), sep="\n\n"
            )
            if given.fail_if and found.fails(given.fail_if):
                sys.exit(f"{given.fail_if}: {given.models[1]} against {given.models[0]}")
    except (ValueError, RecordsError, OSError) as error:  # all of the library's own are ValueErrors
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
