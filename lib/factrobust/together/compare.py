"""What was lost and gained between two models, two prompts, or before and after a change of weights.

factrobust.diff("smollm2-135m-instruct", "smollm2-taught")
make diff A=gemma-3-270m B='gemma-3-270m~round 4' FAIL_IF='known_drop>0.05'
"""

import operator
import re
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from scipy.stats import binomtest

from factrobust import statistics
from factrobust.models.interface import ModelError
from factrobust.tables import stacked
from factrobust.together.card import ENOUGH, Card, card

SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
COMPARED = ("known", "wordings", "false", "kept", "logprob")


class Diff(NamedTuple):
    """Two cards of the same facts. `changes`: the facts that one alone knows; `table`: of each number of
    COMPARED (but for known of the facts that both know) its mean in a and b, the drop from a to b with
    its interval, paired over facts, n, and for known McNemar's exact p."""

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
    ours, theirs = (pd.DataFrame([*map(dict, made.facts)]) for made in (one, other))
    about = ["fact_id", "relation", "question", "accepted", "answer", "known"]
    both = ours[about].merge(theirs[["fact_id", *about[-2:]]], on="fact_id", suffixes=("_a", "_b"))
    if both.empty:
        raise ModelError(f"{one.model} and {other.model} share no fact; make both cards anew")
    changes = both[both["known_a"] != both["known_b"]].drop(columns="fact_id")
    numbers = stacked({"a": one.numbers, "b": other.numbers}, "card")
    cluster = "relation" if both["relation"].nunique() >= ENOUGH else ""
    numbers = numbers[numbers["name"].isin(COMPARED)]
    table = statistics.paired_table(numbers, ["name"], "value", "card", ("b", "a"), cluster=cluster)
    table = table[table["n"] > 0].rename(columns={"mean": "drop"})
    lost, changed = int(changes["known_a"].sum()), len(changes)
    p = float(binomtest(lost, changed).pvalue) if changed else 1.0
    table["p_value"] = table["name"].map({"known": p})
    columns = ["name", "a", "b", "drop", "low", "high", "n", "p_value"]
    return Diff(one, other, changes, table[columns].reset_index(drop=True))
