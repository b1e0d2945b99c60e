import numpy as np
import pandas as pd
import pytest

from factrobust.plots import context, style
from factrobust.plots.context import SOURCE_LOOKS

CATEGORIES = ["person", "historical_event"]


def answers(models):
    """Ten answers a model, category and source; the empty ones have no value."""
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product(
        [models, CATEGORIES, ["contextual", "parametric", "empty"], range(10)],
        names=["model", "category", "source", "i"],
    )
    table = index.to_frame(index=False).assign(value=np.exp(rng.gamma(2, 1, len(index))))
    return table.assign(value=table["value"].mask(table["source"] == "empty"))


def tokens(contexts=(True, False)):
    """Two tokens of p, three of q; with context 2, 1 bits, and 0, 1, 2 bits; without twice these."""
    bits = {"parametric": [2, 1], "counterfactual": [0, 1, 2]}
    return pd.DataFrame(
        [
            (answer, context, i + 1, f" t{i}", 2.0 ** -(b if context else 2 * b))
            for answer, each in bits.items()
            for context in contexts
            for i, b in enumerate(each)
        ],
        columns=["answer", "context", "position", "token", "probability"],
    )


def labels(axis):
    return [text.get_text() for text in axis.get_yticklabels()]


def test_worked_example(check):
    result = {"p0": 8.0, "p1": 4.0, "p2": 2**1.5, "p3": 2.0}
    fig = check(context.worked_example(tokens().sample(frac=1, random_state=0), result), axes=2)
    for axis, title, bits in zip(
        fig.axes,
        (
            "parametric answer\nP0 = 8 without, P2 = 2.828 with",
            "counterfactual answer\nP1 = 4 without, P3 = 2 with",
        ),
        ([2, 1], [0, 1, 2]),
        strict=True,
    ):
        assert axis.get_title() == title
        without, within = axis.containers
        assert [bar.get_width() for bar in within] == pytest.approx(bits)
        assert [bar.get_width() for bar in without] == pytest.approx([2 * b for b in bits])
        # without context above, with it below, within the row of the token
        for k, (upper, lower) in enumerate(zip(without, within, strict=True)):
            assert upper.get_y() + upper.get_height() == pytest.approx(k)
            assert lower.get_y() == pytest.approx(k)
        assert without[0].get_facecolor() == (1, 1, 1, 1)
        written = [text.get_text() for text in axis.texts]
        assert written == [f"{2.0**-b:.2g}" for b in [2 * b for b in bits] + bits]
        assert labels(axis) == ["␣t0", "␣t1", "␣t2"][: len(bits)]
    assert fig.axes[0].get_xlim() == fig.axes[1].get_xlim()
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names == ["without context", "with the counterfactual"]


def test_worked_example_with_context_only(check):
    fig = check(context.worked_example(tokens([True])), axes=2)
    assert [len(axis.containers) for axis in fig.axes] == [1, 1]
    assert fig.axes[0].get_title() == "parametric answer"
    bar = fig.axes[0].containers[0][0]
    assert bar.get_y() + bar.get_height() / 2 == pytest.approx(0)


def test_worked_example_takes_a_row_of_results(check):
    row = pd.Series({"model": "m", "p0": 1.0, "p1": 1.5, "p2": 2.0, "p3": 1.0})
    fig = check(context.worked_example(tokens(), row), axes=2)
    assert fig.axes[1].get_title().endswith("P1 = 1.5 without, P3 = 1 with")


def test_tokens_that_cannot_be_drawn_are_refused():
    with pytest.raises(ValueError, match="probabilities above 0 and up to 1"):
        context.worked_example(tokens().assign(probability=0.0))
    with pytest.raises(ValueError, match="several rows for answer parametric"):
        context.worked_example(pd.concat([tokens()] * 2))
    with pytest.raises(ValueError, match="draws no answer 'contextual'"):
        context.worked_example(tokens().replace("counterfactual", "contextual"))


def test_perplexity_distributions(check, models):
    table = answers(models)
    fig = check(context.perplexity_distributions(table), axes=len(models))
    for axis, model in zip(fig.axes, style.looks(models), strict=True):
        assert axis.get_title() == f"{style.model_name(model)}\nn = 40, 20 undefined"
        for line, source in zip(axis.lines, ("parametric", "contextual"), strict=True):
            own = table[(table["model"] == model) & (table["source"] == source)]["value"]
            assert list(line.get_xdata()) == sorted([own.min(), *own])
            assert line.get_ydata() == pytest.approx(np.arange(21) / 20)
            assert line.get_color() == SOURCE_LOOKS[source].colour
            assert line.get_label() == f"{source} (n = 20)"
        assert axis.get_xscale() == "log"
    assert fig.get_supxlabel() == "perplexity of the answer (P4), log scale"


