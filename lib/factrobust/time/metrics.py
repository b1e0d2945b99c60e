"""Part 2's matches: does every correct date beat every incorrect one?

In a match a correct date meets an incorrect one of the same fact and precision; it wins if the
object is strictly more probable after it (paper 2, equation 1). Scores are `schemas.Scores`,
matched rows `schemas.Matched`. Comparisons of precisions (4.4, 4.6) leave out facts undefined at
one of them.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from factrobust import draws, schemas
from factrobust.time.dates import PRECISIONS

KEY = ["model", "prompt_format", "fact_id"]
CELL = [*KEY, "precision"]
COUNTS = ["n_correct", "n_incorrect", "matches", "wins", "ties"]
GLOBAL = "global"
OUTCOMES = ("win", "tie", "lose")  # of a duel
DUELLED = ("win_rate", "robust")
WIDTH = 0.5  # of a bin of alpha


def matches(scores: pd.DataFrame) -> pd.DataFrame:
    """Win rate W and robustness R of each cell of `schemas.Matched` (3.2.2).

    The margin is the lowest correct minus the highest incorrect logprob; robust means margin > 0.
    Without a match win_rate, margin and chance are NaN and robust is NA. Rows of precision "global"
    join the three precisions (NaN if one is undefined): win_rate over all matches, robust at all
    three, chance their product.
    """
    logprobs, rows = scores["logprob"].to_numpy(dtype=float), []
    masks = [(scores["label"] == label).to_numpy(dtype=bool) for label in ("correct", "incorrect")]
    places: Any = scores.groupby(CELL, sort=False).indices.items()
    for cell, at in sorted(places, key=lambda place: place[1][0]):
        correct, incorrect = (np.sort(logprobs[at[mask[at]]]) for mask in masks)
        numbers = len(correct), len(incorrect), len(correct) * len(incorrect)
        below = np.searchsorted(incorrect, correct, side="left")  # each correct date's wins
        ties = np.searchsorted(incorrect, correct, side="right") - below
        margin = correct[0] - incorrect[-1] if numbers[2] else np.nan
        rows.append((*cell, *numbers, below.sum(), ties.sum(), margin, chance(*numbers[:2])))
    single = pd.DataFrame(rows, columns=[*CELL, *COUNTS, "margin", "chance"])
    facts = single.groupby(KEY, sort=False)
    joint = facts.agg(dict.fromkeys(COUNTS, "sum") | {"margin": "min", "chance": "prod"})
    joint.loc[facts["margin"].count() < len(PRECISIONS), ["margin", "chance"]] = np.nan
    table = pd.concat([single, joint.assign(precision=GLOBAL).reset_index()], ignore_index=True)
    known = table["margin"].notna()
    table["win_rate"] = (table["wins"] / table["matches"].where(known)).astype(float)
    table["robust"] = (table["margin"] > 0).astype("boolean").mask(~known)
    fact = table.groupby(KEY, sort=False).ngroup()
    order = np.lexsort((table["precision"].map([*PRECISIONS, GLOBAL].index), fact))
    return table[[*schemas.Matched.columns]].iloc[order].reset_index(drop=True)


def match_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Every match: a row a cell and pair of dates, with correct and incorrect (the dates) and
    outcome ("won", "tied" or "lost" by the correct one)."""
    parts = [scores[scores["label"] == label] for label in ("correct", "incorrect")]
    good, bad = (part[[*CELL, "date", "logprob"]] for part in parts)
    both = good.merge(bad, on=CELL, suffixes=("", "_other"))
    difference = both["logprob"] - both["logprob_other"]
    outcome = np.select([difference > 0, difference == 0], ["won", "tied"], "lost")
    both = both.rename(columns={"date": "correct", "date_other": "incorrect"})
    return both[[*CELL, "correct", "incorrect"]].assign(outcome=outcome)


def chance(n_correct: int, n_incorrect: int) -> float:
    """Probability 1 / C(n_correct + n_incorrect, n_correct) that all correct dates come first. It
    holds for a random order without ties; smooth scores are robust by luck more often. NaN without
    match."""
    if n_correct < 1 or n_incorrect < 1:
        return math.nan
    return 1 / math.comb(n_correct + n_incorrect, n_correct)


