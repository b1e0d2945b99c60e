"""A copy meter: does a model read a sentence, or repeat a string that stands before the question?

A known fact is asked behind sentences that differ in one thing each. They state a false answer in
the question's words or in others; the answer stands last or first; it is asserted or denied; and
the sentence is about the subject, about a neighbour of the relation whose answer it is, or says
nothing at all, since its words of meaning are none ("The blorp of Kenya is Lima"). The last is the
placebo:

    copying = following of the nonsense twin        reading = following minus copying

An answer follows if it says what the sentence states (`rules.right`). Beside these stand true
sentences, and a filler: as many words about the subject, and no answer.
"""

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from factrobust import draws, tables
from factrobust.context import facts, rules
from factrobust.intervals import Array, ratio_of_sums
from factrobust.paths import DATA, noted

SENTENCES = DATA / "context" / "meter.csv"
WORDS = ("question", "other")
PLACES = ("last", "first")
ABOUT = ("subject", "neighbour", "nonsense")
MODES = ("asserted", "denied", "true", "filler")
DENIED = "It is not true that "
FACTORS = ["words", "place", "mode", "about"]
MARKED = re.compile(r"<([^|>]*)\|([^|>]*)>")  # <capital|blorp>: a word of meaning, and its nonsense
FILLER = {  # by the number of words after the subject
    1: "matters",
    2: "is mentioned",
    3: "is mentioned here",
    4: "is mentioned here again",
    5: "is mentioned here once again",
    6: "is mentioned here once again today",
    7: "is mentioned in this text once again",
    8: "is mentioned in this short text once again",
    9: "is mentioned in this short text once again today",
    10: "is mentioned here and then again in this short text",
    11: "is mentioned here and then once again in this short text",
    12: "is mentioned here and then once again in this rather short text",
}
# What may be changed of a false sentence: the answers compared, and those where it is.
CHANGES = {
    "in other words": ("mode == 'asserted' and about == 'subject'", "words == 'other'"),
    "the answer first": ("mode == 'asserted' and about == 'subject'", "place == 'first'"),
    "denied": (
        "mode in ['asserted', 'denied'] and about == 'subject' and words == 'question'",
        "mode == 'denied'",
    ),
    "denied, against other words": (
        "about == 'subject' and (mode == 'denied' and words == 'question'"
        " or mode == 'asserted' and words == 'other')",
        "mode == 'denied'",
    ),
    "about a neighbour": ("mode == 'asserted' and about != 'nonsense'", "about == 'neighbour'"),
    "nonsense": ("mode == 'asserted' and about != 'neighbour'", "about == 'nonsense'"),
}
Templates = Mapping[tuple[str, str, str], str]  # by relation, words and place


def load_sentences() -> Templates:
    """The sentences of data/context/meter.csv, with {subject}, {object} and <word|nonsense>."""
    table = tables.read_csv(noted(SENTENCES))
    keys = table[["relation", "words", "place"]].itertuples(index=False, name=None)
    return dict(zip(keys, table["sentence"], strict=True))


def written(
    template: str,
    subject: str,
    answer: str,
    *,
    nonsense: bool = False,
    denied: bool = False,
) -> str:
    """A sentence with its subject and answer, a capital letter, and no full stop."""
    text = MARKED.sub(r"\2" if nonsense else r"\1", template)
    if denied and not text.startswith("{"):  # a name keeps its capital
        text = text[:1].lower() + text[1:]
    text = text.replace("{subject}", subject).replace("{object}", answer)
    return DENIED + text if denied else text[:1].upper() + text[1:]


def filler(sentence: str, subject: str) -> str:
    """As many words as a sentence about a subject has, without an answer."""
    n = len(sentence.split()) - len(subject.split())
    text = f"{subject} {FILLER[min(max(n, 1), max(FILLER))]}"
    return text[:1].upper() + text[1:]


