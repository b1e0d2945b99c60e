"""Will a model answer a question correctly? Paper 3's logistic regression (4.2): fitted, applied,
read.

Predictors have the paper's names: QCat (category), SPop (log of the subject's popularity), SCons
and Cert, or those of numeric columns, which are standardised on the rows fitted on (questions, as
of `Study.predictors`). With QCat, each has a slope in each category: correct ~ QCat*log_SPop +
QCat*SCons + QCat*Cert. A fit without a finite or unique maximum is penalised
(`factrobust.regression`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import chdtrc, expit, logit, ndtr, stdtrit

from factrobust.intervals import TWO_SIDED, Array, exact_table
from factrobust.regression import Estimates, estimate, log_likelihood

COLUMNS = {
    "QCat": "relation",
    "SPop": "log_popularity",
    "SCons": "scons",
    "Cert": "cert",
}
NUMERIC = ("SPop", "SCons", "Cert")
FULL = ("QCat", *NUMERIC)
TERMS = {"SPop": "log_SPop"}  # where a predictor's name in the formula is another
CATEGORY = re.compile(r"QCat\[T\.(.*?)\](?=:|$)")  # in the name of a coefficient
WITHIN = [
    "relation",
    "model",
    "term",
    "coefficient",
    "low",
    "high",
    "odds_ratio",
    "odds_low",
    "odds_high",
    "fit",
    "n",
]
MARKS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))


@dataclass(frozen=True)
class Fit(Estimates):
    """A logistic regression of one model's correctness."""

    model: str
    predictors: tuple[str, ...]
    categories: tuple[str, ...]  # of QCat in the rows fitted on; the first is the reference
    interactions: bool  # of QCat with each numeric predictor
    scaling: pd.DataFrame  # index: numeric term of the formula; mean, sd
    null_log_likelihood: float  # of the intercept alone
    n: int

    @property
    def pseudo_r2(self) -> float:
        """McFadden's pseudo R2, 1 - log-likelihood / null log-likelihood."""
        return 1 - self.log_likelihood / self.null_log_likelihood

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2 degrees - 2 log-likelihood; lower is better."""
        return 2 * self.degrees - 2 * self.log_likelihood


def fit(
    groups: pd.DataFrame,
    predictors: Sequence[str] = FULL,
    *,
    interactions: bool = True,
) -> Fit:
    """Fit correctness on the predictors, one row a question of one model, which is not `undefined`.
    Without `interactions`, QCat only moves the intercept. A numeric predictor that does not vary
    becomes 0 and is reported as collinear; a single category is left to the intercept."""
    frame = _frame(groups, predictors)
    correct = groups["correct"].to_numpy(float)
    # 1. Numeric predictors in standard deviations.
    names = [name for name in frame if name != "QCat"]
    numeric = frame[names].to_numpy(float)
    mean = numeric.mean(axis=0)
    sd = numeric.std(axis=0)
    sd[sd <= 1e-12 * np.maximum(np.abs(mean), 1)] = np.inf  # no more than rounding
    scaling = pd.DataFrame({"mean": mean, "sd": sd}, names)
    # 2. The fit, and that of the intercept alone.
    categories = tuple(sorted(frame["QCat"].unique())) if "QCat" in frame else ()
    design = _design(frame, scaling, categories, interactions)
    found = estimate(design, correct)
    share = np.full(len(frame), correct.mean())
    return Fit(
        **vars(found),
        model=str(groups["model"].iloc[0]),
        predictors=tuple(predictors),
        categories=categories,
        interactions=interactions,
        scaling=scaling,
        null_log_likelihood=log_likelihood(logit(share), correct),
        n=len(frame),
    )


def predict(fitted: Fit, groups: pd.DataFrame) -> Array:
    """Predicted probability that each question is answered correctly, [row]; NaN for a new
    category."""
    frame = _frame(groups, fitted.predictors)
    design = _design(frame, fitted.scaling, fitted.categories, fitted.interactions)
    probability = expit(np.einsum("ij,j->i", design, fitted.coefficients))
    if "QCat" not in frame:
        return probability
    is_known = frame["QCat"].isin(fitted.categories)
    return np.where(is_known, probability, np.nan)


def evidence(fitted: Fit, groups: pd.DataFrame) -> Array:
    """What speaks for each answer beside its relation, [row]: its predictors, standardised, times
    their slopes in its relation, over the length of these slopes.

    Intercepts are left out, and of slopes only the ratios count. So answers of one relation can be
    ordered even where they were predicted by different fits, and one predictor alone orders them as
    it does without a fit. 0 where there are no slopes, NaN for a new category.
    """
    frame = _frame(groups, fitted.predictors)
    names = fitted.scaling.index
    coefficients = fitted.coefficients
    slopes = np.tile(coefficients[names].to_numpy(), (len(frame), 1))
    if "QCat" in frame:
        for column, name in enumerate(names):
            added = [f"QCat[T.{category}]:{name}" for category in frame["QCat"]]
            slopes[:, column] += coefficients.reindex(added).fillna(0).to_numpy()
        is_known = frame["QCat"].isin(fitted.categories).to_numpy()
        slopes[~is_known] = np.nan
    length = np.sqrt((slopes**2).sum(axis=1))
    spoken = (_standardised(frame, fitted.scaling) * slopes).sum(axis=1)
    return np.asarray(spoken / np.where(length == 0, 1, length))


def _standardised(frame: pd.DataFrame, scaling: pd.DataFrame) -> Array:
    """The numeric predictors in standard deviations, [row, predictor]."""
    numeric = frame[scaling.index].to_numpy()
    return (numeric - scaling["mean"].to_numpy()) / scaling["sd"].to_numpy()


def undefined(groups: pd.DataFrame) -> str | None:
    """Why no regression can be fitted to these rows, or None."""
    right = int(groups["correct"].sum())
    if len(groups) == 0:
        return "there are no questions"
    if right in (0, len(groups)):
        return f"all {len(groups)} answers are {'right' if right else 'wrong'}"
    return None


def summary(
    groups: pd.DataFrame,
    sets: Sequence[Sequence[str]],
    *,
    interactions: bool = True,
) -> pd.DataFrame:
    """Goodness of fit on all rows, one row a model and set of predictors (table 8). A model for
    which no regression can be fitted has NaN and the reason in `fit`."""
    rows: list[tuple] = []
    for (model, part), used in product(groups.groupby("model", sort=False), sets):
        predictors = ", ".join(used)
        reason = undefined(part)
        if reason is not None:
            none = (np.nan, np.nan, np.nan, len(part), f"none: {reason}")
            rows.append((model, predictors, *none))
            continue
        found = fit(part, used, interactions=interactions)
        numbers = (found.pseudo_r2, found.aic, found.degrees, found.n, found.method)
        rows.append((model, predictors, *numbers))
    columns = ["model", "predictors", "pseudo_r2", "aic", "degrees", "n", "fit"]
    return pd.DataFrame(rows, columns=columns)


def _frame(groups: pd.DataFrame, predictors: Sequence[str]) -> pd.DataFrame:
    """The predictors by their names in the formula."""
    columns = {}
    for name in predictors:
        columns[TERMS.get(name, name)] = groups[COLUMNS.get(name, name)]
    return pd.DataFrame(columns, index=groups.index)


def _design(
    frame: pd.DataFrame,
    scaling: pd.DataFrame,
    categories: Sequence[str],
    interactions: bool,
) -> pd.DataFrame:
    """The design: intercept and standardised predictors, and behind the intercept, or with
    `interactions` each of them, what is added to it in each category but the first."""
    terms = {"intercept": np.ones(len(frame))}
    terms |= zip(scaling.index, _standardised(frame, scaling).T, strict=True)
    columns = {}
    for term, values in terms.items():
        columns[term] = values
        if term != "intercept" and not interactions:
            continue
        for category in categories[1:]:
            name = f"QCat[T.{category}]"
            if term != "intercept":
                name += f":{term}"
            columns[name] = values * (frame["QCat"].to_numpy() == category)
    return pd.DataFrame(columns)


def symbols(p_values: ArrayLike) -> list[str]:
    """R's marks: *** below 0.001, ** below 0.01, * below 0.05, . below 0.1, else nothing."""
    return [_symbol(p) for p in np.asarray(p_values, float)]


