"""What a record is: one call of a model, and the key that it is stored under."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

SCHEMA = 2  # bump when the meaning of a stored value changes (the model layer's numerics included)


class RecordsError(RuntimeError):
    """The store cannot be read or written, or lacks a call that may not be computed now."""


@dataclass(frozen=True, order=True)
class Call:
    """What determines the result of one model call; every field is text.

    `model` is the model's fingerprint ("sha256:a5fd3b62230aa5ec float32"), `parameters` the
    canonical JSON of the rest: answer, temperature, seed and the like.
    """

    model: str
    operation: str
    prompt: str
    parameters: str


def key_of(call: Call) -> bytes:
    """SHA-256 of the canonical JSON of [SCHEMA, model, operation, prompt, parameters]."""
    fields = [SCHEMA, call.model, call.operation, call.prompt, call.parameters]
    return hashlib.sha256(json.dumps(fields).encode()).digest()
