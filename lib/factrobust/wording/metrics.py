"""Part 3's tables: which answers are right, how alike they are, what may predict it, and which
wording breaks which fact.

The texts of a group are a model's answers to a question and its paraphrases (SCons, 3.3.2), or its
samples to one question (Cert, 4.1.3).
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, product, starmap
from statistics import fmean

import numpy as np
import pandas as pd

from factrobust.statistics import Array, correlations, exact_table
from factrobust.tables import stacked
from factrobust.text import Groups, contains, normalise, per_pair

KEY = ["model", "group_id"]
BEFORE = frozenset(("new", "north", "south", "east", "west", "equatorial"))  # "New Mexico"


def has_substring(text: str, answers: Sequence[str]) -> bool:
    """The paper's rule (3.3.1), which is PopQA's: an accepted answer, also in lower case or
    capitalised, is somewhere in the text, inside words too. Empty answers are passed over."""
    given = filter(None, map(str.strip, answers))
    return any(s in text for a in given for s in (a, a.lower(), a.capitalize()))


def stated(
    text: str, answers: Sequence[str], question: str = "", names: Collection[str] = ()
) -> bool:
    """Whether a text states an accepted answer, as whole words after normalisation, and not as a
    part of something longer: of `names` (normalised; "Equatorial Guinea"), an answer after a word
    of BEFORE ("New Mexico"), words of the `question` in this order. A name may have an s."""
    accepted = [*answers, *(f"{name}s" for name in answers if name != name.lower())]
    if not contains(text, accepted):
        return False
    words, right = normalise(text).split(), set(map(normalise, accepted))
    spans = {(i, j): " ".join(words[i:j]) for i, j in combinations(range(len(words) + 1), 2)}
    question = f" {normalise(question)} "

    def is_longer(i: int, j: int) -> bool:
        known = spans[i, j] in names or f" {spans[i, j]} " in question
        return known or (words[i] in BEFORE and spans.get((i + 1, j)) in right)

    longer = [at for at, span in spans.items() if span not in right and is_longer(*at)]
    found = (at for at, span in spans.items() if span in right)
    return any(not any(a <= i and j <= b for a, b in longer) for i, j in found)


def mark_by_rules(responses: pd.DataFrame, questions: pd.DataFrame | None = None) -> pd.DataFrame:
    """Greedy answers with correct (`stated`) and substring (`has_substring`):
    `schemas.MarkedResponses`. Longer names are the relation's accepted answers with a capital, in
    `questions` (or `responses`): "punk rock" is rock, "American football" is not football."""
    known = responses if questions is None else questions
    answers = known[["relation", "answers"]].explode("answers").dropna()
    proper = answers[answers["answers"] != answers["answers"].str.lower()].drop_duplicates()
    names = proper["answers"].map(normalise).groupby(proper["relation"]).agg(frozenset)
    pairs = list(zip(responses["text"], responses["answers"], strict=True))
    others = responses["relation"].map(lambda relation: names.get(relation, ()))
    cases = zip(pairs, responses["question"], others, strict=True)
    return responses.assign(
        correct=[stated(*pair, question, longer) for pair, question, longer in cases],
        substring=[has_substring(*pair) for pair in pairs],
    )


def commonest_answer(questions: pd.DataFrame) -> pd.DataFrame:
    """What a model that knows nothing but answers would say: to each question the answer that is accepted
    for most *other* questions of its relation. `correct`: whether it is accepted here, too. A row a
    question, in their order; ties go to the answer that stands first."""
    accepted = [frozenset(map(normalise, answers)) for answers in questions["answers"]]
    counts = questions["relation"].map(
        {
            relation: Counter(answer for i in rows for answer in sorted(accepted[i]))
            for relation, rows in questions.reset_index(drop=True)
            .groupby("relation")
            .groups.items()
        }
    )
    correct = []
    for own, count in zip(accepted, counts, strict=True):
        others = count - Counter(own)
        correct.append(bool(others) and max(others, key=others.__getitem__) in own)
    return questions.assign(correct=correct)


def relation_correlations(
    rows: pd.DataFrame, measures: Sequence[str], *, n_boot: int = 2000
) -> pd.DataFrame:
    """Pearson's r of `measures` with `correct`: model, level, measure, r, low, high, n. Levels are
    "across relations" (of relations' means) and "within relations" (of questions, minus their
    relation's means, with whole relations drawn)."""
    names, both = ["model", "measure"], ["value", "correct"]
    rows = rows.astype({"correct": float})
    long = rows.melt(["model", "relation", "correct"], measures, "measure")
    long["measure"] = long["measure"].astype(pd.CategoricalDtype(list(measures)))  # in this order
    means = long.groupby([*names, "relation"])[both]
    inside = long.assign(**(long[both] - means.transform("mean")))
    across = correlations(means.mean().reset_index(), names, "value", "correct", n_boot=n_boot)
    within = correlations(inside, names, "value", "correct", "relation", n_boot=n_boot)
    table = stacked({"across relations": across, "within relations": within}, "level")
    return table[["model", "level", "measure", "r", "low", "high", "n"]]


# Relations of PopQA whose right answers are people.
OF_PEOPLE = frozenset(
    ("author", "composer", "director", "father", "mother", "producer", "screenwriter")
)


def given_person(rows: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """How `measures` go with `correct` across relations, beside a rival that needs no answer: is the
    relation one of OF_PEOPLE? Rows are questions. A row a model and measure: r of the relations' means,
    `person`, r of the rival, and `given`, the partial correlation, r of what the rival leaves of the measure
    and of correctness; n relations."""
    means = (
        rows.astype({"correct": float})
        .groupby(["model", "relation"])[["correct", *measures]]
        .mean()
    )
    table = means.reset_index()
    table["person"] = table["relation"].isin(OF_PEOPLE).astype(float)
    found = []
    for (model, part), measure in product(table.groupby("model", sort=False), measures):
        r = np.corrcoef(part[[measure, "correct", "person"]].to_numpy(dtype=float).T)
        left = r[0, 1] - r[0, 2] * r[1, 2]
        given = left / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
        found.append((model, measure, r[0, 1], r[1, 2], given, len(part)))
    return pd.DataFrame(found, columns=["model", "measure", "r", "person", "given", "n"])


def between_and_within(
    groups: pd.DataFrame, predictors: Mapping[str, str], *, bins: int = 8
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two sides of a scatter plot of right answers against predictors {column: name}: a row a
    model, predictor and relation, its means x and mean, with exact bounds and n; and a row a
    question, minus its relation's means, where x is the mean of its eighth (of `bins`)."""
    rows = groups.rename(columns=predictors).astype({"correct": float})
    keys = ["model", "relation", "group_id", "correct"]
    rows = rows.melt(keys, [*predictors.values()], "predictor", value_name="x")
    by = ["model", "predictor"]
    relations = exact_table(rows, [*by, "relation"], "correct")
    of_relation = rows.groupby([*by, "relation"])
    relations = relations.merge(of_relation["x"].mean().reset_index())
    inside = rows.assign(
        **(rows[["x", "correct"]] - of_relation[["x", "correct"]].transform("mean"))
    )
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
    empty = [sum(not text.strip() for text in texts) for texts in table["texts"]]
    return table.assign(n_answers=table["texts"].map(len).astype(int), n_empty=empty)


def mean_logprobs(logprobs: Sequence[Sequence[float]] | pd.Series) -> Array:
    """Mean log-probability of the tokens of each text [text]; NaN without a token."""
    return np.array([fmean(tokens) if len(tokens) else np.nan for tokens in logprobs])


def sums_of_logprobs(logprobs: pd.Series) -> pd.Series:
    """log P of each text, the sum over its tokens [text]; NaN without a token."""
    return logprobs.map(lambda tokens: sum(tokens) if len(tokens) else np.nan).astype(float)


def equal_pairs(groups: Groups) -> Array:
    """Share of pairs of equal texts after normalisation, in [0, 1]."""
    counts = [_counts(map(normalise, texts)) for texts in groups]
    return per_pair([np.sum(c * (c - 1)) for c in counts], [len(texts) for texts in groups])


def rouge_l(groups: Groups) -> Array:
    """Mean Rouge-L F over the pairs of each group's texts (Lin and Och, 2004), in [0, 1]. F is 2 l
    / (m + n) for texts of m and n normalised words with a longest common subsequence of l; 1 for
    two empty texts."""
    sums = [sum(starmap(_rouge, combinations(map(normalise, texts), 2))) for texts in groups]
    return per_pair(2 * np.array(sums), [len(texts) for texts in groups])


@lru_cache(maxsize=100_000)
def _rouge(one: str, other: str) -> float:
    """The longest common subsequence by bits, one a word of the first text (Hyyrö, 2004)."""
    first, second = one.split(), other.split()
    if not first + second:
        return 1.0
    places: dict[str, int] = {}
    for i, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << i
    every = left = (1 << len(first)) - 1
    for word in second:
        met = left & places.get(word, 0)
        left = ((left + met) | (left - met)) & every
    return 2 * (len(first) - left.bit_count()) / (len(first) + len(second))


def _counts(members: Iterable[Hashable]) -> Array:
    """How often each distinct one occurs."""
    return np.array(list(Counter(members).values()), dtype=float)


def without_question(responses: pd.DataFrame) -> pd.DataFrame:
    """The answers, normalised, without the words of their questions; may be empty."""
    texts, questions = (responses[c].map(normalise).str.split() for c in ("text", "question"))
    pairs = zip(texts, questions, strict=True)
    kept = [" ".join(word for word in text if word not in words) for text, words in pairs]
    return responses.assign(text=pd.Series(kept, responses.index, dtype="str"))


def gallery(groups: pd.DataFrame) -> pd.DataFrame:
    """Of each model a typical question of each kind: consistent or not, right or wrong. Consistent
    is a SCons of the median of the relation or more: over all relations it would
    part easy from hard. Typical is nearest to the kind's median. Adds `consistent` and n."""
    scons = groups.groupby(["model", "relation"])["scons"]
    table = groups.assign(consistent=groups["scons"] >= scons.transform("median"))
    kinds = table.groupby(["model", "consistent", "correct"])["scons"]
    far = (table["scons"] - kinds.transform("median")).abs().round(9)
    table = table.assign(n=kinds.transform("size"), far=far).sort_values(["far", "group_id"])
    table = table.drop_duplicates(["model", "consistent", "correct"]).drop(columns="far")
    return table.sort_values(["model", "consistent", "correct"], ascending=[True, False, False])


def answer_pairs(groups: pd.DataFrame) -> pd.DataFrame:
    """Every pair of answers of each group (`schemas.AnswerSets`): what equation 1 averages over.
    Columns: model, group_id, first and second (numbers from 0), answer_1 and answer_2."""
    rows = [
        (model, group, i, j, one, other)
        for model, group, texts in groups[["model", "group_id", "texts"]].itertuples(index=False)
        for (i, one), (j, other) in combinations(enumerate(texts), 2)
    ]
    names = ["model", "group_id", "first", "second", "answer_1", "answer_2"]
    return pd.DataFrame(rows, columns=names)
