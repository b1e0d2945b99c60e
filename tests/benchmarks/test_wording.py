"""The ways that part 3's benchmark compares agree, on a toy model too; nothing here is about
time."""

import importlib
from math import sqrt

import numpy as np
import pandas as pd
import pytest

# The prompt ends in a token of its own, so that the questions are answered differently: one with a
# new line, one never, one with the end token.
CERTAIN = {
    " Kenya?\n Answer:": " Nairobi", " Nairobi": ".", ".": " It", " It": " It",
    " Peru?\n Answer:": " Lima", " Lima": "\n", "\n": " Lima", " Chad?\n Answer:": " Chad",
}  # fmt: skip
TABLE = {token: {following: 1.0} for token, following in CERTAIN.items()}


@pytest.fixture
def questions():
    table = pd.DataFrame({"question_id": [*"abc"], "group_id": "g", "variant": [0, 1, 2]})
    table["question"] = ["Capital of Kenya?", "Capital of Peru?", "Capital of Chad?"]
    return table.assign(relation="capital", prefix="")


def test_both_ways_answer_alike(bench, questions, toy_model):
    model = toy_model(TABLE)
    texts = bench.one_by_one(model, questions, bench.LineEnd(model))
    assert texts == ["Nairobi", "Lima", "Chad"]
    found = bench.measure_answers(model, questions, rounds=1)
    assert (found["questions"], found["equal_texts"]) == (3, 3)
    assert [c["target"] for c in found["comparisons"]] == ["at least 3"]


def test_the_usual_way_stops_where_ours_does(bench, questions, toy_model):
    model = toy_model(TABLE)
    stopping, steps = bench.LineEnd(model), []
    model.body.network.lm_head.register_forward_pre_hook(lambda *_: steps.append(1))
    for row in range(3):
        bench.one_by_one(model, questions[row : row + 1], stopping)
        steps.append(0)
    # 16 tokens; " Lima" and a new line; " Chad" and the end: one application of the head each.
    runs = "".join(map(str, steps)).split("0")
    assert [len(run) for run in runs[:-1]] == [16, 2, 2]


def test_the_three_ways_to_scons_agree_with_what_is_derived_by_hand(bench):
    plane = {"x": [3, 0], "y": [0, 2], "xy": [1, 1]}
    vectors = {text: np.array(place, dtype=np.float32) for text, place in plane.items()}
    groups = [["x", "x", "y"], ["x", "x"], ["x", "y", "xy"]]
    expected = [1 / 3, 1, 2 * sqrt(1 / 2) / 3]
    for way in (bench.pair_by_pair, bench.by_matrix, bench.closed_form):
        assert np.allclose(way(groups, vectors), expected, atol=1e-6)


def test_groups_repeat_answers_and_are_the_same_every_time(bench):
    groups, vectors = bench.answer_groups(500)
    assert (len(groups), {len(group) for group in groups}) == (500, {bench.GROUP})
    assert groups == bench.answer_groups(500)[0]
    assert {vector.shape for vector in vectors.values()} == {(bench.DIMENSION,)}
    # Of 4 candidates with the shares p, 8 draws hit sum(1 - (1 - p)^8).
    expected = sum(1 - (1 - share) ** bench.GROUP for share in bench.SHARES)
    assert abs(np.mean([len(set(group)) for group in groups]) - expected) < 0.1
    found = bench.measure_scons(groups, vectors, rounds=1)
    assert found["answers"] == 500 * bench.GROUP
    assert found["distinct_answers"] == len({text for group in groups for text in group})
    assert found["largest_difference"] < 1e-6
    assert len(found["comparisons"]) == 2


def test_memory_is_measured_over_the_questions_asked_for(bench, monkeypatch):
    memory = importlib.import_module("measuring.memory")
    questions = memory.synthetic_questions(150)
    assert len(questions) == 150
    assert questions["question"].is_unique
    answers = memory.greedy(memory.Canned(), questions)
    # Answer i is made of 16 tokens, the first of which is number i.
    assert answers["raw"][2].split() == [f"word{k}-0" for k in range(2, 18)]
    assert answers["text"].is_unique
    told = bench.measure_memory(150)
    assert (told["questions"], told["distinct_answers"]) == (150, 150)
    assert told["reached"]
    assert 0.05 < told["peak_gigabytes"] < 1
