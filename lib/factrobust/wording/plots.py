"""Figures of part 3, robustness to wording (paper 3). Tables and errors as `plots.blocks` says."""

from functools import partial
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from factrobust.plots import blocks, style


def similarities(table: pd.DataFrame) -> Figure:
    """Cosine of each pair of answers to one question, a panel a model, with the first one's text at
    the left. `table`, a row a pair: model, first, second (numbers of answers), answer_1, cosine."""
    from seaborn import heatmap  # few notebooks need it

    models = list(style.looks(table["model"]))
    height = 0.8 + 0.2 * table["second"].nunique()
    fig, axes = style.grid(
        len(models),
        1,
        style.DOUBLE,
        height * len(models),
    )
    shorter = partial(shorten, width=50, placeholder=" …")
    texts = table["answer_1"].map(shorter).map(style.printable)
    number = table["first"].astype("str")
    table = table.assign(text=texts.replace("", "(empty)") + "  " + number)
    for axis, model in zip(axes.flat, models, strict=True):
        part = table[table["model"] == model]
        cosines = part.pivot(
            index=["first", "text"],
            columns="second",
            values="cosine",
        )
        heatmap(
            cosines.droplevel("first").round(2) + 0.0,  # no minus before a zero
            ax=axis,
            cmap="Blues",
            vmin=0,
            vmax=1,
            cbar=False,
            annot=True,
            fmt=".2f",
            annot_kws={"fontsize": 6},
            linewidths=0.6,
        )
        axis.grid(False)
        axis.tick_params(length=0, rotation=0, labelsize=7)
        mean = f"mean of {len(part)} pairs: {part['cosine'].mean():.2f}"
        axis.set(
            title=f"{style.model_name(model)}, {mean}",
            xlabel="number of the answer",
            ylabel="",
        )
    return fig


def by_wording(table: pd.DataFrame) -> Figure:
    """Share of right answers to each wording, a row a relation and a panel a model. `table`:
    intervals by model, relation and variant (0, the original: a bar; paraphrases: points, the first
    one highest)."""
    relations = blocks.by_mean(table, "relation")
    fig, panels = blocks.panels(
        table,
        "model",
        height=0.9 + 0.19 * len(relations),
        shares="x",
        what="facts a relation",
        labels=("share of right answers", ""),
    )
    looks = style.looks(table["model"])
    bar: dict[str, Any] = {
        "ls": "",
        "marker": "|",
        "ms": 11,
        "mew": 1.8,
    }
    point: dict[str, Any] = {
        "ls": "",
        "marker": "o",
        "mew": 0,
        "alpha": 0.6,
    }
    for (axis, part), look in zip(panels, looks.values(), strict=True):
        row = part["relation"].map(relations.index)
        first = part["variant"] == 0
        aside = part["variant"] / part["variant"].max() - 0.5
        axis.errorbar(
            part["mean"][first],
            row[first],
            xerr=style.errors(part[first]),
            color=look.colour,
            elinewidth=0.9,
            **bar,
        )
        axis.plot(
            part["mean"][~first],
            (row + aside / 2)[~first],
            color=look.colour,
            **point,
        )
    blocks.name_rows(
        [axis for axis, _ in panels],
        [*map(style.name, relations)],
    )
    keys = [
        blocks.key("original wording", **bar),
        blocks.key("paraphrase", **point),
    ]
    return blocks.legend(fig, keys)


def correctness_by_consistency(table: pd.DataFrame) -> Figure:
    """Figure 3: correctness of each relation against its consistency, a panel a measure. `table`:
    model, measure, relation, correctness, consistency, n."""
    looks = style.looks(table["model"])
    fig, panels = blocks.panels(
        table,
        "measure",
        height=3.0,
        what="questions a relation",
        labels=("mean over the questions of a relation", "correctness"),
        shares="y",
    )
    for axis, part in panels:
        for model, look in looks.items():
            of = part[part["model"] == model]
            axis.plot(
                of["consistency"],
                of["correctness"],
                look.marker,
                color=look.colour,
            )
    return blocks.legend(fig, blocks.keys(looks, ls=""))


def distributions(table: pd.DataFrame) -> Figure:
    """Figure 4: how each predictor is distributed, a row a relation, a panel a predictor.

    `table` is of `wording.regression.numeric`. A line is a kernel density (Scott's width) between
    the least and the largest value, each as high as its row; without two different values there
    is none."""
    by = ["model", "relation", "predictor"]
    varies = table.groupby(by)["value"].transform("nunique") > 1
    curves = {}
    for key, values in table[varies].groupby(by)["value"]:
        x = np.linspace(values.min(), values.max(), 100)
        density = gaussian_kde(values.dropna())(x)
        curves[key] = pd.DataFrame({"x": x, "height": density / density.max()})
    drawn = pd.concat(curves, names=by).reset_index(by)
    return _a_row_a_relation(drawn, 0.26, "relation")


def binned_correctness(table: pd.DataFrame) -> Figure:
    """Figure 5: share of right answers against each predictor, a row a relation, which reaches from
    0 (below) to 1. `table` of `wording.regression.binned_correctness`."""
    table = table.assign(x=table["midpoint"], height=table["mean"])
    return _a_row_a_relation(
        table, 0.4, "relation; within a row, share of right answers", marked=True
    )


def _a_row_a_relation(
    table: pd.DataFrame,
    height: float,
    label: str,
    marked: bool = False,
) -> Figure:
    """A line a model and relation, in the relation's row, a panel a predictor. `table`: model,
    relation, predictor, x, height (0 to 1 within the row)."""
    looks = style.looks(table["model"])
    relations = sorted(table["relation"].unique())
    fig, panels = blocks.panels(
        table,
        "predictor",
        height=0.85 + height * len(relations),
        labels=("", label),
        sharex=False,
    )
    for axis, part in panels:
        for row in range(len(relations)):
            axis.axhspan(
                row - 0.4,
                row + 0.4,
                color="0.955",
                lw=0,
                zorder=0,
            )
        for (model, relation), line in part.groupby(["model", "relation"]):
            look = looks[str(model)]
            axis.plot(
                line["x"],
                relations.index(relation) + 0.4 - 0.8 * line["height"],
                color=look.colour,
                ls=look.line,
                marker=look.marker if marked else "",
                ms=3,
                lw=1,
            )
    blocks.name_rows(
        [axis for axis, _ in panels],
        [*map(style.name, relations)],
    )
    return blocks.legend(fig, blocks.keys(looks))
