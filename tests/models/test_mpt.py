"""MPT's bias follows each token's own position (against the network's own logits: test_packed)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import DynamicCache, MptConfig, MptForCausalLM

from factrobust.models.causal import straight
from factrobust.models.extra import MptBody
from factrobust.models.tree import pad_rows


def network(**options: Any) -> MptForCausalLM:
    torch.manual_seed(0)
    config = MptConfig(
        d_model=48, n_heads=6, n_layers=2, vocab_size=64, initializer_range=0.3, **options
    )
    return MptForCausalLM(config).eval()


def last_states(model: MptForCausalLM, ids: list[int], start: int) -> torch.Tensor:
    """Of the last token, which stands as if the sequence began at `start`."""
    row = straight([0] * start + ids, start)
    rows = pad_rows([row], torch.ones(1, len(ids), 0, dtype=torch.bool), "cpu")
    return MptBody(model).hidden(rows, DynamicCache(), rows.positions)[0, -1]


@pytest.mark.parametrize("clip", [None, 0.5])
def test_states_are_those_of_transformers(clip: float | None) -> None:
    model = network(attn_config={"clip_qkv": clip})
    ids = torch.randint(0, 64, (1, 30))
    with torch.inference_mode():
        expected = model.transformer(ids).last_hidden_state[0, -1]
        torch.testing.assert_close(last_states(model, ids[0].tolist(), 0), expected)


def test_only_distances_count() -> None:
    model = network()
    with torch.inference_mode():
        here, there = (last_states(model, [5, 9, 60, 5, 7], start) for start in (0, 1000))
    torch.testing.assert_close(here, there)


def test_bfloat16_weighs_in_float32() -> None:
    """As transformers, which adds its bias in float32: nearer to it than both to the exact states."""
    model = network()
    ids = torch.randint(0, 64, (1, 500))
    with torch.inference_mode():
        exact = last_states(model, ids[0].tolist(), 0)
        model.bfloat16()
        theirs = model.transformer(ids).last_hidden_state[0, -1].float()
        ours = last_states(model, ids[0].tolist(), 0).float()
    assert (ours - theirs).norm() < 0.5 * (theirs - exact).norm() < 0.05 * exact.norm()


def test_it_is_asked_like_any_model(
    toy_model: Callable[..., Any], reference: Callable[..., np.ndarray]
) -> None:
    from factrobust.models.causal import CausalLM

    tokenizer = toy_model({letter: {letter: 1.0} for letter in "abcdefghijkl"}).tokenizer
    model = CausalLM(
        network(), tokenizer, name="mpt", fingerprint="mpt", prompt_format="prefix", chat=None
    )
    assert isinstance(model.body, MptBody)
    made = model.generate(["abcab", "b"], max_new_tokens=4)
    for prompt, g in zip(["abcab", "b"], made, strict=True):
        ids = tokenizer(prompt).input_ids + g.token_ids
        np.testing.assert_allclose(g.logprobs, reference(model, ids, len(prompt)), atol=2e-5)
