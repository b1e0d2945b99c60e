"""Questions that come with a passage, asked without it: the closed-book setting of paper 1.

The paper says of SQuAD, TriviaQA and HotpotQA that each is "adjusted for the closed-book setting"
(4.1.1), and no more. What is left out here is our reading of it: what cannot be answered, or not in
the five tokens that the paper allows, whatever a model knows. That a question tacitly needs its
passage ("When did the war end?") no rule can tell; the paper's next step leaves those out, which
keeps what a model answers right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from factrobust.datasets.facts import answers
from factrobust.tables import FactsError, slug

COUNTS = (
    *("questions", "kept", "repeated_questions", "empty_questions", "no_answers"),
    *("needs_passage", "ambiguous_questions", "long_answers", "repeated_answers", "empty_answers"),
)
SPLITS = ("train", "validation")
# Paper 1 lets a model give five tokens (4.1.1), and a token holds at most one word.
MAX_WORDS = 5
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
    kind: str = ""  # the data set's own grouping


def check_split(split: str) -> None:
    """Raise ValueError for a split that is none of train and validation."""
    if split not in SPLITS:
        raise ValueError(f"There is no split {split!r}: ask for 'train' or 'validation'.")


def closed_book(
    questions: Iterable[Question],
    name: str,
    source: str,
    *,
    max_words: int | None = MAX_WORDS,
) -> pd.DataFrame:
    """The questions that can be asked without a passage, as facts.

    Columns: those of `load_facts`, then question, prefix (empty) and kind (the data set's own
    grouping). fact_id is the data set and its id ("squad/56be4db0acb8001400a502ec"), relation the
    data set, domain its name; answer_type is empty and popularity NaN: not known.

    A question that occurs again is one fact with the answers of both. attrs["counts"] sums up:
    questions (read) = kept + repeated_questions + left out. Left out are empty_questions,
    no_answers, needs_passage (the question speaks of its text), ambiguous_questions (asked again
    with other answers, so that only the passage tells which) and long_answers (none of at most
    `max_words` words; None keeps them). Of the answers, repeated_answers (but for case) and
    empty_answers are left out. Raises FactsError for two questions of one id, or if none is left.
    """
    counts = dict.fromkeys(COUNTS, 0)
    same: dict[str, list[Question]] = {}
    for given in questions:
        if asked := _asked(given, counts):
            same.setdefault(asked.question.casefold(), []).append(asked)
    kept = []
    for first, *others in same.values():
        if others and _differ(first, others):
            counts["ambiguous_questions"] += 1 + len(others)
            continue
        counts["repeated_questions"] += len(others)
        every = [answer for asked in (first, *others) for answer in asked.answers]
        kept.append(first._replace(answers=_distinct(every)))
    facts, counts["long_answers"] = short_answers(_facts(kept, name, source), max_words)
    counts["kept"] = len(facts)
    if facts.empty:
        said = ", ".join(f"{n} {what}" for what, n in counts.items() if n or what == "questions")
        raise FactsError(f"{source}: no question can be asked closed-book ({said}); give others.")
    facts.attrs["counts"] = counts
    return facts


def _differ(first: Question, others: Sequence[Question]) -> bool:
    """Whether one of the others shares no answer with the first."""
    spelled = {slug(answer) for answer in first.answers}
    return any(spelled.isdisjoint(map(slug, other.answers)) for other in others)


def _asked(given: Question, counts: dict[str, int]) -> Question | None:
    """The question as it is asked, or None; what is left out is added to the counts."""
    text = " ".join(given.question.split())
    if quoted := QUOTED.fullmatch(text):
        text = quoted[1].replace('""', '"').strip()
    filled = [answer.strip() for answer in given.answers if answer.strip()]
    accepted = _distinct(filled)
    counts["questions"] += 1
    counts["empty_answers"] += len(given.answers) - len(filled)
    counts["repeated_answers"] += len(filled) - len(accepted)
    for reason, applies in (
        ("empty_questions", not text),
        ("no_answers", not accepted),
        ("needs_passage", NEEDS_PASSAGE.search(text)),
    ):
        if applies:
            counts[reason] += 1
            return None
    return given._replace(question=text, answers=accepted)


def _distinct(texts: Iterable[str]) -> list[str]:
    """The first spelling of each text, whatever the case of letters."""
    spellings: dict[str, str] = {}
    for text in texts:
        spellings.setdefault(text.casefold(), text)
    return list(spellings.values())


def _facts(questions: Sequence[Question], name: str, source: str) -> pd.DataFrame:
    relation = slug(name)
    facts = pd.DataFrame(
        {
            "fact_id": [f"{relation}/{asked.id}" for asked in questions],
            "subject": [asked.subject for asked in questions],
            "relation": relation,
            "object": [asked.answers[0] for asked in questions],
            "aliases": [list(asked.answers[1:]) for asked in questions],
            "answer_type": "",
            "domain": name,
            "popularity": np.nan,
            "popularity_source": "",
            "source": source,
            "question": [asked.question for asked in questions],
            "prefix": "",
            "kind": [asked.kind for asked in questions],
        }
    )
    for fact_id in facts.loc[facts["fact_id"].duplicated(), "fact_id"][:1]:
        raise FactsError(
            f"{source}: two questions have the id of {fact_id}; remove one of the two."
        )
    return facts


def short_answers(facts: pd.DataFrame, max_words: int | None) -> tuple[pd.DataFrame, int]:
    """The facts with an accepted answer of at most `max_words` words, and how many have none."""
    if max_words is None:
        return facts, 0
    short = [min(len(a.split()) for a in accepted) <= max_words for accepted in answers(facts)]
    return facts[short].reset_index(drop=True), len(facts) - sum(short)
