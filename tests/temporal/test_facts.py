import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame

from factrobust import schemas
from factrobust.datasets.official import SETS, load_official
from factrobust.paths import DATA
from factrobust.tables import FactsError
from factrobust.temporal import facts as temporal
from factrobust.temporal.dates import classify, parse, sample_dates, thinned
from factrobust.temporal.facts import load_successions, load_temporal_facts, moments, popularities

RELATIONS = [
    *("employer", "member_of", "position_held", "member_of_sports_team"),
    *("head_of_state", "head_of_government"),
]
HEADER = "subject,relation,object,start,end\n"
GOOD = "Sri Lanka,head_of_state,Mahinda Rajapaksa,2005-11-19,2015-01-09\n"
OFFICE = "chain,office,holder,start,end\n"
FIRST = "uk,the prime minister,Wilson,1964-10-16,1970-06-19\n"
SECOND = "uk,the prime minister,Heath,1970-06-19,1974-03\n"
THIRD = "uk,the prime minister,Wilson,1974-03-04,1976\n"


@pytest.fixture
def load(tmp_path):
    """Load a table that is written as text: of facts, or of terms."""

    def load_text(text: str) -> pd.DataFrame:
        path = tmp_path / "mine.csv"
        path.write_text(text, encoding="utf-8")
        return load_successions(path) if "office" in text else load_temporal_facts(path)

    return load_text


def test_relations_go_on_after_a_date():
    relations = temporal.load_temporal_relations()
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
    assert tuple(facts.columns) == temporal.COLUMNS
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
    # Counts and years that are promised.
    assert list(facts["relation"].unique()) == RELATIONS
    assert len(facts) >= 150
    assert facts["relation"].value_counts().min() >= 25
    assert not facts.duplicated(["subject", "relation", "object"]).any()
    assert facts["start"].min() >= "1950"
    assert facts["end"].max() <= "2020-12-31"
    assert {len(date) for date in (*facts["start"], *facts["end"])} == {4, 7, 10}


def test_facts_known_by_hand(facts):
    known = {
        "head_of_state/sri-lanka/mahinda-rajapaksa": ["2005-11-19", "2015-01-09"],
        "head_of_state/united-states/barack-obama": ["2009-01-20", "2017-01-20"],
        "head_of_government/wisconsin/scott-walker": ["2011-01-03", "2019-01-07"],
        "head_of_government/united-kingdom/margaret-thatcher": ["1979-05-04", "1990-11-28"],
    }
    bounds = facts.set_index("fact_id").loc[[*known], ["start", "end"]]
    assert dict(zip(known, bounds.to_numpy().tolist(), strict=True)) == known
    # Every fact can be tested.
    years = sample_dates(facts).query("precision == 'year'")
    counts = pd.crosstab(years["fact_id"], years["label"])
    assert len(counts) == len(facts)
    assert (counts[["correct", "incorrect"]] > 0).all().all()


# ---- tables of a user's own ----------------------------------------------------------------------


def test_own_file_needs_five_columns(load):
    mine = load(
        "\ufeffsubject,relation,object,start,end,note\n"
        " the Comoros ,head_of_state,Azali Assoumani,1999,2002,first\n"
        "the Comoros,head_of_state,Azali Assoumani,2002-05-26,2006-05-26,again\n"
        "Augustus,position_held,Roman emperor,0014,1453-05-29,long ago\n"
    )
    assert mine[["fact_id", "subject", "aliases", "note"]].to_numpy().tolist() == [
        ["head_of_state/comoros/azali-assoumani/1999", "the Comoros", [], "first"],
        ["head_of_state/comoros/azali-assoumani/2002-05-26", "the Comoros", [], "again"],
        ["position_held/augustus/roman-emperor", "Augustus", [], "long ago"],
    ]
    assert mine["popularity"].isna().all()
    assert tuple(mine.columns) == (*temporal.COLUMNS, "note")
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


