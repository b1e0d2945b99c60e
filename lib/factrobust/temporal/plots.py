"""Figures of part 2, robustness to dates, with one prompt format a model. Tables and errors as
`plots.blocks` says."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE
from factrobust.temporal.dates import DAYS_A_YEAR, Days, parse

MARKS: dict[str, dict[str, Any]] = {  # of the labels of dates
    "correct": {
        "color": style.RIGHT,
        "marker": "o",
        "ms": 3.4,
    },
    "transitional": {
        "color": "0.3",
        "marker": "D",
        "ms": 3.6,
        "mfc": "white",
        "zorder": 3,
    },
    "incorrect": {
        "color": style.WRONG,
        "marker": "x",
        "ms": 3.6,
    },
}
LANE = 0.24  # between the precisions of a fact, where rows are 1 apart


def timeline(facts: pd.DataFrame, dates: pd.DataFrame) -> Figure:
    """A few facts in time: validity as a bar, tested dates as marks by label, a row a fact. `facts`
    (`schemas.TemporalFacts`) keep their order; `dates` (`schemas.Dates`) have a lane a precision.
    Days that a bound leaves open are paler."""
    lanes = style.ordered(dates["precision"])
    shift = {lane: style.aside(k, len(lanes), LANE) for k, lane in enumerate(lanes)}
    height = 0.24 + 0.11 * len(lanes)
    fig, axes = style.grid(1, 1, DOUBLE, 0.75 + height * len(facts))
    axis = axes[0, 0]
    rows = range(len(facts))
    start = parse(facts["start"])
    end = parse(facts["end"])
    for first, last, colour in (
        (start[0], end[1] + 1, "0.91"),
        (start[1] + 1, end[0], "0.8"),
    ):
        axis.barh(
            rows,
            _years(last) - _years(first),
            0.76,
            left=_years(first),
            color=colour,
        )
    row = dict(zip(facts["fact_id"], rows, strict=True))
    for label, part in dates[dates["fact_id"].isin(row)].groupby("label"):
        first, last = parse(part["date"])
        y = part["fact_id"].map(row) + part["precision"].map(shift)
        middle = (_years(first) + _years(last + 1)) / 2
        axis.plot(middle, y, ls="", mew=0.9, **MARKS[str(label)])
    for lane in lanes if len(lanes) > 1 else []:
        blocks.beside(axis, shift[lane], lane)
    names = [f"{s}: {o}" for s, o in zip(facts["subject"], facts["object"], strict=True)]
    wrapped = [textwrap.wrap(name, 30, max_lines=2, placeholder=" …") for name in names]
    blocks.name_rows(
        [axis],
        ["\n".join(map(style.printable, name)) for name in wrapped],
    )
    axis.set(xlabel="calendar year")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axis.grid(False, axis="y")
    handles = blocks.patches({"validity": "0.8"})
    handles += [blocks.key(label, ls="", **mark) for label, mark in MARKS.items()]
    return blocks.legend(fig, handles)


def _years(days: Days) -> NDArray[np.float64]:
    """Days as calendar years with a fraction, which is off by a day at most."""
    return days.astype("datetime64[D]").astype(float) / DAYS_A_YEAR + 1970


def over_years(scores: pd.DataFrame, start: str, end: str) -> Figure:
    """Scores of one fact by year: the object as a thick line, its wrong names as thin ones of the same
    colour, a panel a model, on one axis. `scores`: model, year, name (0: the object) and nats, minus
    each name's own mean. The fact held from `start` to `end` (dates), which is shaded."""
    held = [float(_years(parse(bound)[side])) for side, bound in enumerate((start, end))]
    looks = style.looks(scores["model"])
    labels = (
        "year in the question",
        "log-probability minus\nits own mean (nats)",
    )
    fig, panels = blocks.panels(scores, "model", labels=labels, width=DOUBLE)
    for axis, part in panels:
        axis.axvspan(*held, color="0.9", lw=0, zorder=0)
        for name, line in part.groupby("name"):
            colour = looks[line["model"].iloc[0]].colour
            thin = {"lw": 0.7, "alpha": 0.6, "ls": "--"} if name else {"lw": 1.8}
            axis.plot(
                line["year"],
                line["nats"],
                color=colour,
                **thin,
            )
        axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    kinds = [
        blocks.key("the object", lw=1.8),
        blocks.key("wrong names", lw=0.7, ls="--"),
    ]
    return blocks.legend(
        fig,
        [*kinds, *blocks.patches({"validity": "0.9"})],
    )


def logprob_by_position(table: pd.DataFrame) -> Figure:
    """Figure 3: log-probability of the object by where the date lies, a panel a precision. `table`:
    intervals of relative (nats) by model, precision and position of `temporal.metrics.positions`;
    transitional dates are hollow, the validity is shaded. Many models have panels a family, since
    side by side in one they would stand at other dates than their own."""
    looks = style.looks(table["model"])
    nats = "log-probability minus that\nof correct dates (nats)"
    labels = ("date $\\alpha$ (lengths of validity)", nats)
    table = table.assign(hollow=table["position"].abs() == 0.5)
    by = "precision"
    if len(looks) > blocks.MANY:
        by = "family"
        as_shown = ["model", "precision"]
        table = table.sort_values(as_shown, key=lambda names: names.map(style.ordered(names).index))
        table["family"] = table["model"].map(style.family) + ", " + table["precision"]
    fig, panels = blocks.panels(table, by, labels=labels)
    for axis, part in panels:
        axis.axvspan(-0.5, 0.5, color="0.93", lw=0, zorder=0)
        axis.axhline(0, **style.REFERENCE)
        shown = {model: looks[model] for model in style.ordered(part["model"])}
        step = min(0.12, 0.36 / len(shown))
        at = part["position"] + blocks.asides(part["model"], shown, step)
        blocks.dots(axis, part, at, shown, elinewidth=0.8)
    hollow = blocks.key(
        "transitional dates",
        marker="o",
        mfc="white",
        ls="",
    )
    handles = [
        *blocks.keys(looks, ls=""),
        hollow,
        *blocks.patches({"validity": "0.9"}),
    ]
    return blocks.legend(fig, handles)


def rates_by_size(table: pd.DataFrame, value: str) -> Figure:
    """Figure 7: a value of models by their number of parameters, on a log axis. `table`: intervals
    by model, parameters and kind ("instruction-tuned" is hollow); `value` is the label of y."""
    fig, ((axis, _),) = blocks.panels(
        table,
        labels=("parameters (log scale)", value),
        width=DOUBLE,
    )
    looks = style.looks(table["model"])
    table = table.assign(hollow=table["kind"] == "instruction-tuned")
    blocks.dots(
        axis,
        table,
        table["parameters"],
        looks,
        elinewidth=0.9,
    )
    blocks.log_axis(axis, table["parameters"])
    return blocks.legend(fig, blocks.keys(looks, table, ls=""))
