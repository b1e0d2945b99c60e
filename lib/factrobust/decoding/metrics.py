"""Part 1: who knows what, how sure of it, at which temperature it breaks, and what that scores."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from factrobust import draws, schemas, text
from factrobust.datasets.facts import answers
from factrobust.statistics import ratio_of_sums, top_entropy

KEY = ["model", "fact_id"]
D_VALUES = (1, 2, 5, 10, 50)  # table 1
KNOWN_BY = ("no model", "the largest and smaller ones", "only the largest", "only smaller ones")
THRESHOLD = 0.5  # of the accuracy, below which a fact is broken


def first_break(temperatures: ArrayLike, accuracy: ArrayLike) -> Any:
    """The paper's t_b: the lowest of the ascending `temperatures` [t] at which the `accuracy`
    [..., t] is below THRESHOLD; inf if there is none."""
    whole = np.logical_and.accumulate(~(np.asarray(accuracy) < THRESHOLD), axis=-1)
    return np.append(np.asarray(temperatures, dtype=float), np.inf)[whole.sum(axis=-1)]


def crossing(temperatures: ArrayLike, logprobs: ArrayLike) -> Any:
    """The temperature at which P_t(answer) falls to THRESHOLD, between the grid points.

    `logprobs` are log P_t(answer | prompt) at the ascending `temperatures`, [..., t]. P_t of a greedy answer
    falls with t, so there is one root: a cubic spline of the log odds against log t finds it (with
    `decoding.probe.GRID` to 0.001 of t_b). inf if P_t stays above; nan if it is below from the
    start (a tie, or an answer that is not greedy).
    """
    from scipy.interpolate import CubicSpline
    from scipy.optimize.elementwise import find_root

    t, logs = np.log(np.asarray(temperatures, float)), np.asarray(logprobs, dtype=float)
    goal = np.log(THRESHOLD)
    odds = np.log(np.expm1(np.clip(-logs, 1e-7, 500))) - np.log(np.expm1(-goal))  # as float32 is
    first = np.logical_and.accumulate(~(logs < goal), axis=-1).sum(axis=-1)
    pieces = np.zeros((6, *first.shape))  # where it begins, its width, and four coefficients
    for hi in np.unique(first[(first > 0) & (first < len(t))]):
        # Six points around the crossing, where log odds are nearly straight.
        low = max(0, hi - 3)
        spline = CubicSpline(t[low : hi + 3], odds[first == hi, low : hi + 3], axis=1)
        pieces[:2, first == hi] = [[t[hi - 1]], [t[hi] - t[hi - 1]]]
        pieces[2:, first == hi] = spline.c[:, hi - 1 - low]
    start, width, *cubic = pieces
    root = find_root(lambda x, *cubic: np.polyval(cubic, x), (0.0, width), args=tuple(cubic)).x
    t_b = np.exp(start + root)
    return np.where(first > 0, np.where(first < len(t), t_b, np.inf), np.nan)[()]


def entropy_bound(t_b: ArrayLike, tokens: int) -> NDArray[np.float64]:
    """The highest entropy of an answer of so many tokens that breaks at `t_b`, where P_t is one half.

    A token of probability q at t leaves its rivals 1 / q - 1 (as odds). Entropy is highest if k rivals
    share this evenly: before tempering, each has ((1 / q - 1) / k)^t of the answer's probability, k
    from 1 to 9. If m of the n tokens lose evenly, q = 2^(-1 / m), and the other tokens are certain.
    """
    t, best = np.asarray(t_b, dtype=float), np.zeros(np.shape(t_b))
    for lossy in range(1, tokens + 1):
        for rivals in range(1, 10):
            odds = np.minimum(1, ((2 ** (1 / lossy) - 1) / rivals) ** t)
            total = 1 + rivals * odds
            entropy = (np.log(total) - rivals * odds * np.log(odds) / total) / np.log(10)
            best = np.maximum(best, entropy * lossy / tokens)
    return best


def raw_frs(entropy: ArrayLike, t_b: ArrayLike, d: ArrayLike = 1.0) -> NDArray:
    """Equation 3: f(H, d, t_b) = (1 - H)^d (t_b + 1) - H / (t_b + 1), in [-1, inf). `entropy` is in
    [0, 1], `t_b` >= 0 (inf: never breaks), `d` >= 0; they broadcast. f is inf for t_b = inf, but 0
    where H = 1 (appendix B.1); nan in, nan out."""
    h, t = np.asarray(entropy, dtype=float), np.asarray(t_b, dtype=float)
    certainty = (1 - h) ** np.asarray(d)
    with np.errstate(invalid="ignore"):  # 0 * inf, whose limit for H = 1 (appendix B.1) is 0
        return np.where(certainty == 0, 0.0, certainty * (t + 1)) - h / (t + 1)


def frs(
    entropy: ArrayLike, t_b: ArrayLike, d: ArrayLike = 1.0, *, unbroken: float | None = 1.0
) -> NDArray:
    """Equation 4: FRS = (f + 1) / (f + 2), in [0, 1]. A t_b of inf scores `unbroken`: 1 in the
    paper, whatever the entropy (caption of figure 4). For exact temperatures pass None, the
    equation's limit: 1, or 1/2 where H = 1."""
    f = raw_frs(entropy, t_b, d)
    with np.errstate(invalid="ignore"):
        scaled = np.where(np.isinf(f), 1.0, (f + 1) / (f + 2))
    return scaled if unbroken is None else np.where(np.isinf(t_b), unbroken, scaled)