def _symbol(p: float) -> str:
    for limit, mark in MARKS:
        if p < limit:
            return mark
    return ""


def coefficients(fitted: Fit) -> pd.DataFrame:
    """One row a coefficient (tables 7 and 10 to 14), with Wald's p-value and interval, in logits.

    A term is "intercept", "SCons", "QCat[T.capital]" or "QCat[T.capital]:SCons"; `category` is the
    term's, else the reference ("" without QCat). The conditional numbers are the category's own
    intercept or slope: the base coefficient plus this one. odds are exp of the coefficient and its
    bounds.
    """
    names = fitted.coefficients.index
    plain = names.str.replace(CATEGORY, "", regex=True).str.strip(":")
    base = names.get_indexer(plain.where(plain != "", "intercept"))  # itself, without a category
    single = np.eye(len(names))
    summed = np.maximum(single, single[base])
    reference = fitted.categories[0] if fitted.categories else ""
    category = names.str.extract(CATEGORY, expand=False).fillna(reference)
    table = pd.DataFrame({"model": fitted.model, "term": names, "category": category})
    for prefix, weights in (("", single), ("conditional_", summed)):
        value = weights @ fitted.coefficients.to_numpy()
        error = np.sqrt(np.einsum("ij,jk,ik->i", weights, fitted.covariance, weights))
        table[prefix.rstrip("_") or "coefficient"] = value
        table[f"{prefix}low"] = value - TWO_SIDED * error
        table[f"{prefix}high"] = value + TWO_SIDED * error
        if not prefix:
            table["standard_error"] = error
            table["p_value"] = 2 * ndtr(-np.abs(value / error))
            table["symbol"] = symbols(table["p_value"])
    for odds, name in (("ratio", "coefficient"), ("low", "low"), ("high", "high")):
        table[f"odds_{odds}"] = np.exp(table[name])
    return table.assign(fit=fitted.method, n=fitted.n)


