"""Part 2: is a fact that is known to the year known to the month and the day (paper 2, 4.4, 4.6)?

All functions take the rows of `metrics.time.matches` and leave out facts that are undefined at one
of the precisions concerned.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust.datasets.dates import PRECISIONS
from factrobust.metrics.time import KEY


def verdicts(matched: pd.DataFrame) -> pd.DataFrame:
    """R at each precision, side by side: model, prompt_format, fact_id, year, month, day.

    Values are 1 (robust), 0, or NaN (undefined or not asked), sorted by the first three columns.
    """
    single = matched[matched["precision"].isin(PRECISIONS)]
    robust = single["robust"].astype("boolean").to_numpy(dtype=float, na_value=np.nan)
    wide = single.assign(robust=robust).pivot(index=KEY, columns="precision", values="robust")
    wide = wide.reindex(columns=list(PRECISIONS)).astype(float).rename_axis(columns=None)
    return wide.reset_index()


def granularity_variance(matched: pd.DataFrame) -> pd.DataFrame:
    """Population variance of a fact's three R's (paper 2, 4.6): columns of `verdicts`, variance.

    Of three values 0 or 1 it is 0 if they are equal and 2/9 if not, so that its mean is 2/9 of the
    share of facts whose verdict depends on the precision. NaN if one of the three is.
    """
    table = verdicts(matched)
    robust = table[list(PRECISIONS)].sum(axis=1, skipna=False) / len(PRECISIONS)
    return table.assign(variance=robust * (1 - robust))


def paired_variances(matched: pd.DataFrame, standard: str, few_shot: str) -> pd.DataFrame:
    """Variances of the same facts in two prompt formats: model, fact_id, standard, few_shot.

    Only facts with both. Raises KeyError for a format that is not in the table.
    """
    table = granularity_variance(matched)
    if absent := {standard, few_shot} - set(table["prompt_format"]):
        raise KeyError(
            f"no rows with the prompt format {sorted(absent)}; "
            f"the table has {sorted(table['prompt_format'].unique())}"
        )
    wide = table.pivot(index=["model", "fact_id"], columns="prompt_format", values="variance")
    pairs = pd.DataFrame({"standard": wide[standard], "few_shot": wide[few_shot]})
    return pairs.dropna().reset_index()


def variance_ratio(weights: NDArray, few_shot: NDArray, standard: NDArray) -> NDArray:
    """Mean variance few-shot / mean variance standard (figure 6), one a row of `weights` [*, fact].

    Below 1 the few-shot prompt brought the precisions together. Section 4.6 says to divide the
    standard mean by the few-shot one and reads a ratio below 1 as a reduction, which exclude each
    other; we keep the reading. NaN where the standard variance is 0. For the interval:

        columns = [pairs["few_shot"], pairs["standard"]]
        bootstrap_statistic(variance_ratio, columns, pairs["fact_id"])
    """
    # Not @: its last digits depend on the number of cores.
    above = np.einsum("ij,j->i", weights, np.asarray(few_shot, dtype=float))
    below = np.einsum("ij,j->i", weights, np.asarray(standard, dtype=float))
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)


def patterns(matched: pd.DataFrame) -> pd.DataFrame:
    """Which precisions fail together: the eight patterns of R at year, month and day.

    Columns: model, prompt_format, year, month, day (bool), count, share, n (facts defined at all
    three; share is NaN without any). All eight rows for every model and format.
    """
    rows = []
    for (model, name), part in verdicts(matched).groupby(KEY[:2], sort=False):
        defined = part[list(PRECISIONS)].dropna().to_numpy(dtype=bool)
        n = len(defined)
        for pattern in product([True, False], repeat=len(PRECISIONS)):
            count = int((defined == pattern).all(axis=1).sum())
            rows.append((model, name, *pattern, count, count / n if n else np.nan, n))
    return pd.DataFrame(rows, columns=[*KEY[:2], *PRECISIONS, "count", "share", "n"])


def transfer(matched: pd.DataFrame) -> pd.DataFrame:
    """Facts robust at one precision: are they at another one?

    One row for each model, prompt_format, fact_id, known_at and asked_at (two different precisions)
    where R = 1 at known_at; `kept` (bool) is R at asked_at. Its mean over facts is the recall:
    known at the year and not at the day is 1 - mean at known_at = year, asked_at = day.
    """
    table = verdicts(matched)
    parts = [
        table.loc[(table[known] == 1) & table[asked].notna(), [*KEY, asked]]
        .rename(columns={asked: "kept"})
        .astype({"kept": bool})
        .assign(known_at=known, asked_at=asked)
        for known, asked in permutations(PRECISIONS, 2)
    ]
    return pd.concat(parts, ignore_index=True)[[*KEY, "known_at", "asked_at", "kept"]]
