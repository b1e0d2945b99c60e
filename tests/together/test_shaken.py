"""What is changed about a known fact, by hand; and what a model of known rules loses."""

import numpy as np
import pytest
from ruled import Rule, knows, repeats

from factrobust.datasets.facts import load_facts, with_questions
from factrobust.models.damage import Damage
from factrobust.text import normalise
from factrobust.together import shaken

NAMES = [
    "capital/kenya",
    "capital/peru",
    "atomic_number/gold",
    "atomic_number/iron",
]


@pytest.fixture(scope="module")
def pool():
    """Four facts, in the order of the file."""
    every = with_questions(load_facts())
    is_named = every["fact_id"].isin(NAMES)
    return every[is_named].reset_index(drop=True)


@pytest.fixture(scope="module")
def asked(pool):
    is_asked = pool["subject"].isin(["Kenya", "gold"])
    return pool[is_asked]


@pytest.fixture(scope="module")
def originals(asked):
    """The question of each fact."""
    return asked.set_index("fact_id")["question"]


@pytest.fixture(scope="module")
def kenya(pool):
    return pool[pool["subject"] == "Kenya"]


def test_a_relation_with_paraphrases_is_asked_in_them_and_others_in_frames(asked, originals):
    rows = shaken.other_words(asked)
    forms = rows.groupby("fact_id")["form"].agg(sorted)
    assert forms.tolist() == [[1, 2], [1, 2]]
    for row in rows.itertuples():
        # A frame holds the question as it is.
        is_framed = originals[row.fact_id] in row.question
        assert is_framed == (row.relation == "atomic_number")
        question = row.question.lower()
        assert row.subject.lower() in question


def test_versions_without_a_changed_word_have_the_words_of_the_question(asked, originals):
    rows = shaken.no_word_changed(asked)
    assert sorted(rows["form"]) == [1, 1, 2, 2]
    for row in rows.itertuples():
        original = originals[row.fact_id]
        assert row.question != original
        assert normalise(row.question) == normalise(original)


def test_a_false_sentence_its_nonsense_twin_and_a_filler(kenya, pool):
    rows = shaken.sentences(kenya, pool)
    questions = dict(zip(rows["arm"], rows["question"], strict=True))
    false = questions["false"]
    nonsense = questions["nonsense"]
    filler = questions["filler"]
    assert false in (
        "The capital of Kenya is Lima. What is the capital of Kenya?",
        "Lima is the capital of Kenya. What is the capital of Kenya?",
    )
    assert nonsense == false.replace("capital", "blorp", 1)
    assert filler.startswith("Kenya ")
    assert "Lima" not in filler
    rivals = rows["names"].str[0]
    assert rivals.tolist() == ["Lima", "Lima", "Lima"]


def test_a_model_that_knows_loses_nothing_and_one_that_repeats_loses_what_is_stated(kenya, pool):
    knowing = Rule(knows("Kenya"))
    firm = shaken.changed_answers(knowing, kenya, pool)
    assert firm["right"].all()
    says = firm["says"].dropna()
    assert says.tolist() == [False, False, False]
    tempered = firm.dropna(subset="t_b")
    assert tempered["arm"].tolist() == ["no word changed"]  # the first alone
    repeating = Rule(repeats)
    weak = shaken.changed_answers(repeating, kenya, pool).set_index("arm")
    false = weak.loc["false"]
    assert not false["right"]
    is_stated_last = false["question"].startswith("The capital")
    assert false["says"] == is_stated_last
    assert not weak.loc["filler"]["says"]


class Heated(Rule):
    """It is right in samples at a low temperature alone."""

    def answer(self, job):
        for i, request in enumerate(job.requests):
            is_cold = request["temperature"] < 0.1
            self.rule = knows("Kenya" if is_cold else "Peru")
            answer = self.answer_to(request["prompt"], job)
            yield [i], [answer]


def test_heat_and_nearly_none_are_shares_of_the_models_own_median(kenya):
    model = Heated(knows("Kenya"))
    rows = shaken.hot_and_cold(model, kenya, 2.0)
    right = rows.groupby("arm")["right"].agg(["mean", "size"])
    assert right.loc["hot"].tolist() == [0, shaken.SAMPLES]  # at 1.0
    assert right.loc["cold"].tolist() == [1, shaken.SAMPLES]  # at 0.01
    numbers = rows[rows["arm"] == "hot"]["form"].tolist()
    assert numbers == [*range(1, shaken.SAMPLES + 1)]


def test_weights_are_asked_in_the_models_prompt(monkeypatch, pool):
    mine = Rule(knows("Kenya"), name="mine")
    other = Rule(knows("Peru"), prompt_format="zero-shot")
    monkeypatch.setattr(shaken, "damaged", lambda name, way: other)
    capitals = pool[pool["relation"] == "capital"]
    rows = shaken.damaged_answers(mine, capitals, [Damage("round", 4)])
    assert {*rows["model"]} == {"mine"}
    assert {*rows["arm"]} == {"round 4"}
    assert rows["fact_id"].tolist() == ["capital/kenya", "capital/peru"]
    assert rows["right"].tolist() == [False, True]
    assert other.prompt_format == "zero-shot"  # the given one keeps its own


class Dated(Rule):
    """Any name is likelier in a later year, whoever is asked about; with no slope in none."""

    slope = 1

    def answer(self, job):
        for i, request in enumerate(job.requests):
            _, _, dated = request["prompt"].rpartition("In ")
            year = int(dated[:4])
            logprob = self.slope * (year - 2100) / 100
            yield [i], [np.array([logprob])]


def test_a_model_that_knows_years_alone_loses_half_at_home_and_under_a_wrong_subject():
    """Two years inside the fact's time, one before and one after: the later ones win."""
    statements = shaken.dated_statements(12)
    assert {*statements["asked_of"]} == {0, 1}
    groups = statements.groupby(["fact_id", "asked_of"])
    counts = groups["label"].value_counts().unstack()
    assert counts["correct"].isin([1, 2]).all()
    assert counts["incorrect"].eq(2).all()
    model = Dated(knows("Kenya"))
    lost = shaken.lost_years(model, statements)
    shares = lost.groupby("arm")["lost"].agg(["mean", "size"])
    assert shares["mean"].tolist() == [0.5, 0.5]
    assert shares["size"].tolist() == [12, 12]
    assert lost["relation"].notna().all()
    model.slope = 0
    tied = shaken.lost_years(model, statements)
    assert tied["lost"].eq(1).all()  # ties lose
