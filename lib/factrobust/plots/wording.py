"""Figures of part 3, robustness to wording (paper 3): right and consistent by relation, what predicts
that an answer is right, and how well.

Tables and errors as `plots.blocks` says.
"""

from __future__ import annotations

from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from factrobust.metrics.regression import CATEGORY
from factrobust.plots import blocks, style

PREDICTORS = {  # names in the tables, in small letters -> names in the figures
    **dict.fromkeys(("log_popularity", "spop", "log_spop"), "popularity, log(SPop)"),
    "scons": "consistency, SCons",
    "cert": "certainty, Cert",
}


def similarities(table: pd.DataFrame) -> Figure:
    """Cosine of each pair of answers to one question: SCons, or Cert, is the mean of all squares.

    `table`: model, first, second (numbers of answers), answer_1, answer_2, cosine, a row a pair. A
    panel a model, one below the other, with the answers at the left.
    """
    blocks.check(table, "model", "first", "second")
    models = list(style.looks(table["model"]))
    n = 1 + table["second"].nunique()
    fig, axes = style.grid(len(models), 1, style.DOUBLE, (0.6 + 0.2 * n) * len(models))
    for axis, model in zip(axes.flat, models, strict=True):
        own = table[table["model"] == model]
        texts = dict(zip(own["first"], own["answer_1"], strict=True))
        texts |= dict(zip(own["second"], own["answer_2"], strict=True))
        cosines = own.pivot(index="first", columns="second", values="cosine").round(2) + 0.0
        cosines = cosines.reindex(index=list(texts), columns=list(texts))
        blocks.cells(axis, cosines, "Blues", 1)
        for (row, column), cosine in np.ndenumerate(cosines):
            if not np.isnan(cosine):
                ink = "white" if cosine > 0.6 else "black"
                centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6}
                axis.text(column, row, f"{cosine:.2f}", color=ink, **centred)
        said = (shorten(text, 50, placeholder=" …") or "(empty)" for text in texts.values())
        names = [f"{style.printable(text)}  {k}" for k, text in zip(texts, said, strict=True)]
        axis.set_yticks(range(len(texts)), names, fontsize=7)
        axis.set_xticks(range(len(texts)), list(texts))
        mean = f"mean of {len(own)} pairs: {own['cosine'].mean():.2f}"
        axis.set(title=f"{style.model_name(model)}, {mean}", xlabel="number of the answer")
    return fig


def quality(table: pd.DataFrame) -> Figure:
    """Cosine of the original question to its paraphrases and to questions that are none.

    `table`: intervals by relation and pair, of `datasets.wordings.quality_pairs`. Relations stand by
    the mean of their paraphrases, highest first.
    """
    rows = blocks.by_mean(table[table["pair"] == "paraphrase"], "relation")
    looks = blocks.looks_of(table["pair"])
    labels = ("cosine to the original question", "")
    fig, [(axis, _)] = blocks.panels(table, height=1 + 0.17 * len(rows), labels=labels)
    for pair, look in looks.items():  # on one line
        blocks.points(axis, table[table["pair"] == pair], "relation", rows, {pair: look}, "pair")
    blocks.name_rows([axis], [*map(style.name, rows)])
    return blocks.legend(fig, blocks.keys(looks, ls=""))


def by_wording(table: pd.DataFrame) -> Figure:
    """Share of right answers to each wording, a row a relation and a panel a model.

    `table`: model, relation, variant (0: the original, a bar; the paraphrases are points), mean, n.
    Relations stand by the mean of all.
    """
    blocks.check(table, "model", "relation", "variant")
    relations = blocks.by_mean(table, "relation")
    fig, panels = blocks.panels(
        table, "model", height=0.9 + 0.19 * len(relations), shares="x", what="facts a relation",
        labels=("share of right answers", ""),
    )  # fmt: skip
    kinds = {"original wording": ("|", 11, 1), "paraphrase": ("o", 4, 0.55)}
    for (axis, own), look in zip(panels, style.looks(table["model"]).values(), strict=True):
        for name, (marker, size, alpha) in kinds.items():
            shown = own[(own["variant"] == 0) == (name == "original wording")]
            at = shown["relation"].map(relations.index)
            at = at + style.jitter(len(shown), 0.5 if marker == "o" else 0)
            shape: dict[str, Any] = {"marker": marker, "ms": size, "mew": 1.8 if size > 9 else 0}
            axis.plot(shown["mean"], at, ls="", color=look.colour, alpha=alpha, **shape)
    blocks.name_rows([axis for axis, _ in panels], [*map(style.name, relations)])
    marks = [
        blocks.key(k, ls="", marker=m, ms=s, mew=1.8 * (s > 9)) for k, (m, s, _) in kinds.items()
    ]
    return blocks.legend(fig, marks)


