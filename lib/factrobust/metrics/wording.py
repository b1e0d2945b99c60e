"""Part 3's tables: which answers are right, how alike they are, and one row a question with all that
may predict it.

Answers are the rows of `probes.wording.greedy` (all variants of a question), samples those of
`probes.wording.sampled`, questions the table of `datasets.wordings`. The texts of a group are the
answers that a model gave to one question and its paraphrases (SCons, 3.3.2), or the samples that it
gave to one question (Cert, 4.1.3); how alike they are is one float a group, NaN for fewer than two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust.text import contains, normalise

Array = NDArray[np.float64]
Groups = Sequence[Sequence[str]]
KEY = ["model", "group_id"]
RULES = ("substring", "tokens")


def correct(text: str, answers: Sequence[str], rule: str = "substring") -> bool:
    """Whether a generated text states one of the accepted answers.

    "substring" is the paper's rule (3.3.1), which is PopQA's: an accepted answer, or its spelling
    in lower case, or with the first letter only in upper case, is a substring of the text, anywhere,
    inside words too. "tokens": an accepted answer occurs as whole words, after normalisation
    (`text.contains`). Empty accepted answers, which any text contains, are passed over.
    """
    if rule == "tokens":
        return contains(text, answers)
    if rule == "substring":
        return found_answer(text, answers) is not None
    raise ValueError(f"there is no rule {rule!r}; choose one of {', '.join(RULES)}")


def found_answer(text: str, answers: Sequence[str]) -> str | None:
    """The first accepted answer that is a substring of the text (see `correct`), or None."""
    if isinstance(answers, str):  # its letters would be taken for answers
        raise ValueError(f"answers must be a list of strings; put {answers!r} into a list")
    for answer in map(str.strip, answers):
        if answer and any(s in text for s in (answer, answer.lower(), answer.capitalize())):
            return answer
    return None


def mark_by_rules(responses: pd.DataFrame) -> pd.DataFrame:
    """Greedy answers and whether they are right, by both rules: adds substring and tokens (bool).

    Raises ValueError for two answers of a model to a question.
    """
    _check_once(responses, ["model", "question_id"])
    pairs = list(zip(responses["text"], responses["answers"], strict=True))
    return responses.assign(**{rule: [correct(t, a, rule) for t, a in pairs] for rule in RULES})


def rule_differences(marked: pd.DataFrame) -> pd.DataFrame:
    """The marked answers that one rule accepts and the other does not.

    Adds `matched`: the accepted answer that the substring rule found, or None.
    """
    rows = marked[marked["substring"] != marked["tokens"]]
    found = [found_answer(t, a) for t, a in zip(rows["text"], rows["answers"], strict=True)]
    return rows.assign(matched=pd.Series(found, index=rows.index, dtype=object))


def text_groups(rows: pd.DataFrame) -> pd.DataFrame:
    """The texts of each model and group, of answers or samples, in the order of the rows.

    Columns: model, group_id, texts (list[str]), n_answers, n_empty. Their `int_sim`, a column that
    `groups` needs, is that of `probes.wording.consistency`. Raises ValueError for two answers of a model to a question, or two
    samples of one number.
    """
    _check_once(rows, ["model", "question_id", *(["sample"] if "sample" in rows else [])])
    table = rows.groupby(KEY, sort=False)["text"].agg(list).rename("texts").reset_index()
    return table.assign(
        n_answers=table["texts"].map(len).astype(int),
        n_empty=[sum(not text.strip() for text in texts) for texts in table["texts"]],
    )


def example_pairs(groups: pd.DataFrame, n: int = 4) -> pd.DataFrame:
    """Two different answers to each of `n` questions a model, from its least consistent to its most.

    `groups` are `text_groups` with the column int_sim. Questions with one answer only, or none beside
    it but empty ones, are passed over; the others are taken at equal steps of their order. Columns:
    model, group_id, answer_1, answer_2 (the first two, in the order of the rows).
    """
    table = groups.assign(
        different=groups["texts"].map(lambda texts: list(dict.fromkeys(filter(str.strip, texts))))
    )
    table = table[table["different"].map(len) > 1].sort_values("int_sim", kind="stable")
    chosen = [
        part.iloc[sorted({round(i) for i in np.linspace(0, len(part) - 1, n)})]
        for _, part in table.groupby("model", sort=False)
    ]
    shown = pd.concat(chosen) if chosen else table
    firsts = {f"answer_{k + 1}": [texts[k] for texts in shown["different"]] for k in (0, 1)}
    return shown[KEY].assign(**firsts).reset_index(drop=True)


def groups(
    marked: pd.DataFrame,
    answer_sets: pd.DataFrame,
    sample_sets: pd.DataFrame,
    *,
    rule: str = "substring",
) -> pd.DataFrame:
    """One row a model and question group: is the original answered, and what may predict it.

    `answer_sets` and `sample_sets` are `text_groups` of the answers and of the samples with the
    column int_sim. Columns: model, group_id, relation, correct (of variant 0), accuracy (share of
    right answers over all variants), scons_raw, scons (clipped to [0, 1]), cert_raw, cert,
    n_answers, n_empty (of the answers), agreement (of the answers), semantic_entropy (of the
    samples), log_popularity. Raises ValueError for a group without an answer to variant 0, without
    answers in `answer_sets` or without samples in `sample_sets`.
    """
    table = marked[marked["variant"] == 0].copy()
    answered = marked.groupby(KEY, sort=False)[rule].mean().rename("accuracy").reset_index()
    _check(answered, table, "answer to the original question (variant 0); ask it")
    _check(table, answer_sets, "row in answer_sets; make them from the same answers")
    _check(table, sample_sets, "samples; draw them for the same questions")
    texts = answer_sets.assign(
        scons_raw=answer_sets["int_sim"],
        scons=answer_sets["int_sim"].clip(0, 1),
        agreement=equal_pairs(answer_sets["texts"].tolist()),
    )
    sampled = sample_sets.assign(
        cert_raw=sample_sets["int_sim"],
        cert=sample_sets["int_sim"].clip(0, 1),
        semantic_entropy=semantic_entropy(sample_sets["texts"].tolist()),
    )
    for right, names in (
        (answered, ["accuracy"]),
        (texts, ["scons_raw", "scons", "n_answers", "n_empty", "agreement"]),
        (sampled, ["cert_raw", "cert", "semantic_entropy"]),
    ):
        table = table.merge(right[[*KEY, *names]], on=KEY, how="left", validate="one_to_one")
    columns = ["relation", "correct", "accuracy", "scons_raw", "scons", "cert_raw", "cert"]
    columns += ["n_answers", "n_empty", "agreement", "semantic_entropy", "log_popularity"]
    return table.assign(correct=table[rule])[[*KEY, *columns]]


def _check_once(rows: pd.DataFrame, key: list[str]) -> None:
    """Raise ValueError if two rows agree in `key`."""
    if (twice := rows.duplicated(key)).any():
        row = rows[twice].iloc[0]
        raise ValueError(
            f"{row['model']} answers {row['question_id']} in several rows; keep those of one prompt "
            "format and run"
        )


def _check(needed: pd.DataFrame, given: pd.DataFrame, what: str) -> None:
    """Raise ValueError if a model and group of `needed` is not in `given`."""
    found = needed[KEY].merge(given[KEY].drop_duplicates(), on=KEY, how="left", indicator=True)
    if len(lost := found[found["_merge"] == "left_only"]):
        row = lost.iloc[0]
        raise ValueError(
            f"{len(lost)} group(s), such as {row['group_id']} of {row['model']}, have no {what}"
        )


def equal_pairs(groups: Groups) -> Array:
    """Share of pairs of equal texts, after normalisation (`text.normalise`), in [0, 1]."""
    counts = [_clusters(texts) for texts in groups]
    equal = np.array([np.sum(c * (c - 1)) for c in counts], dtype=float)
    return _per_pair(equal, np.array([c.sum() for c in counts], dtype=float))


def semantic_entropy(groups: Groups) -> Array:
    """Entropy -sum p ln p of the shares p of equal normalised texts, in [0, ln n].

    Semantic entropy (Kuhn et al., 2022) with clusters of equal texts in place of clusters that
    entail each other, and with shares of samples in place of their probabilities.
    """
    counts = [_clusters(texts) for texts in groups]
    return np.array(
        [np.sum(c / c.sum() * np.log(c.sum() / c)) if c.sum() > 1 else np.nan for c in counts]
    )


def _clusters(texts: Sequence[str]) -> NDArray[np.int64]:
    """How often each distinct normalised text occurs."""
    return np.array(list(Counter(map(normalise, texts)).values()), dtype=np.int64)


def _per_pair(sums: Array, n: NDArray) -> Array:
    """Sums over ordered pairs as means over them; NaN without a pair."""
    return np.where(n > 1, sums / np.maximum(n * (n - 1.0), 1.0), np.nan)
