import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import attribution as metric
from factrobust.metrics.attribution import decisions, error_rates
from factrobust.plots import context, style
from factrobust.plots.blocks import LINE_LOOKS as LOOKS


def cases(models, n=60):
    """n answers a model, a third from memory; P4 tells the source well, P0 does not."""
    rng = np.random.default_rng(0)
    tables = []
    for model in models:
        memory = np.arange(n) % 3 == 0
        table = pd.DataFrame({"model": model, "question_id": [f"q{i}" for i in range(n)]})
        table["category"], table["base_id"] = "person", "person-01"
        table["source"] = np.where(memory, "parametric", "contextual")
        table["p4"] = np.exp(rng.gamma(2, 0.3, n) + memory)
        table["p0"] = np.exp(rng.gamma(2, 0.3, n))
        tables.append(table)
    return metric.cases(pd.concat(tables, ignore_index=True))


def curves(table, scores=("minus_log_p4", "log_p0")):
    return pd.concat([metric.roc_curve(table, score) for score in scores], ignore_index=True)


def labels(axis):
    return [text.get_text() for text in axis.get_yticklabels()]


def points(axis, look):
    (line,) = [
        line
        for line in axis.lines
        if line.get_color() == look.colour
        and line.get_marker() == look.marker
        and len(line.get_xdata())
    ]
    return line


def test_all_scores_and_measures_have_labels():
    assert set(context.LABELS) == set(metric.SCORES)
    measured = set(error_rates(decisions(cases(["m"])), n_boot=10)["measure"])
    assert measured - set(context.MEASURES) == {"baseline", "says_context"}


def test_roc(check, models):
    table = cases(models)
    areas = metric.auc_table(table, n_boot=50)
    fig = check(context.roc(curves(table).sample(frac=1, random_state=0), areas), axes=len(models))
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert sorted(names) == ["log P0", "−log P4"]
    for axis, model in zip(fig.axes, style.looks(models), strict=True):
        assert axis.lines[0].get_xydata().tolist() == [[0, 0], [1, 1]]
        for name, look, text in zip(names, LOOKS, axis.get_legend().get_texts(), strict=False):
            score = {"log P0": "log_p0", "−log P4": "minus_log_p4"}[name]
            curve = metric.roc_curve(table[table["model"] == model], score)
            (line,) = [line for line in axis.lines if line.get_color() == look.colour]
            assert line.get_xydata().tolist() == curve[["fpr", "tpr"]].values.tolist()
            own = areas[(areas["model"] == model) & (areas["score"] == score)].iloc[0]
            assert text.get_text() == f"{own['auc']:.2f} ({own['low']:.2f}–{own['high']:.2f})"
        assert axis.get_title() == f"{style.model_name(model)}\nn = 60 answers"
    assert fig.axes[0].get_ylabel() == "context recognised (tpr)"


def test_roc_without_areas(check):
    axis = check(context.roc(curves(cases(["m"]))), axes=1).axes[0]
    assert axis.get_legend() is None
    assert axis.get_title() == "m"


def test_roc_with_areas_that_are_missing(check):
    table = cases(["m"])
    areas = metric.auc_table(table, ["log_p0"], n_boot=50).assign(auc=np.nan)
    axis = check(context.roc(curves(table), areas), axes=1).axes[0]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["–", "–"]


def test_roc_of_too_many_scores_or_groups_is_refused():
    table = curves(cases(["m"]), ["log_p0"])
    with pytest.raises(ValueError, match="6 scores are too many to tell apart: give at most 5"):
        context.roc(pd.concat([table.assign(score=name) for name in "abcdef"]))
    with pytest.raises(ValueError, match="several rows for model m, score log_p0"):
        context.roc(pd.concat([table, table]))


def test_auc(check, models):
    table = metric.auc_table(cases(models), n_boot=50)
    fig = check(context.auc(table.sample(frac=1, random_state=0)), axes=1)
    axis = fig.axes[0]
    assert labels(axis) == ["−log P4", "log P0"]
    for model, look in style.looks(models).items():
        own = table[table["model"] == model].set_index("score")["auc"]
        lines = [x for x in axis.lines if x.get_color() == look.colour and len(x.get_xdata())]
        filled, hollow = lines  # P0 costs a second query
        assert list(filled.get_xdata()) == [own["minus_log_p4"]]
        assert list(hollow.get_xdata()) == [own["log_p0"]]
        assert (filled.get_markerfacecolor(), hollow.get_markerfacecolor()) == (
            look.colour,
            "white",
        )
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names[0] == f"{style.model_name(next(iter(style.looks(models))))} (n = 60)"
    assert names[-1] == "needs a query without context"
    assert axis.get_xlabel() == "AUC"


