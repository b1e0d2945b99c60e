"""Two models' answers to the same facts, in pairs: what was lost, what was gained, and what that
shows.

A net difference hides losses: 12 facts lost and 14 others gained are a rise of two. So the share of
the first model's known facts that the second gets wrong (lost) stands beside the share of the
others that it gets right (gained). Intervals and tests take facts as independent draws from facts
like these.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel
from scipy.optimize import bisect
from scipy.special import ndtr
from scipy.stats import binom, binomtest

from factrobust.intervals import NOTHING, Interval

ALPHA = 0.05
GRID = 201  # values of the nuisance share at which an exact test is evaluated
MOST = 10**7  # facts, from which on more are not asked for


class Stratum(NamedTuple):
    """Facts of which some were drawn by lot and asked, and how many of these were hit (lost, or
    gained)."""

    size: int
    asked: int
    hits: int


def weighted_share(strata: Sequence[Stratum], *, level: float = 1 - ALPHA) -> Interval:
    """The share hit of all facts of one or two strata, with an exact interval; n counts those
    asked.

    The estimate is the mean of the strata's shares, weighted by their sizes: over all draws by lot
    its mean is the share itself. A bound is the share at which an exact test of the estimate just
    rejects (see `tail`); of strata that were asked whole it is Clopper and Pearson's (1934).
    """
    used = [stratum for stratum in strata if stratum.size]
    n = sum(stratum.asked for stratum in used)
    if not all(stratum.asked for stratum in used):
        raise ValueError("a stratum has facts of which none was asked; ask at least one of each")
    if len(used) < 2 or all(stratum.asked == stratum.size for stratum in used):
        return clopper_pearson(sum(stratum.hits for stratum in used), n, level=level)
    mean = _estimate(used)
    half = (1 - level) / 2
    # What is not hit is the complement: its lower bound is this one's upper.
    unhit = [s._replace(hits=s.asked - s.hits) for s in used]
    low = _crossing(partial(tail, used), half) if mean > 0 else 0.0
    high = 1 - _crossing(partial(tail, unhit), half) if mean < 1 else 1.0
    return Interval(mean, low, high, n)


def tail(strata: Sequence[Stratum], share: float) -> float:
    """The largest probability, over all ways in which two strata can have this share together, of
    an estimate at least as large as the one found: the p-value of "the share is at most this one".

    Every pair of counts is enumerated; the strata's own shares run over a grid of GRID values.
    """
    one, other = strata
    weight = one.size / (one.size + other.size)
    rest = 1 - weight
    # 1. The shares of the two strata: [row].
    first = np.linspace(
        max(0.0, (share - 1 + weight) / weight),
        min(1.0, share / weight),
        GRID,
    )
    second = np.clip((share - weight * first) / rest, 0, 1)
    # 2. Each count of the one, and the least of the other with which the estimate is as large.
    counts = np.arange(one.asked + 1)
    missing = _estimate(strata) - weight * counts / one.asked
    least = np.ceil(missing / rest * other.asked - 1e-9)
    # 3. Their probabilities: [row, count].
    chances = binom.pmf(counts, one.asked, first[:, None])
    enough = binom.sf(least - 1, other.asked, second[:, None])
    return float((chances * enough).sum(axis=1).max())


def _estimate(strata: Sequence[Stratum]) -> float:
    total = sum(stratum.size for stratum in strata)
    return sum(stratum.size / total * stratum.hits / stratum.asked for stratum in strata)


def clopper_pearson(hits: int, n: int, *, level: float = 1 - ALPHA) -> Interval:
    """A share with Clopper and Pearson's bounds."""
    if not n:
        return NOTHING
    found = binomtest(hits, n).proportion_ci(level, method="exact")
    return Interval(hits / n, float(found.low), float(found.high), n)


def _crossing(rising: Callable[[float], float], height: float) -> float:
    """Where a function that rises from 0 to 1 crosses a height, by bisection."""
    return float(bisect(lambda x: rising(x) - height, 0, 1, xtol=1e-12))


def mcnemar(lost: int, gained: int) -> float:
    """McNemar's exact two-sided p (1947) that as many facts are lost as gained, of the pairs that
    differ."""
    return float(binomtest(lost, lost + gained).pvalue) if lost + gained else 1.0


def tango_score(lost: int, gained: int, n: int, drop: float) -> float:
    """Tango's score statistic (Statistics in Medicine 17, 1998, equation 3) of n pairs for a drop
    in the share right: standard normal if this is the drop, above 0 if more was found."""
    a = 2 * n
    b = -lost - gained + (2 * n - lost + gained) * drop
    c = -gained * drop * (1 - drop)
    gains = (np.sqrt(b * b - 4 * a * c) - b) / (2 * a)  # their likeliest share, if this is the drop
    variance = n * (2 * gains + drop * (1 - drop))
    return float((lost - gained - n * drop) / np.sqrt(variance)) if variance > 0 else 0.0


Verdict = Literal["equivalent", "worse", "better", "cannot tell"]


class Claim(BaseModel):
    """What n pairs say of a drop in the share right; p is that of the two one-sided tests
    together."""

    margin: float
    verdict: Verdict
    drop: float
    p_value: float
    more: int  # facts to ask besides, at these shares, until something can be told; 0 if it can


def equivalence(lost: int, gained: int, n: int, margin: float) -> Claim:
    """Whether the share right is the same within a margin, by two one-sided tests (Schuirmann,
    1987).

    Equivalent: both "it fell by the margin or more" and "it rose by the margin or more" are
    rejected at 5%. Else worse, or better, if McNemar's exact test rejects at 5%. Else nothing can
    be told.
    """
    p_value = both_sided(lost, gained, n, margin)
    verdict: Verdict = "cannot tell"
    more = 0
    if p_value <= ALPHA:
        verdict = "equivalent"
    elif mcnemar(lost, gained) <= ALPHA:
        verdict = "worse" if lost > gained else "better"
    else:
        more = _needed(lost / n, gained / n, margin) - n
    return Claim(
        margin=margin,
        verdict=verdict,
        drop=(lost - gained) / n,
        p_value=p_value,
        more=more,
    )


def both_sided(lost: float, gained: float, n: float, margin: float) -> float:
    """The larger p of the two one-sided score tests."""
    falls = ndtr(tango_score(lost, gained, n, margin))  # type: ignore[arg-type]
    rises = ndtr(-tango_score(lost, gained, n, -margin))  # type: ignore[arg-type]
    return float(max(falls, rises))


def _needed(lost: float, gained: float, margin: float) -> int:
    """How many pairs with these shares of lost and gained tell something; at most MOST."""

    def tells(n: int) -> bool:
        if both_sided(lost * n, gained * n, n, margin) <= ALPHA:
            return True
        return 2 * ndtr(-abs(tango_score(lost * n, gained * n, n, 0))) <= ALPHA  # type: ignore[arg-type]

    high = 1
    while high < MOST and not tells(high):
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if tells(middle) else (middle, high)
    return min(high, MOST)
