"""Part 2, beyond the paper: whom of an office's holders does a model name for a year?

Scores are `schemas.HolderScores`. The holder named for a moment (a chain and a year) is the
likeliest one after the dated question, the first of equals.
"""

from typing import Any

import numpy as np
import pandas as pd

MOMENT = ["model", "chain", "year"]
MEASURES = ("right", "near", "distance")
N_DRAWS = 9999


def in_order(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores with a column `in_order`, of a rule that knows only the order of an office's terms: it
    names term (last term) (year - first) / (last - first), rounded, of the years asked."""
    years, last = scores.groupby("chain")["year"], scores.groupby("chain")["candidate"]
    first, span = years.transform("min"), years.transform("max") - years.transform("min")
    place = last.transform("max") * (scores["year"] - first) / span
    return scores.assign(in_order=-(place - scores["candidate"]).abs())


def minus_other_names(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores with a column `freed`: logprob minus the holder's mean over the chain's years, so that
    no holder, as a well-known one, is preferred in all years."""
    mean = scores.groupby(["model", "chain", "candidate"])["logprob"].transform("mean")
    return scores.assign(freed=scores["logprob"] - mean)


def predicted(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """Who is named at each moment: one row a model, chain and year.

    holder (the right one), term (its number), named, predicted (its term; of a holder who returned
    the nearest), right, drift (predicted minus term), distance (terms off), near (at most one off),
    guess (the chance of a draw among the holders at most one term off) and terms (of the chain).
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
    """How often each term of a chain is named in the moments of each: model, chain, term,
    predicted, count (also 0), share of the term's moments, n."""
    tables = {}
    for key, part in predicted.groupby(["model", "chain"], sort=False):
        terms = pd.RangeIndex(part["terms"].iloc[0], name="predicted")
        counts = pd.crosstab(part["term"], part["predicted"]).reindex(columns=terms, fill_value=0)
        tables[key] = pd.Series(counts.stack(), name="count")
    table = pd.concat(tables, names=["model", "chain"])
    n = table.groupby(["model", "chain", "term"]).transform("sum")
    return table.to_frame().assign(share=table / n, n=n).reset_index()


def baselines(scores: pd.DataFrame, value: str = "logprob") -> pd.DataFrame:
    """How likely each moment is right by rules that do not read the year, and by the order of
    terms.

    A row a model, chain, year and `rule`, with right: "the model", "any holder" (drawn), "one for
    all" (the holder of most moments), "undated" (the likeliest after the undated question),
    "permuted" (the model's names, the mean over all permutations of the chain's years) and "in
    order" (`in_order`).
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

    The measures are means over moments of right, near and distance. In each of N_DRAWS draws the
    names of a chain's moments are "permuted", or "shifted" in a circle by one number, which keeps
    names that drift with the years. expected is the mean over draws, p = (1 + draws at least as
    good) / (1 + N_DRAWS), where a small distance is good; n counts moments, chains their chains.
    Permute only with one moment a term, since neighbouring years are alike.
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
    """Does a holder stand out in the own term from what a smooth drift would do? A row a moment,
    nats.

    The bend of a score is its height above the line between the years asked before and after; nats
    is the right holder's bend minus the mean bend of those one term off. It is 0 where scores are
    lines or one parabola of the year. Needs one moment a term; a chain's first and last years have
    no bend.
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
