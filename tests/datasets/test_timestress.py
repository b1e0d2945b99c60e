import json

import numpy as np
import pandas as pd
import pytest

from factrobust.datasets.dates import COLUMNS as DATE_COLUMNS
from factrobust.datasets.dates import classify
from factrobust.datasets.temporal import COLUMNS
from factrobust.datasets.timestress import load_timestress
from factrobust.tables import FactsError

LAKERS = ("Q1", "LeBron X", "P54", "member of sports team", "Q2", "Reds", "2003", "2010-07-08")
CLEO = ("Q3", "Cleopatra", "P26", "spouse", "Q4", "Mark Antony", "-037", "-030")
OSAKA = ("Q5", "Ōsaka", "P1376", "capital of", "Q6", "Japan", "0652", "0655")
FACT = [
    *("SubjectID", "SubjectLabel", "RelationID", "RelationLabel", "ObjectID", "ObjectLabel"),
    *("StartDate", "EndDate"),
]
ROWS = [
    # fact, Time, Statement, IsCorrect, FactPop, Granularity
    (LAKERS, "2005", "In 2005, which team did X play for? Reds", "Correct", 1e5, "YEAR"),
    (LAKERS, "2010", "In 2010, which team did X play for? Reds", "Transitional", 1e5, "YEAR"),
    (LAKERS, None, "which team did X play for? Reds", "No context", 1e5, "YEAR"),
    (LAKERS, "2012-02", "In February 2012, which team did X play for? Reds", "Incorrect", 1e5, "MONTH"),
    (LAKERS, "2010-03", "In March 2010, which team did X play for? Reds", "Discarded", 1e5, "MONTH"),
    (CLEO, "-34", "In -34, who was her partner? Mark Antony", "Correct", 2e5, "YEAR"),
    (OSAKA, "0654-05-02", "On May 2, 654, whose capital was it? Japan", "Correct", 1e6, "DAY"),
    (OSAKA, "0653", "In 653, whose capital was it? Japan", "Correct", 1e6, "YEAR"),
]  # fmt: skip


@pytest.fixture
def rows() -> pd.DataFrame:
    names = [*FACT, "Time", "Alpha", "Statement", "IsCorrect", "FactPop", "Granularity"]
    return pd.DataFrame(
        [(*f, t, 0.25, s, label, pop, g) for f, t, s, label, pop, g in ROWS], columns=names
    )


@pytest.fixture
def path(rows, tmp_path):
    rows.to_parquet(tmp_path / "train.parquet")
    return tmp_path / "train.parquet"


def test_facts(path):
    facts, _ = load_timestress(path)
    assert tuple(facts.columns) == (*COLUMNS, "question")
    assert list(facts["fact_id"]) == [
        "member_of_sports_team/lebron-x/reds",
        "capital_of/osaka/japan",
    ]
    lakers = facts.iloc[0]
    assert lakers[["start", "end"]].tolist() == ["2003", "2010-07-08"]
    assert lakers["question"] == "which team did X play for?"
    assert facts.loc[1, "question"] == "whose capital was it?"
    assert facts["popularity"].tolist() == [5, 6]
    assert facts["subject_popularity"].isna().all()
    assert lakers["source"] == "Orange/TimeStress, train.parquet"
    assert list(facts["aliases"]) == [[], []]


def test_dates(path):
    facts, dates = load_timestress(path)
    assert tuple(dates.columns) == DATE_COLUMNS
    assert dates[["precision", "date", "year", "label"]].to_numpy().tolist() == [
        ["year", "2005", 2005, "correct"],
        ["year", "2010", 2010, "transitional"],
        ["month", "2012-02", 2012, "incorrect"],
        ["year", "0653", 653, "correct"],
        ["day", "0654-05-02", 654, "correct"],
    ]
    assert dates.attrs["dropped"] == {"no context": 1, "discarded": 1, "before year 1": 1}
    # 2003-01-01 to 2010-07-08 are 2745 days; 2005's middle is 731 + 182 days from the first.
    assert dates.loc[0, "alpha"] == pytest.approx(913 / 2745 - 0.5)
    assert dates.loc[0, "years_off"] == 0
    # From 2010-07-08 to the middle of February 2012, the 15th: 541 + 31 + 15 days.
    assert dates.loc[2, "years_off"] == pytest.approx(587 / 365.2425)
    bounds = dates[["fact_id"]].merge(facts, on="fact_id")
    labels = classify(dates["date"], bounds["start"], bounds["end"], rule="published")
    np.testing.assert_array_equal(labels, dates["label"])


