from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from factrobust.plots import style, wording
from factrobust.statistics import interval_table

RELATIONS = [
    "author",
    "director",
    "composer",
    "genre",
    "producer",
    "screenwriter",
    "occupation",
    "place_of_birth",
    "father",
    "mother",
    "religion",
    "sport",
    "color",
    "capital",
    "capital_of",
    "country",
]


def answers(models, n=12, seed=0):
    """n questions a model and relation; later relations are easier and more consistent."""
    rng = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product(
        [models, RELATIONS, range(n)], names=["model", "relation", "group_id"]
    )
    table = index.to_frame(index=False)
    easy = table["relation"].map(RELATIONS.index) / 20
    table["group_id"] = table["relation"] + "/" + table["group_id"].astype(str)
    table["right"] = (rng.random(len(table)) < easy).astype(float)
    return table.assign(scons=np.clip(rng.normal(0.25 + easy, 0.2), 0, 1))


def by_relation(models, value):
    return interval_table(answers(models), ["model", "relation"], value, "group_id", n_boot=50)


def drawn(axis):
    return [line for line in axis.lines if line.get_marker() not in ("None", "", "|")]


def test_by_relation(check, models):
    table = by_relation(models, "right")
    fig = check(wording.by_relation(table.sample(frac=1, random_state=0), "correctness"), axes=1)
    axis, looks = fig.axes[0], style.looks(models)
    labels = [text.get_text() for text in axis.get_yticklabels()]
    means = table.groupby("relation")["mean"].mean()
    assert [means[label.replace(" ", "_")] for label in labels] == sorted(means, reverse=True)
    points = [line for line in drawn(axis) if len(line.get_xdata())]
    for line, (model, look) in zip(points, looks.items(), strict=True):
        own = table[table["model"] == model].set_index("relation")["mean"]
        at = [labels[round(y)].replace(" ", "_") for y in line.get_ydata()]
        assert list(line.get_xdata()) == [own[relation] for relation in at]
        assert (line.get_color(), line.get_marker()) == (look.colour, look.marker)
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("correctness", "relation")
    assert axis.get_title() == "n = 12 questions a relation"
    assert fig.get_figwidth() == style.SINGLE


def test_by_relation_in_the_order_of_another_figure(check):
    table = by_relation(["m"], "scons")
    fig = check(wording.by_relation(table, "consistency (SCons)", order=RELATIONS), axes=1)
    labels = [text.get_text() for text in fig.axes[0].get_yticklabels()]
    assert labels == [relation.replace("_", " ") for relation in RELATIONS]


def both(models):
    return by_relation(models, "right").merge(
        by_relation(models, "scons"), on=["model", "relation"], suffixes=("_correct", "_scons")
    )


def test_correctness_by_consistency(check, models):
    table = both(models)
    fig = check(wording.correctness_by_consistency(table), axes=len(models))
    for axis, (model, look) in zip(fig.axes, style.looks(models).items(), strict=True):
        own = table[table["model"] == model]
        (line,) = [line for line in axis.lines if line.get_marker() == look.marker]
        assert line.get_xydata().tolist() == own[["mean_scons", "mean_correct"]].values.tolist()
        names = {text.get_text(): text for text in axis.texts}
        assert sorted(names) == sorted(own["relation"].str.replace("_", " "))
        for row in own.itertuples(index=False):
            point = names[row.relation.replace("_", " ")].xy
            assert point == (row.mean_scons, row.mean_correct)
        assert axis.get_title() == f"{style.model_name(model)}\nn = 12 questions a relation"
        assert axis.get_xlabel() == "consistency (SCons)"
    assert fig.axes[0].get_ylabel() == "correctness"


def boxes(fig, axis):
    renderer = FigureCanvasAgg(fig).get_renderer()
    fig.draw(renderer)
    return [Text.get_window_extent(text, renderer) for text in axis.texts]


def test_names_of_points_hide_no_other_name(check):
    fig = check(wording.correctness_by_consistency(both(["m"])), axes=1)
    axis, found = fig.axes[0], boxes(fig, fig.axes[0])
    inside = axis.get_window_extent()
    for k, box in enumerate(found):
        assert not any(box.padded(-1).overlaps(other.padded(-1)) for other in found[:k])
        assert inside.padded(2).contains(*box.min)
        assert inside.padded(2).contains(*box.max)


def test_names_of_equal_points_move_away_on_lines(check):
    table = both(["m"])
    bounds = [
        "mean_correct",
        "low_correct",
        "high_correct",
        "mean_scons",
        "low_scons",
        "high_scons",
    ]
    table[bounds] = [0.5, 0.4, 0.6, 0.5, 0.4, 0.6]
    fig = check(wording.correctness_by_consistency(table), axes=1)
    axis, found = fig.axes[0], boxes(fig, fig.axes[0])
    assert not any(a.padded(-1).overlaps(b.padded(-1)) for a, b in pairwise(found))
    lined = [text for text in axis.texts if text.arrow_patch is not None]
    assert 0 < len(lined) < 16


def test_a_relation_without_a_mean_has_no_name(check):
    table = both(["m"])
    table.loc[0, ["mean_scons", "low_scons", "high_scons"]] = np.nan
    fig = check(wording.correctness_by_consistency(table), axes=1)
    assert len(fig.axes[0].texts) == 15


def test_a_missing_suffix_is_named():
    with pytest.raises(KeyError, match="mean_scons"):
        wording.correctness_by_consistency(by_relation(["m"], "right"))
    with pytest.raises(ValueError, match="several rows for model m, relation author"):
        wording.correctness_by_consistency(pd.concat([both(["m"])] * 2))
