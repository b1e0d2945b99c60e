"""Figures of part 4, memory or context (thesis, 4.2 to 6.1). Tables and errors as `plots.blocks`
says. Memory is orange and the context blue in every figure, which all colour-blind readers tell
apart."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE, Look

SOURCES = {  # from left to right in a bar; no colours of the embedded models
    "parametric": Look(style.ORANGE, "o"),
    "other": Look("#9A9A9A", "^", style.LINES[2]),
    "none": Look("#D6D6D6", "D", style.LINES[3]),
    "contextual": Look(style.SKY, "s", style.LINES[1]),
}
ABOUT = {  # whom a sentence of the copy meter is about
    "subject": Look(style.SKY, "s"),
    "neighbour": Look("#7F7FB0", "^"),
    "nonsense": Look(style.ORANGE, "o"),
}
PASSAGES = ("true", "false", "negated", "missing")
CAUSES = {  # from left to right in a bar: a cause has the colour of the source that it is
    "memory": SOURCES["parametric"].colour,
    "none": SOURCES["none"].colour,
    "moved": "#BDBDBD",
    "half": SOURCES["other"].colour,
    "slots": "#B5D9F0",
    "both": "#7F7FB0",
    "context": SOURCES["contextual"].colour,
}


BOX = {"25%": "q1", "50%": "med", "75%": "q3", "5%": "whislo", "95%": "whishi"}
TICKS = (1, 1.5, 2, 3, 5, 10)  # of perplexities
# The boxes of figure 3, and the arrows between them.
PLACES = {
    "question": (0.45, 1.7),
    "parametric": (1.5, 1.7),
    "another": (0.45, 0.9),
    "counterfactual": (1.5, 0.9),
    "context": (0.45, 0.1),
    "contextual": (1.5, 0.1),
    "source": (2.6, 0.9),
}
ARROWS = [
    ("question", "parametric"),
    ("another", "counterfactual"),
    ("context", "contextual"),
    ("counterfactual", "context"),
    ("parametric", "source"),
    ("counterfactual", "source"),
    ("contextual", "source"),
]


def source_shares(table: pd.DataFrame) -> Figure:
    """Figure 5 (table 8): where the answers come from, a bar a model. `table` of
    `context.metrics.counts_by`. The parametric share is read from the left, the contextual one from
    the right, with intervals."""
    rows = style.in_order(table["model"], style.MODELS)  # the thesis's models last
    sources = style.ordered(table.loc[table["share"] > 0, "source"])
    fills = {source: SOURCES[source].colour for source in sources}
    fig, [(axis, part)] = blocks.stacks(
        table,
        "model",
        rows,
        blocks.with_n(table, "model", rows),
        "source",
        fills,
        width=DOUBLE,
        height=0.95 + 0.24 * len(rows),
        labels=("share of answers", "model"),
    )
    ends = {
        "parametric": (-0.28, part["low"], part["high"]),
        "contextual": (0.28, 1 - part["high"], 1 - part["low"]),
    }
    for source, (shift, low, high) in ends.items():
        chosen = part["source"] == source
        y = part["model"].map(rows.index) + shift
        axis.hlines(
            y[chosen],
            low[chosen],
            high[chosen],
            color="black",
            lw=0.9,
        )
    return fig


def causes(table: pd.DataFrame) -> Figure:
    """Where answers come from by the exchange, a bar a kind of passage and a panel a model. `table`
    of `context.metrics.counts_by` with cause."""
    rows = style.in_order(table["context"], PASSAGES)
    return blocks.stacks(
        table,
        "context",
        rows,
        blocks.with_n(table, "context", rows),
        "cause",
        CAUSES,
        panel="model",
        width=DOUBLE,
        height=2.2,
        labels=("share of answers", "passage"),
    )[0]


def copy_meter(table: pd.DataFrame, rows: Sequence[str]) -> Figure:
    """What follows a false sentence: a panel a model, a row a kind of sentence (`sentence`, one of
    `rows`), and a point for each of ABOUT. `table`: intervals by model, sentence and about."""
    fig, panels = blocks.forest(
        table,
        "sentence",
        rows,
        panel="model",
        by="about",
        looks=ABOUT,
        xlabel="share of answers that follow",
        shares="x",
        width=DOUBLE,
    )
    for axis, _ in panels:
        axis.set_xlim(-0.03, 1.03)
        axis.set_ylabel("")
    return fig


def boxes(table: pd.DataFrame, column: str) -> Figure:
    """Figures 8 to 10: the distribution of P4, a panel a model and a box each value of `column`.
    `table` of `context.metrics.perplexity_table`. A box holds the middle half, its line is the
    median, whiskers hold the middle nine tenths (a paper prints none). Perplexity is on a
    logarithmic scale."""
    rows = style.ordered(table[column])
    height = 0.8 + 0.2 * len(rows)
    fig, panels = blocks.panels(
        table,
        "model",
        labels=("P4", ""),
        width=DOUBLE,
        height=height,
    )
    for axis, part in panels:
        part = part.fillna({"5%": part["25%"], "95%": part["75%"]})
        boxes: Any = part.rename(columns=BOX).to_dict("records")
        axis.bxp(
            boxes,
            positions=part[column].map(rows.index).tolist(),
            orientation="horizontal",
            widths=0.6,
            showfliers=False,
        )
        axis.set_xscale("log")
        axis.set_xticks(TICKS, map(str, TICKS))
        axis.minorticks_off()
        axis.set_yticks(range(len(rows)), [blocks.called(column, row) for row in rows])
        axis.set_ylim(len(rows) - 0.5, -0.5)
    return fig


def steps(texts: Mapping[str, str]) -> Figure:
    """Figure 3: how two answers are made and compared. `texts` has what stands in each of the boxes
    PLACES."""
    fig, axes = style.grid(1, 1, DOUBLE, 2.6)
    axis = axes.flat[0]
    axis.set(xlim=(0, 3), ylim=(-0.2, 2))
    axis.axis("off")
    boxes = {}
    for name, (x, y) in PLACES.items():
        drawn = axis.text(
            x,
            y,
            fill(texts[name], 30),
            ha="center",
            va="center",
            bbox={"boxstyle": "round", "fc": "white", "ec": SOURCES["other"].colour},
            fontsize="small",
        )
        boxes[name] = drawn.get_bbox_patch()
    for one, other in ARROWS:
        axis.annotate(
            "",
            PLACES[other],
            PLACES[one],
            arrowprops={"arrowstyle": "->", "patchA": boxes[one], "patchB": boxes[other]},
        )
    return fig


def worked_example(tokens: pd.DataFrame) -> Figure:
    """Figure 4: how surprising the tokens of both answers to one question are, a row a token.
    `tokens` of `context.probe.answer_tokens`. A point is -log2 of the probability: the mean of an
    answer's points is log2 of its perplexity."""
    table = tokens.sort_values(["answer", "position"], ascending=[False, True]).assign(
        place=tokens["answer"] + tokens["position"].astype(str),
        prompt=tokens["context"].map({False: "without context", True: "with the counterfactual"}),
        mean=-np.log2(tokens["probability"]),
        low=np.nan,
        high=np.nan,
    )
    named = table.drop_duplicates("place").set_index("place")
    tokens_shown = named["token"].str.replace(" ", "␣").map(style.printable)  # a token's own space
    answers = (named["answer"] + ": ").mask(named["answer"].duplicated(), "")
    names = answers + tokens_shown
    fig, ((axis, _),) = blocks.forest(
        table,
        "place",
        names.to_dict(),
        by="prompt",
        xlabel="surprise in bits:\n−log₂ of the probability",
    )
    axis.set_ylabel("token")
    return fig
