"""Memory and time that calls take, from a model's size alone: arithmetic on round numbers.

It follows how `models.engine` works: prompts in batches under a token budget, the beginning that all
share read once, one forward pass a generated token for the whole batch. Left out are attention
itself (prompts are short), intermediate values, and loading. An encoder-decoder's encoder and
decoder count as halves of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from factrobust.models.load import Settings, Size
from factrobust.plan.demands import Demand

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
LOGITS = 64  # positions at which the head is applied at once: the default of `models.engine`
LAYER = 1e-3  # seconds that Python needs for a layer of a pass, however few tokens
COPIES = 3  # of their float32 logits: as computed, and as probabilities with what makes them


@dataclass(frozen=True)
class Device:
    """What a device achieves in such work, not what its data sheet promises.

    tflops: 10^12 operations a second in the model's dtype; bandwidth: 10^9 bytes of memory a second.
    """

    tflops: float
    bandwidth: float


# About a third of the peak of an A100 with 80 GB; two cores of a laptop, in float32.
DEVICES = {"gpu": Device(100, 1000), "cpu": Device(0.15, 15)}


def weights(size: Size, dtype: str) -> int:
    """Bytes of the weights."""
    return size.parameters * BYTES[dtype]


def memory(demand: Demand, settings: Settings, size: Size) -> float:
    """Bytes at the peak: weights, keys and values of the largest batch, logits."""
    rows = _rows(demand, settings, size)
    answers = demand.calls / demand.prompts * demand.samples
    # Every answer of an encoder-decoder holds a copy of its prompt's keys.
    prompts = demand.prompt * (answers if size.encoder_decoder else 1)
    cached = rows * (prompts + answers * demand.answer)
    a_token = 2 * size.layers * size.key_value_heads * size.head_size * BYTES[settings.dtype]
    logits = COPIES * LOGITS * size.vocabulary * 4
    return weights(size, settings.dtype) + cached * a_token + logits


def seconds(demand: Demand, settings: Settings, size: Size, device: Device) -> float:
    """Time on one device; reading prompts and making answers each take what is slowest of their
    arithmetic, fetching the weights for every pass, and Python's part in it."""
    embeddings = size.vocabulary * size.width
    body = size.parameters - embeddings * (1 if size.tied else 2)
    answered = demand.calls * demand.samples * demand.answer
    read = demand.prompts * (demand.prompt - demand.shared)
    if size.encoder_decoder:
        body, read = body // 2, demand.prompts * demand.prompt
    batches = math.ceil(demand.prompts / _rows(demand, settings, size))
    passes = 0.0
    if demand.operation in ("generate", "sample"):
        passes = batches * (demand.answer - 1)
    a_pass = max(weights(size, settings.dtype) / (device.bandwidth * 1e9), size.layers * LAYER)
    speed = device.tflops * 1e12
    reading = max(2 * body * read / speed, batches * a_pass)
    return reading + max(2 * (body + embeddings) * answered / speed, passes * a_pass)


def _rows(demand: Demand, settings: Settings, size: Size) -> float:
    """Prompts in a batch: as many as fit the budget, one at least."""
    answers = demand.calls / demand.prompts * demand.samples
    made = demand.operation in ("generate", "sample")
    new = 1 if made else demand.answer
    if size.encoder_decoder:
        tokens = (demand.prompt + new) * answers
    else:
        tokens = demand.prompt - demand.shared + new * answers
    return min(demand.prompts, max(settings.tokens_per_batch // tokens, 1))
