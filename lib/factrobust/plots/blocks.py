"""What the figures are built of: panels, and in them lines, bars, rows of points and stacked shares.

A table of "intervals by model and domain" has a row for each model and domain, with the columns
mean, low, high and n of `statistics.interval_table`; a missing bound draws no interval, and further
columns do no harm. `check` raises KeyError for a missing column, ValueError for a table without rows
or with several for the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter

from factrobust.plots import style
from factrobust.plots.style import Look

INTERVAL = ("mean", "low", "high", "n")
Looks = Mapping[str, Look]
Fills = Mapping[str, dict[str, Any]]  # how bars are drawn, as matplotlib takes it
Panels = list[tuple[Axes, pd.DataFrame]]  # axes, and the rows of the table that they show


def check(table: pd.DataFrame, *keys: str, values: Sequence[str] = INTERVAL) -> None:
    """Raise an error, as the module says, unless each row has its own `keys` and all `values`."""
    if absent := [column for column in (*keys, *values) if column not in table]:
        raise KeyError(f"The figure needs columns {absent}; its table has {list(table.columns)}.")
    if table.empty:
        raise ValueError("The figure's table has no rows: check what was selected before it.")
    if keys and (twice := table.duplicated(list(keys))).any():
        row = table[twice].iloc[0]
        which = ", ".join(f"{key} {row[key]}" for key in keys)
        raise ValueError(
            f"The figure's table has several rows for {which}: keep one of them, for example that of "
            "one prompt format."
        )


def panels(
    table: pd.DataFrame,
    by: str | None,
    order: Iterable[Any] = (),
    *,
    height: float,
    labels: tuple[str, str],
    what: str = "",
    shares: str = "",
    width: float | None = None,
    **share: bool,
) -> tuple[Figure, Panels]:
    """A figure with a panel each value of the column `by`; all share their axes, unless `share` says not.

    Values of `order` come first; models stand three in a row, anything else side by side, and without
    `by` all is one panel. A panel is called by its value, and if `what` is counted, such as "facts",
    by the n of its models below. `labels` are those of x and y, `shares` the axes that show shares,
    such as "xy", and `height` is a row's, in inches.
    """
    models = list(style.looks(table["model"])) if "model" in table else []
    values = [None] if by is None else style.in_order(table[by], models if by == "model" else order)
    columns = min(len(values), 3) if by == "model" else len(values)
    rows = -(-len(values) // columns)
    width = width or (style.SINGLE if columns == 1 else style.DOUBLE)
    shared = {"sharex": True, "sharey": True} | share
    fig, axes = style.grid(rows, columns, width, height * rows, **shared)
    drawn: Panels = []
    for k, (axis, value) in enumerate(zip(axes.flat, values, strict=False)):
        own = table if by is None else table[table[by] == value]
        title = [] if by is None else [called(by, value)]
        if what:
            title.append(style.counts(own, [value] if by == "model" else models, what))
        axis.set(title="\n".join(title), xlabel=labels[0], ylabel="" if k % columns else labels[1])
        axis.tick_params(labelbottom=True)  # also where the panel below is missing
        for which in shares:
            style.shares(axis, which)
        drawn.append((axis, own))
    for axis in axes.flat[len(values) :]:
        axis.remove()
    return fig, drawn


def called(by: str, value: Any) -> str:
    """How a value of the column `by` is called in a figure."""
    if by == "context" and value:
        return f"{'no' if value == 'none' else style.name(value)} context"
    return style.model_name(value) if by == "model" else style.name(str(value))


def curves(
    table: pd.DataFrame,
    x: str,
    *,
    panel: str | None = None,
    order: Iterable[Any] = (),
    by: str = "model",
    looks: Looks | None = None,
    height: float = 2.5,
    labels: tuple[str, str],
    what: str = "facts",
    shares: str = "",
    extra: Sequence[Any] = (),
    **drawing: Any,
) -> tuple[Figure, Panels]:
    """A figure of `lines` against the column `x`: a line each value of `by`, by default a model.

    `looks` are those of the lines, `extra` further entries of the legend, `drawing` as `lines`, the
    rest as `panels` takes it.
    """
    check(table, *dict.fromkeys(["model", *([panel] if panel else []), by, x]))
    looks = looks or style.looks(table["model"])
    fig, parts = panels(table, panel, order, height=height, labels=labels, what=what, shares=shares)
    for axis, own in parts:
        lines(axis, own, x, looks, by, **drawing)
    same: dict[str, Any] = {} if drawing.get("markers") else {"marker": ""}
    same |= {name: drawing[name] for name in ("ls", "ms") if name in drawing}
    return legend(fig, [*keys(looks, **same), *extra]), parts


def lines(
    axis: Axes,
    table: pd.DataFrame,
    x: str,
    looks: Looks,
    by: str = "model",
    *,
    markers: bool = False,
    apart: float | None = None,
    **changed: Any,
) -> None:
    """Mean against the column `x`, a line each value of `by`, with its interval as a band.

    With `apart`, intervals are bars, and lines stand so far aside of each other that none is hidden.
    `changed` as `Axes.plot` takes them.
    """
    for k, (value, look) in enumerate(looks.items()):
        own = table[table[by] == value].sort_values(x)
        at = own[x] + style.aside(k, len(looks), apart or 0)
        drawn = {"ls": look.line, "marker": look.marker if markers else ""} | changed
        axis.plot(at, own["mean"], color=look.colour, **drawn)
        if apart is None:
            axis.fill_between(at, own["low"], own["high"], color=look.colour, alpha=0.18, lw=0)
        else:
            axis.vlines(at, own["low"], own["high"], color=look.colour, lw=1)


def forest(
    table: pd.DataFrame,
    column: str,
    rows: Sequence[Any],
    names: Sequence[str] = (),
    *,
    xlabel: str,
    panel: str | None = None,
    by: str = "model",
    looks: Looks | None = None,
    at: float | None = None,
    row_height: float | None = None,
    rows_n: bool = False,
    legend_n: bool = False,
    extra: Sequence[Any] = (),
    **options: Any,
) -> tuple[Figure, Panels]:
    """A figure of `points`: a row each of `rows`, from the top, and a panel each value of `panel`.

    `names` are those of the rows, by default their values, with the n of their models if `rows_n`;
    `looks` those of `by`. Dashed: `at`. The legend says `by`, unless the rows do, with n if `legend_n`,
    and `extra`; `options` as `panels` takes them. The rows of the table that are returned have their
    heights in a column y, so that more can stand beside them.
    """
    check(table, *dict.fromkeys([by, column, *([panel] if panel else [])]))
    looks = looks or style.looks(table["model"])
    row_height = row_height or 0.12 + 0.07 * (1 if column == by else len(looks))
    labels = (xlabel, "" if column == by else style.name(column))
    fig, parts = panels(table, panel, height=1 + row_height * len(rows), labels=labels, **options)
    placed: Panels = []
    for axis, own in parts:
        placed.append((axis, own.assign(y=points(axis, own, column, rows, looks, by))))
        if at is not None:
            axis.axvline(at, **style.REFERENCE)
    named = with_n(table, column, rows) if rows_n else [called(column, row) for row in rows]
    name_rows([axis for axis, _ in parts], names or named)
    handles = [] if column == by else keys(looks, table if legend_n else None, ls="")
    handles.extend(extra)
    return legend(fig, handles) if handles else fig, placed


def points(
    axis: Axes, table: pd.DataFrame, column: str, rows: Sequence[Any], looks: Looks, by: str
) -> pd.Series:
    """Draw mean, low, high in the row of each `column`, within a row one below the other `by` a
    column, such as the models.

    Where the table has a column `hollow`, its points are white inside. Returns each point's y.
    """
    step = 0 if column == by else 0.7 / len(looks)
    place = {value: style.aside(k, len(looks), step) for k, value in enumerate(looks)}
    table = table.assign(y=table[column].map(list(rows).index) + table[by].map(place))
    hollow = table["hollow"] if "hollow" in table else pd.Series(False, table.index)
    for value, look in looks.items():
        for fill, drawn in ((look.colour, ~hollow), ("white", hollow)):
            own = table[drawn & (table[by] == value)]
            axis.errorbar(
                own["mean"], own["y"], xerr=style.errors(own), fmt=look.marker, color=look.colour,
                mfc=fill, elinewidth=0.9,
            )  # fmt: skip
    return table["y"]


def by_mean(table: pd.DataFrame, column: str) -> list[str]:
    """The values of `column` by their mean over models, highest first."""
    return list(
        table.groupby(column)["mean"].mean().sort_values(ascending=False, kind="stable").index
    )


def with_n(table: pd.DataFrame, column: str, rows: Sequence[str]) -> list[str]:
    """The names of rows, each with the n of its models."""
    of = [table[table[column] == row] for row in rows]
    n = [style.counts(own, list(style.looks(own["model"]))) for own in of]
    return [f"{called(column, row)} (n = {k})" for row, k in zip(rows, n, strict=True)]


def name_rows(axes: Sequence[Axes], names: Sequence[str]) -> None:
    """Name the rows 0, 1, ... of panels with the same y axis, from the top."""
    for axis in axes:
        axis.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.5, -0.5)


def beside(axis: Axes, y: float, text: str, **options: Any) -> None:
    """Write a text at the right of a panel, at the height y."""
    shown: dict[str, Any] = {"fontsize": 6.5, "va": "center"} | options
    axis.text(1.01, y, text, transform=axis.get_yaxis_transform(), **shown)


def stack(
    axis: Axes, table: pd.DataFrame, column: str, rows: Sequence[Any], by: str, fills: Fills
) -> None:
    """A bar in each row, a value of `column`, stacked from the left: the column share of each `by`.

    `fills` holds the values of `by` in their order. Shares with room for it are written in.
    """
    share = table.pivot(index=column, columns=by, values="share")
    share = share.reindex(index=list(rows), columns=list(fills)).fillna(0)
    left = share.cumsum(axis=1) - share
    for value, fill in fills.items():
        drawn = axis.barh(range(len(rows)), share[value], 0.75, left=left[value], **fill)
        texts = [f"{width:.0%}" if width >= 0.12 else "" for width in share[value]]
        ink = "white" if fill["color"] == style.BLUE else "black"
        axis.bar_label(drawn, texts, label_type="center", fontsize=6.5, color=ink)
    style.shares(axis, "x")
    axis.set_xlim(0, 1)
    axis.grid(False)


def scatter(
    table: pd.DataFrame, x: str, y: str, *, size: float = 14, spread: float = 0, **options: Any
) -> tuple[Figure, Panels]:
    """A figure of facts, those of a model in a panel with their number and how many are undefined.

    `spread` sets points apart along x by so much in all; `options` as `panels` takes them. Returns
    the rows that are drawn.
    """
    check(table, "model", "fact_id", values=[x, y])
    looks = style.looks(table["model"])
    fig, parts = panels(table, "model", **options)
    drawn: Panels = []
    for (axis, own), (model, look) in zip(parts, looks.items(), strict=True):
        known = own.dropna(subset=[x, y])
        at = known[x] + style.jitter(len(known), spread)
        axis.scatter(at, known[y], s=size, color=look.colour, alpha=0.5, lw=0)
        axis.set_title(style.title(model, own, known))
        drawn.append((axis, known))
    return fig, drawn


def beyond(axis: Axes, which: str, top: float) -> None:
    """Ticks from 0 to `top`, and a band beyond for values of 1.15 `top` that are larger than it."""
    ticks = [*np.linspace(0, top, 5), 1.15 * top]
    getattr(axis, f"set_{which}ticks")(ticks, [*(f"{t:g}" for t in ticks[:5]), f"> {top:g}"])
    getattr(axis, f"set_{which}lim")(-0.03 * top, 1.22 * top)
    (axis.axvline if which == "x" else axis.axhline)(1.075 * top, color="0.7", lw=0.6)


def histograms(
    axis: Axes, table: pd.DataFrame, column: str, edges: np.ndarray, looks: Looks
) -> None:
    """Shares of a column's values in bins (a, b], as steps, of each model."""
    import seaborn as sns  # takes a second, and few figures need it

    for model, look in looks.items():
        values = table.loc[table["model"] == model, column].to_numpy(dtype=float)
        inside = np.clip(values - 1e-9, edges[0], None)
        shown = {"color": look.colour, "alpha": 0.15, "edgecolor": look.colour, "ls": look.line}
        sns.histplot(
            x=inside, bins=list(edges), stat="proportion", element="step", ax=axis, **shown
        )


