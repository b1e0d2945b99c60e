"""Decoder-only transformers: the four operations of a model, each with its shared work done once.

Numbers are float32 log-softmax values whatever the weights' dtype, computed only at the positions
that are asked for: with a vocabulary of 262k the head costs more than the body.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from factrobust.models import tokens
from factrobust.models.base import Generation, Job, Model, ModelError
from factrobust.models.batches import Batch, in_batches
from factrobust.models.decode import EPSILON, Stream, decode, new_streams
from factrobust.models.packed import (
    Body,
    Prefix,
    Row,
    common_length,
    pack_answers,
    pad_rows,
    straight,
)
from factrobust.models.softmax import log_norms

SHORT_PREFIX = 8  # sharing fewer tokens than this saves nothing
BRANCHES = 64  # answers to one prompt that share a row: more would make its mask costly

Answer = tuple[list[int], int]  # token ids of prompt + answer, and where the answer begins


class CausalLM(Model):
    """A transformers decoder-only model in memory.

    `tokens_per_batch` bounds the new tokens of one forward pass, `logits_per_batch` the positions at
    which the head is applied at once (each costs a float32 vector over the vocabulary). A batch that
    does not fit into memory is halved until it does.
    """

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        *,
        name: str,
        fingerprint: str,
        prompt_format: str,
        chat: tuple[str, str] | None,
        tokens_per_batch: int = 1024,
        logits_per_batch: int = 64,
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.prompt_format, self.chat = prompt_format, chat
        self.tokenizer = tokenizer
        self.tokens_per_batch, self.logits_per_batch = tokens_per_batch, logits_per_batch
        self.body = Body(network.eval())
        self.bos = tokens.adds_bos(tokenizer)
        self.end_ids = _end_ids(network, tokenizer)
        self._prefix: Prefix | None = None
        self._check_head()

    def answer(self, job: Job) -> Iterator[Batch]:
        return self._score(job) if job.operation in ("score", "temper") else self._decode(job)

    # -- teacher forcing ---------------------------------------------------------------------------

    def _score(self, job: Job) -> Iterator[Batch]:
        pairs = [
            tokens.encode_pair(self.tokenizer, r["prompt"], r["answer"], bos=self.bos)
            for r in job.requests
        ]
        self._check_context(job, [len(ids) for ids, _ in pairs])
        # Answers to one prompt stand together: they become branches of one row.
        rows = [g[i : i + BRANCHES] for g in _by_prompt(job) for i in range(0, len(g), BRANCHES)]
        temperatures = job.settings.get("temperatures")

        def run(batch: list[list[int]]) -> Batch:
            values = self._log_probs([[pairs[i] for i in row] for row in batch], temperatures)
            summed = [v.sum(axis=0) if temperatures else v[:, 0] for v in values]
            return [i for row in batch for i in row], summed

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
        """Log-probabilities [token, temperature] of each answer; `batch` holds a row a prompt."""
        flat = [answer for row in batch for answer in row]
        # The token before an answer predicts its first one, so it must be among the new tokens.
        limit = min(start for _, start in flat) - 1
        prefix, shared = self._shared_prefix([ids for ids, _ in flat], limit)
        packed = [pack_answers(row, shared) for row in batch]
        hidden, *_ = self._forward([row for row, _ in packed], prefix, shared)
        # The head is applied once to each place, however many answers go on from there.
        predictors = [(r, place) for r, (_, places) in enumerate(packed) for place in places]
        number = {place: i for i, place in enumerate(dict.fromkeys(predictors))}
        where = torch.tensor([number[place] for place in predictors])
        targets = torch.tensor([token for ids, start in flat for token in ids[start:]])
        row_index, token_index = zip(*number, strict=True)
        wanted = hidden[list(row_index), list(token_index)]
        values = np.empty((len(targets), len(temperatures or [1])), dtype=np.float32)
        for low in range(0, len(wanted), self.logits_per_batch):
            logits = self.body.logits(wanted[low : low + self.logits_per_batch])
            here = ((where >= low) & (where < low + len(logits))).nonzero()[:, 0]
            values[here] = _tempered(logits, where[here] - low, targets[here], temperatures)
        ends = np.cumsum([len(ids) - start for ids, start in flat])
        return np.split(values, ends[:-1])

    # -- generation --------------------------------------------------------------------------------

    def _decode(self, job: Job) -> Iterator[Batch]:
        settings, requests = job.settings, job.requests
        n, stop, longest = settings.get("n", 1), settings["stop"], settings["max_new_tokens"]
        groups = _by_prompt(job)
        encoded = {
            g[0]: tokens.encode(self.tokenizer, requests[g[0]]["prompt"], bos=self.bos)
            for g in groups
        }
        self._check_context(job, [len(ids) + longest for ids in encoded.values()])

        def run(batch: list[list[int]]) -> Batch:
            prompts = [encoded[g[0]] for g in batch]
            streams = [[s for i in g for s in new_streams(requests[i], settings)] for g in batch]
            hidden, cache, kv_positions, seen = self._prefill(prompts)
            decode(
                self.body,
                hidden,
                cache,
                kv_positions,
                seen,
                streams,
                ended=lambda row, ids: self._ended(prompts[row][-1], ids, stop),
                max_new_tokens=longest,
                top_k=settings.get("top_k"),
                top_p=settings.get("top_p"),
                chunk=self.logits_per_batch,
            )
            results: list[Any] = []
            for group, ids, row in zip(batch, prompts, streams, strict=True):
                prompt = requests[group[0]]["prompt"]
                made = self._generations(prompt, ids[-1], row, stop)
                each = [made[k : k + n] for k in range(0, len(made), n)]
                results += each if job.operation == "sample" else made
            return [i for g in batch for i in g], results

        shared = common_length(list(encoded.values()))
        sizes = [len(encoded[g[0]]) - shared + len(g) * n for g in groups]
        return in_batches(groups, sizes, run, budget=self.tokens_per_batch, name=self.name)

    def _prefill(
        self, prompts: list[list[int]]
    ) -> tuple[torch.Tensor, Any, torch.Tensor, torch.Tensor]:
        """Last hidden state of each prompt; their cache; key positions and validity [row, key]."""
        prefix, shared = self._shared_prefix(prompts, min(map(len, prompts)) - 1)
        rows = [straight(ids, shared) for ids in prompts]
        hidden, cache, kv_positions = self._forward(rows, prefix, shared)
        last = [len(row.tokens) - 1 for row in rows]
        lengths = torch.tensor([len(ids) for ids in prompts])
        seen = torch.arange(kv_positions.shape[1])[None] < lengths[:, None]
        return hidden[range(len(rows)), last], cache, kv_positions, seen

    def _ended(self, last: int, ids: list[int], stop: Sequence[str]) -> bool:
        if ids[-1] in self.end_ids:
            return True
        text = tokens.continuation(self.tokenizer, last, ids) if stop else ""
        return tokens.cut(text, stop) is not None

    def _generations(
        self, prompt: str, last: int, streams: list[Stream], stop: Sequence[str]
    ) -> list[Generation]:
        """What the streams of one prompt (`last`: its last token) say, up to a stop or end."""

        @functools.cache  # many samples are equal
        def ending(ids: tuple[int, ...]) -> tuple[str, int]:
            ids = ids[:-1] if ids[-1] in self.end_ids else ids
            text = tokens.continuation(self.tokenizer, last, ids)
            short = tokens.cut(text, stop)
            if short is None:
                return text, len(ids)
            return short, tokens.covering(self.tokenizer, last, ids, short)

        made = []
        for stream in streams:
            text, n = ending(tuple(stream.ids))
            greedy = stream.alternatives > 0
            top = [
                [(self.tokenizer.decode([i]), p) for i, p in zip(*at, strict=True)]
                for at in stream.top[:n]
            ]
            tempered = [] if greedy else stream.tempered[:n]
            made.append(
                Generation(prompt, text, stream.ids[:n], stream.logprobs[:n], top, tempered)
            )
        return made

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

    def _check_context(self, job: Job, lengths: list[int]) -> None:
        """Refuse a prompt that, with its answer, is longer than the network's context."""
        most = getattr(self.body.config, "max_position_embeddings", None)
        if most and lengths and max(lengths) > most:
            # Before anything is computed: some networks go on beyond it, and give nonsense.
            raise ModelError(
                f"{self.name}: a prompt and its answer take {max(lengths)} tokens in "
                f"{job.operation}, more than the model's context of {most}; shorten the prompt"
            )

    def _check_head(self) -> None:
        """Refuse a network whose own logits are not its head applied to its last hidden states."""
        with torch.inference_mode():
            ids = [self.end_ids[0] if self.end_ids else 0, 1, 2]
            batch = torch.tensor([ids], device=self.body.device)
            expected = self.body.network(input_ids=batch).logits[0, -1].float()
            hidden, *_ = self._prefill([ids])
            logits = self.body.logits(hidden)[0].to(expected.device)
            gap = (logits - expected).abs().max() / expected.abs().max()
        if not gap < 0.02:  # bfloat16 rounding stays under this, a missing scale does not
            raise ModelError(
                f"{self.name}: the logits of {type(self.body.network).__name__} differ from its head "
                f"applied to its hidden states (by {gap:.0%}); this architecture is not supported yet"
            )


def _by_prompt(job: Job) -> list[list[int]]:
    """Numbers of the requests that ask the same prompt."""
    order = sorted(range(len(job.requests)), key=lambda i: (job.requests[i]["prompt"], i))
    return [list(g) for _, g in groupby(order, key=lambda i: job.requests[i]["prompt"])]


def _tempered(
    logits: torch.Tensor,
    rows: torch.Tensor,
    targets: torch.Tensor,
    temperatures: Sequence[float] | None,
) -> np.ndarray:
    """Float32 log-softmax at `targets` of the `rows` of logits, array [target, temperature]."""
    logits = logits - logits.max(dim=-1, keepdim=True).values
    grid = [max(t, EPSILON) for t in temperatures or [1.0]]
    norms = log_norms(logits, grid).float()[rows]
    scaled = logits[rows, targets][:, None] / torch.tensor(grid, device=logits.device)
    return (scaled - norms).cpu().numpy()


def _end_ids(network: Any, tokenizer: Any) -> list[int]:
    ids = network.generation_config.eos_token_id
    ids = ids if isinstance(ids, list) else [ids]
    return sorted({i for i in [*ids, tokenizer.eos_token_id] if i is not None})
