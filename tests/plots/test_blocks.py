"""The blocks of figures: which rows of a table they draw, where, and what they call them."""

import numpy as np
import pandas as pd
import pytest

from factrobust.plots import blocks, style
from factrobust.tables import TooFewError

LOOKS = style.looks(["a", "b"])


@pytest.fixture
def points():
    """A function for the points that are drawn in a colour: [point, (x, y)], in drawing order."""

    def drawn(axis, colour):
        lines = [line for line in axis.lines if line.get_marker() not in ("None", "", None)]
        found = [line.get_xydata() for line in lines if line.get_color() == colour]
        return np.vstack([np.empty((0, 2)), *found])

    return drawn


@pytest.fixture
def rows():
    return lambda axis: [text.get_text() for text in axis.get_yticklabels()]


@pytest.fixture
def entries():
    return lambda fig: [text.get_text() for text in fig.legends[0].get_texts()]


def table(**columns):
    return pd.DataFrame(
        {
            "mean": 0.5,
            "low": 0.4,
            "high": 0.6,
            "n": 12,
        }
        | columns
    )


def panels(rows, by, **options):
    return blocks.panels(rows, by, height=2, labels=("x", "y"), **options)


def test_what_a_table_lacks_or_has_twice_is_named():
    twice = table(
        model=["a", "b", "b"],
        precision="day",
        prompt_format=["chat", "chat", "prefix"],
    )
    blocks.check(twice, "model", "precision", "prompt_format")
    with pytest.raises(ValueError, match="several rows for model b, precision day: keep one"):
        blocks.check(twice, "model", "precision")
    with pytest.raises(TooFewError, match="No case is left"):
        blocks.check(table(model=[]), "model")


def test_panels_stand_in_order_and_count_their_facts():
    facts = table(
        model="m",
        precision=["global", "day", "year"],
        n=[1, 2, 3],
    )
    fig, parts = panels(facts, "precision", what="facts")
    assert [axis.get_title() for axis in fig.axes] == [
        "year\nn = 3 facts",
        "day\nn = 2 facts",
        "global\nn = 1 facts",
    ]
    assert [list(own["n"]) for _, own in parts] == [[3], [2], [1]]
    assert [axis.get_ylabel() for axis in fig.axes] == ["y", "", ""]
    assert fig.get_figwidth() == style.DOUBLE
    assert panels(facts[:1], "precision")[0].get_figwidth() == style.SINGLE


def test_curves_have_a_line_a_model_and_their_legend(entries):
    rows = table(
        model=["a", "a", "b", "b"],
        side=["l", "r"] * 2,
        t=1,
        mean=[0.1, 0.2, 0.3, 0.4],
    )
    more = [blocks.key("more")]
    fig, parts = blocks.curves(
        rows,
        "t",
        panel="side",
        labels=("x", "y"),
        extra=more,
        at=0.5,
    )
    assert entries(fig) == ["a", "b", "more"]
    for (axis, _), means in zip(parts, ([0.1, 0.3], [0.2, 0.4]), strict=True):
        *lines, dashed = axis.lines
        assert [line.get_ydata()[0] for line in lines] == means
        assert [line.get_color() for line in lines] == [k.colour for k in LOOKS.values()]
        assert (*dashed.get_ydata(), dashed.get_linestyle()) == (0.5, 0.5, "--")
    with pytest.raises(ValueError, match="several rows for model a, side l, t 1"):
        blocks.curves(pd.concat([rows, rows]), "t", panel="side", labels=("", ""))


def test_a_line_is_sorted_and_banded():
    rows = table(
        model="m",
        x=[2, 1],
        mean=[0.7, 0.2],
    )
    _, ((axis, _),) = blocks.curves(rows, "x", labels=("", ""))
    (drawn,), look = axis.lines, style.looks(["m"])["m"]
    assert drawn.get_xydata().tolist() == [[1, 0.2], [2, 0.7]]
    assert drawn.get_color() == look.colour
    assert drawn.get_marker() == look.marker
    box = axis.collections[0].get_paths()[0].get_extents()
    assert box.x0 == 1
    assert box.y0 == 0.4
    assert box.x1 == 2
    assert box.y1 == 0.6


def test_a_forest_names_its_rows_from_the_top(rows, points):
    many = table(
        model=["a", "a", "b"],
        what=["x_y", "z", "z"],
        side=["l", "r", "r"],
    )
    fig, parts = blocks.forest(many, "what", xlabel="share", panel="side")
    assert rows(fig.axes[0]) == ["x y", "z"]
    assert fig.axes[0].get_ylim() == (1.5, -0.5)
    heights = [points(parts[1][0], look.colour)[:, 1].tolist() for look in LOOKS.values()]
    assert heights == [pytest.approx([0.825]), pytest.approx([1.175])]
    two = table(model=["b", "a"])
    named = {"a": "A", "b": "B"}
    fig, ((axis, _),) = blocks.forest(two, "model", named, xlabel="x")
    assert rows(fig.axes[0]) == ["A", "B"]
    heights = [points(axis, look.colour)[:, 1].tolist() for look in LOOKS.values()]
    assert heights == [[0], [1]]  # a row of its own each, in its middle
    looks = {"r": style.Look("red", "o"), "l": style.Look("blue", "s")}  # the legend's order
    fig, ((axis, _),) = blocks.forest(many, "model", xlabel="x", by="side", looks=looks)
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["r", "l"]
    assert points(axis, "red")[:, 1].tolist() == pytest.approx([-0.175, 0.825])  # above, of a and b


def test_rows_stand_by_their_mean_over_models():
    rows = table(
        model=list("aabb"),
        relation=["x", "z"] * 2,
        mean=[0.1, 0.5, 0.8, 0.3],
    )
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


def test_a_scatter_counts_what_it_cannot_draw():
    rows = pd.DataFrame({"x": [1, 2, None], "y": [0.1, 0.2, 0.3], "fact_id": [*"abc"]})
    rows["model"] = "m"
    fig, ((axis, drawn),) = blocks.scatter(rows, "x", "y", height=2, labels=("x", "y"))
    found = fig.axes[0].collections[0].get_offsets()
    assert found.tolist() == [[1, 0.1], [2, 0.2]]
    assert axis.get_title() == "m\nn = 2, 1 undefined"
    assert len(drawn) == 2


def test_a_model_has_its_n_in_the_legend():
    own, other = blocks.keys(LOOKS, table(model=["a", "b", "b"], n=[3, 4, 5]), ls="")
    assert own.get_label() == "a (n = 3)"
    assert other.get_label() == "b (n = 4–5)"
    assert own.get_color() == LOOKS["a"].colour
    assert own.get_linestyle() == "None"