def test_all_formats_say_the_same(path, rows, tmp_path):
    rows.to_csv(tmp_path / "train.csv", index=False)
    lines = [json.dumps(row) for row in rows.to_dict("records")]
    (tmp_path / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    folder = tmp_path / "data"
    folder.mkdir()
    rows[:4].to_parquet(folder / "a.parquet")
    rows[4:].to_parquet(folder / "b.parquet")
    facts, dates = load_timestress(path)
    for other in (tmp_path / "train.csv", tmp_path / "train.jsonl", folder):
        their_facts, their_dates = load_timestress(other)
        pd.testing.assert_frame_equal(their_dates, dates)
        pd.testing.assert_frame_equal(
            their_facts.drop(columns="source"), facts.drop(columns="source")
        )


def test_only_what_is_needed_is_needed(rows, tmp_path):
    few = rows.drop(
        columns=["SubjectID", "RelationID", "ObjectID", "FactPop", "Granularity", "Alpha"]
    )
    few = few[~rows["IsCorrect"].isin(["No context"])]
    few.to_parquet(tmp_path / "few.parquet")
    facts, dates = load_timestress(tmp_path / "few.parquet")
    assert len(dates) == 5
    assert facts.loc[0, "question"] == "which team did X play for?"  # from the dated statement
    assert facts["popularity"].isna().all()


def test_the_question_without_a_date_is_preferred(rows, tmp_path):
    rows.loc[0, "Statement"] = "On 1 June 2005, which team did X play for? Reds"
    rows.to_parquet(tmp_path / "odd.parquet")
    facts, _ = load_timestress(tmp_path / "odd.parquet")
    assert facts.loc[0, "question"] == "which team did X play for?"


def test_things_of_one_name_stay_apart(rows, tmp_path):
    twin = rows[:2].assign(SubjectID="Q99")
    pd.concat([rows, twin]).to_parquet(tmp_path / "twin.parquet")
    facts, dates = load_timestress(tmp_path / "twin.parquet")
    assert facts["fact_id"].is_unique
    assert len(facts) == 3
    assert set(dates["fact_id"]) == set(facts["fact_id"])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("Time", "2005-13", r"row 1: Time '2005-13' is not as TimeStress has it; mend"),
        ("EndDate", "soon", r"row 1: EndDate 'soon' is not as TimeStress has it; mend"),
        ("IsCorrect", "Yes", r"row 1: IsCorrect 'yes' is not as TimeStress has it; mend"),
    ],
)
def test_bad_rows_are_named(rows, tmp_path, column, value, message):
    rows.loc[0, column] = value
    rows.to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(FactsError, match=message):
        load_timestress(tmp_path / "bad.parquet")


def test_bad_files_are_named(rows, tmp_path):
    path = tmp_path / "bad.parquet"
    with pytest.raises(
        FactsError, match=r"bad\.parquet cannot be read \(No such file or directory\); che"
    ):
        load_timestress(path)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(
        FactsError, match=r"bad\.parquet cannot be read as TimeStress \(.*Parquet ma"
    ):
        load_timestress(path)
    path.write_bytes(b"no parquet")
    with pytest.raises(
        FactsError, match=r"bad\.parquet, line 1, column 1: not JSON \(Expecting val"
    ):
        load_timestress(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FactsError, match=r"empty holds no parquet files; give a folder that does"):
        load_timestress(tmp_path / "empty")
    csv = tmp_path / "rows.csv"
    csv.write_text("SubjectLabel,Time\na,2005\nb,2006,x\n")
    with pytest.raises(
        FactsError, match=r"rows\.csv cannot be read as TimeStress \(.* line 3.*\); gi"
    ):
        load_timestress(csv)
    csv.write_text('{"query": "Ann plays for _X_."}')
    with pytest.raises(FactsError, match=r"rows\.csv looks like TempLAMA, not TimeStress; load it"):
        load_timestress(csv)
    rows.drop(columns="Statement").to_parquet(path)
    with pytest.raises(FactsError, match="the column 'Statement' of TimeStress is missing; it has"):
        load_timestress(path)
    rows[:0].to_parquet(path)
    with pytest.raises(FactsError, match=r"bad\.parquet has no rows; fetch Orange/TimeStress anew"):
        load_timestress(path)


def test_the_cached_copy(rows, hub_cache):
    commit = "d8fd7c143bde1aaa15befe7b549ebb31aaa83eda"
    for n in (0, 1):
        part = rows[4 * n : 4 * n + 4]
        hub_cache("Orange/TimeStress", commit, f"data/train-0000{n}-of-00002.parquet", part)
    facts, dates = load_timestress()
    assert len(dates) == 5
    assert facts.loc[0, "source"] == f"Orange/TimeStress@{commit}"
    with pytest.raises(
        ConnectionError, match=f"at abc from the hub .* its cache holds only {commit}"
    ):
        load_timestress(revision="abc")
