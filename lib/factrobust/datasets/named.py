"""Data by the names of their sets: what a notebook's parameter `data` can say.

A name is "embedded" (this repository's data), that of an official data set (the hub's copy or its
cache, at the loader's revision), the same with a revision ("squad@7b6d24c...") or a file
("squad:dev-v1.1.json"), or a CSV of your own ("my-facts.csv"). A path that is not absolute begins in
the repository's folder, wherever the notebook lies.

Beside the table stand counts, what was left out on the way, and files, the local ones that were read,
for the provenance of results. An unknown name raises ValueError; what the loaders raise is theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from factrobust.datasets import facts, temporal, wordings
from factrobust.datasets.closed_book import MAX_WORDS, short_answers
from factrobust.datasets.dates import sample_dates, thinned
from factrobust.datasets.hotpot_qa import load_hotpot_qa
from factrobust.datasets.popqa import popqa_facts
from factrobust.datasets.popqa_tp import load_popqa_tp
from factrobust.datasets.squad import load_squad
from factrobust.datasets.timestress import load_timestress
from factrobust.datasets.trivia_qa import load_trivia_qa
from factrobust.draws import sample_evenly
from factrobust.paths import ROOT
from factrobust.tables import nearest

EMBEDDED, CSV = "embedded", "csv"
OFFICIAL: dict[str, Callable[..., pd.DataFrame]] = {
    "squad": load_squad,
    "trivia_qa": load_trivia_qa,
    "hotpot_qa": load_hotpot_qa,
    "popqa": popqa_facts,
}
TIMESTRESS, POPQA_TP = "timestress", "popqa_tp"
POPQA_FILES = ("popQA.tsv", "test.tsv")  # as PopQA's authors and the hub call it
COLUMNS = (*facts.COLUMNS, "question", "prefix")


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
    hotpot_qa are a domain each. counts holds, by name, what the loader counted, and
    long_answers, the facts left out because no answer fits the probe's five tokens
    (`closed_book.MAX_WORDS`).

    Raises ValueError for a name that is unknown or given twice, and for a bad limit.
    """
    tables: dict[str, pd.DataFrame] = {}
    files: list[str] = []
    counts: dict[str, dict[str, int]] = {}
    for name in names:
        if name in tables:
            raise ValueError(f"the data set {name!r} is named twice; name it once")
        kind, options = _meant(name, OFFICIAL)
        load = OFFICIAL.get(kind, lambda path=None: facts.questions(facts.load_facts(path)))
        table = load(**options)
        files += _files(kind, options, facts.FILES)
        tables[name], long = short_answers(table[list(COLUMNS)], MAX_WORDS)
        told = table.attrs.get("counts", {})
        counts[name] = told | {"long_answers": told.get("long_answers", 0) + long}
    if not tables:
        raise ValueError(f"no data set is named; give one of {EMBEDDED}, {', '.join(OFFICIAL)}")
    frame = pd.concat(tables.values(), ignore_index=True)
    for fact_id in frame.loc[frame["fact_id"].duplicated(), "fact_id"][:1]:
        raise ValueError(f"{fact_id} is in two of {', '.join(tables)}; leave one of them out")
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
    kind, options = _meant(name, [TIMESTRESS])
    counts: dict[str, int] = {}
    if kind == TIMESTRESS:
        table, dates = load_timestress(**options)
        counts = dates.attrs["dropped"]
        table = temporal.sample(table.assign(prefix=""), limit, seed)
        dates = dates[dates["fact_id"].isin(table["fact_id"])]
        dates = thinned(dates, n_correct=n_correct, n_incorrect=n_incorrect)
    else:
        table = temporal.load_temporal_facts(**options, limit=limit, seed=seed)
        dates = sample_dates(table, n_correct=n_correct, n_incorrect=n_incorrect, seed=seed)
    files = _files(kind, options, temporal.FILES)
    return NamedTemporal(table, dates.reset_index(drop=True), counts, files)


def load_named_questions(name: str = EMBEDDED) -> NamedQuestions:
    """Return groups of paraphrased questions, for part 3's probe; `questions.sample` takes some.

    Official is popqa_tp. Its popularity is that of PopQA on the hub or in its cache, and for a file
    of PopQA-TP that of popQA.tsv (or test.tsv) in the same folder: NaN without one. Embedded are the
    facts with wordings. Columns: those of `paraphrased`.

    Raises ValueError for an unknown name.
    """
    kind, options = _meant(name, [POPQA_TP])
    files = _files(kind, options, (*wordings.FILES, *facts.FILES))
    if kind == EMBEDDED:
        relations = wordings.load_paraphrases()["relation"].unique()
        table = wordings.paraphrased(facts.load_facts(relations=relations))
    elif kind == CSV:
        table = wordings.load_questions(**options)
    elif path := options.get("path"):
        beside = [path.with_name(file) for file in POPQA_FILES if path.with_name(file).is_file()]
        files += [str(file) for file in beside[:1]]
        table = load_popqa_tp(path, facts=popqa_facts(beside[0]) if beside else None)
    else:
        table = load_popqa_tp(facts=popqa_facts(), **options)
    return NamedQuestions(table, table.attrs["counts"], files)


def _meant(name: str, official: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """The data set of a name ("csv" for your own) and its loader's options: path or revision."""
    known, mark, rest = (*re.split("([@:])", name, maxsplit=1), "", "")[:3]
    if name == EMBEDDED:
        return EMBEDDED, {}
    if known in official and (rest or not mark):
        if mark == ":":
            return known, {"path": ROOT / Path(rest).expanduser()}
        return known, {"revision": rest} if mark else {}
    if name.endswith(".csv"):
        return CSV, {"path": ROOT / Path(name).expanduser()}
    near = nearest(known, [EMBEDDED, *official])
    hint = f"did you mean {near!r}? " if near else ""
    raise ValueError(
        f"no data set is called {name!r}; {hint}Known are {EMBEDDED}, {', '.join(official)} (also as "
        "NAME@REVISION or NAME:FILE), and CSV files of your own"
    )


def _files(kind: str, options: dict[str, Any], embedded: Iterable[Path]) -> list[str]:
    """The local files that are read; of a folder, those inside."""
    if kind == EMBEDDED:
        return [str(file) for file in embedded]
    if not (path := options.get("path")):
        return []
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [str(file) for file in inside if not file.is_dir()]
