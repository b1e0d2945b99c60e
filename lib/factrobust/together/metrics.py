"""Part 6's tables: which facts are taken, what each measure says of them, and what it foretells."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from factrobust import draws, regression, statistics
from factrobust.statistics import Array, Interval
from factrobust.wording.prediction import compared

KEY = ["model", "fact_id"]
SIDES = ("change", "placebo")
# The measures, what figures call them, and the answers to be paid beside the first.
MEASURES = {
    "short": ("few tokens", 0), "logprob": ("log P", 0), "mean_logprob": ("mean log P", 0),
    "minus_h": ("1 − H", 0), "t_b": ("$t_b$", 0), "frs": ("FRS", 0), "cert": ("Cert", 10),
    "scons": ("SCons", 5), "wordings": ("wordings right", 5), "contexts": ("contexts resisted", 2),
}  # fmt: skip
# A way to lose a fact: the arm that should lose it, and its placebo (`together.shaken`).
WAYS = {
    "temperature": ("hot", "cold"),
    "other words": ("other words", "no word changed"),
    "a false sentence, beside its nonsense twin": ("false", "nonsense"),
    "a false sentence, beside a filler": ("false", "filler"),
    "weights of 4 bits": ("round 4", "round 8"),
    "a year outside, beside a wrong subject": ("own subject", "wrong subject"),
}
FEWEST = 10  # facts with an outcome, and without it, from which on there is a claim


def lost(answers: pd.DataFrame) -> pd.DataFrame:
    """The share of its forms in which a fact's answer is wrong: a row a KEY and arm, with relation."""
    groups = answers.groupby([*KEY, "relation", "arm"], sort=False)["right"]
    return (1 - groups.mean().astype(float)).rename("lost").reset_index()


def beside_placebos(shares: pd.DataFrame) -> pd.DataFrame:
    """Rows of `lost`, once for each of the WAYS that they are an arm of: adds way, and side ("change" or
    "placebo")."""
    parts = []
    for way, arms in WAYS.items():
        side = shares["arm"].map(dict(zip(arms, SIDES, strict=True)))
        parts.append(shares.assign(way=way, side=side).dropna(subset="side"))
    return pd.concat(parts, ignore_index=True)


def with_measures(said: pd.DataFrame) -> pd.DataFrame:
    """Answers (`spine.greedy`) with what they tell by themselves: short (minus the number of tokens),
    mean_logprob and minus_h."""
    return said.assign(
        short=-said["logprobs"].map(len).astype(float),
        mean_logprob=said["logprobs"].map(np.mean).astype(float),
        minus_h=1 - said["entropy"],
    )


def measures(
    known: pd.DataFrame, changed: pd.DataFrame, samples: pd.DataFrame, alike: Callable[..., Array]
) -> pd.DataFrame:
    """A row a model and known fact: KEY, relation, domain, text, MEASURES (the higher, the more robust),
    heat (the share of samples that are right), and true, irrelevant, false (right behind such a context;
    NaN without one).

    wordings is the share of the other wordings that are right; scons and cert the similarity (`alike`)
    of the answers to all wordings, and of the samples; contexts the share right behind an irrelevant
    and a false one.
    """
    names = [*KEY, "relation", "domain", "text", "short", "logprob", "mean_logprob", "minus_h"]
    table = with_measures(known)[[*names, "t_b", "frs"]]
    other, behind = (changed[changed["way"] == way] for way in ("wording", "context"))
    wide = behind.pivot(index=KEY, columns="form", values="right").astype(float)
    wide = wide.reindex(columns=["true", "irrelevant", "false"])
    wide["contexts"] = wide[["irrelevant", "false"]].mean(axis=1)
    shares = {"wordings": other["right"].groupby([other[k] for k in KEY]).mean().astype(float)}
    shares["heat"] = samples.groupby(KEY)["correct"].mean().astype(float)
    table = table.join(wide, on=KEY).join(pd.DataFrame(shares), on=KEY)
    worded = pd.concat([known[[*KEY, "text"]], other[[*KEY, "text"]]])
    for name, texts in (("scons", worded), ("cert", samples)):
        said = texts.groupby(KEY)["text"].agg(list).rename("said")
        table[name] = np.clip(alike(table.join(said, on=KEY)["said"].tolist()), 0, 1)
    return table.reset_index(drop=True)


