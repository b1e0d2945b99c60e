"""Greedy decoding and sampling over a tree of prefixes.

Each distinct prefix of the samples of a prompt is a node. A level of the tree is one forward pass, in
which every node sees the prompt and its own ancestors. Samples in a node share its logits, at any
temperature.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from factrobust.draws import sample_key

EPSILON = 1e-4  # lowest temperature (equation 2 of paper 1)
TOP = 10  # alternatives kept at each position of a greedy answer
# exp(x) is computed as 2 ** (x log2 e): torch's float32 exp2 takes a quarter of the time of its exp.
LOG2E = math.log2(math.e)
LOWEST = -125.5  # below it float32 exp2 gives denormal numbers, which take ten times as long
CUTS = ("top_k", "top_p", "min_p")  # the ways to truncate, in their order
BLOCK = 1 << 15  # columns at once: a block stays in the processor's cache
STEP = 512  # tokens whose weights are summed at once: thirty times faster than one by one
BINS = 4096  # of other tokens than the STEP likeliest: see `_norms_by_bins`
WIDE = 64.0  # nats from these to the least likely one, beyond which bins would be too coarse
MANY = 8  # temperatures from which on bins pay
NOTHING = -20.0  # log of a term (2e-9) that a sum of at least 1 can do without
HALVINGS = 24  # random numbers a token, enough for a vocabulary of 2 ** 24
NO_NUMBERS = np.empty((0, HALVINGS))  # for a greedy answer

# The hidden states [node, width] of the next level's nodes. Arguments: the parent of each node in the
# level before (ascending), and its token.
NextLevel = Callable[[list[int], list[int]], torch.Tensor]


@dataclass
class Stream:
    """An unfinished answer, whose lists hold a value a position (see `Generation`)."""

    temperature: float
    uniforms: np.ndarray  # random numbers [token, halving]
    alternatives: int = 0  # so many in `top`
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tempered: list[float] = field(default_factory=list)
    top: list[tuple[list[int], list[float]]] = field(default_factory=list)
    curve: list[np.ndarray] = field(default_factory=list)  # a log-probability a temperature
    entropies: list[float] = field(default_factory=list)


def new_streams(request: dict[str, Any], settings: dict[str, Any]) -> list[Stream]:
    if "n" not in settings:
        return [Stream(0.0, NO_NUMBERS, alternatives=TOP)]
    prompt, t = request["prompt"], request["temperature"]
    seed, longest = settings["seed"], settings["max_new_tokens"]
    return [Stream(t, uniforms(seed, prompt, t, i, longest)) for i in range(settings["n"])]


def uniforms(seed: int, prompt: str, temperature: float, index: int, n: int) -> np.ndarray:
    """Numbers in [0, 1) for `n` tokens, [token, halving]. They depend on the sample alone."""
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
    check: Callable[[torch.Tensor], None],
    settings: Mapping[str, Any],
    chunk: int,
) -> None:
    """Extend the streams of each prompt, in place, until they end.

    `hidden` [prompt, width] are the last hidden states of the prompts. `head` gives the logits of at
    most `chunk` of them. `ended(prompt, ids)` says whether an answer is complete. `check` is given the
    highest logits of nodes, and raises an error for what is no number.

    Example: three streams of one prompt draw " a", " a" and " b". One forward pass gives level 1 with
    two nodes: " a" with two streams, and " b". If " a" is followed by " x" and " y", and " b" by the
    end, level 2 has the nodes " a x" and " a y".
    """
    nodes = list(enumerate(streams))  # (prompt, its streams that share this prefix)
    for level in range(settings["max_new_tokens"]):
        # 1. Every stream draws its next token from its node's distribution.
        for low in range(0, len(nodes), chunk):
            groups = [group for _, group in nodes[low : low + chunk]]
            _pick(head(hidden[low : low + chunk]), groups, level, check, settings)
        # 2. Streams of one node with the same token form a child of it.
        children: dict[tuple[int, int], list[Stream]] = {}
        for node, (_, group) in enumerate(nodes):
            for stream in group:
                children.setdefault((node, stream.ids[-1]), []).append(stream)
        # 3. Complete answers go no further.
        going = {
            (parent, token): group
            for (parent, token), group in children.items()
            if not ended(nodes[parent][0], group[0].ids)
        }
        if not going or level == settings["max_new_tokens"] - 1:
            return
        # 4. One forward pass gives the next level.
        parents, drawn = map(list, zip(*going, strict=True))
        hidden = next_level(parents, drawn)
        nodes = [(nodes[p][0], group) for p, group in zip(parents, going.values(), strict=True)]


def _pick(
    logits: torch.Tensor,
    groups: list[list[Stream]],
    level: int,
    check: Callable[[torch.Tensor], None],
    settings: Mapping[str, Any],
) -> None:
    """Append one token, with its log-probabilities, to each stream of `groups` [node]; `logits` are
    [node, vocabulary]. Sums are float64: a quarter of a million float32 terms lose digits."""
    highest = logits.amax(dim=-1, keepdim=True)
    check(highest)
    logits -= highest
    norm = log_norms(logits, [1.0]).float()
    shared: dict[float, dict[int, list[Stream]]] = {}  # temperature, node -> streams
    for node, group in enumerate(groups):
        for stream in group:
            shared.setdefault(stream.temperature, {}).setdefault(node, []).append(stream)
    cuts = {name: settings[name] for name in CUTS if settings.get(name) is not None}
    falling = descending(logits) if "top_p" in cuts and "top_k" not in cuts else None
    wanted = max(group[0].alternatives for group in groups)
    best = likeliest(logits, max(wanted, 1)) if wanted or 0 in shared else None
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
    if best and (grid := settings.get("temperatures")):
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


class Best(NamedTuple):
    """The likeliest tokens [row, k] and their logits, best first."""

    values: torch.Tensor
    indices: torch.Tensor


def likeliest(logits: torch.Tensor, k: int) -> Best:
    """The `k` likeliest tokens of each row of `logits` [row, vocabulary]. Where logits tie the lowest
    token id comes first, as in argmax and so in transformers' greedy decoding."""
    if k == 1:
        first = logits.argmax(dim=-1, keepdim=True)
        return Best(logits.gather(1, first), first)
    # One more shows whether the last one ties with a token that is left out.
    values, indices = torch.topk(logits, min(k + 1, logits.shape[1]))
    ties = values[:, 1:] == values[:, :-1]
    if ties.any():
        for row in ties.any(dim=-1).nonzero()[:, 0].tolist():
            order = logits[row].argsort(descending=True, stable=True)[: values.shape[1]]
            indices[row] = order
    return Best(values[:, :k], indices[:, :k])


