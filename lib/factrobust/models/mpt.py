"""MPT (MosaicML 2023), of which paper 3 has one, fed with explicit positions and masks.

MPT has no position ids: its attention is biased towards keys that are near (ALiBi, Press et al.
2022), and transformers counts how near from where a key stands in the batch. Padding, and branches
that follow one prompt, shift that. Here the bias follows each key's own position; otherwise these
are transformers' own layers, and `LocalModel` compares its logits with ours when it is loaded.
"""

from __future__ import annotations

from typing import Any

import torch

from factrobust.models.packed import Body, Rows


class MptBody(Body):
    """The network below its head, and the head."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.base = network.base_model
        self.config = network.config
        self.device = next(network.parameters()).device
        # The bias of the last key but one is minus the slope.
        self.slopes = -self.base.build_mpt_alibi_tensor(self.config.n_heads, 2)[..., :1]

    def hidden(self, rows: Rows, cache: Any, kv_positions: torch.Tensor) -> torch.Tensor:
        """Last hidden states [row, q, width]; the new keys and values are added to `cache`."""
        distance = kv_positions[:, None, None] - rows.positions[:, None, :, None]
        bias = self.slopes.to(distance.device) * distance  # [row, head, q, key]
        bias = bias.masked_fill(~rows.seen[:, None], -torch.inf)
        states = self.base.wte(rows.ids)
        for block in self.base.blocks:
            place = block.norm_1.weight.device  # the layers may be spread over several GPUs
            states, bias = states.to(place), bias.to(place)
            states = states + _attended(block.attn, block.norm_1(states), bias, cache)
            states = block.ffn(block.norm_2(states), states)
        return self.base.norm_f(states.to(self.base.norm_f.weight.device))


def _attended(attn: Any, states: torch.Tensor, bias: torch.Tensor, cache: Any) -> torch.Tensor:
    """What the attention of a layer adds to its input [row, q, width]."""
    rows, q, _ = states.shape
    mixed = attn.Wqkv(states)
    if attn.clip_qkv:
        mixed = mixed.clamp(-attn.clip_qkv, attn.clip_qkv)
    query, key, value = (
        part.view(rows, q, attn.n_heads, attn.head_dim).transpose(1, 2)
        for part in mixed.chunk(3, dim=-1)
    )
    key, value = cache.update(key, value, attn.layer_idx)
    scores = query @ key.transpose(-1, -2) * attn.softmax_scale + bias  # float32, by the bias
    seen = scores.softmax(dim=-1).to(value.dtype) @ value
    return attn.out_proj(seen.transpose(1, 2).reshape(rows, q, -1))
