"""Figures of the Factual Robustness Score (paper 1, section 5): figures 4, 5, 8-13.

Conventions as in `plots.decoding`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from factrobust.plots import style
from factrobust.plots.style import DOUBLE, SINGLE

Array = NDArray[np.float64]
BIN = 0.05  # width of figure 13's histogram
H_LABEL, T_LABEL = "entropy $H$", "breaking temp. $t_b$"


@style.styled
def surface(entropy: ArrayLike, t_b: ArrayLike, raw: ArrayLike, scaled: ArrayLike) -> Figure:
    """Figure 8: f (equation 3) and FRS (equation 4) at d = 1 over entropy and breaking temperature.

    `entropy` is [h], `t_b` [t], `raw` (f) and `scaled` (FRS) are [t, h]. Above as surfaces, below
    the same as contours, to read values from.
    """
    h, t = np.meshgrid(np.asarray(entropy, dtype=float), np.asarray(t_b, dtype=float))
    fig, axes = style.panels(2, 2, DOUBLE, 5.6, height_ratios=(1.35, 1))
    for k, (name, values, step) in enumerate((("$f$", raw, 0.5), ("FRS", scaled, 0.1))):
        z = np.asarray(values, dtype=float)
        place = axes[0, k].get_subplotspec()
        axes[0, k].remove()
        solid: Any = fig.add_subplot(place, projection="3d")  # typed as flat axes otherwise
        solid.plot_surface(h, t, z, cmap="viridis", lw=0, rcount=60, ccount=60, rasterized=True)
        solid.set(xlabel=H_LABEL, ylabel=T_LABEL, zlabel=name)
        solid.set_title(f"{name} at $d$ = 1", y=0.97)
        solid.set(xticks=[0, 0.5, 1], yticks=[0, 1, 2])
        solid.tick_params(pad=-1)
        for side, pad in ((solid.xaxis, -4), (solid.yaxis, -4), (solid.zaxis, 0)):
            side.labelpad = pad
        solid.view_init(elev=24, azim=-125)
        _contours(axes[1, k], h, t, z, _levels(z, step))
        axes[1, k].set(xlabel=H_LABEL, ylabel=T_LABEL)
    return fig


@style.styled
def surfaces_by_d(entropy: ArrayLike, t_b: ArrayLike, scores: Mapping[float, ArrayLike]) -> Figure:
    """Figure 9: FRS over entropy [h] and breaking temperature [t], a panel each d.

    `scores` maps d to an array [t, h]; contours at the same levels in all panels.
    """
    h, t = np.meshgrid(np.asarray(entropy, dtype=float), np.asarray(t_b, dtype=float))
    arrays = {d: np.asarray(values, dtype=float) for d, values in scores.items()}
    levels = _levels(np.stack(list(arrays.values())), 0.1)
    fig, axes = style.panels(1, len(arrays), DOUBLE, 2.1, sharex=True, sharey=True)
    for axis, (d, z) in zip(axes[0], arrays.items(), strict=True):
        filled = _contours(axis, h, t, z, levels, every=2)
        axis.set(title=f"$d$ = {d:g}", xlabel=H_LABEL)
        axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes[0, 0].set_ylabel(T_LABEL)
    fig.colorbar(filled, ax=axes[0, -1], label="FRS", ticks=levels[::2])
    return fig


def _levels(z: Array, step: float) -> Array:
    low, high = np.floor(np.nanmin(z) / step + 1e-9), np.ceil(np.nanmax(z) / step - 1e-9)
    return np.round(np.arange(low, high + 1) * step, 6)


def _contours(axis: Axes, h: Array, t: Array, z: Array, levels: Array, every: int = 1) -> Any:
    """Filled contours, every so many of their lines drawn and labelled where there is room."""
    filled = axis.contourf(h, t, z, levels=levels, cmap="viridis")
    inside = [x for x in levels[1:-1:every] if np.nanmin(z) < x < np.nanmax(z)]
    middle = (levels[0] + levels[-1]) / 2
    colours = ["white" if x <= middle else "black" for x in inside]
    lines = axis.contour(h, t, z, levels=inside, colors=colours, linewidths=0.6)
    for level, segments in zip(lines.levels, lines.allsegs, strict=True):
        line = max(segments, key=len)
        x, y = line[len(line) // 2]
        across, up = (x - h.min()) / np.ptp(h), (y - t.min()) / np.ptp(t)
        if 0.05 < across < 0.95 and 0.07 < up < 0.93:  # at the very edge a label would be cut
            axis.clabel(lines, [level], manual=[(x, y)], fontsize=7, fmt="%.2g")
    return filled


@style.styled
def frs_scatter(points: pd.DataFrame, top: float = 2.0) -> Figure:
    """Figure 4: FRS against entropy, a panel a model; facts unbroken up to `top` marked apart.

    `points`: model, entropy, frs, t_b (inf: unbroken), d, the same in all rows (else ValueError).
    """
    style.need(points, "model", "entropy", "frs", "t_b", "d")
    d = points["d"].unique()
    if len(d) > 1:
        raise ValueError(f"Figure 4 shows one d, but the table holds {sorted(d)}: select one.")
    looks = style.looks(points["model"])
    fig, axes = style.model_panels(list(looks), 2.8)
    for axis, (model, look) in zip(axes, looks.items(), strict=True):
        own = points[points["model"] == model]
        drawn = own.dropna(subset=["entropy", "frs", "t_b"])
        whole = np.isinf(drawn["t_b"])
        broken: Any = {"marker": "o", "color": look.colour, "alpha": 0.6, "lw": 0}
        unbroken: Any = {"marker": "D", "facecolor": "none", "edgecolor": style.ORANGE, "lw": 0.9}
        for part, options in ((drawn[~whole], broken), (drawn[whole], unbroken)):
            axis.scatter(part["entropy"], part["frs"], s=14, clip_on=False, zorder=3, **options)
        axis.set_title(style.title(model, own, drawn, f", {whole.sum()} unbroken"))
        axis.set_xlabel("initial entropy $H$")
        style.shares(axis)
        style.shares(axis, "x")
    style.label_left(axes, f"FRS ($d$ = {d[0]:g})")
    style.legend(
        fig,
        [
            Line2D([], [], ls="", marker="o", color="0.4", label=f"breaks at $t_b$ ≤ {top:g}"),
            Line2D(
                [],
                [],
                ls="",
                marker="D",
                color=style.ORANGE,
                mfc="none",
                label=f"unbroken at $t$ = {top:g}: FRS set to 1",
            ),
        ],
    )
    return fig


@style.styled
def frs_by_d(table: pd.DataFrame, points: pd.DataFrame | None = None) -> Figure:
    """Figures 10-12: mean FRS with its interval by d, models side by side, in one domain.

    `table`: model, d, mean, low, high, n; `points`, single facts drawn faintly: model, d, frs.
    """
    style.need(table, "model", "d", "mean", "low", "high", "n")
    looks = style.looks(table["model"])
    ds = sorted(table["d"].unique())
    fig, axes = style.panels(1, 1, SINGLE, 2.8)
    axis, step, handles = axes[0, 0], 0.8 / len(looks), []
    for k, (model, look) in enumerate(looks.items()):
        shift = (k - (len(looks) - 1) / 2) * step
        if points is not None:
            own = points[(points["model"] == model) & points["d"].isin(ds)].dropna(subset=["frs"])
            x = own["d"].map(ds.index) + shift + style.jitter(len(own), step * 0.7)
            axis.scatter(x, own["frs"], s=5, color=look.colour, alpha=0.25, lw=0, rasterized=True)
        part = table[table["model"] == model]
        axis.errorbar(
            part["d"].map(ds.index) + shift, part["mean"], style.errors(part), fmt=look.marker,
            color=look.colour, mec="black", mew=0.6, ms=5, ecolor="black", elinewidth=1,
        )  # fmt: skip
        handles.append(style.key(model, look, style.count(part["n"]), ls=""))
    axis.set_xticks(range(len(ds)), [f"{d:g}" for d in ds])
    axis.set(xlabel="$d$, penalty of entropy", ylabel="FRS")
    axis.grid(False, axis="x")
    style.shares(axis)
    style.legend(fig, handles)
    return fig


@style.styled
def frs_density(points: pd.DataFrame, gap: tuple[float, float] | None = (0.8, 1.0)) -> Figure:
    """Figure 13: how FRS is distributed, a histogram in steps a model, a panel a domain.

    `points`: model, domain, frs. Bins (0, 0.05], (0.05, 0.1] ... hold a score on an edge below it,
    so that 0.8 stays left of the `gap`, the scores that no fact can have (None: without).
    """
    style.need(points, "model", "domain", "frs")
    looks = style.looks(points["model"])
    domains = style.in_order(points["domain"], style.DOMAINS)
    fig, axes = style.panels(
        1, len(domains), style.panel_width(len(domains)), 2.5, sharex=True, sharey=True
    )
    bins = round(1 / BIN)
    for axis, domain in zip(axes[0], domains, strict=True):
        n = []
        for model, look in looks.items():
            here = points[(points["domain"] == domain) & (points["model"] == model)]
            frs = here["frs"].dropna().to_numpy()
            n.append({"model": model, "n": len(frs)})
            if not len(frs):
                continue
            number = np.clip(np.ceil(frs * bins - 1e-9).astype(int) - 1, 0, bins - 1)
            share = np.bincount(number, minlength=bins) / len(frs)
            edges = np.linspace(0, 1, bins + 1)
            axis.stairs(share, edges, color=look.colour, ls=look.line, lw=1.3)
            axis.stairs(share, edges, color=look.colour, alpha=0.15, fill=True)
        if gap:
            axis.axvspan(gap[0], gap[1] - BIN, color="0.93", lw=0, zorder=0)
        axis.set_title(f"{style.domain_name(domain)}\n{style.counts(pd.DataFrame(n), list(looks))}")
        axis.set(xlabel="FRS", xlim=(0, 1.01))
        axis.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"])
    axes[0, 0].set_ylabel(f"share of facts\n(bins of {BIN:g})")
    axes[0, 0].set_ylim(bottom=0)
    handles = [style.key(m, k, marker="") for m, k in looks.items()]
    if gap:
        handles.append(Line2D([], [], color="0.88", lw=6, label="no score possible"))
    style.legend(fig, handles)
    return fig


@style.styled
def type_shares(table: pd.DataFrame) -> Figure:
    """Figure 5: share of the most robust among the most and least robust facts, by answer type.

    `table`: model, answer_type, mean, low, high, n. At 0.5 (dashed) a type is as robust as the rest.
    """
    style.need(table, "model", "answer_type", "mean", "low", "high", "n")
    looks = style.looks(table["model"])
    types = style.in_order(table["answer_type"], style.ANSWER_TYPES)
    fig, axes = style.panels(1, 1, SINGLE, 2.7)
    axis, step = axes[0, 0], 0.6 / len(looks)
    for k, (model, look) in enumerate(looks.items()):
        part = table[table["model"] == model]
        x = part["answer_type"].map(types.index) + (k - (len(looks) - 1) / 2) * step
        axis.errorbar(
            x, part["mean"], style.errors(part), fmt=look.marker, color=look.colour, ms=5, capsize=2
        )
    axis.axhline(0.5, color="0.4", lw=0.8, ls="--", zorder=1)
    under = style.under_groups(table, "answer_type", types, list(looks))
    axis.set_xticks(range(len(types)), [label.replace("n = ", "") for label in under])
    axis.set_xlim(-0.5, len(types) - 0.5)
    axis.set(xlabel="answer type, with n for each model", ylabel="share among the robust")
    axis.grid(False, axis="x")
    style.shares(axis)
    handles = [style.key(m, k, ls="") for m, k in looks.items()]
    style.legend(fig, handles)
    return fig
