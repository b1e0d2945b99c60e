import numpy as np
import pandas as pd
import pytest

from factrobust.plots import decoding, style

T = np.array([0.1, 0.5, 1.0, 2.0, 10.0])


def curve_tables(models, facts=("a", "b")):
    rows = [(m, f) for m in models for f in facts]
    curves = pd.concat(
        pd.DataFrame({"model": m, "fact_id": f, "temperature": T, "logprob": -T * (k + 1) / 4})
        for k, (m, f) in enumerate(rows)
    )
    breaking = pd.DataFrame(rows, columns=["model", "fact_id"]).assign(t_b=1.5)
    breaking.loc[1, "t_b"] = np.inf
    samples = breaking.drop(columns="t_b").assign(temperature=1.0, mean=0.6, low=0.3, high=0.8)
    return curves, breaking, samples


def test_curves(check, models):
    curves, breaking, samples = curve_tables(models)
    axis = check(decoding.curves(curves, breaking, samples), axes=len(models)).axes[0]
    drawn = [line for line in axis.lines if len(line.get_xdata()) == len(T)]
    assert drawn[0].get_ydata() == pytest.approx(np.exp(-T / 4))
    assert axis.get_xscale() == "log"
    marked = [line for line in axis.lines if line.get_markersize() == 7]
    assert [list(line.get_xdata()) for line in marked] == [[1.5], []]  # inf is not marked
    check(decoding.curves(curves.assign(label="What costs 5$?"), breaking), axes=len(models))


def test_curves_of_too_many_facts_are_refused():
    curves, breaking, _ = curve_tables(["m"], facts="abcdefgh")
    with pytest.raises(ValueError, match="at most 7"):
        decoding.curves(curves, breaking)


def test_agreement_draws_what_lies_beyond_in_a_band(check, models):
    one = pd.DataFrame(
        {"sampled": [0.4, 2.0, np.inf, np.inf, np.nan], "exact": [0.3, 2.5, 1.9, np.inf, 1.0]}
    )
    table = pd.concat([one.assign(model=m) for m in models])
    fig = decoding.agreement(
        table, "sampled", "exact", ("sampled $t_b$", "exact $t_b$"), top=2.0, jitter=0.06
    )
    axis = check(fig, axes=len(models)).axes[0]
    x, y = axis.collections[0].get_offsets().T.tolist()
    assert x == pytest.approx([0.4, 2.0, 2.26, 2.26], abs=0.031)
    assert y[:3] == pytest.approx([0.3, 2.26, 1.9])
    assert y[3] == pytest.approx(2.26, abs=0.07)
    assert axis.get_xticklabels()[-1].get_text() == "> 2"
    assert axis.get_xlim() == axis.get_ylim()
    assert axis.get_title().endswith("n = 4, 1 undefined")


def test_agreement_of_scores_draws_them_as_they_are(check):
    table = pd.DataFrame({"model": "m", "a": [0.2, 1.0], "b": [0.3, 0.9]})
    axis = check(decoding.agreement(table, "a", "b", ("a", "b"), limits=(0, 1)), axes=1).axes[0]
    assert axis.collections[0].get_offsets().tolist() == [[0.2, 0.3], [1.0, 0.9]]
    assert list(axis.lines[0].get_xdata()) == list(axis.lines[0].get_ydata()) == [0, 1]
    check(decoding.agreement(table, "a", "b", ("a", "b")), axes=1)


def test_detours(check, models):
    table = pd.concat(
        pd.DataFrame(
            {"model": m, "temperature": T[:3], "mean": [0, 0.1, 0.3], "low": 0, "high": 0.4}
        )
        for m in models
    ).assign(n=[40, 30, 9] * len(models))
    fig = check(decoding.detours(table), axes=1)
    looks = style.looks(models)
    for line, look in zip(fig.axes[0].lines, looks.values(), strict=True):
        assert list(line.get_ydata()) == [0, 0.1, 0.3]
        assert line.get_color() == look.colour
    assert fig.legends[0].get_texts()[0].get_text() == "gemma-3-270m (n = 9–40)"


def test_beyond_two_counts_facts_that_never_break(check, models):
    one = pd.DataFrame(
        {
            "t_b": [1.0, 3.0, np.inf, 0.5],
            "frs": [0.6, 0.75, 0.9, 0.5],
            "frs_published": [0.6, 1.0, 1.0, 0.5],
        }
    )
    table = pd.concat([one.assign(model=m) for m in models])
    left, right = check(decoding.beyond_two(table), axes=2).axes
    line = left.lines[0]
    assert list(line.get_xdata())[:4] == [0, 0.5, 1.0, 3.0]
    assert list(line.get_ydata()) == [0, 0.25, 0.5, 0.75, 0.75]  # one in four never breaks
    published = right.lines[1]
    assert list(published.get_xdata())[1:5] == [0.5, 0.6, 1.0, 1.0]
    assert line.get_color() == published.get_color() == style.looks(models)["gemma-3-270m"].colour


def test_beyond_two_without_any_break(check):
    table = pd.DataFrame({"model": ["m"], "t_b": [np.inf], "frs": [1.0], "frs_published": [1.0]})
    check(decoding.beyond_two(table), axes=2)


def test_cost_bars(check, models):
    table = pd.DataFrame({"method": ["10 × 10 samples", "exact"], "tokens": [5000, 60]})
    axis = check(decoding.cost_bars(table), axes=1).axes[0]
    assert [bar.get_width() for bar in axis.patches] == [5000, 60]
    assert [text.get_text() for text in axis.texts] == ["5,000", "60"]
    assert axis.get_xscale() == "log"
    split = pd.concat([table.assign(model=m) for m in models])
    assert len(check(decoding.cost_bars(split), axes=1).axes[0].patches) == 2 * len(models)
