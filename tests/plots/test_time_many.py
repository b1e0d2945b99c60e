import numpy as np
import pandas as pd
import pytest

from factrobust.plots import style, time

NAMES = [f"owner/model-{k}" for k in (3, 1, 2, 0, 4, 5, 6, 7)]
PRECISIONS = ["year", "month", "day", "global"]


def intervals(**keys):
    table = pd.MultiIndex.from_product(keys.values(), names=keys.keys()).to_frame(index=False)
    mean = np.linspace(0.1, 0.9, len(table))
    return table.assign(mean=mean, low=mean - 0.05, high=mean + 0.08, n=range(50, 50 + len(table)))


def test_more_models_than_colours_are_too_many():
    assert not time.too_many(NAMES[:7])
    assert time.too_many(NAMES)


def test_rates_in_rows(check):
    table = intervals(model=NAMES, precision=PRECISIONS)
    chance = pd.DataFrame({"precision": PRECISIONS, "mean": [0.1, 0.2, 0.3, 0.4]})
    fig = check(time.rates(table, "robustness", chance), axes=4)
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["random"]
    for k, (axis, precision) in enumerate(zip(fig.axes, PRECISIONS, strict=True)):
        own = table[table["precision"] == precision]
        points, _, (bars,) = axis.containers[0]
        assert list(points.get_xdata()) == list(own["mean"])
        ends = [segment[:, 0].tolist() for segment in bars.get_segments()]
        expected = [[low, high] for low, high in zip(own["low"], own["high"], strict=True)]
        np.testing.assert_allclose(ends, expected)
        assert axis.get_title() == f"{precision}\nn = {50 + k}–{78 + k} facts"
        [dashed] = [line for line in axis.lines if line.get_linestyle() == "--"]
        assert dashed.get_xdata()[0] == pytest.approx(0.1 * (k + 1))
    labels = [text.get_text() for text in fig.axes[0].get_yticklabels()]
    assert labels == [style.model_name(name) for name in NAMES]  # as in the table
    assert fig.axes[0].yaxis_inverted()
    assert not check(time.rates(table, "win rate"), axes=4).legends


def test_a_panel_for_each_model(check):
    position = [-0.6, 0.1, 1.4]
    table = intervals(model=NAMES, precision=["day", "year"], position=position)
    fig = check(time.logprob_by_position(table), axes=8)
    assert [axis.get_title().split("\n")[0] for axis in fig.axes] == [
        style.model_name(name) for name in NAMES
    ]
    assert [t.get_text() for t in fig.legends[0].get_texts()] == ["year", "day", "validity"]
    for axis, name in zip(fig.axes, NAMES, strict=True):
        drawn = [line for line in axis.lines if len(line.get_xdata()) == 3]
        for line, precision in zip(drawn, ["year", "day"], strict=True):
            rows = table[(table["model"] == name) & (table["precision"] == precision)]
            assert list(line.get_ydata()) == list(rows["mean"])
            assert line.get_color() == time.PRECISION_LOOKS[precision].colour
