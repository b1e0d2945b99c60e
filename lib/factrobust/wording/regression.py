"""Will a model answer a question correctly? Paper 3's logistic regression (4.2): fitted, applied,
read.

Predictors have the paper's names: QCat (category), SPop (log of the subject's popularity), SCons and
Cert, or those of numeric columns, which are standardised on the rows fitted on (questions, as
of `Study.predictors`). With QCat, each has a slope in each category: correct ~ QCat*log_SPop + QCat*SCons
+ QCat*Cert. A fit without a finite or unique maximum is penalised (`factrobust.regression`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import chdtrc, expit, logit, ndtr, stdtrit

from factrobust.regression import Estimates, estimate, log_likelihood
from factrobust.statistics import TWO_SIDED, Array, exact_table

COLUMNS = {"QCat": "relation", "SPop": "log_popularity", "SCons": "scons", "Cert": "cert"}
NUMERIC = ("SPop", "SCons", "Cert")
FULL = ("QCat", *NUMERIC)
TERMS = {"SPop": "log_SPop"}  # where a predictor's name in the formula is another
CATEGORY = re.compile(r"QCat\[T\.(.*?)\](?=:|$)")  # in the name of a coefficient
WITHIN = ["relation", "model", "term", "coefficient", "low", "high", "odds_ratio", "odds_low"]
WITHIN += ["odds_high", "fit", "n"]
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
    groups: pd.DataFrame, predictors: Sequence[str] = FULL, *, interactions: bool = True
) -> Fit:
    """Fit correctness on the predictors, one row a question of one model, which is not `undefined`.
    Without `interactions`, QCat only moves the intercept. A numeric predictor that does not vary
    becomes 0 and is reported as collinear; a single category is left to the intercept."""
    frame = _frame(groups, predictors)
    names = [name for name in frame if name != "QCat"]
    numeric, correct = frame[names].to_numpy(float), groups["correct"].to_numpy(float)
    mean, sd = numeric.mean(axis=0), numeric.std(axis=0)
    sd[sd <= 1e-12 * np.maximum(np.abs(mean), 1)] = np.inf  # no more than rounding
    scaling = pd.DataFrame({"mean": mean, "sd": sd}, names)
    categories = tuple(sorted(frame["QCat"].unique())) if "QCat" in frame else ()
    found = estimate(_design(frame, scaling, categories, interactions), correct)
    null = log_likelihood(logit(np.full(len(frame), correct.mean())), correct)
    about: dict[str, Any] = {"model": str(groups["model"].iloc[0]), "predictors": tuple(predictors)}
    about |= {"categories": categories, "interactions": interactions, "scaling": scaling}
    return Fit(**vars(found), **about, null_log_likelihood=null, n=len(frame))


def predict(fitted: Fit, groups: pd.DataFrame) -> Array:
    """Predicted probability that each question is answered correctly, [row]; NaN for a new
    category."""
    frame = _frame(groups, fitted.predictors)
    design = _design(frame, fitted.scaling, fitted.categories, fitted.interactions)
    known = frame["QCat"].isin(fitted.categories) if "QCat" in frame else True
    return np.where(known, expit(np.einsum("ij,j->i", design, fitted.coefficients)), np.nan)


def evidence(fitted: Fit, groups: pd.DataFrame) -> Array:
    """What speaks for each answer beside its relation, [row]: its predictors, standardised, times their
    slopes in its relation, over the length of these slopes.

    Intercepts are left out, and of slopes only the ratios count. So answers of one relation can be
    ordered even where they were predicted by different fits, and one predictor alone orders them as it
    does without a fit. 0 where there are no slopes, NaN for a new category.
    """
    frame = _frame(groups, fitted.predictors)
    names = fitted.scaling.index
    z = (frame[names].to_numpy() - fitted.scaling["mean"].to_numpy()) / fitted.scaling[
        "sd"
    ].to_numpy()
    coefficients = fitted.coefficients
    slopes = np.tile(coefficients[names].to_numpy(), (len(frame), 1))
    if "QCat" in frame:
        for column, name in enumerate(names):
            added = [f"QCat[T.{category}]:{name}" for category in frame["QCat"]]
            slopes[:, column] += coefficients.reindex(added).fillna(0).to_numpy()
        slopes[~frame["QCat"].isin(fitted.categories).to_numpy()] = np.nan
    length = np.sqrt((slopes**2).sum(axis=1))
    return np.asarray((z * slopes).sum(axis=1) / np.where(length == 0, 1, length))


def undefined(groups: pd.DataFrame) -> str | None:
    """Why no regression can be fitted to these rows, or None."""
    right = int(groups["correct"].sum())
    if len(groups) == 0:
        return "there are no questions"
    if right in (0, len(groups)):
        return f"all {len(groups)} answers are {'right' if right else 'wrong'}"
    return None


def summary(
    groups: pd.DataFrame, sets: Sequence[Sequence[str]], *, interactions: bool = True
) -> pd.DataFrame:
    """Goodness of fit on all rows, one row a model and set of predictors (table 8). A model for
    which no regression can be fitted has NaN and the reason in `fit`."""
    rows: list[tuple] = []
    for (model, part), names in product(groups.groupby("model", sort=False), sets):
        numbers: tuple = (np.nan, np.nan, np.nan, len(part), f"none: {undefined(part)}")
        if undefined(part) is None:
            f = fit(part, names, interactions=interactions)
            numbers = (f.pseudo_r2, f.aic, f.degrees, f.n, f.method)
        rows.append((model, ", ".join(names), *numbers))
    names = ["model", "predictors", "pseudo_r2", "aic", "degrees", "n", "fit"]
    return pd.DataFrame(rows, columns=names)


def _frame(groups: pd.DataFrame, predictors: Sequence[str]) -> pd.DataFrame:
    """The predictors by their names in the formula."""
    columns = {TERMS.get(name, name): groups[COLUMNS.get(name, name)] for name in predictors}
    return pd.DataFrame(columns, index=groups.index)


def _design(
    frame: pd.DataFrame, scaling: pd.DataFrame, categories: Sequence[str], interactions: bool
) -> pd.DataFrame:
    """The design: intercept and standardised predictors, and behind the intercept, or with
    `interactions` each of them, what is added to it in each category but the first."""
    z = (frame[scaling.index].to_numpy() - scaling["mean"].to_numpy()) / scaling["sd"].to_numpy()
    terms = {"intercept": np.ones(len(frame))} | dict(zip(scaling.index, z.T, strict=True))
    inside = {c: frame["QCat"].to_numpy() == c for c in categories[1:]}
    columns = {}
    for term, values in terms.items():
        columns[term] = values
        for category, member in inside.items() if interactions or term == "intercept" else ():
            name = f"QCat[T.{category}]" + (f":{term}" if term != "intercept" else "")
            columns[name] = values * member
    return pd.DataFrame(columns)


def symbols(p_values: ArrayLike) -> list[str]:
    """R's marks: *** below 0.001, ** below 0.01, * below 0.05, . below 0.1, else nothing."""
    return [next((s for limit, s in MARKS if p < limit), "") for p in np.asarray(p_values, float)]


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
    """The rows of relations in which a model is sometimes right and sometimes wrong. The intercept of any
    other relation has no finite estimate, and its questions say nothing of what predicts within one."""
    share = groups.groupby(["model", "relation"])["correct"].transform("mean")
    return groups[share.between(0, 1, inclusive="neither")]


