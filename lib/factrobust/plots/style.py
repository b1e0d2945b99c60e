"""One look for every figure: sizes, fonts, and which model is drawn how.

Colours are those of Okabe and Ito (2008), which colour-blind readers tell apart, but for yellow and
black; grey instead. Sizes and fonts are in `factrobust.mplstyle`, which holds for all that is drawn
after `setup`.
"""

import io
import itertools
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import matplotlib.style
import numpy as np
import pandas as pd
from IPython import get_ipython
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from factrobust.provenance import png

# Widths of one and two columns, inches.
SINGLE = 3.4
DOUBLE = 7.0

BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREY = "#777777"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
LINES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
# Of answers; no embedded model has these colours.
RIGHT = GREEN
WRONG = ORANGE
REFERENCE: dict[str, Any] = {
    "color": "0.35",
    "lw": 0.9,
    "ls": "--",
    "zorder": 1,
}  # chance, bounds

MODELS = (  # position = look; the first two are the embedded models, whose colours are theirs alone
    "gemma-3-270m",
    "smollm2-135m-instruct",
    "meta-llama/Llama-3.2-3B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen2.5-3B-Instruct",
    "Qwen/Qwen2.5-14B-Instruct",
)
EMBEDDED = 2
COUNTS = ("", " (views)", " (people)")  # what a popularity may count
ORDER = {  # of the values of a column; others stand behind them
    "model": MODELS,
    "domain": ("geography", "arts", "science-history"),
    "answer_type": ("Numerical", "Location", "Human", "Entity"),
    "precision": ("year", "month", "day", "global"),
    "source": ("parametric", "other", "none", "contextual"),
    "context": ("none", "true", "irrelevant", "false"),
    "pair": ("paraphrase", "other relation", "other subject"),
    "what": (
        *(f"of the {of}{n}" for of in ("subject", "object") for n in COUNTS),
        "of the fact",
    ),
}


class Look(NamedTuple):
    """How a model, or another series, is drawn: `line` is a matplotlib linestyle."""

    colour: str
    marker: str = ""
    line: Any = "-"


PLAIN = Look("0.3")
# Looks of lines that are no models, so without the embedded models' colours and markers.
SERIES = tuple(map(Look, COLOURS[EMBEDDED:], MARKERS[EMBEDDED:], (*LINES, "-")))
# One family in two sizes: the larger, the darker. No other model or series has these colours.
LILAC = "#A97FC9"
VIOLET = "#4F2683"
SIZES = {
    "qwen2.5-coder-0.5b-instruct": Look(LILAC, "^", LINES[1]),
    "qwen2.5-coder-1.5b-instruct": Look(VIOLET, "D", LINES[3]),
}
# Models of part 5's world, in the order of figures: the larger, the darker, and seeds alike.
PALE = "#7ACBB0"
DARK = "#00533C"
WORLD = {
    "world-s": Look(PALE, "v", LINES[1]),
    **{f"world-s-{seed}": Look(PALE, "12"[seed - 1], LINES[1]) for seed in (1, 2)},
    **{f"world-s-draw-{draw}": Look(PALE, "34"[draw - 1], LINES[2]) for draw in (1, 2)},
    "world-s-later": Look(PALE, "o", LINES[3]),
    "world-m": Look(GREEN, "^"),
    **{f"world-m-{seed}": Look(GREEN, "<>"[seed - 1], LINES[seed]) for seed in (1, 2)},
    "world-m-later": Look(GREEN, "o", LINES[3]),
    "world-l": Look(DARK, "D", LINES[3]),
    "world-l-1": Look(DARK, "d", LINES[3]),
    "world-m-chat": Look(ORANGE, "P", LINES[1]),
    "world-t5": Look(SKY, "X", LINES[3]),
    "smollm2-taught": Look(PURPLE, "s"),
    **{f"smollm2-taught-{seed}": Look(PURPLE, "dp"[seed - 1], LINES[seed]) for seed in (1, 2)},
}


STYLE = Path(__file__).with_name("factrobust.mplstyle")


def setup() -> None:
    """Use the project's fonts and sizes for all that is drawn from now on, and let a notebook show
    figures by `sharp`."""
    matplotlib.style.use(STYLE)
    shell: Any = get_ipython()
    if not hasattr(shell, "kernel"):
        return
    # Imported first, since it then sets its own way of showing figures.
    from matplotlib_inline import backend_inline  # noqa: F401

    shell.display_formatter.formatters["image/png"].for_type(Figure, sharp)


def looks(models: Iterable[str]) -> dict[str, Look]:
    """The look of each model, in the order of the figures: the embedded ones, SIZES, those of
    WORLD, others by family and size. Others get one from a checksum of the name, never an embedded
    model's, or the next free one where two of a figure would share it. Beyond seven colours
    repeat, with another marker."""
    fixed = SIZES | WORLD
    order = (*MODELS[:EMBEDDED], *SIZES, *WORLD)
    names = in_order(sorted(set(models), key=family_and_size), order)
    slots = {name: MODELS.index(name) for name in names if name in MODELS}
    for name in names:
        if name not in MODELS and name not in fixed:
            slots[name] = _free_slot(name, set(slots.values()))
    found = {}
    for name in names:
        if name in fixed:
            found[name] = fixed[name]
        else:
            k = slots[name]
            colour = COLOURS[k % len(COLOURS)]
            found[name] = Look(colour, MARKERS[k % len(MARKERS)], LINES[k % len(LINES)])
    return found


