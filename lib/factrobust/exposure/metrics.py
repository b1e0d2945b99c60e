"""Dose and response: how a measure of a fact grows with the number of sentences that told it.

In the invented world (`datasets.world`) exposures were drawn by chance, so differences between them
are effects. Tables have a row a model and fact, with its `exposure` (sentences).
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression, least_squares
from scipy.special import betaincinv, expit
from scipy.stats import binomtest, rankdata

from factrobust import intervals
from factrobust.intervals import (
    TAILS,
    Array,
    Interval,
    bootstrap_correlation,
    exact_table,
)

SLOPES = (0.3, 6)  # of a curve, from flat to a step
LEVEL = 0.5  # of a share, that a curve is to reach
NEAR = 1e-9  # what counts as nothing, beside rounding
FOUND_AT_MOST = 0.05  # the level of Holm's test


def hill(
    exposure: ArrayLike,
    floor: ArrayLike,
    top: ArrayLike,
    half: ArrayLike,
    slope: ArrayLike,
) -> Array:
    """The response to an exposure, with the shape of `exposure`:

        floor + (top - floor) / (1 + (half / exposure)^slope)

    (Hill 1910, the four-parameter logistic of dose and response); `floor` at exposure 0, half of
    the way to `top` at `half`.
    """
    with np.errstate(divide="ignore"):
        steps = np.log(np.asarray(exposure, float)) - np.log(half)
    rise = np.asarray(top) - floor
    return floor + rise * expit(slope * steps)


def fit_hill(
    exposure: NDArray,
    mean: NDArray,
    n: NDArray,
    most: float = np.inf,
) -> Array:
    """Floor, top, half and slope of the best curve through mean responses [dose].

    Least squares, weighted by n facts. The floor is the mean at exposure 0, the top at most `most`,
    the half within the doses, the slope within SLOPES. NaN where the upper half of doses is no
    higher.
    """
    floor = mean[exposure == 0].mean()
    if not _upper_mean(exposure, mean, n) > floor:
        return np.array([floor, np.nan, np.nan, np.nan])
    dosed = exposure > 0
    dose = exposure[dosed]
    response = mean[dosed]
    weight = np.sqrt(n[dosed])
    reach = max(np.ptp(mean), NEAR)
    highest = max(min(floor + 3 * reach, most), floor + NEAR)

    def residuals(fit: Array) -> Array:
        top, log_half, slope = fit
        return weight * (hill(dose, floor, top, np.exp(log_half), slope) - response)

    start = [min(floor + reach, highest), np.log(np.median(dose)), 1.0]
    low = [floor, np.log(dose.min()), SLOPES[0]]
    high = [highest, np.log(dose.max()), SLOPES[1]]
    top, log_half, slope = least_squares(residuals, start, bounds=(low, high)).x
    return np.array([floor, top, np.exp(log_half), slope])


def fit_hills(
    exposure: NDArray,
    means: NDArray,
    n: NDArray,
    most: float = np.inf,
) -> Array:
    """`fit_hill` for means [dose, draw] at once, by a grid of halves and slopes: to a few percent.

    Returns [floor to slope, draw].
    """
    floor = means[exposure == 0].mean(axis=0)
    dosed = exposure > 0
    dose = exposure[dosed]
    # 1. Curves from 0 to 1, one a half and slope of the grid.
    halves = np.linspace(np.log(dose.min()), np.log(dose.max()), 300)
    slopes = np.geomspace(*SLOPES, 36)
    grid_halves, grid_slopes = np.meshgrid(halves, slopes)
    half = np.exp(grid_halves.ravel())
    slope = grid_slopes.ravel()
    shape = hill(dose[:, None], 0, 1, half, slope)  # [dose, curve]
    weighted = (shape * n[dosed, None]).astype(np.float32)
    size = (shape * weighted).sum(axis=0).astype(np.float32)
    # 2. What they are to reach.
    rise = (means[dosed] - floor).T.astype(np.float32)
    reach = np.maximum(np.ptp(means, axis=0), NEAR)
    highest = np.minimum(3 * reach, most - floor)[:, None].astype(np.float32)
    # 3. The best top of each curve is exact; the best curve is the one with the smallest loss.
    found = np.empty((3, len(floor)))
    n_parts = len(floor) // 8 + 1  # of draws, as many as a processor's cache holds
    for draws in np.array_split(np.arange(len(floor)), n_parts):
        along = rise[draws] @ weighted
        tops = along / size
        loss = np.clip(tops, 0, highest[draws], out=tops) * size
        loss -= 2 * along
        loss *= tops
        best = loss.argmin(axis=1)
        found[0, draws] = floor[draws] + tops[range(len(draws)), best]
        found[1, draws] = half[best]
        found[2, draws] = slope[best]
    grows = _upper_mean(exposure, means, n) > floor
    return np.vstack([floor, np.where(grows, found, np.nan)])


def _upper_mean(exposure: NDArray, means: NDArray, n: NDArray) -> Any:
    """The mean response to the upper half of doses."""
    upper = exposure >= np.median(exposure)
    return np.average(means[upper], axis=0, weights=n[upper])


def inverse_hill(fits: Array, largest: float) -> Array:
    """Where the curves of floor, top, half and slope, [4, curve], rise to LEVEL: `hill` turned
    round, half ((LEVEL - floor) / (top - LEVEL))^(1 / slope).

    inf where none of the exposures up to the largest is enough, 0 where the floor is.
    """
    floor, top, half, slope = fits
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (LEVEL - floor) / (top - LEVEL)
        at = half * ratio ** (1 / slope)
    is_reached = (top > LEVEL) & (at <= largest)
    return np.select([floor >= LEVEL, is_reached], [0, at], np.inf)


class Curves(NamedTuple):
    """The curves of one group of facts."""

    key: tuple[Any, ...]  # its name, by the columns `by`
    best: Array  # floor, top, half and slope
    drawn: Array  # the same of each draw of facts, [4, draw]
    largest: float  # exposure
    n: int  # facts


def dose_response(
    rows: pd.DataFrame,
    value: str,
    *,
    most: float = np.inf,
    n_boot: int = 200,
) -> pd.DataFrame:
    """The `hill` curve that fits a measure best, a row a model.

    `most` is the largest possible value. Columns: model, floor, top, mean (the half effect, in
    sentences) with its 95% interval low and high, slope, n (facts). The interval draws facts within
    each exposure; it is NaN where more than a tenth of the draws have no curve. Rows without the
    measure are left out. Compare half effects of curves that have the same top; others by
    `one_half`.
    """
    table = []
    for curves in _fits(rows, value, ["model"], most, n_boot):
        floor, top, half, slope = curves.best
        halves = curves.drawn[2]
        low, high = np.nan, np.nan
        if np.isfinite(half) and np.isfinite(halves).mean() >= 0.9:
            low, high = np.nanquantile(halves, [0.025, 0.975])
        table.append((*curves.key, floor, top, half, low, high, slope, curves.n))
    columns = ["model", "floor", "top", "mean", "low", "high", "slope", "n"]
    return pd.DataFrame(table, columns=columns)


def one_half(
    rows: pd.DataFrame,
    value: str,
    by: Sequence[str] = ("model",),
    *,
    n_boot: int = 200,
) -> pd.DataFrame:
    """The exposure at which the best curve of a share reaches one half, a row each combination of
    the columns `by`: these, mean, low, high, n.

    NaN where the curve stays below one half up to the largest exposure, as it does if its top is
    below; high is inf where more than a fortieth of the draws stay below.
    """
    table = []
    for curves in _fits(rows, value, by, 1, n_boot):
        [at] = inverse_hill(curves.best[:, None], curves.largest)
        numbers = [np.nan, np.nan, np.nan]
        if np.isfinite(at):
            reached = inverse_hill(curves.drawn, curves.largest)
            numbers = [at, *np.quantile(reached, [0.025, 0.975], method="nearest")]
        table.append((*curves.key, *numbers, curves.n))
    return pd.DataFrame(table, columns=[*by, *Interval._fields])


def _fits(
    rows: pd.DataFrame,
    value: str,
    by: Sequence[str],
    most: float,
    n_boot: int,
) -> Iterator[Curves]:
    """The curves of each combination of `by`."""
    rows = rows.dropna(subset=[value]).astype({value: float})
    for key, part in rows.groupby(list(by), sort=False):
        doses = part.groupby("exposure")[value]
        means = doses.mean()
        dose = means.index.to_numpy(float)
        n = doses.size().to_numpy(float)
        best = fit_hill(dose, means.to_numpy(float), n, most)
        drawn = fit_hills(dose, _drawn_means(doses, n_boot), n, most)
        yield Curves(key, best, drawn, dose.max(), len(part))


def _drawn_means(doses: Any, n_boot: int) -> Array:
    """Means [dose, draw] of as many facts of each exposure as there are, drawn anew."""
    rng = np.random.default_rng(0)
    means = []
    for _, values in doses:
        drawn = rng.choice(values.to_numpy(float), (n_boot, len(values)))
        means.append(drawn.mean(axis=1))
    return np.array(means)


def with_sibling(rows: pd.DataFrame) -> pd.DataFrame:
    """The facts of two relations about the same subjects, a row a model and fact, with the other
    fact of the subject: its object as sibling, its exposure as sibling_exposure."""
    other = rows[["model", "subject", "relation", "object", "exposure"]]
    other = other.rename(columns={"object": "sibling", "exposure": "sibling_exposure"})
    both = rows.merge(other, on=["model", "subject"], suffixes=("", "_other"))
    both = both[both["relation"] != both["relation_other"]]
    return both.drop(columns="relation_other").reset_index(drop=True)


def against_chance(
    rows: pd.DataFrame,
    by: Sequence[str] = ("model", "relation"),
) -> pd.DataFrame:
    """Is a share of right answers that of a guess? A row each combination of `by`.

    `rows`: right, and chance, the same in a combination. Columns: `by`, mean, low and high (exact),
    n, chance, p (two-sided, exact), holm (p after Holm 1979 over all rows: the smallest level for
    all tests together at which it is rejected; they may depend on each other), and found, the
    smallest share above chance that the first step of Holm's test at 0.05 would find four times of
    five.
    """
    from statsmodels.stats.multitest import multipletests  # a second to load

    table = exact_table(rows, by, "right")
    table["chance"] = rows.groupby(list(by))["chance"].first().to_numpy()
    n_right = (table["mean"] * table["n"]).round().astype(int)
    p_values = []
    smallest = []
    for right, n, chance in zip(n_right, table["n"], table["chance"], strict=True):
        p_values.append(binomtest(right, n, chance).pvalue)
        smallest.append(_smallest_found(n, chance, FOUND_AT_MOST / len(table)))
    _, holm, _, _ = multipletests(p_values, method="holm")
    return table.assign(
        p=p_values,
        holm=holm,
        found=smallest,
    )


def _smallest_found(n: int, chance: float, level: float) -> float:
    """The smallest share above chance that a test of n answers finds four times of five; NaN for
    none."""
    for right in range(int(np.ceil(n * chance)), n + 1):
        if binomtest(right, n, chance).pvalue <= level:
            return float(betaincinv(right, n - right + 1, 0.8))
    return np.nan


def fitted_curves(fits: pd.DataFrame, largest: float, points: int = 60) -> pd.DataFrame:
    """The curves of `dose_response` from 1 to the largest exposure: mean is the response."""
    doses = pd.DataFrame({"exposure": np.geomspace(1, largest, points)})
    curves = fits.dropna(subset=["mean"]).merge(doses, how="cross")
    response = hill(
        curves["exposure"],
        floor=curves["floor"],
        top=curves["top"],
        half=curves["mean"],
        slope=curves["slope"],
    )
    return curves.assign(mean=response)


def by_date(rows: pd.DataFrame) -> pd.DataFrame:
    """What each answer says of a subject that had several objects, one after the other.

    `rows`: model, chain (relation and subject), fact_id, object, exposure and text (the answer).
    Adds, from 0 to 1: own (the text is one of the chain's objects), right (the fact's), swapped
    (the share of the chain's answers that say the fact's object), beyond (right minus swapped), and
    most (the rule that always says the object told most; equals share).
    """
    chain = ["model", "chain"]
    others = rows[[*chain, "fact_id", "object"]]
    both = rows.merge(others, on=chain, suffixes=("", "_other"))
    both["hit"] = (both["text"] == both["object_other"]).astype(float)
    of_chain = both.groupby(["model", "fact_id"])["hit"].max()
    swapped = both.groupby(["model", "fact_id_other"])["hit"].mean()
    rows = rows.join(of_chain.rename("own"), on=["model", "fact_id"])
    rows = rows.join(swapped.rename("swapped"), on=["model", "fact_id"])
    rows["right"] = (rows["text"] == rows["object"]).astype(float)
    rows["beyond"] = rows["right"] - rows["swapped"]
    told_most = rows.groupby(chain)["exposure"].transform("max")
    rows["most"] = (rows["exposure"] == told_most).astype(float)
    rows["most"] /= rows.groupby(chain)["most"].transform("sum")
    return rows


def rank_by_exposure(
    rows: pd.DataFrame,
    measures: Sequence[str],
    *,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """Spearman's correlation of measures with the exposure: a row a model and measure, with mean,
    low, high and n (facts, which are drawn). Facts without the measure are left out; NaN for a
    constant measure."""
    table = []
    for (model, part), measure in product(rows.groupby("model", sort=False), measures):
        known = part.dropna(subset=[measure])
        exposure = rankdata(known["exposure"])
        value = rankdata(known[measure])
        interval = bootstrap_correlation(exposure, value, n_boot=n_boot)
        table.append((model, measure, *interval))
    return pd.DataFrame(table, columns=["model", "measure", *Interval._fields])


def permuted_gains(
    rows: pd.DataFrame,
    measures: Sequence[str],
    *,
    n_permuted: int = 2000,
) -> pd.DataFrame:
    """What each measure adds to the log-probability, beside what chance adds: a row a model,
    measure.

    mean is the gain in R squared of the exposure's ranks when the measure's ranks join those of
    logprob. A gain in the sample is never negative. So the part of the measure that logprob does
    not hold is permuted over the facts (Freedman and Lane 1983): chance is the 95% point of the
    gains, p_value the share of them (and the real one) that are as large. n (facts with the
    measure); NaN for a measure without such a part.
    """
    rng = np.random.default_rng(0)
    table = []
    for (model, part), measure in product(rows.groupby("model", sort=False), measures):
        known = part.dropna(subset=[measure])
        exposure = rankdata(known["exposure"])
        logprob = rankdata(known["logprob"])
        rest = _residual(rankdata(known[measure]), logprob)
        gain, chance, p_value = np.nan, np.nan, np.nan
        if (rest**2).sum() > NEAR * len(known):
            drawn = rng.permuted(np.tile(rest, (n_permuted, 1)), axis=1)
            gains = _gains(
                np.vstack([rest, _residual(drawn, logprob)]),
                exposure,
                logprob,
            )
            gain = float(gains[0])
            chance = float(np.quantile(gains[1:], 0.95))
            p_value = float((gains >= gain - 1e-12).mean())
        table.append((model, measure, gain, chance, p_value, len(known)))
    return pd.DataFrame(
        table,
        columns=["model", "measure", "mean", "chance", "p_value", "n"],
    )


def _gains(rests: Array, exposure: Array, logprob: Array) -> Array:
    """What each of `rests` [draw, fact], beside logprob, adds to the R squared of exposure."""
    left = _residual(exposure, logprob)
    shared = np.einsum("ij,j->i", rests, left) ** 2 / (rests**2).sum(axis=1)
    return shared / ((exposure - exposure.mean()) ** 2).sum()


def _residual(values: Array, other: Array) -> Array:
    """What is left of values [..., row] beside another column, by least squares."""
    left = values - values.mean(axis=-1, keepdims=True)
    x = other - other.mean()
    slope = np.einsum("...j,j->...", left, x) / max((x**2).sum(), NEAR)
    return left - slope[..., None] * x


def stratified_auc(
    weights: Array,
    outcome: Array,
    score: Array,
    strata: Array,
) -> Array:
    """The share of pairs of a case with the outcome (1) and one without it (0), of the same
    stratum, in which the first has the higher score; ties count half.

    For `intervals.bootstrap_statistic`: weights [resample, row], columns [row]; NaN where a
    resample has no such pair.
    """
    with_it = outcome == 1
    without = outcome == 0
    is_pair = (strata[with_it][:, None] == strata[without]).astype(float)
    sign = np.sign(score[with_it][:, None] - score[without])
    is_won = is_pair * (1 + sign) / 2
    # Multiples of 1/2 add up exactly, in any order.
    won = np.sum(weights[:, with_it] @ is_won * weights[:, without], axis=1)
    pairs = np.sum(weights[:, with_it] @ is_pair * weights[:, without], axis=1)
    return intervals.ratio(won, pairs)


def exposure_at_level(
    rows: pd.DataFrame,
    value: str,
    *,
    at: float = 0.0,
    n_boot: int = 1000,
) -> pd.DataFrame:
    """The exposure at which the mean of a value that grows with exposure reaches `at`.

    A row a model: model, mean, low, high, n (facts). The place is that of `_place`; the interval
    draws facts within each exposure.
    """
    table = []
    for model, part in rows[rows["exposure"] > 0].groupby("model", sort=False):
        doses = part.groupby("exposure")[value]
        means = doses.mean()
        dose = means.index.to_numpy(float)
        n = np.array([len(values) for _, values in doses], dtype=float)
        found = _place(dose, means.to_numpy(float), n, at)
        drawn = [_place(dose, draw, n, at) for draw in _drawn_means(doses, n_boot).T]
        low, high = np.quantile(drawn, TAILS, method="inverted_cdf")
        table.append((model, found, low, high, len(part)))
    return pd.DataFrame(table, columns=["model", *Interval._fields])


def _place(dose: Array, means: Array, n: Array, at: float) -> float:
    """Where means [dose] of n facts reach a level.

    The means are made monotone (isotonic regression, weighted by facts), and the place between two
    exposures is found on the line between their means, on a log scale. It is the smallest exposure
    if the level is reached there, inf if it never is.
    """
    rising = isotonic_regression(means, weights=n).x - at
    is_reached = rising > -NEAR
    if not is_reached[-1]:
        return np.inf
    first = is_reached.argmax()
    if first == 0:
        return dose[0]
    around = slice(first - 1, first + 1)
    return np.exp(np.interp(0, rising[around], np.log(dose[around])))
