"""Sequences that share a beginning, run through the network once.

A batch row is a *trunk* of tokens followed by *branches*: tokens that see the trunk and their own
ancestors, not each other. Answers to one prompt are branches, and so are the samples drawn from it:
each distinct prefix is visited once. Position ids and explicit attention masks make this exact, and
padding without effect, wherever the padding stands.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.nn.functional import linear

from factrobust.models.base import ModelError

ATTENTION = {"full_attention", "sliding_attention"}  # what explicit masks can express
HEAD_SLICE = 1 << 15  # rows of a bfloat16 head that are turned into float32 at once


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


class Row(NamedTuple):
    """New tokens, their positions, and which of them see which, [q, q]."""

    tokens: list[int]
    positions: list[int]
    links: torch.Tensor


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
    """Length of the longest common beginning; 0 of no sequences."""
    if not sequences:
        return 0
    first, last = min(sequences), max(sequences)
    n = min(len(first), len(last))
    return next((i for i in range(n) if first[i] != last[i]), n)


def straight(ids: list[int], start: int) -> Row:
    """The tokens of a sequence from number `start` on, each of which sees those before it."""
    new = ids[start:]
    links = torch.ones(len(new), len(new), dtype=torch.bool).tril()
    return Row(new, list(range(start, len(ids))), links)


def pack_answers(answers: list[tuple[list[int], int]], shared: int) -> tuple[Row, list[int]]:
    """One row for all answers to one prompt: the prompt as trunk, the answers as its branches.

    `answers` are token ids of prompt + answer and where the answer begins; the first `shared` tokens
    are in the cache already. Returns the row, and for each token of each answer in turn the place
    in the row that predicts it: answers that follow the same tokens start from one place.
    """
    trunk = min(common_length([ids for ids, _ in answers]), min(start for _, start in answers))
    new = answers[0][0][shared:trunk]
    positions, owner = list(range(shared, trunk)), [0] * (trunk - shared)
    predictors = []
    for branch, (ids, start) in enumerate(answers, 1):
        offset = len(new) - trunk  # from a token's number in `ids` to its number in `new`
        before = range(start - 1, len(ids) - 1)
        predictors += [i - shared if i < trunk else i + offset for i in before]
        new += ids[trunk:-1]
        positions += range(trunk, len(ids) - 1)
        owner += [branch] * (len(ids) - 1 - trunk)
    # Everybody sees the trunk (owner 0) and the own branch, and nobody looks ahead.
    own, at = torch.tensor(owner), torch.tensor(positions)
    links = ((own[None] == 0) | (own[None] == own[:, None])) & (at[None] <= at[:, None])
    return Row(new, positions, links), predictors


def pad_rows(rows: list[Row], past: torch.Tensor, device: Any) -> Rows:
    """Rows of unequal length side by side; `past` [row, q, kv_past]: which earlier keys they see."""
    n, q = len(rows), max(len(row.tokens) for row in rows)
    ids = torch.zeros(n, q, dtype=torch.long)
    positions = torch.zeros(n, q, dtype=torch.long)
    seen = torch.eye(q, dtype=torch.bool).repeat(n, 1, 1)
    for r, row in enumerate(rows):
        k = len(row.tokens)
        ids[r, :k] = torch.tensor(row.tokens, dtype=torch.long)
        positions[r, :k] = torch.tensor(row.positions, dtype=torch.long)
        seen[r, :k, :k] |= row.links
    return Rows(ids.to(device), positions.to(device), torch.cat([past, seen], dim=2).to(device))


class Body:
    """The network below its head, fed with explicit masks; and the head, where it is wanted.

    Raises ModelError for a network that these masks do not steer: one without position ids, or with
    attention of another kind than full and sliding.
    """

    def __init__(self, network: Any) -> None:
        self.network = network
        self.base = network.base_model
        self.config = network.config.get_text_config()
        self.device = next(network.parameters()).device
        self.kinds = set(getattr(self.config, "layer_types", None) or ())
        strange = sorted(self.kinds - ATTENTION)
        if "position_ids" not in inspect.signature(self.base.forward).parameters:
            strange.append("no position ids")
        if strange:
            raise ModelError(
                f"{type(network).__name__} has {' and '.join(strange)}, which cannot be batched "
                "exactly here; use a model with full or sliding attention and position ids"
            )

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
        head = self.network.get_output_embeddings()
        if type(head) is torch.nn.Linear and head.weight.dtype != torch.float32:
            # A bfloat16 logit of 20 is rounded to a multiple of 0.125: unequal answers would tie.
            exact = hidden.to(head.weight.device).float()
            slices = head.weight.split(HEAD_SLICE)
            logits = torch.cat([linear(exact, w.float()) for w in slices], dim=-1)
            if head.bias is not None:
                logits += head.bias.float()
        else:
            logits = head(hidden).float()
        if scale := getattr(self.config, "logit_scale", None):
            logits = logits * scale
        if scaling := getattr(self.config, "logits_scaling", None):
            logits = logits / scaling
        if cap := getattr(self.config, "final_logit_softcapping", None):
            logits = torch.tanh(logits / cap) * cap
        return logits

    def _masks(self, rows: Rows, kv_positions: torch.Tensor) -> Any:
        """What the network takes as its attention mask: one, or one for each kind of layer."""
        full = rows.seen[:, None]
        local = full
        window = getattr(self.config, "sliding_window", None)
        if window and getattr(self.config, "use_sliding_window", True):
            near = rows.positions[:, :, None] - kv_positions[:, None, :] < window
            local = (rows.seen & near)[:, None]
        if self.config._attn_implementation == "eager":  # adds masks, where sdpa selects by them
            dtype = self.network.dtype
            full, local = ((~mask).to(dtype) * torch.finfo(dtype).min for mask in (full, local))
        if len(self.kinds) > 1:
            return {"full_attention": full, "sliding_attention": local}
        return full if self.kinds == {"full_attention"} else local
