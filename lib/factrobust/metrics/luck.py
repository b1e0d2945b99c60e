"""Part 2, beyond the paper: how much of robustness is luck, or rounding?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from factrobust.metrics.placebo import in_time
from factrobust.metrics.time import CELL, chance


def by_number_of_dates(scores: pd.DataFrame, incorrect: Sequence[int]) -> pd.DataFrame:
    """Probability that a fact is robust when fewer of its incorrect dates are tested.

    For every k of `incorrect`, the share of all ways to choose k of a fact's n incorrect dates for
    which every match is won. It is counted, not sampled: C(b, k) / C(n, k) if b of them lie strictly
    below the lowest correct one. A row a cell of the scores and k (`n_incorrect`): n_correct, robust,
    placebo, the mean of the same over the other blocks of as many dates (`metrics.placebo`; NaN without
    any), and chance. Only facts that have dates on both sides and the largest number of `incorrect`
    dates at the precision, so that all points of a curve are of the same facts.
    """
    rows = []
    for cell, values, size, first in in_time(scores):
        n = len(values) - size
        below = [int((values < values[b : b + size].min()).sum()) for b in range(1, n)]
        for k in incorrect if n >= max(incorrect) else ():
            robust = [math.comb(number, k) / math.comb(n, k) for number in below]
            true = robust.pop(first - 1)
            others = np.mean(robust) if robust else np.nan
            rows.append((*cell, size, k, true, others, chance(size, k)))
    columns = [*CELL, "n_correct", "n_incorrect", "robust", "placebo", "chance"]
    return pd.DataFrame(rows, columns=columns)


def round_to_bfloat16(values: pd.Series) -> pd.Series:
    """Numbers rounded to the nearest bfloat16 (8 significant bits; ties to even), as float64."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return pd.Series(rounded.view(np.float32).astype(float), index=values.index)
