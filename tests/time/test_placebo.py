"""Placebo blocks by hand, and models that only drift, or know, when facts held."""

from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.statistics import interval_table
from factrobust.time import placebo
from factrobust.time.dates import grid, sample_dates, thinned
from factrobust.time.metrics import matches
from factrobust.time.placebo import windows

CELL = {"model": "m", "prompt_format": "question", "fact_id": "f", "precision": "year"}


def six(*values: float, labels: str = "iiccii", **columns: object) -> pd.DataFrame:
    """Scores of dates in order of time, incorrect, correct, incorrect; a transitional one beside."""
    names = {"i": "incorrect", "c": "correct"}
    table = pd.DataFrame({"logprob": [*values, 99.0]})
    table["other_logprobs"] = [[]] * len(table)
    table["label"] = [*(names[letter] for letter in labels), "transitional"]
    return table.assign(date=[str(1990 + i) for i in range(len(table))], **CELL | columns)


# Blocks of two among 1 5 | 4 6 | 3 2 that begin after one, two and three dates:
# 5 4 against 1 6 3 2 win 3 + 3 of 8 matches, 4 6 against 1 5 3 2 win 3 + 4, 6 3 win 4 + 2.
MIXED = (1, 5, 4, 6, 3, 2)
# 2 5 against 1 6 3 4 win 1 + 3, 5 6 against 1 2 3 4 all eight, 6 3 against 1 2 5 4 win 4 + 2.
KNOWN = (1, 2, 5, 6, 3, 4)


def test_six_dates_by_hand() -> None:
    for values, wins, robust in ((MIXED, [6, 7, 6], [0, 0, 0]), (KNOWN, [4, 8, 6], [0, 1, 0])):
        table = windows(six(*values).sample(frac=1, random_state=2))
        assert table["before"].tolist() == [1, 2, 3]
        assert table["true"].tolist() == [False, True, False]
        assert (table["win_rate"] * 8).tolist() == wins
        assert table["robust"].tolist() == robust
    row = placebo.placebo(table).iloc[0]
    assert row[["win_rate", "placebo_win_rate"]].tolist() == [1, 5 / 8]
    assert row[["win_rate_difference", "robust_difference"]].tolist() == [3 / 8, 1]
    assert row[["robust", "placebo_robust"]].tolist() == [1, 0]


def test_the_true_block_is_that_of_the_matches() -> None:
    scores = pd.concat([six(*MIXED), six(*KNOWN, fact_id="g"), six(1, 1, 1, 1, 1, 1, fact_id="h")])
    found, matched = windows(scores), matches(scores)
    true = found[found["true"]].set_index("fact_id")
    year = matched[matched["precision"] == "year"].set_index("fact_id")
    assert true["win_rate"].to_dict() == year["win_rate"].to_dict() == {"f": 7 / 8, "g": 1, "h": 0}
    assert true["robust"].to_dict() == year["robust"].to_dict()


def test_what_has_no_placebo() -> None:
    one_sided = six(1, 2, 3, 4, 5, 6, labels="iiiicc")
    missing = six(1, np.nan, 3, 4, 5, 6, fact_id="g")
    nothing = six(1, 2, 3, 4, 5, 6, labels="iiiiii", fact_id="h")
    assert windows(pd.concat([one_sided, missing, nothing])).empty
    alone = windows(six(1, 2, 3, labels="ici"))  # the validity is its only block
    assert alone["true"].tolist() == [True]
    assert placebo.placebo(alone).empty


def test_the_p_value_counts_blocks() -> None:
    facts = pd.DataFrame({"fact_id": ["f", "g"], "subject": ["a", "b"]})
    one = placebo.placebo_test(windows(six(*KNOWN)), facts).set_index("measure")
    # One of its three blocks does as well.
    assert one["p"].tolist() == pytest.approx([1 / 3, 1 / 3], abs=0.02)
    two = pd.concat([six(*KNOWN), six(*KNOWN, fact_id="g")])
    found = placebo.placebo_test(windows(two), facts)
    assert found["p"].tolist() == pytest.approx([1 / 9, 1 / 9], abs=0.01)
    # The questions of one subject are the same, and so is the place of their blocks.
    same = placebo.placebo_test(windows(two), facts.assign(subject="a"))
    assert same["p"].tolist() == pytest.approx([1 / 3, 1 / 3], abs=0.02)
    assert found[["n", "subjects"]].values.tolist() == [[2, 2]] * 2
    assert same[["n", "subjects"]].values.tolist() == [[2, 1]] * 2
    assert found[["validity", "placebo", "mean"]].iloc[0].tolist() == [1, 5 / 8, 3 / 8]
    parted = placebo.placebo_test(windows(two), facts.assign(relation=["r", "s"]), ["relation"])
    assert parted.query("relation == 'r'").set_index("measure")[one.columns].equals(one)


