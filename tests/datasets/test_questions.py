import math

import numpy as np
import pandas as pd
import pytest

from factrobust.datasets.wordings import (
    COLUMNS,
    describe,
    load_questions,
    sample,
)
from factrobust.tables import FactsError

MINE = """group_id,question,answers,relation,popularity
moon,Who first walked on the Moon?,Neil Armstrong|Armstrong,person,1000
sea,Which is the largest ocean?,Pacific|the Pacific|Pacific,place,
moon,Name the first person on the Moon.,Neil Armstrong|Armstrong,person,1000
sea,What is the name of the largest ocean?,Pacific|the Pacific|Pacific,place,
sea,Which is the largest ocean?,Pacific|the Pacific|Pacific,place,
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "mine.csv"
        path.write_text(text)
        return path

    return write


def test_own_questions(write):
    table = load_questions(write(MINE))
    assert tuple(table.columns) == COLUMNS
    assert table["question_id"].tolist() == ["moon#0", "moon#1", "sea#0", "sea#1"]
    assert table["group_id"].tolist() == ["moon", "moon", "sea", "sea"]
    assert table["variant"].tolist() == [0, 1, 0, 1]
    assert table.loc[0, "question"] == "Who first walked on the Moon?"
    assert table.loc[1, "answers"] == ["Neil Armstrong", "Armstrong"]
    assert table.loc[2, "answers"] == ["Pacific", "the Pacific"]
    assert table.loc[0, "log_popularity"] == pytest.approx(math.log(1000))
    assert table.loc[2:, ["popularity", "log_popularity"]].isna().all(axis=None)
    assert table["prefix"].eq("").all()
    assert table.attrs["counts"] == {
        "repeated_answers": 3,
        "repeated_questions": 1,
        "no_popularity": 1,
    }


def test_three_columns_are_enough(write):
    table = load_questions(write("group_id,question,answers\na,One?,1\na,Uno?,1\n"))
    assert table["relation"].tolist() == ["own", "own"]
    assert table["question_id"].tolist() == ["a#0", "a#1"]
    assert np.isnan(table["log_popularity"]).all()


def test_names_of_your_own_are_kept(write):
    text = "question_id,group_id,question,answers,prefix\nx,a,One?,1,One is\ny,a,Uno?,1,Uno is\n"
    table = load_questions(write(text))
    assert table["question_id"].tolist() == ["x", "y"]
    assert table["prefix"].tolist() == ["One is", "Uno is"]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("group_id", "group", r"line 1: the column 'group_id' is missing; rename 'group'"),
        (",place,\nmoon", ",place,often\nmoon", r"line 3: the popularity 'often' is not a number"),
        (",1000\nsea", ",-5\nsea", r"line 2: the popularity '-5' is not a number of 0 or more"),
        ("Name the first person on the Moon.", "", r"line 4: the question cell is empty; write"),
        ("person,1000\nsea", "thing,1000\nsea", r"line 4: the relation 'person' differs from that"),
        (
            "Neil Armstrong|Armstrong",
            "||",
            r"line 4: the answers 'Neil Armstrong\|Armstrong' differs",
        ),
        ("moon,Name", "sun,Name", r"2 of 3 groups have one question only, 'moon' first: give each"),
    ],
)
def test_a_bad_table_gives_one_sentence(write, old, new, what):
    with pytest.raises(FactsError, match=what):
        load_questions(write(MINE.replace(old, new, 1)))


def test_an_answer_of_bars_only_is_refused(write):
    text = "group_id,question,answers\na,One?,| |\na,Uno?,| |\n"
    with pytest.raises(FactsError, match=r"mine.csv, line 2: no answer stands between the \|"):
        load_questions(write(text))


def test_a_group_that_repeats_one_question_is_refused(write):
    with pytest.raises(FactsError, match=r"^1 of 1 groups have one question only, 'a' first"):
        load_questions(write("group_id,question,answers\na,One?,1\na,One?,1\n"))


def groups(relations: dict[str, int]) -> pd.DataFrame:
    """Groups of three questions, so many a relation."""
    names = [f"{relation}/{n}" for relation, count in relations.items() for n in range(count)]
    frame = pd.DataFrame({"group_id": np.repeat(names, 3), "variant": [0, 1, 2] * len(names)})
    return frame.assign(
        relation=frame["group_id"].str.split("/").str[0],
        question=frame["group_id"] + frame["variant"].astype("str"),
        log_popularity=1.0,
    )


def test_a_sample_has_whole_groups_of_every_relation():
    table = groups({"capital": 9, "sport": 4, "color": 1})
    kept = sample(table, 7)
    assert kept.groupby("group_id").size().eq(3).all()
    assert kept.groupby("relation")["group_id"].nunique().to_dict() == {
        "capital": 3,
        "sport": 3,
        "color": 1,
    }
    assert set(sample(table, 5)["group_id"]) < set(kept["group_id"])
    shuffled = table.sample(frac=1, random_state=1)
    assert set(sample(shuffled, 7)["group_id"]) == set(kept["group_id"])
    assert set(sample(table, 7, seed=1)["group_id"]) != set(kept["group_id"])
    with pytest.raises(ValueError, match="limit is 0"):
        sample(table, 0)


def test_describe_counts_as_table_1_does():
    table = describe(groups({"sport": 4, "capital": 2}))
    assert table.index.tolist() == ["capital", "sport", "all"]
    assert table.loc["sport"].to_dict() == {"questions": 4, "alternatives": 2, "total": 12}
    assert table.loc["all"].to_dict() == {"questions": 6, "alternatives": 2, "total": 18}
