"""Softmax at many temperatures over a large vocabulary: exact to float32, and fast."""

from __future__ import annotations

from collections.abc import Sequence

import torch

LOWEST = -87.0  # below it float32 exp yields denormal numbers, which cost ten times as much
BLOCK = 1 << 15  # columns at a time, so that a block stays in the processor's cache


def weights(shifted: torch.Tensor) -> torch.Tensor:
    """exp(shifted) for values of at most 0; 0 where it would be under 2e-38."""
    return torch.threshold_(shifted.clamp(min=LOWEST).exp_(), 2e-38, 0.0)


def log_norms(shifted: torch.Tensor, temperatures: Sequence[float]) -> torch.Tensor:
    """log sum_j exp(z_j / t) for each row of `shifted` and each t, float64 [row, temperature].

    `shifted` are logits less their maximum, float32 [row, vocabulary]. A quarter of a million
    float32 terms lose digits, so blocks of them are summed in float32 and the blocks in float64.
    """
    rows, vocabulary = shifted.shape
    sums = torch.zeros(rows, len(temperatures), dtype=torch.float64, device=shifted.device)
    buffer = torch.empty(rows, min(BLOCK, vocabulary), device=shifted.device)
    for start in range(0, vocabulary, BLOCK):
        block = shifted[:, start : start + BLOCK]
        scaled = buffer[:, : block.shape[1]]
        for k, t in enumerate(temperatures):
            torch.mul(block, 1 / t, out=scaled)
            sums[:, k] += scaled.clamp_(min=LOWEST).exp_().sum(dim=-1)
    return sums.log()
