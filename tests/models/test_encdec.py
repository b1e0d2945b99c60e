"""The same rules for encoder-decoder models: tiny random networks against transformers itself."""

import numpy as np
import pytest
import torch
from networks import T5, alone, assert_given_as_alone, assert_made_as_alone, build

from factrobust.models.engine import Plain
from factrobust.models.interface import ModelError

PROMPTS = [
    "a",
    "why so",
    "the quick brown fox jumps over the lazy dog",
    "bb",
    "12345678",
    "abc",
    "who wrote Hamlet and when",
    "Q A",
]
ANSWERS = ["x", "because", "an animal of some kind", "Y", "87654321", "abc", "W S", "the end"]
END = 0
BART = {
    "vocab_size": 64,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 3,
    "eos_token_id": END,
    "decoder_start_token_id": 0,
    "forced_eos_token_id": None,
    "init_std": 0.2,
}
GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
KINDS = {
    "t5": ("T5", T5),
    "flan-t5": ("T5", T5 | GATED),
    "umt5": ("UMT5", T5),
    "bart": ("Bart", BART),
    "pegasus": ("Pegasus", BART),
}


@pytest.fixture(scope="module", params=[*KINDS, "ends"])
def any_kind(request, tiny_t5, lettered):
    """A model of each kind in turn, and one whose answers end."""
    if request.param == "ends":
        return tiny_t5()
    kind, settings = KINDS[request.param]
    network = build(kind, **settings)
    if kind == "Bart":  # it forces its first token, and has a bias after its head
        network.generation_config.forced_bos_token_id = 3
        network.final_logits_bias.normal_()
    return lettered(network)


t5 = pytest.fixture(lambda tiny_t5: tiny_t5(), scope="module")


def test_every_operation_equals_the_network_itself(any_kind, ids):
    assert not isinstance(any_kind.body, Plain)  # which would be right, and slow
    assert_given_as_alone(any_kind, any_kind.network, ids, PROMPTS, ANSWERS)
    assert_made_as_alone(any_kind, any_kind.network, ids, PROMPTS)


def test_greedy_answers_are_those_of_transformers(any_kind):
    begin = any_kind.body.begin
    for answer in any_kind.generate(PROMPTS, max_new_tokens=8):
        source = torch.tensor([any_kind.tokenizer(answer.prompt).input_ids])
        made = any_kind.network.generate(
            input_ids=source,
            attention_mask=torch.ones_like(source),
            do_sample=False,
            num_beams=1,
            max_new_tokens=len(begin) - 1 + 8,
        )
        written = made[0].tolist()
        assert written[: len(begin)] == begin
        new = [token for token in written[len(begin) :] if token != END]
        assert answer.token_ids == new
        assert answer.text == any_kind.tokenizer.decode(new, skip_special_tokens=True)
        for chosen, top in zip(answer.logprobs, answer.top_logprobs, strict=True):
            numbers = [number for _, number in top]
            assert len(numbers) == 10
            assert numbers[0] == chosen
            assert numbers == sorted(numbers, reverse=True)


def test_a_network_whose_decoder_has_no_start_cannot_be_asked(lettered):
    network = build("T5", **T5)
    network.config.decoder_start_token_id = None
    network.generation_config.decoder_start_token_id = None
    with pytest.raises(ModelError, match="T5ForConditionalGeneration has no decoder start token"):
        lettered(network)


def test_a_prompt_is_read_once_for_all_its_answers(t5, ids, watch):
    few = ["because", "b", "b2", "x", "no"]
    with watch(t5) as work:
        t5.score(["why so"] * 4 + ["abc"], few)
    assert sum(work.encoder) == 2
    assert sum(work.head) == 2 + 6 + 1 + 1  # two places for first tokens, then each token's own
    many = [first + second for first in "abcdefgh" for second in "ijklmnopqr"]
    with watch(t5) as work:
        scores = t5.score(["why so"] * 80, many)
    assert work.encoder == [1]  # although no more than 64 answers are forced at once
    for answer, score in zip(many, scores, strict=True):
        expected = alone(t5.network, ids("why so"), ids(answer))
        np.testing.assert_allclose(score, expected, atol=1e-5)


def test_the_end_is_scored_if_it_is_given(t5, ids):
    answer = [*ids("no"), END]
    [score] = t5.score(["abc"], [answer])
    np.testing.assert_allclose(score, alone(t5.network, ids("abc"), answer), atol=1e-5)
    assert len(t5.score(["abc"], ["no"])[0]) == 2


@pytest.mark.parametrize(("prompt", "answer"), [(20, 1), (1, 20)])
def test_longer_than_the_context(lettered, prompt, answer):
    model = lettered(build("Pegasus", **BART), "short")
    model.body.config.max_position_embeddings = 20
    # With the end behind a prompt, and after the start of an answer, this is the most.
    assert len(model.score(["a" * 19], ["b" * 19])[0]) == 19
    with pytest.raises(ModelError, match=r"short: .* 21 tokens in score, .* context of 20"):
        model.score(["a" * prompt], ["b" * answer])
