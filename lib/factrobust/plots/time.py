"""Figures of part 2, robustness to dates (paper 2): a timeline, figures 2 and 3.

Tables and errors as `plots.time_style` says.

Figures 2 and 3 of paper 2 for more models than there are colours: each model has its own place.

Tables as `plots.time` says, which calls these; models stand in the tables' order, so that the pairs
of a profile stay together.

Figures of part 2 about prompts and precisions (paper 2, 4.4 to 4.6): figures 5, 6 and transfer.

Tables and errors as `plots.time_style` says.

Figures of part 2 that compare models: size, popularity and tuning (paper 2): figures 7, 8, 9.

Tables and errors as `plots.time_style` says.

Figures of part 2 beyond the paper: how much of robustness is luck, small margins, or rounding?

Tables and errors as `plots.time_style` says.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from factrobust.datasets.dates import DAYS_A_YEAR, PRECISIONS, Days, parse
from factrobust.metrics.luck import SIDES
from factrobust.metrics.time import DUELLED, OUTCOMES
from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE, SINGLE

MARKS: dict[str, dict[str, Any]] = {  # of the labels of dates
    "correct": {"color": style.RIGHT, "marker": "o", "ms": 3.4},
    "transitional": {"color": "0.3", "marker": "D", "ms": 3.6, "mfc": "white", "zorder": 3},
    "incorrect": {"color": style.WRONG, "marker": "x", "ms": 3.6},
}
LANE = 0.24  # between the precisions of a fact, where rows are 1 apart


@style.styled
def timeline(facts: pd.DataFrame, dates: pd.DataFrame) -> Figure:
    """A few facts in time: validity as a bar, tested dates as marks by label, a row a fact.

    `facts`: fact_id, subject, object, start, end (ISO texts), drawn in their order; `dates`, rows of
    `datasets.dates.sample_dates`: fact_id, precision, date, label. A mark stands at the date's
    middle, a lane each precision of `dates`. Days that a bound leaves open are paler.
    """
    style.need(facts, "fact_id", "subject", "object", "start", "end")
    style.need(dates, "fact_id", "precision", "date", "label")
    blocks.known(dates, "label", MARKS)
    lanes = style.in_order(dates["precision"], PRECISIONS)
    shift = {lane: (k - (len(lanes) - 1) / 2) * LANE for k, lane in enumerate(lanes)}
    height = 0.75 + (0.24 + 0.11 * len(lanes)) * len(facts)
    fig, axes = style.panels(1, 1, DOUBLE, height)
    axis, rows = axes[0, 0], range(len(facts))
    start, end = parse(facts["start"]), parse(facts["end"])
    for first, last, colour in ((start[0], end[1] + 1, "0.91"), (start[1] + 1, end[0], "0.8")):
        axis.barh(rows, _years(last) - _years(first), 0.76, left=_years(first), color=colour)
    row = dict(zip(facts["fact_id"], rows, strict=True))
    shown = dates[dates["fact_id"].isin(row)]
    for label, mark in MARKS.items():
        own = shown[shown["label"] == label]
        first, last = parse(own["date"])
        y = own["fact_id"].map(row) + own["precision"].map(shift)
        axis.plot((_years(first) + _years(last + 1)) / 2, y, ls="", mew=0.9, **mark)
    for lane in lanes if len(lanes) > 1 else []:
        axis.text(
            1.01, shift[lane], lane, transform=axis.get_yaxis_transform(), va="center", fontsize=7
        )
    axis.set_yticks(
        rows, [_name(s, o) for s, o in zip(facts["subject"], facts["object"], strict=True)]
    )
    axis.set_ylim(len(facts) - 0.45, -0.55)  # the first fact on top
    axis.set(xlabel="calendar year")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axis.grid(False, axis="y")
    handles: list[Any] = [Patch(color="0.8", label="validity")]
    handles += [Line2D([], [], ls="", label=label, **mark) for label, mark in MARKS.items()]
    blocks.legend(fig, handles)
    return fig


def _years(days: Days) -> NDArray[np.float64]:
    """Days as calendar years with a fraction, which is off by a day at most."""
    return days.astype("datetime64[D]").astype(float) / DAYS_A_YEAR + 1970


def _name(subject: str, object: str) -> str:
    lines = textwrap.wrap(f"{subject}: {object}", 30, max_lines=2, placeholder=" …")
    return "\n".join(style.printable(line) for line in lines)


@style.styled
def rates(table: pd.DataFrame, value: str, random: pd.DataFrame | float | None = None) -> Figure:
    """Figure 2: a value by precision and over all three ("global"), a bar a model.

    `table`: model, precision, mean, low, high, n; `value` is the label of y, such as "win rate".
    `random`, dashed: what random scores reach, one number (0.5 for the win rate) or one a precision
    (precision, mean: of the column chance of `metrics.time.matches`, for the robustness). More models
    than colours stand in rows (`plots.time_many`).
    """
    blocks.intervals(table, "model", "precision")
    looks = style.looks(table["model"])
    groups = style.in_order(table["precision"], blocks.ORDER)
    levels = _levels(random, groups)
    if too_many(list(looks)):
        return many_rates(table, groups, value, levels)
    fig, axes = style.panels(1, 1, style.panel_width(1 if len(looks) <= 3 else 2), 2.6)
    axis = axes[0, 0]
    blocks.grouped_bars(axis, table, "precision", groups, looks)
    if len(looks) > 3:  # else the numbers of facts stand there model by model
        n = [style.count(table.loc[table["precision"] == group, "n"]) for group in groups]
        axis.set_xticks(
            range(len(groups)), [f"{g}\nn = {k}" for g, k in zip(groups, n, strict=True)]
        )
    for k, level in enumerate(levels):
        axis.plot([k - 0.45, k + 0.45], [level, level], **RANDOM)
    axis.set(xlabel="precision of the dates", ylabel=value, xlim=(-0.55, len(groups) - 0.45))
    blocks.from_zero(axis, [*table["high"], *table["mean"], *levels])
    handles: list[Any] = [
        Patch(color=look.colour, label=style.model_name(model)) for model, look in looks.items()
    ]
    if levels:
        handles.append(Line2D([], [], label="random", **RANDOM))
    blocks.legend(fig, handles)
    return fig


def _levels(random: pd.DataFrame | float | None, groups: list[str]) -> list[float]:
    """What random scores reach in each group; none if that is not given."""
    if random is None:
        return []
    if not isinstance(random, pd.DataFrame):
        return [random] * len(groups)
    style.once(random, "precision")
    of = dict(zip(random["precision"], random["mean"], strict=True))
    return [of.get(group, np.nan) for group in groups]


@style.styled
def logprob_by_position(table: pd.DataFrame) -> Figure:
    """Figure 3: log-probability of the object by where the date lies, a panel a precision.

    `table`: model, precision, position (alpha, see `metrics.time.positions`), mean, low, high (of
    its column relative, in nats), n. The validity, |alpha| < 0.5, is shaded between dashed edges.
    More models than colours have a panel each (`plots.time_many`).
    """
    blocks.intervals(table, "model", "precision", "position")
    looks = style.looks(table["model"])
    if too_many(list(looks)):
        return many_logprob_by_position(table)
    fig, panels = blocks.precision_panels(table, looks, 2.7)
    for axis, part in panels:
        axis.axvspan(-0.5, 0.5, color="0.93", lw=0, zorder=0)
        for edge in (-0.5, 0.5):
            axis.axvline(edge, color="0.4", lw=0.8, ls="--", zorder=1)
        for model, look in looks.items():
            blocks.line(axis, part[part["model"] == model], "position", look)
        axis.set_xlabel("date $\\alpha$ (lengths of validity)")
    panels[0][0].set_ylabel("log-probability minus that\nof correct dates (nats)")
    blocks.legend(fig, [*blocks.keys(looks), Patch(color="0.9", label="validity")])
    return fig


ROW = 0.17  # inches
RANDOM: dict[str, Any] = {"color": "black", "lw": 1.1, "ls": (0, (3, 1.5))}
PRECISION_LOOKS = dict(
    zip(
        blocks.ORDER,
        (style.Look(c, "", ls) for c, ls in zip(style.COLOURS, style.LINES, strict=False)),
        strict=True,
    )
)


def too_many(models: Sequence[str]) -> bool:
    """Whether colours would repeat."""
    return len(models) > len(style.COLOURS)


def many_rates(
    table: pd.DataFrame, groups: Sequence[str], value: str, levels: Sequence[float]
) -> Figure:
    """Figure 2: a row a model, a panel a precision, dashed what random scores reach there."""
    models = list(dict.fromkeys(table["model"]))
    height = 1.0 + ROW * len(models)
    fig, axes = style.panels(1, len(groups), style.DOUBLE, height, sharex=True, sharey=True)
    for k, (axis, group) in enumerate(zip(axes[0], groups, strict=True)):
        own = table[table["precision"] == group].set_index("model").reindex(models)
        y = range(len(models))
        axis.errorbar(
            own["mean"], y, xerr=style.errors(own), fmt="o", color="0.2", ms=3, elinewidth=1
        )
        if levels:
            axis.axvline(levels[k], **RANDOM)
        axis.set_title(f"{group}\nn = {style.count(own['n'].dropna())} facts")
        axis.set_xlabel(value)
        axis.set_yticks(y, [style.model_name(model) for model in models])
    axes[0, 0].set(ylabel="model", ylim=(len(models) - 0.4, -0.6))  # the first model on top
    if levels:
        blocks.legend(fig, [Line2D([], [], label="random", **RANDOM)])
    return fig


def many_logprob_by_position(table: pd.DataFrame) -> Figure:
    """Figure 3: a panel a model, a line a precision; the validity is shaded."""
    models = list(dict.fromkeys(table["model"]))
    fig, panels = style.model_panels(models, 1.55)
    precisions = style.in_order(table["precision"], blocks.ORDER)
    for axis, model in zip(panels, models, strict=True):
        own = table[table["model"] == model]
        axis.axvspan(-0.5, 0.5, color="0.93", lw=0, zorder=0)
        for precision in precisions:
            blocks.line(
                axis, own[own["precision"] == precision], "position", PRECISION_LOOKS[precision]
            )
        axis.set_title(f"{style.model_name(model)}\nn = {style.count(own['n'])} facts")
    fig.supxlabel("date $\\alpha$ (lengths of validity)", size=style.RC["axes.labelsize"])
    style.label_left(panels, "relative\nlog-probability (nats)")
    keys = [style.key(name, PRECISION_LOOKS[name], marker="") for name in precisions]
    blocks.legend(fig, [*keys, Patch(color="0.9", label="validity")])
    return fig


FILLS: tuple[dict[str, Any], ...] = (  # of the prompt formats; the colour stays the model's
    {"alpha": 0.85},
    {"facecolor": "white", "hatch": "//////"},
    {"alpha": 0.35},
)


@style.styled
def formats(table: pd.DataFrame, value: str = "robustness") -> Figure:
    """Figure 5: a value by precision under two or three prompt formats, side by side; a panel a
    model.

    `table`: model, prompt_format, precision, mean, low, high, n; formats in the order in which they
    first appear, ValueError for more than three; `value` is the label of y.
    """
    blocks.intervals(table, "model", "prompt_format", "precision")
    tried = list(dict.fromkeys(table["prompt_format"]))
    if len(tried) > len(FILLS):
        raise ValueError(f"{len(tried)} formats are too many to tell apart: give at most 3.")
    looks = style.looks(table["model"])
    groups = style.in_order(table["precision"], blocks.ORDER)
    fig, axes = style.model_panels(list(looks), 2.5)
    width = 0.8 / len(tried)
    for axis, (model, look) in zip(axes, looks.items(), strict=True):
        here = table[table["model"] == model]
        for k, name in enumerate(tried):
            own = here[here["prompt_format"] == name]
            x = own["precision"].map(groups.index).to_numpy() + (k - (len(tried) - 1) / 2) * width
            axis.bar(x, own["mean"], width * 0.9, **_bar(k, look.colour))
            axis.errorbar(
                x, own["mean"], style.errors(own), fmt="none", ecolor="0.15", elinewidth=0.9
            )
        axis.set_title(style.model_name(model))
        axis.set_xticks(range(len(groups)), style.under_groups(here, "precision", groups, [model]))
        axis.grid(False, axis="x")
        axis.set_xlabel("precision of the dates")
        blocks.from_zero(axis, [*table["high"], *table["mean"]])
    style.label_left(axes, value)
    one = next(iter(looks.values())).colour if len(looks) == 1 else "0.3"
    blocks.legend(fig, [Patch(label=name, **_bar(k, one)) for k, name in enumerate(tried)])
    return fig


def _bar(number: int, colour: str) -> dict[str, Any]:
    return {"facecolor": colour, "edgecolor": colour, "linewidth": 0.8} | FILLS[number]


@style.styled
def variance_ratio(table: pd.DataFrame) -> Figure:
    """Figure 6: variance between precisions, few-shot over standard prompt, a point a model.

    `table`: model, mean, low, high, n, of `metrics.time.variance_ratio`. Left of the line at
    1 the few-shot prompt brought the precisions together. A ratio that is NaN is said to be so.
    """
    blocks.intervals(table, "model")
    looks = style.looks(table["model"])
    fig, axes = style.panels(1, 1, SINGLE, 0.75 + 0.27 * len(looks))
    axis, names = axes[0, 0], []
    for y, (model, look) in enumerate(looks.items()):
        own = table[table["model"] == model]
        axis.errorbar(
            own["mean"], [y], xerr=style.errors(own), fmt=look.marker, color=look.colour, ms=5,
            capsize=2, elinewidth=1,
        )  # fmt: skip
        if own["mean"].isna().all():
            axis.text(1.03, y, "undefined", va="center", fontsize=7.5, color="0.35")
        names.append(f"{style.model_name(model)}\n(n = {style.count(own['n'])})")
    axis.axvline(1, color="0.3", lw=0.9, ls="--", zorder=1)
    axis.set_yticks(range(len(looks)), names)
    axis.set_ylim(len(looks) - 0.5, -0.5)
    axis.set_xlim(0, max(1.25, 1.06 * np.nanmax([*table["high"], *table["mean"], 0])))
    axis.set_xlabel("variance between precisions,\nfew-shot / standard prompt")
    axis.grid(False, axis="y")
    return fig


@style.styled
def transfer(table: pd.DataFrame) -> Figure:
    """Of the facts robust at one precision (row), the share robust at another (column) as well.

    `table`: model, known_at, asked_at, mean, low, high, n, of `metrics.time.robust_elsewhere`. A
    heatmap a model; each cell says mean, interval and the number of facts robust at its row.
    """
    import seaborn as sns  # a second, which only this figure needs

    blocks.intervals(table, "model", "known_at", "asked_at")
    blocks.known(table, "known_at", PRECISIONS)
    models = list(style.looks(table["model"]))
    fig, axes = style.model_panels(models, 2.6 if len(models) > 1 else 3.0)
    for axis, model in zip(axes, models, strict=True):
        own = table[table["model"] == model]
        cells = own.assign(text=[_cell(row) for row in own.itertuples(index=False)])
        share, text = (
            cells.pivot(index="known_at", columns="asked_at", values=name).reindex(
                index=list(PRECISIONS), columns=list(PRECISIONS)
            )
            for name in ("mean", "text")
        )
        sns.heatmap(
            share.astype(float), annot=text.fillna(""), fmt="", vmin=0, vmax=1, cmap="viridis",
            cbar=False, linewidths=1.5, ax=axis, annot_kws={"fontsize": 7},
        )  # fmt: skip
        axis.set_title(style.model_name(model))
        axis.set(xlabel="share also robust at", ylabel="")
        axis.grid(False)
        axis.tick_params(length=0, rotation=0)
    style.label_left(axes, "of the facts robust at")
    return fig


def _cell(row: Any) -> str:
    interval = "" if np.isnan(row.low) else f"\n{row.low:.2f}–{row.high:.2f}"
    return f"{row.mean:.2f}{interval}\nn = {row.n}"


KINDS: dict[str, dict[str, Any]] = {
    "pretrained": {"marker": "o", "ms": 5},
    "instruction-tuned": {"marker": "D", "ms": 5, "mfc": "white", "mew": 1.3},
}
POPULARITIES = {  # of what; no colour of an embedded model
    "subject": style.Look(style.GREEN, "^", (0, (5, 1.5))),
    "object": style.Look(style.PURPLE, "v", (0, (1, 1.2))),
    "fact": style.Look("0.15", "o", "-"),
}
OUTCOME_COLOURS = (style.RIGHT, "0.85", style.WRONG)  # of OUTCOMES
DUEL = ["first", "first_format", "second", "second_format"]
METRIC_NAMES = {"win_rate": "win rate", "robust": "robustness"}


@style.styled
def by_size(table: pd.DataFrame, value: str, fit: pd.DataFrame | None = None) -> Figure:
    """Figure 7: a value against the number of parameters, on a log axis, a point a model.

    `table`: model, parameters, kind ("pretrained" or "instruction-tuned"), mean, low, high, n;
    `value` is the label of y, such as "robustness". `fit`, drawn as a line: parameters, mean.
    Models of the same size stand side by side.
    """
    blocks.intervals(table, "model")
    style.need(table, "parameters", "kind")
    blocks.known(table, "kind", KINDS)
    table = table.reset_index(drop=True)
    looks = style.looks(table["model"])
    fig, axes = style.panels(1, 1, SINGLE if len(looks) <= 4 else DOUBLE, 2.6)
    axis = axes[0, 0]
    handles = []
    for model, look in looks.items():
        own = table[table["model"] == model]
        mark = {"color": look.colour, "ls": "", **KINDS[own["kind"].iloc[0]]}
        same = table.index[table["parameters"] == own["parameters"].iloc[0]]
        aside = 1.05 ** (same.get_loc(own.index[0]) - (len(same) - 1) / 2)
        axis.errorbar(
            own["parameters"] * aside,
            own["mean"],
            style.errors(own),
            elinewidth=1,
            capsize=2,
            **mark,
        )
        handles.append(style.key(model, look, **mark))
    for kind in style.in_order(table["kind"], list(KINDS)):
        handles.append(Line2D([], [], ls="", color="0.4", label=kind, **KINDS[kind]))
    if fit is not None:
        style.need(fit, "parameters", "mean")
        fit = fit.sort_values("parameters")
        axis.plot(fit["parameters"], fit["mean"], color="0.4", lw=1, ls="--", zorder=1)
        handles.append(Line2D([], [], color="0.4", lw=1, ls="--", label="fit"))
    near = table["parameters"].max() < 5 * table["parameters"].min()
    blocks.log_axis(axis, table["parameters"], 2.5 if near else 1.6)
    axis.set(xlabel="parameters (log scale)", ylabel=value)
    axis.set_title(blocks.facts(table, list(looks)))
    blocks.from_zero(axis, [*table["high"], *table["mean"]])
    blocks.legend(fig, handles)
    return fig


@style.styled
def by_popularity(table: pd.DataFrame, value: str) -> Figure:
    """Figure 8: a value in bins of popularity, of the subject, the object and the fact.

    `table`: model, what ("subject", "object", "fact"), popularity_bin (from 0, least popular, see
    `metrics.time.popularity_bins`), mean, low, high, n; `value` is the label of y. A panel a model;
    the three lines stand a little apart, so that intervals do not hide each other.
    """
    blocks.intervals(table, "model", "what", "popularity_bin")
    blocks.known(table, "what", POPULARITIES)
    models = list(style.looks(table["model"]))
    shown = style.in_order(table["what"], list(POPULARITIES))
    bins = sorted(table["popularity_bin"].unique())
    fig, axes = style.model_panels(models, 2.5)
    for axis, model in zip(axes, models, strict=True):
        here = table[table["model"] == model]
        for k, what in enumerate(shown):
            own, look = here[here["what"] == what].sort_values("popularity_bin"), POPULARITIES[what]
            x = own["popularity_bin"] + (k - (len(shown) - 1) / 2) * 0.14
            axis.plot(x, own["mean"], color=look.colour, ls=look.line, lw=1)
            axis.errorbar(
                x, own["mean"], style.errors(own), fmt=look.marker, color=look.colour, elinewidth=1
            )
        axis.set_title(f"{style.model_name(model)}\nn = {style.count(here['n'])} facts a bin")
        axis.set_xticks(bins, [str(k + 1) for k in bins])
        axis.set_xlabel("popularity (bin, 1 = least)")
        axis.grid(False, axis="x")
        blocks.from_zero(axis, [*table["high"], *table["mean"]])
    style.label_left(axes, value)
    handles = [
        Line2D([], [], color=k.colour, marker=k.marker, ls=k.line, lw=1, label=f"of the {what}")
        for what, k in POPULARITIES.items()
        if what in shown
    ]
    blocks.legend(fig, handles)
    return fig


@style.styled
def duel_shares(table: pd.DataFrame) -> Figure:
    """Figure 9: share of facts that a model wins, ties or loses against another, as stacked bars.

    `table`, of `metrics.time.duel_shares`: first, first_format, second, second_format, precision,
    metric, outcome, share, n. A panel a metric; a row a duel and precision.
    """
    by = [*DUEL, "precision"]
    style.need(table, *by, "metric", "outcome", "share", "n")
    style.once(table, *by, "metric", "outcome")
    duels = list(table[DUEL].drop_duplicates().itertuples(index=False, name=None))
    precisions = style.in_order(table["precision"], blocks.ORDER)
    rows = [(*duel, precision) for duel in duels for precision in precisions]
    at = [rows.index(row) for row in table[by].itertuples(index=False, name=None)]
    table = table.assign(row=at)
    labels = []
    for k, (*duel, precision) in enumerate(rows):
        who = "" if len(duels) == 1 else "{} /\n{}\n".format(*_sides(*duel))
        labels.append(f"{who}{precision} (n = {style.count(table.loc[table['row'] == k, 'n'])})")
    metrics = style.in_order(table["metric"], DUELLED)
    height = 0.85 + (0.3 if len(duels) == 1 else 0.6) * len(rows)
    fig, axes = style.panels(1, len(metrics), DOUBLE, height, sharey=True)
    for axis, metric in zip(axes[0], metrics, strict=True):
        _stack(axis, table[table["metric"] == metric], len(rows))
        axis.set(title=METRIC_NAMES.get(metric, metric), xlabel="share of facts")
        style.shares(axis, "x")
        axis.set_xlim(0, 1)
        axis.grid(False)
    axes[0, 0].set_yticks(range(len(rows)), labels)
    axes[0, 0].set_ylim(len(rows) - 0.5, -0.5)  # the first row on top
    axes[0, 0].set_ylabel("precision" if len(duels) == 1 else "first / second")
    first, second = _sides(*duels[0]) if len(duels) == 1 else ("first", "second")
    says = (f"{first} better", "equal", f"{second} better")
    blocks.legend(
        fig, [Patch(color=c, label=text) for c, text in zip(OUTCOME_COLOURS, says, strict=True)]
    )
    return fig


def _stack(axis: Axes, table: pd.DataFrame, rows: int) -> None:
    """One bar a row, of its shares of win, tie and lose; wide ones say their share."""
    left = np.zeros(rows)
    for outcome, colour in zip(OUTCOMES, OUTCOME_COLOURS, strict=True):
        own = table[table["outcome"] == outcome].set_index("row")["share"]
        share = own.reindex(range(rows)).fillna(0).to_numpy(dtype=float)
        axis.barh(range(rows), share, 0.75, left=left, color=colour)
        ink = "white" if colour == style.RIGHT else "black"
        for y, (x, width) in enumerate(zip(left, share, strict=True)):
            if width >= 0.12:  # what is narrower does not hold its number
                middle = x + width / 2
                axis.text(
                    middle, y, f"{width:.0%}", color=ink, fontsize=7, ha="center", va="center"
                )
        left += share


def _sides(first: str, first_format: str, second: str, second_format: str) -> tuple[str, str]:
    """What the two sides are called: the models, with the formats if they are the same model."""
    if first != second:
        return style.model_name(first), style.model_name(second)
    name = style.model_name(first)
    return f"{name} {first_format}", f"{name} {second_format}"


WHERE = dict(zip(SIDES, ("before the start", "after the end"), strict=True))
WIDE = 8  # numbers of dates that span at least this factor get a log axis
BINS = 41  # of a histogram around 0: odd, so that 0 is the middle of one


@style.styled
def margin_curves(table: pd.DataFrame) -> Figure:
    """Share of facts robust by the margin that is required, a line a model, a panel a precision.

    `table`: model, precision, required (nats, see `metrics.luck.margin_curves`), mean, low, high,
    n. At 0 (dashed) it is the paper's robustness.
    """
    blocks.intervals(table, "model", "precision", "required")
    looks = style.looks(table["model"])
    fig, panels = blocks.precision_panels(table, looks, 2.5)
    for axis, here in panels:
        axis.axvline(0, color="0.4", lw=0.8, ls="--", zorder=1)
        for model, look in looks.items():
            blocks.line(axis, here[here["model"] == model], "required", look)
        axis.set_xlabel("required margin (nats)")
        axis.margins(x=0)
        style.shares(axis)
    panels[0][0].set_ylabel("share of facts robust")
    blocks.legend(fig, blocks.keys(looks))
    return fig


@style.styled
def by_number_of_dates(table: pd.DataFrame, chance: pd.DataFrame | None = None) -> Figure:
    """Robustness by the number of incorrect dates tested, a line a model, a panel a precision.

    `table`: model, precision, n_incorrect, mean, low, high (of robust, see
    `metrics.luck.by_number_of_dates`), n. `chance`, dotted: precision, n_incorrect, mean (of its
    column chance).
    """
    blocks.intervals(table, "model", "precision", "n_incorrect")
    looks = style.looks(table["model"])
    fig, panels = blocks.precision_panels(table, looks, 2.5)
    handles = blocks.keys(looks, marker=None)
    tested = sorted(table["n_incorrect"].unique())
    log = tested[-1] / tested[0] >= WIDE
    for axis, here in panels:
        for model, look in looks.items():
            blocks.line(axis, here[here["model"] == model], "n_incorrect", look, marker=look.marker)
        if chance is not None:
            style.once(chance, "precision", "n_incorrect")
            own = chance[chance["precision"].isin(here["precision"])].sort_values("n_incorrect")
            axis.plot(own["n_incorrect"], own["mean"], color="black", lw=1, ls=":")
        axis.set_xlabel("incorrect dates tested" + (" (log scale)" if log else ""))
        if log:
            blocks.log_axis(axis, table["n_incorrect"], 1.15)
        if len(tested) <= 8:
            axis.set_xticks(tested, [str(k) for k in tested])
        style.shares(axis)
    panels[0][0].set_ylabel("share of facts robust")
    if chance is not None:
        handles.append(Line2D([], [], color="black", lw=1, ls=":", label="chance"))
    blocks.legend(fig, handles)
    return fig


@style.styled
def nearest_misses(table: pd.DataFrame, tested: pd.DataFrame | None = None) -> Figure:
    """Share of facts whose nearest miss lies within so many years of the validity, before the start
    (left) and after the end (right); a row of panels a precision.

    `table`: model, precision, side ("before", "after"), years (above 0), mean, low, high, n: for
    each of some years, the mean over the rows of `metrics.luck.nearest_misses` of
    |years_off| <= years, where facts without a miss count as False. `tested`, dotted, the same of
    nearest_tested, which no miss can precede: precision, side, years, mean.
    """
    blocks.intervals(table, "model", "precision", "side", "years")
    blocks.known(table, "side", SIDES)
    looks = style.looks(table["model"])
    precisions = style.in_order(table["precision"], PRECISIONS)
    height = 0.55 + 1.75 * len(precisions)
    fig, axes = style.panels(len(precisions), 2, DOUBLE, height, sharex="col", sharey=True)
    for row, precision in zip(axes, precisions, strict=True):
        for axis, side in zip(row, SIDES, strict=True):
            here = table[(table["precision"] == precision) & (table["side"] == side)]
            for model, look in looks.items():
                blocks.line(axis, here[here["model"] == model], "years", look)
            if tested is not None:
                style.need(tested, "precision", "side", "years", "mean")
                style.once(tested, "precision", "side", "years")
                own = tested[(tested["precision"] == precision) & (tested["side"] == side)]
                own = own.sort_values("years")
                axis.plot(own["years"], own["mean"], color="black", lw=1, ls=":")
            axis.set_title(f"{precision}, {WHERE[side]} ({blocks.facts(here, list(looks))})")
            blocks.log_axis(axis, table["years"], 1.05)
            style.shares(axis)
        row[0].set_ylabel("share with a miss\nwithin so many years")
    fig.supxlabel("years from the validity (log scale)", fontsize=8.5)
    axes[0, 0].invert_xaxis()  # of the whole column: time runs to the right
    handles = blocks.keys(looks)
    if tested is not None:
        handles.append(Line2D([], [], color="black", lw=1, ls=":", label="nearest date tested"))
    blocks.legend(fig, handles)
    return fig


@style.styled
def dtype_difference(
    table: pd.DataFrame, names: tuple[str, str] = ("bfloat16", "float32")
) -> Figure:
    """How much a coarser dtype moves log-probabilities: a histogram in steps a model.

    `table`, a row a statement: model, difference (nats, first minus second of `names`).
    """
    style.need(table, "model", "difference")
    looks = style.looks(table["model"])
    fig, axes = style.panels(1, 1, SINGLE, 2.5)
    axis, handles = axes[0, 0], []
    reach = max(float(table["difference"].abs().max()), 1e-9)
    edges = np.linspace(-reach, reach, BINS + 1)
    for model, look in looks.items():
        own = table.loc[table["model"] == model, "difference"].to_numpy(dtype=float)
        share = np.histogram(own, edges)[0] / len(own)
        axis.stairs(share, edges, color=look.colour, ls=look.line, lw=1.3)
        axis.stairs(share, edges, color=look.colour, alpha=0.15, fill=True)
        handles.append(style.key(model, look, str(len(own)), marker=""))
    axis.axvline(0, color="0.4", lw=0.8, ls="--", zorder=1)
    axis.set_xlabel(f"log-probability, {names[0]} − {names[1]} (nats)")
    axis.set_ylabel(f"share of statements\n(bins of {2 * reach / BINS:.2g} nats)")
    axis.set_ylim(bottom=0)
    blocks.legend(fig, handles)
    return fig
