"""Greedy decoding and sampling over a tree of prefixes.

Each distinct prefix of the samples of a prompt is a node. A level of the tree is one forward pass,
in which every node sees the prompt and its own ancestors. Samples in a node share its logits, at
any temperature."""

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
# exp(x) is computed as 2 ** (x log2 e): torch's float32 exp2 takes a quarter of the time of its
# exp.
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

# The hidden states [node, width] of the next level's nodes. Arguments: the parent of each node in
# the level before (ascending), and its token.
NextLevel = Callable[[list[int], list[int]], torch.Tensor]


class Best(NamedTuple):
    """The likeliest tokens [row, k] and their logits, best first."""

    values: torch.Tensor
    indices: torch.Tensor


@dataclass
class Stream:
    """An unfinished answer, whose lists hold a value a position (see `Generation`)."""

    temperature: float
    uniforms: np.ndarray  # random numbers [token, halving]
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tempered: list[float] = field(default_factory=list)
    top: list[tuple[list[int], list[float]]] = field(default_factory=list)
    curve: list[np.ndarray] = field(default_factory=list)  # a log-probability a temperature
    entropies: list[float] = field(default_factory=list)


def new_streams(request: dict[str, Any], settings: dict[str, Any]) -> list[Stream]:
    """The streams of one request: one for a greedy answer, else `n` samples."""
    if "n" not in settings:
        return [Stream(0.0, NO_NUMBERS)]
    prompt = request["prompt"]
    temperature = request["temperature"]
    streams = []
    for index in range(settings["n"]):
        numbers = uniforms(
            settings["seed"],
            prompt,
            temperature,
            index,
            settings["max_new_tokens"],
        )
        streams.append(Stream(temperature, numbers))
    return streams


def uniforms(
    seed: int,
    prompt: str,
    temperature: float,
    index: int,
    n: int,
) -> np.ndarray:
    """Numbers in [0, 1) for `n` tokens, [token, halving]. They depend on the sample alone."""
    key = sample_key(seed, prompt, temperature, index)
    data = hashlib.shake_256(key).digest(8 * n * HALVINGS)
    words = np.frombuffer(data, dtype="<u8")
    numbers = (words >> 11) * 2.0**-53
    return numbers.reshape(n, HALVINGS)


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

    `hidden` [prompt, width] are the last hidden states of the prompts. `head` gives the logits of
    at most `chunk` of them. `ended(prompt, ids)` says whether an answer is complete. `check` is
    given the highest logits of nodes, and raises an error for what is no number.

    Example: three streams of one prompt draw " a", " a" and " b". One forward pass gives level 1
    with two nodes: " a" with two streams, and " b". If " a" is followed by " x" and " y", and " b"
    by the end, level 2 has the nodes " a x" and " a y"."""
    nodes = list(enumerate(streams))  # (prompt, its streams that share this prefix)
    last = settings["max_new_tokens"] - 1
    for level in range(settings["max_new_tokens"]):
        # 1. Every stream draws its next token from its node's distribution.
        for start in range(0, len(nodes), chunk):
            end = start + chunk
            groups = [group for _, group in nodes[start:end]]
            logits = head(hidden[start:end])
            _pick(logits, groups, level, check, settings)
        # 2. Streams of one node with the same token form a child of it.
        children: dict[tuple[int, int], list[Stream]] = {}
        for node, (_, group) in enumerate(nodes):
            for stream in group:
                child = node, stream.ids[-1]
                children.setdefault(child, []).append(stream)
        # 3. Complete answers go no further.
        parents = []
        drawn = []
        next_nodes = []
        for (parent, token), group in children.items():
            prompt, _ = nodes[parent]
            if not ended(prompt, group[0].ids):
                parents.append(parent)
                drawn.append(token)
                next_nodes.append((prompt, group))
        if level == last or not next_nodes:
            return
        # 4. One forward pass gives the next level.
        hidden = next_level(parents, drawn)
        nodes = next_nodes


def _pick(
    logits: torch.Tensor,
    groups: list[list[Stream]],
    level: int,
    check: Callable[[torch.Tensor], None],
    settings: Mapping[str, Any],
) -> None:
    """Append one token, with its log-probabilities, to each stream of `groups` [node].

    `logits` are [node, vocabulary]. Sums are float64: a quarter of a million float32 terms lose
    digits."""
    highest = logits.amax(dim=-1, keepdim=True)
    check(highest)
    logits -= highest
    norm = log_norms(logits, [1.0]).float()
    by_temperature = _by_temperature(groups)
    greedy = "n" not in settings
    best = None
    if 0 in by_temperature:
        best = likeliest(logits, TOP if greedy else 1)
    # 1. A token for each stream.
    cuts = given_cuts(settings)
    for temperature, members in by_temperature.items():
        nodes = list(members)
        streams = list(members.values())
        plain = logits
        if len(nodes) < len(logits):
            plain = logits[nodes]
        t = max(temperature, EPSILON)
        cut = plain
        if cuts:
            lowest = floors(plain, [t], cuts)
            cut = plain.masked_fill(plain < lowest, -torch.inf)
        if temperature == 0 and best:
            drawn = best.indices[nodes, :1]
            tempered = -log_norms(cut, [EPSILON]).float()
        else:
            drawn, tempered = _sampled(cut, t, level, streams)
        logprobs = plain.gather(1, drawn) - norm[nodes]
        _append(streams, drawn, logprobs, tempered)
    # 2. What a greedy answer has besides.
    if best and greedy:
        _append_further(groups, logits, best, norm, settings.get("temperatures"))


def _append_further(
    groups: list[list[Stream]],
    logits: torch.Tensor,
    best: Best,
    norm: torch.Tensor,
    temperatures: Sequence[float] | None,
) -> None:
    """Write the alternatives, and what is asked for at temperatures, to the streams of `groups`
    [node]. `norm` [node, 1] is the log of the sum of the logits' exponentials."""
    if temperatures:
        curves, entropies = _curves(logits, best, temperatures, norm)
        for group, curve, entropy in zip(groups, curves, entropies, strict=True):
            for stream in group:
                stream.curve.append(curve)
                stream.entropies.append(entropy)
    ids = best.indices.tolist()
    values = (best.values - norm).tolist()
    for group, names, logprobs in zip(groups, ids, values, strict=True):
        for stream in group:  # asked several times
            stream.top.append((names, logprobs))


