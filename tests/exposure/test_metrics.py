"""Dose and response by hand, and from facts whose chances are known."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from scipy.optimize import curve_fit

from factrobust.exposure import metrics

DOSES = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
FIFTY = np.full(11, 50.0)  # facts of each


def facts(chance: np.ndarray, n: int, seed: int = 0) -> pd.DataFrame:
    """n facts of each dose, right with its chance."""
    rng = np.random.default_rng(seed)
    dose = np.repeat(DOSES, n)
    right = rng.random(len(dose)) < np.repeat(chance, n)
    return pd.DataFrame({"model": "m", "exposure": dose, "right": right})


# ---- the curve -----------------------------------------------------------------------------------


def test_the_curve_by_hand() -> None:
    # Half of the way at the half dose; with slope 1, at three times the half dose 3/4 of it.
    assert metrics.hill([0, 8, 24], 0.1, 0.9, 8, 1) == pytest.approx([0.1, 0.5, 0.7])
    assert metrics.hill([16], 0, 1, 8, 2) == pytest.approx([0.8])  # 2^2 / (1 + 2^2)


@pytest.mark.parametrize("truth", [(0.05, 0.95, 20, 1.4), (-4.0, -0.2, 30, 0.8)])
def test_a_curve_without_noise_is_found_again(truth) -> None:
    """Of a share, or of any measure that grows."""
    mean = metrics.hill(DOSES, *truth)
    found = metrics.fit_hill(DOSES, mean, FIFTY)
    assert found == pytest.approx(truth, rel=0.01)


def test_no_share_grows_beyond_one() -> None:
    doses = DOSES[:8]
    n = FIFTY[:8]
    mean = metrics.hill(doses, 0, 2, 60, 1)  # ends near 1, still rising
    free = metrics.fit_hill(doses, mean, n)
    assert free == pytest.approx([0, 2, 60, 1], rel=0.05)
    share = metrics.fit_hill(doses, mean, n, most=1)
    _, top, half, _ = share
    assert round(top, 3) == 1
    assert half < 30
    drawn = metrics.fit_hills(doses, mean[:, None], n, most=1)
    assert drawn[2] == pytest.approx(half, rel=0.05)


def test_the_curve_is_scipys_for_means_whose_variance_is_one_over_n() -> None:
    dose = np.array([0, 1, 4, 16, 64])
    mean = np.array([0.0, 0.3, 0.2, 0.8, 0.7])
    n = np.array([9.0, 9, 90, 9, 900])

    def curve(x: np.ndarray, top: float, half: float, slope: float) -> np.ndarray:
        return metrics.hill(x, 0, top, half, slope)

    best, _ = curve_fit(
        curve,
        dose[1:],
        mean[1:],
        p0=[0.8, 4, 1],
        sigma=n[1:] ** -0.5,
        bounds=([0, 1, 0.3], [2.4, 64, 6]),
    )
    found = metrics.fit_hill(dose, mean, n)
    assert found[1:] == pytest.approx(best, rel=1e-3)


def test_many_curves_at_once_are_those_one_by_one() -> None:
    n = np.arange(20.0, 31)
    rng = np.random.default_rng(0)
    curve = metrics.hill(DOSES, 0.05, 0.95, 20, 1.4)
    means = curve[:, None] + rng.normal(0, 0.05, (11, 30))
    found = metrics.fit_hills(DOSES, means, n)
    one_by_one = [metrics.fit_hill(DOSES, mean, n) for mean in means.T]
    floor, top, half, slope = np.transpose(one_by_one)
    assert found[0] == pytest.approx(floor)
    assert found[1] == pytest.approx(top, abs=0.02)
    assert found[2] == pytest.approx(half, rel=0.05)
    assert found[3] == pytest.approx(slope, rel=0.1)


def test_growth_is_asked_of_the_upper_half_of_the_doses() -> None:
    place = np.arange(11)  # the median dose is the sixth
    early = (place >= 1) & (place < 5)
    late = place > 5
    falling = np.linspace(0.5, 0.1, 11)
    means = np.stack([early, late, falling], axis=1)
    drawn = metrics.fit_hills(DOSES, means, FIFTY)
    assert drawn[0].tolist() == pytest.approx([0, 0, 0.5])  # floors
    for fits in (drawn.T, [metrics.fit_hill(DOSES, mean, FIFTY) for mean in means.T]):
        has_none = [np.isnan(fit[1:]).all() for fit in fits]
        assert has_none == [True, False, True]
    flat = facts(np.zeros(11), 9)
    [row] = metrics.dose_response(flat, "right", n_boot=20).to_dict("records")
    assert row["floor"] == 0
    assert np.isnan([row["mean"], row["low"], row["high"]]).all()


@pytest.mark.parametrize(
    ("measure", "truth"), [(metrics.dose_response, 16), (metrics.one_half, 22.4)]
)
def test_intervals_hold_the_truth(measure, truth) -> None:
    """One half is reached at 16 (0.45 / 0.3)^(1 / 1.2) = 22.4."""
    chance = metrics.hill(DOSES, 0.05, 0.8, 16, 1.2)
    tables = [measure(facts(chance, 60, seed), "right") for seed in range(20)]
    found = pd.concat(tables)
    assert found["n"].eq(660).all()
    assert (found["low"] < found["mean"]).all()
    assert (found["mean"] < found["high"]).all()
    is_held = (found["low"] <= truth) & (found["high"] >= truth)
    assert is_held.sum() >= 16  # 95% of 20, give or take


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
    assert metrics.inverse_hill(np.array(curve), 512) == pytest.approx(crosses)


def test_one_half_is_reached_later_than_half_of_a_low_top() -> None:
    """A top of 0.75 is half way, at 16, only 0.375; one half is reached at twice that."""
    rows = facts(metrics.hill(DOSES, 0, 0.75, 16, 1), 400)
    [row] = metrics.one_half(rows, "right").to_dict("records")
    assert row["mean"] == pytest.approx(32, rel=0.15)
    assert row["low"] < 32 < row["high"]
    [half] = metrics.dose_response(rows, "right", most=1)["mean"]
    assert half == pytest.approx(16, rel=0.2)


def test_what_stays_below_one_half() -> None:
    low = facts(metrics.hill(DOSES, 0, 0.4, 16, 1), 400)
    found = metrics.one_half(low, "right")
    assert found[["mean", "low", "high"]].isna().all(axis=None)
    # One that some draws miss has no upper bound: 21 of 40 from 16 on.
    near = pd.DataFrame({"model": "m", "exposure": np.repeat(DOSES, 40)})
    near["right"] = (near["exposure"] >= 16) & (near.index % 40 < 21)
    [row] = metrics.one_half(near, "right").to_dict("records")
    assert 8 <= row["low"] < row["mean"] < 20
    assert row["high"] == np.inf


# ---- tables --------------------------------------------------------------------------------------


def test_siblings_are_the_other_facts_of_their_subjects() -> None:
    table = frame("""
        relation  subject  object  exposure
        crop      a        rye     4
        crop      b        oats    0
        market    b        rye     8
        market    a        rye     2
    """)
    other = table.assign(model="k", exposure=1)
    both = pd.concat([table.assign(model="m"), other])
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
        model  right    chance
        a      1 1 1 1  0.5
        b      1 1 0 0  0.5
        c      1 1 1 1  0.25
    """)
    table["right"] = table["right"].str.split()
    table = table.explode("right").astype({"right": int})
    assert_rows(
        metrics.against_chance(table, ["model"]),
        f"""
        model  mean  n  p         holm      found
        a      1     4  0.125     0.25      NaN
        b      0.5   4  1         1         NaN
        c      1     4  {1 / 256}  {3 / 256}  {0.8**0.25}
        """,
    )
    # p = 1/8, 1/8: twice 1/8, and not once for the second.
    first = table[table["model"] == "a"]
    equal = pd.concat([first, first.assign(model="b")])
    found = metrics.against_chance(equal, ["model"])
    assert found["holm"].tolist() == pytest.approx([1 / 4, 1 / 4])


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
    answers = frame("""
        model  chain  fact_id  object  text  exposure
        m      c      x        Oslo    Oslo  8
        m      c      y        Lima    Oslo  8
        m      c      z        Rome    Bonn  1
    """)
    assert_rows(
        metrics.by_date(answers),
        f"""
        own  right  most  swapped  beyond
        1    1      0.5   {2 / 3}  {1 / 3}
        1    0      0.5   0        0
        0    0      0     0        0
        """,
    )


