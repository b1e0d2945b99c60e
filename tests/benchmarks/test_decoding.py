"""The benchmark counts what is derived by hand on a toy model; nothing here is about time."""

import numpy as np
import pandas as pd
import pytest
import torch

# Every answer is certain, and ends with its second token.
CERTAIN = {" Kenya is": " Nairobi", " Peru is": " Lima", " Nairobi": ".", " Lima": "."}
TABLE = {token: {following: 1.0} for token, following in CERTAIN.items()}


@pytest.fixture
def facts():
    table = pd.DataFrame({"object": ["Nairobi", "Lima"], "aliases": [[], []]})
    # With the question one unknown token; the country and "is" are the second one.
    table["prefix"] = ["The capital of Kenya is", "The capital of Peru is"]
    about = {"relation": "capital", "domain": "geography", "answer_type": "Location"}
    return table.assign(fact_id=["a", "b"], question="Where is it?", **about)


def test_tokens_and_head_positions_are_those_derived_by_hand(bench, facts, toy_model):
    settings = bench.Settings(
        temperatures=(0.5, 1.0, 2.0), samples=2, max_new_tokens=2, questions=2, batch=2, rounds=2
    )
    measured = bench.measure(toy_model(TABLE), facts, settings)
    table = bench.table(measured, 2).set_index("method")
    # A generation: 2 tokens of prompt and the first new one pass, the last new one does not. The
    # head is applied once for each of the 2 new tokens.
    expected = {
        bench.SEPARATE: (3 * 2 * 3, 3 * 2 * 2),
        bench.TOGETHER: (3 * 2 * 3, 3 * 2 * 2),
        bench.SHARED: (3, 2),  # all samples are equal
        bench.UNSTOPPED: (3, 2),
        bench.BISECTION: (2 * 3, 2 * 2),  # accuracy is 1 at t = 1.0, then at 2.0
        bench.EXACT: (3, 2),  # the curve comes with the greedy answer
        bench.GREEDY: (3, 2),
        bench.EXACT_BATCH: (3, 2),
        bench.GREEDY_BATCH: (2.5, 2),  # both prompts begin with one token, which is read once
    }
    assert list(table.index) == list(expected)
    found = table[["tokens", "head_positions"]].apply(tuple, axis=1).to_dict()
    assert found == expected
    assert (table["n_questions"] == 2).all()
    assert table.loc[bench.SEPARATE, "ratio_to_naive"] == 1
    assert measured.separate_in_full.tokens == measured.costs[bench.SEPARATE][0].tokens
    assert measured.score_difference < 1e-5


def test_padding_is_not_counted(bench, facts, toy_model):
    model = toy_model(TABLE)
    meter = bench.Meter(model.body.network)
    # " Nairobi" and " Kenya is" are tokens, "x" is an unknown one.
    prompts, given = ["x Kenya is Nairobi Lima", "x"], [" Lima", " Lima"]
    full = meter.cost(lambda: bench.full_logits_score(model, prompts, given))
    assert (full.tokens, full.head_positions) == (5 + 2, 2 * 5)
    ours = meter.cost(lambda: model.score(prompts, given))
    assert (ours.tokens, ours.head_positions) == (4, 2)  # both begin with "x", which is read once
    # Five tokens side by side belong into two rows of three that see a common beginning of four.
    mask = torch.ones(2, 1, 3, 7, dtype=torch.bool)
    packed = {"input_ids": torch.zeros(1, 5), "attention_mask": mask, "at": ()}
    assert meter.cost(lambda: meter._body(None, (), packed)).tokens == 5


def test_ratios_are_taken_within_a_turn_and_held_against_their_targets(bench):
    costs = {
        **{name: [bench.Cost(s, 1, 1) for s in (1, 2, 3)] for name in bench.DESCRIPTIONS},
        **{name: [bench.Cost(4, 1, 1)] for name in (bench.SCORE, bench.SCORE_SHORT)},
        **{name: [bench.Cost(10, 1, 1)] for name in (bench.FULL_LOGITS, bench.FULL_LOGITS_SHORT)},
        bench.SEPARATE: [bench.Cost(s, 1, 1) for s in (100, 210, 270)],
        bench.GREEDY: [bench.Cost(s, 1, 1) for s in (1, 1, 1)],
    }
    measured = bench.Measured(costs)
    found = {c["ratio"]: c for c in bench.comparisons(measured)}
    naive = found[f"{bench.SEPARATE} : {bench.EXACT}"]
    assert (naive["lowest"], naive["median"], naive["highest"]) == (90, 100, 100)  # 105 in 2 digits
    assert (naive["target"], naive["reached"]) == ("at least 450", False)
    greedy = found[f"{bench.EXACT} : {bench.GREEDY}"]
    assert (greedy["median"], greedy["target"], greedy["reached"]) == (2, "at most 2", True)
    score = found[f"{bench.FULL_LOGITS} : {bench.SCORE}"]
    assert (score["median"], score["reached"]) == (2.5, True)
    assert found[f"{bench.TOGETHER} : {bench.SHARED}"]["reached"] is None
    # A batch shares no turns with single questions: the median of these is taken.
    assert np.allclose(measured.ratios(bench.SEPARATE, bench.EXACT_BATCH), [210, 105, 70])


def test_the_committed_table_lists_the_methods_of_the_benchmark(bench):
    committed = pd.read_csv(bench.DATA / "benchmarks" / "1-decoding.csv")
    assert committed["method"].tolist() == list(bench.DESCRIPTIONS)
    assert (committed["tokens"] > 0).all()
