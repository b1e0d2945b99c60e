"""What two models' answers in pairs show: numbers by hand, and exact enumerations."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from factrobust.pairs import (
    Stratum,
    both_sided,
    equivalence,
    mcnemar,
    tail,
    tango_score,
    weighted_share,
)


def test_the_weighted_share_of_every_possible_draw_has_the_true_share_as_its_mean():
    """A toy model loses 2 of the 3 facts that are asked for sure, and 1 of 5 of which 2 are drawn."""
    sure = Stratum(3, 3, 2)
    found = []
    for drawn in combinations([1, 0, 0, 0, 0], 2):
        rest = Stratum(5, 2, sum(drawn))
        found.append(weighted_share([sure, rest]).mean)
    # A draw holds the lost fact in 4 of 10: (2 + 5 / 2) / 8, else 2 / 8.
    assert sorted(found) == pytest.approx([2 / 8] * 6 + [4.5 / 8] * 4)
    assert np.mean(found) == pytest.approx(3 / 8)  # 3 of 8 are lost


@pytest.mark.parametrize("shares", [(0.5, 0.02), (0.3, 0.0), (0.1, 0.1), (0.0, 0.3), (0.9, 0.6)])
def test_its_interval_covers_the_share_in_95_of_100_cases_whatever_the_strata_lose(shares):
    first, second = shares
    truth = (8 * first + 16 * second) / 24
    covered = 0.0
    for i, j in product(range(9), range(7)):
        chance = binom.pmf(i, 8, first) * binom.pmf(j, 6, second)
        if chance < 1e-9:
            continue
        found = weighted_share([Stratum(8, 8, i), Stratum(16, 6, j)])
        assert found.low <= found.mean <= found.high
        if found.low - 1e-9 <= truth <= found.high + 1e-9:
            covered += chance
    assert covered >= 0.95 - 1e-6


def test_the_tail_by_hand():
    """One fact of each of two equal strata; the estimate 1/2 or more means at least one hit. With shares
    p and q = 1/2 - p that has 1 - (1 - p)(1 - q), most at p = 0 or 1/2 apart: p + q - pq, pq = 0."""
    hit = Stratum(2, 1, 1)
    assert tail([hit, Stratum(2, 1, 0)], 0.25) == pytest.approx(0.5)
    # Both hit: pq is largest at p = q = 1/4.
    assert tail([hit, hit], 0.25) == pytest.approx(1 / 16)


def test_strata_that_were_asked_whole_have_the_exact_bounds_of_their_sum():
    """3 of 10: Clopper and Pearson's bounds are the shares at which 3 or more, or 3 or fewer, have .025."""
    found = weighted_share([Stratum(4, 4, 2), Stratum(6, 6, 1)])
    assert found.mean == pytest.approx(0.3)
    assert binom.sf(2, 10, found.low) == pytest.approx(0.025, abs=1e-6)
    assert binom.cdf(3, 10, found.high) == pytest.approx(0.025, abs=1e-6)


def test_nothing_lost_is_not_nothing_and_a_stratum_that_nobody_asked_is_refused():
    found = weighted_share([Stratum(20, 20, 0)])
    assert found == (0, 0, pytest.approx(1 - 0.025 ** (1 / 20)), 20)  # no loss among 20
    assert weighted_share([]).n == 0
    with pytest.raises(ValueError, match="none was asked"):
        weighted_share([Stratum(3, 3, 1), Stratum(4, 0, 0)])


def test_more_looks_widen_the_interval():
    strata = [Stratum(30, 30, 3), Stratum(60, 20, 1)]
    once = weighted_share(strata)
    thrice = weighted_share(strata, level=1 - 0.05 / 3)
    assert thrice.low < once.low < once.mean == thrice.mean < once.high < thrice.high


def test_mcnemar_by_hand():
    assert mcnemar(0, 0) == mcnemar(4, 4) == 1
    assert mcnemar(5, 0) == pytest.approx(2 / 32)  # all five of a coin's throws alike
    assert mcnemar(1, 5) == pytest.approx(2 * 7 / 64)


def test_the_score_by_hand():
    """Without a drop it is McNemar's z. Without any change 0 gains are likeliest: z = -sqrt(n m / (1 - m))."""
    assert tango_score(12, 4, 100, 0) == pytest.approx(8 / 4)
    assert tango_score(0, 0, 98, 0.02) == pytest.approx(-np.sqrt(98 * 0.02 / 0.98))
    assert tango_score(7, 3, 50, 0.1) == pytest.approx(-tango_score(3, 7, 50, -0.1))


@pytest.mark.parametrize("n", [60, 120])
@pytest.mark.parametrize("gains", [0.0, 0.02, 0.1])
def test_a_drop_as_large_as_the_margin_is_called_equivalent_in_at_most_about_5_of_100_cases(
    n, gains
):
    """Tango's test is not exact; with few discordant pairs it errs a little more."""
    margin = 0.1
    shares = [gains + margin, gains, 1 - 2 * gains - margin]
    wrong = 0.0
    for lost, gained in product(range(n + 1), repeat=2):
        same = n - lost - gained
        chance = multinomial.pmf([lost, gained, same], n, shares) if same >= 0 else 0
        if chance > 1e-7 and both_sided(lost, gained, n, margin) <= 0.05:
            wrong += chance
    assert wrong <= 0.065


# Of 100 facts without a change a fall by 2 points is not excluded: that takes
# n m / (1 - m) > 1.645^2, so 132.6 facts. With 6 lost and 2 gained of 100 McNemar's z would be
# 0.04 n / sqrt(0.08 n), above 1.96 from 192.07 facts on.
@pytest.mark.parametrize(
    ("lost", "gained", "n", "verdict", "more"),
    [
        (0, 0, 100, "cannot tell", 33),
        (6, 2, 100, "cannot tell", 93),
        (0, 0, 133, "equivalent", 0),
        (3, 2, 500, "equivalent", 0),
        (20, 2, 100, "worse", 0),
        (2, 20, 100, "better", 0),
    ],
)
def test_claims(lost, gained, n, verdict, more):
    claim = equivalence(lost, gained, n, 0.02)
    assert claim.verdict == verdict
    assert claim.more == more
    assert claim.drop == pytest.approx((lost - gained) / n)
