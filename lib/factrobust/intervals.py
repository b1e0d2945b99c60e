"""Means with intervals: the percentile bootstrap over facts.

A fact has many rows (samples, dates, paraphrases), which resemble each other. So whole facts are
drawn with replacement, each with all its rows, and a fact that is drawn twice counts twice (cluster
bootstrap: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). The 95%
interval runs between the 0.025 and 0.975 quantiles of the statistic over the resamples. Rows are
sorted before anything is drawn, so that their order does not count.

Without a row everything is NaN and n 0; with one fact low and high are NaN. Shares that are all 0
or all 1 have exact binomial bounds, with the groups as trials: no resample can show another value.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from factrobust.tables import melted

Array = NDArray[np.float64]
CELLS = 4_000_000  # resamples are drawn in blocks of at most this many numbers (32 MB)
TAILS = ((1 - 0.95) / 2, (1 + 0.95) / 2)  # of a 95% interval
TWO_SIDED = 1.959963984540054  # the standard normal's quantile at the upper tail


class Interval(NamedTuple):
    """An estimate (the mean, or another statistic), its bounds, and the number of facts."""

    mean: float
    low: float
    high: float
    n: int


NOTHING = Interval(np.nan, np.nan, np.nan, 0)  # the interval of no rows


def bootstrap_mean(
    values: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    n_boot: int = 2000,
    seed: int = 0,
) -> Interval:
    """Mean of `values` [row] with its bootstrap interval; ValueError for one that is not finite.
    With `groups` [row] (fact ids), whole groups are resampled and counted; else every row is its
    own."""
    (rows,), inverse = _sorted([values], groups)
    sums = np.bincount(inverse, weights=rows)
    sizes = np.bincount(inverse)
    n = len(sizes)
    if n > 1 and rows.min() == rows.max() and rows[0] in (0, 1):
        low, high = binomial_interval(n * rows[0], n)
        return Interval(float(rows[0]), float(low), float(high), n)

    def mean(draws: Array) -> Array:
        return _dot(draws, sums) / _dot(draws, sizes)

    return _bootstrap(mean, n, n_boot, seed)


def bootstrap_statistic(
    statistic: Callable[..., Array],
    columns: Sequence[ArrayLike],
    groups: ArrayLike | None = None,
    *,
    n_boot: int = 2000,
) -> Interval:
    """Any weighted statistic of `columns` (arrays [row]) with its bootstrap interval.

    `statistic(weights, *columns)` gets how often each row was drawn, float [resample, row], and the
    columns [row], sorted together; it returns numbers [resample], as `ratio_of_sums` below does.
    Resamples where it is NaN are left out. Groups, errors and n as for `bootstrap_mean`.
    """
    rows, inverse = _sorted(columns, groups)
    n = int(inverse.max()) + 1 if len(inverse) else 0
    return _bootstrap(
        lambda draws: statistic(draws[:, inverse], *rows),
        n,
        n_boot,
        0,
        len(inverse),
    )


def bootstrap_correlation(
    x: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    n_boot: int = 2000,
) -> Interval:
    """Pearson's correlation of x and y [row], as `bootstrap_statistic`; NaN if one is constant."""
    return bootstrap_statistic(_weighted_pearson, [x, y], groups, n_boot=n_boot)


def paired_difference(
    a: pd.Series,
    b: pd.Series,
    groups: ArrayLike | None = None,
    *,
    n_boot: int = 2000,
) -> Interval:
    """`bootstrap_mean` of a - b, whose index are the same facts, else ValueError. If no fact
    differs, the bounds are minus and plus the exact upper bound of a share of 0: a difference may
    be as rare in either direction."""
    found = bootstrap_mean(a.astype(float) - b.astype(float), groups, n_boot=n_boot)
    if found.mean == 0 and found.low == 0:
        return found._replace(low=-found.high)
    return found


