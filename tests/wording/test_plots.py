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


def test_variance_is_stacked_with_all_relations_on_top(check, models, rows, entries):
    one = pd.DataFrame({
        "relation": ["a"] * 3 + ["b"] * 3 + ["all"] * 3, "source": ["fact", "wording", "interaction"] * 3,
        "share": [0.5, 0.2, 0.3, 0.55, -0.1, 0.55, 0.5, 0.0, 0.5], "n": [30] * 6 + [2] * 3,
    })  # fmt: skip
    table = pd.concat(one.assign(model=model) for model in models)
    fig = check(plots.variance(table), axes=len(models))
    assert rows(fig.axes[0]) == ["all", "a", "b"]
    assert entries(fig) == ["fact", "wording", "interaction"]
    for axis in fig.axes:
        widths = [[bar.get_width() for bar in bars] for bars in axis.containers]
        drawn = np.array(widths).T.tolist()
        assert drawn == [[0.5, 0, 0.5], pytest.approx([0.5, 0.2, 0.3]), [0.5, 0, 0.5]]
        assert axis.get_title().endswith("n = 30 facts a relation")


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
    table = intervals(model=models, relation=RELATIONS, n=12)
    table = table.rename(columns={"mean": "correctness"}).assign(
        consistency=1 - table["mean"], r=0.536
    )
    fig = check(plots.correctness_by_consistency(table, ["author", "sport"]), axes=len(models))
    for axis, (model, look) in zip(fig.axes, style.looks(models).items(), strict=True):
        own = table[table["model"] == model]
        expected = own[["consistency", "correctness"]].to_numpy().tolist()
        assert points(axis, look.colour).tolist() == expected
        assert axis.get_title().endswith("n = 12 questions a relation, r = 0.54")
        named = {text.get_text(): list(text.xy) for text in axis.texts}
        assert named == {"author": expected[0], "sport": expected[3]}


def test_labelled_pairs_are_counted_by_cosine(check, entries):
    table = pd.DataFrame({"label": ["same"] * 3 + ["different"] * 2, "measure": "as written"})
    table = table.assign(cosine=[0.99, 0.98, 0.4, 0.02, 0.41], label_id=list("abcde"))
    again = table.assign(measure="bare", cosine=1.0)
    fig = check(plots.labelled_pairs(pd.concat([table, again]), 0.8), axes=2)
    assert entries(fig) == ["same (n = 3)", "different (n = 2)", "cosine 0.8"]
    heights = [c.get_paths()[0].vertices[:, 1].max() for c in fig.axes[0].collections]
    assert sorted(heights) == [1, 2]
    assert fig.axes[0].lines[-1].get_xdata() == [0.8, 0.8]


def test_predictor_distributions(check, models, rows, entries):
    values = np.linspace(0, 1, 5)
    cells = product(models, enumerate(RELATIONS), ("cert", "log_popularity"))
    table = pd.concat(
        pd.DataFrame({"model": m, "relation": r, "predictor": p, "value": values + k})
        for m, (k, r), p in cells
    )
    table["group_id"] = [f"q{i}" for i in range(len(table))]
    fig = check(plots.predictor_distributions(table), axes=2)
    assert [axis.get_xlabel() for axis in fig.axes] == ["popularity, log(SPop)", "certainty, Cert"]
    assert rows(fig.axes[0])[2] == "place of birth"
    assert len(entries(fig)) == len(models)
    quartiles = np.vstack([line.get_xydata() for line in fig.axes[0].lines])
    for row in range(4):  # of each model the lower, the median and the upper
        here = quartiles[np.abs(quartiles[:, 1] - row) < 0.5, 0]
        assert sorted(set(here.round(6))) == [row + 0.25, row + 0.5, row + 0.75]


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


def test_calibration_says_the_questions_of_each_bin(check, models, points):
    one = pd.DataFrame({"bin": [1, 0], "predicted": [0.8, 0.1], "observed": [0.9, 0.2]})
    one = one.assign(low=[0.5, NAN], high=[1.0, NAN], n=[5, 70])
    table = pd.concat(one.assign(model=m) for m in models)
    fig = check(plots.calibration(table), axes=len(models))
    for axis, look in zip(fig.axes, style.looks(models).values(), strict=True):
        assert points(axis, look.colour).tolist() == [[0.1, 0.2], [0.8, 0.9]]
        says = {text.get_text(): text.get_position()[0] for text in axis.texts}
        assert says == {"70": 0.1, "5": 0.8}
        assert axis.lines[-1].get_xydata().tolist() == [[0, 0], [1, 1]]
        assert axis.get_title().endswith("n = 75 questions")


def test_risk_coverage(check, models, points, entries):
    one = pd.DataFrame({"coverage": [1.0, 0.5], "accuracy": [0.4, 0.7], "low": 0.3, "high": 0.8})
    parts = [one.assign(model=m, score=s) for m in models for s in ("SCons", "Cert")]
    table = pd.concat(parts).assign(n=191)
    fig = check(plots.risk_coverage(table), axes=len(models))
    assert entries(fig) == ["SCons", "Cert", "all answered"]
    for axis in fig.axes:
        for look in style.SERIES[:2]:
            assert points(axis, look.colour).tolist() == [[0.5, 0.7], [1, 0.4]]
        assert axis.lines[-1].get_ydata() == [0.4, 0.4]


def test_ladder_shows_differences_to_the_relation(check, intervals, rows, points, bars):
    rungs = ["majority", "relation alone", "Cert"]
    measures = ["accuracy", "brier", "auc", "auc_within"]
    table = intervals(model=[GEMMA], predictor=rungs, measure=measures, n=480)
    apart = np.arange(12) / 100
    table = table.assign(difference=apart, difference_low=apart - 0.1, difference_high=apart + 0.2)
    fig = check(plots.ladder(table), axes=3)
    titles = [axis.get_title().partition("\n")[0] for axis in fig.axes]
    assert titles == ["accuracy", "AUC", "AUC within relations"]
    assert rows(fig.axes[0]) == ["majority", "Cert"]
    assert points(fig.axes[1], style.BLUE) == pytest.approx(np.array([[0.02, 0], [0.10, 1]]))
    assert bars(fig.axes[1]) == pytest.approx(np.array([[-0.08, 0.22], [0, 0.30]]))


def test_equal_cost(check, intervals, models, traces, entries):
    table = intervals(model=models, predictor=["Cert", "SCons"], budget=[1, 2, 4, 11], n=480)
    fig = check(plots.equal_cost(table, "AUC"), axes=len(models))
    traces(fig, table, "budget", "model", models, by="predictor")
    assert entries(fig) == ["Cert", "SCons", "chance"]
    assert fig.axes[0].get_ylabel() == "AUC"
