from itertools import product

import numpy as np
import pandas as pd
import pytest

from factrobust.plots import style
from factrobust.wording import plots

RELATIONS = ["author", "capital", "place_of_birth", "sport"]
GEMMA = "gemma-3-270m"
NAN = float("nan")


def test_similarities_show_each_pair_of_answers(check, rows):
    pairs = pd.DataFrame(
        [(0, 1, "Li ma", "", 0.0), (0, 2, "Li ma", "x" * 70 + " y", 0.8), (1, 2, "", "x" * 70 + " y", -0.001)],
        columns=["first", "second", "answer_1", "answer_2", "cosine"],
    )  # fmt: skip
    table = pd.concat([pairs.assign(model=GEMMA), pairs.assign(model="a", cosine=1.0)])
    fig = check(plots.similarities(table), axes=2)
    assert [axis.get_title() for axis in fig.axes] == [
        "gemma-3-270m, mean of 3 pairs: 0.27", "a, mean of 3 pairs: 1.00",
    ]  # fmt: skip
    assert rows(fig.axes[0]) == ["Li ma  0", "(empty)  1", "…  2"]
    written = {text.get_position(): text.get_text() for text in fig.axes[0].texts}
    assert written == {(1, 0): "0.00", (2, 0): "0.80", (2, 1): "0.00"}
    drawn = fig.axes[0].collections[0].get_array().reshape(3, 3)
    assert drawn[0, 2] == pytest.approx(0.8)
    assert np.ma.getmaskarray(drawn)[[0, 1, 2, 2], [0, 0, 0, 2]].all()


def test_quality_on_one_line_a_relation(check, intervals, points, rows, entries):
    pairs = ["paraphrase", "other relation", "other subject"]
    table = intervals(pair=pairs, relation=RELATIONS)
    fig = check(plots.quality(table), axes=1)
    assert rows(fig.axes[0]) == ["sport", "place of birth", "capital", "author"]
    assert entries(fig) == pairs
    for pair, look in zip(pairs, style.SERIES, strict=False):
        own = table.loc[table["pair"] == pair, "mean"].tolist()
        assert points(fig.axes[0], look.colour).tolist() == [[x, 3 - k] for k, x in enumerate(own)]


def test_wordings_stand_in_the_row_of_their_relation(check, points, rows, entries):
    table = pd.DataFrame({"relation": ["a", "a", "a", "b", "b"], "variant": [0, 1, 2, 0, 1]})
    table = table.assign(model=GEMMA, mean=[0.1, 0.2, 0.3, 0.8, 1.0], n=30)
    table["low"], table["high"] = table["mean"] / 2, table["mean"] / 2 + 0.5
    fig = check(plots.by_wording(table), axes=1)
    assert rows(fig.axes[0]) == ["b", "a"]
    originals, paraphrases = (line.get_xydata() for line in fig.axes[0].lines)
    assert originals.tolist() == [[0.1, 1], [0.8, 0]]
    [intervals] = fig.axes[0].collections  # of the originals
    ends = [segment.ravel().tolist() for segment in intervals.get_segments()]
    assert ends == [pytest.approx([0.05, 1, 0.55, 1]), pytest.approx([0.4, 0, 0.9, 0])]
    assert paraphrases[:, 0].tolist() == [0.2, 0.3, 1.0]
    assert paraphrases[:, 1] == pytest.approx([1, 1, 0], abs=0.26)
    assert entries(fig) == ["original wording", "paraphrase"]
    assert fig.axes[0].get_title().endswith("n = 30 facts a relation")


def test_flips_have_a_panel_a_prompt_and_a_row_a_model(check, intervals, models, rows, entries):
    kinds = ["no word changed", "paraphrase"]
    table = intervals(prompt=["no example", "two examples"], model=models, kind=kinds, n=12)
    fig = check(plots.floor(table), axes=2)
    assert entries(fig) == kinds
    assert len(rows(fig.axes[0])) == len(models)


def test_relations_stand_by_their_mean_in_the_first_panel(check, intervals, models, rows, points):
    order = ["sport", "place_of_birth", "capital", "author"]
    first = intervals(model=models, relation=RELATIONS, n=12).assign(measure="right")
    other = first.assign(measure="alike", mean=first["mean"].to_numpy()[::-1])
    fig = check(plots.by_relation(pd.concat([first, other]), "measure", "mean"), axes=2)
    assert rows(fig.axes[0]) == [style.name(relation) for relation in order]
    for axis, table in zip(fig.axes, (first, other), strict=True):
        assert "n = 12 questions a relation" in axis.get_title()
        for model, look in style.looks(models).items():
            own = table[table["model"] == model].set_index("relation")["mean"]
            drawn = sorted(points(axis, look.colour).tolist(), key=lambda xy: xy[1])
            assert [x for x, _ in drawn] == own[order].tolist()