@pytest.fixture(scope="module")
def facts() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    start = rng.integers(1985, 2013, 60)
    end = np.minimum(start + rng.integers(3, 12, 60), 2019)
    table = pd.DataFrame({"start": start.astype(str), "end": end.astype(str)})
    table["fact_id"] = table["subject"] = [f"fact/{i}" for i in table.index]
    return table.assign(relation="employer", object="object")


Score = Callable[[pd.DataFrame], pd.Series]


def rising(dates: pd.DataFrame, sign: int = 1) -> pd.Series:
    return sign * dates["year"] / 50


falling = partial(rising, sign=-1)


def knowing(dates: pd.DataFrame) -> pd.Series:
    """Falls with the distance from the validity, and drifts."""
    return rising(dates) - dates["years_off"].abs()


def scored(facts: pd.DataFrame, sampling: str, score: Score) -> pd.DataFrame:
    dates = thinned(sample_dates(facts), sampling=sampling, n_correct=3, n_incorrect=4)
    dates = dates[dates["precision"] == "year"]
    return dates.assign(model="m", prompt_format="question", logprob=score(dates))


@pytest.mark.parametrize("drift", [rising, falling])
def test_drift_alone_passes_as_knowledge_only_where_dates_are_not_balanced(facts, drift) -> None:
    matched = matches(scored(facts, "published", drift))
    year = matched[matched["precision"] == "year"].dropna(subset=["robust"])
    assert abs(year["win_rate"].mean() - 0.5) > 0.1
    if drift is rising:  # later dates win, and few lie after a fact that ended lately
        share = interval_table(year.astype({"robust": float}), [], "robust").iloc[0]
        assert share["low"] > year["chance"].mean()
    # Where they are balanced, it is no better than its placebos.
    found = placebo.placebo(windows(scored(facts, "balanced", drift)))
    assert len(found) > 40
    assert found[["win_rate", "placebo_win_rate"]].to_numpy() == pytest.approx(1 / 2)
    assert found[["robust", "placebo_robust"]].eq(0).all(axis=None)
    tested = placebo.placebo_test(windows(scored(facts, "balanced", drift)), facts)
    assert tested["mean"].tolist() == pytest.approx([0, 0])
    assert (tested["p"] > 0.3).all()


def test_knowledge_is_above_its_placebos(facts: pd.DataFrame) -> None:
    found = windows(scored(facts, "balanced", knowing))
    tested = placebo.placebo_test(found, facts).set_index("measure")
    assert tested.loc["robust", "validity"] > 0.9
    assert (tested["low"] > 0.2).all()
    assert tested["p"].tolist() == [1 / 10_000] * 2


def dated(correct: list[float], incorrect: list[float], **columns: object) -> pd.DataFrame:
    """The first incorrect date lies before the correct ones, the others after."""
    rows = [("incorrect", value) for value in incorrect]
    rows[1:1] = [("correct", value) for value in correct]
    found = pd.DataFrame(rows, columns=["label", "logprob"])
    return found.assign(date=[str(1900 + i) for i in found.index], **CELL | columns)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=4),
    st.lists(st.integers(0, 6), min_size=2, max_size=5),
    st.integers(1, 2),
)
def test_fewer_dates_against_enumeration(good: list[int], bad: list[int], k: int) -> None:
    scores = dated([float(x) for x in good], [float(x) for x in bad])
    counted = placebo.by_number_of_dates(scores, [k])
    ways = [min(good) > max(chosen) for chosen in combinations(bad, k)]
    assert counted["robust"].tolist() == pytest.approx([np.mean(ways)])
    assert counted[["n_correct", "n_incorrect"]].values.tolist() == [[len(good), k]]


def test_fewer_dates_by_hand() -> None:
    # Of five incorrect dates one beats the weakest correct one: of k, it is among them in k/5.
    scores = dated([-1, -3], [-2, -4, -5, -6, -7])
    counted = placebo.by_number_of_dates(scores, [1, 2, 5])
    assert counted["robust"].tolist() == pytest.approx([4 / 5, 3 / 5, 0])
    assert counted["chance"].tolist() == pytest.approx([1 / 3, 1 / 6, 1 / 21])
    # In order of time -2 | -1 -3 | -4 -5 -6 -7. The blocks -3 -4, -4 -5 and -5 -6 have 3, 2 and 1 of
    # the five dates outside of them below both of theirs.
    assert counted["placebo"].tolist() == pytest.approx([6 / 15, (3 + 1) / 30, 0])
    alone = placebo.by_number_of_dates(dated([-1], [-2, -3]), [1])
    assert alone[["robust", "placebo"]].fillna(-1).values.tolist() == [[1, -1]]
    # The facts that have the most dates are kept.
    one_sided = dated([-1], [-2], fact_id="h")
    scores = pd.concat([dated([-1], [-2, -3, -4]), dated([-1], [-2, -3], fact_id="g"), one_sided])
    assert placebo.by_number_of_dates(scores, [1, 3])["fact_id"].unique().tolist() == ["f"]
    assert placebo.by_number_of_dates(scores, [1])["fact_id"].unique().tolist() == ["f", "g"]
    assert placebo.by_number_of_dates(dated([], [-1, -2]), [1]).empty


