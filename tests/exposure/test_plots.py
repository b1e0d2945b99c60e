"""Figures of dose and response, drawn from tables of known numbers."""

import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from factrobust.exposure import plots
from factrobust.plots import style
from factrobust.plots.style import Look

TABLE = pd.DataFrame({"model": ["world-s"] * 3 + ["world-m"] * 3, "exposure": [0, 1, 16] * 2})
TABLE = TABLE.assign(mean=[0.1, 0.2, 0.3, 0.1, 0.4, 0.9], n=30)
TABLE = TABLE.assign(low=TABLE["mean"] - 0.1, high=TABLE["mean"] + 0.1)


def test_points_lines_and_chance_on_a_log_axis_with_none_apart() -> None:
    assert plots.place([0, 1, 4, 512]).tolist() == [plots.NEVER, 0, 2, 9]
    fig = plots.by_exposure(TABLE, "share right", at=0.05)
    (axis,) = fig.axes
    drawn = [[*line.get_ydata()] for line in axis.lines]
    assert [0.1, 0.2, 0.3] in drawn  # the points of world-s
    assert [0.4, 0.9] in drawn  # the line of world-m begins at exposure 1
    assert [0.05, 0.05] in drawn
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0", "1", "4", "16"]


def test_curves_are_drawn_instead_of_lines_and_panels_have_their_own() -> None:
    both = pd.concat([TABLE.assign(wording="seen"), TABLE.assign(wording="never seen")])
    curve = pd.DataFrame({"model": "world-s", "exposure": [1.0, 16], "mean": [0.21, 0.29]})
    curves = [curve.assign(wording="seen"), curve.assign(wording="never seen", mean=0.5)]
    fig = plots.by_exposure(both, "share right", pd.concat(curves), panel="wording")
    first, second = ([[*line.get_ydata()] for line in axis.lines] for axis in fig.axes)
    assert [0.21, 0.29] in first
    assert [0.5, 0.5] in second
    assert [0.21, 0.29] not in second


def test_several_rows_for_one_point_are_refused() -> None:
    with pytest.raises(ValueError, match="several rows for model world-s"):
        plots.by_exposure(pd.concat([TABLE, TABLE]), "share right")


def test_series_look_like_no_model() -> None:
    many = pd.concat([TABLE.assign(false=f"{k}%") for k in range(5)])
    fig = plots.by_exposure(many[many["model"] == "world-m"], "share right", by="false")
    drawn = {line.get_color() for line in fig.axes[0].lines}
    assert len(drawn) == 5
    known = *style.WORLD.values(), *style.looks(style.MODELS).values()
    assert not drawn & {look.colour for look in known}


def test_looks_may_be_given() -> None:
    looks = {"world-s": Look("red", "o"), "world-m": Look("blue", "s")}
    (axis,) = plots.by_exposure(TABLE, "share right", looks=looks).axes
    assert {line.get_color() for line in axis.lines} == {"red", "blue"}


def test_ordered_series_get_darker() -> None:
    looks = plots.shades(["few", "some", "many"])
    light = [sum(to_rgb(look.colour)) for look in looks.values()]
    assert light == sorted(light, reverse=True)
    assert len({look.marker for look in looks.values()}) == len(looks) == 3
    assert [*plots.shades([*"abcde"])] == [*"abcde"]
