"""Figures of part 3 beyond the paper: how well are right answers told from wrong ones?

Tables and errors as `plots.wording_style` says; where a table calls its numbers otherwise than mean,
low and high, the function names them.
"""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from factrobust.plots import style
from factrobust.plots import time_style as parts
from factrobust.plots import wording_style as rows
from factrobust.plots.style import DOUBLE, SINGLE

SCORES = (  # of the lines that are no models: no colour of an embedded model
    style.Look(style.GREEN, "^", "-"),
    style.Look(style.PURPLE, "D", (0, (5, 1.5))),
    style.Look(style.ORANGE, "v", (0, (1, 1.2))),
    style.Look(style.SKY, "P", (0, (5, 1.5, 1, 1.5))),
    style.Look(style.GREY, "X", "-"),
)
DASHED: dict[str, Any] = {"color": "0.3", "lw": 0.9, "ls": (0, (3, 1.5))}
FEW = 4  # models whose cells have room for three lines


@style.styled
def measures(table: pd.DataFrame, value: str = "AUC", chance: float | None = 0.5) -> Figure:
    """How well single measures tell right from wrong answers, a row a measure, models side by side.

    `table`, of `metrics.calibration.ranking`: model, measure, mean, low, high, n; the highest mean
    over models on top. `value` is the label of x; `chance` is dashed.
    """
    fig, axis = rows.forest(table, "measure", (), "questions")
    if chance is not None:
        axis.axvline(chance, zorder=1, **DASHED)
    axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axis.set(xlabel=value, ylabel="measure")
    return fig


@style.styled
def calibration(table: pd.DataFrame) -> Figure:
    """Share of right answers against the predicted probability, in bins; a panel a model.

    `table`, of `metrics.calibration.calibration_curve`: model, bin, predicted, observed, low, high,
    n (questions of a bin, written below its point). On the dashed line predictions are calibrated.
    """
    style.need(table, "model", "bin", "predicted", "observed", "low", "high", "n")
    style.once(table, "model", "bin")
    table = table.rename(columns={"observed": "mean"})
    looks = style.looks(table["model"])
    fig, axes = style.model_panels(list(looks), 3)
    for axis, (model, look) in zip(axes, looks.items(), strict=True):
        own = table[table["model"] == model].sort_values("predicted")
        axis.plot([0, 1], [0, 1], zorder=1, **DASHED)
        axis.errorbar(
            own["predicted"], own["mean"], style.errors(own), color=look.colour,
            marker=look.marker, elinewidth=0.9,
        )  # fmt: skip
        for x, n in zip(own["predicted"], own["n"], strict=True):
            axis.text(x, -0.1, str(n), ha="center", va="center", fontsize=6.5, color="0.35")
        axis.set_title(f"{style.model_name(model)}\nbelow, the questions of each bin")
        axis.set_xlabel("predicted probability of a right answer")
        style.shares(axis, "x")
        style.shares(axis)
        axis.set_ylim(bottom=-0.15)
    style.label_left(axes, "share of right answers")
    return fig


@style.styled
def risk_coverage(table: pd.DataFrame) -> Figure:
    """Accuracy when only the most certain questions are answered, a line a score, a panel a model.

    `table`, of `metrics.calibration.risk_coverage`: model, score, coverage, accuracy, low, high, n.
    Dashed: the accuracy at coverage 1, of all questions. At most five scores.
    """
    style.need(table, "model", "score", "coverage", "accuracy", "low", "high", "n")
    style.once(table, "model", "score", "coverage")
    names = list(dict.fromkeys(table["score"]))
    if len(names) > len(SCORES):
        raise ValueError(
            f"{len(names)} scores are too many to tell apart: give at most {len(SCORES)}."
        )
    table = table.rename(columns={"accuracy": "mean"})
    models = list(style.looks(table["model"]))
    fig, axes = style.model_panels(models, 2.7)
    for axis, model in zip(axes, models, strict=True):
        here = table[table["model"] == model]
        for overall in here.loc[here["coverage"] == 1, "mean"].unique():
            axis.axhline(overall, zorder=1, **DASHED)
        for name, look in zip(names, SCORES, strict=False):
            own = here[here["score"] == name]
            parts.line(axis, own, "coverage", look, marker=look.marker, ms=3)
        axis.set_title(f"{style.model_name(model)}\nn = {style.count(here['n'])} questions")
        axis.set_xlabel("share of questions answered")
        style.shares(axis, "x")
        parts.from_zero(axis, [*table["high"], *table["mean"]])
    style.label_left(axes, "share of right answers")
    handles = [
        Line2D([], [], color=k.colour, marker=k.marker, ms=3, ls=k.line, label=n)
        for n, k in zip(names, SCORES, strict=False)
    ]
    parts.legend(fig, [*handles, Line2D([], [], label="all answered", **DASHED)])
    return fig


@style.styled
def transfer(table: pd.DataFrame) -> Figure:
    """AUC of a regression fitted on one model or relation (row) where it predicts another (column).

    `table`, rows of `metrics.calibration.scores` by fitted_on and predicted whose measure is "auc":
    fitted_on, predicted, mean, low, high, n. Blue is above 0.5, red below, grey undefined; framed
    cells predict themselves, out of fold. Up to four rows, cells tell interval and n as well.
    """
    import seaborn as sns  # a second, which only this figure needs

    style.need(table, "fitted_on", "predicted", "mean", "low", "high", "n")
    style.once(table, "fitted_on", "predicted")
    both = [*table["fitted_on"], *table["predicted"]]
    names = style.in_order(both, style.MODELS, rest_sorted=True)
    few = len(names) <= FEW
    defined = table.dropna(subset=["mean"])
    defined = defined.assign(text=[_cell(row, few) for row in defined.itertuples(index=False)])
    mean, text = (
        defined.pivot(index="fitted_on", columns="predicted", values=of).reindex(
            index=names, columns=names
        )
        for of in ("mean", "text")
    )
    fig, axes = style.panels(1, 1, SINGLE if few else DOUBLE, 2.9 if few else 5.8)
    axis = axes[0, 0]
    axis.set_facecolor("0.93")
    sns.heatmap(
        mean.astype(float), annot=text.astype(object).fillna(""), fmt="", vmin=0, vmax=1, cmap="RdBu", cbar=False,
        linewidths=1, ax=axis, annot_kws={"fontsize": 7 if few else 6},
    )  # fmt: skip
    for k in range(len(names)):
        axis.add_patch(Rectangle((k + 0.02, k + 0.02), 0.96, 0.96, fill=False, lw=1.2))
    labels = ["\n".join(wrap(rows.name(style.model_name(name)), 16)) for name in names]
    axis.set_xticklabels(labels, rotation=0 if len(names) <= 2 else 90)
    axis.set_yticklabels(labels, rotation=0)
    axis.set_title(f"AUC, n = {style.count(defined['n'])} questions")
    axis.set(xlabel="predicted", ylabel="fitted on")
    axis.tick_params(length=0)
    axis.grid(False)
    return fig


def _cell(row: Any, full: bool) -> str:
    interval = "" if np.isnan(row.low) else f"\n{row.low:.2f}–{row.high:.2f}"
    return f"{row.mean:.2f}" + (f"{interval}\nn = {row.n}" if full else "")
