import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from factrobust.decoding import plots
from factrobust.plots import style

T = [0.2, 1.0, 1.6, 2.0]
LOOK = style.looks(["gemma-3-270m"])["gemma-3-270m"]


def test_known_shares(check, intervals, models, shows, rows):
    by_domain = intervals(model=models, domain=["arts", "science-history", "geography"])
    by_type = intervals(model=models, answer_type=["Human", "Numerical"], n=30)
    axis = check(plots.known_shares(by_domain, by_type), axes=1).axes[0]
    assert rows(axis) == [
        "geography (n = 40)", "arts (n = 40)", "science and history (n = 40)",
        "Numerical (n = 30)", "Human (n = 30)",
    ]  # fmt: skip
    shows(axis, pd.concat([by_domain, by_type]), "mean")


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


def test_certainty_bins_stack_right_below_wrong_and_meet_at_the_accuracy(check, models, entries):
    one = pd.DataFrame({"bin": [0.9, 0.8, 0.5, 0.4, 0.3, 0.0, 0.9], "n": 50})
    one["correct"] = [True] * 4 + [False] * 3
    one["share"] = [0.2, 0.15, 0.05, 0.1, 0.25, 0.2, 0.05]
    half = one.query("correct").assign(temperature=0.4, share=0.25)  # lacks the wrong ones
    table = pd.concat([one.assign(temperature=2.0), half])
    table = pd.concat(table.assign(model=m) for m in models)
    fig = check(plots.certainty_bins(table), len(models))
    for axis in fig.axes:
        bars = np.array([bar.get_bbox().bounds for bar in axis.patches]).reshape(20, 2, 4)
        right = [0.2, 0.15, 0, 0, 0.05, 0.1, 0, 0, 0, 0]  # upwards, at t = 2: the surest first
        wrong = [0.2, 0, 0, 0.25, 0, 0, 0, 0, 0, 0.05]
        assert bars[:, 1, 3] == pytest.approx([*right, *wrong])
        cooler = [0.25 * (k in (0, 1, 4, 5)) for k in range(20)]
        assert bars[:, 0, 3] == pytest.approx(cooler)
        assert bars[:, 1, 1] == pytest.approx([0, *np.cumsum([*right, *wrong])[:-1]])
        assert bars[:, :, 0] == pytest.approx(np.tile([-0.45, 0.55], (20, 1)))
        (accuracy,) = axis.collections
        assert [line[0, 1] for line in accuracy.get_segments()] == pytest.approx([1, 0.5])
        shades = np.arange(1, 11) / 10
        colours = [to_rgba(style.RIGHT, alpha) for alpha in shades[::-1]]
        colours += [to_rgba(style.WRONG, alpha) for alpha in shades]
        drawn = np.array([bar.get_facecolor() for bar in axis.patches[::2]])
        assert drawn == pytest.approx(np.array(colours))
        assert axis.get_title().split("\n")[1] == "n = 50 samples"
        assert [tick.get_text() for tick in axis.get_xticklabels()] == ["0.4", "2"]
    assert entries(fig)[:3] == ["right, 0.9–1", "wrong, 0.9–1", "right, 0.5–0.6"]


def test_by_tokens_tells_lengths_apart_and_draws_their_bounds(check, intervals, models, entries):
    one = pd.DataFrame({"t_b": [0.4, 2.0, 1.0, np.nan], "entropy": [0.5, 0.3, 0.1, 0.2]})
    one = one.assign(tokens=[1, 2, 7, 1])
    facts = pd.concat(one.assign(model=model, fact_id=range(4)) for model in models)
    means = intervals(model=models, t_b=[0.3, 0.9])
    labels = {"labels": ("$t_b$", "$H$"), "shares": "y"}
    bound = lambda at, tokens: at * 0 + 1 / tokens  # noqa: E731
    fig = check(plots.by_tokens(facts, "t_b", "entropy", bound, means, **labels), axes=len(models))
    axis = fig.axes[0]
    points = [part.get_offsets().tolist() for part in axis.collections[:3]]
    assert points == [[[0.4, 0.5]], [[2.0, 0.3]], [[1.0, 0.1]]]
    bounds = [line for line in axis.lines if len(line.get_xdata()) == 100]
    assert [line.get_ydata()[0] for line in bounds] == pytest.approx([1, 1 / 2, 1 / 3])
    shades = [to_rgba(part.get_facecolor()[0][:3]) for part in axis.collections[:3]]
    assert [to_rgba(line.get_color()) for line in bounds] == shades
    (average,) = [line for line in axis.lines if line.get_marker() == "D"]
    own = means[means["model"] == next(iter(style.looks(models)))]
    assert average.get_xydata().T.tolist() == [[0.3, 0.9], own["mean"].tolist()]
    assert axis.get_title().split("\n")[1] == "n = 3, 1 undefined"
    assert entries(fig)[:4] == ["1 token", "2", "3 or more", "highest possible"]
    bare = check(plots.by_tokens(facts, "t_b", "entropy", **labels), axes=len(models))
    assert entries(bare) == ["1 token", "2", "3 or more"]


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


