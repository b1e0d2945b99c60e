"""Margins, fewer dates, two dtypes and first errors, by hand and against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics import luck
from factrobust.metrics.time import matches


def table(correct: list[float], incorrect: list[float], **columns: object) -> pd.DataFrame:
    labels = ["correct"] * len(correct) + ["incorrect"] * len(incorrect)
    values = {"model": "m", "prompt_format": "question", "fact_id": "f", "precision": "year"}
    return pd.DataFrame(
        values
        | {
            "date": [str(1900 + i) for i in range(len(labels))],
            "label": labels,
            "logprob": [*correct, *incorrect],
        }
        | columns
    )


def test_margin_curves() -> None:
    scores = pd.concat(
        [
            table([-1, -2], [-4, -5]),  # margin 2
            table([-2, -3], [-2.5], fact_id="g"),  # margin -0.5
            table([-1], [], fact_id="h"),  # undefined
        ]
    )
    curve = luck.margin_curves(matches(scores), [-1, -0.5, 0, 1.5, 2])
    assert curve["fact_id"].unique().tolist() == ["f", "g"]
    at = curve.pivot(index="required", columns="fact_id", values="robust")
    assert at["f"].tolist() == [True, True, True, True, False]
    assert at["g"].tolist() == [True, False, False, False, False]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=4),
    st.lists(st.integers(0, 6), min_size=2, max_size=5),
    st.integers(1, 2),
)
def test_fewer_dates_against_enumeration(good: list[int], bad: list[int], k: int) -> None:
    scores = table([float(x) for x in good], [float(x) for x in bad])
    counted = luck.by_number_of_dates(scores, [k])
    ways = [min(good) > max(chosen) for chosen in combinations(bad, k)]
    assert counted["robust"].tolist() == pytest.approx([np.mean(ways)])
    assert counted[["n_correct", "n_incorrect"]].values.tolist() == [[len(good), k]]


def test_fewer_dates_by_hand() -> None:
    # Of five incorrect dates one beats the weakest correct one: of k, it is among them in k/5.
    scores = table([-1, -3], [-2, -4, -5, -6, -7])
    counted = luck.by_number_of_dates(scores, [1, 2, 5])
    assert counted["robust"].tolist() == pytest.approx([4 / 5, 3 / 5, 0])
    assert counted["chance"].tolist() == pytest.approx([1 / 3, 1 / 6, 1 / 21])


def test_fewer_dates_keep_the_facts_that_have_the_most() -> None:
    scores = pd.concat([table([-1], [-2, -3]), table([-1], [-2], fact_id="g")])
    assert luck.by_number_of_dates(scores, [1, 2])["fact_id"].unique().tolist() == ["f"]
    assert luck.by_number_of_dates(scores, [1])["fact_id"].unique().tolist() == ["f", "g"]
    assert luck.by_number_of_dates(table([], [-1]), [1]).empty


def test_scorings_by_hand() -> None:
    # f: won by a hair in float32, a tie in the other. g: tied in both. h: another difference only.
    fine = pd.concat(
        [
            table([-1.0, -2.0], [-2.01, -3.0]),
            table([-1.0], [-1.0, -2.0], fact_id="g"),
            table([-1.0], [-2.0], fact_id="h"),
            table([-1.0], [], fact_id="i"),
        ]
    )
    coarse = fine.assign(
        logprob=[*(-1.0, -2.0, -2.0, -3.0), *(-1.0, -1.0, -1.0), *(-1.5, -2.0), *(-1.0,)]
    )
    compared = luck.compare_scorings(fine, coarse.sample(frac=1, random_state=0))
    year = compared[compared["precision"] == "year"].set_index("fact_id")
    assert year["robust_first"].dropna().to_dict() == {"f": True, "g": False, "h": True}
    assert year["equal"].dropna().to_dict() == {"f": False, "g": True, "h": True}
    assert year["false_ties_first"].to_dict() == {"f": 0, "g": 0, "h": 0, "i": 0}
    assert year["false_ties_second"].to_dict() == {"f": 1, "g": 1, "h": 0, "i": 0}
    assert year["largest_difference"].to_dict() == pytest.approx(
        {"f": 0.01, "g": 1, "h": 0.5, "i": 0}
    )
    turned = luck.compare_scorings(coarse, fine).set_index(["fact_id", "precision"])
    assert turned.loc[("f", "year"), "false_ties_first"] == 1

    total = luck.summarise_scorings(compared).set_index("precision").loc["year"]
    assert total[["facts", "matches", "false_ties_second"]].tolist() == [3, 4 + 2 + 1, 2]
    assert total["equal"] == pytest.approx(2 / 3)
    assert total["largest_difference"] == 1


def test_scorings_join_the_precisions() -> None:
    fine = pd.concat([table([-1], [-2], precision=p) for p in ("year", "month", "day")])
    coarse = fine.assign(logprob=[-1, -2, -1, -1, -1, -1.25])
    row = luck.compare_scorings(fine, coarse).set_index("precision").loc["global"]
    assert row[["robust_first", "robust_second", "equal"]].tolist() == [True, False, False]
    assert row[["matches", "false_ties_second", "largest_difference"]].tolist() == [3, 1, 1]


def test_bfloat16_rounds_as_torch_does() -> None:
    import torch

    values = pd.Series(np.random.default_rng(0).normal(-20, 8, 1000).astype(np.float32))
    values.iloc[:4] = [-20.0, -20.0625, -20.1875, 0.1]  # two ties, one down and one up
    expected = torch.tensor(values.to_numpy()).bfloat16().float().numpy()
    assert (luck.round_to_bfloat16(values).to_numpy() == expected).all()


# --- the first errors -----------------------------------------------------------------------------


def dated(logprobs: dict[int, float], *, valid: tuple[int, int], **columns: object) -> pd.DataFrame:
    """Years with their logprobs; the years of `valid` are transitional, between them correct."""
    start, end = valid
    years = list(logprobs)
    off = [year - start if year < start else max(year - end, 0) for year in years]
    inner = ["correct" if start < y < end else "transitional" for y in years]
    values = {"model": "m", "prompt_format": "question", "fact_id": "f", "precision": "year"}
    return pd.DataFrame(
        values
        | {
            "date": [str(year) for year in years],
            "year": years,
            "alpha": [(year - (start + end) / 2) / (end - start) for year in years],
            "years_off": [float(o) for o in off],
            "label": [s if o == 0 else "incorrect" for o, s in zip(off, inner, strict=True)],
            "logprob": list(logprobs.values()),
        }
        | columns
    )


# Before the start 1995 beats the weakest correct date (-3) and 1993 ties with it; after the end
# no date does.
BEFORE = {1993: -3.0, 1994: -5.0, 1995: -2.0, 1997: -4.0}
VALID = {2000: 0.0, 2001: -1.0, 2002: -3.0, 2003: -1.0, 2004: 0.0}
AFTER = {2006: -3.5, 2009: -9.0}
LOGPROBS = BEFORE | VALID | AFTER


def test_nearest_misses_by_hand() -> None:
    table = luck.nearest_misses(dated(LOGPROBS, valid=(2000, 2004))).set_index("side")
    before, after = table.loc["before"], table.loc["after"]
    assert before[["tested", "misses", "nearest_tested", "date", "years_off"]].tolist() == [
        *(4, 2, -3, "1995", -5),
    ]
    assert after[["tested", "misses", "nearest_tested"]].tolist() == [2, 0, 2]
    assert pd.isna(after["date"])
    assert np.isnan(after["years_off"])


def test_a_tie_is_a_miss() -> None:
    tied = dated(LOGPROBS | {1995: -4}, valid=(2000, 2004))
    row = luck.nearest_misses(tied).set_index("side").loc["before"]
    assert row[["misses", "date", "years_off"]].tolist() == [1, "1993", -7]


def test_no_row_without_correct_dates_or_without_a_side() -> None:
    never = dated({1990: -1, 2000: -2, 2001: -3}, valid=(2000, 2001))
    assert len(luck.nearest_misses(never)) == 0
    one_side = dated({2000: 0, 2001: -1, 2002: 0, 2005: -3}, valid=(2000, 2002))
    assert luck.nearest_misses(one_side)["side"].tolist() == ["after"]


def test_facts_and_precisions_are_apart() -> None:
    parts = [
        dated(LOGPROBS, valid=(2000, 2004)),
        dated(LOGPROBS | {2006: -1}, valid=(2000, 2004), fact_id="g"),
        dated(LOGPROBS | {1997: 0}, valid=(2000, 2004), precision="day"),
    ]
    shuffled = pd.concat(parts).sample(frac=1, random_state=1)  # index labels repeat
    table = luck.nearest_misses(shuffled).set_index(["fact_id", "precision", "side"])["years_off"]
    assert len(table) == 6
    assert table["g", "year", "after"] == 2
    assert table["g", "year", "before"] == -5
    assert table["f", "day", "before"] == -3
