"""Temporal facts: those of this repository, a reader's own, TimeStress's; and terms of offices."""

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
from factrobust.temporal.facts import load_named_temporal, load_successions, load_temporal_facts

facts = pytest.fixture(lambda: load_temporal_facts(), scope="module")
terms = pytest.fixture(lambda: load_successions(), scope="module")


@pytest.fixture
def mine(tmp_path):
    """A CSV of a reader's own, from its text."""

    def write(text: str) -> Path:
        path = tmp_path / "mine.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


# ---- the embedded facts --------------------------------------------------------------------------


def test_relations_go_on_after_a_date():
    relations = temporal.load_temporal_relations()
    assert set(relations.index) == set(temporal.PAPER_RELATIONS)
    texts = pd.concat([relations["question"], relations["prefix"]])
    assert not texts.str.contains(r"^[A-Z]|\b(?:year|month|day|date|when)\b").any()
    assert relations["question"].str.endswith("?").all()


def test_columns_and_types(facts):
    schemas.TemporalFacts.validate(facts)
    assert tuple(facts.columns) == temporal.COLUMNS
    assert facts["fact_id"].str.fullmatch(r"[a-z_]+/[\w-]+/[\w-]+").all()
    assert facts["relation"].value_counts().min() >= 25
    assert facts["popularity"].isna().all()
    for side in ("subject", "object"):
        known = facts[f"{side}_popularity"]
        assert known.notna().equals(facts[f"{side}_counts"] != "")
        assert known.dropna().between(2, 10).all()  # from a hundred to ten thousand million
    for fact in facts.itertuples():
        assert isinstance(fact.aliases, list)
        assert fact.object not in fact.aliases


KNOWN = """
    fact_id                                               start       end
    head_of_state/sri-lanka/mahinda-rajapaksa             2005-11-19  2015-01-09
    head_of_state/united-states/barack-obama              2009-01-20  2017-01-20
    head_of_government/wisconsin/scott-walker             2011-01-03  2019-01-07
    head_of_government/united-kingdom/margaret-thatcher   1979-05-04  1990-11-28
"""


def test_facts_known_by_hand_and_all_can_be_tested(facts):
    assert_rows(frame(KNOWN)[["fact_id"]].merge(facts), KNOWN)
    years = sample_dates(facts).query("precision == 'year'")
    counts = pd.crosstab(years["fact_id"], years["label"])
    assert len(counts) == len(facts)
    assert counts[["correct", "incorrect"]].min().min() > 0


def test_whole_years_by_hand():
    # Each bound's own day may be on either side of the change.
    rows = frame("""
        start       end         years
        2001        2003        1
        2001        2002        0
        2001-12-31  2003-01-01  1
        2002-01-01  2003-12-31  0
        2001-12     2003-01     1
        2001-01-01  2001-02-01  0
        2005        2001        0
        1999-05-02  2010        10
    """)
    assert temporal.whole_years(rows["start"], rows["end"]).tolist() == rows["years"].tolist()


def test_describe_dates_by_hand():
    labels = frame("""
        fact_id  precision  labels
        x        year       correct correct correct incorrect
        x        month      correct correct incorrect incorrect
        x        day        correct correct incorrect incorrect transitional
        y        year       correct incorrect incorrect transitional
        y        month      transitional transitional
    """)
    dates = labels.assign(label=labels["labels"].str.split()).explode("label")
    table = temporal.describe_dates(dates)
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


# ---- tables of a reader's own --------------------------------------------------------------------


def test_a_file_of_facts_needs_five_columns(mine):
    path = mine(
        "\ufeffsubject,relation,object,start,end,note\n"
        " the Comoros ,head_of_state,Azali Assoumani,1999,2002,first\n"
        "the Comoros,head_of_state,Azali Assoumani,2002-05-26,2006-05-26,again\n"
        "Augustus,position_held,Roman emperor,0014,1453-05-29,long ago\n"
    )
    found = load_temporal_facts(path)
    assert_rows(
        found,
        """
        fact_id                                           subject      note
        head_of_state/comoros/azali-assoumani/1999        the Comoros  first
        head_of_state/comoros/azali-assoumani/2002-05-26  the Comoros  again
        position_held/augustus/roman-emperor              Augustus     long ago
        """,
    )
    assert found["aliases"].tolist() == [[], [], []]
    assert found["popularity"].isna().all()
    assert tuple(found.columns) == (*temporal.COLUMNS, "note")