def least_unbroken(mean_frs: pd.Series) -> pd.Series:
    """The least share of unbroken facts that a mean FRS at d = 1 needs [row]: they score 1, and those
    that break up to t = 2 at most 0.8 (appendix G)."""
    most = float(frs(0.0, 2.0))
    return ((mean_frs - most) / (1 - most)).clip(lower=0)


def mark_greedy(responses: pd.DataFrame, *, whole_words: bool = True) -> pd.DataFrame:
    """A table `schemas.MarkedAnswers` of responses of `decoding.probe.greedy` (4.1.2, 4.2, 4.3)."""
    pairs = list(zip(responses["text"], answers(responses), strict=True))
    contains = [text.contains(t, a, whole_words=whole_words) for t, a in pairs]
    return responses.assign(
        exact_match=np.array([text.exact_match(t, a) for t, a in pairs], dtype=bool),
        contains=np.array(contains, dtype=bool),  # also without a response
        entropy=[np.mean([*map(top_entropy, t)] or [np.nan]) for t in responses["top_logprobs"]],
    )


def select_known(marked: pd.DataFrame, per_domain: int | None = None) -> pd.DataFrame:
    """The facts that a model knows: exactly matched greedy answers (4.1.2). With `per_domain`, at
    most so many for each model and domain, drawn by a hash of fact_id."""
    known = marked[marked["exact_match"]]
    lots = known.assign(lot=known["fact_id"].map(draws.hash48))
    most = len(known) if per_domain is None else per_domain
    return known[lots.groupby(["model", "domain"])["lot"].rank() <= most]


def known_by(marked: pd.DataFrame, largest: str) -> pd.DataFrame:
    """Who knows each fact (fact_id, relation, known_by), one of KNOWN_BY. `marked` are the answers of
    several models to the same facts; `largest` is the name of one."""
    knows = marked.pivot(index="fact_id", columns="model", values="exact_match").astype(bool)
    others = knows.drop(columns=largest).any(axis=1)
    kinds = np.select(
        [knows[largest] & others, knows[largest], others], KNOWN_BY[1:], default=KNOWN_BY[0]
    )
    table = marked[["fact_id", "relation"]].drop_duplicates("fact_id")
    return table.assign(known_by=table["fact_id"].map(pd.Series(kinds, knows.index)))


def mark_samples(samples: pd.DataFrame) -> pd.DataFrame:
    """A table `schemas.MarkedSamples` of samples with their facts; figure 2 shows `certainty`."""
    pairs = zip(samples["text"], answers(samples), strict=True)
    return samples.assign(
        correct=[text.contains(t, a) for t, a in pairs],
        certainty=[_mean_probability(x) for x in samples["tempered_logprobs"]],
        certainty_at_1=[_mean_probability(x) for x in samples["logprobs"]],
    )


