"""One look for every figure: sizes, fonts, and which model is drawn how.

Colours are those of Okabe and Ito (2008), which colour-blind readers tell apart, but for yellow, too
pale for lines, and black, which intervals have; grey instead. A model has the
same colour, marker and line in every figure (see `looks`), so a legend read once holds throughout.
"""

from __future__ import annotations

import functools
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec
from urllib.parse import urlsplit

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

P = ParamSpec("P")

SINGLE, DOUBLE = 3.4, 7.0  # widths of one and two columns, inches
RC: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
}

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, GREY = "#E69F00", "#56B4E9", "#777777"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
LINES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
RIGHT, WRONG = BLUE, ORANGE  # of answers, where colour does not tell models apart

MODELS = (  # position = look; the first two are the embedded models, whose colours are theirs alone
    "gemma-3-270m",
    "smollm2-135m-instruct",
    "meta-llama/Llama-3.2-3B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen2.5-3B-Instruct",
    "Qwen/Qwen2.5-14B-Instruct",
)
EMBEDDED = 2
DOMAINS = ("geography", "arts", "science-history")
ANSWER_TYPES = ("Numerical", "Location", "Human", "Entity")


class Look(NamedTuple):
    """How a model is drawn: `line` is a matplotlib linestyle."""

    colour: str
    marker: str
    line: Any


def looks(models: Iterable[str]) -> dict[str, Look]:
    """The look of each model, in the order of the figures: first those of MODELS, then by name.

    A model of MODELS has the look of its position. Any other gets one from a checksum of its name,
    never that of an embedded model, and the next free one where two models of a figure would share
    it; so its look is the same in every figure, as long as no such clash comes and goes. Beyond
    seven models colours repeat, with another marker.
    """
    names = in_order(models, MODELS, rest_sorted=True)
    taken = {MODELS.index(name): name for name in names if name in MODELS}
    free = len(COLOURS) - EMBEDDED
    for name in names[len(taken) :]:
        slot = EMBEDDED + zlib.crc32(name.encode()) % free
        while slot in taken:
            # Round the free colours first; when all are in use, on to further combinations.
            around = EMBEDDED + (slot - EMBEDDED + 1) % free
            full = slot >= len(COLOURS) or all(EMBEDDED + i in taken for i in range(free))
            slot = (max(slot, len(COLOURS) - 1) + 1) if full else around
        taken[slot] = name
    slots = {name: slot for slot, name in taken.items()}
    return {name: _look(slots[name]) for name in names}


def _look(slot: int) -> Look:
    return Look(
        COLOURS[slot % len(COLOURS)], MARKERS[slot % len(MARKERS)], LINES[slot % len(LINES)]
    )


def in_order(
    values: Iterable[Any], known: Sequence[Any], *, rest_sorted: bool = False
) -> list[Any]:
    """The different values: those of `known` in its order, then the others as they first appear."""
    different = list(dict.fromkeys(values))
    rest = [value for value in different if value not in known]
    return [k for k in known if k in different] + (sorted(rest) if rest_sorted else rest)


def domain_name(domain: str) -> str:
    """How a domain is called in a figure: "science-history" -> "science and history"."""
    return {"science-history": "science and history"}.get(domain, domain.replace("_", " "))


def model_name(model: str) -> str:
    """How a model is called in a figure: without the owner or the folders before its name; behind an
    endpoint "name @host"."""
    if "://" in model:
        url, *words = model.split()
        return f"{model_name(words[0]) if words else 'model'} @{urlsplit(url).hostname}"
    return model.rstrip("/").rsplit("/", 1)[-1]


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorates a function that draws a figure: our style while it draws, nothing left behind."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        before = set(plt.get_fignums())
        try:
            with plt.rc_context(RC):
                return draw(*args, **kwargs)
        finally:
            # The figure lives on with its owner; pyplot would show it a second time in a notebook.
            for number in set(plt.get_fignums()) - before:
                plt.close(number)

    return drawn


def panels(
    rows: int, columns: int, width: float, height: float, **kwargs: Any
) -> tuple[Figure, np.ndarray]:
    """A figure of `width` x `height` inches and its axes [row, column]; `plt.subplots`' options."""
    return plt.subplots(
        rows, columns, figsize=(width, height), squeeze=False, layout="constrained", **kwargs
    )