RANKED = frame("""
    model  exposure  logprob
    m      1         -9
    m      2         -5
    m      4         -1
    m      8         -2
""")


def test_ranks_by_hand() -> None:
    # The ranks 1 2 4 3 of the exposures 1 2 3 4: Spearman 1 - 6 * 2 / (4 * 15) = 0.8.
    rows = RANKED.assign(flat=0.0)
    assert_rows(
        metrics.rank_by_exposure(rows, ["logprob", "flat"], n_boot=10),
        """
        measure  mean  n
        logprob  0.8   4
        flat     NaN   4
        """,
    )


def test_a_gain_by_hand() -> None:
    # logprob explains 0.64 of the ranks above. With a measure that holds the rest, all is explained:
    # it adds 0.36. Of the 24 orders of that rest, -0.3 -0.1 -0.7 1.1, two do so: with the last two
    # turned it is the same plus 1.8 times the difference of both ranks, 0 0 1 -1.
    rows = RANKED.assign(all=[1, 2, 3, 4], flat=1.0, same=RANKED["logprob"])
    every, *nothing = metrics.permuted_gains(
        rows, ["all", "flat", "same"], n_permuted=500
    ).itertuples()
    assert every.mean == pytest.approx(0.36)
    assert every.chance <= 0.36 + 1e-9
    assert every.p_value == pytest.approx(2 / 24, abs=0.03)
    for row in nothing:
        assert np.isnan([row.mean, row.chance, row.p_value]).all()


