"""Figures of part 1: what temperature does to known facts, their scores, and exact breaking
temperatures (paper 1, and beyond it).

Each function takes ready tables and returns a matplotlib Figure. Tables and errors as `plots.blocks`
says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE, SINGLE, Look

Array = NDArray[np.float64]
SHOWN = (0.2, 1.0, 1.6, 2.0)  # temperatures of figures 2, 6 and 7
TOP = 2.0  # the highest temperature sampled
FRS_LEVELS = np.linspace(0, 0.8, 9)  # of contours
BIN = 0.05  # width of figure 13's histogram
GAP = (0.8, 1.0)  # FRS that no fact can have
H_LABEL, T_LABEL = "entropy $H$", "breaking temp. $t_b$"


@style.styled
def known_shares(by_domain: pd.DataFrame, by_type: pd.DataFrame) -> Figure:
    """Share of facts that each model answers exactly, by domain and by answer type (4.1.2).

    `by_domain`: intervals by model and domain; `by_type`: by model and answer_type.
    """
    groups = style.in_order(by_domain["domain"], style.DOMAINS)
    groups += style.in_order(by_type["answer_type"], style.ANSWER_TYPES)
    both = {"domain": "domain, answer type", "answer_type": "domain, answer type"}
    table = pd.concat(part.rename(columns=both) for part in (by_domain, by_type))
    fig, ((axis, _),) = blocks.forest(
        table, both["domain"], groups, row_height=0.3, rows_n=True, xlabel="share answered exactly"
    )
    axis.axhline(by_domain["domain"].nunique() - 0.5, color="0.7", lw=0.6)
    axis.set_xlim(left=0)
    return fig


@style.styled
def accuracy_by_temperature(table: pd.DataFrame, exact: pd.DataFrame | None = None) -> Figure:
    """Figure 1: accuracy of known facts against temperature, a line a model, a panel a domain.

    `table`: intervals by model, domain and temperature. `exact`, drawn dashed and without markers:
    the same of P_t of the greedy answer.
    """
    dashed: dict[str, Any] = {"ls": "--", "lw": 1}
    solid: dict[str, Any] = {} if exact is None else {"ls": "-"}
    fig, panels = blocks.curves(
        table, "temperature", panel="domain", order=style.DOMAINS, height=2.6, markers=True,
        labels=("temperature $t$", "share of samples correct"), shares="y",
        extra=[] if exact is None else [blocks.key("exact: $P_t$ of the answer", **dashed)],
        **solid,
    )  # fmt: skip
    for axis, own in panels:
        if exact is not None:
            of = exact[exact["domain"] == own["domain"].iloc[0]].sort_values("temperature")
            for model, look in style.looks(table["model"]).items():
                line = of[of["model"] == model]
                axis.plot(line["temperature"], line["mean"], color=look.colour, **dashed)
        axis.set_xlim(0, table["temperature"].max() + 0.1)
    return fig


@style.styled
def certainty_bins(table: pd.DataFrame) -> Figure:
    """Figures 2, 6, 7: how certain sampled answers are, right and wrong ones stacked, in one domain.

    `table`: model, temperature, bin (lower edge), correct, share, n (responses), of ten bins of
    width 0.1 (`metrics.decoding.certainty_bins`). Rows are models, columns temperatures: 0.2, 1.0,
    1.6 and 2.0 where the table has them, else the table's first four.
    """
    blocks.check(table, "model", "temperature", "bin", "correct", values=["share", "n"])
    tried = sorted(table["temperature"].unique())
    temperatures = [t for t in SHOWN if t in tried] or tried[:4]
    models, edges = list(style.looks(table["model"])), np.arange(10) / 10
    height = 0.75 + 1.25 * len(models)
    fig, axes = style.grid(len(models), len(temperatures), DOUBLE, height, sharex=True, sharey=True)
    for row, model in zip(axes, models, strict=True):
        for axis, t in zip(row, temperatures, strict=True):
            own = table[(table["model"] == model) & np.isclose(table["temperature"], t)]
            share = own.assign(tenth=(own["bin"] * 10).round()).pivot(
                index="tenth", columns="correct", values="share"
            ).reindex(index=range(10), columns=[True, False]).fillna(0)  # fmt: skip
            axis.bar(edges + 0.05, share[True], 0.088, color=style.RIGHT)
            axis.bar(edges + 0.05, share[False], 0.088, share[True], color=style.WRONG)
            n = f"n = {style.count(own['n'])}"
            axis.set_title(f"$t$ = {t:g}\n{n}" if model == models[0] else n)
            axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            axis.grid(False, axis="x")
        row[0].set_ylabel(f"{style.model_name(model)}\nshare of samples", fontsize=8)
    axes[0, 0].set_ylim(0, 1)
    fig.supxlabel("certainty: mean probability of the answer's tokens")
    fills = {"right": {"color": style.RIGHT}, "wrong": {"color": style.WRONG}}
    return blocks.legend(fig, blocks.patches(fills))


@style.styled
def entropy_by_breaking(points: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Figure 3: entropy of the greedy answer by the temperature that breaks the fact.

    `points`: model, fact_id, entropy, t_b on the temperatures tried, inf for a fact that did not break;
    `means`: intervals of the entropy by model and t_b.
    """
    points, means = (
        part.assign(t_b=part["t_b"].clip(upper=1.15 * TOP)) for part in (points, means)
    )
    fig, panels = blocks.scatter(
        points, "t_b", "entropy", size=8, spread=0.05 * TOP, height=2.8, shares="y",
        labels=("breaking temperature $t_b$", "initial entropy $H$"),
    )  # fmt: skip
    marked: dict[str, Any] = {"color": "black", "marker": "D", "mfc": "white", "ls": ""}
    for axis, own in panels:
        average = means[means["model"] == own["model"].iloc[0]].dropna(subset=["t_b"])
        axis.errorbar(
            average["t_b"], average["mean"], style.errors(average), elinewidth=1, zorder=3, **marked
        )
        blocks.beyond(axis, "x", TOP)
    fact = blocks.key("a fact", ls="", marker="o", ms=3, color="0.5")
    return blocks.legend(fig, [fact, blocks.key("mean, 95% interval", **marked)])


