"""Linear layers in oneDNN's layout: the same numbers, and no second copy of the weights."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import linear

from factrobust.models.engine import available, prepack

pytestmark = pytest.mark.skipif(not available(), reason="oneDNN's products are for x86 processors")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(24,), (1, 24), (3, 24), (2, 5, 24), (300, 24), (0, 24)])
def test_the_same_products(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(24, 70, bias=bias)
    x = torch.randn(shape)
    expected = linear(x, layer.weight.detach().clone(), layer.bias)
    prepack(layer)
    with torch.inference_mode():
        for _ in range(2):  # packing, and packed
            assert torch.allclose(layer(x), expected, atol=1e-5)


def test_rows_that_do_not_stand_side_by_side() -> None:
    layer = torch.nn.Linear(24, 7)
    x = torch.randn(24, 9, 4)
    expected = linear(x[:, 3].T, layer.weight.detach().clone(), layer.bias)
    prepack(layer)
    with torch.inference_mode():
        assert torch.allclose(layer(x[:, 3].T), expected, atol=1e-5)


def test_a_weight_is_kept_only_where_an_embedding_uses_it() -> None:
    embedding, body, head = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 9)
    head.weight = embedding.weight
    network = torch.nn.Sequential(embedding, body, head)
    ids = torch.tensor([[1, 8]])
    expected = network(ids)
    prepack(network)
    assert not body.weight.is_meta  # nothing happens before the first use
    with torch.inference_mode():
        assert torch.allclose(network(ids), expected, atol=1e-6)
        assert torch.allclose(network(ids), expected, atol=1e-6)
    assert body.weight.is_meta
    assert body.weight.shape == (4, 4)
    assert not head.weight.is_meta


def test_other_dtypes_and_kinds_stay_as_they_are() -> None:
    class Own(torch.nn.Linear):
        """A layer with products of its own."""

    layers = [torch.nn.Linear(4, 4, dtype=torch.bfloat16), Own(4, 4)]
    for layer in layers:
        prepack(layer)
        assert "forward" not in vars(layer)
