"""Maximum likelihood where it exists, the penalised fit where it does not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from factrobust.metrics import regression as logistic


def model(y: list[float], **columns: list[float]) -> object:
    import statsmodels.formula.api as smf

    data = pd.DataFrame({"y": y} | columns)
    return smf.logit(f"y ~ {' + '.join(columns)}", data)


def test_log_likelihood_by_hand() -> None:
    logits = np.array([0.0, np.log(3), np.log(3), -800.0])
    y = np.array([1.0, 1.0, 0.0, 0.0])
    assert logistic.log_likelihood(logits, y) == pytest.approx(np.log(1 / 2 * 3 / 4 * 1 / 4))


def test_a_finite_estimate_by_hand() -> None:
    # One of four right at x = 0, two of three at x = 1: the shares' logits.
    made = logistic.estimate(model([1, 0, 0, 0, 1, 1, 0], x=[0, 0, 0, 0, 1, 1, 1]))
    assert made.method == "maximum likelihood"
    logit_0, logit_1 = np.log(1 / 3), np.log(2)
    assert made.coefficients.to_dict() == pytest.approx(
        {"Intercept": logit_0, "x": logit_1 - logit_0}
    )
    # Inverse information: 1/(n p q) of the first group, and the sum for the difference.
    first, second = 1 / (4 * 3 / 16), 1 / (3 * 2 / 9)
    assert made.covariance.ravel().tolist() == pytest.approx(
        [first, -first, -first, first + second]
    )
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
        ([0, 0, 1, 1], {"x": [0, 1, 2, 3], "z": [1, 1, 1, 1]}, "penalised (collinear, separated)"),
        ([0, 1], {"x": [0, 1], "z": [1, 1]}, "penalised (collinear, separated)"),
    ],
)
def test_what_has_no_finite_estimate_is_penalised(y: list, columns: dict, method: str) -> None:
    made = logistic.estimate(model(y, **columns))
    assert made.method == method
    assert np.isfinite(made.coefficients).all()
    assert (np.linalg.eigvalsh(made.covariance) > 0).all()
    assert made.degrees < len(made.coefficients)


def test_a_wide_margin_is_not_taken_for_convergence() -> None:
    # 200 rows far from the threshold: the gradient underflows before 35 steps.
    x = np.linspace(-3, 3, 200)
    y = (x > 0).astype(float)
    assert logistic.estimate(model(y.tolist(), x=x.tolist())).method == "penalised (separated)"


def test_a_steep_but_finite_estimate_stays_maximum_likelihood() -> None:
    x = np.linspace(-3, 3, 200)
    y = (x > 0).astype(float)
    y[99:101] = [1, 0]  # the two middle rows exchanged
    made = logistic.estimate(model(y.tolist(), x=x.tolist()))
    assert made.method == "maximum likelihood"
    assert made.coefficients["x"] > 20


def test_ridge_is_the_maximum_of_its_objective() -> None:
    rng = np.random.default_rng(3)
    design = np.column_stack([np.ones(30), rng.normal(size=(30, 2))])
    y = (design[:, 1] > 0).astype(float)
    precision = np.array([0.0, 0.16, 2.0])

    def loss(b: np.ndarray) -> float:
        return -logistic.log_likelihood(design @ b, y) + float(precision @ b**2) / 2

    b, hessian = logistic.ridge(design, y, precision)
    found = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    assert b.tolist() == pytest.approx(found.x.tolist(), abs=1e-5)
    step = 1e-4
    for i in range(3):
        for j in range(3):
            d, e = step * np.eye(3)[i], step * np.eye(3)[j]
            second = loss(b + d + e) - loss(b + d - e) - loss(b - d + e) + loss(b - d - e)
            assert hessian[i, j] == pytest.approx(second / (4 * step**2), abs=1e-4)


def test_the_prior_is_the_one_stated() -> None:
    made = logistic.estimate(model([0, 0, 1, 1], x=[-2, -1, 1, 2]))
    # By symmetry the intercept is 0; the slope b solves sum |x| (1 - p) = b / 2.5^2.
    b = made.coefficients["x"]
    assert made.coefficients["Intercept"] == pytest.approx(0, abs=1e-9)
    gradient = sum(2 * a / (1 + np.exp(a * b)) for a in (1, 2))
    assert gradient == pytest.approx(b / 2.5**2)


def test_without_a_prior_ridge_gives_up_in_words() -> None:
    design = np.column_stack([np.ones(4), [0.0, 1, 2, 3]])
    with pytest.raises((RuntimeError, np.linalg.LinAlgError)):
        logistic.ridge(design, np.array([0.0, 0, 1, 1]), np.zeros(2))
