"""Products of packed layers beside torch's own."""

import pytest
import torch
from torch.nn.functional import linear

from factrobust.models.linear import ExactLinear, PackedLinear, available, prepack

x86 = pytest.mark.skipif(not available(), reason="oneDNN's products are for x86 processors")


@x86
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "shape",
    [
        (24,),
        (1, 24),
        (3, 24),
        (2, 5, 24),
        (300, 24),
        (0, 24),
    ],
)
def test_the_same_products(shape, bias):
    torch.manual_seed(0)
    layer = torch.nn.Linear(24, 70, bias=bias)
    weight = layer.weight.detach().clone()
    not_side_by_side = torch.randn(24, 9, 4)[:, 3].T
    packed = PackedLinear(layer, keeps=False)
    with torch.inference_mode():
        for x in [torch.randn(shape), not_side_by_side] * 2:  # packing, and packed
            expected = linear(x, weight, layer.bias)
            assert torch.allclose(packed(x), expected, atol=1e-5)


@x86
def test_a_weight_is_kept_only_where_an_embedding_uses_it():
    embedding = torch.nn.Embedding(9, 4)
    body = torch.nn.Linear(4, 4)
    head = torch.nn.Linear(4, 9)
    head.weight = embedding.weight
    network = torch.nn.Sequential(embedding, body, body, head)
    ids = torch.tensor([[1, 8]])
    expected = network(ids)
    prepack(network)
    _, first, second, last = network
    assert first is second  # a layer in two places is packed once
    assert not first.weight.is_meta  # nothing happens before the first use
    with torch.inference_mode():
        assert torch.allclose(network(ids), expected, atol=1e-6)
    assert first.weight.is_meta
    assert first.weight.shape == (4, 4)
    assert not last.weight.is_meta


@pytest.mark.parametrize("bias", [True, False])
def test_a_bfloat16_layer_gives_float32(bias, monkeypatch):
    """1 + 2^-7 times 3 is no multiple of bfloat16's step at 3, which is 2^-6."""
    monkeypatch.setattr("factrobust.models.linear.HEAD_SLICE", 2)  # of three rows
    layer = torch.nn.Linear(1, 3, bias=bias, dtype=torch.bfloat16)
    weight = 1 + 2**-7
    torch.nn.init.constant_(layer.weight, weight)
    if bias:
        torch.nn.init.constant_(layer.bias, 1)
    three = torch.tensor([[3.0]], dtype=torch.bfloat16)
    product = ExactLinear(layer)(three)
    assert product.dtype == torch.float32
    expected = 3 * weight + bias
    assert product.tolist() == [[expected] * 3]
