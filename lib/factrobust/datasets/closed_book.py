"""Questions that come with a passage, asked without it: the closed-book setting of paper 1.

The paper says of SQuAD, TriviaQA and HotpotQA that each is "adjusted for the closed-book setting"
(4.1.1), and no more. What is left out here is our reading of it: what cannot be answered whatever a
model knows. That a question tacitly needs its passage ("When did the war end?") no rule can tell;
the paper's next step leaves those out, which keeps what a model answers right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factrobust.datasets.hub import adapted, read_json
from factrobust.tables import Loaded, slug

COUNTS = (
    *("questions", "repeated_questions", "empty_questions", "no_answers", "needs_passage"),
    *("ambiguous_questions", "repeated_answers", "empty_answers", "yes_or_no"),
)
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


@dataclass(frozen=True)
class Question:
    """A question as its data set has it."""

    id: str
    question: str
    answers: Sequence[str]  # accepted, the canonical one first
    subject: str = ""  # what it is about, where that is told
    kind: str = ""  # the data set's own grouping

    def __post_init__(self) -> None:
        if not all(isinstance(text, str) for text in (self.id, self.question, *self.answers)):
            raise TypeError("its id, its question or an answer is no text")


def closed_book(questions: Iterable[Question], name: str, source: str) -> Loaded:
    """The questions that can be asked without a passage, as facts.

    A table `schemas.AskedFacts`, and kind (the data set's own grouping). fact_id is the data set and
    its id ("squad/56be4db0acb8001400a502ec"), relation the data set, domain its name.

    A question that occurs again is one fact with the answers of both. The counts sum up: questions
    (read) = facts + repeated_questions + left out. Left out are empty_questions, no_answers,
    needs_passage (the question speaks of its text) and ambiguous_questions (asked again with other
    answers, so that only the passage tells which). Of the answers, repeated_answers (but for case)
    and empty_answers are left out. yes_or_no is how many facts have such an answer, which a model may
    guess.
    """
    counts = dict.fromkeys(COUNTS, 0)
    same: dict[str, list[Question]] = {}
    for published in questions:
        if question := _cleaned(published, counts):
            same.setdefault(question.question.casefold(), []).append(question)
    kept = []
    for first, *others in same.values():
        if _differ(first, others):
            counts["ambiguous_questions"] += 1 + len(others)
            continue
        counts["repeated_questions"] += len(others)
        every = [answer for question in (first, *others) for answer in question.answers]
        kept.append(replace(first, answers=_distinct(every)))
    relation = slug(name)
    facts = pd.DataFrame(
        {
            "fact_id": [f"{relation}/{question.id}" for question in kept],
            "subject": [question.subject for question in kept],
            "relation": relation,
            "object": [question.answers[0] for question in kept],
            "aliases": [list(question.answers[1:]) for question in kept],
            "answer_type": "",
            "domain": name,
            "popularity": np.nan,
            "popularity_source": "",
            "source": source,
            "question": [question.question for question in kept],
            "prefix": "",
            "kind": [question.kind for question in kept],
        }
    )
    counts["yes_or_no"] = sum(q.answers[0].lower() in ("yes", "no") for q in kept)
    return Loaded(facts, counts)


def _cleaned(published: Question, counts: dict[str, int]) -> Question | None:
    """The question as it is asked, or None; what is left out is added to the counts."""
    text = " ".join(published.question.split())
    if quoted := QUOTED.fullmatch(text):
        text = quoted[1].replace('""', '"').strip()
    filled = [answer.strip() for answer in published.answers if answer.strip()]
    accepted = _distinct(filled)
    counts["questions"] += 1
    counts["empty_answers"] += len(published.answers) - len(filled)
    counts["repeated_answers"] += len(filled) - len(accepted)
    for reason, applies in (
        ("empty_questions", not text),
        ("no_answers", not accepted),
        ("needs_passage", NEEDS_PASSAGE.search(text)),
    ):
        if applies:
            counts[reason] += 1
            return None
    return replace(published, question=text, answers=accepted)


def _distinct(texts: Iterable[str]) -> list[str]:
    """The first spelling of each text, whatever the case of letters."""
    spellings: dict[str, str] = {}
    for text in texts:
        spellings.setdefault(text.casefold(), text)
    return list(spellings.values())


def _differ(first: Question, others: Sequence[Question]) -> bool:
    """Whether one of the others shares no answer with the first."""
    spelled = {slug(answer) for answer in first.answers}
    return any(spelled.isdisjoint(map(slug, other.answers)) for other in others)


def load(
    name: str,
    adapter: Callable[[Any], Iterator[Question]],
    files: Iterable[Path],
    source: str,
) -> Loaded:
    """The set `name` as facts; its adapter takes what a file holds, official or of the hub."""
    questions = (
        question
        for path in files
        for question in adapted(path, name, adapter, read_json(path, name))
    )
    return closed_book(questions, name, source)


def squad(content: Any) -> Iterator[Question]:
    """SQuAD v1.1 (Rajpurkar et al. 2016). The first annotator's answer is the object, those of the
    others are aliases; subject is the article."""
    if isinstance(content, dict):  # the official file: its articles' paragraphs hold the questions
        content = (
            row
            | {"title": article["title"], "answers": {"text": [a["text"] for a in row["answers"]]}}
            for article in content["data"]
            for paragraph in article["paragraphs"]
            for row in paragraph["qas"]
        )
    for row in content:
        subject = row["title"].replace("_", " ")
        yield Question(row["id"], row["question"], row["answers"]["text"], subject)


def trivia_qa(content: Any) -> Iterator[Question]:
    """TriviaQA (Joshi et al. 2017), unfiltered. The object is the Value; aliases are the Aliases, then
    those NormalizedAliases that differ from them by more than case (they spell "Ben & Jerry's" as "ben
    jerry s"). kind is what TriviaQA knows of the answer: WikipediaEntity, Numerical or FreeForm."""
    for published in content["Data"] if isinstance(content, dict) else content:
        row = _snake_case(published)
        answer = _snake_case(row["answer"])
        accepted = [answer["value"], *answer["aliases"], *answer["normalized_aliases"]]
        accepted = [] if answer["value"] == UNKNOWN else accepted
        yield Question(row["question_id"], row["question"], accepted, kind=answer["type"])


def _snake_case(row: dict[str, Any]) -> dict[str, Any]:
    """The official file's QuestionId is the hub's question_id."""
    return {re.sub(r"\B([A-Z])", r"_\1", key).lower(): value for key, value in row.items()}


def hotpot_qa(content: Any) -> Iterator[Question]:
    """HotpotQA (Yang et al. 2018). There is one answer and no alias. kind is "bridge" (one fact leads
    to the other) or "comparison"; many of the latter ask for yes or no: they stay, as the paper names no
    rule."""
    for row in content:
        name = row["_id"] if "_id" in row else row["id"]
        yield Question(name, row["question"], [row["answer"]], kind=row["type"])
