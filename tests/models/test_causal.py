"""The rules on a real embedded model; and rows, branches and what is computed once, on small ones
(masks on every kind of network: test_verify)."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from factrobust.models import causal
from factrobust.models.causal import NO_PREFIX, pack_answers, pad_rows, rows_of, unanswered
from factrobust.models.engine import Body, Keys
from factrobust.models.interface import ModelError

TEMPERATURES = [0.2, 1.0, 5.0]
SHARED = "the few shots that all share "

# -- rule 2: padding, prefix, branches -------------------------------------------------------------


def test_score_and_temper_are_the_networks_own(smollm, ask, reference):
    """Prompts of very different lengths in one batch, without and with a prefix in the cache."""
    prompts = [*ask(smollm, 4), "The capital of France is"]  # the last shares no prefix
    answers = [" Nairobi", " William Shakespeare", " 1945", " Au", " Paris"]
    smollm._last_prefix = NO_PREFIX
    for chosen in (slice(4), slice(5)):
        scores = smollm.score(prompts[chosen], answers[chosen])
    curves = smollm.temper(prompts, answers, [*TEMPERATURES, 0.0])
    np.testing.assert_allclose(curves[:, 1], [s.sum() for s in scores], atol=5e-5)
    for prompt, answer, curve, score in zip(prompts, answers, curves, scores, strict=True):
        ids = smollm.tokenizer(prompt + answer).input_ids
        expected = reference(smollm, ids, len(ids) - len(score), TEMPERATURES)
        np.testing.assert_allclose(score, expected[1], atol=1e-4)
        for t, value, tokens in zip(TEMPERATURES, curve[:-1], expected, strict=True):
            assert value == pytest.approx(tokens.sum(), abs=2e-4 * max(1, 1 / t))


def test_greedy_is_transformers_greedy(smollm, ask):
    """Ids equal those of transformers' generate, one prompt at a time."""
    prompts = ask(smollm, 5)[2:]
    answers = smollm.generate(prompts)
    how = {"do_sample": False, "max_new_tokens": 5, "pad_token_id": 0}
    for prompt, g in zip(prompts, answers, strict=True):
        ids = torch.tensor([smollm.tokenizer(prompt).input_ids])
        with torch.no_grad():
            out = smollm.body.network.generate(ids, attention_mask=torch.ones_like(ids), **how)[0]
        assert g.token_ids == [i for i in out[ids.shape[1] :].tolist() if i not in smollm.end_ids]


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
    sees = [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 0, 0, 1],
    ]
    assert row.links.int().tolist() == sees


def test_rows_of_answers_that_begin_alike_by_hand():
    # Two of one prompt; one of another, but two of four tokens behind token 1 are the same; one
    # alone.
    of_four = [1, 2, 3, 4, 9, 8], [1, 2, 3, 4, 7], [1, 2, 3, 5, 6], [1, 9, 9, 9, 9]
    answers = [(ids, 4) for ids in of_four]
    # In the order of tokens: 2 3 4 7, then 9 8, then 5 6; and 9 9 9 9 alone.
    assert rows_of(answers) == ([[1, 0, 2], [3]], [9, 5])
    assert rows_of(answers, keep_prompts_separate=True) == ([[1, 0], [2], [3]], [7, 5, 5])
    row = pack_answers([answers[i] for i in (1, 0, 2)], 1)
    assert row.tokens == [2, 3, 4, 9, 5]
    assert row.positions == [1, 2, 3, 4, 3]
    assert row.predictors == [2, 2, 3, 4]  # 7 and 9 follow 4, 8 follows 9, 6 follows 5
    assert row.links[4].tolist() == [True, True, False, False, True]  # 5 sees 2 and 3, not 4 and 9
    full, sizes = rows_of([([1, 2, 3], 2)] * (causal.BRANCHES + 1))
    assert [*map(len, full)] == [causal.BRANCHES, 1]
    assert sizes == [3, 3]
    assert rows_of([]) == ([], [])


# -- rule 5: shared work is done once --------------------------------------------------------------


def qwen2() -> Any:
    """A random network, whose weights are sharp enough that a fault shows."""
    torch.manual_seed(0)
    config = hf.Qwen2Config(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        bos_token_id=None,
        eos_token_id=0,
        initializer_range=0.5,
    )
    return hf.Qwen2ForCausalLM(config)


@pytest.fixture
def plain(lettered):
    """A letter is a token."""
    return lettered(qwen2())


def test_prefix_is_computed_once_across_calls(plain, watch):
    prompts = [f"{SHARED}{start}" for start in ("abc", "bcde", "cdefg", "defghi")]
    with watch(plain) as first:
        plain.score(prompts[:2], ["x", "yz"])
    with watch(plain) as second:
        plain.score(prompts[2:], ["Z", "xyz"])
    assert first.body[0] == (1, len(SHARED))  # the common beginning, for all rows
    assert len(first.body) == 2
    assert len(second.body) == 1
    assert second.tokens < len(SHARED)
    with watch(plain) as third:
        plain.temper(prompts[:1] * 3, [[5], [6], [7]], np.linspace(0.1, 5, 40))
    assert sum(third.head) == 1  # three answers of one token follow the same place


def test_beginning_is_the_jobs_and_not_of_the_batch_that_comes_first(plain, monkeypatch):
    """Batches run side by side: what they begin with must not depend on which is the first."""
    prompts = [f"{SHARED}{start}" for start in "abcdefgh"]
    prompts.append(SHARED[:9])  # of all that the others share only this much
    monkeypatch.setattr(plain, "tokens_per_batch", 64)
    found = []
    for _ in range(2):
        plain._last_prefix = NO_PREFIX
        found.append(plain.score(prompts, ["xyz"] * 9))
        # The shortest prompt's last token predicts its answer, and is read with it.
        assert len(plain._last_prefix.ids) == 8
    assert all(map(np.array_equal, *found))