@style.styled
def one_answer(tokens: pd.DataFrame, answer: str) -> Figure:
    """How temperature flattens one position's distribution: its likeliest tokens, a panel each t.

    `tokens`: temperature, token, probability (sums to less than 1: the vocabulary is larger), all
    panels in the order of the first temperature; `answer` is the token to highlight.
    """
    blocks.check(tokens, "temperature", "token", values=["probability"])
    shares = tokens.pivot(index="token", columns="temperature", values="probability")
    shares = shares.sort_values(shares.columns[0], ascending=False)
    fig, axes = style.grid(1, shares.shape[1], DOUBLE, 2.4, sharex=True, sharey=True)
    for axis, (t, p) in zip(axes[0], shares.items(), strict=True):
        colours = [style.RIGHT if token == answer else "0.6" for token in shares.index]
        bars = axis.barh(range(len(p)), p, color=colours)
        axis.bar_label(bars, ["< 0.1%" if x < 0.001 else f"{x:.1%}" for x in p], padding=3)
        axis.set(title=f"$t$ = {t:g}", xlabel="probability", xlim=(0, 1.25))
        axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axis.grid(False, axis="y")
    blocks.name_rows(axes[0], [style.token_name(token) for token in shares.index])
    axes[0, 0].set_ylabel("next token")
    return fig


@style.styled
def score_surfaces(entropy: ArrayLike, t_b: ArrayLike, raw: ArrayLike, scaled: ArrayLike) -> Figure:
    """Figure 8: f (equation 3) and FRS (equation 4) at d = 1 over entropy and breaking temperature.

    `entropy` is [h], `t_b` [t], `raw` (f) and `scaled` (FRS) are [t, h]. Above as surfaces, below
    the same as contours, to read values from.
    """
    h, t = np.meshgrid(entropy, t_b)
    fig, axes = style.grid(2, 2, DOUBLE, 5.6, height_ratios=(1.35, 1))
    for k, (name, values, levels) in enumerate(
        (("$f$", raw, np.linspace(-1, 3, 9)), ("FRS", scaled, FRS_LEVELS))
    ):
        place = axes[0, k].get_subplotspec()
        axes[0, k].remove()
        solid: Any = fig.add_subplot(place, projection="3d")  # typed as flat axes otherwise
        solid.plot_surface(
            h, t, np.asarray(values), cmap="viridis", lw=0, rcount=60, ccount=60, rasterized=True
        )
        solid.set(xlabel=H_LABEL, ylabel=T_LABEL, xticks=[0, 0.5, 1], yticks=[0, 1, 2])
        solid.set_title(f"{name} at $d$ = 1", y=0.97)
        solid.zaxis.set_rotate_label(False)
        solid.set_zlabel(name)
        solid.tick_params(pad=-1)
        solid.xaxis.labelpad = solid.yaxis.labelpad = -4
        solid.view_init(elev=24, azim=-125)
        _contours(axes[1, k], entropy, t_b, values, levels)
        axes[1, k].set(xlabel=H_LABEL, ylabel=T_LABEL)
    return fig


