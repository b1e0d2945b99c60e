"""Encoder and decoder apart: the tree of answers as rows, on each kind of network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    PegasusConfig,
    PegasusForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
    T5GemmaConfig,
    T5GemmaForConditionalGeneration,
    T5GemmaModuleConfig,
    UMT5Config,
    UMT5ForConditionalGeneration,
)

from factrobust.models.encdec import EncoderDecoder, Seq2SeqLM, Tree
from factrobust.models.interface import ModelError
from factrobust.models.tree import NO_NUMBERS, Rows, Stream, decode

T5 = {
    "vocab_size": 64,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "pad_token_id": 1,
    "eos_token_id": 0,
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
    "eos_token_id": 0,
    "decoder_start_token_id": 0,
    "forced_eos_token_id": None,
    "init_std": 0.2,
}


def bart() -> Any:
    """BART forces its first token, and has a bias after its head (0 in published models)."""
    network = BartForConditionalGeneration(BartConfig(**BART))
    network.generation_config.forced_bos_token_id = 3
    network.final_logits_bias.normal_()
    return network


NETWORKS: dict[str, Callable[[], Any]] = {
    "t5": lambda: T5ForConditionalGeneration(T5Config(**T5)),
    "flan-t5": lambda: T5ForConditionalGeneration(
        T5Config(**T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    ),
    "umt5": lambda: UMT5ForConditionalGeneration(UMT5Config(**T5)),
    "bart": bart,
    "pegasus": lambda: PegasusForConditionalGeneration(PegasusConfig(**BART)),
}


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    return NETWORKS[request.param]().eval()


def plain(network: Any, begin: list[int], prompt: list[int], answer: list[int]) -> torch.Tensor:
    """Log-probabilities of an answer's tokens by the whole network."""
    logits = network(
        input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([[*begin, *answer]])
    ).logits[0, len(begin) - 1 : -1]
    return torch.log_softmax(logits.double(), -1).gather(1, torch.tensor(answer)[:, None])[:, 0]


def test_every_operation_equals_the_network_itself(network: Any, letters: Any) -> None:
    model = Seq2SeqLM(
        network, letters, name="x", fingerprint="x", prompt_format="prefix", chat=None
    )
    begin = model.body.begin
    prompts = ["a", "why so", "the quick brown fox jumps", "12345678"]
    source = [letters(p).input_ids for p in prompts]
    with torch.no_grad():
        for prompt, ids, row in zip(
            prompts, source, model.sample(prompts, temperature=1.5, n=6, seed=2), strict=True
        ):
            for g in row:
                expected = plain(network, begin, ids, g.token_ids)
                np.testing.assert_allclose(g.logprobs, expected, atol=2e-5)
            given = [g.token_ids for g in row if g.token_ids]
            for answer, score in zip(given, model.score([prompt] * len(given), given), strict=True):
                expected = plain(network, begin, ids, answer)
                np.testing.assert_allclose(score, expected, atol=2e-5)
        for ids, g in zip(source, model.generate(prompts), strict=True):
            out = network.generate(
                input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)),
                do_sample=False, num_beams=1, max_new_tokens=len(begin) - 1 + 5,
            )[0].tolist()  # fmt: skip
            assert out[: len(begin)] == begin
            assert g.token_ids == [i for i in out[len(begin) :] if i not in model.end_ids]


def test_scale_and_beginning_are_the_networks(letters: Any) -> None:
    def body(name: str) -> EncoderDecoder:
        about: dict[str, Any] = {"fingerprint": "x", "prompt_format": "prefix", "chat": None}
        return Seq2SeqLM(NETWORKS[name](), letters, name=name, **about).body

    assert body("t5").scale == 32**-0.5
    assert body("flan-t5").scale == 1
    assert (body("bart").scale, body("bart").begin) == (1, [0, 3])
    assert body("pegasus").begin == [0]


