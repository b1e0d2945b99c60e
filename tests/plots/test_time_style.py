import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from factrobust.plots import blocks as parts
from factrobust.plots import style


@pytest.fixture
def axis():
    fig, axis = plt.subplots()
    yield axis
    plt.close(fig)


def table(**columns):
    return pd.DataFrame({"mean": 0.5, "low": 0.4, "high": 0.6, "n": 9} | columns)


def test_two_rows_for_the_same_keys_are_two_prompt_formats():
    twice = table(model=["a", "b", "b"], precision="day", prompt_format=["chat", "chat", "prefix"])
    parts.intervals(twice, "model", "precision", "prompt_format")
    with pytest.raises(ValueError, match="several rows for model b, precision day: keep one"):
        parts.intervals(twice, "model", "precision")


def test_a_missing_column_and_an_empty_table_are_named():
    with pytest.raises(KeyError, match="'high'"):
        parts.intervals(table(model=["a"]).drop(columns="high"), "model")
    with pytest.raises(ValueError, match="no rows"):
        parts.intervals(table(model=[]), "model")


def test_an_unknown_value_is_named():
    parts.known(table(side=["after"]), "side", ("before", "after"))
    with pytest.raises(ValueError, match="no side 'within': write one of \\['before', 'after'\\]"):
        parts.known(table(side=["after", "within"]), "side", ("before", "after"))


@style.styled
def panels(rows):
    return parts.precision_panels(rows, style.looks(rows["model"]), 2)[0]


def test_panels_follow_the_precisions():
    rows = table(model="m", precision=["global", "day", "year"], n=[1, 2, 3])
    fig = panels(rows)
    assert [a.get_title() for a in fig.axes] == [
        "year\nn = 3 facts", "day\nn = 2 facts", "global\nn = 1 facts",
    ]  # fmt: skip
    assert fig.get_figwidth() == style.DOUBLE
    assert panels(rows[:1]).get_figwidth() == style.SINGLE


def test_numbers_of_facts_of_many_models_are_a_range():
    rows = table(model=list("abcd"), n=[60, 58, 59, 60])
    assert parts.facts(rows, list("abcd")) == "n = 58–60 facts"
    assert parts.facts(rows[:2], list("ab")) == "n = 60 / 58 facts"


def test_line_is_sorted_and_banded(axis):
    look = style.Look(style.GREEN, "o", "--")
    parts.line(axis, table(x=[2, 1], mean=[0.7, 0.2]), "x", look, lw=3)
    (drawn,) = axis.lines
    assert drawn.get_xydata().tolist() == [[1, 0.2], [2, 0.7]]
    assert (drawn.get_color(), drawn.get_linestyle(), drawn.get_lw()) == (style.GREEN, "--", 3)
    box = axis.collections[0].get_paths()[0].get_extents()
    assert (box.x0, box.y0, box.x1, box.y1) == (1, 0.4, 2, 0.6)


@pytest.mark.parametrize(
    ("values", "top"), [([0.9, 0.2], 1.03), ([0.1, 0.2, np.nan], 0.224), ([0.0], 0.056)]
)
def test_small_shares_get_a_scale_of_their_own(axis, values, top):
    parts.from_zero(axis, values)
    assert axis.get_ylim()[1] == pytest.approx(top)
    assert axis.get_ylim()[0] < 0


@pytest.mark.parametrize(
    ("sizes", "ticks"),
    [
        ([135e6, 268e6], ["100M", "200M", "500M"]),
        ([3e9], ["2B", "5B"]),
        ([0.3, 40], ["0.2", "0.5", "1", "2", "5", "10", "20", "50"]),
        ([450e6, 2e12], ["1B", "10B", "100B", "1T"]),
    ],
)
def test_log_axis_has_round_ticks(axis, sizes, ticks):
    parts.log_axis(axis, pd.Series(sizes), 2)
    assert axis.get_xscale() == "log"
    assert axis.get_xlim() == pytest.approx((min(sizes) / 2, max(sizes) * 2))
    assert [text.get_text() for text in axis.get_xticklabels()] == ticks
    assert len(axis.get_xticks(minor=True)) == 0


def test_short_numbers():
    assert [parts.short(x) for x in (0.5, 20, 1e3, 5e4, 1e6, 2e9, 1e12)] == [
        "0.5", "20", "1K", "50K", "1M", "2B", "1T",
    ]  # fmt: skip


@style.styled
def with_legend(entries):
    fig, _ = style.panels(1, 1, style.SINGLE, 2)
    parts.legend(
        fig, [plt.Line2D([], [], label=f"a model of long name {k}") for k in range(entries)]
    )
    return fig


def test_a_long_legend_does_not_eat_the_panel():
    short, long = with_legend(2), with_legend(20)
    assert short.get_figheight() == 2
    assert long.get_figheight() > 4
    for fig in (short, long):
        fig.canvas.draw()
        assert fig.axes[0].get_window_extent().height / fig.dpi > 1.1
