"""Rules against labels, by hand."""

import math

import pandas as pd
import pytest

from factrobust.metrics.labels import agreement, rule_errors


def test_agreement_by_hand() -> None:
    # 3 of 4 agree; by chance 3/4 * 1/2 + 1/4 * 1/2 = 1/2 would.
    found = agreement(pd.Series(list("aaab")), pd.Series(list("aabb")))
    assert found.share.mean == 3 / 4
    assert found.share.low == pytest.approx(0.1941, abs=5e-5)  # Clopper and Pearson, 3 of 4
    assert found.kappa == 1 / 2
    assert math.isnan(agreement(pd.Series(["a"]), pd.Series(["a"])).kappa)


def test_errors_of_a_rule_by_hand() -> None:
    labels = pd.DataFrame({"right": [True, True, False, False, False]})
    labels = labels.assign(rule=[True, False, True, False, False], same=labels["right"])
    table = rule_errors(labels, ["rule", "same"], "right").set_index(["rule", "what"])
    assert table.loc["rule", "mean"].to_dict() == pytest.approx(
        {"error": 2 / 5, "false positives": 1 / 3, "false negatives": 1 / 2}
    )
    assert table.loc["rule", "n"].to_dict() == {
        "error": 5, "false positives": 3, "false negatives": 2,
    }  # fmt: skip
    none = table.loc[("same", "error")]
    assert (none["mean"], none["low"]) == (0, 0)
    assert none["high"] == pytest.approx(1 - 0.025 ** (1 / 5))  # Clopper and Pearson, 0 of 5