def test_popularities_of_different_counts_are_kept_apart(mine):
    path = mine(
        "subject,relation,object,aliases,start,end,"
        "subject_popularity,subject_counts,object_popularity,object_counts,popularity\n"
        "A,employer,B,b| B | bee ,2001,2009,3,views,4,views,\n"  # the mean is 3.5
        "C,employer,D,,2001,2009,5,people,6,views,\n"  # none
        "E,employer,F,,2001,2009,7,,,,\n"
        "G,employer,H,,2001,2009,,,,,\n"
        "I,employer,J,,2001,2009,1,,2,,9\n"  # its own
    )
    found = load_temporal_facts(path)
    assert found["aliases"].tolist() == [["b", "bee"], [], [], [], []]
    assert found["popularity"].tolist() == pytest.approx([3.5, *[np.nan] * 3, 9], nan_ok=True)
    assert_rows(
        temporal.popularities(found).sort_values("popularity"),
        """
        fact_id       what              popularity
        employer/i/j  subject           1
        employer/i/j  object            2
        employer/a/b  subject (views)   3
        employer/a/b  fact              3.5
        employer/a/b  object (views)    4
        employer/c/d  subject (people)  5
        employer/c/d  object (views)    6
        employer/e/f  subject           7
        employer/i/j  fact              9
        """,
    )
    # Where a fact has none, the mean of both sides stands for it, whatever they count.
    with_means = temporal.popularities_with_means(found)
    is_of_fact = with_means["what"].str.startswith("fact")
    assert len(with_means[~is_of_fact]) == 7
    assert_rows(
        with_means[is_of_fact],
        """
        fact_id       what                   popularity
        employer/a/b  fact                   3.5
        employer/i/j  fact                   9
        employer/c/d  fact (geometric mean)  5.5
        """,
    )


GOOD = (
    "subject,relation,object,start,end\n"
    "Sri Lanka,head_of_state,Mahinda Rajapaksa,2005-11-19,2015-01-09\n"
)
BAD = frame("""
    third line                                                       says
    A,employer,B,,2009                                               3: the start cell is empty; write when .*
    A,employer,B,2005-11-31,2009                                     3: the start '2005-11-31' is no date .*
    A,employer,B,2005,2013-02-29                                     3: the end '2013-02-29' is no date of
    A,employer,B,2009,2001                                           3: .* from 2009 to 2001 ends before .* swap
    A,employer,B,2009,2010                                           3: .* from 2009 to 2010 has no whole .* delete the line
    Sri Lanka,head_of_state,Mahinda Rajapaksa,2005-11-19,2015-01-09  3: .* is already in line 2; .*delete one
    A,spouse,B,2001,2009                                             3: .*'spouse' is unknown; .*choose
""")


@pytest.mark.parametrize(("line", "says"), BAD.to_numpy().tolist())
def test_a_bad_fact_is_one_sentence(mine, line, says):
    path = mine(f"{GOOD}{line}\n")
    with pytest.raises(FactsError, match=rf"^{path}, line {says}.*\.$"):
        load_temporal_facts(path)


FIRST = "chain,office,holder,start,end\nuk,the prime minister,Wilson,1964-10-16,1970-06-19\n"
THIRD = "uk,the prime minister,Wilson,1974-03-04,1976\n"
BAD_TERMS = frame("""
    holder,start,end          says
    Heath,1970-06-18,1974-03  3: the term of 'Heath' begins before the last one of its chain ends
    Heath,1970-06-19,         4: the term of 'Wilson' begins before
    Heath,1970-06-19,1969     3: the term of 'Heath' ends before it begins
    Heath,,1974-03            3: the start cell is empty
    Heath,1970-06-19,1974-13  3: the end '1974-13' is no date
    ,1970-06-19,1974-03       3: the holder cell is empty; write who held
""")


