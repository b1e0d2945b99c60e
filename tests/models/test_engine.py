"""What both kinds of model share: batches that fit into memory, and checks."""

from itertools import chain
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import torch

from factrobust.models.engine import in_batches
from factrobust.models.interface import ModelError

# -- rule 5: batches of like size under a budget, halved when memory does not suffice --------------


def test_budget_counts_padding():
    ran: list[list[int]] = []

    def run(items: list[int]) -> tuple[list[int], list[Any]]:
        assert torch.is_inference_mode_enabled()
        ran.append(items)
        return items, items

    done = []
    for numbers, _ in in_batches(list(range(6)), [5, 1, 4, 1, 30, 2], run, budget=8, name="m"):
        assert not torch.is_inference_mode_enabled()
        done += numbers
    # 1 + 1 tokens, then 2 (padded 3 x 2 = 6); 4 and 5 would be 10; 30 exceeds the budget alone.
    assert ran == [[4], [0], [2], [1, 3, 5]]  # the longest first
    assert sorted(done) == list(range(6))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        RuntimeError("shapes do not match"),
    ],
)
def test_out_of_memory_halves_and_other_errors_pass(error):
    ran: list[int] = []

    def run(items: list[int]) -> tuple[list[int], list[Any]]:
        ran.append(len(items))
        if len(items) > 3:
            raise error
        return items, [10 * i for i in items]

    batches = in_batches(list(range(16)), [1] * 16, run, budget=16, name="m")
    if "shapes" in str(error):
        with pytest.raises(RuntimeError, match="shapes"):
            list(batches)
        return
    assert sorted(v for _, values in batches for v in values) == [10 * i for i in range(16)]
    assert sorted(ran) == [*[2] * 8, *[4] * 4, 8, 8, 16]


def test_batches_run_at_once_each_with_its_share_of_threads():
    meeting = Barrier(2, timeout=60)
    threads = torch.get_num_threads()

    def run(items: list[int]) -> tuple[list[int], list[Any]]:
        meeting.wait()  # for the other batch
        return items, [torch.get_num_threads()]

    torch.set_num_threads(2)
    try:
        found = list(in_batches([0, 1, 2, 3], [1] * 4, run, budget=1, name="m"))
        assert [threads for _, values in found for threads in values] == [1] * 4
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("step", ["hidden", "encode"])
def test_all_is_answered_with_scarce_memory(step, toy_model, tiny_t5, monkeypatch):
    table = {" Kenya": {" Nairobi": 0.8, " Mombasa": 0.2}, " Nairobi": {".": 1.0}}
    model = tiny_t5() if step == "encode" else toy_model(table)
    prompts = [f"{'?' * (2 * i)} Kenya" for i in range(12)]
    answers = [" Nairobi.", " Mombasa"] * 6

    def everything() -> tuple[list[str], list[Any]]:
        samples = model.sample(prompts, temperature=1.0, n=5)
        generations = [*model.generate(prompts), *chain(*samples)]
        numbers = [*model.score(prompts, answers), *model.temper(prompts, answers, [0.5, 2.0])]
        return [g.text for g in generations], [*(g.logprobs for g in generations), *numbers]

    (texts, plenty), inner = everything(), getattr(model.body, step)
    for most, tokens, logits in ((2, 2048, 64), (2, 20, 5), (0, 20, 5)):

        def scarce(rows: Any, *rest: Any, most: int = most) -> Any:
            if len(rows if step == "encode" else rows.ids) > most:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return inner(rows, *rest)

        monkeypatch.setattr(model.body, step, scarce)
        model.tokens_per_batch = tokens
        model.logits_per_batch = logits
        if most:
            assert everything()[0] == texts
            for found, expected in zip(everything()[1], plenty, strict=True):
                np.testing.assert_allclose(found, expected, atol=1e-4)
    with pytest.raises(ModelError, match="one prompt alone does not fit into memory; shorten it"):
        model.generate(prompts)


def test_ids_of_another_vocabulary(toy_model):
    toy = toy_model({" a": {" b": 1.0}}, name="mine")
    assert toy.score([" a"], [[15]])[0].shape == (1,)  # the vocabulary holds 16
    for ask in (toy.score, lambda p, a: toy.temper(p, a, [1.0])):
        with pytest.raises(ModelError, match="mine: 16 is no token id of this model, whose vocab"):
            ask([" a", " a", " a"], [" b", [3], [2, 16, 4]])


def test_longer_than_the_context(toy_model):
    toy = toy_model({" a": {" a": 1.0}})
    toy.body.config.max_position_embeddings = 20
    assert len(toy.generate([" a" * 15])[0].token_ids) == 5
    with pytest.raises(ModelError, match=r"21 tokens in generate, more than the model's context"):
        toy.generate([" a", " a" * 16])
    with pytest.raises(ModelError, match=r"21 tokens in score, .* of 20; shorten the prompt"):
        toy.score([" a" * 20], [" a"])
