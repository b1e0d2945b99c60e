"""Part 4's questions: base questions with a slot, the objects of a category that fill it.

The answers for the other objects of a base question have the same form, so one of them can stand in
the context of a question as a counterfactual (the thesis, section 3.1).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pandera.pandas as pa

from factrobust import draws, schemas, tables
from factrobust.datasets import facts as fact_tables
from factrobust.paths import DATA

TRAITS = DATA / "context" / "base_question_traits.csv"
# For the provenance of results.
FILES = (DATA / "context" / "base_questions.csv", DATA / "context" / "objects.csv", TRAITS)
COLUMNS = schemas.names(schemas.ContextQuestions)
LABELLED = DATA / "labels" / "context.csv"
LABELS = ("parametric", "contextual", "same", "other", "none")  # defined in data/labels/README.md

_HAS_SLOT = pa.Check(
    lambda cells: cells.str.contains("{object}", regex=False),
    error="has no slot; write {object} where the name of an object shall stand",
)
_IS_QUESTION = pa.Check(
    lambda cells: cells.str.endswith("?"), error="has no question mark at its end; write one"
)
_NO_OTHER_BRACES = pa.Check(
    lambda cells: ~cells.str.replace("{object}", "").str.contains("[{}]"),
    error="has braces other than those of {object}; remove them",
)
_BEGINS = tables.filled("write the beginning of a sentence that the answer completes")
BASE_SCHEMA = tables.csv_schema(
    ("category", "question", "prefix"),
    category=tables.filled("name the category whose objects are asked about"),
    base_id=tables.filled("write a short unique name, or drop the column"),
    attribute=None,
    question=[_HAS_SLOT, _IS_QUESTION, _NO_OTHER_BRACES],
    prefix=[_BEGINS, _NO_OTHER_BRACES],
    right_answers=tables.one_of(["", "one", "several"], "leave it empty, or write"),
)
OBJECTS_SCHEMA = tables.csv_schema(
    ("object", "category"),
    object=tables.filled("write its name, or delete the line"),
    category=tables.filled("name its category"),
    popularity=fact_tables.SCHEMA.columns["popularity"].checks,
)
_ASKED = ("label_id", "model", "question_id", "question", "context")
_SAID = ("parametric", "counterfactual", "answer", "note")
LABELS_SCHEMA = tables.csv_schema(
    (*_ASKED, *_SAID, "label", "label_again"),
    **{name: tables.filled("run python data/draw_labels.py") for name in _ASKED},
    **dict.fromkeys(_SAID),
    label=tables.one_of(LABELS),
    label_again=tables.one_of(LABELS),
)


def load_context_questions(
    base_path: str | Path | None = None,
    objects_path: str | Path | None = None,
    *,
    limit: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return every base question about every object of its category, one row a question.

    `base_path` is a file for `read_base_questions`. `objects_path` has object and category; popularity
    may be left out. Default: the embedded 100 base questions and 411 objects, 4,760 questions.

    It is a table `schemas.ContextQuestions`; answers are empty, for the truth is not known,
    right_answers where that is not known, and popularity is NaN where it is unknown.

    `limit` keeps that many objects of each base question (2 or more, so that each has a
    counterfactual): a seeded sample that does not depend on the order of rows, and a larger limit
    contains every smaller one.

    Raises FactsError with file, line and remedy for a base question without a slot or a question
    mark, a category with no object or with one only; ValueError for a bad limit.
    """
    draws.need_count("limit", limit, 2)
    base_path = FILES[0] if base_path is None else Path(base_path)
    objects_path = FILES[1] if objects_path is None else Path(objects_path)
    base = read_base_questions(base_path)
    if base_path == FILES[0]:
        base["right_answers"] = base["base_id"].map(load_base_question_traits()["right_answers"])
    objects = tables.read_checked(objects_path, OBJECTS_SCHEMA)
    objects = tables.complete_table(objects, OBJECTS_SCHEMA)
    objects["name"] = objects["object"].map(tables.slug)
    tables.check_unique(objects, ["category", "name"], objects_path)
    _check_categories(base, base_path, objects, objects_path)
    objects["popularity"] = pd.to_numeric(objects["popularity"]).astype(float)
    table = base.merge(objects, on="category")
    table["question_id"] = table["base_id"] + "/" + table["name"]
    for column in ("question", "prefix"):
        table[column] = [
            template.replace("{object}", name)
            for template, name in zip(table[column], table["object"], strict=True)
        ]
    table["answers"] = pd.Series([[] for _ in range(len(table))], index=table.index, dtype=object)
    if limit is not None:
        table = table[draws.ranks(table["question_id"], table["base_id"], seed) < limit]
    return table[list(COLUMNS)].reset_index(drop=True)


