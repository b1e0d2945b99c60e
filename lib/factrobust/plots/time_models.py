"""Figures of part 2 that compare models: size, popularity and tuning (paper 2): figures 7, 8, 9.

Tables and errors as `plots.time_style` says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from factrobust.metrics.duels import METRICS, OUTCOMES
from factrobust.plots import style
from factrobust.plots import time_style as parts
from factrobust.plots.style import DOUBLE, SINGLE

KINDS: dict[str, dict[str, Any]] = {
    "pretrained": {"marker": "o", "ms": 5},
    "instruction-tuned": {"marker": "D", "ms": 5, "mfc": "white", "mew": 1.3},
}
POPULARITIES = {  # of what; no colour of an embedded model
    "subject": style.Look(style.GREEN, "^", (0, (5, 1.5))),
    "object": style.Look(style.PURPLE, "v", (0, (1, 1.2))),
    "fact": style.Look("0.15", "o", "-"),
}
OUTCOME_COLOURS = (style.RIGHT, "0.85", style.WRONG)  # of OUTCOMES
DUEL = ["first", "first_format", "second", "second_format"]
METRIC_NAMES = {"win_rate": "win rate", "robust": "robustness"}


@style.styled
def by_size(table: pd.DataFrame, value: str, fit: pd.DataFrame | None = None) -> Figure:
    """Figure 7: a value against the number of parameters, on a log axis, a point a model.

    `table`: model, parameters, kind ("pretrained" or "instruction-tuned"), mean, low, high, n;
    `value` is the label of y, such as "robustness". `fit`, drawn as a line: parameters, mean.
    Models of the same size stand side by side.
    """
    parts.intervals(table, "model")
    style.need(table, "parameters", "kind")
    parts.known(table, "kind", KINDS)
    table = table.reset_index(drop=True)
    looks = style.looks(table["model"])
    fig, axes = style.panels(1, 1, SINGLE if len(looks) <= 4 else DOUBLE, 2.6)
    axis = axes[0, 0]
    handles = []
    for model, look in looks.items():
        own = table[table["model"] == model]
        mark = {"color": look.colour, "ls": "", **KINDS[own["kind"].iloc[0]]}
        same = table.index[table["parameters"] == own["parameters"].iloc[0]]
        aside = 1.05 ** (same.get_loc(own.index[0]) - (len(same) - 1) / 2)
        axis.errorbar(
            own["parameters"] * aside,
            own["mean"],
            style.errors(own),
            elinewidth=1,
            capsize=2,
            **mark,
        )
        handles.append(style.key(model, look, **mark))
    for kind in style.in_order(table["kind"], list(KINDS)):
        handles.append(Line2D([], [], ls="", color="0.4", label=kind, **KINDS[kind]))
    if fit is not None:
        style.need(fit, "parameters", "mean")
        fit = fit.sort_values("parameters")
        axis.plot(fit["parameters"], fit["mean"], color="0.4", lw=1, ls="--", zorder=1)
        handles.append(Line2D([], [], color="0.4", lw=1, ls="--", label="fit"))
    near = table["parameters"].max() < 5 * table["parameters"].min()
    parts.log_axis(axis, table["parameters"], 2.5 if near else 1.6)
    axis.set(xlabel="parameters (log scale)", ylabel=value)
    axis.set_title(parts.facts(table, list(looks)))
    parts.from_zero(axis, [*table["high"], *table["mean"]])
    parts.legend(fig, handles)
    return fig


@style.styled
def by_popularity(table: pd.DataFrame, value: str) -> Figure:
    """Figure 8: a value in bins of popularity, of the subject, the object and the fact.

    `table`: model, what ("subject", "object", "fact"), popularity_bin (from 0, least popular, see
    `metrics.time.popularity_bins`), mean, low, high, n; `value` is the label of y. A panel a model;
    the three lines stand a little apart, so that intervals do not hide each other.
    """
    parts.intervals(table, "model", "what", "popularity_bin")
    parts.known(table, "what", POPULARITIES)
    models = list(style.looks(table["model"]))
    shown = style.in_order(table["what"], list(POPULARITIES))
    bins = sorted(table["popularity_bin"].unique())
    fig, axes = style.model_panels(models, 2.5)
    for axis, model in zip(axes, models, strict=True):
        here = table[table["model"] == model]
        for k, what in enumerate(shown):
            own, look = here[here["what"] == what].sort_values("popularity_bin"), POPULARITIES[what]
            x = own["popularity_bin"] + (k - (len(shown) - 1) / 2) * 0.14
            axis.plot(x, own["mean"], color=look.colour, ls=look.line, lw=1)
            axis.errorbar(
                x, own["mean"], style.errors(own), fmt=look.marker, color=look.colour, elinewidth=1
            )
        axis.set_title(f"{style.model_name(model)}\nn = {style.count(here['n'])} facts a bin")
        axis.set_xticks(bins, [str(k + 1) for k in bins])
        axis.set_xlabel("popularity (bin, 1 = least)")
        axis.grid(False, axis="x")
        parts.from_zero(axis, [*table["high"], *table["mean"]])
    style.label_left(axes, value)
    handles = [
        Line2D([], [], color=k.colour, marker=k.marker, ls=k.line, lw=1, label=f"of the {what}")
        for what, k in POPULARITIES.items()
        if what in shown
    ]
    parts.legend(fig, handles)
    return fig


@style.styled
def duel_shares(table: pd.DataFrame) -> Figure:
    """Figure 9: share of facts that a model wins, ties or loses against another, as stacked bars.

    `table`, of `metrics.duels.duel_shares`: first, first_format, second, second_format, precision,
    metric, outcome, share, n. A panel a metric; a row a duel and precision.
    """
    by = [*DUEL, "precision"]
    style.need(table, *by, "metric", "outcome", "share", "n")
    style.once(table, *by, "metric", "outcome")
    duels = list(table[DUEL].drop_duplicates().itertuples(index=False, name=None))
    precisions = style.in_order(table["precision"], parts.ORDER)
    rows = [(*duel, precision) for duel in duels for precision in precisions]
    at = [rows.index(row) for row in table[by].itertuples(index=False, name=None)]
    table = table.assign(row=at)
    labels = []
    for k, (*duel, precision) in enumerate(rows):
        who = "" if len(duels) == 1 else "{} /\n{}\n".format(*_sides(*duel))
        labels.append(f"{who}{precision} (n = {style.count(table.loc[table['row'] == k, 'n'])})")
    metrics = style.in_order(table["metric"], METRICS)
    height = 0.85 + (0.3 if len(duels) == 1 else 0.6) * len(rows)
    fig, axes = style.panels(1, len(metrics), DOUBLE, height, sharey=True)
    for axis, metric in zip(axes[0], metrics, strict=True):
        _stack(axis, table[table["metric"] == metric], len(rows))
        axis.set(title=METRIC_NAMES.get(metric, metric), xlabel="share of facts")
        style.shares(axis, "x")
        axis.set_xlim(0, 1)
        axis.grid(False)
    axes[0, 0].set_yticks(range(len(rows)), labels)
    axes[0, 0].set_ylim(len(rows) - 0.5, -0.5)  # the first row on top
    axes[0, 0].set_ylabel("precision" if len(duels) == 1 else "first / second")
    first, second = _sides(*duels[0]) if len(duels) == 1 else ("first", "second")
    says = (f"{first} better", "equal", f"{second} better")
    parts.legend(
        fig, [Patch(color=c, label=text) for c, text in zip(OUTCOME_COLOURS, says, strict=True)]
    )
    return fig


def _stack(axis: Axes, table: pd.DataFrame, rows: int) -> None:
    """One bar a row, of its shares of win, tie and lose; wide ones say their share."""
    left = np.zeros(rows)
    for outcome, colour in zip(OUTCOMES, OUTCOME_COLOURS, strict=True):
        own = table[table["outcome"] == outcome].set_index("row")["share"]
        share = own.reindex(range(rows)).fillna(0).to_numpy(dtype=float)
        axis.barh(range(rows), share, 0.75, left=left, color=colour)
        ink = "white" if colour == style.RIGHT else "black"
        for y, (x, width) in enumerate(zip(left, share, strict=True)):
            if width >= 0.12:  # what is narrower does not hold its number
                middle = x + width / 2
                axis.text(
                    middle, y, f"{width:.0%}", color=ink, fontsize=7, ha="center", va="center"
                )
        left += share


def _sides(first: str, first_format: str, second: str, second_format: str) -> tuple[str, str]:
    """What the two sides are called: the models, with the formats if they are the same model."""
    if first != second:
        return style.model_name(first), style.model_name(second)
    name = style.model_name(first)
    return f"{name} {first_format}", f"{name} {second_format}"
