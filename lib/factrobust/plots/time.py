"""Figures of part 2, robustness to dates (paper 2): a timeline, figures 2 and 3.

Tables and errors as `plots.time_style` says.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from factrobust.datasets.dates import DAYS_A_YEAR, PRECISIONS, Days, parse
from factrobust.plots import style, time_many
from factrobust.plots import time_style as parts
from factrobust.plots.decoding import grouped_bars
from factrobust.plots.style import DOUBLE

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
    parts.known(dates, "label", MARKS)
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
    parts.legend(fig, handles)
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
    parts.intervals(table, "model", "precision")
    looks = style.looks(table["model"])
    groups = style.in_order(table["precision"], parts.ORDER)
    levels = _levels(random, groups)
    if time_many.too_many(list(looks)):
        return time_many.rates(table, groups, value, levels)
    fig, axes = style.panels(1, 1, style.panel_width(1 if len(looks) <= 3 else 2), 2.6)
    axis = axes[0, 0]
    grouped_bars(axis, table, "precision", groups, looks)
    if len(looks) > 3:  # else the numbers of facts stand there model by model
        n = [style.count(table.loc[table["precision"] == group, "n"]) for group in groups]
        axis.set_xticks(
            range(len(groups)), [f"{g}\nn = {k}" for g, k in zip(groups, n, strict=True)]
        )
    for k, level in enumerate(levels):
        axis.plot([k - 0.45, k + 0.45], [level, level], **time_many.RANDOM)
    axis.set(xlabel="precision of the dates", ylabel=value, xlim=(-0.55, len(groups) - 0.45))
    parts.from_zero(axis, [*table["high"], *table["mean"], *levels])
    handles: list[Any] = [
        Patch(color=look.colour, label=style.model_name(model)) for model, look in looks.items()
    ]
    if levels:
        handles.append(Line2D([], [], label="random", **time_many.RANDOM))
    parts.legend(fig, handles)
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
    parts.intervals(table, "model", "precision", "position")
    looks = style.looks(table["model"])
    if time_many.too_many(list(looks)):
        return time_many.logprob_by_position(table)
    fig, panels = parts.precision_panels(table, looks, 2.7)
    for axis, part in panels:
        axis.axvspan(-0.5, 0.5, color="0.93", lw=0, zorder=0)
        for edge in (-0.5, 0.5):
            axis.axvline(edge, color="0.4", lw=0.8, ls="--", zorder=1)
        for model, look in looks.items():
            parts.line(axis, part[part["model"] == model], "position", look)
        axis.set_xlabel("date $\\alpha$ (lengths of validity)")
    panels[0][0].set_ylabel("log-probability minus that\nof correct dates (nats)")
    parts.legend(fig, [*parts.keys(looks), Patch(color="0.9", label="validity")])
    return fig
