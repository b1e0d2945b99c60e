"""Figures of part 2, robustness to dates (paper 2, and beyond it).

Tables, of one prompt format a model, and errors as `plots.blocks` says.
"""

from __future__ import annotations

import textwrap
from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from factrobust.datasets.dates import DAYS_A_YEAR, PRECISIONS, Days, parse
from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE

ORDER = (*PRECISIONS, "global")
MARKS: dict[str, dict[str, Any]] = {  # of the labels of dates
    "correct": {"color": style.RIGHT, "marker": "o", "ms": 3.4},
    "transitional": {"color": "0.3", "marker": "D", "ms": 3.6, "mfc": "white", "zorder": 3},
    "incorrect": {"color": style.WRONG, "marker": "x", "ms": 3.6},
}
LANE = 0.24  # between the precisions of a fact, where rows are 1 apart
SIDES = {"before": "before the start", "after": "after the end"}
DOTTED: dict[str, Any] = {"color": "black", "lw": 1, "ls": ":"}


@style.styled
def timeline(facts: pd.DataFrame, dates: pd.DataFrame) -> Figure:
    """A few facts in time: validity as a bar, tested dates as marks by label, a row a fact.

    `facts`: fact_id, subject, object, start, end (ISO texts), drawn in their order; `dates`, rows of
    `datasets.dates.sample_dates`: fact_id, precision, date, label. A mark stands at the date's
    middle, a lane each precision of `dates`. Days that a bound leaves open are paler.
    """
    blocks.check(facts, "fact_id", values=["subject", "object", "start", "end"])
    blocks.check(dates, "fact_id", "precision", "date", values=["label"])
    lanes = style.in_order(dates["precision"], PRECISIONS)
    shift = {lane: style.aside(k, len(lanes), LANE) for k, lane in enumerate(lanes)}
    fig, axes = style.grid(1, 1, DOUBLE, 0.75 + (0.24 + 0.11 * len(lanes)) * len(facts))
    axis, rows = axes[0, 0], range(len(facts))
    start, end = parse(facts["start"]), parse(facts["end"])
    for first, last, colour in ((start[0], end[1] + 1, "0.91"), (start[1] + 1, end[0], "0.8")):
        axis.barh(rows, _years(last) - _years(first), 0.76, left=_years(first), color=colour)
    row = dict(zip(facts["fact_id"], rows, strict=True))
    for label, own in dates[dates["fact_id"].isin(row)].groupby("label"):
        first, last = parse(own["date"])
        y = own["fact_id"].map(row) + own["precision"].map(shift)
        axis.plot((_years(first) + _years(last + 1)) / 2, y, ls="", mew=0.9, **MARKS[str(label)])
    for lane in lanes if len(lanes) > 1 else []:
        blocks.beside(axis, shift[lane], lane)
    names = [f"{s}: {o}" for s, o in zip(facts["subject"], facts["object"], strict=True)]
    wrapped = [textwrap.wrap(name, 30, max_lines=2, placeholder=" …") for name in names]
    blocks.name_rows([axis], ["\n".join(map(style.printable, name)) for name in wrapped])
    axis.set(xlabel="calendar year")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axis.grid(False, axis="y")
    handles = blocks.patches({"validity": {"color": "0.8"}})
    handles += [blocks.key(label, ls="", **mark) for label, mark in MARKS.items()]
    return blocks.legend(fig, handles)


def _years(days: Days) -> NDArray[np.float64]:
    """Days as calendar years with a fraction, which is off by a day at most."""
    return days.astype("datetime64[D]").astype(float) / DAYS_A_YEAR + 1970


