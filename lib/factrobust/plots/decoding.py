"""Figures of what temperature does to known facts (paper 1, section 4): figures 1, 2, 3, 6, 7.

Each function takes ready tables and returns a closed matplotlib Figure. Columns mean, low, high and
n are those of `statistics.interval_table`; further columns do no harm. KeyError for a missing
column, ValueError for an empty table.

Figures of the Factual Robustness Score (paper 1, section 5): figures 4, 5, 8-13.

Conventions as in `plots.decoding`.

Figures of the exact breaking temperature, computed rather than sampled (beyond the paper).

Conventions as in `plots.decoding`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter
from numpy.typing import ArrayLike, NDArray

from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE, SINGLE

SHOWN = (0.2, 1.0, 1.6, 2.0)  # temperatures of figures 2, 6 and 7


@style.styled
def known_shares(by_domain: pd.DataFrame, by_type: pd.DataFrame) -> Figure:
    """Share of facts that each model answers exactly, by domain and by answer type (4.1.2).

    `by_domain`: model, domain, mean, low, high, n; `by_type`: the same with answer_type.
    """
    style.need(by_domain, "model", "domain", "mean", "low", "high", "n")
    style.need(by_type, "model", "answer_type", "mean", "low", "high", "n")
    looks = style.looks([*by_domain["model"], *by_type["model"]])
    fig, axes = style.panels(1, 2, DOUBLE, 2.5, sharey=True)
    blocks.grouped_bars(axes[0, 0], by_domain, "domain", style.DOMAINS, looks)
    blocks.grouped_bars(axes[0, 1], by_type, "answer_type", style.ANSWER_TYPES, looks)
    axes[0, 0].set(ylabel="share answered exactly", xlabel="domain")
    axes[0, 1].set(xlabel="answer type")
    axes[0, 0].set_ylim(bottom=0)
    style.legend(fig, [Patch(color=k.colour, label=style.model_name(m)) for m, k in looks.items()])
    return fig


@style.styled
def accuracy_by_temperature(table: pd.DataFrame, exact: pd.DataFrame | None = None) -> Figure:
    """Figure 1: accuracy of known facts against temperature, a line a model, a panel a domain.

    `table`: model, domain, temperature, mean, low, high, n. `exact`, drawn dashed and without
    markers: model, domain, temperature, mean (of P_t of the greedy answer).
    """
    style.need(table, "model", "domain", "temperature", "mean", "low", "high", "n")
    looks = style.looks(table["model"])
    domains = style.in_order(table["domain"], style.DOMAINS)
    fig, axes = style.panels(
        1,
        len(domains),
        style.panel_width(len(domains)),
        2.6 if len(domains) > 1 else 3,
        sharey=True,
    )
    for axis, domain in zip(axes[0], domains, strict=True):
        here = table[table["domain"] == domain]
        for model, look in looks.items():
            style.banded_line(axis, here[here["model"] == model], look, dashed=exact is None)
            if exact is not None:
                own = exact[(exact["domain"] == domain) & (exact["model"] == model)]
                own = own.sort_values("temperature")
                axis.plot(own["temperature"], own["mean"], "--", color=look.colour, lw=1)
        axis.set_title(f"{style.domain_name(domain)}\n{style.counts(here, list(looks))}")
        axis.set(xlabel="temperature $t$", xlim=(0, table["temperature"].max() + 0.1))
        style.shares(axis)
    axes[0, 0].set_ylabel("share of samples correct")
    handles = [style.key(m, k, **({} if exact is None else {"ls": "-"})) for m, k in looks.items()]
    if exact is not None:
        handles.append(
            Line2D([], [], color="0.3", ls="--", lw=1, label="exact: $P_t$ of the answer")
        )
    style.legend(fig, handles)
    return fig


@style.styled
def certainty_bins(table: pd.DataFrame, temperatures: Sequence[float] | None = None) -> Figure:
    """Figures 2, 6, 7: how certain sampled answers are, right and wrong ones stacked, in one domain.

    `table`: model, temperature, bin (lower edge), correct, share, n (responses), of ten bins of
    width 0.1 (`metrics.decoding.certainty_bins`). Rows are models, columns `temperatures`, by
    default 0.2, 1.0, 1.6 and 2.0 where the table has them, else the table's first four.
    """
    style.need(table, "model", "temperature", "bin", "correct", "share", "n")
    tried = sorted(table["temperature"].unique())
    if temperatures is None:
        temperatures = [t for t in SHOWN if t in tried] or tried[:4]
    models = list(style.looks(table["model"]))
    height = 0.75 + 1.25 * len(models)
    fig, axes = style.panels(
        len(models), len(temperatures), DOUBLE, height, sharex=True, sharey=True
    )
    edges = np.round(np.arange(10) / 10, 1)
    for row, model in zip(axes, models, strict=True):
        for axis, t in zip(row, temperatures, strict=True):
            here = table[(table["model"] == model) & np.isclose(table["temperature"], t)]
            bottom = np.zeros(10)
            for correct, colour in ((True, style.RIGHT), (False, style.WRONG)):
                part = here[here["correct"] == correct]
                height_of = dict(zip(part["bin"].round(1), part["share"], strict=True))
                share = np.array([height_of.get(edge, 0.0) for edge in edges])
                axis.bar(edges + 0.05, share, 0.088, bottom=bottom, color=colour)
                bottom += share
            n = f"n = {style.count(here['n'])}"
            axis.set_title(f"$t$ = {t:g}\n{n}" if model == models[0] else n)
            axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            axis.grid(False, axis="x")
        row[0].set_ylabel(f"{style.model_name(model)}\nshare of samples", fontsize=8)
    axes[0, 0].set_ylim(0, 1)
    fig.supxlabel("certainty: mean probability of the answer's tokens", fontsize=8.5)
    style.legend(
        fig, [Patch(color=style.RIGHT, label="right"), Patch(color=style.WRONG, label="wrong")]
    )
    return fig


@style.styled
def entropy_by_breaking(
    points: pd.DataFrame,
    means: pd.DataFrame,
    correlations: pd.DataFrame | None = None,
    top: float = 2.0,
) -> Figure:
    """Figure 3: entropy of the greedy answer by the temperature that breaks the fact.

    `points`: model, entropy, t_b on the temperatures tried, inf for a fact that did not break up to
    `top`; `means`: model, t_b, mean, low, high of the entropy; `correlations`: model, mean, low,
    high of Pearson's r, for the panels' titles.
    """
    style.need(points, "model", "entropy", "t_b")
    style.need(means, "model", "t_b", "mean", "low", "high")
    looks = style.looks(points["model"])
    unbroken = top * 1.2  # where facts without t_b are drawn
    fig, axes = style.model_panels(list(looks), 2.8)
    for axis, (model, look) in zip(axes, looks.items(), strict=True):
        own = points[points["model"] == model]
        drawn = own.dropna(subset=["t_b", "entropy"])
        x = drawn["t_b"].clip(upper=unbroken) + style.jitter(len(drawn), 0.05 * top)
        axis.scatter(x, drawn["entropy"], s=8, color=look.colour, alpha=0.45, lw=0)
        average = means[means["model"] == model].dropna(subset=["t_b"]).sort_values("t_b")
        axis.errorbar(
            average["t_b"].clip(upper=unbroken), average["mean"], style.errors(average), fmt="D",
            color="black", ms=4, mfc="white", elinewidth=1, zorder=3,
        )  # fmt: skip
        r = "" if correlations is None else _r(correlations[correlations["model"] == model])
        axis.set_title(style.title(model, own, drawn, r))
        axis.axvline(top * 1.1, color="0.7", lw=0.6)
        ticks = [0, top / 4, top / 2, top * 3 / 4, top]
        axis.set_xticks([*ticks, unbroken], [*(f"{t:g}" for t in ticks), f"> {top:g}"])
        axis.set(xlabel="breaking temperature $t_b$", xlim=(0, top * 1.28))
        style.shares(axis)
    style.label_left(axes, "initial entropy $H$")
    style.legend(
        fig,
        [
            Line2D([], [], ls="", marker="o", ms=3, color="0.5", label="a fact"),
            Line2D(
                [], [], ls="", marker="D", color="black", mfc="white", label="mean, 95% interval"
            ),
        ],
    )
    return fig


@style.styled
def one_answer(tokens: pd.DataFrame, answer: str | None = None) -> Figure:
    """How temperature flattens one position's distribution: its likeliest tokens, a panel each t.

    `tokens`: temperature, token, probability (sums to less than 1: the vocabulary is larger), all
    panels in the order of the first temperature; `answer` is the token to highlight.
    """
    style.need(tokens, "temperature", "token", "probability")
    temperatures = sorted(tokens["temperature"].unique())
    first = tokens[tokens["temperature"] == temperatures[0]]
    order = first.sort_values("probability", ascending=False)["token"].tolist()
    fig, axes = style.panels(
        1, len(temperatures), style.panel_width(len(temperatures)), 2.4, sharex=True, sharey=True
    )
    for axis, t in zip(axes[0], temperatures, strict=True):
        part = tokens[tokens["temperature"] == t].set_index("token")["probability"]
        p = part.reindex(order).to_numpy(dtype=float)
        colours = [style.RIGHT if token == answer else "0.6" for token in order]
        axis.barh(range(len(order)), p, color=colours)
        for i, value in enumerate(p):
            axis.text(value + 0.02, i, _percent(value), va="center", fontsize=7.5)
        axis.set(title=f"$t$ = {t:g}", xlabel="probability", xlim=(0, 1.16))
        axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axis.grid(False, axis="y")
    # A token's leading space is part of it; the open box makes it visible.
    names = [style.printable(token.replace(" ", "␣")) for token in order]
    axes[0, 0].set_yticks(range(len(order)), names)
    axes[0, 0].invert_yaxis()
    axes[0, 0].set_ylabel("next token")
    return fig


def _percent(p: float) -> str:
    return "" if np.isnan(p) else "< 0.1%" if p < 0.001 else f"{p:.1%}"


def _r(rows: pd.DataFrame) -> str:
    texts = (
        f", $r$ = {r.mean:.2f} [{r.low:.2f}, {r.high:.2f}]" for r in rows.itertuples(index=False)
    )
    return "".join(texts).replace("-", "−")


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
