import numpy as np
import pandas as pd
import pytest

from factrobust.plots import style, time


def intervals(keys, n=40):
    table = pd.MultiIndex.from_product(keys.values(), names=keys.keys()).to_frame(index=False)
    mean = np.linspace(0.9, 0.1, len(table))
    return table.assign(mean=mean, low=mean - 0.05, high=mean + 0.08, n=n)


def lines_of(axis, length):
    return [line for line in axis.lines if len(line.get_xdata()) == length]


def test_margin_curves(check, models):
    margins = [-1, 0, 0.5, 2]
    keys = {"model": models, "precision": ["global", "year"], "required": margins}
    table = intervals(keys)
    fig = check(time.margin_curves(table.sample(frac=1, random_state=0)), axes=2)
    for axis, precision in zip(fig.axes, ["year", "global"], strict=True):
        assert axis.get_title().startswith(precision)
        for line, (model, look) in zip(lines_of(axis, 4), style.looks(models).items(), strict=True):
            own = table[(table["model"] == model) & (table["precision"] == precision)]
            assert list(line.get_xdata()) == margins
            assert list(line.get_ydata()) == list(own["mean"])
            assert line.get_color() == look.colour
        assert [list(line.get_xdata()) for line in lines_of(axis, 2)] == [[0, 0]]
        assert axis.get_xlabel() == "required margin (nats)"


def test_by_number_of_dates(check, models):
    tested = [1, 2, 4, 8]
    table = intervals({"model": models, "precision": ["year", "day"], "n_incorrect": tested})
    chance = pd.DataFrame(
        {"precision": ["day"] * 4, "n_incorrect": tested, "mean": [0.2, 0.1, 0.05, 0.01]}
    )
    fig = check(time.by_number_of_dates(table, chance), axes=2)
    year, day = fig.axes
    assert len(year.lines) == len(models) + 1
    (dotted,) = [
        line for line in day.lines if line.get_linestyle() == ":" and line.get_color() == "black"
    ]
    assert list(dotted.get_ydata()) == [0.2, 0.1, 0.05, 0.01]
    first = year.lines[0]
    assert list(first.get_xdata()) == tested
    assert list(first.get_ydata()) == list(table["mean"][:4])
    assert (first.get_color(), first.get_marker()) == style.looks(models)["gemma-3-270m"][:2]
    assert year.get_xscale() == "log"
    assert [text.get_text() for text in year.get_xticklabels()] == ["1", "2", "4", "8"]
    assert year.get_xlabel() == "incorrect dates tested (log scale)"


def test_a_short_range_of_dates_gets_a_plain_axis(check):
    table = intervals({"model": ["m"], "precision": ["year"], "n_incorrect": range(2, 12)})
    fig = check(time.by_number_of_dates(table), axes=1)
    assert fig.axes[0].get_xscale() == "linear"
    assert fig.axes[0].get_xlabel() == "incorrect dates tested"
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["m"]


@pytest.mark.parametrize("shown", [["year"], ["day", "year"]], ids=len)
def test_nearest_misses(check, models, shown):
    years = [0.5, 2, 20]
    keys = {"model": models, "precision": shown, "side": ["before", "after"], "years": years}
    table = intervals(keys)
    tested = intervals({k: v for k, v in keys.items() if k != "model"})
    fig = check(time.nearest_misses(table, tested), axes=2 * len(shown))
    before, after = fig.axes[:2]
    assert before.get_title().startswith("year, before the start (n = 40 facts")
    assert before.xaxis_inverted()
    assert not after.xaxis_inverted()
    for axis, side in ((before, "before"), (after, "after")):
        *drawn, dotted = lines_of(axis, 3)
        for line, (model, look) in zip(drawn, style.looks(models).items(), strict=True):
            own = table[(table["model"] == model) & (table["precision"] == "year")]
            assert list(line.get_xdata()) == years
            assert list(line.get_ydata()) == list(own.loc[own["side"] == side, "mean"])
            assert line.get_color() == look.colour
        own = tested[(tested["precision"] == "year") & (tested["side"] == side)]
        assert list(dotted.get_ydata()) == list(own["mean"])
        assert axis.get_xscale() == "log"
    assert fig.get_supxlabel() == "years from the validity (log scale)"


def test_nearest_misses_without_reference_or_one_side(check):
    table = intervals({"model": ["m"], "precision": ["day"], "side": ["after"], "years": [1, 10]})
    fig = check(time.nearest_misses(table), axes=2)
    assert [len(axis.lines[0].get_xdata()) for axis in fig.axes] == [0, 2]
    with pytest.raises(ValueError, match="no side 'inside'"):
        time.nearest_misses(table.assign(side="inside"))


def test_dtype_difference_is_a_histogram_around_zero(check, models):
    one = pd.DataFrame({"difference": [-0.41, 0.0, 0.001, 0.2]})
    table = pd.concat([one.assign(model=m) for m in models])
    fig = check(time.dtype_difference(table), axes=1)
    axis = fig.axes[0]
    share, edges, _ = axis.patches[0].get_data()
    assert edges[[0, -1]] == pytest.approx([-0.41, 0.41])
    middles = (edges[1:] + edges[:-1]) / 2
    assert {round(x, 3): y for x, y in zip(middles, share, strict=True) if y} == {
        -0.4: 0.25, 0: 0.5, 0.2: 0.25,
    }  # fmt: skip
    assert axis.get_xlabel() == "log-probability, bfloat16 − float32 (nats)"
    assert axis.get_ylabel() == "share of statements\n(bins of 0.02 nats)"
    assert fig.legends[0].get_texts()[0].get_text() == "gemma-3-270m (n = 4)"


def test_no_difference_at_all_is_one_spike(check):
    table = pd.DataFrame({"model": "m", "difference": [0.0, 0.0]})
    axis = check(time.dtype_difference(table, ("float16", "float32")), axes=1).axes[0]
    share = axis.patches[0].get_data()[0]
    assert share[20] == 1
    assert "float16 − float32" in axis.get_xlabel()
