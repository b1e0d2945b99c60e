"""The blocks of figures: which rows of a table they draw, where, and what they call them."""

import numpy as np
import pandas as pd
import pytest
from frames import frame
from numpy.testing import assert_allclose

from factrobust.plots import blocks, style
from factrobust.tables import TooFewError

LOOKS = style.looks(["a", "b"])
LABELS = ("x", "y")


def table(text):
    """Means of 0.5 of 12 facts, unless the text says otherwise."""
    rows = frame(text)
    usual = {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 12}
    return rows.assign(**{name: usual[name] for name in usual if name not in rows})


def texts(artists):
    return [artist.get_text() for artist in artists]


def heights(axis, colour):
    """Where the points of a colour stand, in y."""
    lines = [line for line in axis.lines if line.get_marker() not in ("None", "", None)]
    return [y for line in lines if line.get_color() == colour for y in line.get_ydata()]


def test_what_a_table_lacks_or_has_twice_is_named():
    twice = table("""
        model  precision  prompt_format
        a      day        chat
        b      day        chat
        b      day        prefix
    """)
    blocks.check(twice, "model", "precision", "prompt_format")
    with pytest.raises(ValueError, match="several rows for model b, precision day: keep one"):
        blocks.check(twice, "model", "precision")
    with pytest.raises(TooFewError, match="No case is left"):
        blocks.check(twice[:0], "model")


def test_panels_stand_in_order_and_count_their_facts():
    facts = table("""
        model  precision  n
        m      global     1
        m      day        2
        m      year       3
    """)
    fig, parts = blocks.panels(facts, "precision", labels=LABELS, what="facts")
    titles = [axis.get_title() for axis in fig.axes]
    assert titles == ["year\nn = 3 facts", "day\nn = 2 facts", "global\nn = 1 facts"]
    assert [[*part["n"]] for _, part in parts] == [[3], [2], [1]]
    assert [axis.get_ylabel() for axis in fig.axes] == ["y", "", ""]
    assert fig.get_figwidth() == style.DOUBLE
    alone, _ = blocks.panels(facts[:1], "precision", labels=LABELS)
    assert alone.get_figwidth() == style.SINGLE


def test_curves_have_a_line_a_model_and_their_legend():
    rows = table("""
        model  side  t  mean
        a      l     1  0.1
        a      r     1  0.2
        b      l     1  0.3
        b      r     1  0.4
    """)
    extra = [blocks.key("more")]
    fig, parts = blocks.curves(rows, "t", panel="side", labels=LABELS, extra=extra, at=0.5)
    assert texts(fig.legends[0].get_texts()) == ["a", "b", "more"]
    means = []
    for axis, _ in parts:
        *lines, dashed = axis.lines
        means.append([line.get_ydata()[0] for line in lines])
        assert [line.get_color() for line in lines] == [look.colour for look in LOOKS.values()]
        assert dashed.get_ydata() == [0.5, 0.5]
    assert means == [[0.1, 0.3], [0.2, 0.4]]
    with pytest.raises(ValueError, match="several rows for model a, side l, t 1"):
        blocks.curves(pd.concat([rows, rows]), "t", panel="side", labels=LABELS)


def test_a_line_is_sorted_and_banded():
    rows = table("""
        model  x  mean
        m      2  0.7
        m      1  0.2
    """)
    _, [(axis, _)] = blocks.curves(rows, "x", labels=LABELS)
    [drawn] = axis.lines
    assert drawn.get_xydata().tolist() == [[1, 0.2], [2, 0.7]]
    assert drawn.get_marker() == style.looks(["m"])["m"].marker
    [band] = axis.collections[0].get_paths()
    assert band.get_extents().get_points().tolist() == [[1, 0.4], [2, 0.6]]


def test_a_forest_names_its_rows_from_the_top():
    many = table("""
        model  what  side
        a      x_y   l
        a      z     r
        b      z     r
    """)
    fig, [_, (right, _)] = blocks.forest(many, "what", xlabel="share", panel="side")
    first = fig.axes[0]
    assert texts(first.get_yticklabels()) == ["x y", "z"]
    assert first.get_ylim() == (1.5, -0.5)
    assert_allclose([heights(right, look.colour) for look in LOOKS.values()], [[0.825], [1.175]])
    # A row of its own each, in its middle.
    named = {"a": "A", "b": "B"}
    _, [(axis, _)] = blocks.forest(many[1:], "model", named, xlabel="x")
    assert texts(axis.get_yticklabels()) == ["A", "B"]
    assert [heights(axis, look.colour) for look in LOOKS.values()] == [[0], [1]]
    # In the order of the looks that are given: red above, of a and b.
    looks = {"r": style.Look("red", "o"), "l": style.Look("blue", "s")}
    fig, [(axis, _)] = blocks.forest(many, "model", xlabel="x", by="side", looks=looks)
    assert texts(fig.legends[0].get_texts()) == ["r", "l"]
    assert_allclose(heights(axis, "red"), [-0.175, 0.825])


