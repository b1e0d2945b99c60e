"""Will a model answer a question correctly? Paper 3's logistic regression (4.2): fitted, applied,
read.

Predictors have the paper's names: QCat (category), SPop (log of the subject's popularity), SCons
and Cert, or those of numeric columns. Formulas are statsmodels': correct ~ QCat*SPop + QCat*SCons +
QCat*Cert. It makes a formula's design once, and that is fitted to many parts of its rows (folds,
all relations but one): making it takes ten times as long as a fit. Numeric predictors are
standardised on the rows fitted on. A fit without a finite or unique maximum is penalised
(`factrobust.regression`), which is why the design is fitted there and not by the formula itself.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, logit, stdtrit

from factrobust.intervals import Array, estimates, exact_table
from factrobust.regression import Estimates, estimate, log_likelihood

COLUMNS = {
    "relation": "QCat",
    "log_popularity": "SPop",
    "scons": "SCons",
    "cert": "Cert",
}
NUMERIC = ("SPop", "SCons", "Cert")
FULL = ("QCat", *NUMERIC)
CATEGORY = re.compile(r"QCat\[T\.(.*?)\](?=:|$)")  # in the name of a coefficient
PREDICTOR = r"^(?!Intercept$)[^\]]+$"  # the name of a numeric predictor's own column


@dataclass(frozen=True)
class Fit(Estimates):
    """A logistic regression. Its coefficients are those of the design's columns, standardised."""

    scaling: pd.DataFrame  # index: numeric predictor; mean, sd


def by_formula(
    groups: pd.DataFrame,
    predictors: Sequence[str] = FULL,
    *,
    interactions: bool = True,
) -> Any:
    """statsmodels' regression of correctness on the predictors, not fitted yet, one row a question
    of one model. Without `interactions`, QCat only moves the intercept; a single category is left
    to the intercept."""
    from statsmodels.discrete.discrete_model import Logit

    rows = groups.rename(columns=COLUMNS).astype({"correct": float})
    rows = rows[["correct", *predictors]]
    varies = rows.nunique() > 1
    terms = [name for name in predictors if name != "QCat" or varies[name]]
    if interactions and "QCat" in terms:
        terms = [name if name == "QCat" else f"QCat*{name}" for name in terms]
    return Logit.from_formula(
        f"correct ~ {' + '.join(terms) or '1'}",
        rows,
    )


def design(groups: pd.DataFrame, predictors: Sequence[str] = FULL, **options: Any) -> pd.DataFrame:
    """The design of `by_formula`: "Intercept", "QCat[T.capital]", "SCons", "QCat[T.capital]:SCons"
    and so on, [question, column]."""
    return by_formula(groups, predictors, **options).data.orig_exog


def fit_logistic(rows: pd.DataFrame, correct: ArrayLike) -> Fit:
    """Fit correctness [row], which is not the same everywhere, on rows of a `design`. A numeric
    predictor that does not vary becomes 0 and is reported as collinear."""
    rows = _with_a_reference(rows)
    numeric = rows.filter(regex=PREDICTOR)
    mean = numeric.mean()
    sd = numeric.std(ddof=0)
    # no more than rounding
    sd[sd <= 1e-12 * mean.abs().clip(lower=1)] = np.inf
    scaling = pd.DataFrame({"mean": mean, "sd": sd})
    found = estimate(_standardised(rows, scaling), np.asarray(correct, float))
    return Fit(**vars(found), scaling=scaling)


