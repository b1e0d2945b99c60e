"""The rules on a real embedded model; and rows, branches and what is computed once, on small ones
(masks on every kind of network: test_verify)."""

import numpy as np
import pytest
import torch
from networks import LLAMA, assert_given_as_alone, build

from factrobust.models import causal
from factrobust.models.causal import NO_PREFIX, pack_answers, rows_of
from factrobust.models.engine import Body
from factrobust.models.interface import ModelError
from factrobust.models.prompts import render

LONG = "Which large city on the river Seine, known for the Eiffel Tower, is the capital of France "
QUESTIONS = [
    "What is the capital of Kenya?",
    "Who wrote the play Hamlet?",
    "In which year did the Second World War end?",
    "What is the chemical symbol of gold?",
    f"{LONG}and the seat of its government?",
]
SHARED = "the few shots that all share "

# -- rule 2: padding, prefix, branches -------------------------------------------------------------


def test_score_and_temper_are_the_networks_own(smollm):
    """Prompts of very different lengths in one batch, without and with a prefix in the cache."""

    def ids(text):
        return smollm.tokenizer(text).input_ids

    prompts = render("two-shot", QUESTIONS[:4], QUESTIONS[:4])
    prompts.append("The capital of France is")  # which shares no prefix
    answers = [" Nairobi", " William Shakespeare", " 1945", " Au", " Paris"]
    smollm._last_prefix = NO_PREFIX
    for n in (4, 5):
        assert_given_as_alone(smollm, smollm.network, ids, prompts[:n], answers[:n])


def test_greedy_is_transformers_greedy(smollm):
    """Ids equal those of transformers' generate, one prompt at a time."""
    for answer in smollm.generate(render("two-shot", QUESTIONS[2:], QUESTIONS[2:])):
        ids = torch.tensor([smollm.tokenizer(answer.prompt).input_ids])
        made = smollm.network.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=5,
            pad_token_id=0,
        )
        new = made[0, ids.shape[1] :].tolist()
        assert answer.token_ids == [token for token in new if token not in smollm.end_ids]


def test_pack_answers_by_hand():
    # Prompt 5 6 7; answers 8 9 and 1; the first two tokens are in the cache.
    row = pack_answers([([5, 6, 7, 8, 9], 3), ([5, 6, 7, 1], 3)], 2)
    assert row.tokens == [7, 8]  # 9 and 1 predict nothing that is asked for
    assert row.positions == [2, 3]
    assert row.predictors == [0, 1, 0]  # 8 and 1 both follow 7; 9 follows 8
    # The second answer merges with the prompt's last token: it begins one token earlier.
    row = pack_answers([([5, 6, 7, 8, 9], 3), ([5, 6, 4, 1], 2)], 0)
    assert row.tokens == [5, 6, 7, 8, 4]
    assert row.positions == [0, 1, 2, 3, 2]
    assert row.predictors == [2, 3, 1, 4]
    assert row.links.int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 0, 0, 1],
    ]


def test_rows_of_answers_that_begin_alike_by_hand():
    # Two of one prompt; one of another, but two of four tokens behind token 1 are the same; one
    # alone.
    answers = [
        ([1, 2, 3, 4, 9, 8], 4),
        ([1, 2, 3, 4, 7], 4),
        ([1, 2, 3, 5, 6], 4),
        ([1, 9, 9, 9, 9], 4),
    ]
    # In the order of tokens: 2 3 4 7, then 9 8, then 5 6; and 9 9 9 9 alone.
    assert rows_of(answers) == ([[1, 0, 2], [3]], [9, 5])
    assert rows_of(answers, keep_prompts_separate=True) == ([[1, 0], [2], [3]], [7, 5, 5])
    row = pack_answers([answers[1], answers[0], answers[2]], 1)
    assert row.tokens == [2, 3, 4, 9, 5]
    assert row.positions == [1, 2, 3, 4, 3]
    assert row.predictors == [2, 2, 3, 4]  # 7 and 9 follow 4, 8 follows 9, 6 follows 5
    assert row.links[4].int().tolist() == [1, 1, 0, 0, 1]  # 5 sees 2 and 3, not 4 and 9
    full, sizes = rows_of([([1, 2, 3], 2)] * (causal.BRANCHES + 1))
    assert [*map(len, full)] == [causal.BRANCHES, 1]
    assert sizes == [3, 3]
    assert rows_of([]) == ([], [])


# -- rule 5: shared work is done once --------------------------------------------------------------


@pytest.fixture
def plain(lettered):
    """A letter is a token; the weights are sharp enough that a fault shows."""
    return lettered(build("Qwen2", **LLAMA | {"num_hidden_layers": 4}))


def test_prefix_is_computed_once_across_calls(plain, watch):
    prompts = [f"{SHARED}{start}" for start in ("abc", "bcde", "cdefg", "defghi")]
    with watch(plain) as work:
        plain.score(prompts[:2], ["x", "yz"])
    # The common beginning, for all rows; then one row of abc and bcdey.
    assert work.body == [(1, len(SHARED)), (1, 3 + 5)]
    with watch(plain) as work:
        plain.score(prompts[2:], ["Z", "xyz"])
    assert work.body == [(1, 5 + 8)]
    with watch(plain) as work:
        plain.temper(prompts[:1] * 3, [[5], [6], [7]], np.linspace(0.1, 5, 40))
    assert sum(work.head) == 1  # three answers of one token follow the same place


