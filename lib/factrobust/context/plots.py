"""Figures of part 4, memory or context (thesis, 4.2 to 6.1). Tables and errors as `plots.blocks`
says. Memory is orange and the context blue in every figure, which all colour-blind readers tell
apart."""

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
FACTS = {
    "all": "all facts",
    "known": "right without context",
    "unknown": "not right without context",
}
FACTORS = {  # of context.facts.DOSE, as rows
    "likely": "a likelier rival, not an unlikelier",
    "repeated": "said three times, not once",
    "attributed": "attributed, not bare",
}
MEASURES = {
    "gap": "gap: how much likelier the right answer\nis than the one stated (nats)",
    "log_p0": "weakness of the memory\n(log P0, nats a token)",
}
PASSAGES = ("true", "false", "negated", "missing", "retrieved")
CAUSES = {  # from left to right in a bar: a cause has the colour of the source that it is
    "memory": SOURCES["parametric"].colour,
    "both": "#7F7FB0",
    "neither": SOURCES["other"].colour,
    "none": SOURCES["none"].colour,
    "context": SOURCES["contextual"].colour,
}


def source_shares(table: pd.DataFrame) -> Figure:
    """Figure 5 (table 8): where the answers come from, a bar a model. `table` of
    `context.metrics.counts_by`. The parametric share is read from the left, the contextual one from
    the right, with intervals."""
    rows = style.in_order(table["model"], style.MODELS)  # the thesis's models last
    sources = style.ordered(table.loc[table["share"] > 0, "source"])
    fills = {source: SOURCES[source].colour for source in sources}
    fig, [(axis, part)] = blocks.stacks(
        table, "model", rows, blocks.with_n(table, "model", rows), "source", fills, width=DOUBLE,
        height=0.95 + 0.24 * len(rows), labels=("share of answers", "model"),
    )  # fmt: skip
    y = part["model"].map(rows.index)
    memory, read = part["source"] == "parametric", part["source"] == "contextual"
    lines: dict[str, Any] = {"color": "black", "lw": 0.9}
    axis.hlines(y[memory] - 0.28, part["low"][memory], part["high"][memory], **lines)
    axis.hlines(y[read] + 0.28, 1 - part["high"][read], 1 - part["low"][read], **lines)
    return fig


def causes(table: pd.DataFrame) -> Figure:
    """Where answers come from by the exchange, a bar a kind of passage and a panel a model. `table` of
    `context.metrics.counts_by` with cause."""
    rows = style.in_order(table["context"], PASSAGES)
    return blocks.stacks(
        table, "context", rows, blocks.with_n(table, "context", rows), "cause", CAUSES,
        panel="model", width=DOUBLE, height=2.2, labels=("share of answers", "passage"),
    )[0]  # fmt: skip


def expected(held: pd.DataFrame) -> Figure:
    """The share of answers from the context in each kind of passage, and the one that probabilities
    expect, a panel a model. `held` of `context.attribution.strata`."""
    guess = held.assign(mean=held["expected"], low=np.nan, high=np.nan, share="expected")
    table = pd.concat([held.assign(share="seen"), guess], ignore_index=True)
    rows = style.in_order(held["context"], PASSAGES)
    form: dict[str, Any] = {"panel": "model", "by": "share", "shares": "x", "width": DOUBLE}
    return blocks.forest(table, "context", rows, xlabel="share from the context", **form)[0]


def right_by_context(table: pd.DataFrame) -> Figure:
    """Share of right answers by the kind of context, a row a kind, models side by side. `table`:
    intervals by model, context and facts ("all"; "known" or "unknown" without context), a panel
    each."""
    table = table.sort_values("facts", kind="stable")
    return blocks.forest(
        table.assign(facts=table["facts"].map(FACTS)), "context", panel="facts", what="facts",
        shares="x", xlabel="share of right answers",
    )[0]  # fmt: skip


def followed_by_memory(bins: pd.DataFrame) -> Figure:
    """The share of answers that follow a false context against how strong the memory is. `bins` of
    `context.following.binned`, a panel a measure."""
    looks = blocks.looks_of(bins["model"])
    fig, panels = blocks.panels(
        bins, "measure", labels=("", "follow the context"), sharex=False, shares="y", width=DOUBLE
    )
    for axis, part in panels:
        measure = part["measure"].iloc[0]
        axis.set(title="", xlabel=MEASURES.get(measure, style.name(measure)))
        blocks.dots(axis, part, part["x"], looks, elinewidth=None)
    return blocks.legend(fig, blocks.keys(looks))


def worked_example(tokens: pd.DataFrame) -> Figure:
    """Figure 4: how surprising the tokens of both answers to one question are, a row a token.
    `tokens` of `context.probe.answer_tokens`. A point is -log2 of the probability: the mean of an
    answer's points is log2 of its perplexity."""
    table = tokens.sort_values(["answer", "position"], ascending=[False, True]).assign(
        place=tokens["answer"] + tokens["position"].astype(str),
        prompt=tokens["context"].map({False: "without context", True: "with the counterfactual"}),
        mean=-np.log2(tokens["probability"]), low=np.nan, high=np.nan,
    )  # fmt: skip
    named = table.drop_duplicates("place").set_index("place")
    tokens_shown = named["token"].str.replace(" ", "␣").map(style.printable)  # a token's own space
    names = (named["answer"] + ": ").mask(named["answer"].duplicated(), "") + tokens_shown
    form: dict[str, Any] = {"by": "prompt", "xlabel": "surprise in bits:\n−log₂ of the probability"}
    fig, ((axis, _),) = blocks.forest(table, "place", names.to_dict(), **form)
    axis.set_ylabel("token")
    return fig


def by_row(
    table: pd.DataFrame, column: str, xlabel: str, *, xlim: Any = None, **options: Any
) -> Figure:
    """Figures 6 to 10, and effects of FACTORS: a row each value of a column, models side by side.
    `table`: intervals by model and the column (missing where a paper prints none); `xlim` are the ends
    of the axis, `options` those of `blocks.forest`."""
    options |= {"width": DOUBLE, "legend_n": True}
    fig, [(axis, _)] = blocks.forest(table, column, xlabel=xlabel, **options)
    axis.set_xlim(xlim)
    return fig