def odds_ratios(groups: pd.DataFrame, predictors: Sequence[str]) -> pd.DataFrame:
    """Odds ratios of one standard deviation of each numeric predictor, one slope for all
    categories, a row a model and term. With QCat only `mixed` relations count. low and high are the 95%
    interval of the jackknife over whole relations, by Student's t with one degree of freedom less than
    there are relations."""
    rows: list[tuple] = []
    for model, part in groups.groupby("model", sort=False):
        used = mixed(part) if "QCat" in predictors else part
        slopes, without = _slopes(used, predictors)
        reach = _reach(without)
        for term, b, r in zip(slopes.index, slopes, reach, strict=True):
            rows.append((model, term, *np.exp([b, b - r, b + r]), len(used), len(without)))
    return pd.DataFrame(
        rows, columns=["model", "term", "odds_ratio", "low", "high", "n", "relations"]
    )


def change_within(groups: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """By how much `one` gains on `other` when questions are compared within relations instead of over all.

    With the slopes b of both in standard deviations (in logits), the change is
    (b_one - b_other within) - (b_one - b_other over all), of the same `mixed` rows; low and high as in
    `odds_ratios`. A row a model.
    """
    rows = []
    for model, part in groups.groupby("model", sort=False):
        used = mixed(part)
        leads, leads_without = [], []
        for predictors in ((one, other), ("QCat", one, other)):
            slopes, without = _slopes(used, predictors)
            leads.append(slopes[one] - slopes[other])
            at, at_other = slopes.index.get_loc(one), slopes.index.get_loc(other)
            leads_without.append(without[:, at] - without[:, at_other])
        change = leads[1] - leads[0]
        [reach] = _reach((leads_without[1] - leads_without[0])[:, None])
        rows.append(
            (model, change, change - reach, change + reach, len(used), used["relation"].nunique())
        )
    return pd.DataFrame(rows, columns=["model", "change", "low", "high", "n", "relations"])


def _slopes(part: pd.DataFrame, predictors: Sequence[str]) -> tuple[pd.Series, Array]:
    """One slope for all categories of each numeric predictor, a standard deviation, in logits; and the
    same without each relation in turn, [relation, predictor]."""
    fitted = fit(part, predictors, interactions=False)
    terms, sd = fitted.scaling.index, fitted.scaling["sd"].to_numpy()
    without = []
    for name in part["relation"].unique():
        again = fit(part[part["relation"] != name], predictors, interactions=False)
        # in the same units as the fit to all
        slopes = again.coefficients[terms].to_numpy() / again.scaling["sd"].to_numpy()
        without.append(slopes * sd)
    return fitted.coefficients[terms], np.array(without)


def _reach(without: Array) -> Array:
    """Half of the jackknife's 95% interval, of estimates without each of k clusters, [k, estimate]."""
    k = len(without)
    error = np.sqrt((k - 1) / k * ((without - without.mean(0)) ** 2).sum(0))
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
    return table.assign(symbol=symbols(table["p_value"]), fit=fitted.method, n=fitted.n)


def within(
    groups: pd.DataFrame, relations: Sequence[str], predictors: Sequence[str] = NUMERIC
) -> pd.DataFrame:
    """Coefficients of regressions inside single categories, one fit each (table 7). Predictors are
    standardised within the category. A category with all answers right or all wrong has one row
    without numbers, with the reason in `fit`."""
    tables = []
    for (model, questions), relation in product(groups.groupby("model", sort=False), relations):
        part = questions[questions["relation"] == relation]
        reason = undefined(part)
        none = {"model": [model], "term": "", "fit": f"none: {reason}", "n": len(part)}
        table = pd.DataFrame(none) if reason else coefficients(fit(part, predictors))
        tables.append(table.assign(relation=relation))
    return pd.concat(tables, ignore_index=True).reindex(columns=WITHIN)


def numeric(groups: pd.DataFrame) -> pd.DataFrame:
    """One row a question and numeric predictor that varies: model, relation, correct, predictor, value."""
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
