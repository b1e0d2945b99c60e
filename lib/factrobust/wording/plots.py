"""Figures of part 3, robustness to wording (paper 3). Tables and errors as `plots.blocks` says."""

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from factrobust.intervals import as_mean
from factrobust.plots import blocks, style
from factrobust.wording.prediction import RELATION

PREDICTORS = {  # names in the tables, in small letters -> names in the figures
    "spop": "popularity, log(SPop)",
    "scons": "consistency, SCons",
    "cert": "certainty, Cert",
}
MEASURES = {
    "brier": "Brier score (less is better)",
    "auc_within": "AUC within relations",
}
FEW = 5  # questions of a bin that a line goes through


def similarities(table: pd.DataFrame) -> Figure:
    """Cosine of each pair of answers to one question, a panel a model, with the answers at the
    left. `table`, a row a pair: model, first, second (numbers of answers), answer_1, answer_2,
    cosine."""
    models = list(style.looks(table["model"]))
    n = 1 + table["second"].nunique()
    fig, axes = style.grid(len(models), 1, style.DOUBLE, (0.6 + 0.2 * n) * len(models))
    for axis, model in zip(axes.flat, models, strict=True):
        part = table[table["model"] == model]
        texts = dict(zip(part["first"], part["answer_1"], strict=True))
        texts |= dict(zip(part["second"], part["answer_2"], strict=True))
        cosines = part.pivot(index="first", columns="second", values="cosine")
        cosines = cosines.round(2) + 0.0  # no minus before a zero
        cosines = cosines.reindex(index=list(texts), columns=list(texts))
        blocks.cells(axis, cosines, "Blues", 1)
        for (row, column), cosine in np.ndenumerate(cosines):
            if not np.isnan(cosine):
                ink = "white" if cosine > 0.6 else "black"
                axis.text(
                    column,
                    row,
                    f"{cosine:.2f}",
                    color=ink,
                    ha="center",
                    va="center",
                    fontsize=6,
                )
        names = []
        for number, text in texts.items():
            short = shorten(text, 50, placeholder=" …") or "(empty)"
            names.append(f"{style.printable(short)}  {number}")
        axis.set_yticks(range(len(texts)), names, fontsize=7)
        axis.set_xticks(range(len(texts)), list(texts))
        mean = f"mean of {len(part)} pairs: {part['cosine'].mean():.2f}"
        axis.set(
            title=f"{style.model_name(model)}, {mean}",
            xlabel="number of the answer",
        )
    return fig


def quality(table: pd.DataFrame) -> Figure:
    """Cosine of the original question to its paraphrases and to questions that are none. `table`:
    intervals by relation and pair of `wording.facts.quality_pairs`, ordered by the paraphrases."""
    rows = blocks.by_mean(table[table["pair"] == "paraphrase"], "relation")
    looks = blocks.looks_of(table["pair"])
    labels = ("cosine to the original question", "")
    fig, [(axis, _)] = blocks.panels(
        table,
        height=1 + 0.17 * len(rows),
        labels=labels,
    )
    y = table["relation"].map(rows.index)  # all pairs on one line
    blocks.dots(axis, table, y, looks, "pair", upright=False, elinewidth=0.9)
    blocks.name_rows([axis], [*map(style.name, rows)])
    return blocks.legend(fig, blocks.keys(looks, ls=""))


