"""Part 6's tables: which facts are taken, what each measure says of them, and what it foretells."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from factrobust import draws, regression, statistics
from factrobust.decoding.metrics import frs
from factrobust.statistics import Array, Interval

KEY = ["model", "fact_id"]
# The measures, what figures call them, and the answers to be paid beside the first.
MEASURES = {
    "short": ("few tokens", 0), "logprob": ("log P", 0), "mean_logprob": ("mean log P", 0),
    "minus_h": ("1 − H", 0), "t_b": ("$t_b$", 0), "frs": ("FRS", 0), "cert": ("Cert", 10),
    "scons": ("SCons", 5), "wordings": ("wordings right", 5), "contexts": ("contexts resisted", 2),
}  # fmt: skip
HIGHEST = 99.0  # the t_b of what nothing breaks
FEWEST = 10  # facts with an outcome, and without it, from which on there is a claim


def most_shared(known: pd.DataFrame, n: int) -> pd.DataFrame:
    """At most n known facts of each model: those that most models know first, then by a hash."""
    known = known[known["right"].astype(bool)]
    shared = known["fact_id"].map(known["fact_id"].value_counts())
    order = known.assign(shared=-shared, lot=known["fact_id"].map(draws.hash48))
    taken = order.sort_values(["shared", "lot"]).groupby("model").head(n).index
    return known[known.index.isin(taken)]


def measures(
    known: pd.DataFrame, changed: pd.DataFrame, samples: pd.DataFrame, alike: Callable[..., Array]
) -> pd.DataFrame:
    """A row a model and known fact: KEY, relation, domain, MEASURES (the higher, the more robust), and
    true, irrelevant, false (right behind such a context; NaN without one).

    short is minus the number of tokens; wordings the share of the other wordings that are right; scons
    and cert the similarity (`alike`) of the answers to all wordings, and of the samples; contexts the
    share right behind an irrelevant and a false one.
    """
    logs, table = known["logprobs"], known[[*KEY, "relation", "domain", "text", "logprob"]]
    table = table.assign(
        short=-logs.map(len).astype(float),
        mean_logprob=logs.map(np.mean).astype(float),
        minus_h=1 - known["entropy"],
        t_b=bounded(known["t_b"]),
        frs=frs(known["entropy"], known["t_b"], unbroken=None),
    )
    other, behind = (changed[changed["way"] == way] for way in ("wording", "context"))
    table = table.join(other.groupby(KEY)["right"].mean().astype(float).rename("wordings"), on=KEY)
    wide = behind.pivot(index=KEY, columns="form", values="right").astype(float)
    table = table.join(wide.rename_axis(columns=None), on=KEY)
    table["contexts"] = table[["irrelevant", "false"]].mean(axis=1)
    said = pd.concat([known[[*KEY, "text"]], other[[*KEY, "text"]]])
    for name, texts in (("scons", said), ("cert", samples)):
        groups = texts.groupby(KEY)["text"].agg(list)
        ours = groups.loc[pd.MultiIndex.from_frame(table[KEY])].tolist()
        table[name] = np.clip(alike(ours), 0, 1)
    return table.reset_index(drop=True)


def bounded(t_b: pd.Series) -> pd.Series:
    """Breaking temperatures as numbers: HIGHEST for none, 0 for NaN (below one half from the start)."""
    return t_b.clip(upper=HIGHEST).fillna(0.0)


def second_forms(known: pd.DataFrame, changed: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """Each measure of a fact twice: KEY, measure, one, other. Of logprob, mean_logprob, minus_h and t_b
    in two wordings, if right in both; of wordings their odd and even ones; of cert the share right of
    the first and the last half of the `samples`, which are marked."""
    names = ["logprob", "mean_logprob", "minus_h", "t_b"]
    other = changed[changed["way"] == "wording"]
    sides = []
    for said in (known, other[(other["form"] == 1) & other["right"].astype(bool)]):
        rows = said.assign(mean_logprob=said["logprobs"].map(np.mean), minus_h=1 - said["entropy"])
        rows = rows.assign(t_b=bounded(said["t_b"]))
        sides.append(rows.melt(KEY, names, "measure").set_index([*KEY, "measure"])["value"])
    parts = [pd.concat(sides, axis=1, join="inner", keys=["one", "other"]).reset_index()]
    middle = samples["sample"].max() // 2
    halves: dict[str, Any] = {"wordings": (other, other["form"] % 2, "right")}
    halves["cert"] = (samples, (samples["sample"] > middle).astype(int), "correct")
    for name, (part, half, mark) in halves.items():
        wide = part[mark].astype(float).groupby([part["model"], part["fact_id"], half]).mean()
        wide = wide.unstack().set_axis(["one", "other"], axis="columns").reset_index()
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
    at = pd.Series(np.asarray(groups))
    ranks = [pd.Series(rankdata(x)) for x in (values, *others)]
    y, *rest = ((x - x.groupby(at).transform("mean")).to_numpy() for x in ranks)
    x = np.stack(rest or [np.zeros(len(y))], axis=1)
    return np.asarray(y - x @ np.linalg.lstsq(x, y, rcond=None)[0])


def together(
    table: pd.DataFrame, x: str, y: str, root: float, given: Sequence[str], *, n_boot: int = 1000
) -> pd.DataFrame:
    """Spearman's correlation of two measures of one model, a row each way (`how`): plain; corrected,
    divided with its bounds by `root`, that of the product of both reliabilities (Spearman 1904); within
    relations; and within them given the columns `given`. Relations are drawn, ranks and fits kept."""
    part = table.dropna(subset=[x, y, *given])
    others, relations = [part[g] for g in given if g not in (x, y)], part["relation"].to_numpy()
    everywhere = np.zeros(len(part))
    ways: dict[str, Any] = {"plain": ((), everywhere), "within relations": ((), relations)}
    ways[f"given {' and '.join(given)}"] = (others, relations)
    rows = []
    for how, (beyond, inside) in ways.items():
        one, other = (beside(part[name], beyond, inside) for name in (x, y))
        found = statistics.bootstrap_correlation(one, other, relations, n_boot=n_boot)
        rows.append((how, *found[:3], len(part)))
        if how == "plain":
            rows.append(("corrected", *(np.array(found[:3]) / root), len(part)))
    return pd.DataFrame(rows, columns=["how", *Interval._fields])


def auc(
    outcome: ArrayLike, score: ArrayLike, strata: ArrayLike, clusters: ArrayLike,
    *, minus: ArrayLike | None = None, n_boot: int = 1000,
) -> Interval:  # fmt: skip
    """The share of pairs of a row with the outcome (1) and one without it (0), of the same stratum, in
    which the first has the higher score; ties count half. With `minus`, less that of another score.

    Whole clusters are drawn; n counts rows. Pairs of two clusters are counted once, so that a resample
    costs little: AUC = sum w_c w_d W_cd / sum w_c w_d P_cd, with w how often each cluster was drawn.
    """
    one, stratum = np.asarray(outcome, dtype=float) == 1, np.asarray(strata)
    groups = pd.factorize(np.asarray(clusters))[0]
    inside = np.eye(groups.max(initial=0) + 1)[groups]
    same = (stratum[one][:, None] == stratum[~one]).astype(float)

    def won(values: ArrayLike | None) -> Array:
        x = np.zeros(len(one)) if values is None else np.asarray(values, dtype=float)
        higher = same * (1 + np.sign(x[one][:, None] - x[~one])) / 2
        return np.asarray(inside[one].T @ higher @ inside[~one])

    pairs = inside[one].T @ same @ inside[~one]
    wins = won(score) - (0 if minus is None else won(minus))

    def share(weights: Array, _: Array) -> Array:
        return statistics.ratio(
            *(np.einsum("rc,cd,rd->r", weights, x, weights) for x in (wins, pairs))
        )

    if not pairs.sum():
        return Interval(np.nan, np.nan, np.nan, len(groups))
    found = statistics.bootstrap_statistic(share, [np.arange(len(pairs))], n_boot=n_boot)
    return found._replace(n=len(groups))


def relation_alone(rows: pd.DataFrame, outcome: str, by: Sequence[str]) -> pd.Series:
    """The mean outcome of the other facts of a row's relation in each combination of `by`, [row]; for
    the only fact of a relation that of all."""
    values = rows[outcome].astype(float)
    keys = [rows[name] for name in by]
    groups = values.groupby([*keys, rows["relation"]])
    n = groups.transform("size")
    mean = (groups.transform("sum") - values) / (n - 1).where(n > 1)
    return mean.fillna(values.groupby(keys).transform("mean"))


def foretold(
    rows: pd.DataFrame, by: Sequence[str], outcome: str, signs: Sequence[str],
    *, draw: str = "", against: str = "", n_boot: int = 1000,
) -> pd.DataFrame:  # fmt: skip
    """`auc` of each of `signs` (columns) for the outcome, a row each: columns `by`, measure, among
    ("all facts", "within relations"), mean, low, high, n (facts). Pairs are of one value of `draw`.
    With `against`, less the AUC of that column. Left out are cells in which fewer than FEWEST facts
    have the outcome in a draw, or lack it in one."""
    table: list[tuple[Any, ...]] = []
    for key, part in rows.groupby(list(by), sort=False):
        part = part.dropna(subset=[*signs, outcome])
        of_fact = part.astype({outcome: float}).groupby("fact_id")[outcome].mean()
        if min((of_fact > 0).sum(), (of_fact < 1).sum()) < FEWEST:
            continue
        everywhere = part[draw].astype(str) if draw else pd.Series("", part.index, dtype=str)
        strata = {"all facts": everywhere, "within relations": everywhere + "|" + part["relation"]}
        for among, groups in strata.items():
            for sign in signs:
                minus = part[against] if against else None
                how: dict[str, Any] = {"minus": minus, "n_boot": n_boot}
                found = auc(part[outcome], part[sign], groups, part["relation"], **how)
                table.append((*key, sign, among, *found[:3], len(of_fact)))
    return pd.DataFrame(table, columns=[*by, "measure", "among", *Interval._fields])


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
