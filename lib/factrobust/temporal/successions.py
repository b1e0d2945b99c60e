"""Part 2, beyond the paper: whom of an office's holders does a model name for a year?

Scores are `schemas.HolderScores`. The holder named for a moment (a chain and a year) is the
likeliest one after the dated question, the first of equals.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

MOMENT = ["model", "chain", "year"]
WEIGHTS = (
    0.0,
    0.25,
    0.5,
    1.0,
    2.0,
    4.0,
)  # of a model's scores beside the order
WIDTH = 0.3  # of the kernel of lengths, in log(n + 1)


def above_own_mean(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores with a column `above`: logprob minus the holder's mean over the chain's years, so that
    no holder, as a well-known one, is preferred in all years."""
    mean = scores.groupby(["model", "chain", "candidate"])["logprob"].transform("mean")
    return scores.assign(above=scores["logprob"] - mean)


def predicted(scores: pd.DataFrame) -> pd.DataFrame:
    """Who is named at each moment, the likeliest by `above`: model, chain, year, term, holder (the right
    one), named, right (0 or 1), and `permuted`: how likely it is right when the chain's names are dealt
    to its years at random. Holders count, not terms: one who returned is right in both."""
    top = scores.loc[
        scores.groupby(MOMENT, sort=False)["above"].idxmax(),
        [*MOMENT, "holder"],
    ]
    top = top.rename(columns={"holder": "named"})
    asked = scores.loc[
        scores["candidate"] == scores["term"],
        [*MOMENT, "term", "holder"],
    ]
    table = asked.merge(top, on=MOMENT)
    shares = table.groupby(["model", "chain"])["named"].value_counts(normalize=True)
    dealt = pd.MultiIndex.from_frame(table[["model", "chain", "holder"]])
    permuted = shares.reindex(dealt, fill_value=0).to_numpy()
    return table.assign(
        right=(table["named"] == table["holder"]).astype(float),
        permuted=permuted,
    )


def with_order(scores: pd.DataFrame, terms: pd.DataFrame) -> pd.DataFrame:
    """Whom the order of holders and the usual length of a term name, alone and with a model's scores.

    Known are the holders of a chain in their order (`terms`: `schemas.Terms`), and its first and last
    year asked. A term takes n = 0, 1, ... of the years between, with the probability of
    `usual_lengths` of the terms of all other chains. In a year asked, a model adds
    exp(w above_own_mean) for a holder, with the weight w of WEIGHTS that is best on all other chains
    (0: it is not used).

    A row a model, chain and year: weight; order and both, log2 of the probability of the right
    holder without and with the model, bits (both minus order); right_order and right_both (1 if the
    right holder is the likeliest).
    """
    ends = terms["end"].replace("", "2021").str[:4].astype(int)
    years = (ends - terms["start"].str[:4].astype(int)).to_numpy()
    results = []
    for (model, chain), part in above_own_mean(scores).groupby(["model", "chain"], sort=False):
        asked = part.pivot(
            index="year",
            columns="candidate",
            values="above",
        )
        every = asked.reindex(
            range(asked.index[0], asked.index[-1] + 1),
            fill_value=0.0,
        )
        others = years[(terms["chain"] != chain).to_numpy()]
        prior = np.log(usual_lengths(others, len(every)))
        names = part.drop_duplicates("candidate").set_index("candidate")["holder"]
        code = pd.factorize(names[asked.columns])[0]
        same = np.eye(code.max() + 1)[code]  # [term, holder]
        right = part.drop_duplicates("year").set_index("year")["term"].loc[asked.index]
        at = (
            (asked.index - asked.index[0]).to_numpy(),
            code[right.to_numpy()],
        )
        for weight in WEIGHTS:
            chances = posterior(weight * every.to_numpy(), prior) @ same
            found = pd.DataFrame(
                {
                    "year": asked.index,
                    "log2": np.log2(chances[at]),
                }
            )
            found["right"] = (chances[at[0]].argmax(axis=1) == at[1]).astype(float)
            results.append(
                found.assign(
                    model=str(model),
                    chain=str(chain),
                    weight=weight,
                )
            )
    every = pd.concat(results, ignore_index=True)
    means = every.groupby(["model", "chain", "weight"])["log2"].mean().unstack("weight")
    best = (means.groupby("model").transform("sum") - means).idxmax(axis=1).rename("weight")
    both = every.merge(best.reset_index())
    alone = every[every["weight"] == 0].drop(columns="weight")
    table = alone.merge(both, on=MOMENT, suffixes=("_order", "_both"))
    table = table.rename(
        columns={
            "log2_order": "order",
            "log2_both": "both",
        }
    )
    return table.assign(bits=table["both"] - table["order"])