def sampled_accuracy(marked: pd.DataFrame) -> pd.DataFrame:
    """Share of right samples for each model, fact and temperature, with n samples."""
    groups = marked.groupby([*KEY, "temperature"], sort=False)["correct"]
    return groups.agg(accuracy="mean", n="size").reset_index()


def certainty_bins(marked: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Share of right and of wrong responses in ten bins of certainty (figure 2). Bins are [0, 0.1),
    ... [0.9, 1]; shares sum to 1 within `by`. Responses without a token are left out."""
    rows = marked.dropna(subset=["certainty"])
    bins = (rows["certainty"] * 10).astype(int).clip(upper=9) / 10
    cells = rows.assign(bin=bins).groupby([*by, "bin", "correct"])
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
    return curves[np.isclose(curves["temperature"].to_numpy()[:, None], temperatures).any(axis=1)]


def exact_breaking(curves: pd.DataFrame) -> pd.DataFrame:
    """The exact t_b of each model and fact: where the greedy answer's P_t crosses THRESHOLD."""
    return _per_fact(curves, "logprob", crossing)


def frs_table(
    known: pd.DataFrame, breaking_temperatures: pd.DataFrame, *, unbroken: float | None = 1.0
) -> pd.DataFrame:
    """FRS of each known fact for every d of table 1: `schemas.Robustness`, and relation. Facts
    without a breaking temperature are left out. For `unbroken` see `frs`."""
    columns = [*KEY, "domain", "answer_type", "entropy", "relation"]
    joined = known[columns].merge(breaking_temperatures, on=KEY, validate="one_to_one")
    table = pd.DataFrame({"d": D_VALUES}).merge(joined, how="cross")
    table["frs"] = frs(table["entropy"], table["t_b"], table["d"], unbroken=unbroken)
    return table[[*schemas.Robustness.columns, "relation"]]


def type_shares(scored: pd.DataFrame, top: int) -> pd.DataFrame:
    """The most and the least robust facts, for the share of each answer type (5.3, figure 5).

    A row a fact: fact_id, answer_type, robust, model. Of each model the `top` highest and lowest
    FRS, but at most a third of its facts each (as 1,000 of the paper's 3,000). The mean of `robust`
    over a type is its share among the highest. Ties are broken by a hash of fact_id; facts without
    FRS are left out. `scored` holds one value of d.
    """
    ranked = scored.dropna(subset=["frs"])
    ranked = ranked.assign(lot=ranked["fact_id"].map(draws.hash48)).sort_values(["frs", "lot"])
    facts = ranked.groupby("model")["frs"]
    k = np.minimum(facts.transform("size") // 3, top)
    low, high = facts.cumcount() < k, facts.cumcount(ascending=False) < k
    ends = ranked.assign(robust=high)[low | high]
    return ends[["fact_id", "answer_type", "robust", "model"]].reset_index(drop=True)


def mark_detours(marked: pd.DataFrame, known: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Samples with what the exact estimator counts, and where it differs from the sampled one.

    `begins`: the sample begins with the greedy answer's tokens, the event of
    `decoding.probe.tempered`. `detour`: right, but begins otherwise; `listed`: a detour that begins
    with one of the `wordings` in `others`. `spoiled`: begins so, but is wrong ("Paris" goes on to
    "Parish"). So accuracy is the sum of begins and detour, minus spoiled.
    """
    forms = others[[*KEY, "form"]].drop_duplicates().groupby(KEY)["form"].agg(list)
    joined = marked.join(known.set_index(KEY)[["token_ids"]].add_prefix("greedy_"), on=KEY)
    pairs = zip(joined["token_ids"], joined["greedy_token_ids"], strict=True)
    begins = np.array([list(ids[: len(first)]) == list(first) for ids, first in pairs], dtype=bool)
    said = zip(zip(*(joined[key] for key in KEY), strict=True), joined["text"], strict=True)
    spelled = [text.startswith(tuple(forms.get(key, ()))) for key, text in said]
    correct = marked["correct"].to_numpy(dtype=bool)
    marked = marked.assign(begins=begins, detour=correct & ~begins, spoiled=begins & ~correct)
    return marked.assign(listed=marked["detour"] & np.array(spelled, dtype=bool))


def breaking_distribution(probabilities: ArrayLike, n: int) -> NDArray[np.float64]:
    """How often the paper's scan with n samples breaks at each temperature, and (last) at none,
    [fact, temperature + 1], from P_t [fact, temperature], ascending in t: with q_i = P(Bin(n, P_i)
    < n / 2) it stops at the i-th with probability q_i (1 - q_1) ... (1 - q_{i-1})."""
    from scipy.stats import binom

    p = np.atleast_2d(np.asarray(probabilities, dtype=float))
    fails = binom.cdf(np.ceil(THRESHOLD * n) - 1, n, np.clip(p, 0, 1))
    reached = np.cumprod(np.hstack([np.ones((len(p), 1)), 1 - fails]), axis=1)
    return reached * np.hstack([fails, np.ones((len(p), 1))])


def sampling_error(
    curves: pd.DataFrame, temperatures: Sequence[float], counts: Sequence[int]
) -> pd.DataFrame:
    """What sampling adds to t_b: a row a model, fact and number of `samples` a temperature.

    `curves` (`schemas.Curves`) holds all the evenly spaced `temperatures`. `on_grid` is the first
    of them with P_t below one half, `expected` the mean of the sampled t_b, `bias` their
    difference, `sd` its standard deviation. A fact that never breaks counts as broken one step
    after the last temperature.
    """
    grid = np.asarray(temperatures, dtype=float)
    near = at_temperatures(curves, temperatures)
    near = near.assign(temperature=near["temperature"].round(6))
    wide = near.pivot(index=KEY, columns="temperature", values="logprob")
    probabilities = np.exp(wide.to_numpy())
    steps = np.append(grid, 2 * grid[-1] - grid[-2])
    on_grid = np.minimum(first_break(grid, probabilities), steps[-1])
    tables = []
    for n in counts:
        shares = breaking_distribution(probabilities, n)
        expected = shares @ steps
        sd = np.sqrt(np.maximum(shares @ steps**2 - expected**2, 0))
        found = {"samples": n, "on_grid": on_grid, "expected": expected, "bias": expected - on_grid}
        tables.append(wide.index.to_frame(index=False).assign(**found, sd=sd))
    return pd.concat(tables, ignore_index=True)


def noisy_correlation(
    weights: NDArray, x: NDArray, expected: NDArray, variance: NDArray
) -> NDArray[np.float64]:
    """Pearson's correlation of x with a noisy number, of which the mean and the variance are given
    [row], as `statistics.bootstrap_statistic` calls it: noise adds its variance and no covariance."""
    one = np.ones_like(x)
    mean_x, mean_y = (ratio_of_sums(weights, values, one) for values in (x, expected))
    both = ratio_of_sums(weights, x * expected, one) - mean_x * mean_y
    of_x = ratio_of_sums(weights, x**2, one) - mean_x**2
    of_y = ratio_of_sums(weights, expected**2 + variance, one) - mean_y**2
    return both / np.sqrt(of_x * of_y)


def merged_entropy(tokens: Sequence[str], logprobs: Sequence[float]) -> float:
    """`top_entropy` where tokens that differ only in case or spaces count as one (" red", "Red").
    The logarithm's base stays the number of tokens given, so that merging never adds entropy."""
    groups: dict[str, list[float]] = {}
    for token, logprob in zip(tokens, logprobs, strict=True):
        groups.setdefault(token.strip().casefold(), []).append(logprob)
    merged = [np.logaddexp.reduce(parts) for parts in groups.values()]
    if len(merged) == 1:
        return 0.0
    return top_entropy(merged) * float(np.log(len(merged)) / np.log(len(tokens)))


def entropies(known: pd.DataFrame) -> pd.DataFrame:
    """The entropy of each of `schemas.MarkedAnswers`, mean over its tokens, base 10: `published` of
    the ten likeliest tokens, renormalised (equation 1); `not renormalised` with their plain
    probabilities; `merged` (`merged_entropy`); `vocabulary`, all tokens, which may exceed 1."""
    ten = [[np.asarray(at, dtype=float) for at in answer] for answer in known["top_logprobs"]]
    plain = [np.mean([-np.exp(at) @ at / np.log(at.size) for at in answer]) for answer in ten]
    pairs = zip(known["top_tokens"], known["top_logprobs"], strict=True)
    every = ([merged_entropy(*at) for at in zip(*answer, strict=True)] for answer in pairs)
    merged = [np.mean(answer) for answer in every]
    whole = [np.mean(at) / np.log(10) for at in known["entropies"]]
    table = known[KEY].assign(published=known["entropy"], merged=merged, vocabulary=whole)
    return table.assign(**{"not renormalised": plain})


def beginnings(known: pd.DataFrame, least: float) -> list[list[str]]:
    """Of each known answer, the other tokens that begin an output with a probability of `least` or
    more, of the ten likeliest [row]."""
    first = zip(known["top_tokens"], known["top_logprobs"], strict=True)
    pairs = [list(zip(tokens[0][1:], logs[0][1:], strict=True)) for tokens, logs in first]
    no_text, log = {"\n", "\ufffd"}, np.log(least)
    return [[x for x, p in at if p >= log and x and not no_text & {*x}] for at in pairs]


def wordings(continued: pd.DataFrame) -> pd.DataFrame:
    """The right ones of the outputs of `decoding.probe.continued`: model, fact_id, prompt, form
    (the text up to the answer's end) and tokens, its number. A form that begins with the greedy
    answer or another form, or they with it, is left out: so probabilities of all may be added."""
    columns = [continued[c] for c in (*KEY, "prompt", "text", "begun", "tokens")]
    rows: list[tuple[Any, ...]] = []
    taken: dict[tuple[str, str], list[str]] = {}
    for model, fact, prompt, said, begun, tokens, accepted in zip(
        *columns, answers(continued), strict=True
    ):
        texts = ["".join([begun, *tokens[:k]]) for k in range(len(tokens) + 1)]
        right = [text.contains(x, accepted) for x in texts]
        # A token more shows whether the word goes on: "Niger" to "Nigeria".
        ends = (k for k in range(len(right)) if all(right[k : k + 2]))
        if (k := next(ends, None)) is None:
            continue
        form, others = texts[k], taken.setdefault((model, fact), [said.rstrip()])
        if not any(form.startswith(x) or x.startswith(form) for x in others):
            others.append(form)
            rows.append((model, fact, prompt, form, 1 + k))
    return pd.DataFrame(rows, columns=[*KEY, "prompt", "form", "tokens"])


def with_wordings(curves: pd.DataFrame, others: pd.DataFrame, limit: int) -> pd.DataFrame:
    """log P_t of the greedy answer or one of the `others` (`decoding.probe.tempered_forms`) that have
    at most `limit` tokens: `schemas.Curves`, a lower bound, since other wordings are not listed."""
    few = others.loc[others["tokens"] <= limit, list(curves)]
    every = pd.concat([curves, few]) if len(few) else curves
    by = [*KEY, "temperature"]
    summed = np.exp(every["logprob"]).groupby([every[c] for c in by], sort=False).sum()
    return np.log(summed).reset_index()[list(curves)]


def scan_to(breaking: pd.DataFrame, end: float) -> pd.DataFrame:
    """The t_b that a scan finds which ends at the temperature `end`: inf beyond it."""
    return breaking.assign(t_b=breaking["t_b"].where(breaking["t_b"] <= end, np.inf))


def _per_fact(table: pd.DataFrame, column: str, measure: Callable[..., Any]) -> pd.DataFrame:
    wide = table.pivot(index=KEY, columns="temperature", values=column)
    t_b = pd.Series(measure(wide.columns, wide.to_numpy()), wide.index, dtype=float, name="t_b")
    return table[KEY].drop_duplicates(ignore_index=True).join(t_b, on=KEY)


def _mean_probability(logprobs: Sequence[float]) -> float:
    return float(np.mean(np.exp(logprobs))) if len(logprobs) else float("nan")
