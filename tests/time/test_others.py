"""Which names and subjects are set beside a fact, and that none of them is true of it."""

import pandas as pd
import pytest

from factrobust.time import others
from factrobust.time.facts import load_named_temporal

ROWS = [
    ("a", "head", "Peru", "Juan", ["J."]),
    ("b", "head", "Peru", "Rosa", []),
    ("c", "head", "Chile", "juan", []),
    ("d", "head", "Chile", "Luz", ["Lucia", "the J."]),
    ("e", "head", "Cuba", "Fidel", []),
    ("f", "head", "Cuba", "Raul", []),
    ("g", "club", "Ana", "Lima", []),
]


@pytest.fixture
def facts() -> pd.DataFrame:
    table = pd.DataFrame(ROWS, columns=["fact_id", "relation", "subject", "object", "aliases"])
    return table.assign(question="who of " + table["subject"] + "?", prefix=table["subject"] + "'s")


def test_other_objects_are_never_the_subjects_own(facts: pd.DataFrame) -> None:
    every = others.other_objects(facts, 9).set_index("fact_id")["others"].map(set)
    # Chile's juan is spelled like Peru's Juan; of Luz's spellings "the J." is "J." but for the article.
    assert every[["a", "b"]].tolist() == [{"Fidel", "Raul"}] * 2
    assert every[["c", "d"]].tolist() == [{"Rosa", "Fidel", "Raul"}] * 2
    assert every[["e", "g"]].tolist() == [{"Juan", "juan", "Rosa", "Luz"}, set()]
    two = others.other_objects(facts[::-1], 2).set_index("fact_id")["others"]
    assert (two.map(len).sort_index() == [2, 2, 2, 2, 2, 2, 0]).all()
    again = others.other_objects(facts, 2, seed=1).set_index("fact_id")["others"]
    assert two.sort_index().tolist() == others.other_objects(facts, 2)["others"].tolist()
    assert any(two[name] != again[name] for name in "abcdef")


def test_other_subjects_have_none_of_the_names(facts: pd.DataFrame) -> None:
    named = facts.assign(others=[["Fidel"], [], ["Rosa"], [], ["Juan"], ["Luz"], []])
    drawn = others.other_subjects(named, 9).set_index("fact_id")["other_subjects"].map(set)
    # a: Chile has a juan, Cuba has its wrong name. b: nobody else has a Rosa. c: Peru has a Juan.
    # d: "the J." is Peru's. e: Peru and Chile have a Juan. f: Chile has its wrong name.
    assert drawn.tolist() == [set(), {"Chile", "Cuba"}, {"Cuba"}, {"Cuba"}, set(), {"Peru"}, set()]
    one = others.other_subjects(named[::-1], 1)
    assert (one["other_subjects"].map(len) <= 1).all()
    assert one.sort_index()["other_subjects"].tolist() == (
        others.other_subjects(named, 1)["other_subjects"].tolist()
    )


def test_a_fact_is_asked_of_all_its_subjects(facts: pd.DataFrame) -> None:
    named = others.other_subjects(facts.assign(others=[[]] * 7), 2)
    asked = others.of_all_subjects(named)
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
    how = {"n_others": 2, "n_subjects": 2, "n_correct": 1, "n_incorrect": 1, "n_fine": 1}
    every = load_named_temporal(**how).table.set_index("fact_id")
    few = load_named_temporal(limit=30, **how).table.set_index("fact_id")
    columns = ["others", "other_subjects", "other_wording"]
    assert every[columns].map(len).eq(2).all(axis=None)
    assert few[columns].equals(every.loc[few.index, columns])
    assert every["question"].str.endswith("?").all()
    owned = every.groupby(["relation", "subject"])["object"].agg(set)
    for fact in every.itertuples():
        for subject in fact.other_subjects:
            assert not owned[fact.relation, subject] & {fact.object, *fact.others}
