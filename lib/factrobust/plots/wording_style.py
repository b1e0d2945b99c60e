"""What the figures of part 3 share: rows of points with intervals, a row a relation or another thing.

Columns mean, low, high and n are those of `statistics.interval_table`; a missing bound draws no
interval, and further columns do no harm. KeyError for a missing column, ValueError for an empty table
or one with several rows for the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from factrobust.plots import style
from factrobust.plots import time_style as parts
from factrobust.plots.style import SINGLE

PREDICTORS = {  # names in the tables, in the order of the figures -> names in the figures
    "intercept": "intercept",
    "log_popularity": "popularity, log(SPop)",
    "SPop": "popularity, log(SPop)",
    "log_SPop": "popularity, log(SPop)",
    "scons": "consistency, SCons",
    "SCons": "consistency, SCons",
    "cert": "certainty, Cert",
    "Cert": "certainty, Cert",
}


def forest(
    table: pd.DataFrame, column: str, order: Sequence[str], what: str
) -> tuple[Figure, Axes]:
    """A figure with a row each value of `column`, and the models' means with intervals in it.

    Values in `order` stand on top, the others below, by their mean over models, highest first. The
    title gives n, such as "n = 12 questions a relation"; where it varies, the rows do.
    """
    style.need(table, "model", column, "mean", "low", "high", "n")
    style.once(table, "model", column)
    looks = style.looks(table["model"])
    ranked = table.groupby(column)["mean"].mean().sort_values(ascending=False, kind="stable")
    rows = style.in_order(ranked.index, order)
    height = 0.9 + (0.12 + 0.07 * len(looks)) * len(rows)
    fig, axes = style.panels(1, 1, SINGLE, height)
    axis = axes[0, 0]
    points(axis, table, column, rows, looks)
    n = [style.count(table.loc[table[column] == row, "n"]) for row in rows]
    if len(set(n)) == 1:
        axis.set_title(f"n = {n[0]} {what}")
        n = [""] * len(rows)
    labels = [name(row) + (f" (n = {k})" if k else "") for row, k in zip(rows, n, strict=True)]
    row_labels([axis], labels)
    parts.legend(fig, keys(looks))
    return fig, axis


def points(
    axis: Axes, table: pd.DataFrame, column: str, rows: Sequence[str], looks: dict[str, style.Look]
) -> pd.Series:
    """Draw mean, low, high in the row of each `column`, models one below the other within a row.

    `rows` holds the rows' values from the top. Where the table has a column `hollow`, its points are
    white inside. Returns each point's y.
    """
    place = {model: (k - (len(looks) - 1) / 2) * 0.7 / len(looks) for k, model in enumerate(looks)}
    table = table.assign(y=table[column].map(list(rows).index) + table["model"].map(place))
    hollow = table["hollow"] if "hollow" in table else pd.Series(False, table.index)
    for model, look in looks.items():
        for fill, drawn in ((look.colour, ~hollow), ("white", hollow)):
            own = table[drawn & (table["model"] == model)]
            axis.errorbar(
                own["mean"], own["y"], xerr=style.errors(own), fmt=look.marker, color=look.colour,
                mfc=fill, elinewidth=0.9,
            )  # fmt: skip
    return table["y"]


def row_labels(axes: Sequence[Axes], labels: Sequence[str]) -> None:
    """Name the rows 0, 1, ... of panels side by side, from the top."""
    for axis in axes:
        axis.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].set_ylim(len(labels) - 0.5, -0.5)


def keys(looks: dict[str, style.Look]) -> list[Line2D]:
    """A legend entry a model, its marker without a line."""
    return [style.key(model, look, ls="") for model, look in looks.items()]


def name(text: str) -> str:
    """How a relation, or anything else that has a row, is called in a figure."""
    return style.printable(style.domain_name(text))
