"""Dates: what is one, how it is labelled and placed, and which of them are sampled."""

import datetime
import functools
import itertools

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from factrobust.temporal import dates as dating
from factrobust.temporal.dates import classify, parse, sample_dates, thinned

NO_DATES = [
    "",
    "0000",
    "976",
    "12005",
    "2005-13",
    "2005-2",
    "2005-02-30",
    "1900-02-29",
    "2003-04-31",
    "2005-11-00",
    "2005/11",
    "11-2005",
    "-044",
    "NaT",
    "today",
    "2005-11-19T00",
    " 2005",
    "2005\n",
    "٢٠٠٥",
    "2005-11-19-1",
]


@pytest.mark.parametrize("text", NO_DATES)
def test_what_is_no_date_is_refused(text):
    assert not dating.is_date(text)
    with pytest.raises(ValueError, match="no date: write YYYY, YYYY-MM or"):
        parse(["2005", text])
    with pytest.raises(ValueError, match="no date"):
        dating.verbalise(text)


# ---- classify: every day, month and year of 1900-2020, against a definition day by day -----------

BOUNDS = [
    "1900",  # the first year
    "1904",  # a leap year
    "2020",  # the last year
    "1900-02",  # a short February
    "1904-02",  # a long one
    "1976-12",
    "1977-01",
    "1904-02-29",
    "1976-12-31",
    "1977-01-01",
    "2000-02-28",
    "2005-04-30",
]
EVERY_DAY = np.arange("1900-01-01", "2021-01-01", dtype="M8[D]").astype(str)


@functools.cache
def days_in(text: str) -> np.ndarray:
    """Which of all days begin with the text."""
    return np.strings.startswith(EVERY_DAY, text)


def day_by_day(start: str, end: str, first_days: np.ndarray, rule: str) -> np.ndarray:
    """The labels of dates, of which each begins with a first day, from their days one by one."""
    may_begin = days_in(start)
    may_end = days_in(end)
    has_begun = np.maximum.accumulate(may_begin)  # perhaps, by that day
    backward = np.maximum.accumulate(may_end[::-1])
    still_holds = backward[::-1]  # perhaps, on that day or later
    holds = has_begun & still_holds
    if rule == "strict":
        holds &= ~(may_begin | may_end)
    every_day = np.logical_and.reduceat  # of each date
    correct = every_day(holds, first_days)
    before = every_day(~has_begun, first_days)
    after = every_day(~still_holds, first_days)
    return np.select(
        [before | after, correct],
        ["incorrect", "correct"],
        "transitional",
    )


@pytest.mark.parametrize("rule", ["strict", "published"])
@pytest.mark.parametrize("length", [4, 7, 10])
def test_classification_against_every_day(length, rule):
    starts = [day[:length] for day in EVERY_DAY]
    dates, first_days = np.unique(starts, return_index=True)
    span = parse(dates)
    for pair in itertools.product(BOUNDS, BOUNDS):
        start, end = map(parse, pair)
        if start[0] <= end[1]:
            found = classify(span, start, end, rule=rule)
            expected = day_by_day(*pair, first_days, rule)
            assert dates[found != expected].tolist() == [], pair


# The paper's table 1; its example of a transitional date, and the bound's own day; a date that holds
# the whole validity, and bounds that overlap.
LABELS = frame("""
    date        start       end         strict        published
    2015-08     1976        1983        incorrect     incorrect
    1974-12     2005        2015-01-09  incorrect     incorrect
    1979-06-03  1995-01-04  1999-01-03  incorrect     incorrect
    1915-10     1973-09-18  1990-10-02  incorrect     incorrect
    2018-12-30  2002        2018        transitional  correct
    2015-05     2011-01-03  2019-01-07  correct       correct
    2018-08     2015        2018-08-02  transitional  transitional
    2018-08-02  2015        2018-08-02  transitional  correct
    2015-12-31  2015        2018-08-02  transitional  correct
    2018-08-03  2015        2018-08-02  incorrect     incorrect
    2018-08-01  2015        2018-08-02  correct       correct
    2005        2005-03-01  2005-09-01  transitional  transitional
    2005-06     2005        2005        transitional  correct
""")


