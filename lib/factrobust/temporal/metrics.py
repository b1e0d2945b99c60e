"""Part 2's matches: does every correct date beat every incorrect one?

In a match a correct date meets an incorrect one of the same fact and precision; it wins if the
object is strictly more probable after it (paper 2, equation 1). Scores are `schemas.Scores`,
matched rows `schemas.Matched`. Comparisons of precisions (4.4, 4.6) leave out facts undefined at
one of them.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from factrobust import draws, schemas
from factrobust.tables import TooFewError, stacked
from factrobust.temporal.dates import PRECISIONS

KEY = ["model", "prompt_format", "fact_id"]
CELL = [*KEY, "precision"]
COUNTS = ["n_correct", "n_incorrect", "matches", "wins", "ties"]
GLOBAL = "global"
OUTCOMES = ("win", "tie", "lose")  # of a duel
DUELLED = ("win_rate", "robust")
WIDTH = 0.5  # of a bin of alpha
FEWEST = 10  # facts in a bin of popularity


def matches(scores: pd.DataFrame) -> pd.DataFrame:
    """Win rate W and robustness R of each cell of `schemas.Matched` (3.2.2).

    The margin is the lowest correct minus the highest incorrect logprob; robust means margin > 0.
    Without a match win_rate, margin and chance are NaN and robust is NA. Rows of precision "global"
    join the three precisions (NaN if one is undefined): win_rate over all matches, robust at all
    three, chance their product.
    """
    logprobs = scores["logprob"].to_numpy(dtype=float)
    labels = scores["label"].to_numpy()
    rows = []
    places: Any = scores.groupby(CELL, sort=False).indices.items()
    for cell, at in sorted(places, key=lambda place: place[1][0]):
        correct = np.sort(logprobs[at[labels[at] == "correct"]])
        incorrect = np.sort(logprobs[at[labels[at] == "incorrect"]])
        numbers = len(correct), len(incorrect)
        played = len(correct) * len(incorrect)
        below = np.searchsorted(incorrect, correct, side="left")  # each correct date's wins
        ties = np.searchsorted(incorrect, correct, side="right") - below
        margin = correct[0] - incorrect[-1] if played else np.nan
        row = (
            *numbers,
            played,
            below.sum(),
            ties.sum(),
            margin,
            chance(*numbers),
        )
        rows.append((*cell, *row))
    single = pd.DataFrame(rows, columns=[*CELL, *COUNTS, "margin", "chance"])
    facts = single.groupby(KEY, sort=False)
    joint = facts.agg(dict.fromkeys(COUNTS, "sum") | {"margin": "min", "chance": "prod"})
    joint.loc[
        facts["margin"].count() < len(PRECISIONS),
        ["margin", "chance"],
    ] = np.nan
    table = pd.concat(
        [
            single,
            joint.assign(precision=GLOBAL).reset_index(),
        ],
        ignore_index=True,
    )
    known = table["margin"].notna()
    of_known = table["matches"].where(known)
    table["win_rate"] = (table["wins"] / of_known).astype(float)
    table["robust"] = (table["margin"] > 0).astype("boolean").mask(~known)
    fact = table.groupby(KEY, sort=False).ngroup()
    precision = table["precision"].map([*PRECISIONS, GLOBAL].index)
    order = np.lexsort((precision, fact))
    return table[[*schemas.Matched.columns]].iloc[order].reset_index(drop=True)


def chance(n_correct: int, n_incorrect: int) -> float:
    """Probability 1 / C(n_correct + n_incorrect, n_correct) that all correct dates come first. It
    holds for a random order without ties; smooth scores are robust by luck more often. NaN without
    match."""
    if n_correct < 1 or n_incorrect < 1:
        return math.nan
    return 1 / math.comb(n_correct + n_incorrect, n_correct)


def later_is_likelier(
    scores: pd.DataFrame,
) -> pd.DataFrame:
    """The scores of a model of this name, a rule that knows nothing of facts: year - 2100 (nats)."""
    first = scores[scores["model"] == scores["model"].iloc[0]]
    return first.assign(
        model="later is likelier",
        logprob=first["year"] - 2100.0,
    )


def arch(scores: pd.DataFrame, peak: int) -> pd.DataFrame:
    """The scores of a rule that knows one year for all facts: the nearer to `peak`, the likelier."""
    rule = later_is_likelier(scores)
    return rule.assign(
        model=f"nearer to {peak}",
        logprob=-(rule["year"] - peak).abs().astype(float),
    )


def with_positions(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores with `position`, the centre of their date's bin of alpha (of WIDTH), or for a
    transitional date its edge, -0.5 or 0.5 (figure 3); and `relative`, logprob minus its mean over
    the fact's correct dates at this precision, because far positions hold other facts."""
    correct = scores["logprob"].where(scores["label"] == "correct")
    mean = correct.groupby([scores[name] for name in CELL]).transform("mean")
    alpha = scores["alpha"]
    bins = (np.floor(alpha / WIDTH) + 0.5) * WIDTH
    position = bins.where(
        scores["label"] != "transitional",
        np.sign(alpha) / 2,
    )
    return scores.assign(
        position=position,
        relative=scores["logprob"] - mean,
    )