@style.styled
def rates_by_precision(table: pd.DataFrame, value: str, random: pd.Series | float) -> Figure:
    """Figure 2: a value by precision and over all three ("global"): a row a model, a panel a precision.

    `table`: intervals by model and precision; `value` is the label of x, such as "win rate". `random`,
    dashed: what random scores reach, one number (0.5 for the win rate) or one a precision [precision]
    (of the column chance of `schemas.Matched`, for the robustness).
    """
    fig, panels = blocks.forest(
        table, "model", list(style.looks(table["model"])), row_height=0.2, xlabel=value,
        panel="precision", order=ORDER, what="facts",
        extra=[blocks.key("random", **style.REFERENCE)],
    )  # fmt: skip
    for axis, own in panels:
        level = random[own["precision"].iloc[0]] if isinstance(random, pd.Series) else random
        axis.axvline(level, **style.REFERENCE)
    return fig


@style.styled
def logprob_by_position(table: pd.DataFrame) -> Figure:
    """Figure 3: log-probability of the object by where the date lies, a panel a precision.

    `table`: intervals of relative (nats) by model, precision and position (alpha), all three as
    `metrics.time.positions` says. The validity, |alpha| < 0.5, is shaded. More models than colours
    have a panel each, with a line a precision.
    """
    many = table["model"].nunique() > len(style.COLOURS)
    precisions = style.series(style.in_order(table["precision"], ORDER))
    fig, panels = blocks.curves(
        table, "position",
        labels=("date $\\alpha$ (lengths of validity)", "log-probability minus that\nof correct dates (nats)"),
        panel="model" if many else "precision", order=ORDER, height=1.7 if many else 2.7,
        by="precision" if many else "model", looks=precisions if many else None,
        extra=blocks.patches({"validity": {"color": "0.9"}}),
    )  # fmt: skip
    for axis, _ in panels:
        axis.axvspan(-0.5, 0.5, color="0.93", lw=0, zorder=0)
    return fig


@style.styled
def rates_by_format(table: pd.DataFrame, value: str = "robustness") -> Figure:
    """Figure 5: a value by precision under a few prompt formats, side by side; a panel a model.

    `table`: intervals by model, prompt_format and precision; formats in the order in which they first
    appear; `value` is the label of x.
    """
    return blocks.forest(
        table, "precision", style.in_order(table["precision"], ORDER), panel="model", rows_n=True,
        by="prompt_format", looks=style.series(table["prompt_format"]), row_height=0.3, xlabel=value,
    )[0]  # fmt: skip


@style.styled
def variance_ratio(table: pd.DataFrame) -> Figure:
    """Figure 6: variance between precisions, few-shot over standard prompt, a point a model.

    `table`: intervals by model. Left of the line at 1 the few-shot prompt brought the precisions
    together. A ratio that is NaN is said to be so.
    """
    models = list(style.looks(table["model"]))
    fig, ((axis, own),) = blocks.forest(
        table, "model", models, row_height=0.25, at=1, what="facts",
        xlabel="variance between precisions,\nfew-shot / standard prompt",
    )  # fmt: skip
    for y in own.loc[own["mean"].isna(), "y"]:
        axis.text(1.03, y, "undefined", va="center", fontsize=7.5, color="0.35")
    axis.set_xlim(0, max(1.25, 1.06 * np.nanmax([*table["high"], *table["mean"], 0])))
    return fig


@style.styled
def robust_elsewhere(table: pd.DataFrame) -> Figure:
    """Of the facts robust at one precision, the share robust at another as well, a row a pair.

    `table`: intervals by model, known_at and asked_at (n: facts robust at the first).
    """
    table = table.assign(precisions=table["known_at"] + " → " + table["asked_at"])
    pairs = [f"{known} → {asked}" for known, asked in permutations(PRECISIONS, 2)]
    rows = [pair for pair in pairs if pair in set(table["precisions"])]
    return blocks.forest(
        table, "precisions", rows, rows_n=True, xlabel="share also robust there", shares="x"
    )[0]


