"""Dose and response by hand, and from facts whose chances are known."""

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import exposure

DOSES = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512])


def facts(chance: np.ndarray, n: int, seed: int = 0) -> pd.DataFrame:
    """n facts of each dose, right with its chance."""
    rng = np.random.default_rng(seed)
    dose = np.repeat(DOSES, n)
    right = rng.random(len(dose)) < np.repeat(chance, n)
    return pd.DataFrame({"model": "m", "exposure": dose, "right": right})


def test_the_curve_by_hand() -> None:
    # Half of the way at the half dose; with slope 1, at three times the half dose 3/4 of it.
    assert exposure.hill([0, 8, 24], 0.1, 0.9, 8, 1) == pytest.approx([0.1, 0.5, 0.7])
    assert exposure.hill([16], 0, 1, 8, 2) == pytest.approx([0.8])  # 2^2 / (1 + 2^2)


def test_a_curve_without_noise_is_found_again() -> None:
    share, logprob = [0.05, 0.95, 20, 1.4], [-4.0, -0.2, 30, 0.8]  # any measure that grows
    for truth, error in ((share, 1e-3), (logprob, 1e-2)):
        found = exposure.fit_hill(DOSES, exposure.hill(DOSES, *truth), np.full(11, 50.0))
        assert found == pytest.approx(truth, rel=error)


def test_no_share_grows_beyond_one() -> None:
    doses = np.array([0, 1, 2, 4, 8, 16, 32, 64])
    mean, n = exposure.hill(doses, 0, 2, 60, 1), np.full(8, 26.0)  # ends near 1, still rising
    assert exposure.fit_hill(doses, mean, n)[1:3] == pytest.approx([2, 60], rel=0.05)
    _, top, half, _ = exposure.fit_hill(doses, mean, n, most=1)
    assert (round(top, 3), half < 30) == (1, True)
    [drawn] = exposure.half_effects(doses, mean[:, None], n, most=1)
    assert drawn == pytest.approx(half, rel=0.05)


def test_doses_with_more_facts_weigh_more() -> None:
    doses, mean = np.array([0, 1, 2, 4]), np.array([0.0, 0.2, 0.9, 0.5])
    heavy = exposure.fit_hill(doses, mean, np.array([9.0, 9, 1, 900]))
    assert exposure.hill([4], *heavy)[0] == pytest.approx(0.5, abs=0.02)


def test_many_half_effects_at_once_are_those_of_the_curves_one_by_one() -> None:
    n = np.arange(20, 31) * 1.0
    rng = np.random.default_rng(0)
    drawn = exposure.hill(DOSES, 0.05, 0.95, 20, 1.4)[:, None] + rng.normal(0, 0.05, (11, 30))
    falling = np.linspace(0.5, 0.1, 11)[:, None]
    found = exposure.half_effects(DOSES, np.hstack([drawn, falling]), n)
    one_by_one = [exposure.fit_hill(DOSES, x, n)[2] for x in drawn.T]
    assert found[:-1] == pytest.approx(one_by_one, rel=0.05)
    assert np.isnan(found[-1])  # no response


def test_the_half_effect_and_its_interval_hold_the_truth() -> None:
    chance = exposure.hill(DOSES, 0.05, 0.97, 16, 1.2)
    held = []
    for seed in range(20):
        (row,) = exposure.dose_response(facts(chance, 60, seed), "right").to_dict("records")
        assert row["n"] == 660
        assert row["low"] < row["half_effect"] < row["high"]
        held.append(row["low"] <= 16 <= row["high"])
    assert sum(held) >= 16  # 95% of 20, give or take


def test_what_does_not_grow_has_no_half_effect() -> None:
    flat = pd.DataFrame({"model": "m", "exposure": np.repeat(DOSES, 9), "right": 0.0})
    (row,) = exposure.dose_response(flat, "right", n_boot=20).to_dict("records")
    assert row["floor"] == 0
    assert np.isnan([row["half_effect"], row["low"], row["high"]]).all()


def test_curves_are_those_of_the_fits() -> None:
    rows = [("a", 0.0, 1.0, 4.0, 1.0), ("b", 0.0, np.nan, np.nan, np.nan)]
    fits = pd.DataFrame(rows, columns=["model", "floor", "top", "half_effect", "slope"])
    curves = exposure.fitted_curves(fits, [0, 4])
    assert curves.to_dict("list") == {"model": ["a", "a"], "exposure": [0, 4], "mean": [0, 0.5]}


def test_ranks_and_what_is_added_by_hand() -> None:
    # The plain measure has the ranks 1 2 4 3 of the exposures 1 2 3 4: Spearman 0.8, R squared 0.64. With
    # a measure that holds the rest, all is explained: 0.36 is added.
    rows = pd.DataFrame({"exposure": [1, 2, 4, 8], "logprob": [-9, -5, -1, -2]})
    rows = rows.assign(model="m", all=[1, 2, 3, 4])
    table = exposure.knowing(rows, ["logprob", "all"], n_boot=10).set_index(["measure", "what"])
    expected = {("logprob", "rank correlation"): 0.8, ("all", "rank correlation"): 1}
    assert table["mean"].to_dict() == pytest.approx(expected | {("all", "added"): 0.36})


def test_noise_adds_nothing_and_a_second_view_adds_something() -> None:
    rng = np.random.default_rng(1)
    dose = np.repeat(DOSES, 40)
    first, second, noise = (np.log1p(dose) * a + rng.normal(0, 1, len(dose)) for a in (1, 1, 0))
    rows = pd.DataFrame({"model": "m", "exposure": dose, "logprob": first, "noise": noise})
    rows["second"] = second
    table = exposure.knowing(rows, ["noise", "second"], n_boot=200).set_index(["measure", "what"])
    assert table.loc[("noise", "added"), "mean"] < 0.01
    assert table.loc[("second", "added"), "low"] > 0.01


def test_reliability_over_seeds_and_within_one_exposure() -> None:
    # Both models rank the exposures alike; of one exposure they rank the two facts the other way round.
    one = pd.DataFrame({"model": "a", "fact_id": list("wxyz"), "exposure": [1, 1, 9, 9]})
    rows = pd.concat([one.assign(m=[1, 2, 11, 12]), one.assign(model="b", m=[2, 1, 12, 11])])
    (row,) = exposure.reliability(rows, ["m"], ["a", "b"]).to_dict("records")
    # 1 - 6 * 4 / (4 * 15)
    assert [row["all"], row["within"], row["n"]] == pytest.approx([0.6, -1, 4])
    constant = exposure.reliability(rows.assign(m=0.0), ["m"], ["a", "b"])
    assert np.isnan(constant["all"].item())
