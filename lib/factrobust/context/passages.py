"""Passages as people have them, about facts whose truth is known, with their answers exchanged."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, islice, product
from typing import Any, NamedTuple, NoReturn

import pandas as pd

from factrobust import draws, tables
from factrobust.context.facts import Fact, Names, differ, facts_by
from factrobust.context.meter import DENIED
from factrobust.context.rules import right
from factrobust.paths import DATA, noted
from factrobust.tables import TooFewError

PASSAGES = ("true", "false", "negated", "missing")
LENGTHS = (3, 10)  # sentences of a passage
TEXTS = ("sentence", "swap_1", "swap_2", "placebo")
SENTENCES = DATA / "context" / "sentences.csv"


class Sentence(NamedTuple):
    """A sentence of a passage with {} for its answer, the answer's names, and the fact it is
    about."""

    text: str
    names: Names
    fact: Fact


Passage = list[Sentence]


def passages(
    questions: pd.DataFrame,
    pool: pd.DataFrame,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """The passages of each question, a row each of PASSAGES.

    "true" and "false" state the answer that is right, or that of another fact of the relation;
    "negated" denies such an answer and "missing" says nothing of it; around it stand one or two
    sentences about other subjects (distractors), what else is known of the subject, and sentences
    of its domain. Half of the sentences are in other words than the question
    (data/context/sentences.csv). A *slot* is where an answer to the question's relation stands.

    Columns: question_id, context (its kind), counterfactual (the passage's own answer, or ""),
    slots (for each its names in the three texts that follow), sentence (the passage), swap_1,
    swap_2 (the same, the slots' answers exchanged), placebo (the same, an answer exchanged that is
    in no slot; "" if there is none). Passages without a slot are left out.
    """
    relations = facts_by(pool, "base_id")
    subjects = facts_by(pool, "object")
    domains = facts_by(pool, "category")
    noted(SENTENCES)
    rows = []
    for question, kind in product(questions.to_dict("records"), PASSAGES):
        key = f"{seed}\n{question['question_id']}\n{kind}"
        # 1. The passage, and where its slots are.
        alike = relations[question["base_id"]]
        near = (subjects[question["object"]], domains[question["category"]])
        passage = _made(question, kind, alike, near, key)
        is_slot = [_is_slot(sentence, question) for sentence in passage]
        slots = [i for i, holds in enumerate(is_slot) if holds]
        others = [i for i, holds in enumerate(is_slot) if not holds]
        if not slots:
            continue
        # 2. The slots' answers exchanged, twice.
        versions = [passage]
        for _ in range(2):
            candidates = _drawn(alike, f"{key}\nswap")
            versions.append(_exchanged(versions, slots, candidates, question))
        # 3. An answer exchanged that is in no slot.
        placebo: Passage = []
        if others:
            place = min(others, key=lambda i: draws.hash48(key, "placebo", passage[i].text))
            candidates = _drawn(relations[passage[place].fact["base_id"]], f"{key}\nplacebo")
            placebo = _exchanged([passage], [place], candidates, question)
        row: dict[str, Any] = {"question_id": question["question_id"], "context": kind}
        row["counterfactual"] = ""
        for sentence in passage:
            if sentence.fact is question and kind != "negated":
                row["counterfactual"] = sentence.names[0]
        row["slots"] = [tuple(version[i].names for version in versions) for i in slots]
        row |= zip(TEXTS, map(join, [*versions, placebo]), strict=True)
        rows.append(row)
    return pd.DataFrame(rows)


def _made(
    question: Fact,
    kind: str,
    alike: Sequence[Fact],
    near: tuple[Sequence[Fact], Sequence[Fact]],
    key: str,
) -> Passage:
    """A passage of a kind about a question, of facts alike, of its subject, and of its domain."""
    # 1. The question's own sentence, and one or two distractors.
    differing = (
        fact
        for fact in _drawn(alike, key)
        if fact["object"] != question["object"] and differ(fact["answers"], question["answers"])
    )
    n_distractors = 1 + draws.hash48(key) % 2
    other, *distractors = [*islice(differing, 1 + n_distractors)] or _none_left(question)
    passage = []
    if kind != "missing":
        names = question["answers"] if kind == "true" else other["answers"]
        passage.append(_sentence(question, names, key, kind == "negated"))
    for fact in distractors:
        passage.append(_sentence(fact, fact["answers"], key))
    # 2. Two more facts about the subject, then facts of the domain, none that the passage tells.
    lengths = range(LENGTHS[0], LENGTHS[1] + 1)
    lots = [draws.hash48(key, i) % len(lengths) for i in range(2)]
    n = lengths[min(lots)]  # more often a small one
    about, rest = (
        _drawn([fact for fact in facts if fact["base_id"] != question["base_id"]], key)
        for facts in near
    )
    for fact in chain(about[:2], rest):
        if len(passage) >= n:
            break
        if not right(join(passage), fact["answers"]):
            passage.append(_sentence(fact, fact["answers"], key))
    return sorted(passage, key=lambda sentence: draws.hash48(key, "place", sentence.text))


def join(passage: Iterable[Sentence]) -> str:
    """The passage's text, without the last full stop."""
    texts = []
    for sentence in passage:
        text = sentence.text.replace("{}", sentence.names[0])
        if text.startswith("the "):
            text = "T" + text[1:]
        texts.append(text)
    return ". ".join(texts)


def _sentence(fact: Fact, names: Names, key: str, denied: bool = False) -> Sentence:
    """A fact's sentence with these names as its answer: the prefix, or for half of the facts other
    words."""
    text = f"{fact['prefix']} {{}}"
    if denied:
        if text.startswith("The "):
            text = "t" + text[1:]
        text = DENIED + text
    elif draws.hash48(key, fact["question_id"], "words") % 2:
        text = paraphrases().get(fact["base_id"], text)
        text = text.replace("{subject}", fact["object"]).replace("{object}", "{}")
    return Sentence(text, names, fact)


@lru_cache
def paraphrases() -> dict[str, str]:
    """A statement of each relation in other words than its question, with {subject} and
    {object}."""
    table = tables.read_csv(SENTENCES)
    return dict(zip(table["relation"], table["sentence"], strict=True))


def _is_slot(sentence: Sentence, question: Fact) -> bool:
    """Whether a sentence holds an answer to a question's relation."""
    is_alike = sentence.fact["base_id"] == question["base_id"]
    return is_alike or right(sentence.names[0], question["answers"])


def _exchanged(
    versions: Sequence[Passage],
    places: Sequence[int],
    candidates: Sequence[Fact],
    question: Fact,
) -> Passage:
    """The first of the `versions` of a passage with another answer in each of some places: that of
    the first candidate that is not right, in no version, and if there are enough in no other of
    these places."""
    changed = list(versions[0])
    taken: list[Names] = []
    for place in places:
        kept = [question["answers"], *(version[place].names for version in versions)]
        free = (fact["answers"] for fact in candidates if _differs_from_all(fact["answers"], kept))
        first = next(free, None) or _none_left(question)
        names = next(
            (names for names in chain([first], free) if _differs_from_all(names, taken)), first
        )
        changed[place] = changed[place]._replace(names=names)
        taken.append(names)
    return changed


def _none_left(question: Fact) -> NoReturn:
    raise TooFewError(
        f"No other answer is left for the passage of {question['question']!r}: give more facts "
        "of its relation, with different answers."
    )


def _differs_from_all(names: Names, others: Iterable[Names]) -> bool:
    return all(differ(names, other) for other in others)


def _drawn(facts: Iterable[Fact], key: str) -> list[Fact]:
    return sorted(facts, key=lambda fact: draws.hash48(key, fact["question_id"]))
