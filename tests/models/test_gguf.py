"""GGUF files: what a file says is used, or the file is refused, on a small one of SmolLM2's kind; and
the weights are those that transformers reads."""

from pathlib import Path
from types import SimpleNamespace

import gguf
import numpy as np
import pytest
import torch
import transformers
import yaml
from gguf import GGMLQuantizationType as Stored
from gguf import GGUFValueType as Value
from tokenizers import pre_tokenizers
from whole import assert_one_sentence

from factrobust.models import gguf_checks, gguf_files, load
from factrobust.models.interface import ModelError

WIDTH = 64
HEADS = 2
HALF = 16  # pairs of a head that the rotation turns
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())  # of the bytes, as GPT-2 writes them
TOKENS = [*SPECIAL, *LETTERS, "th", "the"]
NORMAL = 1
CONTROL = 3
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SETTINGS = yaml.safe_load("""
llama.block_count: 1
llama.context_length: 8192
llama.embedding_length: 64
llama.feed_forward_length: 96
llama.attention.head_count: 2
llama.attention.head_count_kv: 1
llama.attention.layer_norm_rms_epsilon: 1.0e-5
llama.rope.freq_base: 100000.0
llama.rope.dimension_count: 32
llama.vocab_size: 261
tokenizer.ggml.model: gpt2
tokenizer.ggml.pre: smollm
tokenizer.ggml.bos_token_id: 1
tokenizer.ggml.eos_token_id: 2
tokenizer.ggml.unknown_token_id: 0
tokenizer.ggml.padding_token_id: 2
tokenizer.ggml.add_bos_token: false
""") | {
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [CONTROL] * 3 + [NORMAL] * 258,
    "tokenizer.ggml.merges": ["t h", "th e"],
    "tokenizer.chat_template": TEMPLATE,
}
# Words that are tokens need no merges in Llama 3's way to split, and BOS comes first unless told.
WHOLE_WORDS = {
    "tokenizer.ggml.pre": "llama-bpe",
    "tokenizer.ggml.tokens": [*SPECIAL, *LETTERS, "th", "cat"],
    "tokenizer.ggml.merges": ["t h"],
    "tokenizer.ggml.add_bos_token": None,
}
# SentencePiece's, with a space before every text unless told otherwise.
SCORED = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": [
        "<unk>",
        "<s>",
        "</s>",
        *[f"<0x{i:02X}>" for i in range(256)],
        "▁",
        "a",
    ],
    "tokenizer.ggml.token_type": [2, CONTROL, CONTROL, *[6] * 256, NORMAL, NORMAL],
    "tokenizer.ggml.scores": [0.0] * 259 + [-1.0, -2.0],
    "tokenizer.ggml.merges": None,
    "tokenizer.ggml.add_bos_token": True,
    "tokenizer.chat_template": None,
}
SHAPES = yaml.safe_load("""
token_embd: [261, 64]
output_norm: [64]
blk.0.attn_norm: [64]
blk.0.attn_q: [64, 64]
blk.0.attn_k: [32, 64]
blk.0.attn_v: [32, 64]
blk.0.attn_output: [64, 64]
blk.0.ffn_norm: [64]
blk.0.ffn_gate: [96, 64]
blk.0.ffn_up: [96, 64]
blk.0.ffn_down: [64, 96]
""")
ONES = np.ones(WIDTH, dtype=np.float32)