Members = dict[int, list[Stream]]  # streams by their node


def _by_temperature(groups: list[list[Stream]]) -> dict[float, Members]:
    """The streams of `groups` [node] by their temperature, and then by their node."""
    found: dict[float, Members] = {}
    for node, group in enumerate(groups):
        for stream in group:
            members = found.setdefault(stream.temperature, {})
            members.setdefault(node, []).append(stream)
    return found


def _sampled(
    cut: torch.Tensor,
    t: float,
    level: int,
    groups: list[list[Stream]],
) -> tuple[torch.Tensor, torch.Tensor]:
    """A token drawn for each stream of `groups` [node], and its log-probability at temperature t,
    both [node, stream]. `cut` [node, vocabulary] are logits, minus infinity where they are cut
    off."""
    mass = weights(cut, t)
    before = sums_before(mass)
    most = max(len(group) for group in groups)
    numbers = np.zeros((len(groups), most, HALVINGS))
    for node, group in enumerate(groups):
        for k, stream in enumerate(group):
            numbers[node, k] = stream.uniforms[level]
    on_device = torch.from_numpy(numbers).to(cut.device)
    drawn = _draw(mass, before, on_device)
    log_total = before[:, -1:].log().float()
    return drawn, cut.gather(1, drawn) / t - log_total


def _append(
    groups: list[list[Stream]],
    drawn: torch.Tensor,
    logprobs: torch.Tensor,
    tempered: torch.Tensor,
) -> None:
    """Write the tokens and their log-probabilities [node, stream] to the streams of `groups`
    [node]. With one column, as for greedy answers, all streams of a node get the same."""
    rows = zip(
        groups,
        drawn.tolist(),
        logprobs.tolist(),
        tempered.tolist(),
        strict=True,
    )
    for group, ids, row_logprobs, row_tempered in rows:
        for k, stream in enumerate(group):
            column = min(k, len(ids) - 1)
            stream.ids.append(ids[column])
            stream.logprobs.append(row_logprobs[column])
            stream.tempered.append(row_tempered[column])


def given_cuts(settings: Mapping[str, Any]) -> dict[str, float]:
    """The truncations that `settings` ask for."""
    given = {name: settings.get(name) for name in CUTS}
    return {name: value for name, value in given.items() if value is not None}