def mixed(groups: pd.DataFrame) -> pd.DataFrame:
    """The rows of relations in which a model is sometimes right and sometimes wrong. The intercept
    of any other relation has no finite estimate, and its questions say nothing of what predicts
    within one."""
    share = groups.groupby(["model", "relation"])["correct"].transform("mean")
    return groups[share.between(0, 1, inclusive="neither")]


def odds_ratios(groups: pd.DataFrame, predictors: Sequence[str]) -> pd.DataFrame:
    """Odds ratios of one standard deviation of each numeric predictor, one slope for all
    categories, a row a model and term. With QCat only `mixed` relations count. low and high are the
    95% interval of the jackknife over whole relations, by Student's t with one degree of freedom
    less than there are relations."""
    rows: list[tuple] = []
    for model, part in groups.groupby("model", sort=False):
        used = mixed(part) if "QCat" in predictors else part
        slopes, without = _slopes(used, predictors)
        bounds = zip(slopes.items(), _reach(without), strict=True)
        for (term, slope), reach in bounds:
            odds = np.exp([slope, slope - reach, slope + reach])
            rows.append((model, term, *odds, len(used), len(without)))
    columns = ["model", "term", "odds_ratio", "low", "high", "n", "relations"]
    return pd.DataFrame(rows, columns=columns)