@pytest.fixture
def cut(tmp_path, monkeypatch):
    """Builder of a whole file of one small layer, with other settings (None: it does not say) or
    tensors; matrices of attention are stored in 8 bits."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def build(*, without="nothing", settings=None, tensors=None, architecture="llama"):
        path = tmp_path / "cut.gguf"
        writer = gguf.GGUFWriter(path, architecture)
        for name, value in (SETTINGS | (settings or {})).items():
            if value is None:
                continue
            key = name.replace("llama.", f"{architecture}.")
            writer.add_key_value(key, value, Value.get_type(value))
        drawn = np.random.default_rng(0)
        for name, shape in SHAPES.items():
            weights = drawn.normal(size=shape).astype(np.float32)
            kind = Stored.Q8_0 if "attn" in name and len(shape) == 2 else Stored.F32
            if without not in name:
                stored = gguf.quantize(weights, kind)
                writer.add_tensor(f"{name}.weight", stored, raw_dtype=kind)
        for name, weights in (tensors or {}).items():
            writer.add_tensor(name, weights)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return build


def refused(path, sentence):
    assert str(path) in assert_one_sentence(sentence, load.load_model, str(path))


# -- the weights -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_network")
def test_the_weights_are_those_that_transformers_reads(cut):
    """llama.cpp turns the rows of queries and keys of this architecture, which is undone; no weight
    is there twice."""
    path = cut()
    folder, options = load.location(load.find_weights(str(path)))
    auto = transformers.AutoModelForCausalLM
    ours, found = load.read_network(auto, folder, "float32", **options)
    theirs = auto.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    assert not found["missing_keys"]
    expected = theirs.state_dict()
    weights = ours.state_dict()
    assert weights.keys() == expected.keys()
    for name in expected:
        assert torch.equal(weights[name], expected[name]), name
    assert ours.lm_head.weight is ours.model.embed_tokens.weight
    assert gguf_files.parameter_count(Path(folder)) == ours.num_parameters()
    assert Path(folder, gguf_files.FILE).read_bytes() == path.read_bytes()
    assert not [*Path(folder).glob("*.safetensors")]


@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0", "Q5_1", "F16", "F32"])
def test_a_weight_is_dequantised_in_pieces(kind, tmp_path, monkeypatch):
    """More numbers than a piece has, and a last piece that is shorter; behind other bytes."""
    weights = np.random.default_rng(0).normal(size=(7, 96)).astype(np.float32)
    stored = gguf.quantize(weights, Stored[kind])
    content = stored.tobytes()
    file = tmp_path / "f"
    file.write_bytes(b"before" + content + b"after")
    tensor = gguf_files.Tensor(
        file=file,
        architecture="qwen2",
        config={},
        stored_name="x",
        kind=int(Stored[kind]),
        shape=[7, 96],
        offset=6,
        size=len(content),
    )
    monkeypatch.setattr(gguf_files, "CHUNK", 256)
    found = tensor[...]
    assert found.dtype == torch.float32
    np.testing.assert_array_equal(found.numpy(), gguf.dequantize(stored, Stored[kind]))


def test_factors_of_the_rotation_are_used(cut):
    """A wavelength of 2 pi 100000^(i/16) becomes so many times longer, at every length."""
    factors = np.linspace(1, 32, HALF).astype(np.float32)
    path = cut(tensors={gguf_checks.ROPE_FACTORS: factors})
    model = load.load_model(str(path))
    expected = 1e5 ** (-np.arange(HALF) / HALF) / factors
    rotary = model.network.model.rotary_emb
    for longest in (5, 8000):
        angles, _ = rotary(torch.ones(1), torch.arange(longest)[None])
        found = angles[0, 1, :HALF].arccos().double().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-2, atol=4e-4)
        np.testing.assert_allclose(rotary.inv_freq.numpy(), expected, rtol=1e-5)
    assert rotary.attention_scaling == 1


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        # Tokens that llama.cpp's own server finds, texts after texts.
        ({}, {"the cat": [260, 223, 69, 67, 86], "cat": [69, 67, 86]}),
        (WHOLE_WORDS, {"the cat": [1, 259, 71, 223, 69, 67, 86], "cat": [1, 260]}),
        (WHOLE_WORDS | {"tokenizer.ggml.add_bos_token": False}, {"cat": [260]}),
        (SCORED, {"a": [1, 259, 260], " a": [1, 259, 259, 260], "</s>a": [1, 2, 259, 260]}),
        (SCORED | {"tokenizer.ggml.add_space_prefix": False}, {"a": [1, 260], " a": [1, 259, 260]}),
    ],
)
def test_texts_are_the_tokens_that_llama_cpp_finds(settings, tokens, cut):
    model = load.load_model(str(cut(settings=settings)))
    assert {text: model._encode(text) for text in tokens} == tokens


@pytest.mark.parametrize(("eos", "ends"), [(2, [2]), (None, [])])
def test_an_end_that_a_file_does_not_name_is_none(eos, ends, cut):
    """transformers takes that of Llama's first vocabulary for it."""
    model = load.load_model(str(cut(settings={"tokenizer.ggml.eos_token_id": eos})))
    assert model.end_ids == ends


