import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from scipy.special import expit

from factrobust.metrics import held_out, regression
from factrobust.metrics.regression import NUMERIC, fit
from factrobust.plots import style, wording

RELATIONS = ["author", "capital", "place_of_birth", "sport"]


def groups(models, n=15, seed=0):
    """n questions a model and relation; authors are never right, so that they are separated."""
    rng = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product(
        [models, RELATIONS, range(n)], names=["model", "relation", "group_id"]
    )
    table = index.to_frame(index=False)
    table["group_id"] = table["relation"] + "/" + table["group_id"].astype(str)
    table["log_popularity"] = rng.normal(8, 2, len(table))
    table[["scons", "cert"]] = rng.random((len(table), 2))
    right = rng.random(len(table)) < expit(4 * table["scons"] - 2)
    return table.assign(correct=right & (table["relation"] != "author"))


def lines(axis, colour):
    """The points drawn in a colour, in the order in which they were drawn."""
    marked = [k for k in axis.lines if k.get_marker() not in ("None", "", "|", None)]
    return [k for k in marked if k.get_color() == colour and len(k.get_xdata())]


def labels(axis):
    return [text.get_text() for text in axis.get_yticklabels()]


def values(model="gemma-3-270m"):
    names = ["scons", "cert", "log_popularity"]
    return groups([model]).melt(["model", "relation"], names, "predictor", value_name="value")


def test_predictor_distributions(check):
    table = values()
    fig = check(wording.predictor_distributions(table), axes=3)
    assert [axis.get_xlabel() for axis in fig.axes] == [
        "popularity, log(SPop)", "consistency, SCons", "certainty, Cert",
    ]  # fmt: skip
    assert labels(fig.axes[0]) == ["author", "capital", "place of birth", "sport"]
    for axis, predictor in zip(fig.axes, ["log_popularity", "scons", "cert"], strict=True):
        points = lines(axis, style.BLUE)
        assert len(points) == 4
        for y, (line, relation) in enumerate(zip(points, RELATIONS, strict=True)):
            own = table[(table["relation"] == relation) & (table["predictor"] == predictor)]
            assert list(line.get_xdata()) == list(own["value"])
            assert np.abs(line.get_ydata() - y).max() < 0.31
            assert not line.get_rasterized()
        medians = [line.get_xdata()[0] for line in axis.lines if line.get_linewidth() == 1.6]
        own = table[table["predictor"] == predictor]
        assert medians == pytest.approx(list(own.groupby("relation")["value"].median()))
        assert axis.get_title() == "n = 60 questions"


def test_missing_values_are_counted_and_an_empty_relation_has_a_row(check):
    table = values().query("predictor == 'scons'")
    table.loc[table["relation"] == "capital", "value"] = np.nan
    fig = check(wording.predictor_distributions(table), axes=1)
    assert fig.axes[0].get_title() == "n = 45 questions, 15 undefined"
    assert len(labels(fig.axes[0])) == 4
    assert [round(line.get_ydata().mean()) for line in lines(fig.axes[0], style.BLUE)] == [0, 2, 3]


def test_very_many_points_are_an_image(check):
    table = pd.concat([values().query("predictor == 'cert'")] * 51)
    fig = check(wording.predictor_distributions(table), axes=1)
    assert all(line.get_rasterized() for line in lines(fig.axes[0], style.BLUE))


def test_distributions_are_of_one_model():
    with pytest.raises(ValueError, match="one model, not of 2: select one"):
        wording.predictor_distributions(pd.concat([values(), values("b")]))


def test_binned_correctness(check, models):
    table = regression.binned_correctness(groups(models), bins=4)
    shuffled = table.sample(frac=1, random_state=0)
    fig = check(wording.binned_correctness(shuffled), axes=3)
    assert labels(fig.axes[0]) == ["author", "capital", "place of birth", "sport"]
    looks = style.looks(models)
    for axis, predictor in zip(fig.axes, NUMERIC, strict=True):
        for model, look in looks.items():
            for row, relation in enumerate(RELATIONS):
                own = table[(table["model"] == model) & (table["relation"] == relation)]
                own = own[own["predictor"] == predictor]
                line = lines(axis, look.colour)[row]
                assert list(line.get_xdata()) == sorted(own["midpoint"])
                # A right answer is 0.8 above a wrong one, and y points down.
                share = (row + 0.4 - line.get_ydata()) / 0.8
                assert share == pytest.approx(own["correct"].to_numpy())
    bars = fig.axes[0].collections[0].get_segments()
    first = table.query("predictor == 'SPop' and relation == 'author'")
    first = first[first["model"] == next(iter(looks))].iloc[0]
    ends = [
        first["midpoint"],
        0.4 - 0.8 * first["low"],
        first["midpoint"],
        0.4 - 0.8 * first["high"],
    ]
    assert bars[0].ravel().tolist() == pytest.approx(ends)
    scale = [(text.get_text(), text.get_position()[1]) for text in fig.axes[-1].texts[:2]]
    assert scale == [("1", pytest.approx(-0.31)), ("0", pytest.approx(0.31))]


