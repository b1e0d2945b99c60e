"""Questions whose correctness follows a known logistic regression."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

Simulate = Callable[..., pd.DataFrame]


@pytest.fixture(scope="session")
def simulate() -> Simulate:
    """simulate(n, relations, seed, model): n questions, relations in turn, standard normal predictors.

    In relation i (from 0) the logit is -0.5 + 0.5 i + 0.8 log_popularity + (0.4 + 0.2 i) scons
    + 0.6 cert.
    """

    def simulate(
        n: int, relations: str = "abc", seed: int = 0, model: str = "m", **columns: object
    ) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        i = np.arange(n) % len(relations)
        x = rng.normal(size=(n, 3))
        logits = -0.5 + 0.5 * i + 0.8 * x[:, 0] + (0.4 + 0.2 * i) * x[:, 1] + 0.6 * x[:, 2]
        table = pd.DataFrame(
            {
                "model": model,
                "group_id": [f"{relations[k]}/{row}" for row, k in enumerate(i)],
                "relation": [relations[k] for k in i],
                "correct": rng.random(n) < expit(logits),
                "log_popularity": x[:, 0],
                "scons": x[:, 1],
                "cert": x[:, 2],
            }
        )
        return table.assign(**columns)

    return simulate


@pytest.fixture(scope="session")
def spector() -> pd.DataFrame:
    """statsmodels' data set of 32 students (Spector and Mazzeo, 1980) as a table of questions."""
    import statsmodels.api as sm

    data = sm.datasets.spector.load_pandas().data
    ids = [f"student/{i}" for i in range(len(data))]
    data["correct"] = data["GRADE"].astype(bool)
    return data.assign(
        model="m",
        group_id=ids,
        relation="economics",
    )
