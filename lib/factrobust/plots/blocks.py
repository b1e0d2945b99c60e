"""What the figures of part 2 share: panels by precision, lines with bands, axes and legends.

Every table has mean, low, high and n (`statistics.interval_table`) once for each combination of its
keys, that is, of one prompt format a model. Further columns do no harm. KeyError for a missing
column, ValueError for an empty table or one with several rows for the same keys.

What the figures of part 3 share: rows of points with intervals, a row a relation or another thing.

Columns mean, low, high and n are those of `statistics.interval_table`; a missing bound draws no
interval, and further columns do no harm. KeyError for a missing column, ValueError for an empty table
or one with several rows for the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from factrobust.datasets.dates import PRECISIONS
from factrobust.metrics.time import GLOBAL
from factrobust.plots import style
from factrobust.plots.style import SINGLE

ORDER = (*PRECISIONS, GLOBAL)
Panels = list[tuple[Axes, pd.DataFrame]]

LINE_LOOKS = (  # of the lines that are no models: no colour of an embedded model
    style.Look(style.GREEN, "^", "-"),
    style.Look(style.PURPLE, "D", (0, (5, 1.5))),
    style.Look(style.ORANGE, "v", (0, (1, 1.2))),
    style.Look(style.SKY, "P", (0, (5, 1.5, 1, 1.5))),
    style.Look(style.GREY, "X", "-"),
)
DASHED: dict[str, Any] = {"color": "0.3", "lw": 0.9, "ls": (0, (3, 1.5))}


def intervals(table: pd.DataFrame, *keys: str) -> None:
    """Raise KeyError or ValueError, as the module says, for a table that cannot be drawn."""
    style.need(table, *keys, "mean", "low", "high", "n")
    style.once(table, *keys)


def known(table: pd.DataFrame, column: str, values: Iterable[str]) -> None:
    """Raise ValueError for a value of `column` that the figure would not draw."""
    if odd := sorted(set(table[column]) - set(values)):
        raise ValueError(f"The figure draws no {column} {odd[0]!r}: write one of {list(values)}.")


def precision_panels(
    table: pd.DataFrame, looks: dict[str, style.Look], height: float
) -> tuple[Figure, Panels]:
    """A panel each precision of the table, side by side with the same axes, and its"""
    present = style.in_order(table["precision"], ORDER)
    fig, axes = style.panels(
        1, len(present), style.panel_width(len(present)), height, sharex=True, sharey=True
    )
    panels = [
        (axis, table[table["precision"] == precision])
        for axis, precision in zip(axes[0], present, strict=True)
    ]
    for (axis, part), precision in zip(panels, present, strict=True):
        axis.set_title(f"{precision}\n{facts(part, list(looks))}")
    return fig, panels


def facts(table: pd.DataFrame, models: Sequence[str]) -> str:
    """ "n = 60 / 58 facts", a range where more than three models would fill the line."""
    if len(models) <= 3:
        return style.counts(table, models)
    return f"n = {style.count(table['n'])} facts"


def line(axis: Axes, part: pd.DataFrame, x: str, look: style.Look, **changed: Any) -> None:
    """Mean against the column `x`, its interval as a band; `changed` as `Axes.plot` takes them."""
    part = part.sort_values(x)
    axis.plot(part[x], part["mean"], **({"color": look.colour, "ls": look.line} | changed))
    axis.fill_between(part[x], part["low"], part["high"], color=look.colour, alpha=0.18, lw=0)


def keys(looks: dict[str, style.Look], **changed: Any) -> list[Any]:
    """A legend entry a model, by default without its marker."""
    return [style.key(model, look, **({"marker": ""} | changed)) for model, look in looks.items()]


def legend(fig: Figure, handles: Sequence[Any]) -> None:
    """A legend above the panels; what it takes beyond half an inch makes the figure higher."""
    style.legend(fig, handles)
    height = fig.legends[0].get_window_extent().height / fig.dpi
    fig.set_figheight(fig.get_figheight() + max(0, height - 0.5))


def from_zero(axis: Axes, highest: Iterable[float]) -> None:
    """Let y show shares: from 0 to 1, or, if all values are small, to a little above the highest."""
    top = np.nanmax([*highest, 0.05])
    if top > 0.5:
        style.shares(axis)
    else:
        axis.set_ylim(-0.04 * top, 1.12 * top)


def log_axis(axis: Axes, values: pd.Series, room: float) -> None:
    """A log x axis from min / room to max x room, ticks at 1, 2 and 5 or, if many, at powers of 10;
    thousands as K, millions as M, billions as B."""
    low, high = values.min() / room, values.max() * room
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    exponents = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for steps in ((1, 2, 5), (1,)):
        ticks = [s * 10.0**e for e in exponents for s in steps if low <= s * 10.0**e <= high]
        if len(ticks) <= 8:
            break
    axis.set_xticks(ticks, [short(tick) for tick in ticks])
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.minorticks_off()


def short(number: float) -> str:
    """A round number for a tick: 0.5, 20, 500, "5K", "200M", "1B"."""
    for unit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= unit * (1 - 1e-9):
            return f"{number / unit:g}{letter}"
    return f"{number:g}"


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
    legend(fig, point_keys(looks))
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


def point_keys(looks: dict[str, style.Look]) -> list[Line2D]:
    """A legend entry a model, its marker without a line."""
    return [style.key(model, look, ls="") for model, look in looks.items()]


def name(text: str) -> str:
    """How a relation, or anything else that has a row, is called in a figure."""
    return style.printable(style.domain_name(text))


def grouped_bars(
    axis: Axes,
    table: pd.DataFrame,
    column: str,
    order: Sequence[str],
    looks: dict[str, style.Look],
) -> None:
    """Bars of mean with intervals: a group a value of `column`, a bar a model, n below each group."""
    groups = style.in_order(table[column], order)
    width = 0.8 / len(looks)
    for k, (model, look) in enumerate(looks.items()):
        part = table[table["model"] == model]
        x = part[column].map(groups.index).to_numpy() + (k - (len(looks) - 1) / 2) * width
        axis.bar(x, part["mean"], width * 0.92, color=look.colour, alpha=0.85)
        axis.errorbar(
            x, part["mean"], style.errors(part), fmt="none", ecolor="0.15", elinewidth=0.9
        )
    axis.set_xticks(range(len(groups)), style.under_groups(table, column, groups, list(looks)))
    axis.grid(False, axis="x")
