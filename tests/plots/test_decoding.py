import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from factrobust.plots import decoding, style

DOMAINS = ["geography", "arts", "science-history"]
T = [0.2, 1.0, 1.6, 2.0]


def intervals(keys, n=40):
    """A table over all combinations of keys, each with a mean of its own."""
    table = pd.MultiIndex.from_product(keys.values(), names=keys.keys()).to_frame(index=False)
    mean = np.linspace(0.1, 0.9, len(table))
    return table.assign(mean=mean, low=mean - 0.05, high=mean + 0.08, n=n)


def marked_lines(axis):
    return [line for line in axis.lines if line.get_marker() not in ("None", "", None)]


def test_known_shares(check, models):
    by_domain = intervals({"model": models, "domain": DOMAINS})
    by_type = intervals({"model": models, "answer_type": ["Numerical", "Human"]})
    fig = check(decoding.known_shares(by_domain, by_type), axes=2)
    heights = sorted(bar.get_height() for bar in fig.axes[0].patches)
    assert heights == pytest.approx(sorted(by_domain["mean"]))
    ticks = [text.get_text() for text in fig.axes[0].get_xticklabels()]
    assert ticks[2] == "science and history\nn = 40"


def test_accuracy_by_temperature(check, models):
    table = intervals({"model": models, "domain": DOMAINS, "temperature": T})
    fig = check(decoding.accuracy_by_temperature(table.sample(frac=1, random_state=0)), axes=3)
    looks = style.looks(models)
    for axis, domain in zip(fig.axes, DOMAINS, strict=True):
        for line, model in zip(marked_lines(axis), looks, strict=True):
            rows = table[(table["model"] == model) & (table["domain"] == domain)]
            assert line.get_xdata() == pytest.approx(T)
            assert line.get_ydata() == pytest.approx(rows["mean"].to_numpy())
            assert to_hex(line.get_color()).upper() == looks[model].colour
            assert line.get_marker() == looks[model].marker
        assert "n = 40" in axis.get_title()
    assert fig.axes[0].get_xlabel() == "temperature $t$"
    assert fig.axes[0].get_ylabel() == "share of samples correct"


def test_accuracy_with_a_domain_that_one_model_lacks_and_missing_bounds(check):
    table = intervals({"model": ["gemma-3-270m", "a"], "domain": DOMAINS, "temperature": T})
    table = table[(table["model"] == "a") | (table["domain"] != "arts")]
    table.loc[table["model"] == "a", ["low", "high"]] = np.nan
    fig = check(decoding.accuracy_by_temperature(table), axes=3)
    assert "n = – / 40" in fig.axes[1].get_title()
    check(decoding.accuracy_by_temperature(table[table["domain"] == "arts"]), axes=1)


def test_exact_curves_are_dashed_in_the_models_colour(check):
    table = intervals({"model": ["gemma-3-270m"], "domain": ["arts"], "temperature": T})
    exact = intervals({"model": ["gemma-3-270m"], "domain": ["arts"], "temperature": [0.1, 0.5]})
    axis = check(decoding.accuracy_by_temperature(table, exact), axes=1).axes[0]
    (dashed,) = [line for line in axis.lines if line.get_linestyle() == "--"]
    assert dashed.get_ydata() == pytest.approx(exact["mean"].to_numpy())
    assert dashed.get_color() == marked_lines(axis)[0].get_color()


def test_certainty_bins_stack_right_and_wrong(check, models):
    one = pd.DataFrame(
        {"bin": [0.9, 0.9, 0.3], "correct": [True, False, True], "share": [0.5, 0.2, 0.3], "n": 50}
    )
    parts = [one.assign(model=m, temperature=t) for m in models for t in [*T, 0.4]]
    fig = check(decoding.certainty_bins(pd.concat(parts)), axes=4 * len(models))
    bars = fig.axes[0].patches
    assert len(bars) == 20
    right, wrong = bars[:10], bars[10:]
    assert [b.get_height() for b in right] == pytest.approx([0, 0, 0, 0.3, 0, 0, 0, 0, 0, 0.5])
    assert wrong[9].get_y() == pytest.approx(0.5)
    assert wrong[9].get_height() == pytest.approx(0.2)
    assert right[9].get_x() >= 0.9
    assert [a.get_title().split("\n")[0] for a in fig.axes[:4]] == [
        "$t$ = 0.2", "$t$ = 1", "$t$ = 1.6", "$t$ = 2",
    ]  # fmt: skip
    check(decoding.certainty_bins(pd.concat(parts), [0.4]), axes=len(models))


def test_entropy_by_breaking_puts_unbroken_facts_apart(check, models):
    points = pd.concat(
        pd.DataFrame(
            {"model": m, "entropy": [0.5, 0.3, 0.1, 0.2], "t_b": [0.4, 2.0, np.inf, np.nan]}
        )
        for m in models
    )
    means = intervals({"model": models, "t_b": [0.4, 2.0, np.inf]})
    correlations = intervals({"model": models}).assign(mean=-0.3, low=-0.5, high=0.1)
    fig = check(decoding.entropy_by_breaking(points, means, correlations), axes=len(models))
    axis = fig.axes[0]
    x, y = axis.collections[0].get_offsets().T.tolist()
    assert x == pytest.approx([0.4, 2.0, 2.4], abs=0.051)
    assert list(y) == [0.5, 0.3, 0.1]
    assert axis.get_xticklabels()[-1].get_text() == "> 2"
    assert axis.get_title().split("\n")[1] == "n = 3, 1 undefined, $r$ = −0.30 [−0.50, 0.10]"
    check(decoding.entropy_by_breaking(points, means), axes=len(models))


def test_one_answer(check):
    tokens = pd.DataFrame(
        {
            "temperature": [0.5, 0.5, 0.5, 1, 1, 1],
            "token": [" Paris", "\n", "北", "北", " Paris", "\n"],
            "probability": [0.9, 0.0995, 0.0005, 0.1, 0.6, 0.3],
        }
    )
    fig = check(decoding.one_answer(tokens, " Paris"), axes=2)
    first, second = ([bar.get_width() for bar in axis.patches] for axis in fig.axes)
    assert first == [0.9, 0.0995, 0.0005]
    assert second == [0.6, 0.3, 0.1]  # in the order of the first temperature
    labels = [text.get_text() for text in fig.axes[0].get_yticklabels()]
    assert labels == ["␣Paris", "↵", "\\u5317"]
    assert [text.get_text() for text in fig.axes[0].texts] == ["90.0%", "10.0%", "< 0.1%"]


def test_a_missing_column_or_an_empty_table_is_named():
    with pytest.raises(KeyError, match="'high'"):
        decoding.accuracy_by_temperature(
            intervals({"model": ["a"], "domain": ["arts"], "temperature": T}).drop(columns="high")
        )
    with pytest.raises(ValueError, match="no rows"):
        decoding.certainty_bins(
            pd.DataFrame(columns=["model", "temperature", "bin", "correct", "share", "n"])
        )
