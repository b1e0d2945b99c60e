"""Part 3's tables: which answers are right, how alike they are, and one row a question with all that
may predict it.

Answers and samples are tables `schemas.Responses`. The texts of a group are the
answers that a model gave to one question and its paraphrases (SCons, 3.3.2), or the samples that it
gave to one question (Cert, 4.1.3); how alike they are is one float a group, NaN for fewer than two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust.text import contains, normalise

Array = NDArray[np.float64]
Groups = Sequence[Sequence[str]]
KEY = ["model", "group_id"]
EXAMPLES = 4


def found_answer(text: str, answers: Sequence[str]) -> str | None:
    """The first accepted answer that a generated text states, or None.

    By the paper's rule (3.3.1), which is PopQA's: an accepted answer, or its spelling in lower case,
    or with the first letter only in upper case, is a substring of the text, anywhere, inside words
    too. Empty accepted answers, which any text contains, are passed over.
    """
    for answer in map(str.strip, answers):
        if answer and any(s in text for s in (answer, answer.lower(), answer.capitalize())):
            return answer
    return None


def mark_by_rules(responses: pd.DataFrame) -> pd.DataFrame:
    """Greedy answers and whether they are right, by the paper's rule (`found_answer`) and by
    `text.contains`: a table `schemas.MarkedResponses`."""
    pairs = list(zip(responses["text"], responses["answers"], strict=True))
    return responses.assign(
        substring=[found_answer(text, answers) is not None for text, answers in pairs],
        tokens=[contains(text, answers) for text, answers in pairs],
    )


def rule_differences(marked: pd.DataFrame) -> pd.DataFrame:
    """The marked answers that one rule accepts and the other does not, and what the paper's rule
    `matched` in them: an accepted answer or None."""
    rows = marked[marked["substring"] != marked["tokens"]]
    found = [found_answer(t, a) for t, a in zip(rows["text"], rows["answers"], strict=True)]
    return rows.assign(matched=pd.Series(found, index=rows.index, dtype=object))


def text_groups(rows: pd.DataFrame) -> pd.DataFrame:
    """The texts of each model and group, of answers or samples, in the order of the rows: a table
    `schemas.AnswerSets` but for `int_sim`, which `probes.wording.consistency` computes."""
    table = rows.groupby(KEY, sort=False)["text"].agg(list).rename("texts").reset_index()
    return table.assign(
        n_answers=table["texts"].map(len).astype(int),
        n_empty=[sum(not text.strip() for text in texts) for texts in table["texts"]],
    )


def example_pairs(groups: pd.DataFrame) -> pd.DataFrame:
    """Two different answers to each of EXAMPLES questions a model, from its least consistent to its
    most.

    `groups` is a table `schemas.AnswerSets`. Questions with one answer only, or none beside it but
    empty ones, are passed over; the others are taken at equal steps of their order.
    """
    table = groups.assign(
        different=groups["texts"].map(lambda texts: list(dict.fromkeys(filter(str.strip, texts))))
    )
    table = table[table["different"].map(len) > 1].sort_values("int_sim", kind="stable")
    chosen = [
        part.iloc[sorted({round(i) for i in np.linspace(0, len(part) - 1, EXAMPLES)})]
        for _, part in table.groupby("model", sort=False)
    ]
    shown = pd.concat(chosen) if chosen else table
    firsts = {f"answer_{k + 1}": [texts[k] for texts in shown["different"]] for k in (0, 1)}
    return shown[KEY].assign(**firsts).reset_index(drop=True)


def predictors(
    marked: pd.DataFrame, answer_sets: pd.DataFrame, sample_sets: pd.DataFrame
) -> pd.DataFrame:
    """A table `schemas.Groups` by the paper's rule: is the original answered, what may predict it.

    `answer_sets` and `sample_sets`, tables `schemas.AnswerSets`, hold the answers and the samples.
    """
    right = marked.set_index(KEY)["substring"]
    originals = marked[marked["variant"] == 0].set_index(KEY)
    texts, samples = (sets.set_index(KEY) for sets in (answer_sets, sample_sets))
    texts["agreement"] = equal_pairs(texts["texts"].tolist())
    samples["semantic_entropy"] = semantic_entropy(samples["texts"].tolist())
    columns = {  # rows of the same model and group come together by their index
        "correct": originals["substring"],
        "accuracy": right.groupby(KEY).mean(),
        "scons_raw": texts["int_sim"],
        "scons": texts["int_sim"].clip(0, 1),
        "cert_raw": samples["int_sim"],
        "cert": samples["int_sim"].clip(0, 1),
        **texts[["n_answers", "n_empty", "agreement"]],
        "semantic_entropy": samples["semantic_entropy"],
        "log_popularity": originals["log_popularity"],
    }
    return originals[["relation"]].assign(**columns).reset_index()


def equal_pairs(groups: Groups) -> Array:
    """Share of pairs of equal texts, after normalisation (`text.normalise`), in [0, 1]."""
    return _of_clusters(groups, lambda c: np.sum(c * (c - 1)) / (c.sum() * (c.sum() - 1)))


def semantic_entropy(groups: Groups) -> Array:
    """Entropy -sum p ln p of the shares p of equal normalised texts, in [0, ln n].

    Semantic entropy (Kuhn et al., 2022) with clusters of equal texts in place of clusters that
    entail each other, and with shares of samples in place of their probabilities.
    """
    return _of_clusters(groups, lambda c: np.sum(c / c.sum() * np.log(c.sum() / c)))


def _of_clusters(groups: Groups, measure: Callable[[Array], float]) -> Array:
    """`measure` of how often each distinct normalised text of a group occurs; NaN for fewer than two
    texts."""
    clusters = [Counter(map(normalise, texts)).values() for texts in groups]
    counts = [np.array(list(values), dtype=float) for values in clusters]
    return np.array([measure(c) if c.sum() > 1 else np.nan for c in counts])
