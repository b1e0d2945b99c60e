"""Questions that come with a passage, asked without it: the closed-book setting of paper 1.

The paper says of SQuAD, TriviaQA and HotpotQA that each is "adjusted for the closed-book setting"
(4.1.1), and no more. What is left out here is our reading of it: what cannot be answered whatever a
model knows. No rule can tell that a question tacitly needs its passage ("When did the war end?").
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from factrobust import schemas
from factrobust.tables import Loaded, slug

UNKNOWN = "<unk>"  # the hub's value where the answers of TriviaQA's test split should stand
# What only the reader of a passage can say. "The passage of the bill", "the article 'J'accuse'" and
# "the text that Luther translated" stay.
NEEDS_PASSAGE = re.compile(
    r"""\b(the|this)\ (passage|paragraph|text|article|excerpt)('s)?\b
          (?!\ *(of|on|about|that|which|who|by|titled|entitled|called|[\d"'“‘]))
      | \baccording\ to\ (the|this)\ (author|writer|narrator|section|table|chart|graph)\b(?!\ of\b)
      | \b(mentioned|listed|described|discussed|stated|shown|named)\ (above|below|earlier|here)\b
      | \b(above|afore)-?mentioned\b""",
    re.VERBOSE | re.IGNORECASE,
)
QUOTED = re.compile(r'"((?:[^"]|"")*)"')  # as a cell of a CSV; some of TriviaQA's questions are


class Question(NamedTuple):
    """A question as its data set has it."""

    id: str
    question: str
    answers: Sequence[str]  # accepted, the canonical one first
    subject: str = ""  # what it is about, where that is told


def closed_book(questions: Iterable[Question], name: str, source: str) -> Loaded:
    """The questions that can be asked without a passage, as facts: a table `schemas.AskedFacts`.

    fact_id is the data set and its id ("squad/56be4db0acb8001400a502ec"), domain its name, relation
    the article that a question is about ("squad/normans"), or where none is told the question
    alone.

    A question that occurs again is one fact with the answers of both. The counts sum up: questions
    (read) = facts + repeated_questions + left out. Left out are empty_questions, no_answers,
    needs_passage (the question speaks of its text) and ambiguous_questions (asked again with other
    answers, so that only the passage tells which).
    """
    rows = pd.DataFrame(questions, columns=Question._fields)
    rows["question"] = rows["question"].map(_plain)
    answers = rows["answers"].map(_distinct)
    reasons = {
        "empty_questions": rows["question"] == "",
        "no_answers": answers.map(len) == 0,
        "needs_passage": rows["question"].map(NEEDS_PASSAGE.search).notna(),
    }
    reason = np.select([*reasons.values()], [*reasons], "")
    key = rows["question"].str.casefold()[reason == ""]
    same = answers.groupby(key, sort=False)
    clear = key[~key.map(same.agg(_differ)).astype(bool)]
    first = clear.drop_duplicates()
    counts = {
        "questions": len(rows),
        **{name: int((reason == name).sum()) for name in reasons},
        "ambiguous_questions": len(key) - len(clear),
        "repeated_questions": len(clear) - len(first),
    }
    every = first.map(same.sum()).map(_distinct)
    facts = rows.loc[first.index]
    about = facts["subject"].map(slug)
    facts = facts.assign(
        fact_id=slug(name) + "/" + facts["id"],
        relation=slug(name) + "/" + about.where(about != "", facts["id"]),
        object=every.str[0],
        aliases=every.str[1:],
        domain=name,
        popularity=np.nan,
        source=source,
        **dict.fromkeys(("answer_type", "popularity_source", "prefix"), ""),
    )
    return Loaded(facts[[*schemas.AskedFacts.columns]].reset_index(drop=True), counts)


def _plain(question: str) -> str:
    """A question with single spaces, without the quotes that it has as a cell of a CSV."""
    text = " ".join(question.split())
    quoted = QUOTED.fullmatch(text)
    return quoted[1].replace('""', '"').strip() if quoted else text


def _distinct(texts: Iterable[str]) -> list[str]:
    """The first spelling of each text that is not blank, whatever the case of letters."""
    spellings: dict[str, str] = {}
    for text in filter(None, (text.strip() for text in texts)):
        spellings.setdefault(text.casefold(), text)
    return list(spellings.values())


def _differ(answers: pd.Series) -> bool:
    """Whether one of some questions shares no answer with the first."""
    first, *others = ({slug(text) for text in texts} for texts in answers)
    return any(first.isdisjoint(other) for other in others)


def read_json(path: Path) -> Any:
    """What a JSON file holds, or a list of the rows of a parquet file."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_dict("records")
    return json.loads(path.read_text(encoding="utf-8-sig"))


def load_closed_book(
    name: str,
    adapter: Callable[[Any], Iterator[Question]],
    files: Iterable[Path],
    source: str,
) -> Loaded:
    """The set `name` as facts; its adapter takes what a file holds, official or of the hub."""
    return closed_book(
        [q for path in files for q in adapter(read_json(path))],
        name,
        source,
    )


def squad(content: Any) -> Iterator[Question]:
    """SQuAD v1.1 (Rajpurkar et al. 2016). The first annotator's answer is the object, those of the
    others are aliases; subject is the article."""
    if isinstance(content, dict):  # the official file: its articles' paragraphs hold the questions
        content = _rows_of_articles(content["data"])
    for row in content:
        answers = row["answers"]
        if isinstance(answers, dict):
            texts = answers["text"]
        else:
            texts = [answer["text"] for answer in answers]
        subject = row["title"].replace("_", " ")
        yield Question(row["id"], row["question"], texts, subject)


def _rows_of_articles(articles: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The questions of SQuAD's official file, with the titles of their articles."""
    for article in articles:
        for paragraph in article["paragraphs"]:
            for row in paragraph["qas"]:
                yield row | {"title": article["title"]}


def trivia_qa(content: Any) -> Iterator[Question]:
    """TriviaQA (Joshi et al. 2017), unfiltered. The object is the Value; aliases are the Aliases,
    then those NormalizedAliases that differ from them by more than case."""
    for published in content["Data"] if isinstance(content, dict) else content:
        row = _snake_case(published)
        answer = _snake_case(row["answer"])
        accepted = [answer["value"], *answer["aliases"], *answer["normalized_aliases"]]
        accepted = [] if answer["value"] == UNKNOWN else accepted
        yield Question(row["question_id"], row["question"], accepted)


def _snake_case(row: dict[str, Any]) -> dict[str, Any]:
    """The official file's QuestionId is the hub's question_id."""
    return {re.sub(r"\B([A-Z])", r"_\1", key).lower(): value for key, value in row.items()}


def hotpot_qa(content: Any) -> Iterator[Question]:
    """HotpotQA (Yang et al. 2018). There is one answer and no alias. Many questions that compare
    ask for yes or no: they stay, as the paper names no rule."""
    for row in content:
        name = row["_id"] if "_id" in row else row["id"]
        yield Question(name, row["question"], [row["answer"]])