@pytest.mark.parametrize("rule", ["strict", "published"])
def test_labels_known_by_hand(rule):
    date, start, end = (parse(LABELS[name]) for name in ("date", "start", "end"))
    labels = classify(date, start, end, rule=rule)
    assert labels.tolist() == LABELS[rule].tolist()


def test_position_by_hand():
    # 2001-01-01 to 2001-01-11: ten days long, with its middle on January 6.
    dates = frame("""
        date        alpha  days
        2001-01-01  -0.5   0
        2001-01-06  0      0
        2001-01-11  0.5    0
        2001-01-21  1.5    10
        2000-12-27  -1     -5
        2001-01     1      5
    """)  # January's middle is the 16th
    span = parse(dates["date"])
    alpha, years_off = dating.position(span, parse("2001-01-01"), parse("2001-01-11"))
    assert alpha == pytest.approx(dates["alpha"])
    assert years_off * 365.2425 == pytest.approx(dates["days"])
    assert not np.signbit(years_off[1])
    # Years count from the filled-up bounds.
    span = parse(["1999", "2006"])
    alpha, years_off = dating.position(span, parse("2001"), parse("2004"))
    # From July 2, 1999, the middle of its year, to 2001-01-01: 183 + 366 days; from 2004-12-31 to
    # July 2, 2006: 365 + 183 days. The validity is 1460 days long.
    assert years_off * 365.2425 == pytest.approx([-549, 548])
    assert alpha == pytest.approx([-0.5 - 549 / 1460, 0.5 + 548 / 1460])


# ---- sampling ------------------------------------------------------------------------------------


def facts_of(*bounds: tuple[str, str]) -> pd.DataFrame:
    facts = pd.DataFrame(bounds, columns=["start", "end"])
    facts["fact_id"] = "fact/" + facts.index.astype(str)
    return facts.assign(subject=facts["fact_id"], relation="employer", object="object")


def as_published(facts, rule="strict", seed=0):
    return thinned(sample_dates(facts, rule=rule, seed=seed), sampling="published")


def balanced(*bounds: tuple[str, str], **kept):
    return thinned(sample_dates(facts_of(*bounds)), **kept)


def dates_at(dates: pd.DataFrame, precision: str) -> pd.Series:
    """The dates of a precision, by their year."""
    return dates[dates["precision"] == precision].set_index("year")["date"]


def years_of(dates: pd.DataFrame) -> list[int]:
    return dates_at(dates, "year").index.tolist()


def test_years_known_by_hand():
    def years(start: str, end: str) -> list[int]:
        return years_of(as_published(facts_of((start, end))))

    # 8 days long, middle 2001-01-05: alpha -5 ... 5 is 2000-11-26 ... 2001-02-14.
    assert years("2001-01-01", "2001-01-09") == [2000, 2001]
    # 1461 days less one from 2001-01-01, middle 2003-01-01: 1983-01-02 ... 2022-12-30, every 73 days
    assert years("2001", "2004") == list(range(1983, 2021))
    # Steps of 5 years (36524 days / 20 = 1826.2): January of 1900, 1905, ..., 2020.
    assert years("1900-01-15", "2000-01-15")[-25:] == list(range(1900, 2021, 5))
    # Nothing before the year 1000, and nothing after 2020.
    assert years("1100", "1400")[0] == 1009  # 1100 - 6 * 301 / 20
    assert years("2030", "2040")[-1] == 2020


def is_period(pair: tuple[str, str]) -> bool:
    start, end = map(parse, pair)
    return start[0] < end[1]


days = st.dates(datetime.date(1200, 1, 1), datetime.date(2019, 12, 31))
bounds = st.builds(
    lambda date, length: str(date)[:length],
    days,
    st.sampled_from([4, 7, 10]),
)
periods = st.tuples(bounds, bounds).map(sorted).filter(is_period)


