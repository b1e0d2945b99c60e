"""Part 6's tables: what each way loses beside its placebo, and what foretells a loss."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from factrobust import intervals
from factrobust.intervals import Array, Interval
from factrobust.wording.prediction import compare_predictors

KEY = ["model", "fact_id"]
# A way to lose a fact: the arm that should lose it, and its placebo (`together.shaken`).
WAYS = {
    "heat, beside nearly none": ("hot", "cold"),
    "other words, beside none changed": ("other words", "no word changed"),
    "a false sentence, beside nonsense": ("false", "nonsense"),
    "a false sentence, beside a filler": ("false", "filler"),
    "4 bits, beside 8": ("round 4", "round 8"),
    "a year, beside a wrong subject": ("own subject", "wrong subject"),
}
# What may foretell a loss, what figures call it, and the answers to be paid beside the first.
MEASURES = {
    "short": ("few tokens", 0),
    "logprob": ("log P", 0),
    "t_b": ("$t_b$", 0),
    "frs": ("FRS", 0),
    "words": ("other words", 2),
    "heat": ("heat", 5),
    "context": ("contexts", 3),
}
ARMS = {  # of which forms a measure is the share that is right
    "words": ("other words",),
    "heat": ("hot",),
    "context": ("false", "nonsense", "filler"),
}
LEAST = 1e-6  # a reliability that is 0 but for rounding corrects nothing
GIVEN = "given log P and tokens"
FEWEST = 10  # facts with an outcome, and without it, from which on there is a claim


def lost(answers: pd.DataFrame) -> pd.DataFrame:
    """The share of its forms in which a fact's answer is wrong: a row a KEY and arm, with relation."""
    groups = answers.groupby([*KEY, "relation", "arm"], sort=False)["right"]
    return (1 - groups.mean().astype(float)).rename("lost").reset_index()


def beside_placebos(shares: pd.DataFrame) -> pd.DataFrame:
    """Rows of `lost`, once for each of the WAYS that they are an arm of: adds way, and side
    ("change" or "placebo")."""
    parts = []
    for way, (change, placebo) in WAYS.items():
        side = shares["arm"].map({change: "change", placebo: "placebo"})
        rows = shares.assign(way=way, side=side)
        parts.append(rows.dropna(subset="side"))
    return pd.concat(parts, ignore_index=True)


