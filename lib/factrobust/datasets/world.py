"""The invented world: its facts, and how often models are told them (`exposure.corpus`: in which
sentences). data/world/README.md explains the tables."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from factrobust import tables
from factrobust.paths import DATA

FOLDER = DATA / "world"
SEEN = 8  # the first wordings of a relation; nobody sees the others
_READ: dict[str, Any] = {
    "keep_default_na": False,
    "na_values": {"n_dates": [""], "town_exposure": [""]},
    "dtype": {"n_dates": "Int64", "town_exposure": "Int64"},
    "converters": {"wordings": lambda cell: [*map(int, cell.split("|"))]},
}


class World(NamedTuple):
    """The tables of data/world, whose columns its README explains; wordings also have a prefix."""

    relations: pd.DataFrame  # indexed by relation
    objects: pd.DataFrame
    wordings: pd.DataFrame
    facts: pd.DataFrame
    spare: pd.DataFrame


FILES = tuple(FOLDER / f"{name}.csv" for name in World._fields)


def load_world() -> World:
    """The tables, which the tests check."""
    return World(*(table.copy() for table in _tables()))


@cache
def _tables() -> World:
    """A notebook loads the world five times over."""
    read = dict(zip(World._fields, (tables.read_csv(path, **_READ) for path in FILES), strict=True))
    read["relations"] = read["relations"].set_index("relation")
    read["wordings"]["prefix"] = read["wordings"]["statement"].str.removesuffix(" {object}.")
    return World(**read)


def loaded(*, town: bool = False) -> tables.Loaded:
    """The facts without dates of the world, or of its town, as parts 1 and 4 ask them, in wording 0:
    `schemas.AskedFacts`."""
    facts = asked(town=town)
    return tables.Loaded(facts.assign(aliases=facts["object"].map(lambda _: [])), {})


def asked(*, town: bool = False, dated: bool = False, every_wording: bool = False) -> pd.DataFrame:
    """The facts with or without dates, what the corpus holds of each, their question and prefix in
    wording 0, or a row a wording: the column variant.

    popularity is log10(1 + exposure), log_popularity ln(1 + exposure): 0 for what nobody was told.
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