def test_padding_goes_through_no_layer(plain, monkeypatch):
    rows = [pack_answers([unanswered(ids)], 0) for ids in ([9, 7, 5, 8], [9, 5], [4, 4, 4])]
    padded = pad_rows(rows, 0, "cpu")
    row = [0] * 4 + [1] * 2 + [2] * 3
    place = [0, 1, 2, 3, 0, 1, 0, 1, 2]
    assert [x.tolist() for x in padded.at] == [row, place]

    def run() -> tuple[torch.Tensor, torch.Tensor]:
        keys = Keys()
        with torch.inference_mode():
            return plain.body.hidden(padded, keys, padded.positions), keys.layers[1].keys

    assert plain.body.dense
    packed, keys = run()
    monkeypatch.setattr(plain.body, "dense", False)
    whole, whole_keys = run()
    torch.testing.assert_close(packed[padded.at], whole[padded.at], atol=1e-4, rtol=1e-4)
    assert not packed[1, 2:].any()
    at = padded.at[0], slice(None), padded.at[1]
    torch.testing.assert_close(keys[at], whole_keys[at], atol=1e-4, rtol=1e-4)


def test_rows_whose_answers_have_ended_leave_the_batch(toy_model, watch):
    follow = {"?": " a", " a": " a", "!": " b", " b": "."}
    toy = toy_model({last: {word: 1.0} for last, word in follow.items()})
    prompts = ["so?", "so!", "oh so!", "why, oh why?", "no!"]
    with watch(toy) as work:
        answers = toy.generate(prompts, max_new_tokens=6, stop=["."])
    assert [g.text for g in answers] == [" a" * 6, " b", " b", " a" * 6, " b"]
    # Prompts that begin alike are read in one row; the answers of each grow in a row of its own.
    assert [rows for rows, _ in work.body] == [1, 5, 2, 2, 2, 2]


def test_another_cut_of_the_same_answers_costs_the_head_alone(plain, watch, monkeypatch):
    asked = ["why so", "who", "abcabc"], ["x", "yz", "Z"]
    other = plain.temper(asked[0][::-1], asked[1], [1.0, 2.0], min_p=0.1)
    with watch(plain) as first:
        plain.temper(*asked, [1.0])
    with watch(plain) as second:
        cut = plain.temper(*asked, [1.0, 2.0], min_p=0.1)
    assert first.body
    assert not second.body
    assert second.head == first.head
    assert not np.array_equal(cut, other)  # other answers: other hidden states
    plain._tempered = {}
    monkeypatch.setattr(causal, "KEPT_BYTES", 0)  # hidden states are kept only up to a size
    np.testing.assert_allclose(plain.temper(*asked, [1.0, 2.0], min_p=0.1), cut, atol=1e-4)
    with watch(plain) as third:
        plain.temper(*asked, [2.0])
    assert third.body


# -- ids as answers --------------------------------------------------------------------------------


def test_scoring_the_generated_ids_gives_what_generation_reported(plain):
    grid = [0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 10.0]
    made = plain.generate(
        [f"{SHARED}{start}" for start in "abcdefgh"], max_new_tokens=8, temperatures=grid
    )
    answers = [g for g in made if g.token_ids]
    assert len(answers) > 4
    prompts = [g.prompt for g in answers]
    ids = [g.token_ids for g in answers]
    for g, score in zip(answers, plain.score(prompts, ids), strict=True):
        np.testing.assert_allclose(score, g.logprobs, atol=1e-4)
        assert [at[0][1] for at in g.top_logprobs] == g.logprobs
    curves = plain.temper(prompts, ids, [*grid, 0.0])
    # Logits of float32 agree to 1e-5 a token, which a temperature of 0.01 makes a hundred times
    # larger.
    away = np.abs(np.array([g.curve for g in answers]) - curves[:, :-1])
    assert (away <= np.maximum(1e-4, 1e-5 * np.outer([*map(len, ids)], 1 / np.array(grid)))).all()
    np.testing.assert_allclose(curves[:, 4], [sum(g.logprobs) for g in answers], atol=1e-4)
    np.testing.assert_allclose(curves[:, -1], 0, atol=1e-3)  # at 1e-4 the likeliest is certain


def test_ids_by_hand(toy_model):
    """Ids that no text gives: "ab" is one token, and "a" + "b" are asked for."""
    toy = toy_model({"?": {"a": 0.5, "ab": 0.5}, "a": {"b": 0.25, ".": 0.75}, "ab": {".": 1.0}})
    a, b, ab = (toy.tokenizer.convert_tokens_to_ids(w) for w in ("a", "b", "ab"))
    parted, whole, text = toy.score(["why?"] * 3, [[a, b], [ab], "ab"])
    np.testing.assert_allclose(np.exp(parted), [0.5, 0.25], rtol=1e-6)
    np.testing.assert_allclose(np.exp(whole), [0.5], rtol=1e-6)
    np.testing.assert_array_equal(whole, text)


def test_networks_that_masks_cannot_steer_are_refused():
    network = qwen2()
    network.config.layer_types = ["linear_attention"] * 4
    with pytest.raises(ModelError, match="linear_attention, which cannot be batched exactly"):
        Body(network)
    sizes = {"vocab_size": 64, "hidden_size": 32, "n_layer": 1, "n_head": 4}
    bloom = hf.BloomForCausalLM(hf.BloomConfig(**sizes))
    with pytest.raises(ModelError, match="BloomForCausalLM has no position ids, which cannot be"):
        Body(bloom)
