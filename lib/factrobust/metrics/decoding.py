"""Part 1's tables, from responses: who knows what, at which temperature it breaks, what it scores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from factrobust.metrics import breaking, entropy, frs, text

KEY = ["model", "fact_id"]
D_VALUES = (1, 2, 5, 10, 50)  # table 1


def mark(responses: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Greedy responses with the fact's columns, and what they are worth.

    Adds exact_match (4.1.2), contains (4.2, whole words), and entropy: H over the top 10
    alternatives, averaged over the answer's tokens (4.3).
    """
    marked = responses.merge(facts, on="fact_id", how="left", validate="many_to_one")
    accepted = _accepted(marked)
    pairs = list(zip(marked["text"], accepted, strict=True))
    return marked.assign(
        exact_match=[text.exact_match(t, a) for t, a in pairs],
        contains=[text.contains(t, a) for t, a in pairs],
        entropy=[entropy.answer_entropy(top) for top in marked["top_logprobs"]],
    )


def select_known(marked: pd.DataFrame, per_domain: int | None = None) -> pd.DataFrame:
    """The facts that a model knows: exactly matched greedy answers (4.1.2).

    With `per_domain`, at most that many for each model and domain, drawn by a hash of fact_id: in
    the table's order relations stand together, and a domain's first facts are all capitals.
    """
    known = marked[marked["exact_match"]]
    if per_domain is None:
        return known
    lots = known.assign(lot=known["fact_id"].map(_lot))
    return known[lots.groupby(["model", "domain"])["lot"].rank() <= per_domain]


def mark_samples(
    samples: pd.DataFrame, facts: pd.DataFrame, *, whole_words: bool = True
) -> pd.DataFrame:
    """Samples with the fact's domain, `correct` (contains the truth) and their certainty.

    `certainty` is the mean probability of the tokens under the distribution that they were drawn
    from (figure 2), `certainty_at_1` the same under the model's own, untempered distribution.
    """
    marked = samples.merge(
        facts[["fact_id", "object", "aliases", "domain", "answer_type"]], on="fact_id",
        how="left", validate="many_to_one",
    )  # fmt: skip
    pairs = zip(marked["text"], _accepted(marked), strict=True)
    return marked.assign(
        correct=[text.contains(t, a, whole_words=whole_words) for t, a in pairs],
        certainty=[_mean_probability(x) for x in marked["tempered_logprobs"]],
        certainty_at_1=[_mean_probability(x) for x in marked["logprobs"]],
    ).drop(columns=["object", "aliases"])


def sampled_accuracy(marked: pd.DataFrame) -> pd.DataFrame:
    """Share of right samples for each model, fact and temperature, with n samples."""
    groups = marked.groupby([*KEY, "temperature"], sort=False)["correct"]
    return groups.agg(accuracy="mean", n="size").reset_index()


def certainty_bins(
    marked: pd.DataFrame, by: Sequence[str], *, column: str = "certainty", bins: int = 10
) -> pd.DataFrame:
    """Share of responses in each bin of certainty, right and wrong told apart (figure 2).

    Bins are [0, 0.1), ... [0.9, 1]; shares sum to 1 over the bins and both kinds within `by`.
    Responses without any token have no certainty and are left out.
    """
    rows = marked.dropna(subset=[column])
    number = np.minimum((rows[column] * bins).astype(int), bins - 1)
    counts = rows.assign(bin=number / bins).groupby([*by, "bin", "correct"]).size()
    table = counts.rename("count").reset_index()
    table["n"] = table.groupby(list(by))["count"].transform("sum")
    return table.assign(share=table["count"] / table["n"])


def sampled_breaking(accuracy: pd.DataFrame, threshold: float = breaking.THRESHOLD) -> pd.DataFrame:
    """t_b of each model and fact on the temperatures tried; inf where none breaks it."""
    return _per_fact(accuracy, "accuracy", lambda t, a: breaking.first_break(t, a, threshold))


def grid_breaking(
    curves: pd.DataFrame, temperatures: Sequence[float], threshold: float = breaking.THRESHOLD
) -> pd.DataFrame:
    """The paper's t_b read off the exact curve: the first of `temperatures` with P_t < threshold."""
    same = np.isclose(curves["temperature"].to_numpy()[:, None], temperatures)
    if not curves.empty and not same.any(axis=0).all():
        absent = np.asarray(temperatures)[~same.any(axis=0)]
        raise ValueError(
            f"the curves lack the temperatures {absent.tolist()}; compute them there too"
        )
    on_grid = curves[same.any(axis=1)]
    return _per_fact(on_grid, "logprob", lambda t, x: breaking.first_break(t, np.exp(x), threshold))


