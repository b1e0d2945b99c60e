"""Figures of part 4, memory or context (thesis, 4.2 to 6.1): where answers come from, how surprising
they are, how well that tells their source, and what true and false contexts do.

A source has the same colour in every figure: orange for memory, blue for the context. These two stay
apart for all colour-blind readers; where colours are not printed, places and lines tell them apart.
Tables and errors as `plots.blocks` says.
"""

from __future__ import annotations

from itertools import product
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
FACTORS = {  # of datasets.contexts.FACTORS
    "near": "near, not absurd",
    "repeated": "said three times, not once",
    "attributed": "attributed, not bare",
    "early": "two sentences behind it, not none",
}
MEASURES = {
    "log_p0": "weakness of the memory\n(log P0, nats a token)",
    "margin": "margin over the likeliest\nrival (nats)",
    "popularity": "popularity of the subject\n(Zipf scale)",
}


def source_shares(table: pd.DataFrame, column: str = "model") -> Figure:
    """Figures 5 to 7 (tables 8 to 10): where the answers come from, a bar a model, or a panel a model
    and a bar each value of `column`, such as "category", in the table's order.

    `table`, of `metrics.context.counts_by`: model, the column, source, share, low, high, n. The
    parametric share is read from the left, the contextual one from the right, with their intervals
    above and below; what is neither lies between them.
    """
    blocks.check(table, "model", column, "source")
    rows = style.in_order(table[column], style.ORDER.get(column, ()))  # the thesis's models last
    sources = style.ordered(table.loc[table["share"] > 0, "source"])
    fills = {source: SOURCES[source].colour for source in sources}
    fig, panels = blocks.panels(
        table, None if column == "model" else "model", height=0.95 + 0.24 * len(rows), width=DOUBLE,
        labels=("share of answers", style.name(column)),
    )  # fmt: skip
    for axis, own in panels:
        blocks.stack(axis, own, column, rows, "source", fills)
        y = own[column].map(rows.index)
        memory, read = own["source"] == "parametric", own["source"] == "contextual"
        lines: dict[str, Any] = {"color": "black", "lw": 0.9}
        axis.hlines(y[memory] - 0.28, own["low"][memory], own["high"][memory], **lines)
        axis.hlines(y[read] + 0.28, 1 - own["high"][read], 1 - own["low"][read], **lines)
    blocks.name_rows([axis for axis, _ in panels], blocks.with_n(table, column, rows))
    return blocks.legend(fig, blocks.patches(fills))


def right_by_context(table: pd.DataFrame) -> Figure:
    """Share of right answers by the kind of context, a row a kind, models side by side.

    `table`: intervals by model, context ("none", "true", "irrelevant" or "false") and, a panel each,
    facts ("all", "known" or "unknown": whether the model is right without context; rows that are not
    there stay empty).
    """
    table = table.sort_values("facts", kind="stable")
    return blocks.forest(
        table.assign(facts=table["facts"].map(FACTS)), "context", panel="facts", what="facts",
        shares="x", xlabel="share of right answers",
    )[0]  # fmt: skip


def factor_effects(table: pd.DataFrame) -> Figure:
    """What each factor of a context changes, a row a factor, models side by side.

    `table`, of `metrics.following.effects`: model, factor, mean, low, high, n. Dashed: nothing.
    """
    rows = list(dict.fromkeys(table["factor"]))
    names = [FACTORS.get(row, style.name(row)) for row in rows]
    label = "change in the share of answers that follow the context"
    return blocks.forest(
        table, "factor", rows, names, at=0, xlabel=label, legend_n=True, width=DOUBLE
    )[0]


