import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from factrobust.metrics import decoding as metric
from factrobust.plots import decoding, style

H, T_B = np.linspace(0, 1, 21), np.linspace(0, 2, 11)


def values(d=1.0):
    return metric.frs(H[None, :], T_B[:, None], d, unbroken=None)


def test_surface_shows_both_equations_as_surface_and_contours(check):
    raw = metric.raw_frs(H[None, :], T_B[:, None])
    fig = check(decoding.surface(H, T_B, raw, values()), axes=4)
    solid = [axis for axis in fig.axes if axis.name == "3d"]
    assert [axis.get_zlabel() for axis in solid] == ["$f$", "FRS"]
    assert solid[0].get_zlim()[0] < -0.9
    assert solid[0].get_zlim()[1] > 2.9
    # Entropy runs along x: the score falls with it.
    flat = [axis for axis in fig.axes if axis.name != "3d"]
    assert flat[0].get_xlim() == (0, 1)
    assert flat[0].get_ylim() == (0, 2)


def test_surfaces_by_d(check):
    fig = check(decoding.surfaces_by_d(H, T_B, {d: values(d) for d in (1, 2, 5, 10, 50)}), axes=6)
    assert [a.get_title() for a in fig.axes[:5]] == [f"$d$ = {d}" for d in (1, 2, 5, 10, 50)]
    assert fig.axes[5].get_ylabel() == "FRS"


def points(models):
    one = pd.DataFrame(
        {
            "entropy": [0.1, 0.5, 0.3, 0.2],
            "t_b": [2.0, 0.4, np.inf, np.nan],
            "frs": [0.75, 0.4, 1.0, np.nan],
            "domain": ["geography", "arts", "arts", "arts"],
            "d": 1,
        }
    )
    return pd.concat([one.assign(model=m) for m in models], ignore_index=True)


def test_frs_scatter_marks_unbroken_facts(check, models):
    fig = check(decoding.frs_scatter(points(models)), axes=len(models))
    broken, unbroken = fig.axes[0].collections
    assert broken.get_offsets().tolist() == [[0.1, 0.75], [0.5, 0.4]]
    assert unbroken.get_offsets().tolist() == [[0.3, 1.0]]
    assert to_hex(broken.get_facecolor()[0]).upper() == style.looks(models)["gemma-3-270m"].colour
    assert fig.axes[0].get_title().endswith("n = 3, 1 undefined, 1 unbroken")
    assert fig.axes[0].get_ylabel() == "FRS ($d$ = 1)"


def test_frs_scatter_refuses_a_mixture_of_d():
    both = pd.concat([points(["a"]), points(["a"]).assign(d=2)])
    with pytest.raises(ValueError, match="select one"):
        decoding.frs_scatter(both)


def test_frs_by_d(check, models):
    table = pd.DataFrame([(m, d) for m in models for d in (1, 2, 50)], columns=["model", "d"])
    table = table.assign(mean=np.linspace(0.8, 0.4, len(table)), low=0.3, high=0.9, n=12)
    axis = check(decoding.frs_by_d(table, points(models)), axes=1).axes[0]
    for line, (model, look) in zip(axis.lines, style.looks(models).items(), strict=True):
        assert line.get_ydata() == pytest.approx(table.loc[table["model"] == model, "mean"])
        assert line.get_xdata() == pytest.approx([0, 1, 2], abs=0.4)  # categories, side by side
        assert line.get_color() == look.colour
    assert [text.get_text() for text in axis.get_xticklabels()] == ["1", "2", "50"]
    assert len(axis.collections[0].get_offsets()) == 3  # the undefined one is left out
    check(decoding.frs_by_d(table), axes=1)


def test_frs_density_keeps_the_gap_and_the_spike(check, models):
    table = pd.DataFrame({"domain": "arts", "frs": [0.0, 0.62, 0.8, 1.0, 1.0, np.nan]})
    table = pd.concat([table.assign(model=m) for m in models])
    axis = check(decoding.frs_density(table), axes=1).axes[0]
    shares, edges, _ = axis.patches[0].get_data()
    assert edges == pytest.approx(np.linspace(0, 1, 21))
    # 0 in the first bin, 0.8 below the gap, twice 1 in the last bin, nothing in between
    assert {i: s for i, s in enumerate(shares) if s} == pytest.approx(
        {0: 0.2, 12: 0.2, 15: 0.2, 19: 0.4}
    )
    assert "n = 5 facts" in axis.get_title()
    check(decoding.frs_density(table, gap=None), axes=1)


def test_frs_density_with_a_domain_that_one_model_lacks(check):
    table = points(["gemma-3-270m", "a"])
    table = table[(table["model"] == "a") | (table["domain"] == "arts")]
    fig = check(decoding.frs_density(table), axes=2)
    assert "n = 0 / 1 facts" in fig.axes[0].get_title()


def test_type_shares(check, models):
    types = ["Entity", "Numerical", "Human"]
    table = pd.DataFrame([(m, a) for m in models for a in types], columns=["model", "answer_type"])
    table = table.assign(mean=np.linspace(0.2, 0.8, len(table)), low=0.1, high=0.9, n=30)
    axis = check(decoding.type_shares(table), axes=1).axes[0]
    ticks = [text.get_text() for text in axis.get_xticklabels()]
    assert ticks == ["Numerical\n30", "Human\n30", "Entity\n30"]
    drawn = [line for line in axis.lines if line.get_marker() not in ("None", "_")]
    assert len(drawn[0].get_ydata()) == 3
    x_of_entity = drawn[0].get_xdata()[0]  # first row of the table
    assert round(x_of_entity) == 2
    assert drawn[0].get_ydata()[0] == pytest.approx(0.2)
    assert any(np.allclose(line.get_ydata(), 0.5) for line in axis.lines)
