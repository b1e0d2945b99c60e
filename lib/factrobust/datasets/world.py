"""The invented world: its facts, and how often models are told them (`exposure.corpus`: in which
sentences). data/world/README.md explains the tables."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust import tables
from factrobust.datasets import facts as fact_tables
from factrobust.paths import DATA

FOLDER = DATA / "world"
SEEN = 8  # the first wordings of a relation; nobody sees the others
_NAME = tables.filled("write a name")
_WHOLE = pa.Check.str_matches(r"^\d+$", error="is no whole number of 0 or more; write one")
_FLAG = tables.one_of(["true", "false"])
_LIST = pa.Check.str_matches(
    rf"^0(\|[1-{SEEN - 1}])*$", error=f"is no list such as 0|5|2 of 0 to {SEEN - 1}; write one"
)
_STATES = pa.Check.str_matches(
    r"^[^{}]*\{subject\}[^{}]* \{object\}\.$",
    error="must hold {subject} once and end with {object} and a full stop; put them there",
)
_ASKS = pa.Check.str_matches(
    r"^[^{}]*\{subject\}[^{}]*\?$",
    error="must hold {subject} once, no other braces, and end with a question mark; put them there",
)
_SOME = tables.number("write one, or leave it empty")
SCHEMAS: dict[str, dict[str, Any]] = {
    "relations": dict.fromkeys(("kind", "objects", "domain"), _NAME)
    | {"relation": fact_tables.RELATION_NAME, "dated": _FLAG}
    | {"answer_type": tables.one_of(tables.ANSWER_TYPES)},
    "objects": {"list": _NAME, "object": _NAME},
    "wordings": {"relation": _NAME, "wording": _WHOLE, "held_out": _FLAG}
    | {"statement": _STATES, "question": _ASKS},
    "facts": dict.fromkeys(("fact_id", "subject", "relation", "object", "rival"), _NAME)
    | {"start": None, "end": None, "exposure": _WHOLE, "n_wordings": _WHOLE, "wordings": _LIST}
    | dict.fromkeys(("n_dates", "contradicted", "town_exposure"), _SOME),
    "spare": {"kind": _NAME, "name": _NAME},
}
_READ: dict[str, Any] = {
    "keep_default_na": False,
    "na_values": {"n_dates": [""], "town_exposure": [""]},
    "dtype": {"n_dates": "Int64", "town_exposure": "Int64"},
    "converters": {"wordings": lambda cell: [*map(int, cell.split("|"))]},
}
FILES = tuple(FOLDER / f"{name}.csv" for name in SCHEMAS)


class World(NamedTuple):
    """The tables of data/world, whose columns its README explains; wordings also have a prefix."""

    relations: pd.DataFrame  # indexed by relation
    objects: pd.DataFrame
    wordings: pd.DataFrame
    facts: pd.DataFrame
    spare: pd.DataFrame


def load_world(folder: str | Path = FOLDER) -> World:
    """Read and check the tables. Raises FactsError with file, line and remedy."""
    times = tuple(path.stat().st_mtime_ns for path in sorted(Path(folder).glob("*.csv")))
    return World(*(table.copy() for table in _tables(Path(folder), times)))


@cache
def _tables(folder: Path, times: tuple[int, ...]) -> World:
    """`times` are those of the files' last changes: a notebook loads the world five times over."""
    read: dict[str, pd.DataFrame] = {}
    checked = {}
    for name, each in SCHEMAS.items():
        path = folder / f"{name}.csv"
        checked[name] = tables.read_checked(path, tables.csv_schema(each, **each))
        read[name] = tables.read_csv(path, **_READ)
    _check(checked, folder / "facts.csv")
    read["relations"] = read["relations"].set_index("relation")
    read["wordings"]["prefix"] = read["wordings"]["statement"].str.removesuffix(" {object}.")
    return World(**read)


def _check(read: Mapping[str, pd.DataFrame], path: Path) -> None:
    """Raise FactsError for the first fact that the other tables do not allow."""
    facts = read["facts"]
    tables.check_unique(facts, ["fact_id"], path)
    one = pa.DataFrameSchema({"relation": pa.Column(str)})
    tables.check_table(facts, fact_tables.with_relations(one, read["relations"]["relation"]), path)
    same = facts["object"].str.casefold().isin(facts["subject"].str.casefold())
    fault = "the object is a subject, too; give one of the two another name"
    tables.refuse(facts, same, path, fault)


def loaded(*, town: bool = False) -> tables.Loaded:
    """The facts without dates of the world, or of its town, as parts 1 and 4 ask them, in wording 0:
    `schemas.AskedFacts`."""
    facts = asked(town=town)
    return tables.Loaded(facts.assign(aliases=facts["object"].map(lambda _: [])), {})


def asked(*, town: bool = False, dated: bool = False, every_wording: bool = False) -> pd.DataFrame:
    """The facts with or without dates, what the corpus holds of each, their question and prefix in
    wording 0, or a row a wording: the column variant.

    popularity is log10(1 + exposure), log_popularity ln(1 + exposure): 0, not unknown, for what nobody
    was told.
    """
    world = load_world()
    wordings = world.wordings.rename(columns={"wording": "variant"}).drop(columns="statement")
    wordings = wordings if every_wording else wordings[wordings["variant"] == 0]
    facts = with_counts_in_corpus(world.facts, town=town).join(world.relations, on="relation")
    facts = facts[facts["dated"] == dated].merge(wordings, on="relation")
    for name in ("question", "prefix"):
        pairs = zip(facts[name], facts["subject"], strict=True)
        facts[name] = [text.replace("{subject}", subject) for text, subject in pairs]
    logs = {"popularity": np.log10(1 + facts["exposure"])}
    logs |= {"log_popularity": np.log(1 + facts["exposure"])}
    return facts.assign(**logs, popularity_source="log10(1 + exposure)", source="data/world")


def with_counts_in_corpus(facts: pd.DataFrame, *, town: bool = False) -> pd.DataFrame:
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