def exact_breaking(curves: pd.DataFrame, threshold: float = breaking.THRESHOLD) -> pd.DataFrame:
    """The exact t_b of each model and fact: where the greedy answer's P_t crosses the threshold."""
    return _per_fact(curves, "logprob", lambda t, x: breaking.crossing(t, x, threshold))


def scores(
    known: pd.DataFrame, breaking_temperatures: pd.DataFrame, *, unbroken: float | None = 1.0
) -> pd.DataFrame:
    """FRS of each known fact for every d of table 1: the columns of `known` used later, t_b, d, frs.

    Known facts without a row in `breaking_temperatures` are left out. Pass `unbroken=None` with exact breaking temperatures (see `metrics.frs.score`).
    """
    columns = [*KEY, "domain", "answer_type", "entropy"]
    joined = known[columns].merge(breaking_temperatures, on=KEY, validate="one_to_one")
    return pd.concat(
        [
            joined.assign(
                d=d, frs=frs.score(joined["entropy"], joined["t_b"], d, unbroken=unbroken)
            )
            for d in D_VALUES
        ],
        ignore_index=True,
    )


def type_shares(scored: pd.DataFrame, top: int) -> pd.DataFrame:
    """The most and the least robust facts, for the share of each answer type (5.3, figure 5).

    One row a fact: fact_id, answer_type, robust, model. For each model the `top` highest and the
    `top` lowest FRS are collected (half of the facts each if there are fewer), and the mean of
    `robust` over a type is its share among the highest; 0.5 means no more robust than the rest.
    Ties are broken by a hash of fact_id: in alphabetical order, relations, and with them types,
    would stand together. Facts whose FRS is nan are left out. Raises ValueError for several values
    of d at once.
    """
    if scored.duplicated(KEY).any():
        raise ValueError("a fact has several scores; keep the rows of one model, fact and d")
    tables = []
    for model, group in scored.dropna(subset=["frs"]).groupby("model", sort=False):
        ranked = group.assign(lot=group["fact_id"].map(_lot)).sort_values(["frs", "lot"])
        k = min(top, len(ranked) // 2)
        ends = pd.concat([ranked.head(k).assign(robust=False), ranked.tail(k).assign(robust=True)])
        tables.append(ends[["fact_id", "answer_type", "robust"]].assign(model=model))
    return pd.concat(tables, ignore_index=True)


def mark_detours(marked: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Samples with what the exact estimator counts, and where it differs from the sampled one.

    `begins`: the sample's tokens begin with those of the greedy answer, the event whose probability
    `probes.decoding.tempered` gives. `detour`: right without beginning so (other words first,
    another accepted name, other tokens for the same text). `spoiled`: begins so and goes on to
    something that is not right ("Paris" to "Parish"). Therefore accuracy = share of `begins` +
    share of `detour` - share of `spoiled`, sample by sample. Raises ValueError for answers without
    token ids, as endpoints give them.
    """
    if not known["token_ids"].map(len).all():
        raise ValueError(
            "the answers have no token ids, as those of endpoints, and detours are told by them; take "
            "a model in memory"
        )
    greedy = known[[*KEY, "token_ids"]].rename(columns={"token_ids": "greedy_ids"})
    joined = marked.merge(greedy, on=KEY, how="left", validate="many_to_one")
    begins = np.array(
        [
            list(t[: len(g)]) == list(g)
            for t, g in zip(joined["token_ids"], joined["greedy_ids"], strict=True)
        ],
        dtype=bool,
    )
    correct = joined["correct"].to_numpy(dtype=bool)
    return joined.drop(columns="greedy_ids").assign(
        begins=begins, detour=correct & ~begins, spoiled=begins & ~correct
    )


def _lot(fact_id: str) -> int:
    return int(hashlib.sha256(fact_id.encode()).hexdigest()[:12], 16)


def _per_fact(
    table: pd.DataFrame, column: str, measure: Callable[[np.ndarray, np.ndarray], float]
) -> pd.DataFrame:
    rows = [
        (model, fact, measure(g["temperature"].to_numpy(), g[column].to_numpy()))
        for (model, fact), g in table.sort_values("temperature", kind="stable").groupby(
            KEY, sort=False
        )
    ]
    return pd.DataFrame(rows, columns=[*KEY, "t_b"]).astype({"t_b": float})  # also without rows


def _accepted(table: pd.DataFrame) -> list[list[str]]:
    if (unknown := table["object"].isna()).any():
        raise ValueError(
            f"{unknown.sum()} response(s) to facts that are not in the table of facts, such as "
            f"{table.loc[unknown, 'fact_id'].iloc[0]}; pass the facts that were asked"
        )
    return [[o, *a] for o, a in zip(table["object"], table["aliases"], strict=True)]


def _mean_probability(logprobs: Sequence[float]) -> float:
    return float(np.mean(np.exp(logprobs))) if len(logprobs) else float("nan")