def later_is_likelier(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of a model of this name, a rule that knows nothing of facts: year - 2100 (nats)."""
    first = scores[scores["model"] == scores["model"].iloc[0]]
    return first.assign(model="later is likelier", logprob=first["year"] - 2100.0)


def arch(scores: pd.DataFrame, peak: int) -> pd.DataFrame:
    """The scores of a rule that knows one year for all facts: the nearer to `peak`, the likelier."""
    rule = later_is_likelier(scores)
    return rule.assign(
        model=f"nearer to {peak}", logprob=-(rule["year"] - peak).abs().astype(float)
    )


def positions(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores with `position`, the centre of their date's bin of alpha (of WIDTH), or for a
    transitional date its edge, -0.5 or 0.5 (figure 3); and `relative`, logprob minus its mean over
    the fact's correct dates at this precision, because far positions hold other facts."""
    correct = scores["logprob"].where(scores["label"] == "correct")
    mean = correct.groupby([scores[name] for name in CELL]).transform("mean")
    alpha = scores["alpha"]
    bins = (np.floor(alpha / WIDTH) + 0.5) * WIDTH
    position = bins.where(scores["label"] != "transitional", np.sign(alpha) / 2)
    return scores.assign(position=position, relative=scores["logprob"] - mean)


def popularity_bins(matched: pd.DataFrame, facts: pd.DataFrame, *, bins: int = 5) -> pd.DataFrame:
    """Matched rows with popularity_bin of their fact, bins of equal numbers of facts (figure 8; 0:
    least popular), and popularity, the bin's mean. `facts`: fact_id and popularity
    (`time.facts.popularities`). Ties are ordered by a hash of fact_id; unknown ones left out."""
    ordered = facts[facts["fact_id"].isin(matched["fact_id"])].dropna(subset=["popularity"])
    ordered = ordered.assign(lot=ordered["fact_id"].map(draws.hash48))
    ordered = ordered.sort_values(["popularity", "lot"])[["fact_id", "popularity"]]
    ordered["popularity_bin"] = np.arange(len(ordered)) * bins // len(ordered)
    ordered["popularity"] = ordered.groupby("popularity_bin")["popularity"].transform("mean")
    return matched.merge(ordered, on="fact_id", validate="many_to_one")


def verdicts(matched: pd.DataFrame) -> pd.DataFrame:
    """R of each model, prompt format and fact at the year, month and day, side by side: 1 (robust), 0,
    or NaN (undefined or not asked)."""
    wide = matched.pivot(index=KEY, columns="precision", values="robust")
    wide = wide.reindex(columns=list(PRECISIONS)).astype("Float64").astype(float)
    return wide.rename_axis(columns=None).reset_index()


def paired_variances(matched: pd.DataFrame, standard: str, few_shot: str) -> pd.DataFrame:
    """Population variances of a fact's three R's (paper 2, 4.6) in two prompt formats: model,
    fact_id, standard, few_shot. Only facts with both.

    Figure 6 is the ratio of the means (`statistics.ratio_of_sums` of few_shot and standard); below
    1 the few-shot prompt brought the precisions together. Section 4.6 divides the other way round,
    but reads a ratio below 1 as a reduction; we keep the reading.
    """
    robust = verdicts(matched).set_index(KEY).sum(axis=1, skipna=False) / len(PRECISIONS)
    pairs = (robust * (1 - robust)).unstack("prompt_format")[[standard, few_shot]].dropna()
    return pairs.set_axis(["standard", "few_shot"], axis="columns").reset_index()


def size_fits(rates: pd.DataFrame) -> pd.DataFrame:
    """Least-squares line of a rate over log10 of the parameters, for every family and kind of at
    least three sizes (figure 7). `rates`: mean, and `models.load.sizes`. Columns: family, kind,
    slope (a tenfold size), intercept, smallest, largest (sizes)."""
    rows = []
    for key, part in rates[rates["family"] != ""].groupby(["family", "kind"], sort=False):
        x = np.log10(part["parameters"].to_numpy(dtype=float))
        if len(np.unique(x)) >= 3:
            slope, intercept = np.polyfit(x, part["mean"], 1)
            ends = part["parameters"].min(), part["parameters"].max()
            rows.append((*key, slope, intercept, *ends))
    columns = ["family", "kind", "slope", "intercept", "smallest", "largest"]
    return pd.DataFrame(rows, columns=columns)


def duels(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Does `first` win, tie or lose against `second`, each of one model and prompt format? A row a
    fact, precision and metric (DUELLED) that both have."""
    sides = []
    for place, table in (("first", first), ("second", second)):
        values = table.astype(dict.fromkeys(DUELLED, "Float64"))
        long = values.melt(CELL, DUELLED, "metric", value_name=f"{place}_value")
        sides.append(long.rename(columns={"model": place, "prompt_format": f"{place}_format"}))
    both = sides[0].merge(sides[1], on=["fact_id", "precision", "metric"], validate="one_to_one")
    both = both.dropna(subset=["first_value", "second_value"]).reset_index(drop=True)
    difference = (both.pop("first_value") - both.pop("second_value")).astype(float)
    outcome = np.select([difference > 0, difference == 0], OUTCOMES[:2], OUTCOMES[2])
    return both.assign(outcome=outcome)


def duel_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Share of each outcome of `duels` (figure 9), also of those that never occurred, among n facts."""
    by = ["first", "first_format", "second", "second_format", "precision", "metric"]
    wide = table.groupby([*by, "outcome"], sort=False).size().unstack(fill_value=0)
    wide = wide.reindex(columns=list(OUTCOMES), fill_value=0).reset_index()
    counts = wide.melt(by, list(OUTCOMES), var_name="outcome", value_name="count")
    n = counts.groupby(by, sort=False)["count"].transform("sum")
    return counts.assign(share=counts["count"] / n, n=n)
