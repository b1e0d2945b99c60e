"""Does correctness depend on a predictor, and differently in each category (paper 3, A.1)?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from factrobust.metrics.prediction import COLUMNS, NUMERIC
from factrobust.statistics import binomial_interval

BINS = 15
CENTRE = 0.95


def binned_correctness(
    groups: pd.DataFrame, predictors: Sequence[str] = NUMERIC, *, bins: int = BINS
) -> pd.DataFrame:
    """Share of right answers against each numeric predictor, by category (figure 5).

    The range of a predictor, over all questions of a model, is cut into bins of equal width. A
    category's rows outside its own central 95% of the predictor are left out. Columns: model,
    relation, predictor, midpoint (of the bin, in the predictor's own unit), correct (share), low,
    high (exact binomial 95% interval), n (questions). Empty bins, and rows without a value, are left
    out.
    """
    tables = []
    for name in predictors:
        column = COLUMNS.get(name, name)
        rows = groups.dropna(subset=[column])
        for _, own in rows.groupby("model", sort=False):
            x = own[column].astype(float)
            width = (x.max() - x.min()) / bins
            number = np.minimum((x - x.min()) // (width or 1.0), bins - 1)
            within = x.groupby(own["relation"])
            lower = within.transform("quantile", (1 - CENTRE) / 2)
            upper = within.transform("quantile", (1 + CENTRE) / 2)
            kept = own.assign(predictor=name, midpoint=x.min() + (number + 0.5) * width)
            tables.append(kept[x.between(lower, upper)])
    cells = pd.concat(tables).groupby(["model", "relation", "predictor", "midpoint"], sort=False)
    table = cells["correct"].agg(right="sum", n="size").reset_index()
    low, high = binomial_interval(table["right"], table["n"])
    table = table.assign(correct=table["right"] / table["n"], low=low, high=high)
    order = [table[name] for name in ("midpoint", "relation", "predictor", "model")]
    columns = ["model", "relation", "predictor", "midpoint", "correct", "low", "high", "n"]
    return table[columns].iloc[np.lexsort([pd.factorize(o, sort=True)[0] for o in order])]