@pytest.mark.parametrize(("term", "says"), BAD_TERMS.to_numpy().tolist())
def test_a_bad_term_is_one_sentence(mine, term, says):
    path = mine(f"{FIRST}uk,the prime minister,{term}\n{THIRD}")
    with pytest.raises(FactsError, match=rf"^{path}, line {says}.*\.$"):
        load_successions(path)


def test_a_file_of_terms(mine):
    path = mine(
        "chain,office,holder,start,end,aliases,note,prefix\n"
        "uk,the prime minister,Wilson,1964,1970-06,Harold Wilson| Wilson,x,\n"
        "bond,James Bond,Connery,1962,1967,,,the actor of James Bond was\n"
        "uk,the prime minister,Heath,1970-06-19,,,,\n"
        "bond,James Bond,Lazenby,1969,1969-12,,,\n"
    )
    terms = load_successions(path)
    assert tuple(terms.columns) == (*temporal.TERM_COLUMNS, "note")
    assert_rows(
        terms,
        """
        holder   term  question                     prefix
        Wilson   0     who was the prime minister?  the prime minister was
        Connery  0     who was James Bond?          the actor of James Bond was
        Heath    1     who was the prime minister?  the prime minister was
        Lazenby  1     who was James Bond?          James Bond was
        """,
    )
    assert terms["end"].tolist() == ["1970-06", "1967", "", "1969-12"]
    assert terms["aliases"].tolist() == [["Harold Wilson"], [], [], []]
    asked = temporal.moments(terms).groupby("holder")["year"].agg(["min", "max", "size"])
    assert_rows(
        asked.reset_index(),
        """
        holder   min   max   size
        Connery  1963  1966  4
        Heath    1971  2020  50
        Wilson   1965  1969  5
        """,
    )


# ---- offices -------------------------------------------------------------------------------------


def test_counts_of_terms_are_those_that_the_readme_says(terms):
    schemas.Terms.validate(terms)
    assert tuple(terms.columns) == temporal.TERM_COLUMNS
    assert terms["source"].str.match(r"Wikipedia: \S").all()
    assert terms["office"].str.match("the [a-zA-Z]").all()
    chains = terms.groupby("chain")
    assert chains["office"].nunique().eq(1).all()
    assert len(temporal.moments(terms)) == 1809
    holders = chains["holder"].nunique()
    n_short = len(terms) - len(temporal.moments(terms, 1))
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    counts = f"{len(terms)} terms of {len(chains)} offices"
    assert counts == "344 terms of 29 offices"
    assert f"{counts}, with {holders.min()} to {holders.max()} holders each" in readme
    assert f"{n_short} terms are too short" in readme


HOLDERS = """
    chain                 year  holder
    us-president          1962  John F. Kennedy
    us-president          2020  Donald Trump
    uk-prime-minister     1975  Harold Wilson
    uk-prime-minister     1968  Harold Wilson
    germany-chancellor    1997  Helmut Kohl
    pope                  1990  John Paul II
    un-secretary-general  1999  Kofi Annan
    new-york-mayor        2003  Michael Bloomberg
"""


def test_holders_known_by_hand(terms):
    asked = frame(HOLDERS)[["chain", "year"]]
    assert_rows(asked.merge(temporal.moments(terms), how="left"), HOLDERS)


def test_no_other_term_may_hold_a_year_that_is_asked(terms):
    every = terms.assign(end=terms["end"].replace("", "2021"))
    asked = temporal.moments(terms).merge(every, on="chain")
    span = parse(asked["year"].astype(str))
    label = classify(span, parse(asked["start"]), parse(asked["end"]))
    is_asked = asked["term_x"] == asked["term_y"]
    assert set(label[is_asked]) == {"correct"}
    assert set(label[~is_asked]) == {"incorrect"}


MOMENTS = frame("""
    start       end         n_years  years
    2000-12-31  2006-01-01  99       2001 2002 2003 2004 2005
    2001-01-01  2005-12-31  99       2002 2003 2004
    2000        2006        1        2003
    2000        2005        1        2003
    2000        2006        2        2002 2004
    2000        2006        3        2001 2003 2005
    2000-06     2002-06     1        2001
    2000-06     2001-06     1        none
""")


