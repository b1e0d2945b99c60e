"""Figures of part 2, which nbval compares by their data: what only many models show."""

import pandas as pd

from factrobust.temporal import plots

SIZES = ("2b", "2b-it", "9b", "9b-it", "27b", "27b-it")


def test_many_models_have_panels_a_family_and_stand_at_their_dates():
    rows = [
        {"model": f"{family}-2-{size}", "precision": precision, "position": position}
        for precision in ("day", "year")
        for family in ("gemma", "Llama")
        for size in SIZES
        for position in (0, 1)
    ]
    table = pd.DataFrame(rows).assign(mean=0.5, low=0.4, high=0.6, n=12)
    figure = plots.logprob_by_position(table)
    assert [axis.get_title() for axis in figure.axes] == [
        "Llama, year",
        "Llama, day",
        "gemma, year",
        "gemma, day",
    ]
    for axis in figure.axes:
        points = [x for line in axis.containers for x in line.lines[0].get_xdata()]
        assert len(points) == 2 * len(SIZES)
        assert max(min(abs(x), abs(x - 1)) for x in points) < 0.25
