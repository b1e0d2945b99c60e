import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from factrobust.plots import blocks, style
from factrobust.tables import TooFewError

LOOKS = style.looks(["a", "b"])


@pytest.fixture
def axis():
    fig, axis = plt.subplots()
    yield axis
    plt.close(fig)


def table(**columns):
    return pd.DataFrame({"mean": 0.5, "low": 0.4, "high": 0.6, "n": 12} | columns)


def panels(rows, by, **options):
    return blocks.panels(rows, by, height=2, labels=("x", "y"), **options)


def test_what_a_table_lacks_or_has_twice_is_named():
    twice = table(model=["a", "b", "b"], precision="day", prompt_format=["chat", "chat", "prefix"])
    blocks.check(twice, "model", "precision", "prompt_format")
    with pytest.raises(ValueError, match="several rows for model b, precision day: keep one"):
        blocks.check(twice, "model", "precision")
    with pytest.raises(TooFewError, match="No case is left"):
        blocks.check(table(model=[]), "model")


def test_panels_stand_in_order_and_count_their_facts(check):
    facts = table(model="m", precision=["global", "day", "year"], n=[1, 2, 3])
    fig, parts = panels(facts, "precision", what="facts")
    assert [axis.get_title() for axis in check(fig, axes=3).axes] == [
        "year\nn = 3 facts", "day\nn = 2 facts", "global\nn = 1 facts",
    ]  # fmt: skip
    assert [list(own["n"]) for _, own in parts] == [[3], [2], [1]]
    assert [axis.get_ylabel() for axis in fig.axes] == ["y", "", ""]
    assert fig.get_figwidth() == style.DOUBLE
    assert panels(facts[:1], "precision")[0].get_figwidth() == style.SINGLE


def test_models_stand_three_in_a_row(check):
    fig, parts = panels(table(model=list("dabce")), "model", what="facts")
    assert [own["model"].iloc[0] for _, own in parts] == list("abcde")
    assert [axis.get_title() for axis in fig.axes] == [f"{m}\nn = 12 facts" for m in "abcde"]
    assert [axis.get_ylabel() for axis in fig.axes] == ["y", "", "", "y", ""]
    assert check(fig, axes=5).get_figheight() == 4
    four, _ = panels(table(model=list("dabc")), "model", what="facts")
    assert [axis.get_ylabel() for axis in check(four, axes=4).axes] == ["y", "", "y", ""]


def test_curves_have_a_line_a_model_and_their_legend(check, entries):
    rows = table(model=["a", "a", "b", "b"], side=["l", "r"] * 2, t=1, mean=[0.1, 0.2, 0.3, 0.4])
    more = [blocks.key("more")]
    fig, parts = blocks.curves(rows, "t", panel="side", labels=("x", "y"), extra=more, at=0.5)
    assert entries(check(fig, axes=2)) == ["a", "b", "more"]
    for (axis, _), means in zip(parts, ([0.1, 0.3], [0.2, 0.4]), strict=True):
        *lines, dashed = axis.lines
        assert [line.get_ydata()[0] for line in lines] == means
        assert [line.get_color() for line in lines] == [k.colour for k in LOOKS.values()]
        assert (*dashed.get_ydata(), dashed.get_linestyle()) == (0.5, 0.5, "--")
    with pytest.raises(ValueError, match="several rows for model a, side l, t 1"):
        blocks.curves(pd.concat([rows, rows]), "t", panel="side", labels=("", ""))


def test_a_line_is_sorted_and_banded():
    rows = table(model="m", x=[2, 1], mean=[0.7, 0.2])
    _, ((axis, _),) = blocks.curves(rows, "x", labels=("", ""))
    (drawn,), look = axis.lines, style.looks(["m"])["m"]
    assert drawn.get_xydata().tolist() == [[1, 0.2], [2, 0.7]]
    assert (drawn.get_color(), drawn.get_marker()) == (look.colour, look.marker)
    box = axis.collections[0].get_paths()[0].get_extents()
    assert (box.x0, box.y0, box.x1, box.y1) == (1, 0.4, 2, 0.6)


def test_few_points_of_a_line_are_marked():
    for n, marker in ((12, "o"), (13, "")):
        rows = table(model=["gemma-3-270m"] * n, x=range(n))
        fig, ((axis, _),) = blocks.curves(rows, "x", labels=("x", "y"))
        assert axis.lines[0].get_marker() == fig.legends[0].get_lines()[0].get_marker() == marker