def change_within(groups: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """By how much `one` gains on `other` when questions are compared within relations instead of
    over all.

    With the slopes b of both in standard deviations (in logits), the change is (b_one - b_other
    within) - (b_one - b_other over all), of the same `mixed` rows; low and high as in
    `odds_ratios`. A row a model.
    """
    rows = []
    for model, part in groups.groupby("model", sort=False):
        used = mixed(part)
        over_all, over_all_without = _lead(used, (one, other), one, other)
        within, within_without = _lead(used, ("QCat", one, other), one, other)
        change = within - over_all
        [reach] = _reach((within_without - over_all_without)[:, None])
        bounds = (change - reach, change + reach)
        rows.append((model, change, *bounds, len(used), used["relation"].nunique()))
    return pd.DataFrame(
        rows,
        columns=["model", "change", "low", "high", "n", "relations"],
    )


def _lead(
    part: pd.DataFrame,
    predictors: Sequence[str],
    one: str,
    other: str,
) -> tuple[float, Array]:
    """How much steeper the slope of `one` is than that of `other`; and without each relation."""
    slopes, without = _slopes(part, predictors)
    lead = without[:, slopes.index.get_loc(one)] - without[:, slopes.index.get_loc(other)]
    return slopes[one] - slopes[other], lead


def _slopes(part: pd.DataFrame, predictors: Sequence[str]) -> tuple[pd.Series, Array]:
    """One slope for all categories of each numeric predictor, a standard deviation, in logits; and
    the same without each relation in turn, [relation, predictor]."""
    fitted = fit(part, predictors, interactions=False)
    terms = fitted.scaling.index
    sd = fitted.scaling["sd"].to_numpy()
    without = []
    for name in part["relation"].unique():
        rest = part[part["relation"] != name]
        again = fit(rest, predictors, interactions=False)
        # in the same units as the fit to all
        slopes = again.coefficients[terms].to_numpy() / again.scaling["sd"].to_numpy()
        without.append(slopes * sd)
    return fitted.coefficients[terms], np.array(without)


def _reach(without: Array) -> Array:
    """Half of the jackknife's 95% interval, of estimates without each of k clusters, [k,
    estimate]."""
    k = len(without)
    squares = ((without - without.mean(0)) ** 2).sum(0)
    error = np.sqrt((k - 1) / k * squares)
    return np.asarray(stdtrit(k - 1, 0.975) * error)


def wald(fitted: Fit) -> pd.DataFrame:
    """Wald's chi-square b' V^-1 b of each term of the formula (table 9): are its `df` coefficients
    0? With interactions, a numeric term is its slope in the reference category."""
    terms = fitted.coefficients.index.str.replace(CATEGORY, "QCat", regex=True)
    rows = []
    for term in terms.unique():
        at = np.flatnonzero(terms == term)
        b = fitted.coefficients.to_numpy()[at]
        statistic = b @ np.linalg.solve(fitted.covariance[np.ix_(at, at)], b)
        rows.append((fitted.model, term, len(at), statistic, chdtrc(len(at), statistic)))
    table = pd.DataFrame(rows, columns=["model", "term", "df", "statistic", "p_value"])
    return table.assign(
        symbol=symbols(table["p_value"]),
        fit=fitted.method,
        n=fitted.n,
    )


def within(
    groups: pd.DataFrame,
    relations: Sequence[str],
    predictors: Sequence[str] = NUMERIC,
) -> pd.DataFrame:
    """Coefficients of regressions inside single categories, one fit each (table 7). Predictors are
    standardised within the category. A category with all answers right or all wrong has one row
    without numbers, with the reason in `fit`."""
    tables = []
    for (model, questions), relation in product(groups.groupby("model", sort=False), relations):
        part = questions[questions["relation"] == relation]
        reason = undefined(part)
        if reason is None:
            table = coefficients(fit(part, predictors))
        else:
            none = {
                "model": model,
                "term": "",
                "fit": f"none: {reason}",
                "n": len(part),
            }
            table = pd.DataFrame([none])
        tables.append(table.assign(relation=relation))
    return pd.concat(tables, ignore_index=True).reindex(columns=WITHIN)


def numeric(groups: pd.DataFrame) -> pd.DataFrame:
    """A row a question and numeric predictor that varies: model, relation, correct, predictor,
    value."""
    varies = [name for name in NUMERIC if groups.get(COLUMNS[name], pd.Series()).nunique() > 1]
    names = {COLUMNS[name]: name for name in varies}
    keys = ["model", "relation", "correct"]
    return groups.rename(columns=names).melt(keys, varies, "predictor")


def binned_correctness(groups: pd.DataFrame, *, bins: int = 4) -> pd.DataFrame:
    """Share of right answers against each numeric predictor, by category (figure 5), in bins of
    equal size of a model's and category's questions; equal values share a bin. midpoint is a bin's
    mean, in the predictor's unit. Bounds are exact binomial 95% ones over its n questions."""
    keys = ["model", "relation", "predictor"]
    rows = numeric(groups)
    ranks = rows.groupby(keys)["value"].rank(pct=True)
    rows["bin"] = np.ceil(ranks * bins).clip(1, bins)
    rows["midpoint"] = rows.groupby([*keys, "bin"])["value"].transform("mean")
    table = exact_table(rows, [*keys, "midpoint"], "correct").rename(columns={"mean": "correct"})
    return table[[*keys, "midpoint", "correct", "low", "high", "n"]]
