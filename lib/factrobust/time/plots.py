"""Figures of part 2, robustness to dates, with one prompt format a model. Tables and errors as
`plots.blocks` says."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE
from factrobust.time.dates import DAYS_A_YEAR, Days, parse

MARKS: dict[str, dict[str, Any]] = {  # of the labels of dates
    "correct": {"color": style.RIGHT, "marker": "o", "ms": 3.4},
    "transitional": {"color": "0.3", "marker": "D", "ms": 3.6, "mfc": "white", "zorder": 3},
    "incorrect": {"color": style.WRONG, "marker": "x", "ms": 3.6},
}
LANE = 0.24  # between the precisions of a fact, where rows are 1 apart


def timeline(facts: pd.DataFrame, dates: pd.DataFrame) -> Figure:
    """A few facts in time: validity as a bar, tested dates as marks by label, a row a fact. `facts`
    (`schemas.TemporalFacts`) keep their order; `dates` (`schemas.Dates`) have a lane a precision.
    Days that a bound leaves open are paler."""
    lanes = style.ordered(dates["precision"])
    shift = {lane: style.aside(k, len(lanes), LANE) for k, lane in enumerate(lanes)}
    fig, axes = style.grid(1, 1, DOUBLE, 0.75 + (0.24 + 0.11 * len(lanes)) * len(facts))
    axis, rows = axes[0, 0], range(len(facts))
    start, end = parse(facts["start"]), parse(facts["end"])
    for first, last, colour in ((start[0], end[1] + 1, "0.91"), (start[1] + 1, end[0], "0.8")):
        axis.barh(rows, _years(last) - _years(first), 0.76, left=_years(first), color=colour)
    row = dict(zip(facts["fact_id"], rows, strict=True))
    for label, part in dates[dates["fact_id"].isin(row)].groupby("label"):
        first, last = parse(part["date"])
        y = part["fact_id"].map(row) + part["precision"].map(shift)
        axis.plot((_years(first) + _years(last + 1)) / 2, y, ls="", mew=0.9, **MARKS[str(label)])
    for lane in lanes if len(lanes) > 1 else []:
        blocks.beside(axis, shift[lane], lane)
    names = [f"{s}: {o}" for s, o in zip(facts["subject"], facts["object"], strict=True)]
    wrapped = [textwrap.wrap(name, 30, max_lines=2, placeholder=" …") for name in names]
    blocks.name_rows([axis], ["\n".join(map(style.printable, name)) for name in wrapped])
    axis.set(xlabel="calendar year")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axis.grid(False, axis="y")
    handles = blocks.patches({"validity": "0.8"})
    handles += [blocks.key(label, ls="", **mark) for label, mark in MARKS.items()]
    return blocks.legend(fig, handles)


def _years(days: Days) -> NDArray[np.float64]:
    """Days as calendar years with a fraction, which is off by a day at most."""
    return days.astype("datetime64[D]").astype(float) / DAYS_A_YEAR + 1970


def over_years(table: pd.DataFrame, start: str, end: str) -> Figure:
    """Scores of one fact by year, with its validity shaded: a line a model, a panel a kind of
    score. `table`: model, year, value (the panel's name), mean (nats). The fact held from `start`
    to `end` (dates)."""
    held = [float(_years(parse(bound)[side])) for side, bound in enumerate((start, end))]
    fig, panels = blocks.curves(
        table.assign(low=np.nan, high=np.nan, n=1), "year", panel="value", what="", sharey=False,
        labels=("year in the question", "nats"), extra=blocks.patches({"validity": "0.9"}),
    )  # fmt: skip
    for axis, _ in panels:
        axis.axvspan(*held, color="0.9", lw=0, zorder=0)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    return fig


def match_matrix(table: pd.DataFrame) -> Figure:
    """Every match of one fact at one precision, of `time.metrics.match_table`: correct dates in
    rows, incorrect ones in columns, a panel a model."""
    fills = {"won": style.RIGHT, "tied": "0.85", "lost": style.WRONG}
    height = 0.9 + 0.22 * table["correct"].nunique()
    labels = "incorrect date", "correct date"
    fig, panels = blocks.panels(table, "model", labels=labels, height=height)
    for axis, part in panels:
        grid = part.pivot(index="correct", columns="incorrect", values="outcome")
        colours = ListedColormap([*fills.values()])
        blocks.cells(axis, grid.map([*fills].index), colours, len(fills) - 1)
        every = 1 + grid.shape[1] // 12  # so many dates have room below a panel
        axis.set_xticks(range(grid.shape[1])[::every], grid.columns[::every], rotation=60)
        axis.set_yticks(range(len(grid)), grid.index)
    return blocks.legend(fig, blocks.patches(fills))


def confusion(table: pd.DataFrame, holders: Sequence[str]) -> Figure:
    """Whom a model names (columns) in the years of each term of an office (rows): a panel a model.
    `table` of `time.successions.confusion`, of one chain; `holders` are the names of its terms.
    Right is on the diagonal; terms that were not asked are empty."""
    names = [style.printable(name) for name in holders]
    terms, models = range(len(names)), table["model"].nunique()
    width, height = DOUBLE if models > 1 else None, 1.2 + 0.17 * len(names)
    labels = "named", "in office"
    fig, panels = blocks.panels(table, "model", labels=labels, height=height, width=width)
    colours = LinearSegmentedColormap.from_list("share", ["0.96", style.BLUE])
    for axis, part in panels:
        grid = part.pivot(index="term", columns="predicted", values="share")
        blocks.cells(axis, grid.reindex(index=terms, columns=terms), colours, 1)
        axis.set_xticks(terms, names, rotation=90)
        axis.plot(terms, terms, ls="", marker="s", mfc="none", color="0.2", ms=4, mew=0.6)
    panels[0][0].set_yticks(terms, names)
    return fig


def logprob_by_position(table: pd.DataFrame) -> Figure:
    """Figure 3: log-probability of the object by where the date lies, a panel a precision. `table`:
    intervals of relative (nats) by model, precision and position of `time.metrics.positions`;
    transitional dates are hollow, the validity is shaded."""
    looks = style.looks(table["model"])
    nats = "log-probability minus that\nof correct dates (nats)"
    labels = ("date $\\alpha$ (lengths of validity)", nats)
    table = table.assign(hollow=table["position"].abs() == 0.5)
    fig, panels = blocks.panels(table, "precision", labels=labels)
    for axis, part in panels:
        axis.axvspan(-0.5, 0.5, color="0.93", lw=0, zorder=0)
        axis.axhline(0, **style.REFERENCE)
        at = part["position"] + blocks.asides(part["model"], looks, 0.12)
        blocks.dots(axis, part, at, looks, elinewidth=0.8)
    hollow = blocks.key("transitional dates", marker="o", mfc="white", ls="")
    handles = [*blocks.keys(looks, ls=""), hollow, *blocks.patches({"validity": "0.9"})]
    return blocks.legend(fig, handles)


def rates_by_size(table: pd.DataFrame, value: str, fits: pd.DataFrame | None = None) -> Figure:
    """Figure 7: a value of models by their number of parameters, on a log axis. `table`: intervals
    by model, parameters and kind ("instruction-tuned" is hollow); `value` is the label of y.
    `fits`, of `time.metrics.size_fits`, are lines, dashed for tuned models."""
    fig, ((axis, _),) = blocks.panels(table, labels=("parameters (log scale)", value), width=DOUBLE)
    looks = style.looks(table["model"])
    table = table.assign(hollow=table["kind"] == "instruction-tuned")
    blocks.dots(axis, table, table["parameters"], looks, elinewidth=0.9)
    for line in [] if fits is None else fits.to_dict("records"):
        ends = np.array([line["smallest"], line["largest"]])
        dashes = "--" if line["kind"] == "instruction-tuned" else "-"
        heights = line["intercept"] + line["slope"] * np.log10(ends)
        axis.plot(ends, heights, color="0.4", ls=dashes, lw=0.9)
    blocks.log_axis(axis, table["parameters"])
    return blocks.legend(fig, blocks.keys(looks, table, ls=""))


def duel_shares(table: pd.DataFrame) -> Figure:
    """Figure 9: share of facts that a model wins, ties or loses against another, as stacked bars.
    `table` of `time.metrics.duel_shares`. A panel a metric; a row a precision, or of several duels
    a duel."""
    first, second = (table[side].map(style.model_name) for side in ("first", "second"))
    duels, sides = first + " / " + second, (first.iloc[0], second.iloc[0])
    column = "precision"
    if duels.nunique() > 1:
        column, sides = "duel", ("first", "second")
    metrics = table["metric"].replace({"win_rate": "win rate", "robust": "robustness"})
    better = {"win": f"{sides[0]} better", "tie": "equal", "lose": f"{sides[1]} better"}
    table = table.assign(duel=duels, metric=metrics, outcome=table["outcome"].map(better))
    rows, n = style.ordered(table[column]), table.groupby(column)["n"].agg(style.count)
    fills = dict(zip(better.values(), (style.RIGHT, "0.85", style.WRONG), strict=True))
    return blocks.stacks(
        table, column, rows, [f"{row} (n = {n[row]})" for row in rows], "outcome", fills,
        panel="metric", labels=("share of facts", column), width=DOUBLE, height=0.85 + 0.3 * len(rows),
    )[0]  # fmt: skip