def variance(table: pd.DataFrame) -> Figure:
    """Shares of the variance of right answers, a bar a relation and a panel a model.

    `table`, of `metrics.wording_effects.variance_shares`: model, relation, source, share; a component
    below 0 counts as 0. Relations stand by the share of wordings over models, "all" on top.
    """
    blocks.check(table, "model", "relation", "source")
    table = table.assign(share=table["share"].clip(lower=0))
    table["n"] = table["n"].mask(table["relation"] == "all").ffill()
    table["share"] /= table.groupby(["model", "relation"])["share"].transform("sum")
    order = table[table["source"] == "wording"].groupby("relation")["share"].mean()
    order["all"] = np.inf
    rows = list(order.sort_values(ascending=False).index)
    fills = {"fact": style.SKY, "wording": style.VERMILION, "interaction": "0.8"}
    fig, panels = blocks.panels(
        table, "model", height=0.9 + 0.19 * len(rows), what="facts a relation",
        labels=("share of the variance", ""),
    )  # fmt: skip
    for axis, own in panels:
        blocks.stack(axis, own, "relation", rows, "source", fills)
    blocks.name_rows([axis for axis, _ in panels], [*map(style.name, rows)])
    return blocks.legend(fig, blocks.patches(fills))


def ranked(table: pd.DataFrame, column: str, value: str, chance: float | None = None) -> Figure:
    """Figures 1 and 2, and the AUC of measures: a value by relation or measure, a row each.

    `table`: intervals by model and the column named `column`; `value` is the label of x, such as
    "correctness". Rows stand by their mean over models, highest first. n stands in the title or,
    where it varies, in the rows; `chance` is dashed.
    """
    varies = table["n"].nunique() > 1
    fig, ((axis, _),) = blocks.forest(
        table, column, blocks.by_mean(table, column), rows_n=varies, xlabel=value, at=chance
    )
    if not varies:
        axis.set_title(f"n = {table['n'].iloc[0]} questions each")
    return fig


def correctness_by_consistency(table: pd.DataFrame) -> Figure:
    """Figure 3: correctness of each relation against its consistency, a panel a model.

    `table`: intervals by model and relation, twice, with the suffixes "_correct" and "_scons".
    """
    blocks.check(table, "model", "relation")
    fig, panels = blocks.panels(
        table.assign(n=table["n_correct"]), "model", height=3.2, what="questions a relation",
        labels=("consistency (SCons)", "correctness"),
    )  # fmt: skip
    for (axis, own), look in zip(panels, style.looks(table["model"]).values(), strict=True):
        x, y = (
            own.filter(like=suffix).rename(columns=lambda name: name.partition("_")[0])
            for suffix in ("_scons", "_correct")
        )
        axis.errorbar(
            x["mean"], y["mean"], style.errors(y), style.errors(x), fmt=look.marker,
            color=look.colour, ecolor=(look.colour, 0.35), elinewidth=0.6,
        )  # fmt: skip
    return fig


def predictor_distributions(table: pd.DataFrame) -> Figure:
    """Figure 4: how a predictor is distributed within each relation, a panel a predictor.

    `table`, a row a question: model, relation, predictor (such as "scons"), value (those that are
    missing are left out). A point is the median, its line runs from quartile to quartile.
    """
    named = table["predictor"].str.lower().replace(PREDICTORS)
    values = table.assign(predictor=named).groupby(["model", "relation", "predictor"])["value"]
    quartiles = (
        values.quantile(np.array([0.25, 0.5, 0.75]))
        .unstack()
        .set_axis(["low", "mean", "high"], axis=1)
    )
    return blocks.forest(
        quartiles.assign(n=values.count()).reset_index(), "relation", panel="predictor",
        xlabel="median and quartiles", what="questions a relation", sharex=False,
    )[0]  # fmt: skip


def binned_correctness(table: pd.DataFrame) -> Figure:
    """Figure 5: share of right answers against each predictor, a row a relation.

    `table`, of `metrics.regression.binned_correctness`: model, relation, predictor, midpoint,
    correct, low, high, n. Each shaded row reaches from 0 (below) to 1; points are bins.
    """
    blocks.check(table, "model", "relation", "predictor", "midpoint")
    looks, relations = style.looks(table["model"]), sorted(table["relation"].unique())
    table = table.assign(predictor=table["predictor"].str.lower().replace(PREDICTORS))
    height, labels = (
        0.85 + 0.4 * len(relations),
        ("", "relation; within a row, share of right answers"),
    )
    fig, panels = blocks.panels(table, "predictor", height=height, labels=labels, sharex=False)
    for axis, own in panels:
        axis.set(title="", xlabel=own["predictor"].iloc[0])
        for row, relation in enumerate(relations):
            axis.axhspan(row - 0.4, row + 0.4, color="0.955", lw=0, zorder=0)
            here = own[own["relation"] == relation].rename(columns={"correct": "mean"})
            rises = row + 0.4 - 0.8 * here[["mean", "low", "high"]]
            blocks.lines(axis, here.assign(**rises), "midpoint", looks, bars=True)
    for row in range(len(relations)):
        blocks.beside(panels[-1][0], row - 0.31, "1")
        blocks.beside(panels[-1][0], row + 0.31, "0")
    blocks.name_rows([axis for axis, _ in panels], [style.name(relation) for relation in relations])
    return blocks.legend(fig, blocks.keys(looks))


