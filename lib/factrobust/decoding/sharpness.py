"""The placebo of part 1: the same model with all its logits multiplied by s.

softmax(s z / t) is softmax(z / (t / s)). So the sharpened model's P_t is the model's P_{t/s}, and its
t_b is s times the model's. Its ten likeliest tokens are the same ten, and their log-probabilities
differ from the logits by one number, so its entropy follows from them, too. No greedy answer changes,
hence no known fact, and no order of facts by t_b: what moves is how sharp the model is.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, expit, log_softmax

from factrobust.decoding import metrics
from factrobust.decoding.metrics import D_VALUES, KEY

SCAN = np.round(np.arange(1, 11) / 5, 1)  # the paper's temperatures
SHARPNESS = np.geomspace(0.25, 16, 193)  # among which a column of table 1 is looked for


class Positions(NamedTuple):
    """The likeliest tokens' log-probabilities of some answers, [position, token], and the number of
    positions of each answer, [answer]."""

    logs: NDArray[np.float64]
    lengths: NDArray[np.int64]


def positions(top_logprobs: pd.Series) -> Positions:
    """Of `schemas.Answers`' top_logprobs, [row]; each position has as many tokens as any other."""
    logs = np.array(
        [at for answer in top_logprobs for at in answer],
        dtype=float,
    )
    return Positions(logs, top_logprobs.map(len).to_numpy())


def entropies(answers: Positions, s: float = 1) -> NDArray[np.float64]:
    """The mean entropy of each answer (`intervals.top_entropy`) at sharpness s, [answer]."""
    logs = log_softmax(s * answers.logs, axis=1)
    each = entr(np.exp(logs)).sum(axis=1) / np.log(logs.shape[1])
    starts = np.cumsum(answers.lengths) - answers.lengths
    means = np.add.reduceat(each, starts) / answers.lengths
    return np.clip(means, 0, 1)


def on_grid(t_b: ArrayLike) -> NDArray[np.float64]:
    """The paper's t_b for an exact one: the first of its temperatures that is higher; inf beyond 2."""
    place = np.searchsorted(SCAN, np.asarray(t_b, dtype=float), side="right")
    return np.append(SCAN, np.inf)[place]


def sharpened(known: pd.DataFrame, s: float) -> pd.DataFrame:
    """Known answers with their exact t_b (top_logprobs, t_b) as they are at sharpness s: entropy, t_b,
    the paper's t_b as `grid_t_b` (inf: unbroken), and the score as published, frs, at d = 1."""
    entropy = entropies(positions(known["top_logprobs"]), s)
    t_b = s * known["t_b"]
    frs = metrics.frs(entropy, on_grid(t_b))
    return known.assign(
        entropy=entropy,
        t_b=t_b,
        grid_t_b=on_grid(t_b),
        frs=frs,
    )


def dial(
    known: pd.DataFrame,
    sharpness: Sequence[float],
    ds: Sequence[float] = D_VALUES,
) -> pd.DataFrame:
    """The mean score of each model by sharpness and d: model, d, s, frs. As in the paper all data sets,
    here domains, weigh alike."""
    answers = positions(known["top_logprobs"])
    parts = [known["model"], known["domain"]]
    tables = []
    for s in sharpness:
        entropy = entropies(answers, s)
        broken = on_grid(s * known["t_b"])
        scores = {d: metrics.frs(entropy, broken, d) for d in ds}
        domains = pd.DataFrame(scores, known.index).groupby(parts, sort=False).mean()
        means = domains.groupby("model", sort=False).mean().rename_axis(columns="d")
        long = means.melt(value_name="frs", ignore_index=False).reset_index()
        tables.append(long.assign(s=s))
    table = pd.concat(tables, ignore_index=True)
    return table[["model", "d", "s", "frs"]].astype({"d": type(ds[0])})