@style.styled
def surfaces_by_d(entropy: ArrayLike, t_b: ArrayLike, scores: Mapping[float, ArrayLike]) -> Figure:
    """Figure 9: FRS over entropy [h] and breaking temperature [t], a panel each d.

    `scores` maps d to an array [t, h]; contours at the same levels in all panels.
    """
    fig, axes = style.grid(1, len(scores), DOUBLE, 2.1, sharex=True, sharey=True)
    for axis, (d, values) in zip(axes[0], scores.items(), strict=True):
        filled = _contours(axis, entropy, t_b, values, FRS_LEVELS, every=2)
        axis.set(title=f"$d$ = {d:g}", xlabel=H_LABEL)
        axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes[0, 0].set_ylabel(T_LABEL)
    fig.colorbar(filled, ax=axes[0, -1], label="FRS", ticks=FRS_LEVELS[::2])
    return fig


def _contours(
    axis: Axes, h: ArrayLike, t: ArrayLike, values: ArrayLike, levels: Array, every: int = 1
) -> Any:
    """Filled contours, every so many of their lines drawn, and labelled where they are long enough."""
    filled = axis.contourf(h, t, values, levels=levels, cmap="viridis")
    inside = levels[1:-1:every]
    colours = ["white" if level <= levels.mean() else "black" for level in inside]
    lines = axis.contour(h, t, values, levels=inside, colors=colours, linewidths=0.6)
    longest = [max(parts, key=len) for parts in lines.allsegs]
    room = [line[len(line) // 2] for line in longest if len(line) > np.size(t) / 3]
    axis.clabel(lines, fontsize=7, fmt="%.2g", manual=room)
    return filled


@style.styled
def frs_by_entropy(points: pd.DataFrame) -> Figure:
    """Figure 4: FRS against entropy, a panel a model; facts that nothing broke marked apart.

    `points`: model, fact_id, entropy, frs, t_b (inf: unbroken), d, the same in all rows.
    """
    labels = ("initial entropy $H$", f"FRS ($d$ = {points['d'].iloc[0]:g})")
    fig, panels = blocks.scatter(points, "entropy", "frs", height=2.8, labels=labels, shares="xy")
    apart: dict[str, Any] = {"marker": "D", "color": style.ORANGE, "mfc": "white", "ls": ""}
    for axis, own in panels:
        whole = own[np.isinf(own["t_b"])]
        axis.plot(whole["entropy"], whole["frs"], **apart)
        axis.set_title(f"{axis.get_title()}, {len(whole)} unbroken")
    broken = blocks.key(f"breaks at $t_b$ ≤ {TOP:g}", ls="", marker="o")
    unbroken = blocks.key(f"unbroken at $t$ = {TOP:g}: FRS set to 1", **apart)
    return blocks.legend(fig, [broken, unbroken])


@style.styled
def frs_by_d(table: pd.DataFrame, points: pd.DataFrame) -> Figure:
    """Figures 10-12: mean FRS with its interval by d, models side by side, in one domain.

    `table`: intervals by model and d; `points`, single facts drawn faintly: model, d, frs.
    """
    blocks.check(table, "model", "d")
    looks, ds = style.looks(table["model"]), sorted(table["d"].unique())
    fig, ((axis, _),) = blocks.panels(
        table, None, height=2.8, labels=("$d$, penalty of entropy", "FRS"), shares="y"
    )
    step = 0.8 / len(looks)
    for k, (model, look) in enumerate(looks.items()):
        facts = points[(points["model"] == model) & points["d"].isin(ds)].dropna(subset=["frs"])
        own = table[table["model"] == model]
        at, faint = (
            part["d"].map(ds.index) + style.aside(k, len(looks), step) for part in (own, facts)
        )
        axis.scatter(
            faint + style.jitter(len(facts), step * 0.7), facts["frs"], s=5, color=look.colour,
            alpha=0.25, lw=0, rasterized=True,
        )  # fmt: skip
        axis.errorbar(
            at, own["mean"], style.errors(own), fmt=look.marker, color=look.colour, mec="black",
            mew=0.6, ms=5, ecolor="black", elinewidth=1,
        )  # fmt: skip
    axis.set_xticks(range(len(ds)), [f"{d:g}" for d in ds])
    axis.grid(False, axis="x")
    return blocks.legend(fig, blocks.keys(looks, table, ls=""))


@style.styled
def frs_distribution(points: pd.DataFrame) -> Figure:
    """Figure 13: how FRS is distributed, a histogram in steps a model, a panel a domain.

    `points`: model, domain, fact_id, frs. Bins (0, 0.05], (0.05, 0.1] ... hold a score on an edge
    below it, so that 0.8 stays left of GAP, the scores that no fact can have.
    """
    blocks.check(points, "model", "domain", "fact_id", values=["frs"])
    looks = style.looks(points["model"])
    drawn = points.dropna(subset=["frs"])
    drawn = drawn.assign(n=drawn.groupby(["model", "domain"])["frs"].transform("size"))
    fig, panels = blocks.panels(
        drawn, "domain", style.DOMAINS, height=2.5, what="facts",
        labels=("FRS", f"share of facts\n(bins of {BIN:g})"),
    )  # fmt: skip
    for axis, own in panels:
        blocks.histograms(axis, own, "frs", np.linspace(0, 1, round(1 / BIN) + 1), looks)
        axis.axvspan(GAP[0], GAP[1] - BIN, color="0.93", lw=0, zorder=0)
        axis.set(xlim=(0, 1.01), xticks=np.linspace(0, 1, 6))
    handles = blocks.keys(looks, marker="")
    return blocks.legend(fig, [*handles, *blocks.patches({"no score possible": {"color": "0.9"}})])


@style.styled
def robust_share_by_type(table: pd.DataFrame) -> Figure:
    """Figure 5: share of the most robust among the most and least robust facts, by answer type.

    `table`: intervals by model and answer_type. At 0.5 (dashed) a type is as robust as the rest.
    """
    types = style.in_order(table["answer_type"], style.ANSWER_TYPES)
    return blocks.forest(
        table, "answer_type", types, at=0.5, row_height=0.3, rows_n=True, shares="x",
        xlabel="share among the robust",
    )[0]  # fmt: skip


@style.styled
def answer_curves(table: pd.DataFrame, breaking: pd.DataFrame, samples: pd.DataFrame) -> Figure:
    """P_t(answer) of a few facts against temperature, with the threshold 0.5 and t_b marked.

    `table`: a table `schemas.Curves` with label, for the legend; `breaking`: model, fact_id, t_b;
    `samples`, drawn as points with intervals: intervals by model, fact_id and temperature. A panel a
    model; at most seven facts.
    """
    blocks.check(table, "model", "fact_id", "temperature", values=["logprob", "label"])
    labels = dict(zip(table["fact_id"], table["label"], strict=True))
    if len(labels) > len(style.COLOURS):
        raise ValueError(f"{len(labels)} curves are too many to tell apart: give at most 7 facts.")
    looks = {f: Look(c, m) for f, c, m in zip(labels, style.COLOURS, style.MARKERS, strict=False)}
    fig, panels = blocks.panels(
        table, "model", height=2.8, shares="y",
        labels=("temperature $t$ (log scale)", "probability of the answer"),
    )  # fmt: skip
    for axis, own in panels:
        for k, (fact, look) in enumerate(looks.items()):
            curve, t_b, drawn = (
                part[(part["model"] == own["model"].iloc[0]) & (part["fact_id"] == fact)]
                for part in (own.sort_values("temperature"), breaking, samples)
            )
            axis.plot(curve["temperature"], np.exp(curve["logprob"]), color=look.colour)
            # Side by side, so that intervals do not hide each other.
            axis.errorbar(
                drawn["temperature"] * (1 + style.aside(k, len(looks), 0.04)), drawn["mean"],
                style.errors(drawn), fmt=look.marker, color=look.colour, ms=3, elinewidth=0.6,
                alpha=0.6,
            )  # fmt: skip
            axis.plot(
                t_b["t_b"], [0.5] * len(t_b), ls="", marker=look.marker, ms=7, mfc="white",
                mec=look.colour, mew=1.4, zorder=4,
            )  # fmt: skip
        axis.axhline(0.5, **style.REFERENCE)
        blocks.log_axis(axis, table["temperature"], 1.1)
    handles = [blocks.key(style.printable(labels[f]), look, ms=3) for f, look in looks.items()]
    handles.append(blocks.key("exact $t_b$", marker="o", ls="", mfc="white", ms=7))
    handles.append(blocks.key("sampled, with interval", marker="o", ls="", ms=3, alpha=0.6))
    return blocks.legend(fig, handles)


@style.styled
def agreement(
    table: pd.DataFrame,
    x: str,
    y: str,
    labels: tuple[str, str],
    top: float | None = None,
    spread: float = 0.0,
) -> Figure:
    """Two measures of the same facts against each other, with the diagonal; a panel a model.

    `table`: model, fact_id and the columns named `x` and `y`, from 0 to 1 or `top`; `labels` are the
    axes' labels. Values above `top` (inf too) are drawn in a band "> top" at the axis' end. `spread`
    sets the points apart along x by that much in all, for an x on a grid.
    """
    if top is not None:
        table = table.assign(**{c: table[c].mask(table[c] > top, 1.15 * top) for c in (x, y)})
    width = min(DOUBLE, SINGLE * table["model"].nunique())
    fig, panels = blocks.scatter(
        table, x, y, labels=labels, spread=spread, width=width, shares="xy",
        height=width / min(table["model"].nunique(), 3) + 0.15,
    )  # fmt: skip
    for axis, _ in panels:
        axis.plot([0, top or 1], [0, top or 1], color="0.4", lw=0.8, zorder=1)
        axis.set_box_aspect(1)
        if top is not None:
            blocks.beyond(axis, "x", top)
            blocks.beyond(axis, "y", top)
    return fig


@style.styled
def detours(table: pd.DataFrame) -> Figure:
    """Share of right samples that are detours: right by another text than the greedy answer.

    `table`: intervals by model and temperature (n: facts with a right sample there).
    """
    fig, ((axis, _),) = blocks.curves(
        table, "temperature", markers=True,
        labels=("temperature $t$", "share of right samples\nthat are detours"),
    )  # fmt: skip
    axis.set_xlim(0, table["temperature"].max() + 0.1)
    axis.set_ylim(bottom=0)
    return fig


@style.styled
def beyond_two(points: pd.DataFrame) -> Figure:
    """What lies beyond the paper's temperatures: share of facts up to a t_b, and up to an FRS.

    `points`: model, fact_id, t_b (exact; inf never breaks), frs (equation 4 of it) and frs_published
    (1 for facts that break beyond TOP), thin.
    """
    blocks.check(points, "model", "fact_id", values=["t_b", "frs", "frs_published"])
    looks, points = style.looks(points["model"]), points.dropna()
    fig, axes = style.grid(1, 2, DOUBLE, 2.6, sharey=True)
    for model, look in looks.items():
        own = points[points["model"] == model]
        for axis, column, lw in ((0, "t_b", 1.4), (1, "frs", 1.4), (1, "frs_published", 0.8)):
            axes[0, axis].ecdf(own[column], color=look.colour, ls=look.line, lw=lw)
    blocks.log_axis(axes[0, 0], [*points["t_b"], 0.5, 2 * TOP], 1.1)
    axes[0, 0].axvline(TOP, color="0.2", lw=1, ls=":")
    axes[0, 0].set(xlabel="exact $t_b$ (log scale)", ylabel="share of facts at or below")
    axes[0, 1].set(xlabel="FRS", xlim=(0, 1.02))
    style.shares(axes[0, 0])
    n = points.assign(n=points.groupby("model")["t_b"].transform("size"))
    handles = blocks.keys(looks, n, marker="")
    handles.append(blocks.key("thin: FRS as published", marker="", lw=0.8))
    handles.append(blocks.key(f"$t$ = {TOP:g}, highest sampled", marker="", ls=":", lw=1))
    return blocks.legend(fig, handles)


@style.styled
def cost_bars(table: pd.DataFrame) -> Figure:
    """Forward-pass tokens a question by method, on a log axis from 1; the number beside each bar.

    `table`: method, tokens. Methods stand in given order.
    """
    blocks.check(table, "method", values=["tokens"])
    fig, axes = style.grid(1, 1, SINGLE, 0.9 + 0.32 * len(table))
    bars = axes[0, 0].barh(range(len(table)), table["tokens"], 0.75, color="0.5", alpha=0.85)
    axes[0, 0].bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=7.5)
    axes[0, 0].set(xscale="log", xlim=(1, table["tokens"].max() * 8), xlabel="tokens a question")
    blocks.name_rows(axes[0], list(table["method"]))
    axes[0, 0].grid(False, axis="y")
    return fig