def test_a_fact_without_a_popularity_has_the_mean_of_both_sides(load):
    """As the embedded ones; TimeStress and the invented world tell that of the fact itself."""
    mine = load(
        HEADER[:-1]
        + ",subject_popularity,subject_counts,object_popularity,object_counts,popularity\n"
        "A,employer,B,2001,2009,5,people,6,views,\n"  # the mean is 5.5
        "C,employer,D,2001,2009,5,people,6,views,2\n"  # its own
        "E,employer,F,2001,2009,,,,,3\n"
        "G,employer,H,2001,2009,7,people,,,\n"
    )
    long = temporal.popularities_with_means(mine)
    of_facts = long[long["what"].str.startswith("fact")]
    assert of_facts["what"].tolist() == ["fact", "fact", "fact (geometric mean)"]
    assert of_facts["popularity"].tolist() == [2, 3, 5.5]
    assert of_facts["fact_id"].tolist() == mine["fact_id"].iloc[[1, 2, 0]].tolist()
    assert len(long) == len(temporal.popularities(mine)) + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + GOOD.replace("2005-11-19", ""), "line 2: the start cell is empty; write when .*"),
        (
            HEADER + GOOD.replace("05-11-19", "05-11-31"),
            "line 2: the start '2005-11-31' is no date .*",
        ),
        (
            HEADER + GOOD.replace("2015-01-09", "2013-02-29"),
            "line 2: the end '2013-02-29' is no date of",
        ),
        (
            HEADER + GOOD + "A,employer,B,2009,2001\n",
            "line 3: .* from 2009 to 2001 ends before .* swap",
        ),
        (
            HEADER + "A,employer,B,2009,2010\n",
            "line 2: .* from 2009 to 2010 has no whole .* delete the line",
        ),
        (HEADER + GOOD + GOOD, "line 3: .* is already in line 2; .*delete one"),
        (
            HEADER + GOOD.replace("head_of_state", "spouse"),
            "line 2: .*'spouse' is unknown; .*choose",
        ),
        (
            OFFICE + FIRST + SECOND.replace("1970-06-19", "1970-06-18"),
            "line 3: the term of 'Heath' begins before",
        ),
        (
            OFFICE + SECOND + FIRST,
            "line 3: the term of 'Wilson' begins before the last one of its chain ends",
        ),
        (
            OFFICE + FIRST + SECOND.replace("1974-03", "") + THIRD,
            "line 4: the term of 'Wilson' begins before",
        ),
        (
            OFFICE + FIRST + SECOND.replace("1974-03", "1969"),
            "line 3: the term of 'Heath' ends before it begins",
        ),
        (OFFICE + FIRST + SECOND.replace("1970-06-19", ""), "line 3: the start cell is empty"),
        (
            OFFICE + FIRST + SECOND.replace("1974-03", "1974-13"),
            "line 3: the end '1974-13' is no date",
        ),
        (
            OFFICE + FIRST + SECOND.replace("Heath", ""),
            "line 3: the holder cell is empty; write who held",
        ),
    ],
)
def test_bad_file_gives_one_sentence(load, text, message):
    with pytest.raises(FactsError, match=rf"^.*mine\.csv, {message}.*\.$"):
        load(text)


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
    assert temporal.whole_years(pd.Series([start]), pd.Series([end])).tolist() == [years]


def test_describe_dates_by_hand():
    labels = frame("""
        fact_id  precision  labels
        x        year       ccci
        x        month      ccii
        x        day        cciit
        y        year       ciit
        y        month      tt
    """)
    rows = labels.assign(label=labels["labels"].map(list)).explode("label")
    rows["label"] = rows["label"].map({"c": "correct", "i": "incorrect", "t": "transitional"})
    table = temporal.describe_dates(rows)
    assert table.index.tolist() == ["year", "month", "day", "overall"]
    # Pairs of correct and incorrect ones: 3 + 2, 4 + 0, 4 + 0, of two facts.
    assert_rows(
        table[:3],
        """
        correct  incorrect  transitional  tests  n
        2        1.5        0.5           2.5    2
        1        1          1             2      2
        1        1          0.5           2      2
        """,
    )
    assert table.loc["overall"].tolist() == pytest.approx([4 / 3, 3.5 / 3, 2 / 3, 6.5 / 3, 2])