def paired_table(
    df: pd.DataFrame,
    by: Sequence[str],
    value: str,
    column: str,
    between: tuple[str, str],
    *,
    group: str = "fact_id",
    cluster: str = "",
    n_boot: int = 2000,
) -> pd.DataFrame:
    """Compare the column `value` between two values of `column`, in each combination of `by`.

    `df` has one row per `group` (fact) for each of the two; only facts that have both count.
    Returns the columns of `by`, a column with the mean for each, and mean, low, high and n (facts)
    of the second minus the first. With a `cluster`, whole clusters are drawn, and a last column
    counts them."""
    rows = []
    for key, part in df.groupby(list(by), sort=False):
        # 1. The facts that have both values, side by side.
        wide = part.pivot(
            index=group,
            columns=column,
            values=value,
        )
        wide = wide.reindex(columns=list(between)).dropna().astype(float)
        first = wide[between[0]]
        second = wide[between[1]]
        # 2. The second minus the first.
        clusters = None
        if cluster:
            clusters = part.drop_duplicates(group).set_index(group)[cluster].reindex(wide.index)
        difference = paired_difference(second, first, clusters, n_boot=n_boot)
        row = [*key, first.mean(), second.mean(), *difference._replace(n=len(wide))]
        if cluster:
            row.append(difference.n)
        rows.append(row)
    columns = [*by, *between, *Interval._fields]
    if cluster:
        columns.append(f"{cluster}s")
    return pd.DataFrame(rows, columns=columns)


def pairwise(
    df: pd.DataFrame,
    value: str,
    column: str = "model",
    *,
    cluster: str,
    group: str = "fact_id",
    n_boot: int = 2000,
) -> pd.DataFrame:
    """`paired_table` of every two values of `column`: their names as first and second, and the
    interval of first minus second."""
    rows = []
    for first, second in combinations(df[column].unique(), 2):
        [found] = paired_table(
            df.assign(all=""),
            ["all"],
            value,
            column,
            (second, first),
            group=group,
            cluster=cluster,
            n_boot=n_boot,
        ).itertuples(index=False)
        rows.append((first, second, *found[3:]))
    return pd.DataFrame(
        rows,
        columns=["first", "second", *Interval._fields, f"{cluster}s"],
    )


def estimates(
    df: pd.DataFrame,
    by: Sequence[str],
    estimate: Callable[[pd.DataFrame], Sequence[Any]],
    columns: Sequence[str] = Interval._fields,
    *,
    cluster: str = "",
    sort: bool = True,
) -> pd.DataFrame:
    """Apply `estimate`, which returns the values of `columns`, to each part of a table: a row a
    combination of the columns `by`. If it drew whole clusters of a column `cluster`, n is the
    number of rows of the part, and a further column, such as "relations", that of clusters."""
    rows = []
    for key, part in df.groupby(list(by), sort=sort):
        found = list(estimate(part))
        if cluster:
            found.insert(-1, len(part))
        rows.append((*key, *found))
    names = [*by, *columns]
    if cluster:
        names.append(f"{cluster}s")
    return pd.DataFrame(rows, columns=names)


def statistic_table(
    df: pd.DataFrame,
    by: Sequence[str],
    statistic: Callable[..., Array],
    columns: Sequence[Any],
    cluster: str = "",
    *,
    n_boot: int = 2000,
    sort: bool = True,
) -> pd.DataFrame:
    """`bootstrap_statistic` of some columns in each combination of the columns `by`. If a `cluster`
    is named, whole clusters are drawn: n is then the number of rows, and a further column, such as
    "relations", that of clusters."""
    rows = []
    for key, part in df.groupby(list(by), sort=sort):
        arrays = [part[column] for column in columns]
        groups = part[cluster] if cluster else None
        found = bootstrap_statistic(statistic, arrays, groups, n_boot=n_boot)
        row = [*key, *found]
        if cluster:
            row.insert(-1, len(part))
        rows.append(row)
    names = [*by, *Interval._fields]
    if cluster:
        names.append(f"{cluster}s")
    return pd.DataFrame(rows, columns=names)


