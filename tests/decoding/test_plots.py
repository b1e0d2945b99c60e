import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from factrobust.decoding import plots
from factrobust.plots import style

T = [0.2, 1.0, 1.6, 2.0]
LOOK = style.looks(["gemma-3-270m"])["gemma-3-270m"]


def test_known_by_relation_has_a_panel_a_domain_and_its_own_rows(
    check, intervals, models, shows, rows
):
    arts = intervals(model=models, domain=["arts"], relation=["author", "film_year"])
    places = intervals(model=models, domain=["geography"], relation=["capital"])
    fig = check(plots.known_by_relation(pd.concat([arts, places])), axes=2)
    assert [axis.get_title() for axis in fig.axes] == ["geography", "arts"]
    assert [rows(axis) for axis in fig.axes] == [
        ["capital"],
        ["film year", "author"],
    ]  # the best first
    shows(fig.axes[0], places, "mean")
    shows(fig.axes[1], arts, "mean")


def test_who_knows_stacks_what_no_model_knows_at_the_right(check, rows, entries):
    kinds = ["the largest and smaller ones", "only the largest", "only smaller ones", "no model"]
    shares = {"author": [0.1, 0.3, 0.2, 0.4], "capital": [0.6, 0.2, 0.1, 0.1]}
    table = [
        (relation, *pair) for relation, of in shares.items() for pair in zip(kinds, of, strict=True)
    ]
    fig = check(plots.who_knows(pd.DataFrame(table, columns=["relation", "kind", "mean"])), axes=1)
    [axis] = fig.axes
    assert rows(axis) == ["capital", "author"]
    assert entries(fig) == kinds
    bars = np.array([bar.get_bbox().bounds for bar in axis.patches]).reshape(4, 2, 4)
    assert bars[:, 1, 2] == pytest.approx(shares["author"])
    assert bars[:, 0, 0] == pytest.approx([0, 0.6, 0.8, 0.9])


def test_one_answer(check, rows, entries):
    names = ["Paris", "the nine next", "all other tokens"]
    shares = pd.DataFrame([[0.1, 0.3, 0.6], [0.9, 0.07, 0.03]], [2.0, 0.5], names)
    fig = check(plots.one_answer(shares), axes=1)
    bars = [bar.get_bbox().bounds[::2] for bar in fig.axes[0].patches]  # left, width
    expected = [(0, 0.9), (0, 0.1), (0.9, 0.07), (0.1, 0.3), (0.97, 0.03), (0.4, 0.6)]
    assert np.array(bars) == pytest.approx(np.array(expected))
    assert rows(fig.axes[0]) == ["$t$ = 0.5", "$t$ = 2"]
    assert entries(fig) == names
    assert fig.axes[0].patches[0].get_facecolor() == to_rgba(style.RIGHT)


def test_one_curve(check, points, entries):
    curve = pd.DataFrame({"temperature": [4, 1, 2], "logprob": np.log([0.1, 0.9, 0.3])})
    curve["model"] = "m"
    samples = pd.DataFrame({"temperature": [1, 2], "mean": [0.8, 0.4], "n": 10})
    samples = samples.assign(low=samples["mean"] - 0.2, high=samples["mean"] + 0.1)
    axis = check(fig := plots.one_curve(curve, 1.5, samples), axes=1).axes[0]
    line, *_ = axis.lines
    assert line.get_xdata().tolist() == [1, 2, 4]
    assert line.get_ydata() == pytest.approx([0.9, 0.3, 0.1])
    assert points(axis, style.looks(["m"])["m"].colour).tolist() == [[1, 0.8], [2, 0.4]]
    assert points(axis, "black").tolist() == [[1.5, 0.5]]
    assert entries(fig) == ["exact $P_t$", "exact $t_b$ = 1.50", "10 samples, 95% interval"]


def test_surfaces_have_entropy_along_x_and_say_their_values(check):
    h, t = (x.ravel() for x in np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 2, 11)))
    score = 0.4 * (1 - h) + 0.2 * t  # from 0 to 0.8
    table = pd.DataFrame({"entropy": h, "t_b": t, "f": 5 * score - 1, "frs": score})
    fig = check(plots.surfaces(table, {"f": "$f$", "frs": "FRS"}), axes=2)
    assert [axis.get_title() for axis in fig.axes] == ["$f$", "FRS"]
    assert [(axis.get_xlim(), axis.get_ylim()) for axis in fig.axes] == [((0, 1), (0, 2))] * 2
    for axis, low, high in zip(fig.axes, (-1, 0), (3, 0.8), strict=True):
        filled, lines = axis.collections
        assert filled.levels == pytest.approx(np.linspace(low, high, 9))
        at = dict(zip(lines.levels.round(1), lines.get_paths(), strict=True))
        x, y = at[round(low + (high - low) / 4, 1)].vertices.T  # a score of 0.2
        assert y == pytest.approx(2 * x - 1)


