"""What was lost and gained between two models, two prompts, or before and after a change of weights.

factrobust.diff("smollm2-135m-instruct", "smollm2-taught")
make diff A=gemma-3-270m B='gemma-3-270m~round 4' FAIL_IF='known_drop>0.05'
"""

import operator
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from scipy.stats import binomtest

from factrobust import statistics
from factrobust.models.interface import ModelError
from factrobust.paths import write_atomically
from factrobust.tables import stacked
from factrobust.together.card import (
    DECODER,
    ENOUGH,
    KNOWN,
    Card,
    Questions,
    card_of,
    questions,
    tell_format,
)
from factrobust.together.opened import chosen_format, format_for, in_format, opened

SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
COMPARED = ("known", "wordings", "false", "kept", "logprob")
CONDITION = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*")


class Condition(NamedTuple):
    """NAME OP NUMBER: that a drop is above or below a number."""

    name: str  # of COMPARED
    sign: str  # of SIGNS
    number: float


def read_condition(text: str) -> Condition:
    """A condition such as "known_drop>0.05". ValueError for any other text: nothing of it is run."""
    found = CONDITION.fullmatch(text)
    if not found or found[1] not in [f"{name}_drop" for name in COMPARED]:
        names = ", ".join(f"{name}_drop" for name in COMPARED)
        raise ValueError(
            f"{text!r} is no condition; write one such as known_drop>0.05, of {names}, with one of "
            f"{' '.join(SIGNS)} and a number"
        )
    return Condition(found[1].removesuffix("_drop"), found[2], float(found[3]))


class Diff(NamedTuple):
    """Two cards of the same facts. `changes`: the facts that one alone knows; `table`: of each number of
    COMPARED (but for known of the facts that both know) its mean in a and b, the drop from a to b with
    its interval, paired over facts, n, and for known McNemar's exact p."""

    a: Card
    b: Card
    changes: pd.DataFrame
    table: pd.DataFrame

    def fails(self, condition: str) -> bool:
        """Whether a condition (`read_condition`) holds. ValueError for another text, and for a number
        that these cards do not have."""
        name, sign, number = read_condition(condition)
        drops = dict(zip(self.table["name"], self.table["drop"], strict=True))
        if name not in drops:
            known = ", ".join(f"{measured}_drop" for measured in drops)
            raise ValueError(f"{name} was not measured of both models; give a condition of {known}")
        return bool(SIGNS[sign](drops[name], number))

    def save(self, folder: str | Path = "build/diffs") -> list[Path]:
        """Write the table and the changes as CSVs, under the names of both cards."""
        folder = Path(folder).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{self.a.stem}-to-{self.b.stem}"
        files = {f"{stem}.csv": self.table, f"{stem}-changes.csv": self.changes}
        for name, table in files.items():
            write_atomically(folder / name, table.to_csv(index=False).encode())
        return [folder / name for name in files]


def diff(
    a: Any,
    b: Any,
    data: str | Path | None = None,
    *,
    known: int = KNOWN,
    all_facts: bool = False,
    decoder: Mapping[str, float] = DECODER,
    seed: int = 0,
) -> Diff:
    """Ask `a` and `b` the same facts behind the same contexts, and compare them in pairs.

    Both are asked in the prompt format of `a`, unless another is chosen with a name ("NAME#FORMAT").
    Each is what `card` takes, or a Card: then the other is asked its facts. Raises ModelError and
    FactsError as `card`, all that can be checked before anything is asked.
    """
    if isinstance(a, Card) and isinstance(b, Card):
        _check_alike(a, b)
        return compared(a, b)
    first, second = (b, a) if isinstance(b, Card) else (a, b)
    if isinstance(first, Card):
        made = first
        every = _questions_of(made, data, seed)
        leading = made.prompt_format
        decoder = made.decoder
    else:
        model = opened(first)
        every = questions(data, model.name, seed)
        leading = format_for(model, every.table, chosen_format(first))
    other = opened(second)
    following = format_for(other, every.table, chosen_format(second) or leading)
    settings: dict[str, Any] = {"decoder": decoder, "seed": seed}
    if not isinstance(first, Card):
        tell_format(model, leading)
    tell_format(other, following, "" if following == leading else f"; the other in {leading}")
    if not isinstance(first, Card):
        wanted = len(every.table) if all_facts else known
        made = card_of(in_format(model, leading), every, facts=None, known=wanted, **settings)
    names = [fact.fact_id for fact in made.facts]
    again = card_of(
        in_format(other, following), every, facts=names, known=len(every.table), **settings
    )
    return compared(again, made) if isinstance(b, Card) else compared(made, again)


def _questions_of(made: Card, data: str | Path | None, seed: int) -> Questions:
    """The questions that a card was made of. ModelError for others."""
    every = questions(data, made.model, seed)
    if every.digest != made.data_sha256:
        raise ModelError(
            f"the card of {made.model} was made of {made.data}, which {every.called} is not (any "
            "more); give the same data, or make the card anew"
        )
    return every


def _check_alike(a: Card, b: Card) -> None:
    """ModelError for cards whose difference need not be that of the models."""
    pairs = (("data", "data_sha256"), ("decoder settings", "decoder"))
    for what, name in pairs:
        if getattr(a, name) != getattr(b, name):
            raise ModelError(
                f"the cards of {a.model} and {b.model} have other {what}; make both anew"
            )
    chosen = chosen_format(a.model) or chosen_format(b.model)
    if a.prompt_format != b.prompt_format and not chosen:
        raise ModelError(
            f"{a.model} was asked in {a.prompt_format} and {b.model} in {b.prompt_format}; ask both in "
            "one prompt format, or choose two on purpose with NAME#FORMAT"
        )


def compared(one: Card, other: Card) -> Diff:
    """Two cards in pairs. ModelError if they share no fact."""
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