def likeliest(logits: torch.Tensor, k: int) -> Best:
    """The `k` likeliest tokens of each row of `logits` [row, vocabulary]. Where logits tie the
    lowest token id comes first, as in argmax and so in transformers' greedy decoding."""
    if k == 1:
        first = logits.argmax(dim=-1, keepdim=True)
        return Best(logits.gather(1, first), first)
    # One more shows whether the last one ties with a token that is left out.
    count = min(k + 1, logits.shape[1])
    values, indices = torch.topk(logits, count)
    before = values[:, :-1]
    ties = (values[:, 1:] == before).any(dim=-1)
    for row in ties.nonzero()[:, 0].tolist():
        order = logits[row].argsort(descending=True, stable=True)
        indices[row] = order[:count]
    return Best(values[:, :k], indices[:, :k])


def _curves(
    logits: torch.Tensor,
    best: Best,
    temperatures: Sequence[float],
    norm: torch.Tensor,
) -> tuple[np.ndarray, list[float]]:
    """log P_t of the likeliest token [node, temperature], and the entropy at t = 1 of each node.
    That token's logit is 0. `norm` is the log of the sum of the logits' exponentials."""
    grid = [max(t, EPSILON) for t in temperatures]
    # Ten tokens are enough where a whole vocabulary of tokens like the tenth would add nothing.
    temperature = torch.tensor(grid, device=logits.device)
    tail = best.values[:, -1:].double() / temperature
    negligible = tail + math.log(logits.shape[1]) < NOTHING
    few = negligible.all(dim=0).tolist()
    norms = log_norms(best.values, grid)
    all_tokens = []
    for k, t in enumerate(grid):
        if t == 1:
            norms[:, k] = norm[:, 0].double()
        elif not few[k]:
            all_tokens.append(k)
    others = [grid[k] for k in all_tokens]
    norms[:, all_tokens] = log_norms(logits, others)
    # Entropy is the log of the norm minus the mean logit.
    total = torch.zeros(len(logits), dtype=torch.float64, device=logits.device)
    for block in logits.split(BLOCK, dim=1):
        exponentials = (block * LOG2E).clamp_(min=LOWEST).exp2_()
        total += torch.linalg.vecdot(exponentials, block)
    log_norm = norm[:, 0]
    mean = total / log_norm.double().exp()
    curves = (-norms).float().cpu().numpy()
    return curves, (log_norm - mean).tolist()