def _with_a_reference(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows without the columns of the categories that they lack. If they lack the reference,
    the first that they have takes its place."""
    dummies = rows.filter(regex=r"\]$")
    is_there = dummies.any()
    unused = list(dummies.columns[~is_there])
    if dummies.any(axis=1).all():
        unused += dummies.columns[is_there][:1].tolist()
    return rows[[name for name in map(str, rows) if not name.startswith(tuple(unused))]]


def _standardised(rows: pd.DataFrame, scaling: pd.DataFrame) -> pd.DataFrame:
    """The design with its numeric predictors in standard deviations."""
    values = rows.to_numpy(copy=True)
    place_of = {column: place for place, column in enumerate(rows)}
    for name, mean, sd in scaling.itertuples():
        columns, factors = _columns_of(name, rows)
        places = [place_of[column] for column in columns]
        of_factors = [place_of[factor] for factor in factors]
        values[:, places] = (values[:, places] - mean * values[:, of_factors]) / sd
    return pd.DataFrame(values, rows.index, rows.columns)


def _columns_of(name: str, rows: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The columns of a design that hold a numeric predictor, and what it is multiplied by there:
    the intercept, or a category."""
    columns = [column for column in map(str, rows) if column.rpartition(":")[2] == name]
    factors = [column.removesuffix(name).rstrip(":") or "Intercept" for column in columns]
    return columns, factors


def predict(fitted: Fit, rows: pd.DataFrame) -> Array:
    """Predicted probability that each question of a `design` is answered correctly, [row]."""
    z = _standardised(rows[fitted.coefficients.index], fitted.scaling)
    return expit(np.einsum("ij,j->i", z, fitted.coefficients))


def evidence(fitted: Fit, rows: pd.DataFrame) -> Array:
    """What speaks for each answer of a `design` beside its relation, [row]: its predictors,
    standardised, times their slopes in its relation, over the length of these slopes.

    Intercepts are left out, and of slopes only the ratios count. So answers of one relation can be
    ordered even where they were predicted by different fits, and one predictor alone orders them as
    it does without a fit. 0 where there are no slopes.
    """
    rows = rows[fitted.coefficients.index]
    z = _standardised(rows, fitted.scaling)
    spoken = np.zeros(len(rows))
    squares = np.zeros(len(rows))
    for name in fitted.scaling.index:
        columns, factors = _columns_of(name, rows)
        b = fitted.coefficients[columns].to_numpy()
        spoken += z[columns].to_numpy() @ b
        squares += (rows[factors].to_numpy() @ b) ** 2
    length = np.sqrt(squares)
    return spoken / np.where(length == 0, 1, length)


def goodness_of_fit(groups: pd.DataFrame, sets: Sequence[Sequence[str]]) -> pd.DataFrame:
    """Goodness of fit on all rows, one row a model and set of predictors (table 8): McFadden's R2
    and Akaike's criterion, 2 degrees - 2 log-likelihood."""
    rows = []
    for (model, part), used in product(groups.groupby("model", sort=False), sets):
        correct = part["correct"].to_numpy(float)
        found = fit_logistic(design(part, used), correct)
        null = np.full_like(correct, logit(correct.mean()))
        r2 = 1 - found.log_likelihood / log_likelihood(null, correct)
        aic = 2 * (found.degrees - found.log_likelihood)
        rows.append((model, ", ".join(used), r2, aic, found.method))
    return pd.DataFrame(rows, columns=["model", "predictors", "pseudo_r2", "aic", "fit"])


def coefficients(
    groups: pd.DataFrame,
    predictors: Sequence[str],
    by: Sequence[str] = ("model",),
) -> pd.DataFrame:
    """The regression of each part `by`, one row a coefficient (tables 7 and 10 to 14), with Wald's
    p-value and interval, in logits.

    A term is "intercept", "SCons", "QCat[T.capital]" or "QCat[T.capital]:SCons"; `category` is the
    term's, else the reference. `conditional` is the category's own intercept or slope: the base
    coefficient plus this one.
    """
    columns = ["term", "coefficient", "low", "high", "n"]
    tables = [pd.DataFrame(columns=[*by, *columns])]
    for key, part in groups.groupby(list(by), sort=False):
        found, method = _results(part, predictors)
        names = pd.Index(found.model.exog_names)
        low, high = found.conf_int().T
        table = pd.DataFrame(
            {
                "term": names.str.replace("Intercept", "intercept"),
                "category": names.str.extract(CATEGORY, expand=False),
                "coefficient": found.params,
                "low": low,
                "high": high,
                "p_value": found.pvalues,
            }
        )
        table["category"] = table["category"].fillna(part["relation"].min())
        plain = names.str.replace(CATEGORY, "", regex=True).str.strip(":")
        base = names.get_indexer(plain.where(plain != "", "Intercept"))
        has_base = base != np.arange(len(names))
        table["conditional"] = found.params + has_base * found.params[base]
        about: dict[str, Any] = dict(zip(by, key, strict=True))
        tables.append(table.assign(**about, fit=method, n=len(part)))
    return pd.concat(tables, ignore_index=True).infer_objects()


def wald(groups: pd.DataFrame, predictors: Sequence[str]) -> pd.DataFrame:
    """Each model's Wald tests of the terms of the formula (table 9): are all `df` coefficients of a
    term 0? With interactions, a numeric term is its slope in the reference category."""
    tables = []
    for model, part in groups.groupby("model", sort=False):
        found, method = _results(part, predictors)
        tests = found.wald_test_terms(scalar=True).table.astype(float)
        tests = tests.rename({"Intercept": "intercept"}).rename_axis("term").reset_index()
        tables.append(tests.assign(model=model, fit=method, n=len(part)))
    table = pd.concat(tables, ignore_index=True)
    table = table.rename(columns={"df_constraint": "df", "pvalue": "p_value"})
    return table[["model", "term", "df", "statistic", "p_value", "fit", "n"]]


def _results(groups: pd.DataFrame, predictors: Sequence[str]) -> tuple[Any, str]:
    """statsmodels' results, which may be tested, and the method of the fit. The coefficients are
    given to it, since it cannot penalise them."""
    from statsmodels.base.model import LikelihoodModelResults

    formula = by_formula(groups, predictors)
    fitted = fit_logistic(formula.data.orig_exog, groups["correct"])
    found = LikelihoodModelResults(
        formula,
        fitted.coefficients.to_numpy(),
        fitted.covariance,
    )
    return found, fitted.method


def mixed(groups: pd.DataFrame) -> pd.DataFrame:
    """The rows of relations in which a model is sometimes right and sometimes wrong. The intercept
    of any other relation has no finite estimate, and its questions say nothing of what predicts
    within one."""
    share = groups.groupby(["model", "relation"])["correct"].transform("mean")
    return groups[share.between(0, 1, inclusive="neither")]


def odds_ratios(groups: pd.DataFrame, predictors: Sequence[str]) -> pd.DataFrame:
    """Odds ratios of one standard deviation of each numeric predictor, one slope for all
    categories, a row a model and term. With QCat only `mixed` relations count. low and high are
    `_jackknifed`."""
    rows: list[tuple] = []
    for model, part in groups.groupby("model", sort=False):
        used = mixed(part) if "QCat" in predictors else part
        for term, slopes in _slopes(used, predictors).items():
            odds = np.exp(_jackknifed(slopes))
            rows.append((model, term, *odds, len(used), len(slopes) - 1))
    columns = ["model", "term", "odds_ratio", "low", "high", "n", "relations"]
    return pd.DataFrame(rows, columns=columns)


def change_within(groups: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """By how much `one` gains on `other` when questions are compared within relations instead of
    over all.

    With the slopes b of both in standard deviations (in logits), the change is (b_one - b_other
    within) - (b_one - b_other over all), of the same `mixed` rows; low and high are `_jackknifed`.
    A row a model.
    """

    def change(part: pd.DataFrame) -> tuple[float, ...]:
        used = mixed(part)
        gains = _slopes(used, ["QCat", one, other]) - _slopes(
            used,
            [one, other],
        )
        gain = gains[one] - gains[other]
        return *_jackknifed(gain), len(used), len(gain) - 1

    columns = ["change", "low", "high", "n", "relations"]
    return estimates(groups, ["model"], change, columns, sort=False)


def _slopes(part: pd.DataFrame, predictors: Sequence[str]) -> pd.DataFrame:
    """One slope for all categories of each numeric predictor, a standard deviation of all rows, in
    logits: in the first row of all, then without each relation in turn, [row, predictor]."""
    whole = design(part, predictors, interactions=False)
    relation = part["relation"].to_numpy()
    fits = [fit_logistic(whole, part["correct"])]
    for name in pd.unique(relation):
        rest = relation != name
        fits.append(fit_logistic(whole[rest], part["correct"][rest]))
    unit = fits[0].scaling["sd"]
    return pd.DataFrame([one.coefficients[unit.index] / one.scaling["sd"] * unit for one in fits])


def _jackknifed(values: pd.Series) -> tuple[float, float, float]:
    """A first value, and its 95% interval from the others, which are those without each of k
    clusters: by Student's t with k - 1 degrees of freedom."""
    first, *without = values
    k = len(without)
    error = np.sqrt((k - 1) * np.var(without))
    reach = stdtrit(k - 1, 0.975) * error
    return first, first - reach, first + reach


def numeric(groups: pd.DataFrame) -> pd.DataFrame:
    """A row a question and numeric predictor that varies: model, relation, correct, predictor,
    value."""
    rows = groups.rename(columns={**COLUMNS, "relation": "relation"})
    varies = [name for name in NUMERIC if name in rows and rows[name].nunique() > 1]
    return rows.melt(["model", "relation", "correct"], varies, "predictor")


def binned_correctness(groups: pd.DataFrame, *, bins: int = 4) -> pd.DataFrame:
    """Share of right answers against each numeric predictor, by category (figure 5), in bins of
    equal size of a model's and category's questions; equal values share a bin. midpoint is a bin's
    mean, in the predictor's unit. Bounds are exact binomial 95% ones over its n questions."""
    keys = ["model", "relation", "predictor"]
    rows = numeric(groups)
    ranks = rows.groupby(keys)["value"].rank(pct=True)
    rows["bin"] = np.ceil(ranks * bins)
    rows["midpoint"] = rows.groupby([*keys, "bin"])["value"].transform("mean")
    return exact_table(rows, [*keys, "midpoint"], "correct")