# Valid from 2000 to 2004 (five years about 2002.5): two years before, three correct, two after.
YEARLY = pd.DataFrame({"year": [1980, 1998, 2001, 2002, 2003, 2006, 2012]})
YEARLY["date"] = YEARLY["year"].astype(str)
YEARLY["alpha"] = [-4.4, -0.8, -0.2, 0.0, 0.2, 0.8, 2.0]
YEARLY["years_off"] = [-19.5, -1.5, 0, 0, 0, 1.5, 7.5]
YEARLY["label"] = ["incorrect"] * 2 + ["correct"] * 3 + ["incorrect"] * 2


def yearly(*values: float, **columns: object) -> pd.DataFrame:
    return YEARLY.assign(**CELL | {"logprob": values, "other_logprobs": [[]] * 7} | columns)


def test_incorrect_dates_by_side_and_distance() -> None:
    table = placebo.beaten(yearly(-9, -2, -1, -2, -3, -1, -8)).sort_values("date")
    assert table[["date", "side", "years", "won", "drawn"]].values.tolist() == [
        ["1980", "before", "5 to 20", 1, 0],
        ["1998", "before", "up to 5", pytest.approx(1 / 3), pytest.approx(1 / 3)],
        ["2006", "after", "up to 5", 0, pytest.approx(1 / 3)],
        ["2012", "after", "5 to 20", 1, 0],
    ]
    year = matches(yearly(-9, -2, -1, -2, -3, -1, -8)).iloc[0]
    assert table["won"].mean() == pytest.approx(year["win_rate"])  # each has as many matches
    without = yearly(*[-1.0] * 7, fact_id="g", label="incorrect")
    unasked = yearly(*[np.nan] * 7, fact_id="h")
    both = pd.concat([without, unasked, yearly(*range(7))])
    assert placebo.beaten(both)["fact_id"].unique().tolist() == ["f"]


def test_auc_of_each_boundary() -> None:
    table = placebo.boundary_auc(yearly(-9, -2, -1, -2, -3, -1, -8))
    auc = table.set_index("boundary")["auc"]
    # Before: 1980 loses thrice; 1998 against -1, -2, -3 loses, ties, wins. After: 2006 ties and wins
    # twice, 2012 loses thrice.
    assert auc.to_dict() == pytest.approx({"start": (3 + 1.5) / 6, "end": (0.5 + 3) / 6})
    rising = placebo.boundary_auc(yearly(*range(7))).set_index("boundary")["auc"]
    assert rising.to_dict() == {"start": 1, "end": 0}


FACTS = pd.DataFrame({"fact_id": ["f", "g", "h", "long", "other"], "subject": list("abcde")})
FACTS["relation"] = ["head"] * 4 + ["club"]
FACTS["start"] = ["1960", "1971-05", "1981-06-01", "1940", "2001"]
FACTS["end"] = ["1970", "1980-01-02", "2000", "2019", "2009"]


def test_the_grid_holds_what_began_and_ended_in_it() -> None:
    dates = grid(FACTS, range(1950, 2021, 10))
    assert dates["fact_id"].unique().tolist() == ["f", "g", "h", "other"]
    own = dates[dates["fact_id"] == "g"]
    assert own["date"].tolist() == [str(year) for year in range(1950, 2021, 10)]
    assert own["label"].tolist() == ["incorrect"] * 3 + ["transitional"] + ["incorrect"] * 4
    assert len(grid(FACTS)) == 4 * 24  # every third year from 1950 to 2019


def named(own: tuple, *others: tuple, **columns: object) -> pd.DataFrame:
    """The scores of `yearly`, with wrong names."""
    table = yearly(*own, **columns)
    return table.assign(other_logprobs=[list(values) for values in zip(*others, strict=True)])


OWN = (-9, -2, -1, -2, -3, -1, -8)  # in 1980 1998 | 2001 2002 2003 | 2006 2012
ALWAYS = (-2, -2, -1, -1, -1, -2, -2)  # a wrong name that is robust
NEVER = (-1, -1, -2, -2, -2, -1, -1)