def correlations(
    df: pd.DataFrame,
    by: Sequence[str],
    x: str,
    y: str,
    cluster: str = "",
    *,
    ranks: bool = False,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """`bootstrap_correlation` of the columns x and y, as a `statistic_table` whose mean is named r.
    With `ranks`, it is Spearman's: that of their ranks in each combination of `by`."""
    if ranks:
        df = df.assign(**df.groupby(list(by))[[x, y]].rank())
    found = statistic_table(df, by, _weighted_pearson, [x, y], cluster, n_boot=n_boot)
    return found.rename(columns={"mean": "r"})


def in_ranges(values: ArrayLike, ends: Mapping[str, float]) -> Any:
    """The name of the range that each value lies in, [row]. `ends` gives the last value of each
    range by its name, in ascending order."""
    names = np.array(list(ends))
    last_values = list(ends.values())
    return names[np.searchsorted(last_values, values)]


def top_entropy(top_logprobs: Sequence[float]) -> float:
    """Entropy of one position of an answer, in [0, 1]: H = -sum p log_k p over the k likeliest
    tokens (the paper: k = 10, log base 10, equation 1), from their natural-log probabilities, which
    are renormalised to sum to one, so that the maximum is exactly 1."""
    largest = max(top_logprobs)  # math's functions: there are too few numbers for arrays to pay
    weights = [math.exp(p - largest) for p in top_logprobs]
    total = math.fsum(weights)
    mean_log = math.fsum(w * math.log(w) for w in weights if w) / total
    entropy = math.log(total) - mean_log
    share = entropy / math.log(len(weights))
    return min(max(share, 0.0), 1.0)


def ratio(over: Array, under: Array) -> Array:
    """`over` / `under` in each resample, NaN where `under` is not above 0."""
    result = np.full(under.shape, np.nan)
    np.divide(over, under, out=result, where=under > 0)
    return result


def ratio_of_sums(weights: Array, above: Array, below: Array) -> Array:
    """Sum of `above` / sum of `below` [row], NaN where the sum below is 0."""
    return ratio(_dot(weights, above), _dot(weights, below))


def slope_through_0(weights: Array, x: Array, y: Array) -> Array:
    """Least-squares slope of y over x [row] for a line through the origin."""
    return ratio_of_sums(weights, x * y, x**2)


def mean_of_means(weights: Array, values: Array, parts: Array) -> Array:
    """Mean over the parts (a number per row) of the mean of `values` [row] in each part: all parts
    have the same weight, however many rows they have. NaN in resamples that lack a part."""
    means = []
    for part in np.unique(parts):
        inside = (parts == part).astype(float)
        means.append(ratio_of_sums(weights, values * inside, inside))
    return np.mean(means, axis=0)


def r_squared(weights: Array, y: Array, *predictors: Array) -> Array:
    """R squared of the least-squares fit of y on the predictors [row]. It is 1 - det(C) / (det(P)
    var(y)). C is the covariance matrix of y and the predictors, P that of the predictors alone. NaN
    where y or a predictor is constant, or the predictors are collinear."""
    covariance = _covariance(weights, y, *predictors)
    of_predictors = np.linalg.det(covariance[:, 1:, 1:])
    variance = covariance[:, 0, 0]
    return 1 - ratio(np.linalg.det(covariance), of_predictors * variance)


def binomial_interval(successes: ArrayLike, n: ArrayLike) -> tuple[Array, Array]:
    """Exact (Clopper-Pearson) 95% bounds of a share: `successes` out of `n` independent trials
    [row]."""
    from scipy.special import betaincinv

    k, trials = np.broadcast_arrays(np.asarray(successes, float), np.asarray(n, float))
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), trials - k + 1, TAILS[0]), 0.0)
    high = np.where(
        k < trials,
        betaincinv(k + 1, np.maximum(trials - k, 1), TAILS[1]),
        1.0,
    )
    return low, high


