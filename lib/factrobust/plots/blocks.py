"""What the figures are built of: panels, and in them lines, bars, rows of points and stacked
shares.

Tables have the columns mean, low, high and n of `intervals.interval_table`; a missing bound draws
no interval, and further columns do no harm."""

import math
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
MANY = 10  # series beside each other up to which each has a tenth of an inch
TIGHT = 0.065  # inches that each has where there are more
WIDEST = 0.12  # of an axis: how far bars of one x may stand apart, all series together
Looks = Mapping[str, Look]
Colours = Mapping[str, str]
NAME_GAP = 0.065  # of a panel's width, between names that stand upright
Panels = list[tuple[Axes, pd.DataFrame]]  # axes, and the rows of the table that they show


def check(table: pd.DataFrame, *keys: str | None) -> None:
    """Raise TooFewError for a table without rows, ValueError unless each row has its own `keys`."""
    if table.empty:
        raise TooFewError(
            "No case is left for this figure: ask more facts, or models that know more of them."
        )
    columns = [key for key in dict.fromkeys(keys) if key]
    repeated = table[table.duplicated(columns)] if columns else table[:0]
    if len(repeated):
        row = repeated.iloc[0]
        which = ", ".join(f"{key} {row[key]}" for key in columns)
        raise ValueError(
            f"The figure's table has several rows for {which}: keep one of them, for example that "
            "of one prompt format."
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
    sharex: bool = True,
    sharey: bool = True,
) -> tuple[Figure, Panels]:
    """A figure with a panel each value of the column `by`; all share their axes, unless `sharex` or
    `sharey` says not.

    Models and families stand three in a row, four of them two in a row, anything else side by side.
    A panel is called by its value, and if `what` is counted, such as "facts", by the n of its
    models below. `labels` are those of x and y, `shares` the axes that show shares, such as "xy",
    and `height` is a row's, in inches."""
    check(table)
    # 1. Rows and columns of panels.
    values = [None] if by is None else style.ordered(table[by])
    columns = len(values)
    if by in ("model", "family"):
        columns = 2 if columns == 4 else min(columns, 3)
    rows = math.ceil(len(values) / columns)
    if width is None:
        width = style.SINGLE if columns == 1 else style.DOUBLE
    fig, axes = style.grid(
        rows,
        columns,
        width,
        height * rows,
        sharex=sharex,
        sharey=sharey,
    )
    # 2. Each with its title and labels.
    models = list(style.looks(table["model"])) if "model" in table else []
    drawn: Panels = []
    for k, (axis, value) in enumerate(zip(axes.flat, values, strict=False)):
        part = table if by is None else table[table[by] == value]
        title = [] if by is None else [called(by, value)]
        if what:
            title.append(style.counts(part, [value] if by == "model" else models, what))
        leftmost = k % columns == 0
        axis.set_title("\n".join(title))
        axis.set_xlabel(labels[0])
        axis.set_ylabel(labels[1] if leftmost else "")
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
    """Mean against the column `x`, a line each value of `by`, with its interval as a band; with
    `bars` as bars, so far aside of each other that none is hidden. Dashed: `at`. `extra` are
    further entries of the legend, `options` as `panels` takes them."""
    check(table, "model", panel, by, x)
    looks = looks_of(table[by])
    if table[x].nunique() > MARKED:
        looks = {value: look._replace(marker="") for value, look in looks.items()}
    if len(looks) > MANY:
        options.setdefault("width", style.DOUBLE)  # for the legend
    fig, parts = panels(table, panel, what=what, **options)
    for axis, part in parts:
        shown = [value for value in looks if (part[by] == value).any()]
        breadth = np.ptp(part[x]) or 1  # where all stand at one x
        step = min(0.03, WIDEST / len(shown)) * breadth if bars else 0
        for k, value in enumerate(shown):
            look = looks[value]
            rows = part[part[by] == value].sort_values(x)
            places = rows[x] + style.aside(k, len(shown), step)
            axis.plot(
                places,
                rows["mean"],
                color=look.colour,
                ls=look.line,
                marker=look.marker,
            )
            if bars:
                axis.vlines(
                    places,
                    rows["low"],
                    rows["high"],
                    color=look.colour,
                    lw=1,
                )
            else:
                axis.fill_between(
                    places,
                    rows["low"],
                    rows["high"],
                    color=look.colour,
                    alpha=0.18,
                    lw=0,
                )
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

    `rows` may be a mapping of values to their names; else rows are named by their values, with the
    n of their models if `rows_n`. Dashed: `at`. The legend says `by`, unless the rows do, with n if
    `legend_n`. Each value of `by` has its own of `looks`, or else that of `looks_of`; `options` as
    `panels` takes them."""
    check(table, by, column, panel)
    alone = column == by  # a row is a series
    # 1. Rows and their names.
    values = list(rows) or style.ordered(table[column])
    if isinstance(rows, Mapping) and rows:
        names = list(rows.values())
    elif rows_n:
        names = with_n(table, column, values)
    else:
        names = [called(column, value) for value in values]
    # 2. Their height, for the names or for the series in them.
    looks = looks or looks_of(table[by])
    most_lines = max(name.count("\n") + 1 for name in names)
    many = not alone and len(looks) > MANY
    crowded = len(values) > MANY
    of_series = 0.06 if crowded else 0.12
    if not alone:
        of_series += (TIGHT if many or crowded else 0.1) * len(looks)
    if many or (alone and crowded):
        options.setdefault("width", style.DOUBLE)  # for the legend, or beside long names
    height = max(0.08 + 0.16 * most_lines, of_series)
    # 3. Draw.
    fig, parts = panels(
        table,
        panel,
        height=1 + height * len(values),
        labels=(xlabel, "" if alone else style.name(column)),
        **options,
    )
    step = 0 if alone else 0.7 / len(looks)
    for axis, part in parts:
        y = part[column].map(values.index) + asides(part[by], looks, step)
        dots(axis, part, y, looks, by, upright=False, elinewidth=0.9)
        if at is not None:
            axis.axvline(at, **style.REFERENCE)
    name_rows([axis for axis, _ in parts], names)
    if not alone:
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
    elinewidth: float | None = 0.7,
    **changed: Any,
) -> None:
    """Means with their intervals as points, at the places `at` of x; of y, unless `upright`. Where
    a column `hollow` says so, they are white inside; `changed` as Axes.errorbar takes them."""
    table = table.assign(at=at, hollow=table.get("hollow", False))
    for value, look in looks.items():
        for hollow, part in table[table[by] == value].groupby("hollow"):
            form: dict[str, Any] = {"fmt": look.marker, "color": look.colour}
            form["mfc"] = "white" if hollow else look.colour
            form["elinewidth"] = elinewidth
            errors = style.errors(part)
            if upright:
                axis.errorbar(
                    part["at"],
                    part["mean"],
                    yerr=errors,
                    **form | changed,
                )
            else:
                axis.errorbar(
                    part["mean"],
                    part["at"],
                    xerr=errors,
                    **form | changed,
                )


def by_mean(table: pd.DataFrame, column: str) -> list[str]:
    """The values of `column` by their mean over models, highest first."""
    means = table.groupby(column)["mean"].mean()
    return list(means.sort_values(ascending=False, kind="stable").index)


def with_n(table: pd.DataFrame, column: str, rows: Sequence[str]) -> list[str]:
    """The names of rows, each with the n of its models."""
    names = []
    for row in rows:
        part = table[table[column] == row]
        n = style.counts(part, list(style.looks(part["model"])))
        names.append(f"{called(column, row)} (n = {n})")
    return names


def name_rows(axes: Sequence[Axes], names: Sequence[str]) -> None:
    """Name the rows 0, 1, ... of panels with the same y axis, from the top."""
    for axis in axes:
        axis.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.5, -0.5)


def beside(axis: Axes, y: float, text: str) -> None:
    """Write a text at the right of a panel, at the height y."""
    place = axis.get_yaxis_transform()
    axis.text(
        1.01,
        y,
        text,
        transform=place,
        fontsize=6.5,
        va="center",
    )


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
    """A bar in each of `rows`, values of `column` with `names`, stacked from the left: the column
    share of each `by`, in the order of `fills`. Shares with room for it are written in. A panel
    each value of `panel`; `options` as `panels` takes them."""
    fig, parts = panels(table, panel, **options)
    for axis, part in parts:
        share = part.pivot(
            index=column,
            columns=by,
            values="share",
        )
        share = share.reindex(index=list(rows), columns=list(fills)).fillna(0)
        left = share.cumsum(axis=1) - share
        for value, fill in fills.items():
            drawn = axis.barh(
                range(len(rows)),
                share[value],
                0.75,
                left=left[value],
                color=fill,
            )
            texts = [f"{width:.0%}" if width >= 0.12 else "" for width in share[value]]
            ink = "white" if fill in (style.BLUE, style.VIOLET) else "black"
            axis.bar_label(
                drawn,
                texts,
                label_type="center",
                fontsize=6.5,
                color=ink,
            )
        style.shares(axis, "x")
        axis.set_xlim(0, 1)
        axis.grid(False)
    name_rows([axis for axis, _ in parts], names)
    return legend(fig, patches(fills)), parts


def scatter(table: pd.DataFrame, x: str, y: str, **options: Any) -> tuple[Figure, Panels]:
    """A figure of facts, those of a model in a panel with their number and how many are undefined,
    and the rows that are drawn; `options` as `panels` takes them."""
    check(table, "model", "fact_id")
    fig, parts = panels(table, "model", **options)
    drawn: Panels = []
    for (axis, part), (model, look) in zip(parts, style.looks(table["model"]).items(), strict=True):
        known = part.dropna(subset=[x, y])
        axis.scatter(
            known[x],
            known[y],
            s=10,
            color=look.colour,
            alpha=0.5,
            lw=0,
        )
        missing = len(part) - len(known)
        undefined = f", {missing} undefined" if missing else ""
        axis.set_title(f"{style.model_name(model)}\nn = {len(known)}{undefined}")
        drawn.append((axis, known))
    return fig, drawn


def beyond(axis: Axes, which: str, top: float) -> None:
    """Ticks from 0 to `top`, and a band beyond for values of 1.15 `top` that are larger than it."""
    ticks = np.linspace(0, top, 5)
    labels = [f"{tick:g}" for tick in ticks]
    places = [*ticks, 1.15 * top]
    limits = (-0.03 * top, 1.22 * top)
    if which == "x":
        axis.set_xticks(places, [*labels, f"> {top:g}"])
        axis.set_xlim(limits)
        axis.axvline(1.075 * top, color="0.7", lw=0.6)
    else:
        axis.set_yticks(places, [*labels, f"> {top:g}"])
        axis.set_ylim(limits)
        axis.axhline(1.075 * top, color="0.7", lw=0.6)


def name_points(axis: Axes, x: pd.Series, y: pd.Series, names: pd.Series) -> None:
    """Name points (x on a log axis whose limits are set) along the panel's upper edge, each with a
    thin line from y. Names stand in the order of x, pushed apart where they would lie over each
    other, and inside the panel."""
    low, high = np.log10(axis.get_xlim())
    gap = NAME_GAP * (high - low)
    order = np.argsort(x.to_numpy(float), kind="stable")
    points = np.log10(x.to_numpy(float)[order])
    # Each a gap behind the one before it; then back from the right edge.
    steps = gap * np.arange(len(points))
    places = np.maximum.accumulate(points - steps) + steps
    last = high - gap / 2 - steps[::-1]
    places = np.minimum(places, last)
    top = axis.get_ylim()[1]
    for point, place, height, name in zip(
        points, places, y.to_numpy(float)[order], names.to_numpy()[order], strict=True
    ):
        axis.annotate(
            name,
            xy=(10**point, height),
            xytext=(10**place, top),
            rotation=90,
            ha="center",
            va="top",
            fontsize=6.5,
            arrowprops={"arrowstyle": "-", "color": "0.7", "lw": 0.5, "shrinkA": 1, "shrinkB": 2},
        )


def key(label: str, look: Look = style.PLAIN, **changed: Any) -> Line2D:
    """An entry of a legend; `changed` as Line2D takes them."""
    shown: dict[str, Any] = {"color": look.colour, "marker": look.marker, "ls": look.line}
    return Line2D([], [], label=label, **(shown | changed))


def keys(looks: Looks, table: pd.DataFrame | None = None, **changed: Any) -> list[Any]:
    """A legend entry a model, with `table` with the model's n in it; `changed` as above."""
    entries = []
    for model, look in looks.items():
        label = style.model_name(model)
        if table is not None:
            label += f" (n = {style.counts(table, [model])})"
        entries.append(key(label, look, **changed))
    return entries