def second_forms(known: pd.DataFrame, changed: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """Each measure of a fact twice: KEY, measure, one, other. Of logprob, mean_logprob, minus_h and t_b
    in two wordings, if their answers are the same; of wordings their odd and even ones; of cert the share right of
    the first and the last half of the `samples`."""
    names = ["logprob", "mean_logprob", "minus_h", "t_b"]
    other = changed[changed["way"] == "wording"]
    again = other[other["form"] == 1].merge(known[[*KEY, "text"]])
    sides = [
        with_measures(said).melt(KEY, names, "measure").set_index([*KEY, "measure"])["value"]
        for said in (known, again)
    ]
    parts = [pd.concat(sides, axis=1, join="inner", keys=["one", "other"]).reset_index()]
    late = samples["sample"] > samples["sample"].max() // 2
    halves = {"wordings": (other, other["form"] % 2, "right"), "cert": (samples, late, "correct")}
    for name, (part, half, mark) in halves.items():
        means = part[mark].astype(float).groupby([part["model"], part["fact_id"], half]).mean()
        wide = means.unstack().set_axis(["one", "other"], axis="columns").reset_index()
        parts.append(wide.assign(measure=name))
    return pd.concat(parts, ignore_index=True)


def reliability(halves: pd.DataFrame) -> float:
    """Spearman and Brown's 2 r / (1 + r), of the rank correlation r of the columns one and other; 0
    where r is not positive, NaN where one is constant or fewer than three rows have both."""
    both = halves[["one", "other"]].dropna()
    if len(both) < 3 or (both.nunique() < 2).any():
        return float("nan")
    r = float(both.corr(method="spearman").to_numpy()[0, 1])
    return 2 * r / (1 + r) if r > 0 else 0.0


def beside(values: ArrayLike, others: Sequence[ArrayLike], groups: ArrayLike) -> Array:
    """The ranks of `values` [row] less what the ranks of `others` and the means of `groups` explain of
    them by least squares: two such have the partial rank correlation as their correlation."""
    y, given = rankdata(values), pd.get_dummies(pd.Series(np.asarray(groups))).to_numpy(float)
    x = np.column_stack([given, *map(rankdata, others)])
    return np.asarray(y - x @ np.linalg.lstsq(x, y, rcond=None)[0])


def together(
    table: pd.DataFrame, x: str, y: str, root: float, given: Sequence[str], *, n_boot: int = 1000
) -> pd.DataFrame:
    """Spearman's correlation of two measures of one model, a row each way (`how`): plain; corrected,
    divided with its bounds by `root`, that of the product of both reliabilities (Spearman 1904); within
    relations; and within them given the columns `given`. Relations are drawn, ranks and fits kept."""
    part = table.dropna(subset=[x, y, *given])
    others, relations = [part[g] for g in given if g not in (x, y)], part["relation"].to_numpy()
    nothing: list[Any] = []
    ways = {"plain": (nothing, np.zeros(len(part))), "within relations": (nothing, relations)}
    ways[f"given {' and '.join(given)}"] = (others, relations)
    rows = []
    for how, (beyond, inside) in ways.items():
        one, other = (beside(part[name], beyond, inside) for name in (x, y))
        found = statistics.bootstrap_correlation(one, other, relations, n_boot=n_boot)
        rows.append((how, *found[:3], len(part)))
        if how == "plain":
            rows.append(("corrected", *(np.array(found[:3]) / root), len(part)))
    return pd.DataFrame(rows, columns=["how", *Interval._fields])


def foretold(
    rows: pd.DataFrame, by: Sequence[str], outcome: str, signs: Sequence[str],
    *, draw: str = "", reference: str = "logprob", n_boot: int = 1000,
) -> pd.DataFrame:  # fmt: skip
    """`wording.prediction.compared`: how well each of `signs` (columns, named `predictor`) tells facts
    with the outcome from those without it, as an AUC over all pairs and within relations, and its
    difference to that of the `reference`, if it is a sign. Pairs are of one value of `draw`.

    Left out are cells in which fewer than FEWEST facts have the outcome in a draw, or lack it in one.
    """

    def enough(part: pd.DataFrame) -> bool:
        of_fact = part.groupby("fact_id")[outcome].mean()
        return min((of_fact > 0).sum(), (of_fact < 1).sum()) >= FEWEST

    rows = rows.astype({outcome: float}).groupby(list(by), sort=False).filter(enough)
    rows = rows.assign(group_id=rows["fact_id"], correct=rows[outcome], fold=0)
    rows["repeat"] = rows[draw] if draw else 0
    keys = [*by, "group_id", "relation", "correct", "repeat", "fold"]
    long = rows.melt(keys, list(signs), "predictor", value_name="score")
    return compared(long, by, "score", reference=reference, n_boot=n_boot)


def held_out_odds(rows: pd.DataFrame, outcome: str, signs: Sequence[str], k: int = 5) -> Array:
    """Log odds of the outcome, by a logistic regression (`regression.ridge`) on the ranks of `signs`
    that was fitted on other relations, [row]."""
    x = np.column_stack([np.ones(len(rows)), *(rankdata(rows[s]) / len(rows) - 0.5 for s in signs)])
    names = sorted(rows["relation"].unique(), key=draws.hash48)
    fold = rows["relation"].map({name: i % k for i, name in enumerate(names)}).to_numpy()
    precision = np.r_[1e-6, np.full(len(signs), regression.PRIOR_SD**-2)]
    y, odds = rows[outcome].to_numpy(float), np.zeros(len(rows))
    for i in np.unique(fold):
        b, _ = regression.ridge(x[fold != i], y[fold != i], precision)
        odds[fold == i] = x[fold == i] @ b
    return odds