def test_lines_with_bars_stand_aside_of_each_other():
    rows = table(model="m", what=["s", "o", "o"], x=[3, 3, 13], low=[0.1, None, None])
    _, ((axis, _),) = blocks.curves(rows, "x", by="what", bars=True, labels=("", ""))
    assert [line.get_xdata()[0] for line in axis.lines] == pytest.approx([2.85, 3.15])
    assert [line.get_marker() for line in axis.lines] == ["^", "D"]
    ends = np.array([[2.85, 0.1], [2.85, 0.6]])
    assert axis.collections[0].get_segments()[0] == pytest.approx(ends)


def test_many_lines_with_bars_stay_near_their_x():
    """Eighteen models are together 0.12 of the axis wide, not half of it."""
    names = [f"m{k:02}" for k in range(18)]
    rows = table(model=names * 2, x=[0] * 18 + [100] * 18)
    _, ((axis, _),) = blocks.curves(rows, "x", bars=True, labels=("", ""))
    first = [line.get_xdata()[0] for line in axis.lines]
    assert max(first) == pytest.approx(100 * 0.12 * 17 / 18 / 2)
    assert min(first) == -max(first)


def test_a_forest_of_many_models_is_as_wide_as_its_legend():
    for n, width in ((blocks.MANY, style.SINGLE), (18, style.DOUBLE)):
        models = [f"m{k:02}" for k in range(n)]
        rows = table(model=models * 2, what=["x"] * n + ["y"] * n)
        fig, _ = blocks.forest(rows, "what", xlabel="share")
        assert fig.get_figwidth() == width


def test_points_of_models_stand_below_each_other(axis, points):
    rows = table(model=["a", "b", "a", "b"], what=["x", "x", "y", "y"], mean=[0.1, 0.2, 0.3, 0.4])
    y = rows["what"].map({"y": 0, "x": 1}) + blocks.asides(rows["model"], LOOKS, 0.35)
    blocks.dots(axis, rows, y, LOOKS, upright=False)
    first, second = (points(axis, look.colour) for look in LOOKS.values())
    assert first == pytest.approx(np.array([[0.1, 0.825], [0.3, -0.175]]))
    assert second == pytest.approx(np.array([[0.2, 1.175], [0.4, 0.175]]))


def test_points_may_be_hollow_have_any_index_and_lack_bounds(axis, bars):
    rows = table(model="a", what=["x", "y"], hollow=[True, False], low=[float("nan"), 0.4])
    rows.index = [7, 7]
    looks = style.looks(["a"])
    blocks.dots(axis, rows, rows["what"].map({"x": 0, "y": 1}), looks, upright=False)
    filled, hollow = axis.lines
    assert (hollow.get_mfc(), list(hollow.get_ydata())) == ("white", [0])
    assert (filled.get_mfc(), list(filled.get_ydata())) == (looks["a"].colour, [1])
    assert sorted(bars(axis).tolist()) == [[0.4, 0.6], [0.5, 0.6]]


def test_a_forest_names_its_rows_from_the_top(check, rows, points):
    many = table(model=["a", "a", "b"], what=["x_y", "z", "z"], side=["l", "r", "r"])
    fig, parts = blocks.forest(many, "what", xlabel="share", panel="side")
    assert rows(check(fig, axes=2).axes[0]) == ["x y", "z"]
    assert fig.axes[0].get_ylim() == (1.5, -0.5)
    heights = [points(parts[1][0], look.colour)[:, 1].tolist() for look in LOOKS.values()]
    assert heights == [pytest.approx([0.825]), pytest.approx([1.175])]
    two, named = table(model=["b", "a"]), {"a": "A", "b": "B"}
    fig, ((axis, _),) = blocks.forest(two, "model", named, xlabel="x")
    assert rows(fig.axes[0]) == ["A", "B"]
    heights = [points(axis, look.colour)[:, 1].tolist() for look in LOOKS.values()]
    assert heights == [[0], [1]]  # a row of its own each, in its middle
    looks = {"r": style.Look("red", "o"), "l": style.Look("blue", "s")}  # the legend's order
    fig, ((axis, _),) = blocks.forest(many, "model", xlabel="x", by="side", looks=looks)
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["r", "l"]
    assert points(axis, "red")[:, 1].tolist() == pytest.approx([-0.175, 0.825])  # above, of a and b


