"""Facts: load, validate, sample, turn into questions, describe."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pandera.pandas as pa

from factrobust.datasets.relations import load_relations
from factrobust.datasets.tables import (
    ANSWER_TYPES,
    FactsError,
    alias_lists,
    check_table,
    check_unique,
    filled,
    keep,
    number,
    one_of,
    read_table,
    sample_evenly,
    slug,
)
from factrobust.paths import DATA

__all__ = [
    "ANSWER_TYPES",
    "COLUMNS",
    "DOMAINS",
    "FILES",
    "FactsError",
    "answers",
    "describe",
    "describe_relations",
    "load_facts",
    "questions",
]

FILES = (DATA / "facts.csv", DATA / "relations.csv")  # for the provenance of results
DOMAINS = ("geography", "arts", "science-history")  # of the embedded table; yours may have others
REQUIRED = ("subject", "relation", "object")
COLUMNS = (
    "fact_id",
    "subject",
    "relation",
    "object",
    "aliases",
    "answer_type",
    "domain",
    "popularity",
    "popularity_source",
    "source",
)


def facts_schema(relations: Iterable[str]) -> pa.DataFrameSchema:
    """The pandera schema of a facts CSV, all cells still strings; relations are the known names."""
    return pa.DataFrameSchema(
        {
            "fact_id": pa.Column(
                str, filled("write a short unique name, or drop the column"), required=False
            ),
            "subject": pa.Column(str, filled("write what the fact is about")),
            "relation": pa.Column(
                str,
                one_of(
                    relations, "add it to a relations file (see data/README.md) or choose one of"
                ),
            ),
            "object": pa.Column(str, filled("write the answer, or delete the line")),
            "aliases": pa.Column(str, required=False),
            "answer_type": pa.Column(str, one_of(ANSWER_TYPES), required=False),
            "domain": pa.Column(str, filled("name a domain, or drop the column"), required=False),
            "popularity": pa.Column(
                str, number("write one such as 4.2, or leave it empty"), required=False
            ),
        }
    )


def load_facts(
    path: str | Path | None = None,
    *,
    domains: Iterable[str] | None = None,
    relations: Iterable[str] | None = None,
    answer_types: Iterable[str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    relations_path: str | Path | None = None,
) -> pd.DataFrame:
    """Return facts as a DataFrame, one row a fact, in the file's order.

    Columns: fact_id, subject, relation, object, aliases (list of str, without object),
    answer_type, domain, popularity (float), popularity_source, source. `path` is a CSV of your
    own (default: the embedded table); it needs only subject, relation and object. What it leaves
    out is filled in: fact_id from relation and subject, answer_type and domain from the relation,
    popularity with NaN, the rest with nothing. `relations_path` adds relations of your own.

    domains, relations and answer_types keep the rows with one of the given values. `limit` then
    takes a seeded sample, spread evenly over domains and, within each, over relations; it does
    not depend on the order of rows, and a larger limit contains every smaller one.

    Raises FactsError for a bad file, ValueError for an unknown filter value or a bad limit.
    """
    path = DATA / "facts.csv" if path is None else Path(path)
    table = load_relations(relations_path)
    frame = read_table(path, required=REQUIRED, optional=COLUMNS)
    check_table(frame, facts_schema(table.index), path)
    check_unique(frame, ["relation", "subject"], path)
    frame = _complete(frame, table)
    check_unique(frame, ["fact_id"], path)
    for column, wanted in (
        ("domain", domains),
        ("relation", relations),
        ("answer_type", answer_types),
    ):
        if wanted is not None:
            frame = keep(frame, column, wanted, path)
    if limit is not None:
        frame = sample_evenly(frame, limit, seed)
    return frame.reset_index(drop=True)


def _complete(frame: pd.DataFrame, relations: pd.DataFrame) -> pd.DataFrame:
    """Fill in the columns that a reader's own file may leave out, and give each its type."""
    notes = [column for column in frame if column not in COLUMNS]
    defaults: dict[str, str | pd.Series] = dict.fromkeys(COLUMNS, "")
    defaults["fact_id"] = frame["relation"] + "/" + frame["subject"].map(slug)
    for column in ("answer_type", "domain"):
        defaults[column] = frame["relation"].map(relations[column])
    missing = {column: defaults[column] for column in COLUMNS if column not in frame}
    frame = frame.assign(**missing)[[*COLUMNS, *notes]]
    frame["popularity"] = pd.to_numeric(frame["popularity"]).astype(float)
    frame["aliases"] = alias_lists(frame["aliases"], frame["object"])
    return frame


def questions(facts: pd.DataFrame, relations: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the facts with the columns question and prefix: the relation's, subject filled in.

    The prefix is the beginning of a sentence that the answer continues ("The capital of Kenya
    is", without a space at its end). Raises KeyError for a relation that has no row.
    """
    table = load_relations() if relations is None else relations
    missing = sorted(set(facts["relation"]) - set(table.index))
    if missing:
        raise KeyError(f"no question for {', '.join(missing)}; pass load_relations(your_file)")
    filled_in = {
        column: [
            _begin(template.replace("{subject}", subject))
            for template, subject in zip(
                facts["relation"].map(table[column]), facts["subject"], strict=True
            )
        ]
        for column in ("question", "prefix")
    }
    return facts.assign(**filled_in)


def _begin(sentence: str) -> str:
    # "the Netherlands is ..." begins a sentence; "iPhone is ..." keeps its spelling.
    first = sentence.split(maxsplit=1)[0]
    return sentence[:1].upper() + sentence[1:] if first.islower() else sentence


def answers(facts: pd.DataFrame) -> list[list[str]]:
    """Return the accepted answers of each fact, the canonical one first."""
    return [
        [answer, *aliases]
        for answer, aliases in zip(facts["object"], facts["aliases"], strict=True)
    ]


def describe(facts: pd.DataFrame) -> pd.DataFrame:
    """Count facts by domain (rows) and answer type (columns), with the sums as "all"."""
    counts = pd.crosstab(facts["domain"], facts["answer_type"], margins=True, margins_name="all")
    rows = [name for name in DOMAINS if name in counts.index]
    rows += [name for name in counts.index if name not in rows and name != "all"]
    return counts.reindex(
        index=[*rows, "all"], columns=[*ANSWER_TYPES, "all"], fill_value=0
    ).rename_axis(index="domain", columns="answer_type")


def describe_relations(facts: pd.DataFrame) -> pd.DataFrame:
    """One row a relation: domain, answer type, number of facts, different answers, an example."""
    asked = questions(facts) if "question" not in facts else facts
    groups = asked.sort_values("popularity", ascending=False, kind="stable").groupby("relation")
    table = pd.DataFrame(
        {
            "domain": groups["domain"].first(),
            "answer_type": groups["answer_type"].first(),
            "facts": groups.size(),
            "different_answers": groups["object"].nunique(),
            "example": groups["question"].first() + " " + groups["object"].first(),
        }
    )
    return table.sort_values(["domain", "answer_type", "relation"])
