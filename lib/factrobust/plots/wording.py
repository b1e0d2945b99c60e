"""Figures of part 3 by relation (paper 3): how often right, and how consistent? Figures 1 to 3.

Tables and errors as `plots.wording_style` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from factrobust.plots import style
from factrobust.plots import wording_style as rows

Array = NDArray[np.float64]
DISTANCES = (4, 10, 18, 28)  # of a name from its point, in points
ANGLES = np.radians([0, 180, 45, 135, 315, 225, 90, 270, 20, 160, 340, 200])
WAYS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)  # where it may lie, the best first
HALO = withStroke(linewidth=1.5, foreground="white")
LINE: dict[str, Any] = {"arrowstyle": "-", "lw": 0.4, "color": "0.4", "shrinkA": 0, "shrinkB": 2}


@style.styled
def by_relation(table: pd.DataFrame, value: str, order: Sequence[str] = ()) -> Figure:
    """Figures 1 and 2: a value by relation, a row a relation, models side by side.

    `table`: model, relation, mean, low, high, n; `value` is the label of x, such as "correctness".
    Relations in `order` stand on top, the others below, by their mean over models, highest first.
    """
    fig, axis = rows.forest(table, "relation", order, "questions a relation")
    style.shares(axis, "x")
    axis.set(xlabel=value, ylabel="relation")
    return fig


@style.styled
def correctness_by_consistency(table: pd.DataFrame) -> Figure:
    """Figure 3: correctness of each relation against its consistency, a panel a model.

    `table`: model, relation, and mean, low, high and n with the suffixes "_correct" and "_scons":
    two interval tables, merged. n_scons is not needed.
    """
    bounds = ["mean", "low", "high"]
    names = {of: [f"{bound}_{of}" for bound in bounds] for of in ("scons", "correct")}
    style.need(table, "model", "relation", *names["scons"], *names["correct"], "n_correct")
    style.once(table, "model", "relation")
    looks = style.looks(table["model"])
    fig, axes = style.model_panels(list(looks), 3.2)
    for axis, (model, look) in zip(axes, looks.items(), strict=True):
        own = table[table["model"] == model]
        x, y = (own[columns].set_axis(bounds, axis=1) for columns in names.values())
        axis.errorbar(
            x["mean"], y["mean"], style.errors(y), style.errors(x), fmt="none",
            ecolor=look.colour, elinewidth=0.6, alpha=0.35,
        )  # fmt: skip
        axis.plot(x["mean"], y["mean"], ls="", marker=look.marker, color=look.colour)
        n = f"n = {style.count(own['n_correct'])} questions a relation"
        axis.set(title=f"{style.model_name(model)}\n{n}", xlabel="consistency (SCons)")
    style.label_left(axes, "correctness")
    fig.draw_without_rendering()  # puts the panels into their places
    for axis, model in zip(axes, looks, strict=True):
        own = table[table["model"] == model].dropna(subset=["mean_scons", "mean_correct"])
        _name_points(fig, axis, own[["mean_scons", "mean_correct"]].to_numpy(), own["relation"])
    return fig


def _name_points(fig: Figure, axis: Axes, points: Array, relations: pd.Series) -> None:
    """Write each relation beside its point [point, 2], where it hides least of points and names.

    A name that finds no room beside its point stands further off, at the end of a thin line.
    """
    pixels = fig.dpi / 72  # a point
    panel = np.array(axis.get_window_extent().extents)
    at = axis.transData.transform(points)
    taken = [*_boxes(at, np.array([6.0, 6.0]) * pixels)]
    for point, xy, relation in zip(points, at, relations, strict=True):
        measured = axis.text(0, 0, rows.name(relation), fontsize=6.5)
        size = np.array(measured.get_window_extent().size)
        measured.remove()
        aside = np.array([way * (far * pixels + size / 2) for far in DISTANCES for way in WAYS])
        boxes = _boxes(xy + aside, size)
        hidden = sum(_shared(boxes, other) for other in taken)
        outside = size.prod() - _shared(boxes, panel)
        best = int(np.argmin(hidden + 100 * outside + 8 * pixels * np.repeat(DISTANCES, len(WAYS))))
        taken.append(boxes[best])
        axis.annotate(
            rows.name(relation), tuple(point), tuple(aside[best] / pixels), fontsize=6.5,
            textcoords="offset points", ha="center", va="center", in_layout=False,
            bbox={"pad": 0.5, "alpha": 0}, path_effects=[HALO],
            arrowprops=LINE if best >= len(WAYS) else None,
        )  # fmt: skip


def _boxes(middles: Array, size: Array) -> Array:
    """Boxes [box, (left, bottom, right, top)] of a size around their middles [box, 2]."""
    return np.hstack([middles - size / 2, middles + size / 2])


def _shared(boxes: Array, other: Array) -> Array:
    """The area that each box shares with the other one, [box]."""
    sides = np.minimum(boxes[:, 2:], other[2:]) - np.maximum(boxes[:, :2], other[:2])
    return np.clip(sides, 0, None).prod(axis=1)
