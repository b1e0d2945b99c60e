"""Norms and weights against float64, where float32 alone would lose digits or time."""

from __future__ import annotations

import torch

from factrobust.models.tree import LOWEST, log_norms, weights


def logits(vocabulary: int) -> torch.Tensor:
    z = torch.randn(3, vocabulary, generator=torch.Generator().manual_seed(0)) * 4
    return z - z.amax(dim=-1, keepdim=True)


def test_log_norms_equal_float64_at_all_temperatures() -> None:
    temperatures = [1e-4, 0.01, 0.2, 1.0, 2.0, 10.0]
    for vocabulary in (5, 1 << 15, 100_003):  # one block, exactly one, several and a rest
        z = logits(vocabulary)
        exact = torch.stack([torch.logsumexp(z.double() / t, dim=-1) for t in temperatures], dim=1)
        torch.testing.assert_close(log_norms(z, temperatures), exact, rtol=0, atol=2e-6)


def test_weights_are_exp_and_zero_where_that_is_nothing() -> None:
    z = torch.tensor([0.0, -1.0, -80.0, LOWEST, -90.0, -104.0, -torch.inf])
    assert torch.equal(weights(z), torch.where(z > LOWEST, z.exp(), 0.0))
    assert z[-1] == -torch.inf, "the argument is left as it is"