@settings(max_examples=15, deadline=None)
@given(periods, st.sampled_from(["strict", "published"]), st.integers(0, 3))
def test_any_fact_is_sampled_as_defined(pair, rule, seed):
    start, end = map(parse, pair)
    first_day = start[0]
    n_days = (end[1] - first_day).astype(int)
    steps = np.arange(-90, 111)  # alpha -5 to 5; -0.5, the first day, is step 0
    moments = first_day + steps * n_days // 20
    years = {int(str(moment)[:4]) for moment in moments}
    dates = as_published(facts_of(pair), rule=rule, seed=seed)
    assert years_of(dates) == sorted(years & set(range(1000, 2021)))
    span = parse(dates["date"])
    label = classify(span, start, end, rule=rule)
    assert dates["label"].tolist() == label.tolist()
    alpha, years_off = dating.position(span, start, end)
    assert dates["alpha"].to_numpy() == pytest.approx(alpha)
    assert dates["years_off"].to_numpy() == pytest.approx(years_off)
    # A day lies in its month, and a month in its year.
    months = dates_at(dates, "month")
    assert months.str.fullmatch(r"\d{4}-\d\d").all()
    assert dates_at(dates, "day").str[:7].equals(months)
    in_year = dates["date"].str[:4].astype(int)
    assert in_year.equals(dates["year"])
    if rule == "strict":
        assert len(months) == len(years_of(dates))


def test_a_fact_is_drawn_the_same_whatever_stands_beside_it():
    facts = facts_of(("2001", "2009"), ("1995-05-02", "2001-11"), ("1980", "1999-12-31"))
    together = as_published(facts, seed=7)
    alone = []
    for row in (2, 1, 0):
        fact = facts.iloc[[row]]
        alone.append(as_published(fact, seed=7))
    backward = as_published(facts[::-1], seed=7)
    assert_frame_equal(backward, pd.concat(alone, ignore_index=True))
    in_order = backward.sort_values("fact_id", kind="stable", ignore_index=True)
    assert_frame_equal(together, in_order)
    other_seed = as_published(facts, seed=8)
    is_other = together["date"] != other_seed["date"]
    is_year = together["precision"] == "year"
    assert not is_other[is_year].any()
    assert is_other[~is_year].mean() > 0.8


def test_another_period_of_the_fact_is_not_incorrect():
    facts = facts_of(("1992-06-03", "1996"), ("2005", "2010-08-31")).assign(subject="x")
    alone = as_published(facts[:1], seed=2)
    span = parse(alone["date"])
    label = classify(span, parse("2005"), parse("2010-08-31"))
    is_of_other = (alone["label"] == "incorrect") & (label != "incorrect")
    assert years_of(alone[is_of_other]) == [2005, 2006, 2007, 2008, 2009, 2010]
    both = as_published(facts, seed=2)
    first = both[both["fact_id"] == "fact/0"]
    assert first["date"].tolist() == alone.loc[~is_of_other, "date"].tolist()
    # Only subject, relation and object together make the same fact.
    others = facts.assign(object=["a", "b"])
    both = as_published(others, seed=2)
    first = both[both["fact_id"] == "fact/0"]
    assert_frame_equal(first, alone)


def test_published_dates_are_thinned_evenly_and_alike_at_all_precisions():
    # Of a's years 1 to 6 the middles of two halves, 2 and 5, stay with their months; b has one year.
    # Of the correct ones, 7 to 9, the middle stays, and so does what is transitional.
    rows = frame("""
        fact_id  year  label         stays
        a        1     incorrect     False
        a        2     incorrect     True
        a        3     incorrect     False
        a        4     incorrect     False
        a        5     incorrect     True
        a        6     incorrect     False
        a        7     correct       False
        a        8     correct       True
        a        9     correct       False
        b        1     incorrect     True
        a        10    transitional  True
    """)
    months = rows.assign(precision="month", label="incorrect")
    dates = pd.concat([rows.assign(precision="year"), months], ignore_index=True)
    thin = functools.partial(thinned, dates, sampling="published")
    some = thin(n_incorrect=2, n_correct=1)
    assert_frame_equal(some, dates[dates["stays"]])
    every = thin(n_incorrect=6, n_correct=99)
    assert_frame_equal(every, dates)
    with pytest.raises(ValueError, match=r"n_incorrect is 0.*give a whole number from 1 up"):
        thin(n_incorrect=0)


