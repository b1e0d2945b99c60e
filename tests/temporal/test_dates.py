import calendar
import datetime
import functools
import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from factrobust.temporal import dates as dating
from factrobust.temporal.dates import PRECISIONS, classify, parse, sample_dates, thinned


def table(*bounds: tuple[str, str], **columns) -> pd.DataFrame:
    facts = pd.DataFrame(bounds, columns=["start", "end"])
    for name in ("fact", "subject"):
        facts[name] = [f"{name}/{i}" for i in facts.index]
    facts = facts.rename(columns={"fact": "fact_id"}).assign(relation="employer", object="object")
    return facts.assign(**columns)


@pytest.mark.parametrize(
    "text",
    [
        *("", "0000", "976", "12005", "2005-13", "2005-00", "2005-2", "2005-02-30", "1900-02-29"),
        *("2003-04-31", "2005-11-00", "2005/11", "11-2005", "-044", "NaT", "today", "nan", "None"),
        *("2005-11-19T00", " 2005", "2005\n", "٢٠٠٥", "2005-11-19-1"),
    ],
)
def test_what_is_no_date_is_refused(text):
    assert not dating.is_date(text)
    with pytest.raises(ValueError, match="no date: write YYYY, YYYY-MM or"):
        parse(["2005", text])
    with pytest.raises(ValueError, match="no date"):
        dating.verbalise(text)


@given(st.dates(min_value=datetime.date(2, 1, 1), max_value=datetime.date(9998, 12, 31)))
@settings(deadline=None)
def test_every_day_of_the_calendar_lies_in_its_month_and_year(date):
    text = date.isoformat()
    for length in (4, 7, 10):
        assert dating.is_date(text[:length])
        first, last = (side.item() for side in parse(text[:length]))
        assert first <= date <= last
        assert first.isoformat()[:length] == last.isoformat()[:length] == text[:length]
        before = first - datetime.timedelta(1)
        after = last + datetime.timedelta(1)
        assert text[:length] not in (before.isoformat()[:length], after.isoformat()[:length])


# ---- classify: every day, month and year of 1900-2020, against a definition day by day -----------

BOUNDS = [
    *("1900", "1904", "2020"),  # the first year, a leap year, the last year
    *("1900-02", "1904-02", "1976-12", "1977-01"),  # a short and a long February, a year's end
    *("1904-02-29", "1976-12-31", "1977-01-01", "2000-02-28", "2005-04-30"),
]
EVERY_DAY = [(datetime.date(1900, 1, 1) + datetime.timedelta(n)).isoformat() for n in range(44_195)]


@functools.cache
def days_in(text: str) -> np.ndarray:
    """Which of all days begin with the text."""
    return np.array([day.startswith(text) for day in EVERY_DAY])


def day_by_day(start: str, end: str, first_days: np.ndarray, rule: str) -> np.ndarray:
    """The labels of dates, of which each begins with a first day, from their days one by one."""

    def all_of(days: np.ndarray) -> np.ndarray:
        return np.logical_and.reduceat(days, first_days)

    change, close = days_in(start), days_in(end)  # it may have begun, or ended, on that day
    began = np.maximum.accumulate(change)  # has it perhaps begun by that day?
    may_end = np.maximum.accumulate(close[::-1])[::-1]  # may it still end on that day or later?
    before = all_of(~began)
    after = all_of(~may_end)
    holds = began & may_end
    if rule == "strict":
        holds &= ~(change | close)
    label = np.where(all_of(holds), "correct", "transitional")
    return np.where(before | after, "incorrect", label)


@pytest.mark.parametrize("rule", ["strict", "published"])
def test_classification_against_every_day(rule):
    assert EVERY_DAY[0] == "1900-01-01"
    assert EVERY_DAY[-1] == "2020-12-31"
    for length in (4, 7, 10):
        dates, first_days = np.unique([day[:length] for day in EVERY_DAY], return_index=True)
        span = parse(dates)
        for start, end in itertools.product(BOUNDS, BOUNDS):
            if parse(start)[0] <= parse(end)[1]:
                found = classify(span, parse(start), parse(end), rule=rule)
                wrong = np.flatnonzero(found != day_by_day(start, end, first_days, rule))
                assert not len(wrong), (start, end, dates[wrong[0]], found[wrong[0]])


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
    spans = (parse(LABELS[name]) for name in ("date", "start", "end"))
    assert classify(*spans, rule=rule).tolist() == LABELS[rule].tolist()


