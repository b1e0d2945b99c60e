"""Paraphrases of the relations' questions, and the questions that they make of facts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust.datasets import facts as fact_tables
from factrobust.datasets import relations as relation_tables
from factrobust.datasets.questions import COLUMNS as QUESTIONS
from factrobust.datasets.questions import grouped, question_ids
from factrobust.datasets.tables import FactsError, check_table, check_unique, read_table
from factrobust.paths import DATA

FILES = (DATA / "paraphrases.csv",)  # for the provenance of results
COLUMNS = ("relation", "paraphrase")


def load_paraphrases(path: str | Path | None = None) -> pd.DataFrame:
    """Return the templates, one a row: relation, paraphrase (with {subject} once).

    The embedded ones are for PopQA's 16 relations, 3 to 10 each, as many as table 1 of paper 3
    prints. `path` names a CSV of your own with these two columns; its relations join the embedded
    ones, or replace all paraphrases of one. Raises FactsError with file, line and remedy.
    """
    embedded = _read(FILES[0])
    if path is None:
        return embedded
    own = _read(Path(path))
    kept = embedded[~embedded["relation"].isin(own["relation"])]
    return pd.concat([kept, own], ignore_index=True)


def _read(path: Path) -> pd.DataFrame:
    frame = read_table(path, required=COLUMNS, optional=())
    known = relation_tables.SCHEMA.columns
    schema = {"relation": known["relation"], "paraphrase": pa.Column(str, known["question"].checks)}
    check_table(frame, pa.DataFrameSchema(schema), path)
    check_unique(frame, list(COLUMNS), path)
    return frame[list(COLUMNS)].reset_index(drop=True)


def paraphrased(facts: pd.DataFrame, paraphrases: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return one row a question: each fact's own (variant 0), then its paraphrases (1, 2, ...).

    The own question is the fact's `question`, where it has one (see `facts.questions`), or else its
    embedded relation's. Columns: question_id ("capital/kenya#0"), group_id (the fact_id), variant
    (int), relation, question, prefix (the fact's, whatever the wording), answers (list of str, the
    object first), popularity (of the subject), log_popularity. That is the natural logarithm of the
    subject's frequency per billion words, which the embedded popularity gives as its log10 (Zipf);
    for a popularity of another kind give the facts a column log_popularity. It is NaN where the
    popularity is 0 or missing.

    attrs["counts"]: "repeated_questions" (a paraphrase that reads like another question of its fact,
    left out) and "no_popularity" (facts). Raises FactsError for relations without paraphrases.
    """
    templates = load_paraphrases() if paraphrases is None else paraphrases
    given = facts["relation"].unique()
    if missing := sorted(set(given) - set(templates["relation"])):
        raise FactsError(
            f"no paraphrases of {', '.join(missing)}: write some and pass load_paraphrases(your_file),"
            " or keep other facts with load_facts(relations=load_paraphrases()['relation'])."
        )
    own = facts if "question" in facts else fact_tables.questions(facts)
    if "log_popularity" not in own:
        zipf = own["popularity"].where(own["popularity"] > 0)
        own = own.assign(log_popularity=zipf * np.log(10))
    own = own.assign(
        group_id=own["fact_id"],
        variant=0,
        prefix=own.get("prefix", ""),
        answers=pd.Series(fact_tables.answers(own), index=own.index, dtype=object),
        place=np.arange(len(own)),
    )[["subject", "place", *(name for name in QUESTIONS if name != "question_id")]]
    rows = pd.concat([own, _reworded(own, templates)], ignore_index=True)
    rows = rows.sort_values(["place", "variant"])
    return grouped(rows.assign(question_id=question_ids(rows)), {})


def _reworded(own: pd.DataFrame, templates: pd.DataFrame) -> pd.DataFrame:
    """Every fact with every template of its relation in the place of its question."""
    templates = templates.assign(
        variant=templates.groupby("relation").cumcount() + 1,
        wording=templates["relation"] + "#" + templates.index.astype("str"),
    )
    rows = own.drop(columns="variant").merge(templates, on="relation")
    # Each template is a relation of its own to the function that fills in subjects.
    table = pd.DataFrame(dict.fromkeys(("question", "prefix"), templates["paraphrase"]))
    table.index = pd.Index(templates["wording"])
    asked = fact_tables.questions(rows.assign(relation=rows["wording"]), table)["question"]
    # "Name the father of Martin Luther King Jr." has one full stop.
    twice = rows["paraphrase"].str.endswith("{subject}.") & rows["subject"].str.endswith(".")
    return rows.assign(question=asked.where(~twice, asked.str.slice(stop=-1)))
