"""Two architectures: OpenELM is not in transformers, and MPT's positions are not exact there."""

import copy
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3Model,
)
from transformers.conversion_mapping import register_checkpoint_conversion_mapping
from transformers.core_model_loading import (
    Chunk,
    Split,
    WeightConverter,
    WeightRenaming,
)
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer

from factrobust.models.engine import Asked, Rows

# Fields of Apple's configuration, and their names in Qwen 3's.
APPLE = {
    "model_dim": "hidden_size",
    "num_transformer_layers": "num_hidden_layers",
    "max_context_length": "max_position_embeddings",
    "share_input_output_layers": "tie_word_embeddings",
}


class OpenELMConfig(Qwen3Config):
    """Apple's config.json as a Qwen 3 configuration. OpenELM (Mehta et al. 2024) makes two of the
    pairs of paper 2; its layers are Qwen 3's, each with its own number of heads and width. In
    bfloat16 the rotation is rounded as in Qwen 3; Apple's own code rotates in float32."""

    model_type = "openelm"
    num_query_heads: list[int] | None = None
    num_kv_heads: list[int] | None = None
    ffn_multipliers: list[float] | None = None
    ffn_dim_divisor: int = 256

    def __post_init__(self, **kwargs: Any) -> None:
        for theirs, name in APPLE.items():
            if theirs in kwargs:
                setattr(self, name, kwargs.pop(theirs))
        if "rope_freq_constant" in kwargs:
            kwargs["rope_theta"] = kwargs.pop("rope_freq_constant")
        super().__post_init__(**kwargs)

    def of_layer(self, index: int) -> Qwen3Config:
        layer = copy.copy(self)
        layer.num_attention_heads = (self.num_query_heads or [])[index]
        layer.num_key_value_heads = (self.num_kv_heads or [])[index]
        width = (self.ffn_multipliers or [])[index] * self.hidden_size
        layer.intermediate_size = whole_multiple(width, self.ffn_dim_divisor)
        return layer


def whole_multiple(size: float, divisor: int) -> int:
    """The multiple of `divisor` nearest to `size`, or the next if that is under 90% of `size`."""
    nearest = int(size + divisor / 2) // divisor * divisor
    return nearest if nearest >= 0.9 * size else nearest + divisor


class OpenELMModel(Qwen3Model):
    config_class = OpenELMConfig

    def __init__(self, config: OpenELMConfig) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList(
            Qwen3DecoderLayer(config.of_layer(i), i) for i in range(config.num_hidden_layers)
        )
        self.post_init()


class OpenELMForCausalLM(Qwen3ForCausalLM):
    config_class = OpenELMConfig

    def __init__(self, config: OpenELMConfig) -> None:
        super().__init__(config)
        self.model = OpenELMModel(config)
        self.post_init()


def register() -> None:
    """Let transformers' Auto classes load models of this type."""
    AutoConfig.register(OpenELMConfig.model_type, OpenELMConfig, exist_ok=True)
    AutoModelForCausalLM.register(OpenELMConfig, OpenELMForCausalLM, exist_ok=True)
    renamed = {
        "transformer.token_embeddings": "model.embed_tokens",
        "transformer.": "model.",
        "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
        "attn.q_norm": "self_attn.q_norm",
        "attn.k_norm": "self_attn.k_norm",
        "attn.out_proj": "self_attn.o_proj",
        "ffn.proj_2": "mlp.down_proj",
    }
    heads = [f"self_attn.{name}_proj.weight" for name in "qkv"]
    gates = [f"mlp.{name}_proj.weight" for name in ("gate", "up")]
    mapping: list[Any] = [WeightRenaming(*names) for names in renamed.items()]
    mapping.append(WeightConverter("attn.qkv_proj.weight", heads, [Split(dim=0)]))
    mapping.append(WeightConverter("ffn.proj_1.weight", gates, [Chunk(dim=0)]))
    register_checkpoint_conversion_mapping(
        OpenELMConfig.model_type,
        mapping,
        overwrite=True,
    )


class MptBody(Asked):
    """MPT (MosaicML 2023; paper 3 has one). Its attention prefers near keys (ALiBi, Press et al.
    2022), and transformers takes the distance from a key's place in the batch, which padding and
    branches shift. Here the bias follows each key's own position."""

    def __init__(self, network: Any) -> None:
        super().__init__(network)
        self.base = network.base_model
        # The second to last key has minus the slope as its bias.
        self.slopes = -self.base.build_mpt_alibi_tensor(self.config.n_heads, 2)[..., :1]

    def hidden(
        self,
        rows: Rows,
        cache: Any,
        kv_positions: torch.Tensor,
    ) -> torch.Tensor:
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


def _attended(
    attn: Any,
    states: torch.Tensor,
    bias: torch.Tensor,
    cache: Any,
) -> torch.Tensor:
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
