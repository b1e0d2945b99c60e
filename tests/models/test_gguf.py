"""GGUF files: what a file says is used, or the file is refused, on a small one of SmolLM2's kind; and
the weights are those that transformers reads."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from gguf import GGMLQuantizationType as Stored
from gguf import GGUFValueType as Value
from tokenizers import pre_tokenizers

from factrobust.models import gguf_checks, gguf_files, load
from factrobust.models.interface import ModelError

WIDTH, HEADS, INNER = 64, 2, 96
HALF = WIDTH // HEADS // 2  # pairs of a head that the rotation turns
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())  # of the bytes, as GPT-2 writes them
MERGES = ["t h", "th e"]
TOKENS = [*SPECIAL, *LETTERS, "th", "the"]
NORMAL, CONTROL = 1, 3  # kinds of tokens
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SETTINGS = {
    "llama.block_count": 1, "llama.context_length": 8192, "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": INNER, "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": 1, "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 1e5, "llama.rope.dimension_count": WIDTH // HEADS,
    "llama.vocab_size": len(TOKENS), "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [CONTROL] * len(SPECIAL) + [NORMAL] * (len(TOKENS) - len(SPECIAL)),
    "tokenizer.ggml.merges": MERGES, "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
    "tokenizer.ggml.padding_token_id": 2, "tokenizer.ggml.add_bos_token": False,
    "tokenizer.chat_template": TEMPLATE,
}  # fmt: skip
SHAPES = {
    "token_embd": (len(TOKENS), WIDTH), "output_norm": (WIDTH,), "blk.0.attn_norm": (WIDTH,),
    "blk.0.attn_q": (WIDTH, WIDTH), "blk.0.attn_k": (WIDTH // HEADS, WIDTH),
    "blk.0.attn_v": (WIDTH // HEADS, WIDTH), "blk.0.attn_output": (WIDTH, WIDTH),
    "blk.0.ffn_norm": (WIDTH,), "blk.0.ffn_gate": (INNER, WIDTH), "blk.0.ffn_up": (INNER, WIDTH),
    "blk.0.ffn_down": (WIDTH, INNER),
}  # fmt: skip
KINDS = {str: Value.STRING, bool: Value.BOOL, int: Value.UINT32, float: Value.FLOAT32}


@pytest.fixture
def cut(tmp_path, monkeypatch):
    """Builder of a whole file of one small layer, with other settings or tensors; matrices of attention
    are stored in 8 bits."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def build(
        *,
        without: str = "nothing",
        tensors: dict[str, Any] | None = None,
        **settings: Any,
    ) -> str:
        path = tmp_path / "cut.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        changed = {key.replace("__", "."): value for key, value in settings.items()}
        for name, value in (SETTINGS | changed).items():
            if isinstance(value, list):
                writer.add_array(name, value)
            else:
                writer.add_key_value(name, value, KINDS[type(value)])
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
        return str(path)

    return build


def refused(path: str, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence) as error:
        load.load_model(path)
    assert "\n" not in str(error.value)
    assert path in str(error.value)


# -- the weights -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_network")
def test_the_weights_are_those_that_transformers_reads(cut):
    """llama.cpp turns the rows of queries and keys of this architecture, which is undone; no weight
    is there twice."""
    path = Path(cut())
    folder, options = load.location(load.find_weights(str(path)))
    auto = transformers.AutoModelForCausalLM
    ours, found = load.read_network(auto, folder, "float32", **options)
    theirs = auto.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    expected = theirs.state_dict()
    assert not found["missing_keys"]
    assert ours.state_dict().keys() == expected.keys()
    for name, weight in ours.state_dict().items():
        assert torch.equal(weight, expected[name]), name
    assert ours.get_output_embeddings().weight is ours.get_input_embeddings().weight
    assert gguf_files.parameter_count(Path(folder)) == ours.num_parameters()
    assert Path(folder, gguf_files.FILE).read_bytes() == path.read_bytes()
    assert not [*Path(folder).glob("*.safetensors")]


@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0", "Q5_1", "F16", "F32"])
def test_a_weight_is_dequantised_in_pieces(kind, tmp_path, monkeypatch):
    """More numbers than a piece has, and a last piece that is shorter; behind other bytes."""
    kind = Stored[kind]
    weights = np.random.default_rng(0).normal(size=(7, 96)).astype(np.float32)
    stored = gguf.quantize(weights, kind)
    content = stored.tobytes()
    file = tmp_path / "f"
    file.write_bytes(b"before" + content + b"after")
    tensor = gguf_files.Tensor(
        file=file,
        architecture="qwen2",
        config={},
        stored_name="x",
        kind=int(kind),
        shape=[7, 96],
        offset=6,
        size=len(content),
    )
    monkeypatch.setattr(gguf_files, "CHUNK", 256)
    found = tensor[...]
    assert found.dtype == torch.float32
    np.testing.assert_array_equal(found.numpy(), gguf.dequantize(stored, kind))


