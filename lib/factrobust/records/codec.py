"""Values as text: compact JSON from which every float comes back bit for bit."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np

_FLOAT32 = struct.Struct("f")


def encode(value: Any) -> str:
    """JSON text of nested dicts, lists, arrays, strings, numbers and None, keys sorted.

    A number that is a float32 is written with the fewest digits that give that float32 back
    (0.1 for np.float32(0.1)); any other double in full with a capital E (1.1E0), so that decode
    returns exactly the value given in both cases. Tuples and arrays come back as lists.
    Raises TypeError for anything else.
    """
    with np.errstate(over="ignore"):  # a double beyond float32 is tried as one
        return _text(value)


def decode(text: str) -> Any:
    """The value that `encode` wrote; every float equals the one encoded, bit for bit."""
    return _DECODER.decode(text)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, (bool, int)) or value is None:
        return json.dumps(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return _text(value.tolist())  # float32 to double is exact
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return "{" + ",".join(f"{_text(k)}:{_text(value[k])}" for k in sorted(value)) + "}"
    raise TypeError(
        f"A record cannot hold {type(value).__name__!r}: give dicts with string keys, lists, "
        "NumPy arrays, strings, numbers, booleans or None."
    )


def _number(number: float) -> str:
    if not math.isfinite(number):
        return json.dumps(number)  # NaN, Infinity, -Infinity
    single = np.float32(number)
    # The second condition fails once in a billion: decode rounds twice, to double and to float32.
    if single == number and _single(text := str(single)) == number:
        return text
    text = repr(float(number))
    return text.replace("e", "E") if "e" in text else text + "E0"


def _single(text: str) -> float:
    number: float = _FLOAT32.unpack(_FLOAT32.pack(float(text)))[0]
    return number


_DECODER = json.JSONDecoder(parse_float=lambda text: float(text) if "E" in text else _single(text))
