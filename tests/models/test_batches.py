"""Rule 5: batches of like size under a budget, halved when memory does not suffice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from factrobust.models.engine import in_batches
from factrobust.models.interface import ModelError


def test_budget_counts_padding() -> None:
    ran: list[list[int]] = []

    def run(items: list[int]) -> tuple[list[int], list[Any]]:
        ran.append(items)
        return items, items

    sizes = [5, 1, 4, 1, 30, 2]
    done = [i for ids, _ in in_batches(list(range(6)), sizes, run, budget=8, name="m") for i in ids]
    # 1 + 1 tokens, then 2 (padded 3 x 2 = 6); 4 and 5 would be 10; 30 exceeds the budget alone.
    assert ran == [[1, 3, 5], [2], [0], [4]]
    assert sorted(done) == list(range(6))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_out_of_memory_halves(error: RuntimeError) -> None:
    ran: list[int] = []

    def run(items: list[int]) -> tuple[list[int], list[Any]]:
        ran.append(len(items))
        if len(items) > 3:
            raise error
        return items, [10 * i for i in items]

    done = list(in_batches(list(range(16)), [1] * 16, run, budget=16, name="m"))
    assert ran == [16, 8, 4, 2, 2, 4, 2, 2, 8, 4, 2, 2, 4, 2, 2]
    assert [v for _, values in done for v in values] == [10 * i for i in range(16)]


def test_other_errors_pass() -> None:
    def run(items: list[int]) -> tuple[list[int], list[Any]]:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        list(in_batches([1, 2], [1, 1], run, budget=9, name="m"))


def test_inference_mode_stays_inside() -> None:
    def run(items: list[int]) -> tuple[list[int], list[Any]]:
        assert torch.is_inference_mode_enabled()
        return items, items

    for _ in in_batches([0, 1], [1, 1], run, budget=1, name="m"):
        assert not torch.is_inference_mode_enabled()


@pytest.fixture
def scarce(toy_model: Callable[..., Any]) -> tuple[Any, list[int]]:
    """A toy whose body fails above a number of rows, given in the list."""
    toy = toy_model({" Kenya": {" Nairobi": 0.8, " Mombasa": 0.2}, " Nairobi": {".": 1.0}})
    most = [10**6]
    inner = toy.body.hidden

    def hidden(rows: Any, *rest: Any) -> Any:
        if len(rows.ids) > most[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return inner(rows, *rest)

    toy.body.hidden = hidden
    return toy, most


def test_all_is_answered_with_scarce_memory(scarce: tuple[Any, list[int]]) -> None:
    toy, most = scarce
    prompts = [f"{'?' * (2 * i)} Kenya" for i in range(12)]
    answers = [" Nairobi.", " Mombasa"] * 6
    plenty = (
        toy.generate(prompts),
        toy.sample(prompts, temperature=1.0, n=5),
        [s.tolist() for s in toy.score(prompts, answers)],
        toy.temper(prompts, answers, [0.5, 2.0]).tolist(),
    )
    most[0] = 2
    assert toy.generate(prompts) == plenty[0]
    assert toy.sample(prompts, temperature=1.0, n=5) == plenty[1]
    assert [s.tolist() for s in toy.score(prompts, answers)] == plenty[2]
    np.testing.assert_array_equal(toy.temper(prompts, answers, [0.5, 2.0]), plenty[3])
    most[0] = 0
    with pytest.raises(ModelError, match="one prompt alone does not fit into memory; shorten it"):
        toy.generate(prompts)
