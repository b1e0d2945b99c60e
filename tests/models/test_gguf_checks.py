"""What a GGUF file says is used, or the file is refused: on one layer of SmolLM2's."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGUFValueType as Value

from factrobust.models import gguf_checks, load
from factrobust.models.interface import ModelError

PART = "model.layers.0"
NO_PLACE = (
    "blk.0.attn_q.bias",
    "blk.1.attn_norm.weight",
    "blk.0.ffn_gate_exps.weight",  # of experts, which the model does not have
    "some.new.weight",
)


@pytest.fixture(scope="session")
def whole():
    [(package, file)] = load.EMBEDDED["smollm2-135m-instruct"].parts
    [folder] = find_spec(package).submodule_search_locations
    return gguf.GGUFReader(Path(folder) / file)


@pytest.fixture
def cut(whole, tmp_path, monkeypatch):
    """Builder of a file with the first layer alone, with other settings or tensors."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def build(
        *,
        without: str = "nothing",
        layers: str = "blk.0.",
        tensors: dict[str, Any] | None = None,
        **settings: Any,
    ) -> str:
        path = tmp_path / "cut.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        settings = {key.replace("__", "."): value for key, value in settings.items()}
        changed = {"llama.block_count": 1} | settings
        for name, field in whole.fields.items():
            if name.startswith("GGUF.") or name == "general.architecture":
                continue
            value = changed.pop(name, field.contents())
            if field.types[0] == Value.ARRAY:
                writer.add_array(name, value)
            else:
                writer.add_key_value(name, value, field.types[0])
        kinds = {str: Value.STRING, int: Value.UINT32, float: Value.FLOAT32}
        for name, value in changed.items():
            writer.add_key_value(name, value, kinds[type(value)])
        for tensor in whole.tensors:
            inside = not tensor.name.startswith("blk.") or tensor.name.startswith(layers)
            if inside and without not in tensor.name:
                data = np.array(tensor.data)
                writer.add_tensor(tensor.name, data, raw_dtype=tensor.tensor_type)
        for name, data in (tensors or {}).items():
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


def test_the_embedded_files_pass(real):
    """Both are loaded from conversions that were checked."""
    assert f"-{load.CHECKED}-" in load.location(load.find_weights(real.name))[0]


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
        cut(llama__attention__head_count=18), r"in the shape \[576, 576\], where its configuration"
    )


@pytest.mark.parametrize("name", NO_PLACE)
def test_tensors_that_have_no_place_are_refused(cut, name):
    extra = {name: np.ones(576, dtype=np.float32)}
    refused(cut(tensors=extra), f"holds the tensor {name}, for which transformers' reader")


def test_texts_that_transformers_would_split_in_another_way_are_refused(cut, whole, monkeypatch):
    refused(cut(tokenizer__ggml__pre="deepseek-llm"), r"splits texts as deepseek-llm \(tokenizer")
    # SmolLM2 splits at digits, which changes nothing since it has no merge with a digit.
    assert whole.fields["tokenizer.ggml.pre"].contents() == "smollm"
    gguf_checks.check_tokenizer(whole, "x")
    monkeypatch.setattr(gguf_checks, "_no_digit_is_joined", lambda reader: False)
    with pytest.raises(ModelError, match="splits texts as smollm"):
        gguf_checks.check_tokenizer(whole, "x")


def test_factors_of_the_rotation_are_used(cut):
    """A wavelength of 2 pi 100000^(i/32) becomes so many times longer, at every length."""
    factors = np.linspace(1, 32, 32).astype(np.float32)
    model = load.load_model(cut(tensors={gguf_checks.ROPE_FACTORS: factors}))
    expected = 1e5 ** (-np.arange(32) / 32) / factors
    rotary = model.network.model.rotary_emb
    for longest in (5, 8000):
        angles, _ = rotary(torch.ones(1), torch.arange(longest)[None])
        found = angles[0, 1, :32].arccos().double().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-2, atol=4e-4)
        np.testing.assert_allclose(rotary.inv_freq.numpy(), expected, rtol=1e-5)
    assert rotary.attention_scaling == 1


def test_other_files_are_refused_in_one_sentence(cut):
    path = Path(cut())
    path.write_bytes(path.read_bytes()[:1_000_000])
    refused(str(path), "cannot be read .*; fetch its files anew")
    path.write_text("version https://git-lfs.github.com/spec/v1\n")
    refused(str(path), "GGUF magic invalid")