def _curves(
    logits: torch.Tensor, best: Best, grid: Sequence[float], norm: torch.Tensor
) -> tuple[np.ndarray, list[float]]:
    """log P_t of the likeliest token [node, temperature], and the entropy at t = 1 of each node.
    That token's logit is 0. `norm` is the log of the sum of the logits' exponentials."""
    # Ten tokens are enough where a whole vocabulary of tokens like the tenth would add nothing.
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
    """Summed weight of the tokens before each block of STEP tokens, and of all: float64 [node,
    block]. `mass` [node, vocabulary] are the weights. Sums of 64 are float32, larger ones
    float64."""
    if spare := -mass.shape[1] % STEP:
        mass = torch.nn.functional.pad(mass, (0, spare))
    blocks = mass.unflatten(1, (-1, 64)).sum(dim=-1).unflatten(1, (-1, STEP // 64))
    sums = blocks.sum(dim=-1, dtype=torch.float64).cumsum(dim=-1)
    return torch.nn.functional.pad(sums, (1, 0))


def _of_block(mass: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """The weights of the tokens of each `block` [node, ...], [node, ..., STEP]."""
    places = block[..., None] * STEP + torch.arange(STEP, device=mass.device)
    size = mass.shape[1]
    found = mass.gather(1, places.clamp(max=size - 1).flatten(1)).view(places.shape)
    return found.masked_fill(places >= size, 0.0)


def _draw(mass: torch.Tensor, before: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """A token for each stream, [node, stream]: the vocabulary is halved until one token is left.

    `mass` [node, vocabulary] are the tokens' weights, and `before` their `sums_before`. `numbers`
    [node, stream, halving] choose between the halves by their weights.

    One number and the inverse distribution function would give the same distribution. But at high
    temperatures the last digits of all weights together decide which token is hit: another batch or
    processor changes one sample in a hundred. The weight of a half hardly depends on last digits.
    """
    size = mass.shape[1]
    low = torch.zeros(numbers.shape[:2], dtype=torch.long, device=mass.device)
    high = torch.full_like(low, size)
    # Summed weights of the tokens before `low`, and before `high`.
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
    """The lowest logit that truncation leaves at each temperature, [row, temperature]. `shifted`
    are logits minus their maximum, [row, vocabulary], and `falling` the same in descending order,
    if they are known. `Model.temper` explains `cuts`; tokens that tie with the last one stay."""
    low = torch.full((len(shifted), len(temperatures)), -torch.inf, device=shifted.device)
    if "top_k" in cuts:
        k = min(int(cuts["top_k"]), shifted.shape[1])
        low[:] = torch.topk(shifted, k).values[:, -1:]
    if "top_p" in cuts:
        if "top_k" in cuts:  # few are left to be ranked
            left = int((shifted >= low[:, :1]).sum(dim=-1).max())
            ranked = torch.topk(shifted, left).values
            ranked = ranked.masked_fill(ranked < low[:, :1], -torch.inf)
        else:
            ranked = descending(shifted) if falling is None else falling
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
    if logits.is_cuda:
        return logits.sort(dim=-1, descending=True).values
    # NumPy's sort of float32 takes 1.3 ms for 262,144 numbers, torch's 44.
    negative = -logits.numpy()
    negative.sort(axis=-1)
    return torch.from_numpy(np.negative(negative, out=negative))


def weights(shifted: torch.Tensor, t: float = 1.0) -> torch.Tensor:
    """exp(shifted / t) for values of at most 0; results under 2e-38 are 0."""
    return torch.threshold_((shifted * (LOG2E / t)).clamp_(min=LOWEST).exp2_(), 2e-38, 0.0)


def log_norms(
    shifted: torch.Tensor, temperatures: Sequence[float], low: torch.Tensor | None = None
) -> torch.Tensor:
    """log sum_j exp(z_j / t) for each row of `shifted` and each t, float64 [row, temperature].

    `shifted` are logits minus their maximum, float32 [row, vocabulary]. With `low` [row, temperature]
    (see `floors`), smaller logits do not count. Sums within blocks are float32, over blocks float64.
    """
    large = shifted.shape[1] >= 4 * BINS
    if large and low is None and len(temperatures) >= MANY and shifted.amin() > -WIDE:
        return _norms_by_bins(shifted, temperatures)
    if large and low is not None:
        top = torch.topk(shifted, STEP).values
        few = (top[:, -1:] < low).all(dim=0)
        if few.any():  # of these the rest of the vocabulary is cut off
            norms = torch.empty(low.shape, dtype=torch.float64, device=low.device)
            for columns, part in ((few, top), (~few, shifted)):
                chosen = columns.nonzero()[:, 0].tolist()
                norms[:, chosen] = _norms(part, [temperatures[k] for k in chosen], low[:, chosen])
            return norms
    return _norms(shifted, temperatures, low)


def _norms(
    shifted: torch.Tensor, temperatures: Sequence[float], low: torch.Tensor | None
) -> torch.Tensor:
    """`log_norms`, term by term."""
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


def _norms_by_bins(shifted: torch.Tensor, temperatures: Sequence[float]) -> torch.Tensor:
    """`log_norms` at many temperatures, in the time of a few.

    The STEP likeliest tokens count one by one. Others are put into BINS by their logits, and n tokens of
    a bin with mean m and variance v count as n exp(m / t) (1 + v / 2 t^2): Taylor's series to second order.
    """
    top = torch.topk(shifted, STEP).values
    # Bin 0 is for what is above the last of `top`, with which bin 1 begins. Sums within a bin are of
    # places in it, from 0 to 1, which lose no digits.
    scale = (BINS - 1) / (top[:, -1:] - shifted.amin(dim=-1, keepdim=True)).clamp(min=1e-6)
    count, offset, spread = torch.zeros(3, len(shifted), BINS + 2, device=shifted.device)
    for row in range(len(shifted)):  # which stays in the processor's cache
        place = (top[row, -1] - shifted[row]).mul_(scale[row]).add_(1).clamp_(min=0)
        number = place.long()
        count[row].scatter_add_(0, number, torch.ones_like(place))
        offset[row].scatter_add_(0, number, place.sub_(number))
        spread[row].scatter_add_(0, number, place.square_())
    offset, spread = offset / count.clamp(min=1), spread / count.clamp(min=1)
    middle = top[:, -1:] - (torch.arange(BINS + 2, device=shifted.device) - 1 + offset) / scale
    variance = (spread - offset**2) / scale**2
    sums = _norms(top.masked_fill(top <= top[:, -1:], -torch.inf), temperatures, None).exp()
    for k, t in enumerate(temperatures):
        terms = count * weights(middle, t) * (1 + variance / (2 * t * t))
        sums[:, k] += terms[:, 1:].sum(dim=-1, dtype=torch.float64)
    return sums.log()
