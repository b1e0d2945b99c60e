"""HotpotQA (Yang et al. 2018): questions that join two facts, closed-book."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from factrobust.datasets.closed_book import MAX_WORDS, Question, check_split, closed_book
from factrobust.datasets.formats import field, is_parquet, read_json, read_records
from factrobust.datasets.hub import located
from factrobust.tables import FactsError

NAME = "HotpotQA"
HUB = "hotpotqa/hotpot_qa"
REVISION = "1908d6afbbead072334abe2965f91bd2709910ab"


def load_hotpot_qa(
    path: str | Path | None = None,
    *,
    split: str = "validation",
    revision: str = REVISION,
    max_words: int | None = MAX_WORDS,
) -> pd.DataFrame:
    """Return HotpotQA's questions as facts, without their paragraphs: see `closed_book.closed_book`.

    `path` is an official file (hotpot_train_v1.1.json: 90,447 questions, hotpot_dev_distractor_v1.json
    or hotpot_dev_fullwiki_v1.json: the same 7,405), which is read whatever the split, or a parquet
    copy. None takes the hub's hotpotqa/hotpot_qa, or its cache; this project's tests cannot reach
    the hub: the download is untried.

    There is one answer and no alias. kind is "bridge" (one fact leads to the other) or "comparison";
    many of the latter ask for yes or no, which a model may guess: they stay, as the paper names no
    rule, and attrs["counts"]["yes_or_no"] tells how many they are. Raises FactsError with place and
    remedy for a bad file, ValueError for another split, ConnectionError when the hub's copy cannot
    be fetched.
    """
    check_split(split)
    files, source = located(path, HUB, revision, f"distractor/{split}-*.parquet")
    questions = (q for file in files for q in (_copy if is_parquet(file) else _official)(file))
    facts = closed_book(questions, NAME, source, max_words=max_words)
    facts.attrs["counts"]["yes_or_no"] = int(facts["object"].str.lower().isin(["yes", "no"]).sum())
    return facts


def _official(path: Path) -> Iterator[Question]:
    data = read_json(path, NAME)
    if not isinstance(data, list):
        raise FactsError(f"{path} holds no list of records; give an official file of {NAME}.")
    for number, record in enumerate(data, 1):
        yield _question(record, "_id", f"{path}, record {number}")


def _copy(path: Path) -> Iterator[Question]:
    rows = read_records(path, NAME, ("id", "question", "answer", "type"))
    for number, row in enumerate(rows, 1):
        yield _question(row, "id", f"{path}, row {number}")


def _question(record: Any, key: str, where: str) -> Question:
    texts = (field(record, name, str, where) for name in (key, "question", "answer", "type"))
    name, question, answer, kind = texts
    return Question(name, question, [answer], kind=kind)
