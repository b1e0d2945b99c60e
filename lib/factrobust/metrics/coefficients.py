"""What a fitted regression says: coefficients, odds ratios and Wald tests (paper 3, A.2).

Where the fit is penalised, p-values and intervals come from the posterior's normal approximation
(`metrics.logistic`), and the column `problem` marks the numbers that maximum likelihood could not
have given: "separated" (infinite) or "collinear" (not to be told from others).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, ndtr, ndtri

from factrobust.metrics.prediction import CATEGORY, NUMERIC, Fit, fit, undefined

Array = NDArray[np.float64]
WITHIN = ["relation", "model", "term", "coefficient", "low", "high", "standard_error", "p_value"]
WITHIN += ["symbol", "problem", "odds_ratio", "odds_low", "odds_high", "fit", "n"]
SPELLING = {"Intercept": "intercept"}  # as the paper has it
MARKS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))


def symbols(p_values: ArrayLike) -> list[str]:
    """R's marks: *** below 0.001, ** below 0.01, * below 0.05, . below 0.1, else nothing."""
    return [next((s for limit, s in MARKS if p < limit), "") for p in np.asarray(p_values, float)]


def coefficients(fitted: Fit, *, level: float = 0.95) -> pd.DataFrame:
    """One row a coefficient (tables 7 and 10 to 14).

    Columns: model, term ("intercept", "QCat[T.capital]", "QCat[T.capital]:SCons"), category (of
    the row, else the reference's; "" without QCat), coefficient, low, high (on the scale of logits),
    standard_error, p_value (Wald), symbol, problem; conditional, conditional_low, conditional_high,
    conditional_problem: the same for the base coefficient plus this one, which is the category's own
    intercept or slope; odds_ratio, odds_low, odds_high (exp of coefficient, low and high); fit, n.
    """
    names = fitted.estimates.coefficients.index.tolist()
    base = [names.index(_base(name)) for name in names]
    single = np.eye(len(names))
    summed = single + single[base] * (np.array(base) != np.arange(len(names)))[:, None]
    z = ndtri((1 + level) / 2)
    table = pd.DataFrame(
        {
            "model": fitted.model,
            "term": [SPELLING.get(name, name) for name in names],
            "category": [_category(name, fitted) for name in names],
        }
    )
    for prefix, weights in (("", single), ("conditional_", summed)):
        value = weights @ fitted.estimates.coefficients.to_numpy()
        error = np.sqrt(np.einsum("ij,jk,ik->i", weights, fitted.estimates.covariance, weights))
        table[prefix.rstrip("_") or "coefficient"] = value
        table[f"{prefix}low"], table[f"{prefix}high"] = value - z * error, value + z * error
        if not prefix:
            table["standard_error"] = error
            table["p_value"] = 2 * ndtr(-np.abs(value / error))
            table["symbol"] = symbols(table["p_value"])
        table[f"{prefix}problem"] = _problems(fitted, weights)
    for odds, name in (("ratio", "coefficient"), ("low", "low"), ("high", "high")):
        table[f"odds_{odds}"] = np.exp(table[name])
    return table.assign(fit=fitted.estimates.method, n=fitted.n)


def wald(fitted: Fit) -> pd.DataFrame:
    """Wald's chi-square of each term of the formula (table 9): are all its coefficients 0?

    Columns: model, term, df (number of coefficients), statistic (b' V^-1 b), p_value, symbol, fit,
    n. Beside interactions, a numeric term is its slope in the reference category.
    """
    terms = [CATEGORY.sub("QCat", name) for name in fitted.estimates.coefficients.index]
    rows = []
    for term in dict.fromkeys(terms):
        at = np.flatnonzero([other == term for other in terms])
        b = fitted.estimates.coefficients.to_numpy()[at]
        statistic = float(b @ np.linalg.solve(fitted.estimates.covariance[np.ix_(at, at)], b))
        p_value = float(chdtrc(len(at), statistic))
        rows.append((fitted.model, SPELLING.get(term, term), len(at), statistic, p_value))
    table = pd.DataFrame(rows, columns=["model", "term", "df", "statistic", "p_value"])
    return table.assign(symbol=symbols(table["p_value"]), fit=fitted.estimates.method, n=fitted.n)


def within(
    groups: pd.DataFrame, relations: Sequence[str], predictors: Sequence[str] = NUMERIC
) -> pd.DataFrame:
    """Coefficients of regressions inside single categories, one fit each (table 7).

    Predictors are standardised within the category. Columns: relation, and those of `coefficients`
    without category and the conditional ones; table 7 prints the odds ratios. A category whose
    answers are all right or all wrong has one row, without numbers, whose `fit` gives the reason.
    """
    tables = []
    for model, own in groups.groupby("model", sort=False):
        for relation in relations:
            part = own[own["relation"] == relation]
            if (reason := undefined(part)) is not None:
                row = {"model": model, "fit": f"none: {reason}", "n": len(part)}
                tables.append(pd.DataFrame([{"relation": relation, **row}]))
                continue
            tables.append(coefficients(fit(part, predictors)).assign(relation=relation))
    return pd.concat(tables, ignore_index=True).reindex(columns=WITHIN)


def _base(name: str) -> str:
    """The coefficient that a category's coefficient is added to; itself if there is none."""
    rest = CATEGORY.sub("", name)
    return rest.strip(":") or "Intercept"


def _category(name: str, fitted: Fit) -> str:
    if found := CATEGORY.search(name):
        return found[1]
    return fitted.categories[0] if fitted.categories else ""


def _problems(fitted: Fit, weights: Array) -> list[str]:
    """Why the weighted sums of coefficients [row, column] have no finite estimate, or ""."""
    collinear, unbounded = (
        np.linalg.norm(weights @ directions, axis=1) > 1e-6
        for directions in (fitted.estimates.collinear, fitted.estimates.unbounded)
    )
    return np.select([collinear, unbounded], ["collinear", "separated"], "").tolist()
