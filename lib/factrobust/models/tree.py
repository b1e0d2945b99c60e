"""Greedy decoding and sampling over a tree of prefixes.

Many samples of one prompt share most of their prefixes, above all at low temperatures. Each distinct
prefix is a node; a level of the tree is one forward pass, in which every node looks at the prompt
and at its own ancestors. Samples that meet in a node share its logits, whatever their temperature.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from factrobust.draws import sample_key

EPSILON = 1e-4  # lowest temperature (equation 2 of paper 1)
TOP = 10  # alternatives kept at each position of a greedy answer
# exp(x) is taken as 2 ** (x log2 e): torch's exp2 of float32 takes a quarter of the time of its exp.
LOG2E = math.log2(math.e)
LOWEST = -125.5  # below it float32 exp2 yields denormal numbers, which cost ten times as much
CUTS = ("top_k", "top_p", "min_p")  # what truncates a distribution, in the order of its steps
BLOCK = 1 << 15  # columns at a time, so that a block stays in the processor's cache
STEP = 512  # tokens whose weights are summed up at once: thirty times faster than one by one
NOTHING = -20.0  # log of what may be left out of a sum that is at least 1 (2e-9)
HALVINGS = 24  # random numbers a token, enough for a vocabulary of 2 ** 24
NO_NUMBERS = np.empty((0, HALVINGS))  # a greedy answer draws nothing

# From one level to the next: given, for each new node, its parent in the level before (in order) and
# the token drawn there, the hidden states [node, width] of the new nodes.
NextLevel = Callable[[list[int], list[int]], torch.Tensor]


@dataclass
class Stream:
    """One answer in the making: its temperature, its random numbers [token, halving], its tokens so
    far.

    `alternatives` likeliest tokens are kept at each position, with their log-probabilities. `curve`
    holds the token's log-probability at each of the asked temperatures, and `entropies` that of the
    whole distribution (nats), a row a position, if there are any to ask.
    """

    temperature: float
    uniforms: np.ndarray
    alternatives: int = 0
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tempered: list[float] = field(default_factory=list)
    top: list[tuple[list[int], list[float]]] = field(default_factory=list)
    curve: list[np.ndarray] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)


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
    key = sample_key(seed, prompt, temperature, index)
    words = np.frombuffer(hashlib.shake_256(key).digest(8 * n * HALVINGS), dtype="<u8")
    numbers: np.ndarray = (words >> 11).reshape(n, HALVINGS) * 2.0**-53
    return numbers


def decode(
    hidden: torch.Tensor,
    next_level: NextLevel,
    head: Callable[[torch.Tensor], torch.Tensor],
    streams: list[list[Stream]],
    *,
    ended: Callable[[int, list[int]], bool],
    settings: Mapping[str, Any],
    chunk: int,
) -> None:
    """Extend the streams of each prompt, in place, until they end.

    `hidden` [prompt, width] are the last hidden states of the prompts, which `next_level` continues.
    `head` gives the logits of at most `chunk` of them. `ended(prompt, ids)` tells whether an answer
    is complete. `settings` are the job's: max_new_tokens, what truncates the distribution (`CUTS`),
    and for greedy answers the `temperatures` of their curves.

    Three streams of one prompt, for example, that draw " a", " a" and " b": level 0 has one node,
    the prompt, and one forward pass gives level 1 its two, " a" (of two streams) and " b". If " a"
    is followed by " x" and " y" and " b" by the end, level 2 has the nodes " a x" and " a y".
    """
    nodes = list(enumerate(streams))  # (prompt, its streams that share this prefix)
    for level in range(settings["max_new_tokens"]):
        # 1. Every stream draws its next token from the distribution of its node.
        for low in range(0, len(nodes), chunk):
            groups = [group for _, group in nodes[low : low + chunk]]
            _pick(head(hidden[low : low + chunk]), groups, level, settings)
        # 2. Streams of one node that drew the same token stay together: they are a child of it.
        children: dict[tuple[int, int], list[Stream]] = {}
        for node, (_, group) in enumerate(nodes):
            for stream in group:
                children.setdefault((node, stream.ids[-1]), []).append(stream)
        # 3. Children whose answers are complete stay behind.
        going = {
            (parent, token): group
            for (parent, token), group in children.items()
            if not ended(nodes[parent][0], group[0].ids)
        }
        if not going or level == settings["max_new_tokens"] - 1:
            return
        # 4. One forward pass makes the others the nodes of the next level.
        parents, drawn = map(list, zip(*going, strict=True))
        hidden = next_level(parents, drawn)
        nodes = [(nodes[p][0], group) for p, group in zip(parents, going.values(), strict=True)]


def _pick(
    logits: torch.Tensor, groups: list[list[Stream]], level: int, settings: Mapping[str, Any]
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
    cuts = {name: settings[name] for name in CUTS if settings.get(name) is not None}
    falling = descending(logits) if "top_p" in cuts else None
    wanted = max(group[0].alternatives for group in groups)
    best = torch.topk(logits, max(wanted, 1)) if wanted or 0 in shared else None
    for temperature, members in shared.items():
        nodes = list(members)
        plain = logits if len(nodes) == len(logits) else logits[nodes]
        t = max(temperature, EPSILON)
        cut = plain
        if cuts:
            ranked = None if falling is None else falling[nodes]
            cut = plain.masked_fill(plain < floors(plain, [t], cuts, ranked), -torch.inf)
        if temperature == 0 and best:
            drawn = best.indices[nodes, :1]
            tempered = -log_norms(cut, [EPSILON]).float()
        else:
            mass = weights(cut, t)
            before = sums_before(mass)
            numbers = np.zeros((len(nodes), max(map(len, members.values())), HALVINGS))
            for k, group in enumerate(members.values()):
                numbers[k, : len(group)] = [stream.uniforms[level] for stream in group]
            drawn = _draw(mass, before, torch.from_numpy(numbers).to(cut.device))
            tempered = cut.gather(1, drawn) / t - before[:, -1:].log().float()
        picked = (drawn, plain.gather(1, drawn) - norm[nodes], tempered)
        for group, *row in zip(members.values(), *(each.tolist() for each in picked), strict=True):
            for k, stream in enumerate(group):
                k = min(k, len(row[0]) - 1)  # greedy: one token for all
                stream.ids.append(row[0][k])
                stream.logprobs.append(row[1][k])
                stream.tempered.append(row[2][k])
    if grid := settings.get("temperatures"):
        curves, entropies = _curves(logits, best, grid, norm)
        for group, curve, entropy in zip(groups, curves, entropies, strict=True):
            for stream in group:
                stream.curve.append(curve)
                stream.entropies.append(entropy)
    if wanted and best:
        tops = (best.values - norm).tolist()
        for group, ids, values in zip(groups, best.indices.tolist(), tops, strict=True):
            for stream in group:  # asked several times
                stream.top.append((ids[: stream.alternatives], values[: stream.alternatives]))


def _curves(
    logits: torch.Tensor, best: Any, grid: Sequence[float], norm: torch.Tensor
) -> tuple[np.ndarray, list[float]]:
    """log P_t of the likeliest token [node, temperature], and the entropy at t = 1 of each node.

    `logits` are less their maximum, so that the likeliest token's are 0, and `norm` is their log sum.
    """
    # Where even a whole vocabulary of tokens like the tenth would add nothing, ten are enough.
    grid = [max(t, EPSILON) for t in grid]
    tail = best.values[:, -1:].double() / torch.tensor(grid, device=logits.device)
    few = (tail + math.log(logits.shape[1]) < NOTHING).all(dim=0).tolist()
    norms = log_norms(best.values, grid)
    norms[:, [t == 1 for t in grid]] = norm.double()
    rest = [k for k, t in enumerate(grid) if t != 1 and not few[k]]
    norms[:, rest] = log_norms(logits, [grid[k] for k in rest])
    total = torch.zeros(len(logits), dtype=torch.float64, device=logits.device)
    for block in logits.split(BLOCK, dim=1):
        total += torch.linalg.vecdot((block * LOG2E).clamp_(min=LOWEST).exp2_(), block)
    mean = total / norm[:, 0].double().exp()
    return (-norms).float().cpu().numpy(), (norm[:, 0] - mean).tolist()


def sums_before(mass: torch.Tensor) -> torch.Tensor:
    """Weight of the tokens before each block of STEP, the last one that of all: float64 [node, block].

    `mass` [node, vocabulary] are the tokens' weights, of which 64 at a time are summed in float32.
    """
    if spare := -mass.shape[1] % STEP:
        mass = torch.nn.functional.pad(mass, (0, spare))
    blocks = mass.unflatten(1, (-1, 64)).sum(dim=-1).unflatten(1, (-1, STEP // 64))
    sums = blocks.sum(dim=-1, dtype=torch.float64).cumsum(dim=-1)
    return torch.nn.functional.pad(sums, (1, 0))


def _of_block(mass: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """The weights of a block of STEP tokens, or of some [node, block] of them, [..., token]."""
    places = block[..., None] * STEP + torch.arange(STEP, device=mass.device)
    size = mass.shape[1]
    found = mass.gather(1, places.clamp(max=size - 1).flatten(1)).view(places.shape)
    return found.masked_fill(places >= size, 0.0)


def _draw(mass: torch.Tensor, before: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """A token for each stream, [node, stream]: the vocabulary is halved until one token is left.

    `mass` [node, vocabulary] are the tokens' weights, `before` their `sums_before`; `numbers` [node,
    stream, halving] decide between the halves by their weights. A single number and the inverted
    distribution function would draw from the same distribution. But at high temperatures, where
    thousands of tokens are about equally likely, the last digits of all their weights together then
    decide which of them it hits: another batch or processor gives another sample in one of a hundred.
    The weight of a half hardly depends on them.
    """
    size = mass.shape[1]
    low = torch.zeros(numbers.shape[:2], dtype=torch.long, device=mass.device)
    high = torch.full_like(low, size)
    # The weights of the tokens before `low`, and before `high`.
    below = torch.zeros_like(numbers[..., 0])
    upto = before[:, -1:].expand_as(below)
    for k in range((size - 1).bit_length()):
        middle = (low + high) // 2
        block = middle // STEP
        inside = torch.arange(STEP, device=mass.device) < (middle - block * STEP)[..., None]
        part = _of_block(mass, block).masked_fill(~inside, 0.0)
        at = before.gather(1, block) + part.sum(dim=-1, dtype=torch.float64)
        upper = numbers[..., k] * (upto - below) >= at - below
        low, high = torch.where(upper, middle, low), torch.where(upper, high, middle)
        below, upto = torch.where(upper, at, below), torch.where(upper, upto, at)
    return low


def floors(
    shifted: torch.Tensor,
    temperatures: Sequence[float],
    cuts: Mapping[str, float],
    falling: torch.Tensor | None = None,
) -> torch.Tensor:
    """The lowest logit that truncation leaves at each temperature, [row, temperature].

    `shifted` are logits less their maximum, [row, vocabulary]. What `cuts` keep of the tempered
    distribution says `Model.temper`; tokens as likely as the last one that stays, stay too. `falling` are
    `shifted` sorted, where they are there.
    """
    low = torch.full((len(shifted), len(temperatures)), -torch.inf, device=shifted.device)
    if "top_k" in cuts:
        k = min(int(cuts["top_k"]), shifted.shape[1])
        low[:] = torch.topk(shifted, k).values[:, -1:]
    if "top_p" in cuts:
        ranked = descending(shifted) if falling is None else falling
        if "top_k" in cuts:
            ranked = ranked.masked_fill(ranked < low[:, :1], -torch.inf)
        for column, t in enumerate(temperatures):
            mass = weights(ranked, t)
            before = sums_before(mass)
            wanted = cuts["top_p"] * before[:, -1:]
            block = torch.searchsorted(before[:, 1:-1].contiguous(), wanted)
            within = before.gather(1, block) + _of_block(mass, block)[:, 0].double().cumsum(dim=-1)
            last = block * STEP + torch.searchsorted(within, wanted)
            low[:, column] = ranked.gather(1, last.clamp(max=ranked.shape[1] - 1))[:, 0]
    if "min_p" in cuts:
        least = torch.tensor(temperatures, device=low.device) * math.log(cuts["min_p"])
        low = torch.maximum(low, least.to(low))
    return low


def descending(logits: torch.Tensor) -> torch.Tensor:
    """Each row sorted, the largest first."""
    if logits.is_cuda:
        return logits.sort(dim=-1, descending=True).values
    # NumPy's sort of float32 takes 1.3 ms for 262,144 numbers, torch's 44.
    negative = -logits.numpy()
    negative.sort(axis=-1)
    return torch.from_numpy(np.negative(negative, out=negative))


def weights(shifted: torch.Tensor, t: float = 1.0) -> torch.Tensor:
    """exp(shifted / t) for values of at most 0; 0 where it would be under 2e-38."""
    return torch.threshold_((shifted * (LOG2E / t)).clamp_(min=LOWEST).exp2_(), 2e-38, 0.0)


def log_norms(
    shifted: torch.Tensor, temperatures: Sequence[float], low: torch.Tensor | None = None
) -> torch.Tensor:
    """log sum_j exp(z_j / t) for each row of `shifted` and each t, float64 [row, temperature].

    With `low` [row, temperature] only over the logits that are not below it (`floors`).

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
            torch.mul(block, LOG2E / t, out=scaled)
            if low is not None:
                scaled.masked_fill_(block < low[:, k : k + 1], -torch.inf)
            sums[:, k] += scaled.clamp_(min=LOWEST).exp2_().sum(dim=-1)
    return sums.log()