def test_auc_by_context(check, models):
    table = cases(models)
    kind = np.where(table["question_id"].str[1:].astype(int) < 20, "false", "irrelevant")
    table = metric.auc_table(
        table.assign(context=kind), ["minus_log_p4"], ["model", "context"], n_boot=50
    )
    fig = check(context.auc(table), axes=2)
    assert [axis.get_title() for axis in fig.axes] == ["false context", "irrelevant context"]
    for axis, name in zip(fig.axes, ["false", "irrelevant"], strict=True):
        for model, look in style.looks(models).items():
            own = table[(table["model"] == model) & (table["context"] == name)]
            assert list(points(axis, look).get_xdata()) == own["auc"].tolist()
    assert fig.legends[0].get_texts()[0].get_text().endswith("(n = 20–40)")
    with pytest.raises(ValueError, match="several rows for model gemma-3-270m, score minus_log_p4"):
        context.auc(table.drop(columns="context"))


def test_auc_of_a_score_of_ones_own(check):
    table = cases(["m"]).assign(attention_to_it=np.linspace(0, 1, 60))
    table = metric.auc_table(table, ["attention_to_it", "minus_log_p4"], n_boot=50)
    fig = check(context.auc(table), axes=1)
    assert sorted(labels(fig.axes[0])) == ["attention to it", "−log P4"]
    assert len(fig.legends[0].get_texts()) == 1


def test_errors(check, models):
    table = error_rates(decisions(cases(models)), n_boot=50)
    fig = check(context.errors(table.sample(frac=1, random_state=0)), axes=1)
    axis = fig.axes[0]
    shown = list(context.MEASURES)
    assert [label.split(" (")[0] for label in labels(axis)] == [
        "fpr",
        "fnr",
        "false discovery",
        "accuracy",
        "balanced accuracy",
    ]
    assert labels(axis)[0] == "fpr (n = 20)\nmemory taken for context"
    for model, look in style.looks(models).items():
        own = table[table["model"] == model].set_index("measure")["mean"]
        line = points(axis, look)
        assert {shown[round(y)]: x for x, y in line.get_xydata()} == own[shown].to_dict()
        accuracy = [y for y in line.get_ydata() if round(y) == shown.index("accuracy")]
        (mark,) = [x for x in axis.lines if x.get_marker() == "|" and x.get_color() == look.colour]
        assert mark.get_xydata().tolist() == [[own["baseline"], *accuracy]]
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names[-1] == "accuracy of the baseline"


def test_errors_of_two_scores(check, models):
    table = cases(models)
    decided = pd.concat([decisions(table, score) for score in ("minus_log_p4", "log_p0")])
    rates = error_rates(decided, ["model", "score"], n_boot=50)
    rates = rates[rates["measure"] != "baseline"]
    fig = check(context.errors(rates), axes=2)
    assert [axis.get_title() for axis in fig.axes] == ["−log P4", "log P0"]
    look = next(iter(style.looks(models).values()))
    for axis, score in zip(fig.axes, ("minus_log_p4", "log_p0"), strict=True):
        own = rates[(rates["model"] == next(iter(style.looks(models)))) & (rates["score"] == score)]
        fpr = own.set_index("measure")["mean"]["fpr"]
        assert {round(y): x for x, y in points(axis, look).get_xydata()}[0] == fpr
    assert len(fig.legends[0].get_texts()) == len(models)
    with pytest.raises(ValueError, match="several rows for model gemma-3-270m, measure fpr"):
        context.errors(rates.drop(columns="score"))


def test_errors_by_context(check):
    table = error_rates(decisions(cases(["m"])), n_boot=50)
    both = pd.concat([table.assign(context="false"), table.assign(context="irrelevant", mean=0.5)])
    fig = check(context.errors(both), axes=2)
    assert [axis.get_title() for axis in fig.axes] == ["false context", "irrelevant context"]
    (look,) = style.looks(["m"]).values()
    own = table.set_index("measure").loc[list(context.MEASURES), "mean"]
    assert points(fig.axes[0], look).get_xdata().tolist() == own.tolist()
    assert set(points(fig.axes[1], look).get_xdata()) == {0.5}