def test_values_of_another_column(check):
    table = answers(["m"])
    table["value"] = np.log(table["value"])
    table.loc[0, "value"] = 0.0
    fig = check(context.perplexity_distributions(table, "log P4", log=False), axes=1)
    assert fig.axes[0].get_xscale() == "linear"
    assert fig.get_supxlabel() == "log P4"
    with pytest.raises(ValueError, match="The value 0 has no place on a logarithmic axis"):
        context.perplexity_distributions(table)


def test_values_that_hardly_differ_have_a_linear_axis(check):
    table = answers(["m"])
    table["value"] = 1 + table["value"] / table["value"].max()
    fig = check(context.perplexity_distributions(table), axes=1)
    assert fig.axes[0].get_xscale() == "linear"
    assert fig.get_supxlabel() == "perplexity of the answer (P4)"


def test_perplexity_by_category(check, models):
    table = answers(models)
    fig = check(context.perplexity_by_category(table), axes=len(models))
    assert labels(fig.axes[0]) == ["person", "historical event"]
    for axis, model in zip(fig.axes, style.looks(models), strict=True):
        own = table[(table["model"] == model) & (table["source"] != "empty")]
        medians = [
            (np.mean(line.get_ydata()), line.get_xdata()[0])
            for line in axis.lines
            if line.get_linewidth() == 1.6
        ]
        expected = [
            own[(own["category"] == c) & (own["source"] == s)]["value"].median()
            for c in CATEGORIES
            for s in ("parametric", "contextual")
        ]
        places = [-0.2, 0.2, 0.8, 1.2]  # memory above, each category within its row
        assert sorted(medians) == [pytest.approx(x) for x in zip(places, expected, strict=True)]
        assert [text.get_text() for text in axis.texts] == ["10"] * 4
        assert axis.get_title() == f"{style.model_name(model)}\nn = 40, 20 undefined"
    low, high = fig.axes[0].get_xlim()
    assert low < min(axis.dataLim.x0 for axis in fig.axes)
    assert high > max(axis.dataLim.x1 for axis in fig.axes)


def test_few_answers_are_points(check):
    table = answers(["m"])
    few = (table["source"] == "parametric") & (table["category"] == "person") & (table["i"] >= 4)
    axis = check(context.perplexity_by_category(table[~few]), axes=1).axes[0]
    (points,) = [line for line in axis.lines if line.get_marker() == "o"]
    own = table[(table["source"] == "parametric") & (table["category"] == "person")]
    assert points.get_xdata().tolist() == own["value"].head(4).tolist()
    assert points.get_ydata() == pytest.approx([-0.2] * 4)
    assert points.get_markerfacecolor() == SOURCE_LOOKS["parametric"].colour
    assert len([line for line in axis.lines if line.get_linewidth() == 1.6]) == 3  # medians
    assert sorted(text.get_text() for text in axis.texts) == ["10", "10", "10", "4"]


def test_a_short_log_axis_has_ticks(check):
    table = answers(["m"])
    table["value"] = np.geomspace(1, 4.5, len(table))
    fig = check(context.perplexity_distributions(table, groups="preference"), axes=1)
    axis = fig.axes[0]
    assert axis.get_xscale() == "log"
    ticks = [1, 1.2, 1.5, 2, 3, 4]
    assert axis.get_xticks() == pytest.approx(ticks)
    assert [text.get_text() for text in axis.get_xticklabels()] == [f"{tick:g}" for tick in ticks]
    assert axis.get_legend().get_title().get_text() == "preference"


def test_a_model_without_values_has_an_empty_panel(check):
    table = answers(["a", "b"])
    table.loc[table["model"] == "b", "value"] = np.nan
    fig = check(context.perplexity_by_category(table), axes=2)
    assert fig.axes[1].get_title() == "b\nn = 0, 60 undefined"
    check(context.perplexity_distributions(table), axes=2)
    with pytest.raises(ValueError, match="No answer has a source and a finite value"):
        context.perplexity_distributions(table[table["model"] == "b"])