def test_rows_of_a_level_by_hand(network: Any) -> None:
    """Two prompts; the first branches into two nodes and then goes on with its second alone."""
    body = EncoderDecoder(network)
    prompts = [[5, 6, 0], [7, 8, 9, 10, 0]]
    with torch.inference_mode():
        _, encoded = body.encode(prompts)
        tree = Tree(encoded, torch.arange(2)[:, None])
        # Keys seen: the start, then the level itself. Padding (row 1, column 1) sees itself alone.
        seen = torch.tensor([[[1, 1, 0], [1, 0, 1]], [[1, 1, 0], [0, 0, 1]]]).bool()
        ids = torch.tensor([[20, 21], [22, 0]])
        body.hidden(Rows(ids, torch.ones(2, 2), seen), tree, torch.zeros(2, 3))
        assert tree.node.tolist() == [[0, 1], [2, 0]]
        assert len(tree.encoded.mask) == 3
        seen = torch.tensor([[[1, 0, 1, 1]], [[1, 1, 0, 1]]]).bool()
        ids = torch.tensor([[30], [31]])
        hidden = body.hidden(Rows(ids, torch.ones(2, 1), seen), tree, torch.zeros(2, 4))
        logits = body.logits(hidden[:, 0])
        for row, answer in enumerate(([21, 30], [22, 31])):
            own = network(
                input_ids=torch.tensor(prompts[row : row + 1]),
                decoder_input_ids=torch.tensor([[*body.begin, *answer]]),
            ).logits[0, -1]
            scale = 32**-0.5 if getattr(network.config, "scale_decoder_outputs", False) else 1
            scale = 32**-0.5 if network.config.model_type == "umt5" else scale
            torch.testing.assert_close(logits[row] * scale, own, atol=2e-5, rtol=1e-5)


def test_following_leaves_the_encoded_prompts_as_they_are(network: Any) -> None:
    body = EncoderDecoder(network)
    with torch.inference_mode():
        hidden, encoded = body.encode([[5, 6, 0], [7, 8, 9, 10, 0]])
        once = body.follow(encoded, [1, 0, 1], [[20, 21, 22], [23], [24, 25]])
        again = body.follow(encoded, [1, 0, 1], [[20, 21, 22], [23], [24, 25]])
    assert once.shape == (6, hidden.shape[1])
    torch.testing.assert_close(once, again)
    assert encoded.past.get_seq_length() == len(body.begin)


def test_rows_are_copied_only_when_somebody_ends_or_branches(
    network: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from factrobust.models.encdec import Encoded

    copies: list[list[int]] = []
    rows = Encoded.rows

    def counted(self: Encoded, index: list[int]) -> Encoded:
        copies.append(index)
        return rows(self, index)

    monkeypatch.setattr(Encoded, "rows", counted)
    body = EncoderDecoder(network)
    streams = [[Stream(0.0, NO_NUMBERS)] for _ in range(3)]
    with torch.inference_mode():
        hidden, encoded = body.encode([[5, 6, 0], [7, 8, 9, 10, 0], [5, 0]])
        decode(
            body, hidden, Tree(encoded, torch.arange(3)[:, None]), torch.zeros(3, 1),
            torch.ones(3, 1, dtype=torch.bool), streams,
            ended=lambda row, ids: row == 1 and len(ids) == 3,
            max_new_tokens=6, top_k=None, top_p=None, chunk=64,
        )  # fmt: skip
    assert [len(row[0].ids) for row in streams] == [6, 3, 6]
    assert copies == [[0, 2]]


def test_networks_that_cannot_be_asked(letters: Any) -> None:
    about: dict[str, Any] = {"fingerprint": "x", "prompt_format": "prefix", "chat": None}
    network = NETWORKS["t5"]()
    network.config.decoder_start_token_id = None
    network.generation_config.decoder_start_token_id = None
    with pytest.raises(ModelError, match="T5ForConditionalGeneration has no decoder start token"):
        Seq2SeqLM(network, letters, name="x", **about)
    stack = T5GemmaModuleConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, bos_token_id=2,
    )  # fmt: skip
    windowed = T5GemmaForConditionalGeneration(T5GemmaConfig(encoder=stack, decoder=stack))
    with pytest.raises(ModelError, match="has attention other than full, which cannot be asked"):
        Seq2SeqLM(windowed, letters, name="x", **about)
