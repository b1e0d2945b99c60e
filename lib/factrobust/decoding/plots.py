"""Figures of part 1: temperature and known facts (paper 1, and beyond it). Tables and errors as
`plots.blocks` says."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from factrobust.decoding.metrics import KNOWN_BY
from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE

SHADES = colormaps["viridis"](np.array([0.05, 0.55, 0.88]))
# Answers by their number of tokens.
LENGTHS = {
    name: style.Look(to_hex(shade), marker)
    for name, shade, marker in zip(("1 token", "2", "3 or more"), SHADES, "os^", strict=True)
}
TOP = 2.0  # the highest temperature sampled
CLASSES = ("0.2–0.4", "0.6–0.8", "1.0–1.2", "1.4–1.6", "1.8–2.0")  # of t_b, in figure 4
BETWEEN = (0.5, 0.9, 1.3, 1.7)  # what parts them
STEP = 0.05  # of the scores in figure 13
GAP = (0.8, 1.0)  # FRS that no fact can have


def known_shares(by_domain: pd.DataFrame, by_type: pd.DataFrame) -> Figure:
    """Share of facts that each model answers exactly, by domain and by answer type (4.1.2).
    `by_domain`: intervals by model and domain; `by_type`: by model and answer_type."""
    domains, types = style.ordered(by_domain["domain"]), style.ordered(by_type["answer_type"])
    both = {"domain": "domain, answer type", "answer_type": "domain, answer type"}
    table = pd.concat(part.rename(columns=both) for part in (by_domain, by_type))
    fig, ((axis, _),) = blocks.forest(
        table, both["domain"], [*domains, *types], rows_n=True, xlabel="share answered exactly"
    )
    axis.axhline(len(domains) - 0.5, color="0.7", lw=0.6)
    axis.set_xlim(left=0)
    return fig


def known_by_relation(table: pd.DataFrame) -> Figure:
    """Share of facts that each model answers exactly, a panel a domain, relations by the mean over the
    models. `table`: intervals by model, domain and relation."""
    looks, domains = style.looks(table["model"]), style.ordered(table["domain"])
    rows = {
        domain: blocks.by_mean(table[table["domain"] == domain], "relation") for domain in domains
    }
    height = 0.7 + 0.34 * max(map(len, rows.values()))
    labels = ("share known", "")
    how: dict[str, Any] = {"width": style.DOUBLE, "height": height, "shares": "x"}
    fig, parts = blocks.panels(table, "domain", labels=labels, sharey=False, **how)
    for (axis, part), names in zip(parts, rows.values(), strict=True):
        y = part["relation"].map(names.index) + blocks.asides(
            part["model"], looks, 0.7 / len(looks)
        )
        blocks.dots(axis, part, y, looks, upright=False, elinewidth=0.9)
        blocks.name_rows([axis], [style.name(name) for name in names])
    return blocks.legend(fig, blocks.keys(looks, ls=""))


def who_knows(table: pd.DataFrame) -> Figure:
    """Who knows the facts of each relation, a bar a relation; what no model knows grows downwards.
    `table`: the mean of each `kind` of `decoding.metrics.KNOWN_BY` by relation."""
    shares = table.rename(columns={"kind": "known by", "mean": "share"})
    none = shares[shares["known by"] == KNOWN_BY[0]].sort_values("share", kind="stable")
    rows = [*none["relation"]]
    colours = ("0.85", style.LILAC, style.VIOLET, style.WRONG)
    fills = dict(zip(KNOWN_BY[1:] + KNOWN_BY[:1], colours[1:] + colours[:1], strict=True))
    return blocks.stacks(
        shares, "relation", rows, [style.name(row) for row in rows], "known by", fills,
        labels=("share of the relation's facts", ""), height=0.9 + 0.17 * len(rows), width=5,
    )[0]  # fmt: skip


def certainty_bins(table: pd.DataFrame) -> Figure:
    """Figures 2, 6, 7: how certain sampled answers are, right below wrong ones, a bar a
    temperature. `table` of `decoding.metrics.certainty_bins`, a panel a model: the surer, the
    stronger the colour. The least certain answers meet at the accuracy, a black line."""
    temperatures, bins = sorted(table["temperature"].unique()), [k / 10 for k in range(10)]
    labels = ("temperature $t$", "share of samples, by certainty")
    fig, panels = blocks.panels(table, "model", what="samples", labels=labels, shares="y")
    at = np.arange(len(temperatures))
    upwards = [(True, low) for low in bins[::-1]] + [(False, low) for low in bins]
    fills: dict[tuple[bool, float], Any] = {
        (right, low): (style.RIGHT if right else style.WRONG, 0.1 + low) for right, low in upwards
    }
    for axis, part in panels:
        edges = part["bin"].round(1)
        share = part["share"].groupby([part["correct"], edges, part["temperature"]]).sum()
        heights = [[share.get((*kind, t), 0.0) for t in temperatures] for kind in upwards]
        tops = np.cumsum(heights, axis=0)
        for kind, height, top in zip(upwards, heights, tops, strict=True):
            axis.bar(at, height, 0.9, top - height, color=fills[kind])
        axis.hlines(tops[len(bins) - 1], at - 0.45, at + 0.45, color="black", lw=0.8)
        axis.set_xticks(at, [f"{t:g}" for t in temperatures])
        axis.set_ylim(0, 1)
        axis.grid(False)
    shown = [(right, low) for low in (0.9, 0.5, 0.0) for right in (True, False)]
    kinds = {f"{'right' if r else 'wrong'}, {x:g}–{x + 0.1:g}": fills[r, x] for r, x in shown}
    return blocks.legend(fig, blocks.patches(kinds))


def by_tokens(
    points: pd.DataFrame,
    x: str,
    y: str,
    bound: Callable[[np.ndarray, int], np.ndarray] | None = None,
    means: pd.DataFrame | None = None,
    **options: Any,
) -> Figure:
    """Facts by the number of tokens of their answers (the column tokens), a panel a model. A line of
    the same colour is what `bound` allows at x, for so many tokens; diamonds are `means` of y, with
    intervals, at their column x by model. `options` as `blocks.scatter` takes them."""
    fig, panels = blocks.scatter(points, x, y, **options)
    mean: dict[str, Any] = {"color": "black", "marker": "D", "mfc": "white", "ms": 4, "ls": ""}
    for axis, part in panels:
        axis.collections[0].remove()
        for tokens, look in enumerate(LENGTHS.values(), 1):
            own = part[part["tokens"].clip(upper=len(LENGTHS)) == tokens]
            form: dict[str, Any] = {"s": 11, "marker": look.marker, "alpha": 0.6, "lw": 0}
            axis.scatter(own[x], own[y], color=look.colour, **form)
            if bound is not None:
                at = np.linspace(0.02, 1.05 * part[x].max(), 100)
                axis.plot(at, bound(at, tokens), color=look.colour, lw=1.1)
        if means is not None:
            here = means[means["model"] == part["model"].iloc[0]]
            axis.errorbar(here[x], here["mean"], style.errors(here), zorder=3, **mean)
    handles = blocks.keys(LENGTHS, ls="")
    handles += [blocks.key("highest possible", marker="")] if bound is not None else []
    handles += [blocks.key("mean, 95% interval", **mean)] if means is not None else []
    return blocks.legend(fig, handles)


def one_answer(shares: pd.DataFrame) -> Figure:
    """How temperature spreads one position's probability: a bar each temperature. `shares`: a row a
    temperature, a column a token or a group of tokens; the first is the greedy answer."""
    names, temperatures = list(map(str, shares)), sorted(shares.index)
    tokens = shares.rename_axis("temperature").reset_index()
    tokens = tokens.melt("temperature", var_name="token", value_name="share")
    greys = map(str, np.linspace(0.6, 0.85, len(names) - 1))
    fills = dict(zip(names, [style.RIGHT, *greys], strict=True))
    return blocks.stacks(
        tokens, "temperature", temperatures, [f"$t$ = {t:g}" for t in temperatures], "token", fills,
        labels=("share of the probability", "temperature"), width=DOUBLE,
        height=0.9 + 0.3 * len(temperatures),
    )[0]  # fmt: skip


def one_curve(curve: pd.DataFrame, t_b: float, samples: pd.DataFrame) -> Figure:
    """P_t(answer) of one fact against temperature, where it breaks, and shares of right samples.
    `curve`: a table `schemas.Curves` of one fact; `samples`: temperature, mean, low, high, n."""
    look, top = next(iter(style.looks(curve["model"]).values())), 1.5 * samples["temperature"].max()
    labels = ("temperature $t$", "probability of the answer")
    fig, ((axis, part),) = blocks.panels(curve, labels=labels, shares="y")
    part = part.sort_values("temperature")
    axis.plot(part["temperature"], np.exp(part["logprob"]), color=look.colour)
    sampled: dict[str, Any] = {"color": look.colour, "marker": "o", "mfc": "white", "ls": ""}
    axis.errorbar(samples["temperature"], samples["mean"], style.errors(samples), **sampled)
    axis.axhline(0.5, **style.REFERENCE)
    marked: dict[str, Any] = {"color": "black", "marker": "D", "ls": ""}
    axis.plot([t_b], [0.5], zorder=4, **marked)
    axis.set_xlim(0, top)
    handles = [
        blocks.key("exact $P_t$", look, marker="", ls="-"),
        blocks.key(f"exact $t_b$ = {t_b:.2f}", **marked),
        blocks.key(f"{style.count(samples['n'])} samples, 95% interval", **sampled),
    ]
    return blocks.legend(fig, handles)


def surfaces(table: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Figures 8 and 9: scores over entropy and breaking temperature, as contours. `table`: entropy,
    t_b (a grid of both), and the columns of scores, a panel each with its title."""
    every = 1 if len(titles) <= 2 else 2
    rows = -(-len(titles) // 3)
    fig, axes = style.grid(
        rows, -(-len(titles) // rows), DOUBLE, 2.4 * rows, sharex=True, sharey=True
    )
    for axis, (column, title) in zip(axes.flat, titles.items(), strict=True):
        score = table.pivot(index="t_b", columns="entropy", values=column)
        low, high = np.round([table[column].min(), table[column].max()], 1)
        levels = np.linspace(low, high, 9)
        drawn = score.columns, score.index, score
        axis.contourf(*drawn, levels, cmap="viridis", extend="both")
        inside = levels[every:-1:every]
        colours = ["white" if level <= levels.mean() else "black" for level in inside]
        lines = axis.contour(*drawn, inside, colors=colours, linewidths=0.6)
        axis.clabel(lines, fontsize=7, fmt="%.2g")
        axis.set(title=title, xticks=[0, 0.5, 1])
    fig.supxlabel("entropy $H$", fontsize=8)
    fig.supylabel("breaking temperature $t_b$", fontsize=8)
    return fig


def frs_by_entropy(points: pd.DataFrame, estimator: str) -> Figure:
    """Figure 4: FRS against entropy, coloured by t_b, a panel a model. `points`: model, fact_id,
    entropy, frs, t_b (inf: unbroken, drawn apart), one d; `estimator` says how t_b was found. A
    thin line joins the facts that break at the same temperature."""
    labels = ("initial entropy $H$", f"FRS ($d$ = {points['d'].iloc[0]:g}), $t_b$ {estimator}")
    fig, panels = blocks.scatter(points, "entropy", "frs", labels=labels, shares="xy", height=3.2)
    shades = colormaps["viridis"](np.linspace(0, 0.92, len(CLASSES)))
    apart: dict[str, Any] = {"marker": "D", "color": style.ORANGE, "mfc": "white", "ls": ""}
    for axis, part in panels:
        axis.collections[0].set(facecolor=shades[np.digitize(part["t_b"], BETWEEN)], alpha=0.8)
        for _, line in part.sort_values("entropy").groupby("t_b"):
            shade = shades[np.digitize(line["t_b"].iloc[0], BETWEEN)]
            axis.plot(line["entropy"], line["frs"], color=shade, lw=0.6, zorder=1)
        whole = part[np.isinf(part["t_b"])]
        axis.plot(whole["entropy"], whole["frs"], **apart)
        axis.set_title(f"{axis.get_title()}, {len(whole)} unbroken")
    pairs = zip(CLASSES, shades, strict=True)
    handles = [blocks.key(f"$t_b$ {name}", ls="", marker="o", color=shade) for name, shade in pairs]
    return blocks.legend(fig, [*handles, blocks.key(f"unbroken up to {TOP:g}", **apart)])


def frs_distribution(points: pd.DataFrame, estimator: str) -> Figure:
    """Figure 13: how the FRS is spread, a line a model, a panel a domain. `points`: model, domain,
    fact_id, frs. The share of facts in each step of STEP; those that score 1 stand beyond it. No
    fact can score in GAP, which is grey."""
    drawn = points.dropna(subset=["frs"])
    drawn = drawn.assign(n=drawn.groupby(["model", "domain"])["frs"].transform("size"))
    labels = (f"FRS, $t_b$ {estimator}", "share of facts")
    fig, panels = blocks.panels(drawn, "domain", what="facts", labels=labels)
    looks, edges = style.looks(drawn["model"]), np.arange(0, 1 + 1.5 * STEP, STEP)
    for axis, part in panels:
        for model, look in looks.items():
            # A score of 0.8 is that of a fact that breaks: it belongs below the gap.
            frs = part.loc[part["model"] == model, "frs"]
            counts, _ = np.histogram(np.where(frs < 1, frs - 1e-9, frs), edges)
            axis.stairs(counts / max(len(frs), 1), edges, color=look.colour, ls=look.line, lw=1.2)
        axis.axvspan(*GAP, color="0.93", lw=0, zorder=0)
        axis.set(xlim=(0, edges[-1]), xticks=np.linspace(0, 1, 6))
    handles = blocks.keys(looks, marker="")
    return blocks.legend(fig, [*handles, *blocks.patches({"no score possible": "0.9"})])


def agreement(table: pd.DataFrame, temperatures: Sequence[float]) -> Figure:
    """Sampled t_b against exact t_b, a panel a model; stairs: samples without noise. `table`:
    model, fact_id, t_b_exact, t_b_sampled (one of `temperatures`), detours (true: ringed). Values
    above TOP stand in a band at the axis' end."""
    x, y = "t_b_exact", "t_b_sampled"
    table = table.assign(**{c: table[c].mask(table[c] > TOP, 1.15 * TOP) for c in (x, y)})
    labels = ("exact $t_b$", "sampled $t_b$")
    fig, panels = blocks.scatter(table, x, y, labels=labels, height=3.2)
    ring: dict[str, Any] = {"ls": "", "marker": "o", "ms": 6.5, "mfc": "none", "mec": "black"}
    stairs: dict[str, Any] = {"color": "0.4", "lw": 0.9, "marker": ""}
    for axis, part in panels:
        ringed = part[part["detours"]]
        axis.plot(ringed[x], ringed[y], mew=0.7, **ring)
        axis.step([0, *temperatures], [temperatures[0], *temperatures], where="pre", **stairs)
        for which in "xy":
            blocks.beyond(axis, which, TOP)
    handles = [
        blocks.key("without noise or detours", **stairs),
        blocks.key("more than 10% of right samples are detours", mew=0.7, **ring),
    ]
    return blocks.legend(fig, handles)