@pytest.mark.parametrize(("start", "end", "n_years", "years"), MOMENTS.to_numpy().tolist())
def test_moments_by_hand(mine, start, end, n_years, years):
    """Bounds touch their own year. Of 2001 to 2004 the later middle is 2003. The i-th of n of five
    years is at (i + 1/2) 5 / n: 1.25 and 3.75 of two, 0.83, 2.5 and 4.17 of three."""
    path = mine(
        f"chain,office,holder,start,end\na,the king,Ann,1990,1994\na,the king,Bob,{start},{end}\n"
    )
    table = temporal.moments(load_successions(path), n_years)
    assert list(table.columns) == ["chain", "term", "year", "holder"]
    found = table.loc[table["holder"] == "Bob", "year"].astype(str)
    assert (" ".join(found) or "none") == years


# ---- TimeStress ----------------------------------------------------------------------------------

SUBJECTS = frame("""
    SubjectLabel  RelationLabel          ObjectLabel  StartDate  EndDate     FactPop
    LeBron X      member of sports team  Reds         2003       2010-07-08  1e5
    Cleopatra     spouse                 Mark Antony  -037       -030        2e5
    Ōsaka         capital of             Japan        0652-01    0655        1e6
""")
SAID = frame("""
    SubjectLabel  Time        IsCorrect     Statement
    LeBron X      2005        Correct       In 2005, which team did X play for? Reds
    LeBron X      2010        Transitional  In 2010, which team did X play for? Reds
    LeBron X      NaN         No context    which team did X play for? Reds
    LeBron X      2012-02     Incorrect     In February 2012, which team did X play for? Reds
    LeBron X      2010-03     Discarded     In March 2010, which team did X play for? Reds
    Cleopatra     -34         Correct       In -34, who was her partner? Mark Antony
    Ōsaka         0654-05-02  Correct       On May 2, 654, whose capital was it? Japan
    Ōsaka         0653        Correct       In 653, whose capital was it? Japan
""")
load_stress = partial(load_official, "timestress", loaders=temporal.LOADERS)


def of_timestress(subjects: pd.DataFrame, statements: pd.DataFrame) -> pd.DataFrame:
    """Rows of TimeStress's form."""
    rows = subjects.merge(statements, on="SubjectLabel")
    return rows.assign(SubjectID=rows["SubjectLabel"], RelationID="1", ObjectID="1")


def test_timestress(tmp_path):
    path = tmp_path / "train.parquet"
    of_timestress(SUBJECTS, SAID).to_parquet(path)
    facts, counts, dates = load_stress(path)
    schemas.TemporalFacts.validate(facts)
    schemas.Dates.validate(dates)
    # As asked without a date; of a fact that is not, as in a dated statement.
    assert_rows(
        facts,
        """
        fact_id                              start    end         popularity  question
        member_of_sports_team/lebron-x/reds  2003     2010-07-08  5           which team did X play for?
        capital_of/osaka/japan               0652-01  0655        6           whose capital was it?
        """,
    )
    assert facts["aliases"].tolist() == [[], []]
    assert facts["subject_popularity"].isna().all()
    assert facts["source"].eq("Orange/TimeStress, train.parquet").all()
    assert_rows(
        dates,
        """
        precision  date        year  label
        year       2005        2005  correct
        year       2010        2010  transitional
        month      2012-02     2012  incorrect
        year       0653        653   correct
        day        0654-05-02  654   correct
        """,
    )
    assert counts == {"no context": 1, "discarded": 1, "before year 1": 1}
    # 2003-01-01 to 2010-07-08 are 2745 days; 2005's middle is 731 + 182 days from the first.
    assert dates.loc[0, "alpha"] == pytest.approx(913 / 2745 - 0.5)
    # From 2010-07-08 to the middle of February 2012, the 15th: 541 + 31 + 15 days.
    assert dates.loc[[0, 2], "years_off"].tolist() == pytest.approx([0, 587 / 365.2425])