def test_certainty_bins_stack_right_before_wrong_and_meet_at_the_accuracy(check, models, entries):
    one = pd.DataFrame({"bin": [0.9, 0.8, 0.5, 0.3, 0.0, 0.9], "n": 50})
    one["correct"] = [True] * 3 + [False] * 3
    one["share"] = [0.25, 0.15, 0.1, 0.25, 0.2, 0.05]
    half = one.query("correct").assign(temperature=0.4, share=0.25)  # lacks the wrong ones
    table = pd.concat([one.assign(temperature=2.0), half])
    table = pd.concat(table.assign(model=m) for m in models)
    fig = check(plots.certainty_bins(table), len(models))
    kinds = ["right, 0.9–1.0", "right, 0.8–0.9", "right, 0.5–0.6"]
    kinds += ["wrong, 0.0–0.1", "wrong, 0.3–0.4", "wrong, 0.9–1.0"]
    assert entries(fig) == kinds  # none that has no sample
    for axis in fig.axes:
        bars = np.array([bar.get_bbox().bounds for bar in axis.patches]).reshape(6, 2, 4)
        assert bars[:, 0, 2] == pytest.approx([0.25, 0.15, 0.1, 0.2, 0.25, 0.05])  # at t = 2
        assert bars[:, 1, 2] == pytest.approx([0.25, 0.25, 0.25, 0, 0, 0])
        assert bars[3, 0, 0] == pytest.approx(0.5)  # where right ones end: the accuracy
        assert bars[:, 0, 0] == pytest.approx([0, 0.25, 0.4, 0.5, 0.7, 0.95])
        colours = [bar.get_facecolor() for bar in axis.patches[::2]]
        assert colours[0] == pytest.approx(to_rgba(style.RIGHT, 1.0))
        assert colours[3] == pytest.approx(to_rgba(style.WRONG, 0.1))
        assert axis.get_title().split("\n")[1] == "n = 50 samples"


def offsets(axis):
    """The points of each kind that an axis shows, and their colours."""
    kinds = [kind for kind in axis.collections if len(kind.get_offsets())]
    return [kind.get_offsets().tolist() for kind in kinds], [k.get_facecolor()[0] for k in kinds]


def test_by_tokens_tells_lengths_apart(check, models, entries):
    one = pd.DataFrame({"t_b": [0.4, 2.0, 1.0, np.nan], "entropy": [0.5, 0.3, 0.1, 0.2]})
    one = one.assign(tokens=[1, 2, 7, 1])
    facts = pd.concat(one.assign(model=model, fact_id=range(4)) for model in models)
    labels = {"labels": ("$t_b$", "$H$"), "shares": "y"}
    fig = check(plots.by_tokens(facts, "t_b", "entropy", **labels), axes=len(models))
    for axis in fig.axes:
        points, colours = offsets(axis)
        assert points == [[[0.4, 0.5]], [[2.0, 0.3]], [[1.0, 0.1]]]
        assert len({tuple(colour) for colour in colours}) == 3
        assert axis.get_title().split("\n")[1] == "n = 3 facts"
    assert entries(fig) == ["1 token", "2", "3 or more"]


def test_frs_by_entropy_colours_t_b_and_marks_unbroken_facts_apart(check, models, entries):
    one = pd.DataFrame({
        "entropy": [0.5, 0.1, 0.2, 0.3, 0.9, np.nan], "frs": [0.4, 1, 0.7, 0.6, 0.1, np.nan],
        "t_b": [1, np.inf, 0.4, 1.2, 2.0, 1], "d": 1.0, "fact_id": range(6),
    })  # fmt: skip
    facts = pd.concat(one.assign(model=model) for model in models)
    fig = check(plots.frs_by_entropy(facts, "from $P_t$"), axes=len(models))
    for axis in fig.axes:
        points, colours = offsets(axis)
        # 0.4; 1 and 1.2, which are one class; 2; and unbroken.
        assert points == [[[0.2, 0.7]], [[0.5, 0.4], [0.3, 0.6]], [[0.9, 0.1]], [[0.1, 1]]]
        assert colours[-1][:3] == pytest.approx(to_rgba(style.ORANGE)[:3])
        assert axis.get_title().split("\n")[1] == "n = 5 facts"
    assert fig.axes[0].get_ylabel() == "FRS ($d$ = 1), $t_b$ from $P_t$"
    assert entries(fig)[:2] == ["$t_b$ 0.2–0.4", "$t_b$ 0.6–0.8"]


def test_the_dial_shows_lines_by_d_and_each_column_at_its_sharpness(check, models, entries):
    s = np.geomspace(0.5, 8, 9)
    rows = [
        (m, d, at, 0.5 + 0.1 * np.log2(at) - d / 100) for m in models for d in (1, 5) for at in s
    ]
    dialled = pd.DataFrame(rows, columns=["model", "d", "s", "frs"])
    published = pd.DataFrame({"model": ["A", "A", "GPT", "GPT"], "d": [1, 5, 1, 5]})
    published["frs"] = [0.6, 0.55, 0.7, 0.66]
    columns = pd.DataFrame([(m, c, at) for m in models for c, at in (("A", 2.0), ("GPT", 4.0))])
    columns = columns.set_axis(["model", "column", "s"], axis=1).assign(
        miss=[0.01, 0.02] * len(models)
    )
    fig = check(plots.dial(dialled, columns, published), len(models))
    for axis in fig.axes:
        assert axis.get_title().endswith("\nlargest miss 0.020")
        one, points_of_one, five, points_of_five, at_1 = axis.lines
        assert one.get_ydata() == pytest.approx(0.5 + 0.1 * np.log2(s) - 0.01)
        assert five.get_ydata() == pytest.approx(0.5 + 0.1 * np.log2(s) - 0.05)
        assert points_of_one.get_xydata().tolist() == [[2, 0.6], [4, 0.7]]
        assert points_of_five.get_xydata().tolist() == [[2, 0.55], [4, 0.66]]
        assert points_of_five.get_markeredgecolor() == five.get_color() != one.get_color()
        assert at_1.get_xdata() == [1, 1]
        assert [text.get_text().strip() for text in axis.texts] == ["A", "GPT"]
    assert entries(fig) == ["$d$ = 1", "$d$ = 5", "the paper's table 1"]
