"""Figures of part 4 about where answers come from (thesis, 4.2 and 5.3): figures 5 to 7, tables 13 and
14 drawn, and ours about true contexts and popularity.

A source has the same colour in every figure (`SOURCE_LOOKS`): orange for memory, blue for the
context. These two stay apart for all colour-blind readers; where colours are not printed, places and
lines tell them apart. Errors as `plots.wording_style` says.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from factrobust.metrics.grounding import SOURCES
from factrobust.metrics.others import KINDS
from factrobust.plots import style
from factrobust.plots import time_style as parts
from factrobust.plots import wording_style as rows
from factrobust.plots.style import DOUBLE, SINGLE

SOURCE_LOOKS = {  # no colours of the embedded models
    "parametric": style.Look(style.ORANGE, "o", "-"),
    "contextual": style.Look(style.SKY, "s", (0, (5, 1.5))),
    "other": style.Look("#9A9A9A", "^", (0, (1, 1.2))),
    "empty": style.Look("#D6D6D6", "D", (0, (5, 1.5, 1, 1.5))),
}
STACK = ("parametric", "other", "empty", "contextual")  # of a bar, from left to right
CONTEXTS = ("none", "true", "irrelevant", "false")
FACTS = {
    "all": "all facts",
    "known": "right without context",
    "unknown": "not right without context",
}


@style.styled
def source_shares(table: pd.DataFrame) -> Figure:
    """Figure 5 (table 8): where the answers come from, a bar a model.

    `table`, of `metrics.grounding_tables.counts_by` by model: model, source, share, low, high, n.
    The parametric share is read from the left, the contextual one from the right, each with its
    interval; what is neither lies between them. Models of no look of their own stand in the table's
    order.
    """
    _check(table, "model")
    models = style.in_order(table["model"], style.MODELS)
    fig, axes = style.panels(1, 1, DOUBLE, 0.95 + 0.36 * len(models))
    axis = axes[0, 0]
    _stack(axis, table, "model", models, room=0.05)
    n = [style.count(table.loc[table["model"] == model, "n"]) for model in models]
    labels = [f"{style.model_name(m)}\nn = {k} questions" for m, k in zip(models, n, strict=True)]
    rows.row_labels([axis], labels)
    parts.legend(fig, _patches(table))
    return fig


@style.styled
def source_by_category(table: pd.DataFrame, column: str = "category") -> Figure:
    """Figures 6 and 7 (tables 9 and 10): `source_shares` by category, a panel a model.

    `table`, of `metrics.grounding_tables.counts_by` by model and category: model, category, source,
    share, low, high, n. Categories stand in the table's order. `column` names another column whose
    values have the rows, such as "base_id".
    """
    _check(table, "model", column)
    models = style.in_order(table["model"], style.MODELS)
    groups = list(dict.fromkeys(table[column]))
    fig, axes = style.model_panels(models, 0.95 + 0.24 * len(groups), DOUBLE)
    for axis, model in zip(axes, models, strict=True):
        room = 0.05 * min(len(models), 3)
        _stack(axis, table[table["model"] == model], column, groups, room)
        axis.set_title(style.model_name(model))
    n = [style.count(table.loc[table[column] == group, "n"]) for group in groups]
    labels = [f"{rows.name(str(group))} (n = {k})" for group, k in zip(groups, n, strict=True)]
    rows.row_labels(axes, labels)
    style.label_left(axes, rows.name(column))
    parts.legend(fig, _patches(table))
    return fig


@style.styled
def kinds(table: pd.DataFrame) -> Figure:
    """Tables 13 and 14 drawn: the seven kinds of Other, a row a kind, models side by side.

    `table`, of `metrics.grounding_tables.counts_by` by model with value "kind": model, kind, count
    (written at the right), share, low, high, n (questions with an Other, in the legend).
    """
    style.need(table, "model", "kind", "count", "share", "low", "high", "n")
    style.once(table, "model", "kind")
    if odd := sorted(set(table["kind"]) - set(KINDS)):
        raise ValueError(f"The figure draws no kind {odd[0]!r}: write one of 1 to {max(KINDS)}.")
    looks = style.looks(table["model"])
    shown = {k: f"{k} {kind.label}" for k, kind in KINDS.items() if k in set(table["kind"])}
    fig, axes = style.panels(1, 1, DOUBLE, 1.1 + max(0.2, 0.08 + 0.12 * len(looks)) * len(shown))
    axis = axes[0, 0]
    points = table.rename(columns={"share": "mean"}).assign(kind=table["kind"].map(shown))
    heights = rows.points(axis, points, "kind", list(shown.values()), looks)
    for y, n, model in zip(heights, table["count"], table["model"], strict=True):
        axis.text(
            1.01, y, str(n), transform=axis.get_yaxis_transform(), va="center", fontsize=6.5,
            color=looks[model].colour,
        )  # fmt: skip
    rows.row_labels([axis], list(shown.values()))
    axis.set(xlabel="share of the other answers (at the right, their number)", ylabel="kind")
    axis.set_xlim(left=-0.02)
    n = {model: style.count(table.loc[table["model"] == model, "n"]) for model in looks}
    parts.legend(fig, [style.key(model, look, n[model], ls="") for model, look in looks.items()])
    return fig


@style.styled
def truth(table: pd.DataFrame) -> Figure:
    """Share of right answers by the kind of context, a row a kind, models side by side.

    `table`: model, context ("none", "true", "irrelevant" or "false"), mean, low, high (of right or
    wrong, see `statistics.interval_table`), n (facts); and, for a panel each, facts ("all", "known"
    or "unknown": whether the model is right without context; rows that are not there stay empty).
    """
    table = table if "facts" in table else table.assign(facts="all")
    style.need(table, "model", "context", "facts", "mean", "low", "high", "n")
    style.once(table, "model", "context", "facts")
    parts.known(table, "context", CONTEXTS)
    parts.known(table, "facts", FACTS)
    looks = style.looks(table["model"])
    contexts = style.in_order(table["context"], CONTEXTS)
    groups = style.in_order(table["facts"], tuple(FACTS))
    fig, axes = style.panels(
        1, len(groups), style.panel_width(len(groups)),
        1.2 + (0.16 + 0.1 * len(looks)) * len(contexts), sharex=True, sharey=True,
    )  # fmt: skip
    for axis, group in zip(axes[0], groups, strict=True):
        own = table[table["facts"] == group]
        rows.points(axis, own, "context", contexts, looks)
        axis.set(title=f"{FACTS[group]}\n{parts.facts(own, list(looks))}")
        axis.set_xlabel("share of right answers")
        style.shares(axis, "x")
    rows.row_labels(list(axes[0]), ["no" if name == "none" else name for name in contexts])
    axes[0, 0].set_ylabel("context")
    parts.legend(fig, rows.keys(looks))
    return fig


@style.styled
def by_popularity(table: pd.DataFrame, value: str = "share from the context") -> Figure:
    """A share in bins of popularity, a line a model with its interval as a band.

    `table`: model, popularity (where a bin stands: the mean of its objects, on the Zipf scale),
    mean, low, high, n. `value` is the label of y.
    """
    parts.intervals(table, "model", "popularity")
    looks = style.looks(table["model"])
    fig, axes = style.panels(1, 1, SINGLE, 2.6)
    axis = axes[0, 0]
    for model, look in looks.items():
        own = table[table["model"] == model]
        parts.line(axis, own, "popularity", look, marker=look.marker)
    parts.from_zero(axis, [*table["high"], *table["mean"]])
    axis.set(xlabel="popularity of the object (Zipf)", ylabel=value)
    axis.set_title(f"n = {style.count(table['n'])} questions a bin")
    parts.legend(fig, parts.keys(looks, marker=None))
    return fig


def _check(table: pd.DataFrame, *keys: str) -> None:
    style.need(table, *keys, "source", "share", "low", "high", "n")
    style.once(table, *keys, "source")
    parts.known(table, "source", SOURCES)


def _stack(axis: Axes, table: pd.DataFrame, column: str, groups: list[str], room: float) -> None:
    """A stacked bar of sources for each value of `column`, from the top.

    The outer sources have intervals, the parametric one's above the other's. Shares stand in the
    bars where `room` is left between intervals.
    """
    share, low, high = (
        table.pivot(index="source", columns=column, values=of).reindex(list(STACK), columns=groups)
        for of in ("share", "low", "high")
    )
    share, y = share.fillna(0), np.arange(len(groups))
    left = share.cumsum().shift(fill_value=0)
    left.loc["contextual"] = 1 - share.loc["contextual"]  # it ends at 1, whatever the rounding
    low, high = low.fillna(share), high.fillna(share)
    memory = low.loc["parametric"], high.loc["parametric"]
    context = 1 - high.loc["contextual"], 1 - low.loc["contextual"]
    for source in STACK:
        start, end = left.loc[source], left.loc[source] + share.loc[source]
        axis.barh(
            y, end - start, 0.74, start, color=SOURCE_LOOKS[source].colour, ec="white", lw=0.5
        )
        free = {"parametric": (start, memory[0]), "contextual": (context[1], end)}.get(
            source, (np.maximum(start, memory[1]), np.minimum(end, context[0]))
        )
        align = {"parametric": (0.01, "left"), "contextual": (0.99, "right")}
        for k, (group, a, b) in enumerate(zip(groups, *free, strict=True)):
            if b - a >= room:
                x, ha = align.get(source, ((a + b) / 2, "center"))
                text = f"{share.loc[source, group]:.0%}"
                axis.text(x, k, text, ha=ha, va="center", fontsize=6.5)
    for (a, b), shift in ((memory, -0.14), (context, 0.14)):
        axis.hlines(y + shift, a, b, color="black", lw=0.9)
    style.shares(axis, "x")
    axis.set_xlim(0, 1)
    axis.set_xlabel("share of answers")


def _patches(table: pd.DataFrame) -> list[Patch]:
    """A legend entry a source that occurs, as they lie in a bar."""
    found = set(table.loc[table["share"] > 0, "source"])
    return [
        Patch(color=SOURCE_LOOKS[source].colour, label=source)
        for source in STACK
        if source in found
    ]
