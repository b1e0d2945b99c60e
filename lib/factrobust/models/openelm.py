"""OpenELM (Mehta et al. 2024), two of the pairs of paper 2, for transformers, which has it not.

Its layers are Qwen 3's (RMS norms of queries and keys before the rotation, grouped queries, a gated
feed-forward network), each with its own number of heads and its own width. So this module only
reads Apple's config.json and names, and cuts their fused matrices. In bfloat16 the rotation is
rounded as in Qwen 3; Apple's own code, which transformers 5 no longer runs, rotates in float32.
"""

from __future__ import annotations

import copy
from typing import Any

from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM, Qwen3Model
from transformers.conversion_mapping import register_checkpoint_conversion_mapping
from transformers.core_model_loading import Chunk, Split, WeightConverter, WeightRenaming
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer


class OpenELMConfig(Qwen3Config):
    """Apple's config.json as a Qwen 3 configuration, with one number of each kind for each layer."""

    model_type = "openelm"
    num_query_heads: list[int] | None = None
    num_kv_heads: list[int] | None = None
    ffn_multipliers: list[float] | None = None
    ffn_dim_divisor: int = 256

    def __post_init__(self, **kwargs: Any) -> None:
        self.hidden_size = kwargs.pop("model_dim", self.hidden_size)
        self.num_hidden_layers = kwargs.pop("num_transformer_layers", self.num_hidden_layers)
        self.max_position_embeddings = kwargs.pop(
            "max_context_length", self.max_position_embeddings
        )
        self.tie_word_embeddings = kwargs.pop("share_input_output_layers", self.tie_word_embeddings)
        if "rope_freq_constant" in kwargs:
            kwargs["rope_theta"] = kwargs.pop("rope_freq_constant")
        super().__post_init__(**kwargs)

    def of_layer(self, index: int) -> Qwen3Config:
        """The configuration of one layer."""
        own = copy.copy(self)
        own.num_attention_heads = (self.num_query_heads or [])[index]
        own.num_key_value_heads = (self.num_kv_heads or [])[index]
        own.intermediate_size = whole_multiple(
            (self.ffn_multipliers or [])[index] * self.hidden_size, self.ffn_dim_divisor
        )
        return own


def whole_multiple(size: float, divisor: int) -> int:
    """The multiple of `divisor` nearest to `size`, or the next if that is under 90% of `size`."""
    nearest = int(size + divisor / 2) // divisor * divisor
    return nearest if nearest >= 0.9 * size else nearest + divisor


class OpenELMModel(Qwen3Model):
    """The network below its head."""

    config_class = OpenELMConfig

    def __init__(self, config: OpenELMConfig) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList(
            Qwen3DecoderLayer(config.of_layer(i), i) for i in range(config.num_hidden_layers)
        )
        self.post_init()


class OpenELMForCausalLM(Qwen3ForCausalLM):
    """The whole network."""

    config_class = OpenELMConfig

    def __init__(self, config: OpenELMConfig) -> None:
        super().__init__(config)
        self.model = OpenELMModel(config)
        self.post_init()


def register() -> None:
    """Let transformers' Auto classes load models of this type."""
    AutoConfig.register(OpenELMConfig.model_type, OpenELMConfig, exist_ok=True)
    AutoModelForCausalLM.register(OpenELMConfig, OpenELMForCausalLM, exist_ok=True)
    projections = [f"self_attn.{name}_proj.weight" for name in "qkv"]
    register_checkpoint_conversion_mapping(
        OpenELMConfig.model_type,
        [
            WeightRenaming("transformer.token_embeddings", "model.embed_tokens"),
            WeightRenaming("transformer.", "model."),
            WeightRenaming("attn_norm", "input_layernorm"),
            WeightRenaming("ffn_norm", "post_attention_layernorm"),
            WeightRenaming("attn.q_norm", "self_attn.q_norm"),
            WeightRenaming("attn.k_norm", "self_attn.k_norm"),
            WeightRenaming("attn.out_proj", "self_attn.o_proj"),
            WeightRenaming("ffn.proj_2", "mlp.down_proj"),
            WeightConverter("attn.qkv_proj.weight", projections, [Split(dim=0)]),
            WeightConverter(
                "ffn.proj_1.weight", ["mlp.gate_proj.weight", "mlp.up_proj.weight"], [Chunk(dim=0)]
            ),
        ],
        overwrite=True,
    )
