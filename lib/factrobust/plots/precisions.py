"""Figures of part 2 about prompts and precisions (paper 2, 4.4 to 4.6): figures 5, 6 and transfer.

Tables and errors as `plots.time_style` says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from factrobust.datasets.dates import PRECISIONS
from factrobust.plots import style
from factrobust.plots import time_style as parts
from factrobust.plots.style import SINGLE

FILLS: tuple[dict[str, Any], ...] = (  # of the prompt formats; the colour stays the model's
    {"alpha": 0.85},
    {"facecolor": "white", "hatch": "//////"},
    {"alpha": 0.35},
)


@style.styled
def formats(table: pd.DataFrame, value: str = "robustness") -> Figure:
    """Figure 5: a value by precision under two or three prompt formats, side by side; a panel a
    model.

    `table`: model, prompt_format, precision, mean, low, high, n; formats in the order in which they
    first appear, ValueError for more than three; `value` is the label of y.
    """
    parts.intervals(table, "model", "prompt_format", "precision")
    tried = list(dict.fromkeys(table["prompt_format"]))
    if len(tried) > len(FILLS):
        raise ValueError(f"{len(tried)} formats are too many to tell apart: give at most 3.")
    looks = style.looks(table["model"])
    groups = style.in_order(table["precision"], parts.ORDER)
    fig, axes = style.model_panels(list(looks), 2.5)
    width = 0.8 / len(tried)
    for axis, (model, look) in zip(axes, looks.items(), strict=True):
        here = table[table["model"] == model]
        for k, name in enumerate(tried):
            own = here[here["prompt_format"] == name]
            x = own["precision"].map(groups.index).to_numpy() + (k - (len(tried) - 1) / 2) * width
            axis.bar(x, own["mean"], width * 0.9, **_bar(k, look.colour))
            axis.errorbar(
                x, own["mean"], style.errors(own), fmt="none", ecolor="0.15", elinewidth=0.9
            )
        axis.set_title(style.model_name(model))
        axis.set_xticks(range(len(groups)), style.under_groups(here, "precision", groups, [model]))
        axis.grid(False, axis="x")
        axis.set_xlabel("precision of the dates")
        parts.from_zero(axis, [*table["high"], *table["mean"]])
    style.label_left(axes, value)
    one = next(iter(looks.values())).colour if len(looks) == 1 else "0.3"
    parts.legend(fig, [Patch(label=name, **_bar(k, one)) for k, name in enumerate(tried)])
    return fig


def _bar(number: int, colour: str) -> dict[str, Any]:
    return {"facecolor": colour, "edgecolor": colour, "linewidth": 0.8} | FILLS[number]


@style.styled
def variance_ratio(table: pd.DataFrame) -> Figure:
    """Figure 6: variance between precisions, few-shot over standard prompt, a point a model.

    `table`: model, mean, low, high, n, of `metrics.precisions.variance_ratio`. Left of the line at
    1 the few-shot prompt brought the precisions together. A ratio that is NaN is said to be so.
    """
    parts.intervals(table, "model")
    looks = style.looks(table["model"])
    fig, axes = style.panels(1, 1, SINGLE, 0.75 + 0.27 * len(looks))
    axis, names = axes[0, 0], []
    for y, (model, look) in enumerate(looks.items()):
        own = table[table["model"] == model]
        axis.errorbar(
            own["mean"], [y], xerr=style.errors(own), fmt=look.marker, color=look.colour, ms=5,
            capsize=2, elinewidth=1,
        )  # fmt: skip
        if own["mean"].isna().all():
            axis.text(1.03, y, "undefined", va="center", fontsize=7.5, color="0.35")
        names.append(f"{style.model_name(model)}\n(n = {style.count(own['n'])})")
    axis.axvline(1, color="0.3", lw=0.9, ls="--", zorder=1)
    axis.set_yticks(range(len(looks)), names)
    axis.set_ylim(len(looks) - 0.5, -0.5)
    axis.set_xlim(0, max(1.25, 1.06 * np.nanmax([*table["high"], *table["mean"], 0])))
    axis.set_xlabel("variance between precisions,\nfew-shot / standard prompt")
    axis.grid(False, axis="y")
    return fig


@style.styled
def transfer(table: pd.DataFrame) -> Figure:
    """Of the facts robust at one precision (row), the share robust at another (column) as well.

    `table`: model, known_at, asked_at, mean, low, high, n, of `metrics.precisions.transfer`. A
    heatmap a model; each cell says mean, interval and the number of facts robust at its row.
    """
    import seaborn as sns  # a second, which only this figure needs

    parts.intervals(table, "model", "known_at", "asked_at")
    parts.known(table, "known_at", PRECISIONS)
    models = list(style.looks(table["model"]))
    fig, axes = style.model_panels(models, 2.6 if len(models) > 1 else 3.0)
    for axis, model in zip(axes, models, strict=True):
        own = table[table["model"] == model]
        cells = own.assign(text=[_cell(row) for row in own.itertuples(index=False)])
        share, text = (
            cells.pivot(index="known_at", columns="asked_at", values=name).reindex(
                index=list(PRECISIONS), columns=list(PRECISIONS)
            )
            for name in ("mean", "text")
        )
        sns.heatmap(
            share.astype(float), annot=text.fillna(""), fmt="", vmin=0, vmax=1, cmap="viridis",
            cbar=False, linewidths=1.5, ax=axis, annot_kws={"fontsize": 7},
        )  # fmt: skip
        axis.set_title(style.model_name(model))
        axis.set(xlabel="share also robust at", ylabel="")
        axis.grid(False)
        axis.tick_params(length=0, rotation=0)
    style.label_left(axes, "of the facts robust at")
    return fig


def _cell(row: Any) -> str:
    interval = "" if np.isnan(row.low) else f"\n{row.low:.2f}–{row.high:.2f}"
    return f"{row.mean:.2f}{interval}\nn = {row.n}"