def test_a_head_of_its_own_lies_as_it_is(tmp_path):
    """GPT-2's other matrices lie across."""
    head = np.arange(6, dtype=np.float32).reshape(3, 2)
    file = tmp_path / "f"
    file.write_bytes(head.tobytes())
    about = {"kind": int(Stored.F32), "shape": [3, 2], "offset": 0, "size": 24}
    tensor = gguf_files.Tensor(file, "gpt2", {}, "output.weight", **about)
    np.testing.assert_array_equal(tensor[...].numpy(), head)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"without": "attn_q"},
            r"lack 1 of its weights, such as model\.layers\.0\.self_attn\.q_proj\.weight; fetch",
        ),
        (
            {"settings": {"split.tensors.count": 500}},
            "holds 11 of the 500 tensors that its model has; join",
        ),
        ({"architecture": "olmo"}, r"olmo is not supported yet\); take its original folder"),
        ({"architecture": "t5"}, "Unrecognized configuration .* take its original folder"),
        ({"architecture": "qwen3moe"}, "architecture qwen3moe, a mixture of experts"),
        (
            {"settings": {"general.type": "adapter"}},
            "is no model but 'adapter'; give the model's own file",
        ),
        (
            {"settings": {"llama.rope.scaling.type": "linear"}},
            "says llama.rope.scaling.type = linear, which transformers' reader",
        ),
        (
            {"settings": {"llama.attention.causal": False}},
            "says llama.attention.causal = False, which transformers' reader",
        ),
        # llama.cpp reads no such file, and transformers takes its own value.
        (
            {"settings": {"llama.attention.layer_norm_rms_epsilon": None}},
            r"does not say llama\.attention\.layer_norm_rms_epsilon, without which",
        ),
        (
            {"tensors": {gguf_checks.ROPE_FACTORS: 2 * ONES[:8]}},
            "holds the tensor rope_freqs.weight, for which",
        ),
        (
            {"settings": {"llama.attention.head_count": 4}},
            r"in the shape \[64, 64\], where its configuration",
        ),
        (
            {"settings": {"tokenizer.ggml.pre": "deepseek-llm"}},
            r"splits texts as deepseek-llm \(tokenizer",
        ),
        (
            {"settings": SCORED | {"tokenizer.ggml.merges": ["a b"]}},
            "holds merges .* beside the sc",
        ),
        # To split at digits changes nothing where no merge has a digit, as in SmolLM2's own file.
        (
            {
                "settings": {
                    "tokenizer.ggml.tokens": [*TOKENS[:-1], "t1"],
                    "tokenizer.ggml.merges": ["t h", "t 1"],
                }
            },
            "splits texts as smollm",
        ),
    ],
)
def test_a_file_that_would_not_be_used_whole_is_refused(changes, sentence, cut):
    refused(cut(**changes), sentence)


@pytest.mark.parametrize(
    "name",
    [
        "blk.0.attn_q.bias",
        "blk.1.attn_norm.weight",
        "blk.0.ffn_gate_exps.weight",  # of experts, which the model does not have
        "some.new.weight",
    ],
)
def test_tensors_that_have_no_place_are_refused(name, cut):
    path = cut(tensors={name: ONES})
    refused(path, f"holds the tensor {name}, for which transformers' reader")


