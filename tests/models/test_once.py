"""Values are computed once, committed batch by batch, and then read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from factrobust.records import Call, Records, once


def call(prompt: str) -> Call:
    return Call("m", "length", prompt, "{}")


class Lengths:
    """Computes the length of each prompt, two calls a batch, last ones first."""

    def __init__(self, prompts: list[str], fail_at: int | None = None) -> None:
        self.calls = [call(prompt) for prompt in prompts]
        self.computed: list[str] = []
        self.fail_at = fail_at

    def __call__(self, numbers: list[int]) -> Iterator[tuple[list[int], list[float]]]:
        numbers = numbers[::-1]
        for start in range(0, len(numbers), 2):
            if start // 2 == self.fail_at:
                raise KeyboardInterrupt
            batch = numbers[start : start + 2]
            self.computed += [self.calls[i].prompt for i in batch]
            yield batch, [float(len(self.calls[i].prompt)) for i in batch]

    def run(self, records: Records | None) -> list[float]:
        return once(records, self.calls, self, label="lengths")


PROMPTS = ["a", "bb", "a", "ccc", "dddd", "bb"]
VALUES = [1, 2, 1, 3, 4, 2]


def test_without_records_equal_calls_are_computed_once() -> None:
    lengths = Lengths(PROMPTS)
    assert lengths.run(None) == VALUES
    assert sorted(lengths.computed) == ["a", "bb", "ccc", "dddd"]
    assert Lengths([]).run(None) == []


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.sqlite")
    first = Lengths(["bb", "dddd"])
    assert first.run(records) == [2, 4]
    second = Lengths(PROMPTS)
    assert second.run(records) == VALUES
    assert sorted(second.computed) == ["a", "ccc"]
    third = Lengths(PROMPTS)
    assert third.run(Records(tmp_path / "records.sqlite")) == VALUES
    assert third.computed == []


def test_an_interrupted_run_keeps_what_it_had(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.sqlite")
    with pytest.raises(KeyboardInterrupt):
        Lengths(PROMPTS, fail_at=1).run(records)
    again = Lengths(PROMPTS)
    assert again.run(records) == VALUES
    assert sorted(again.computed) == ["a", "bb"]


def test_progress_counts_every_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "progress.txt"
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path))
    monkeypatch.setattr("factrobust.records.QUIET_SECONDS", 0)
    Lengths(PROMPTS).run(None)
    assert "lengths 6/6" in told.read_text()
