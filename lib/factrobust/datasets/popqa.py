"""PopQA (Mallen et al. 2023): 14,267 questions about Wikidata's facts, with page views."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from factrobust.datasets import facts as fact_tables
from factrobust.datasets.facts import load_relations
from factrobust.datasets.hub import json_lists, located, mended, mended_texts, read_rows
from factrobust.datasets.wordings import log_or_nan, paraphrased
from factrobust.tables import FactsError

HUB = "akariasai/PopQA"
REVISION = "098765c79ea10a2cb19c828324e33281b8336ec0"  # its latest, of December 2022
FILE = "test.tsv"
# What is read of the 17 columns. The others are ids, titles and aliases on Wikidata and Wikipedia;
# possible_answers already holds the aliases of every right object.
COLUMNS = ("id", "subj", "prop", "obj", "s_pop", "question", "possible_answers")
# Around some answers stand marks that nobody sees ("Norvège" and U+200F), and no model writes.
BLANK = " \t\n\r\xa0\u200b\u200e\u200f\ufeff"


def load_popqa(
    path: str | Path | None = None,
    *,
    revision: str = REVISION,
    paraphrases: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return PopQA's questions with paraphrases (default: ours), as `paraphrases.paraphrased` does.

    Our paraphrases suit the embedded facts. Some miss PopQA's odder subjects: those of `country`
    speak of a city, and PopQA asks for the country of an airport, too. The authors of paper 3 wrote
    others for PopQA: see `popqa_tp.load_popqa_tp`. attrs["counts"] holds those of `popqa_facts` too.
    """
    facts = popqa_facts(path, revision=revision)
    questions = paraphrased(facts, paraphrases)
    questions.attrs["counts"] = facts.attrs["counts"] | questions.attrs["counts"]
    return questions


def popqa_facts(path: str | Path | None = None, *, revision: str = REVISION) -> pd.DataFrame:
    """Return PopQA as facts: the columns of `load_facts`, then question, prefix, log_popularity.

    `path` is the official file (popQA.tsv or test.tsv), or a CSV or parquet copy. None takes the
    hub's akariasai/PopQA, or its cache; this project's tests cannot reach the hub: the download is
    untried.

    fact_id is the relation and PopQA's id ("place_of_birth/4222362"), question PopQA's own, prefix
    the embedded relation's with PopQA's subject; aliases are the possible answers without obj;
    popularity is the subject's page views a month, log_popularity its natural logarithm (NaN where
    they are 0 or missing).

    attrs["counts"]: "garbled_questions" and "garbled_answers" (mojibake; mended, where the letters
    are not lost), "repeated_answers" and "empty_answers" (left out), "no_popularity".

    Raises FactsError with line and column for a row that is not as described, ConnectionError when
    the hub's copy cannot be fetched.
    """
    (path,), source = located(path, HUB, revision, FILE)
    rows = read_rows(path, COLUMNS, "PopQA")
    relations = load_relations()
    relations = relations[relations["popqa"]]
    rows["relation"] = relation_names(rows["prop"], path, relations.index)
    _check(rows, path)
    views = _views(rows["s_pop"], path)
    answers, counts = read_answers(rows["possible_answers"], path)
    questions, garbled = mended_texts(rows["question"])
    objects = mended_texts(rows["obj"])[0]
    facts = pd.DataFrame(
        {
            "fact_id": rows["relation"] + "/" + rows["id"],
            "subject": mended_texts(rows["subj"])[0],
            "relation": rows["relation"],
            "object": objects,
            "aliases": [
                [a for a in all_ if a != o] for all_, o in zip(answers, objects, strict=True)
            ],
            "answer_type": rows["relation"].map(relations["answer_type"]),
            "domain": rows["relation"].map(relations["domain"]),
            "popularity": views,
            "popularity_source": "PopQA: page views a month",
            "source": source,
        }
    )
    facts = fact_tables.questions(facts).assign(
        question=questions, log_popularity=log_or_nan(views)
    )
    facts = facts.reset_index(drop=True)
    unknown = int(facts["log_popularity"].isna().sum())
    facts.attrs["counts"] = {"garbled_questions": garbled, **counts, "no_popularity": unknown}
    return facts


def relation_names(props: pd.Series, path: Path, known: pd.Index) -> pd.Series:
    """PopQA's categories as names of relations ("place of birth" is place_of_birth)."""
    names = props.str.replace(" ", "_")
    for where in names.index[~names.isin(known)][:1]:
        raise FactsError(
            f"{path}, {where}: the prop {props[where]!r} is none of PopQA's 16; remove the row."
        )
    return names


def _check(rows: pd.DataFrame, path: Path) -> None:
    for name in ("id", "subj", "obj", "question"):
        for where in rows.index[rows[name].str.strip() == ""][:1]:
            raise FactsError(f"{path}, {where}: the {name} is empty; remove the row.")
    for where in rows.index[rows["id"].duplicated()][:1]:
        raise FactsError(
            f"{path}, {where}: the id {rows.at[where, 'id']!r} is already in "
            f"{(rows['id'] == rows.at[where, 'id']).idxmax()}; remove one of the two."
        )


def _views(cells: pd.Series, path: Path) -> pd.Series:
    views = pd.to_numeric(cells, errors="coerce").astype(float)
    bad = (views.isna() & (cells.str.strip() != "")) | (views < 0)
    for where in cells.index[bad][:1]:
        raise FactsError(
            f"{path}, {where}: the s_pop {cells[where]!r} is no number of 0 or more; mend it, or "
            "leave it empty."
        )
    return views


def read_answers(
    cells: pd.Series, path: Path, *, mend: bool = True
) -> tuple[list[list[str]], dict[str, int]]:
    """The possible answers of each row, mended and once each, and what was garbled or left out.

    Rows with the same cell share one list. Raises FactsError for a cell without an answer.
    """
    found: dict[str, list[str]] = {}
    amiss: dict[str, tuple[int, int, int]] = {}
    for cell, texts in json_lists(cells, path):
        pairs = [mended(text) for text in texts]
        spelled = [text.strip(BLANK) for text in ([t for t, _ in pairs] if mend else texts)]
        found[cell] = [text for text in dict.fromkeys(spelled) if text]
        empty = spelled.count("")
        repeated = len(texts) - empty - len(found[cell])
        amiss[cell] = sum(garbled for _, garbled in pairs), repeated, empty
        if not found[cell]:
            raise FactsError(
                f"{path}, {cells.index[cells == cell][0]}: the {cells.name} hold no answer; remove "
                "the row."
            )
    sums = np.array([amiss[cell] for cell in cells]).sum(axis=0)
    names = ("garbled_answers", "repeated_answers", "empty_answers")
    return [found[cell] for cell in cells], dict(zip(names, sums.tolist(), strict=True))
