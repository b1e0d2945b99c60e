"""Part 3's tables: which answers are right, how alike they are, what may predict it, and which
wording breaks which fact.

The texts of a group are a model's answers to a question and its paraphrases (SCons, 3.3.2), or its
samples to one question (Cert, 4.1.3).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, product, starmap
from statistics import fmean

import numpy as np
import pandas as pd

from factrobust.intervals import Array, correlations, exact_table
from factrobust.tables import stacked
from factrobust.text import Groups, contains, normalise, per_pair

KEY = ["model", "group_id"]
BEFORE = frozenset(("new", "north", "south", "east", "west", "equatorial"))  # "New Mexico"


def has_substring(text: str, answers: Sequence[str]) -> bool:
    """The paper's rule (3.3.1), which is PopQA's: an accepted answer, also in lower case or
    capitalised, is somewhere in the text, inside words too. Empty answers are passed over."""
    for answer in map(str.strip, answers):
        forms = (answer, answer.lower(), answer.capitalize())
        if answer and any(form in text for form in forms):
            return True
    return False


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
    found = []
    longer = []
    for (start, end), span in spans.items():
        if span in right:
            found.append((start, end))
            continue
        is_known = span in names or f" {span} " in question
        if is_known or (words[start] in BEFORE and spans.get((start + 1, end)) in right):
            longer.append((start, end))
    return any(not _is_inside(place, longer) for place in found)


def _is_inside(place: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    """Whether a span lies within one of the others."""
    return any(start <= place[0] and place[1] <= end for start, end in others)


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
    accepted = [frozenset(map(normalise, answers)) for answers in questions["answers"]]
    counts: dict[str, Counter[str]] = {}
    for relation, answers in zip(questions["relation"], accepted, strict=True):
        counts.setdefault(relation, Counter()).update(sorted(answers))
    correct = []
    for relation, answers in zip(questions["relation"], accepted, strict=True):
        others = counts[relation] - Counter(answers)
        is_right = bool(others) and max(others, key=others.__getitem__) in answers
        correct.append(is_right)
    return questions.assign(correct=correct)


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
    in_this_order = pd.CategoricalDtype(list(measures))
    long["measure"] = long["measure"].astype(in_this_order)
    relations = long.groupby([*by, "relation"])[both]
    means = relations.mean().reset_index()
    inside = long.copy()
    inside[both] -= relations.transform("mean")
    across = correlations(means, by, "value", "correct", n_boot=n_boot)
    within = correlations(inside, by, "value", "correct", "relation", n_boot=n_boot)
    table = stacked({"across relations": across, "within relations": within}, "level")
    return table[["model", "level", "measure", "r", "low", "high", "n"]]


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
    relations = rows.groupby(["model", "relation"])[["correct", *measures]]
    table = relations.mean().reset_index()
    table["person"] = table["relation"].isin(OF_PEOPLE).astype(float)
    found = []
    for (model, part), measure in product(table.groupby("model", sort=False), measures):
        columns = part[[measure, "correct", "person"]].to_numpy(dtype=float)
        r = np.corrcoef(columns.T)
        of_measure = r[0, 1]
        by_person = r[0, 2]
        of_person = r[1, 2]
        left = of_measure - by_person * of_person
        given = left / np.sqrt((1 - by_person**2) * (1 - of_person**2))
        found.append((model, measure, of_measure, of_person, given, len(part)))
    return pd.DataFrame(
        found,
        columns=["model", "measure", "r", "person", "given", "n"],
    )


def between_and_within(
    groups: pd.DataFrame,
    predictors: Mapping[str, str],
    *,
    bins: int = 8,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two sides of a scatter plot of right answers against predictors {column: name}: a row a
    model, predictor and relation, its means x and mean, with exact bounds and n; and a row a
    question, minus its relation's means, where x is the mean of its eighth (of `bins`)."""
    rows = groups.rename(columns=predictors).astype({"correct": float})
    keys = ["model", "relation", "group_id", "correct"]
    rows = rows.melt(keys, [*predictors.values()], "predictor", value_name="x")
    by = ["model", "predictor"]
    # 1. Relations.
    of_relation = rows.groupby([*by, "relation"])
    relations = exact_table(rows, [*by, "relation"], "correct")
    relations = relations.merge(of_relation["x"].mean().reset_index())
    # 2. Questions within relations.
    both = ["x", "correct"]
    inside = rows.copy()
    inside[both] -= of_relation[both].transform("mean")
    place = inside.groupby(by)["x"].rank(method="first", pct=True)
    inside["bin"] = np.ceil(place * bins)
    inside["x"] = inside.groupby([*by, "bin"])["x"].transform("mean")
    return relations, inside


