"""Figures 2 and 3 of paper 2 for more models than there are colours: each model has its own place.

Tables as `plots.time` says, which calls these; models stand in the tables' order, so that the pairs
of a profile stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from factrobust.plots import style
from factrobust.plots import time_style as parts

ROW = 0.17  # inches
RANDOM: dict[str, Any] = {"color": "black", "lw": 1.1, "ls": (0, (3, 1.5))}
PRECISION_LOOKS = dict(
    zip(
        parts.ORDER,
        (style.Look(c, "", ls) for c, ls in zip(style.COLOURS, style.LINES, strict=False)),
        strict=True,
    )
)


def too_many(models: Sequence[str]) -> bool:
    """Whether colours would repeat."""
    return len(models) > len(style.COLOURS)


def rates(
    table: pd.DataFrame, groups: Sequence[str], value: str, levels: Sequence[float]
) -> Figure:
    """Figure 2: a row a model, a panel a precision, dashed what random scores reach there."""
    models = list(dict.fromkeys(table["model"]))
    height = 1.0 + ROW * len(models)
    fig, axes = style.panels(1, len(groups), style.DOUBLE, height, sharex=True, sharey=True)
    for k, (axis, group) in enumerate(zip(axes[0], groups, strict=True)):
        own = table[table["precision"] == group].set_index("model").reindex(models)
        y = range(len(models))
        axis.errorbar(
            own["mean"], y, xerr=style.errors(own), fmt="o", color="0.2", ms=3, elinewidth=1
        )
        if levels:
            axis.axvline(levels[k], **RANDOM)
        axis.set_title(f"{group}\nn = {style.count(own['n'].dropna())} facts")
        axis.set_xlabel(value)
        axis.set_yticks(y, [style.model_name(model) for model in models])
    axes[0, 0].set(ylabel="model", ylim=(len(models) - 0.4, -0.6))  # the first model on top
    if levels:
        parts.legend(fig, [Line2D([], [], label="random", **RANDOM)])
    return fig


def logprob_by_position(table: pd.DataFrame) -> Figure:
    """Figure 3: a panel a model, a line a precision; the validity is shaded."""
    models = list(dict.fromkeys(table["model"]))
    fig, panels = style.model_panels(models, 1.55)
    precisions = style.in_order(table["precision"], parts.ORDER)
    for axis, model in zip(panels, models, strict=True):
        own = table[table["model"] == model]
        axis.axvspan(-0.5, 0.5, color="0.93", lw=0, zorder=0)
        for precision in precisions:
            parts.line(
                axis, own[own["precision"] == precision], "position", PRECISION_LOOKS[precision]
            )
        axis.set_title(f"{style.model_name(model)}\nn = {style.count(own['n'])} facts")
    fig.supxlabel("date $\\alpha$ (lengths of validity)", size=style.RC["axes.labelsize"])
    style.label_left(panels, "relative\nlog-probability (nats)")
    keys = [style.key(name, PRECISION_LOOKS[name], marker="") for name in precisions]
    parts.legend(fig, [*keys, Patch(color="0.9", label="validity")])
    return fig