def followed_by_memory(bins: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """The share of answers that follow a false context against how strong the memory is.

    Points: `bins`, of `metrics.following.binned`; lines: `curves` of the same module, the fit with its
    interval. Both: model, measure (a panel each), x (its value), mean, low, high, n (facts).
    """
    looks = blocks.looks_of(bins["model"])
    fig, panels = blocks.panels(
        bins, "measure", labels=("", "follow the context"), sharex=False, shares="y", width=DOUBLE
    )
    for axis, own in panels:
        measure = own["measure"].iloc[0]
        axis.set(title="", xlabel=MEASURES.get(measure, style.name(measure)))
        fitted = {value: look._replace(marker="") for value, look in looks.items()}
        blocks.lines(axis, curves[curves["measure"] == measure], "x", fitted)
        for model, look in looks.items():
            part = own[own["model"] == model]
            bars = [part["mean"] - part["low"], part["high"] - part["mean"]]
            axis.errorbar(part["x"], part["mean"], yerr=bars, fmt=look.marker, color=look.colour)
    return blocks.legend(fig, blocks.keys(looks))


def worked_example(tokens: pd.DataFrame) -> Figure:
    """Figure 4: how surprising the tokens of both answers to one question are, a row a token.

    `tokens`, of `probes.context.answer_tokens`: answer, context (bool: whether the counterfactual
    stands in the prompt), position, token, probability. A point is -log2 of the probability: the
    mean of an answer's points is log2 of its perplexity.
    """
    table = tokens.sort_values(["answer", "position"], ascending=[False, True]).assign(
        place=tokens["answer"] + tokens["position"].astype(str),
        prompt=tokens["context"].map({False: "without context", True: "with the counterfactual"}),
        mean=-np.log2(tokens["probability"]), low=np.nan, high=np.nan,
    )  # fmt: skip
    named = table.drop_duplicates("place").set_index("place")
    tokens_shown = named["token"].str.replace(" ", "␣").map(style.printable)
    names = named["answer"] + ": " + tokens_shown  # whose space is part of a token
    label = "surprise in bits:\n−log₂ of the probability"
    fig, ((axis, _),) = blocks.forest(
        table, "place", list(names.index), list(names), by="prompt", xlabel=label
    )
    axis.set_ylabel("token")
    return fig


def perplexity_distributions(answers: pd.DataFrame, groups: str = "source") -> Figure:
    """Figure 8: distribution functions of P4, the answer's perplexity, a line a source, a panel a model.

    `answers`, a row an answer: model, source, value (its P4; missing or infinite ones are counted in
    the title). `groups` says in the legend what the column source holds, which may be a preference.
    """
    fig, panels = _by_model(answers, "share of answers up to x", height=2.6, shares="y")
    for axis, own in panels:
        for source in style.ordered(own.loc[_known(own), "source"]):
            numbers, look = own.loc[own["source"] == source, "value"], SOURCES[source]
            label = f"{source} (n = {len(numbers)})"
            axis.ecdf(numbers, color=look.colour, ls=look.line, label=label)
        axis.legend(loc="lower right", fontsize=6.5, title=groups, title_fontsize=6.5)
    return fig


def perplexity_by_category(answers: pd.DataFrame) -> Figure:
    """Figures 9 and 10: P4, the answer's perplexity, by category and source, a panel a model.

    `answers`, a row an answer and a point: model, category, source, value. At the right, n.
    """
    groups = list(dict.fromkeys(answers["category"]))
    sources = style.ordered(answers.loc[_known(answers), "source"])
    height = 1 + (0.06 + 0.12 * len(sources)) * len(groups)
    fig, panels = _by_model(answers, "category", height=height, width=DOUBLE)
    step = 0.8 / len(sources)
    for axis, own in panels:
        for (k, group), (i, source) in product(enumerate(groups), enumerate(sources)):
            numbers = own.loc[(own["category"] == group) & (own["source"] == source), "value"]
            y, look = k + style.aside(i, len(sources), step), SOURCES[source]
            heights = y + style.jitter(len(numbers), 0.7 * step)
            axis.scatter(numbers, heights, s=8, color=look.colour, ec="0.3", lw=0.3, alpha=0.8)
            blocks.beside(axis, y, str(len(numbers) or ""), "0.35")
    blocks.name_rows([axis for axis, _ in panels], [style.name(group) for group in groups])
    return blocks.legend(
        fig, blocks.patches({source: SOURCES[source].colour for source in sources})
    )


def _known(answers: pd.DataFrame) -> pd.Series:
    """Whether an answer has one of SOURCES and a finite value."""
    return answers["source"].isin(list(SOURCES)) & np.isfinite(answers["value"].astype(float))


def _by_model(answers: pd.DataFrame, ylabel: str, **options: Any) -> tuple[Figure, blocks.Panels]:
    """A panel a model over a log axis of P4, with its answers of known source and value."""
    known = _known(answers)
    if not known.any():
        raise ValueError("No answer has a source and a finite value: nothing can be drawn.")
    labels = ("perplexity of the answer (P4), log scale", ylabel)
    fig, panels = blocks.panels(answers, "model", labels=labels, **options)
    for axis, rows in panels:
        drawn = rows[known[rows.index]]
        axis.set_title(style.title(rows["model"].iloc[0], rows, drawn))
        blocks.log_axis(axis, answers.loc[known, "value"])
    return fig, [(axis, rows[known[rows.index]]) for axis, rows in panels]
