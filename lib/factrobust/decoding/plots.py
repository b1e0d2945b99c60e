"""Figures of part 1: temperature and known facts (paper 1, and beyond it). Tables and errors as
`plots.blocks` says."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure

from factrobust.decoding.metrics import KNOWN_BY
from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE, Look


def shades(n: int) -> list[str]:
    """So many colours in an order, dark to bright."""
    return [to_hex(shade) for shade in colormaps["viridis"](np.linspace(0.05, 0.88, n))]


# Answers by their number of tokens.
LENGTHS = dict(
    zip(
        ("1 token", "2", "3 or more"),
        map(Look, shades(3), "os^"),
        strict=True,
    )
)
# Classes of t_b in figure 4, by the last of the paper's temperatures in each.
CLASSES = dict(
    zip(
        (0.4, 0.8, 1.2, 1.6, 2.0),
        map(Look, shades(5), "ooooo"),
        strict=True,
    )
)
UNBROKEN = Look(style.ORANGE, "D")
CERTAIN = 10  # classes of certainty


def known_by_relation(table: pd.DataFrame) -> Figure:
    """Share of facts that each model answers exactly, a panel a domain, relations by the mean over the
    models. `table`: intervals by model, domain and relation."""
    looks = style.looks(table["model"])
    domains = style.ordered(table["domain"])
    rows = {
        domain: blocks.by_mean(table[table["domain"] == domain], "relation") for domain in domains
    }
    height = 0.7 + 0.34 * max(map(len, rows.values()))
    labels = ("share known", "")
    how: dict[str, Any] = {
        "width": style.DOUBLE,
        "height": height,
        "shares": "x",
    }
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
    kinds = KNOWN_BY[1:] + KNOWN_BY[:1]
    colours = (style.LILAC, style.VIOLET, style.WRONG, "0.85")
    fills = dict(zip(kinds, colours, strict=True))
    return blocks.stacks(
        shares, "relation", rows, [style.name(row) for row in rows], "known by", fills,
        labels=("share of the relation's facts", ""), height=0.9 + 0.17 * len(rows), width=5,
    )[0]  # fmt: skip


def one_answer(shares: pd.DataFrame) -> Figure:
    """How temperature spreads one position's probability: a bar each temperature. `shares`: a row a
    temperature, a column a token or a group of tokens; the first is the greedy answer."""
    names = list(map(str, shares))
    temperatures = sorted(shares.index)
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
    [look] = style.looks(curve["model"]).values()
    top = 1.5 * samples["temperature"].max()
    labels = ("temperature $t$", "probability of the answer")
    fig, ((axis, part),) = blocks.panels(curve, labels=labels, shares="y")
    part = part.sort_values("temperature")
    axis.plot(
        part["temperature"],
        np.exp(part["logprob"]),
        color=look.colour,
    )
    sampled: dict[str, Any] = {
        "color": look.colour,
        "marker": "o",
        "mfc": "white",
        "ls": "",
    }
    axis.errorbar(
        samples["temperature"],
        samples["mean"],
        style.errors(samples),
        **sampled,
    )
    axis.axhline(0.5, **style.REFERENCE)
    marked: dict[str, Any] = {
        "color": "black",
        "marker": "D",
        "ls": "",
    }
    axis.plot([t_b], [0.5], zorder=4, **marked)
    axis.set_xlim(0, top)
    handles = [
        blocks.key("exact $P_t$", look, marker="", ls="-"),
        blocks.key(f"exact $t_b$ = {t_b:.2f}", **marked),
        blocks.key(
            f"{style.count_range(samples['n'])} samples, 95% interval",
            **sampled,
        ),
    ]
    return blocks.legend(fig, handles)


def surfaces(table: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Figures 8 and 9: scores over entropy and breaking temperature, as contours. `table`: entropy,
    t_b (a grid of both), and the columns of scores, a panel each with its title."""
    every = 1 if len(titles) <= 2 else 2
    rows = -(-len(titles) // 3)
    fig, axes = style.grid(
        rows,
        -(-len(titles) // rows),
        DOUBLE,
        2.4 * rows,
        sharex=True,
        sharey=True,
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


def dial(
    dialled: pd.DataFrame,
    columns: pd.DataFrame,
    published: pd.DataFrame,
) -> Figure:
    """Mean FRS against sharpness, a line each d, a panel a model. A column of the paper's table 1 stands
    at the sharpness that fits it: a hollow point each d, its name above. `dialled` of
    `sharpness.dial`, `columns` of `sharpness.on_the_dial`, `published`: model, d, frs."""
    labels = ("sharpness $s$: all logits times $s$", "mean FRS")
    fig, panels = blocks.panels(dialled, "model", labels=labels, height=2.9)
    ds = sorted(dialled["d"].unique())
    looks = dict(zip(ds, map(Look, shades(len(ds))), strict=True))
    theirs = published.pivot(index="model", columns="d", values="frs")
    for axis, part in panels:
        here = columns[columns["model"] == part["model"].iloc[0]]
        for d, look in looks.items():
            line = part[part["d"] == d]
            axis.plot(
                line["s"],
                line["frs"],
                color=look.colour,
                marker="",
                lw=1.2,
            )
            at = theirs.loc[here["column"], d]
            axis.plot(
                here["s"],
                at,
                "o",
                mfc="white",
                mec=look.colour,
                ms=4.5,
                ls="",
                zorder=3,
            )
        for s, name in zip(here["s"], here["column"], strict=True):
            where: dict[str, Any] = {
                "rotation": 90,
                "fontsize": 6.5,
                "va": "bottom",
            }
            side = "right" if "GPT" in name else "left"  # two of the columns lie close together
            axis.text(s, 0.37, f" {name} ", ha=side, **where)
        axis.axvline(1, **style.REFERENCE)
        axis.set_ylim(0.35, 1.02)
        axis.set_title(
            f"{axis.get_title()}\ncircles at most {here['miss'].max():.3f} off the lines"
        )
        blocks.log_axis(axis, part["s"])
    handles = [blocks.key(f"$d$ = {d:g}", look, marker="") for d, look in looks.items()]
    paper = blocks.key("the paper's table 1", marker="o", mfc="white", ls="")
    return blocks.legend(fig, [*handles, paper])


def certainty_bins(table: pd.DataFrame) -> Figure:
    """Figures 2, 6, 7 of one domain: how certain sampled answers are, right ones left of wrong ones, a
    bar a temperature, a panel a model. `table` of `decoding.metrics.certainty_bins`: the surer, the
    stronger the colour. The least certain answers meet at the accuracy."""
    downwards = [k / CERTAIN for k in reversed(range(CERTAIN))]
    order = [(True, low) for low in downwards] + [(False, low) for low in reversed(downwards)]
    present = {
        *zip(
            table["correct"],
            table["bin"].round(1),
            strict=True,
        )
    }
    fills: dict[str, Any] = {}
    for right, low in (kind for kind in order if kind in present):
        colour = style.RIGHT if right else style.WRONG
        fills[_called(right, low)] = to_rgba(colour, 0.1 + low)
    pairs = zip(table["correct"], table["bin"], strict=True)
    drawn = table.assign(kind=[_called(right, low) for right, low in pairs])
    temperatures = sorted(table["temperature"].unique(), reverse=True)
    labels = ("share of samples, by certainty", "temperature $t$")
    names = [f"{t:g}" for t in temperatures]
    return blocks.stacks(
        drawn, "temperature", temperatures, names, "kind", fills, panel="model", labels=labels,
        what="samples", height=2.4,
    )[0]  # fmt: skip


def _called(right: bool, low: float) -> str:
    return f"{'right' if right else 'wrong'}, {low:.1f}–{low + 1 / CERTAIN:.1f}"


def by_tokens(points: pd.DataFrame, x: str, y: str, **options: Any) -> Figure:
    """Facts by the number of tokens of their answers (the column tokens), a panel a model. `options` as
    `blocks.panels` takes them."""
    kinds = points["tokens"].clip(upper=len(LENGTHS)).map(dict(enumerate(LENGTHS, 1)))
    return _coloured(points.assign(kind=kinds), x, y, LENGTHS, **options)


def frs_by_entropy(points: pd.DataFrame, estimator: str) -> Figure:
    """Figure 4: FRS against entropy, coloured by t_b, a panel a model. `points`: model, fact_id,
    entropy, frs, t_b (inf: unbroken), one d; `estimator` says how t_b was found."""
    names = {last: f"$t_b$ {last - 0.2:.1f}–{last:.1f}" for last in CLASSES}
    looks = {name: CLASSES[last] for last, name in names.items()}
    unbroken = "unbroken up to 2"
    place = np.searchsorted([*CLASSES], points["t_b"] - 1e-9)
    kinds = np.array([*looks, unbroken])[place]
    labels = (
        "initial entropy $H$",
        f"FRS ($d$ = {points['d'].iloc[0]:g}), $t_b$ {estimator}",
    )
    looks[unbroken] = UNBROKEN
    how: dict[str, Any] = {
        "labels": labels,
        "shares": "xy",
        "height": 3.0,
    }
    return _coloured(
        points.assign(kind=kinds),
        "entropy",
        "frs",
        looks,
        **how,
    )


def _coloured(
    points: pd.DataFrame,
    x: str,
    y: str,
    looks: Mapping[str, Look],
    **options: Any,
) -> Figure:
    """Facts as points, those of each `kind` by its look; facts without a value are left out."""
    points = points.dropna(subset=[x, y])
    points = points.assign(n=points.groupby("model")["fact_id"].transform("size"))
    fig, panels = blocks.panels(points, "model", what="facts", **options)
    for axis, part in panels:
        for kind, look in looks.items():
            of_kind = part[part["kind"] == kind]
            form: dict[str, Any] = {
                "s": 11,
                "marker": look.marker,
                "alpha": 0.6,
                "lw": 0,
            }
            axis.scatter(of_kind[x], of_kind[y], color=look.colour, **form)
    return blocks.legend(fig, blocks.keys(looks, ls=""))
