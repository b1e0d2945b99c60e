"""Sequences that share a beginning, run through the network once.

A batch row is a *trunk* of tokens followed by *branches*: tokens that see the trunk and their own
ancestors, not each other. Answers to one prompt are branches, and so are the samples drawn from it:
each distinct prefix is visited once. Position ids and explicit attention masks make this exact, and
padding without effect, wherever the padding stands.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Prefix:
    """Tokens that every row of some batches begins with, and their keys and values (batch 1)."""

    ids: list[int]
    cache: Any

    def expand(self, length: int, rows: int) -> Any:
        """Cache of the first `length` tokens for `rows` rows; this one is left as it is."""
        cache = copy.deepcopy(self.cache)
        if length < len(self.ids):
            cache.crop(length - len(self.ids))
        cache.batch_repeat_interleave(rows)
        return cache


@dataclass
class Rows:
    """New tokens for each row: `ids` [row, q], `positions` [row, q] and `seen` [row, q, kv].

    `seen` is true where a new token may look, over all keys so far (those of earlier calls first,
    then the q new ones). Padding sees itself alone, so that it yields numbers and reaches nobody.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    seen: torch.Tensor


def common_length(sequences: list[list[int]]) -> int:
    """Length of the longest common beginning."""
    first, last = min(sequences), max(sequences)
    n = min(len(first), len(last))
    return next((i for i in range(n) if first[i] != last[i]), n)


def pad_rows(
    tokens: list[list[int]],
    positions: list[list[int]],
    links: list[torch.Tensor],
    past: torch.Tensor,
    device: Any,
) -> Rows:
    """Rows of unequal length side by side.

    `links[r]` [q_r, q_r] says which of the row's new tokens see which; `past` [row, q, kv_past]
    which earlier keys they see.
    """
    n, q = len(tokens), max(len(t) for t in tokens)
    ids = torch.zeros(n, q, dtype=torch.long)
    place = torch.zeros(n, q, dtype=torch.long)
    seen = torch.eye(q, dtype=torch.bool).repeat(n, 1, 1)
    for r, row in enumerate(tokens):
        k = len(row)
        ids[r, :k] = torch.tensor(row)
        place[r, :k] = torch.tensor(positions[r])
        seen[r, :k, :k] |= links[r]
    return Rows(ids.to(device), place.to(device), torch.cat([past, seen], dim=2).to(device))


class Body:
    """The network below its head, fed with explicit masks; and the head, where it is wanted."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.base = network.base_model
        self.config = network.config.get_text_config()
        self.device = next(network.parameters()).device

    def hidden(self, rows: Rows, cache: Any, kv_positions: torch.Tensor) -> torch.Tensor:
        """Last hidden states [row, q, width]; the new keys and values are added to `cache`."""
        return self.base(
            input_ids=rows.ids,
            position_ids=rows.positions,
            attention_mask=self._masks(rows, kv_positions),
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Float32 logits [n, vocabulary] of hidden states [n, width]."""
        logits = self.network.get_output_embeddings()(hidden).float()
        if scale := getattr(self.config, "logit_scale", None):
            logits = logits * scale
        if scaling := getattr(self.config, "logits_scaling", None):
            logits = logits / scaling
        if cap := getattr(self.config, "final_logit_softcapping", None):
            logits = torch.tanh(logits / cap) * cap
        return logits

    def _masks(self, rows: Rows, kv_positions: torch.Tensor) -> Any:
        full = rows.seen[:, None]
        window = getattr(self.config, "sliding_window", None)
        kinds = set(getattr(self.config, "layer_types", None) or ())
        if not window or not getattr(self.config, "use_sliding_window", True):
            return full if len(kinds) < 2 else dict.fromkeys(kinds, full)
        near = rows.positions[:, :, None] - kv_positions[:, None, :] < window
        local = (rows.seen & near)[:, None]
        if len(kinds) < 2:
            return full if kinds == {"full_attention"} else local
        return {kind: local if "sliding" in kind else full for kind in kinds}
