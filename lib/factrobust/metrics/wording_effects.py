"""Which wording breaks which fact: shares of the variance of right answers, and examples (part 3).

In each relation facts i and wordings v make a table of answers x_iv, 1 if right, else 0. With the mean
f_i of a fact, m_v of a wording and g of all, its sum of squares is that of three parts,

    sum (x_iv - g)^2 = V sum (f_i - g)^2 + n sum (m_v - g)^2 + sum (x_iv - f_i - m_v + g)^2,

of the n facts, of the V wordings, and of what is left: a wording that breaks this fact and not that
one. Means of wordings differ by chance, too; the variance components of the two-way random-effects
model, by the method of moments (Searle, Casella and McCulloch, Variance Components, 1992), do not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust.statistics import Interval, bootstrap_statistic
from factrobust.text import normalise

Array = NDArray[np.float64]
SOURCES = ("fact", "wording", "interaction")


def components(weights: Array, *wordings: Array) -> Array:
    """Variance components of facts, wordings and their interaction, [source, resample].

    `wordings` hold a column [fact] each, `weights` [resample, fact] how often a fact counts. A fact
    and its own copy say nothing about what facts have in common, so wordings are judged by pairs of
    different facts: with d_iv = x_iv - f_i, their component is the mean over such pairs of
    sum_v d_iv d_jv / (V - 1). With every weight 1 that is the estimate by the method of moments,
    (MS of wordings - MS of the rest) / n. It can be below 0; NaN for fewer than two facts.
    """
    x, total = np.stack(wordings, axis=1), weights.sum(1)
    facts, inner, v = x.mean(1), x - x.mean(1, keepdims=True), x.shape[1]
    squares = (inner**2).sum(1) / (v - 1)
    pairs = total**2 - (weights**2).sum(1)
    pairs = np.where(pairs > 0, pairs, np.nan)
    common = (np.einsum("rn,nv->rv", weights, inner) ** 2).sum(1) / (v - 1)
    wording = (common - np.einsum("rn,n->r", weights**2, squares)) / pairs
    rest = np.einsum("rn,n->r", weights, squares) / total - wording
    first, second = (np.einsum("rn,n->r", weights, facts**power) for power in (1, 2))
    return np.stack([(total * second - first**2) / pairs - rest / v, wording, rest])


def sums_of_squares(table: Array) -> Array:
    """Sums of squares of facts, wordings and what is left of a table [fact, wording]: [source]."""
    n, v = table.shape
    of_facts = v * ((table.mean(1) - table.mean()) ** 2).sum()
    of_wordings = n * ((table.mean(0) - table.mean()) ** 2).sum()
    return np.array([of_facts, of_wordings, table.var() * n * v - of_facts - of_wordings])


def variance_shares(
    marked: pd.DataFrame, right: str = "correct", *, n_boot: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Shares of the variance of the column `right`, a row a model, relation and source of SOURCES.

    `squares` is the source's share of the sum of squares, `share` that of the components with low and
    high (whole facts are drawn), n the facts that were asked in all wordings. The relation "all" sums
    over relations; there whole relations are drawn, and n counts them. Relations of one fact, and
    those whose answers are all right or all wrong, are left out. Of wordings, p is the share of the
    tables with as large a component, among `n_boot` where each fact's answers are permuted over
    wordings, and the one that was seen.
    """

    def added(weights: Array, *parts: Array) -> Array:
        return np.einsum("rn,sn->sr", weights, np.stack(parts))

    rng, rows = np.random.default_rng(seed), []
    for model, part in marked.groupby("model", sort=False):
        found = {}
        for relation, own in part.groupby("relation"):
            table = own.pivot(index="group_id", columns="variant", values=right).astype(float)
            x = table.dropna().to_numpy()
            if len(x) > 1 and x.min() < x.max():
                every = components(np.ones((1, len(x))), *x.T)[:, 0]
                found[relation] = sums_of_squares(x), every, _by_chance(x, n_boot, rng)
                rows += _rows((model, relation), components, x, *found[relation], n_boot)
        if found:
            squares, parts, chance = map(np.array, zip(*found.values(), strict=True))
            sums = squares.sum(0), parts.sum(0), chance.sum(0)
            rows += _rows((model, "all"), added, parts, *sums, n_boot)
    columns = ["model", "relation", "source", "squares", "share", *Interval._fields[1:], "p"]
    return pd.DataFrame(rows, columns=columns)


