"""What two models' answers in pairs show: numbers by hand, and exact enumerations."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from factrobust.pairs import (
    Stratum,
    both_sided,
    equivalence,
    mcnemar,
    score,
    tail,
    weighted_share,
)


def test_the_weighted_share_of_every_possible_draw_has_the_true_share_as_its_mean():
    """A toy model loses 2 of the 3 facts that are asked for sure, and 1 of 5 of which 2 are drawn."""
    sure = [True, True, False]
    rest = [True, False, False, False, False]
    draws = [*combinations(rest, 2)]
    assert len(draws) == 10
    found = [
        weighted_share([Stratum(3, 3, sum(sure)), Stratum(5, 2, sum(drawn))]).mean
        for drawn in draws
    ]
    # A draw holds the lost fact in 4 of 10: (2 + 5 / 2) / 8, else 2 / 8.
    assert sorted(found) == pytest.approx([2 / 8] * 6 + [4.5 / 8] * 4)
    assert np.mean(found) == pytest.approx(3 / 8)  # 3 of 8 are lost


@pytest.mark.parametrize("shares", [(0.5, 0.02), (0.3, 0.0), (0.1, 0.1), (0.0, 0.3), (0.9, 0.6)])
def test_its_interval_covers_the_share_in_95_of_100_cases_whatever_the_strata_lose(shares):
    one = Stratum(8, 8, 0)
    other = Stratum(16, 6, 0)
    truth = (8 * shares[0] + 16 * shares[1]) / 24
    covered = 0.0
    for i in range(9):
        for j in range(7):
            chance = binom.pmf(i, 8, shares[0]) * binom.pmf(j, 6, shares[1])
            if chance < 1e-9:
                continue
            found = weighted_share([one._replace(hits=i), other._replace(hits=j)])
            assert found.low <= found.mean <= found.high
            covered += chance * (found.low - 1e-9 <= truth <= found.high + 1e-9)
    assert covered >= 0.95 - 1e-6


def test_the_tail_by_hand():
    """One fact of each of two equal strata; the estimate 1/2 or more means at least one hit. With shares
    p and q = 1/2 - p that has 1 - (1 - p)(1 - q), most at p = 0 or 1/2 apart: p + q - pq, pq = 0."""
    assert tail([Stratum(2, 1, 1), Stratum(2, 1, 0)], 0.25) == pytest.approx(0.5)
    # Both hit: pq is largest at p = q = 1/4.
    assert tail([Stratum(2, 1, 1), Stratum(2, 1, 1)], 0.25) == pytest.approx(1 / 16)


def test_strata_that_were_asked_whole_have_the_exact_bounds_of_their_sum():
    """3 of 10: Clopper and Pearson's bounds are the shares at which 3 or more, or 3 or fewer, have .025."""
    found = weighted_share([Stratum(4, 4, 2), Stratum(6, 6, 1)])
    assert found.mean == pytest.approx(0.3)
    assert sum(
        comb(10, k) * found.low**k * (1 - found.low) ** (10 - k) for k in range(3, 11)
    ) == pytest.approx(0.025, abs=1e-6)
    assert sum(
        comb(10, k) * found.high**k * (1 - found.high) ** (10 - k) for k in range(4)
    ) == pytest.approx(0.025, abs=1e-6)


def test_nothing_lost_is_not_nothing_and_a_stratum_that_nobody_asked_is_refused():
    found = weighted_share([Stratum(20, 20, 0)])
    assert found[:2] == (0, 0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 20))  # no loss among 20
    assert weighted_share([]).n == 0
    with pytest.raises(ValueError, match="none was asked"):
        weighted_share([Stratum(3, 3, 1), Stratum(4, 0, 0)])


def test_more_looks_widen_the_interval():
    once = weighted_share([Stratum(30, 30, 3), Stratum(60, 20, 1)])
    thrice = weighted_share([Stratum(30, 30, 3), Stratum(60, 20, 1)], level=1 - 0.05 / 3)
    assert thrice.low < once.low < once.mean == thrice.mean < once.high < thrice.high


def test_mcnemar_by_hand():
    assert mcnemar(0, 0) == mcnemar(4, 4) == 1
    assert mcnemar(5, 0) == pytest.approx(2 / 32)  # all five of a coin's throws alike
    assert mcnemar(1, 5) == pytest.approx(2 * 7 / 64)


def test_the_score_by_hand():
    """Without a drop it is McNemar's z. Without any change 0 gains are likeliest: z = -sqrt(n m / (1 - m))."""
    assert score(12, 4, 100, 0) == pytest.approx(8 / 4)
    assert score(0, 0, 98, 0.02) == pytest.approx(-np.sqrt(98 * 0.02 / 0.98))
    assert score(7, 3, 50, 0.1) == pytest.approx(-score(3, 7, 50, -0.1))


@pytest.mark.parametrize("n", [60, 120])
@pytest.mark.parametrize("gains", [0.0, 0.02, 0.1])
def test_a_drop_as_large_as_the_margin_is_called_equivalent_in_at_most_about_5_of_100_cases(
    n, gains
):
    margin = 0.1
    wrong = 0.0
    shares = [gains + margin, gains, 1 - 2 * gains - margin]
    for lost in range(n + 1):
        for gained in range(n + 1 - lost):
            chance = multinomial.pmf([lost, gained, n - lost - gained], n, shares)
            if chance > 1e-7 and both_sided(lost, gained, n, margin) <= 0.05:
                wrong += chance
    assert (
        wrong <= 0.065
    )  # Tango's test is not exact; with few discordant pairs it errs a little more


def test_claims():
    """Of 100 facts without a change a fall by 2 points is not excluded: that takes n m / (1 - m) > 1.645^2."""
    needed = int(np.ceil(1.6448536**2 * 0.98 / 0.02))
    assert needed == 133
    short = equivalence(0, 0, 100, 0.02)
    assert (short.verdict, short.more) == ("cannot tell", needed - 100)
    assert equivalence(0, 0, needed, 0.02).verdict == "equivalent"
    assert equivalence(20, 2, 100, 0.02).verdict == "worse"
    assert equivalence(2, 20, 100, 0.02).verdict == "better"
    assert equivalence(12, 14, 100, 0.02).drop == pytest.approx(-0.02)
    enough = equivalence(3, 2, 500, 0.02)
    assert (enough.verdict, enough.more) == ("equivalent", 0)
