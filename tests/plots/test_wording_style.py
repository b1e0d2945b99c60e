import matplotlib.pyplot as plt
import pandas as pd
import pytest

from factrobust.plots import blocks as rows
from factrobust.plots import style


@pytest.fixture
def axis():
    fig, axis = plt.subplots()
    yield axis
    plt.close(fig)


def table(**columns):
    return pd.DataFrame({"mean": 0.5, "low": 0.4, "high": 0.6, "n": 12} | columns)


@style.styled
def forest(*arguments):
    return rows.forest(*arguments)[0]


def labels(fig):
    return [text.get_text() for text in fig.axes[0].get_yticklabels()]


def test_rows_stand_by_their_mean_over_models():
    own = table(model=list("aabb"), relation=["x_y", "z"] * 2, mean=[0.1, 0.5, 0.8, 0.3])
    fig = forest(own, "relation", (), "questions a relation")
    assert labels(fig) == ["x y", "z"]  # 0.45 and 0.4
    assert fig.axes[0].get_ylim() == (1.5, -0.5)
    assert fig.axes[0].get_title() == "n = 12 questions a relation"


def test_a_given_order_comes_first_and_needs_not_be_complete():
    own = table(model="a", relation=list("wxyz"), mean=[0.1, 0.2, 0.3, 0.4])
    assert labels(forest(own, "relation", ["x", "unknown", "w"], "q")) == ["x", "w", "z", "y"]


def test_numbers_that_vary_stand_in_the_rows():
    own = table(model=list("aabb"), relation=["x", "y"] * 2, n=[12, 15, 12, 14])
    fig = forest(own, "relation", ("x", "y"), "questions")
    assert labels(fig) == ["x (n = 12)", "y (n = 14–15)"]
    assert fig.axes[0].get_title() == ""


def test_points_of_models_stand_below_each_other(axis):
    own = table(model=["a", "b", "a", "b"], what=["x", "x", "y", "y"], mean=[0.1, 0.2, 0.3, 0.4])
    looks = style.looks(["a", "b"])
    y = rows.points(axis, own, "what", ["y", "x"], looks)
    assert y.tolist() == pytest.approx([0.825, 1.175, -0.175, 0.175])
    first, second = (
        line for line in axis.lines if line.get_marker() != "None" and len(line.get_xdata())
    )
    assert list(first.get_xdata()) == [0.1, 0.3]
    assert list(first.get_ydata()) == pytest.approx([0.825, -0.175])
    assert list(second.get_xdata()) == [0.2, 0.4]
    assert first.get_color() == looks["a"].colour


def test_hollow_points_are_white_inside(axis):
    own = table(model="a", what=["x", "y"], hollow=[True, False])
    rows.points(axis, own, "what", ["x", "y"], style.looks(["a"]))
    filled, hollow = axis.lines
    assert (hollow.get_mfc(), list(hollow.get_ydata())) == ("white", [0])
    assert (filled.get_mfc(), list(filled.get_ydata())) == (filled.get_color(), [1])


def test_rows_of_any_index_and_missing_bounds_are_drawn(axis):
    own = table(model="a", what=["x", "y"], low=[float("nan"), 0.4])
    own.index = [7, 7]
    assert rows.points(axis, own, "what", ["x", "y"], style.looks(["a"])).tolist() == [0, 1]
    (_, bars) = axis.lines[0], axis.collections[0].get_segments()
    assert [segment[:, 0].tolist() for segment in bars] == [[0.5, 0.6], [0.4, 0.6]]


def test_several_rows_for_one_thing_are_refused():
    own = table(model="a", relation=["x", "x"])
    with pytest.raises(ValueError, match="several rows for model a, relation x: keep one of them"):
        forest(own, "relation", (), "q")
    with pytest.raises(KeyError, match="'measure'"):
        forest(own, "measure", (), "q")


def test_names():
    assert rows.name("place_of_birth") == "place of birth"
    assert rows.name("price_in_$") == r"price in \$"
