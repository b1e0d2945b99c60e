"""GGUF files: all that changes a number is used, or the file is refused.

transformers reads GGUF files, and leaves out silently what it has no place for: settings, tensors,
the parts of a split file. What is missing then stays random. So its configuration is compared with
what the file says, name by name."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from factrobust.models.interface import ModelError

VERSIONS = (2, 3)  # of the format
# Settings that only say a tensor's shape, or how much a model may read: tensors are checked by
# name.
SHAPES = {
    "block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size",
    "expert_count", "expert_feed_forward_length", "expert_shared_feed_forward_length",
    "rope.scaling.finetuned", "rope.scaling.original_context_length", "tensor_data_layout",
}  # fmt: skip
# Settings without one of which llama.cpp reads no file, and transformers takes its own value.
NEEDED = (
    ("block_count",),
    ("context_length",),
    ("embedding_length",),
    ("attention.head_count",),
    ("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"),
)
# What llama.cpp takes for a setting that a file leaves out. transformers may take another value.
UNSAID = {"rope.freq_base": 10_000.0, "attention.sliding_window": 0}
# Values with which a setting changes nothing.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "rope.scaling.type": ("none",), "rope.scaling.factor": (0, 1), "rope.scaling.attn_factor": (1,),
    "attention.sliding_window": (0,), "attention.clamp_kqv": (0,), "attention.max_alibi_bias": (0,),
    "attn_logit_softcapping": (0,), "final_logit_softcapping": (0,), "logit_scale": (1,),
    "residual_scale": (1,), "embedding_scale": (1,), "expert_weights_scale": (0, 1),
    "attention.causal": (True,), "expert_gating_func": (1,),
    "expert_shared_count": (0,), "leading_dense_block_count": (0,),
}  # fmt: skip
EPSILONS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon")
# How llama.cpp names the ways to split a text before its tokens are found: those that are GPT-2's,
# which transformers takes for each name that it does not know.
AS_GPT2 = ("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat")
# GPT-2's, where each digit stands alone as well.
DIGITS_ALONE = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b")
# Of these a word that is a token by itself is never put together from parts; a file that says
# nothing of BOS has it before every text.
WORDS_FIRST = (
    "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
    "jina-v5-nano", "tekken",
)  # fmt: skip
# Gemma models that scale queries by another width than a head's, by their layers.
BY_ALL_HEADS = {"gemma2": 46, "gemma3_text": 62}
SAMPLE = "a\n é 中 1"  # that every tokenizer must be able to read
ROPE_FACTORS = "rope_freqs.weight"  # what the rotation's wavelengths are multiplied by (Llama 3)


def named(*fields: str) -> Callable[[Any], Any]:
    """The first of these fields that a configuration has."""
    return lambda config: next(
        (value for field in fields if (value := getattr(config, field, None)) is not None),
        None,
    )


def rotation(field: str) -> Callable[[Any], Any]:
    """A parameter of the rotation, of layers with full attention where kinds differ."""
    return lambda config: _rotation(config).get(field)


def _rotation(config: Any) -> dict[str, Any]:
    found: dict[str, Any] = getattr(config, "rope_parameters", None) or {}
    return found.get("full_attention", found)


def head_size(config: Any) -> int:
    size = getattr(config, "head_dim", None)
    return int(size or config.hidden_size // config.num_attention_heads)


def window(config: Any) -> Any:
    used = getattr(config, "use_sliding_window", True)
    return getattr(config, "sliding_window", None) if used else None


# What a setting of a file is in transformers' configuration.
MEANINGS: dict[str, Callable[[Any], Any]] = {
    "attention.head_count": named("num_attention_heads"),
    "attention.head_count_kv": named("num_key_value_heads", "num_kv_heads", "num_attention_heads"),
    "attention.key_length": head_size,
    "attention.value_length": head_size,
    "attention.layer_norm_rms_epsilon": named(*EPSILONS),
    "attention.layer_norm_epsilon": named(*EPSILONS),
    "attention.sliding_window": window,
    "attention.scale": named("attention_multiplier"),
    "attn_logit_softcapping": named("attn_logit_softcapping"),
    "final_logit_softcapping": named("final_logit_softcapping"),
    "logit_scale": named("logit_scale", "logits_scaling"),
    "residual_scale": named("residual_multiplier"),
    "embedding_scale": named("embedding_multiplier"),
    "use_parallel_residual": named("use_parallel_residual", "parallel_attn"),
    "rope.freq_base": rotation("rope_theta"),
    "rope.dimension_count": lambda config: int(
        head_size(config) * (_rotation(config).get("partial_rotary_factor") or 1)
    ),
    "rope.scaling.type": rotation("rope_type"),
    "rope.scaling.factor": rotation("factor"),
    "rope.scaling.attn_factor": rotation("attention_factor"),
    "expert_used_count": named("num_experts_per_tok"),
    "expert_weights_scale": named("routed_scaling_factor"),
    "expert_weights_norm": named("norm_topk_prob"),
    "leading_dense_block_count": named("first_k_dense_replace"),
}


def check_form(file: Path, name: str) -> None:
    """ModelError for a file that does not begin as a GGUF file of a version that is read."""
    with open(file, "rb") as opened:
        begin = opened.read(8)
    if begin[:4] != b"GGUF" or len(begin) < 8:
        raise ModelError(
            f"{name} is no GGUF file (it begins with {begin!r}); fetch it anew, or give another"
        )
    version = int.from_bytes(begin[4:], "little")
    if version not in VERSIONS:
        swapped = int.from_bytes(begin[4:], "big") in VERSIONS
        what = "big-endian" if swapped else f"of version {version}"
        raise ModelError(
            f"{name} is a GGUF file that is {what}, which is not read here; convert the original "
            "folder with a current llama.cpp, or take that folder"
        )


def check_whole(reader: Any, name: str) -> None:
    """ModelError for a part of a split file, for one that is no model, and for one that leaves out
    what its network needs."""
    kind = _text_of(reader, "general.type")
    if kind not in ("", "model"):
        raise ModelError(f"{name} is no model but {kind!r}; give the model's own file")
    field = reader.fields.get("split.count")
    if field and (count := int(field.contents())) > 1:
        raise ModelError(
            f"{name} is one of the {count} parts of a split GGUF file; join them with llama.cpp's "
            "`llama-gguf-split --merge FIRST_PART WHOLE.gguf`, and give that file"
        )
    count = reader.fields.get("split.tensors.count")
    if count and int(count.contents()) != len(reader.tensors):
        raise ModelError(
            f"{name} holds {len(reader.tensors)} of the {int(count.contents())} tensors that its "
            "model has; join all parts with llama.cpp's `llama-gguf-split --merge`"
        )
    architecture = _text_of(reader, "general.architecture")
    for settings in NEEDED:
        keys = [f"{architecture}.{setting}" for setting in settings]
        if not architecture:
            keys = ["general.architecture"]
        if reader.fields.keys().isdisjoint(keys):
            raise ModelError(
                f"{name} does not say {keys[0]}, without which its numbers are unknown; fetch it "
                "anew, or convert the original folder again"
            )


def check_settings(reader: Any, config: Any, name: str) -> None:
    """ModelError for a setting of a file that transformers' configuration of it does not have."""
    from transformers.integrations.ggml import GGUF_CONFIG_MAPPING

    architecture = reader.fields["general.architecture"].contents()
    taken = GGUF_CONFIG_MAPPING.get(config.model_type.removesuffix("_text"), {})
    for key, field in reader.fields.items():
        setting = key.removeprefix(f"{architecture}.")
        if setting == key or setting in SHAPES:
            continue
        value = field.contents()
        meaning = MEANINGS.get(setting) or named(taken.get(setting) or "")
        if value not in NEUTRAL.get(setting, ()) and not _same(value, meaning(config)):
            raise ModelError(
                f"{name} says {key} = {value}, which transformers' reader of GGUF files leaves "
                "out, so that its numbers would be wrong; take the original folder (safetensors)"
            )
    for setting, value in UNSAID.items():
        taken = MEANINGS[setting](config)
        key = f"{architecture}.{setting}"
        if key not in reader.fields and taken is not None and not _same(value, taken):
            raise ModelError(
                f"{name} does not say {key}, for which transformers takes {taken} and llama.cpp "
                f"{value:g}; take the original folder (safetensors)"
            )


