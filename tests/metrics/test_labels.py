"""Rules against labels, by hand."""

import math

import pandas as pd
import pytest

from factrobust.metrics.labels import agreement, exact_share, rule_errors


def test_agreement_by_hand() -> None:
    # 3 of 4 agree; by chance 3/4 * 1/2 + 1/4 * 1/2 = 1/2 would.
    found = agreement(pd.Series(list("aaab")), pd.Series(list("aabb")))
    assert found.share.mean == 3 / 4
    assert found.share.low == pytest.approx(0.1941, abs=5e-5)  # Clopper and Pearson, 3 of 4
    assert found.kappa == 1 / 2
    assert math.isnan(agreement(pd.Series(["a"]), pd.Series(["a"])).kappa)


def test_exact_shares_at_the_ends() -> None:
    none = exact_share(pd.Series([False] * 10))
    assert (none.mean, none.low, none.n) == (0, 0, 10)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 10))  # Clopper and Pearson, 0 of 10
    assert math.isnan(exact_share(pd.Series([], dtype=bool)).mean)


def test_errors_of_a_rule_by_hand() -> None:
    labels = pd.DataFrame({"model": ["a"] * 4 + ["b"], "right": [True, True, False, False, False]})
    labels = labels.assign(rule=[True, False, True, False, False], same=labels["right"])
    table = rule_errors(labels, ["rule", "same"], "right")
    assert table["what"].tolist() == ["error", "false positives", "false negatives"] * 2
    assert table["mean"].tolist() == pytest.approx([2 / 5, 1 / 3, 1 / 2, 0, 0, 0])
    assert table["n"].tolist() == [5, 3, 2] * 2
    by = rule_errors(labels, ["rule"], "right", ["model"])
    assert by["n"].tolist() == [4, 2, 2, 1, 1, 0]
    assert by["mean"].tolist() == pytest.approx([1 / 2, 1 / 2, 1 / 2, 0, 0, math.nan], nan_ok=True)
