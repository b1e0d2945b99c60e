"""What samples tell of a breaking temperature: by hand, and against drawing them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import breaking
from factrobust.metrics.decoding import first_break

GRID = (0.5, 1.0, 1.5)


def test_distribution_by_hand() -> None:
    # Two samples break a temperature if both are wrong: q = (1 - p)^2.
    found = breaking.breaking_distribution([[0.8, 0.5, 0.0]], 2)
    assert found[0] == pytest.approx([0.04, 0.96 * 0.25, 0.96 * 0.75, 0.0])
    # One of three right is under one half: q = (1 - p)^3 + 3 p (1 - p)^2.
    found = breaking.breaking_distribution([[0.5, 1.0, 1.0]], 3)
    assert found[0] == pytest.approx([0.5, 0, 0, 0.5])


def test_distribution_is_that_of_drawn_samples() -> None:
    rng = np.random.default_rng(0)
    p, n, draws = np.array([0.95, 0.6, 0.45, 0.3, 0.1]), 10, 200_000
    shares = rng.binomial(n, p, size=(draws, len(p))) / n
    t = np.arange(1, len(p) + 1)
    broken = np.where((shares < 0.5).any(axis=1), (shares < 0.5).argmax(axis=1), len(p))
    assert first_break(t, shares[0]) in [*t, math.inf]
    drawn = np.bincount(broken, minlength=len(p) + 1) / draws
    # 200,000 draws: a standard error of at most 0.0012.
    assert breaking.breaking_distribution([p], n)[0] == pytest.approx(drawn, abs=0.005)


def test_sampling_error() -> None:
    rows = [("m", "a", t, math.log(p)) for t, p in zip(GRID, (0.8, 0.5, 1e-9), strict=True)]
    rows += [("m", "a", 0.7, math.log(0.4))]  # not on the paper's grid
    curves = pd.DataFrame(rows, columns=["model", "fact_id", "temperature", "logprob"])
    two, many = breaking.sampling_error(curves, GRID, [2, 1001]).to_dict("records")
    # P = 0.04, 0.24, 0.72: the mean is 0.02 + 0.24 + 1.08, the mean square 0.01 + 0.24 + 1.62.
    assert two["on_grid"] == 1.5
    assert two["expected"] == pytest.approx(1.34)
    assert two["bias"] == pytest.approx(1.34 - 1.5)
    assert two["sd"] == pytest.approx(math.sqrt(1.87 - 1.34**2))
    # At exactly one half, an odd number of samples breaks at 1.0 every other time, however many.
    assert many["expected"] == pytest.approx(1.25)
    unbroken = curves.assign(logprob=math.log(0.9))
    assert breaking.sampling_error(unbroken, GRID, [999])["expected"].item() == pytest.approx(2.0)


def test_merged_entropy() -> None:
    logs = np.log([0.4, 0.4, 0.1, 0.1])
    # " red" and "Red" are one answer of 0.8: -(0.8 log4 0.8 + 0.2 log4 0.1).
    hand = -(0.8 * math.log(0.8) + 0.2 * math.log(0.1)) / math.log(4)
    assert breaking.merged_entropy([" red", "Red", "blue", "green"], logs) == pytest.approx(hand)
    assert breaking.merged_entropy(["red", "Red", "RED ", " red"], logs) == 0


def test_entropies() -> None:
    logs = np.log([0.3, 0.2]).tolist()
    known = pd.DataFrame(
        {
            "model": ["m"],
            "fact_id": ["a"],
            "entropy": [0.9],
            "top_logprobs": [[logs, np.log([0.5, 0.5]).tolist()]],
            "top_tokens": [[["Red", "red"], ["x", "y"]]],
            "entropies": [[math.log(10), 3 * math.log(10)]],
        }
    )
    found = breaking.entropies(known).iloc[0]
    plain = (-0.3 * math.log2(0.3) - 0.2 * math.log2(0.2) + 1) / 2
    assert found["published"] == 0.9
    assert found["not renormalised"] == pytest.approx(plain)
    assert found["merged"] == pytest.approx(0.5)  # 0 for the first token, 1 for the second
    assert found["vocabulary"] == pytest.approx(2)


def test_spellings_share_no_output() -> None:
    forms = breaking.spellings(["Netherlands", "Holland", "Dutch Republic"], "Netherlands")
    assert {"The Netherlands", "netherlands", "Holland", "holland"} <= set(forms)
    every = ["Netherlands", *forms]
    assert not [(a, b) for a in every for b in every if a != b and a.startswith(b)]
    assert breaking.spellings(["US", "USA", "the US"]) == ["US", "The US", "the US", "us"]
