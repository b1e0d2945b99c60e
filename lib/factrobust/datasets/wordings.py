"""Questions that ask for the same thing in other words: paraphrases of relations, groups of your own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust.datasets import facts as fact_tables
from factrobust.draws import in_turns
from factrobust.paths import DATA
from factrobust.tables import (
    FactsError,
    check_table,
    check_unique,
    filled,
    number,
    read_table,
)

COLUMNS = (
    "question_id",
    "group_id",
    "variant",
    "relation",
    "question",
    "prefix",
    "answers",
    "popularity",
    "log_popularity",
)
REQUIRED = ("group_id", "question", "answers")
OPTIONAL = ("question_id", "relation", "prefix", "popularity")
OF_THE_GROUP = ("answers", "relation", "popularity")
FILES = (DATA / "paraphrases.csv",)  # for the provenance of results
TEMPLATE_COLUMNS = ("relation", "paraphrase")


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
    frame = read_table(path, required=TEMPLATE_COLUMNS, optional=())
    known = fact_tables.RELATIONS_SCHEMA.columns
    schema = {"relation": known["relation"], "paraphrase": pa.Column(str, known["question"].checks)}
    check_table(frame, pa.DataFrameSchema(schema), path)
    check_unique(frame, list(TEMPLATE_COLUMNS), path)
    return frame[list(TEMPLATE_COLUMNS)].reset_index(drop=True)


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
    )[["subject", "place", *(name for name in COLUMNS if name != "question_id")]]
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


def load_questions(path: str | Path) -> pd.DataFrame:
    """Return your own questions, grouped by the column group_id, as the table of questions.

    The CSV needs group_id, question and answers (joined by |, the canonical one first). It may have
    relation (the category; "own" without it), popularity (how often the subject is looked up or
    named, such as page views), prefix and question_id. A group's first question is variant 0, the
    one that correctness is judged by; its rows agree in answers, relation and popularity.

    Columns: question_id ("group#0"), group_id, variant, relation, question, prefix, answers (list of
    str), popularity, log_popularity (its natural logarithm; NaN where it is 0 or missing).
    attrs["counts"] says how many were "repeated_questions" (left out) and "repeated_answers" (left
    out), and how many groups have "no_popularity".

    Raises FactsError with file and line for a bad row, and for a group of one question.
    """
    path = Path(path)
    frame = read_table(path, required=REQUIRED, optional=OPTIONAL)
    schema = {
        "group_id": pa.Column(str, filled("give the questions that belong together one name")),
        "question": pa.Column(str, filled("write the question, or delete the line")),
        "answers": pa.Column(str, filled("write the accepted answers, joined by |")),
        "relation": pa.Column(str, filled("name a category, or drop the column"), required=False),
        "popularity": pa.Column(
            str, number("write one such as 1200, or leave it empty"), required=False
        ),
    }
    check_table(frame, pa.DataFrameSchema(schema), path)
    defaults = {"relation": "own", "prefix": "", "popularity": ""}
    frame = frame.assign(**{name: text for name, text in defaults.items() if name not in frame})
    _check_agreement(frame, path)
    frame["variant"] = frame.groupby("group_id").cumcount()
    if "question_id" not in frame:
        frame["question_id"] = question_ids(frame)
    check_unique(frame, ["question_id"], path)
    lists = [[a for cell in text.split("|") if (a := cell.strip())] for text in frame["answers"]]
    frame["answers"] = [list(dict.fromkeys(answers)) for answers in lists]
    if (empty := frame["answers"].str.len() == 0).any():
        raise FactsError(
            f"{path}, line {empty.idxmax()}: no answer stands between the |; write at least one."
        )
    repeated = sum(map(len, lists)) - int(frame["answers"].str.len().sum())
    frame["popularity"] = pd.to_numeric(frame["popularity"]).astype(float)
    frame["log_popularity"] = log_or_nan(frame["popularity"])
    order = frame.groupby("group_id", sort=False).ngroup()
    return grouped(frame.iloc[np.argsort(order, kind="stable")], {"repeated_answers": repeated})


def _check_agreement(frame: pd.DataFrame, path: Path) -> None:
    for name in OF_THE_GROUP:
        differs = frame[name] != frame.groupby("group_id")[name].transform("first")
        for line in frame.index[differs][:1]:
            raise FactsError(
                f"{path}, line {line}: the {name} {frame.at[line, name]!r} differs from that of the "
                f"first question of {frame.at[line, 'group_id']!r}; make them equal, or split the group."
            )


def question_ids(frame: pd.DataFrame) -> pd.Series:
    """The usual names of questions: the group's, then # and the variant."""
    return frame["group_id"] + "#" + frame["variant"].astype("str")


def log_or_nan(popularity: pd.Series) -> pd.Series:
    """The natural logarithm of each popularity, NaN where that is 0 or missing."""
    return np.log(popularity.where(popularity > 0))


def grouped(
    frame: pd.DataFrame, counts: Mapping[str, int], *, distinct: bool = True
) -> pd.DataFrame:
    """Return the table of questions, from rows that have its columns, group by group in order.

    `distinct` leaves out a question that its group already has. attrs["counts"] holds the counts
    given, "repeated_questions" (found, left out or not) and "no_popularity" (groups). Raises
    FactsError for a group of one question.
    """
    again = frame.duplicated(["group_id", "question"])
    if distinct:
        frame = frame[~again]
    sizes = frame.groupby("group_id", sort=False).size()
    if (single := sizes[sizes == 1].index).size:
        raise FactsError(
            f"{single.size} of {sizes.size} groups have one question only, {single[0]!r} first: give "
            "each a paraphrase in other words, or leave them out."
        )
    table = frame[list(COLUMNS)].reset_index(drop=True)
    unknown = int(table.loc[table["log_popularity"].isna(), "group_id"].nunique())
    table.attrs["counts"] = {
        **counts,
        "repeated_questions": int(again.sum()),
        "no_popularity": unknown,
    }
    return table


def sample(questions: pd.DataFrame, limit: int, seed: int = 0) -> pd.DataFrame:
    """Keep `limit` whole groups, a seeded sample spread evenly over relations.

    It does not depend on the order of rows, and a larger limit contains every smaller one.
    attrs["counts"] stay those of the whole table.
    """
    first = questions.drop_duplicates("group_id").assign(fact_id=lambda rows: rows["group_id"])
    names = in_turns(first, limit, seed, ["relation"])["group_id"][:limit]
    return questions[questions["group_id"].isin(names)].reset_index(drop=True)


def describe(questions: pd.DataFrame) -> pd.DataFrame:
    """Count, as table 1 of paper 3: questions (groups), alternatives to each (at most), total.

    One row a relation, in alphabetical order, then "all" with the sums and the largest number of
    alternatives.
    """
    sizes = questions.groupby(["relation", "group_id"]).size()
    by = sizes.groupby("relation")
    table = pd.DataFrame({"questions": by.size(), "alternatives": by.max() - 1, "total": by.sum()})
    table.loc["all"] = table.agg({"questions": "sum", "alternatives": "max", "total": "sum"})
    return table