def patches(fills: Colours) -> list[Any]:
    """A legend entry a kind of bar."""
    return [Patch(label=style.printable(value), color=fill) for value, fill in fills.items()]


def legend(fig: Figure, handles: Sequence[Any]) -> Figure:
    """The figure with a legend above its panels, which makes it higher by what exceeds half an
    inch."""
    longest = max(len(handle.get_label()) for handle in handles)
    entry = 0.062 * longest + 0.55  # inches
    fitting = max(1, int(fig.get_figwidth() // entry))
    rows = math.ceil(len(handles) / fitting)
    columns = math.ceil(len(handles) / rows)
    drawn = fig.legend(
        handles=handles,
        loc="outside upper center",
        ncols=columns,
    )
    height = drawn.get_window_extent().height / fig.dpi
    fig.set_figheight(fig.get_figheight() + max(0, height - 0.5))
    return fig


def log_axis(axis: Axes, values: Iterable[float]) -> None:
    """A log x axis about the finite values, with few round ticks: thousands as K, millions as M."""
    finite = [value for value in values if np.isfinite(value)]
    low = min(finite)
    high = max(finite)
    axis.set_xscale("log")
    axis.set_xlim(low / 1.1, high * 1.1)
    if high < 7 * low:
        steps: Sequence[int] = range(1, 10)
    elif high < 300 * low:
        steps = (1, 2, 5)
    else:
        steps = (1,)
    axis.xaxis.set_major_locator(LogLocator(subs=steps, numticks=20))
    axis.xaxis.set_major_formatter(lambda value, _: style.short(value))
    axis.minorticks_off()
