"""Part 1: who knows what, how sure of it, at which temperature it breaks, and what that scores."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from factrobust import draws, schemas, text
from factrobust.datasets.facts import accepted_answers
from factrobust.intervals import top_entropy

KEY = ["model", "fact_id"]
D_VALUES = (1, 2, 5, 10, 50)  # table 1
KNOWN_BY = (
    "no model",
    "the largest and smaller ones",
    "only the largest",
    "only smaller ones",
)
THRESHOLD = 0.5  # of the accuracy, below which a fact is broken


def first_break(temperatures: ArrayLike, accuracy: ArrayLike) -> Any:
    """The paper's t_b: the lowest of the ascending `temperatures` [t] at which the `accuracy`
    [..., t] is below THRESHOLD; inf if there is none."""
    broken = np.asarray(accuracy) < THRESHOLD
    whole = np.logical_and.accumulate(~broken, axis=-1)
    ends = np.append(np.asarray(temperatures, dtype=float), np.inf)
    return ends[whole.sum(axis=-1)]


def log_odds(logprobs: ArrayLike) -> NDArray[np.float64]:
    """Log of (1 - P) / P for log-probabilities log P, as precise as float32 has them."""
    cost = np.clip(-np.asarray(logprobs, dtype=float), 1e-7, 500)
    return np.log(np.expm1(cost))


def exact_break(temperatures: ArrayLike, logprobs: ArrayLike) -> Any:
    """The temperature at which P_t(answer) falls to THRESHOLD, between the grid points.

    `logprobs` are log P_t(answer | prompt) at the ascending `temperatures`, [..., t]. P_t of a greedy answer
    falls with t, so there is one root: a cubic spline of the log odds against log t finds it (with
    `decoding.probe.GRID` to 0.001 of t_b). inf if P_t stays above; nan if it is below from the
    start (a tie, or an answer that is not greedy).
    """
    from scipy.interpolate import CubicSpline
    from scipy.optimize.elementwise import find_root

    t = np.log(np.asarray(temperatures, float))
    logs = np.asarray(logprobs, dtype=float)
    goal = np.log(THRESHOLD)
    odds = log_odds(logs) - log_odds(goal)
    whole = np.logical_and.accumulate(~(logs < goal), axis=-1)
    first = whole.sum(axis=-1)  # the place of the first temperature below
    never = first == len(t)
    pieces = np.zeros((6, *first.shape))  # where it begins, its width, and four coefficients
    for high in np.unique(first[(first > 0) & ~never]):
        # Six points around the crossing, where log odds are nearly straight.
        low = max(0, high - 3)
        here = first == high
        spline = CubicSpline(
            t[low : high + 3],
            odds[here, low : high + 3],
            axis=1,
        )
        pieces[0, here] = t[high - 1]
        pieces[1, here] = t[high] - t[high - 1]
        pieces[2:, here] = spline.c[:, high - 1 - low]
    start, width, *cubic = pieces
    root = find_root(
        lambda x, *cubic: np.polyval(cubic, x),
        (0.0, width),
        args=tuple(cubic),
    ).x
    t_b = np.exp(start + root)
    return np.select([first == 0, never], [np.nan, np.inf], t_b)[()]


def raw_frs(entropy: ArrayLike, t_b: ArrayLike, d: ArrayLike = 1.0) -> NDArray:
    """Equation 3: f(H, d, t_b) = (1 - H)^d (t_b + 1) - H / (t_b + 1), in [-1, inf). `entropy` is in
    [0, 1], `t_b` >= 0 (inf: never breaks), `d` >= 0; they broadcast. f is inf for t_b = inf, but 0
    where H = 1 (appendix B.1); nan in, nan out."""
    h = np.asarray(entropy, dtype=float)
    t = np.asarray(t_b, dtype=float)
    certainty = (1 - h) ** np.asarray(d)
    with np.errstate(invalid="ignore"):  # 0 * inf, whose limit for H = 1 (appendix B.1) is 0
        reward = np.where(certainty == 0, 0.0, certainty * (t + 1))
    return reward - h / (t + 1)


def frs(
    entropy: ArrayLike,
    t_b: ArrayLike,
    d: ArrayLike = 1.0,
    *,
    unbroken: float | None = 1.0,
) -> NDArray:
    """Equation 4: FRS = (f + 1) / (f + 2), in [0, 1]. A t_b of inf scores `unbroken`: 1 in the
    paper, whatever the entropy (caption of figure 4). For exact temperatures pass None, the
    equation's limit: 1, or 1/2 where H = 1."""
    f = raw_frs(entropy, t_b, d)
    with np.errstate(invalid="ignore"):
        scaled = np.where(np.isinf(f), 1.0, (f + 1) / (f + 2))
    return scaled if unbroken is None else np.where(np.isinf(t_b), unbroken, scaled)


