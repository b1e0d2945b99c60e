"""Seconds, tokens and head positions of a piece of work on a network."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

# Seconds, new tokens through the network's body, and positions at which its head was applied.
Cost = np.ndarray


class Meter:
    """Counts what passes through some networks, and times it."""

    def __init__(self, *networks: Any) -> None:
        self.tokens = self.head_positions = self.most_at_once = 0
        for network in {id(network): network for network in networks}.values():
            network.base_model.register_forward_pre_hook(self._body, with_kwargs=True)
            network.get_output_embeddings().register_forward_pre_hook(self._head)

    def cost(self, work: Callable[[], Any]) -> Cost:
        """The cost of calling `work`."""
        tokens_before, head_before = self.tokens, self.head_positions
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
        tokens = self.tokens - tokens_before
        positions = self.head_positions - head_before
        return np.array([seconds, tokens, positions])

    def _body(self, _: Any, __: Any, inputs: dict[str, Any]) -> None:
        ids, mask = inputs["input_ids"], inputs.get("attention_mask")
        alone = mask is None or "at" in inputs  # tokens side by side, without padding
        self.tokens += ids.numel() if alone else _real_tokens(ids, mask)

    def _head(self, _: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        positions = inputs[0].shape[:-1].numel()
        self.head_positions += positions
        self.most_at_once = max(self.most_at_once, positions)


def _real_tokens(ids: torch.Tensor, mask: Any) -> int:
    """New tokens that are no padding, by a mask [row, key] or one [row, 1, query, key] (or
    several)."""
    mask = mask["full_attention"] if isinstance(mask, Mapping) else mask
    width = ids.shape[1]
    if mask.dim() == 2:
        return int(mask[:, -width:].sum())
    # Padding sees itself alone; so does, of the real tokens, the first one of a text.
    real = mask[:, 0].sum(dim=-1) > 1
    if mask.shape[-1] == width:
        real[:, 0] = True
    return int(real.sum())
