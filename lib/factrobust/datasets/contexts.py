"""Part 4's questions: base questions with a slot, the objects of a category that fill it.

The answers for the other objects of a base question have the same form, so one of them can stand in
the context of a question as a counterfactual (the thesis, section 3.1).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust import draws, schemas
from factrobust.datasets import facts as fact_tables
from factrobust.paths import DATA
from factrobust.tables import (
    FactsError,
    check_unique,
    complete_table,
    filled,
    nearest,
    read_checked,
    read_table,
    slug,
    text_column,
)

TRAITS = DATA / "context" / "base_question_traits.csv"
# For the provenance of results.
FILES = (DATA / "context" / "base_questions.csv", DATA / "context" / "objects.csv", TRAITS)
COLUMNS = tuple(schemas.ContextQuestions.to_schema().columns)
SLOT = re.compile(r"\{([^{}]*)\}")

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
_ONE_OR_SEVERAL = pa.Check(
    lambda cells: cells.isin(["", "one", "several"]),
    error="is unknown; write one or several, or leave it empty",
)
_PREFIX = filled("write the beginning of a sentence that the answer completes")
BASE_SCHEMA = pa.DataFrameSchema(
    {
        "category": text_column(filled("name the category whose objects are asked about")),
        "base_id": text_column(
            filled("write a short unique name, or drop the column"), optional=True
        ),
        "attribute": text_column(optional=True),
        "question": text_column(_HAS_SLOT, _IS_QUESTION, _NO_OTHER_BRACES),
        "prefix": text_column(_PREFIX, _NO_OTHER_BRACES),
        "right_answers": text_column(_ONE_OR_SEVERAL, optional=True),
    }
)
BASE_COLUMNS = tuple(BASE_SCHEMA.columns)
OBJECTS_SCHEMA = pa.DataFrameSchema(
    {
        "object": text_column(filled("write its name, or delete the line")),
        "category": text_column(filled("name its category")),
        "popularity": fact_tables.SCHEMA.columns["popularity"],
    }
)


def load_context_questions(
    base_path: str | Path | None = None,
    objects_path: str | Path | None = None,
    *,
    limit: int | None = None,
    base_limit: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return every base question about every object of its category, one row a question.

    `base_path` is a CSV of your own with the columns category, question and prefix, {object} in the
    question (and, usually, in the prefix); base_id ("city-01"), attribute and right_answers may be
    left out.
    `objects_path` has object and category; popularity may be left out. Default: the embedded 100
    base questions and 411 objects, 4,760 questions.

    It is a table `schemas.ContextQuestions`; answers are empty, for the truth is not known,
    right_answers where that is not known, and popularity is NaN where it is unknown.

    `limit` keeps that many objects of each base question (2 or more, so that each has a
    counterfactual), `base_limit` that many base questions of each category. Both are seeded samples
    that do not depend on the order of rows, and a larger limit contains every smaller one.

    Raises FactsError with file, line and remedy for a base question without a slot or a question
    mark, a category with no object or with one only; ValueError for a bad limit.
    """
    base_path = FILES[0] if base_path is None else Path(base_path)
    objects_path = FILES[1] if objects_path is None else Path(objects_path)
    base = read_base_questions(base_path)
    if base_path == FILES[0]:
        base["right_answers"] = base["base_id"].map(load_base_question_traits()["right_answers"])
    return _combined(base, base_path, objects_path, limit, base_limit, seed)


