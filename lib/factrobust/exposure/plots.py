"""Figures of part 5, dose and response. Tables and errors as `plots.blocks` says."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from factrobust.context.plots import SOURCES
from factrobust.plots import blocks, style

SHADES = (
    "#CBC9E2",
    "#9E9AC8",
    "#756BB1",
    "#54278F",
    "#2D0A57",
)  # of ordered series, light to dark
NEVER = -1.5  # where exposure 0 stands on an axis of log2(exposure), apart from the others
EXPOSURE = "exposure (sentences that told the fact)"
# Series have the forms of `style.series` and other colours, those of no grown model (Tol's muted
# ones).
COLOURS = ("#332288", "#CC6677", "#999933", "#882255", style.GREY)
SERIES = [form._replace(colour=c) for c, form in zip(COLOURS, style.SERIES, strict=True)]
SAYS = {  # what an answer says, in the looks of part 4
    "its memory": SOURCES["parametric"],
    "the context": SOURCES["contextual"],
    "something else": SOURCES["other"],
}


def by_exposure(
    table: pd.DataFrame,
    ylabel: str,
    curves: pd.DataFrame | None = None,
    *,
    by: str = "model",
    panel: str | None = None,
    at: float | None = None,
    looks: blocks.Looks | None = None,
) -> Figure:
    """A measure against the exposure: points with intervals, one of `looks` each value of `by`.
    `table`: intervals by `by`, exposure and, if given, `panel`. `curves`, of
    `exposure.metrics.fitted_curves`, are lines; without them points are joined. Dashed: `at`,
    the share that a guess gets right."""
    blocks.check(table, by, panel, "exposure")
    series = dict(zip(style.ordered(table[by]), cycle(SERIES), strict=False))
    looks = looks or (style.looks(table[by]) if by == "model" else series)
    labels = ("exposure (sentences)" if panel else EXPOSURE, ylabel)
    width = None if panel else style.DOUBLE
    fig, parts = blocks.panels(
        table,
        panel,
        labels=labels,
        width=width,
        shares="y",
    )
    for axis, part in parts:
        drawn = part if curves is None else curves
        if panel:
            drawn = drawn[drawn[panel] == part[panel].iloc[0]]
        for k, (value, look) in enumerate(looks.items()):
            aside = style.aside(k, len(looks), min(0.12, 0.5 / len(looks)))
            points, line = (t[t[by] == value].sort_values("exposure") for t in (part, drawn))
            at_points = axis_place(points["exposure"]) + aside
            blocks.dots(
                axis,
                points,
                at_points,
                {value: look},
                by,
                elinewidth=0.9,
                ms=3.6,
            )
            line = line[line["exposure"] > 0]
            at_line = axis_place(line["exposure"]) + aside
            axis.plot(
                at_line,
                line["mean"],
                color=look.colour,
                ls=look.line,
                lw=1.1,
            )
        if at is not None:
            axis.axhline(at, **style.REFERENCE)
        powers = [4**k for k in range(12) if 4**k <= table["exposure"].max()]
        named = [0] * (0 in table["exposure"].values) + powers
        axis.set_xticks(axis_place(named), [str(number) for number in named])
    handles = blocks.keys(looks)
    if at is not None:
        handles.append(blocks.key("a guess", marker="", **style.REFERENCE))
    return blocks.legend(fig, handles)


def ordered_looks(values: Sequence[str]) -> dict[str, style.Look]:
    """Looks of at most five ordered values, such as ranges: from light to dark."""
    marked = zip(values, SHADES[-len(values) :], style.MARKERS, strict=False)
    return {value: style.Look(colour, marker) for value, colour, marker in marked}


def axis_place(exposure: ArrayLike) -> NDArray[np.float64]:
    """Where exposures stand on the axis."""
    number = np.asarray(exposure, float)
    return np.where(number > 0, np.log2(np.maximum(number, 1)), NEVER)