def test_timestress_in_a_folder_a_csv_and_the_cache(tmp_path, hub_cache):
    rows = of_timestress(SUBJECTS, SAID)
    rows.to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "data").mkdir()
    rows[:4].to_parquet(tmp_path / "data" / "0.parquet")
    rows[4:].to_parquet(tmp_path / "data" / "1.parquet")
    repo, revision = SETS["timestress"].hub.split("@")
    hub_cache(repo, revision, "data/train-00000-of-00002.parquet", rows[:4])
    hub_cache(repo, revision, "data/train-00001-of-00002.parquet", rows[4:])
    facts, _, dates = load_stress(None)
    assert facts["source"].tolist() == [SETS["timestress"].hub] * 2
    for name in ("data", "train.csv"):
        same = load_stress(tmp_path / name)
        pd.testing.assert_frame_equal(same.dates, dates)
        pd.testing.assert_frame_equal(
            same.table.drop(columns="source"), facts.drop(columns="source")
        )


# ---- sets by their names -------------------------------------------------------------------------


@pytest.fixture
def reds(tmp_path):
    """TimeStress's form: Ann and Bob were Reds from 2000 to 2010, and Ann somebody's spouse."""
    subjects = frame("""
        SubjectLabel  RelationLabel  ObjectLabel  StartDate  EndDate  FactPop
        Ann           member of      Reds         2000-01    2010-12  1
        Bob           member of      Reds         2000-01    2010-12  9
        Ann           spouse         Eve          2000-01    2010-12  1
    """)
    years = [year for year in range(2001, 2021) if year != 2010]
    statements = pd.DataFrame({"year": years, "IsCorrect": "Correct"})
    statements.loc[statements["year"] > 2010, "IsCorrect"] = "Incorrect"
    statements["Time"] = statements["year"].astype(str)
    statements["Statement"] = "In " + statements["Time"] + ", whose? Reds"
    path = tmp_path / "train.parquet"
    every = statements.merge(pd.DataFrame({"SubjectLabel": ["Ann", "Bob"]}), how="cross")
    of_timestress(subjects, every).to_parquet(path)
    return path


def test_the_papers_facts_of_timestress_are_the_popular_ones_of_its_relations(reds, monkeypatch):
    load = partial(load_named_temporal, sampling="published")
    assert len(load(f"timestress:{reds}").table) == 3
    both = load(f"timestress_paper:{reds}")
    assert both.table["fact_id"].tolist() == ["member_of/ann/reds", "member_of/bob/reds"]
    monkeypatch.setattr(temporal, "PAPER_FACTS", 1)
    one = load(f"timestress_paper:{reds}")
    assert one.table["fact_id"].tolist() == ["member_of/bob/reds"]
    assert len(one.dates) == 19


def test_timestress_is_sampled_and_thinned(reds):
    load = partial(load_named_temporal, f"timestress:{reds}", limit=1, n_correct=2, n_incorrect=3)
    facts, _, dates = load(sampling="published")
    assert len(facts) == 1
    assert dates["fact_id"].unique().tolist() == facts["fact_id"].tolist()
    # The middles of 2 parts of 2001 to 2009, and of 3 parts of 2011 to 2020.
    assert dates["year"].tolist() == [2003, 2007, 2012, 2016, 2019]
    assert dates.index.tolist() == [0, 1, 2, 3, 4]
    # It has no date before 2001, so no side is balanced.
    assert load().dates["year"].tolist() == [2003, 2007]


def test_a_sample_of_the_embedded_facts_with_months_and_days_of_some(facts):
    load = partial(load_named_temporal, n_correct=2, n_incorrect=3, seed=2)
    sampled, counts, dates = load(limit=6)
    six = temporal.sample_facts(facts, 6, seed=2)
    pd.testing.assert_frame_equal(sampled[list(six)], six)
    thin = thinned(sample_dates(six, seed=2), n_correct=2, n_incorrect=3)
    pd.testing.assert_frame_equal(dates, thin.reset_index(drop=True))
    assert counts == {}
    every, _, some = load(n_fine=6)
    assert len(every) == 281
    is_fine = some["fact_id"].isin(six["fact_id"])
    pd.testing.assert_frame_equal(some[is_fine].reset_index(drop=True), dates)
    assert set(some.loc[~is_fine, "precision"]) == {"year"}
    assert set(some.loc[~is_fine, "label"]) == {"correct", "incorrect"}


