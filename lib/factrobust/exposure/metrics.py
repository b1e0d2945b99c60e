"""Dose and response: how a measure of a fact grows with the number of sentences that told it.

In the invented world (`datasets.world`) exposures were drawn by chance, so differences between them
are effects. Tables have a row a model and fact, with its `exposure` (sentences).
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression, least_squares
from scipy.special import betaincinv, expit
from scipy.stats import binomtest, rankdata

from factrobust import statistics
from factrobust.statistics import TAILS, Array, Interval, bootstrap_correlation, exact_table
from factrobust.tables import melted


def hill(
    exposure: ArrayLike, floor: ArrayLike, top: ArrayLike, half: ArrayLike, slope: ArrayLike
) -> Array:
    """The response to an exposure, with the shape of `exposure`:

        floor + (top - floor) / (1 + (half / exposure)^slope)

    (Hill 1910, the four-parameter logistic of dose and response); `floor` at exposure 0, half of the
    way to `top` at `half`.
    """
    with np.errstate(divide="ignore"):
        steps = np.log(np.asarray(exposure, float)) - np.log(half)
    return floor + (np.asarray(top) - floor) * expit(slope * steps)


def fit_hill(exposure: NDArray, mean: NDArray, n: NDArray, most: float = np.inf) -> Array:
    """Floor, top, half and slope of the best curve through mean responses [dose]: least squares,
    weighted by n facts. The floor is the mean at exposure 0, the top at most `most`, the half
    within the doses, the slope in 0.3 to 6. NaN where the upper half of doses is no higher."""
    floor, dosed = mean[exposure == 0].mean(), exposure > 0
    upper = exposure >= np.median(exposure)
    if not np.average(mean[upper], weights=n[upper]) > floor:
        return np.array([floor, np.nan, np.nan, np.nan])
    dose, reach = exposure[dosed], max(np.ptp(mean), 1e-9)
    highest = max(min(floor + 3 * reach, most), floor + 1e-9)
    bounds = ([floor, np.log(dose.min()), 0.3], [highest, np.log(dose.max()), 6])
    start = [min(floor + reach, highest), np.log(np.median(dose)), 1.0]

    def residuals(fit: Array) -> Array:
        top, log_half, slope = fit
        return np.sqrt(n[dosed]) * (hill(dose, floor, top, np.exp(log_half), slope) - mean[dosed])

    found = least_squares(residuals, start, bounds=bounds).x
    return np.array([floor, found[0], np.exp(found[1]), found[2]])


def fit_hills(exposure: NDArray, means: NDArray, n: NDArray, most: float = np.inf) -> Array:
    """`fit_hill` for means [dose, draw] at once, [floor to slope, draw], by a grid of halves and slopes,
    to a few percent."""
    floor, dosed = means[exposure == 0].mean(axis=0), exposure > 0
    dose, rise = exposure[dosed], means[dosed] - floor
    places = np.linspace(np.log(dose.min()), np.log(dose.max()), 300)
    grid = np.meshgrid(places, np.geomspace(0.3, 6, 36))
    half, slope = np.exp(grid[0].ravel()), grid[1].ravel()
    shape = hill(dose[:, None], 0, 1, half, slope)  # [dose, curve]
    weighted = (shape * n[dosed, None]).astype(np.float32)
    size = (shape * weighted).sum(axis=0).astype(np.float32)
    highest = np.minimum(3 * np.maximum(np.ptp(means, axis=0), 1e-9), most - floor)
    rise, highest = rise.T.astype(np.float32), highest[:, None].astype(np.float32)
    found = np.empty((3, len(floor)))
    for draws in np.array_split(np.arange(len(floor)), len(floor) // 8 + 1):  # what a cache holds
        along = rise[draws] @ weighted
        tops = along / size
        loss = np.clip(tops, 0, highest[draws], out=tops) * size
        loss -= 2 * along
        loss *= tops
        best = loss.argmin(axis=1)
        found[0, draws] = floor[draws] + tops[range(len(draws)), best]
        found[1:, draws] = half[best], slope[best]
    upper = exposure >= np.median(exposure)
    grows = np.average(means[upper], axis=0, weights=n[upper]) > floor
    return np.vstack([floor, np.where(grows, found, np.nan)])


def crossing(fits: Array, largest: float, level: float = 0.5) -> Array:
    """Where the curves of floor, top, half and slope, [4, curve], rise to a level: `hill` turned round,
    half ((level - floor) / (top - level))^(1 / slope). inf where none of the exposures up to the
    largest is enough, 0 where the floor is."""
    floor, top, half, slope = fits
    with np.errstate(divide="ignore", invalid="ignore"):
        at = half * ((level - floor) / (top - level)) ** (1 / slope)
    return np.where(floor >= level, 0, np.where((top > level) & (at <= largest), at, np.inf))


def dose_response(
    rows: pd.DataFrame,
    value: str | list[str],
    by: Sequence[str] = ("model",),
    *,
    most: float = np.inf,
    n_boot: int = 200,
) -> pd.DataFrame:
    """The `hill` curve that fits a measure best, a row each combination of the columns `by`.

    `most` is the largest possible value. Several measures have a curve each, named by the column of
    `by` that the rows lack. Columns: `by`, floor, top, mean (the half effect, in sentences) with
    its 95% interval low and high, slope, n (facts). The interval draws facts within each exposure;
    it is NaN where more than a tenth of the draws have no curve. Rows without the measure are left
    out. Compare half effects of curves that have the same top; others by `one_half`.
    """
    table = []
    for key, found, drawn, _, n in _fits(rows, value, by, most, n_boot):
        low, high = np.nan, np.nan
        if np.isfinite(found[2]) and np.isfinite(drawn[2]).mean() >= 0.9:
            low, high = np.nanquantile(drawn[2], [0.025, 0.975])
        table.append((*key, *found[:3], low, high, found[3], n))
    columns = [*by, "floor", "top", "mean", "low", "high", "slope", "n"]
    return pd.DataFrame(table, columns=columns)


def one_half(
    rows: pd.DataFrame,
    value: str | list[str],
    by: Sequence[str] = ("model",),
    *,
    most: float = 1,
    n_boot: int = 200,
) -> pd.DataFrame:
    """The exposure at which the curve of `dose_response` is one half: columns `by`, mean, low,
    high, n. NaN where the curve stays below one half up to the largest exposure, as it does if its
    top is below; high is inf where more than a fortieth of the draws stay below."""
    table = []
    for key, found, drawn, largest, n in _fits(rows, value, by, most, n_boot):
        [at], reached = crossing(found[:, None], largest), crossing(drawn, largest)
        low, high = np.quantile(reached, [0.025, 0.975], method="nearest")
        numbers = (at, low, high) if np.isfinite(at) else (np.nan,) * 3
        table.append((*key, *numbers, n))
    return pd.DataFrame(table, columns=[*by, *Interval._fields])


def _fits(
    rows: pd.DataFrame, value: str | list[str], by: Sequence[str], most: float, n_boot: int
) -> Iterator[tuple[tuple[Any, ...], Array, Array, float, int]]:
    """Of each combination of `by`: the best curve, those of draws, the largest exposure and n."""
    if not isinstance(value, str):
        rows, value = melted(rows, [*by, "exposure"], value), "value"
    rows = rows.dropna(subset=[value]).astype({value: float})
    for key, part in rows.groupby(list(by), sort=False):
        doses = part.groupby("exposure")[value]
        means, n = doses.mean(), doses.size().astype(float)
        dose, weights = means.index.to_numpy(float), n.to_numpy()
        found = fit_hill(dose, means.to_numpy(float), weights, most)
        rng = np.random.default_rng(0)
        drawn = np.array([rng.choice(x, (n_boot, len(x))).mean(axis=1) for _, x in doses])
        yield key, found, fit_hills(dose, drawn, weights, most), dose.max(), len(part)


def with_sibling(rows: pd.DataFrame) -> pd.DataFrame:
    """The facts of two relations about the same subjects, a row a model and fact, with the other fact
    of the subject: its object as sibling, its exposure as sibling_exposure."""
    other = rows[["model", "subject", "relation", "object", "exposure"]]
    other = other.rename(columns={"object": "sibling", "exposure": "sibling_exposure"})
    both = rows.merge(other, on=["model", "subject"], suffixes=("", "_other"))
    both = both[both["relation"] != both["relation_other"]]
    return both.drop(columns="relation_other").reset_index(drop=True)


def against_chance(rows: pd.DataFrame, by: Sequence[str] = ("model", "relation")) -> pd.DataFrame:
    """Is a share of right answers that of a guess? A row each combination of `by`.

    `rows`: right, and chance, the same in a combination. Columns: `by`, mean, low and high (exact), n,
    chance, p (two-sided, exact), holm (p after Holm 1979 over all rows: the smallest level for all tests
    together at which it is rejected; they may depend on each other), and found, the smallest share above
    chance that the first step of Holm's test at 0.05 would find four times of five.
    """
    table = exact_table(rows, by, "right")
    table["chance"] = rows.groupby(list(by))["chance"].first().to_numpy()
    tests = len(table)
    counts = (table["mean"] * table["n"]).round().astype(int)
    table["p"] = [
        binomtest(*row).pvalue for row in zip(counts, table["n"], table["chance"], strict=True)
    ]
    order = table["p"].argsort().to_numpy()
    steps = table["p"].to_numpy()[order] * np.arange(tests, 0, -1)
    table.loc[order, "holm"] = np.minimum(np.maximum.accumulate(steps), 1)
    found = []
    for n, chance in zip(table["n"], table["chance"], strict=True):
        above = range(int(np.ceil(n * chance)), n + 1)
        least = next((k for k in above if binomtest(k, n, chance).pvalue <= 0.05 / tests), n + 1)
        found.append(betaincinv(least, n - least + 1, 0.8) if least <= n else np.nan)
    return table.assign(found=found)


def fitted_curves(fits: pd.DataFrame, largest: float, points: int = 60) -> pd.DataFrame:
    """The curves of `dose_response` from 1 to the largest exposure: mean is the response."""
    doses = pd.DataFrame({"exposure": np.geomspace(1, largest, points)})
    curves = fits.dropna(subset=["mean"]).merge(doses, how="cross")
    fitted = (curves[name] for name in ("floor", "top", "mean", "slope"))
    return curves.assign(mean=hill(curves["exposure"], *fitted))


def by_date(rows: pd.DataFrame) -> pd.DataFrame:
    """What each answer says of a subject that had several objects, one after the other.

    `rows`: model, chain (relation and subject), fact_id, object, exposure and text (the answer).
    Adds, from 0 to 1: own (the text is one of the chain's objects), right (the fact's), swapped
    (the share of the chain's answers that say the fact's object), beyond (right minus swapped), and
    most (the rule that always says the object told most; equals share).
    """
    chain, fact = ["model", "chain"], ["model", "fact_id"]
    both = rows.merge(rows[[*chain, "fact_id", "object"]], on=chain, suffixes=("", "_other"))
    both["hit"] = (both["text"] == both["object_other"]).astype(float)
    rows = rows.join(both.groupby(fact)["hit"].max().rename("own"), on=fact)
    swapped = both.groupby(["model", "fact_id_other"])["hit"].mean().rename("swapped")
    rows = rows.join(swapped, on=fact)
    right = (rows["text"] == rows["object"]).astype(float)
    most = (rows["exposure"] == rows.groupby(chain)["exposure"].transform("max")).astype(float)
    most /= most.groupby([rows[name] for name in chain]).transform("sum")
    return rows.assign(right=right, beyond=right - rows["swapped"], most=most)


def rank_by_exposure(
    rows: pd.DataFrame, measures: Sequence[str], *, n_boot: int = 2000
) -> pd.DataFrame:
    """Spearman's correlation of measures with the exposure: a row a model and measure, with mean, low,
    high and n (facts, which are drawn). Facts without the measure are left out; NaN for a constant
    measure."""
    table = []
    for (model, part), measure in product(rows.groupby("model", sort=False), measures):
        known = part.dropna(subset=[measure])
        ranks = [rankdata(known[name]) for name in ("exposure", measure)]
        table.append((model, measure, *bootstrap_correlation(*ranks, n_boot=n_boot)))
    return pd.DataFrame(table, columns=["model", "measure", *Interval._fields])


def permuted_gains(
    rows: pd.DataFrame, measures: Sequence[str], *, n_permuted: int = 2000
) -> pd.DataFrame:
    """What each measure adds to the log-probability, beside what chance adds: a row a model, measure.

    mean is the gain in R squared of the exposure's ranks when the measure's ranks join those of
    logprob. A gain in the sample is never negative. So the part of the measure that logprob does not
    hold is permuted over the facts (Freedman and Lane 1983): chance is the 95% point of the gains,
    p_value the share of them (and the real one) that are as large. n (facts with the measure); NaN
    for a measure without such a part.
    """
    rng, table = np.random.default_rng(0), []
    for (model, part), measure in product(rows.groupby("model", sort=False), measures):
        known = part.dropna(subset=[measure])
        y, plain, other = (rankdata(known[name]) for name in ("exposure", "logprob", measure))
        rest, goal = _residual(other, plain), _residual(y, plain)
        found = np.nan, np.nan, np.nan
        if (rest**2).sum() > 1e-9 * len(known):
            drawn = rng.permuted(np.tile(rest, (n_permuted, 1)), axis=1)
            every = np.vstack([rest, _residual(drawn, plain)])
            shared = np.einsum("ij,j->i", every, goal) ** 2 / (every**2).sum(axis=1)
            gains = shared / ((y - y.mean()) ** 2).sum()
            as_large = (gains >= gains[0] - 1e-12).mean()
            found = gains[0], np.quantile(gains[1:], 0.95), as_large
        table.append((model, measure, *map(float, found), len(known)))
    return pd.DataFrame(table, columns=["model", "measure", "mean", "chance", "p_value", "n"])


def _residual(values: Array, other: Array) -> Array:
    """What is left of values [..., row] beside another column, by least squares."""
    left, x = values - values.mean(axis=-1, keepdims=True), other - other.mean()
    slope = np.einsum("...j,j->...", left, x) / max((x**2).sum(), 1e-9)
    return left - slope[..., None] * x


def stratified_auc(weights: Array, outcome: Array, score: Array, strata: Array) -> Array:
    """The share of pairs of a case with the outcome (1) and one without it (0), of the same stratum,
    in which the first has the higher score; ties count half. For `statistics.bootstrap_statistic`:
    weights [resample, row], columns [row]; NaN where a resample has no such pair."""
    one, other = outcome == 1, outcome == 0
    same = (strata[one][:, None] == strata[other]).astype(float)
    higher = same * (1 + np.sign(score[one][:, None] - score[other])) / 2
    # Multiples of 1/2 add up exactly, in any order.
    won, pairs = (np.sum(weights[:, one] @ x * weights[:, other], axis=1) for x in (higher, same))
    return statistics.ratio(won, pairs)


def crossings(
    rows: pd.DataFrame,
    value: str,
    by: Sequence[str] = ("model",),
    *,
    at: float = 0.0,
    n_boot: int = 1000,
) -> pd.DataFrame:
    """The exposure at which the mean of a value that grows with exposure reaches `at`.

    The means of each exposure are made monotone (isotonic regression, weighted by facts), and the
    place between two exposures is found on the line between their means, on a log scale; the smallest
    exposure above 0 if it is reached there, inf if it is never. Columns: `by`, mean, low, high, n
    (facts); the interval draws facts within each exposure.
    """

    def places(dose: Array, means: Array, n: Array) -> Array:
        # All draws [draw, dose] in one regression, so far apart that none joins another.
        apart = 2 * np.ptp(means) * np.arange(len(means))[:, None]
        every = isotonic_regression((means + apart).ravel(), weights=np.tile(n, len(means))).x
        rising = every.reshape(means.shape) - apart - at
        k, draws, log = (rising > -1e-9).argmax(axis=1), range(len(means)), np.log(dose)
        last, step = rising[draws, k - 1], rising[draws, k] - rising[draws, k - 1]
        between = np.exp(log[k - 1] - last / np.where(k, step, 1) * (log[k] - log[k - 1]))
        return np.select([rising[:, -1] < -1e-9, k == 0], [np.inf, dose[0]], between)

    table = []
    for key, part in rows[rows["exposure"] > 0].groupby(list(by), sort=False):
        doses = part.groupby("exposure")[value]
        dose, n = np.array([*doses.groups], float), np.asarray(doses.size(), float)
        rng = np.random.default_rng(0)
        drawn = [rng.choice(x.to_numpy(float), (n_boot, len(x))).mean(axis=1) for _, x in doses]
        means = np.vstack([doses.mean().to_numpy(float), np.array(drawn).T])
        found, *every = places(dose, means, n)
        low, high = np.quantile(every, TAILS, method="inverted_cdf")
        table.append((*key, found, low, high, len(part)))
    return pd.DataFrame(table, columns=[*by, *Interval._fields])
