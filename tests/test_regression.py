"""Estimates by hand, and what has no finite one."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from statsmodels.tools.numdiff import approx_hess

from factrobust.regression import Estimates, estimate, log_likelihood, ridge


def estimated(y: list[float], **columns: list[float]) -> Estimates:
    design = pd.DataFrame({"Intercept": np.ones(len(y))} | columns)
    return estimate(design, np.array(y, dtype=float))


def test_a_finite_estimate_by_hand():
    # One of four right at x = 0, two of three at x = 1: the shares' logits.
    made = estimated([1, 0, 0, 0, 1, 1, 0], x=[0, 0, 0, 0, 1, 1, 1])
    assert made.method == "maximum likelihood"
    logits = np.log([1 / 3, 2])
    slopes = {"Intercept": logits[0], "x": logits[1] - logits[0]}
    assert made.coefficients.to_dict() == pytest.approx(slopes)
    # Inverse information: 1/(n p q) of the first group, and the sum for the difference.
    first = 1 / (4 * 3 / 16)
    second = 1 / (3 * 2 / 9)
    inverse = [first, -first, -first, first + second]
    assert made.covariance.ravel().tolist() == pytest.approx(inverse)
    assert made.degrees == 2
    likelihood = np.log(1 / 4) + 3 * np.log(3 / 4) + 2 * np.log(2 / 3) + np.log(1 / 3)
    assert made.log_likelihood == pytest.approx(likelihood)


@pytest.mark.parametrize(
    ("y", "columns", "method"),
    [
        ([0, 0, 1, 1], {"x": [0, 1, 2, 3]}, "penalised (separated)"),
        ([0, 0, 1, 1], {"x": [0, 1, 1, 2]}, "penalised (separated)"),
        ([0, 1, 0, 1], {"x": [0, 1, 2, 3], "z": [0, 2, 4, 6]}, "penalised (collinear)"),
        ([0, 1, 0, 1], {"x": [0, 0, 0, 0]}, "penalised (collinear)"),
        ([0, 0, 1, 1], {"x": [0, 1, 2, 3], "z": [1, 1, 1, 1]}, "penalised (collinear)"),
        ([0, 0, 0, 1], {"x": [0, 0, 1, 1]}, "penalised (separated)"),
    ],
)
def test_what_has_no_finite_estimate_is_penalised(y: list, columns: dict, method: str) -> None:
    made = estimated(y, **columns)
    assert made.method == method
    assert np.isfinite(made.coefficients).all()
    assert (np.linalg.eigvalsh(made.covariance) > 0).all()
    assert made.degrees < len(made.coefficients)


def test_only_what_is_apart_is_penalised():
    # 200 rows far from the threshold: the gradient underflows before 35 steps.
    x = np.linspace(-3, 3, 200)
    y = (x > 0).astype(float)
    apart = estimated(y.tolist(), x=x.tolist())
    assert apart.method == "penalised (separated)"
    y[99:101] = [1, 0]  # the two middle rows exchanged: steep, but finite
    made = estimated(y.tolist(), x=x.tolist())
    assert made.method == "maximum likelihood"
    assert made.coefficients["x"] > 20


def test_ridge_is_the_maximum_of_its_objective():
    rng = np.random.default_rng(3)
    design = np.column_stack([np.ones(30), rng.normal(size=(30, 2))])
    y = (design[:, 1] > 0).astype(float)
    precision = np.array([0.0, 0.16, 2.0])

    def loss(b: np.ndarray) -> float:
        return -log_likelihood(design @ b, y) + float(precision @ b**2) / 2

    b, hessian = ridge(design, y, precision)
    found = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    assert b.tolist() == pytest.approx(found.x.tolist(), abs=1e-5)
    assert hessian == pytest.approx(approx_hess(b, loss), abs=1e-4)


def test_the_prior_is_the_one_stated():
    made = estimated([0, 0, 1, 1], x=[-2, -1, 1, 2])
    # By symmetry the intercept is 0; the slope b solves sum |x| (1 - p) = b / 2.5^2.
    b = made.coefficients["x"]
    assert made.coefficients["Intercept"] == pytest.approx(0, abs=1e-9)
    gradient = sum(2 * a / (1 + np.exp(a * b)) for a in (1, 2))
    assert gradient == pytest.approx(b / 2.5**2)
