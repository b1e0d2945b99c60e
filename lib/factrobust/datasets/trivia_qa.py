"""TriviaQA (Joshi et al. 2017): trivia questions with the aliases of their answers, closed-book."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from factrobust.datasets.closed_book import MAX_WORDS, Question, check_split, closed_book
from factrobust.datasets.formats import field, is_parquet, read_json, read_records, texts
from factrobust.datasets.hub import located

NAME = "TriviaQA"
HUB = "mandarjoshi/trivia_qa"
REVISION = "0f7faf33a3908546c6fd5b73a660e0f8ff173c2f"
UNKNOWN = "<unk>"  # the hub's value where the answers of the test split should stand


def load_trivia_qa(
    path: str | Path | None = None,
    *,
    split: str = "validation",
    revision: str = REVISION,
    max_words: int | None = MAX_WORDS,
) -> pd.DataFrame:
    """Return TriviaQA's unfiltered questions as facts: see `closed_book.closed_book`.

    `path` is an official file (unfiltered-web-dev.json: 11,313 questions; those of its reading
    comprehension part have the same form), which is read whatever the split, or a parquet copy.
    None takes the hub's mandarjoshi/trivia_qa ("unfiltered.nocontext"), or its cache; this project's
    tests cannot reach the hub: the download is untried.

    The object is the Value; aliases are the Aliases, then those NormalizedAliases that differ from
    them by more than case (they spell "Ben & Jerry's" as "ben jerry s"). kind is what TriviaQA knows
    of the answer: WikipediaEntity, Numerical or FreeForm. Raises FactsError with place and remedy
    for a bad file, ValueError for another split, ConnectionError when the hub's copy cannot be
    fetched.
    """
    check_split(split)
    files, source = located(path, HUB, revision, f"unfiltered.nocontext/{split}-*.parquet")
    questions = (q for file in files for q in (_copy if is_parquet(file) else _official)(file))
    return closed_book(questions, NAME, source, max_words=max_words)


def _official(path: Path) -> Iterator[Question]:
    data = field(read_json(path, NAME), "Data", list, f"{path}")
    for number, record in enumerate(data, 1):
        where = f"{path}, record {number}"
        answer = field(record, "Answer", dict, where)
        yield Question(
            field(record, "QuestionId", str, where),
            field(record, "Question", str, where),
            [
                field(answer, "Value", str, where),
                *texts(answer, "Aliases", where),
                *texts(answer, "NormalizedAliases", where),
            ],
            kind=field(answer, "Type", str, where),
        )


def _copy(path: Path) -> Iterator[Question]:
    rows = read_records(path, NAME, ("question_id", "question", "answer"))
    for number, row in enumerate(rows, 1):
        where = f"{path}, row {number}"
        answer = field(row, "answer", dict, where)
        value = field(answer, "value", str, where)
        aliases = texts(answer, "aliases", where) + texts(answer, "normalized_aliases", where)
        yield Question(
            field(row, "question_id", str, where),
            field(row, "question", str, where),
            [] if value == UNKNOWN else [value, *aliases],
            kind=field(answer, "type", str, where),
        )
