"""The same rules for encoder-decoder models: tiny random networks against transformers itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from factrobust.models.encdec import Seq2SeqLM
from factrobust.models.interface import ModelError

PROMPTS = ["a", "why so", "the quick brown fox jumps over the lazy dog", "bb", "12345678", "abc"]
PROMPTS += ["who wrote Hamlet and when", "Q A"]
ANSWERS = ["x", "because", "an animal of some kind", "Y", "87654321", "abc", "W S", "the end"]
END = 0
T5 = {
    "vocab_size": 64,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "pad_token_id": 1,
    "eos_token_id": END,
    "decoder_start_token_id": 1,
}
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
GATED = T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}


def bart() -> Any:
    """BART forces its first token, and has a bias after its head (0 in published models)."""
    network = hf.BartForConditionalGeneration(hf.BartConfig(**BART))
    network.generation_config.forced_bos_token_id = 3
    network.final_logits_bias.normal_()
    return network


NETWORKS: dict[str, Callable[[], Any]] = {
    "t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(**T5)),
    "flan-t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(**GATED)),
    "umt5": lambda: hf.UMT5ForConditionalGeneration(hf.UMT5Config(**T5)),
    "bart": bart,
    "pegasus": lambda: hf.PegasusForConditionalGeneration(hf.PegasusConfig(**BART)),
}


@pytest.fixture(params=[*NETWORKS, "ends"])
def any_kind(request, t5, lettered):
    """A model of each kind in turn, and one whose answers end."""
    torch.manual_seed(0)
    return t5 if request.param == "ends" else lettered(NETWORKS[request.param]())


t5 = pytest.fixture(lambda tiny_t5: tiny_t5(), scope="module")


def exact(model: Any, prompt: str, answer: list[int], t: float = 1.0) -> np.ndarray:
    """Log P_t of an answer's tokens by the whole network, alone and without a cache, in float64."""
    source = torch.tensor([model.tokenizer(prompt).input_ids])
    target = torch.tensor([[*model.body.begin, *answer]])
    with torch.no_grad():
        logits = model.body.network(input_ids=source, decoder_input_ids=target).logits[0]
    predictors = logits[len(model.body.begin) - 1 : -1].double()
    chosen = torch.log_softmax(predictors / t, dim=-1).gather(1, torch.tensor(answer)[:, None])
    values: np.ndarray = chosen[:, 0].numpy()
    return values


@contextmanager
def read_prompts(model: Seq2SeqLM) -> Iterator[list[int]]:
    rows: list[int] = []
    hook = model.body.encoder.register_forward_hook(
        lambda _, __, kwargs, ___: rows.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    yield rows
    hook.remove()


def test_every_operation_equals_the_network_itself(any_kind):
    prompts = PROMPTS
    begin = any_kind.body.begin
    for prompt, row in zip(
        prompts,
        any_kind.sample(
            prompts,
            temperature=1.5,
            n=6,
            seed=2,
        ),
        strict=True,
    ):
        for g in row:
            for t, logprobs in ((1.0, g.logprobs), (1.5, g.tempered_logprobs)):
                expected = exact(any_kind, prompt, g.token_ids, t)
                np.testing.assert_allclose(logprobs, expected, atol=2e-5)
        given = [g.token_ids for g in row if g.token_ids]
        scores = any_kind.score([prompt] * len(given), given)
        for answer, score in zip(given, scores, strict=True):
            np.testing.assert_allclose(score, exact(any_kind, prompt, answer), atol=2e-5)
    for prompt, g in zip(prompts, any_kind.generate(prompts, max_new_tokens=8), strict=True):
        source = torch.tensor([any_kind.tokenizer(prompt).input_ids])
        out = any_kind.body.network.generate(
            input_ids=source,
            attention_mask=torch.ones_like(source),
            do_sample=False,
            num_beams=1,
            max_new_tokens=len(begin) - 1 + 8,
        )[0].tolist()
        assert out[: len(begin)] == begin
        assert g.token_ids == [i for i in out[len(begin) :] if i not in any_kind.end_ids]
        assert g.text == any_kind.tokenizer.decode(g.token_ids, skip_special_tokens=True)
        for chosen, top in zip(g.logprobs, g.top_logprobs, strict=True):
            assert len(top) == 10
            assert top[0][1] == chosen
            assert [p for _, p in top] == sorted((p for _, p in top), reverse=True)


def test_a_network_whose_decoder_has_no_start_cannot_be_asked(lettered):
    network = NETWORKS["t5"]()
    network.config.decoder_start_token_id = None
    network.generation_config.decoder_start_token_id = None
    with pytest.raises(ModelError, match="T5ForConditionalGeneration has no decoder start token"):
        lettered(network)


def test_a_prompt_is_read_once_for_all_its_answers(t5, ids, watch):
    prompts = ["why so"] * 4 + ["abc"]
    answers = ["because", "b", "b2", "x", "no"]
    with read_prompts(t5) as read, watch(t5) as work:
        scores = t5.score(prompts, answers)
    assert sum(read) == 2
    assert sum(work.head) == 2 + 6 + 1 + 1  # two places for first tokens, then each token's own
    many = [a + b for a in "abcdefgh" for b in "ijklmnopqr"]  # more than are forced at once
    with read_prompts(t5) as read:
        scores += t5.score(["why so"] * len(many), many)
    assert read == [1]
    given = zip([*prompts, *["why so"] * len(many)], map(ids, [*answers, *many]), strict=True)
    for (prompt, answer), score in zip(given, scores, strict=True):
        np.testing.assert_allclose(score, exact(t5, prompt, answer), atol=1e-5)
    ended = [*ids("no"), END]  # which is scored if it is given, and only then
    np.testing.assert_allclose(t5.score(["abc"], [ended])[0], exact(t5, "abc", ended), atol=1e-5)


def test_temper_at_one_is_score_and_elsewhere_the_tempered_softmax(t5, ids):
    grid = [0.0, 0.3, 1.0, 2.5]
    with read_prompts(t5) as read:
        curves = t5.temper(PROMPTS, ANSWERS, grid)
    assert sum(read) == len(PROMPTS)
    scores = t5.score(PROMPTS, ANSWERS)
    np.testing.assert_allclose(curves[:, 2], [s.sum() for s in scores], atol=1e-5)
    for prompt, answer, curve in zip(PROMPTS, ANSWERS, curves, strict=True):
        for t, value in zip(grid[1:], curve[1:], strict=True):
            expected = exact(t5, prompt, ids(answer), t).sum()
            assert value == pytest.approx(expected, abs=2e-4 / t)


def test_longer_than_the_context(lettered):
    model = lettered(NETWORKS["pegasus"](), "short")
    model.body.config.max_position_embeddings = 20
    assert len(model.score(["a" * 19], ["b" * 19])[0]) == 19  # with the end, and after the start
    for prompt, answer in (("a" * 20, "b"), ("a", "b" * 20)):
        with pytest.raises(ModelError, match=r"short: .* 21 tokens in score, .* context of 20"):
            model.score([prompt], [answer])
