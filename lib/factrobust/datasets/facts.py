"""Facts and their relations: load, validate, sample, turn into questions."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust import schemas, tables
from factrobust.draws import sample_evenly
from factrobust.paths import DATA

FILES = (DATA / "facts.csv", DATA / "relations.csv")  # for the provenance of results
QUESTION_TYPES = DATA / "question_types.csv"
DOMAINS = (
    "geography",
    "arts",
    "science-history",
)  # of the embedded table; yours may have others
TEST_EVERY = 5  # of the typed questions

# Of CSV files, all cells still strings. Which relations are known, `load_facts` checks besides.
COLUMNS = tuple(schemas.Facts.columns)
SCHEMA = tables.csv_schema(
    ("subject", "relation", "object"),
    **dict.fromkeys(COLUMNS)
    | {
        "fact_id": tables.filled("write a short unique name, or drop the column"),
        "subject": [tables.filled("write what the fact is about"), tables.legible()],
        "object": [
            tables.filled("write the answer, or delete the line"),
            tables.legible(),
        ],
        "aliases": [tables.list_of_texts(), tables.legible()],
        "answer_type": tables.one_of(tables.ANSWER_TYPES),
        "domain": tables.filled("name a domain, or drop the column"),
        "popularity": tables.number("write one such as 4.2, or leave it empty"),
    },
)
HAS_SUBJECT = pa.Check.str_matches(
    r"[^{}]*\{subject\}[^{}]*$",
    error="must hold {subject} exactly once, and no other braces; put it there",
)
RELATION_NAME = pa.Check.str_matches(
    r"^[a-z][a-z0-9_]*$",
    error="is no short name; write lower-case letters, digits and _ only",
)
RELATIONS_SCHEMA = tables.csv_schema(
    ("relation", "question", "prefix", "answer_type", "domain", "popqa"),
    relation=RELATION_NAME,
    question=HAS_SUBJECT,
    prefix=HAS_SUBJECT,
    answer_type=tables.one_of(tables.ANSWER_TYPES),
    domain=tables.filled("name a domain"),
    popqa=tables.one_of(["true", "false"]),
)


def load_relations() -> pd.DataFrame:
    """The relations, indexed by name: question, prefix, answer_type, domain, popqa (bool)."""
    table = read_relations(FILES[1])
    return table.assign(popqa=table["popqa"].eq("true"))


def read_relations(
    path: str | Path,
    schema: pa.DataFrameSchema = RELATIONS_SCHEMA,
) -> pd.DataFrame:
    """Read and check one relations file: all columns are texts, the index is the relation."""
    frame = tables.read_checked(path, schema)
    tables.check_unique(frame, ["relation"], path)
    return frame[[*schema.columns]].set_index("relation")


def load_facts(
    path: str | Path | None = None,
    *,
    relations: Iterable[str] | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return facts, in the file's order: a table `schemas.Facts`, with notes of your own behind it.

    `path` is a CSV of your own (default: the embedded table); it needs only subject, relation and
    object. What it leaves out is filled in: fact_id from relation and subject, answer_type and
    domain from the relation, popularity with NaN, the rest with nothing. `relations` keeps those
    rows; `limit` then takes `draws.sample_evenly`. Raises FactsError for a bad file."""
    path = FILES[0] if path is None else Path(path)
    table = load_relations()
    frame = tables.read_checked(path, with_relations(SCHEMA, table.index))
    tables.check_unique(frame, ["relation", "subject"], path)
    usual = {name: frame["relation"].map(table[name]) for name in ("answer_type", "domain")}
    usual["fact_id"] = frame["relation"] + "/" + frame["subject"].map(tables.slug)
    frame = tables.complete_table(frame, SCHEMA, **usual)
    frame["popularity"] = pd.to_numeric(frame["popularity"]).astype(float)
    frame["object"], frame["aliases"] = tables.accepted_names(frame["object"], frame["aliases"])
    tables.check_unique(frame, ["fact_id"], path)
    if relations is not None:
        frame = frame[frame["relation"].isin(list(relations))]
    if limit is not None:
        frame = sample_evenly(frame, limit, seed)
    return frame.reset_index(drop=True)


def with_relations(
    schema: pa.DataFrameSchema,
    names: Iterable[str],
) -> pa.DataFrameSchema:
    """The schema of facts whose relations are known."""
    remedy = "add it to the relations in data/ (see its README) or choose one of"
    return schema.update_column("relation", checks=tables.one_of(names, remedy))


def with_questions(facts: pd.DataFrame) -> pd.DataFrame:
    """The facts with the columns question and prefix ("The capital of Kenya is"), subject filled
    in."""
    templates = load_relations().loc[facts["relation"], ["question", "prefix"]]
    filled = {str(n): [*map(worded, templates[n], facts["subject"])] for n in templates}
    return facts.assign(**filled)


def worded(template: str, subject: str) -> str:
    """The template with its subject. "the Netherlands is ..." begins a sentence; "iPhone is ..."
    keeps its spelling."""
    sentence = template.replace("{subject}", subject)
    first = sentence.split(maxsplit=1)[0]
    return sentence[:1].upper() + sentence[1:] if first.islower() else sentence


def accepted_answers(facts: pd.DataFrame) -> list[list[str]]:
    """Return the accepted answers of each fact, the canonical one first."""
    pairs = zip(facts["object"], facts["aliases"], strict=True)
    return [[answer, *aliases] for answer, aliases in pairs]


def log_or_nan(popularity: pd.Series) -> pd.Series:
    """The natural logarithm of each popularity, NaN where that is 0 or missing."""
    return np.log(popularity.where(popularity > 0))


def load_question_types(split: str) -> pd.DataFrame:
    """The embedded trivia questions: columns question, answer_type, relation.

    503 questions written for this project, 125 or 126 a type, typed as TREC types them (a band, a
    firm or a people is Human; a planet, a river or a building is a Location; a date is Numerical),
    without Abbreviation and Description. `relation` names the relation of the facts table that a
    question asks in other words, else "": without these rows (334 are left), a classifier is tested
    on relations that it never saw. `split` is "test" for every fifth question of each type (100),
    which the file lists in random order, "train" for the rest (403)."""
    frame = tables.read_csv(QUESTION_TYPES, dtype=str, keep_default_na=False)
    is_test = frame.groupby("answer_type").cumcount() % TEST_EVERY == TEST_EVERY - 1
    return frame[is_test == (split == "test")].reset_index(drop=True)
