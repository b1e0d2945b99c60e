"""Seconds, tokens and head positions of a piece of work on a network."""

from collections.abc import Callable
from timeit import timeit
from typing import Any

import torch


class Meter:
    """Counts what passes through some networks on the CPU, and times it."""

    def __init__(self, *networks: Any) -> None:
        self.tokens = self.head_positions = 0
        for network in networks:
            network.base_model.register_forward_pre_hook(self._body, with_kwargs=True)
            network.get_output_embeddings().register_forward_pre_hook(self._head)

    def cost(self, work: Callable[[], object]) -> dict[str, float]:
        """Seconds, new tokens through the network's body, and positions at which its head was
        applied."""
        self.tokens = self.head_positions = 0
        seconds = timeit(work, number=1)
        return {
            "tokens": self.tokens,
            "head_positions": self.head_positions,
            "seconds": seconds,
        }

    def _body(self, _: Any, __: Any, inputs: dict[str, Any]) -> None:
        self.tokens += inputs["input_ids"].numel()  # without padding: see `engine.Body.hidden`

    def _head(self, _: Any, inputs: tuple[torch.Tensor]) -> None:
        self.head_positions += inputs[0].shape[:-1].numel()
