"""What the figures are built of: panels, and in them lines, bars, rows of points and stacked shares.

Tables have the columns mean, low, high and n of `statistics.interval_table`; a missing bound draws no
interval, and further columns do no harm.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator

from factrobust.plots import style
from factrobust.plots.style import Look
from factrobust.tables import TooFewError

MARKED = 12  # points of a line up to which they are marked
Looks = Mapping[str, Look]
Colours = Mapping[str, str]
Panels = list[tuple[Axes, pd.DataFrame]]  # axes, and the rows of the table that they show


def check(table: pd.DataFrame, *keys: str | None) -> None:
    """Raise TooFewError for a table without rows, ValueError unless each row has its own `keys`."""
    if table.empty:
        raise TooFewError(
            "No case is left for this figure: ask more facts, or models that know more of them."
        )
    columns = [key for key in dict.fromkeys(keys) if key]
    for _, row in table[table.duplicated(columns)][:1].iterrows() if columns else ():
        which = ", ".join(f"{key} {row[key]}" for key in columns)
        raise ValueError(
            f"The figure's table has several rows for {which}: keep one of them, for example that of "
            "one prompt format."
        )


def panels(
    table: pd.DataFrame,
    by: str | None = None,
    *,
    labels: tuple[str, str],
    height: float = 2.6,
    width: float | None = None,
    what: str = "",
    shares: str = "",
    **share: bool,
) -> tuple[Figure, Panels]:
    """A figure with a panel each value of the column `by`; all share their axes, unless `share` says not.

    Models stand three in a row, four of them two in a row, anything else side by side. A panel is called by its value, and if
    `what` is counted, such as "facts", by the n of its models below. `labels` are those of x and y,
    `shares` the axes that show shares, such as "xy", and `height` is a row's, in inches.
    """
    check(table)
    models = list(style.looks(table["model"])) if "model" in table else []
    values = [None] if by is None else style.ordered(table[by])
    most = 2 if len(values) == 4 else 3
    columns = min(len(values), most) if by == "model" else len(values)
    rows = -(-len(values) // columns)
    width = width or (style.SINGLE if columns == 1 else style.DOUBLE)
    shared = {"sharex": True, "sharey": True} | share
    fig, axes = style.grid(rows, columns, width, height * rows, **shared)
    drawn: Panels = []
    for k, (axis, value) in enumerate(zip(axes.flat, values, strict=False)):
        part = table if by is None else table[table[by] == value]
        title = [] if by is None else [called(by, value)]
        if what:
            title.append(style.counts(part, [value] if by == "model" else models, what))
        axis.set(title="\n".join(title), xlabel=labels[0], ylabel="" if k % columns else labels[1])
        axis.tick_params(labelbottom=True)  # also where the panel below is missing
        for which in shares:
            style.shares(axis, which)
        drawn.append((axis, part))
    for axis in axes.flat[len(values) :]:
        axis.remove()
    return fig, drawn


def called(by: str, value: Any) -> str:
    """How a value of the column `by` is called in a figure."""
    if by == "context" and value:
        return f"{'no' if value == 'none' else style.name(value)} context"
    return style.model_name(value) if by == "model" else style.name(str(value))


def looks_of(column: pd.Series) -> Looks:
    """Looks of the values of a column, which are models or anything else."""
    return (style.looks if column.name == "model" else style.series)(style.ordered(column))


def curves(
    table: pd.DataFrame,
    x: str,
    *,
    panel: str | None = None,
    by: str = "model",
    bars: bool = False,
    at: float | None = None,
    extra: Sequence[Any] = (),
    what: str = "facts",
    **options: Any,
) -> tuple[Figure, Panels]:
    """Mean against the column `x`, a line each value of `by`, with its interval as a band; with `bars`
    as bars, so far aside of each other that none is hidden. Dashed: `at`. `extra` are further entries
    of the legend, `options` as `panels` takes them."""
    check(table, "model", panel, by, x)
    looks = looks_of(table[by])
    if table[x].nunique() > MARKED:
        looks = {value: look._replace(marker="") for value, look in looks.items()}
    fig, parts = panels(table, panel, what=what, **options)
    for axis, part in parts:
        here = [value for value in looks if (part[by] == value).any()]
        step = 0.03 * np.ptp(part[x]) if bars else 0
        for k, value in enumerate(here):
            rows, look = part[part[by] == value].sort_values(x), looks[value]
            places = rows[x] + style.aside(k, len(here), step)
            axis.plot(places, rows["mean"], color=look.colour, ls=look.line, marker=look.marker)
            if bars:
                axis.vlines(places, rows["low"], rows["high"], color=look.colour, lw=1)
            else:
                band = places, rows["low"], rows["high"]
                axis.fill_between(*band, color=look.colour, alpha=0.18, lw=0)
        if at is not None:
            axis.axhline(at, **style.REFERENCE)
    return legend(fig, [*keys(looks), *extra]), parts


def forest(
    table: pd.DataFrame,
    column: str,
    rows: Sequence[Any] | Mapping[Any, str] = (),
    *,
    xlabel: str,
    panel: str | None = None,
    by: str = "model",
    at: float | None = None,
    rows_n: bool = False,
    legend_n: bool = False,
    looks: Looks | None = None,
    **options: Any,
) -> tuple[Figure, Panels]:
    """A figure of `dots`: a row each of `rows`, from the top, and a panel each value of `panel`.

    `rows` may be a mapping of values to their names; else rows are named by their values, with the n
    of their models if `rows_n`. Dashed: `at`. The legend says `by`, unless the rows do, with n if
    `legend_n`. Each value of `by` has its own of `looks`, or else that of `looks_of`; `options` as
    `panels` takes them.
    """
    check(table, by, column, panel)
    names = [*rows.values()] if isinstance(rows, Mapping) else []
    rows, looks = [*rows] or style.ordered(table[column]), looks or looks_of(table[by])
    names = names or (with_n(table, column, rows) if rows_n else [called(column, r) for r in rows])
    written = 0.08 + 0.16 * max(name.count("\n") + 1 for name in names)
    height = max(written, 0.12 if column == by else 0.12 + 0.1 * len(looks))
    labels = (xlabel, "" if column == by else style.name(column))
    fig, parts = panels(table, panel, height=1 + height * len(rows), labels=labels, **options)
    step = 0 if column == by else 0.7 / len(looks)
    for axis, part in parts:
        y = part[column].map(rows.index) + asides(part[by], looks, step)
        dots(axis, part, y, looks, by, upright=False, elinewidth=0.9)
        if at is not None:
            axis.axvline(at, **style.REFERENCE)
    name_rows([axis for axis, _ in parts], names)
    if column != by:
        legend(fig, keys(looks, table if legend_n else None, ls=""))
    return fig, parts


def asides(column: pd.Series, looks: Looks, step: float) -> pd.Series:
    """How far each value of a column stands from the middle of those in `looks`, side by side."""
    place = {value: style.aside(k, len(looks), step) for k, value in enumerate(looks)}
    return column.map(place).astype(float)


def dots(
    axis: Axes,
    table: pd.DataFrame,
    at: pd.Series | np.ndarray,
    looks: Looks,
    by: str = "model",
    *,
    upright: bool = True,
    **changed: Any,
) -> None:
    """Means with their intervals as points, at the places `at` of x; of y, unless `upright`. Where a
    column `hollow` says so, they are white inside; `changed` as Axes.errorbar takes them."""
    table = table.assign(at=at, hollow=table.get("hollow", False))
    for value, look in looks.items():
        for hollow, part in table[table[by] == value].groupby("hollow"):
            form: dict[str, Any] = {"fmt": look.marker, "color": look.colour, "elinewidth": 0.7}
            form["mfc"] = "white" if hollow else look.colour
            form["yerr" if upright else "xerr"] = style.errors(part)
            x, y = ("at", "mean") if upright else ("mean", "at")
            axis.errorbar(part[x], part[y], **form | changed)


def by_mean(table: pd.DataFrame, column: str) -> list[str]:
    """The values of `column` by their mean over models, highest first."""
    means = table.groupby(column)["mean"].mean()
    return list(means.sort_values(ascending=False, kind="stable").index)


def with_n(table: pd.DataFrame, column: str, rows: Sequence[str]) -> list[str]:
    """The names of rows, each with the n of its models."""
    of = [table[table[column] == row] for row in rows]
    n = [style.counts(part, list(style.looks(part["model"]))) for part in of]
    return [f"{called(column, row)} (n = {k})" for row, k in zip(rows, n, strict=True)]


def name_rows(axes: Sequence[Axes], names: Sequence[str]) -> None:
    """Name the rows 0, 1, ... of panels with the same y axis, from the top."""
    for axis in axes:
        axis.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.5, -0.5)


def beside(axis: Axes, y: float, text: str) -> None:
    """Write a text at the right of a panel, at the height y."""
    place = axis.get_yaxis_transform()
    axis.text(1.01, y, text, transform=place, fontsize=6.5, va="center")


def stacks(
    table: pd.DataFrame,
    column: str,
    rows: Sequence[Any],
    names: Sequence[str],
    by: str,
    fills: Colours,
    *,
    panel: str | None = None,
    **options: Any,
) -> tuple[Figure, Panels]:
    """A bar in each of `rows`, values of `column` with `names`, stacked from the left: the column share
    of each `by`, in the order of `fills`. Shares with room for it are written in. A panel each value
    of `panel`; `options` as `panels` takes them."""
    fig, parts = panels(table, panel, **options)
    for axis, part in parts:
        share = part.pivot(index=column, columns=by, values="share")
        share = share.reindex(index=list(rows), columns=list(fills)).fillna(0)
        left = share.cumsum(axis=1) - share
        for value, fill in fills.items():
            drawn = axis.barh(range(len(rows)), share[value], 0.75, left=left[value], color=fill)
            texts = [f"{width:.0%}" if width >= 0.12 else "" for width in share[value]]
            ink = "white" if fill in (style.BLUE, style.VIOLET) else "black"
            axis.bar_label(drawn, texts, label_type="center", fontsize=6.5, color=ink)
        style.shares(axis, "x")
        axis.set_xlim(0, 1)
        axis.grid(False)
    name_rows([axis for axis, _ in parts], names)
    return legend(fig, patches(fills)), parts


def cells(axis: Axes, grid: pd.DataFrame, cmap: Any, top: float) -> None:
    """A table of numbers from 0 to `top` as coloured squares with white edges."""
    edges = [np.arange(n + 1) - 0.5 for n in grid.shape]
    options: dict[str, Any] = {"edgecolor": "white", "lw": 0.6, "vmin": 0, "vmax": top}
    axis.pcolormesh(edges[1], edges[0], grid.to_numpy(float), cmap=cmap, **options)
    axis.set_ylim(len(grid) - 0.5, -0.5)  # the first row on top
    axis.grid(False)
    axis.tick_params(length=0)


def scatter(table: pd.DataFrame, x: str, y: str, **options: Any) -> tuple[Figure, Panels]:
    """A figure of facts, those of a model in a panel with their number and how many are undefined, and
    the rows that are drawn; `options` as `panels` takes them."""
    check(table, "model", "fact_id")
    fig, parts = panels(table, "model", **options)
    drawn: Panels = []
    for (axis, part), (model, look) in zip(parts, style.looks(table["model"]).items(), strict=True):
        known = part.dropna(subset=[x, y])
        axis.scatter(known[x], known[y], s=10, color=look.colour, alpha=0.5, lw=0)
        missing = len(part) - len(known)
        undefined = f", {missing} undefined" if missing else ""
        axis.set_title(f"{style.model_name(model)}\nn = {len(known)}{undefined}")
        drawn.append((axis, known))
    return fig, drawn


def beyond(axis: Axes, which: str, top: float) -> None:
    """Ticks from 0 to `top`, and a band beyond for values of 1.15 `top` that are larger than it."""
    ticks = [*np.linspace(0, top, 5), 1.15 * top]
    getattr(axis, f"set_{which}ticks")(ticks, [*(f"{t:g}" for t in ticks[:5]), f"> {top:g}"])
    getattr(axis, f"set_{which}lim")(-0.03 * top, 1.22 * top)
    (axis.axvline if which == "x" else axis.axhline)(1.075 * top, color="0.7", lw=0.6)


def key(label: str, look: Look = style.PLAIN, **changed: Any) -> Line2D:
    """An entry of a legend; `changed` as Line2D takes them."""
    shown: dict[str, Any] = {"color": look.colour, "marker": look.marker, "ls": look.line}
    return Line2D([], [], label=label, **(shown | changed))


def keys(looks: Looks, table: pd.DataFrame | None = None, **changed: Any) -> list[Any]:
    """A legend entry a model, with `table` with the model's n in it; `changed` as above."""
    n = {m: "" if table is None else f" (n = {style.counts(table, [m])})" for m in looks}
    return [key(style.model_name(m) + n[m], look, **changed) for m, look in looks.items()]