def test_position_by_hand():
    # 2001-01-01 to 2001-01-11: ten days long, with its middle on January 6.
    dates = ["2001-01-01", "2001-01-06", "2001-01-11", "2001-01-21", "2000-12-27", "2001-01"]
    alpha, years_off = dating.position(parse(dates), parse("2001-01-01"), parse("2001-01-11"))
    assert alpha == pytest.approx([-0.5, 0, 0.5, 1.5, -1, 1])  # January's middle is the 16th
    assert years_off * 365.2425 == pytest.approx([0, 0, 0, 10, -5, 5])
    assert not np.signbit(years_off[1])
    # Years count from the filled-up bounds.
    alpha, years_off = dating.position(parse(["1999", "2006"]), parse("2001"), parse("2004"))
    # From July 2, 1999, the middle of its year, to 2001-01-01: 183 + 366 days; from 2004-12-31 to
    # July 2, 2006: 365 + 183 days. The validity is 1460 days long.
    assert years_off == pytest.approx([-549 / 365.2425, 548 / 365.2425])
    assert alpha == pytest.approx([-0.5 - 549 / 1460, 0.5 + 548 / 1460])


# ---- sampling ------------------------------------------------------------------------------------


def as_published(facts, rule="strict", seed=0, **kept):
    return thinned(sample_dates(facts, rule=rule, seed=seed), sampling="published", **kept)


def balanced(facts, **kept):
    return thinned(sample_dates(facts), **kept)


def years_of(dates: pd.DataFrame, precision: str = "year") -> list[int]:
    return dates.loc[dates["precision"] == precision, "year"].tolist()


def test_years_known_by_hand():
    # 8 days long, middle 2001-01-05: alpha -5 ... 5 is 2000-11-26 ... 2001-02-14.
    assert years_of(as_published(table(("2001-01-01", "2001-01-09")))) == [2000, 2001]
    # 1461 days less one from 2001-01-01, middle 2003-01-01: 1983-01-02 ... 2022-12-30, every 73 days
    assert years_of(as_published(table(("2001", "2004")))) == list(range(1983, 2021))
    # Steps of 5 years (36524 days / 20 = 1826.2): January of 1900, 1905, ..., 2020.
    years = years_of(as_published(table(("1900-01-15", "2000-01-15"))))
    assert years[-25:] == list(range(1900, 2021, 5))
    # Nothing before the year 1000, and nothing after 2020.
    assert min(years_of(as_published(table(("1100", "1400"))))) == 1009  # 1100 - 6 * 301 / 20
    assert years_of(as_published(table(("2030", "2040"))))[-1] == 2020


day = st.dates(datetime.date(1200, 1, 1), datetime.date(2019, 12, 31)).map(str)
length = st.sampled_from([4, 7, 10])
bounds = st.tuples(day, day, length, length).map(lambda b: (min(b[:2])[: b[2]], max(b[:2])[: b[3]]))


@settings(max_examples=15, deadline=None)
@given(bounds, st.sampled_from(["strict", "published"]), st.integers(0, 3))
def test_any_fact_is_sampled_as_defined(pair, rule, seed):
    start = parse(pair[0])[0].item()
    end = parse(pair[1])[1].item()
    assume(start < end)
    wanted = set()
    for step in range(-100, 101):
        days = (Fraction(step, 20) + Fraction(1, 2)) * (end - start).days
        ordinal = start.toordinal() + days.__floor__()
        if ordinal > 0 and 1000 <= (year := datetime.date.fromordinal(ordinal).year) <= 2020:
            wanted.add(year)
    dates = as_published(table(pair), rule=rule, seed=seed)
    assert years_of(dates) == sorted(wanted)
    labels = classify(parse(dates["date"]), *map(parse, pair), rule=rule)
    np.testing.assert_array_equal(dates["label"], labels)
    lengths = dates["date"].str.len().map({4: "year", 7: "month", 10: "day"})
    assert (lengths == dates["precision"]).all()
    assert (dates["date"].str[:4].astype(int) == dates["year"]).all()
    moments = dates.pivot(
        index="year",
        columns="precision",
        values="date",
    )
    moments = moments.reindex(columns=PRECISIONS).dropna()
    assert all(d.startswith(m) for d, m in zip(moments["day"], moments["month"], strict=True))
    if rule == "strict":
        assert len(moments) == len(wanted)
    places = np.array(dating.position(parse(dates["date"]), *map(parse, pair)))
    assert pytest.approx(places) == dates[["alpha", "years_off"]].to_numpy().T


FACTS = table(("2001", "2009"), ("1995-05-02", "2001-11"), ("1980", "1999-12-31"))


