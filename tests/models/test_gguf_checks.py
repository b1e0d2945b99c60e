"""What a GGUF file says is used, or the file is refused: on a file of SmolLM2's kind, small."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGUFValueType as Value
from tokenizers import pre_tokenizers

from factrobust.models import gguf_checks, load
from factrobust.models.interface import ModelError

PART = "model.layers.0"
NO_PLACE = (
    "blk.0.attn_q.bias",
    "blk.1.attn_norm.weight",
    "blk.0.ffn_gate_exps.weight",  # of experts, which the model does not have
    "some.new.weight",
)
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
    """Builder of a whole file of one small layer, with other settings or tensors."""
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
        made = {
            f"{name}.weight": drawn.normal(size=shape).astype(np.float32)
            for name, shape in SHAPES.items()
            if without not in name
        }
        for name, data in (made | (tensors or {})).items():
            writer.add_tensor(name, data)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return str(path)

    return build


def refused(path: str, sentence: str) -> None:
    for _ in range(2):  # nothing of it is kept
        with pytest.raises(ModelError, match=sentence) as error:
            load.load_model(path)
        assert "\n" not in str(error.value)
        assert path in str(error.value)


@pytest.mark.parametrize("name", ["gemma-3-270m", "smollm2-135m-instruct"])
def test_the_embedded_files_pass(name):
    """Both are loaded from conversions that were checked."""
    assert f"-{load.CHECKED}-" in load.location(load.find_weights(name))[0]


def test_tensors_that_are_not_there_are_refused_by_name(cut):
    refused(
        cut(without="attn_q"),
        rf"lack 1 of its weights, such as {PART}\.self_attn\.q_proj\.weight; fetch",
    )
    refused(cut(without="output_norm"), r"lack 1 of its weights, such as model\.norm\.weight")


def test_parts_of_a_split_file_are_refused(cut):
    refused(cut(split__count=2), "one of the 2 parts of a split GGUF file; join them with")


def test_a_file_that_is_less_or_other_than_a_model_is_refused(cut):
    refused(cut(split__tensors__count=500), r"holds 11 of the 500 tensors that its model has; join")
    refused(cut(general__type="adapter"), "is no model but 'adapter'; give the model's own file")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rope__scaling__type", "linear"),
        ("rope__scaling__factor", 4.0),
        ("attention__sliding_window", 16),
        ("attn_logit_softcapping", 30.0),
        ("final_logit_softcapping", 30.0),
        ("logit_scale", 8.0),
        ("attention__some_new_thing", 1),
    ],
)
def test_settings_that_have_no_place_are_refused(cut, key, value):
    said = f"llama.{key.replace('__', '.')} = {value}"
    refused(cut(**{f"llama__{key}": value}), f"says {said}, which transformers' reader")


def test_tensors_of_another_shape_than_the_settings_say_are_refused(cut):
    refused(
        cut(llama__attention__head_count=4), r"in the shape \[64, 64\], where its configuration"
    )


@pytest.mark.parametrize("name", NO_PLACE)
def test_tensors_that_have_no_place_are_refused(cut, name):
    extra = {name: np.ones(WIDTH, dtype=np.float32)}
    refused(cut(tensors=extra), f"holds the tensor {name}, for which transformers' reader")


def test_texts_that_transformers_would_split_in_another_way_are_refused(cut):
    refused(cut(tokenizer__ggml__pre="deepseek-llm"), r"splits texts as deepseek-llm \(tokenizer")
    # To split at digits changes nothing where no merge has a digit, as in SmolLM2's own file.
    load.load_model(cut(tokenizer__ggml__pre="smollm"))
    digits = {"tokens": [*TOKENS[:-1], "t1"], "merges": ["t h", "t 1"]}
    joined = {f"tokenizer__ggml__{name}": value for name, value in digits.items()}
    refused(cut(**joined), "splits texts as smollm")


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


def test_other_files_are_refused_in_one_sentence(cut):
    path = Path(cut())
    path.write_bytes(path.read_bytes()[:-5000])  # within the weights
    refused(str(path), "cannot be read .*; fetch its files anew")
    path.write_text("version https://git-lfs.github.com/spec/v1\n")
    refused(str(path), "GGUF magic invalid")
