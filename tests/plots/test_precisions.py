import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from factrobust.plots import style, time

PRECISIONS = ["year", "month", "day", "global"]


def intervals(keys, n=40):
    table = pd.MultiIndex.from_product(keys.values(), names=keys.keys()).to_frame(index=False)
    mean = np.linspace(0.1, 0.9, len(table))
    return table.assign(mean=mean, low=mean - 0.05, high=mean + 0.08, n=n)


def test_formats_stand_side_by_side_in_the_models_colour(check, models):
    keys = {"model": models, "prompt_format": ["question", "chat"], "precision": PRECISIONS}
    table = intervals(keys)
    fig = check(time.formats(table), axes=len(models))
    for axis, (model, look) in zip(fig.axes, style.looks(models).items(), strict=True):
        own = table[table["model"] == model]
        assert [bar.get_height() for bar in axis.patches] == list(own["mean"])
        centres = [bar.get_x() + bar.get_width() / 2 for bar in axis.patches]
        assert centres == pytest.approx([k + aside for aside in (-0.2, 0.2) for k in range(4)])
        assert {to_hex(bar.get_edgecolor()).upper() for bar in axis.patches} == {look.colour}
        assert to_hex(axis.patches[4].get_facecolor()) == "#ffffff"  # the second one is hatched
        assert axis.patches[4].get_hatch()
        ticks = [text.get_text() for text in axis.get_xticklabels()]
        assert ticks == [f"{p}\nn = 40" for p in PRECISIONS]
    assert [t.get_text() for t in fig.legends[0].get_texts()] == ["question", "chat"]
    assert fig.axes[0].get_ylabel() == "robustness"


def test_more_formats_than_fills_are_refused():
    table = intervals({"model": ["m"], "prompt_format": list("abcd"), "precision": ["day"]})
    with pytest.raises(ValueError, match="at most 3"):
        time.formats(table)


def test_variance_ratio(check, models):
    table = intervals({"model": models}).assign(mean=[0.5, 1.2, 2.0][: len(models)])
    table = table.assign(low=0.4, high=2.5)
    fig = time.variance_ratio(table.sample(frac=1, random_state=1))
    axis = check(fig, axes=1).axes[0]
    for y, (model, look) in enumerate(style.looks(models).items()):
        (point,) = [line for line in axis.lines if line.get_marker() == look.marker]
        mean = table.loc[table["model"] == model, "mean"].item()
        assert point.get_xydata().tolist() == [[mean, y]]
        assert point.get_color() == look.colour
        assert axis.get_yticklabels()[y].get_text() == f"{style.model_name(model)}\n(n = 40)"
    assert any(list(line.get_xdata()) == [1, 1] for line in axis.lines)
    assert axis.get_xlim() == pytest.approx((0, 2.65))


def test_a_ratio_that_is_undefined_says_so(check):
    table = intervals({"model": ["m"]}).assign(mean=np.nan, low=np.nan, high=np.nan)
    axis = check(time.variance_ratio(table), axes=1).axes[0]
    assert [text.get_text() for text in axis.texts] == ["undefined"]


def test_transfer_writes_share_interval_and_n(check, models):
    one = pd.DataFrame(
        [
            ("year", "month", 0.6, 0.5, 0.7, 30),
            ("year", "day", 0.2, 0.1, 0.3, 30),
            ("day", "year", 1.0, np.nan, np.nan, 1),
        ],
        columns=["known_at", "asked_at", "mean", "low", "high", "n"],
    )
    table = pd.concat([one.assign(model=m) for m in models], ignore_index=True)
    fig = check(time.transfer(table), axes=len(models))
    for axis, model in zip(fig.axes, models, strict=True):
        assert axis.get_title() == style.model_name(model)
        # (column, row), from the top: known at the row, asked at the column
        cells = {text.get_position(): text.get_text() for text in axis.texts}
        assert {place: text for place, text in cells.items() if text} == {
            (1.5, 0.5): "0.60\n0.50–0.70\nn = 30",
            (2.5, 0.5): "0.20\n0.10–0.30\nn = 30",
            (0.5, 2.5): "1.00\nn = 1",
        }
        shares = axis.collections[0].get_array()
        assert shares[0, 1] == 0.6
        assert np.ma.is_masked(shares[0, 0])
        assert [text.get_text() for text in axis.get_xticklabels()] == PRECISIONS[:3]
    assert [text.get_text() for text in fig.axes[0].get_yticklabels()] == PRECISIONS[:3]
    with pytest.raises(ValueError, match="no known_at 'global'"):
        time.transfer(table.assign(known_at="global", asked_at=table.index))