def model_panels(
    models: Sequence[str], height: float, width: float | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel each model, three in a row, all with the same axes; `height` of a row."""
    rows, columns = -(-len(models) // 3), min(len(models), 3)
    fig, grid = panels(
        rows, columns, width or panel_width(columns), height * rows, sharex=True, sharey=True
    )
    axes = list(grid.flat)
    for axis in axes[len(models) :]:
        axis.remove()
    for axis in axes[: len(models)]:
        axis.tick_params(labelbottom=True)  # also where the panel below is missing
    return fig, axes[: len(models)]


def label_left(axes: Sequence[Axes], text: str) -> None:
    """The y label, on the leftmost panel of each row."""
    for axis in axes[::3]:
        axis.set_ylabel(text)


def need(table: pd.DataFrame, *columns: str) -> None:
    """Raise KeyError for columns that a figure lacks, ValueError for a table without rows."""
    if absent := [name for name in columns if name not in table.columns]:
        raise KeyError(f"The figure needs columns {absent}; its table has {list(table.columns)}.")
    if table.empty:
        raise ValueError("The figure's table has no rows: check what was selected before it.")


def panel_width(n_panels: int) -> float:
    """One column for one panel, two for more; inches."""
    return SINGLE if n_panels == 1 else DOUBLE


def key(model: str, look: Look, n: str = "", **changed: Any) -> Line2D:
    """A model's entry in a legend, its number of facts behind it; `changed` as Line2D takes them."""
    shown: dict[str, Any] = {"color": look.colour, "marker": look.marker, "ls": look.line}
    label = model_name(model) + (f" (n = {n})" if n else "")
    return Line2D([], [], label=label, **(shown | changed))


def legend(fig: Figure, handles: Sequence[Any]) -> None:
    """A legend above the panels, outside of them; handles carry their labels."""
    longest = max(len(handle.get_label()) for handle in handles)
    fitting = max(1, int(fig.get_figwidth() // (0.062 * longest + 0.55)))  # inches an entry
    rows = -(-len(handles) // fitting)
    fig.legend(handles=handles, loc="outside upper center", ncols=-(-len(handles) // rows))


def count(n: Iterable[float]) -> str:
    """The number of facts behind a curve: "40", or "38–40" where it varies, "–" without any."""
    numbers = sorted({int(x) for x in n})
    if not numbers:
        return "–"
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"


def counts(table: pd.DataFrame, models: Sequence[str], what: str = "facts") -> str:
    """ "n = 40 facts each", or "n = 40 / 38 facts" in the order of `models`, from the column n."""
    each = [count(table.loc[table["model"] == model, "n"]) for model in models]
    if len(each) > 1 and len(set(each)) == 1:
        return f"n = {each[0]} {what} each"
    return f"n = {' / '.join(each)} {what}"


def title(model: str, rows: pd.DataFrame, drawn: pd.DataFrame, more: str = "") -> str:
    """A panel's title: the model, and below the facts drawn and how many of its rows could not be."""
    missing = len(rows) - len(drawn)
    undefined = f", {missing} undefined" if missing else ""
    return f"{model_name(model)}\nn = {len(drawn)}{undefined}{more}"


def once(table: pd.DataFrame, *keys: str) -> None:
    """Raise ValueError if two rows have the same `keys`."""
    if (twice := table.duplicated(list(keys))).any():
        row = table[twice].iloc[0]
        which = ", ".join(f"{key} {row[key]}" for key in keys)
        raise ValueError(
            f"The figure's table has several rows for {which}: keep one of them, for example that of "
            "one prompt format."
        )


def printable(text: str) -> str:
    """A text as a figure can show it: what the font lacks as its code, mathematics switched off."""
    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    lines = text.replace("\n", "↵").replace("\t", "⇥")
    known = (c if font.get_char_index(ord(c)) else f"\\u{ord(c):04x}" for c in lines)
    return "".join(known).replace("$", r"\$")


def under_groups(
    table: pd.DataFrame, column: str, groups: Sequence[str], models: Sequence[str]
) -> list[str]:
    """Tick labels of groups of bars: the group's name and, below, n of each model."""
    labels = []
    for group in groups:
        here = table[table[column] == group]
        n = [count(here.loc[here["model"] == m, "n"]) for m in models]
        n = n[:1] if len(set(n)) == 1 else n
        labels.append(f"{domain_name(group)}\nn = {' / '.join(n)}")
    return labels


def errors(part: pd.DataFrame) -> np.ndarray:
    """Lengths of the intervals below and above the mean, [2, row]; a missing bound has none."""
    lengths = np.array([part["mean"] - part["low"], part["high"] - part["mean"]], dtype=float)
    return np.clip(np.nan_to_num(lengths), 0, None)


def jitter(n: int, width: float) -> np.ndarray:
    """n shifts in [-width / 2, width / 2], evenly spread in a fixed, mixed order."""
    golden = (np.sqrt(5) - 1) / 2  # multiples of the golden ratio fill an interval evenly
    return ((np.arange(n) * golden) % 1 - 0.5) * width


def shares(axis: Axes, which: str = "y") -> None:
    """Let an axis show shares: from 0 to 1 with some air, ticks at quarters."""
    getattr(axis, f"set_{which}lim")(-0.03, 1.03)
    getattr(axis, f"set_{which}ticks")([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])


def banded_line(axis: Axes, part: pd.DataFrame, look: Look, *, dashed: bool = True) -> None:
    """Mean against temperature with markers, its interval as a band."""
    part = part.sort_values("temperature")
    line = look.line if dashed else "-"
    axis.plot(part["temperature"], part["mean"], color=look.colour, marker=look.marker, ls=line)
    axis.fill_between(
        part["temperature"], part["low"], part["high"], color=look.colour, alpha=0.18, lw=0
    )


def _show_as_saved() -> None:
    """Let notebooks show figures as they are saved, in JupyterLab and when the runner executes them.

    Jupyter would crop each figure anew, which takes as long as drawing it and makes another picture.
    Nothing happens outside of a kernel.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return
    from IPython.core.pylabtools import select_figure_formats
    from matplotlib_inline.config import InlineBackend

    inline: Any = InlineBackend.instance(parent=shell)
    inline.print_figure_kwargs = {"bbox_inches": None}  # for when it is set up after this
    select_figure_formats(shell, inline.figure_formats, bbox_inches=None)


_show_as_saved()
