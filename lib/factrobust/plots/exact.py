"""Figures of the exact breaking temperature, computed rather than sampled (beyond the paper).

Conventions as in `plots.decoding`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from factrobust.plots import style
from factrobust.plots.style import DOUBLE, SINGLE

TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]  # of temperatures on a log axis


@style.styled
def curves(
    table: pd.DataFrame, breaking: pd.DataFrame, samples: pd.DataFrame | None = None
) -> Figure:
    """P_t(answer) of a few facts against temperature, with the threshold 0.5 and t_b marked.

    `table`: model, fact_id, temperature, logprob (natural log of P_t), and, if the legend should
    not say fact_id, label; `breaking`: model, fact_id, t_b; `samples`, drawn as points with
    intervals: model, fact_id, temperature, mean, low, high. A panel a model; ValueError for more
    than seven facts, which no reader tells apart.
    """
    style.need(table, "model", "fact_id", "temperature", "logprob")
    style.need(breaking, "model", "fact_id", "t_b")
    models = list(style.looks(table["model"]))
    facts = list(dict.fromkeys(table["fact_id"]))
    if len(facts) > len(style.COLOURS):
        raise ValueError(f"{len(facts)} curves are too many to tell apart: give at most 7 facts.")
    fig, axes = style.model_panels(models, 2.8 if len(models) > 1 else 3.3)
    for axis, model in zip(axes, models, strict=True):
        for k, fact in enumerate(facts):
            colour, marker = style.COLOURS[k], style.MARKERS[k]
            own = _of(table, model, fact).sort_values("temperature")
            axis.plot(own["temperature"], np.exp(own["logprob"]), color=colour)
            if samples is not None:
                drawn = _of(samples, model, fact)
                # Side by side, so that intervals do not hide each other.
                x = drawn["temperature"] * (1 + 0.04 * (k - (len(facts) - 1) / 2))
                axis.errorbar(
                    x, drawn["mean"], style.errors(drawn), fmt=marker,
                    color=colour, ms=3, elinewidth=0.6, alpha=0.6,
                )  # fmt: skip
            t_b = _of(breaking, model, fact)["t_b"]
            t_b = t_b[np.isfinite(t_b)]
            axis.plot(
                t_b, np.full(len(t_b), 0.5), marker=marker, ms=7, mfc="white", mec=colour,
                mew=1.4, ls="", zorder=4,
            )  # fmt: skip
        axis.axhline(0.5, color="0.4", lw=0.8, ls="--", zorder=1)
        axis.set(title=style.model_name(model), xlabel="temperature $t$ (log scale)")
        _log_temperatures(axis, table["temperature"].min(), table["temperature"].max())
        style.shares(axis)
    style.label_left(axes, "probability of the answer")
    names = table.drop_duplicates("fact_id").set_index("fact_id")
    labels = names["label"] if "label" in names else pd.Series(facts, index=facts)
    handles = [
        Line2D([], [], color=c, marker=m, ms=3, label=style.printable(labels[fact]))
        for c, m, fact in zip(style.COLOURS, style.MARKERS, facts, strict=False)
    ]
    open_marker: Any = {"mfc": "white", "mec": "0.3", "ms": 7}
    handles.append(Line2D([], [], ls="", marker="o", label="exact $t_b$", **open_marker))
    if samples is not None:
        points: Any = {"marker": "o", "ms": 3, "color": "0.3", "alpha": 0.6}
        handles.append(Line2D([], [], ls="", label="sampled, with interval", **points))
    style.legend(fig, handles)
    return fig


@style.styled
def agreement(
    table: pd.DataFrame,
    x: str,
    y: str,
    labels: tuple[str, str],
    top: float | None = None,
    jitter: float = 0.0,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Two measures of the same facts against each other, with the diagonal; a panel a model.

    `table`: model and the columns named `x` and `y`; `labels` are the axes' labels. Values above
    `top` (inf too) are drawn in a band "> top" at the axis' end. `jitter` spreads the points along
    x by that much in all, for an x on a grid. `limits` of both axes; by default 0 to `top` or to
    the largest value.
    """
    style.need(table, "model", x, y)
    looks = style.looks(table["model"])
    finite = table[[x, y]].replace(np.inf, np.nan)
    low, high = limits or (0.0, top if top is not None else float(finite.max().max()))
    beyond = high + 0.13 * (high - low)
    width = min(DOUBLE, SINGLE * len(looks))
    fig, axes = style.model_panels(list(looks), width / min(len(looks), 3) + 0.15, width)
    for axis, (model, look) in zip(axes, looks.items(), strict=True):
        own = table[table["model"] == model]
        drawn = own.dropna(subset=[x, y])
        at = [
            drawn[c].where(drawn[c] <= high, beyond) if top is not None else drawn[c]
            for c in (x, y)
        ]
        both = (at[0] == beyond) & (at[1] == beyond)  # no more order there: spread along y as well
        shifts = style.jitter(len(drawn), jitter)
        up = np.where(both, style.jitter(len(drawn), jitter * 2.3)[::-1], 0)
        axis.plot([low, high], [low, high], color="0.4", lw=0.8, zorder=1)
        axis.scatter(
            at[0] + shifts, at[1] + up, s=14, marker=look.marker, color=look.colour, alpha=0.5, lw=0,
        )  # fmt: skip
        axis.set_title(style.title(model, own, drawn))
        axis.set_xlabel(labels[0])
        axis.set_box_aspect(1)
        ticks = [round(low + k * (high - low) / 4, 6) for k in range(5)]
        names = [f"{t:g}" for t in ticks]
        margin = 0.03 * (high - low)
        end = high + margin
        if top is not None:
            ticks, names, end = [*ticks, beyond], [*names, f"> {top:g}"], beyond + 2.5 * margin
            for line in (axis.axvline, axis.axhline):
                line(high + 0.065 * (high - low), color="0.7", lw=0.6)
        axis.set(xlim=(low - margin, end), ylim=(low - margin, end))
        axis.set_xticks(ticks, names)
        axis.set_yticks(ticks, names)
    style.label_left(axes, labels[1])
    return fig


