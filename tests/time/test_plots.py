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
    line = {"kind": "pretrained", "slope": 0.5, "intercept": -4, "smallest": 1e8, "largest": 1e10}
    axis = check(plots.rates_by_size(table, "robustness", pd.DataFrame([line])), axes=1).axes[0]
    drawn = {tuple(own.get_xydata()[0]): own.get_mfc() for own in axis.lines[:3]}
    assert set(drawn) == {(7e9, 0.3), (268.1e6, 0.2), (135e6, 0.1)}
    assert [point for point, inside in drawn.items() if inside == "white"] == [(135e6, 0.1)]
    assert axis.lines[3].get_xydata().tolist() == [[1e8, 0], [1e10, 1]]
    fig = plots.rates_by_size(table, "robustness")
    assert entries(fig)[0] == "gemma-3-270m (n = 60)"
    assert len(fig.axes[0].lines) == 3


def test_over_years_shades_the_validity(check, models, intervals, entries):
    kinds = ["log P of the object", "minus that of others"]
    table = intervals(model=models, value=kinds, year=[1990, 2000])
    fig = check(plots.over_years(table, "1995-07-02", "2000"), axes=2)
    for axis, kind in zip(fig.axes, kinds, strict=True):
        shade = axis.patches[0].get_bbox()
        assert (shade.x0, shade.x1) == pytest.approx((1995.5, 2001), abs=0.01)
        for line, model in zip(axis.lines, style.looks(models), strict=True):
            own = table[(table["model"] == model) & (table["value"] == kind)]
            assert line.get_xydata().tolist() == own[["year", "mean"]].values.tolist()
    assert entries(fig)[-1] == "validity"


def test_match_matrix(check, models, rows, entries):
    pairs = [("2001", "1990", "won"), ("2001", "2010", "tied"), ("2002", "1990", "lost")]
    pairs += [("2002", "2010", "won")]
    table = pd.DataFrame(pairs, columns=["correct", "incorrect", "outcome"])
    table = table.merge(pd.Series(models, name="model"), how="cross")
    fig = check(plots.match_matrix(table), len(models))
    for axis in fig.axes:
        assert axis.collections[0].get_array().tolist() == [[0, 1], [2, 0]]
        assert [text.get_text() for text in axis.get_xticklabels()] == ["1990", "2010"]
        assert axis.yaxis_inverted()
    assert rows(fig.axes[0]) == ["2001", "2002"]
    assert entries(fig) == ["won", "tied", "lost"]


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


def test_confusion(check, models, rows):
    share = {(0, 0): 0.75, (0, 1): 0.25, (2, 0): 1.0}
    cells = [(*pair, value) for pair, value in share.items()]
    table = pd.DataFrame(cells, columns=["term", "predicted", "share"])
    table = table.merge(pd.Series(models, name="model"), how="cross")
    fig = check(plots.confusion(table, ["Ann", "Bob", "Cid"]), axes=len(models))
    grid = fig.axes[0].collections[0].get_array()
    assert np.ma.filled(grid, -1).tolist() == [[0.75, 0.25, -1], [-1, -1, -1], [1, -1, -1]]
    assert all(axis.yaxis_inverted() for axis in fig.axes)
    assert rows(fig.axes[0]) == ["Ann", "Bob", "Cid"]


def duels(pairs):
    shares = (("win", 0.5), ("tie", 0.1), ("lose", 0.4))
    cells = product(pairs, ("day", "year"), ("win_rate", "robust"), shares)
    rows = [(*pair, precision, metric, *share, 40) for pair, precision, metric, share in cells]
    columns = ["first", "second", "precision", "metric", "outcome", "share", "n"]
    return pd.DataFrame(rows, columns=columns)


def test_duel_shares(check, rows, entries):
    table = duels([("gemma-3-270m", "o/b")])
    fig = check(plots.duel_shares(table), axes=2)
    assert rows(fig.axes[0]) == ["year (n = 40)", "day (n = 40)"]
    assert [axis.get_title() for axis in fig.axes] == ["win rate", "robustness"]
    assert entries(fig) == ["gemma-3-270m better", "equal", "b better"]
    first = [patch for patch in fig.axes[0].patches if patch.get_y() < 0.5]
    assert [patch.get_x() for patch in first] == pytest.approx([0, 0.5, 0.6])
    assert [text.get_text() for text in fig.axes[0].texts] == ["50%", "50%", "", "", "40%", "40%"]
    # Several duels name both sides.
    table = duels([("a", "b"), ("c", "d")])
    fig = check(plots.duel_shares(table[table["precision"] == "year"]), axes=2)
    assert rows(fig.axes[0]) == ["a / b (n = 40)", "c / d (n = 40)"]
    assert entries(fig) == ["first better", "equal", "second better"]
    with pytest.raises(ValueError, match="duplicate entries"):
        plots.duel_shares(table)
