"""Figures of part 3 by relation (paper 3): how often right, and how consistent? Figures 1 to 3.

Tables and errors as `plots.wording_style` says.

Figures of part 3 about predicting correctness (paper 3, 4.2 and appendix A): figures 4 and 5, and
tables 5, 6 and 10 to 14 drawn.

Tables and errors as `plots.wording_style` says; where a table calls its numbers otherwise than mean,
low and high, the function names them.

Figures of part 3 beyond the paper: how well are right answers told from wrong ones?

Tables and errors as `plots.wording_style` says; where a table calls its numbers otherwise than mean,
low and high, the function names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from factrobust.metrics.regression import CATEGORY
from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE, SINGLE

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
    fig, axis = blocks.forest(table, "relation", order, "questions a relation")
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
        measured = axis.text(0, 0, blocks.name(relation), fontsize=6.5)
        size = np.array(measured.get_window_extent().size)
        measured.remove()
        aside = np.array([way * (far * pixels + size / 2) for far in DISTANCES for way in WAYS])
        boxes = _boxes(xy + aside, size)
        hidden = sum(_shared(boxes, other) for other in taken)
        outside = size.prod() - _shared(boxes, panel)
        best = int(np.argmin(hidden + 100 * outside + 8 * pixels * np.repeat(DISTANCES, len(WAYS))))
        taken.append(boxes[best])
        axis.annotate(
            blocks.name(relation), tuple(point), tuple(aside[best] / pixels), fontsize=6.5,
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
    blocks.legend(fig, blocks.point_keys(looks))
    return fig


@style.styled
def binned_correctness(table: pd.DataFrame) -> Figure:
    """Figure 5: share of right answers against each predictor, a row a relation.

    `table`, of `metrics.regression.binned_correctness`: model, relation, predictor, midpoint,
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
    blocks.legend(fig, [style.key(model, look) for model, look in looks.items()])
    return fig


@style.styled
def coefficients(table: pd.DataFrame) -> Figure:
    """Conditional coefficients of a regression with QCat (tables 10 to 14), a panel a predictor.

    `table`, of `metrics.regression.coefficients`: model, term, category, conditional,
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
    predictors = style.in_order(terms, list(blocks.PREDICTORS))
    categories = sorted(shown["category"].unique())
    height = 1.25 + (0.12 + 0.07 * len(looks)) * len(categories)
    fig, axes = style.panels(1, len(predictors), DOUBLE, height, sharex=True, sharey=True)
    for axis, term in zip(axes[0], predictors, strict=True):
        axis.axvline(0, color="0.3", lw=0.8, zorder=1)
        blocks.points(axis, shown[shown["term"] == term], "category", categories, looks)
        axis.set_title(blocks.PREDICTORS.get(term, term))
        axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    blocks.row_labels(axes[0], [blocks.name(category) or "all" for category in categories])
    axes[0, 0].set_ylabel("relation")
    fig.supxlabel("conditional coefficient (logits)", fontsize=8.5)
    handles = []
    for model, look in looks.items():
        n = style.count(table.loc[table["model"] == model, "n"])
        handles.append(style.key(model, look, n, ls=""))
    if shown["hollow"].any():
        label = "finite by the penalty only"
        handles.append(Line2D([], [], ls="", marker="o", color="0.3", mfc="white", label=label))
    blocks.legend(fig, handles)
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
        own = own.assign(y=blocks.points(axis, own, "predictors", sets, looks))
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
    blocks.row_labels(axes[0], sets)
    axes[0, 0].set_ylabel("predictors")
    baseline = Line2D([], [], color="0.3", label="baseline (gain in percent)", **mark)
    blocks.legend(fig, [*blocks.point_keys(looks), baseline])
    return fig


def _predictor_panels(
    table: pd.DataFrame, row_height: float
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]], list[str]]:
    """A panel a predictor with its rows of the table, and the relations, a row each in all panels."""
    predictors = style.in_order(table["predictor"], list(blocks.PREDICTORS))
    relations = sorted(table["relation"].unique())
    height = 0.85 + row_height * len(relations)
    width = style.panel_width(len(predictors))
    fig, axes = style.panels(1, len(predictors), width, height, sharey=True)
    panels = []
    for axis, predictor in zip(axes[0], predictors, strict=True):
        axis.set_xlabel(blocks.PREDICTORS.get(predictor, predictor))
        panels.append((axis, table[table["predictor"] == predictor]))
    blocks.row_labels(axes[0], [blocks.name(relation) for relation in relations])
    axes[0, 0].set_ylabel("relation")
    return fig, panels, relations


FEW = 4  # models whose cells have room for three lines


@style.styled
def measures(table: pd.DataFrame, value: str = "AUC", chance: float | None = 0.5) -> Figure:
    """How well single measures tell right from wrong answers, a row a measure, models side by side.

    `table`, of `metrics.calibration.ranking`: model, measure, mean, low, high, n; the highest mean
    over models on top. `value` is the label of x; `chance` is dashed.
    """
    fig, axis = blocks.forest(table, "measure", (), "questions")
    if chance is not None:
        axis.axvline(chance, zorder=1, **blocks.DASHED)
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
        axis.plot([0, 1], [0, 1], zorder=1, **blocks.DASHED)
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
    if len(names) > len(blocks.LINE_LOOKS):
        raise ValueError(
            f"{len(names)} scores are too many to tell apart: give at most {len(blocks.LINE_LOOKS)}."
        )
    table = table.rename(columns={"accuracy": "mean"})
    models = list(style.looks(table["model"]))
    fig, axes = style.model_panels(models, 2.7)
    for axis, model in zip(axes, models, strict=True):
        here = table[table["model"] == model]
        for overall in here.loc[here["coverage"] == 1, "mean"].unique():
            axis.axhline(overall, zorder=1, **blocks.DASHED)
        for name, look in zip(names, blocks.LINE_LOOKS, strict=False):
            own = here[here["score"] == name]
            blocks.line(axis, own, "coverage", look, marker=look.marker, ms=3)
        axis.set_title(f"{style.model_name(model)}\nn = {style.count(here['n'])} questions")
        axis.set_xlabel("share of questions answered")
        style.shares(axis, "x")
        blocks.from_zero(axis, [*table["high"], *table["mean"]])
    style.label_left(axes, "share of right answers")
    handles = [
        Line2D([], [], color=k.colour, marker=k.marker, ms=3, ls=k.line, label=n)
        for n, k in zip(names, blocks.LINE_LOOKS, strict=False)
    ]
    blocks.legend(fig, [*handles, Line2D([], [], label="all answered", **blocks.DASHED)])
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
    labels = ["\n".join(wrap(blocks.name(style.model_name(name)), 16)) for name in names]
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