def test_eighteen_models_at_one_x_stand_apart_and_all_labels_fit():
    models = [f"model-{k:02}-of-a-long-name" for k in range(18)]
    rows = pd.DataFrame({"model": models, "x": 2, "mean": 0.5, "low": 0.4, "high": 0.6, "n": 12})
    lines, [(axis, _)] = blocks.curves(rows, "x", labels=LABELS, bars=True)
    places = [x for line in axis.lines for x in line.get_xdata()]
    assert_allclose(np.diff(places), blocks.WIDEST / 18)
    assert_allclose(np.mean(places), 2)
    label = "a label of as many words as an axis can hold"
    forest, [(axis, _)] = blocks.forest(rows, "model", xlabel=label)
    assert lines.get_figwidth() == forest.get_figwidth() == style.DOUBLE
    forest.draw_without_rendering()
    shown = axis.xaxis.label.get_window_extent()
    assert 0 <= shown.x0 < shown.x1 <= forest.bbox.width


def test_rows_stand_by_their_mean_over_models():
    rows = table("""
        model  relation  mean  n
        a      x         0.1   12
        a      z         0.5   15
        b      x         0.8   12
        b      z         0.3   14
    """)
    assert blocks.by_mean(rows, "relation") == ["x", "z"]  # 0.45 and 0.4
    assert blocks.with_n(rows, "relation", ["x", "z"]) == ["x (n = 12)", "z (n = 15 / 14)"]


def test_shares_are_stacked_in_order_and_written_where_there_is_room():
    rows = frame("""
        row  part  share
        0    a     0.5
        0    b     0.1
        0    c     0.4
        1    a     1
    """)
    fills = {"c": style.BLUE, "a": "red", "b": "green"}
    _, [(axis, _)] = blocks.stacks(rows, "row", [0, 1], ["0", "1"], "part", fills, labels=LABELS)
    first = [patch for patch in axis.patches if patch.get_y() < 0.5]
    assert_allclose([patch.get_x() for patch in first], [0, 0.4, 0.9])
    assert_allclose([patch.get_width() for patch in first], [0.4, 0.5, 0.1])
    assert texts(axis.texts) == ["40%", "", "50%", "100%", "", ""]


def test_a_scatter_counts_what_it_cannot_draw():
    rows = frame("""
        model  fact_id  x    y
        m      a        1    0.1
        m      b        2    0.2
        m      c        NaN  0.3
    """)
    _, [(axis, drawn)] = blocks.scatter(rows, "x", "y", labels=LABELS)
    assert axis.collections[0].get_offsets().tolist() == [[1, 0.1], [2, 0.2]]
    assert axis.get_title() == "m\nn = 2, 1 undefined"
    assert len(drawn) == 2


def test_a_model_has_its_n_in_the_legend():
    rows = table("""
        model  n
        a      3
        b      4
        b      5
    """)
    entries = blocks.keys(LOOKS, rows, ls="")
    assert [entry.get_label() for entry in entries] == ["a (n = 3)", "b (n = 4–5)"]
    assert entries[0].get_color() == LOOKS["a"].colour
    assert entries[0].get_linestyle() == "None"


def test_names_of_points_stand_in_their_order_apart_and_inside():
    """Three at nearly one place of a panel over two decades, the last at its right edge."""
    _, axes = style.grid(1, 1, 3, 3)
    axis = axes.flat[0]
    axis.set(xscale="log", xlim=(1, 100), ylim=(0, 1))
    x = pd.Series([98.0, 2.0, 97.0, 99.0])
    blocks.name_points(axis, x, pd.Series([0.1] * 4), pd.Series(["c", "a", "b", "d"]))
    assert texts(axis.texts) == ["a", "b", "c", "d"]
    places = [np.log10(name.xyann[0]) for name in axis.texts]
    gap = 2 * blocks.NAME_GAP  # of two decades
    # The last half a gap from the edge, the others a gap before; the first where its point is.
    last = 2 - gap / 2
    assert_allclose(places, [np.log10(2), last - 2 * gap, last - gap, last])
    assert [name.xy[0] for name in axis.texts] == pytest.approx([2, 97, 98, 99])
