"""Win rates by distance, boundaries and decoded years, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from factrobust.datasets.dates import grid
from factrobust.metrics import graded
from factrobust.metrics.time import matches

CELL = {"model": "m", "prompt_format": "question", "fact_id": "f", "precision": "year"}
# Valid from 2000 to 2004 (five years about 2002.5): two years before, three correct, two after.
DATES = pd.DataFrame(
    {
        "date": ["1980", "1998", "2001", "2002", "2003", "2006", "2012"],
        "year": [1980, 1998, 2001, 2002, 2003, 2006, 2012],
        "alpha": [-4.4, -0.8, -0.2, 0.0, 0.2, 0.8, 2.0],
        "years_off": [-19.5, -1.5, 0, 0, 0, 1.5, 7.5],
        "label": ["incorrect"] * 2 + ["correct"] * 3 + ["incorrect"] * 2,
    }
)


def scores(*values: float, **columns: object) -> pd.DataFrame:
    return DATES.assign(**CELL | {"logprob": values, "freed": values} | columns)


def test_incorrect_dates_by_side_and_distance() -> None:
    table = graded.beaten(scores(-9, -2, -1, -2, -3, -1, -8)).sort_values("date")
    assert table["date"].tolist() == ["1980", "1998", "2006", "2012"]
    assert table["won"].tolist() == pytest.approx([1, 1 / 3, 0, 1])
    assert table["drawn"].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 0])
    assert table["side"].tolist() == ["before", "before", "after", "after"]
    assert table["years"].tolist() == ["5 to 20", "up to 5", "up to 5", "5 to 20"]
    assert table["lengths"].tolist() == ["over 3", "up to 1", "up to 1", "1 to 3"]
    year = matches(scores(-9, -2, -1, -2, -3, -1, -8)).iloc[0]
    assert table["won"].mean() == pytest.approx(year["win_rate"])  # each has as many matches
    without = scores(*[-1.0] * 7, fact_id="g", label="incorrect")
    unasked = scores(*[np.nan] * 7, fact_id="h")
    both = pd.concat([without, unasked, scores(*range(7))])
    assert graded.beaten(both)["fact_id"].unique().tolist() == ["f"]


def test_auc_of_each_boundary() -> None:
    table = graded.boundary_auc(scores(-9, -2, -1, -2, -3, -1, -8), "freed")
    auc = table.set_index("boundary")["auc"]
    # Before: 1980 loses thrice; 1998 against -1, -2, -3 loses, ties, wins. After: 2006 ties and wins
    # twice, 2012 loses thrice.
    assert auc.to_dict() == pytest.approx({"start": (3 + 1.5) / 6, "end": (0.5 + 3) / 6})
    rising = graded.boundary_auc(scores(*range(7))).set_index("boundary")["auc"]
    assert rising.to_dict() == {"start": 1, "end": 0}


def test_decoded_block_by_hand() -> None:
    assert graded.decoded_block(np.array([0.0, 0, 5, 6, 5, 0, 0])) == (2, 4)
    assert graded.decoded_block(np.array([4.0, 4, 1, 1])) == (0, 1)  # it may stand at the edge


@pytest.mark.parametrize("seed", range(20))
def test_decoded_block_is_the_step_up_of_least_squares(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=9)
    blocks = [(a, b) for a in range(9) for b in range(a + 1, 10) if b - a < 9]

    def left_over(block: tuple[int, int]) -> float:
        inside, outside = values[slice(*block)], np.delete(values, range(*block))
        rises = inside.mean() > outside.mean()
        return len(inside) * inside.var() + len(outside) * outside.var() if rises else np.inf

    first, end = min(blocks, key=left_over)
    assert graded.decoded_block(values) == (first, end - 1)


FACTS = pd.DataFrame(
    {
        "fact_id": ["f", "g", "h", "long", "other"],
        "subject": ["a", "b", "c", "d", "e"],
        "relation": ["head"] * 4 + ["club"],
        "start": ["1960", "1971-05", "1981-06-01", "1940", "2001"],
        "end": ["1970", "1980-01-02", "2000", "2019", "2009"],
    }
)


def test_the_grid_holds_what_began_and_ended_in_it() -> None:
    dates = grid(FACTS, range(1950, 2021, 10))
    assert dates["fact_id"].unique().tolist() == ["f", "g", "h", "other"]
    own = dates[dates["fact_id"] == "g"]
    assert own["date"].tolist() == [str(year) for year in range(1950, 2021, 10)]
    assert own["label"].tolist() == ["incorrect"] * 3 + ["transitional"] + ["incorrect"] * 4
    assert len(grid(FACTS)) == 4 * 24  # every third year from 1950 to 2019


def test_decoded_years_and_their_baselines() -> None:
    dates = grid(FACTS, range(1950, 2021, 2))
    points = {"f": (1960, 1970), "g": (1980, 1984), "h": (1981, 2000), "other": (1950, 2010)}
    inside = [low <= year <= high for year, (low, high) in
              zip(dates["year"], dates["fact_id"].map(points), strict=True)]  # fmt: skip
    table = graded.decoded(
        dates.assign(**CELL | {"fact_id": dates["fact_id"], "freed": inside}), FACTS
    )
    rows = table.set_index(["fact_id", "boundary"])
    assert rows.loc[("f", "start"), ["year", "decoded", "error"]].tolist() == [1960, 1960, 0]
    assert rows.loc[("g", "start"), ["year", "decoded", "error"]].tolist() == [1971, 1980, 9]
    assert rows.loc[("h", "end"), ["year", "decoded", "error"]].tolist() == [2000, 2000, 0]
    # Other starts of the relation: 1940, 1971, 1981, in the middle 1971; ends 1980, 2000, 2019.
    assert rows.loc["f", "dull_error"].tolist() == [11, 30]
    # What the two others' scores say: 1980 and 1982 (the first even year); 1984 and 2000.
    assert rows.loc["f", "placebo_error"].tolist() == [21, (14 + 30) / 2]
    assert rows.loc["other", ["dull_error", "placebo_error"]].isna().all(axis=None)
