"""How alike are the texts of a group? Paper 3's int_sim and the measures set beside it.

A group is the list of answers that a model gave to one question and its paraphrases (SCons, 3.3.2),
or the samples that it gave to one question (Cert, 4.1.3). Every function takes a sequence of groups
and returns one float a group, [group]; a group of fewer than two texts has no pairs and gets NaN.

A text of white space only is empty. An empty text has no direction, and the paper says nothing about
it; here two empty texts are equal (similarity 1), and an empty and another text share nothing (0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from factrobust.metrics.text import normalise

Array = NDArray[np.float64]
Groups = Sequence[Sequence[str]]
DIMENSIONS = 64  # handled at a time: 100,000 vectors then need 50 MB beside themselves


def int_sim(groups: Groups, embed: Callable[[list[str]], ArrayLike]) -> Array:
    """Mean pairwise cosine of each group's embeddings (equation 1), unclipped, in [-1, 1].

    Summed over pairs, the cosines of unit vectors u follow from the length of their sum:
    (|sum of u|^2 - n) / (n (n - 1)). `embed` is called once with the distinct, non-empty, stripped
    texts, sorted, and returns their vectors, [text, dimension], of any length but 0. Raises
    ValueError for vectors of another shape or without a direction.
    """
    flat = [text.strip() for texts in groups for text in texts]
    names = sorted(set(flat) - {""})
    place = {name: i for i, name in enumerate(names)} | {"": -1}
    which = np.fromiter(map(place.__getitem__, flat), dtype=int, count=len(flat))
    n = np.array([len(texts) for texts in groups], dtype=int)
    group = np.repeat(np.arange(len(n)), n)
    empty = np.bincount(group[which < 0], minlength=len(n)).astype(float)
    # All empty texts share one unit vector, in a dimension of their own.
    squared = empty**2
    if names:
        squared += _squared_sums(group[which >= 0], which[which >= 0], len(n), embed, names)
    return _per_pair(squared - n, n)


def clip(raw: ArrayLike) -> Array:
    """SCons or Cert in [0, 1], as the paper demands, from a raw mean cosine; NaN stays."""
    return np.clip(np.asarray(raw, dtype=float), 0.0, 1.0)


def agreement(groups: Groups) -> Array:
    """Share of pairs of equal texts, after normalisation (`metrics.text.normalise`), in [0, 1]."""
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


def entailment_pairs(groups: Groups) -> pd.DataFrame:
    """What an NLI model must be asked for `entailment`: premise, hypothesis.

    The distinct ordered pairs of non-empty texts that occur in a group; a text that occurs twice
    in a group is paired with itself, because such models do not give 1 for it (table 3).
    """
    pairs = {
        pair for texts in groups for pair, n in _ordered_pairs(texts).items() if n and all(pair)
    }
    return pd.DataFrame(sorted(pairs), columns=["premise", "hypothesis"])


def entailment(groups: Groups, table: pd.DataFrame) -> Array:
    """Mean probability of entailment over the ordered pairs of each group, in [0, 1].

    `table` holds premise, hypothesis and entailment (probability) for the pairs of
    `entailment_pairs`; entailment is asymmetric, and both directions count (Raj et al., 2022).
    Raises ValueError for a pair that the table lacks.
    """
    known = {
        (str(premise), str(hypothesis)): float(probability)
        for premise, hypothesis, probability in zip(
            table["premise"], table["hypothesis"], table["entailment"], strict=True
        )
    }
    known[("", "")] = 1.0
    values = []
    for texts in groups:
        total = 0.0
        for (premise, hypothesis), n in _ordered_pairs(texts).items():
            one_is_empty = (premise == "") != (hypothesis == "")
            if not n or one_is_empty:
                continue
            if (premise, hypothesis) not in known:
                raise ValueError(
                    f"the table has no entailment of {hypothesis!r} by {premise!r}; ask the NLI "
                    "model for all pairs of entailment_pairs"
                )
            total += n * known[premise, hypothesis]
        values.append(total)
    return _per_pair(np.array(values), np.array([len(texts) for texts in groups], dtype=float))


def _squared_sums(
    group: NDArray, which: NDArray, groups: int, embed: Callable, names: list[str]
) -> Array:
    """|sum of unit vectors|^2 of each group; row i is text `which[i]` in group `group[i]`."""
    from scipy.sparse import csr_array

    vectors = np.asarray(embed(names))
    if vectors.ndim != 2 or len(vectors) != len(names):
        raise ValueError(
            f"{len(names)} texts were embedded as an array of shape {vectors.shape}; the encoder "
            "must return one vector a text"
        )
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=float))
    if bad := np.flatnonzero(~np.isfinite(length) | (length == 0)).tolist():
        raise ValueError(
            f"{len(bad)} text(s), such as {names[bad[0]]!r}, have a vector that is zero or not "
            "finite; the cosine needs a direction"
        )
    # Repeated (group, text) cells add up, so every distinct vector is touched once a group.
    sums = csr_array((1 / length[which], (group, which)), shape=(groups, len(names)))
    squared = np.zeros(groups)
    for start in range(0, vectors.shape[1], DIMENSIONS):
        part = sums @ vectors[:, start : start + DIMENSIONS].astype(float)
        squared += np.einsum("ij,ij->i", part, part)
    return squared


def _clusters(texts: Sequence[str]) -> NDArray[np.int64]:
    """How often each distinct normalised text occurs."""
    return np.array(list(Counter(map(normalise, texts)).values()), dtype=np.int64)


def _ordered_pairs(texts: Sequence[str]) -> dict[tuple[str, str], int]:
    """How often each ordered pair of distinct texts, or of a text with itself, occurs."""
    counts = Counter(text.strip() for text in texts)
    return {(a, b): counts[a] * (counts[b] - (a == b)) for a, b in product(counts, counts)}


def _per_pair(sums: Array, n: NDArray) -> Array:
    """Sums over ordered pairs as means over them; NaN without a pair."""
    return np.where(n > 1, sums / np.maximum(n * (n - 1.0), 1.0), np.nan)
