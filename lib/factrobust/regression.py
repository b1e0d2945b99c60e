"""Logistic regressions of few rows: by maximum likelihood where that is finite, else with priors.

Where some predictors tell right from wrong without an error, as in a category that is all wrong,
the likelihood grows for ever along them (Albert and Anderson, Biometrika 71, 1984); with collinear
columns its maximum is not unique. Then each coefficient but the intercept gets a normal prior with
mean 0 and standard deviation PRIOR_SD, in logits for one standard deviation of a predictor.
Covariances, p-values and intervals are those of the posterior's normal approximation, and the
method says so."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import root
from scipy.special import expit

from factrobust.intervals import Array

PRIOR_SD = 2.5
ML = "maximum likelihood"
ML_STEPS = 25  # finite estimates take about 10 steps; from 37 on, diverging ones look settled


@dataclass(frozen=True)
class Estimates:
    """Estimated coefficients of a design."""

    coefficients: pd.Series  # by name of the design's column
    covariance: Array  # [column, column]
    degrees: float  # effective number of coefficients: their number, less if penalised
    log_likelihood: float
    method: str  # ML, or "penalised (...)" with the reason


def estimate(columns: pd.DataFrame, y: Array) -> Estimates:
    """Estimates for a design, of which a column may be the "Intercept", and outcomes y (0 or 1): by
    maximum likelihood if finite and unique, else penalised: "collinear" if the design's rank is too
    low, "separated" if no fit has settled."""
    design = np.ascontiguousarray(columns)
    names = columns.columns
    triangle = np.linalg.qr(design, mode="r")
    collinear = np.linalg.matrix_rank(triangle) < design.shape[1]
    result = None if collinear else maximum_likelihood(design, y)
    if result is not None:
        b = result.params
        covariance = result.cov_params()
        degrees = float(len(b))
        method = ML
    else:
        precision = np.where(names == "Intercept", 0.0, PRIOR_SD**-2)
        b, hessian = ridge(design, y, precision)
        covariance = np.linalg.inv(hessian)
        # Gray (1992): the trace of the information over the penalised information.
        information = hessian - np.diag(precision)
        degrees = float(np.trace(covariance @ information))
        method = f"penalised ({'collinear' if collinear else 'separated'})"
    likelihood = log_likelihood(design @ b, y)
    return Estimates(pd.Series(b, index=names), covariance, degrees, likelihood, method)


def ridge(design: Array, y: Array, precision: Array) -> tuple[Array, Array]:
    """Coefficients [column] that maximise log-likelihood - sum of precision * b^2 / 2, by
    Levenberg and Marquardt's method, and the negative Hessian there [column, column].

    They are the mode under independent normal priors with mean 0 and variance 1 / precision
    [column] (0: no prior). Raises RuntimeError if it does not converge, as columns without a prior
    may cause."""

    def slope(b: Array) -> Array:
        residuals = expit(design @ b) - y
        return design.T @ residuals + precision * b

    def curvature(b: Array) -> Array:
        p = expit(design @ b)
        variance = p * (1 - p)
        information = (design * variance[:, None]).T @ design
        return information + np.diag(precision)

    start = np.zeros(design.shape[1])
    found = root(
        slope,
        start,
        jac=curvature,
        method="lm",
        tol=1e-12,
    )
    if not found.success:
        raise RuntimeError(f"the penalised fit did not converge: {found.message}")
    return found.x, curvature(found.x)


def log_likelihood(logits: Array, y: Array) -> float:
    """Log-likelihood of outcomes y (0 or 1) under logits [row]."""
    of_outcome = np.where(y > 0, logits, -logits)
    return float(-np.logaddexp(0, -of_outcome).sum())


def maximum_likelihood(design: Array, y: Array) -> Any | None:
    """statsmodels' result, or None if Newton's method does not settle: then estimates diverge.
    Without ridge_factor=0 an infinite estimate would settle."""
    from statsmodels.discrete.discrete_model import Logit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is checked below
        try:
            result = Logit(y, design, check_rank=False).fit(
                method="newton",
                maxiter=ML_STEPS,
                ridge_factor=0,
                disp=0,
            )
        except np.linalg.LinAlgError:
            return None
    # Not the standard errors: a variance of 0 may be rounded to less than 0.
    finite = np.isfinite(result.params).all() and np.isfinite(result.cov_params()).all()
    return result if result.mle_retvals["converged"] and finite else None
