"""Figures of part 4: how well does perplexity tell where an answer came from (thesis, 6.1.3)?

Errors as `plots.wording_style` says; where a table calls its numbers otherwise than mean, low and
high, the function names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from factrobust.plots import style
from factrobust.plots import time_style as parts
from factrobust.plots import wording_style as rows
from factrobust.plots.calibration import DASHED
from factrobust.plots.calibration import SCORES as LINES  # looks of lines that are no models
from factrobust.plots.style import DOUBLE

LABELS = {  # of metrics.attribution.SCORES
    "log_p2_p3": "log P2 − log P3",
    "minus_log_p4": "−log P4",
    "minus_log_p3": "−log P3",
    "log_p1_p3": "log P1 − log P3",
    "log_p2_p0": "log P2 − log P0",
    "log_p0": "log P0",
    "minus_log_p1": "−log P1",
    "entropy": "entropy without context",
    "minus_entropy_context": "−entropy with context",
    "shift": "shift by the context",
}
MEASURES = {  # of metrics.attribution_errors.error_rates
    "fpr": "memory taken for context",
    "fnr": "context taken for memory",
    "false_discovery": "memory among “context”",
    "accuracy": "right decisions",
    "balanced_accuracy": "mean over both sources",
}
SHORT = {"false_discovery": "false discovery", "balanced_accuracy": "balanced accuracy"}


@style.styled
def roc(table: pd.DataFrame, auc: pd.DataFrame | None = None) -> Figure:
    """ROC curves of the scores that shall tell the source, a line a score, a panel a model.

    `table`, of `metrics.attribution.roc_curve`: model, score, threshold, fpr, tpr. `auc`, of
    `metrics.attribution.auc_table`, has the areas written in: model, score, auc, low, high, n. On
    the dashed line a score tells nothing. At most five scores.
    """
    style.need(table, "model", "score", "threshold", "fpr", "tpr")
    style.once(table, "model", "score", "threshold")
    names, models = list(dict.fromkeys(table["score"])), list(style.looks(table["model"]))
    if len(names) > len(LINES):
        raise ValueError(
            f"{len(names)} scores are too many to tell apart: give at most {len(LINES)}."
        )
    if auc is not None:
        style.need(auc, "model", "score", "auc", "low", "high", "n")
        style.once(auc, "model", "score")
    fig, axes = style.model_panels(models, 3.2 if len(models) < 3 else 2.8)
    for axis, model in zip(axes, models, strict=True):
        axis.plot([0, 1], [0, 1], zorder=1, **DASHED)
        for name, look in zip(names, LINES, strict=False):
            own = table[(table["model"] == model) & (table["score"] == name)]
            own = own.sort_values(["fpr", "tpr"])
            axis.plot(own["fpr"], own["tpr"], color=look.colour, ls=look.line)
        title = style.model_name(model)
        if auc is not None:
            here = auc[(auc["model"] == model) & auc["score"].isin(names)].set_index("score")
            title += f"\nn = {style.count(here['n'])} answers"
            texts = [_area(here.loc[name]) if name in here.index else "–" for name in names]
            axis.legend(
                handles=_lines(texts), loc="lower right", title="AUC", fontsize=6, title_fontsize=6,
                handlelength=1.8, handletextpad=0.5, borderaxespad=0.1, labelspacing=0.3,
            )  # fmt: skip
        axis.set(title=title, xlabel="memory taken for context (fpr)")
        style.shares(axis, "x")
        style.shares(axis)
    style.label_left(axes, "context recognised (tpr)")
    parts.legend(fig, _lines([LABELS.get(name, rows.name(name)) for name in names]))
    return fig


@style.styled
def auc(table: pd.DataFrame) -> Figure:
    """How well single scores tell the source, a row a score, models side by side.

    `table`, of `metrics.attribution.auc_table`: model, score, queries, auc, low, high, n (its range
    in the legend); the highest mean on top. With context ("counterfactual", "false", ...), a panel
    each. Hollow: the score costs a second query, without the context. Dashed: chance.
    """
    table = table if "context" in table else table.assign(context="")
    style.need(table, "model", "score", "queries", "context", "auc", "low", "high", "n")
    style.once(table, "model", "score", "context")
    table = table.rename(columns={"auc": "mean"}).assign(hollow=table["queries"] == 2)
    looks, contexts = style.looks(table["model"]), list(dict.fromkeys(table["context"]))
    ranked = table.groupby("score")["mean"].mean().sort_values(ascending=False, kind="stable")
    names = list(ranked.index)
    fig, axes = style.panels(
        1, len(contexts), style.panel_width(len(contexts)),
        1.1 + (0.12 + 0.07 * len(looks)) * len(names), sharex=True, sharey=True,
    )  # fmt: skip
    for axis, context in zip(axes[0], contexts, strict=True):
        axis.axvline(0.5, zorder=1, **DASHED)
        rows.points(axis, table[table["context"] == context], "score", names, looks)
        axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set(xlabel="AUC", title=f"{context} context" if context else None)
    rows.row_labels(list(axes[0]), [LABELS.get(name, rows.name(name)) for name in names])
    axes[0, 0].set_ylabel("score")
    n = {model: style.count(table.loc[table["model"] == model, "n"]) for model in looks}
    handles = [style.key(model, look, n[model], ls="") for model, look in looks.items()]
    if table["hollow"].any():
        label = "needs a query without context"
        handles.append(Line2D([], [], ls="", marker="o", color="0.3", mfc="white", label=label))
    parts.legend(fig, handles)
    return fig


@style.styled
def errors(table: pd.DataFrame) -> Figure:
    """How often thresholds on a score err, a row a measure, models side by side.

    `table`, of `metrics.attribution_errors.error_rates`: model, measure, mean, low, high, n. With
    context or else score, a panel each. Beside the accuracy, the baseline as a vertical mark.
    """
    table = table if {"context", "score"} & set(table) else table.assign(score="")
    column = "context" if "context" in table else "score"
    style.need(table, "model", "measure", column, "mean", "low", "high", "n")
    style.once(table, "model", "measure", column)
    looks, panels = style.looks(table["model"]), list(dict.fromkeys(table[column]))
    shown = [name for name in MEASURES if name in set(table["measure"])]
    height = 1.15 + max(0.38, 0.1 + 0.11 * len(looks)) * len(shown)
    fig, axes = style.panels(1, len(panels), DOUBLE, height, sharex=True, sharey=True)
    mark: dict[str, Any] = {"ls": "", "marker": "|", "ms": 9, "mew": 1.5}
    for axis, panel in zip(axes[0], panels, strict=True):
        own = table[table[column] == panel]
        drawn = own[own["measure"].isin(shown)]
        y = rows.points(axis, drawn, "measure", shown, looks)
        for model, look in looks.items():
            baseline = own.loc[(own["model"] == model) & (own["measure"] == "baseline"), "mean"]
            beside = y[(drawn["model"] == model) & (drawn["measure"] == "accuracy")]
            if len(baseline) and len(beside):
                axis.plot(baseline, beside, color=look.colour, **mark)
        title = LABELS.get(panel, rows.name(panel))
        axis.set(title=f"{panel} context" if column == "context" else title)
        axis.set_xlabel("share of answers")
        style.shares(axis, "x")
    n = [style.count(table.loc[table["measure"] == name, "n"]) for name in shown]
    labels = [
        f"{SHORT.get(name, name)} (n = {k})\n{MEASURES[name]}"
        for name, k in zip(shown, n, strict=True)
    ]
    rows.row_labels(list(axes[0]), labels)
    axes[0, 0].set_ylabel("measure")
    handles = rows.keys(looks)
    if "baseline" in set(table["measure"]):
        handles.append(Line2D([], [], color="0.3", label="accuracy of the baseline", **mark))
    parts.legend(fig, handles)
    return fig


def _area(row: pd.Series) -> str:
    return "–" if np.isnan(row["auc"]) else f"{row['auc']:.2f} ({row['low']:.2f}–{row['high']:.2f})"


def _lines(labels: Sequence[str]) -> list[Line2D]:
    """Legend entries of the scores, in the order of LINES."""
    return [
        Line2D([], [], color=look.colour, ls=look.line, label=label)
        for label, look in zip(labels, LINES, strict=False)
    ]
