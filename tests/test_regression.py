"""Estimates by hand, and what has no finite one."""

import numpy as np
import pandas as pd
import pytest
from frames import cells
from scipy.optimize import minimize
from statsmodels.tools.numdiff import approx_hess

from factrobust.regression import Estimates, estimate, log_likelihood, ridge


def estimated(y: object, **columns: object) -> Estimates:
    design = pd.DataFrame(columns, dtype=float)
    design.insert(0, "Intercept", 1.0)
    return estimate(design, np.array(y, dtype=float))


def test_a_finite_estimate_by_hand():
    """One of four right at x = 0, two of three at x = 1: the shares' logits."""
    made = estimated([1, 0, 0, 0, 1, 1, 0], x=[0, 0, 0, 0, 1, 1, 1])
    assert made.method == "maximum likelihood"
    first_logit = np.log(1 / 3)
    second_logit = np.log(2)
    slope = second_logit - first_logit
    assert made.coefficients.to_dict() == pytest.approx({"Intercept": first_logit, "x": slope})
    # Inverse information: 1/(n p q) of the first group, and the sum for the difference.
    first = 1 / (4 * 3 / 16)
    second = 1 / (3 * 2 / 9)
    inverse = [first, -first, -first, first + second]
    assert made.covariance.ravel() == pytest.approx(inverse)
    assert made.degrees == 2
    likelihood = np.log(1 / 4) + 3 * np.log(3 / 4) + 2 * np.log(2 / 3) + np.log(1 / 3)
    assert made.log_likelihood == pytest.approx(likelihood)


# A digit a row.
WITHOUT_A_FINITE_ESTIMATE = """
    y     x     z     method
    0011  0123  none  penalised (separated)
    0011  0112  none  penalised (separated)
    0001  0011  none  penalised (separated)
    0101  0123  0246  penalised (collinear)
    0101  0000  none  penalised (collinear)
    0011  0123  1111  penalised (collinear)
"""


@pytest.mark.parametrize(("y", "x", "z", "method"), cells(WITHOUT_A_FINITE_ESTIMATE)[1:])
def test_what_has_no_finite_estimate_is_penalised(y, x, z, method):
    columns = {"x": [*x]}
    if z != "none":
        columns["z"] = [*z]
    made = estimated([*y], **columns)
    assert made.method == method
    assert np.isfinite(made.coefficients).all()
    assert (np.linalg.eigvalsh(made.covariance) > 0).all()
    assert made.degrees < len(made.coefficients)


def test_only_what_is_separated_is_penalised():
    # 200 rows far from the threshold: the gradient underflows before 35 steps.
    x = np.linspace(-3, 3, 200)
    y = x > 0
    assert estimated(y, x=x).method == "penalised (separated)"
    y[99:101] = [True, False]  # the two middle rows exchanged: steep, but finite
    made = estimated(y, x=x)
    assert made.method == "maximum likelihood"
    assert made.coefficients["x"] > 20


def test_ridge_is_the_maximum_of_its_objective():
    predictors = np.random.default_rng(3).normal(size=(30, 2))
    design = np.insert(predictors, 0, 1, axis=1)
    y = (design[:, 1] > 0).astype(float)
    precision = np.array([0.0, 0.16, 2.0])

    def loss(b: np.ndarray) -> float:
        penalty = precision @ b**2 / 2
        return penalty - log_likelihood(design @ b, y)

    b, hessian = ridge(design, y, precision)
    found = minimize(loss, np.zeros(3), options={"gtol": 1e-9})
    assert b == pytest.approx(found.x, abs=1e-5)
    assert hessian == pytest.approx(approx_hess(b, loss), abs=1e-4)


def test_the_prior_is_the_one_stated():
    """By symmetry the intercept is 0; the slope b solves sum |x| (1 - p) = b / 2.5^2."""
    made = estimated([0, 0, 1, 1], x=[-2, -1, 1, 2])
    assert made.coefficients["Intercept"] == pytest.approx(0, abs=1e-9)
    b = made.coefficients["x"]
    gradient = 2 / (1 + np.exp(b)) + 4 / (1 + np.exp(2 * b))
    assert gradient == pytest.approx(b / 2.5**2)