def on_the_dial(dialled: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Where each column of table 1 (`published`: model, d, frs) lies on each model's dial: model, column,
    the s with the smallest largest miss over d, that `miss`, and the largest `miss of a shift`. The
    shift is the dull rival with as many free numbers: the model as it is, one constant added."""
    ours = dialled.pivot(index=["model", "s"], columns="d", values="frs")
    as_it_is = ours[np.isclose(ours.index.get_level_values("s"), 1)].droplevel("s")
    theirs = published.pivot(index="model", columns="d", values="frs")
    columns = []
    for name, column in theirs.iterrows():
        miss = (ours - column).abs().max(axis=1).rename("miss").reset_index()
        best = miss.loc[miss.groupby("model")["miss"].idxmin()]
        difference = column - as_it_is
        shift = (difference.max(axis=1) - difference.min(axis=1)) / 2
        best = best.join(shift.rename("miss of a shift"), on="model")
        columns.append(best.assign(column=str(name)))
    return pd.concat(columns)[["model", "column", "s", "miss", "miss of a shift"]]


def probability(curves: pd.DataFrame, t: float) -> pd.Series:
    """P_t of each answer of `schemas.Curves` at any temperature within its grid, by model and fact: a
    spline of the log odds against log t, as in `metrics.exact_break`."""
    from scipy.interpolate import CubicSpline

    wide = curves.pivot(index=KEY, columns="temperature", values="logprob")
    temperatures = np.log(wide.columns.to_numpy(dtype=float))
    odds = metrics.log_odds(wide.to_numpy(dtype=float))
    found = CubicSpline(temperatures, odds, axis=1)(np.log(t))
    return pd.Series(expit(-found), wide.index, name="probability")


def shared(known: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """The rows of some models, in this order, for the facts that all of them know."""
    theirs = pd.concat([known[known["model"] == model] for model in models])
    return theirs[theirs.groupby("fact_id")["model"].transform("nunique") == len(models)]


def to_one_median(known: pd.DataFrame, goal: float = 0.9) -> pd.DataFrame:
    """`sharpened`, each model by the `s` that brings its median t_b to `goal` (none of the paper's
    temperatures, on which a median would lie by rounding)."""
    scale = goal / known.groupby("model")["t_b"].median()
    groups = known.groupby("model", sort=False)
    parts = [sharpened(part, scale[model]) for model, part in groups]
    return pd.concat(parts).assign(s=known["model"].map(scale))


def relative(known: pd.DataFrame, least: int = 8) -> pd.DataFrame:
    """Known answers with `relative`: log2 of t_b over the median t_b of the model's answers with as many
    tokens. No sharpness moves it. 1 means that the fact takes twice the temperature of the usual
    one. Left out: facts that nothing breaks, and numbers of tokens that fewer than `least` facts of
    the model have."""
    rows = known[np.isfinite(known["t_b"])]
    alike = rows.groupby(["model", "tokens"])["t_b"]
    ratio = rows["t_b"] / alike.transform("median")
    enough = alike.transform("size") >= least
    return rows.assign(relative=np.log2(ratio))[enough]


def model_pairs(
    known: pd.DataFrame,
    value: str,
    way: Callable[[pd.DataFrame], pd.DataFrame],
) -> pd.DataFrame:
    """`value` of the facts that two models both know, a row a pair and fact: first and second (names),
    fact_id, relation, x and y. `way` makes the value of the rows of these facts: `relative`,
    `to_one_median`, ..."""
    fact = ["fact_id", "relation"]
    columns = [*fact, "x", "y", "first", "second"]
    tables = []
    for models in combinations(known["model"].unique(), 2):
        rows = way(shared(known, models))
        wide = rows.pivot(index=fact, columns="model", values=value)
        wide = wide.reindex(columns=[*models]).dropna()
        values = wide.set_axis(["x", "y"], axis=1).reset_index()
        tables.append(values.assign(first=models[0], second=models[1]))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def halves(
    rows: pd.DataFrame,
    value: str,
    *,
    least: int = 6,
    splits: int = 100,
) -> pd.DataFrame:
    """Split-half reliability of a relation's mean `value`, for each model. Facts of relations that have
    at least `least` are halved at random, and the halves' means correlated over relations: r, a
    mean over `splits`. `reliability` is that of all facts, 2 r / (1 + r) (Spearman and Brown, 1910)."""
    rng = np.random.default_rng(0)
    found = []
    for model, part in rows.sort_values("fact_id").groupby("model"):
        sizes = part.groupby("relation")["relation"].transform("size")
        facts = part[sizes >= least]
        relation = facts["relation"]
        correlations = []
        for _ in range(splits):
            lot = pd.Series(rng.random(len(facts)), facts.index)
            half = lot.groupby(relation).rank() % 2
            means = facts[value].groupby([relation, half]).mean().unstack()
            correlations.append(means[0.0].corr(means[1.0]) if len(facts) else np.nan)
        r = float(np.mean(correlations))
        reliability = 2 * r / (1 + r)
        found.append((model, r, reliability, relation.nunique(), len(facts)))
    return pd.DataFrame(
        found,
        columns=["model", "r", "reliability", "relations", "n"],
    )
