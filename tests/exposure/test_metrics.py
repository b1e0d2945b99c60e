"""Dose and response by hand, and from facts whose chances are known."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import curve_fit

from factrobust.exposure import metrics

DOSES = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512])


def facts(chance: np.ndarray, n: int, seed: int = 0) -> pd.DataFrame:
    """n facts of each dose, right with its chance."""
    rng = np.random.default_rng(seed)
    dose = np.repeat(DOSES, n)
    right = rng.random(len(dose)) < np.repeat(chance, n)
    return pd.DataFrame({"model": "m", "exposure": dose, "right": right})


def test_the_curve_by_hand() -> None:
    # Half of the way at the half dose; with slope 1, at three times the half dose 3/4 of it.
    assert metrics.hill([0, 8, 24], 0.1, 0.9, 8, 1) == pytest.approx([0.1, 0.5, 0.7])
    assert metrics.hill([16], 0, 1, 8, 2) == pytest.approx([0.8])  # 2^2 / (1 + 2^2)


def test_a_curve_without_noise_is_found_again() -> None:
    share, logprob = [0.05, 0.95, 20, 1.4], [-4.0, -0.2, 30, 0.8]  # any measure that grows
    for truth, error in ((share, 1e-3), (logprob, 1e-2)):
        found = metrics.fit_hill(DOSES, metrics.hill(DOSES, *truth), np.full(11, 50.0))
        assert found == pytest.approx(truth, rel=error)


def test_no_share_grows_beyond_one() -> None:
    doses = np.array([0, 1, 2, 4, 8, 16, 32, 64])
    mean, n = metrics.hill(doses, 0, 2, 60, 1), np.full(8, 26.0)  # ends near 1, still rising
    assert metrics.fit_hill(doses, mean, n)[1:3] == pytest.approx([2, 60], rel=0.05)
    _, top, half, _ = metrics.fit_hill(doses, mean, n, most=1)
    assert (round(top, 3), half < 30) == (1, True)
    [drawn] = metrics.half_effects(doses, mean[:, None], n, most=1)
    assert drawn == pytest.approx(half, rel=0.05)


def test_the_curve_is_scipys_for_means_whose_variance_is_one_over_n() -> None:
    n, mean = np.array([9.0, 9, 90, 9, 900]), np.array([0.0, 0.3, 0.2, 0.8, 0.7])
    dose = np.array([0, 1, 4, 16, 64])

    def curve(x: np.ndarray, top: float, half: float, slope: float) -> np.ndarray:
        return metrics.hill(x, 0, top, half, slope)

    start, limits = [0.8, 4, 1], ([0, 1, 0.3], [2.4, 64, 6])
    best, _ = curve_fit(curve, dose[1:], mean[1:], start, n[1:] ** -0.5, bounds=limits)
    assert metrics.fit_hill(dose, mean, n)[1:] == pytest.approx(best, rel=1e-3)


def test_four_times_the_facts_halve_the_interval() -> None:
    chance, widths = metrics.hill(DOSES, 0.05, 0.95, 16, 1.2), []
    for n in (60, 240):
        [row] = metrics.dose_response(facts(chance, n), "right", n_boot=500).to_dict("records")
        widths.append(np.log(row["high"] / row["low"]))
    assert widths[0] / widths[1] == pytest.approx(2, rel=0.2)


def test_many_half_effects_at_once_are_those_of_the_curves_one_by_one() -> None:
    n = np.arange(20, 31) * 1.0
    rng = np.random.default_rng(0)
    drawn = metrics.hill(DOSES, 0.05, 0.95, 20, 1.4)[:, None] + rng.normal(0, 0.05, (11, 30))
    falling = np.linspace(0.5, 0.1, 11)[:, None]
    found = metrics.half_effects(DOSES, np.hstack([drawn, falling]), n)
    one_by_one = [metrics.fit_hill(DOSES, x, n)[2] for x in drawn.T]
    assert found[:-1] == pytest.approx(one_by_one, rel=0.05)
    assert np.isnan(found[-1])  # no response


def test_the_half_effect_and_its_interval_hold_the_truth() -> None:
    chance = metrics.hill(DOSES, 0.05, 0.97, 16, 1.2)
    held = []
    for seed in range(20):
        (row,) = metrics.dose_response(facts(chance, 60, seed), "right").to_dict("records")
        assert row["n"] == 660
        assert row["low"] < row["mean"] < row["high"]
        held.append(row["low"] <= 16 <= row["high"])
    assert sum(held) >= 16  # 95% of 20, give or take


def test_what_does_not_grow_has_no_half_effect() -> None:
    flat = pd.DataFrame({"model": "m", "exposure": np.repeat(DOSES, 9), "right": 0.0})
    (row,) = metrics.dose_response(flat, "right", n_boot=20).to_dict("records")
    assert row["floor"] == 0
    assert np.isnan([row["mean"], row["low"], row["high"]]).all()
    # Growth is asked of the upper half of the doses.
    n, place = np.full(11, 50.0), np.arange(11)  # the median dose is the sixth
    early, late = np.isin(place, range(1, 5)).astype(float), (place > 5).astype(float)
    assert np.isnan(metrics.fit_hill(DOSES, early, n)[2])
    assert np.isfinite(metrics.fit_hill(DOSES, late, n)[2])
    found = metrics.half_effects(DOSES, np.stack([early, late], axis=1), n)
    assert np.isnan(found).tolist() == [True, False]


def test_each_of_several_measures_has_its_own_curve() -> None:
    rows = facts(metrics.hill(DOSES, 0.05, 0.95, 20, 1.4), 40)
    rows["sure"] = rows["right"].where(rows["exposure"] > 0) * 0.5
    rows = rows.fillna({"sure": 0.0})
    table = metrics.dose_response(rows, ["right", "sure"], ["measure", "model"])
    assert table["measure"].tolist() == ["right", "sure"]
    assert table.loc[0].drop("measure").equals(metrics.dose_response(rows, "right").loc[0])
    assert table["top"][1] == pytest.approx(table["top"][0] / 2, rel=0.1)


def test_curves_are_those_of_the_fits() -> None:
    rows = [("a", 0.0, 1.0, 4.0, 1.0), ("b", 0.0, np.nan, np.nan, np.nan)]
    fits = pd.DataFrame(rows, columns=["model", "floor", "top", "mean", "slope"])
    curves = metrics.fitted_curves(fits, 16, points=3)[["model", "exposure", "mean"]]
    assert curves["exposure"].tolist() == pytest.approx([1, 4, 16])
    assert curves["mean"].tolist() == pytest.approx([0.2, 0.5, 0.8])  # 1 / (1 + 4 / exposure)
    assert set(curves["model"]) == {"a"}


def test_the_ratio_of_two_numbers_adds_squares_of_logarithms() -> None:
    one = pd.DataFrame({"mean": [8.0], "low": [8 / 2**3], "high": [8 * 2.0**3]})
    other = pd.DataFrame({"mean": [2.0], "low": [2 / 2**4], "high": [2 * 2.0**4]})
    # Half widths of 3 and 4 doublings: together 5.
    assert metrics.ratio(one, other).loc[0].tolist() == pytest.approx([4, 4 / 2**5, 4 * 2**5])


def test_what_is_said_at_a_date_by_hand() -> None:
    said = pd.DataFrame(
        {"model": "m", "chain": "c", "fact_id": [*"xyz"], "object": ["Oslo", "Lima", "Rome"],
         "text": ["Oslo", "Oslo", "Bonn"], "exposure": [8, 8, 1]}
    )  # fmt: skip
    found = metrics.by_date(said)
    assert found["own"].tolist() == [1, 1, 0]  # Bonn is nowhere
    assert found["right"].tolist() == [1, 0, 0]
    assert found["swapped"].tolist() == pytest.approx([2 / 3, 0, 0])  # two of three say Oslo
    assert found["beyond"].tolist() == pytest.approx([1 / 3, 0, 0])
    assert found["most"].tolist() == [0.5, 0.5, 0]  # the first two are told as often


def test_ranks_and_what_is_added_by_hand() -> None:
    # The plain measure has the ranks 1 2 4 3 of the exposures 1 2 3 4: Spearman 0.8, R squared 0.64. With
    # a measure that holds the rest, all is explained: 0.36 is added.
    rows = pd.DataFrame({"exposure": [1, 2, 4, 8], "logprob": [-9, -5, -1, -2]})
    rows = rows.assign(model="m", all=[1, 2, 3, 4])
    table = metrics.rank_by_exposure(rows, ["logprob", "all"], n_boot=10)
    table = table.set_index(["measure", "what"])
    expected = {("logprob", "rank correlation"): 0.8, ("all", "rank correlation"): 1}
    assert table["mean"].to_dict() == pytest.approx(expected | {("all", "added"): 0.36})


def test_noise_adds_nothing_and_a_second_view_adds_something() -> None:
    rng = np.random.default_rng(1)
    dose = np.repeat(DOSES, 40)
    first, second, noise = (np.log1p(dose) * a + rng.normal(0, 1, len(dose)) for a in (1, 1, 0))
    rows = pd.DataFrame({"model": "m", "exposure": dose, "logprob": first, "noise": noise})
    rows["second"] = second
    table = metrics.rank_by_exposure(rows, ["noise", "second"], n_boot=200)
    table = table.set_index(["measure", "what"])
    assert table.loc[("noise", "added"), "mean"] < 0.01
    assert table.loc[("second", "added"), "low"] > 0.01


def test_doublings_are_compared_with_the_exposure_before() -> None:
    rows = pd.DataFrame({"exposure": [1, 1, 2, 2, 4], "m": [0.0, 1, 1, 2, np.nan], "k": 1.0})
    table = metrics.doublings(rows, ["m", "k"])
    # 1 against 0 and 1, 2 against both: 3.5 of 4. The last fact lacks m.
    assert table[["measure", "exposure", "mean", "n"]].values.tolist() == [
        ["m", 2, 0.875, 4], ["k", 2, 0.5, 4], ["k", 4, 0.5, 3]
    ]  # fmt: skip


def test_reliability_over_seeds_and_within_one_exposure() -> None:
    # Both models rank the exposures alike; of one exposure they rank the two facts the other way round.
    one = pd.DataFrame({"model": "a", "fact_id": list("wxyz"), "exposure": [1, 1, 9, 9]})
    rows = pd.concat([one.assign(m=[1, 2, 11, 12]), one.assign(model="b", m=[2, 1, 12, 11])])
    table = metrics.pairs(rows, ["m"], ["a", "b"], n_boot=10)
    assert table[["pair", "over", "n"]].values.tolist() == [
        ["a and b", "all", 4], ["a and b", "within", 4]
    ]  # fmt: skip
    assert table["mean"].tolist() == pytest.approx([0.6, -1])  # 1 - 6 * 4 / (4 * 15)
    constant = metrics.pairs(rows.assign(m=0.0), ["m"], ["a", "b"], n_boot=10)
    assert constant["mean"].isna().all()