@style.styled
def rates_by_size(table: pd.DataFrame, value: str) -> Figure:
    """Figure 7: a value of models by their number of parameters, the smallest on top.

    `table`: intervals by model, with parameters and kind ("pretrained" or "instruction-tuned",
    hollow); `value` is the label of x, such as "robustness".
    """
    table = table.sort_values("parameters").assign(hollow=table["kind"] == "instruction-tuned")
    sizes = [style.short(float(f"{size:.3g}")) for size in table["parameters"]]
    names = [
        f"{style.model_name(model)}\n({size}, {kind})"
        for model, size, kind in zip(table["model"], sizes, table["kind"], strict=True)
    ]
    return blocks.forest(
        table, "model", list(table["model"]), names, row_height=0.3, xlabel=value, what="facts"
    )[0]


@style.styled
def rates_by_popularity(table: pd.DataFrame, value: str) -> Figure:
    """Figure 8: a value in bins of popularity, of the subject, the object and the fact.

    `table`: intervals by model, what ("subject", "object", "fact") and popularity_bin (from 0, least
    popular); `value` is the label of y. A panel a model.
    """
    table = table.assign(what="of the " + table["what"], bin=table["popularity_bin"] + 1)
    looks = style.series(["of the subject", "of the object", "of the fact"])
    fig, panels = blocks.curves(
        table, "bin", panel="model", by="what", looks=looks,
        labels=("popularity (bin, 1 = least)", value), what="facts a bin", apart=0.14,
        markers=True,
    )  # fmt: skip
    for axis, own in panels:
        axis.set_xticks(sorted(own["bin"].unique()))
        blocks.from_zero(axis, table)
    return fig


@style.styled
def duel_shares(table: pd.DataFrame) -> Figure:
    """Figure 9: share of facts that a model wins, ties or loses against another, as stacked bars.

    `table`, of `metrics.time.duel_shares`: first, second, precision, metric, outcome, share, n. A
    panel a metric; a row a duel and precision.
    """
    blocks.check(table, "first", "second", "precision", "metric", "outcome", values=["share", "n"])
    duels = list(dict.fromkeys(zip(table["first"], table["second"], strict=True)))
    rows = list(product(duels, style.in_order(table["precision"], ORDER)))
    places = zip(zip(table["first"], table["second"], strict=True), table["precision"], strict=True)
    table = table.assign(row=[rows.index(place) for place in places])
    alone = len(duels) == 1
    labels = []
    for k, (duel, precision) in enumerate(rows):
        who = "" if alone else "{} /\n{}\n".format(*map(style.model_name, duel))
        n = style.count(table.loc[table["row"] == k, "n"])
        labels.append(f"{who}{precision} (n = {n})")
    colours = {"win": style.RIGHT, "tie": "0.85", "lose": style.WRONG}
    fills = {outcome: {"color": colour} for outcome, colour in colours.items()}
    metric = table["metric"].replace({"win_rate": "win rate", "robust": "robustness"})
    fig, panels = blocks.panels(
        table.assign(metric=metric), "metric", width=DOUBLE,
        height=0.85 + (0.3 if alone else 0.6) * len(rows),
        labels=("share of facts", "precision" if alone else "first / second"),
    )  # fmt: skip
    for axis, own in panels:
        blocks.stack(axis, own, "row", range(len(rows)), "outcome", fills)
    blocks.name_rows([axis for axis, _ in panels], labels)
    first, second = map(style.model_name, duels[0]) if alone else ("first", "second")
    says = (f"{first} better", "equal", f"{second} better")
    return blocks.legend(fig, blocks.patches(dict(zip(says, fills.values(), strict=True))))


@style.styled
def margin_curves(table: pd.DataFrame) -> Figure:
    """Share of facts robust by the margin that is required, a line a model, a panel a precision.

    `table`: intervals by model, precision and required (nats, see `metrics.luck.margin_curves`). At 0
    (dashed) it is the paper's robustness.
    """
    fig, panels = blocks.curves(
        table, "required", panel="precision", order=ORDER,
        labels=("required margin (nats)", "share of facts robust"), shares="y",
    )  # fmt: skip
    for axis, _ in panels:
        axis.axvline(0, **style.REFERENCE)
        axis.margins(x=0)
    return fig


