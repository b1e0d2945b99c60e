"""What is changed about a known fact, by hand; and what a model of known rules loses."""

import numpy as np
import pytest
from ruled import Rule, knows, repeats

from factrobust.datasets.facts import load_facts, questions
from factrobust.models.damage import Damage
from factrobust.text import normalise
from factrobust.together import shaken

NAMES = ["capital/kenya", "capital/peru", "atomic_number/gold", "atomic_number/iron"]


@pytest.fixture(scope="module")
def pool():
    """Four facts, in the order of the file."""
    every = questions(load_facts())
    return every[every["fact_id"].isin(NAMES)].reset_index(drop=True)


@pytest.fixture(scope="module")
def asked(pool):
    return pool[pool["subject"].isin(["Kenya", "gold"])]


@pytest.fixture(scope="module")
def kenya(pool):
    return pool[pool["subject"] == "Kenya"]


def test_a_relation_with_paraphrases_is_asked_in_them_and_others_in_frames(asked):
    rows = shaken.other_words(asked)
    forms = rows.groupby("fact_id")["form"].agg(sorted)
    assert forms.tolist() == [[1, 2], [1, 2]]
    originals = asked.set_index("fact_id")["question"]
    for row in rows.itertuples():
        # A frame holds the question as it is.
        is_framed = originals[row.fact_id] in row.question
        assert is_framed == (row.relation == "atomic_number")
        assert row.subject.lower() in row.question.lower()


def test_versions_without_a_changed_word_have_the_words_of_the_question(asked):
    rows = shaken.no_word_changed(asked)
    assert sorted(rows["form"]) == [1, 1, 2, 2]
    originals = asked.set_index("fact_id")["question"]
    for row in rows.itertuples():
        original = originals[row.fact_id]
        assert row.question != original
        assert normalise(row.question) == normalise(original)


def test_a_false_sentence_its_nonsense_twin_and_a_filler(kenya, pool):
    rows = shaken.sentences(kenya, pool).set_index("arm")
    false, nonsense, filler = rows.loc[["false", "nonsense", "filler"], "question"]
    question = "What is the capital of Kenya?"
    assert false in (
        f"The capital of Kenya is Lima. {question}",
        f"Lima is the capital of Kenya. {question}",
    )
    assert nonsense == false.replace("capital", "blorp", 1)
    assert filler.startswith("Kenya ")
    assert "Lima" not in filler
    assert [names[0] for names in rows["names"]] == ["Lima"] * 3


def test_a_model_that_knows_loses_nothing_and_one_that_repeats_loses_what_is_stated(kenya, pool):
    firm = shaken.answered(Rule(knows("Kenya")), kenya, pool)
    assert firm["right"].all()
    assert firm["says"].dropna().tolist() == [False] * 3
    tempered = firm[firm["t_b"].notna()]
    assert tempered["arm"].tolist() == ["no word changed"]  # the first alone
    weak = shaken.answered(Rule(repeats), kenya, pool).set_index("arm")
    false = weak.loc["false"]
    assert not false["right"]
    is_stated_last = false["question"].startswith("The capital")
    assert false["says"] == is_stated_last
    assert not weak.loc["filler"]["says"]


class Heated(Rule):
    """It is right in samples at a low temperature alone."""

    def answer(self, job):
        for i, request in enumerate(job.requests):
            self.rule = knows("Kenya" if request["temperature"] < 0.1 else "Peru")
            yield [i], [self.answer_to(request["prompt"], job)]


def test_heat_and_nearly_none_are_shares_of_the_models_own_median(kenya):
    rows = shaken.sampled(Heated(knows("Kenya")), kenya, 2.0)
    right = rows.groupby("arm")["right"].agg(["mean", "size"])
    assert right.loc["hot"].tolist() == [0, shaken.SAMPLES]  # at 1.0
    assert right.loc["cold"].tolist() == [1, shaken.SAMPLES]  # at 0.01
    numbers = rows[rows["arm"] == "hot"]["form"].tolist()
    assert numbers == [*range(1, shaken.SAMPLES + 1)]


def test_weights_are_asked_in_the_models_prompt(monkeypatch, pool):
    other = Rule(knows("Peru"), prompt_format="zero-shot")
    monkeypatch.setattr(shaken, "damaged", lambda name, way: other)
    capitals = pool[pool["relation"] == "capital"]
    rows = shaken.rounded(Rule(knows("Kenya"), name="mine"), capitals, [Damage("round", 4)])
    assert {*rows["model"]} == {"mine"}
    assert {*rows["arm"]} == {"round 4"}
    assert rows["fact_id"].tolist() == ["capital/kenya", "capital/peru"]
    assert rows["right"].tolist() == [False, True]
    assert other.prompt_format == "zero-shot"  # the given one keeps its own


class Dated(Rule):
    """Any name is likelier in a later year, whoever is asked about."""

    def answer(self, job):
        for i, request in enumerate(job.requests):
            year = int(request["prompt"].rpartition("In ")[2][:4])
            yield [i], [np.array([(year - 2100) / 100])]


def test_a_model_that_knows_years_alone_loses_half_at_home_and_under_a_wrong_subject():
    """Two years inside the fact's time, one before and one after: the later ones win."""
    statements = shaken.dated(12)
    assert {*statements["asked_of"]} == {0, 1}
    labels = statements.groupby(["fact_id", "asked_of"])["label"]
    counts = labels.value_counts().unstack()
    assert counts["correct"].isin([1, 2]).all()
    assert counts["incorrect"].eq(2).all()
    lost = shaken.years(Dated(knows("Kenya")), statements)
    shares = lost.groupby("arm")["lost"].agg(["mean", "size"])
    assert shares.values.tolist() == [[0.5, 12], [0.5, 12]]
    assert lost["relation"].notna().all()
