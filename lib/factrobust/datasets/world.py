"""The invented world: its facts, and how often models are told them (`exposure.corpus`: in which
sentences). data/world/README.md explains the tables."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from factrobust import tables
from factrobust.paths import DATA, noted

FOLDER = DATA / "world"
SEEN = 8  # the first wordings of a relation; nobody sees the others
_READ: dict[str, Any] = {
    "keep_default_na": False,
    "na_values": {"n_dates": [""], "town_exposure": [""]},
    "dtype": {"n_dates": "Int64", "town_exposure": "Int64"},
    "converters": {"wordings": lambda cell: [*map(int, cell.split("|"))]},
}


class World(NamedTuple):
    """The tables of data/world, whose columns its README explains; wordings also have a prefix.
    `facts` are those of one draw of chance."""

    relations: pd.DataFrame  # indexed by relation
    objects: pd.DataFrame
    wordings: pd.DataFrame
    facts: pd.DataFrame
    spare: pd.DataFrame


def files(draw: int = 0) -> list[Path]:
    names = [f"facts-{draw}" if name == "facts" else name for name in World._fields]
    return [FOLDER / f"{name}.csv" for name in names]


def load_world(draw: int = 0) -> World:
    """The tables, which the tests check. Another draw has the same subjects, and all else by
    chance."""
    for path in files(draw):
        noted(path)  # each time: the tables are read once
    return World(*(table.copy() for table in _tables(draw)))


@cache
def _tables(draw: int) -> World:
    """A notebook loads the world five times over."""
    read = {
        name: tables.read_csv(path, **_READ)
        for name, path in zip(World._fields, files(draw), strict=True)
    }
    read["relations"] = read["relations"].set_index("relation")
    read["wordings"]["prefix"] = read["wordings"]["statement"].str.removesuffix(" {object}.")
    return World(**read)


def loaded(data: str = "world") -> tables.Loaded:
    """The facts without dates of a set, as parts 1 and 4 ask them, in wording 0:
    `schemas.AskedFacts`."""
    facts = asked(data)
    return tables.Loaded(facts.assign(aliases=facts["object"].map(lambda _: [])), {})


def asked(
    data: str = "world",
    *,
    dated: bool = False,
    every_wording: bool = False,
) -> pd.DataFrame:
    """The facts of a set with or without dates, what the corpus holds of each, their question and
    prefix in wording 0, or a row a wording: the column variant.

    Sets (`data`): "world", "world-1" and "world-2" (other draws), "pair" (the two relations that
    share a list of objects, which the others leave out) and "town". popularity is log10(1 +
    exposure), log_popularity ln(1 + exposure): 0 for what nobody was told."""
    world = load_world()
    # 1. The wordings, and the facts of the set.
    wordings = world.wordings.rename(columns={"wording": "variant"}).drop(columns="statement")
    if not every_wording:
        wordings = wordings[wordings["variant"] == 0]
    facts = counted(data)
    is_paired = facts["relation"].map(world.relations["objects"].duplicated(keep=False))
    facts = facts[is_paired == (data == "pair")].join(world.relations, on="relation")
    facts = facts[facts["dated"] == dated].merge(wordings, on="relation")
    # 2. What is asked.
    for name in ("question", "prefix"):
        pairs = zip(facts[name], facts["subject"], strict=True)
        facts[name] = [text.replace("{subject}", subject) for text, subject in pairs]
    return facts.assign(
        popularity=np.log10(1 + facts["exposure"]),
        log_popularity=np.log(1 + facts["exposure"]),
        popularity_source="log10(1 + exposure)",
        source="data/world",
    )


def counted(data: str = "world") -> pd.DataFrame:
    """All facts of the draw that a set is of, or those of the town, `with_counts_in_corpus`."""
    draw = data.removeprefix("world-")
    facts = load_world(int(draw) if draw.isdigit() else 0).facts
    return with_counts_in_corpus(facts, town=data == "town")


def with_counts_in_corpus(facts: pd.DataFrame, *, town: bool = False) -> pd.DataFrame:
    """The facts that a corpus is of (`town`: the town's), with what it holds of each: exposure
    (sentences), n_rival (those that state the rival instead), n_wordings and n_dates (different
    ones; NA without dates), fewer than the table allows where the exposure is smaller."""
    if town:
        facts = facts[facts["town_exposure"].notna()]
        facts = facts.assign(exposure=facts["town_exposure"].astype(int))
    n_rival = facts["contradicted"] * facts["exposure"]
    return facts.assign(
        n_rival=n_rival.round().astype(int),
        n_wordings=np.minimum(facts["n_wordings"], facts["exposure"]),
        n_dates=np.minimum(facts["n_dates"], facts["exposure"]),
    )
