"""Figures of part 2 beyond the paper: how much of robustness is luck, small margins, or rounding?

Tables and errors as `plots.time_style` says.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from factrobust.datasets.dates import PRECISIONS
from factrobust.metrics.near_misses import SIDES
from factrobust.plots import style
from factrobust.plots import time_style as parts
from factrobust.plots.style import DOUBLE, SINGLE

WHERE = dict(zip(SIDES, ("before the start", "after the end"), strict=True))
WIDE = 8  # numbers of dates that span at least this factor get a log axis
BINS = 41  # of a histogram around 0: odd, so that 0 is the middle of one


@style.styled
def margin_curves(table: pd.DataFrame) -> Figure:
    """Share of facts robust by the margin that is required, a line a model, a panel a precision.

    `table`: model, precision, required (nats, see `metrics.luck.margin_curves`), mean, low, high,
    n. At 0 (dashed) it is the paper's robustness.
    """
    parts.intervals(table, "model", "precision", "required")
    looks = style.looks(table["model"])
    fig, panels = parts.precision_panels(table, looks, 2.5)
    for axis, here in panels:
        axis.axvline(0, color="0.4", lw=0.8, ls="--", zorder=1)
        for model, look in looks.items():
            parts.line(axis, here[here["model"] == model], "required", look)
        axis.set_xlabel("required margin (nats)")
        axis.margins(x=0)
        style.shares(axis)
    panels[0][0].set_ylabel("share of facts robust")
    parts.legend(fig, parts.keys(looks))
    return fig


@style.styled
def by_number_of_dates(table: pd.DataFrame, chance: pd.DataFrame | None = None) -> Figure:
    """Robustness by the number of incorrect dates tested, a line a model, a panel a precision.

    `table`: model, precision, n_incorrect, mean, low, high (of robust, see
    `metrics.luck.by_number_of_dates`), n. `chance`, dotted: precision, n_incorrect, mean (of its
    column chance).
    """
    parts.intervals(table, "model", "precision", "n_incorrect")
    looks = style.looks(table["model"])
    fig, panels = parts.precision_panels(table, looks, 2.5)
    handles = parts.keys(looks, marker=None)
    tested = sorted(table["n_incorrect"].unique())
    log = tested[-1] / tested[0] >= WIDE
    for axis, here in panels:
        for model, look in looks.items():
            parts.line(axis, here[here["model"] == model], "n_incorrect", look, marker=look.marker)
        if chance is not None:
            style.once(chance, "precision", "n_incorrect")
            own = chance[chance["precision"].isin(here["precision"])].sort_values("n_incorrect")
            axis.plot(own["n_incorrect"], own["mean"], color="black", lw=1, ls=":")
        axis.set_xlabel("incorrect dates tested" + (" (log scale)" if log else ""))
        if log:
            parts.log_axis(axis, table["n_incorrect"], 1.15)
        if len(tested) <= 8:
            axis.set_xticks(tested, [str(k) for k in tested])
        style.shares(axis)
    panels[0][0].set_ylabel("share of facts robust")
    if chance is not None:
        handles.append(Line2D([], [], color="black", lw=1, ls=":", label="chance"))
    parts.legend(fig, handles)
    return fig


@style.styled
def nearest_misses(table: pd.DataFrame, tested: pd.DataFrame | None = None) -> Figure:
    """Share of facts whose nearest miss lies within so many years of the validity, before the start
    (left) and after the end (right); a row of panels a precision.

    `table`: model, precision, side ("before", "after"), years (above 0), mean, low, high, n: for
    each of some years, the mean over the rows of `metrics.near_misses.nearest_misses` of
    |years_off| <= years, where facts without a miss count as False. `tested`, dotted, the same of
    nearest_tested, which no miss can precede: precision, side, years, mean.
    """
    parts.intervals(table, "model", "precision", "side", "years")
    parts.known(table, "side", SIDES)
    looks = style.looks(table["model"])
    precisions = style.in_order(table["precision"], PRECISIONS)
    height = 0.55 + 1.75 * len(precisions)
    fig, axes = style.panels(len(precisions), 2, DOUBLE, height, sharex="col", sharey=True)
    for row, precision in zip(axes, precisions, strict=True):
        for axis, side in zip(row, SIDES, strict=True):
            here = table[(table["precision"] == precision) & (table["side"] == side)]
            for model, look in looks.items():
                parts.line(axis, here[here["model"] == model], "years", look)
            if tested is not None:
                style.need(tested, "precision", "side", "years", "mean")
                style.once(tested, "precision", "side", "years")
                own = tested[(tested["precision"] == precision) & (tested["side"] == side)]
                own = own.sort_values("years")
                axis.plot(own["years"], own["mean"], color="black", lw=1, ls=":")
            axis.set_title(f"{precision}, {WHERE[side]} ({parts.facts(here, list(looks))})")
            parts.log_axis(axis, table["years"], 1.05)
            style.shares(axis)
        row[0].set_ylabel("share with a miss\nwithin so many years")
    fig.supxlabel("years from the validity (log scale)", fontsize=8.5)
    axes[0, 0].invert_xaxis()  # of the whole column: time runs to the right
    handles = parts.keys(looks)
    if tested is not None:
        handles.append(Line2D([], [], color="black", lw=1, ls=":", label="nearest date tested"))
    parts.legend(fig, handles)
    return fig


@style.styled
def dtype_difference(
    table: pd.DataFrame, names: tuple[str, str] = ("bfloat16", "float32")
) -> Figure:
    """How much a coarser dtype moves log-probabilities: a histogram in steps a model.

    `table`, a row a statement: model, difference (nats, first minus second of `names`).
    """
    style.need(table, "model", "difference")
    looks = style.looks(table["model"])
    fig, axes = style.panels(1, 1, SINGLE, 2.5)
    axis, handles = axes[0, 0], []
    reach = max(float(table["difference"].abs().max()), 1e-9)
    edges = np.linspace(-reach, reach, BINS + 1)
    for model, look in looks.items():
        own = table.loc[table["model"] == model, "difference"].to_numpy(dtype=float)
        share = np.histogram(own, edges)[0] / len(own)
        axis.stairs(share, edges, color=look.colour, ls=look.line, lw=1.3)
        axis.stairs(share, edges, color=look.colour, alpha=0.15, fill=True)
        handles.append(style.key(model, look, str(len(own)), marker=""))
    axis.axvline(0, color="0.4", lw=0.8, ls="--", zorder=1)
    axis.set_xlabel(f"log-probability, {names[0]} − {names[1]} (nats)")
    axis.set_ylabel(f"share of statements\n(bins of {2 * reach / BINS:.2g} nats)")
    axis.set_ylim(bottom=0)
    parts.legend(fig, handles)
    return fig
