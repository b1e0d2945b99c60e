"""A study of part 6: of models whose answers are rules, so that every loss is known."""

import runpy
from pathlib import Path

import pytest

from factrobust import study
from factrobust.models.damage import Damage
from factrobust.together import Study, shaken

RULED = runpy.run_path(str(Path(__file__).with_name("ruled.py")))
Rule, knows, repeats, CAPITALS = (RULED[name] for name in ("Rule", "knows", "repeats", "CAPITALS"))


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The arguments of a study of a model that knows three capitals and copies, one that knows four, and
    a larger one that knows all."""
    lines = [f"{country},capital,{city}" for country, city in CAPITALS.items()]
    path = tmp_path / "capitals.csv"
    path.write_text("subject,relation,object\n" + "\n".join(lines) + "\n", encoding="utf-8")
    models = {
        "first": Rule(knows("Kenya", "Peru", "Italy"), name="first"),
        "second": Rule(knows("Kenya", "Peru", "Norway", "Cuba"), name="second"),
        "larger": Rule(knows(*CAPITALS), name="larger", prompt_format="zero-shot"),
    }
    monkeypatch.setattr(study, "load_model", lambda name, records: models[name])
    return {
        "models": ["first", "second"], "larger": ["larger"], "data": str(path),
        "prompt_format": "two-shot", "n_questions": 5, "n_known": 3, "n_larger": 1, "seed": 0,
        "n_boot": 20,
    }  # fmt: skip


def test_all_models_are_asked_about_facts_that_the_first_one_knows(asked):
    made = Study(**asked)
    told = made.known.groupby(["model", "whose"])["object"].agg(set)
    assert told["first", "first"] == {"Nairobi", "Lima", "Rome"}
    assert told["second", "first"] == {"Nairobi", "Lima"}
    assert len(told["larger", "first"]) == 1
    assert told["larger", "first"] < told["first", "first"]
    assert len(told["larger", "larger"]) == 1
    assert told["larger", "larger"] < {"Oslo", "Havana"}
    assert {model.prompt_format for model in made.models} == {"two-shot"}
    assert made.medians.index.tolist() == ["first", "larger", "second"]


def test_what_is_lost_is_paired_by_fact(asked, monkeypatch):
    """Firm models lose nothing but what rounding to 4 bits takes."""

    def damaged(name, way):
        return Rule(knows("Kenya") if way == Damage("round", 4) else knows(*CAPITALS), name=name)

    monkeypatch.setattr(shaken, "damaged", damaged)
    made = Study(**asked)
    lost = made.lost.groupby(["model", "arm"])["lost"].agg(["mean", "size"])
    assert lost.loc[("first", "round 8")].tolist() == [0, 3]
    assert lost.loc[("first", "round 4")].tolist() == [pytest.approx(2 / 3), 3]
    assert lost.loc[("second", "round 4")].tolist() == [0.5, 2]
    for arm in ("other words", "no word changed", "false", "nonsense", "filler", "hot", "cold"):
        assert lost.loc[("first", arm)].tolist() == [0, 3], arm
    holds = made.failures.groupby(["model", "failure"])["holds"].mean()
    assert holds["first", "4 bits"] == pytest.approx(1 / 3)
    assert holds["first", "heat"] == 1