@style.styled
def by_number_of_dates(table: pd.DataFrame, chance: pd.DataFrame) -> Figure:
    """Robustness by the number of incorrect dates tested, a line a model, a panel a precision.

    `table`: intervals of robust by model, precision and n_incorrect, see
    `metrics.luck.by_number_of_dates`. `chance`, dotted: the mean of chance by precision, n_incorrect.
    """
    fig, panels = blocks.curves(
        table, "n_incorrect", panel="precision", order=ORDER, markers=True,
        labels=("incorrect dates tested (log scale)", "share of facts robust"), shares="y",
        extra=[blocks.key("chance", **DOTTED)],
    )  # fmt: skip
    tested = sorted(table["n_incorrect"].unique())
    for axis, own in panels:
        by_luck = chance[chance["precision"].isin(own["precision"])].sort_values("n_incorrect")
        axis.plot(by_luck["n_incorrect"], by_luck["mean"], **DOTTED)
        blocks.log_axis(axis, tested, 1.15)
        if len(tested) <= 8:
            axis.set_xticks(tested, [str(k) for k in tested])
    return fig


@style.styled
def nearest_misses(table: pd.DataFrame, tested: pd.DataFrame) -> Figure:
    """Share of facts whose nearest miss lies within so many years of the validity, before the start
    (left) and after the end (right); a row of panels a precision.

    `table`: intervals by model, precision, side ("before", "after") and years (above 0) of
    |years_off| <= years in `metrics.luck.nearest_misses`, where facts without a miss count as False.
    `tested`, dotted, the mean of the same of nearest_tested, which no miss can precede.
    """
    blocks.check(table, "model", "precision", "side", "years")
    looks, precisions = style.looks(table["model"]), style.in_order(table["precision"], PRECISIONS)
    height = 0.55 + 1.75 * len(precisions)
    fig, axes = style.grid(len(precisions), 2, DOUBLE, height, sharex="col", sharey=True)
    for row, precision in zip(axes, precisions, strict=True):
        for axis, (side, where) in zip(row, SIDES.items(), strict=True):
            own, bound = (
                part[(part["precision"] == precision) & (part["side"] == side)]
                for part in (table, tested.sort_values("years"))
            )
            blocks.lines(axis, own, "years", looks)
            axis.plot(bound["years"], bound["mean"], **DOTTED)
            axis.set_title(f"{precision}, {where} ({style.counts(own, list(looks), 'facts')})")
            blocks.log_axis(axis, table["years"], 1.05)
            style.shares(axis)
        row[0].set_ylabel("share with a miss\nwithin so many years")
    fig.supxlabel("years from the validity (log scale)")
    axes[0, 0].invert_xaxis()  # of the whole column: time runs to the right
    handles = blocks.keys(looks, marker="")
    return blocks.legend(fig, [*handles, blocks.key("nearest date tested", **DOTTED)])


@style.styled
def dtype_difference(table: pd.DataFrame) -> Figure:
    """How much bfloat16 moves log-probabilities: a histogram in steps a model.

    `table`, a row a statement: model, difference (nats, bfloat16 minus float32).
    """
    looks, reach = style.looks(table["model"]), float(table["difference"].abs().max()) or 1e-9
    edges = np.linspace(-reach, reach, 42)  # 0 is the middle of a bin
    fig, ((axis, _),) = blocks.panels(
        table, None, height=2.5, labels=(
            "log-probability, bfloat16 − float32 (nats)",
            f"share of statements\n(bins of {edges[1] - edges[0]:.2g} nats)",
        ),
    )  # fmt: skip
    blocks.histograms(axis, table, "difference", edges, looks)
    axis.axvline(0, **style.REFERENCE)
    n = table.assign(n=table.groupby("model")["model"].transform("size"))
    return blocks.legend(fig, blocks.keys(looks, n, marker=""))