def by_wording(table: pd.DataFrame) -> Figure:
    """Share of right answers to each wording, a row a relation and a panel a model. `table`:
    intervals by model, relation and variant (0, the original: a bar; paraphrases: points)."""
    relations = blocks.by_mean(table, "relation")
    fig, panels = blocks.panels(
        table,
        "model",
        height=0.9 + 0.19 * len(relations),
        shares="x",
        what="facts a relation",
        labels=("share of right answers", ""),
    )
    marks: dict[str, dict[str, Any]] = {
        "original wording": {"marker": "|", "ms": 11, "mew": 1.8},
        "paraphrase": {"marker": "o", "mew": 0, "alpha": 0.6},
    }
    looks = style.looks(table["model"]).values()
    for (axis, part), look in zip(panels, looks, strict=True):
        at = part["relation"].map(relations.index)
        original = part["variant"] == 0
        # Multiples of the golden ratio fill an interval evenly, in a mixed order.
        aside = (np.arange(len(part)) * (np.sqrt(5) - 1) / 2) % 1 - 0.5
        at += aside * 0.5 * ~original
        for shown, shape in zip((original, ~original), marks.values(), strict=True):
            axis.plot(
                part["mean"][shown],
                at[shown],
                ls="",
                color=look.colour,
                **shape,
            )
        first = part[original]
        axis.hlines(
            at[original],
            first["low"],
            first["high"],
            color=look.colour,
            lw=0.9,
        )
    blocks.name_rows([axis for axis, _ in panels], [*map(style.name, relations)])
    return blocks.legend(
        fig,
        [blocks.key(name, ls="", **shape) for name, shape in marks.items()],
    )


def floor(table: pd.DataFrame) -> Figure:
    """Share of the answers that flip, a row a model and a panel a prompt. `table`: intervals by
    prompt, model and kind of version (`wording.floor.with_kind`)."""
    rows = [*style.looks(table["model"])]
    return blocks.forest(
        table,
        "model",
        rows,
        panel="prompt",
        by="kind",
        xlabel="share of answers that flip",
        what="facts",
    )[0]


def by_relation(
    table: pd.DataFrame,
    panel: str,
    xlabel: str,
    by: str = "model",
) -> Figure:
    """Figures 1 and 2: means by relation, a row each, a panel each value of the column `panel`.
    `table`: intervals by relation, `panel` and `by`. Relations stand by their mean in the first
    panel."""
    first = style.ordered(table[panel])[0]
    rows = blocks.by_mean(table[table[panel] == first], "relation")
    what = "questions a relation"
    return blocks.forest(
        table,
        "relation",
        rows,
        panel=panel,
        by=by,
        xlabel=xlabel,
        what=what,
    )[0]


def correctness_by_consistency(table: pd.DataFrame, named: Mapping[str, str]) -> Figure:
    """Figure 3: correctness of each relation against its consistency, a panel a measure. `table`:
    model, measure, relation, correctness, consistency, n; `named` are labelled: {relation:
    model}."""
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
        labelled = part[part["relation"].map(named) == part["model"]]
        for row in labelled.to_dict("records"):
            axis.annotate(
                style.name(row["relation"]),
                (row["consistency"], row["correctness"]),
                xytext=(0, -11),
                textcoords="offset points",
                fontsize=7,
                ha="center",
                color=looks[row["model"]].colour,
            )
        axis.margins(x=0.15)
    return blocks.legend(fig, blocks.keys(looks, ls=""))


def within_and_between(table: pd.DataFrame) -> Figure:
    """Correctness against a predictor, a row a predictor: of relations' means at the left; at the
    right of questions without their relation's means, in bins with intervals. `table`: model,
    predictor, level ("between", "within"), x, mean, low, high, n."""
    looks = style.looks(table["model"])
    predictors = style.ordered(table["predictor"])
    fig, axes = style.grid(len(predictors), 2, style.DOUBLE, 2.4 * len(predictors))
    for row, predictor in zip(axes, predictors, strict=True):
        for axis, level in zip(row, ("between", "within"), strict=True):
            part = table[(table["predictor"] == predictor) & (table["level"] == level)]
            for model, look in looks.items():
                of = part[part["model"] == model].sort_values("x")
                slope, height = np.polyfit(of["x"], of["mean"], 1)
                ends = np.array([of["x"].min(), of["x"].max()])
                axis.plot(
                    ends,
                    height + slope * ends,
                    color=look.colour,
                    ls=look.line,
                )
                axis.errorbar(
                    of["x"],
                    of["mean"],
                    yerr=style.errors(of),
                    ls="",
                    fmt=look.marker,
                    color=look.colour,
                    elinewidth=0.7,
                )
            inside = level == "within"
            name = PREDICTORS.get(predictor.lower(), predictor)
            axis.set(xlabel=f"{name}{', minus its relation' if inside else ''}")
            axis.set_ylabel("right answers" + (",\nminus the relation's share" if inside else ""))
            axis.set_title("questions within relations" if inside else "relations")
    return blocks.legend(fig, blocks.keys(looks))


