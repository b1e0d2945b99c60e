from itertools import product

import numpy as np
import pandas as pd
import pytest

from factrobust.context import plots
from factrobust.plots import style

SHARES = {"parametric": 0.25, "contextual": 0.6, "other": 0.1, "none": 0.05}


def sources(models, **keys):
    """Shares of all sources for each model and key; those of the last model without empty ones."""
    cells = product(models, *keys.values(), SHARES)
    table = pd.DataFrame(cells, columns=["model", *keys, "source"])
    share = table["source"].map(SHARES)
    return table.assign(share=share, low=share - 0.05, high=share + 0.1, n=40)


def test_source_shares_are_stacked_with_the_outer_intervals(check, models, rows, entries):
    fig = check(plots.source_shares(sources(models)), axes=1)
    axis = fig.axes[0]
    names = [f"{style.model_name(m)} (n = 40)" for m in models]
    assert rows(axis) == names
    assert entries(fig) == ["parametric", "other", "none", "contextual"]
    first = [bar for bar in axis.patches if bar.get_y() < 0]
    assert [bar.get_x() for bar in first] == pytest.approx([0, 0.25, 0.35, 0.4])
    assert [text.get_text() for text in axis.texts if text.get_text()][:1] == ["25%"]
    memory, read = (part.get_segments()[0] for part in axis.collections)
    assert memory[:, 0] == pytest.approx([0.2, 0.35])  # read from the left
    assert read[:, 0] == pytest.approx([0.3, 0.45])  # 1 - 0.7 and 1 - 0.55, from the right
    assert memory[0, 1] < 0 < read[0, 1]


def test_factor_effects(check, models, intervals, shows, rows):
    table = intervals(model=models, factor=list(plots.FACTORS))
    form = {"rows": plots.FACTORS, "at": 0}
    axis = check(plots.by_row(table, "factor", "change", **form), axes=1).axes[0]
    assert rows(axis) == list(plots.FACTORS.values())
    shows(axis, table, "mean")


def test_causes_and_what_is_expected(check, models, intervals, shows, rows, entries):
    cells = product(models, ["true", "missing"], plots.CAUSES)
    table = pd.DataFrame(cells, columns=["model", "context", "cause"]).assign(share=0.2, n=40)
    fig = check(plots.causes(table), axes=len(models))
    assert entries(fig) == list(plots.CAUSES)
    assert rows(fig.axes[0]) == ["true context (n = 40)", "missing context (n = 40)"]
    held = intervals(model=models, context=["true", "missing"]).assign(expected=0.5)
    fig = check(plots.expected(held), axes=len(models))
    assert entries(fig) == ["seen", "expected"]


def test_followed_by_memory_has_points_with_intervals(check, models, intervals, shows, entries):
    bins = intervals(model=models, measure=["log_p0", "gap"], x=[0.5, 1.5])
    fig = check(plots.followed_by_memory(bins), axes=2)
    assert [axis.get_xlabel().split("\n")[0] for axis in fig.axes] == [
        "weakness of the memory", "gap: how much likelier the right answer",
    ]  # fmt: skip
    assert entries(fig) == [style.model_name(model) for model in style.looks(models)]
    look = style.looks(models)["gemma-3-270m"]
    for axis, measure in zip(fig.axes, ["log_p0", "gap"], strict=True):
        own = bins[(bins["measure"] == measure) & (bins["model"] == "gemma-3-270m")]
        drawn = [x.get_xydata().tolist() for x in axis.lines if x.get_color() == look.colour]
        assert own[["x", "mean"]].to_numpy().tolist() in drawn


def test_right_by_context(check, models, intervals, points, shows, rows):
    table = intervals(model=models, context=["false", "none"], facts=["known", "all"])
    fig = check(plots.right_by_context(table), axes=2)
    assert [axis.get_title().split("\n")[0] for axis in fig.axes] == [
        "all facts", "right without context",
    ]  # fmt: skip
    assert rows(fig.axes[0]) == ["no context", "false context"]
    for axis, facts in zip(fig.axes, ["all", "known"], strict=True):
        shows(axis, table[table["facts"] == facts], "mean")
        for look in style.looks(models).values():
            false, none = points(axis, look.colour)[:, 1]
            assert none < false  # above it


def test_worked_example_shows_bits(check, points, rows):
    bits = {"counterfactual": [0, 1, 2], "parametric": [2, 1]}  # with context; without, twice these
    cells = [
        (answer, within, i + 1, f" t{i}", 2.0 ** -(b if within else 2 * b))
        for answer, own in bits.items() for within in (True, False) for i, b in enumerate(own)
    ]  # fmt: skip
    columns = ["answer", "context", "position", "token", "probability"]
    tokens = pd.DataFrame(cells, columns=columns)
    fig = check(plots.worked_example(tokens.sample(frac=1, random_state=0)), axes=1)
    (axis,) = fig.axes
    names = ["parametric: ␣t0", "␣t1", "counterfactual: ␣t0", "␣t1", "␣t2"]
    assert rows(axis) == names
    looks = style.series([text.get_text() for text in fig.legends[0].get_texts()])
    for prompt, times in (("without context", 2), ("with the counterfactual", 1)):
        drawn = sorted(points(axis, looks[prompt].colour).tolist(), key=lambda point: point[1])
        assert [x for x, _ in drawn] == pytest.approx([times * b for b in (2, 1, 0, 1, 2)])


def test_a_number_by_category_where_some_have_no_interval(check, models, intervals, shows, rows):
    table = intervals(model=models, category=["painting", "historical_event", "P4 ≤ P3"])
    table.loc[table["category"] == "painting", ["low", "high"]] = np.nan  # as a paper prints it
    axis = check(plots.by_row(table, "category", "share", shares="x"), axes=1).axes[0]
    assert rows(axis) == ["painting", "historical event", "P4 ≤ P3"]
    shows(axis, table, "mean")
