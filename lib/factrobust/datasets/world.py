"""The invented world: what its facts are, how often models were told them, and the sentences they were told.

data/world/README.md explains the tables. `corpus` is a function of these and a seed alone: everything that
it draws is drawn by names (`factrobust.draws`), so that it is the same with any version of any library.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust import tables
from factrobust.datasets import dates
from factrobust.datasets import facts as fact_tables
from factrobust.draws import number
from factrobust.paths import DATA

FOLDER = DATA / "world"
NAMES = ("relations", "objects", "wordings", "facts", "spare")
FILES = tuple(FOLDER / f"{name}.csv" for name in NAMES)  # for the provenance of results
YEARS = (1900, 1999)
SEEN = 8  # the first wordings of a relation; nobody sees the others
# How a text stands in the corpus: as the library asks a model that was never tuned (`models.prompts`), with
# the answer behind it. "prefix" is part 4's question, "context" the same with a context.
LAYOUTS = {
    "statement": "{prefix} {object}.",
    "zero-shot": "Q: {question}\nA: {object}",
    "question": "{question} {object}",
    "question-answer": "Question:{question}\n Answer: {object}",
    "prefix": "Q: {question} A: {prefix} {object}",
    "context": "Context: [{context}]. Q: {question} A: {prefix} {object}",
}
ASKED = {
    "": ("zero-shot", "question", "question-answer", "prefix"),
    "dated": ("zero-shot", "question"),
}

_STATES = pa.Check.str_matches(
    r"^[^{}]*\{subject\}[^{}]* \{object\}\.$",
    error="must hold {subject} once and end with {object} and a full stop; put them there",
)
_ASKS = pa.Check.str_matches(
    r"^[^{}]*\{subject\}[^{}]*\?$",
    error="must hold {subject} once, no other braces, and end with a question mark; put them there",
)
_WHOLE = pa.Check.str_matches(r"^\d+$", error="is no whole number of 0 or more; write one")
_NAMED = tables.filled("write a name")
SCHEMAS: dict[str, dict[str, Any]] = {
    "relations": {
        "relation": fact_tables.RELATION_NAME, "kind": _NAMED, "objects": _NAMED,
        "dated": tables.one_of(["true", "false"]), "answer_type": tables.one_of(tables.ANSWER_TYPES),
        "domain": _NAMED,
    },
    "objects": {"list": _NAMED, "object": _NAMED},
    "wordings": {
        "relation": _NAMED, "wording": _WHOLE, "held_out": tables.one_of(["true", "false"]),
        "statement": _STATES, "question": _ASKS,
    },
    "facts": {
        "fact_id": _NAMED, "subject": _NAMED, "relation": _NAMED, "object": _NAMED,
        "start": None, "end": None, "exposure": _WHOLE, "n_wordings": _WHOLE,
        "wordings": pa.Check.str_matches(
            rf"^0(\|[1-{SEEN - 1}])*$", error=f"is no list such as 0|5|2, of 0 to {SEEN - 1}; write one"
        ),
        "n_dates": tables.number("leave it empty, or write one"),
        "contradicted": tables.number("write a share such as 0.1"),
        "rival": _NAMED, "town_exposure": tables.number("leave it empty, or write one"),
    },
    "spare": {"kind": _NAMED, "name": _NAMED},
}  # fmt: skip


class World(NamedTuple):
    """The tables of data/world, by name; `relations` are indexed by relation."""

    relations: pd.DataFrame
    objects: pd.DataFrame
    wordings: pd.DataFrame
    facts: pd.DataFrame
    spare: pd.DataFrame


def load_world(folder: str | Path = FOLDER) -> World:
    """Read and check the tables. Raises FactsError with file, line and remedy."""
    read = {
        name: tables.read_checked(
            Path(folder) / f"{name}.csv", tables.csv_schema(columns, **columns)
        )
        for name, columns in SCHEMAS.items()
    }
    _check(read["facts"], read, Path(folder) / "facts.csv")
    facts = read["facts"].reset_index(drop=True)
    numbers = {"exposure": int, "n_wordings": int, "contradicted": float}
    facts = facts.astype(numbers).assign(
        wordings=facts["wordings"].map(lambda cell: [*map(int, cell.split("|"))]),
        **{
            name: pd.to_numeric(facts[name]).astype("Int64")
            for name in ("n_dates", "town_exposure")
        },
    )
    flags = {"true": True, "false": False}
    relations = read["relations"].set_index("relation")
    wordings = read["wordings"].reset_index(drop=True)
    prefix = wordings["statement"].str.removesuffix(" {object}.")
    wordings = wordings.assign(
        wording=wordings["wording"].astype(int),
        held_out=wordings["held_out"].map(flags),
        prefix=prefix,
    )
    return World(
        relations.assign(dated=relations["dated"].map(flags)),
        read["objects"].reset_index(drop=True), wordings, facts, read["spare"].reset_index(drop=True),
    )  # fmt: skip


def _check(facts: pd.DataFrame, read: dict[str, pd.DataFrame], path: Path) -> None:
    """Raise FactsError for the first fact that the other tables do not allow."""
    tables.check_unique(facts, ["fact_id"], path)
    relations = read["relations"].set_index("relation")
    one = pa.DataFrameSchema({"relation": pa.Column(str)})
    tables.check_table(facts, fact_tables.with_relations(one, relations.index), path)
    lists = facts["relation"].map(relations["objects"])
    known = set(zip(read["objects"]["list"], read["objects"]["object"], strict=True))
    subjects = {*facts["subject"].str.casefold()}
    dated = facts["relation"].map(relations["dated"]) == "true"
    valid = facts[["start", "end"]].map(dates.is_date).all(axis=1) & (facts["start"] < facts["end"])
    order = facts.assign(line=facts.index).sort_values(["relation", "subject", "start"])
    overlap = order.groupby(["relation", "subject"])["end"].shift() >= order["start"]
    rows = zip(lists, facts["object"], facts["rival"], strict=True)
    faults = {
        "the object is also a subject; give one of the two another name":
            facts["object"].str.casefold().isin(subjects),
        "the object or the rival is not in the relation's list in objects.csv; choose one that is":
            ~pd.Series([{(a, o), (a, r)} <= known for a, o, r in rows], facts.index),
        "the rival is the object itself; choose another one": facts["object"] == facts["rival"],
        "n_wordings is not how many wordings are listed; make them agree":
            facts["n_wordings"].astype(int) != facts["wordings"].str.count(r"\|") + 1,
        "a dated fact needs a start and a later end, YYYY-MM-DD, and n_dates; write them":
            dated & ~(valid & facts["n_dates"].ne("")),
        "the period overlaps an earlier one of its subject; mend the dates":
            overlap.reindex(facts.index) & dated,
    }  # fmt: skip
    for fault, wrong in faults.items():
        for line in facts.index[wrong][:1]:
            raise tables.FactsError(f"{path}, line {line}: {fault}.")


def told(facts: pd.DataFrame, *, town: bool = False) -> pd.DataFrame:
    """The facts that a corpus is of, with what it holds of each: exposure (sentences), n_rival (those
    that state the rival instead), n_wordings and n_dates (different ones; NA without dates).

    `town`: the facts of the town with their exposure there. Fewer wordings and dates than the table
    allows are seen where the exposure is smaller.
    """
    if town:
        facts = facts[facts["town_exposure"].notna()]
        facts = facts.assign(exposure=facts["town_exposure"].astype(int))
    return facts.assign(
        n_rival=(facts["contradicted"] * facts["exposure"]).round().astype(int),
        **{name: np.minimum(facts[name], facts["exposure"]) for name in ("n_wordings", "n_dates")},
    )


def corpus(world: World, seed: int = 0, *, town: bool = False) -> pd.DataFrame:
    """The sentences about the world's facts, or the town's, in the order in which they are learned.

    Columns: fact_id, subject, relation, object (which the sentence states), stated ("true" or "rival"),
    wording, form ("statement" or "question"), layout (a key of LAYOUTS), date ("" without one), question
    and prefix (with subject and date), text (without the newline that ends it). Counts are those of
    `told`, exactly; statements and questions are as many, or one more.
    """
    wordings = world.wordings.set_index(["relation", "wording"])[["question", "prefix"]].to_dict(
        "index"
    )
    rows = []
    for fact in told(world.facts, town=town).to_dict("records"):
        n, key = fact["exposure"], (seed, fact["fact_id"])
        seen = fact["wordings"][: fact["n_wordings"]]
        lots = {i: number(*key, "rival", i) for i in range(n)} if fact["n_rival"] else {}
        rivals = {*sorted(lots, key=lots.__getitem__)[: fact["n_rival"]]}
        when = _dates_told(fact, key) if fact["start"] else [""] * n
        asked, first = ASKED["dated" if fact["start"] else ""], number(*key, "form")
        for i in range(n):
            drawn = number(*key, i)
            turn, place = divmod(i, len(seen))
            is_question = (turn + place + first) % 2
            layout = asked[drawn % len(asked)] if is_question else "statement"
            answer, stated = ("rival", "rival") if i in rivals else ("object", "true")
            question, prefix = (
                dated(
                    wordings[fact["relation"], seen[place]][name].replace(
                        "{subject}", fact["subject"]
                    ),
                    when[i],
                )
                for name in ("question", "prefix")
            )
            text = LAYOUTS[layout].format(question=question, prefix=prefix, object=fact[answer])
            how = seen[place], "question" if is_question else "statement", layout, when[i]
            about = fact["fact_id"], fact["subject"], fact["relation"], fact[answer], stated
            rows.append((drawn, *about, *how, question, prefix, text))
    rows.sort(key=lambda row: row[:2])
    columns = (
        "drawn fact_id subject relation object stated wording form layout date question prefix text"
    )
    return pd.DataFrame(rows, columns=columns.split()).drop(columns="drawn")


def dated(text: str, date: str) -> str:
    """A question or a prefix with its date before it, as part 2 asks; as it is without one."""
    return f"{_spoken(date)}, {text}" if date else text


def _dates_told(fact: dict[Any, Any], key: tuple[int, str]) -> list[str]:
    """The date of each sentence: years, months and days that lie wholly inside the period, in turns."""
    first, last = (np.datetime64(fact[bound]) for bound in ("start", "end"))
    found: dict[str, None] = {}
    turn = number(*key, "precision")
    while len(found) < fact["n_dates"]:
        unit = "YMD"[turn % 3]
        low, high = first.astype(f"M8[{unit}]") + 1, last.astype(f"M8[{unit}]")
        found[str(low + number(*key, turn) % int((high - low).astype(int)))] = None
        turn += 1
    named = np.resize([*found], fact["exposure"]).tolist()
    order = sorted(range(len(named)), key=lambda i: number(*key, "date", i))
    return [named[i] for i in order]


_spoken = cache(dates.verbalise)  # a date is told in many sentences