def family_and_size(model: str) -> tuple[str, float, str, str]:
    """To sort names by: what stands before the size, the size, what stands behind it. So gemma-2-2b
    is before gemma-2-27b, and a model before its tuned form."""
    found = re.search(r"(?<![a-z\d.])(\d+(?:\.\d+)?)([mb])(?![a-z\d])", model, re.IGNORECASE)
    if found is None:
        return model, 0, "", model
    unit = {"m": 1e6, "b": 1e9}[found[2].lower()]
    return model[: found.start()], float(found[1]) * unit, model[found.end() :], model


def _free_slot(name: str, taken: set[int]) -> int:
    """The number of a look that is not taken: from a checksum of the name on, then from the first
    that repeats a colour on."""
    free = len(COLOURS) - EMBEDDED
    start = zlib.crc32(name.encode())
    for k in range(free):
        slot = EMBEDDED + (start + k) % free
        if slot not in taken:
            return slot
    slot = len(COLOURS)
    while slot in taken:
        slot += 1
    return slot


def series(names: Iterable[str]) -> dict[str, Look]:
    """Looks of lines that are no models, such as scores; the sixth has that of the first again."""
    return dict(zip(dict.fromkeys(names), itertools.cycle(SERIES), strict=False))


def in_order(values: Iterable[Any], known: Iterable[Any]) -> list[Any]:
    """The different values: those of `known` in its order, then the others as they first appear."""
    different = dict.fromkeys(values)
    first = [value for value in dict.fromkeys(known) if value in different]
    return first + [value for value in different if value not in first]


def ordered(column: pd.Series) -> list[Any]:
    """The different values of a column in the order of the figures, which is that of its name."""
    if column.name == "model":
        return list(looks(column))
    return in_order(column, ORDER.get(str(column.name), ()))


def model_name(model: str) -> str:
    """How a model is called in a figure: without owner or folders; behind an endpoint "name
    @host"."""
    if "://" in model:
        url, *words = model.split()
        return f"{model_name(words[0]) if words else 'model'} @{urlsplit(url).hostname}"
    return model.rstrip("/").rsplit("/", 1)[-1]


def family(model: str) -> str:
    """The letters that a model's name begins with, such as gemma: for panels of many models."""
    return re.split(r"[^A-Za-z]", model_name(model))[0]


def name(text: str) -> str:
    """How a domain, a relation or another value of a column is called in a figure."""
    if text == "science-history":
        return "science and history"
    return printable(text.replace("_", " "))


def printable(text: str) -> str:
    """A text as a figure can show it: on one line, mathematics switched off."""
    return text.replace("\n", "↵").replace("\t", "⇥").replace("$", r"\$")


def short(number: float) -> str:
    """A round number for a tick: 0.5, 20, 500, "5K", "200M", "1B"."""
    for unit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= unit * (1 - 1e-9):
            return f"{number / unit:g}{letter}"
    return f"{number:g}"


def count(n: Iterable[float]) -> str:
    """The number of facts behind a curve: "40", or "38–40" where it varies, "–" without any."""
    numbers = sorted({int(x) for x in n})
    if not numbers:
        return "–"
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"


def counts(table: pd.DataFrame, models: Sequence[str], what: str = "") -> str:
    """The n of each model in the order of `models`: "40 / 38", and with `what` they are counts of
    "n = 40 / 38 facts", or "n = 40 facts each". More than three that differ are a range, "38–40".
    """
    each = [count(table.loc[table["model"] == model, "n"]) for model in models]
    same = len(set(each)) == 1
    if same:
        n = each[0]
    elif len(each) <= 3:
        n = " / ".join(each)
    else:
        n = count(table["n"])
    if not what:
        return n
    ending = " each" if same and len(each) > 1 else ""
    return f"n = {n} {what}{ending}"


def errors(part: pd.DataFrame) -> np.ndarray:
    """Lengths of the intervals below and above the mean, [2, row]; a missing bound has none."""
    below = part["mean"] - part["low"]
    above = part["high"] - part["mean"]
    lengths = np.nan_to_num(np.array([below, above], dtype=float))
    return np.clip(lengths, 0, None)


def aside(k: int, n: int, step: float) -> float:
    """How far the k-th of n things side by side stands from their middle."""
    return (k - (n - 1) / 2) * step


def shares(axis: Axes, which: str = "y") -> None:
    """Let an axis show shares: from 0 to 1 with some air, ticks at quarters."""
    getattr(axis, f"set_{which}lim")(-0.03, 1.03)
    getattr(axis, f"set_{which}ticks")(
        [0, 0.25, 0.5, 0.75, 1],
        ["0", "0.25", "0.5", "0.75", "1"],
    )


def grid(
    rows: int,
    columns: int,
    width: float,
    height: float,
    **options: Any,
) -> tuple[Figure, np.ndarray]:
    """A figure of `width` x `height` inches and its axes [row, column]. It is no figure of pyplot,
    which would show it a second time in a notebook."""
    fig = Figure(figsize=(width, height))
    return fig, fig.subplots(rows, columns, squeeze=False, **options)


def sharp(fig: Figure) -> tuple[bytes, dict[str, int]]:
    """The PNG of a figure for a notebook, with two pixels for each of the page, and its size there:
    as it is saved, since Jupyter would crop each anew, which takes as long as drawing it and makes
    another picture. A palette takes half of the room of all colours."""
    from PIL import Image

    reduced = io.BytesIO()
    picture = Image.open(io.BytesIO(png(fig))).convert("RGB")
    palette = picture.quantize(255, dither=Image.Dither.NONE)
    palette.save(reduced, format="png")
    return reduced.getvalue(), {
        "width": picture.width // 2,
        "height": picture.height // 2,
    }