def test_rows_stand_by_their_mean_over_models():
    rows = table(model=list("aabb"), relation=["x", "z"] * 2, mean=[0.1, 0.5, 0.8, 0.3])
    assert blocks.by_mean(rows, "relation") == ["x", "z"]  # 0.45 and 0.4
    rows = rows.assign(n=[12, 15, 12, 14])
    assert blocks.with_n(rows, "relation", ["x", "z"]) == ["x (n = 12)", "z (n = 15 / 14)"]


def test_shares_are_stacked_in_order_and_written_where_there_is_room():
    rows = pd.DataFrame({"row": [0, 0, 0, 1], "part": list("abca"), "share": [0.5, 0.1, 0.4, 1]})
    fills = {"c": style.BLUE, "a": "red", "b": "green"}
    form = {"labels": ("", "")}
    _, ((axis, _),) = blocks.stacks(rows, "row", [0, 1], ["0", "1"], "part", fills, **form)
    first = [patch for patch in axis.patches if patch.get_y() < 0.5]
    assert [patch.get_x() for patch in first] == pytest.approx([0, 0.4, 0.9])
    assert [patch.get_width() for patch in first] == pytest.approx([0.4, 0.5, 0.1])
    assert [text.get_text() for text in axis.texts] == ["40%", "", "50%", "100%", "", ""]


def test_a_scatter_counts_what_it_cannot_draw(check):
    rows = pd.DataFrame({"x": [1, 2, None], "y": [0.1, 0.2, 0.3], "fact_id": [*"abc"]})
    rows["model"] = "m"
    fig, ((axis, drawn),) = blocks.scatter(rows, "x", "y", height=2, labels=("x", "y"))
    found = check(fig, axes=1).axes[0].collections[0].get_offsets()
    assert found.tolist() == [[1, 0.1], [2, 0.2]]
    assert axis.get_title() == "m\nn = 2, 1 undefined"
    assert len(drawn) == 2


def test_values_beyond_the_top_have_a_band(axis):
    blocks.beyond(axis, "y", 2.0)
    ticks = [text.get_text() for text in axis.get_yticklabels()]
    assert ticks == ["0", "0.5", "1", "1.5", "2", "> 2"]
    assert axis.get_yticks()[-1] == pytest.approx(2.3)
    assert axis.get_ylim()[0] < 0 < 2.3 < axis.get_ylim()[1]
    assert 2 < axis.lines[0].get_ydata()[0] < 2.3


@pytest.mark.parametrize(("values", "ticks"), [
    ([1, 4.5, np.inf], ["1", "2", "3", "4"]),
    ([0.3, 40], ["0.5", "1", "2", "5", "10", "20"]),
    ([450e6, 2e12], ["1B", "10B", "100B", "1T"]),
])  # fmt: skip
def test_a_log_axis_has_few_round_ticks(axis, values, ticks):
    blocks.log_axis(axis, values)
    axis.figure.draw_without_rendering()
    assert axis.get_xscale() == "log"
    assert axis.get_xlim() == pytest.approx((values[0] / 1.1, values[1] * 1.1))
    low, high = axis.get_xlim()
    shown = zip(axis.get_xticks(), axis.get_xticklabels(), strict=True)
    assert [text.get_text() for tick, text in shown if low <= tick <= high] == ticks
    assert len(axis.get_xticks(minor=True)) == 0


def test_a_model_has_its_n_in_the_legend():
    own, other = blocks.keys(LOOKS, table(model=["a", "b", "b"], n=[3, 4, 5]), ls="")
    assert (own.get_label(), other.get_label()) == ("a (n = 3)", "b (n = 4–5)")
    assert (own.get_color(), own.get_linestyle()) == (LOOKS["a"].colour, "None")


def test_a_long_legend_does_not_eat_the_panel():
    def with_legend(entries):
        fig, _ = style.grid(1, 1, style.SINGLE, 2)
        return blocks.legend(fig, [blocks.key(f"a model of long name {k}") for k in range(entries)])

    short, long = (with_legend(entries) for entries in (2, 20))
    assert short.get_figheight() == 2
    assert long.get_figheight() > 4
    for fig in (short, long):
        fig.canvas.draw()
        assert fig.axes[0].get_window_extent().height / fig.dpi > 1.1