BEGINNINGS = {
    b"": "is no GGUF file",
    b"version https://git-lfs.github.com/spec/v1": "is no GGUF file .*; fetch it anew",
    b"GGUF\x01\0\0\0": "is of version 1, which is not read here; convert",
    b"GGUF\0\0\0\x03": "is big-endian, which is not read here",
}


def test_a_folder_with_such_a_file_is_asked_for_the_file(cut):
    path = cut()
    assert_one_sentence(f"give the file: {path}", load.load_model, str(path.parent))


def test_nothing_is_kept_of_a_part_of_a_file(cut):
    path = cut(settings={"split.count": 2})
    for _ in range(2):
        refused(path, "one of the 2 parts of a split GGUF file; join them with")


def test_other_files_are_refused_in_one_sentence(cut):
    path = cut()
    path.write_bytes(path.read_bytes()[:-5000])  # within the weights
    refused(path, "cannot be read .*; fetch its files anew")
    for begin, sentence in BEGINNINGS.items():
        path.write_bytes(begin + bytes(100))
        refused(path, sentence)


def reader_of(**fields):
    """What gguf's reader tells of a file with these fields."""
    found = {}
    for name, value in fields.items():
        found[name] = SimpleNamespace(contents=lambda value=value: value)
    return SimpleNamespace(fields=found)


@pytest.mark.parametrize(
    ("setting", "value", "neutral"),
    [
        ("rope.scaling.type", "yarn", "none"),
        ("rope.scaling.factor", 4.0, 1.0),
        ("attention.sliding_window", 16, 0),
        ("attn_logit_softcapping", 30.0, 0.0),
        ("final_logit_softcapping", 30.0, 0.0),
        ("logit_scale", 8.0, 1.0),
        ("attention.some_new_thing", 1, None),
        ("attention.head_count", 4, HEADS),
        ("rope.freq_base", 1e4, 1e5),
        ("rope.dimension_count", 16, WIDTH // HEADS),
    ],
)
def test_settings_are_the_configurations_or_change_nothing(setting, value, neutral):
    config = transformers.LlamaConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        rope_parameters={"rope_type": "default", "rope_theta": 1e5},
    )

    def check(values):
        usual = {"general.architecture": "llama", "llama.rope.freq_base": 1e5}
        reader = reader_of(**usual | {f"llama.{setting}": values})
        gguf_checks.check_settings(reader, config, "f.gguf")

    with pytest.raises(ModelError, match=f"f.gguf says llama.{setting} = {value}, which"):
        check(value)
    if neutral is not None:
        check(neutral)


def test_what_a_file_leaves_out_is_what_llama_cpp_takes():
    """A rotation's base of 10,000, and no window."""
    reader = reader_of(**{"general.architecture": "llama"})
    turned = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
    gguf_checks.check_settings(reader, transformers.LlamaConfig(), "f.gguf")
    for config, setting in (
        (
            transformers.LlamaConfig(**turned),
            "rope.freq_base, for which transformers takes 1000000",
        ),
        (
            transformers.MistralConfig(),
            "attention.sliding_window, for which transformers takes 4096",
        ),
    ):
        with pytest.raises(ModelError, match=f"f.gguf does not say llama.{setting}"):
            gguf_checks.check_settings(reader, config, "f.gguf")


@pytest.mark.parametrize(
    ("kind", "layers", "width"),
    [
        (transformers.Gemma2Config, 26, 128),  # a head's
        (transformers.Gemma2Config, 46, 144),  # Gemma 2 27B: 4608 / 32
        (transformers.Gemma3TextConfig, 62, 144),
        (transformers.Gemma3TextConfig, 46, 128),
    ],
)
def test_the_width_by_which_a_gemma_scales_its_queries(kind, layers, width):
    sizes = {"hidden_size": 4608, "num_attention_heads": 32, "head_dim": 128}
    config = kind(**sizes, num_hidden_layers=layers)
    gguf_checks.complete_config(config, reader_of())
    assert config.query_pre_attn_scalar == width
