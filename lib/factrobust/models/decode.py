"""Greedy decoding and sampling over a tree of prefixes.

Many samples of one prompt share most of their prefixes, above all at low temperatures. Each distinct
prefix is a node; a level of the tree is one forward pass, in which every node looks at the prompt
and at its own ancestors. Samples that meet in a node share its logits, whatever their temperature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from factrobust.models.base import Generation
from factrobust.models.packed import Body, pad_rows


@dataclass
class Stream:
    """One answer in the making: its temperature, its random numbers, its tokens so far."""

    temperature: float
    uniforms: tuple[float, ...]
    alternatives: int = 0
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tempered: list[float] = field(default_factory=list)
    top: list[tuple[list[int], list[float]]] = field(default_factory=list)


def decode(
    body: Body,
    logits: torch.Tensor,
    cache: Any,
    kv_positions: torch.Tensor,
    prompt_seen: torch.Tensor,
    lengths: Sequence[int],
    streams: list[list[Stream]],
    *,
    ended: Callable[[int, Stream], bool],
    max_new_tokens: int,
    top_k: int | None,
    top_p: float | None,
    chunk: int,
) -> None:
    """Extend the streams of each row, in place, until they end.

    `logits` [row, vocabulary] follow the prompts whose keys are in `cache`; `kv_positions` and
    `prompt_seen` [row, key] say where these keys stand and which of them are no padding.
    """
    alive: list[tuple[int, Stream]] = [(r, s) for r, row in enumerate(streams) for s in row]
    node_of = [r for r, _ in alive]  # row of `logits` that each living stream continues from
    seen = prompt_seen.cpu()[:, None]  # [row, node, key]: what the nodes of this level see
    first = list(range(len(streams)))  # a row's first node: at level 0 it has just one
    for level in range(max_new_tokens):
        _pick(logits, alive, node_of, level, top_k, top_p, chunk)
        going = [(r, s, n) for (r, s), n in zip(alive, node_of, strict=True) if not ended(r, s)]
        if not going or level == max_new_tokens - 1:
            return
        # Children: streams of one node that drew the same token stay together.
        children: list[dict[tuple[int, int], int]] = [{} for _ in streams]
        index = [children[r].setdefault((n, s.ids[-1]), len(children[r])) for r, s, n in going]
        width = max(len(c) for c in children)
        past = torch.zeros(len(streams), width, seen.shape[2], dtype=torch.bool)
        for r, row in enumerate(children):
            for (n, _), c in row.items():
                past[r, c] = seen[r, n - first[r]]
        new = [[token for _, token in row] for row in children]
        place = [[lengths[r] + level] * len(row) for r, row in enumerate(new)]
        rows = pad_rows(new, place, [torch.eye(len(t), dtype=torch.bool) for t in new], past, body.device)  # fmt: skip
        kv_positions = torch.cat([kv_positions, rows.positions], dim=1)
        hidden = body.hidden(rows, cache, kv_positions)
        seen = rows.seen.cpu()
        real = [(r, c) for r, row in enumerate(new) for c in range(len(row))]
        r_index, c_index = (torch.tensor(x) for x in zip(*real, strict=True))
        logits = torch.cat([body.logits(h) for h in hidden[r_index, c_index].split(chunk)])
        first = [0]
        for row in new:
            first.append(first[-1] + len(row))
        alive = [(r, s) for r, s, _ in going]
        node_of = [first[r] + c for (r, _), c in zip(alive, index, strict=True)]


def _pick(
    logits: torch.Tensor,
    alive: list[tuple[int, Stream]],
    node_of: list[int],
    level: int,
    top_k: int | None,
    top_p: float | None,
    chunk: int,
) -> None:
    """Append one token to each living stream, and its log-probabilities."""
    norm = torch.logsumexp(logits, dim=-1)
    # Streams that continue from one node at one temperature share its cumulative distribution.
    shared: dict[tuple[int, float], list[Stream]] = {}
    for (_, stream), node in zip(alive, node_of, strict=True):
        shared.setdefault((node, stream.temperature), []).append(stream)
    keys = list(shared)
    for i in range(0, len(keys), chunk):
        part = keys[i : i + chunk]
        nodes = torch.tensor([n for n, _ in part])
        # The temperature as float32 tensor, so that equation 2 is computed as written.
        t = torch.tensor([[max(t, 1e-4)] for _, t in part], device=logits.device)
        z = logits[nodes] / t
        if top_k or top_p:
            z = _truncate(z, top_k, top_p)
        z_norm = torch.logsumexp(z, dim=-1, keepdim=True)
        greedy = z.argmax(dim=-1)
        width = max(len(shared[k]) for k in part)
        draws = torch.zeros(len(part), width, dtype=torch.float64)
        for row, key in enumerate(part):
            for col, stream in enumerate(shared[key]):
                draws[row, col] = stream.uniforms[level] if key[1] > 0 else 0.0
        drawn = greedy[:, None].expand(-1, width).clone()
        if any(temperature > 0 for _, temperature in part):
            # Inverse of the distribution function, in float64: 262k float32 terms lose digits.
            cumulative = (z - z_norm).exp().double().cumsum(dim=-1)
            goal = draws.to(z.device) * cumulative[:, -1:]
            found = torch.searchsorted(cumulative, goal, right=True).clamp(max=z.shape[1] - 1)
            drawn = torch.where(t > 0.99e-4, found, drawn)
        for row, key in enumerate(part):
            if key[1] == 0:
                drawn[row] = greedy[row]
        plain = logits[nodes].gather(1, drawn) - norm[nodes][:, None]
        tempered = z.gather(1, drawn) - z_norm
        top = torch.topk(logits[nodes] - norm[nodes][:, None], 10) if shared[part[0]][0].alternatives else None  # fmt: skip
        ids, plain, tempered = drawn.tolist(), plain.cpu().numpy(), tempered.cpu().numpy()
        for row, key in enumerate(part):
            for col, stream in enumerate(shared[key]):
                stream.ids.append(ids[row][col])
                stream.logprobs.append(plain[row, col])
                stream.tempered.append(tempered[row, col])
                if top is not None:
                    stream.top.append((top.indices[row].tolist(), list(top.values[row].cpu().numpy())))


def _truncate(z: torch.Tensor, top_k: int | None, top_p: float | None) -> torch.Tensor:
    """Minus infinity outside the top k tokens, then outside the smallest set of mass top_p."""
    ranked, order = z.sort(dim=-1, descending=True)
    keep = torch.ones_like(ranked, dtype=torch.bool)
    if top_k:
        keep[:, top_k:] = False
    if top_p:
        mass = ranked.masked_fill(~keep, -torch.inf).softmax(dim=-1).cumsum(dim=-1)
        keep[:, 1:] &= mass[:, :-1] < top_p
    return torch.full_like(z, -torch.inf).scatter(1, order, ranked.masked_fill(~keep, -torch.inf))


def finish(stream: Stream, prompt: str, text: str, n: int, tokenizer: Any) -> Generation:
    """The generation made of the first `n` tokens of a stream."""
    top = [
        [(tokenizer.decode([i]), p) for i, p in zip(ids, ps, strict=True)]
        for ids, ps in stream.top[:n]
    ]
    sampled = not stream.alternatives
    return Generation(
        prompt, text, stream.ids[:n], stream.logprobs[:n], top, stream.tempered[:n] if sampled else []
    )