def test_frs_by_entropy_colours_t_b_and_marks_unbroken_facts_apart(check, models, points, entries):
    one = pd.DataFrame({
        "entropy": [0.5, 0.1, 0.2, 0.3, 0.9, np.nan], "frs": [0.4, 1, 0.7, 0.6, 0.1, np.nan],
        "t_b": [1, np.inf, 0.4, 1, 0.6, 1], "d": 1.0, "fact_id": range(6),
    })  # fmt: skip
    facts = pd.concat(one.assign(model=model) for model in models)
    fig = check(plots.frs_by_entropy(facts, "from $P_t$"), axes=len(models))
    for axis in fig.axes:
        assert points(axis, style.ORANGE).tolist() == [[0.1, 1]]
        x, y = axis.collections[0].get_offsets().T
        assert (x.tolist(), y.tolist()) == (one["entropy"][:5].tolist(), one["frs"][:5].tolist())
        kinds = {tuple(colour[:3]) for colour in axis.collections[0].get_facecolor()}
        assert len(kinds) == 4  # 0.4, 0.6, 1 and unbroken
        joined = next(line for line in axis.lines if len(line.get_xdata()) == 2)
        assert joined.get_xydata().tolist() == [[0.3, 0.6], [0.5, 0.4]]  # both break at 1
        assert tuple(joined.get_color()[:3]) == tuple(axis.collections[0].get_facecolor()[0][:3])
        assert axis.get_title().split("\n")[1] == "n = 5, 1 undefined, 1 unbroken"
    assert fig.axes[0].get_ylabel() == "FRS ($d$ = 1), $t_b$ from $P_t$"
    assert entries(fig)[:2] == ["$t_b$ 0.2–0.4", "$t_b$ 0.6–0.8"]


def test_frs_distribution_has_shares_of_steps_and_a_gap(check, models):
    frs = [0.2, 0.31, 0.32, 0.75, 0.8, 1.0, 1.0, np.nan]
    one = pd.DataFrame({"domain": "arts", "fact_id": range(8), "frs": frs})
    facts = pd.concat(one.assign(model=m) for m in models)
    axis = check(plots.frs_distribution(facts, "by samples"), axes=1).axes[0]
    assert axis.get_title().startswith("arts\nn = 7 facts")
    *steps, gap = axis.patches
    assert len(steps) == len(models)
    shares, edges, _ = steps[0].get_data()
    assert edges == pytest.approx(np.arange(22) / 20)
    # A score on an edge belongs to the step that ends there: 0.8 is the last below the gap.
    found = {
        round(float(edge), 2): 7 * share for edge, share in zip(edges[1:], shares, strict=True)
    }
    assert {k: v for k, v in found.items() if v} == pytest.approx(
        {0.2: 1, 0.35: 2, 0.75: 1, 0.8: 1, 1.05: 2}
    )
    assert (gap.get_x(), gap.get_x() + gap.get_width()) == pytest.approx((0.8, 1))


def test_agreement_draws_the_stairs_the_rings_and_what_lies_beyond(check, models):
    one = pd.DataFrame({"fact_id": range(4), "t_b_exact": [0.4, np.inf, 1, np.nan]})
    one = one.assign(t_b_sampled=[0.5, 1, 2.5, 1], detours=[True, False, False, True])
    table = pd.concat(one.assign(model=model) for model in models)
    fig = check(plots.agreement(table, [0.5, 1.0]), axes=len(models))
    axis = fig.axes[0]
    drawn = np.asarray(axis.collections[0].get_offsets())
    assert drawn == pytest.approx(np.array([[0.4, 0.5], [2.3, 1], [1, 2.3]]))
    rings, stairs = axis.lines[:2]
    assert rings.get_xydata().tolist() == [[0.4, 0.5]]
    # An exact t_b in (0.5, 1] is found at 1: the line at 0.7 stands at 1.
    assert stairs.get_xydata().tolist() == [[0, 0.5], [0.5, 0.5], [1, 1]]
    assert stairs.get_drawstyle() == "steps-pre"
    assert axis.get_title().endswith("n = 3, 1 undefined")
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("exact $t_b$", "sampled $t_b$")
