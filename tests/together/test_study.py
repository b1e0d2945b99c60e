"""A study of part 6: of models whose answers are rules, so that every loss is known."""

import runpy
from pathlib import Path

import pytest

from factrobust import study
from factrobust.models.damage import Damage
from factrobust.tables import TooFewError
from factrobust.together import Study, shaken

RULED = runpy.run_path(str(Path(__file__).with_name("ruled.py")))
Rule, knows, CAPITALS = RULED["Rule"], RULED["knows"], RULED["CAPITALS"]


@pytest.fixture
def study_of(monkeypatch, tmp_path):
    """A function that makes a study of models that know these capitals: the first, the second and a
    larger one. Rounding to 4 bits leaves Kenya's alone."""
    path = tmp_path / "capitals.csv"
    lines = [f"{country},capital,{city}" for country, city in CAPITALS.items()]
    path.write_text("\n".join(["subject,relation,object", *lines]), encoding="utf-8")

    def damaged(name, way):
        return Rule(knows("Kenya") if way == Damage("round", 4) else knows(*CAPITALS), name=name)

    def make(first, second, larger):
        models = {
            "first": Rule(knows(*first), name="first"),
            "second": Rule(knows(*second), name="second"),
            "larger": Rule(knows(*larger), name="larger", prompt_format="zero-shot"),
        }
        monkeypatch.setattr(study, "load_model", lambda name, records: models[name])
        monkeypatch.setattr(shaken, "damaged", damaged)
        return Study(
            models=["first", "second"],
            larger=["larger"],
            data=str(path),
            prompt_format="two-shot",
            n_questions=5,
            n_known=3,
            seed=0,
            n_boot=20,
        )

    return make


@pytest.fixture
def made(study_of):
    """A study of a model that knows three capitals, one that knows four, and a larger one that knows
    all."""
    first = ["Kenya", "Peru", "Italy"]
    second = ["Kenya", "Peru", "Norway", "Cuba"]
    return study_of(first, second, [*CAPITALS])


def test_all_models_are_asked_about_the_same_facts(made):
    """The larger model chooses facts, too: three of the five that it knows, of all by lot."""
    known = made.known.groupby("model")["object"].agg(set)
    assert known["first"] == {"Nairobi", "Lima", "Rome"}
    of_first = made.chosen[made.chosen["whose"] == "first"].groupby("model").size()
    assert of_first.to_dict() == {"first": 3, "second": 2, "larger": 3}
    of_larger = made.chosen[made.chosen["whose"] == "larger"]
    facts = set(of_larger.loc[of_larger["model"] == "larger", "fact_id"])
    assert len(facts) == 3
    both = made.known[made.known["fact_id"].isin(facts)].groupby("model").size()
    assert of_larger.groupby("model").size().to_dict() == both.to_dict()
    assert len(made.known) == len(made.known.drop_duplicates(["model", "fact_id"]))
    assert {model.prompt_format for model in made.models} == {"two-shot"}
    assert made.medians.index.tolist() == ["first", "larger", "second"]


def test_a_model_that_knows_none_of_the_facts_is_left_out_and_counted(study_of, capsys):
    """The second has no fact at all, and the larger one none of the first one's."""
    made = study_of(["Kenya"], [], ["Norway"])
    assert [model.name for model in made.models] == ["first"]
    assert made.known[["model", "object"]].to_numpy().tolist() == [["first", "Nairobi"]]
    assert made.lost.groupby("arm")["lost"].sum().eq(0).all()  # of Kenya's capital nothing is
    printed = capsys.readouterr().out
    assert (
        "5 facts (known and taken: first 1 of first's, larger 1 of larger's, second none of first's, "
        "so it is left out, larger none of first's, so it is left out), asked of first, second, larger"
    ) in printed


def test_a_first_model_that_knows_nothing_has_nothing_to_shake(study_of):
    with pytest.raises(TooFewError, match=r"^first knows none of 5 facts, so there is nothing to"):
        study_of([], ["Kenya"], ["Kenya"])


def test_what_a_way_loses_stands_beside_its_placebo(made):
    """Of the first model's three facts, rounding to 4 bits takes two and rounding to 8 none."""
    made.years = made.lost.head(0)  # no dated facts
    rows = made.ways
    rows = rows[rows["way"] == "4 bits, beside 8"]
    rows = rows[(rows["model"] == "first") & (rows["whose"] == "first")]
    assert rows["what"].tolist() == ["lost", "under its placebo", "difference"]
    assert rows["mean"].tolist() == pytest.approx([2 / 3, 0, 2 / 3])


def test_what_is_lost_is_paired_by_fact(made):
    """Firm models lose nothing but what rounding to 4 bits takes."""
    lost = made.lost.groupby(["model", "arm"])["lost"].agg(["mean", "size"])
    assert lost.loc[("first", "round 4")].tolist() == [pytest.approx(2 / 3), 3]
    # Of those that the larger model chose, the second knows one that the first does not.
    assert lost.loc[("second", "round 4")].tolist() == [pytest.approx(2 / 3), 3]
    arms = [
        "round 8",
        "other words",
        "no word changed",
        "false",
        "nonsense",
        "filler",
        "hot",
        "cold",
    ]
    assert lost.loc["first"].loc[arms].to_numpy().tolist() == [[0, 3]] * len(arms)
    holds = made.failures.groupby(["model", "failure"])["holds"].mean()
    assert holds["first", "4 bits"] == pytest.approx(1 / 3)
    assert holds["first", "heat"] == 1