def complete_config(config: Any, reader: Any) -> None:
    """Leave special tokens out of a configuration that the file does not name, and give a Gemma's
    the width by whose root its queries are divided, as llama.cpp finds it: no file says it."""
    for kind, key in {"bos": "bos", "eos": "eos", "pad": "padding"}.items():
        if f"tokenizer.ggml.{key}_token_id" not in reader.fields and not config.is_encoder_decoder:
            setattr(config, f"{kind}_token_id", None)  # not those of the architecture's first model
    if config.model_type in BY_ALL_HEADS:
        of_head = config.hidden_size // config.num_attention_heads
        by_all = config.num_hidden_layers == BY_ALL_HEADS[config.model_type]
        config.query_pre_attn_scalar = of_head if by_all else config.head_dim


def complete_tokenizer(tokenizer: Any, reader: Any) -> None:
    """Let a tokenizer find the tokens that llama.cpp finds, where transformers leaves out what a
    file says, or what its kind implies."""
    from tokenizers import decoders, normalizers

    kind, split = (_text_of(reader, f"tokenizer.ggml.{key}") for key in ("model", "pre"))
    backend = tokenizer.backend_tokenizer
    if kind == "gpt2" and split in WORDS_FIRST:
        backend.model.ignore_merges = True
        if "tokenizer.ggml.add_bos_token" not in reader.fields:
            tokenizer.add_bos_token = True
    field = reader.fields.get("tokenizer.ggml.add_space_prefix")
    spaced = field is None or bool(field.contents())
    architecture = _text_of(reader, "general.architecture")
    if kind == "llama" and (spaced or not architecture.startswith("gemma")):
        # SentencePiece: a space before every text, and behind every special token.
        steps = [normalizers.Prepend("▁")] if spaced else []
        backend.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
        backend.pre_tokenizer = None
        parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        stripped = [decoders.Strip(" ", 1, 0)] if spaced else []
        backend.decoder = decoders.Sequence([*parts, *stripped])
    tokenizer(SAMPLE)