def test_an_auc_within_strata_by_hand() -> None:
    cases = frame("""
        outcome  score  stratum  each  pair  twice  none
        1        2      0        1     1     2      0
        0        1      0        1     1     1      0
        1        5      1        1     1     1      0
        0        5      1        1     0     1      0
        0        9      1        1     0     1      0
        1        0      2        1     1     0      1
    """)
    outcome, score, stratum, *weights = cases.to_numpy(float).T
    # 2 over 1; 5 ties with 5 and loses to 9; the last has no partner: 1.5 of 3. Then the first pair
    # alone; then it counts twice: 2.5 of 4; then there is none.
    found = metrics.stratified_auc(np.array(weights), outcome, score, stratum)
    assert found == pytest.approx([0.5, 1, 0.625, np.nan], nan_ok=True)
    # All in one stratum: 2 wins against 1 of (1, 5, 9), 5 has 1.5, 0 none: 2.5 of 9.
    found = metrics.stratified_auc(np.ones((1, 6)), outcome, score, 0 * stratum)
    assert found == pytest.approx([2.5 / 9])


def balances(text: str) -> pd.DataFrame:
    """A row a fact, from a row an exposure: 1 says memory, -1 the context."""
    table = frame(text).assign(model="m")
    table["balance"] = table["balance"].astype(str).str.split()
    return table.explode("balance").astype({"balance": float})


def test_where_memory_and_context_are_even() -> None:
    rows = balances("""
        exposure  balance
        1         -1 -1 -1 -1
        4         1 -1 -1 -1
        16        1 1 1 -1
        64        1 1 1 1
    """)
    never = rows.assign(model="never", balance=-1.0)
    both = pd.concat([rows, never])
    table = metrics.exposure_at_level(both, "balance", n_boot=50)
    # -0.5 at 4 and 0.5 at 16: half of the way is 8.
    assert table["mean"].tolist() == pytest.approx([8, np.inf])
    assert table["n"].tolist() == [16, 16]
    assert 1 < table["low"][0] <= 8 <= table["high"][0] <= 64
    # Of facts never told nothing is used.
    control = rows.assign(exposure=0, balance=1.0)
    same = metrics.exposure_at_level(pd.concat([rows, control]), "balance", n_boot=50)
    assert same.equals(table[:1])
    [early] = metrics.exposure_at_level(rows, "balance", at=-1, n_boot=5)["mean"]
    assert early == 1


def test_means_that_fall_are_made_level() -> None:
    # 0 and -1 become -0.5, so 0 is reached half way between 4 and 16.
    rows = balances("""
        exposure  balance
        1         0
        4         -1
        16        0.5
    """)
    [crossing] = metrics.exposure_at_level(rows, "balance", n_boot=5)["mean"]
    assert crossing == pytest.approx(8)
