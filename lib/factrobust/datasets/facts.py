"""Facts: load, validate, sample, turn into questions, describe."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pandera.pandas as pa

from factrobust.draws import sample_evenly
from factrobust.paths import DATA
from factrobust.tables import (
    ANSWER_TYPES,
    alias_lists,
    check_table,
    check_unique,
    filled,
    keep,
    number,
    one_of,
    read_table,
    slug,
)

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


RELATION_COLUMNS = ("relation", "question", "prefix", "answer_type", "domain", "popqa")
RELATION_REQUIRED = RELATION_COLUMNS[:4]
OWN_DOMAIN = "own"


def _has_subject(cells: pd.Series) -> pd.Series:
    return cells.str.count(r"\{subject\}").eq(1) & cells.str.count(r"[{}]").eq(2)


_SUBJECT = pa.Check(
    _has_subject, error="must hold {subject} exactly once, and no other braces; put it there"
)
RELATIONS_SCHEMA = pa.DataFrameSchema(
    {
        "relation": pa.Column(
            str,
            pa.Check(
                lambda cells: cells.str.fullmatch(r"[a-z][a-z0-9_]*"),
                error="is no short name; write lower-case letters, digits and _ only",
            ),
        ),
        "question": pa.Column(str, _SUBJECT),
        "prefix": pa.Column(str, _SUBJECT),
        "answer_type": pa.Column(str, one_of(ANSWER_TYPES)),
        "domain": pa.Column(str, filled("name a domain"), required=False),
        "popqa": pa.Column(str, one_of(["true", "false"]), required=False),
    }
)


def load_relations(path: str | Path | None = None) -> pd.DataFrame:
    """Return the relations, indexed by name: question, prefix, answer_type, domain, popqa (bool).

    `path` names a CSV of your own whose rows join the embedded ones; a row with an embedded name
    replaces it. It needs the columns relation, question, prefix and answer_type; domain is "own"
    and popqa false where they are left out. Raises FactsError with file, line and remedy.
    """
    embedded = read_relations(DATA / "relations.csv")
    if path is None:
        return embedded
    own = read_relations(path)
    return pd.concat([embedded[~embedded.index.isin(own.index)], own])


def read_relations(path: str | Path) -> pd.DataFrame:
    """Read and check one relations file alone; columns and errors as in `load_relations`."""
    frame = read_table(path, required=RELATION_REQUIRED, optional=RELATION_COLUMNS[4:])
    check_table(frame, RELATIONS_SCHEMA, path)
    check_unique(frame, ["relation"], path)
    defaults = {"domain": OWN_DOMAIN, "popqa": "false"}
    missing = {column: value for column, value in defaults.items() if column not in frame}
    frame = frame.assign(**missing)[list(RELATION_COLUMNS)]
    return frame.assign(popqa=frame["popqa"].eq("true")).set_index("relation")


TEST_EVERY = 5

QUESTION_TYPES_SCHEMA = pa.DataFrameSchema(
    {
        "question": pa.Column(
            str,
            pa.Check(
                lambda cells: cells.str.endswith(("?", ".")),
                error="does not end as a question does; write ? or . after it",
            ),
        ),
        "answer_type": pa.Column(str, one_of(ANSWER_TYPES)),
        "relation": pa.Column(str, required=False),
    }
)


def load_question_types(
    split: str | None = None, *, path: str | Path | None = None
) -> pd.DataFrame:
    """The embedded trivia questions: columns question, answer_type, relation.

    503 questions written for this project, 125 or 126 a type, typed as TREC types them (a band, a
    firm or a people is Human; a planet, a river or a building is a Location; a date is Numerical),
    without Abbreviation and Description. `relation` names the relation of the facts table that a
    question asks in other words, else "": without these rows (334 are left), a classifier is tested
    on relations that it never saw. `split` is None for all, "test" for every fifth question of each
    type (100), "train" for the rest (403); the file lists each type in random order, so that the
    test part is a random stratified fifth. `path` names a file of your own, where relation may be
    left out. Raises ValueError for another split, FactsError (with file, line and remedy) for a bad
    file.
    """
    if split not in (None, "train", "test"):
        raise ValueError(f"The typed questions have no split {split!r}: ask for 'train' or 'test'.")
    path = DATA / "question_types.csv" if path is None else path
    frame = read_table(path, required=["question", "answer_type"], optional=["relation"])
    check_table(frame, QUESTION_TYPES_SCHEMA, path)
    check_unique(frame, ["question"], path)
    frame = frame.reindex(columns=["question", "answer_type", "relation"], fill_value="")
    frame = frame.reset_index(drop=True)
    if split is None:
        return frame
    is_test = frame.groupby("answer_type").cumcount() % TEST_EVERY == TEST_EVERY - 1
    return frame[is_test if split == "test" else ~is_test].reset_index(drop=True)