def test_a_fact_is_drawn_the_same_whatever_stands_beside_it():
    together = as_published(FACTS, seed=7)
    backward = as_published(FACTS[::-1], seed=7)
    for name, part in together.groupby("fact_id"):
        alone = as_published(FACTS[FACTS["fact_id"] == name], seed=7)
        pd.testing.assert_frame_equal(part.reset_index(drop=True), alone)
        again = backward[backward["fact_id"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(again, alone)
    other = as_published(FACTS, seed=8)
    years = together["precision"] == "year"
    assert together.loc[years, "date"].equals(other.loc[years, "date"])
    assert (together.loc[~years, "date"] != other.loc[~years, "date"]).mean() > 0.8


def test_another_period_of_the_fact_is_not_incorrect():
    facts = table(("1992-06-03", "1996"), ("2005", "2010-08-31"), subject="x")
    dates = as_published(facts, seed=2)
    first = dates[dates["fact_id"] == "fact/0"]
    alone = as_published(facts[:1], seed=2)
    gone = pd.concat([alone, first]).drop_duplicates(keep=False)
    assert set(gone["label"]) == {"incorrect"}
    years = gone.loc[gone["precision"] == "year", "year"]
    assert list(years) == [2005, 2006, 2007, 2008, 2009, 2010]
    second = parse("2005"), parse("2010-08-31")
    assert (classify(parse(gone["date"]), *second) != "incorrect").all()
    kept = first[first["label"] == "incorrect"]
    assert (classify(parse(kept["date"]), *second) == "incorrect").all()
    # Only subject, relation and object together make the same fact.
    other = as_published(facts.assign(object=["a", "b"]), seed=2)
    pd.testing.assert_frame_equal(other[other["fact_id"] == "fact/0"], alone)


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
    thin = {"sampling": "published", "n_incorrect": 2, "n_correct": 1}
    pd.testing.assert_frame_equal(thinned(dates, **thin), dates[dates["stays"]])
    every = thinned(dates, **thin | {"n_incorrect": 6, "n_correct": 99})
    pd.testing.assert_frame_equal(every, dates)
    with pytest.raises(ValueError, match=r"n_incorrect is 0.*give a whole number from 1 up"):
        thinned(dates, **thin | {"n_incorrect": 0})


def test_balanced_dates_by_hand():
    # In force from some day of 2010 to some day of 2014: 2011 to 2013 are correct. Incorrect are the
    # years to 2020, up to 5.5 years after it, and so the six from 2004 on before it, of those that
    # reach back to the 1980s. The middles of three parts of six are the 2nd, the 4th and the 6th.
    facts = table(("2010", "2014"))
    assert years_of(balanced(facts)) == list(range(2004, 2021))
    thin = balanced(facts, n_correct=1, n_incorrect=3)
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
    # Without a year after it, no incorrect one is left, and as published there are many before it.
    over = table(("2010", "2014"), ("2015", "2020"))
    dates = balanced(over)
    assert set(dates.loc[dates["fact_id"] == "fact/1", "label"]) == {"correct", "transitional"}
    for found in (dates, as_published(over)):
        counted = dating.balance(found)[["facts", "one_sided"]]
        assert counted.values.tolist() == [[2, 1]] * len(PRECISIONS)
    # All incorrect years of the second fact are earlier.
    one, both = (dating.balance(as_published(facts)) for facts in (over[:1], over))
    assert both["win_rate"].tolist() == pytest.approx((one["win_rate"] + 1) / 2)


@settings(max_examples=15, deadline=None)
@given(bounds, st.integers(1, 6), st.integers(1, 6))
def test_sides_are_balanced_in_number_and_reach(pair, n_correct, n_incorrect):
    assume(parse(pair[0])[0] < parse(pair[1])[1])
    every = sample_dates(table(pair))
    some = thinned(every, n_correct=n_correct, n_incorrect=n_incorrect)
    for precision, part in some.groupby("precision"):
        full = every[every["precision"] == precision]
        off, far = [t.loc[t["label"] == "incorrect", "years_off"] for t in (part, full)]
        assert (off < 0).sum() == (off > 0).sum() <= n_incorrect
        assert off.abs().max() <= min(far.max(), -far.min()) + 1 or off.empty
        if off.empty and (far > 0).any() and (far < 0).any():  # the nearest ones are too far
            assert abs(far[far > 0].max() + far[far < 0].max()) > 1
        counts = [(table["label"] == "correct").sum() for table in (part, full)]
        assert counts[0] == min(counts[1], n_correct)


def test_dates_in_words():
    words = {"2019": "In 2019", "2019-12-01": "On December 1, 2019"}
    words |= {f"2001-{n:02}": f"In {name} 2001" for n, name in enumerate(calendar.month_name) if n}
    assert {date: dating.verbalise(date) for date in words} == words