def coefficients(table: pd.DataFrame) -> Figure:
    """Conditional coefficients of a regression with QCat (tables 10 to 14), a panel a predictor.

    `table`, of `metrics.regression.coefficients`: model, term (such as "QCat[T.sport]:SCons"),
    category, conditional, conditional_low, conditional_high, conditional_problem, n. A row a category,
    with its own intercept and slopes. Hollow ones are "separated" or "collinear": finite by the
    penalty only.
    """
    terms = table["term"].str.replace(CATEGORY, "", regex=True).str.strip(":")
    shown = table.assign(
        predictor=terms.str.lower().replace({"": "intercept", **PREDICTORS}),
        hollow=table["conditional_problem"] != "", mean=table["conditional"],
        low=table["conditional_low"], high=table["conditional_high"],
    )  # fmt: skip
    categories = sorted(shown["category"].unique())
    names = [style.name(category) or "all" for category in categories]
    penalty = blocks.key("finite by the penalty only", ls="", marker="o", mfc="white")
    return blocks.forest(
        shown, "category", categories, names, panel="predictor", at=0, legend_n=True,
        xlabel="coefficient (logits)", extra=[penalty],
    )[0]  # fmt: skip


def predictive_gain(table: pd.DataFrame) -> Figure:
    """Accuracy of each set of predictors against the baseline (tables 5 and 6).

    `table`, of `metrics.prediction.ablation`: model, predictors, categories, accuracy,
    low, high, baseline, gain (percent, written at the right), n_test. A panel each value of
    `categories`, a row a set. Where no regression could be fitted, there is a dash.
    """
    table = table.rename(columns={"accuracy": "mean", "n_test": "n"})
    looks = style.looks(table["model"])
    mark: dict[str, Any] = {"ls": "", "marker": "|", "ms": 8, "mew": 1.5}
    fig, panels = blocks.forest(
        table.assign(categories="categories: " + table["categories"]), "predictors",
        list(dict.fromkeys(table["predictors"])), panel="categories", what="test questions",
        xlabel="accuracy",
        extra=[blocks.key("baseline (gain in percent)", **mark)],
    )  # fmt: skip
    for axis, own in panels:
        for row in own.to_dict("records"):
            colour = looks[row["model"]].colour
            axis.plot(row["baseline"], row["y"], color=colour, **mark)
            gain = "–" if np.isnan(row["gain"]) else f"{row['gain']:+.1f}%".replace("-", "−")
            blocks.beside(axis, row["y"], gain, colour)
    return fig


def calibration(table: pd.DataFrame) -> Figure:
    """Share of right answers against the predicted probability, in bins; a panel a model.

    `table`, of `metrics.prediction.calibration_curve`: model, bin, predicted, observed, low, high,
    n (questions of a bin, written below its point). On the dashed line predictions are calibrated.
    """
    labels = ("predicted probability of a right answer", "share of right answers")
    fig, panels = blocks.curves(
        table.rename(columns={"observed": "mean"}), "predicted", panel="model", bars=True,
        what="questions a bin", shares="xy", labels=labels,
    )  # fmt: skip
    for axis, own in panels:
        axis.plot([0, 1], [0, 1], **style.REFERENCE)
        for x, n in zip(own["predicted"], own["n"], strict=True):
            axis.text(x, -0.1, str(n), ha="center", va="center", fontsize=6.5, color="0.35")
        axis.set_ylim(bottom=-0.15)
    return fig


def risk_coverage(table: pd.DataFrame) -> Figure:
    """Accuracy when only the most certain questions are answered, a line a score, a panel a model.

    `table`, of `metrics.prediction.risk_coverage`: model, score, coverage, accuracy, low, high, n.
    Dashed: the accuracy at coverage 1, of all questions. At most five scores.
    """
    fig, panels = blocks.curves(
        table.rename(columns={"accuracy": "mean"}), "coverage", panel="model", by="score",
        what="questions", labels=("share of questions answered", "share of right answers"),
        shares="xy", extra=[blocks.key("all answered", **style.REFERENCE)],
    )  # fmt: skip
    for axis, own in panels:
        axis.axhline(own.loc[own["coverage"] == 1, "mean"].iloc[0], **style.REFERENCE)
    return fig


def transfer(table: pd.DataFrame) -> Figure:
    """AUC of a regression fitted on one model where it predicts another, or itself, out of fold.

    `table`: intervals of the AUC by fitted_on and predicted. A row each that is predicted; at 0.5
    (dashed) a regression tells nothing.
    """
    label = "AUC (colour: fitted on)"
    fig, ((axis, _),) = blocks.forest(table, "predicted", xlabel=label, by="fitted_on", at=0.5)
    axis.set_title(f"n = {style.count(table['n'])} questions")
    return fig
