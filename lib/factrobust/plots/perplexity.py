"""Figures of part 4 about the perplexity of answers (thesis, 4.3): figures 4 and 8 to 10.

Sources have the colours of `plots.grounding`. Errors as `plots.wording_style` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from factrobust.metrics.grounding import SOURCES
from factrobust.plots import style
from factrobust.plots import time_style as parts
from factrobust.plots import wording_style as rows
from factrobust.plots.grounding import SOURCE_LOOKS
from factrobust.plots.style import DOUBLE

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
    parts.known(tokens, "answer", ANSWERS)
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
        rows.row_labels([axis], [style.printable(token.replace(" ", "␣")) for token in names])
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
    parts.legend(fig, [Patch(fc=fill, ec="0.5", label=label) for fill, label in shown])
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
    rows.row_labels(axes, [rows.name(group) for group in groups])
    style.label_left(axes, "category")
    parts.legend(fig, [Patch(color=SOURCE_LOOKS[name].colour, label=name) for name in sources])
    return fig


def _known(answers: pd.DataFrame, columns: Sequence[str], log: bool) -> tuple[pd.DataFrame, bool]:
    """The answers with a source and a finite value, and whether x is logarithmic."""
    style.need(answers, *columns)
    known = answers[answers["source"].notna() & np.isfinite(answers["value"].astype(float))]
    parts.known(known, "source", SOURCES)
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
        parts.log_axis(axes[0], pd.Series(limits[np.isfinite(limits)]), 1.1)
        low, high = axes[0].get_xlim()
        if high < 10 * low:  # too little for the ticks of a log axis
            decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)))
            ticks = np.outer(decades, [1, 1.2, 1.5, 2, 3, 4, 5, 7]).ravel()
            ticks = ticks[(low <= ticks) & (ticks <= high)]
            axes[0].set_xticks(ticks, [parts.short(tick) for tick in ticks])
