"""Decoder-only transformers: the four operations of a model, each with its shared work done once.

Numbers are float32 log-softmax values whatever the weights' dtype, computed only at the positions
that are asked for: with a vocabulary of 262k the head costs more than the body.

A batch row is a *trunk* of tokens followed by *branches*: tokens that see the trunk and their own
ancestors, not each other. Answers to one prompt are branches, and so are the samples drawn from it
(see `tree`). Position ids and explicit attention masks make this exact, and padding without effect,
wherever the padding stands.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from factrobust.models import tokens
from factrobust.models.engine import Batch, Body, LocalModel, Prefilled, by_prompt, in_batches
from factrobust.models.extra import MptBody
from factrobust.models.interface import Job
from factrobust.models.tree import Row, pad_rows

SHORT_PREFIX = 8  # sharing fewer tokens than this saves nothing
BRANCHES = 64  # answers to one prompt that share a row: more would make its mask costly

Answer = tuple[list[int], int]  # token ids of prompt + answer, and where the answer begins


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


class CausalLM(LocalModel):
    """A transformers decoder-only model in memory."""

    _prefix: Prefix | None = None

    def _wrap(self, network: Any) -> Body:
        return MptBody(network) if network.config.model_type == "mpt" else Body(network)

    @functools.cached_property
    def bos(self) -> bool:
        return tokens.adds_bos(self.tokenizer)

    # -- teacher forcing ---------------------------------------------------------------------------

    def _score(self, job: Job) -> Iterator[Batch]:
        pairs = [
            tokens.encode_pair(self.tokenizer, r["prompt"], r["answer"], bos=self.bos)
            for r in job.requests
        ]
        self._check_context(job, [len(ids) for ids, _ in pairs])
        # Answers to one prompt stand together: they become branches of one row.
        rows = [g[i : i + BRANCHES] for g in by_prompt(job) for i in range(0, len(g), BRANCHES)]
        temperatures = job.settings.get("temperatures")

        def run(batch: list[list[int]]) -> Batch:
            values = self._log_probs([[pairs[i] for i in row] for row in batch], temperatures)
            return [i for row in batch for i in row], values

        trunks = [common_length([pairs[i][0] for i in row]) for row in rows]
        shared = common_length([ids for ids, _ in pairs])
        sizes = [
            trunk - shared + sum(len(pairs[i][0]) - trunk for i in row)
            for trunk, row in zip(trunks, rows, strict=True)
        ]
        return in_batches(rows, sizes, run, budget=self.tokens_per_batch, name=self.name)

    def _log_probs(
        self, batch: list[list[Answer]], temperatures: Sequence[float] | None
    ) -> list[np.ndarray]:
        """The result of each answer; `batch` holds a row a prompt."""
        flat = [answer for row in batch for answer in row]
        # The token before an answer predicts its first one, so it must be among the new tokens.
        limit = min(start for _, start in flat) - 1
        prefix, shared = self._shared_prefix([ids for ids, _ in flat], limit)
        packed = [pack_answers(row, shared) for row in batch]
        hidden, *_ = self._forward([row for row, _ in packed], prefix, shared)
        predictors = [(r, place) for r, (_, places) in enumerate(packed) for place in places]
        number = {place: i for i, place in enumerate(dict.fromkeys(predictors))}
        row_index, token_index = zip(*number, strict=True)
        wanted = hidden[list(row_index), list(token_index)]
        where = [number[place] for place in predictors]
        return self._values(wanted, where, [ids[start:] for ids, start in flat], temperatures)

    # -- generation --------------------------------------------------------------------------------

    def _encode(self, prompt: str) -> list[int]:
        return tokens.encode(self.tokenizer, prompt, bos=self.bos)

    def _last(self, prompt: list[int]) -> int:
        return prompt[-1]

    def _length(self, prompt: int, answer: int) -> int:
        return prompt + answer

    def _sizes(self, prompts: list[list[int]], answers: list[int]) -> list[int]:
        shared = common_length(prompts)
        return [len(ids) - shared + n for ids, n in zip(prompts, answers, strict=True)]

    def _prefill(self, prompts: list[list[int]]) -> Prefilled:
        prefix, shared = self._shared_prefix(prompts, min(map(len, prompts)) - 1)
        rows = [straight(ids, shared) for ids in prompts]
        hidden, cache, kv_positions = self._forward(rows, prefix, shared)
        last = [len(row.tokens) - 1 for row in rows]
        lengths = torch.tensor([len(ids) for ids in prompts])
        seen = torch.arange(kv_positions.shape[1])[None] < lengths[:, None]
        return hidden[range(len(rows)), last], cache, kv_positions, seen

    # -- shared ------------------------------------------------------------------------------------

    def _forward(
        self, rows: list[Row], prefix: Prefix | None, shared: int
    ) -> tuple[torch.Tensor, Any, torch.Tensor]:
        """Run rows that follow the first `shared` tokens of `prefix`.

        Returns hidden states [row, q, width], the cache, and the positions of its keys [row, key].
        """
        width = max(len(row.tokens) for row in rows)
        past = torch.ones(len(rows), width, shared, dtype=torch.bool)
        padded = pad_rows(rows, past, self.body.device)
        before = torch.arange(shared, device=self.body.device).expand(len(rows), shared)
        kv_positions = torch.cat([before, padded.positions], dim=1)
        cache = prefix.expand(shared, len(rows)) if prefix else DynamicCache()
        return self.body.hidden(padded, cache, kv_positions), cache, kv_positions

    def _shared_prefix(self, sequences: list[list[int]], limit: int) -> tuple[Prefix | None, int]:
        """The cached beginning of all sequences and how much of it they share (at most `limit`).

        The last prefix is kept between calls: batches of one data set share their few-shot examples.
        """
        own = min(common_length(sequences), limit)
        if own < SHORT_PREFIX:
            return None, 0
        if self._prefix is not None:
            kept = min(common_length([self._prefix.ids, sequences[0]]), own)
            if kept >= max(SHORT_PREFIX, own // 2):
                return self._prefix, kept
        ids = sequences[0][:own]
        _, cache, _ = self._forward([straight(ids, 0)], None, 0)
        self._prefix = Prefix(ids, cache)
        return self._prefix, own

    def _compare(self) -> tuple[torch.Tensor, torch.Tensor]:
        ids = [self.end_ids[0] if self.end_ids else 0, 1, 2]
        batch = torch.tensor([ids], device=self.body.device)
        expected = self.body.network(input_ids=batch).logits[0, -1].float()
        hidden, *_ = self._prefill([ids])
        return expected, self.body.logits(hidden)[0]


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
