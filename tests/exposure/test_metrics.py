"""Dose and response by hand, and from facts whose chances are known."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
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
    assert round(top, 3) == 1
    assert half < 30
    [_, _, [drawn], _] = metrics.fit_hills(doses, mean[:, None], n, most=1)
    assert drawn == pytest.approx(half, rel=0.05)


def test_the_curve_is_scipys_for_means_whose_variance_is_one_over_n() -> None:
    n = np.array([9.0, 9, 90, 9, 900])
    mean = np.array([0.0, 0.3, 0.2, 0.8, 0.7])
    dose = np.array([0, 1, 4, 16, 64])

    def curve(x: np.ndarray, top: float, half: float, slope: float) -> np.ndarray:
        return metrics.hill(x, 0, top, half, slope)

    start = [0.8, 4, 1]
    limits = ([0, 1, 0.3], [2.4, 64, 6])
    best, _ = curve_fit(curve, dose[1:], mean[1:], start, n[1:] ** -0.5, bounds=limits)
    assert metrics.fit_hill(dose, mean, n)[1:] == pytest.approx(best, rel=1e-3)


def test_many_curves_at_once_are_those_one_by_one() -> None:
    n = np.arange(20, 31) * 1.0
    rng = np.random.default_rng(0)
    drawn = metrics.hill(DOSES, 0.05, 0.95, 20, 1.4)[:, None] + rng.normal(0, 0.05, (11, 30))
    falling = np.linspace(0.5, 0.1, 11)[:, None]
    found = metrics.fit_hills(DOSES, np.hstack([drawn, falling]), n)
    one_by_one = np.transpose([metrics.fit_hill(DOSES, x, n) for x in drawn.T])
    assert found[0] == pytest.approx([*one_by_one[0], 0.5])
    assert found[1, :-1] == pytest.approx(one_by_one[1], abs=0.02)
    assert found[2, :-1] == pytest.approx(one_by_one[2], rel=0.05)
    assert found[3, :-1] == pytest.approx(one_by_one[3], rel=0.1)
    assert np.isnan(found[1:, -1]).all()  # no response


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
    early = np.isin(place, range(1, 5)).astype(float)
    late = (place > 5).astype(float)
    assert np.isnan(metrics.fit_hill(DOSES, early, n)[2])
    assert np.isfinite(metrics.fit_hill(DOSES, late, n)[2])
    found = metrics.fit_hills(DOSES, np.stack([early, late], axis=1), n)
    assert np.isnan(found[2]).tolist() == [True, False]


def test_where_a_curve_crosses_one_half_by_hand() -> None:
    # (0.5 - 0.1) / (0.9 - 0.5) = 1: at the half effect. (0.5 - 0) / (0.625 - 0.5) = 4, of slope 2: at
    # twice the half effect. Then a top below one half; beyond the largest exposure; no curve; all above.
    fits = frame("""
        floor  top    half  slope  crosses
        0.1    0.9    8     3      8
        0      0.625  8     2      16
        0      0.4    8     1      inf
        0      0.625  300   2      inf
        0.1    NaN    NaN   NaN    inf
        0.6    0.9    8     1      0
    """)
    *curve, crosses = fits.to_numpy().T
    assert metrics.crossing(np.array(curve), 512) == pytest.approx(crosses)


def test_one_half_is_reached_later_than_half_of_a_low_top() -> None:
    """A top of 0.75 is half way, at 16, only 0.375; one half is reached at twice that."""
    rows = facts(metrics.hill(DOSES, 0, 0.75, 16, 1), 400)
    [row] = metrics.one_half(rows, "right").to_dict("records")
    assert row["mean"] == pytest.approx(32, rel=0.15)
    assert row["low"] < 32 < row["high"]
    [half] = metrics.dose_response(rows, "right", most=1)["mean"]
    assert half == pytest.approx(16, rel=0.2)
    # A top below one half has no such exposure; one that some draws miss has no upper bound.
    [low] = metrics.one_half(facts(metrics.hill(DOSES, 0, 0.4, 16, 1), 400), "right").to_numpy()
    assert np.isnan(low[1:4].astype(float)).all()
    near = pd.DataFrame({"model": "m", "exposure": np.repeat(DOSES, 40)})
    near["right"] = (near["exposure"] >= 16) & (near.index % 40 < 21)  # 0.525 from 16 on
    [near] = metrics.one_half(near, "right").to_dict("records")
    assert 8 <= near["low"] < near["mean"] < 20
    assert near["high"] == np.inf
    assert near["n"] == 440


def test_the_interval_of_one_half_holds_the_truth() -> None:
    chance = metrics.hill(DOSES, 0.05, 0.8, 16, 1.2)  # 0.5 at 16 (0.45 / 0.3)^(1 / 1.2) = 22.4
    tables = [metrics.one_half(facts(chance, 60, seed), "right") for seed in range(20)]
    held = pd.concat(tables)
    assert ((held["low"] <= 22.4) & (held["high"] >= 22.4)).sum() >= 16  # 95% of 20, give or take


def test_siblings_are_the_other_facts_of_their_subjects() -> None:
    table = frame("""
        relation  subject  object  exposure
        crop      a        rye     4
        crop      b        oats    0
        market    b        rye     8
        market    a        rye     2
    """)
    both = pd.concat([table.assign(model="m"), table.assign(model="k", exposure=1)])
    found = metrics.with_sibling(both)
    assert len(found) == 8
    assert_rows(
        found[found["model"] == "m"].sort_values(["relation", "subject"]),
        """
        relation  subject  exposure  sibling  sibling_exposure
        crop      a        4         rye      2
        crop      b        0         rye      8
        market    a        2         rye      4
        market    b        8         oats     0
        """,
    )


def test_shares_against_chance_by_hand() -> None:
    # Of 4 facts with a chance of 1/2: all right has p = 2 / 16, two right p = 1; 4 of 4 with a chance
    # of 1/4 have p = 1 / 256. Holm: 3 / 256, then 2 / 8, then 1. No number of 4 with a chance of 1/2
    # has p below 0.05 / 3; 4 of 4 have it with 1/4, but 3 of 4 (p = 13 / 256) not: s^4 = 0.8.
    table = frame("""
        model  right  chance
        a      1111   0.5
        b      1100   0.5
        c      1111   0.25
    """)
    table["right"] = table["right"].astype(str).map(list)
    table = table.explode("right").astype({"right": int})
    found = metrics.against_chance(table, ["model"])
    assert found["p"].tolist() == pytest.approx([1 / 8, 1, 1 / 256])
    assert found["holm"].tolist() == pytest.approx([1 / 4, 1, 3 / 256])
    assert found["found"].tolist() == pytest.approx([np.nan, np.nan, 0.8**0.25], nan_ok=True)
    assert found["n"].tolist() == [4, 4, 4]
    # p = 1/8, 1/8: twice 1/8, and not once for the second.
    equal = pd.concat([table[:4], table[:4].assign(model="b")])
    assert metrics.against_chance(equal, ["model"])["holm"].tolist() == pytest.approx([1 / 4] * 2)


def test_curves_are_those_of_the_fits() -> None:
    fits = frame("""
        model  floor  top  mean  slope
        a      0      1    4     1
        b      0      NaN  NaN   NaN
    """)
    assert_rows(
        metrics.fitted_curves(fits, 16, points=3),  # 1 / (1 + 4 / exposure)
        """
        model  exposure  mean
        a      1         0.2
        a      4         0.5
        a      16        0.8
        """,
    )


def test_what_is_said_at_a_date_by_hand() -> None:
    # Bonn is nowhere; two of three say Oslo; the first two are told as often.
    said = frame("""
        model  chain  fact_id  object  text  exposure
        m      c      x        Oslo    Oslo  8
        m      c      y        Lima    Oslo  8
        m      c      z        Rome    Bonn  1
    """)
    found = metrics.by_date(said)
    assert_rows(
        found,
        """
        own  right  most
        1    1      0.5
        1    0      0.5
        0    0      0
        """,
    )
    assert found["swapped"].tolist() == pytest.approx([2 / 3, 0, 0])
    assert found["beyond"].tolist() == pytest.approx([1 / 3, 0, 0])


RANKED = frame("""
    model  exposure  logprob
    m      1         -9
    m      2         -5
    m      4         -1
    m      8         -2
