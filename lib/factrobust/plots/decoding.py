"""Figures of what temperature does to known facts (paper 1, section 4): figures 1, 2, 3, 6, 7.

Each function takes ready tables and returns a closed matplotlib Figure. Columns mean, low, high and
n are those of `statistics.interval_table`; further columns do no harm. KeyError for a missing
column, ValueError for an empty table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from factrobust.plots import style
from factrobust.plots.style import DOUBLE

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
    grouped_bars(axes[0, 0], by_domain, "domain", style.DOMAINS, looks)
    grouped_bars(axes[0, 1], by_type, "answer_type", style.ANSWER_TYPES, looks)
    axes[0, 0].set(ylabel="share answered exactly", xlabel="domain")
    axes[0, 1].set(xlabel="answer type")
    axes[0, 0].set_ylim(bottom=0)
    style.legend(fig, [Patch(color=k.colour, label=style.model_name(m)) for m, k in looks.items()])
    return fig


def grouped_bars(
    axis: Axes,
    table: pd.DataFrame,
    column: str,
    order: Sequence[str],
    looks: dict[str, style.Look],
) -> None:
    """Bars of mean with intervals: a group a value of `column`, a bar a model, n below each group."""
    groups = style.in_order(table[column], order)
    width = 0.8 / len(looks)
    for k, (model, look) in enumerate(looks.items()):
        part = table[table["model"] == model]
        x = part[column].map(groups.index).to_numpy() + (k - (len(looks) - 1) / 2) * width
        axis.bar(x, part["mean"], width * 0.92, color=look.colour, alpha=0.85)
        axis.errorbar(
            x, part["mean"], style.errors(part), fmt="none", ecolor="0.15", elinewidth=0.9
        )
    axis.set_xticks(range(len(groups)), style.under_groups(table, column, groups, list(looks)))
    axis.grid(False, axis="x")


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