def test_balanced_dates_by_hand():
    # In force from some day of 2010 to some day of 2014: 2011 to 2013 are correct. Incorrect are the
    # years to 2020, up to 5.5 years after it, and so the six from 2004 on before it, of those that
    # reach back to the 1980s. The middles of three parts of six are the 2nd, the 4th and the 6th.
    every = balanced(("2010", "2014"))
    assert years_of(every) == list(range(2004, 2021))
    thin = balanced(("2010", "2014"), n_correct=1, n_incorrect=3)
    assert years_of(thin) == [2005, 2007, 2009, 2010, 2012, 2014, 2016, 2018, 2020]
    assert years_of(thin[thin["label"] == "correct"]) == [2012]
    # Three of its six incorrect years lie before: so often the later date wins.
    assert_rows(
        dating.balance(thin),
        """
        precision  facts  one_sided  before  after  win_rate
        year       1      0          3       3      0.5
        month      1      0          3       3      0.5
        day        1      0          3       3      0.5
        """,
    )


def test_a_fact_with_dates_on_one_side():
    """Without a year after it, no incorrect one is left, and as published there are many before."""
    facts = facts_of(("2010", "2014"), ("2015", "2020"))
    dates = thinned(sample_dates(facts))
    labels = dates.loc[dates["fact_id"] == "fact/1", "label"]
    assert set(labels) == {"correct", "transitional"}
    assert dating.balance(dates)["one_sided"].tolist() == [1, 1, 1]
    published = dating.balance(as_published(facts))
    assert published["one_sided"].tolist() == [1, 1, 1]
    # All incorrect years of the second fact are earlier ones.
    first = dating.balance(as_published(facts[:1]))["win_rate"]
    assert published["win_rate"].tolist() == pytest.approx((first + 1) / 2)


@settings(max_examples=15, deadline=None)
@given(periods, st.integers(1, 6), st.integers(1, 6))
def test_sides_are_balanced_in_number_and_reach(pair, n_correct, n_incorrect):
    every = sample_dates(facts_of(pair))
    some = thinned(every, n_correct=n_correct, n_incorrect=n_incorrect)
    for precision, kept in some.groupby("precision"):
        full = every[every["precision"] == precision]
        n_right = full["label"].eq("correct").sum()
        n_kept = kept["label"].eq("correct").sum()
        assert n_kept == min(n_right, n_correct)
        off = kept.loc[kept["label"] == "incorrect", "years_off"]
        n_before = off.lt(0).sum()
        n_after = off.gt(0).sum()
        assert n_before == n_after <= n_incorrect
        far = full.loc[full["label"] == "incorrect", "years_off"]
        reach = min(-far.min(), far.max()) + 1
        assert off.empty or off.abs().max() <= reach


def test_dates_in_words():
    words = frame("""
        date        words
        2019        In 2019
        2019-12-01  On December 1, 2019
        2001-01     In January 2001
        2001-02     In February 2001
        2001-03     In March 2001
        2001-04     In April 2001
        2001-05     In May 2001
        2001-06     In June 2001
        2001-07     In July 2001
        2001-08     In August 2001
        2001-09     In September 2001
        2001-10     In October 2001
        2001-11     In November 2001
        2001-12     In December 2001
    """)
    spoken = words["date"].map(dating.verbalise)
    assert spoken.tolist() == words["words"].tolist()
