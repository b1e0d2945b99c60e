"""Everything that touches weights, in each dtype, on each device: the CPU, a GPU if there is one, and
the meta device, whose weights have no numbers."""

import copy

import numpy as np
import pytest
import torch
from networks import LLAMA, T5, alone, build

from factrobust.models.damage import Damage, apply
from factrobust.models.linear import ExactLinear, PackedLinear, available, prepack

SETTINGS = LLAMA | {"initializer_range": 0.3}
KINDS = {
    "llama": ("Llama", SETTINGS),
    "tied": ("Llama", SETTINGS | {"tie_word_embeddings": True}),
    "t5": ("T5", T5),
}
# How far a log-probability may lie from that of the same weights in float64.
ROUNDING = {torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.3}
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=CUDA)]
PROMPTS = ["abc", "hello world", "x"]
ANSWERS = ["de", "fgh", "ij"]


def network(name, dtype, device="cpu"):
    kind, settings = KINDS[name]
    return build(kind, **settings).to(device, dtype)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("device", DEVICES)
def test_numbers_are_float32_and_those_of_the_weights(name, dtype, device, lettered, ids):
    near = ROUNDING[dtype]
    asked = network(name, dtype, device)
    exact = copy.deepcopy(asked).to("cpu", torch.float64)
    model = lettered(asked)
    prepack(asked)
    scores = model.score(PROMPTS, ANSWERS)
    for prompt, answer, found in zip(PROMPTS, ANSWERS, scores, strict=True):
        assert found.dtype == np.float32
        expected = alone(exact, ids(prompt), ids(answer))
        assert found == pytest.approx(expected, abs=near)
    for answer in model.generate(PROMPTS, max_new_tokens=3):
        expected = alone(exact, ids(answer.prompt), answer.token_ids)
        assert answer.logprobs == pytest.approx(expected, abs=near)


@pytest.mark.skipif(not available(), reason="oneDNN's products are for x86 processors")
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("device", [*DEVICES, "meta"])
def test_float32_on_the_cpu_is_packed_and_nothing_else(dtype, device):
    asked = network("llama", dtype, device)
    prepack(asked)
    packed = any(isinstance(layer, PackedLinear) for layer in asked.modules())
    assert packed == (dtype == torch.float32 and device == "cpu")


@pytest.mark.parametrize("dtype", ROUNDING)
def test_a_head_of_a_smaller_dtype_is_exact(dtype, lettered):
    model = lettered(network("llama", dtype))
    head = model.network.get_output_embeddings()
    assert isinstance(head, ExactLinear) == (dtype != torch.float32)
    assert head.weight.dtype == dtype


@pytest.mark.parametrize(
    "damage",
    [
        Damage("round", 4),
        Damage("prune", 0.3),
        Damage("noise", 0.1),
    ],
)
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("device", DEVICES)
def test_weights_are_changed_where_they_lie(damage, dtype, device):
    """And as those of float32 would be, but for rounding."""
    changed = network("llama", dtype, device)
    same = copy.deepcopy(changed).to("cpu", torch.float32)
    apply(changed, damage)
    apply(same, damage)
    name = "model.layers.0.mlp.up_proj.weight"
    weights = changed.get_parameter(name).detach()
    assert weights.dtype == dtype
    assert weights.device.type == device
    found = weights.cpu().float()
    in_float32 = same.get_parameter(name).detach()
    near = torch.isclose(found, in_float32, rtol=0.01, atol=1e-3)
    assert near.float().mean() > 0.99
