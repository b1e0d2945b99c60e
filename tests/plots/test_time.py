import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from factrobust.datasets.dates import sample_dates
from factrobust.plots import style, time

FACTS = pd.DataFrame(
    {
        "fact_id": ["a", "b"],
        "subject": ["Sri Lanka", "A club called 5$"],
        "relation": "head_of_state",
        "object": ["Mahinda Rajapaksa", "the Speaker of a very large House of Representatives"],
        "start": ["2005-11-19", "1977"],
        "end": ["2015-01-09", "1987-01-03"],
    }
)


def intervals(keys, n=40):
    table = pd.MultiIndex.from_product(keys.values(), names=keys.keys()).to_frame(index=False)
    mean = np.linspace(0.1, 0.9, len(table))
    return table.assign(mean=mean, low=mean - 0.05, high=mean + 0.08, n=n)


def marks(fig):
    """Label -> the marks' coordinates."""
    drawn = zip(time.MARKS, fig.axes[0].lines, strict=True)
    return {label: line.get_xydata() for label, line in drawn}


def test_timeline_places_bars_and_marks_in_time(check):
    dates = pd.DataFrame(
        [
            ("a", "year", "2010", "correct"),
            ("a", "year", "2005", "transitional"),
            ("a", "year", "1990", "incorrect"),
            ("b", "year", "1980", "correct"),
            ("not drawn", "year", "1980", "correct"),
        ],
        columns=["fact_id", "precision", "date", "label"],
    )
    fig = check(time.timeline(FACTS, dates), axes=1)
    axis = fig.axes[0]
    outer, inner = axis.patches[:2], axis.patches[2:]
    a, b = ((bar.get_x(), bar.get_x() + bar.get_width()) for bar in outer)
    assert a == pytest.approx((2005.88, 2015.025), abs=0.005)
    assert b == pytest.approx((1977, 1987.008), abs=0.005)
    # The bound "1977" leaves a year open, which is paler.
    assert inner[1].get_x() == pytest.approx(1978, abs=0.005)
    found = marks(fig)
    assert found["correct"] == pytest.approx(np.array([[2010.5, 0], [1980.5, 1]]), abs=0.005)
    assert found["transitional"] == pytest.approx(np.array([[2005.5, 0]]), abs=0.005)
    assert found["incorrect"] == pytest.approx(np.array([[1990.5, 0]]), abs=0.005)
    looks = {(line.get_color(), line.get_marker()) for line in axis.lines}
    assert looks == {(style.RIGHT, "o"), ("0.3", "D"), (style.WRONG, "x")}
    labels = [text.get_text() for text in axis.get_yticklabels()]
    assert labels[0] == "Sri Lanka: Mahinda Rajapaksa"
    assert labels[1] == "A club called 5\\$: the Speaker\nof a very large House of …"
    assert axis.yaxis_inverted()  # the first fact on top
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["validity", *time.MARKS]


@pytest.mark.parametrize("rule", ["strict", "published"])
def test_timeline_gives_each_precision_a_lane(check, rule):
    dates = sample_dates(FACTS, rule=rule, n_correct=3, n_incorrect=5)
    fig = check(time.timeline(FACTS, dates), axes=1)
    lanes = {round(y, 6) for xy in marks(fig).values() for y in xy[:, 1]}
    assert lanes == {-0.24, 0, 0.24, 0.76, 1, 1.24}
    assert sum(map(len, marks(fig).values())) == len(dates)
    assert [text.get_text() for text in fig.axes[0].texts] == ["year", "month", "day"]


def test_timeline_of_an_unknown_label_is_refused():
    dates = pd.DataFrame([("a", "year", "2010", "right")])
    dates.columns = ["fact_id", "precision", "date", "label"]
    with pytest.raises(ValueError, match="no label 'right'"):
        time.timeline(FACTS, dates)


PRECISIONS = ["year", "month", "day", "global"]


def test_rates(check, models):
    table = intervals({"model": models, "precision": PRECISIONS}).sample(frac=1, random_state=0)
    fig = check(time.rates(table, "win rate", 0.5), axes=1)
    axis = fig.axes[0]
    looks = style.looks(models)
    bars = [axis.containers[i] for i in range(0, 2 * len(models), 2)]
    for own, (model, look) in zip(bars, looks.items(), strict=True):
        rows = table[table["model"] == model]
        for bar, (_, row) in zip(own, rows.iterrows(), strict=True):
            assert bar.get_height() == row["mean"]
            centre = bar.get_x() + bar.get_width() / 2
            assert round(centre) == PRECISIONS.index(row["precision"])
            assert to_hex(bar.get_facecolor()).upper() == look.colour
    ticks = [text.get_text() for text in axis.get_xticklabels()]
    assert ticks == [f"{p}\nn = 40" for p in PRECISIONS]
    dashes = [line for line in axis.lines if len(line.get_xdata()) == 2]
    assert [list(line.get_ydata()) for line in dashes] == [[0.5, 0.5]] * 4
    assert axis.get_ylabel() == "win rate"
    assert fig.get_figwidth() == style.SINGLE


def test_rates_with_a_chance_each_precision(check):
    table = intervals({"model": ["m"], "precision": PRECISIONS}).assign(high=0.3, mean=0.2, low=0.1)
    chance = pd.DataFrame({"precision": ["day", "year"], "mean": [0.01, 0.04]})
    axis = check(time.rates(table, "robustness", chance), axes=1).axes[0]
    levels = [line.get_ydata()[0] for line in axis.lines]
    assert levels == pytest.approx([0.04, np.nan, 0.01, np.nan], nan_ok=True)
    assert axis.get_ylim()[1] == pytest.approx(0.336)  # small values get a scale of their own
    check(time.rates(table, "robustness"), axes=1)
    with pytest.raises(ValueError, match="several rows for precision day"):
        time.rates(table, "robustness", pd.concat([chance, chance]))


def test_rates_of_several_models_fill_the_page(check):
    names = [f"owner/model-{k}" for k in range(7)]
    table = intervals({"model": names, "precision": ["year"]}).assign(n=range(50, 57))
    fig = check(time.rates(table, "win rate", 0.5), axes=1)
    assert fig.get_figwidth() == style.DOUBLE
    assert fig.axes[0].get_xticklabels()[0].get_text() == "year\nn = 50–56"


def test_logprob_by_position(check, models):
    position = [-0.625, -0.125, 0.375, 1.375]
    keys = {"model": models, "precision": ["day", "year"], "position": position}
    table = intervals(keys)
    fig = check(time.logprob_by_position(table.sample(frac=1, random_state=0)), axes=2)
    assert [axis.get_title().split("\n")[0] for axis in fig.axes] == ["year", "day"]
    for axis, precision in zip(fig.axes, ["year", "day"], strict=True):
        drawn = [line for line in axis.lines if len(line.get_xdata()) == 4]
        for line, (model, look) in zip(drawn, style.looks(models).items(), strict=True):
            rows = table[(table["model"] == model) & (table["precision"] == precision)]
            assert list(line.get_xdata()) == position
            assert list(line.get_ydata()) == list(rows["mean"])
            assert line.get_color() == look.colour
        edges = [line.get_xdata()[0] for line in axis.lines if line.get_linestyle() == "--"]
        assert edges[:2] == [-0.5, 0.5]
    assert "nats" in fig.axes[0].get_ylabel()


def test_position_of_two_prompt_formats_at_once_is_refused():
    table = intervals({"model": ["m"], "precision": ["day"], "position": [0.125]})
    with pytest.raises(ValueError, match="keep one of them, for example that of one prompt format"):
        time.logprob_by_position(pd.concat([table, table]))
