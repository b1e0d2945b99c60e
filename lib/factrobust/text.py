"""When does a generated text state the right answer, and how alike are the texts of a group?

Paper 1 selects known facts by exact match (4.1.2) and counts a sampled answer as right if it contains
the truth (4.2), but does not say how strings are compared: `normalise` is the usual rule of SQuAD's
evaluation, without diacritics, and keeps a decimal point ("1.5" is not 15).

A network, given as a function, tells how alike the texts of a group are: one float per group, [group],
NaN for fewer than two texts. Paper 3 says nothing about empty texts, whose embedding has no direction:
here two empty texts are equal (similarity 1), and an empty and another share nothing (0).
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Groups = Sequence[Sequence[str]]

ARTICLES = re.compile(r"\b(?:a|an|the)\b")
IN_NUMBER = re.compile(r"(?<=\d),(?=\d{3}\b)")  # 1,000
SEPARATES = re.compile(r"[^\w\s.'’`\u200b-\u200d\u00ad]|_|(?<=\d)\.(?!\d)")
VANISHES = re.compile(r"[^\w\s.]|(?<!\d)\.|\.(?!\d)")
# Letters that have no decomposition.
PLAIN = str.maketrans("øłđðı", "olddi") | str.maketrans({"þ": "th", "æ": "ae", "œ": "oe"})


@lru_cache(maxsize=100_000)
def normalise(text: str) -> str:
    """Lower case, no diacritics, punctuation and articles, single spaces. Apostrophes, full stops
    inside a word ("U.S." -> "us") and commas of thousands vanish; other marks separate ("Coca-Cola"
    -> "coca cola"). A decimal point stays, and a text that is only articles."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in decomposed if not unicodedata.combining(c)).translate(PLAIN)
    words = VANISHES.sub("", SEPARATES.sub(" ", IN_NUMBER.sub("", plain))).split()
    without = ARTICLES.sub(" ", " ".join(words)).split()
    return " ".join(without or words)


def exact_match(text: str, answers: Sequence[str]) -> bool:
    """Whether the text is one of the accepted answers, after normalisation."""
    found = normalise(text)
    return bool(found) and any(found == normalise(answer) for answer in answers)


def contains(text: str, answers: Sequence[str], *, whole_words: bool = True) -> bool:
    """Whether an accepted answer occurs in the text, after normalisation. The paper's "contains"
    reads like a substring test (`whole_words=False`), which finds Niger in "Nigeria". By default an
    answer must begin and end where words do."""
    edge = " " if whole_words else ""
    found = f"{edge}{normalise(text)}{edge}"
    return any(f"{edge}{gold}{edge}" in found for gold in map(normalise, answers) if gold)


def int_sim(groups: Groups, embed: Callable[[list[str]], ArrayLike]) -> Array:
    """Mean pairwise cosine of each group's embeddings (equation 1), unclipped, in [-1, 1]: for n
    unit vectors u it is (|sum of u|^2 - n) / (n (n - 1)). `embed` is called once, with the
    distinct, non-empty, stripped texts, sorted, for their vectors, [text, dimension]."""
    from scipy.sparse import csr_array

    flat = list(map(str.strip, chain.from_iterable(groups)))
    names = sorted(set(flat) - {""})
    place = {name: i for i, name in enumerate(names)} | {"": -1}
    which = np.fromiter(map(place.__getitem__, flat), dtype=int, count=len(flat))
    n = np.array([len(texts) for texts in groups], dtype=int)
    group = np.repeat(np.arange(len(n)), n)
    # All empty texts share one unit vector, in a dimension of their own.
    squared = np.bincount(group[which < 0], minlength=len(n)) ** 2.0
    if names:
        vectors = np.asarray(embed(names))
        length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=float))
        group, which = group[which >= 0], which[which >= 0]
        # Repeated (group, text) cells add up, so every distinct vector is touched once a group.
        cells = csr_array((1 / length[which], (group, which)), shape=(len(n), len(names)))
        for some in np.array_split(vectors, ceil(vectors.shape[1] / 64), axis=1):  # fit in a cache
            sums = cells @ some.astype(float)
            squared += np.einsum("ij,ij->i", sums, sums)
    return per_pair(squared - n, n)


def clusters(groups: Groups, same: Callable[[list[tuple[str, str]]], ArrayLike]) -> list[list[int]]:
    """The cluster of each text of each group: 0, 1, ... in the order of the clusters' first texts.

    A text joins the first cluster whose first text says the same, or else begins a new one (Kuhn et
    al., 2022). Texts that are equal after normalisation say the same; an empty and another text do not.
    For all other pairs `same` tells. It is called once for all first clusters, once for all second
    ones, and so on, with the distinct pairs of all groups, sorted.
    """
    named = [[text.strip() for text in texts] for texts in groups]
    found: list[dict[str, int]] = [{} for _ in named]
    left = [list(dict.fromkeys(texts)) for texts in named]
    number = 0
    while any(left):
        met = {(min(a, b), max(a, b)) for a, *others in filter(None, left) for b in others}
        pairs = sorted((a, b) for a, b in met if a and normalise(a) != normalise(b))
        verdicts = np.asarray(same(pairs) if pairs else [], dtype=bool)
        alike = {pair for pair, yes in zip(pairs, verdicts, strict=True) if yes}
        for i, texts in enumerate(left):
            for text in texts:
                pair = min(texts[0], text), max(texts[0], text)
                if normalise(text) == normalise(texts[0]) or pair in alike:
                    found[i][text] = number
            left[i] = [text for text in texts if text not in found[i]]
        number += 1
    return [[known[text] for text in texts] for known, texts in zip(found, named, strict=True)]


def per_pair(sums: ArrayLike, sizes: ArrayLike) -> Array:
    """Means over the ordered pairs of each group, from their `sums` and the groups' `sizes` [group]."""
    n = np.asarray(sizes)
    return np.where(n > 1, sums / np.maximum(n * (n - 1.0), 1.0), np.nan)