def test_a_csv_by_its_path_and_a_name_that_is_unknown(mine):
    facts, _, dates = load_named_temporal(str(mine(GOOD)), n_correct=2, n_incorrect=3)
    assert facts["fact_id"].tolist() == ["head_of_state/sri-lanka/mahinda-rajapaksa"]
    assert dates["label"].value_counts()["correct"] == 6  # two years, at three precisions
    with pytest.raises(ValueError, match="'timestres'; known are emb"):
        load_named_temporal("timestres")


# ---- wrong names and wrong subjects --------------------------------------------------------------

BESIDE = frame("""
    fact_id  relation  subject  object  question
    a        head      Peru     Juan    who of Peru?
    b        head      Peru     Rosa    who of Peru?
    c        head      Chile    juan    who of Chile?
    d        head      Chile    Luz     who of Chile?
    e        head      Cuba     Fidel   who of Cuba?
    f        head      Cuba     Raul    who of Cuba?
    g        club      Ana      Lima    who of Ana?
""")
BESIDE["prefix"] = BESIDE["subject"] + "'s"
BESIDE["aliases"] = [["J."], [], [], ["Lucia", "the J."], [], [], []]


def others(facts: pd.DataFrame, n: int, seed: int = 0) -> pd.Series:
    """The wrong names of each fact, sorted, in one text."""
    table = temporal.other_objects(facts, n, seed=seed).set_index("fact_id").sort_index()
    return table["others"].map(sorted).str.join(" ")


def test_other_objects_are_never_the_subjects_own():
    # Chile's juan is spelled like Peru's Juan; of Luz's spellings "the J." is "J." but for the article.
    found = others(BESIDE, 9)
    assert found[["a", "b"]].tolist() == ["Fidel Raul"] * 2
    assert found[["c", "d"]].tolist() == ["Fidel Raul Rosa"] * 2
    assert found[["e", "f"]].tolist() == ["Juan Luz Rosa juan"] * 2
    assert found["g"] == ""
    two = others(BESIDE, 2)
    assert two.str.count(" ").tolist() == [1, 1, 1, 1, 1, 1, 0]
    assert others(BESIDE[::-1], 2).equals(two)
    assert not others(BESIDE, 2, seed=1).equals(two)


def test_a_fact_is_asked_of_all_its_subjects():
    facts = BESIDE.assign(others=[[]] * 7)
    asked = temporal.of_all_subjects(temporal.other_subjects(facts, 2))
    of_b = asked[asked["fact_id"] == "b"].sort_values("asked_of")
    assert of_b["asked_of"].tolist() == [0, 1, 2]
    subjects = ["Peru", *of_b["other_subjects"].iloc[0]]
    assert sorted(subjects) == ["Chile", "Cuba", "Peru"]
    assert of_b["question"].tolist() == [f"who of {name}?" for name in subjects]
    assert of_b["prefix"].tolist() == [f"{name}'s" for name in subjects]
    assert of_b["object"].eq("Rosa").all()
    assert (asked["fact_id"] == "g").sum() == 1  # nobody else has a club


def test_a_fact_has_the_same_others_in_any_sample_of_the_embedded_facts():
    load = partial(load_named_temporal, n_correct=1, n_incorrect=1, n_fine=1)
    every = load(n_others=2, n_subjects=2).table.set_index("fact_id")
    few = load(n_others=2, n_subjects=2, limit=30).table.set_index("fact_id")
    columns = ["others", "other_subjects", "other_wording"]
    assert every[columns].map(len).eq(2).all(axis=None)
    assert few[columns].equals(every.loc[few.index, columns])
    objects = every.groupby(["relation", "subject"])["object"].agg(set)
    for fact in every.itertuples():
        for subject in fact.other_subjects:
            assert not objects[fact.relation, subject] & {fact.object, *fact.others}