def key(label: str, look: Look = style.PLAIN, **changed: Any) -> Line2D:
    """An entry of a legend; `changed` as Line2D takes them."""
    shown: dict[str, Any] = {"color": look.colour, "marker": look.marker, "ls": look.line}
    return Line2D([], [], label=label, **(shown | changed))


def keys(looks: Looks, table: pd.DataFrame | None = None, **changed: Any) -> list[Any]:
    """A legend entry a model, with `table` with the model's n in it; `changed` as above."""
    entries = []
    for model, look in looks.items():
        n = "" if table is None else f" (n = {style.counts(table, [model])})"
        entries.append(key(style.model_name(model) + n, look, **changed))
    return entries


def patches(fills: Fills) -> list[Any]:
    """A legend entry a kind of bar."""
    return [Patch(label=style.model_name(value), **fill) for value, fill in fills.items()]


def legend(fig: Figure, handles: Sequence[Any]) -> Figure:
    """The figure with a legend above its panels; what that takes beyond half an inch makes it higher."""
    longest = max(len(handle.get_label()) for handle in handles)
    fitting = max(1, int(fig.get_figwidth() // (0.062 * longest + 0.55)))  # inches an entry
    rows = -(-len(handles) // fitting)
    drawn = fig.legend(handles=handles, loc="outside upper center", ncols=-(-len(handles) // rows))
    height = drawn.get_window_extent().height / fig.dpi
    fig.set_figheight(fig.get_figheight() + max(0, height - 0.5))
    return fig


def from_zero(axis: Axes, table: pd.DataFrame) -> None:
    """Let y show shares: from 0 to 1, or, if all values are small, to a little above the highest."""
    top = np.nanmax([*table["high"], *table["mean"], 0.05])
    if top > 0.5:
        style.shares(axis)
    else:
        axis.set_ylim(-0.04 * top, 1.12 * top)


def log_axis(axis: Axes, values: Iterable[float], room: float) -> None:
    """A log x axis from min / room to max x room of the finite values, with at most eight ticks;
    thousands as K, millions as M, billions as B."""
    finite = [value for value in values if np.isfinite(value)]
    low, high = min(finite) / room, max(finite) * room
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    exponents = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    fine = (1, 1.2, 1.5, 2, 3, 4, 5, 7) if high < 6 * low else (1, 2, 5)
    for steps in (fine, (1, 2, 5), (1,)):
        ticks = [s * 10.0**e for e in exponents for s in steps if low <= s * 10.0**e <= high]
        if len(ticks) <= 8:
            break
    axis.set_xticks(ticks, [style.short(tick) for tick in ticks])
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.minorticks_off()
