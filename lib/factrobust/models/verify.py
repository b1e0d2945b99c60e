"""Trust, but verify: the fast ways to ask a network, beside its own forward passes of one row.

Batches with padding, branches, a shared prefix and explicit masks are right for most architectures.
Some count places in the batch instead of positions, pass no masks on, or turn their keys by other
angles when a row is long. So a few short rows are compared when a model is loaded, and a longer one
before the first job that exceeds a length of the configuration (a window, the length of the
training)."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import torch

from factrobust.models.engine import ATTEND, SDPA, Plain, out_of_memory, set_attention
from factrobust.models.interface import ModelError

LENGTH = 14  # tokens of the longest row when a model is loaded
SHARED = 6  # tokens that all rows begin with, read before the others
ORDER = 5  # last places of a prompt at which later tokens must make no difference
FLOOR = -30.0  # log-probabilities below it count as equal
# How far log-probabilities may lie apart, as a share of the largest: rounding stays under this.
ROUNDING = {torch.float32: 1e-4, torch.float16: 0.02, torch.bfloat16: 0.05}
# Fields of configurations that are no lengths: sizes of weights, numbers of things, tokens.
NO_LENGTH = re.compile(
    r"^(num|n|d)_|_(dim|rank|heads|layers|ids?|token)$|^(hidden|intermediate|vocab)_size$"
)


class Row(NamedTuple):
    """A prompt and answers to it, all token ids. No two answers have the same first token."""

    prompt: list[int]
    answers: list[list[int]]


# Asks a model: logits [place, vocabulary] along all answers in turn.
Way = Callable[[Any, list[Row]], torch.Tensor]


def verify(model: Any) -> None:
    """Compare the ways to ask a model that was just loaded, and leave it with the fastest right
    one. ModelError for a network that does not run, whose logits are no numbers, or that looks
    ahead."""
    plain = model.plain()
    model.body = plain
    rows = rows_of(model, LENGTH)
    expected = by_own_passes(model, rows)
    why = ""
    for build in model.bodies():
        set_attention(plain.network, SDPA)
        try:
            model.body = build()
        except ModelError as error:
            why = str(error)
            continue
        why = _fault(model, rows, expected, (scored, decoded))
        if not why:
            return
    _ask_plainly(model, plain, why)


def verify_longer(model: Any, length: int) -> None:
    """Compare rows of that length, beside a short one in their batch; as `verify`."""
    fast = model.body
    rows = rows_of(model, length)
    plain = model.plain()
    model.body = plain
    expected = by_own_passes(model, rows)
    if isinstance(fast, Plain):
        return
    model.body = fast
    if fast.dense:
        set_attention(fast.network, ATTEND)
    why = _fault(model, rows, expected, (scored,))
    if why:
        _ask_plainly(model, plain, f"{why} in rows of {length} tokens")


def lengths_of(config: Any) -> set[int]:
    """Numbers in a configuration that may be lengths from which on a network computes otherwise."""
    return set(_lengths(config.to_dict()))


def _lengths(fields: dict[str, Any]) -> Iterator[int]:
    for name, value in fields.items():
        if isinstance(value, dict):
            inner = {str(key): held for key, held in value.items()}
            yield from _lengths(inner)
        elif not NO_LENGTH.search(name):
            each = value if isinstance(value, list | tuple) else [value]
            yield from (number for number in each if type(number) is int)


def rows_of(model: Any, length: int) -> list[Row]:
    """A long prompt with two answers, of `length` tokens or few more, and a short one that begins
    with the same tokens."""
    config = model.body.config
    # 1. The two answers differ in length, and both shall lie on the same side of each of these.
    lengths = lengths_of(config)
    while {length - 2, length - 1, length} & lengths:
        length += 1
    context = getattr(config, "max_position_embeddings", None)
    if context:
        length = min(length, context)
    length = max(length, 5)
    # 2. Tokens drawn from the vocabulary without special ones, repeated if it has few.
    special = {*model.tokenizer.all_special_ids, *model.end_ids}
    size = min(config.vocab_size, len(model.tokenizer))
    generator = np.random.default_rng(0)
    count = 4 * length + 64
    drawn = generator.integers(size, size=count).tolist()
    ids = [i for i in drawn if i not in special] or drawn
    ids *= ceil((length + 8) / len(ids))
    # 3. The rows.
    first, *others = dict.fromkeys(ids)
    second = others[0] if others else first
    long = ids[: length - 2]
    short = ids[: min(SHARED, length // 2)]
    return [
        Row(long, [[first, second], [second]]),
        Row([*short, second], [[first]]),
    ]


@torch.inference_mode()
def by_own_passes(model: Any, rows: list[Row]) -> torch.Tensor:
    """Log-probabilities by the network's own passes, a row each. ModelError where it gives none,
    and for a network whose predictions change with the tokens behind them."""
    kind = type(model.network).__name__
    pairs = _pairs(rows)
    try:
        logits = []
        for number, answer in pairs:
            count = ORDER + len(answer)
            logits.append(model.whole(rows[number].prompt, answer, count))
    except Exception as error:
        if out_of_memory(error):
            raise
        raise ModelError(
            f"{model.name}: {kind} does not run here on a plain row of tokens "
            f"({type(error).__name__}: {_short(error)}); this architecture is not supported"
        ) from error
    model.check_numbers(torch.cat(logits).amax(dim=-1))
    # The first two have another answer behind the same prompt.
    prompts = []
    answers = []
    for of_row, (_, answer) in zip(logits, pairs, strict=True):
        along = logprobs_of(of_row)
        count = len(answer)
        prompts.append(along[:-count])
        answers.append(along[-count - 1 :])
    if gap_of(prompts[0], prompts[1]) > rounding_of(model.network.dtype):
        raise ModelError(
            f"{model.name}: what {kind} predicts changes with the tokens behind a place, so that "
            "an answer would foretell itself; take a causal model, or set is_decoder in its "
            "config.json"
        )
    return torch.cat(answers)


def _pairs(rows: list[Row]) -> list[tuple[int, list[int]]]:
    """All answers in turn, each behind the number of its row."""
    pairs = []
    for number, row in enumerate(rows):
        pairs += [(number, answer) for answer in row.answers]
    return pairs


def scored(model: Any, rows: list[Row]) -> torch.Tensor:
    """As answers that are scored, in one batch, behind tokens that were read before."""
    *_, shortest = rows
    shared = len(shortest.prompt) - 1
    return model.forced(rows, shared)


def decoded(model: Any, rows: list[Row]) -> torch.Tensor:
    """As answers that are generated, one token after the other."""
    hidden, next_level = model.prefill([row.prompt for row in rows])
    pairs = _pairs(rows)
    answers = [answer for _, answer in pairs]
    found = [[hidden[row]] for row, _ in pairs]  # of each answer
    nodes = [row for row, _ in pairs]  # of each answer, in the level before
    for level in range(max(map(len, answers))):
        going = [i for i, answer in enumerate(answers) if len(answer) > level]
        parents = [nodes[i] for i in going]
        hidden = next_level(parents, [answers[i][level] for i in going])
        for node, i in enumerate(going):
            found[i].append(hidden[node])
            nodes[i] = node
    states = torch.cat([torch.stack(along) for along in found])
    return model.body.logits(states)


@torch.inference_mode()
def _fault(
    model: Any,
    rows: list[Row],
    expected: torch.Tensor,
    ways: Iterable[Way],
) -> str:
    """What is wrong with asking a model by its `body` in these ways; "" if nothing is."""
    try:
        found = []
        for way in ways:
            logits = way(model, rows).to(expected.device)
            found.append(logprobs_of(logits))
    except Exception as error:  # what an architecture does with our inputs is not foreseeable
        if out_of_memory(error):
            raise
        return f"{type(error).__name__}: {_short(error)}"
    for logprobs in found:
        gap = gap_of(logprobs, expected)
        if not gap <= rounding_of(model.network.dtype):  # also for NaN
            return f"its numbers in a batch differ by {gap:.2g} of the largest"
    return ""


def logprobs_of(logits: torch.Tensor) -> torch.Tensor:
    """Log-probabilities, those below FLOOR as FLOOR."""
    return logits.float().log_softmax(dim=-1).clamp(min=FLOOR)


def gap_of(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest difference of two tensors, as a share of the largest number expected."""
    largest = expected.abs().max()
    difference = (found - expected).abs().max()
    return float(difference / largest)


def rounding_of(dtype: torch.dtype) -> float:
    """The largest gap that rounding explains in a dtype."""
    return ROUNDING.get(dtype, max(ROUNDING.values()))


def _short(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:150]


def _ask_plainly(model: Any, plain: Any, why: str) -> None:
    set_attention(plain.network, SDPA)
    model.body = plain
    kind = type(plain.network).__name__
    print(
        f"factrobust: {model.name}: {kind} is asked one row at a time, which is right but slower "
        f"({why.removesuffix('.')})",
        file=sys.stderr,
    )