def test_factors_of_the_rotation_are_used(cut):
    """A wavelength of 2 pi 100000^(i/16) becomes so many times longer, at every length."""
    factors = np.linspace(1, 32, HALF).astype(np.float32)
    model = load.load_model(cut(tensors={gguf_checks.ROPE_FACTORS: factors}))
    expected = 1e5 ** (-np.arange(HALF) / HALF) / factors
    rotary = model.network.model.rotary_emb
    for longest in (5, 8000):
        angles, _ = rotary(torch.ones(1), torch.arange(longest)[None])
        found = angles[0, 1, :HALF].arccos().double().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-2, atol=4e-4)
        np.testing.assert_allclose(rotary.inv_freq.numpy(), expected, rtol=1e-5)
    assert rotary.attention_scaling == 1


# -- what is refused -------------------------------------------------------------------------------

ONES = np.ones(WIDTH, dtype=np.float32)
DIGITS = {
    "tokenizer__ggml__tokens": [*TOKENS[:-1], "t1"],
    "tokenizer__ggml__merges": ["t h", "t 1"],
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no queries": (
        {"without": "attn_q"},
        r"lack 1 of its weights, such as model\.layers\.0\.self_attn\.q_proj\.weight; fetch",
    ),
    "no last norm": (
        {"without": "output_norm"},
        r"lack 1 of its weights, such as model\.norm\.weight",
    ),
    "a part": (
        {"split__count": 2},
        "one of the 2 parts of a split GGUF file; join them with",
    ),
    "less than the whole": (
        {"split__tensors__count": 500},
        "holds 11 of the 500 tensors that its model has; join",
    ),
    "an adapter": (
        {"general__type": "adapter"},
        "is no model but 'adapter'; give the model's own file",
    ),
    "a setting that is left out": (
        {"llama__rope__scaling__type": "linear"},
        "says llama.rope.scaling.type = linear, which transformers' reader",
    ),
    "another shape": (
        {"llama__attention__head_count": 4},
        r"in the shape \[64, 64\], where its configuration",
    ),
    "a tensor that is left out": (
        {"tensors": {"blk.0.attn_q.bias": ONES}},
        r"holds the tensor blk\.0\.attn_q\.bias, for which transformers' reader",
    ),
    "another way to split texts": (
        {"tokenizer__ggml__pre": "deepseek-llm"},
        r"splits texts as deepseek-llm \(tokenizer",
    ),
    # To split at digits changes nothing where no merge has a digit, as in SmolLM2's own file.
    "digits that are joined": (DIGITS, "splits texts as smollm"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_file_that_would_not_be_used_whole_is_refused(fault, cut):
    changes, sentence = REFUSED[fault]
    path = cut(**changes)
    refused(path, sentence)
    if fault == "a part":
        refused(path, sentence)  # nothing of it is kept


def test_other_files_are_refused_in_one_sentence(cut):
    path = Path(cut())
    path.write_bytes(path.read_bytes()[:-5000])  # within the weights
    refused(str(path), "cannot be read .*; fetch its files anew")
    path.write_text("version https://git-lfs.github.com/spec/v1\n")
    refused(str(path), "GGUF magic invalid")


def field(contents: Any) -> SimpleNamespace:
    return SimpleNamespace(contents=lambda: contents)


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

    def check(said: Any) -> None:
        fields = {"general.architecture": field("llama"), f"llama.{setting}": field(said)}
        gguf_checks.check_settings(SimpleNamespace(fields=fields), config, "f.gguf")

    with pytest.raises(ModelError, match=f"f.gguf says llama.{setting} = {value}, which"):
        check(value)
    if neutral is not None:
        check(neutral)


def index_of(*names: str, architecture: str = "qwen2") -> dict[str, Any]:
    """Of a file that holds these tensors of a small Qwen2."""
    config = transformers.Qwen2Config(
        vocab_size=8,
        hidden_size=4,
        intermediate_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
    )
    about = {
        "tensor_type": 0,
        "shape": np.array([4, 2]),
        "data_offset": 64,
        "n_bytes": 32,
    }
    reader = SimpleNamespace(
        fields={"general.architecture": field(architecture)},
        tensors=[SimpleNamespace(name=name, **about) for name in names],
    )
    index, _ = gguf_files._index(reader, config, "f.gguf")
    return index["tensors"]


def test_the_index_names_weights_as_the_network_does():
    index = index_of("blk.0.attn_q.bias", "token_embd.weight")
    assert [*index] == ["model.layers.0.self_attn.q_proj.bias", "model.embed_tokens.weight"]
    assert index["model.embed_tokens.weight"]["shape"] == [2, 4]
    json.dumps(index)
    with pytest.raises(ModelError, match="architecture qwen2moe, a mixture of experts"):
        index_of(architecture="qwen2moe")


@pytest.mark.parametrize(
    "name",
    [
        "blk.1.attn_norm.weight",
        "blk.0.ffn_gate_exps.weight",  # of experts, which the model does not have
        "some.new.weight",
    ],
)
def test_tensors_that_have_no_place_are_refused(name):
    with pytest.raises(ModelError, match=f"f.gguf holds the tensor {name}, for which"):
        index_of("token_embd.weight", name)