def usual_lengths(counts: NDArray[Any], most: int) -> NDArray[np.float64]:
    """Probability of a term of n = 0 ... `most` years, [n], smoothed from the `counts` of other terms:
    their mean over kernels exp(-|log((n + 1) / (count + 1))| / WIDTH)."""
    lengths = np.arange(most + 1)[:, None]
    distance = np.abs(np.log(lengths + 1) - np.log(counts + 1))
    kernel = np.exp(-distance / WIDTH)
    mixed = (kernel / kernel.sum(axis=0)).sum(axis=1)
    return mixed / mixed.sum()


def posterior(evidence: NDArray[Any], prior: NDArray[Any]) -> NDArray[np.float64]:
    """P(term holds year), [year, term], of terms that follow each other and fill all years.
    `evidence` [year, term] is the log weight of a term in a year, `prior` [n] the log probability
    of a term of n years. Forward and backward sums of a semi-Markov chain."""
    years, terms = evidence.shape
    bounds = np.arange(years + 1)  # a term lasts from one bound to another
    sums = np.zeros((years + 1, terms))
    sums[1:] = evidence.cumsum(axis=0)
    length = bounds - bounds[:, None]  # [first, last]
    usual = np.where(length >= 0, prior[np.maximum(length, 0)], -np.inf)
    of_term = []
    for column in sums.T:
        of_term.append(usual + column - column[:, None])
    forward = [np.where(bounds == 0, 0.0, -np.inf)]
    backward = [np.where(bounds == years, 0.0, -np.inf)]
    with np.errstate(divide="ignore"):
        for weight in of_term:
            forward.append(logsumexp(forward[-1][:, None] + weight, axis=0))
        for weight in reversed(of_term):
            backward.insert(0, logsumexp(weight + backward[0], axis=1))
    all_ways = forward[-1][years]
    found = np.zeros((years, terms))
    for k, weight in enumerate(of_term):
        log_chance = forward[k][:, None] + weight + backward[k + 1] - all_ways
        chance = np.exp(log_chance)
        for year in range(years):
            found[year, k] = chance[: year + 1, year + 1 :].sum()
    return found


def moved_choices(scores: pd.DataFrame) -> pd.DataFrame:
    """Does the date move the choice between two holders the right way? A row a pair of terms asked.

    With l(a, t) the log-probability of holder a at the moment of term t, a pair has nats = l(a, a)
    - l(b, a) - l(a, b) + l(b, b), and moved = nats > 0: half of the pairs without knowledge. Needs
    one moment a term.
    """
    keys = ["model", "chain"]
    at = scores.set_index([*keys, "term", "candidate"])["logprob"]
    terms = scores[[*keys, "term"]].drop_duplicates()
    pairs = terms.merge(terms, on=keys, suffixes=("", "_other")).query("term < term_other")
    nats: Any = 0.0
    for term, sign in (("term", 1), ("term_other", -1)):
        for candidate in ("term", "term_other"):
            cells = pd.MultiIndex.from_frame(pairs[[*keys, term, candidate]])
            nats = nats + (sign if candidate == "term" else -sign) * at.loc[cells].to_numpy()
    return pairs.assign(nats=nats, moved=nats > 0).reset_index(drop=True)
