import numpy as np
import pandas as pd
import pytest

from factrobust import schemas
from factrobust.datasets.dates import classify, parse
from factrobust.datasets.successions import COLUMNS, load_successions, moments
from factrobust.paths import DATA
from factrobust.tables import FactsError

HEADER = "chain,office,holder,start,end\n"
FIRST = "uk,the prime minister,Wilson,1964-10-16,1970-06-19\n"
SECOND = "uk,the prime minister,Heath,1970-06-19,1974-03\n"
THIRD = "uk,the prime minister,Wilson,1974-03-04,1976\n"


@pytest.fixture
def load(tmp_path):
    """Load a table that is written as text."""

    def load_text(text: str) -> pd.DataFrame:
        path = tmp_path / "mine.csv"
        path.write_text(text, encoding="utf-8")
        return load_successions(path)

    return load_text


# ---- the embedded table --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def terms() -> pd.DataFrame:
    return load_successions()


def test_columns_and_types(terms):
    assert tuple(terms.columns) == COLUMNS
    schemas.Terms.validate(terms)
    assert terms["source"].str.match(r"Wikipedia: \S").all()
    assert (terms["question"] == "who was " + terms["office"] + "?").all()
    assert terms["office"].str.match("the [a-zA-Z]").all()


def test_counts_that_the_readme_says(terms):
    chains = terms.groupby("chain")
    years = moments(terms)
    assert (len(terms), len(chains), len(years)) == (344, 29, 1809)
    assert chains["holder"].nunique().agg(["min", "max"]).tolist() == [6, 19]
    assert chains["office"].nunique().eq(1).all()
    assert len(moments(terms, 1)) == 344 - 53  # so many terms hold no whole year
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert "344 terms of 29 offices, with 6 to 19 holders each" in readme
    assert "53 terms are too short" in readme


@pytest.mark.parametrize(
    ("chain", "year", "holder"),
    [
        ("us-president", 1962, "John F. Kennedy"),
        ("us-president", 2020, "Donald Trump"),
        ("uk-prime-minister", 1975, "Harold Wilson"),
        ("uk-prime-minister", 1968, "Harold Wilson"),
        ("germany-chancellor", 1997, "Helmut Kohl"),
        ("pope", 1990, "John Paul II"),
        ("un-secretary-general", 1999, "Kofi Annan"),
        ("new-york-mayor", 2003, "Michael Bloomberg"),
    ],
)
def test_holders_known_by_hand(terms, chain, year, holder):
    asked = moments(terms).query("chain == @chain and year == @year")
    assert asked["holder"].tolist() == [holder]


def test_no_other_term_may_hold_a_year_that_is_asked(terms):
    asked = moments(terms).merge(terms.assign(end=terms["end"].replace("", "2021")), on="chain")
    span = parse(asked["year"].astype(str))
    label = classify(span, parse(asked["start"]), parse(asked["end"]))
    own = asked["term_x"] == asked["term_y"]
    assert set(label[own]) == {"correct"}
    assert set(label[~own]) == {"incorrect"}