@pytest.fixture(scope="module")
def terms() -> pd.DataFrame:
    return load_successions()


def test_columns_types_and_counts_of_terms(terms):
    assert tuple(terms.columns) == temporal.TERM_COLUMNS
    schemas.Terms.validate(terms)
    assert terms["source"].str.match(r"Wikipedia: \S").all()
    assert (terms["question"] == "who was " + terms["office"] + "?").all()
    assert terms["office"].str.match("the [a-zA-Z]").all()
    # Counts that the README says.
    chains = terms.groupby("chain")
    years = moments(terms)
    assert len(terms) == 344
    assert len(chains) == 29
    assert len(years) == 1809
    assert chains["holder"].nunique().agg(["min", "max"]).tolist() == [6, 19]
    assert chains["office"].nunique().eq(1).all()
    assert len(moments(terms, 1)) == 344 - 53  # so many terms hold no whole year
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert "344 terms of 29 offices, with 6 to 19 holders each" in readme
    assert "53 terms are too short" in readme


def test_holders_known_by_hand(terms):
    known = frame("""
        chain                 year  holder
        us-president          1962  John F. Kennedy
        us-president          2020  Donald Trump
        uk-prime-minister     1975  Harold Wilson
        uk-prime-minister     1968  Harold Wilson
        germany-chancellor    1997  Helmut Kohl
        pope                  1990  John Paul II
        un-secretary-general  1999  Kofi Annan
        new-york-mayor        2003  Michael Bloomberg
    """)
    found = known.merge(moments(terms), on=["chain", "year"], how="left", suffixes=("", "_held"))
    assert found["holder_held"].tolist() == known["holder"].tolist()


def test_no_other_term_may_hold_a_year_that_is_asked(terms):
    asked = moments(terms).merge(terms.assign(end=terms["end"].replace("", "2021")), on="chain")
    span = parse(asked["year"].astype(str))
    label = classify(span, parse(asked["start"]), parse(asked["end"]))
    own = asked["term_x"] == asked["term_y"]
    assert set(label[own]) == {"correct"}
    assert set(label[~own]) == {"incorrect"}


def test_own_file_of_terms(load):
    terms = load(
        OFFICE.replace("end", "end,aliases,note,prefix")
        + "uk,the prime minister,Wilson,1964,1970-06,Harold Wilson| Wilson,x,\n"
        + "bond,James Bond,Connery,1962,1967,,,the actor of James Bond was\n"
        + "uk,the prime minister,Heath,1970-06-19,,,,\n"
        + "bond,James Bond,Lazenby,1969,1969-12,,,\n"
    )
    assert tuple(terms.columns) == (*temporal.TERM_COLUMNS, "note")
    assert terms[["term", "end", "prefix"]].to_numpy().tolist() == [
        [0, "1970-06", "the prime minister was"],
        [0, "1967", "the actor of James Bond was"],
        [1, "", "the prime minister was"],
        [1, "1969-12", "James Bond was"],
    ]
    assert terms.loc[0, "aliases"] == ["Harold Wilson"]
    assert terms.loc[1, "question"] == "who was James Bond?"
    asked = moments(terms).groupby(["holder", "term"])["year"].apply(list)
    years = {("Connery", 0): (1963, 1966), ("Heath", 1): (1971, 2020), ("Wilson", 0): (1965, 1969)}
    assert asked.to_dict() == {who: [*range(a, b + 1)] for who, (a, b) in years.items()}


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
        f"{OFFICE}a,the king,Ann,1990,1994\na,the king,Bob,{start},{end}\n"
        "b,the pope,Ann,1990,1994\nb,the pope,Cleo,1994,1998\n"
    )
    table = moments(terms, n_years)
    assert list(table.columns) == ["chain", "term", "year", "holder"]
    assert table["year"].dtype == np.int64
    assert table.query("holder == 'Bob'")["year"].tolist() == years
    assert table.groupby("chain", sort=False)["year"].agg(list)["b"][-1] in (1996, 1997)


# ---- sets by their names ----------------------------------------------------------------------

YEARS = {"n_correct": 2, "n_incorrect": 3}


