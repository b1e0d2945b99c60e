"""Part 2: two models (or prompts) set against each other fact by fact (paper 2, appendix C)."""

from __future__ import annotations

import numpy as np
import pandas as pd

OUTCOMES = ("win", "tie", "lose")
METRICS = ("win_rate", "robust")


def duels(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Does `first` win, tie or lose against `second` on each fact, on win rate and robustness?

    Both are rows of `metrics.time.matches` of one model and prompt format. One row for each
    fact_id, precision and metric ("win_rate", "robust") that both have a value for: first,
    first_format, second, second_format, fact_id, precision, metric, difference (first minus
    second), outcome (of first).

    Raises ValueError for a table of several models or formats, or two without a fact in common.
    """
    tables = []
    for place, table in (("first", first), ("second", second)):
        sides = table[["model", "prompt_format"]].drop_duplicates()
        if len(sides) != 1:
            raise ValueError(
                f"the {place} table holds {len(sides)} models and formats; keep the rows of one"
            )
        kept = table[["fact_id", "precision", *METRICS]]
        names = {place: table["model"], f"{place}_format": table["prompt_format"]}
        tables.append(kept.assign(**names))
    both = tables[0].merge(
        tables[1], on=["fact_id", "precision"], suffixes=("", "_of_second"), validate="one_to_one"
    )
    if both.empty:
        raise ValueError("the two tables have no fact in common; ask both models the same facts")
    columns = ["first", "first_format", "second", "second_format", "fact_id", "precision"]
    parts = []
    for metric in METRICS:
        a, b = (
            both[name].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
            for name in (metric, f"{metric}_of_second")
        )
        difference = a - b
        outcome = np.select([difference > 0, difference == 0], OUTCOMES[:2], OUTCOMES[2])
        part = both[columns].assign(metric=metric, difference=difference, outcome=outcome)
        parts.append(part.dropna(subset=["difference"]))
    return pd.concat(parts, ignore_index=True)


def duel_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Share of each outcome (figure 9): the columns of `duels` before fact_id, precision, metric,
    outcome (win, tie and lose, also where none occurred), count, share, n (facts)."""
    by = ["first", "first_format", "second", "second_format", "precision", "metric"]
    wide = table.groupby([*by, "outcome"], sort=False).size().unstack(fill_value=0)
    wide = wide.reindex(columns=list(OUTCOMES), fill_value=0).reset_index()
    counts = wide.melt(by, list(OUTCOMES), var_name="outcome", value_name="count")
    n = counts.groupby(by, sort=False)["count"].transform("sum")
    return counts.assign(share=counts["count"] / n, n=n)