def patches(fills: Colours) -> list[Any]:
    """A legend entry a kind of bar."""
    return [Patch(label=style.printable(value), color=fill) for value, fill in fills.items()]


def legend(fig: Figure, handles: Sequence[Any]) -> Figure:
    """The figure with a legend above its panels, which makes it higher by what exceeds half an inch."""
    longest = max(len(handle.get_label()) for handle in handles)
    fitting = max(1, int(fig.get_figwidth() // (0.062 * longest + 0.55)))  # inches an entry
    rows = -(-len(handles) // fitting)
    drawn = fig.legend(handles=handles, loc="outside upper center", ncols=-(-len(handles) // rows))
    height = drawn.get_window_extent().height / fig.dpi
    fig.set_figheight(fig.get_figheight() + max(0, height - 0.5))
    return fig


def log_axis(axis: Axes, values: Iterable[float]) -> None:
    """A log x axis about the finite values, with few round ticks: thousands as K, millions as M."""
    finite = [value for value in values if np.isfinite(value)]
    low, high = min(finite), max(finite)
    axis.set_xscale("log")
    axis.set_xlim(low / 1.1, high * 1.1)
    steps = range(1, 10) if high < 7 * low else (1, 2, 5) if high < 300 * low else (1,)
    axis.xaxis.set_major_locator(LogLocator(subs=steps, numticks=20))
    axis.xaxis.set_major_formatter(lambda value, _: style.short(value))
    axis.minorticks_off()