def load_thesis_questions(
    base_path: str | Path,
    objects_path: str | Path,
    *,
    limit: int | None = None,
    base_limit: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return questions from the thesis's own files; columns and limits as `load_context_questions`.

    `base_path` is its base_questions.txt: "What country is {city} in? {city} is in" a line, the
    category in braces, empty lines skipped; it is split at the first question mark. `objects_path`
    is its objects.csv with the columns object and category. Raises FactsError as
    `load_context_questions` does, and for a line with two categories or no answer prefix.
    """
    base_path = Path(base_path)
    base = read_thesis_base_questions(base_path)
    return _combined(base, base_path, Path(objects_path), limit, base_limit, seed)


def _combined(
    base: pd.DataFrame,
    base_path: Path,
    objects_path: Path,
    limit: int | None,
    base_limit: int | None,
    seed: int,
) -> pd.DataFrame:
    """Each base question about each object of its category; both indexed by their lines."""
    _check_limit("limit", limit, 2, "objects of a base question")
    _check_limit("base_limit", base_limit, 1, "base questions of a category")
    objects = complete_table(read_checked(objects_path, OBJECTS_SCHEMA), OBJECTS_SCHEMA)
    objects["name"] = objects["object"].map(slug)
    _check_names(objects, objects_path)
    _check_counts(base, base_path, objects, objects_path)
    objects["popularity"] = pd.to_numeric(objects["popularity"]).astype(float)
    table = base.merge(objects, on="category")
    table["question_id"] = table["base_id"] + "/" + table["name"]
    for column in ("question", "prefix"):
        table[column] = [
            template.replace("{object}", name)
            for template, name in zip(table[column], table["object"], strict=True)
        ]
    table["answers"] = pd.Series([[] for _ in range(len(table))], index=table.index, dtype=object)
    if base_limit is not None:
        drawn = base.assign(rank=draws.ranks(base["base_id"], base["category"], seed))
        kept = drawn.loc[drawn["rank"] < base_limit, "base_id"]
        table = table[table["base_id"].isin(kept)]
    if limit is not None:
        table = table[draws.ranks(table["question_id"], table["base_id"], seed) < limit]
    return table[list(COLUMNS)].reset_index(drop=True)


def _check_limit(name: str, limit: int | None, least: int, what: str) -> None:
    whole = isinstance(limit, int | np.integer) and not isinstance(limit, bool)
    if limit is not None and (not whole or limit < least):
        raise ValueError(
            f"{name} is {limit!r}; give a whole number of {what} from {least} up, or None for all"
        )


def _check_names(objects: pd.DataFrame, path: Path) -> None:
    """Raise FactsError if two objects of a category would give questions of the same name."""
    again = objects.duplicated(["category", "name"])
    for line, row in objects[again].head(1).iterrows():
        same = (objects[["category", "name"]] == row[["category", "name"]]).all(axis=1)
        first = same.idxmax()
        raise FactsError(
            f"{path}, line {line}: {row['object']!r} is, but for case and punctuation, the "
            f"{row['category']} {objects.at[first, 'object']!r} of line {first}; delete one of the "
            "two, or tell them apart by a word."
        )


def _check_counts(
    base: pd.DataFrame, base_path: Path, objects: pd.DataFrame, objects_path: Path
) -> None:
    """Raise FactsError unless each category that is asked about has two objects or more."""
    known = list(dict.fromkeys(base["category"]))
    for line, category in objects.loc[~objects["category"].isin(known), "category"].items():
        if near := nearest(category, known):
            raise FactsError(
                f"{objects_path}, line {line}: no base question asks about the category "
                f"{category!r}; did you mean {near!r}?"
            )
    for line, category in base.drop_duplicates("category")["category"].items():
        members = objects[objects["category"] == category]
        if members.empty:
            raise FactsError(
                f"{base_path}, line {line}: the category {category!r} has no object in "
                f"{objects_path}; add at least two, or delete its base questions."
            )
        if len(members) == 1:
            raise FactsError(
                f"{objects_path}, line {members.index[0]}: {members['object'].iloc[0]!r} is the "
                f"only object of the category {category!r}, and a counterfactual is the answer for "
                "another one; add one, or delete the category's base questions."
            )


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
        raise FactsError(
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


def read_base_questions(path: Path) -> pd.DataFrame:
    """Return a CSV of base questions with the columns `BASE_COLUMNS`, indexed by line.

    base_id ("city-01") is made up where the file has no such column, attribute and right_answers
    ("one", or "several" where more than one answer is right) are left empty. Raises FactsError with
    file, line and remedy.
    """
    base = _completed(read_checked(path, BASE_SCHEMA))
    check_unique(base, ["base_id"], path)
    return base


def _completed(base: pd.DataFrame) -> pd.DataFrame:
    numbers = (base.groupby("category").cumcount() + 1).map("{:02d}".format)
    base_id = base["category"] + "-" + numbers
    return complete_table(base, BASE_SCHEMA, base_id=base_id)[list(BASE_COLUMNS)]


def read_thesis_base_questions(path: Path) -> pd.DataFrame:
    """Return the thesis's base_questions.txt in the same form: "What ... {city}? {city} ..." a line.

    Raises FactsError with file, line and remedy.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FactsError(
            f"{path} cannot be read ({error}); check the path and that it is UTF-8 text."
        ) from error
    rows = {
        n: _parsed(line, f"{path}, line {n}") for n, line in enumerate(lines, 1) if line.strip()
    }
    if not rows:
        raise FactsError(f"{path} is empty; write a base question a line.")
    base = pd.DataFrame.from_dict(rows, orient="index", columns=["category", "question", "prefix"])
    return _completed(base)


def load_base_question_traits() -> pd.DataFrame:
    """Return what the answers to the embedded base questions are like, indexed by base_id.

    Columns: attribute, answer_kind ("date", "person", "number", ...), unit (of a number, else
    empty), right_answers ("one", or "several" where more than one answer is right).
    """
    frame = read_table(
        TRAITS,
        required=("base_id", "attribute", "answer_kind", "unit", "right_answers"),
        optional=(),
    )
    return frame.set_index("base_id")


def _parsed(line: str, where: str) -> tuple[str, str, str]:
    """Category, question and prefix of a line of base_questions.txt."""
    categories = list(dict.fromkeys(SLOT.findall(line)))
    if not categories:
        raise FactsError(
            f"{where}: the base question has no slot; write its category in braces, such as "
            "{city}, where an object shall stand."
        )
    if len(categories) > 1:
        raise FactsError(
            f"{where}: the base question has slots of {len(categories)} categories, "
            f"{', '.join(categories)}; a line asks about one."
        )
    question, mark, prefix = line.partition("?")
    if not mark:
        raise FactsError(
            f"{where}: the base question has no question mark; write one between the question and "
            "the answer prefix."
        )
    if not prefix.strip():
        raise FactsError(
            f"{where}: no answer prefix follows the question mark; write the beginning of a "
            "sentence that the answer completes."
        )
    question, prefix = (SLOT.sub("{object}", part).strip() for part in (question, prefix))
    return categories[0], f"{question}?", prefix
