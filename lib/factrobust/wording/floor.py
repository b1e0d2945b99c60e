"""The placebo of part 3: versions of a question in which no word changes.

A paraphrase changes words, and with them case, marks and length. How much of what it does would a
change of typography do? So each question is also asked in UNWORDED versions, and whatever is said
of paraphrases is said of these, too.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from factrobust.intervals import Array

ORIGINAL, PARAPHRASE, NO_WORD = "original", "paraphrase", "no word changed"
FIRST = 1000  # number (variant) of the first version without a changed word
SPLITS = 100  # halvings of a relation's facts


def _small_letter(question: str) -> str:
    return question[0].lower() + question[1:]


def _no_mark(question: str) -> str:
    return question.removesuffix("?")


def _space_before_mark(question: str) -> str:
    return question.removesuffix("?") + " ?"


def _two_marks(question: str) -> str:
    return question + "?"


def _quoted(question: str) -> str:
    return f'"{question}"'


UNWORDED: dict[str, Callable[[str], str]] = {
    "small letter": _small_letter,
    "no mark": _no_mark,
    "space before the mark": _space_before_mark,
    "two marks": _two_marks,
    "in quotes": _quoted,
}


def unworded(questions: pd.DataFrame) -> pd.DataFrame:
    """The originals (variant 0) of `schemas.Questions` that end in a question mark, in each of the
    UNWORDED versions: variants FIRST, FIRST + 1, ..., and their name in the column typography."""
    originals = questions[(questions["variant"] == 0) & questions["question"].str.endswith("?")]
    versions = []
    for number, (name, change) in enumerate(UNWORDED.items(), start=FIRST):
        version = originals.assign(
            question=originals["question"].map(change),
            variant=number,
            question_id=originals["group_id"] + f"#{number}",
            typography=name,
        )
        versions.append(version)
    return pd.concat(versions, ignore_index=True)


def with_kind(marked: pd.DataFrame) -> pd.DataFrame:
    """Marked answers with `kind`: ORIGINAL, PARAPHRASE or NO_WORD, by their variant."""
    variant = marked["variant"]
    kind = np.select([variant == 0, variant >= FIRST], [ORIGINAL, NO_WORD], PARAPHRASE)
    return marked.assign(kind=pd.Series(kind, marked.index, dtype="str"))


def flips(marked: pd.DataFrame) -> pd.DataFrame:
    """Each answer to another version beside the one to the original: a row an answer of `with_kind`
    that is none to an original. Adds `was`, whether the original is answered rightly, and
    `flipped`, whether this answer is right where that one is wrong, or wrong where it is right."""
    key = ["model", "prompt_format", "group_id"]
    originals = marked.loc[marked["kind"] == ORIGINAL, [*key, "correct"]]
    others = marked[marked["kind"] != ORIGINAL]
    table = others.merge(originals.rename(columns={"correct": "was"}), on=key)
    return table.assign(flipped=table["correct"] != table["was"])


def worst_to_best(
    marked: pd.DataFrame,
    *,
    splits: int = SPLITS,
    seed: int = 0,
) -> pd.DataFrame:
    """How many more facts the best wording of a relation gets right than the worst: a row a model,
    prompt_format and relation, with `gap`, in [-1, 1], and n facts.

    The best and the worst of some wordings lie apart by chance alone. So both are chosen on one
    half of the relation's facts and measured on the other one, and the mean is over `splits` random
    halvings: for wordings that are equally good it is 0 on average. Facts that lack a wording, and
    relations of fewer than four facts, are left out.
    """
    generator = np.random.default_rng(seed)
    rows = []
    for key, part in marked.groupby(["model", "prompt_format", "relation"], sort=False):
        wide = part.pivot(index="group_id", columns="variant", values="correct")
        right = wide.dropna().to_numpy(dtype=float)
        if len(right) < 4:
            continue
        gaps = [_gap(right, generator.permutation(len(right))) for _ in range(splits)]
        rows.append((*key, float(np.mean(gaps)), len(right)))
    return pd.DataFrame(
        rows,
        columns=["model", "prompt_format", "relation", "gap", "n"],
    )


def _gap(right: Array, order: np.ndarray) -> float:
    """The best wording less the worst, of a table [fact, wording]: chosen on the first half of an
    order of the facts and measured on the second, and the other way round."""
    half = len(order) // 2
    first = right[order[:half]].mean(0)
    second = right[order[half:]].mean(0)
    gaps = []
    for chosen, measured in ((first, second), (second, first)):
        gaps.append(measured[chosen.argmax()] - measured[chosen.argmin()])
    return float(np.mean(gaps))