def test_correctness_by_consistency(check, models, intervals, points):
    table = intervals(model=models, measure=["SCons", "bare SCons"], relation=RELATIONS, n=12)
    table = table.rename(columns={"mean": "correctness"})
    table = table.assign(consistency=1 - table["correctness"])
    fig = check(plots.correctness_by_consistency(table, {"author": models[0]}), axes=2)
    for axis, measure in zip(fig.axes, ("SCons", "bare SCons"), strict=True):
        assert axis.get_title().startswith(measure)
        own = table[table["measure"] == measure]
        for model, look in style.looks(models).items():
            expected = own.loc[own["model"] == model, ["consistency", "correctness"]]
            assert points(axis, look.colour).tolist() == expected.to_numpy().tolist()
        assert [text.get_text() for text in axis.texts] == ["author"]


def test_within_and_between(check, models, points):
    one = pd.DataFrame(
        {"x": [0.1, 0.3, 0.2], "mean": [0.2, 0.6, 0.4], "low": 0.1, "high": 0.7, "n": 9}
    )
    cells = product(models, ("SCons", "Cert"), ("between", "within"))
    parts = [one.assign(model=m, predictor=p, level=level) for m, p, level in cells]
    fig = check(plots.within_and_between(pd.concat(parts)), axes=4)
    titles = [axis.get_title() for axis in fig.axes]
    assert titles == ["relations", "questions within relations"] * 2
    for axis in fig.axes:
        line = axis.lines[0].get_xydata()  # through the points, which lie on it
        assert line == pytest.approx(np.array([[0.1, 0.2], [0.3, 0.6]]))


def test_distributions_are_as_high_as_their_row(check, rows, entries):
    """Two equal heaps about 0 and 4: a density with two peaks, and least in the middle."""
    heaps = pd.DataFrame({"value": [-1.0, 0, 1, 3, 4, 5], "model": GEMMA, "predictor": "SCons"})
    one = heaps.assign(relation="author")
    table = pd.concat([one, one.assign(relation="sport", value=2.0)])  # one value: no line
    fig = check(plots.distributions(table), axes=1)
    [line] = fig.axes[0].lines
    x, y = line.get_xydata().T
    assert rows(fig.axes[0]) == ["author", "sport"]
    assert (x[0], x[-1]) == (-1, 5)
    assert y.min() == pytest.approx(-0.45)
    assert y == pytest.approx(y[::-1])  # the heaps mirror each other
    assert y[49] > y[20]
    assert entries(fig) == [GEMMA]


def test_binned_correctness(check):
    one = pd.DataFrame({"midpoint": [0.2, 0.6, 0.8], "correct": [0.0, 1.0, 0.5], "n": [5, 20, 4]})
    table = pd.concat(one.assign(model=GEMMA, relation=r, predictor="SPop") for r in RELATIONS)
    [axis] = check(plots.binned_correctness(table), axes=1).axes
    [points] = axis.collections
    expected = [[x, r + y] for r in range(4) for x, y in ((0.2, 0.4), (0.6, -0.4), (0.8, 0))]
    assert points.get_offsets().data == pytest.approx(np.array(expected))
    assert points.get_sizes().tolist() == [12.5, 50, 10] * 4  # areas
    # 0 at the bottom of a row, 1 at its top; a bin of four questions joins no line.
    lines = np.array([line.get_xydata() for line in axis.lines if len(line.get_xdata()) == 2])
    expected = [[[0.2, r + 0.4], [0.6, r - 0.4]] for r in range(4)]
    assert lines == pytest.approx(np.array(expected))


def test_ladder_shows_differences_to_the_relation(check, intervals, rows, points, bars):
    rungs = ["majority", "relation alone", "Cert"]
    measures = ["accuracy", "brier", "auc", "auc_within"]
    table = intervals(model=[GEMMA], predictor=rungs, measure=measures, n=480)
    apart = np.arange(12) / 100
    table = table.assign(difference=apart, difference_low=apart - 0.1, difference_high=apart + 0.2)
    fig = check(plots.ladder(table), axes=2)
    titles = [axis.get_title().partition("\n")[0] for axis in fig.axes]
    assert titles == ["Brier score (less is better)", "AUC within relations"]
    assert rows(fig.axes[0]) == ["majority", "Cert"]
    assert points(fig.axes[1], style.BLUE) == pytest.approx(np.array([[0.03, 0], [0.11, 1]]))
    assert bars(fig.axes[1]) == pytest.approx(np.array([[-0.07, 0.23], [0.01, 0.31]]))


def test_right_answers_by_views(check, intervals, models, entries):
    table = intervals(model=models, views=[10, 300, 9000], n=200)
    fig = check(plots.by_views(table), axes=1)
    assert fig.axes[0].get_xscale() == "log"
    assert len(entries(fig)) == len(models)