def test_a_wrong_name_plays_the_same_matches() -> None:
    table = placebo.names(named(OWN, ALWAYS, NEVER).sample(frac=1, random_state=3))
    assert table[["name", "true"]].values.tolist() == [[0, True], [1, False], [2, False]]
    # -1 wins 1980, 1998, 2012 and ties 2006; -2 and -3 win 1980 and 2012: 7 of 12.
    assert table["win_rate"].tolist() == pytest.approx([7 / 12, 1, 0])
    assert table["robust"].tolist() == [0, 1, 0]
    assert table["win_rate"][0] == matches(yearly(*OWN))["win_rate"][0]
    # 1.5 nats more in correct years: 0.5 and -0.5 win all four, -1.5 all but 2006.
    raised = placebo.names(named(OWN, ALWAYS, NEVER), nats=1.5)
    assert raised["win_rate"].tolist() == pytest.approx([11 / 12, 1, 1])
    row = placebo.placebo(table).iloc[0]
    assert row[["placebo_win_rate", "win_rate_difference"]].tolist() == pytest.approx([0.5, 1 / 12])
    assert placebo.names(yearly(*OWN)).empty  # without wrong names
    nothing = named(OWN, ALWAYS, NEVER, label="incorrect")
    assert placebo.names(nothing).empty
    facts = pd.DataFrame({"fact_id": ["f"], "subject": ["a"]})
    test = placebo.placebo_test(table, facts).set_index("measure")
    assert test["p"].tolist() == pytest.approx([2 / 3, 1], abs=0.02)  # one name does better
    fate = placebo.beaten(named(OWN, ALWAYS, NEVER)).set_index("date")["others_won"]
    assert fate.to_dict() == dict.fromkeys(["1980", "1998", "2006", "2012"], 0.5)


def test_the_object_is_known_whatever_the_year() -> None:
    # In incorrect years the object has -5 on average, the better wrong name -1.
    row = placebo.knows(named(OWN, ALWAYS, NEVER)).iloc[0]
    assert (row["lead"], row["known"]) == (-4, False)
    [lead] = placebo.knows(named((9,) * 7, ALWAYS, NEVER))["lead"]
    assert lead == 10


def test_a_step_is_the_rise_beyond_a_line() -> None:
    years = np.array([1994, 1995, 1996, 1997, 1998, 2001, 2002, 2003, 2004, 2007, 2008, 2009])
    inside = (years > 2000) & (years < 2005)
    off = np.minimum(years - 2000, 0) + np.maximum(years - 2005, 0)
    table = pd.DataFrame({"year": years, "date": years.astype(str), "years_off": off, **CELL})
    table["label"] = np.where(inside, "correct", "incorrect")
    line = -20 + 0.3 * (years - 2000)
    table["logprob"] = line + 0.25 * inside
    table["other_logprobs"] = [[a, b] for a, b in zip(line, -line + 2 * inside, strict=True)]
    found = placebo.steps(table).set_index(["boundary", "name"])["step"]
    assert found.to_dict() == pytest.approx(
        {(side, k): nats for side in ("start", "end") for k, nats in enumerate((0.25, 0, 2))}
    )
    # Two years on each side are needed: within 1.5 years of a bound there is one.
    assert set(placebo.steps(table, reach=3)["boundary"]) == {"start", "end"}
    assert placebo.steps(table, reach=1).empty


def test_the_power_of_a_planted_rise() -> None:
    rng = np.random.default_rng(1)
    rows = [
        (f"f{i}", k, k == 0, value) for i in range(60) for k, value in enumerate(rng.normal(size=4))
    ]
    null = pd.DataFrame(rows, columns=["fact_id", "name", "true", "step"]).assign(model="m")
    facts = pd.DataFrame({"fact_id": null["fact_id"].unique()})
    facts["subject"] = facts["fact_id"]
    seen = {}
    for nats in (0.0, 0.25, 5.0):
        raised = null.assign(step=null["step"] + nats)
        seen[nats] = placebo.power(null, raised, facts, "step").iloc[0]
        # Any wrong name may stand for the object: on average only the rise is left.
        assert seen[nats]["planted"] == pytest.approx(nats)
    assert seen[0.0]["power"] < 0.08
    # The difference of one from the mean of two others has SD sqrt(3/2), its mean over 60 0.158: the
    # rise is 1.58 standard errors, and P(z > 1.96 - 1.58) = 0.35.
    assert seen[0.25]["power"] == pytest.approx(0.35, abs=0.12)
    assert seen[5.0]["power"] == 1
    assert seen[5.0]["n"] == 60
