"""Figures of part 1: temperature and known facts (paper 1, and beyond it). Tables and errors as
`plots.blocks` says."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure

from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE

# Certainties that figures 2, 6 and 7 tell apart: lower edge, name, and how strongly it is coloured.
LEVELS = ((0.9, "0.9–1", 1.0), (0.5, "0.5–0.9", 0.7), (0.1, "0.1–0.5", 0.45), (0.0, "0–0.1", 0.2))
TOP = 2.0  # the highest temperature sampled
CLASSES = ("0.2–0.4", "0.6–0.8", "1.0–1.2", "1.4–1.6", "1.8–2.0")  # of t_b, in figure 4
BETWEEN = (0.5, 0.9, 1.3, 1.7)  # what parts them
BIN = 0.05  # width of figure 13's bars of unbroken facts
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


def by_decoder(exact: pd.DataFrame, sampled: pd.DataFrame) -> Figure:
    """What truncation saves: a line a decoder, a panel a model; shares of right samples as points.
    `exact`, of P_t of the greedy answer, and `sampled`: intervals by model, decoder and
    temperature."""
    labels = ("temperature $t$", "probability of a right answer")
    fig, panels = blocks.curves(
        exact, "temperature", panel="model", by="decoder", labels=labels, shares="y", what=""
    )
    looks = blocks.looks_of(exact["decoder"])
    for axis, part in panels:
        shown = sampled[sampled["model"] == part["model"].iloc[0]]
        at = shown["temperature"] + blocks.asides(shown["decoder"], looks, 0.03)
        blocks.dots(axis, shown, at, looks, "decoder", mfc="white")
    return fig


def certainty_bins(table: pd.DataFrame) -> Figure:
    """Figures 2, 6, 7: how certain sampled answers are, right below wrong ones, a bar a
    temperature. `table` of `decoding.metrics.certainty_bins`, a panel a model; its bins are added
    up to LEVELS. The least certain answers meet at the accuracy, a black line."""
    temperatures = sorted(table["temperature"].unique())
    labels = ("temperature $t$", "share of samples, by certainty")
    fig, panels = blocks.panels(table, "model", what="samples", labels=labels, shares="y")
    lows, at = [low for low, *_ in LEVELS], np.arange(len(temperatures))
    upwards = [(True, low) for low in lows] + [(False, low) for low in lows[::-1]]
    fills: dict[tuple[bool, float], Any] = {
        (correct, low): (style.RIGHT if correct else style.WRONG, strength)
        for low, _, strength in LEVELS
        for correct in (True, False)
    }
    for axis, part in panels:
        level = part["bin"].map(lambda edge: next(low for low in lows if edge >= low))
        share = part["share"].groupby([part["correct"], level, part["temperature"]]).sum()
        heights = [[share.get((*kind, t), 0.0) for t in temperatures] for kind in upwards]
        tops = np.cumsum(heights, axis=0)
        for kind, height, top in zip(upwards, heights, tops, strict=True):
            axis.bar(at, height, 0.9, top - height, color=fills[kind])
        axis.hlines(tops[len(lows) - 1], at - 0.45, at + 0.45, color="black", lw=0.8)
        axis.set_xticks(at, [f"{t:g}" for t in temperatures])
        axis.set_ylim(0, 1)
        axis.grid(False)
    names = {low: name for low, name, _ in LEVELS}
    kinds = {f"{'right' if c else 'wrong'}, {names[low]}": fill for (c, low), fill in fills.items()}
    return blocks.legend(fig, blocks.patches(kinds))


def entropy_by_breaking(points: pd.DataFrame, means: pd.DataFrame, estimator: str) -> Figure:
    """Figure 3: entropy of the greedy answer by the temperature that breaks the fact. `points`:
    model, fact_id, entropy, t_b (inf: unbroken); `means`: intervals of the entropy by model and
    t_b; `estimator` says how t_b was found."""
    points, means = (t.assign(t_b=t["t_b"].clip(upper=1.15 * TOP)) for t in (points, means))
    fig, panels = blocks.scatter(
        points, "t_b", "entropy", spread=0.05 * TOP, shares="y",
        labels=(f"breaking temperature $t_b$ {estimator}", "initial entropy $H$"),
    )  # fmt: skip
    marked: dict[str, Any] = {"color": "black", "marker": "D", "mfc": "white", "ls": ""}
    for axis, part in panels:
        average = means[means["model"] == part["model"].iloc[0]].dropna(subset=["t_b"])
        axis.errorbar(average["t_b"], average["mean"], style.errors(average), zorder=3, **marked)
        blocks.beyond(axis, "x", TOP)
    fact = blocks.key("a fact", ls="", marker="o", ms=3, color="0.5")
    return blocks.legend(fig, [fact, blocks.key("mean, 95% interval", **marked)])


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
    fig, axes = style.grid(1, len(titles), DOUBLE, 2.4, sharex=True, sharey=True)
    for axis, (column, title) in zip(axes[0], titles.items(), strict=True):
        score = table.pivot(index="t_b", columns="entropy", values=column)
        low, high = np.round([table[column].min(), table[column].max()], 1)
        levels = np.linspace(low, high, 9)
        drawn = score.columns, score.index, score
        axis.contourf(*drawn, levels, cmap="viridis", extend="both")
        inside = levels[every:-1:every]
        colours = ["white" if level <= levels.mean() else "black" for level in inside]
        lines = axis.contour(*drawn, inside, colors=colours, linewidths=0.6)
        axis.clabel(lines, fontsize=7, fmt="%.2g")
        axis.set(title=title, xlabel="entropy $H$", xticks=[0, 0.5, 1])
    axes[0, 0].set_ylabel("breaking temp. $t_b$")
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


def frs_by_d(table: pd.DataFrame, points: pd.DataFrame, estimator: str) -> Figure:
    """Figures 10-12: mean FRS with its interval by d, models side by side, a panel a domain.
    `table`: intervals by model, domain and d; `points` (single facts): model, domain, d, frs."""
    looks, ds = style.looks(table["model"]), sorted(table["d"].unique())
    points = points[points["d"].isin(ds)].dropna(subset=["frs"])
    labels = ("$d$, penalty of entropy", f"FRS, $t_b$ {estimator}")
    fig, panels = blocks.panels(table, "domain", labels=labels, shares="y", what="facts")
    step = 0.8 / len(looks)
    for axis, part in panels:
        inside = points[points["domain"] == part["domain"].iloc[0]]
        at, faint = (
            rows["d"].map(ds.index) + blocks.asides(rows["model"], looks, step)
            for rows in (part, inside)
        )
        for model, look in looks.items():
            frs = inside.loc[inside["model"] == model, "frs"]
            spread = faint[inside["model"] == model] + style.jitter(len(frs), step * 0.7)
            axis.scatter(spread, frs, s=4, color=look.colour, alpha=0.2, lw=0)
        edge: dict[str, Any] = {"mec": "black", "mew": 0.6, "ms": 4, "ecolor": "black"}
        blocks.dots(axis, part, at, looks, elinewidth=None, **edge)
        axis.set_xticks(range(len(ds)), [f"{d:g}" for d in ds])
        axis.grid(False, axis="x")
    return blocks.legend(fig, blocks.keys(looks, ls=""))


def frs_distribution(points: pd.DataFrame, estimator: str) -> Figure:
    """Figure 13: the density of FRS, a line a model, a panel a domain. `points`: model, domain,
    fact_id, frs. Broken facts are a Gaussian kernel density, mirrored at 0 and at the gap; unbroken
    ones are a bar beyond 1. No fact can score in GAP, which is grey."""
    from scipy.stats import gaussian_kde

    drawn = points.dropna(subset=["frs"])
    drawn = drawn.assign(n=drawn.groupby(["model", "domain"])["frs"].transform("size"))
    labels = (f"FRS, $t_b$ {estimator}", "density")
    fig, panels = blocks.panels(drawn, "domain", what="facts", labels=labels)
    looks, at = style.looks(drawn["model"]), np.linspace(0, GAP[0], 161)
    for axis, part in panels:
        for k, (model, look) in enumerate(looks.items()):
            frs = part.loc[part["model"] == model, "frs"]
            broken, unbroken = frs[frs <= GAP[0]], frs[frs > GAP[0]]
            shown = {"color": look.colour, "ls": look.line}
            if broken.nunique() > 1:  # else there is no density
                kernel = gaussian_kde(broken)
                mirrored = sum(kernel(x) for x in (at, -at, 2 * GAP[0] - at))
                axis.plot(at, mirrored * len(broken) / len(frs), **shown)
            width, share = BIN / len(looks), len(unbroken) / max(len(frs), 1)
            axis.bar(1 + k * width, share / width, width, align="edge", color=look.colour)
        axis.axvspan(*GAP, color="0.93", lw=0, zorder=0)
        axis.set(xlim=(0, 1 + 1.2 * BIN), xticks=np.linspace(0, 1, 6))
        axis.set_ylim(bottom=0)
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
