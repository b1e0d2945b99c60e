"""The placebo of part 3: versions of a question in which no word changes.

A paraphrase changes words, and with them case, marks and length. How much of what it does would a
change of typography do? So each question is also asked in UNWORDED versions, and whatever is said
of paraphrases is said of these, too.
"""

import numpy as np
import pandas as pd

from factrobust.intervals import Array

ORIGINAL, PARAPHRASE, NO_WORD = "original", "paraphrase", "no word changed"
FIRST = 1000  # number (variant) of the first version without a changed word
SPLITS = 100  # halvings of a relation's facts


def _versions(question: str) -> dict[str, str]:
    """A question that ends in a mark, without a changed word."""
    unmarked = question.removesuffix("?")
    return {
        "small letter": question[0].lower() + question[1:],
        "no mark": unmarked,
        "space before the mark": f"{unmarked} ?",
        "two marks": f"{question}?",
        "in quotes": f'"{question}"',
    }


def unworded(questions: pd.DataFrame) -> pd.DataFrame:
    """The originals (variant 0) of `schemas.Questions` that end in a question mark, without a
    changed word: variants FIRST, FIRST + 1, ..., and what was done in the column typography."""
    originals = questions[questions["variant"] == 0]
    originals = originals[originals["question"].str.endswith("?")]
    versions = [*map(_versions, originals["question"])]
    parts = []
    for number, name in enumerate(_versions("?"), start=FIRST):
        part = originals.assign(
            question=[version[name] for version in versions],
            variant=number,
            question_id=originals["group_id"] + f"#{number}",
            typography=name,
        )
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def with_kind(marked: pd.DataFrame) -> pd.DataFrame:
    """Marked answers with `kind`: ORIGINAL, PARAPHRASE or NO_WORD, by their variant."""
    variant = marked["variant"]
    kind = np.select(
        [variant == 0, variant >= FIRST],
        [ORIGINAL, NO_WORD],
        PARAPHRASE,
    )
    return marked.assign(kind=kind)


def flipped_answers(marked: pd.DataFrame) -> pd.DataFrame:
    """Each answer to another version beside the one to the original: a row an answer of `with_kind`
    that is none to an original. Adds `was`, whether the original is answered rightly, and
    `flipped`, whether this answer is right where that one is wrong, or wrong where it is right."""
    key = ["model", "prompt_format", "group_id"]
    originals = marked.loc[marked["kind"] == ORIGINAL, [*key, "correct"]]
    others = marked[marked["kind"] != ORIGINAL]
    table = others.merge(
        originals.rename(columns={"correct": "was"}),
        on=key,
    )
    return table.assign(flipped=table["correct"] != table["was"])


def worst_to_best(marked: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """How many more facts the best wording of a relation gets right than the worst: a row a model,
    prompt_format and relation, with `gap`, in [-1, 1], and n facts.

    The best and the worst of some wordings lie apart by chance alone. So both are chosen on one
    half of the relation's facts and measured on the other one, and the mean is over SPLITS random
    halvings: for wordings that are equally good it is 0 on average. Facts that lack a wording, and
    relations of fewer than four facts, are left out.
    """
    generator = np.random.default_rng(seed)
    rows = []
    by = ["model", "prompt_format", "relation"]
    for key, part in marked.groupby(by, sort=False):
        wide = part.pivot(index="group_id", columns="variant", values="correct")
        right = wide.dropna().to_numpy(dtype=float)
        n = len(right)
        if n < 4:
            continue
        order = np.array([generator.permutation(n) for _ in range(SPLITS)])
        first = right[order[:, : n // 2]].mean(axis=1)
        second = right[order[:, n // 2 :]].mean(axis=1)
        gap = _gaps(first, second) + _gaps(second, first)
        rows.append((*key, gap.mean() / 2, n))
    return pd.DataFrame(rows, columns=[*by, "gap", "n"])


def _gaps(chosen: Array, measured: Array) -> Array:
    """The best wording less the worst, of shares [split, wording]: chosen by the first and measured
    by the second."""
    split = np.arange(len(chosen))
    best = measured[split, chosen.argmax(axis=1)]
    worst = measured[split, chosen.argmin(axis=1)]
    return best - worst
