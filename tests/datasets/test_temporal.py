import re

import numpy as np
import pandas as pd
import pytest

from factrobust.datasets.dates import sample_dates
from factrobust.datasets.temporal import (
    COLUMNS,
    describe_dates,
    load_temporal_facts,
    load_temporal_relations,
    popularities,
    sample,
    whole_years,
)
from factrobust.tables import FactsError

RELATIONS = [
    *("employer", "member_of", "position_held", "member_of_sports_team"),
    *("head_of_state", "head_of_government"),
]
HEADER = "subject,relation,object,start,end\n"
GOOD = "Sri Lanka,head_of_state,Mahinda Rajapaksa,2005-11-19,2015-01-09\n"


@pytest.fixture
def load(tmp_path):
    """Load a table that is written as text."""

    def load_text(text: str, **options) -> pd.DataFrame:
        path = tmp_path / "mine.csv"
        path.write_text(text, encoding="utf-8")
        return load_temporal_facts(path, **options)

    return load_text


# ---- the embedded tables -------------------------------------------------------------------------


def test_relations_go_on_after_a_date():
    relations = load_temporal_relations()
    assert list(relations.index) == RELATIONS
    assert list(relations.columns) == ["question", "prefix"]
    assert relations.loc["head_of_state"].to_dict() == {
        "question": "who was the head of state of {subject}?",
        "prefix": "the head of state of {subject} was",
    }
    for text in (*relations["question"], *relations["prefix"]):
        assert not text[0].isupper()
        assert not re.search(r"\b(year|month|day|date|when)\b", text)  # precision-free
    assert relations["question"].str.endswith("?").all()


@pytest.fixture(scope="module")
def facts() -> pd.DataFrame:
    return load_temporal_facts()


def test_columns_and_types(facts):
    assert tuple(facts.columns) == COLUMNS
    numbers = ["subject_popularity", "object_popularity", "popularity"]
    assert facts.drop(columns=numbers).notna().all().all()
    assert set(facts[numbers].dtypes) == {np.dtype(float)}
    assert facts["popularity"].isna().all()
    for side in ("subject", "object"):
        known = facts[f"{side}_popularity"]
        assert (known.isna() == (facts[f"{side}_counts"] == "")).all()
        assert known.dropna().between(2, 10).all()  # from a hundred to ten thousand million
    assert facts["aliases"].map(lambda value: isinstance(value, list)).all()
    assert all(fact.object not in fact.aliases for fact in facts.itertuples())
    assert all(re.fullmatch(r"[a-z_]+/[\w-]+/[\w-]+", name) for name in facts["fact_id"])


def test_counts_and_years_promised(facts):
    assert list(facts["relation"].unique()) == RELATIONS
    assert len(facts) >= 150
    assert facts["relation"].value_counts().min() >= 25
    assert not facts.duplicated(["subject", "relation", "object"]).any()
    assert facts["start"].min() >= "1950"
    assert facts["end"].max() <= "2020-12-31"
    assert {len(date) for date in (*facts["start"], *facts["end"])} == {4, 7, 10}


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("head_of_state/sri-lanka/mahinda-rajapaksa", "2005-11-19", "2015-01-09"),
        ("head_of_state/united-states/barack-obama", "2009-01-20", "2017-01-20"),
        ("head_of_government/wisconsin/scott-walker", "2011-01-03", "2019-01-07"),
        ("head_of_government/united-kingdom/margaret-thatcher", "1979-05-04", "1990-11-28"),
    ],
)
def test_facts_known_by_hand(facts, name, start, end):
    assert facts.set_index("fact_id").loc[name, ["start", "end"]].tolist() == [start, end]


def test_every_fact_can_be_tested(facts):
    years = sample_dates(facts, sampling="published").query("precision == 'year'")
    counts = pd.crosstab(years["fact_id"], years["label"])
    assert len(counts) == len(facts)
    assert (counts[["correct", "incorrect"]] > 0).all().all()


def test_a_sample_is_spread_over_relations(facts):
    some, few = sample(facts, 60, seed=3), sample(facts[::-1], 20, seed=3)
    assert set(some["relation"].value_counts()) == {10}
    assert set(few["relation"].value_counts()) == {3, 4}
    assert set(few["fact_id"]) < set(some["fact_id"])
    assert set(some["fact_id"]) != set(sample(facts, 60, seed=4)["fact_id"])
    places = facts.reset_index().set_index("fact_id")["index"]
    assert places[some["fact_id"]].is_monotonic_increasing
    pd.testing.assert_frame_equal(sample(facts, 10**6, seed=0), facts)


# ---- tables of a user's own ----------------------------------------------------------------------


def test_own_file_needs_five_columns(load):
    mine = load(
        "\ufeffsubject,relation,object,start,end,note\n"
        " the Comoros ,head_of_state,Azali Assoumani,1999,2002,first\n"
        "the Comoros,head_of_state,Azali Assoumani,2002-05-26,2006-05-26,again\n"
        "Augustus,position_held,Roman emperor,0014,1453-05-29,long ago\n"
    )
    assert list(mine["fact_id"]) == [
        "head_of_state/comoros/azali-assoumani/1999",
        "head_of_state/comoros/azali-assoumani/2002-05-26",
        "position_held/augustus/roman-emperor",
    ]
    assert mine.loc[0, "subject"] == "the Comoros"
    assert list(mine["aliases"]) == [[], [], []]
    assert mine["popularity"].isna().all()
    assert list(mine["note"]) == ["first", "again", "long ago"]
    assert tuple(mine.columns) == (*COLUMNS, "note")
    mine = load(
        "subject,relation,object,aliases,start,end,subject_popularity,object_popularity,popularity\n"
        "A,employer,B,b| B | bee ,2001,2009,3,4,\nC,employer,D,,2001,2009,3,4,5\n"
        "E,employer,F,,2001,2009,3,,\n"
    )
    assert list(mine["aliases"]) == [["b", "bee"], [], []]
    assert mine["popularity"].fillna(-1).tolist() == [3.5, 5, -1]


