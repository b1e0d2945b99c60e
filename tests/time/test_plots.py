from itertools import product

import numpy as np
import pandas as pd
import pytest

from factrobust.plots import blocks, style
from factrobust.time import plots

PRECISIONS = ["year", "month", "day", "global"]
FACTS = pd.DataFrame({"fact_id": ["a", "b"], "subject": ["Sri Lanka", "A club called 5$"]})
FACTS["object"] = ["Mahinda Rajapaksa", "the Speaker of a very large House of Representatives"]
FACTS = FACTS.assign(start=["2005-11-19", "1977"], end=["2015-01-09", "1987-01-03"])


def test_timeline(check, rows, entries):
    cells = [("a", "year", "2010", "correct"), ("a", "day", "2015-01-09", "transitional")]
    cells += [(fact, "day", "2000-01-01", "incorrect") for fact in ("b", "of another fact")]
    dates = pd.DataFrame(cells, columns=["fact_id", "precision", "date", "label"])
    fig = check(plots.timeline(FACTS, dates), axes=1)
    axis = fig.axes[0]
    marks = {line.get_marker(): line.get_xydata() for line in axis.lines}
    assert marks["o"] == pytest.approx(np.array([[2010.5, -0.12]]), abs=0.01)
    assert marks["D"] == pytest.approx(np.array([[2015 + 8.5 / 365, 0.12]]), abs=0.01)
    assert marks["x"] == pytest.approx(np.array([[2000, 1.12]]), abs=0.01)
    whole = [bar.get_bbox() for bar in axis.patches if bar.get_facecolor()[0] == 0.8]
    ends = np.array([[bar.x0, bar.x1] for bar in whole])
    assert ends == pytest.approx(np.array([[2005.88, 2015.02], [1978, 1987]]), abs=0.01)
    assert rows(axis) == [
        "Sri Lanka: Mahinda Rajapaksa",
        "A club called 5\\$: the Speaker\nof a very large House of …",
    ]
    assert [text.get_text() for text in axis.texts] == ["year", "day"]
    assert entries(fig) == ["validity", "correct", "transitional", "incorrect"]
    with pytest.raises(KeyError, match="wrong"):
        plots.timeline(FACTS, dates.assign(label="wrong"))


def test_logprob_by_position(check, intervals, models, points):
    table = intervals(model=models, precision=["day", "year"], position=[0.75, -0.5, -0.25])
    fig = check(plots.logprob_by_position(table), axes=2)
    for axis, precision in zip(fig.axes, ["year", "day"], strict=True):
        for model, look in style.looks(models).items():
            own = table[(table["model"] == model) & (table["precision"] == precision)]
            drawn = points(axis, look.colour)
            order = [0, 2, 1]  # the hollow one last
            assert drawn[:, 1].tolist() == own["mean"].iloc[order].tolist()
            assert drawn[:, 0] == pytest.approx(own["position"].iloc[order], abs=0.13)
            hollow = [line for line in axis.lines if line.get_markerfacecolor() == "white"]
            assert len(hollow) == len(models)
        (shade,) = axis.patches
        assert (shade.get_x(), shade.get_width()) == (-0.5, 1)


def test_rates_by_size(check, entries):
    table = pd.DataFrame({"model": ["big", "gemma-3-270m", "tuned-instruct"], "high": 0.4, "n": 60})
    table["kind"] = ["pretrained", "pretrained", "instruction-tuned"]
    table["parameters"] = [7e9, 268.1e6, 135e6]
    table = table.assign(mean=[0.3, 0.2, 0.1], low=[0.05, 0.05, np.nan])
    fig = check(plots.rates_by_size(table, "robustness"), axes=1)
    [axis] = fig.axes
    drawn = {tuple(own.get_xydata()[0]): own.get_mfc() for own in axis.lines}
    assert set(drawn) == {(7e9, 0.3), (268.1e6, 0.2), (135e6, 0.1)}
    assert [point for point, inside in drawn.items() if inside == "white"] == [(135e6, 0.1)]
    assert entries(fig)[0] == "gemma-3-270m (n = 60)"


def test_over_years_draws_wrong_names_thin_beside_the_object(check, models, entries):
    cells = product(models, range(3), [1990, 2000])
    rows = [(*cell, cell[1] + (cell[2] - 1995) / 10) for cell in cells]
    table = pd.DataFrame(rows, columns=["model", "name", "year", "nats"])
    fig = check(plots.over_years(table, "1995-07-02", "2000"), axes=len(models))
    for axis, (model, look) in zip(fig.axes, style.looks(models).items(), strict=True):
        lines = axis.lines
        assert [line.get_color() for line in lines] == [look.colour] * 3, model
        assert [line.get_ydata().tolist() for line in lines] == [
            [k - 0.5, k + 0.5] for k in range(3)
        ]
        thick, *thin = [line.get_linewidth() for line in lines]
        assert max(thin) < thick / 2
        (shade,) = axis.patches
        assert shade.get_x() == pytest.approx(1995.5, abs=0.01)
        assert shade.get_x() + shade.get_width() == pytest.approx(2001, abs=0.01)
    assert fig.axes[0].get_ylim() == fig.axes[-1].get_ylim()
    assert entries(fig) == ["the object", "wrong names", "validity"]


def test_a_kind_has_one_colour_beside_what_else_is_drawn(check, intervals, models, points):
    kinds = ["none", "true", "irrelevant"]
    for some in (kinds[1::-1], kinds[::-1]):
        table = intervals(model=models, precision=["day", "year"], context=some)
        form = {"by": "context", "panel": "model", "xlabel": "win rate"}
        fig = check(blocks.forest(table, "precision", **form)[0], axes=len(models))
        for axis, model in zip(fig.axes, style.looks(models), strict=True):
            for name, look in zip(kinds[: len(some)], style.SERIES, strict=False):
                part = table[(table["model"] == model) & (table["context"] == name)]
                assert set(points(axis, look.colour)[:, 0]) == set(part["mean"])
