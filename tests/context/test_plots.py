from itertools import product

import numpy as np
import pandas as pd
import pytest

from factrobust.context import plots
from factrobust.context.meter import ABOUT
from factrobust.context.rules import CAUSES
from factrobust.plots import style

SHARES = {"parametric": 0.25, "contextual": 0.6, "other": 0.1, "none": 0.05}


def sources(models, **keys):
    """Shares of all sources for each model and key; those of the last model without empty ones."""
    cells = product(models, *keys.values(), SHARES)
    table = pd.DataFrame(cells, columns=["model", *keys, "source"])
    share = table["source"].map(SHARES)
    return table.assign(share=share, low=share - 0.05, high=share + 0.1, n=40)


def test_source_shares_are_stacked_with_the_outer_intervals(check, models, rows, entries):
    fig = check(plots.source_shares(sources(models)), axes=1)
    axis = fig.axes[0]
    names = [f"{style.model_name(m)} (n = 40)" for m in models]
    assert rows(axis) == names
    assert entries(fig) == ["parametric", "other", "none", "contextual"]
    first = [bar for bar in axis.patches if bar.get_y() < 0]
    assert [bar.get_x() for bar in first] == pytest.approx([0, 0.25, 0.35, 0.4])
    assert [text.get_text() for text in axis.texts if text.get_text()][:1] == ["25%"]
    memory, read = (part.get_segments()[0] for part in axis.collections)
    assert memory[:, 0] == pytest.approx([0.2, 0.35])  # read from the left
    assert read[:, 0] == pytest.approx([0.3, 0.45])  # 1 - 0.7 and 1 - 0.55, from the right
    assert memory[0, 1] < 0 < read[0, 1]


def test_causes(check, models, rows, entries):
    cells = product(models, ["true", "missing"], plots.CAUSES)
    table = pd.DataFrame(cells, columns=["model", "context", "cause"]).assign(share=0.2, n=40)
    fig = check(plots.causes(table), axes=len(models))
    assert entries(fig) == list(plots.CAUSES)
    assert set(plots.CAUSES) == set(CAUSES)
    assert rows(fig.axes[0]) == ["true context (n = 40)", "missing context (n = 40)"]


def test_the_copy_meter(check, models, intervals, points, rows, entries):
    kinds = ["asserted, other", "asserted, question"]
    table = intervals(model=models, sentence=kinds, about=list(ABOUT))
    fig = check(plots.copy_meter(table, kinds[::-1]), axes=len(models))
    assert entries(fig) == list(ABOUT)
    assert rows(fig.axes[0]) == kinds[::-1]
    names = [style.model_name(model) for model in style.looks(models)]
    assert [axis.get_title() for axis in fig.axes] == names
    own = table[(table["model"] == models[0]) & (table["about"] == "nonsense")]
    axis = next(a for a in fig.axes if a.get_title() == style.model_name(models[0]))
    drawn = points(axis, plots.ABOUT["nonsense"].colour)
    assert sorted(drawn[:, 0]) == pytest.approx(sorted(own["mean"]))


def test_boxes_are_the_quantiles_of_the_table(check, models, rows):
    cells = pd.DataFrame(product(models, ["person", "city"]), columns=["model", "category"])
    ends = {"5%": 1.1, "25%": 1.2, "50%": 1.5, "75%": 2.0, "95%": 4.0}
    table = cells.assign(**ends, count=7)
    table.loc[table["category"] == "city", ["5%", "95%"]] = np.nan  # as a paper prints it
    fig = check(plots.boxes(table, "category"), axes=len(models))
    axis = fig.axes[0]
    assert rows(axis) == ["person", "city"]
    medians = [line for line in axis.lines if line.get_xdata().tolist() == [1.5, 1.5]]
    assert len(medians) == 2
    whiskers = {tuple(line.get_xdata().tolist()) for line in axis.lines}
    assert {(1.2, 1.1), (2.0, 4.0), (1.2, 1.2), (2.0, 2.0)} <= whiskers
    assert axis.get_xscale() == "log"


def test_steps_are_in_their_places():
    fig = plots.steps({name: f"what is {name}" for name in plots.PLACES})
    said = {text.get_text(): text.get_position() for text in fig.axes[0].texts if text.get_text()}
    assert said == {f"what is {name}": place for name, place in plots.PLACES.items()}


def test_worked_example_shows_bits(check, points, rows):
    bits = {"counterfactual": [0, 1, 2], "parametric": [2, 1]}  # with context; without, twice these
    cells = [
        (answer, within, i + 1, f" t{i}", 2.0 ** -(b if within else 2 * b))
        for answer, own in bits.items() for within in (True, False) for i, b in enumerate(own)
    ]  # fmt: skip
    columns = ["answer", "context", "position", "token", "probability"]
    tokens = pd.DataFrame(cells, columns=columns)
    fig = check(plots.worked_example(tokens.sample(frac=1, random_state=0)), axes=1)
    (axis,) = fig.axes
    names = ["parametric: ␣t0", "␣t1", "counterfactual: ␣t0", "␣t1", "␣t2"]
    assert rows(axis) == names
    looks = style.series([text.get_text() for text in fig.legends[0].get_texts()])
    for prompt, times in (("without context", 2), ("with the counterfactual", 1)):
        drawn = sorted(points(axis, looks[prompt].colour).tolist(), key=lambda point: point[1])
        assert [x for x, _ in drawn] == pytest.approx([times * b for b in (2, 1, 0, 1, 2)])