def interval_table(
    df: pd.DataFrame,
    by: Sequence[str],
    value: str | list[str],
    group: str | None = "fact_id",
    *,
    cluster: str | None = None,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """Mean of the column `value` in every combination of the columns `by`, with its interval.

    Returns the columns of `by`, then mean, low, high and n (number of distinct `group`s, or of rows
    if `group` is None), sorted by `by`; an empty `by` gives one row. If groups of one `cluster`
    ("relation") resemble each other, name it: then whole clusters are drawn, and a further column,
    "relations", counts them. Several columns as `value` are `tables.melted` first.
    """
    by = list(by)
    if not isinstance(value, str):
        further = {str(group), str(cluster)}.intersection(df.columns).difference(by)
        df = melted(df, [*by, *further], value)
        value = "value"
    drawn = cluster or group
    rows = []
    for key, part in df.groupby(by, observed=True, dropna=False) if by else [((), df)]:
        groups = part[drawn] if drawn else None
        found = bootstrap_mean(part[value], groups, n_boot=n_boot)
        row = [*key, found.mean, found.low, found.high]
        row.append(part[group].nunique() if group else len(part))
        if cluster:
            row.append(found.n)
        rows.append(row)
    counts = ["n"]
    if cluster:
        counts.append(f"{cluster}s")
    table = pd.DataFrame(rows, columns=[*by, "mean", "low", "high", *counts])
    types = {name: df[name].dtype for name in by} | dict.fromkeys(counts, int)
    return table.astype(types)


def side_by_side(
    table: pd.DataFrame,
    rows: str | list[str],
    columns: str | list[str],
    value: str = "mean",
    *,
    digits: int | None = None,
) -> pd.DataFrame:
    """Intervals as texts for a reader: "96% [93, 97]" for each value of `rows` and `columns`. With
    `digits`, they are numbers and no shares: "0.96 [0.93, 0.97]". Rows and columns keep the order
    of the table; a cell without an estimate is ""."""
    numbers = table[[value, "low", "high"]]
    if digits is None:
        pattern = "{:.0f}% [{:.0f}, {:.0f}]"
        rounded = (numbers * 100).round(0)
    else:
        pattern = "{:.N} [{:.N}, {:.N}]".replace("N", f"{digits}f")
        rounded = numbers.round(digits)
    # Adding 0.0 makes -0.0 plain 0.
    texts = [pattern.format(*row) for row in rounded.to_numpy() + 0.0]
    known = table.assign(cell=texts)[numbers[value].notna()]
    wide = known.pivot(
        index=rows,
        columns=columns,
        values="cell",
    )
    wide = wide.reindex(
        index=table.set_index(rows).index.unique(),
        columns=table.set_index(columns).index.unique(),
    ).fillna("")
    return wide.rename_axis(columns=None) if isinstance(columns, str) else wide


def as_mean(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """Rename an estimate and its bounds (brier, brier_low, brier_high) to mean, low and high; other
    columns with these names are dropped."""
    names = {value: "mean", f"{value}_low": "low", f"{value}_high": "high"}
    return table.drop(columns=[*names.values()], errors="ignore").rename(columns=names)


def with_bounds(table: pd.DataFrame) -> pd.DataFrame:
    """Add low and high, the exact bounds of the column mean: shares of n (a column) trials."""
    low, high = binomial_interval((table["mean"] * table["n"]).round(), table["n"])
    return table.assign(low=low, high=high)


def exact_share(values: pd.Series) -> Interval:
    """The share of true values with its exact bounds; NaN without a row."""
    if not len(values):
        return NOTHING
    low, high = binomial_interval([values.sum()], [len(values)])
    return Interval(float(values.mean()), float(low[0]), float(high[0]), len(values))


def exact_table(df: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Share of rows, independent trials, where the column `value` is true in every combination of
    the columns `by`: these, mean, low, high and n."""
    table = (
        df.groupby(list(by))[value]
        .agg(
            mean="mean",
            n="size",
        )
        .reset_index()
    )
    return with_bounds(table)[[*by, "mean", "low", "high", "n"]]


class Agreement(NamedTuple):
    """Share of equal labels in two series with its exact bounds, and Cohen's kappa (1960)."""

    share: float
    low: float
    high: float
    n: int
    kappa: float


def agreement(one: pd.Series, other: pd.Series) -> Agreement:
    """How well two series of labels of the same rows agree, [row]. kappa is 0 for the agreement of
    labels that are drawn at random with the shares of each series. It is NaN if both series hold
    one and the same label everywhere."""
    share = exact_share(one == other)
    shares = one.value_counts(normalize=True) * other.value_counts(normalize=True)
    chance = shares.sum()
    kappa = (share.mean - chance) / (1 - chance) if chance < 1 else float("nan")
    return Agreement(*share, float(kappa))


def rule_errors(labels: pd.DataFrame, rules: Sequence[str], truth: str) -> pd.DataFrame:
    """How often the columns `rules` (bool) differ from the column `truth` (bool): rule, what, mean,
    low, high (exact), n. `what` is "error" (a share of all rows), "false positives" (of the rows
    that are not true) or "false negatives" (of those that are true)."""
    rows = labels.melt([truth], list(rules), "rule", value_name="verdict")
    rows["wrong"] = rows["verdict"] != rows[truth]
    kinds = rows[truth].map({False: "false positives", True: "false negatives"})
    both = pd.concat([rows.assign(what="error"), rows.assign(what=kinds)])
    return exact_table(both, ["rule", "what"], "wrong")


def _sorted(
    columns: Sequence[ArrayLike],
    groups: ArrayLike | None,
) -> tuple[list[Array], NDArray[np.intp]]:
    """The columns and their group numbers 0, 1, ..., sorted by group, then by value."""
    rows = [np.asarray(column, dtype=float) for column in columns]
    bad = sum(np.count_nonzero(~np.isfinite(row)) for row in rows)
    if bad:
        raise ValueError(f"{bad} values are missing or infinite: drop them first, and say so.")
    if groups is None:
        groups = np.lexsort(rows[::-1]).argsort()  # every row is a group of its own
    numbers, _ = pd.factorize(np.asarray(groups), sort=True)
    order = np.lexsort([*rows[::-1], numbers])
    return [row[order] for row in rows], numbers[order]


def _bootstrap(
    statistic: Callable[[Array], Array],
    n: int,
    n_boot: int,
    seed: int,
    width: int = 0,
) -> Interval:
    """`statistic` maps how often each of n groups was drawn, [resample, group], to [resample], by
    arrays of up to `width` numbers per resample."""
    if n == 0:
        return NOTHING
    estimate = float(statistic(np.ones((1, n)))[0])
    if n == 1:
        return Interval(estimate, np.nan, np.nan, 1)
    block = max(1, CELLS // max(n, width))
    resampled = np.concatenate([statistic(draws) for draws in _draws(n, n_boot, seed, block)])
    resampled = resampled[~np.isnan(resampled)]
    low, high = np.quantile(resampled, TAILS) if len(resampled) else (np.nan, np.nan)
    return Interval(estimate, float(low), float(high), n)


def _draws(n: int, n_boot: int, seed: int, block: int) -> Iterator[Array]:
    """How often each of n groups is drawn, [resample, group], in blocks, which change nothing."""
    if n * n_boot <= CELLS:
        drawn = _all_draws(n, n_boot, seed)
        for start in range(0, n_boot, block):
            yield drawn[start : start + block]
        return
    generator = np.random.default_rng(seed)
    for start in range(0, n_boot, block):
        yield _draw(generator, n, min(block, n_boot - start))


@functools.lru_cache(maxsize=4)  # every cell of a table has about the same n; drawing costs most
def _all_draws(n: int, n_boot: int, seed: int) -> Array:
    return _draw(np.random.default_rng(seed), n, n_boot)


def _draw(generator: np.random.Generator, n: int, resamples: int) -> Array:
    picks = generator.integers(n, size=(resamples, n))
    cells = picks + n * np.arange(resamples)[:, None]
    counts = np.bincount(cells.ravel(), minlength=resamples * n)
    draws = counts.reshape(resamples, n).astype(float)
    draws.setflags(write=False)
    return draws


def _dot(weights: Array, values: NDArray[Any]) -> Array:
    # Not @: BLAS threads change the last digits with the number of cores, and wait for each other
    # when other processes are busy.
    return np.einsum("ij,j->i", weights, values.astype(float))


def _weighted_pearson(weights: Array, x: Array, y: Array) -> Array:
    covariance = _covariance(weights, x, y)
    variance_x = covariance[:, 0, 0]
    variance_y = covariance[:, 1, 1]
    # What is left of a constant's variance is rounding: such a resample has no correlation.
    varies_x = variance_x > 1e-12 * np.var(x)
    varies_y = variance_y > 1e-12 * np.var(y)
    defined = varies_x & varies_y
    scale = np.sqrt(np.where(defined, variance_x * variance_y, 1.0))
    correlation = np.clip(covariance[:, 0, 1] / scale, -1, 1)
    return np.where(defined, correlation, np.nan)


def _covariance(weights: Array, *columns: Array) -> Array:
    """Covariance matrices of columns [row], [resample, column, column]."""
    # Shifting by the overall means keeps digits when they are large against the spread.
    rows = np.stack([column - column.mean() for column in columns])
    n = len(rows)
    products = (rows[:, None] * rows).reshape(n * n, -1)  # of every two columns
    sums = np.einsum("ij,kj->ik", weights, np.vstack([rows, products]), optimize=True)
    means = sums / weights.sum(axis=1)[:, None]
    of_rows = means[:, :n]
    of_products = means[:, n:].reshape(-1, n, n)
    return of_products - of_rows[:, :, None] * of_rows[:, None, :]
