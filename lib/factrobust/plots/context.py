"""Figures of part 4 about where answers come from (thesis, 4.2 and 5.3): figures 5 to 7, tables 13 and
14 drawn, and ours about true contexts and popularity.

A source has the same colour in every figure (`SOURCE_LOOKS`): orange for memory, blue for the
context. These two stay apart for all colour-blind readers; where colours are not printed, places and
lines tell them apart. Errors as `plots.wording_style` says.

A figure of part 4, ours: what popularity changes about true, irrelevant and false contexts.

`plots.grounding.truth` draws the contexts without popularity. Errors as `plots.time_style` says.

Figures of part 4 about the perplexity of answers (thesis, 4.3): figures 4 and 8 to 10.

Sources have the colours of `plots.grounding`. Errors as `plots.wording_style` says.

Figures of part 4: how well does perplexity tell where an answer came from (thesis, 6.1.3)?

Errors as `plots.wording_style` says; where a table calls its numbers otherwise than mean, low and
high, the function names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from factrobust.metrics.answer_rules import KINDS
from factrobust.metrics.context import SOURCES
from factrobust.plots import blocks, style
from factrobust.plots.style import DOUBLE, SINGLE

SOURCE_LOOKS = {  # no colours of the embedded models
    "parametric": style.Look(style.ORANGE, "o", "-"),
    "contextual": style.Look(style.SKY, "s", (0, (5, 1.5))),
    "other": style.Look("#9A9A9A", "^", (0, (1, 1.2))),
    "empty": style.Look("#D6D6D6", "D", (0, (5, 1.5, 1, 1.5))),
}
STACK = ("parametric", "other", "empty", "contextual")  # of a bar, from left to right
CONTEXTS = ("none", "true", "irrelevant", "false")
FACTS = {
    "all": "all facts",
    "known": "right without context",
    "unknown": "not right without context",
}


@style.styled
def source_shares(table: pd.DataFrame) -> Figure:
    """Figure 5 (table 8): where the answers come from, a bar a model.

    `table`, of `metrics.context.counts_by` by model: model, source, share, low, high, n.
    The parametric share is read from the left, the contextual one from the right, each with its
    interval; what is neither lies between them. Models of no look of their own stand in the table's
    order.
    """
    _check(table, "model")
    models = style.in_order(table["model"], style.MODELS)
    fig, axes = style.panels(1, 1, DOUBLE, 0.95 + 0.36 * len(models))
    axis = axes[0, 0]
    _stack(axis, table, "model", models, room=0.05)
    n = [style.count(table.loc[table["model"] == model, "n"]) for model in models]
    labels = [f"{style.model_name(m)}\nn = {k} questions" for m, k in zip(models, n, strict=True)]
    blocks.row_labels([axis], labels)
    blocks.legend(fig, _patches(table))
    return fig


@style.styled
def source_by_category(table: pd.DataFrame, column: str = "category") -> Figure:
    """Figures 6 and 7 (tables 9 and 10): `source_shares` by category, a panel a model.

    `table`, of `metrics.context.counts_by` by model and category: model, category, source,
    share, low, high, n. Categories stand in the table's order. `column` names another column whose
    values have the rows, such as "base_id".
    """
    _check(table, "model", column)
    models = style.in_order(table["model"], style.MODELS)
    groups = list(dict.fromkeys(table[column]))
    fig, axes = style.model_panels(models, 0.95 + 0.24 * len(groups), DOUBLE)
    for axis, model in zip(axes, models, strict=True):
        room = 0.05 * min(len(models), 3)
        _stack(axis, table[table["model"] == model], column, groups, room)
        axis.set_title(style.model_name(model))
    n = [style.count(table.loc[table[column] == group, "n"]) for group in groups]
    labels = [f"{blocks.name(str(group))} (n = {k})" for group, k in zip(groups, n, strict=True)]
    blocks.row_labels(axes, labels)
    style.label_left(axes, blocks.name(column))
    blocks.legend(fig, _patches(table))
    return fig


@style.styled
def kinds(table: pd.DataFrame) -> Figure:
    """Tables 13 and 14 drawn: the seven kinds of Other, a row a kind, models side by side.

    `table`, of `metrics.context.counts_by` by model with value "kind": model, kind, count
    (written at the right), share, low, high, n (questions with an Other, in the legend).
    """
    style.need(table, "model", "kind", "count", "share", "low", "high", "n")
    style.once(table, "model", "kind")
    if odd := sorted(set(table["kind"]) - set(KINDS)):
        raise ValueError(f"The figure draws no kind {odd[0]!r}: write one of 1 to {max(KINDS)}.")
    looks = style.looks(table["model"])
    shown = {k: f"{k} {kind.label}" for k, kind in KINDS.items() if k in set(table["kind"])}
    fig, axes = style.panels(1, 1, DOUBLE, 1.1 + max(0.2, 0.08 + 0.12 * len(looks)) * len(shown))
    axis = axes[0, 0]
    points = table.rename(columns={"share": "mean"}).assign(kind=table["kind"].map(shown))
    heights = blocks.points(axis, points, "kind", list(shown.values()), looks)
    for y, n, model in zip(heights, table["count"], table["model"], strict=True):
        axis.text(
            1.01, y, str(n), transform=axis.get_yaxis_transform(), va="center", fontsize=6.5,
            color=looks[model].colour,
        )  # fmt: skip
    blocks.row_labels([axis], list(shown.values()))
    axis.set(xlabel="share of the other answers (at the right, their number)", ylabel="kind")
    axis.set_xlim(left=-0.02)
    n = {model: style.count(table.loc[table["model"] == model, "n"]) for model in looks}
    blocks.legend(fig, [style.key(model, look, n[model], ls="") for model, look in looks.items()])
    return fig


@style.styled
def truth(table: pd.DataFrame) -> Figure:
    """Share of right answers by the kind of context, a row a kind, models side by side.

    `table`: model, context ("none", "true", "irrelevant" or "false"), mean, low, high (of right or
    wrong, see `statistics.interval_table`), n (facts); and, for a panel each, facts ("all", "known"
    or "unknown": whether the model is right without context; rows that are not there stay empty).
    """
    table = table if "facts" in table else table.assign(facts="all")
    style.need(table, "model", "context", "facts", "mean", "low", "high", "n")
    style.once(table, "model", "context", "facts")
    blocks.known(table, "context", CONTEXTS)
    blocks.known(table, "facts", FACTS)
    looks = style.looks(table["model"])
    contexts = style.in_order(table["context"], CONTEXTS)
    groups = style.in_order(table["facts"], tuple(FACTS))
    fig, axes = style.panels(
        1, len(groups), style.panel_width(len(groups)),
        1.2 + (0.16 + 0.1 * len(looks)) * len(contexts), sharex=True, sharey=True,
    )  # fmt: skip
    for axis, group in zip(axes[0], groups, strict=True):
        own = table[table["facts"] == group]
        blocks.points(axis, own, "context", contexts, looks)
        axis.set(title=f"{FACTS[group]}\n{blocks.facts(own, list(looks))}")
        axis.set_xlabel("share of right answers")
        style.shares(axis, "x")
    blocks.row_labels(list(axes[0]), ["no" if name == "none" else name for name in contexts])
    axes[0, 0].set_ylabel("context")
    blocks.legend(fig, blocks.point_keys(looks))
    return fig


@style.styled
def by_popularity(table: pd.DataFrame, value: str = "share from the context") -> Figure:
    """A share in bins of popularity, a line a model with its interval as a band.

    `table`: model, popularity (where a bin stands: the mean of its objects, on the Zipf scale),
    mean, low, high, n. `value` is the label of y.
    """
    blocks.intervals(table, "model", "popularity")
    looks = style.looks(table["model"])
    fig, axes = style.panels(1, 1, SINGLE, 2.6)
    axis = axes[0, 0]
    for model, look in looks.items():
        own = table[table["model"] == model]
        blocks.line(axis, own, "popularity", look, marker=look.marker)
    blocks.from_zero(axis, [*table["high"], *table["mean"]])
    axis.set(xlabel="popularity of the object (Zipf)", ylabel=value)
    axis.set_title(f"n = {style.count(table['n'])} questions a bin")
    blocks.legend(fig, blocks.keys(looks, marker=None))
    return fig


def _check(table: pd.DataFrame, *keys: str) -> None:
    style.need(table, *keys, "source", "share", "low", "high", "n")
    style.once(table, *keys, "source")
    blocks.known(table, "source", SOURCES)


def _stack(axis: Axes, table: pd.DataFrame, column: str, groups: list[str], room: float) -> None:
    """A stacked bar of sources for each value of `column`, from the top.

    The outer sources have intervals, the parametric one's above the other's. Shares stand in the
    bars where `room` is left between intervals.
    """
    share, low, high = (
        table.pivot(index="source", columns=column, values=of).reindex(list(STACK), columns=groups)
        for of in ("share", "low", "high")
    )
    share, y = share.fillna(0), np.arange(len(groups))
    left = share.cumsum().shift(fill_value=0)
    left.loc["contextual"] = 1 - share.loc["contextual"]  # it ends at 1, whatever the rounding
    low, high = low.fillna(share), high.fillna(share)
    memory = low.loc["parametric"], high.loc["parametric"]
    context = 1 - high.loc["contextual"], 1 - low.loc["contextual"]
    for source in STACK:
        start, end = left.loc[source], left.loc[source] + share.loc[source]
        axis.barh(
            y, end - start, 0.74, start, color=SOURCE_LOOKS[source].colour, ec="white", lw=0.5
        )
        free = {"parametric": (start, memory[0]), "contextual": (context[1], end)}.get(
            source, (np.maximum(start, memory[1]), np.minimum(end, context[0]))
        )
        align = {"parametric": (0.01, "left"), "contextual": (0.99, "right")}
        for k, (group, a, b) in enumerate(zip(groups, *free, strict=True)):
            if b - a >= room:
                x, ha = align.get(source, ((a + b) / 2, "center"))
                text = f"{share.loc[source, group]:.0%}"
                axis.text(x, k, text, ha=ha, va="center", fontsize=6.5)
    for (a, b), shift in ((memory, -0.14), (context, 0.14)):
        axis.hlines(y + shift, a, b, color="black", lw=0.9)
    style.shares(axis, "x")
    axis.set_xlim(0, 1)
    axis.set_xlabel("share of answers")


def _patches(table: pd.DataFrame) -> list[Patch]:
    """A legend entry a source that occurs, as they lie in a bar."""
    found = set(table.loc[table["share"] > 0, "source"])
    return [
        Patch(color=SOURCE_LOOKS[source].colour, label=source)
        for source in STACK
        if source in found
    ]


@style.styled
def truth_by_popularity(table: pd.DataFrame, value: str = "share of right answers") -> Figure:
    """A share in bins of popularity, a panel a context, a line a model with its intervals.

    `table`: model, context (of `plots.grounding.CONTEXTS`), popularity (where a bin stands: the mean
    of its facts), mean, low, high, n (facts of the bin). `value` is the label of y. Models stand a little apart,
    so that intervals do not hide each other.
    """
    blocks.intervals(table, "model", "context", "popularity")
    blocks.known(table, "context", CONTEXTS)
    looks = style.looks(table["model"])
    contexts = style.in_order(table["context"], CONTEXTS)
    fig, axes = style.panels(
        1, len(contexts), style.panel_width(len(contexts)), 2.5, sharex=True, sharey=True
    )
    apart = 0.03 * (table["popularity"].max() - table["popularity"].min())
    for axis, context in zip(axes[0], contexts, strict=True):
        here = table[table["context"] == context]
        for k, (model, look) in enumerate(looks.items()):
            own = here[here["model"] == model].sort_values("popularity")
            x = own["popularity"] + (k - (len(looks) - 1) / 2) * apart
            axis.plot(x, own["mean"], color=look.colour, ls=look.line, lw=1)
            axis.errorbar(
                x, own["mean"], style.errors(own), fmt=look.marker, color=look.colour, elinewidth=1
            )
        name = "no" if context == "none" else context
        axis.set_title(f"{name} context\nn = {style.count(here['n'])} facts")
        style.shares(axis)
    fig.supxlabel("popularity of the subject (Zipf, mean of a bin)", fontsize=8.5)
    axes[0, 0].set_ylabel(value)
    blocks.legend(fig, [style.key(model, look) for model, look in looks.items()])
    return fig


ANSWERS = {  # where an answer's tokens come from, and its perplexities without and with context
    "parametric": ("parametric", "p0", "p2"),
    "counterfactual": ("contextual", "p1", "p3"),
}
WIDE = 3  # values that span at least this factor get a log axis
FEW = 5  # fewer answers than this have no quartiles


@style.styled
def worked_example(tokens: pd.DataFrame, result: Mapping[Any, Any] | None = None) -> Figure:
    """Figure 4: how surprising the tokens of both answers to one question are, a panel an answer.

    `tokens`: answer ("parametric" or "counterfactual"), context (bool: whether the counterfactual
    stands in the prompt), position, token, probability (written at its bar). A bar is -log2 of the
    probability: the mean of an answer's bars is log2 of its perplexity. `result`, such as a row of
    the results (a Series or dict with p0 to p3), has the perplexities written above.
    """
    style.need(tokens, "answer", "context", "position", "token", "probability")
    style.once(tokens, "answer", "context", "position")
    blocks.known(tokens, "answer", ANSWERS)
    if not tokens["probability"].between(0, 1, inclusive="right").all():
        raise ValueError(
            "The figure draws probabilities above 0 and up to 1: leave out the others."
        )
    answers, contexts = style.in_order(tokens["answer"], tuple(ANSWERS)), set(tokens["context"])
    longest = int(tokens.groupby("answer")["position"].nunique().max())
    shift, height = (0.2, 0.26) if len(contexts) == 2 else (0, 0.2)
    fig, axes = style.panels(1, len(answers), DOUBLE, 1.3 + height * longest, sharex=True)
    for axis, answer in zip(axes[0], answers, strict=True):
        own = tokens[tokens["answer"] == answer].sort_values("position")
        names = own.drop_duplicates("position").set_index("position")["token"]
        source, *perplexities = ANSWERS[answer]
        colour = SOURCE_LOOKS[source].colour
        for context, part in own.groupby("context"):
            bars = axis.barh(
                names.index.get_indexer(part["position"]) + (shift if context else -shift),
                -np.log2(part["probability"]), 0.4 if shift else 0.7, ec=colour, lw=0.8,
                color=colour if context else "white",
            )  # fmt: skip
            axis.bar_label(bars, [f"{p:.2g}" for p in part["probability"]], padding=2, fontsize=6)
        blocks.row_labels([axis], [style.printable(token.replace(" ", "␣")) for token in names])
        axis.set_ylim(longest - 0.5, -0.5)
        axis.margins(x=0.15)
        title = f"{answer} answer"
        if result is not None:
            without, within = (f"{name.upper()} = {result[name]:.4g}" for name in perplexities)
            title += f"\n{without} without, {within} with"
        axis.set(title=title, xlabel="surprise: −log₂ of the probability (bits)")
    axes[0, 0].set_ylabel("token")
    shades = {False: ("white", "without context"), True: ("0.5", "with the counterfactual")}
    shown = [shades[context] for context in shades if context in contexts]
    blocks.legend(fig, [Patch(fc=fill, ec="0.5", label=label) for fill, label in shown])
    return fig


@style.styled
def perplexity_distributions(
    answers: pd.DataFrame,
    value: str = "perplexity of the answer (P4)",
    *,
    groups: str = "source",
    log: bool = True,
) -> Figure:
    """Figure 8: distribution functions of a perplexity, a line a source, a panel a model.

    `answers`, a row an answer: model, source, value (such as its P4; missing or infinite ones are
    counted in the title). `value` is the label of x, which is logarithmic if `log` and values differ;
    `groups` says in the legend what the column source holds, which may be a preference.
    """
    known, log = _known(answers, ["model", "source", "value"], log)
    models = list(style.looks(answers["model"]))
    fig, axes = style.model_panels(models, 2.6)
    for axis, model in zip(axes, models, strict=True):
        own = known[known["model"] == model]
        for source in style.in_order(own["source"], SOURCES):
            numbers, look = own.loc[own["source"] == source, "value"], SOURCE_LOOKS[source]
            label = f"{source} (n = {len(numbers)})"
            axis.ecdf(numbers, color=look.colour, ls=look.line, label=label)
        axis.set_title(style.title(model, answers[answers["model"] == model], own))
        style.shares(axis)
        if len(own):
            axis.legend(
                loc="lower right", fontsize=6.5, handlelength=2.4, title=groups, title_fontsize=6.5
            )
    _value_axis(fig, axes, value, log)
    style.label_left(axes, "share of answers up to x")
    return fig


@style.styled
def perplexity_by_category(
    answers: pd.DataFrame, value: str = "perplexity of the answer (P4)", *, log: bool = True
) -> Figure:
    """Figures 9 and 10: box plots of a perplexity by category and source, a panel a model.

    `answers`, a row an answer: model, category, source, value; `value` and `log` as above. Boxes
    reach from quartile to quartile, with the median, lines from 5% to 95%; fewer than FEW answers
    are points. At the right, n.
    """
    known, log = _known(answers, ["model", "category", "source", "value"], log)
    models, groups = list(style.looks(answers["model"])), list(dict.fromkeys(answers["category"]))
    sources = style.in_order(known["source"], SOURCES)
    line: dict[str, Any] = {"color": "0.15", "linewidth": 0.7}
    fig, axes = style.model_panels(models, 1 + (0.06 + 0.12 * len(sources)) * len(groups), DOUBLE)
    for axis, model in zip(axes, models, strict=True):
        own = known[known["model"] == model]
        for key, numbers in own.groupby(["category", "source"], observed=True)["value"]:
            group, source = map(str, key)
            y = groups.index(group) + (sources.index(source) + 0.5) * 0.8 / len(sources) - 0.4
            colour = SOURCE_LOOKS[source].colour
            if len(numbers) < FEW:
                axis.plot(numbers, [y] * len(numbers), "o", mfc=colour, mec="0.15", mew=0.5, ms=4)
            else:
                axis.boxplot(
                    [numbers.to_numpy(float)], positions=[y], widths=0.64 / len(sources),
                    whis=(5, 95), orientation="horizontal", showfliers=False, showcaps=False,
                    patch_artist=True, manage_ticks=False, boxprops=line | {"facecolor": colour},
                    medianprops=line | {"linewidth": 1.6}, whiskerprops=line,
                )  # fmt: skip
            axis.text(
                1.01, y, str(len(numbers)), transform=axis.get_yaxis_transform(), fontsize=5.5,
                va="center", color="0.35",
            )  # fmt: skip
        axis.set_title(style.title(model, answers[answers["model"] == model], own))
    _value_axis(fig, axes, value, log)
    blocks.row_labels(axes, [blocks.name(group) for group in groups])
    style.label_left(axes, "category")
    blocks.legend(fig, [Patch(color=SOURCE_LOOKS[name].colour, label=name) for name in sources])
    return fig


def _known(answers: pd.DataFrame, columns: Sequence[str], log: bool) -> tuple[pd.DataFrame, bool]:
    """The answers with a source and a finite value, and whether x is logarithmic."""
    style.need(answers, *columns)
    known = answers[answers["source"].notna() & np.isfinite(answers["value"].astype(float))]
    blocks.known(known, "source", SOURCES)
    if known.empty:
        raise ValueError("No answer has a source and a finite value: nothing can be drawn.")
    low, high = known["value"].min(), known["value"].max()
    if log and low <= 0:
        raise ValueError(f"The value {low:g} has no place on a logarithmic axis: use log=False.")
    return known, log and high / low >= WIDE


def _value_axis(fig: Figure, axes: Sequence[Axes], value: str, log: bool) -> None:
    """The x axis, which panels share, as far as something is drawn."""
    fig.supxlabel(value + (", log scale" if log else ""), fontsize=8.5)
    if log:
        limits = np.ravel([axis.dataLim.intervalx for axis in axes])
        blocks.log_axis(axes[0], pd.Series(limits[np.isfinite(limits)]), 1.1)
        low, high = axes[0].get_xlim()
        if high < 10 * low:  # too little for the ticks of a log axis
            decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)))
            ticks = np.outer(decades, [1, 1.2, 1.5, 2, 3, 4, 5, 7]).ravel()
            ticks = ticks[(low <= ticks) & (ticks <= high)]
            axes[0].set_xticks(ticks, [blocks.short(tick) for tick in ticks])


LABELS = {  # of metrics.attribution.SCORES
    "log_p2_p3": "log P2 − log P3",
    "minus_log_p4": "−log P4",
    "minus_log_p3": "−log P3",
    "log_p1_p3": "log P1 − log P3",
    "log_p2_p0": "log P2 − log P0",
    "log_p0": "log P0",
    "minus_log_p1": "−log P1",
    "entropy": "entropy without context",
    "minus_entropy_context": "−entropy with context",
    "shift": "shift by the context",
}
MEASURES = {  # of metrics.attribution.error_rates
    "fpr": "memory taken for context",
    "fnr": "context taken for memory",
    "false_discovery": "memory among “context”",
    "accuracy": "right decisions",
    "balanced_accuracy": "mean over both sources",
}
SHORT = {"false_discovery": "false discovery", "balanced_accuracy": "balanced accuracy"}


@style.styled
def roc(table: pd.DataFrame, auc: pd.DataFrame | None = None) -> Figure:
    """ROC curves of the scores that shall tell the source, a line a score, a panel a model.

    `table`, of `metrics.attribution.roc_curve`: model, score, threshold, fpr, tpr. `auc`, of
    `metrics.attribution.auc_table`, has the areas written in: model, score, auc, low, high, n. On
    the dashed line a score tells nothing. At most five scores.
    """
    style.need(table, "model", "score", "threshold", "fpr", "tpr")
    style.once(table, "model", "score", "threshold")
    names, models = list(dict.fromkeys(table["score"])), list(style.looks(table["model"]))
    if len(names) > len(blocks.LINE_LOOKS):
        raise ValueError(
            f"{len(names)} scores are too many to tell apart: give at most {len(blocks.LINE_LOOKS)}."
        )
    if auc is not None:
        style.need(auc, "model", "score", "auc", "low", "high", "n")
        style.once(auc, "model", "score")
    fig, axes = style.model_panels(models, 3.2 if len(models) < 3 else 2.8)
    for axis, model in zip(axes, models, strict=True):
        axis.plot([0, 1], [0, 1], zorder=1, **blocks.DASHED)
        for name, look in zip(names, blocks.LINE_LOOKS, strict=False):
            own = table[(table["model"] == model) & (table["score"] == name)]
            own = own.sort_values(["fpr", "tpr"])
            axis.plot(own["fpr"], own["tpr"], color=look.colour, ls=look.line)
        title = style.model_name(model)
        if auc is not None:
            here = auc[(auc["model"] == model) & auc["score"].isin(names)].set_index("score")
            title += f"\nn = {style.count(here['n'])} answers"
            texts = [_area(here.loc[name]) if name in here.index else "–" for name in names]
            axis.legend(
                handles=_lines(texts), loc="lower right", title="AUC", fontsize=6, title_fontsize=6,
                handlelength=1.8, handletextpad=0.5, borderaxespad=0.1, labelspacing=0.3,
            )  # fmt: skip
        axis.set(title=title, xlabel="memory taken for context (fpr)")
        style.shares(axis, "x")
        style.shares(axis)
    style.label_left(axes, "context recognised (tpr)")
    blocks.legend(fig, _lines([LABELS.get(name, blocks.name(name)) for name in names]))
    return fig


@style.styled
def auc(table: pd.DataFrame) -> Figure:
    """How well single scores tell the source, a row a score, models side by side.

    `table`, of `metrics.attribution.auc_table`: model, score, queries, auc, low, high, n (its range
    in the legend); the highest mean on top. With context ("counterfactual", "false", ...), a panel
    each. Hollow: the score costs a second query, without the context. Dashed: chance.
    """
    table = table if "context" in table else table.assign(context="")
    style.need(table, "model", "score", "queries", "context", "auc", "low", "high", "n")
    style.once(table, "model", "score", "context")
    table = table.rename(columns={"auc": "mean"}).assign(hollow=table["queries"] == 2)
    looks, contexts = style.looks(table["model"]), list(dict.fromkeys(table["context"]))
    ranked = table.groupby("score")["mean"].mean().sort_values(ascending=False, kind="stable")
    names = list(ranked.index)
    fig, axes = style.panels(
        1, len(contexts), style.panel_width(len(contexts)),
        1.1 + (0.12 + 0.07 * len(looks)) * len(names), sharex=True, sharey=True,
    )  # fmt: skip
    for axis, context in zip(axes[0], contexts, strict=True):
        axis.axvline(0.5, zorder=1, **blocks.DASHED)
        blocks.points(axis, table[table["context"] == context], "score", names, looks)
        axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set(xlabel="AUC", title=f"{context} context" if context else None)
    blocks.row_labels(list(axes[0]), [LABELS.get(name, blocks.name(name)) for name in names])
    axes[0, 0].set_ylabel("score")
    n = {model: style.count(table.loc[table["model"] == model, "n"]) for model in looks}
    handles = [style.key(model, look, n[model], ls="") for model, look in looks.items()]
    if table["hollow"].any():
        label = "needs a query without context"
        handles.append(Line2D([], [], ls="", marker="o", color="0.3", mfc="white", label=label))
    blocks.legend(fig, handles)
    return fig


@style.styled
def errors(table: pd.DataFrame) -> Figure:
    """How often thresholds on a score err, a row a measure, models side by side.

    `table`, of `metrics.attribution.error_rates`: model, measure, mean, low, high, n. With
    context or else score, a panel each. Beside the accuracy, the baseline as a vertical mark.
    """
    table = table if {"context", "score"} & set(table) else table.assign(score="")
    column = "context" if "context" in table else "score"
    style.need(table, "model", "measure", column, "mean", "low", "high", "n")
    style.once(table, "model", "measure", column)
    looks, panels = style.looks(table["model"]), list(dict.fromkeys(table[column]))
    shown = [name for name in MEASURES if name in set(table["measure"])]
    height = 1.15 + max(0.38, 0.1 + 0.11 * len(looks)) * len(shown)
    fig, axes = style.panels(1, len(panels), DOUBLE, height, sharex=True, sharey=True)
    mark: dict[str, Any] = {"ls": "", "marker": "|", "ms": 9, "mew": 1.5}
    for axis, panel in zip(axes[0], panels, strict=True):
        own = table[table[column] == panel]
        drawn = own[own["measure"].isin(shown)]
        y = blocks.points(axis, drawn, "measure", shown, looks)
        for model, look in looks.items():
            baseline = own.loc[(own["model"] == model) & (own["measure"] == "baseline"), "mean"]
            beside = y[(drawn["model"] == model) & (drawn["measure"] == "accuracy")]
            if len(baseline) and len(beside):
                axis.plot(baseline, beside, color=look.colour, **mark)
        title = LABELS.get(panel, blocks.name(panel))
        axis.set(title=f"{panel} context" if column == "context" else title)
        axis.set_xlabel("share of answers")
        style.shares(axis, "x")
    n = [style.count(table.loc[table["measure"] == name, "n"]) for name in shown]
    labels = [
        f"{SHORT.get(name, name)} (n = {k})\n{MEASURES[name]}"
        for name, k in zip(shown, n, strict=True)
    ]
    blocks.row_labels(list(axes[0]), labels)
    axes[0, 0].set_ylabel("measure")
    handles = blocks.point_keys(looks)
    if "baseline" in set(table["measure"]):
        handles.append(Line2D([], [], color="0.3", label="accuracy of the baseline", **mark))
    blocks.legend(fig, handles)
    return fig


def _area(row: pd.Series) -> str:
    return "–" if np.isnan(row["auc"]) else f"{row['auc']:.2f} ({row['low']:.2f}–{row['high']:.2f})"


def _lines(labels: Sequence[str]) -> list[Line2D]:
    """Legend entries of the scores, in the order of blocks.LINE_LOOKS."""
    return [
        Line2D([], [], color=look.colour, ls=look.line, label=label)
        for label, look in zip(labels, blocks.LINE_LOOKS, strict=False)
    ]
