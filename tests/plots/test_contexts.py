import pandas as pd
import pytest

from factrobust.plots import context, style


def table(models, names=("false", "none", "true", "irrelevant")):
    """Means that differ in every model, context and bin; intervals of 0.1 below and above."""
    rows = [
        (model, context, popularity, 0.2 + 0.2 * k + 0.02 * i + 0.1 * j, 20)
        for i, model in enumerate(models)
        for k, context in enumerate(names)
        for j, popularity in enumerate([2.5, 3.5, 4.5])
    ]
    made = pd.DataFrame(rows, columns=["model", "context", "popularity", "mean", "n"])
    return made.assign(low=made["mean"] - 0.1, high=made["mean"] + 0.1)


def test_by_popularity(check, models):
    rows = table(models)
    fig = check(context.truth_by_popularity(rows.sample(frac=1, random_state=0)), axes=4)
    shown = ["none", "true", "irrelevant", "false"]
    for axis, kind in zip(fig.axes, shown, strict=True):
        for k, (model, look) in enumerate(style.looks(models).items()):
            own = rows[(rows["model"] == model) & (rows["context"] == kind)]
            line, markers = (x for x in axis.lines if x.get_color() == look.colour)
            assert line.get_ydata().tolist() == own["mean"].tolist()
            apart = 0.06 * (k - (len(models) - 1) / 2)  # 3% of the popularities' range
            assert line.get_xdata() == pytest.approx(own["popularity"] + apart)
            assert markers.get_marker() == look.marker
            ends = axis.collections[k].get_segments()
            assert [end[:, 1].tolist() for end in ends] == [
                pytest.approx(pair) for pair in own[["low", "high"]].values.tolist()
            ]
    titles = [axis.get_title() for axis in fig.axes]
    assert titles[0] == "no context\nn = 20 facts"
    assert titles[3].startswith("false context")
    assert fig.axes[0].get_ylabel() == "share of right answers"
    assert len(fig.legends[0].get_texts()) == len(models)


def test_one_context_is_one_panel(check):
    fig = check(context.truth_by_popularity(table(["m"], ["true"]), "share recovered"), axes=1)
    assert fig.axes[0].get_ylabel() == "share recovered"


def test_another_context_or_two_rows_for_a_point_are_refused():
    rows = table(["m"])
    with pytest.raises(ValueError, match="draws no context 'wrong'"):
        context.truth_by_popularity(rows.replace("false", "wrong"))
    with pytest.raises(
        ValueError, match=r"several rows for model m, context false, popularity 2\.5"
    ):
        context.truth_by_popularity(pd.concat([rows, rows]))