""")


def test_ranks_by_hand() -> None:
    # The ranks 1 2 4 3 of the exposures 1 2 3 4: Spearman 1 - 6 * 2 / (4 * 15) = 0.8.
    table = metrics.rank_by_exposure(RANKED.assign(flat=0.0), ["logprob", "flat"], n_boot=10)
    assert table["mean"].tolist() == pytest.approx([0.8, np.nan], nan_ok=True)
    assert table["n"].tolist() == [4, 4]


def test_a_gain_by_hand() -> None:
    # logprob explains 0.64 of the ranks above. With a measure that holds the rest, all is explained:
    # it adds 0.36. Of the 24 orders of that rest, -0.3 -0.1 -0.7 1.1, two do so: with the last two
    # turned it is the same plus 1.8 times the difference of both ranks, 0 0 1 -1.
    rows = RANKED.assign(all=[1, 2, 3, 4], flat=1.0, same=RANKED["logprob"])
    table = metrics.permuted_gains(rows, ["all", "flat", "same"], n_permuted=500)
    table = table.set_index("measure")
    mean, chance, p_value = table.loc["all", ["mean", "chance", "p_value"]]
    assert mean == pytest.approx(0.36)
    assert chance <= 0.36 + 1e-9
    assert p_value == pytest.approx(2 / 24, abs=0.03)
    assert table.loc[["flat", "same"], ["mean", "chance", "p_value"]].isna().all(axis=None)


def test_an_auc_within_strata_by_hand() -> None:
    outcome = np.array([1.0, 0, 1, 0, 0, 1])
    score = np.array([2.0, 1, 5, 5, 9, 0])
    strata = np.array([0, 0, 1, 1, 1, 2])
    every = np.array(
        [
            [1.0, 1, 1, 1, 1, 1],
            [1, 1, 1, 0, 0, 1],
            [2, 1, 1, 1, 1, 0],
            [0, 0, 0, 0, 0, 1],
        ]
    )
    found = metrics.stratified_auc(every, outcome, score, strata)
    # 2 over 1; 5 ties with 5 and loses to 9; the last has no partner: 1.5 of 3. Then the first pair
    # alone; then it counts twice: 2.5 of 4; then there is none.
    assert found == pytest.approx([0.5, 1, 0.625, np.nan], nan_ok=True)
    one = np.zeros(6)
    # All in one stratum: 2 wins against 1 of (1, 5, 9), 5 has 1.5, 0 none: 2.5 of 9.
    assert metrics.stratified_auc(every[:1], outcome, score, one) == pytest.approx([2.5 / 9])


def test_where_memory_and_context_are_even() -> None:
    share = {1: (0, 4), 4: (1, 3), 16: (3, 1), 64: (4, 0)}  # says memory, says the context
    rows = pd.DataFrame(
        [("m", n, x) for n, (a, b) in share.items() for x in [1.0] * a + [-1.0] * b],
        columns=["model", "exposure", "balance"],
    )
    never = rows.assign(model="never", balance=-1.0)
    table = metrics.crossings(pd.concat([rows, never]), "balance", n_boot=50)
    # -0.5 at 4 and 0.5 at 16: half of the way is 8. Of facts never told nothing is used.
    assert table["mean"].tolist() == pytest.approx([8, np.inf])
    assert table["n"].tolist() == [16, 16]
    assert 1 < table["low"][0] <= 8 <= table["high"][0] <= 64
    with_control = pd.concat([rows, rows.assign(exposure=0, balance=1.0)])
    assert metrics.crossings(with_control, "balance", n_boot=50).equals(table[:1])
    [early] = metrics.crossings(rows, "balance", at=-1, n_boot=5)["mean"]
    assert early == 1
    # Means that fall are made level: 0 and -1 become -0.5, so 0 is reached between 4 and 16 again.
    waves = pd.DataFrame({"model": "m", "exposure": [1, 4, 16], "balance": [0.0, -1, 0.5]})
    assert metrics.crossings(waves, "balance", n_boot=5)["mean"].tolist() == pytest.approx([8])