def test_offices_are_chosen_by_name(terms):
    some = load_successions(offices=["pope", "us-president"])
    assert some["chain"].unique().tolist() == ["us-president", "pope"]  # in the table's order
    own = terms[terms["chain"].isin(some["chain"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(some, own)
    wrong = r"has no office 'us-presidents'; it has us-president, us-v"
    with pytest.raises(ValueError, match=wrong):
        load_successions(offices=["pope", "us-presidents"])


# ---- tables of a reader's own --------------------------------------------------------------------


def test_own_file(load):
    terms = load(
        HEADER.replace("end", "end,aliases,note,prefix")
        + "uk,the prime minister,Wilson,1964,1970-06,Harold Wilson| Wilson,x,\n"
        + "bond,James Bond,Connery,1962,1967,,,the actor of James Bond was\n"
        + "uk,the prime minister,Heath,1970-06-19,,,,\n"
        + "bond,James Bond,Lazenby,1969,1969-12,,,\n"
    )
    assert tuple(terms.columns) == (*COLUMNS, "note")
    assert terms["term"].tolist() == [0, 0, 1, 1]
    assert terms.loc[0, "aliases"] == ["Harold Wilson"]
    assert terms.loc[1, "question"] == "who was James Bond?"
    prefixes = ["the prime minister was", "the actor of James Bond was"] * 2
    assert terms["prefix"].tolist() == [*prefixes[:3], "James Bond was"]
    assert terms["end"].tolist() == ["1970-06", "1967", "", "1969-12"]
    # Wilson: 1965 to 1969; Connery: 1963 to 1966; Heath, without an end: 1971 to 2020.
    years = moments(terms).groupby(["holder", "term"])["year"].agg(["min", "max", "size"])
    assert years.loc["Wilson"].to_numpy().tolist() == [[1965, 1969, 5]]
    assert years.loc["Connery"].to_numpy().tolist() == [[1963, 1966, 4]]
    assert years.loc["Heath"].to_numpy().tolist() == [[1971, 2020, 50]]
    assert "Lazenby" not in years.index


@pytest.mark.parametrize(
    ("start", "end", "n_years", "years"),
    [
        ("2000-12-31", "2006-01-01", None, [2001, 2002, 2003, 2004, 2005]),
        ("2001-01-01", "2005-12-31", None, [2002, 2003, 2004]),  # the bounds touch 2001 and 2005
        ("2000", "2006", 1, [2003]),
        ("2000", "2005", 1, [2003]),  # the later one in the middle of 2001 to 2004
        ("2000", "2006", 2, [2002, 2004]),  # (i + 1/2) 5 / 2 is 1.25 and 3.75
        ("2000", "2006", 3, [2001, 2003, 2005]),  # 0.83, 2.5, 4.17
        ("2000", "2003", 9, [2001, 2002]),
        ("2000-06", "2001-06", 1, []),
    ],
)
def test_moments(load, start, end, n_years, years):
    terms = load(
        f"{HEADER}a,the king,Ann,1990,1994\na,the king,Bob,{start},{end}\n"
        "b,the pope,Ann,1990,1994\nb,the pope,Cleo,1994,1998\n"
    )
    table = moments(terms, n_years)
    assert list(table.columns) == ["chain", "term", "year", "holder"]
    assert table["year"].dtype == np.int64
    assert table.query("holder == 'Bob'")["year"].tolist() == years
    assert table.groupby("chain", sort=False)["year"].agg(list)["b"][-1] in (1996, 1997)


def test_moments_need_a_count(load):
    with pytest.raises(ValueError, match="n_years is 0; give a whole number from 1 up, or None"):
        moments(load(HEADER + FIRST + SECOND), 0)


def test_gaps_returns_and_touching_bounds_are_allowed(load):
    terms = load(HEADER + FIRST + SECOND + THIRD + "uk,the prime minister,Blair,1997-05-02,2007\n")
    assert moments(terms, 1)["year"].tolist() == [1967, 1972, 1975, 2002]
    assert terms["term"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FIRST + SECOND.replace("1970-06-19", "1970-06-18"), "line 3: the term of 'Heath' begins before"),
        (SECOND + FIRST, "line 3: the term of 'Wilson' begins before the last one of its chain ends"),
        (FIRST + SECOND.replace("1974-03", "") + THIRD, "line 4: the term of 'Wilson' begins before"),
        (FIRST + SECOND.replace("1974-03", "1969"), "line 3: the term of 'Heath' ends before it begins"),
        (FIRST + SECOND.replace("1970-06-19", ""), "line 3: the start cell is empty"),
        (FIRST + SECOND.replace("1974-03", "1974-13"), "line 3: the end '1974-13' is no date"),
        (FIRST + SECOND.replace("Heath", ""), "line 3: the holder cell is empty; write who held"),
    ],
)  # fmt: skip
def test_bad_files(load, text, message):
    with pytest.raises(FactsError, match=rf"mine\.csv, {message}"):
        load(HEADER + text)
