"""SQuAD v1.1 (Rajpurkar et al. 2016): questions on Wikipedia's articles, closed-book."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from factrobust.datasets.closed_book import MAX_WORDS, Question, check_split, closed_book
from factrobust.datasets.formats import field, is_parquet, read_json, read_records, texts
from factrobust.datasets.hub import located
from factrobust.tables import FactsError

NAME = "SQuAD"
HUB = "rajpurkar/squad"
REVISION = "7b6d24c440a36b6815f21b70d25016731768db1f"


def load_squad(
    path: str | Path | None = None,
    *,
    split: str = "validation",
    revision: str = REVISION,
    max_words: int | None = MAX_WORDS,
) -> pd.DataFrame:
    """Return SQuAD's questions as facts, without their passages: see `closed_book.closed_book`.

    `path` is an official file (train-v1.1.json: 87,599 questions, dev-v1.1.json: 10,570), which is
    read whatever the split, or a parquet copy. None takes the hub's rajpurkar/squad, or its cache;
    this project's tests cannot reach the hub: the download is untried.

    The first annotator's answer is the object, those of the others are aliases; subject is the
    article. Raises FactsError with place and remedy for a bad file, ValueError for another split,
    ConnectionError when the hub's copy cannot be fetched.
    """
    check_split(split)
    files, source = located(path, HUB, revision, f"plain_text/{split}-*.parquet")
    questions = (q for file in files for q in (_copy if is_parquet(file) else _official)(file))
    return closed_book(questions, NAME, source, max_words=max_words)


def _official(path: Path) -> Iterator[Question]:
    data = read_json(path, NAME)
    articles = field(data, "data", list, f"{path}")
    if str(data.get("version")).startswith("v2"):
        raise FactsError(f"{path} is SQuAD 2.0; give a file of SQuAD 1.1, such as dev-v1.1.json.")
    for article in articles:
        title = field(article, "title", str, f"{path}, an article")
        part = f"{path}, article {title!r}"
        for paragraph in field(article, "paragraphs", list, part):
            for asked in field(paragraph, "qas", list, part):
                name = field(asked, "id", str, part)
                where = f"{part}, question {name}"
                answers = field(asked, "answers", list, where)
                yield Question(
                    name,
                    field(asked, "question", str, where),
                    [field(answer, "text", str, where) for answer in answers],
                    subject=title.replace("_", " "),
                )


def _copy(path: Path) -> Iterator[Question]:
    rows = read_records(path, NAME, ("id", "title", "question", "answers"))
    for number, row in enumerate(rows, 1):
        where = f"{path}, row {number}"
        yield Question(
            field(row, "id", str, where),
            field(row, "question", str, where),
            texts(field(row, "answers", dict, where), "text", where),
            subject=field(row, "title", str, where).replace("_", " "),
        )