def _rows(
    key: tuple[Any, Any], parts_of: Callable[..., Array], table: Array,
    squares: Array, parts: Array, chance: Array, n_boot: int,
) -> list[tuple[Any, ...]]:  # fmt: skip
    """A row a source; `parts_of(weights, *columns of the table)` are components [source, resample]."""

    def share(source: int, weights: Array, *columns: Array) -> Array:
        found = parts_of(weights, *columns)
        total = found.sum(0)
        return np.where(total > 0, found[source] / np.where(total > 0, total, 1.0), np.nan)

    p = (1 + (chance >= parts[1] - 1e-12).sum()) / (1 + len(chance))
    return [
        (*key, source, squares[k] / squares.sum(),
         *bootstrap_statistic(partial(share, k), list(table.T), n_boot=n_boot), p if k == 1 else np.nan)
        for k, source in enumerate(SOURCES)
    ]  # fmt: skip


def _by_chance(x: Array, n: int, rng: np.random.Generator) -> Array:
    """The component of wordings in n tables [fact, wording] with each row permuted."""
    inner = x - x.mean(1, keepdims=True)
    means = rng.permuted(np.broadcast_to(inner, (n, *x.shape)), axis=2).sum(1)
    pairs = len(x) * (len(x) - 1) * (x.shape[1] - 1)
    return ((means**2).sum(1) - (inner**2).sum()) / pairs


def without_question(responses: pd.DataFrame) -> pd.DataFrame:
    """The answers, normalised, without the words of the question that each answers: what is left of
    a sentence that repeats it is what it says, and may be empty."""
    asked = [{*normalise(question).split()} for question in responses["question"]]
    kept = [
        " ".join(word for word in normalise(text).split() if word not in words)
        for text, words in zip(responses["text"], asked, strict=True)
    ]
    return responses.assign(text=pd.Series(kept, responses.index, dtype="str"))


def gallery(groups: pd.DataFrame) -> pd.DataFrame:
    """Of each model a typical question of each kind: consistent or not, right or wrong.

    `groups` is a table `schemas.Groups`. Consistent is a SCons of the model's median or more, typical
    the one nearest to the kind's median (of several the first by group_id). Returns the questions' rows
    with `consistent` and n, the number of the kind.
    """
    scons = groups.groupby("model")["scons"]
    table = groups.assign(consistent=groups["scons"] >= scons.transform("median"))
    kinds = table.groupby(["model", "consistent", "correct"])["scons"]
    far = (table["scons"] - kinds.transform("median")).abs().round(9)
    table = table.assign(n=kinds.transform("size"), far=far).sort_values(["far", "group_id"])
    table = table.drop_duplicates(["model", "consistent", "correct"]).drop(columns="far")
    return table.sort_values(["model", "consistent", "correct"], ascending=[True, False, False])


def answer_pairs(groups: pd.DataFrame) -> pd.DataFrame:
    """Every pair of answers of each group (`schemas.AnswerSets`): what equation 1 averages over.

    Returns model, group_id, first and second (numbers of the answers, from 0), answer_1 and answer_2.
    """
    rows = [
        (model, group, i, j, texts[i], texts[j])
        for model, group, texts in groups[["model", "group_id", "texts"]].itertuples(index=False)
        for i, j in combinations(range(len(texts)), 2)
    ]
    names = ["model", "group_id", "first", "second", "answer_1", "answer_2"]
    return pd.DataFrame(rows, columns=names)