def mark_greedy(responses: pd.DataFrame) -> pd.DataFrame:
    """A table `schemas.MarkedAnswers` of responses of `decoding.probe.greedy_answers` (4.1.2, 4.2,
    4.3)."""
    pairs = list(zip(responses["text"], accepted_answers(responses), strict=True))
    exact = [text.exact_match(answer, accepted) for answer, accepted in pairs]
    contains = [text.contains(answer, accepted) for answer, accepted in pairs]
    return responses.assign(
        exact_match=np.array(exact, dtype=bool),
        contains=np.array(contains, dtype=bool),  # also without a response
        entropy=[_mean([*map(top_entropy, tops)]) for tops in responses["top_logprobs"]],
    )


def select_known(marked: pd.DataFrame, per_domain: int | None = None) -> pd.DataFrame:
    """The facts that a model knows: exactly matched greedy answers (4.1.2), with their number of
    tokens. With `per_domain`, at most so many for each model and domain, drawn by a hash of fact_id."""
    known = marked[marked["exact_match"]]
    known = known.assign(tokens=known["token_ids"].map(len))
    if per_domain is None:
        return known
    lots = known["fact_id"].map(draws.hash48)
    rank = lots.groupby([known["model"], known["domain"]]).rank()
    return known[rank <= per_domain]


def known_by(marked: pd.DataFrame, largest: str) -> pd.DataFrame:
    """Who knows each fact (fact_id, relation, known_by), one of KNOWN_BY. `marked` are the answers of
    several models to the same facts; `largest` is the name of one."""
    knows = marked.pivot(index="fact_id", columns="model", values="exact_match").astype(bool)
    others = knows.drop(columns=largest).any(axis=1)
    cases = [knows[largest] & others, knows[largest], others]
    kinds = pd.Series(
        np.select(cases, KNOWN_BY[1:], default=KNOWN_BY[0]),
        knows.index,
    )
    table = marked[["fact_id", "relation"]].drop_duplicates("fact_id")
    return table.assign(known_by=table["fact_id"].map(kinds))


def mark_samples(samples: pd.DataFrame) -> pd.DataFrame:
    """A table `schemas.MarkedSamples` of samples with their facts; figure 2 shows `certainty`, the mean
    probability of a sample's tokens under the distribution that they were drawn from."""
    pairs = zip(samples["text"], accepted_answers(samples), strict=True)
    return samples.assign(
        correct=[text.contains(answer, accepted) for answer, accepted in pairs],
        certainty=[_mean(np.exp(logprobs)) for logprobs in samples["tempered_logprobs"]],
    )


def sampled_accuracy(marked: pd.DataFrame) -> pd.DataFrame:
    """Share of right samples for each model, fact and temperature, with n samples."""
    groups = marked.groupby([*KEY, "temperature"], sort=False)["correct"]
    return groups.agg(accuracy="mean", n="size").reset_index()