def _check_categories(
    base: pd.DataFrame, base_path: Path, objects: pd.DataFrame, objects_path: Path
) -> None:
    """Raise FactsError unless each category that is asked about has two objects or more."""
    known = base["category"].unique()
    for line, category in objects.loc[~objects["category"].isin(known), "category"].items():
        if near := tables.nearest(category, known):  # other categories may stand there
            raise tables.FactsError(
                f"{objects_path}, line {line}: no base question asks about the category "
                f"{category!r}; did you mean {near!r}?"
            )
    sizes = base["category"].map(objects["category"].value_counts()).fillna(0).astype(int)
    for line in base.index[sizes < 2][:1]:
        raise tables.FactsError(
            f"{base_path}, line {line}: the category {base.at[line, 'category']!r} has {sizes[line]} "
            f"objects in {objects_path}, and a counterfactual is the answer for another one; add "
            "some, or delete its base questions."
        )


def read_base_questions(path: str | Path) -> pd.DataFrame:
    """Return base questions with the columns of `BASE_SCHEMA`, indexed by line.

    A CSV has category, question and prefix, {object} in the question (and, usually, in the prefix);
    base_id ("city-01") is made up where the file has no such column, attribute and right_answers
    ("one", or "several" where more than one answer is right) are left empty. A .txt file is as the
    thesis's base_questions.txt: "What country is {city} in? {city} is in" a line, the category in
    braces, split at the first question mark. Raises FactsError with file, line and remedy.
    """
    path = Path(path)
    base = _thesis_lines(path) if path.suffix == ".txt" else tables.read_checked(path, BASE_SCHEMA)
    numbers = (base.groupby("category").cumcount() + 1).map("{:02d}".format)
    base = tables.complete_table(base, BASE_SCHEMA, base_id=base["category"] + "-" + numbers)
    tables.check_unique(base, ["base_id"], path)
    return base[list(BASE_SCHEMA.columns)]


def _thesis_lines(path: Path) -> pd.DataFrame:
    lines = pd.Series(tables.read_text(path).splitlines(), dtype=str).str.strip()
    lines.index = pd.RangeIndex(1, len(lines) + 1, name="line")
    lines = lines[lines != ""]
    category = lines.str.extract(r"\{([^{}]*)\}", expand=False).fillna("")
    slotted = [
        line.replace(f"{{{name}}}", "{object}") for line, name in zip(lines, category, strict=True)
    ]
    parts = pd.Series(slotted, index=lines.index, dtype=str).str.extract(r"^([^?]*\??)(.*)$")
    base = pd.DataFrame(
        {"category": category, "question": parts[0], "prefix": parts[1].str.strip()}
    )
    tables.check_table(base, BASE_SCHEMA, path)
    return base


def load_base_question_traits() -> pd.DataFrame:
    """Return what the answers to the embedded base questions are like, indexed by base_id.

    Columns: attribute, answer_kind ("date", "person", "number", ...), unit (of a number, else
    empty), right_answers ("one", or "several" where more than one answer is right).
    """
    return pd.read_csv(TRAITS, dtype=str, keep_default_na=False, index_col="base_id")


def load_labels() -> pd.DataFrame:
    """Return the answers that were labelled without knowing any rule's verdict (data/labels).

    Columns: label_id, model, question_id, question, context, parametric, counterfactual, answer,
    label and label_again (of LABELS), note. Raises FactsError for another label.
    """
    return tables.read_checked(LABELLED, LABELS_SCHEMA)


def facts_as_questions(facts: pd.DataFrame) -> pd.DataFrame:
    """Return facts (`datasets.facts.load_facts`) as questions of this part, whose truth is known.

    A relation is a base question, its subjects are the objects: question_id is the fact_id, base_id
    and attribute are the relation, category is the domain, answers the accepted ones, the canonical
    one first. Raises FactsError for a relation with one fact only, KeyError for one without a
    question.
    """
    asked = facts if "question" in facts else fact_tables.questions(facts)
    sizes = asked.groupby("relation", sort=False)["fact_id"].size()
    if (single := sizes.index[sizes == 1]).size:
        raise tables.FactsError(
            f"{single.size} of {sizes.size} relations have one fact only, {single[0]!r} first, and a "
            "counterfactual is the answer of another fact; keep more facts of each, or leave these "
            "relations out."
        )
    table = asked.assign(
        question_id=asked["fact_id"],
        category=asked["domain"],
        base_id=asked["relation"],
        attribute=asked["relation"],
        answers=pd.Series(fact_tables.answers(asked), index=asked.index, dtype=object),
        object=asked["subject"],
        right_answers="",
    )
    return table[list(COLUMNS)].reset_index(drop=True)


def describe(questions: pd.DataFrame) -> pd.DataFrame:
    """Table 7, a row a category and their "total": base_questions, objects, questions, an example.

    The example (table 1) is the category's first question with the beginning of its answer.
    """
    groups = questions.groupby("category", sort=False)
    table = pd.DataFrame(
        {
            "base_questions": groups["base_id"].nunique(),
            "objects": groups["object"].nunique(),
            "questions": groups.size(),
        }
    )
    example = groups["question"].first() + " " + groups["prefix"].first() + " ..."
    table.loc["total"] = table.sum()
    return table.assign(example=example.reindex(table.index, fill_value=""))