def sums_before(mass: torch.Tensor) -> torch.Tensor:
    """Summed weight of the tokens before each block of STEP tokens, and of all: float64 [node,
    block]. `mass` [node, vocabulary] are the weights. Sums of 64 are float32, larger ones
    float64."""
    spare = -mass.shape[1] % STEP
    if spare:
        mass = torch.nn.functional.pad(mass, (0, spare))
    small = mass.unflatten(1, (-1, 64)).sum(dim=-1)
    in_blocks = small.unflatten(1, (-1, STEP // 64))
    blocks = in_blocks.sum(dim=-1, dtype=torch.float64)
    sums = blocks.cumsum(dim=-1)
    return torch.nn.functional.pad(sums, (1, 0))


def _of_block(mass: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """The weights of the tokens of each `block` [node, ...], [node, ..., STEP]."""
    size = mass.shape[1]
    offsets = torch.arange(STEP, device=mass.device)
    places = block[..., None] * STEP + offsets
    inside = places.clamp(max=size - 1)
    found = mass.gather(1, inside.flatten(1)).view(places.shape)
    return found.masked_fill(places >= size, 0.0)


def _draw(
    mass: torch.Tensor,
    before: torch.Tensor,
    numbers: torch.Tensor,
) -> torch.Tensor:
    """A token for each stream, [node, stream]: the vocabulary is halved until one token is left.

    `mass` [node, vocabulary] are the tokens' weights, and `before` their `sums_before`. `numbers`
    [node, stream, halving] choose between the halves by their weights.

    One number and the inverse distribution function would give the same distribution. But at high
    temperatures the last digits of all weights together decide which token is hit: another batch or
    processor changes one sample in a hundred. The weight of a half hardly depends on last digits.
    """
    size = mass.shape[1]
    offsets = torch.arange(STEP, device=mass.device)
    low = torch.zeros(
        numbers.shape[:2],
        dtype=torch.long,
        device=mass.device,
    )
    high = torch.full_like(low, size)
    # Summed weights of the tokens before `low`, and before `high`.
    below_low = torch.zeros_like(numbers[..., 0])
    below_high = before[:, -1:].expand_as(below_low)
    for k in range((size - 1).bit_length()):
        # 1. The summed weight of the tokens before the middle.
        middle = (low + high) // 2
        block = middle // STEP
        offset = middle - block * STEP
        inside = offsets < offset[..., None]
        part = _of_block(mass, block).masked_fill(~inside, 0.0)
        of_part = part.sum(dim=-1, dtype=torch.float64)
        below_middle = before.gather(1, block) + of_part
        # 2. Which half is drawn.
        drawn = numbers[..., k] * (below_high - below_low)
        upper = drawn >= below_middle - below_low
        low = torch.where(upper, middle, low)
        high = torch.where(upper, high, middle)
        below_low = torch.where(upper, below_middle, below_low)
        below_high = torch.where(upper, below_high, below_middle)
    return low


def floors(
    shifted: torch.Tensor,
    temperatures: Sequence[float],
    cuts: Mapping[str, float],
) -> torch.Tensor:
    """The lowest logit that truncation leaves at each temperature, [row, temperature].

    `shifted` are logits minus their maximum, [row, vocabulary]. `Model.temper` explains `cuts`;
    tokens that tie with the last one stay."""
    shape = (len(shifted), len(temperatures))
    low = torch.full(shape, -torch.inf, device=shifted.device)
    if "top_k" in cuts:
        k = min(int(cuts["top_k"]), shifted.shape[1])
        low[:] = torch.topk(shifted, k).values[:, -1:]
    if "top_p" in cuts:
        if "top_k" in cuts:  # few are left to be ranked
            least = low[:, :1]
            counts = (shifted >= least).sum(dim=-1)
            ranked = torch.topk(shifted, int(counts.max())).values
            ranked = ranked.masked_fill(ranked < least, -torch.inf)
        else:
            ranked = descending(shifted)
        for column, t in enumerate(temperatures):
            low[:, column] = _nucleus_floor(ranked, t, cuts["top_p"])
    if "min_p" in cuts:
        temperature = torch.tensor(temperatures, device=low.device)
        least = temperature * math.log(cuts["min_p"])
        low = torch.maximum(low, least.to(low))
    return low


def _nucleus_floor(ranked: torch.Tensor, t: float, top_p: float) -> torch.Tensor:
    """The logit [row] at which the summed weight of the likeliest tokens reaches `top_p` of all.
    `ranked` [row, vocabulary] are logits in descending order."""
    mass = weights(ranked, t)
    before = sums_before(mass)
    wanted = top_p * before[:, -1:]
    inner = before[:, 1:-1].contiguous()
    block = torch.searchsorted(inner, wanted)
    in_block = _of_block(mass, block)[:, 0]
    sums = in_block.double().cumsum(dim=-1)
    within = before.gather(1, block) + sums
    last = block * STEP + torch.searchsorted(within, wanted)
    last = last.clamp(max=ranked.shape[1] - 1)
    return ranked.gather(1, last)[:, 0]


def descending(logits: torch.Tensor) -> torch.Tensor:
    if logits.is_cuda:
        return logits.sort(dim=-1, descending=True).values
    # NumPy's sort of float32 takes 1.3 ms for 262,144 numbers, torch's 44.
    negative = -logits.numpy()
    negative.sort(axis=-1)
    return torch.from_numpy(np.negative(negative, out=negative))


def weights(shifted: torch.Tensor, t: float = 1.0) -> torch.Tensor:
    """exp(shifted / t) for values of at most 0; results under 2e-38 are 0."""
    scaled = shifted * (LOG2E / t)
    exponentials = scaled.clamp_(min=LOWEST).exp2_()
    return torch.threshold_(exponentials, 2e-38, 0.0)


def log_norms(
    shifted: torch.Tensor,
    temperatures: Sequence[float],
    low: torch.Tensor | None = None,
) -> torch.Tensor:
    """log sum_j exp(z_j / t) for each row of `shifted` and each t, float64 [row, temperature].

    `shifted` are logits minus their maximum, float32 [row, vocabulary]. With `low` [row,
    temperature] (see `floors`), smaller logits do not count. Sums within blocks are float32, over
    blocks float64."""
    if shifted.shape[1] < 4 * BINS:
        return _norms(shifted, temperatures, low)
    if low is None:
        if len(temperatures) >= MANY and shifted.amin() > -WIDE:
            return _norms_by_bins(shifted, temperatures)
        return _norms(shifted, temperatures, low)
    top = torch.topk(shifted, STEP).values
    is_in_top = top[:, -1:] < low
    few = is_in_top.all(dim=0)  # of these the rest of the vocabulary is cut off
    if not few.any():
        return _norms(shifted, temperatures, low)
    norms = torch.empty(low.shape, dtype=torch.float64, device=low.device)
    for columns, logits in ((few, top), (~few, shifted)):
        chosen = columns.nonzero()[:, 0].tolist()
        grid = [temperatures[k] for k in chosen]
        norms[:, chosen] = _norms(logits, grid, low[:, chosen])
    return norms


def _norms(
    shifted: torch.Tensor,
    temperatures: Sequence[float],
    low: torch.Tensor | None,
) -> torch.Tensor:
    """`log_norms`, term by term."""
    rows, vocabulary = shifted.shape
    device = shifted.device
    sums = torch.zeros(rows, len(temperatures), dtype=torch.float64, device=device)
    buffer = torch.empty(rows, min(BLOCK, vocabulary), device=device)
    for block in shifted.split(BLOCK, dim=1):
        scaled = buffer[:, : block.shape[1]]
        for k, t in enumerate(temperatures):
            torch.mul(block, LOG2E / t, out=scaled)
            if low is not None:
                is_cut = block < low[:, k, None]
                scaled.masked_fill_(is_cut, -torch.inf)
            exponentials = scaled.clamp_(min=LOWEST).exp2_()
            sums[:, k] += exponentials.sum(dim=-1)
    return sums.log()


class Bins(NamedTuple):
    """Tokens in bins by their logit, each [row, bin]: how many, their mean logit and its
    variance."""

    tokens: torch.Tensor
    mean: torch.Tensor
    variance: torch.Tensor


def _bins(shifted: torch.Tensor, highest: torch.Tensor) -> Bins:
    """The tokens of `shifted` [row, vocabulary] from `highest` [row, 1] down, in BINS of equal
    width. Bin 0 is for what is above `highest`, with which bin 1 begins. Sums within a bin are of
    places in it, from 0 to 1, which lose no digits."""
    device = shifted.device
    span = highest - shifted.amin(dim=-1, keepdim=True)
    scale = (BINS - 1) / span.clamp(min=1e-6)  # bins a nat
    count, offset, square = torch.zeros(3, len(shifted), BINS + 2, device=device)
    for row in range(len(shifted)):  # which stays in the processor's cache
        place = highest[row] - shifted[row]
        place.mul_(scale[row]).add_(1).clamp_(min=0)
        number = place.long()
        count[row].scatter_add_(0, number, torch.ones_like(place))
        offset[row].scatter_add_(0, number, place.sub_(number))
        square[row].scatter_add_(0, number, place.square_())
    tokens = count.clamp(min=1)
    offset = offset / tokens
    square = square / tokens
    number_of_bin = torch.arange(BINS + 2, device=device)
    distance = number_of_bin - 1 + offset
    mean = highest - distance / scale
    variance = (square - offset**2) / scale**2
    return Bins(count, mean, variance)


def _norms_by_bins(
    shifted: torch.Tensor,
    temperatures: Sequence[float],
) -> torch.Tensor:
    """`log_norms` at many temperatures, in the time of a few.

    The STEP likeliest tokens count one by one. Others are put into BINS by their logits, and n
    tokens of a bin with mean m and variance v count as n exp(m / t) (1 + v / 2 t^2): Taylor's
    series to second order."""
    top = torch.topk(shifted, STEP).values
    last = top[:, -1:]
    bins = _bins(shifted, last)
    above = top.masked_fill(top <= last, -torch.inf)
    sums = _norms(above, temperatures, None).exp()
    for k, t in enumerate(temperatures):
        spread = 1 + bins.variance / (2 * t * t)
        terms = bins.tokens * weights(bins.mean, t) * spread
        sums[:, k] += terms[:, 1:].sum(dim=-1, dtype=torch.float64)
    return sums.log()
