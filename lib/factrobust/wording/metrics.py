"""Part 3's tables: which answers are right, how alike they are, what may predict it, and which
wording breaks which fact.

The texts of a group are a model's answers to a question and its paraphrases (SCons, 3.3.2), or its
samples to one question (Cert, 4.1.3).
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain, combinations

import numpy as np
import pandas as pd

from factrobust.intervals import correlations, estimates
from factrobust.tables import stacked
from factrobust.text import contains, normalise

KEY = ["model", "group_id"]
BEFORE = frozenset(("new", "north", "south", "east", "west", "equatorial"))  # "New Mexico"


def has_substring(text: str, answers: Sequence[str]) -> bool:
    """The paper's rule (3.3.1), which is PopQA's: an accepted answer, also in lower case or
    capitalised, is somewhere in the text, inside words too. Empty answers are passed over."""
    accepted = [answer for answer in map(str.strip, answers) if answer]
    forms = [(answer, answer.lower(), answer.capitalize()) for answer in accepted]
    return any(form in text for form in chain.from_iterable(forms))


def stated(
    text: str,
    answers: Sequence[str],
    question: str = "",
    names: Collection[str] = (),
) -> bool:
    """Whether a text states an accepted answer, as whole words after normalisation, and not as a
    part of something longer: of `names` (normalised; "Equatorial Guinea"), an answer after a word
    of BEFORE ("New Mexico"), words of the `question` in this order. A name may have an s."""
    plurals = [f"{name}s" for name in answers if name != name.lower()]
    accepted = [*answers, *plurals]
    if not contains(text, accepted):
        return False
    words = normalise(text).split()
    right = set(map(normalise, accepted))
    question = f" {normalise(question)} "
    # Every span of words, by its first word and the one behind its last.
    places = combinations(range(len(words) + 1), 2)
    spans = {(start, end): " ".join(words[start:end]) for start, end in places}

    def is_longer(start: int, end: int) -> bool:
        span = spans[start, end]
        is_direction = words[start] in BEFORE and spans.get((start + 1, end)) in right
        return span not in right and (span in names or f" {span} " in question or is_direction)

    longer = [place for place in spans if is_longer(*place)]
    found = [place for place, span in spans.items() if span in right]
    return any(not any(a <= start and end <= b for a, b in longer) for start, end in found)


def mark_by_rules(
    responses: pd.DataFrame,
    questions: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Greedy answers with correct (`stated`) and substring (`has_substring`):
    `schemas.MarkedResponses`. Longer names are the relation's accepted answers with a capital, in
    `questions` (or `responses`): "punk rock" is rock, "American football" is not football."""
    known = responses if questions is None else questions
    answers = known[["relation", "answers"]].explode("answers").dropna()
    is_proper = answers["answers"] != answers["answers"].str.lower()
    proper = answers[is_proper].drop_duplicates()
    names = proper["answers"].map(normalise).groupby(proper["relation"]).agg(frozenset)
    correct = []
    substring = []
    columns = responses[["text", "answers", "question", "relation"]]
    for text, accepted, question, relation in columns.itertuples(index=False):
        correct.append(stated(text, accepted, question, names.get(relation, ())))
        substring.append(has_substring(text, accepted))
    return responses.assign(correct=correct, substring=substring)


def commonest_answer(questions: pd.DataFrame) -> pd.DataFrame:
    """What a model that knows nothing but answers would say: to each question the answer that is
    accepted for most *other* questions of its relation. `correct`: whether it is accepted here,
    too. A row a question, in their order; ties go to the answer that stands first."""
    correct = {}
    for _, part in questions.groupby("relation"):
        accepted = part["answers"].map(lambda answers: Counter({*map(normalise, answers)}))
        counts = Counter[str]()
        for answers in accepted:
            counts.update(sorted(answers))
        for at, answers in accepted.items():
            others = counts - answers
            correct[at] = max(others, key=others.__getitem__, default="") in answers
    return questions.assign(correct=pd.Series(correct))


def relation_correlations(
    rows: pd.DataFrame,
    measures: Sequence[str],
    *,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """Pearson's r of `measures` with `correct`: model, level, measure, r, low, high, n. Levels are
    "across relations" (of relations' means) and "within relations" (of questions, minus their
    relation's means, with whole relations drawn)."""
    by = ["model", "measure"]
    both = ["value", "correct"]
    rows = rows.astype({"correct": float})
    long = rows.melt(["model", "relation", "correct"], measures, "measure")
    relations = long.groupby([*by, "relation"])[both]
    means = relations.mean().reset_index()
    inside = long.assign(**(long[both] - relations.transform("mean")))
    across = correlations(means, by, "value", "correct", n_boot=n_boot)
    within = correlations(inside, by, "value", "correct", "relation", n_boot=n_boot)
    return stacked({"across relations": across, "within relations": within}, "level")


# Relations of PopQA whose right answers are people.
OF_PEOPLE = frozenset(
    ("author", "composer", "director", "father", "mother", "producer", "screenwriter")
)


def given_person(rows: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """How `measures` go with `correct` across relations, beside a rival that needs no answer: is
    the relation one of OF_PEOPLE? Rows are questions. A row a model and measure: r of the
    relations' means, `person`, r of the rival, and `given`, the partial correlation, r of what the
    rival leaves of the measure and of correctness; n relations."""
    rows = rows.astype({"correct": float})
    long = rows.melt(["model", "relation", "correct"], measures, "measure")
    by = ["model", "measure"]
    table = long.groupby([*by, "relation"])[["value", "correct"]].mean().reset_index()
    table["person"] = table["relation"].isin(OF_PEOPLE).astype(float)

    def beside(part: pd.DataFrame) -> tuple[float, ...]:
        columns = part[["value", "correct", "person"]].to_numpy()
        (_, r, by_person), (_, _, of_person), _ = np.corrcoef(columns.T)
        left = r - by_person * of_person
        given = left / np.sqrt((1 - by_person**2) * (1 - of_person**2))
        return r, of_person, given, len(part)

    return estimates(table, by, beside, ["r", "person", "given", "n"])


def without_question(responses: pd.DataFrame) -> pd.DataFrame:
    """The answers, normalised, without the words of their questions; may be empty."""
    kept = []
    for text, question in zip(responses["text"], responses["question"], strict=True):
        asked = normalise(question).split()
        words = [word for word in normalise(text).split() if word not in asked]
        kept.append(" ".join(words))
    return responses.assign(text=pd.Series(kept, responses.index, dtype="str"))


def answer_pairs(groups: pd.DataFrame) -> pd.DataFrame:
    """Every pair of answers of each group (`schemas.AnswerSets`): what equation 1 averages over.
    Columns: model, group_id, first and second (numbers from 0), answer_1 and answer_2."""
    rows = []
    for model, group, texts in groups[["model", "group_id", "texts"]].itertuples(index=False):
        for (first, one), (second, other) in combinations(enumerate(texts), 2):
            rows.append((model, group, first, second, one, other))
    names = ["model", "group_id", "first", "second", "answer_1", "answer_2"]
    return pd.DataFrame(rows, columns=names)
