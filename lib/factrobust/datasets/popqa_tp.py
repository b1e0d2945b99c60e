"""PopQA-TP (Rabinovich et al. 2023): PopQA's questions in the words of paper 3's templates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from factrobust.datasets.facts import load_relations
from factrobust.datasets.hub import located, mended_texts, read_rows
from factrobust.datasets.popqa import read_answers, relation_names
from factrobust.datasets.wordings import grouped, question_ids
from factrobust.tables import FactsError

HUB = "ibm-research/popqa-tp"
FILE = "popQA_template_paraphrases.csv"
REVISION = "f960401"  # its latest commit, of 2023, which the hub finds by these digits
COLUMNS = ("paraphrase", "template_id", "prop", "possible_answers", "id")


def load_popqa_tp(
    path: str | Path | None = None,
    *,
    facts: pd.DataFrame | None = None,
    revision: str = REVISION,
    as_published: bool = False,
) -> pd.DataFrame:
    """Return PopQA-TP (118,643 questions in 14,267 groups) as the table of questions.

    `path` is a copy of popQA_template_paraphrases.csv, or of its parquet form. None takes the hub's
    ibm-research/popqa-tp, or its cache, at `revision`; attrs["source"] tells the whole commit. This
    project's tests cannot reach the hub: the download is untried.

    PopQA-TP has neither subjects nor popularity. `facts`, from `popqa.popqa_facts`, add them, and
    keep the groups that they name: a sample of facts gives a sample of groups. Without them prefix
    is empty and popularity NaN.

    Two things in the published file harm what is measured: letters beyond ASCII are garbled (UTF-8
    read as Mac OS Roman: "Deti√®ge" for Detiège), in questions and answers, and template 4 of
    `country` is the original question again. Both are mended by default, the latter by leaving it
    out; `as_published` keeps both.

    Columns as in `paraphrases.paraphrased`; variant is the template_id, 0 the original question.
    attrs["counts"]: "garbled_questions", "garbled_answers", "repeated_questions" (found, whether
    mended or not), "repeated_answers" and "empty_answers" (left out), "not_in_facts" and
    "no_popularity" (groups).

    Raises FactsError with line and column for a row that is not as described, ConnectionError when
    the hub's copy cannot be fetched.
    """
    (path,), source = located(path, HUB, revision, FILE)
    rows = read_rows(path, COLUMNS, "PopQA-TP")
    relations = load_relations()
    rows["relation"] = relation_names(rows["prop"], path, relations.index[relations["popqa"]])
    rows["variant"] = _template_ids(rows["template_id"], path)
    rows["group_id"] = rows["relation"] + "/" + rows["id"]
    rows["place"] = rows.groupby("group_id", sort=False).ngroup()
    rows["answers"], _ = read_answers(rows["possible_answers"], path, mend=not as_published)
    _check_groups(rows, path)
    rows, left_out = _joined(rows, facts, path)
    rows = rows.sort_values(["place", "variant"])
    # What was amiss in the answers is counted once a group.
    _, counts = read_answers(rows.loc[rows["variant"] == 0, "possible_answers"], path)
    mended, garbled = mended_texts(rows["paraphrase"])
    rows["question"] = rows["paraphrase"] if as_published else mended
    rows["question_id"] = question_ids(rows)
    counts = {"garbled_questions": garbled, **counts, "not_in_facts": left_out}
    table = grouped(rows, counts, distinct=not as_published)
    table.attrs["source"] = source
    return table


def _template_ids(cells: pd.Series, path: Path) -> pd.Series:
    for where in cells.index[~cells.str.fullmatch("[0-9]{1,4}")][:1]:
        raise FactsError(
            f"{path}, {where}: the template_id {cells[where]!r} is no number from 0 up; mend or "
            "remove the row."
        )
    return cells.astype(int)


def _check_groups(rows: pd.DataFrame, path: Path) -> None:
    for where in rows.index[rows["paraphrase"].str.strip() == ""][:1]:
        raise FactsError(f"{path}, {where}: the paraphrase is empty; remove the row.")
    for where in rows.index[rows.duplicated(["group_id", "variant"])][:1]:
        raise FactsError(
            f"{path}, {where}: the id {rows.at[where, 'id']!r} already has a question with the "
            f"template_id {rows.at[where, 'template_id']!r}; remove one of the two."
        )
    whole = rows["place"].isin(rows.loc[rows["variant"] == 0, "place"])
    for where in rows.index[~whole][:1]:
        raise FactsError(
            f"{path}, {where}: the id {rows.at[where, 'id']!r} has no original question (template_id "
            "0); fetch the file anew, or remove the id."
        )
    differs = rows["possible_answers"] != rows.groupby("place")["possible_answers"].transform(
        "first"
    )
    for where in rows.index[differs][:1]:
        raise FactsError(
            f"{path}, {where}: the possible_answers differ from those of the first row with the id "
            f"{rows.at[where, 'id']!r}; fetch the file anew, or mend the cell."
        )


def _joined(rows: pd.DataFrame, facts: pd.DataFrame | None, path: Path) -> tuple[pd.DataFrame, int]:
    """The rows with prefix and popularity, those of the facts only; how many groups were left out."""
    if facts is None:
        return rows.assign(prefix="", popularity=np.nan, log_popularity=np.nan), 0
    known = facts.set_index("fact_id")
    inside = rows["group_id"].isin(known.index)
    if not inside.any():
        raise FactsError(
            f"{path} has none of the facts, such as {known.index[0]!r}; pass those of popqa_facts."
        )
    left_out = int(rows.loc[~inside, "group_id"].nunique())
    rows = rows[inside]
    columns = {
        name: rows["group_id"].map(known[name])
        for name in ("prefix", "popularity", "log_popularity")
    }
    return rows.assign(**columns), left_out