def text_groups(rows: pd.DataFrame) -> pd.DataFrame:
    """The texts of each model and group, in the order of the rows: `schemas.AnswerSets` without
    `int_sim` and `tokens`."""
    rows = rows.assign(logprob=mean_logprobs(rows["logprobs"]))
    groups = rows.groupby(KEY, sort=False)
    table = groups.agg(texts=("text", list), logprob=("logprob", "mean")).reset_index()
    table["n_answers"] = table["texts"].map(len).astype(int)
    table["n_empty"] = [_n_empty(texts) for texts in table["texts"]]
    return table


def _n_empty(texts: Sequence[str]) -> int:
    return sum(not text.strip() for text in texts)


def mean_logprobs(logprobs: Sequence[Sequence[float]] | pd.Series) -> Array:
    """Mean log-probability of the tokens of each text [text]; NaN without a token."""
    return np.array([fmean(tokens) if len(tokens) else np.nan for tokens in logprobs])


def sums_of_logprobs(logprobs: pd.Series) -> pd.Series:
    """log P of each text, the sum over its tokens [text]; NaN without a token."""
    return logprobs.map(lambda tokens: sum(tokens) if len(tokens) else np.nan).astype(float)


def equal_pairs(groups: Groups) -> Array:
    """Share of pairs of equal texts after normalisation, in [0, 1]."""
    equal = []
    for texts in groups:
        counts = np.array(list(Counter(map(normalise, texts)).values()), dtype=float)
        equal.append(np.sum(counts * (counts - 1)))
    return per_pair(equal, [len(texts) for texts in groups])


def rouge_l(groups: Groups) -> Array:
    """Mean Rouge-L F over the pairs of each group's texts (Lin and Och, 2004), in [0, 1]. F is 2 l
    / (m + n) for texts of m and n normalised words with a longest common subsequence of l; 1 for
    two empty texts."""
    sums = []
    for texts in groups:
        pairs = combinations(map(normalise, texts), 2)
        sums.append(sum(starmap(_rouge, pairs)))
    return per_pair(2 * np.array(sums), [len(texts) for texts in groups])


@lru_cache(maxsize=100_000)
def _rouge(one: str, other: str) -> float:
    """The longest common subsequence by bits, one a word of the first text (Hyyrö, 2004)."""
    first = one.split()
    second = other.split()
    if not first + second:
        return 1.0
    places: dict[str, int] = {}
    for i, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << i
    every = left = (1 << len(first)) - 1
    for word in second:
        met = left & places.get(word, 0)
        left = ((left + met) | (left - met)) & every
    common = len(first) - left.bit_count()
    return 2 * common / (len(first) + len(second))


def without_question(responses: pd.DataFrame) -> pd.DataFrame:
    """The answers, normalised, without the words of their questions; may be empty."""
    kept = []
    for text, question in zip(responses["text"], responses["question"], strict=True):
        asked = normalise(question).split()
        words = [word for word in normalise(text).split() if word not in asked]
        kept.append(" ".join(words))
    return responses.assign(text=pd.Series(kept, responses.index, dtype="str"))


def gallery(groups: pd.DataFrame) -> pd.DataFrame:
    """Of each model a typical question of each kind: consistent or not, right or wrong. Consistent
    is a SCons of the median of the relation or more: over all relations it would
    part easy from hard. Typical is nearest to the kind's median. Adds `consistent` and n."""
    kind = ["model", "consistent", "correct"]
    median = groups.groupby(["model", "relation"])["scons"].transform("median")
    table = groups.assign(consistent=groups["scons"] >= median)
    kinds = table.groupby(kind)["scons"]
    distance = (table["scons"] - kinds.transform("median")).abs().round(9)
    table = table.assign(n=kinds.transform("size"), distance=distance)
    table = table.sort_values(["distance", "group_id"])
    typical = table.drop_duplicates(kind).drop(columns="distance")
    return typical.sort_values(kind, ascending=[True, False, False])


def answer_pairs(groups: pd.DataFrame) -> pd.DataFrame:
    """Every pair of answers of each group (`schemas.AnswerSets`): what equation 1 averages over.
    Columns: model, group_id, first and second (numbers from 0), answer_1 and answer_2."""
    rows = []
    for model, group, texts in groups[["model", "group_id", "texts"]].itertuples(index=False):
        for (first, one), (second, other) in combinations(enumerate(texts), 2):
            rows.append((model, group, first, second, one, other))
    names = ["model", "group_id", "first", "second", "answer_1", "answer_2"]
    return pd.DataFrame(rows, columns=names)