def test_beginning_is_the_jobs_and_not_of_the_batch_that_comes_first(plain, monkeypatch):
    """Batches run side by side: what they begin with must not depend on which is the first."""
    prompts = [f"{SHARED}{start}" for start in "abcdefgh"]
    prompts.append(SHARED[:9])  # of all that the others share only this much
    monkeypatch.setattr(plain, "tokens_per_batch", 64)
    first = plain.score(prompts, ["xyz"] * 9)
    # The shortest prompt's last token predicts its answer, and is read with it.
    assert len(plain._last_prefix.ids) == 8
    plain._last_prefix = NO_PREFIX
    np.testing.assert_array_equal(plain.score(prompts, ["xyz"] * 9), first)


def test_padding_goes_through_no_layer(plain, watch):
    with watch(plain) as work:
        plain.score(["abcd", "ef", "xyz"], ["g", "h", "i"])
    assert work.body == [(1, 4 + 2 + 3)]


def test_rows_whose_answers_have_ended_leave_the_batch(toy_model, watch):
    follow = {"?": " a", " a": " a", "!": " b", " b": "."}
    toy = toy_model({last: {word: 1.0} for last, word in follow.items()})
    prompts = ["so?", "so!", "oh so!", "why, oh why?", "no!"]
    with watch(toy) as work:
        answers = toy.generate(prompts, max_new_tokens=6, stop=["."])
    assert [answer.text for answer in answers] == [" a" * 6, " b", " b", " a" * 6, " b"]
    # Prompts that begin alike are read in one row; the answers of each grow in a row of its own.
    assert [rows for rows, _ in work.body] == [1, 5, 2, 2, 2, 2]


def test_another_cut_of_the_same_answers_costs_the_head_alone(plain, watch, monkeypatch):
    prompts = ["why so", "who", "abcabc"]
    answers = ["x", "yz", "Z"]
    other = plain.temper(prompts[::-1], answers, [1.0, 2.0], min_p=0.1)
    with watch(plain) as first:
        plain.temper(prompts, answers, [1.0])
    with watch(plain) as second:
        cut = plain.temper(prompts, answers, [1.0, 2.0], min_p=0.1)
    assert first.body
    assert not second.body
    assert second.head == first.head
    assert not np.array_equal(cut, other)  # other answers: other hidden states
    plain._tempered = {}
    monkeypatch.setattr(causal, "KEPT_BYTES", 0)  # hidden states are kept only up to a size
    again = plain.temper(prompts, answers, [1.0, 2.0], min_p=0.1)
    np.testing.assert_allclose(again, cut, atol=1e-4)
    with watch(plain) as third:
        plain.temper(prompts, answers, [2.0])
    assert third.body


# -- ids as answers --------------------------------------------------------------------------------


def test_scoring_the_generated_ids_gives_what_generation_reported(plain):
    grid = [0.1, 1.0, 10.0]
    made = plain.generate(
        [f"{SHARED}{start}" for start in "abcdefgh"],
        max_new_tokens=8,
        temperatures=grid,
    )
    answers = [answer for answer in made if answer.token_ids]
    assert len(answers) > 4
    prompts = [answer.prompt for answer in answers]
    ids = [answer.token_ids for answer in answers]
    scores = plain.score(prompts, ids)
    curves = plain.temper(prompts, ids, [*grid, 0.0])
    for answer, score, curve in zip(answers, scores, curves, strict=True):
        np.testing.assert_allclose(score, answer.logprobs, atol=1e-4)
        assert [top[0][1] for top in answer.top_logprobs] == answer.logprobs
        # Logits of float32 agree to 1e-5 a token, which a temperature of 0.1 makes ten times larger.
        np.testing.assert_allclose(curve[:-1], answer.curve, atol=1e-3)
        assert curve[-1] == pytest.approx(0, abs=1e-3)  # at 1e-4 the likeliest is certain


def test_ids_by_hand(toy_model):
    """Ids that no text gives: "ab" is one token, and "a" + "b" are asked for."""
    toy = toy_model({"?": {"a": 0.5, "ab": 0.5}, "a": {"b": 0.25, ".": 0.75}, "ab": {".": 1.0}})
    a, b, ab = toy.tokenizer.convert_tokens_to_ids(["a", "b", "ab"])
    parted, whole, text = toy.score(["why?"] * 3, [[a, b], [ab], "ab"])
    np.testing.assert_allclose(np.exp(parted), [0.5, 0.25], rtol=1e-6)
    np.testing.assert_allclose(np.exp(whole), [0.5], rtol=1e-6)
    np.testing.assert_array_equal(whole, text)


def test_networks_that_masks_cannot_steer_are_refused():
    linear = build("Qwen2", **LLAMA)
    linear.config.layer_types = ["linear_attention"] * 2
    with pytest.raises(ModelError, match="linear_attention, which cannot be batched exactly"):
        Body(linear)
    bloom = build("Bloom", vocab_size=64, hidden_size=32, n_layer=1, n_head=4)
    with pytest.raises(ModelError, match="BloomForCausalLM has no position ids, which cannot be"):
        Body(bloom)
