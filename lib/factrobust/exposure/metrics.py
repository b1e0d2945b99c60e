"""Dose and response: how a measure of a fact grows with the number of sentences that told it.

In the invented world (`datasets.world`) exposures were drawn by chance, so differences between them
are effects. Tables have a row a model and fact, with its `exposure` (sentences).
"""

from collections.abc import Sequence
from itertools import combinations, pairwise, product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares
from scipy.special import expit
from scipy.stats import rankdata

from factrobust.context.attribution import auc
from factrobust.statistics import Interval, bootstrap_correlation, bootstrap_statistic, explained
from factrobust.tables import melted

Array = NDArray[np.float64]


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
    """Floor, top, half and slope of the best curve: least squares, weighted by n.

    A row a dose: exposure, mean response, number of facts. The floor is the mean at exposure 0, the
    top at most `most`, the half within the other exposures, the slope in 0.3 to 6. NaN where the
    upper half of doses has no larger mean than the floor.
    """
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


def half_effects(exposure: NDArray, means: NDArray, n: NDArray, most: float = np.inf) -> Array:
    """The half of `fit_hill` for means [dose, draw] at once, by a grid of halves and slopes, to a
    few percent."""
    floor, dosed = means[exposure == 0].mean(axis=0), exposure > 0
    dose, rise = exposure[dosed], means[dosed] - floor
    places = np.linspace(np.log(dose.min()), np.log(dose.max()), 300)
    grid = np.meshgrid(places, np.geomspace(0.3, 6, 36))
    half, slope = np.exp(grid[0].ravel()), grid[1].ravel()
    shape = hill(dose[:, None], 0, 1, half, slope)  # [dose, curve]
    along = np.einsum("dc,dr->cr", shape * n[dosed, None], rise)
    size = np.einsum("dc,d->c", shape**2, n[dosed])[:, None]
    highest = np.minimum(3 * np.maximum(np.ptp(means, axis=0), 1e-9), most - floor)
    top = np.clip(along / size, 0, highest)
    found = half[(top**2 * size - 2 * top * along).argmin(axis=0)]
    upper = exposure >= np.median(exposure)
    grows = np.average(means[upper], axis=0, weights=n[upper]) > floor
    return np.where(grows, found, np.nan)


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
    out.
    """
    if not isinstance(value, str):
        rows, value = melted(rows, [*by, "exposure"], value), "value"
    table, rows = [], rows.dropna(subset=[value]).astype({value: float})
    for key, part in rows.groupby(list(by), sort=False):
        doses = part.groupby("exposure")[value]
        means, n = doses.mean(), doses.size().astype(float)
        dose, weights = means.index.to_numpy(float), n.to_numpy()
        found = fit_hill(dose, means.to_numpy(float), weights, most)
        rng = np.random.default_rng(0)
        drawn = np.array([rng.choice(x, (n_boot, len(x))).mean(axis=1) for _, x in doses])
        halves = half_effects(dose, drawn, weights, most)
        low, high = np.nan, np.nan
        if np.isfinite(found[2]) and np.isfinite(halves).mean() >= 0.9:
            low, high = np.nanquantile(halves, [0.025, 0.975])
        table.append((*key, *found[:3], low, high, found[3], len(part)))
    columns = [*by, "floor", "top", "mean", "low", "high", "slope", "n"]
    return pd.DataFrame(table, columns=columns)


def fitted_curves(fits: pd.DataFrame, largest: float, points: int = 60) -> pd.DataFrame:
    """The curves of `dose_response` from 1 to the largest exposure: mean is the response."""
    doses = pd.DataFrame({"exposure": np.geomspace(1, largest, points)})
    curves = fits.dropna(subset=["mean"]).merge(doses, how="cross")
    fitted = (curves[name] for name in ("floor", "top", "mean", "slope"))
    return curves.assign(mean=hill(curves["exposure"], *fitted))


def ratio(above: pd.DataFrame, below: pd.DataFrame) -> pd.DataFrame:
    """The ratio of independent numbers, rows of one index: mean, low, high. Errors add as squares
    on a log scale."""
    widths = [np.log(one["high"] / one["low"]) / 2 for one in (above, below)]
    mean, factor = above["mean"] / below["mean"], np.exp(np.hypot(*widths))
    return pd.DataFrame({"mean": mean, "low": mean / factor, "high": mean * factor})


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


def doublings(rows: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """How well each measure tells facts of an exposure from those of the next smaller one. A row a
    measure and exposure: mean, low and high of the `auc`, n (facts of both)."""
    table = []
    for measure in measures:
        known = rows.dropna(subset=[measure])
        for doses in pairwise(np.unique(known["exposure"])):
            two = known[known["exposure"].isin(doses)]
            found = auc(two["exposure"] == doses[1], two[measure])
            table.append((measure, doses[1], *found[:3], len(two)))
    return pd.DataFrame(table, columns=["measure", "exposure", *Interval._fields])


def rank_by_exposure(
    rows: pd.DataFrame, measures: Sequence[str], *, n_boot: int = 2000
) -> pd.DataFrame:
    """How well measures rank facts by exposure, and what each adds to the log-probability.

    A row a model, measure and what (mean, low, high, n; intervals draw facts): "rank correlation"
    is Spearman's with the exposure; "added" is the gain in R squared of the exposure's ranks when
    the measure's ranks join those of logprob. Facts without the measure are left out; NaN for a
    constant measure.
    """

    def added(weights: Array, exposure: Array, plain: Array, ranks: Array) -> Array:
        return explained(weights, exposure, plain, ranks) - explained(weights, exposure, plain)

    table = []
    for (model, part), measure in product(rows.groupby("model", sort=False), measures):
        known = part.dropna(subset=[measure])
        columns = [rankdata(known[name]) for name in ("exposure", "logprob", measure)]
        found = {"rank correlation": bootstrap_correlation(*columns[::2], n_boot=n_boot)}
        if measure != "logprob":
            found["added"] = bootstrap_statistic(added, columns, n_boot=n_boot)
        table += [(model, measure, what, *interval) for what, interval in found.items()]
    return pd.DataFrame(table, columns=["model", "measure", "what", *Interval._fields])


def pairs(
    rows: pd.DataFrame, measures: Sequence[str], seeds: Sequence[str], *, n_boot: int = 2000
) -> pd.DataFrame:
    """Spearman's correlation of two models that differ only in their seed, over facts.

    A row a measure, pair of `seeds` and over ("all" facts that all models have; "within" an
    exposure, with its mean subtracted): mean, low, high, n. NaN for a constant measure.
    """
    tables = []
    rows = rows[rows["model"].isin(seeds)]
    for measure, (one, other) in product(measures, combinations(seeds, 2)):
        wide = rows.pivot(index=["fact_id", "exposure"], columns="model", values=measure).dropna()
        centred = wide - wide.groupby("exposure").transform("mean")
        for over, values in (("all", wide.rank()), ("within", centred.rank())):
            found = bootstrap_correlation(values[one], values[other], n_boot=n_boot)
            tables.append((measure, f"{one} and {other}", *found, over))
    return pd.DataFrame(tables, columns=["measure", "pair", *Interval._fields, "over"])
