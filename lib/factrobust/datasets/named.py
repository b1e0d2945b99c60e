"""Data by the names of their sets: what a notebook's parameter `data` can say.

A name is "embedded" (this repository's data), one of WORLDS (`datasets.world`), that of an official
data set (`official.SETS`: the hub's copy or its cache, at the pinned revision), also with a
revision ("squad@7b6d24c...") or a file ("squad:dev-v1.1.json"), or a CSV of your own. A path that
is not absolute begins in the repository's folder. An unknown name raises ValueError."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from factrobust import schemas
from factrobust.datasets import facts
from factrobust.draws import sample_evenly
from factrobust.paths import ROOT
from factrobust.tables import FactsError, Loaded

EMBEDDED = "embedded"
WORLDS = ("world", "world-1", "world-2", "pair", "town")
# Paper 1 lets a model give five tokens (4.1.1), and a token holds at most one word.
MAX_WORDS = 5


def load_named(
    names: Iterable[str] = (EMBEDDED,),
    *,
    limit: int | None = None,
    seed: int = 0,
) -> Loaded:
    """Return the facts of one or several data sets with their questions, for part 1's probes.

    A table `schemas.AskedFacts`. `limit` takes a seeded sample, spread evenly over domains; a set
    with passages (SQuAD, ...) is a domain. The counts hold, by name, what the loader counted, and
    long_answers, the facts left out because no answer fits the probe's five tokens (`MAX_WORDS`).

    Raises ValueError for an unknown name, FactsError for a set without facts, or two of one name.
    """

    def load(path: Path | None) -> Loaded:
        return Loaded(facts.with_questions(facts.load_facts(path)), {})

    def of_world(name: str) -> Loaded:
        from factrobust.datasets import world  # few need it

        return world.loaded(name)

    sets = {name: load_set(name, load, of_world) for name in names}
    if not sets:
        raise ValueError(f"no data set is named; give {EMBEDDED}, an official one or a CSV file")
    parts = []
    counts = {}
    for name, loaded in sets.items():
        is_short = list(map(_has_short_answer, facts.accepted_answers(loaded.table)))
        kept = sum(is_short)
        counts[name] = {
            **loaded.counts,
            "long_answers": len(is_short) - kept,
            "kept": kept,
        }
        parts.append(loaded.table[is_short])
        if not kept:
            raise FactsError(f"{name} has no question that can be asked: {counts[name]}.")
    frame = pd.concat(parts, ignore_index=True)[[*schemas.AskedFacts.columns]]
    for fact_id in frame.loc[frame["fact_id"].duplicated(), "fact_id"][:1]:
        raise FactsError(f"two facts of {', '.join(counts)} are called {fact_id}; leave one out.")
    if limit is not None:
        frame = sample_evenly(frame, limit, seed).reset_index(drop=True)
    return Loaded(frame, counts)


def _has_short_answer(accepted: Iterable[str]) -> bool:
    return any(len(answer.split()) <= MAX_WORDS for answer in accepted)


def load_named_types(name: str = EMBEDDED) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return typed questions for part 1's classifier: to train it, and to test it.

    Both tables have the columns question, answer_type, relation (empty where it is none of the
    facts table's). `name` is "embedded" (questions of our own) or "trec:FOLDER", with the official
    files train_5500.label and TREC_10.label, whose questions also ask for descriptions and
    abbreviations."""
    if name == EMBEDDED:
        return facts.load_question_types("train"), facts.load_question_types("test")
    known, _, folder = name.partition(":")
    if known != "trec" or not folder:
        raise ValueError(
            f"no typed questions are called {name!r}; give {EMBEDDED} or trec:FOLDER, the folder "
            "with TREC's files train_5500.label and TREC_10.label"
        )
    from factrobust.datasets.official import load_trec

    place = ROOT / Path(folder).expanduser()
    train = load_trec(place / "train_5500.label")
    test = load_trec(place / "TREC_10.label")
    return train.assign(relation=""), test.assign(relation="")


def load_set(
    name: str,
    load: Callable[[Path | None], Loaded],
    world: Callable[[str], Loaded],
    loaders: Mapping[str, Any] | None = None,
) -> Loaded:
    """A set by its name: of `load` without a path if it is embedded, with one if it is a CSV; of
    `world` if it is one of WORLDS; else an official one, of the `loaders`."""
    if name == EMBEDDED:
        return load(None)
    if name in WORLDS:
        return world(name)
    from factrobust.datasets import official  # what embedded data need not

    loaders = official.LOADERS if loaders is None else loaders
    known, mark, rest = (*re.split("([@:])", name, maxsplit=1), "", "")[:3]
    if known in loaders and (rest or not mark):
        if mark == ":":
            return official.load_official(
                known,
                ROOT / Path(rest).expanduser(),
                loaders=loaders,
            )
        return official.load_official(known, revision=rest or None, loaders=loaders)
    if name.endswith(".csv"):
        return load(ROOT / Path(name).expanduser())
    raise ValueError(
        f"no data set is called {name!r}; known are {EMBEDDED}, {', '.join(WORLDS)}, "
        f"{', '.join(loaders)} (also as NAME@REVISION or NAME:FILE), and CSV files of your own"
    )
