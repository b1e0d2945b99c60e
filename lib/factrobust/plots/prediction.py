"""Figures of part 3 about predicting correctness (paper 3, 4.2 and appendix A): figures 4 and 5, and
tables 5, 6 and 10 to 14 drawn.

Tables and errors as `plots.wording_style` says; where a table calls its numbers otherwise than mean,
low and high, the function names them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from factrobust.metrics.prediction import CATEGORY
from factrobust.plots import style
from factrobust.plots import time_style as parts
from factrobust.plots import wording_style as rows
from factrobust.plots.style import DOUBLE

MANY = 3000  # points from which on they are an image, in PDF files too


@style.styled
def predictor_distributions(table: pd.DataFrame) -> Figure:
    """Figure 4: how a predictor is distributed within each relation, a panel a predictor.

    `table`, of one model: model, relation, predictor (such as "scons"), value. A point a question,
    under a box from quartile to quartile with the median. Questions without a value are counted.
    """
    style.need(table, "model", "relation", "predictor", "value")
    if table["model"].nunique() > 1:
        raise ValueError(
            f"The figure is of one model, not of {table['model'].nunique()}: select one."
        )
    looks = style.looks(table["model"])
    (look,) = looks.values()
    fig, panels, relations = _predictor_panels(table, 0.2)
    for axis, part in panels:
        drawn = part.dropna(subset=["value"])
        groups = [drawn.loc[drawn["relation"] == relation, "value"] for relation in relations]
        for y, values in enumerate(groups):
            axis.plot(
                values, y + style.jitter(len(values), 0.6), ls="", marker="o", ms=2.2, mew=0,
                color=look.colour, alpha=0.5, rasterized=len(drawn) > MANY,
            )  # fmt: skip
        line: dict[str, Any] = {"color": "0.15", "linewidth": 0.8}
        axis.boxplot(
            [values.to_numpy(float) for values in groups], positions=range(len(relations)),
            orientation="horizontal", widths=0.62, showfliers=False, showcaps=False, whis=0,
            manage_ticks=False, boxprops=line, medianprops=line | {"linewidth": 1.6},
        )  # fmt: skip
        missing = f", {len(part) - len(drawn)} undefined" if len(drawn) < len(part) else ""
        axis.set_title(f"n = {len(drawn)} questions{missing}")
    parts.legend(fig, rows.keys(looks))
    return fig


@style.styled
def binned_correctness(table: pd.DataFrame) -> Figure:
    """Figure 5: share of right answers against each predictor, a row a relation.

    `table`, of `metrics.diagnostics.binned_correctness`: model, relation, predictor, midpoint,
    correct, low, high, n. Each shaded row reaches from 0 (below) to 1; points are bins.
    """
    style.need(table, "model", "relation", "predictor", "midpoint", "correct", "low", "high", "n")
    style.once(table, "model", "relation", "predictor", "midpoint")
    looks = style.looks(table["model"])
    fig, panels, relations = _predictor_panels(table, 0.4)
    for axis, part in panels:
        for row, relation in enumerate(relations):
            axis.axhspan(row - 0.4, row + 0.4, color="0.955", lw=0, zorder=0)
            for model, look in looks.items():
                own = part[(part["relation"] == relation) & (part["model"] == model)]
                own = own.sort_values("midpoint")
                mean, low, high = (row + 0.4 - 0.8 * own[c] for c in ("correct", "low", "high"))
                axis.vlines(own["midpoint"], low, high, color=look.colour, lw=0.7, alpha=0.45)
                axis.plot(
                    own["midpoint"], mean, color=look.colour, ls=look.line, marker=look.marker,
                    ms=2.8, lw=1,
                )  # fmt: skip
    last = panels[-1][0]
    for row in range(len(relations)):
        for share, y in ((1, row - 0.31), (0, row + 0.31)):
            last.text(
                1.01, y, str(share), transform=last.get_yaxis_transform(), va="center", fontsize=6
            )
    panels[0][0].set_ylabel("relation; within a row, share of right answers")
    parts.legend(fig, [style.key(model, look) for model, look in looks.items()])
    return fig


@style.styled
def coefficients(table: pd.DataFrame) -> Figure:
    """Conditional coefficients of a regression with QCat (tables 10 to 14), a panel a predictor.

    `table`, of `metrics.coefficients.coefficients`: model, term, category, conditional,
    conditional_low, conditional_high, conditional_problem, n. A row a category, with its own
    intercept and slopes. Hollow ones are "separated" or "collinear": finite by the penalty only.
    """
    names = [f"conditional{bound}" for bound in ("", "_low", "_high")]
    style.need(table, "model", "term", "category", *names, "conditional_problem", "n")
    style.once(table, "model", "term")
    shown = table[["model", "category", *names]].set_axis(
        ["model", "category", "mean", "low", "high"], axis=1
    )
    terms = [CATEGORY.sub("", term).strip(":") or "intercept" for term in table["term"]]
    shown = shown.assign(term=terms, hollow=table["conditional_problem"] != "")
    looks = style.looks(shown["model"])
    predictors = style.in_order(terms, list(rows.PREDICTORS))
    categories = sorted(shown["category"].unique())
    height = 1.25 + (0.12 + 0.07 * len(looks)) * len(categories)
    fig, axes = style.panels(1, len(predictors), DOUBLE, height, sharex=True, sharey=True)
    for axis, term in zip(axes[0], predictors, strict=True):
        axis.axvline(0, color="0.3", lw=0.8, zorder=1)
        rows.points(axis, shown[shown["term"] == term], "category", categories, looks)
        axis.set_title(rows.PREDICTORS.get(term, term))
        axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    rows.row_labels(axes[0], [rows.name(category) or "all" for category in categories])
    axes[0, 0].set_ylabel("relation")
    fig.supxlabel("conditional coefficient (logits)", fontsize=8.5)
    handles = []
    for model, look in looks.items():
        n = style.count(table.loc[table["model"] == model, "n"])
        handles.append(style.key(model, look, n, ls=""))
    if shown["hollow"].any():
        label = "finite by the penalty only"
        handles.append(Line2D([], [], ls="", marker="o", color="0.3", mfc="white", label=label))
    parts.legend(fig, handles)
    return fig


@style.styled
def predictive_gain(table: pd.DataFrame) -> Figure:
    """Accuracy of each set of predictors against the baseline (tables 5 and 6).

    `table`, of `metrics.held_out.ablation` or `performance`: model, predictors, categories, accuracy,
    low, high, baseline, gain (percent, written at the right), n_test. A panel each value of
    `categories`, a row a set. Where no regression could be fitted, there is a dash.
    """
    numbers = ["accuracy", "low", "high", "baseline", "gain", "n_test"]
    style.need(table, "model", "predictors", "categories", *numbers)
    style.once(table, "model", "predictors", "categories")
    table = table.rename(columns={"accuracy": "mean", "n_test": "n"})
    looks = style.looks(table["model"])
    sets, kinds = (list(dict.fromkeys(table[by])) for by in ("predictors", "categories"))
    height = 1.2 + (0.14 + 0.13 * len(looks)) * len(sets)
    width = style.panel_width(len(kinds))
    fig, axes = style.panels(1, len(kinds), width, height, sharex=True, sharey=True)
    mark: dict[str, Any] = {"ls": "", "marker": "|", "ms": 8, "mew": 1.5}
    for axis, kind in zip(axes[0], kinds, strict=True):
        own = table[table["categories"] == kind]
        own = own.assign(y=rows.points(axis, own, "predictors", sets, looks))
        for model, look in looks.items():
            mine = own[own["model"] == model]
            axis.plot(mine["baseline"], mine["y"], color=look.colour, **mark)
            for y, gain in zip(mine["y"], mine["gain"], strict=True):
                axis.text(
                    1.02, y, "–" if np.isnan(gain) else f"{gain:+.1f}%".replace("-", "−"),
                    transform=axis.get_yaxis_transform(), va="center", fontsize=6.5,
                    color=look.colour,
                )  # fmt: skip
        n = style.counts(own, list(looks), "test questions")
        axis.set(title=f"categories: {kind}\n{n}", xlabel="accuracy")
    rows.row_labels(axes[0], sets)
    axes[0, 0].set_ylabel("predictors")
    baseline = Line2D([], [], color="0.3", label="baseline (gain in percent)", **mark)
    parts.legend(fig, [*rows.keys(looks), baseline])
    return fig


def _predictor_panels(
    table: pd.DataFrame, row_height: float
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]], list[str]]:
    """A panel a predictor with its rows of the table, and the relations, a row each in all panels."""
    predictors = style.in_order(table["predictor"], list(rows.PREDICTORS))
    relations = sorted(table["relation"].unique())
    height = 0.85 + row_height * len(relations)
    width = style.panel_width(len(predictors))
    fig, axes = style.panels(1, len(predictors), width, height, sharey=True)
    panels = []
    for axis, predictor in zip(axes[0], predictors, strict=True):
        axis.set_xlabel(rows.PREDICTORS.get(predictor, predictor))
        panels.append((axis, table[table["predictor"] == predictor]))
    rows.row_labels(axes[0], [rows.name(relation) for relation in relations])
    axes[0, 0].set_ylabel("relation")
    return fig, panels, relations