@pytest.fixture
def reds(tmp_path: Path) -> Path:
    """A folder of TimeStress's form: Ann and Bob were Reds from 2000 to 2010."""
    labels = {y: "Correct" if y < 2010 else "Incorrect" for y in range(2001, 2021) if y != 2010}
    rows = [("Ann", None, "whose was Ann? Reds", "No context")]
    for who in ("Ann", "Bob"):
        rows += [(who, f"{y}", f"In {y}, whose was {who}? Reds", x) for y, x in labels.items()]
    table = pd.DataFrame(rows, columns=["SubjectLabel", "Time", "Statement", "IsCorrect"])
    table = table.assign(
        SubjectID=table["SubjectLabel"],
        RelationID="1",
        ObjectID="1",
        FactPop="1",
    )
    table = table.assign(RelationLabel="member of", ObjectLabel="Reds")
    (tmp_path / "timestress").mkdir()
    path = tmp_path / "timestress" / "train.parquet"
    table.assign(StartDate="2000", EndDate="2010").to_parquet(path)
    return path.parent


def test_the_embedded_temporal_facts_are_those_of_their_loader() -> None:
    facts, counts, dates = temporal.load_named_temporal(limit=6, seed=2, **YEARS)
    own = temporal.sample(temporal.load_temporal_facts(), 6, seed=2)
    pd.testing.assert_frame_equal(facts[list(own)], own)
    thin = thinned(sample_dates(own, seed=2), **YEARS).reset_index(drop=True)
    pd.testing.assert_frame_equal(dates, thin)
    assert counts == {}
    every, _, some = temporal.load_named_temporal(n_fine=6, seed=2, **YEARS)
    assert len(every) == 281
    fine = some["fact_id"].isin(own["fact_id"])
    pd.testing.assert_frame_equal(some[fine].reset_index(drop=True), dates)
    assert set(some.loc[~fine, "precision"]) == {"year"}