def popularity_bins(
    matched: pd.DataFrame,
    facts: pd.DataFrame,
    *,
    bins: int = 5,
) -> pd.DataFrame:
    """Matched rows with popularity_bin of their fact, bins of equal numbers of facts (figure 8; 0:
    least popular), and popularity, the bin's mean. `facts`: fact_id and popularity
    (`temporal.facts.popularities`). Ties are ordered by a hash of fact_id; unknown ones left out."""
    ordered = facts[facts["fact_id"].isin(matched["fact_id"])].dropna(subset=["popularity"])
    ordered = ordered.assign(lot=ordered["fact_id"].map(draws.hash48))
    ordered = ordered.sort_values(["popularity", "lot"])[["fact_id", "popularity"]]
    ordered["popularity_bin"] = np.arange(len(ordered)) * bins // len(ordered)
    ordered["popularity"] = ordered.groupby("popularity_bin")["popularity"].transform("mean")
    return matched.merge(ordered, on="fact_id", validate="many_to_one")


def by_popularity(matched: pd.DataFrame, known: pd.DataFrame, *, bins: int) -> pd.DataFrame:
    """`popularity_bins` of each `what` of `temporal.facts.popularities` that is known of FEWEST facts
    a bin, one below the other. TooFewError if there is none."""
    parts = {}
    for what, part in known.groupby("what"):
        if part["fact_id"].nunique() >= FEWEST * bins:
            parts[what] = popularity_bins(matched, part, bins=bins)
    if not parts:
        raise TooFewError(
            f"No popularity is known of {FEWEST * bins} facts, {FEWEST} for each of n_bins = {bins}: "
            "ask more facts, or lower n_bins."
        )
    return stacked(parts, "what")


def robust_by_precision(matched: pd.DataFrame) -> pd.DataFrame:
    """R of each model, prompt format and fact at the year, month and day, side by side: 1 (robust), 0,
    or NaN (undefined or not asked)."""
    wide = matched.pivot(index=KEY, columns="precision", values="robust")
    wide = wide.reindex(columns=list(PRECISIONS)).astype("Float64").astype(float)
    return wide.rename_axis(columns=None).reset_index()


def paired_variances(matched: pd.DataFrame, standard: str, few_shot: str) -> pd.DataFrame:
    """Population variances of a fact's three R's (paper 2, 4.6) in two prompt formats: model,
    fact_id, standard, few_shot. Only facts with both.

    Figure 6 is the ratio of the means (`intervals.ratio_of_sums` of few_shot and standard); below
    1 the few-shot prompt brought the precisions together. Section 4.6 divides the other way round,
    but reads a ratio below 1 as a reduction; we keep the reading.
    """
    robust = robust_by_precision(matched).set_index(KEY).sum(axis=1, skipna=False) / len(PRECISIONS)
    pairs = (robust * (1 - robust)).unstack("prompt_format")[[standard, few_shot]].dropna()
    return pairs.set_axis(["standard", "few_shot"], axis="columns").reset_index()


def duels(defined: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """`duel` of each pair of models, one below the other. TooFewError without a pair."""
    if not pairs:
        raise TooFewError("A single model meets no other: name a second one in models or larger.")
    return pd.concat(duel(defined, first, second) for first, second in pairs)


def duel(defined: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Share of facts on which the first of two models wins, ties or loses (figure 9): a row a
    precision, metric (W or R) and `outcome`, also of those that never occurred, among n facts that
    both have. `defined`: `schemas.Matched` of one prompt format, without undefined rows."""
    keys = ["fact_id", "precision"]
    sides = [defined[defined["model"] == model].set_index(keys) for model in (first, second)]
    rows = []
    for metric in DUELLED:
        leads = (sides[0][metric] - sides[1][metric]).dropna()
        for precision, values in leads.groupby("precision"):
            shares = [
                (values > 0).mean(),
                (values == 0).mean(),
                (values < 0).mean(),
            ]
            pairs = zip(OUTCOMES, shares, strict=True)
            rows += [
                (
                    first,
                    second,
                    precision,
                    metric,
                    *pair,
                    len(values),
                )
                for pair in pairs
            ]
    columns = [
        "first",
        "second",
        "precision",
        "metric",
        "outcome",
        "share",
        "n",
    ]
    return pd.DataFrame(rows, columns=columns)
