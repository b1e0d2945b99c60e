"""Questions whose correctness follows a known logistic regression."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit


@pytest.fixture(scope="session")
def simulate():
    """simulate(n, seed, model): n questions of the relations a, b and c in turn, with standard
    normal predictors.

    In the i-th relation (from 0) the logit is -0.5 + 0.5 i + 0.8 log_popularity + (0.4 + 0.2 i)
    scons + 0.6 cert.
    """

    def simulate(n, seed=0, model="m"):
        rng = np.random.default_rng(seed)
        i = np.arange(n) % 3
        popularity, scons, cert = rng.normal(size=(3, n))
        logits = -0.5 + 0.5 * i + 0.8 * popularity
        logits += (0.4 + 0.2 * i) * scons + 0.6 * cert
        return pd.DataFrame(
            {
                "model": model,
                "group_id": [f"q{row}" for row in range(n)],
                "relation": np.array([*"abc"])[i],
                "correct": rng.random(n) < expit(logits),
                "log_popularity": popularity,
                "scons": scons,
                "cert": cert,
            }
        )

    return simulate
