"""Data by the names of their sets: what a notebook's parameter `data` can say.

A name is "embedded" (this repository's data), that of an official data set (the hub's copy or its
cache, at the pinned revision), the same with a revision ("squad@7b6d24c...") or a file
("squad:dev-v1.1.json"), or a CSV of your own ("my-facts.csv"). A path that is not absolute begins in
the repository's folder, wherever the notebook lies.

Beside the table stand counts, what was left out on the way, and files, the local ones that were read,
for the provenance of results. An unknown name raises ValueError; what the loaders raise is theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from factrobust.datasets import facts
from factrobust.draws import sample_evenly
from factrobust.paths import ROOT
from factrobust.tables import FactsError, Loaded, nearest

EMBEDDED, CSV = "embedded", "csv"
COLUMNS = (*facts.COLUMNS, "question", "prefix")
# Paper 1 lets a model give five tokens (4.1.1), and a token holds at most one word.
MAX_WORDS = 5


class NamedFacts(NamedTuple):
    """Part 1's facts with their questions; counts by name of the data set."""

    facts: pd.DataFrame
    counts: dict[str, dict[str, int]]
    files: list[str]


class NamedTemporal(NamedTuple):
    """Part 2's facts, and the dates to ask about them with."""

    facts: pd.DataFrame
    dates: pd.DataFrame
    counts: dict[str, int]
    files: list[str]


class NamedQuestions(NamedTuple):
    """Part 3's groups of questions."""

    questions: pd.DataFrame
    counts: dict[str, int]
    files: list[str]


def load_named(
    names: Iterable[str] = (EMBEDDED,), *, limit: int | None = None, seed: int = 0
) -> NamedFacts:
    """Return the facts of one or several data sets with their questions, for part 1's probes.

    Official are squad, trivia_qa, hotpot_qa and popqa. Columns: those of `load_facts`, then question
    and prefix. `limit` takes a seeded sample, spread evenly over domains; squad, trivia_qa and
    hotpot_qa are a domain each. counts holds, by name, what the loader counted, and long_answers, the
    facts left out because no answer fits the probe's five tokens (`MAX_WORDS`).

    Raises ValueError for a name that is unknown or given twice and for a bad limit, FactsError for a
    set without facts, or two facts of one name.
    """
    tables: dict[str, pd.DataFrame] = {}
    files: list[str] = []
    counts: dict[str, dict[str, int]] = {}
    for name in names:
        if name in tables:
            raise ValueError(f"the data set {name!r} is named twice; name it once")
        kind, options = _meant(name, part=1)
        if kind in (EMBEDDED, CSV):
            loaded = Loaded(facts.questions(facts.load_facts(**options)), {})
        else:
            loaded = _official(kind, options)
        table = loaded.table
        files += _files(loaded, options, facts.FILES)
        words = [min(len(a.split()) for a in accepted) for accepted in facts.answers(table)]
        short = [n <= MAX_WORDS for n in words]
        tables[name] = table.loc[short, list(COLUMNS)]
        counts[name] = loaded.counts | {"long_answers": len(short) - sum(short), "kept": sum(short)}
        if not any(short):
            raise FactsError(f"{name} has no question that can be asked: {counts[name]}.")
    if not tables:
        raise ValueError(f"no data set is named; give {EMBEDDED}, an official one or a CSV file")
    frame = pd.concat(tables.values(), ignore_index=True)
    for fact_id in frame.loc[frame["fact_id"].duplicated(), "fact_id"][:1]:
        raise FactsError(f"two facts of {', '.join(tables)} are called {fact_id}; leave one out.")
    if limit is not None:
        frame = sample_evenly(frame, limit, seed).reset_index(drop=True)
    return NamedFacts(frame, counts, files)


def load_named_temporal(
    name: str = EMBEDDED,
    *,
    n_correct: int | None = None,
    n_incorrect: int | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> NamedTemporal:
    """Return temporal facts and the dates to ask about them with, for part 2's probe.

    Official is timestress, which brings its authors' questions, dates and labels; for other facts
    dates are sampled. `limit` takes a seeded sample of facts, spread evenly over relations;
    n_correct and n_incorrect thin the years of each (see `sample_dates`). Columns of the facts: those
    of `load_temporal_facts`, and of TimeStress question and prefix (empty); of the dates: those of
    `sample_dates`.

    Raises ValueError for an unknown name, a bad limit, and a number of years that is no count.
    """
    from factrobust.datasets import temporal
    from factrobust.datasets.dates import sample_dates, thinned

    kind, options = _meant(name, part=2)
    if kind in (EMBEDDED, CSV):
        table = temporal.load_temporal_facts(**options, limit=limit, seed=seed)
        dates = sample_dates(table, n_correct=n_correct, n_incorrect=n_incorrect, seed=seed)
        loaded = Loaded(table, {}, dates)
    else:
        loaded = _official(kind, options)
        table = temporal.sample(loaded.table.assign(prefix=""), limit, seed)
        dates = loaded.dates[loaded.dates["fact_id"].isin(table["fact_id"])]
        dates = thinned(dates, n_correct=n_correct, n_incorrect=n_incorrect)
    files = _files(loaded, options, temporal.FILES)
    return NamedTemporal(table, dates.reset_index(drop=True), loaded.counts, files)


def load_named_questions(name: str = EMBEDDED) -> NamedQuestions:
    """Return groups of paraphrased questions, for part 3's probe; `wordings.sample` takes some.

    Official is popqa_tp. Embedded are the facts with paraphrases. Columns: those of `paraphrased`.

    Raises ValueError for an unknown name.
    """
    from factrobust.datasets import wordings

    kind, options = _meant(name, part=3)
    if kind == EMBEDDED:
        relations = wordings.load_paraphrases()["relation"].unique()
        loaded = wordings.paraphrased(facts.load_facts(relations=relations))
    elif kind == CSV:
        loaded = wordings.load_questions(**options)
    else:
        loaded = _official(kind, options)
    files = _files(loaded, options, (*wordings.FILES, *facts.FILES))
    return NamedQuestions(loaded.table, loaded.counts, files)


def _official(kind: str, options: dict[str, Any]) -> Loaded:
    from factrobust.datasets.official import load_official  # it loads what embedded data need not

    return load_official(kind, **options)


def _files(loaded: Loaded, options: dict[str, Any], embedded: Iterable[Path]) -> list[str]:
    """The local files that were read: those of a path, none of the hub, or the embedded ones."""
    if "revision" in options:
        return []
    read = loaded.files or ([options["path"]] if options else embedded)
    return [str(file) for file in read]


def _meant(name: str, part: int) -> tuple[str, dict[str, Any]]:
    """The data set of a name ("csv" for your own) and its loader's options: path or revision."""
    if name == EMBEDDED:
        return EMBEDDED, {}
    from factrobust.datasets.official import SETS

    known, mark, rest = (*re.split("([@:])", name, maxsplit=1), "", "")[:3]
    official = [key for key, entry in SETS.items() if entry.part == part]
    if known in official and (rest or not mark):
        if mark == ":":
            return known, {"path": ROOT / Path(rest).expanduser()}
        return known, {"revision": rest or None}
    if name.endswith(".csv"):
        return CSV, {"path": ROOT / Path(name).expanduser()}
    near = nearest(known, [EMBEDDED, *official])
    hint = f"did you mean {near!r}? " if near else ""
    raise ValueError(
        f"no data set is called {name!r}; {hint}Known are {EMBEDDED}, {', '.join(official)} (also as "
        "NAME@REVISION or NAME:FILE), and CSV files of your own"
    )
