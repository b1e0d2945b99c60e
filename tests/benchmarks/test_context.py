"""The two ways of asking with a context agree on a toy model; nothing here is about time."""

import math

import pandas as pd
import pytest

# Every prompt with context is one token, which answers what the context says.
TABLE = {
    " Kenya is": {" Nai": 0.8, " Lima": 0.2}, " Nai": {"robi": 0.9, ".": 0.1}, "robi": {".": 1.0},
    " Peru is": {" Lima": 0.6, " Nai": 0.4}, " Lima": {". ": 0.9, "</s>": 0.1}, ".": {" It": 1.0},
    ". ": {" It": 1.0}, " It": {" is": 1.0},
}  # fmt: skip


@pytest.fixture
def questions():
    names = pd.Series(["Kenya", "Peru"])
    table = pd.DataFrame({"question_id": names, "category": "geography", "base_id": "capital"})
    table["prefix"] = "The capital of " + names + " is"
    return table.assign(object=names, question="Capital of " + names + "?")


def test_both_ways_agree(bench, questions, toy_model):
    asked = "Context: [The capital of {0} is {1}]. Q: Capital of {0}? A: The capital of {0} is"
    places = [("Kenya", "Lima"), ("Peru", "Nairobi")]
    model = toy_model(TABLE | {asked.format(*p): {" Lima": 0.7, " Nai": 0.3} for p in places})
    found = bench.measure(model, questions, rounds=1)
    assert found["with_counterfactual"] == 2
    assert found["equal_answers"]
    assert found["largest_relative_difference"] < 1e-5
    assert found["perplexities_agree"]
    assert found["comparisons"][0]["target"] == "at least 3"
    usual = bench.one_by_one(model, questions)
    assert usual["contextual"].tolist() == ["Lima", "Lima"]
    assert usual.loc[0, "p0"] == pytest.approx((0.8 * 0.9) ** -0.5, rel=1e-5)
    assert usual.loc[1, "p3"] == pytest.approx((0.3 * 0.9) ** -0.5, rel=1e-5)


def test_the_end_token_ends_a_forced_answer(bench, toy_model):
    model = toy_model({" Peru is": {" Lima": 1.0}, " Lima": {"</s>": 1.0}, "</s>": {" Lima": 1.0}})
    text, ids = bench.forced(model, "Q: ? A: Peru is")
    assert (text, len(ids)) == ("Lima", 1)
    assert bench.full_pass(model, "Q: ? A: Peru is", ids) == pytest.approx(1)
    assert math.isnan(bench.full_pass(model, "Q: ? A: Peru is", []))
