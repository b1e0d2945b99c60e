"""Logistic regression by maximum likelihood, and by penalised likelihood where that has no answer.

Small tables have categories whose answers are all wrong, or fewer rows than coefficients: then
maximum-likelihood estimates are infinite or not unique (`metrics.separation`). Such a fit is
penalised as a whole: each coefficient but the intercept gets a normal prior with mean 0 and standard
deviation PRIOR_SD, in logits for one standard deviation of a predictor. Covariances are then those
of the posterior's normal approximation, and `Estimates.method` says so.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from factrobust.metrics.separation import null_space, separable

Array = NDArray[np.float64]
PRIOR_SD = 2.5
ML = "maximum likelihood"
ML_STEPS = 25  # finite estimates take about 10 steps; from 37 on, diverging ones look settled
RIDGE_STEPS = 100


@dataclass(frozen=True)
class Estimates:
    """Estimated coefficients; `collinear` and `unbounded` are bases of directions."""

    coefficients: pd.Series  # by name of the design's column
    covariance: Array  # [column, column]
    degrees: float  # effective number of coefficients: their number, less if penalised
    log_likelihood: float
    method: str  # ML, or "penalised (...)" with the reason
    collinear: Array  # [column, direction]: no row moves along these
    unbounded: Array  # [column, direction]: the likelihood does not fall along these


def estimate(model: Any) -> Estimates:
    """Estimates of statsmodels' Logit model: by maximum likelihood if that is finite and unique.

    The reasons for a penalised fit are "collinear", "separated", or "no convergence" if neither is
    true and Newton's method fails all the same.
    """
    design, y, names = np.asarray(model.exog), np.asarray(model.endog), model.exog_names
    collinear = null_space(design)
    result = None if collinear.shape[1] else _maximum_likelihood(model)
    if result is not None:
        b, covariance = np.asarray(result.params), np.asarray(result.cov_params())
        degrees, method, unbounded = float(len(b)), ML, collinear
    else:
        apart = separable(design, y)
        reasons = ["collinear"] * bool(collinear.shape[1]) + ["separated"] * bool(apart.any())
        precision = np.where(np.array(names) == "Intercept", 0.0, PRIOR_SD**-2)
        b, hessian = ridge(design, y, precision)
        covariance = np.linalg.inv(hessian)
        # Gray (1992): the trace of the information over the penalised information.
        degrees = float(np.trace(covariance @ (hessian - np.diag(precision))))
        method = f"penalised ({', '.join(reasons) or 'no convergence'})"
        unbounded = null_space(design[~apart])
    return Estimates(
        coefficients=pd.Series(b, index=names),
        covariance=covariance,
        degrees=degrees,
        log_likelihood=log_likelihood(design @ b, y),
        method=method,
        collinear=collinear,
        unbounded=unbounded,
    )


def ridge(design: Array, y: Array, precision: Array) -> tuple[Array, Array]:
    """Coefficients [column] that maximise log-likelihood - sum of precision * b^2 / 2, by Newton's
    method, and the negative Hessian there [column, column].

    They are the mode under independent normal priors with mean 0 and variance 1 / precision [column]
    (0: no prior), and the inverse of the Hessian is the normal approximation of the posterior's
    covariance. Raises RuntimeError if it does not converge, which columns without a prior may cause.
    """
    b = np.zeros(design.shape[1])
    value = _objective(design, y, precision, b)
    for _ in range(RIDGE_STEPS):
        p = expit(design @ b)
        gradient = design.T @ (y - p) - precision * b
        hessian = (design * (p * (1 - p))[:, None]).T @ design + np.diag(precision)
        step = np.linalg.solve(hessian, gradient)
        if gradient @ step < 1e-18 * max(1.0, abs(value)):
            return b, hessian
        size = 1.0
        while (new := _objective(design, y, precision, b + size * step)) < value and size > 1e-6:
            size /= 2
        b, value = b + size * step, new
    raise RuntimeError(
        f"the penalised fit did not converge in {RIDGE_STEPS} steps; check the predictors"
    )


def log_likelihood(logits: Array, y: Array) -> float:
    """Log-likelihood of outcomes y (0 or 1) under logits [row]."""
    return float(-np.logaddexp(0, np.where(y > 0, -logits, logits)).sum())


def _objective(design: Array, y: Array, precision: Array, b: Array) -> float:
    return log_likelihood(design @ b, y) - 0.5 * float(precision @ b**2)


def _maximum_likelihood(model: Any) -> Any | None:
    """statsmodels' result, or None if Newton's method does not settle: then estimates diverge.

    statsmodels by itself adds a little to the Hessian's diagonal, which would let an infinite
    estimate settle; ridge_factor=0 takes it away.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is checked below
        try:
            result = model.fit(method="newton", maxiter=ML_STEPS, ridge_factor=0, disp=0)
        except np.linalg.LinAlgError:
            return None
    finite = np.isfinite(result.params).all() and np.isfinite(result.bse).all()
    return result if result.mle_retvals["converged"] and finite else None
