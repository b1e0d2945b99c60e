"""Verdicts at year, month and day set beside each other, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import time as precisions
from factrobust.statistics import bootstrap_statistic, interval_table


def matched(verdicts: dict[str, str], **columns: object) -> pd.DataFrame:
    """Rows of `matches`: "101" is robust at year and day, "?" undefined, "-" no row."""
    names = {"1": True, "0": False, "?": pd.NA}
    rows = [
        (fact, precision, names[sign])
        for fact, signs in verdicts.items()
        for precision, sign in zip(("year", "month", "day"), signs, strict=True)
        if sign != "-"
    ]
    rows += [(fact, "global", all(s == "1" for s in signs)) for fact, signs in verdicts.items()]
    frame = pd.DataFrame(rows, columns=["fact_id", "precision", "robust"])
    frame = frame.assign(model="m", prompt_format="question").assign(**columns)
    return frame.astype({"robust": "boolean"})


FACTS = {"a": "111", "b": "100", "c": "110", "d": "000", "e": "1?0", "f": "01-"}


def test_verdicts() -> None:
    wide = precisions.verdicts(matched(FACTS)).set_index("fact_id")
    assert list(wide) == ["model", "prompt_format", "year", "month", "day"]
    assert wide.loc["c", ["year", "month", "day"]].tolist() == [1, 1, 0]
    assert wide[["year", "month", "day"]].isna().sum().tolist() == [0, 1, 1]
    only_years = precisions.verdicts(matched({"a": "1--"}))
    assert only_years[["month", "day"]].isna().all(axis=None)


def test_granularity_variance() -> None:
    table = precisions.granularity_variance(matched(FACTS)).set_index("fact_id")["variance"]
    for fact, values in {"a": [1, 1, 1], "b": [1, 0, 0], "c": [1, 1, 0], "d": [0, 0, 0]}.items():
        assert table[fact] == pytest.approx(np.var(values))
    assert table[["e", "f"]].isna().all()


def test_ratio_is_few_shot_over_standard() -> None:
    standard = matched({"a": "100", "b": "110", "c": "000", "d": "011", "e": "??1"})
    shots = matched({"a": "111", "b": "110", "c": "000", "d": "111", "e": "001"})
    both = pd.concat([standard, shots.assign(prompt_format="shots")])
    pairs = precisions.paired_variances(both, standard="question", few_shot="shots")
    assert list(pairs) == ["model", "fact_id", "standard", "few_shot"]
    assert pairs["fact_id"].tolist() == list("abcd")  # e has no standard variance
    # Standard: a, b and d differ between precisions; few-shot: only b does.
    interval = bootstrap_statistic(
        precisions.variance_ratio, [pairs["few_shot"], pairs["standard"]], pairs["fact_id"]
    )
    assert interval.mean == pytest.approx(1 / 3)
    assert interval.n == 4
    assert 0 <= interval.low < 1 / 3 < interval.high <= 1


def test_ratio_over_no_variance_is_undefined() -> None:
    weights = np.ones((2, 3))
    assert np.isnan(precisions.variance_ratio(weights, np.ones(3), np.zeros(3))).all()
    assert precisions.variance_ratio(weights, np.zeros(3), np.ones(3)).tolist() == [0, 0]


def test_paired_variances_of_an_unknown_format() -> None:
    with pytest.raises(KeyError, match=r"prompt format \['shots'\].*has \['question'\]"):
        precisions.paired_variances(matched(FACTS), standard="question", few_shot="shots")


def test_patterns() -> None:
    table = precisions.patterns(pd.concat([matched(FACTS), matched({"a": "1?0"}, model="n")]))
    assert len(table) == 16
    counts = table[table["model"] == "m"].set_index(["year", "month", "day"])
    expected = {"111": 1, "100": 1, "110": 1, "000": 1}
    for signs in ("111", "110", "101", "100", "011", "010", "001", "000"):
        row = counts.loc[tuple(sign == "1" for sign in signs)]
        assert row["count"] == expected.get(signs, 0)
        assert row["share"] == expected.get(signs, 0) / 4
        assert row["n"] == 4
    undefined = table[table["model"] == "n"]
    assert undefined["n"].eq(0).all()
    assert undefined["share"].isna().all()


def test_transfer() -> None:
    table = precisions.robust_elsewhere(matched(FACTS))
    assert list(table) == ["model", "prompt_format", "fact_id", "known_at", "asked_at", "kept"]
    recall = interval_table(table, ["known_at", "asked_at"], "kept")
    recall = recall.set_index(["known_at", "asked_at"])
    assert len(recall) == 6
    # Known at the year: a, b, c, e. At the day of these only a; at the month a and c of a, b, c.
    assert recall.loc[("year", "day"), ["mean", "n"]].tolist() == [1 / 4, 4]
    assert recall.loc[("year", "month"), ["mean", "n"]].tolist() == [2 / 3, 3]
    assert recall.loc[("month", "year"), ["mean", "n"]].tolist() == [2 / 3, 3]  # f is lost
    assert recall.loc[("day", "year"), ["mean", "n"]].tolist() == [1, 1]


def test_nothing_asked() -> None:
    nothing = matched(FACTS)[:0]
    assert len(precisions.granularity_variance(nothing)) == 0
    assert len(precisions.patterns(nothing)) == 0
    assert len(precisions.robust_elsewhere(nothing)) == 0
