"""Committed records: damage and another version are noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factrobust.records import INDEX, Records, RecordsError


def test_every_flipped_byte_of_a_file_is_found(base: Path, toy: Any) -> None:
    file = next(base.glob("*.score.*"))
    data = file.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.choice(len(data), size=100, replace=False):
        flipped = bytearray(data)
        flipped[position] ^= 1 << rng.integers(8)
        file.write_bytes(flipped)
        with pytest.raises(RecordsError, match=rf"{file.name} is damaged .*git checkout"):
            Records(None, base).get(toy.calls(1))
    file.unlink()
    with pytest.raises(RecordsError, match=rf"{file.name} is damaged \(No such file"):
        Records(None, base).get(toy.calls(1))


def test_flipped_bytes_of_the_index_never_change_a_value(base: Path, toy: Any) -> None:
    data = (base / INDEX).read_bytes()
    for position in range(len(data)):
        (base / INDEX).write_bytes(data[:position] + b"?" + data[position + 1 :])
        try:
            values = Records(None, base).get(toy.calls(50))
        except RecordsError:
            continue
        assert values in (list(range(50)), [None] * 50), position


def test_another_schema_is_named(base: Path, toy: Any) -> None:
    index = (base / INDEX).read_text()
    (base / INDEX).write_text(index.replace('"schema": 2', '"schema": 7'))
    sentence = "holds records of schema 7, but this library reads schema 2: run `make reproduce"
    with pytest.raises(RecordsError, match=sentence):
        Records(None, base).get(toy.calls(1))