def distributions(table: pd.DataFrame) -> Figure:
    """Figure 4: how each predictor is distributed, a row a relation, a panel a predictor.

    `table` is of `wording.regression.numeric`. A line is a kernel density (Scott's width) between
    the least and the largest value, each as high as its row; without two different values there
    is none."""
    looks, relations = style.looks(table["model"]), sorted(table["relation"].unique())
    table = table.assign(predictor=table["predictor"].str.lower().replace(PREDICTORS))
    height = 0.85 + 0.26 * len(relations)
    fig, panels = blocks.panels(
        table, "predictor", height=height, labels=("", "relation"), sharex=False
    )
    for axis, part in panels:
        axis.set(title="", xlabel=part["predictor"].iloc[0])
        for (model, relation), own in part.groupby(["model", "relation"]):
            values = own["value"].dropna()
            if values.nunique() < 2:
                continue
            x = np.linspace(values.min(), values.max(), 100)
            density = gaussian_kde(values)(x)
            y = relations.index(relation) + 0.45 - 0.9 * density / density.max()
            axis.plot(x, y, color=looks[str(model)].colour, ls=looks[str(model)].line, lw=1)
    blocks.name_rows([axis for axis, _ in panels], [*map(style.name, relations)])
    return blocks.legend(
        fig, [blocks.key(style.model_name(m), look, marker="") for m, look in looks.items()]
    )


def binned_correctness(table: pd.DataFrame) -> Figure:
    """Figure 5: share of right answers against each predictor, a row a relation. `table` of
    `wording.regression.binned_correctness`. Each shaded row reaches from 0 (below) to 1; a point's
    area grows with n, and a line joins bins of at least FEW questions."""
    looks = style.looks(table["model"])
    relations = sorted(table["relation"].unique())
    y = table["relation"].map(relations.index) + 0.4 - 0.8 * table["correct"]
    table = table.assign(
        y=y,
        predictor=table["predictor"].str.lower().replace(PREDICTORS),
    )
    height = 0.85 + 0.4 * len(relations)
    labels = ("", "relation; within a row, share of right answers")
    fig, panels = blocks.panels(
        table,
        "predictor",
        height=height,
        labels=labels,
        sharex=False,
    )
    for axis, part in panels:
        axis.set(title="", xlabel=part["predictor"].iloc[0])
        for row in range(len(relations)):
            axis.axhspan(
                row - 0.4,
                row + 0.4,
                color="0.955",
                lw=0,
                zorder=0,
            )
        for model, look in looks.items():
            of = part[part["model"] == model]
            axis.scatter(
                of["midpoint"],
                of["y"],
                s=2.5 * of["n"],
                alpha=0.5,
                color=look.colour,
                marker=look.marker,
                lw=0,
            )
            for _, line in of[of["n"] >= FEW].groupby("relation"):
                axis.plot(
                    line["midpoint"],
                    line["y"],
                    color=look.colour,
                    lw=1,
                    ls=look.line,
                )
    for row in range(len(relations)):
        blocks.beside(panels[-1][0], row - 0.31, "1")
        blocks.beside(panels[-1][0], row + 0.31, "0")
    blocks.name_rows(
        [axis for axis, _ in panels],
        [style.name(relation) for relation in relations],
    )
    return blocks.legend(fig, blocks.keys(looks))


def ladder(table: pd.DataFrame, reference: str = RELATION) -> Figure:
    """How much better each predictor is than the `reference` (dashed), a panel a measure. `table`
    of `wording.prediction.judged`."""
    shown = table[(table["predictor"] != reference) & table["measure"].isin(MEASURES)]
    shown = as_mean(shown.replace({"measure": MEASURES}), "difference")
    return blocks.forest(
        shown,
        "predictor",
        at=0,
        sharex=False,
        panel="measure",
        what="questions",
        xlabel=f"minus {reference}",
    )[0]
