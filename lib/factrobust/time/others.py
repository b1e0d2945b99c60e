"""Part 2, beyond the paper: the wrong names and the wrong subjects that a fact is set beside.

Both are of the fact's relation, and drawn by a hash of the seed, the fact and the name, so that a draw
does not depend on the facts' order. Names that differ in case, accents or marks alone are the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from factrobust.draws import hash64
from factrobust.text import normalise

WORDING = ["question", "prefix"]
Spellings = dict[str, set[str]]  # of an object, or of all objects of a subject


def other_objects(facts: pd.DataFrame, n: int, *, seed: int = 0) -> pd.DataFrame:
    """`schemas.TemporalFacts` with a column `others`: n objects of other facts of the relation, or
    fewer. Never one that the fact's subject has in this relation, nor its alias."""
    rows = facts.to_dict("records")
    owned = _owned(rows)
    spelled: dict[str, Spellings] = defaultdict(lambda: defaultdict(set))
    for fact in rows:
        spelled[fact["relation"]][fact["object"]] |= _names(fact)
    drawn = []
    for fact in rows:
        right = owned[fact["relation"]][fact["subject"]]
        names = spelled[fact["relation"]].items()
        free = [name for name, spellings in names if not spellings & right]
        drawn.append(_by_lot(free, n, seed, fact["fact_id"]))
    return facts.assign(others=pd.Series(drawn, index=facts.index, dtype=object))


def other_subjects(facts: pd.DataFrame, n: int, *, seed: int = 0) -> pd.DataFrame:
    """Facts with `others` and their wording, with two more columns: `other_subjects`, n other subjects
    of the relation (or fewer), and `other_wording`, the question and prefix of each. None of them has
    the fact's object or one of its `others` in this relation, under no alias."""
    rows = facts.to_dict("records")
    owned = _owned(rows)
    wording: dict[tuple[str, str], tuple[str, ...]] = {}
    for fact in rows:
        asked = tuple(fact[column] for column in WORDING)
        wording.setdefault((fact["relation"], fact["subject"]), asked)
    drawn, questions = [], []
    for fact in rows:
        names = _names(fact) | set(map(normalise, fact["others"]))
        subjects = owned[fact["relation"]].items()
        free = [
            subject
            for subject, objects in subjects
            if subject != fact["subject"] and not names & objects
        ]
        chosen = _by_lot(free, n, seed, fact["fact_id"])
        drawn.append(chosen)
        questions.append([wording[fact["relation"], subject] for subject in chosen])
    return facts.assign(
        other_subjects=pd.Series(drawn, index=facts.index, dtype=object),
        other_wording=pd.Series(questions, index=facts.index, dtype=object),
    )


def of_all_subjects(facts: pd.DataFrame) -> pd.DataFrame:
    """Each fact with the question of its own subject (`asked_of` 0) and with those of its
    `other_subjects` (1, 2, ...): a row a fact and subject."""
    parts = [facts.assign(asked_of=0)]
    for place in range(int(facts["other_subjects"].map(len).max())):
        part = facts[facts["other_subjects"].map(len) > place]
        wording = part["other_wording"].str[place]
        asked = {column: wording.str[k] for k, column in enumerate(WORDING)}
        parts.append(part.assign(asked_of=place + 1, **asked))
    return pd.concat(parts, ignore_index=True)


def _names(fact: Mapping[Any, Any]) -> set[str]:
    """A fact's object in every spelling."""
    return {normalise(name) for name in (fact["object"], *fact["aliases"])}


def _owned(rows: Sequence[Mapping[Any, Any]]) -> dict[str, Spellings]:
    """The objects of each relation and subject, in every spelling."""
    owned: dict[str, Spellings] = defaultdict(lambda: defaultdict(set))
    for fact in rows:
        owned[fact["relation"]][fact["subject"]] |= _names(fact)
    return owned


def _by_lot(names: Sequence[str], n: int, seed: int, fact: str) -> list[str]:
    return sorted(names, key=lambda name: hash64(f"{seed}/{fact}/{name}"))[:n]
