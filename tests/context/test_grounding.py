"""The detector: by hand on a toy model, on answers whose law is known, and its retriever."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import factrobust
from factrobust.context import grounding
from factrobust.context.attribution import brier_table, cost_table
from factrobust.context.grounding import ask, features, fit, ground, held_out, outcomes, retrieve

COUNTRIES = [f"F{i}" for i in range(12)]


def prompt(country: str, context: str = "") -> str:
    stated = f"Context: [{context}]. " if context else ""
    return f"{stated}Q: Capital of {country}? A: It is"


def toy_table(follows) -> dict[str, dict[str, float]]:
    """A model of COUNTRIES that says M0 of F0, ... from memory, with probability 0.9 or 0.6, and C of a
    context that states it if `follows(number)`."""
    table = {" M": {".": 1.0}, " C": {".": 1.0}}
    for i, country in enumerate(COUNTRIES):
        strong = 0.9 if i % 2 else 0.6
        table[prompt(country)] = {" M": strong, " C": 1 - strong}
        said, left = (" C", " M") if follows(i) else (" M", " C")
        table[prompt(country, "It is C")] = {said: 0.8, left: 0.2}
    return table


def questions() -> pd.DataFrame:
    table = pd.DataFrame({"question_id": COUNTRIES, "object": COUNTRIES, "prefix": "It is"})
    table = table.assign(category="g", base_id=[f"r{i // 4}" for i in range(len(table))])
    return table.assign(question=[f"Capital of {name}?" for name in COUNTRIES])


def told(toy_model, follows) -> pd.DataFrame:
    model = toy_model(toy_table(follows))
    return outcomes(ask(model, questions(), ["It is C"] * len(COUNTRIES)), ["C"] * len(COUNTRIES))


def test_a_question_by_hand(toy_model):
    model = toy_model(toy_table(lambda i: i == 0))
    detector = {"constant": 0.5, "raised": 1.0, "changed": 2.0}
    found = ground(model, "Capital of F0?", "It is C.", prefix="It is", detector=detector)
    assert (found.memory, found.answer, found.source) == ("M", "C", "context")
    perplexities = [1 / 0.6, 1 / 0.4, 1 / 0.2, 1 / 0.8, 1 / 0.8]
    assert found[2:7] == pytest.approx(perplexities, rel=1e-5)
    # log P1 - log P4 = log 2
    assert found.probability == pytest.approx(expit(0.5 + np.log(2) + 2), rel=1e-5)
    kept = ground(model, "Capital of F1?", "It is C", prefix="It is")
    assert (kept.memory, kept.answer, kept.source) == ("M", "M", "memory")
    assert kept.probability < 0.1  # by the coefficients that are committed
    assert factrobust.ground is ground
    with pytest.raises(ValueError, match="must not be empty"):
        ground(model, "Capital of F1?", " ")


def test_features_by_hand():
    table = pd.DataFrame({"p0": 2.0, "p1": 8.0, "p2": [32.0, np.nan], "p4": 4.0})
    found = features(table.assign(changed=True, stated=False)) / np.log(2)
    expected = {"given": 2, "memory": 1, "raised": 3 - 2, "lowered": 5 - 1}
    flags = {"changed": 1 / np.log(2), "stated": 0}
    assert found.loc[0].to_dict() == pytest.approx(expected | flags)
    assert found.loc[1, "lowered"] == 0  # memory had no answer


@pytest.mark.parametrize("share", [1, 0])
def test_a_model_that_always_copies_or_never(toy_model, share):
    table = told(toy_model, lambda i: share)
    assert table["from_context"].eq(bool(share)).all()
    said = held_out(table, k=3)
    fitted = said[~said["way"].isin(["always", "asked twice", "found in it"])]
    assert (fitted["probability"] - share).abs().max() < 0.01


def test_a_model_that_copies_when_its_memory_is_weak(toy_model):
    table = told(toy_model, lambda i: i % 2 == 0)
    assert table["from_context"].tolist() == [True, False] * 6
    assert table["source"].tolist() == ["contextual", "parametric"] * 6
    said = held_out(table, k=3).groupby("way")
    # P4 is 1 / 0.8 either way and says nothing; all that is known says it.
    assert said.get_group("P4")["probability"].tolist() == pytest.approx([0.5] * 12)
    every = said.get_group("... and the context's words")
    assert ((every["probability"] > 0.5) == every["from_context"]).all()
    assert fit(table, ["memory"])["memory"] > 1  # an unsure memory, a high P0


def law(n: int, seed: int = 0) -> pd.DataFrame:
    """Cases that come from the context with probability expit(2 log P0 - 2)."""
    rng = np.random.default_rng(seed)
    log_p0 = rng.uniform(0, 2, size=n)
    follows = rng.random(n) < expit(2 * log_p0 - 2)
    table = pd.DataFrame({"p0": np.exp(log_p0), "p1": 2.0, "p2": 2.0, "p4": 2.0})
    table = table.assign(model="m", base_id=[f"r{i % 10}" for i in range(n)], from_context=follows)
    table["question_id"] = [f"q{i}" for i in range(n)]
    return table.assign(changed=follows, stated=follows)


def test_the_fit_recovers_a_law_and_its_probabilities_are_calibrated():
    table = law(4000)
    found = fit(table, ["memory"])
    assert found["memory"] == pytest.approx(2, abs=0.2)
    assert found["constant"] == pytest.approx(-2, abs=0.2)
    own = held_out(table).query("way == 'P0 to P4'")
    for _, part in own.groupby(pd.cut(own["probability"], 5)):
        error = np.sqrt(part["from_context"].mean() * (1 - part["from_context"].mean()) / len(part))
        assert abs(part["probability"].mean() - part["from_context"].mean()) < 4 * error
    known = expit(2 * np.log(table["p0"]) - 2)
    least = (known * (1 - known)).mean()  # the Brier score of the law itself
    assert brier_table(own, n_boot=10)["brier"].item() == pytest.approx(least, abs=0.01)


def test_no_relation_is_told_by_a_fit_on_itself():
    table = law(200)
    # Relations r0 to r9 in two folds: what one fold says depends on the other alone.
    said = held_out(table, k=2).query("way == 'P0 to P4'").set_index("case")["probability"]
    flipped = table.assign(from_context=table["from_context"] ^ (table["base_id"] == "r0"))
    again = held_out(flipped, k=2).query("way == 'P0 to P4'").set_index("case")["probability"]
    same = (said == again).groupby(table["base_id"]).all()
    assert same["r0"]
    assert same.sum() == 5  # its fold
    every = held_out(table, k=2)
    assert every.groupby("way").size().eq(200).all()
    assert {"always", "asked twice", "found in it"} < set(every["way"])
    assert cost_table(every, n_boot=10)["n"].eq(200).all()


def test_outcomes_leave_out_what_cannot_be_told():
    rows = [("Oslo", "Rome", "Rome"), ("Rome", "Rome", "Rome"), ("Oslo", "Bonn", "Rome")]
    rows += [("Oslo", "A: A: A", "Rome"), ("Oslo", "unknown", ""), ("Oslo", "Oslo", "Rome")]
    table = pd.DataFrame(rows, columns=["parametric", "contextual", "stated"])
    found = outcomes(table, table["stated"].tolist())
    assert found["contextual"].tolist() == ["Rome", "Bonn", "unknown", "Oslo"]
    assert found["from_context"].tolist() == [True, False, False, False]


@pytest.mark.parametrize(("context", "answer", "stated"), [
    ("The capital of Peru is Lima", "the city of Lima, in Peru", True),
    ("The capital of Peru is Lima", "Nairobi", False), ("It was built in 1969", "1", False),
    ("The capital of Peru is Lima", "", False), ("The sign of gold is Au", "Au", True),
])  # fmt: skip
def test_words_of_the_context(context, answer, stated):
    assert grounding.states(context, answer) is stated


def test_the_retriever():
    passages = ["The capital of Kenya is Nairobi", "The capital of Peru is Lima", "Gold is Au"]
    asked = ["What is the capital of Peru?", "Who?"]
    assert retrieve(asked, passages) == [passages[1], ""]
    assert retrieve(asked, passages, [passages[1], ""]) == [passages[0], ""]
    # Of equals it takes the first, on every processor.
    passages = [f"The main language of X{i} is Y{i}" for i in range(50)]
    asked = ["What is the main language of Japan?"]
    assert retrieve(asked, passages) == [passages[0]]
    assert retrieve(asked, passages, [passages[0]]) == [passages[1]]


def test_what_is_retrieved_for_facts():
    pool = pd.DataFrame({"object": ["Kenya", "Peru"], "answers": [["Nairobi"], ["Lima"]]})
    pool["question_id"], pool["prefix"] = pool["object"], "The capital of " + pool["object"] + " is"
    pool["question"] = "What is the capital of " + pool["object"] + "?"
    found = grounding.retrieved(pool[:1], pool).set_index("context")
    stated = {"retrieved": "Nairobi", "fact missing": "Lima", "question": ""}
    assert found["stated"].to_dict() == stated
    assert found.loc["question", "sentence"] == "What is the capital of Kenya?"


def test_the_committed_coefficients_say_where_they_come_from():
    about = json.loads(grounding.FILE.read_text(encoding="utf-8"))
    ways = grounding.WAYS["... and the context's words"]
    assert list(about["coefficients"]) == ["constant", *ways]
    assert about["cases"] > 500
    row = {"p0": 1.0, "p1": 20.0, "p2": 20.0, "p4": 1.0, "changed": True, "stated": True}
    sure, kept = row, row | {"p1": 1.0, "p2": 1.0, "changed": False, "stated": False}
    told = grounding.probability(pd.DataFrame([sure, kept]), grounding.load())
    assert told[0] > 0.95
    assert told[1] < 0.05