def fitted(models):
    parts = [fit(part) for _, part in groups(models, n=40).groupby("model", sort=False)]
    return pd.concat([regression.coefficients(part) for part in parts])


def test_coefficients(check, models):
    table = fitted(models)
    fig = check(wording.coefficients(table), axes=4)
    assert [axis.get_title() for axis in fig.axes] == [
        "intercept", "popularity, log(SPop)", "consistency, SCons", "certainty, Cert",
    ]  # fmt: skip
    assert labels(fig.axes[0]) == ["author", "capital", "place of birth", "sport"]
    ends = ("", ":log_SPop", ":SCons", ":Cert")
    for axis, end in zip(fig.axes, ends, strict=True):
        for model, look in style.looks(models).items():
            own = table[table["model"] == model].set_index("term")["conditional"]
            filled, hollow = lines(axis, look.colour)
            assert list(filled.get_xdata()) == [
                own[f"QCat[T.{name}]{end}"] for name in RELATIONS[1:]
            ]
            assert list(hollow.get_xdata()) == [own[end.strip(":") or "intercept"]]  # of authors
            assert hollow.get_mfc() == "white"
            assert to_hex(filled.get_mfc()).upper() == look.colour
    entries = [text.get_text() for text in fig.legends[0].get_texts()]
    assert entries[0] == "gemma-3-270m (n = 160)"
    assert entries[-1] == "finite by the penalty only"


def test_coefficients_by_maximum_likelihood_and_without_relations(check):
    one = groups(["m"], n=40).query("relation != 'author'")
    table = regression.coefficients(fit(one, NUMERIC))
    fig = check(wording.coefficients(table), axes=4)
    assert labels(fig.axes[0]) == ["all"]
    assert len(fig.legends[0].get_texts()) == 1
    (line,) = lines(fig.axes[2], style.looks(["m"])["m"].colour)
    own = table[table["term"] == "SCons"].iloc[0]
    assert list(line.get_xdata()) == [own["coefficient"]]
    (bar,) = fig.axes[2].collections[0].get_segments()
    assert bar[:, 0].tolist() == pytest.approx([own["low"], own["high"]])


SETS = (("QCat", *NUMERIC), ("SCons",))


def test_predictive_gain(check, models):
    table = held_out.ablation(groups(models), SETS, n_boot=50)
    fig = check(wording.predictive_gain(table), axes=2)
    assert labels(fig.axes[0]) == ["QCat, SPop, SCons, Cert", "SCons"]
    for axis, kind in zip(fig.axes, ("all", "correctness > 0.1"), strict=True):
        assert axis.get_title().startswith(f"categories: {kind}\nn = ")
        texts = iter(axis.texts)
        for model, look in style.looks(models).items():
            own = table[(table["model"] == model) & (table["categories"] == kind)]
            (line,) = lines(axis, look.colour)
            assert list(line.get_xdata()) == list(own["accuracy"])
            ticks = [k for k in axis.lines if k.get_marker() == "|" and len(k.get_xdata()) == 2]
            (base,) = [k for k in ticks if k.get_color() == look.colour]
            assert list(base.get_xdata()) == list(own["baseline"])
            assert list(base.get_ydata()) == list(line.get_ydata())
            for gain in own["gain"]:
                assert next(texts).get_text() == f"{gain:+.1f}%".replace("-", "−")


def test_a_set_without_a_regression_is_a_dash(check):
    wrong = groups(["m"]).assign(correct=False)
    table = held_out.ablation(wrong, SETS, n_boot=50).query("categories == 'all'")
    fig = check(wording.predictive_gain(table), axes=1)
    assert [text.get_text() for text in fig.axes[0].texts] == ["–", "–"]
    assert fig.axes[0].get_title() == "categories: all\nn = 0 test questions"


def test_two_splits_are_not_one_figure():
    table = held_out.performance(groups(["m"]), n_boot=50)
    with pytest.raises(ValueError, match="several rows for model m, predictors QCat, SPop"):
        wording.predictive_gain(pd.concat([table, table]))