def certainty_bins(marked: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Share of right and of wrong responses in ten bins of certainty (figure 2). Bins are [0, 0.1),
    ... [0.9, 1]; shares sum to 1 within `by`. Responses without a token are left out."""
    rows = marked.dropna(subset=["certainty"])
    tenths = (rows["certainty"] * 10).astype(int).clip(upper=9)
    cells = rows.assign(bin=tenths / 10).groupby([*by, "bin", "correct"])
    table = cells.size().rename("count").reset_index()
    table["n"] = table.groupby(list(by))["count"].transform("sum")
    return table.assign(share=table["count"] / table["n"])


def sampled_breaking(accuracy: pd.DataFrame) -> pd.DataFrame:
    """t_b of each model and fact on the temperatures tried; inf where none breaks it."""
    return _per_fact(accuracy, "accuracy", first_break)


def grid_breaking(curves: pd.DataFrame, temperatures: Sequence[float]) -> pd.DataFrame:
    """The paper's t_b read off the exact curve: the first of `temperatures` with P_t < THRESHOLD."""
    same = at_temperatures(curves, temperatures)
    return _per_fact(same, "logprob", lambda t, x: first_break(t, np.exp(x)))


def at_temperatures(curves: pd.DataFrame, temperatures: Sequence[float]) -> pd.DataFrame:
    """The rows of a table `schemas.Curves` at some temperatures."""
    return curves[
        np.isclose(
            curves["temperature"].to_numpy()[:, None],
            temperatures,
        ).any(axis=1)
    ]


def exact_breaking(curves: pd.DataFrame) -> pd.DataFrame:
    """The exact t_b of each model and fact: where the greedy answer's P_t crosses THRESHOLD."""
    return _per_fact(curves, "logprob", exact_break)


def fitted_break(temperatures: ArrayLike, right: ArrayLike, n: int) -> NDArray[np.float64]:
    """t_b by a logistic curve of the probability against log t, from the number of `right` answers
    among n at each temperature, [..., t]: the mean of log t_b over curves of any middle and slope,
    weighed by their likelihood."""
    middles, slopes = np.meshgrid(
        np.log(np.geomspace(0.1, 4, 180)),
        np.geomspace(1.5, 24, 9),
    )
    steps = np.log(np.asarray(temperatures, dtype=float))[:, None]
    odds = slopes.ravel() * (middles.ravel() - steps)  # [t, curve]
    counts = np.asarray(right, dtype=float)
    likelihood = n * -np.logaddexp(0, odds).sum(axis=0) + counts @ odds
    weights = np.exp(likelihood - likelihood.max(axis=-1, keepdims=True))
    return np.exp(weights @ middles.ravel() / weights.sum(axis=-1))


def sampling_spread(
    curves: pd.DataFrame,
    temperatures: Sequence[float],
    n: int,
    *,
    draws: int = 20,
    seed: int = 0,
) -> pd.DataFrame:
    """What n samples a temperature leave uncertain in t_b: a row a model, fact and `estimator`, "scan"
    (the paper's; a fact that never breaks counts as broken one step after the last temperature) or
    "fit" (`fitted_break`), with mean and sd of `draws` t_b, found from counts drawn by P_t. Each model's
    draws begin with the `seed`."""
    near = at_temperatures(curves, temperatures)
    beyond = 2 * temperatures[-1] - temperatures[-2]
    tables = []
    for _, part in near.groupby("model"):
        wide = part.pivot(index=KEY, columns="temperature", values="logprob")
        p = np.exp(wide.to_numpy(dtype=float)).clip(0, 1)
        right = np.random.default_rng(seed).binomial(n, p, (draws, *p.shape))
        scan = np.minimum(first_break(temperatures, right / n), beyond)
        fit = np.array([fitted_break(temperatures, drawn, n) for drawn in right])  # saves memory
        facts = wide.index.to_frame(index=False)
        for name, t_b in {"scan": scan, "fit": fit}.items():
            found = facts.assign(
                estimator=name,
                mean=t_b.mean(axis=0),
                sd=t_b.std(axis=0, ddof=1),
            )
            tables.append(found)
    return pd.concat(tables, ignore_index=True)


def per_token(curves: pd.DataFrame, tokens: pd.Series) -> pd.DataFrame:
    """`schemas.Curves` of the mean of a token's probability, P_t^(1/n): `tokens` are the n of each
    model and fact (its index). Like the entropy it is neutral to length."""
    n = curves.join(tokens.rename("n"), on=KEY)["n"]
    return curves.assign(logprob=curves["logprob"] / n)


def frs_table(
    known: pd.DataFrame,
    breaking_temperatures: pd.DataFrame,
    *,
    ds: Sequence[float] = D_VALUES,
    unbroken: float | None = 1.0,
) -> pd.DataFrame:
    """FRS of each known fact for every d of `ds`: `schemas.Robustness`, and relation. Facts without a
    breaking temperature are left out. For `unbroken` see `frs`."""
    joined = known.merge(breaking_temperatures, on=KEY, validate="one_to_one")
    table = pd.DataFrame({"d": ds}).merge(joined, how="cross")
    table["frs"] = frs(
        table["entropy"],
        table["t_b"],
        table["d"],
        unbroken=unbroken,
    )
    return table[[*schemas.Robustness.columns, "relation"]]


def type_shares(scored: pd.DataFrame, top: int) -> pd.DataFrame:
    """The most and the least robust facts, for the share of each answer type (5.3, figure 5).

    A row a fact: fact_id, answer_type, robust, model. Of each model the `top` highest and lowest
    FRS, but at most a third of its facts each (as 1,000 of the paper's 3,000). The mean of `robust`
    over a type is its share among the highest. Ties are broken by a hash of fact_id; facts without
    FRS are left out. `scored` holds one value of d.
    """
    ranked = scored.dropna(subset=["frs"])
    lots = ranked["fact_id"].map(draws.hash48)
    ranked = ranked.assign(lot=lots).sort_values(["frs", "lot"])
    facts = ranked.groupby("model")["frs"]
    most = np.minimum(facts.transform("size") // 3, top)
    low = facts.cumcount() < most
    high = facts.cumcount(ascending=False) < most
    ends = ranked.assign(robust=high)[low | high]
    return ends[["fact_id", "answer_type", "robust", "model"]].reset_index(drop=True)


def _per_fact(
    table: pd.DataFrame,
    column: str,
    measure: Callable[..., Any],
) -> pd.DataFrame:
    wide = table.pivot(index=KEY, columns="temperature", values=column)
    t_b = pd.Series(
        measure(wide.columns, wide.to_numpy()),
        wide.index,
        dtype=float,
        name="t_b",
    )
    return table[KEY].drop_duplicates(ignore_index=True).join(t_b, on=KEY)


def _mean(values: Sequence[float]) -> float:
    """The mean, or NaN of nothing."""
    return float(np.mean(values)) if len(values) else float("nan")
