"""The first errors on either side of a fact's validity, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics.luck import nearest_misses


def scores(
    logprobs: dict[int, float], *, valid: tuple[int, int], **columns: object
) -> pd.DataFrame:
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
    table = nearest_misses(scores(LOGPROBS, valid=(2000, 2004))).set_index("side")
    before, after = table.loc["before"], table.loc["after"]
    assert before[["tested", "misses", "nearest_tested", "date", "years_off"]].tolist() == [
        *(4, 2, -3, "1995", -5),
    ]
    assert after[["tested", "misses", "nearest_tested"]].tolist() == [2, 0, 2]
    assert pd.isna(after["date"])
    assert np.isnan(after["years_off"])


def test_a_tie_is_a_miss() -> None:
    tied = scores(LOGPROBS | {1995: -4}, valid=(2000, 2004))
    row = nearest_misses(tied).set_index("side").loc["before"]
    assert row[["misses", "date", "years_off"]].tolist() == [1, "1993", -7]


def test_no_row_without_correct_dates_or_without_a_side() -> None:
    never = scores({1990: -1, 2000: -2, 2001: -3}, valid=(2000, 2001))
    assert len(nearest_misses(never)) == 0
    one_side = scores({2000: 0, 2001: -1, 2002: 0, 2005: -3}, valid=(2000, 2002))
    assert nearest_misses(one_side)["side"].tolist() == ["after"]
    assert len(nearest_misses(never[:0])) == 0


def test_facts_and_precisions_are_apart() -> None:
    parts = [
        scores(LOGPROBS, valid=(2000, 2004)),
        scores(LOGPROBS | {2006: -1}, valid=(2000, 2004), fact_id="g"),
        scores(LOGPROBS | {1997: 0}, valid=(2000, 2004), precision="day"),
    ]
    shuffled = pd.concat(parts, ignore_index=True).sample(frac=1, random_state=1)
    table = nearest_misses(shuffled).set_index(["fact_id", "precision", "side"])["years_off"]
    assert len(table) == 6
    assert table["g", "year", "after"] == 2
    assert table["g", "year", "before"] == -5
    assert table["f", "day", "before"] == -3


def test_repeated_index_labels_do_not_matter() -> None:
    once, twice = (
        scores(LOGPROBS, valid=(2000, 2004)),
        scores(LOGPROBS | {2006: -1}, valid=(2000, 2004), fact_id="g"),
    )
    table = nearest_misses(pd.concat([once, twice]))  # index 0, 1, ... twice
    assert table.set_index(["fact_id", "side"]).loc[("g", "after"), "date"] == "2006"
    assert len(table) == 4


def test_bad_scores_are_refused() -> None:
    bad = scores(LOGPROBS, valid=(2000, 2004)).assign(logprob=np.nan)
    with pytest.raises(ValueError, match="such as f at 1993"):
        nearest_misses(bad)