@style.styled
def detours(table: pd.DataFrame) -> Figure:
    """Share of right samples that are detours: right by another text than the greedy answer.

    `table`: model, temperature, mean, low, high, n (facts with a right sample at the temperature).
    """
    style.need(table, "model", "temperature", "mean", "low", "high", "n")
    looks = style.looks(table["model"])
    fig, axes = style.panels(1, 1, SINGLE, 2.6)
    handles = []
    for model, look in looks.items():
        own = table[table["model"] == model]
        style.banded_line(axes[0, 0], own, look)
        handles.append(style.key(model, look, style.count(own["n"])))
    axes[0, 0].set(xlabel="temperature $t$", ylabel="share of right samples\nthat are detours")
    axes[0, 0].set_xlim(0, table["temperature"].max() + 0.1)
    axes[0, 0].set_ylim(bottom=0)
    style.legend(fig, handles)
    return fig


@style.styled
def beyond_two(points: pd.DataFrame, top: float = 2.0) -> Figure:
    """What lies beyond the paper's temperatures: share of facts up to a t_b, and up to an FRS.

    `points`: model, t_b (exact; inf never breaks), frs (equation 4 of it) and frs_published (1 for
    facts that break beyond `top`). Left, cumulated t_b; right, cumulated FRS, the published as a
    thin dashed line.
    """
    style.need(points, "model", "t_b", "frs", "frs_published")
    looks = style.looks(points["model"])
    fig, axes = style.panels(1, 2, DOUBLE, 2.6, sharey=True)
    handles = []
    for model, look in looks.items():
        own = points[points["model"] == model].dropna(subset=["t_b", "frs", "frs_published"])
        _cumulated(axes[0, 0], own["t_b"], color=look.colour, ls=look.line)
        _cumulated(axes[0, 1], own["frs"], color=look.colour, ls=look.line)
        _cumulated(
            axes[0, 1], own["frs_published"], color=look.colour, ls=look.line, lw=0.8, alpha=0.7
        )
        handles.append(style.key(model, look, str(len(own)), marker=""))
    finite = points["t_b"][np.isfinite(points["t_b"])]
    _log_temperatures(axes[0, 0], min([*finite, 0.5]), max([*finite, 2 * top]))
    axes[0, 0].axvline(top, color="0.2", lw=1, ls=":")
    axes[0, 0].set(xlabel="exact $t_b$ (log scale)", ylabel="share of facts at or below")
    axes[0, 1].set(xlabel="FRS", xlim=(0, 1.02))
    style.shares(axes[0, 0])
    handles += [
        Line2D([], [], color="0.3", lw=0.8, label="thin: FRS as published"),
        Line2D([], [], color="0.2", lw=1, ls=":", label=f"$t$ = {top:g}, highest sampled"),
    ]
    style.legend(fig, handles)
    return fig


@style.styled
def cost_bars(table: pd.DataFrame) -> Figure:
    """Forward-pass tokens a question by method, on a log axis from 1; the number beside each bar.

    `table`: method, tokens, and model if there are several (a bar each). Methods in given order.
    """
    style.need(table, "method", "tokens")
    methods = list(dict.fromkeys(table["method"]))
    split = "model" in table.columns
    looks = style.looks(table["model"]) if split else {"": style.Look("0.5", "", "-")}
    fig, axes = style.panels(1, 1, SINGLE, 0.9 + 0.2 * len(methods) * (len(looks) + 0.6))
    axis = axes[0, 0]
    height = 0.8 / len(looks)
    for k, (model, look) in enumerate(looks.items()):
        part = table[table["model"] == model] if split else table
        at = part["method"].map(methods.index).to_numpy() + (k - (len(looks) - 1) / 2) * height
        axis.barh(at, part["tokens"], height * 0.9, color=look.colour, alpha=0.85)
        for y, tokens in zip(at, part["tokens"], strict=True):
            axis.text(tokens * 1.15, y, f"{tokens:,.0f}", va="center", fontsize=7.5)
    axis.set_xscale("log")
    axis.set_xlim(1, table["tokens"].max() * 8)  # room for the numbers
    axis.set_yticks(range(len(methods)), methods)
    axis.invert_yaxis()
    axis.grid(False, axis="y")
    axis.set_xlabel("tokens a question")  # the ticks show the log scale
    if split:
        handles = [style.key(m, k, marker="", ls="-", lw=5) for m, k in looks.items()]
        style.legend(fig, handles)
    return fig


def _cumulated(axis, values: pd.Series, **kwargs: object) -> None:  # type: ignore[no-untyped-def]
    """The share of values at or below x; infinite ones count but are never reached."""
    finite = np.sort(values[np.isfinite(values)].to_numpy())
    y = np.arange(len(finite) + 1) / max(len(values), 1)
    # From below to beyond any axis.
    axis.step([0, *finite, 1e6], [*y, y[-1]], where="post", **kwargs)


def _log_temperatures(axis, low: float, high: float) -> None:  # type: ignore[no-untyped-def]
    axis.set_xscale("log")
    axis.set_xlim(low / 1.1, high * 1.1)
    shown = [t for t in TICKS if low / 1.1 <= t <= high * 1.1]
    axis.set_xticks(shown, [f"{t:g}" for t in shown])
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.minorticks_off()


def _of(table: pd.DataFrame, model: str, fact: str) -> pd.DataFrame:
    return table[(table["model"] == model) & (table["fact_id"] == fact)]
