"""Rule 2: rows, branches and padding; and masks that mean the same as each network's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    MptConfig,
    MptForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from factrobust.models.causal import common_length, pack_answers, straight
from factrobust.models.engine import Body
from factrobust.models.extra import OpenELMConfig, OpenELMForCausalLM
from factrobust.models.interface import ModelError
from factrobust.models.tree import pad_rows

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": None,
    "initializer_range": 0.5,  # sharp enough that a wrong mask shows
}
NETWORKS: dict[str, Callable[[], Any]] = {
    "gemma3": lambda: Gemma3ForCausalLM(
        Gemma3TextConfig(
            **SMALL,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention"] * 2,
            query_pre_attn_scalar=8,
        )
    ),
    "gemma2": lambda: Gemma2ForCausalLM(
        Gemma2Config(**SMALL, sliding_window=8, query_pre_attn_scalar=8)
    ),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**SMALL, sliding_window=8)),
    "qwen2": lambda: Qwen2ForCausalLM(
        Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=8, max_window_layers=2)
    ),
    "qwen2-full": lambda: Qwen2ForCausalLM(Qwen2Config(**SMALL)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(
            vocab_size=64, n_embd=32, n_layer=3, n_head=4, bos_token_id=0, eos_token_id=0,
            initializer_range=0.2,
        )
    ),
    "mpt": lambda: MptForCausalLM(
        MptConfig(
            vocab_size=64, d_model=48, n_layers=3, n_heads=6, eos_token_id=0, initializer_range=0.4
        )
    ),
    "openelm": lambda: OpenELMForCausalLM(
        OpenELMConfig(
            vocab_size=64, model_dim=32, num_transformer_layers=3, head_dim=8, eos_token_id=0,
            num_query_heads=[2, 4, 4], num_kv_heads=[1, 1, 2], ffn_multipliers=[0.5, 1.0, 2.0],
            ffn_dim_divisor=8, share_input_output_layers=True, initializer_range=0.5,
        )
    ),
}  # fmt: skip


@pytest.fixture(params=NETWORKS)
def tiny(request: pytest.FixtureRequest, toy_model: Callable[..., Any]) -> Any:
    """A random network of some architecture, behind the toy's tokenizer: a letter is a token."""
    from factrobust.models.causal import CausalLM

    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ 12345678"
    toy = toy_model({letter: {letter: 1.0} for letter in letters})
    assert len(toy.tokenizer) == 64
    torch.manual_seed(0)
    network = NETWORKS[request.param]().eval()
    return CausalLM(
        network, toy.tokenizer, name="tiny", fingerprint="tiny", prompt_format="prefix", chat=None
    )


def test_masks_equal_the_networks_own(tiny: Any, reference: Callable[..., np.ndarray]) -> None:
    """Longer than the window; padded, with a shared prefix, and with answers as branches."""
    rng = np.random.default_rng(1)
    start = "the few shots that all share "
    prompts, answers = [], []
    for length in (1, 5, 12, 30):
        text = start + "".join(rng.choice(list("abcdefgh"), length))
        for answer in ("xyz", "x", "xyzABC12", "Z"):
            prompts.append(text)
            answers.append(answer)
    for _ in range(2):  # the second time, the prefix is there already
        for prompt, answer, got in zip(prompts, answers, tiny.score(prompts, answers), strict=True):
            ids = tiny.tokenizer(prompt + answer).input_ids
            np.testing.assert_allclose(got, reference(tiny, ids, len(prompt)), atol=2e-5)
    alone = tiny.score(["q", "rst" * 9], ["uvw", "u"])  # no prefix: nothing is shared
    for prompt, answer, got in zip(["q", "rst" * 9], ["uvw", "u"], alone, strict=True):
        ids = tiny.tokenizer(prompt + answer).input_ids
        np.testing.assert_allclose(got, reference(tiny, ids, len(prompt)), atol=2e-5)


def test_samples_are_scored_as_the_network_would(
    tiny: Any, reference: Callable[..., np.ndarray]
) -> None:
    """The tree of samples: each drawn token has the log-probability that a plain pass gives it."""
    prompts = ["a", "the quick brown fox jumps over", "lazy dogs"]
    for prompt, row in zip(
        prompts, tiny.sample(prompts, temperature=2.0, n=6, max_new_tokens=10, seed=3), strict=True
    ):
        for g in row:
            ids = tiny.tokenizer(prompt).input_ids + g.token_ids
            at = len(prompt)
            np.testing.assert_allclose(g.logprobs, reference(tiny, ids, at), atol=2e-5)
            np.testing.assert_allclose(
                g.tempered_logprobs, reference(tiny, ids, at, 2.0), atol=2e-5
            )


def test_common_length() -> None:
    assert common_length([[1, 2, 3], [1, 2, 4, 5], [1, 2]]) == 2
    assert common_length([[1, 2]]) == 2
    assert common_length([[1], [2]]) == 0
    assert common_length([]) == 0


def test_pack_answers_by_hand() -> None:
    # Prompt 5 6 7; answers 8 9 and 1; the first two tokens are in the cache.
    row, predictors = pack_answers([([5, 6, 7, 8, 9], 3), ([5, 6, 7, 1], 3)], 2)
    assert row.tokens == [7, 8]  # 9 and 1 predict nothing that is asked for
    assert row.positions == [2, 3]
    assert predictors == [0, 1, 0]  # 8 and 1 both follow 7; 9 follows 8
    # The second answer merges with the prompt's last token: it begins one token earlier.
    row, predictors = pack_answers([([5, 6, 7, 8, 9], 3), ([5, 6, 4, 1], 2)], 0)
    assert row.tokens == [5, 6, 7, 8, 4]
    assert row.positions == [0, 1, 2, 3, 2]
    assert predictors == [2, 3, 1, 4]
    sees = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 0, 0, 1]]
    assert row.links.int().tolist() == sees


def test_pad_rows_by_hand() -> None:
    past = torch.ones(2, 2, 1, dtype=torch.bool)
    rows = pad_rows([straight([9, 7], 1), straight([9, 5, 6], 1)], past, "cpu")
    assert rows.ids.tolist() == [[7, 0], [5, 6]]
    assert rows.positions.tolist() == [[1, 0], [1, 2]]
    assert rows.seen.int().tolist() == [[[1, 1, 0], [1, 0, 1]], [[1, 1, 0], [1, 1, 1]]]


def test_networks_that_masks_cannot_steer_are_refused() -> None:
    network = NETWORKS["qwen2-full"]()
    network.config.layer_types = ["linear_attention"] * 4
    with pytest.raises(ModelError, match="linear_attention, which cannot be batched exactly"):
        Body(network)
    bloom = BloomForCausalLM(BloomConfig(vocab_size=64, hidden_size=32, n_layer=1, n_head=4))
    with pytest.raises(ModelError, match="BloomForCausalLM has no position ids, which cannot be"):
        Body(bloom)


def test_head_of_a_bfloat16_network_is_float32() -> None:
    """Rule 4: logits carry float32's digits although weights and hidden states do not."""
    network = NETWORKS["qwen2-full"]().to(torch.bfloat16)
    body = Body(network)
    hidden = torch.randn(3, 32).bfloat16()
    logits = body.logits(hidden)
    exact = hidden.double() @ network.lm_head.weight.detach().double().T
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits.double(), exact, atol=1e-5, rtol=1e-5)
    assert (network.lm_head(hidden).double() - exact).abs().max() > 1e-3