def check_tokenizer(reader: Any, name: str) -> None:
    """ModelError for a file whose texts are split in a way that transformers does not have: it
    would split them as GPT-2 does, into other tokens than the model was trained on."""
    from transformers.integrations.gguf import gguf_tokenizer_mapping

    kind, split = (_text_of(reader, f"tokenizer.ggml.{key}") for key in ("model", "pre"))
    if kind == "llama" and "tokenizer.ggml.merges" in reader.fields:
        raise ModelError(
            f"{name} holds merges (tokenizer.ggml.merges) beside the scores of its tokens, and "
            "llama.cpp goes by the scores, transformers by the merges; take the original folder "
            "(safetensors)"
        )
    if kind != "gpt2" or split in gguf_tokenizer_mapping.GGUF_PRE_TOKENIZER_SPLITS:
        return
    if split not in AS_GPT2 and not (split in DIGITS_ALONE and _no_digit_is_joined(reader)):
        raise ModelError(
            f"{name} splits texts as {split or 'it does not say'} (tokenizer.ggml.pre), which "
            "transformers' reader of GGUF files does not, so that its tokens would be wrong; take "
            "the original folder (safetensors)"
        )


def _text_of(reader: Any, key: str) -> str:
    field = reader.fields.get(key)
    return str(field.contents()) if field else ""


def _no_digit_is_joined(reader: Any) -> bool:
    """Whether no merge has a digit in it: then splitting at digits changes nothing."""
    merges = reader.fields["tokenizer.ggml.merges"].contents()
    return not any(character in "0123456789" for merge in merges for character in merge)


def _same(in_file: Any, in_config: Any) -> bool:
    if isinstance(in_file, list):  # a value a layer; 0 for layers without it
        return {value for value in in_file if value} == {in_config}
    if isinstance(in_file, bool | str) or in_config is None or isinstance(in_config, str):
        return bool(in_file == in_config)
    return math.isclose(in_file, in_config, rel_tol=1e-5)


def check_tensors(reader: Any, network: Any, missing: Iterable[str], name: str) -> None:
    """ModelError for weights that a file lacks, and for tensors of it that the network has no place
    for. Factors of the rotation become part of the network's configuration."""
    from transformers.modeling_gguf_pytorch_utils import (
        TENSOR_PROCESSORS,
        TensorProcessor,
        get_gguf_hf_weights_map,
    )

    if lacking := sorted(missing):
        raise ModelError(
            f"the file {name} lacks {len(lacking)} of its model's weights, such as {lacking[0]}; "
            "it may be the first part of a split one, or cut: fetch it anew, whole"
        )
    architecture = reader.fields["general.architecture"].contents()
    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(
        config=network.config.to_dict()
    )
    known = get_gguf_hf_weights_map(network, processor)
    has_experts = any("expert" in key for key, _ in network.named_parameters())
    left = [
        t
        for t in reader.tensors
        if t.name not in known and not (has_experts and _of_experts(t.name))
    ]
    for tensor in left:
        if tensor.name != ROPE_FACTORS or not _take_rope_factors(tensor, network.config):
            raise ModelError(
                f"{name} holds the tensor {tensor.name}, for which transformers' reader of GGUF "
                "files has no place, so that its numbers would be wrong; take the original folder "
                "(safetensors)"
            )


def _of_experts(name: str) -> bool:
    return "_exps." in name or "_shexp." in name  # which transformers cuts and joins by itself


def _take_rope_factors(tensor: Any, config: Any) -> bool:
    """Put factors of wavelengths into a configuration that has none; whether they found a place."""
    factors = tensor.data.astype(float).tolist()
    if 2 * len(factors) != MEANINGS["rope.dimension_count"](config):
        return False
    if all(factor == 1 for factor in factors):
        return True
    parameters = getattr(config, "rope_parameters", None) or {}
    if parameters.get("rope_type") != "default":
        return False
    longest = config.max_position_embeddings
    config.rope_parameters = parameters | {
        "rope_type": "longrope", "short_factor": factors, "long_factor": factors,
        "factor": 1.0, "attention_factor": 1.0, "original_max_position_embeddings": longest,
    }  # fmt: skip
    return True
