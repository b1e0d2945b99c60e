"""Part 2, beyond the paper: whom of an office's holders does a model name for a year?

Scores are a table `schemas.HolderScores`, of `probes.time.holders`. The holder who is named for a
moment (a chain and a year) is the likeliest one after the dated question, the first of equals.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

MOMENT = ["model", "chain", "year"]
MEASURES = ("right", "near", "distance")


def freed(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores with a column `freed`: logprob minus the holder's mean over the chain's years.

    So no holder is preferred in general, as a well-known or a short name is; what stays is which years
    suit a holder best. It uses what was asked, not what is true.
    """
    mean = scores.groupby(["model", "chain", "candidate"])["logprob"].transform("mean")
    return scores.assign(freed=scores["logprob"] - mean)


def predicted(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """Who is named at each moment: one row a model, chain and year.

    holder (the right one) and term (its number), named and predicted (its term; of a holder who
    returned the nearest to the right term), right, drift (predicted minus right term: below 0 is too
    early), near (at most one term off), distance (terms off), terms (how many the chain has).
    `value` is the column that counts: logprob, freed, or prior, the same for every year.
    """
    top = scores.loc[scores.groupby(MOMENT, sort=False)[value].idxmax(), [*MOMENT, "holder"]]
    named = scores.merge(top, on=[*MOMENT, "holder"])
    named = named.assign(drift=named["candidate"] - named["term"])
    named = named.loc[named["drift"].abs().groupby([named[k] for k in MOMENT]).idxmin()]
    named = named.rename(columns={"holder": "named", "candidate": "predicted", "true": "right"})
    holder = scores.loc[scores["candidate"] == scores["term"], [*MOMENT, "holder"]]
    table = named[[*MOMENT, "term", "named", "predicted", "right", "drift"]].merge(
        holder, on=MOMENT
    )
    table["distance"] = table["drift"].abs()
    table["near"] = table["distance"] <= 1
    sizes = scores.groupby(MOMENT).size().rename("terms").reset_index()
    return table.merge(sizes, on=MOMENT).astype(dict.fromkeys(MEASURES, float))


def confusion(predicted: pd.DataFrame) -> pd.DataFrame:
    """How often each term of a chain is named at the moments of each: a row a model, chain, term and
    predicted, with count, also of what never occurs, and share of the term's moments (n)."""
    rows = []
    for key, part in predicted.groupby(["model", "chain"], sort=False):
        terms = pd.RangeIndex(part["terms"].iloc[0])
        counts = pd.crosstab(part["term"], part["predicted"]).reindex(columns=terms, fill_value=0)
        for term, row in counts.iterrows():
            n = row.sum()
            rows += [(*key, term, other, count, count / n, n) for other, count in row.items()]
    columns = ["model", "chain", "term", "predicted", "count", "share", "n"]
    return pd.DataFrame(rows, columns=columns)


def baselines(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """Share of moments right, beside what is right without reading the year: a row a model and chain.

    moments (their number), right, uniform (any holder, drawn), constant (the holder of most moments:
    the best that a constant answer can do), preferred (the holder who is likeliest after the question
    without a date), and permuted (exactly: the mean over all ways to permute the chain's years).
    """
    seen, prior = predicted(scores, value), predicted(scores, "prior")
    rows = []
    for key, part in seen.groupby(["model", "chain"], sort=False):
        own = scores[(scores["model"] == key[0]) & (scores["chain"] == key[1])]
        undated = prior[(prior["model"] == key[0]) & (prior["chain"] == key[1])]
        truth, named = (part[side].value_counts(normalize=True) for side in ("holder", "named"))
        rows.append(
            {
                "model": key[0], "chain": key[1], "moments": len(part),
                "right": part["right"].mean(), "uniform": 1 / own["holder"].nunique(),
                "constant": truth.max(), "preferred": undated["right"].mean(),
                "permuted": float(truth.mul(named, fill_value=0).sum()),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def permutation_test(
    scores: pd.DataFrame, value: str = "logprob", n_draws: int = 9999
) -> pd.DataFrame:
    """Do the named holders go with the years? A row a model and measure.

    The measures are the means over moments of right, near and distance (`predicted`). In each of
    `n_draws` draws the years of every chain are permuted among its moments, which keeps how often each
    holder is named: permuted is the mean over draws, p = (1 + draws at least as good) / (1 + n_draws),
    where a small distance is good. n counts moments, chains their chains. Neighbouring years are
    alike, so that the test is meant for one moment a term.
    """
    table, rows = predicted(scores, value), []
    terms = scores.drop_duplicates(["chain", "candidate"]).groupby(["chain", "holder"])["candidate"]
    places = {key: part.to_numpy() for key, part in terms}
    for model, part in table.sort_values(["chain", "year"]).groupby("model", sort=False):
        chain, term = pd.factorize(part["chain"])[0], part["term"].to_numpy()
        apart = np.array(  # [moment, moment]: from who is named at one to who is right at the other
            [
                np.abs(places[key][:, None] - term).min(axis=0)
                for key in zip(part["chain"], part["named"], strict=True)
            ]
        )
        rng, at = np.random.default_rng(0), np.arange(len(part))
        drawn = np.empty((n_draws, len(part)))
        for draw in drawn:
            draw[:] = apart[at, np.lexsort((rng.random(len(part)), chain))]
        for measure, of in zip(
            MEASURES, (lambda x: x == 0, lambda x: x <= 1, lambda x: x), strict=True
        ):
            seen, null = of(apart[at, at]).mean(), of(drawn).mean(axis=1)
            good = null <= seen + 1e-9 if measure == "distance" else null >= seen - 1e-9
            p = (1 + good.sum()) / (1 + n_draws)
            rows.append((model, measure, seen, null.mean(), p, len(part), chain.max() + 1))
    columns = ["model", "measure", "mean", "permuted", "p", "n", "chains"]
    return pd.DataFrame(rows, columns=columns)
