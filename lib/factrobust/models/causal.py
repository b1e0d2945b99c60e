"""Decoder-only transformers: the four operations of a model, each with its shared work done once.

Numbers are float32 log-softmax values whatever the weights' dtype, computed only at the positions
that are asked for: with a vocabulary of 262k the head costs more than the body.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from factrobust.models import tokens
from factrobust.models.base import Generation, Job, Model, ModelError
from factrobust.models.decode import Stream, decode, finish
from factrobust.models.packed import Body, Prefix, common_length, pad_rows

EPSILON = 1e-4  # lowest temperature (equation 2 of paper 1)
TOP = 10  # alternatives kept at each generated position
SHORT_PREFIX = 8  # sharing fewer tokens than this saves nothing


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
        logits_per_batch: int = 256,
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

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        with torch.inference_mode():
            if job.operation in ("score", "temper"):
                yield from self._score(job)
            else:
                yield from self._decode(job)

    # -- teacher forcing ---------------------------------------------------------------------------

    def _score(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        pairs = [
            tokens.encode_pair(self.tokenizer, r["prompt"], r["answer"], bos=self.bos)
            for r in job.requests
        ]
        # Answers to one prompt stand together: they become branches of one row.
        order = sorted(range(len(pairs)), key=lambda i: (job.requests[i]["prompt"], i))
        rows = [list(g) for _, g in groupby(order, key=lambda i: job.requests[i]["prompt"])]
        rows = [row[i : i + 64] for row in rows for i in range(0, len(row), 64)]

        def run(batch: list[list[int]]) -> tuple[list[int], list[Any]]:
            indices = [i for row in batch for i in row]
            logits, targets, lengths = self._answer_logits([[pairs[i] for i in row] for row in batch])
            temperatures = job.settings.get("temperatures")
            values = _log_probs(logits, targets, temperatures)
            split = np.split(values, np.cumsum(lengths)[:-1])
            return indices, [v[:, 0] for v in split] if temperatures is None else [
                v.sum(axis=0) for v in split
            ]

        sizes = [sum(len(pairs[i][0]) for i in row) for row in rows]
        asked = [sum(len(pairs[i][0]) - pairs[i][1] for i in row) for row in rows]
        shared = common_length([p[0] for p in pairs]) if pairs else 0
        yield from self._batches(rows, [s - shared for s in sizes], asked, run)

    def _answer_logits(
        self, batch: list[list[tuple[list[int], int]]]
    ) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
        """Logits that predict each answer token, those tokens, and the answers' lengths."""
        flat = [pair for row in batch for pair in row]
        # The token before an answer predicts its first one, so it must be among the new tokens.
        limit = min(start for _, start in flat) - 1
        prefix, shared = self._shared_prefix([ids for ids, _ in flat], limit)
        row_tokens, row_positions, row_links, wanted, targets = [], [], [], [], []
        for r, row in enumerate(batch):
            trunk = min(common_length([ids for ids, _ in row]), min(s for _, s in row) - 1)
            trunk = max(trunk, shared)
            new, place, owner = list(row[0][0][shared:trunk]), list(range(shared, trunk)), []
            owner = [0] * len(new)
            for b, (ids, start) in enumerate(row, 1):
                offset = len(new) - trunk  # index in `new` of the branch's token number 0
                # The token before the first answer token may be the last one of the trunk.
                at = [offset + i if i >= trunk else i - shared for i in range(start - 1, len(ids) - 1)]
                new += ids[trunk:-1]
                place += range(trunk, len(ids) - 1)
                owner += [b] * (len(ids) - 1 - trunk)
                wanted += [(r, i) for i in at]
                targets += ids[start:]
            # `owner` 0 is the trunk; a branch sees the trunk and itself, and nobody looks ahead.
            own, pos = torch.tensor(owner), torch.tensor(place)
            row_links.append(
                ((own[None] == 0) | (own[None] == own[:, None])) & (pos[None] <= pos[:, None])
            )
            row_tokens.append(new)
            row_positions.append(place)
        cache = prefix.expand(shared, len(batch)) if prefix else DynamicCache()
        width = max(len(t) for t in row_tokens)
        past = torch.ones(len(batch), width, shared, dtype=torch.bool)
        rows = pad_rows(row_tokens, row_positions, row_links, past, self.body.device)
        kv = torch.cat([_arange(shared, len(batch), self.body.device), rows.positions], dim=1)
        hidden = self.body.hidden(rows, cache, kv)
        r_index, t_index = (torch.tensor(x) for x in zip(*wanted, strict=True))
        logits = self.body.logits(hidden[r_index, t_index])
        lengths = [len(ids) - start for ids, start in flat]
        return logits, torch.tensor(targets, device=logits.device), lengths

    # -- generation --------------------------------------------------------------------------------

    def _decode(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        settings = job.settings
        order = sorted(range(len(job.requests)), key=lambda i: (job.requests[i]["prompt"], i))
        groups = [list(g) for _, g in groupby(order, key=lambda i: job.requests[i]["prompt"])]
        encoded = {
            g[0]: tokens.encode(self.tokenizer, job.requests[g[0]]["prompt"], bos=self.bos)
            for g in groups
        }

        def run(batch: list[list[int]]) -> tuple[list[int], list[Any]]:
            prompts = [encoded[g[0]] for g in batch]
            streams = [[s for i in g for s in self._streams(job, i)] for g in batch]
            logits, cache, kv_positions, seen = self._prefill(prompts)
            decode(
                self.body, logits, cache, kv_positions, seen, [len(p) for p in prompts], streams,
                ended=lambda row, s: self._ended(prompts[row][-1], s, settings["stop"]),
                max_new_tokens=settings["max_new_tokens"],
                top_k=settings.get("top_k"), top_p=settings.get("top_p"),
                chunk=self.logits_per_batch,
            )  # fmt: skip
            results: list[Any] = []
            for row, group in enumerate(batch):
                done = iter(streams[row])
                for i in group:
                    n = settings.get("n", 1)
                    made = [self._generation(job.requests[i]["prompt"], prompts[row][-1], next(done), settings["stop"]) for _ in range(n)]  # fmt: skip
                    results.append(made if job.operation == "sample" else made[0])
            return [i for g in batch for i in g], results

        shared = common_length(list(encoded.values())) if encoded else 0
        n = settings.get("n", 1)
        sizes = [len(encoded[g[0]]) - shared + len(g) * n for g in groups]
        yield from self._batches(groups, sizes, [len(g) * n for g in groups], run)

    def _streams(self, job: Job, index: int) -> list[Stream]:
        request, settings = job.requests[index], job.settings
        if job.operation == "generate":
            return [Stream(0.0, (), alternatives=TOP)]
        prompt, t = request["prompt"], request["temperature"]
        return [
            Stream(t, uniforms(settings["seed"], prompt, t, i, settings["max_new_tokens"]))
            for i in range(settings["n"])
        ]

    def _prefill(
        self, prompts: list[list[int]]
    ) -> tuple[torch.Tensor, Any, torch.Tensor, torch.Tensor]:
        """Logits after each prompt [row, vocabulary]; its cache; key positions and validity."""
        prefix, shared = self._shared_prefix(prompts, min(len(p) for p in prompts) - 1)
        new = [p[shared:] for p in prompts]
        place = [list(range(shared, len(p))) for p in prompts]
        links = [torch.ones(len(p), len(p), dtype=torch.bool).tril() for p in new]
        past = torch.ones(len(prompts), max(len(p) for p in new), shared, dtype=torch.bool)
        rows = pad_rows(new, place, links, past, self.body.device)
        kv = torch.cat([_arange(shared, len(prompts), self.body.device), rows.positions], dim=1)
        cache = prefix.expand(shared, len(prompts)) if prefix else DynamicCache()
        hidden = self.body.hidden(rows, cache, kv)
        last = torch.tensor([len(p) - 1 for p in new])
        seen = torch.arange(kv.shape[1])[None] < torch.tensor([len(p) for p in prompts])[:, None]
        return self.body.logits(hidden[torch.arange(len(prompts)), last]), cache, kv, seen

    def _ended(self, last: int, stream: Stream, stop: Sequence[str]) -> bool:
        if stream.ids[-1] in self.end_ids:
            return True
        return bool(stop) and (
            tokens.cut(tokens.continuation(self.tokenizer, last, stream.ids), stop) is not None
        )

    def _generation(self, prompt: str, last: int, stream: Stream, stop: Sequence[str]) -> Generation:
        ids = stream.ids[:-1] if stream.ids[-1] in self.end_ids else stream.ids
        text = tokens.continuation(self.tokenizer, last, ids)
        short = tokens.cut(text, stop)
        n = len(ids) if short is None else tokens.covering(self.tokenizer, last, ids, short)
        return finish(stream, prompt, text if short is None else short, n, self.tokenizer)

    # -- shared ------------------------------------------------------------------------------------

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
        links = torch.ones(own, own, dtype=torch.bool).tril()
        rows = pad_rows([ids], [list(range(own))], [links], torch.ones(1, own, 0, dtype=torch.bool), self.body.device)  # fmt: skip
        cache = DynamicCache()
        self.body.hidden(rows, cache, rows.positions)
        self._prefix = Prefix(ids, cache)
        return self._prefix, own

    def _batches(
        self,
        items: list[Any],
        sizes: list[int],
        asked: list[int],
        run: Callable[[list[Any]], tuple[list[int], list[Any]]],
    ) -> Iterator[tuple[list[int], list[Any]]]:
        """Run items in batches of like size under both budgets; halve a batch out of memory."""
        by_size = sorted(range(len(items)), key=lambda i: sizes[i])
        batches: list[list[int]] = []
        for i in by_size:
            batch = batches[-1] if batches else []
            if batch and (
                (len(batch) + 1) * sizes[i] <= self.tokens_per_batch
                and sum(asked[j] for j in batch) + asked[i] <= self.logits_per_batch
            ):
                batch.append(i)
            else:
                batches.append([i])
        todo = batches[::-1]
        while todo:
            batch = todo.pop()
            try:
                yield run([items[i] for i in batch])
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not _out_of_memory(error):
                    raise
                if len(batch) == 1:
                    raise ModelError(
                        f"{self.name}: one prompt alone does not fit into memory; shorten it, or "
                        "load the model with a smaller dtype"
                    ) from error
                half = len(batch) // 2
                todo += [batch[half:], batch[:half]]
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()

    def _check_head(self) -> None:
        """Refuse a network whose own logits are not its head applied to its last hidden states."""
        with torch.inference_mode():
            ids = torch.tensor([[self.end_ids[0] if self.end_ids else 0, 1, 2]])
            expected = self.body.network(input_ids=ids.to(self.body.device)).logits[0, -1].float()
            logits, *_ = self._prefill([ids[0].tolist()])
            gap = (logits[0] - expected).abs().max() / expected.abs().max()
        if not gap < 0.02:  # bfloat16 rounding stays under this, a missing scale does not
            raise ModelError(
                f"{self.name}: the logits of {type(self.body.network).__name__} differ from its head "
                f"applied to its hidden states (by {gap:.0%}); this architecture is not supported yet"
            )


def uniforms(seed: int, prompt: str, temperature: float, index: int, n: int) -> tuple[float, ...]:
    """`n` numbers in [0, 1) that depend on the sample alone, not on its batch, order or library."""
    key = f"{seed}\n{temperature!r}\n{index}\n{prompt}".encode()
    words = np.frombuffer(hashlib.shake_256(key).digest(8 * n), dtype="<u8")
    return tuple((words >> 11) * 2.0**-53)


def _log_probs(
    logits: torch.Tensor, targets: torch.Tensor, temperatures: Sequence[float] | None
) -> np.ndarray:
    """Float32 log-softmax of each row at its target, array [row, temperature]."""
    shifted = logits - logits.max(dim=-1, keepdim=True).values
    target = shifted.gather(1, targets[:, None])[:, 0]
    columns = []
    for t in [1.0] if temperatures is None else [max(t, EPSILON) for t in temperatures]:
        columns.append(target / t - (shifted / t).exp_().sum(dim=-1).log())
    return torch.stack(columns, dim=1).cpu().numpy()


def _arange(n: int, rows: int, device: Any) -> torch.Tensor:
    return torch.arange(n, device=device).expand(rows, n)


def _end_ids(network: Any, tokenizer: Any) -> list[int]:
    ids = network.generation_config.eos_token_id
    ids = ids if isinstance(ids, list) else [ids]
    return sorted({i for i in [*ids, tokenizer.eos_token_id] if i is not None})


def _out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or "not enough memory" in text