def measures(known: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """A row a model and known fact: KEY, relation, MEASURES (the higher, the more robust). short is
    minus the number of the answer's tokens; those of ARMS are the share of right `answers` in these
    arms (NaN without one)."""
    table = known[[*KEY, "relation", "logprob", "t_b", "frs"]]
    n_tokens = known["logprobs"].map(len)
    table = table.assign(short=-n_tokens.astype(float))
    for name, arms in ARMS.items():
        some = answers[answers["arm"].isin(arms)]
        shares = some.groupby(KEY)["right"].mean().astype(float)
        table = table.join(shares.rename(name), on=KEY)
    return table.reset_index(drop=True)


def alpha(forms: pd.DataFrame) -> float:
    """Cronbach's alpha of a sum over forms [fact, form] (Psychometrika 16, 1951): k / (k - 1) times
    one minus the share of the sum's variance that the forms have by themselves. Rows with a missing
    form are left out; 0 where it is negative, NaN where no sum differs."""
    complete = forms.dropna().astype(float)
    n, k = complete.shape
    whole = complete.sum(axis=1).var()
    if k < 2 or n < 3 or not whole > 0:
        return np.nan
    alone = complete.var().sum() / whole
    found = k / (k - 1) * (1 - alone)
    return max(0.0, float(found))


def reliabilities(known: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """How much of each measure is no chance: model, measure, reliability, n (facts), forms.

    Of those in ARMS `alpha` over their forms. Of logprob and t_b, which one answer tells, the rank
    correlation with the same of the first version of the question without a changed word, where its
    answer is the same.
    """
    rows = []
    # 1. Of what one answer tells.
    plain = answers[answers["arm"] == "no word changed"]
    plain = plain[plain["form"] == 1]
    first = known[[*KEY, "text", "logprob", "t_b"]]
    both = plain.merge(first, on=[*KEY, "text"], suffixes=("", "_before"))
    for model, part in both.groupby("model", sort=False):
        for name in ("logprob", "t_b"):
            r = part[name].corr(part[f"{name}_before"], method="spearman")
            rows.append((model, name, float(r), len(part), 2))
    # 2. Of sums over forms.
    for name, arms in ARMS.items():
        some = answers[answers["arm"].isin(arms)]
        for model, part in some.groupby("model", sort=False):
            forms = part.pivot(
                index="fact_id",
                columns=["arm", "form"],
                values="right",
            )
            n = len(forms.dropna())
            rows.append((model, name, alpha(forms), n, forms.shape[1]))
    return pd.DataFrame(rows, columns=["model", "measure", "reliability", "n", "forms"])


def rank_residuals(values: ArrayLike, others: Sequence[ArrayLike], groups: ArrayLike) -> Array:
    """The ranks of `values` [row] less what the ranks of `others` and the means of `groups` explain
    of them by least squares: two such have the partial rank correlation as their correlation."""
    y = rankdata(values)
    is_of_group = pd.get_dummies(np.asarray(groups)).to_numpy(float)
    x = np.column_stack([is_of_group, *map(rankdata, others)])
    weights, *_ = np.linalg.lstsq(x, y, rcond=None)
    return np.asarray(y - x @ weights)


def together(
    table: pd.DataFrame,
    x: str,
    y: str,
    root: float,
    given: Sequence[str],
    *,
    n_boot: int = 1000,
) -> pd.DataFrame:
    """Spearman's correlation of two measures of one model, a row each way (`how`): plain; corrected,
    divided with its bounds by `root`, that of the product of both reliabilities (Spearman 1904);
    within relations; and within them GIVEN the columns `given`, unless x or y is one. Relations are
    drawn, ranks and fits kept."""
    part = table.dropna(subset=[x, y, *given])
    relations = part["relation"].to_numpy()

    def correlation(others: Sequence[str], groups: ArrayLike) -> Array:
        """With its bounds."""
        columns = [part[name] for name in others]
        one = rank_residuals(part[x], columns, groups)
        other = rank_residuals(part[y], columns, groups)
        found = intervals.bootstrap_correlation(one, other, relations, n_boot=n_boot)
        return np.array(found[:3])

    plain = correlation((), np.zeros(len(part)))
    found = {
        "plain": plain,
        "corrected": plain / root,
        "within relations": correlation((), relations),
    }
    if x not in given and y not in given:
        found[GIVEN] = correlation(given, relations)
    rows = [(how, *bounds, len(part)) for how, bounds in found.items()]
    return pd.DataFrame(rows, columns=["how", *Interval._fields])


def pairs_together(
    table: pd.DataFrame,
    reliable: pd.DataFrame,
    named: Sequence[tuple[str, str]],
    *,
    n_boot: int = 1000,
) -> pd.DataFrame:
    """`together` of each of the `named` pairs of measures and each model, given log P and the number
    of tokens, with their `reliabilities`: model, pair (as figures call it), then its columns."""
    known = reliable.set_index(["model", "measure"])["reliability"]
    parts = []
    given = ["logprob", "short"]
    for model, part in table.groupby("model", sort=False):
        for x, y in named:
            root = (known[model, x] * known[model, y]) ** 0.5
            root = root if root > LEAST else np.nan
            found = together(part, x, y, root, given, n_boot=n_boot)
            one, _ = MEASURES[x]
            other, _ = MEASURES[y]
            parts.append(found.assign(model=model, pair=f"{one} and {other}"))
    columns = ["model", "pair", "how", *Interval._fields]
    return pd.concat(parts, ignore_index=True)[columns]


def foretold(
    rows: pd.DataFrame,
    by: Sequence[str],
    outcome: str,
    signs: Sequence[str],
    *,
    n_boot: int = 1000,
) -> pd.DataFrame:
    """`wording.prediction.compare_predictors`: how well each of `signs` (columns, named
    `predictor`) tells facts with the outcome from those without it, as an AUC over all pairs and
    within relations, and its difference to that of log P, if it is a sign.

    Left out are cells in which fewer than FEWEST facts have the outcome, or lack it.
    """

    def enough(part: pd.DataFrame) -> bool:
        n = part[outcome].sum()
        return min(n, len(part) - n) >= FEWEST

    rows = rows.astype({outcome: float})
    rows = rows.groupby(list(by), sort=False).filter(enough)
    keys = [*by, "group_id", "relation", "correct", "repeat", "fold"]
    rows = rows.assign(
        group_id=rows["fact_id"],
        correct=rows[outcome],
        repeat=0,
        fold=0,
    )
    long = rows.melt(keys, list(signs), "predictor", value_name="score")
    return compare_predictors(long, by, "score", reference="logprob", n_boot=n_boot)