def test_popularities_of_different_counts_are_kept_apart(load):
    mine = load(
        HEADER[:-1] + ",subject_popularity,subject_counts,object_popularity,object_counts\n"
        "A,employer,B,2001,2009,3,views,4,views\n"  # the mean is 3.5
        "C,employer,D,2001,2009,5,people,6,views\n"  # none
        "E,employer,F,2001,2009,7,,,\n"
        "G,employer,H,2001,2009,,,,\n"
    )
    assert mine["popularity"].fillna(-1).tolist() == [3.5, -1, -1, -1]
    long = popularities(mine)
    assert list(long.columns) == ["fact_id", "what", "popularity"]
    assert long.sort_values("popularity").drop(columns="fact_id").to_numpy().tolist() == [
        ["subject (views)", 3],
        ["fact", 3.5],
        ["object (views)", 4],
        ["subject (people)", 5],
        ["object (views)", 6],
        ["subject", 7],
    ]
    assert set(long["fact_id"]) == set(mine["fact_id"][:3])


def test_how_many_popularities_are_known(facts):
    assert popularities(facts)["what"].value_counts().to_dict() == {
        "subject (views)": 121,
        "subject (people)": 86,
        "object (views)": 79,
    }


@pytest.mark.parametrize(
    ("text", "where", "what", "remedy"),
    [
        (HEADER + GOOD.replace("2005-11-19", ""), "line 2", "start cell is empty", "write when"),
        (HEADER + GOOD.replace("2005-11-19", "2005-11-31"), "line 2", "start '2005-11-31' is no date", "YYYY-MM-DD"),
        (HEADER + GOOD.replace("2015-01-09", "2013-02-29"), "line 2", "end '2013-02-29' is no date", "calendar"),
        (HEADER + GOOD + "A,employer,B,2009,2001\n", "line 3", "from 2009 to 2001 ends before", "swap"),
        (HEADER + "A,employer,B,2009,2010\n", "line 2", "from 2009 to 2010 has no whole", "delete the line"),
        (HEADER + GOOD + GOOD, "line 3", "is already in line 2", "delete one"),
        (HEADER + GOOD.replace("head_of_state", "spouse"), "line 2", "'spouse' is unknown", "choose"),
    ],
)  # fmt: skip
def test_bad_file_gives_one_sentence(load, tmp_path, text, where, what, remedy):
    with pytest.raises(FactsError) as caught:
        load(text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'mine.csv'}, {where}:")
    assert what in message
    assert remedy in message
    assert message.endswith(".")


def test_periods_that_touch_are_two(load):
    mine = load(HEADER + "A,employer,B,2001,2005\nA,employer,B,2005,2009\n")
    assert list(mine["fact_id"]) == ["employer/a/b/2001", "employer/a/b/2005"]
    on_one_day = "A,employer,B,2001,2005-05-02\nA,employer,B,2005-05-02,2009\n"
    assert len(load(HEADER + on_one_day)) == 2


@pytest.mark.parametrize(
    ("start", "end", "years"),
    [
        ("2001", "2003", 1),
        ("2001", "2002", 0),
        ("2001-12-31", "2003-01-01", 1),
        ("2002-01-01", "2003-12-31", 0),  # each bound's own day may be either side of the change
        ("2001-12", "2003-01", 1),
        ("2001-01-01", "2001-02-01", 0),
        ("2005", "2001", 0),
        ("1999-05-02", "2010", 10),
    ],
)
def test_whole_years_by_hand(start, end, years):
    assert whole_years(pd.Series([start]), pd.Series([end])).tolist() == [years]


# ---- counts --------------------------------------------------------------------------------------


def test_describe_dates_by_hand():
    labels = {
        ("x", "year"): "ccci", ("x", "month"): "ccii", ("x", "day"): "cciit",
        ("y", "year"): "ciit", ("y", "month"): "tt", ("y", "day"): "c",
    }  # fmt: skip
    words = {"c": "correct", "i": "incorrect", "t": "transitional"}
    rows = [(*key, words[letter]) for key, letters in labels.items() for letter in letters]
    table = describe_dates(pd.DataFrame(rows, columns=["fact_id", "precision", "label"]))
    assert list(table.index) == ["year", "month", "day", "overall"]
    assert list(table.columns) == ["correct", "incorrect", "transitional", "tests", "n"]
    assert table.loc["year"].tolist() == [2, 1.5, 0.5, (3 + 2) / 2, 2]
    assert table.loc["month"].tolist() == [1, 1, 1, (4 + 0) / 2, 2]
    assert table.loc["day"].tolist() == [1.5, 1, 0.5, (4 + 0) / 2, 2]
    assert table.loc["overall"].tolist() == pytest.approx([4.5 / 3, 3.5 / 3, 2 / 3, 6.5 / 3, 2])