def test_the_papers_relations_and_facts_of_timestress(
    reds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = reds / "train.parquet"
    rows = pd.read_parquet(path)
    other = rows.assign(RelationLabel="spouse", RelationID="2")
    known = rows.assign(FactPop=np.where(rows["SubjectLabel"] == "Bob", "9", "1"))
    pd.concat([known, other]).to_parquet(path)
    assert len(temporal.load_named_temporal(f"timestress:{reds}").table) == 4
    both = temporal.load_named_temporal(f"timestress_paper:{reds}", sampling="published")
    assert both.table["fact_id"].tolist() == ["member_of/ann/reds", "member_of/bob/reds"]
    monkeypatch.setattr(temporal, "PAPER_FACTS", 1)
    one = temporal.load_named_temporal(f"timestress_paper:{reds}", sampling="published")
    assert one.table["fact_id"].tolist() == ["member_of/bob/reds"]  # the more popular one
    assert len(one.dates) == 19
    assert set(temporal.PAPER_RELATIONS) == set(temporal.load_temporal_relations().index)


def test_timestress_is_sampled_and_thinned(reds: Path) -> None:
    name = f"timestress:{reds}"
    facts, _, dates = temporal.load_named_temporal(name, sampling="published", limit=1, **YEARS)
    assert len(facts) == 1
    assert dates["fact_id"].unique().tolist() == facts["fact_id"].tolist()
    # The middles of 2 parts of 2001 to 2009, and of 3 parts of 2011 to 2020.
    assert dates["year"].tolist() == [2003, 2007, 2012, 2016, 2019]
    assert dates.index.tolist() == [0, 1, 2, 3, 4]
    # It has no date before 2001, so no side is balanced.
    _, _, dates = temporal.load_named_temporal(name, limit=1, **YEARS)
    assert dates["year"].tolist() == [2003, 2007]


def test_temporal_facts_of_your_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("subject,relation,object,start,end\nAnn,employer,the Reds,2000,2010\n")
    facts, _, dates = temporal.load_named_temporal(str(path), **YEARS)
    assert facts["fact_id"].tolist() == ["employer/ann/reds"]
    assert dates["label"].value_counts()["correct"] == 6  # two years, at three precisions
    with pytest.raises(ValueError, match="'timestres'; known are emb"):
        temporal.load_named_temporal("timestres")


load_stress = partial(load_official, loaders=temporal.LOADERS)
LAKERS = ("Q1", "LeBron X", "P54", "member of sports team", "Q2", "Reds", "2003", "2010-07-08")
CLEO = ("Q3", "Cleopatra", "P26", "spouse", "Q4", "Mark Antony", "-037", "-030")
OSAKA = ("Q5", "Ōsaka", "P1376", "capital of", "Q6", "Japan", "0652", "0655")
STRESS = [
    # fact, Time, Statement, IsCorrect, FactPop
    (LAKERS, "2005", "In 2005, which team did X play for? Reds", "Correct", 1e5),
    (LAKERS, "2010", "In 2010, which team did X play for? Reds", "Transitional", 1e5),
    (LAKERS, None, "which team did X play for? Reds", "No context", 1e5),
    (LAKERS, "2012-02", "In February 2012, which team did X play for? Reds", "Incorrect", 1e5),
    (LAKERS, "2010-03", "In March 2010, which team did X play for? Reds", "Discarded", 1e5),
    (CLEO, "-34", "In -34, who was her partner? Mark Antony", "Correct", 2e5),
    (OSAKA, "0654-05-02", "On May 2, 654, whose capital was it? Japan", "Correct", 1e6),
    (OSAKA, "0653", "In 653, whose capital was it? Japan", "Correct", 1e6),
]
STRESS_COLUMNS = [
    *("SubjectID", "SubjectLabel", "RelationID", "RelationLabel", "ObjectID", "ObjectLabel"),
    *("StartDate", "EndDate", "Time", "Statement", "IsCorrect", "FactPop"),
]


ROWS = pd.DataFrame([(*fact, *others) for fact, *others in STRESS], columns=STRESS_COLUMNS)


@pytest.fixture
def stress(tmp_path):
    """The rows with some changes, in a file."""

    def load_rows(name: str = "train.parquet", **changes):
        ROWS.assign(**changes).to_parquet(tmp_path / name)
        return load_stress("timestress", tmp_path / name)

    return load_rows


def test_timestress(stress):
    facts, counts, dates = stress()
    schemas.TemporalFacts.validate(facts)
    schemas.Dates.validate(dates)
    # As asked without a date; of a fact that is not, as in a dated statement.
    asked = ["which team did X play for?", "whose capital was it?"]
    columns = ["fact_id", "start", "end", "question", "popularity", "aliases"]
    assert facts[columns].to_numpy().tolist() == [
        ["member_of_sports_team/lebron-x/reds", "2003", "2010-07-08", asked[0], 5, []],
        ["capital_of/osaka/japan", "0652", "0655", asked[1], 6, []],
    ]
    assert facts["subject_popularity"].isna().all()
    assert facts["source"].eq("Orange/TimeStress, train.parquet").all()
    assert dates[["precision", "date", "year", "label"]].to_numpy().tolist() == [
        ["year", "2005", 2005, "correct"],
        ["year", "2010", 2010, "transitional"],
        ["month", "2012-02", 2012, "incorrect"],
        ["year", "0653", 653, "correct"],
        ["day", "0654-05-02", 654, "correct"],
    ]
    assert counts == {"no context": 1, "discarded": 1, "before year 1": 1}
    # 2003-01-01 to 2010-07-08 are 2745 days; 2005's middle is 731 + 182 days from the first.
    assert dates.loc[0, "alpha"] == pytest.approx(913 / 2745 - 0.5)
    assert dates.loc[0, "years_off"] == 0
    # From 2010-07-08 to the middle of February 2012, the 15th: 541 + 31 + 15 days.
    assert dates.loc[2, "years_off"] == pytest.approx(587 / 365.2425)


def test_timestress_in_a_folder_a_csv_and_the_cache(stress, tmp_path, hub_cache):
    facts, _, dates = stress()
    folder = tmp_path / "data"
    folder.mkdir()
    for n, part in enumerate((ROWS[:4], ROWS[4:])):
        part.to_parquet(folder / f"{n}.parquet")
        name = f"data/train-0000{n}-of-00002.parquet"
        hub_cache(*SETS["timestress"].hub.split("@"), name, part)
    ROWS.to_csv(tmp_path / "train.csv", index=False)
    for path in (folder, tmp_path / "train.csv", None):
        same = load_stress("timestress", path)
        pd.testing.assert_frame_equal(same.dates, dates)
        pd.testing.assert_frame_equal(same.table.assign(source=""), facts.assign(source=""))
    assert set(same.table["source"]) == {SETS["timestress"].hub}


BESIDE = frame("""
    fact_id  relation  subject  object
    a        head      Peru     Juan
    b        head      Peru     Rosa
    c        head      Chile    juan
    d        head      Chile    Luz
    e        head      Cuba     Fidel
    f        head      Cuba     Raul
    g        club      Ana      Lima
""")
ALIASES = {"a": ["J."], "d": ["Lucia", "the J."]}


@pytest.fixture
def some_facts() -> pd.DataFrame:
    asked = {"question": "who of " + BESIDE["subject"] + "?", "prefix": BESIDE["subject"] + "'s"}
    return BESIDE.assign(aliases=[ALIASES.get(name, []) for name in BESIDE["fact_id"]], **asked)


def test_other_objects_are_never_the_subjects_own(some_facts: pd.DataFrame) -> None:
    every = temporal.other_objects(some_facts, 9).set_index("fact_id")["others"].map(set)
    # Chile's juan is spelled like Peru's Juan; of Luz's spellings "the J." is "J." but for the article.
    assert every[["a", "b"]].tolist() == [{"Fidel", "Raul"}] * 2
    assert every[["c", "d"]].tolist() == [{"Rosa", "Fidel", "Raul"}] * 2
    assert every[["e", "g"]].tolist() == [{"Juan", "juan", "Rosa", "Luz"}, set()]
    two = temporal.other_objects(some_facts[::-1], 2).set_index("fact_id")["others"]
    assert (two.map(len).sort_index() == [2, 2, 2, 2, 2, 2, 0]).all()
    again = temporal.other_objects(some_facts, 2, seed=1).set_index("fact_id")["others"]
    assert two.sort_index().tolist() == temporal.other_objects(some_facts, 2)["others"].tolist()
    assert any(two[name] != again[name] for name in "abcdef")


def test_a_fact_is_asked_of_all_its_subjects(some_facts: pd.DataFrame) -> None:
    named = temporal.other_subjects(some_facts.assign(others=[[]] * 7), 2)
    asked = temporal.of_all_subjects(named)
    of_b = asked[asked["fact_id"] == "b"].sort_values("asked_of")
    assert of_b["asked_of"].tolist() == [0, 1, 2]
    first, second = of_b["other_subjects"].iloc[0]
    assert {first, second} == {"Chile", "Cuba"}
    expected = [f"who of {name}?" for name in ("Peru", first, second)]
    assert of_b["question"].tolist() == expected
    assert of_b["prefix"].tolist() == [f"{name}'s" for name in ("Peru", first, second)]
    assert of_b["object"].eq("Rosa").all()
    assert asked[asked["fact_id"] == "g"]["asked_of"].tolist() == [0]  # nobody else has a club


def test_a_fact_has_the_same_others_in_any_sample_of_the_embedded_facts() -> None:
    how = {
        "n_others": 2,
        "n_subjects": 2,
        "n_correct": 1,
        "n_incorrect": 1,
        "n_fine": 1,
    }
    every = temporal.load_named_temporal(**how).table.set_index("fact_id")
    few = temporal.load_named_temporal(limit=30, **how).table.set_index("fact_id")
    columns = ["others", "other_subjects", "other_wording"]
    assert every[columns].map(len).eq(2).all(axis=None)
    assert few[columns].equals(every.loc[few.index, columns])
    assert every["question"].str.endswith("?").all()
    owned = every.groupby(["relation", "subject"])["object"].agg(set)
    for fact in every.itertuples():
        for subject in fact.other_subjects:
            assert not owned[fact.relation, subject] & {fact.object, *fact.others}