def contexts(
    questions: pd.DataFrame,
    pool: pd.DataFrame,
    templates: Templates,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """The sentences of each question, a row each: question_id, FACTORS, sentence, stated (the
    answer in it; in "filler" the false answer, which is not there), names (its accepted spellings).

    Each question has both WORDS. A lot draws the place of the answer in each of them, among those
    that its relation has `templates` for, so that all other factors are compared at one place. The
    false answer is that of another fact of the relation in the `pool`, the first by lot of which
    neither accepts the other's answer. Questions whose relation has no sentence, or
    no other answer, are left out. ValueError if all are.
    """
    relations = {relation for relation, *_ in templates}
    asked = questions[questions["base_id"].isin(relations)]
    if len(questions) and asked.empty:
        raise ValueError(
            f"none of these relations has a sentence in {SENTENCES}; write some there for "
            f"{questions['base_id'].iloc[0]!r}, in the question's words and in others"
        )
    alike = facts.facts_by(pool, "base_id")
    rows = []
    for question in asked.to_dict("records"):
        relation = question["base_id"]
        other = facts.another(question, alike[relation], seed)
        if other is None:
            continue
        for words in WORDS:
            places = [place for place in PLACES if (relation, words, place) in templates]
            lot = draws.hash48(seed, question["question_id"], words, "place")
            place = places[lot % len(places)]
            cell = (question["question_id"], words, place)
            for row in _sentences(templates[relation, words, place], question, other):
                rows.append((*cell, *row))
    columns = ["question_id", *FACTORS, "sentence", "stated", "names"]
    return pd.DataFrame(rows, columns=columns)


def _sentences(template: str, question: facts.Fact, other: facts.Fact) -> list[tuple]:
    """The sentences of a template: mode, about, sentence, stated and names of each."""
    subject = question["object"]
    true = question["answers"]
    false = other["answers"]
    rows: list[tuple] = []
    for about in ABOUT:
        for mode in ("asserted", "denied"):
            sentence = written(
                template,
                other["object"] if about == "neighbour" else subject,
                false[0],
                nonsense=about == "nonsense",
                denied=mode == "denied",
            )
            rows.append((mode, about, sentence, false[0], false))
    rows.append(("true", "subject", written(template, subject, true[0]), true[0], true))
    without = filler(written(template, subject, false[0]), subject)
    rows.append(("filler", "subject", without, false[0], false))
    return rows


def marked(answers: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """Answers to `contexts` with what they say, 1 or 0: followed (what the sentence states) and
    right (an answer of the question)."""
    accepted = questions.set_index("question_id")["answers"].loc[answers["question_id"]]
    follows = map(rules.right, answers["text"], answers["names"])
    rights = map(rules.right, answers["text"], accepted)
    return answers.assign(
        followed=list(map(float, follows)),
        right=list(map(float, rights)),
    )


def following_parts(rows: pd.DataFrame) -> pd.DataFrame:
    """What following is made of, a row a model, fact, words and mode of `marked` rows that state a
    false answer: following (of the sentence about the subject), copying (of its nonsense twin),
    reading (their difference), and neighbour (of the sentence about a neighbour)."""
    false = rows[rows["mode"].isin(["asserted", "denied"])]
    keys = ["model", "question_id", "base_id", "words", "place", "mode"]
    wide = false.pivot(index=keys, columns="about", values="followed").reset_index()
    wide = wide.rename(columns={"subject": "following", "nonsense": "copying"})
    wide["reading"] = wide["following"] - wide["copying"]
    return wide.rename_axis(columns=None)


def contrasts(rows: pd.DataFrame) -> pd.DataFrame:
    """The `marked` rows that one of CHANGES is told by, a row an answer and `change`, with `on` (1:
    changed, 0: not)."""
    parts = {}
    for change, (compared, changed) in CHANGES.items():
        part = rows.query(compared)
        on: Any = part.eval(changed)
        parts[change] = part.assign(on=on.astype(float))
    return tables.stacked(parts, "change")


def difference(weights: Array, values: Array, on: Array) -> Array:
    """The mean of `values` [row] where `on` is 1, minus that where it is 0, in each resample."""
    without = 1 - on
    changed = ratio_of_sums(weights, values * on, on)
    return changed - ratio_of_sums(weights, values * without, without)
