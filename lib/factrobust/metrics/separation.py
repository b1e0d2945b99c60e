"""Where does maximum likelihood have no finite estimates of a logistic regression?

If a combination of predictors tells right from wrong without an error (perfect separation), or but
for ties (quasi-complete separation), the likelihood grows for ever along it and estimates are
infinite (Albert and Anderson, Biometrika 71, 1984). A category whose answers are all wrong is such
a case. Designs are arrays [row, column], outcomes y [row] of 0 and 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def separable(design: Array, y: Array) -> NDArray[np.bool_]:
    """Which rows some direction pushes towards their outcome while it pushes no row away, [row].

    Estimates are finite if, and only if, there are none. Linear programming, after Konis (2007):
    maximise the sum of m over directions b and margins m [row], 0 <= m <= 1, where no m exceeds the
    row's own move. Directions add up, so at the optimum every separable row has the margin 1.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    rows, columns = design.shape
    towards = design * np.where(y > 0, 1.0, -1.0)[:, None]
    solved = linprog(
        np.r_[np.zeros(columns), -np.ones(rows)],
        A_ub=hstack([csr_array(-towards), eye_array(rows)]).tocsr(),
        b_ub=np.zeros(rows),
        bounds=[(None, None)] * columns + [(0, 1)] * rows,
    )
    if solved.x is None:
        raise RuntimeError(f"the linear programme of separation was not solved: {solved.message}")
    return solved.x[columns:] > 0.5


def null_space(design: Array) -> Array:
    """Orthonormal directions along which no row moves, [column, direction].

    With the rows that are not `separable`, these span all directions along which the likelihood
    does not fall: a coefficient, or a sum of them, has a finite maximum-likelihood estimate if, and
    only if, it is at right angles to all of them.
    """
    if not len(design):
        return np.eye(design.shape[1])
    triangle = np.linalg.qr(design).R  # the same directions, and few rows
    _, values, directions = np.linalg.svd(triangle, full_matrices=len(triangle) < len(triangle.T))
    tolerance = max(design.shape) * np.finfo(float).eps * values.max()
    return directions[int((values > tolerance).sum()) :].T
