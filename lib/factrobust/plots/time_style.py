"""What the figures of part 2 share: panels by precision, lines with bands, axes and legends.

Every table has mean, low, high and n (`statistics.interval_table`) once for each combination of its
keys, that is, of one prompt format a model. Further columns do no harm. KeyError for a missing
column, ValueError for an empty table or one with several rows for the same keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from factrobust.datasets.dates import PRECISIONS
from factrobust.metrics.time import GLOBAL
from factrobust.plots import style

ORDER = (*PRECISIONS, GLOBAL)
Panels = list[tuple[Axes, pd.DataFrame]]


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
    """A panel each precision of the table, side by side with the same axes, and its rows."""
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
