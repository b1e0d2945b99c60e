"""Greedy decoding and sampling over a tree of prefixes.

Many samples of one prompt share most of their prefixes, above all at low temperatures. Each distinct
prefix is a node; a level of the tree is one forward pass, in which every node looks at the prompt
and at its own ancestors. Samples that meet in a node share its logits, whatever their temperature.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

if TYPE_CHECKING:
    from factrobust.models.engine import Body

EPSILON = 1e-4  # lowest temperature (equation 2 of paper 1)
CROWDED = 0.8  # share of rows in use above which a batch is not worth shrinking
TOP = 10  # alternatives kept at each position of a greedy answer
LOWEST = -87.0  # below it float32 exp yields denormal numbers, which cost ten times as much
BLOCK = 1 << 15  # columns at a time, so that a block stays in the processor's cache
HALVINGS = 24  # random numbers a token, enough for a vocabulary of 2 ** 24
NO_NUMBERS = np.empty((0, HALVINGS))  # a greedy answer draws nothing


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


@dataclass
class Stream:
    """One answer in the making: its temperature, its random numbers [token, halving], its tokens so
    far.

    `alternatives` likeliest tokens are kept at each position, with their log-probabilities.
    """

    temperature: float
    uniforms: np.ndarray
    alternatives: int = 0
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tempered: list[float] = field(default_factory=list)
    top: list[tuple[list[int], list[float]]] = field(default_factory=list)


def new_streams(request: dict[str, Any], settings: dict[str, Any]) -> list[Stream]:
    """The answers to be made for one request of generate or sample."""
    if "n" not in settings:
        return [Stream(0.0, NO_NUMBERS, alternatives=TOP)]
    prompt, t = request["prompt"], request["temperature"]
    seed, longest = settings["seed"], settings["max_new_tokens"]
    return [Stream(t, uniforms(seed, prompt, t, i, longest)) for i in range(settings["n"])]


def uniforms(seed: int, prompt: str, temperature: float, index: int, n: int) -> np.ndarray:
    """Numbers in [0, 1) for `n` tokens, [token, halving], that depend on the sample alone, not on
    its batch, order or library."""
    key = f"{seed}\n{temperature!r}\n{index}\n{prompt}".encode()
    words = np.frombuffer(hashlib.shake_256(key).digest(8 * n * HALVINGS), dtype="<u8")
    numbers: np.ndarray = (words >> 11).reshape(n, HALVINGS) * 2.0**-53
    return numbers


def decode(
    body: Body,
    hidden: torch.Tensor,
    cache: Any,
    kv_positions: torch.Tensor,
    seen: torch.Tensor,
    streams: list[list[Stream]],
    *,
    ended: Callable[[int, list[int]], bool],
    max_new_tokens: int,
    top_k: int | None,
    top_p: float | None,
    chunk: int,
) -> None:
    """Extend the streams of each row, in place, until they end.

    `hidden` [row, width] are the last hidden states of the prompts whose keys are in `cache`;
    `kv_positions` and `seen` [row, key] say where these keys stand and which of them are no padding.
    `ended(row, ids)` tells whether an answer is complete. The head is applied to `chunk` nodes at
    a time.
    """
    lengths = seen.sum(dim=1).tolist()
    seen = seen.cpu()  # [node, key]: what each node of this level sees
    nodes = list(enumerate(streams))  # (row, its streams that share this prefix)
    asked = list(range(len(streams)))  # the prompt of each row that is left in the batch
    for level in range(max_new_tokens):
        for lo in range(0, len(nodes), chunk):
            groups = [group for _, group in nodes[lo : lo + chunk]]
            _pick(body.logits(hidden[lo : lo + chunk]), groups, level, top_k, top_p)
        # Streams of one node that drew the same token stay together: they are a child of it.
        children: dict[tuple[int, int], list[Stream]] = {}
        for n, (_, group) in enumerate(nodes):
            for stream in group:
                children.setdefault((n, stream.ids[-1]), []).append(stream)
        going = {
            key: group
            for key, group in children.items()
            if not ended(asked[nodes[key[0]][0]], group[0].ids)
        }
        if not going or level == max_new_tokens - 1:
            return
        live = sorted({nodes[parent][0] for parent, _ in going})
        if len(live) > CROWDED * len(asked):
            live = list(range(len(asked)))
        else:  # a row whose answers have all ended would cost as much as any other
            left = torch.tensor(live, device=body.device)
            cache.batch_select_indices(left)
            kv_positions = kv_positions[left]
            lengths, asked = [lengths[r] for r in live], [asked[r] for r in live]
        place = {row: number for number, row in enumerate(live)}
        new: list[list[int]] = [[] for _ in asked]
        row_of, column, parents = [], [], []
        for parent, token in going:
            row = place[nodes[parent][0]]
            row_of.append(row)
            column.append(len(new[row]))
            parents.append(parent)
            new[row].append(token)
        past = torch.zeros(len(asked), max(map(len, new)), seen.shape[1], dtype=torch.bool)
        past[row_of, column] = seen[parents]
        level_rows = [
            Row(row, [length + level] * len(row), torch.eye(len(row), dtype=torch.bool))
            for row, length in zip(new, lengths, strict=True)
        ]
        rows = pad_rows(level_rows, past, body.device)
        kv_positions = torch.cat([kv_positions, rows.positions], dim=1)
        hidden = body.hidden(rows, cache, kv_positions)[row_of, column]
        seen = rows.seen.cpu()[row_of, column]
        nodes = list(zip(row_of, going.values(), strict=True))


def _pick(
    logits: torch.Tensor,
    groups: list[list[Stream]],
    level: int,
    top_k: int | None,
    top_p: float | None,
) -> None:
    """Append one token to each stream of each node, and its log-probabilities.

    `logits` [node, vocabulary] belong to the streams in `groups` [node]. Sums over the vocabulary
    are taken in float64: a quarter of a million float32 terms lose digits.
    """
    logits -= logits.amax(dim=-1, keepdim=True)
    norm = log_norms(logits, [1.0]).float()
    shared: dict[float, dict[int, list[Stream]]] = {}  # temperature, node -> streams
    for node, group in enumerate(groups):
        for stream in group:
            shared.setdefault(stream.temperature, {}).setdefault(node, []).append(stream)
    kept = max(group[0].alternatives for group in groups)
    best = torch.topk(logits, max(kept, 1)) if kept or 0 in shared else None
    for temperature, members in shared.items():
        nodes = list(members)
        here = logits if len(nodes) == len(logits) else logits[nodes]
        t = max(temperature, EPSILON)
        cut = _truncate(here, t, top_k, top_p) if top_k or top_p else here
        if temperature == 0 and best:
            drawn = best.indices[nodes, :1]
            chosen = -_ties(cut).log().float()
        else:
            z = cut / t
            cumulative = weights(z).cumsum(dim=-1, dtype=torch.float64)
            drawn = _draw(cumulative, _numbers(list(members.values()), level).to(z.device))
            chosen = z.gather(1, drawn) - cumulative[:, -1:].log().float()
        plain = (here.gather(1, drawn) - norm[nodes]).tolist()
        tempered, ids = chosen.tolist(), drawn.tolist()
        for row, group in enumerate(members.values()):
            for column, stream in enumerate(group):
                column = min(column, len(ids[row]) - 1)  # greedy: one token for all
                stream.ids.append(ids[row][column])
                stream.logprobs.append(plain[row][column])
                stream.tempered.append(tempered[row][column])
    if kept and best:
        tops = (best.values - norm).tolist()
        for group, ids, values in zip(groups, best.indices.tolist(), tops, strict=True):
            for stream in group:  # asked several times
                stream.top.append((ids[: stream.alternatives], values[: stream.alternatives]))


def _ties(shifted: torch.Tensor) -> torch.Tensor:
    """Sum of exp(z / EPSILON), [node, 1], for logits less their maximum, [node, vocabulary].

    Only ties with the likeliest token count at temperature 0: the rest need no exponential.
    """
    row, token = (shifted > LOWEST * EPSILON).nonzero(as_tuple=True)
    total = torch.zeros(len(shifted), 1, dtype=torch.float64, device=shifted.device)
    return total.index_add_(0, row, (shifted[row, token].double() / EPSILON).exp()[:, None])


def _draw(cumulative: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """A token for each stream, [node, stream]: the vocabulary is halved until one token is left.

    `cumulative` [node, vocabulary] are the tokens' weights summed up, `numbers` [node, stream,
    halving] decide between the halves by their weights. A single number and the inverted
    distribution function would draw from the same distribution. But at high temperatures, where
    thousands of tokens are about equally likely, the last digits of all their weights together then
    decide which of them it hits: another batch or processor gives another sample in one of a hundred.
    The weight of a half hardly depends on them.
    """
    size = cumulative.shape[1]
    low = torch.zeros(numbers.shape[:2], dtype=torch.long, device=cumulative.device)
    high = torch.full_like(low, size)
    below = torch.zeros_like(
        numbers[..., 0]
    )  # weight of the tokens before `low`, and before `high`
    upto = cumulative[:, -1:].expand_as(below)
    for k in range((size - 1).bit_length()):
        middle = (low + high) // 2
        at = cumulative.gather(1, (middle - 1).clamp(min=0))
        upper = numbers[..., k] * (upto - below) >= at - below
        low, high = torch.where(upper, middle, low), torch.where(upper, high, middle)
        below, upto = torch.where(upper, at, below), torch.where(upper, upto, at)
    return low


def _numbers(groups: list[list[Stream]], level: int) -> torch.Tensor:
    """The streams' random numbers for this token, [node, stream, halving], filled up with zeros."""
    numbers = np.zeros((len(groups), max(map(len, groups)), HALVINGS))
    for row, group in enumerate(groups):
        numbers[row, : len(group)] = [stream.uniforms[level] for stream in group]
    return torch.from_numpy(numbers)


def _truncate(
    logits: torch.Tensor, t: float, top_k: int | None, top_p: float | None
) -> torch.Tensor:
    """Minus infinity outside the top k tokens, then outside the smallest set of mass top_p at t."""
    ranked, order = logits.sort(dim=-1, descending=True, stable=True)
    keep = torch.ones_like(ranked, dtype=torch.bool)
    if top_k:
        keep[:, top_k:] = False
    if top_p:
        tempered = (ranked / t).masked_fill(~keep, -torch.inf)
        mass = tempered.softmax(dim=-1).cumsum(dim=-1)
        keep[:, 1:] &= mass[:, :-1] < top_p
    return torch.full_like(ranked, -torch.inf).scatter(
        1, order, ranked.masked_fill(~keep, -torch.inf)
    )


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
