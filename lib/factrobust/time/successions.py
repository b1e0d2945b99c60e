"""Part 2, beyond the paper: whom of an office's holders does a model name for a year?

Scores are a table `schemas.HolderScores`, of `time.probe.holders`. The holder who is named for a
moment (a chain and a year) is the likeliest one after the dated question, the first of equals.
"""

from typing import Any

import numpy as np
import pandas as pd

MOMENT = ["model", "chain", "year"]
MEASURES = ("right", "near", "distance")
N_DRAWS = 9999


def in_order(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores with a column `in_order`, of a rule that knows the order of an office's terms, not their
    lengths: the first is named in the first year asked, the last in the last, the others between them
    as the years go by, term (last term) (year - first) / (last - first), rounded."""
    years, last = scores.groupby("chain")["year"], scores.groupby("chain")["candidate"]
    first, span = years.transform("min"), years.transform("max") - years.transform("min")
    place = last.transform("max") * (scores["year"] - first) / span
    return scores.assign(in_order=-(place - scores["candidate"]).abs())


def minus_other_names(scores: pd.DataFrame) -> pd.DataFrame:
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
    early), near (at most one term off), distance (terms off), guess (the chance that one of the holders
    at most one term off, drawn, is right: 1/3, or 1/2 at an end) and terms (how many the chain has).
    `value` is the column that counts: logprob, freed, in_order, or prior, the same for every year.
    """
    top = scores.loc[scores.groupby(MOMENT, sort=False)[value].idxmax(), [*MOMENT, "holder"]]
    named = scores.merge(top, on=[*MOMENT, "holder"])
    named = named.assign(drift=named["candidate"] - named["term"])
    named = named.loc[named["drift"].abs().groupby([named[k] for k in MOMENT]).idxmin()]
    named = named.rename(columns={"holder": "named", "candidate": "predicted", "true": "right"})
    holder = scores.loc[scores["candidate"] == scores["term"], [*MOMENT, "holder"]]
    named = named[[*MOMENT, "term", "named", "predicted", "right", "drift"]]
    table = named.merge(holder, on=MOMENT)
    table["distance"] = table["drift"].abs()
    table["near"] = table["distance"] <= 1
    around = scores[(scores["candidate"] - scores["term"]).abs() <= 1].groupby(MOMENT)["holder"]
    sizes = pd.DataFrame({"guess": 1 / around.nunique(), "terms": scores.groupby(MOMENT).size()})
    table = table.merge(sizes.reset_index(), on=MOMENT)
    return table.astype(dict.fromkeys(MEASURES, float))


def confusion(predicted: pd.DataFrame) -> pd.DataFrame:
    """How often each term of a chain is named at the moments of each: a row a model, chain, term and
    predicted, with count, also of what never occurs, and share of the term's moments (n)."""
    tables = {}
    for key, part in predicted.groupby(["model", "chain"], sort=False):
        terms = pd.RangeIndex(part["terms"].iloc[0], name="predicted")
        counts = pd.crosstab(part["term"], part["predicted"]).reindex(columns=terms, fill_value=0)
        tables[key] = pd.Series(counts.stack(), name="count")
    table = pd.concat(tables, names=["model", "chain"])
    n = table.groupby(["model", "chain", "term"]).transform("sum")
    return table.to_frame().assign(share=table / n, n=n).reset_index()


def baselines(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """How likely each moment is right by rules that do not read the year, and by the order of terms.

    One row a model, chain, year and `rule`, with right: "the model" (`predicted`), "any holder" (drawn),
    "one for all" (the holder of most of the chain's moments, the best constant), "undated" (who is
    likeliest after the question without a date), "permuted" (the model's names, the chain's years
    permuted: exactly, the mean over all ways) and "in order" (`in_order`).
    """
    table = predicted(scores, value)
    chain = [table["model"], table["chain"]]
    named = table.groupby(["model", "chain"])["named"].value_counts(normalize=True)
    holders = scores.groupby(["model", "chain"])["holder"].nunique()
    most = table["holder"].groupby(chain).transform(lambda names: names.mode()[0])
    keys = [pd.MultiIndex.from_frame(table[["model", "chain", *k]]) for k in ([], ["holder"])]
    rules: dict[str, Any] = {
        "the model": table["right"],
        "any holder": 1 / holders.reindex(keys[0]).to_numpy(),
        "one for all": (table["holder"] == most).astype(float),
        "undated": predicted(scores, "prior")["right"],
        "permuted": named.reindex(keys[1], fill_value=0).to_numpy(),
        "in order": predicted(in_order(scores), "in_order")["right"],
    }
    wide = table[MOMENT].assign(**rules)
    return wide.melt(MOMENT, [*rules], "rule", "right")


def permutation_test(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """Do the named holders go with the years? A row a model, measure and null.

    The measures are the means over moments of right, near and distance (`predicted`). In each of
    N_DRAWS draws the moments of every chain, in order of time, are named as others of it are, which
    keeps how often each holder is named: "permuted" in any order; "shifted" all by the same number,
    in a circle, each number (0 too) being as likely, so that names that drift with the years go on
    drifting, but for one leap. expected is the mean over draws, p = (1 + draws at least as good) /
    (1 + N_DRAWS), where a small distance is good; n counts moments, chains their chains.
    Neighbouring years are alike: permute only with one moment a term.
    """
    table, rows = predicted(scores, value), []
    every = scores.drop_duplicates(["chain", "candidate"]).groupby(["chain", "holder"])["candidate"]
    places = {key: part.to_numpy() for key, part in every}
    measured = dict(zip(MEASURES, (lambda x: x == 0, lambda x: x <= 1, lambda x: x), strict=True))
    for model, part in table.sort_values(["chain", "year"]).groupby("model", sort=False):
        chain, term = pd.factorize(part["chain"])[0], part["term"].to_numpy()
        named = [places[key][:, None] for key in zip(part["chain"], part["named"], strict=True)]
        # [moment, moment]: from who is named at one to who is right at the other
        apart = np.array([np.abs(terms - term).min(axis=0) for terms in named])
        at, size = np.arange(len(part)), np.bincount(chain)
        first = (size.cumsum() - size)[chain]
        for null in ("permuted", "shifted"):
            rng, drawn = np.random.default_rng(0), np.empty((N_DRAWS, len(part)))
            for draw in drawn:
                shift = (rng.random(len(size)) * size).astype(int)[chain]
                others = first + (at - first + shift) % size[chain]
                if null == "permuted":
                    others = np.lexsort((rng.random(len(part)), chain))
                draw[:] = apart[others, at]
            for measure, of in measured.items():
                seen, chance = of(apart[at, at]).mean(), of(drawn).mean(axis=1)
                good = chance <= seen + 1e-9 if measure == "distance" else chance >= seen - 1e-9
                p = (1 + good.sum()) / (1 + N_DRAWS)
                counts = len(part), len(size)
                rows.append((model, measure, null, seen, chance.mean(), p, *counts))
    columns = ["model", "measure", "null", "mean", "expected", "p", "n", "chains"]
    return pd.DataFrame(rows, columns=columns)


def standing_out(scores: pd.DataFrame) -> pd.DataFrame:
    """Does a holder stand out in the own term from what a smooth drift would do? A row a moment, nats.

    The bend of a score is what it lies above the straight line between the years asked before and
    after; nats is the right holder's bend minus the mean bend of those one term off, in the same year.
    It is 0 where each score is a line or the same parabola of the year, wherever its top is, as names
    of an era are, and 1.5 where each holder's score is one nat higher in the own term and terms are
    equal. Needs one moment a term; a chain's first and last years have no bend.
    """
    table = scores.sort_values("year", kind="stable")
    lines = table.groupby(["model", "chain", "candidate"])[["year", "logprob"]]
    before, after = lines.shift(1), lines.shift(-1)
    share = (table["year"] - before["year"]) / (after["year"] - before["year"])
    level = before["logprob"] + share * (after["logprob"] - before["logprob"])
    table = table.assign(bend=table["logprob"] - level).dropna(subset="bend")
    off = (table["candidate"] - table["term"]).abs()
    table = table[(off == 0) | (off == 1) & ~table["true"]]
    bends = table.groupby([*MOMENT, "true"])["bend"].mean().unstack("true")
    return (bends[True] - bends[False]).rename("nats").dropna().reset_index()


def crossed(scores: pd.DataFrame) -> pd.DataFrame:
    """Does the date move the choice between two holders the right way? A row a pair of terms asked.

    With l(a, t) the log-probability of holder a at the moment of term t, a pair of terms a, b has
    nats = l(a, a) - l(b, a) - l(a, b) + l(b, b), and moved, whether that is above 0: how likely a holder
    is in general falls out, so that half of the pairs move without knowledge. Needs one moment a term.
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
