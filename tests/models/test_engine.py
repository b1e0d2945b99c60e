"""What both kinds of model share: batches that fit into memory, and checks."""

from collections import Counter
from itertools import chain
from threading import Barrier

import pytest
import torch
from whole import assert_alike, everything

from factrobust.models.engine import in_batches
from factrobust.models.interface import ModelError

# -- rule 5: batches of like size under a budget, halved when memory does not suffice --------------


def test_budget_counts_padding():
    ran = []

    def run(items):
        assert torch.is_inference_mode_enabled()
        ran.append(items)
        return items, items

    sizes = [5, 1, 4, 1, 30, 2]
    items = list(range(6))
    made = in_batches(
        items,
        sizes,
        run,
        budget=6,
        name="m",
    )
    for _ in made:
        assert not torch.is_inference_mode_enabled()
    # 1 + 1 tokens, then 2 (padded 3 x 2 = 6); 4 and 5 would be 10; 30 exceeds the budget alone.
    assert ran == [[4], [0], [2], [1, 3, 5]]  # the longest first


OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
]


def batches(error, ran):
    """Batches of sixteen items, which fail with more than three; `ran` notes their sizes."""

    def run(items):
        ran.append(len(items))
        if len(items) > 3:
            raise error
        return items, [10 * item for item in items]

    return in_batches(list(range(16)), [1] * 16, run, budget=16, name="m")


@pytest.mark.parametrize("error", OUT_OF_MEMORY)
def test_out_of_memory_halves(error):
    ran = []
    found = [values for _, values in batches(error, ran)]
    assert sorted(chain(*found)) == list(range(0, 160, 10))
    assert Counter(ran) == {16: 1, 8: 2, 4: 4, 2: 8}


def test_other_errors_pass():
    with pytest.raises(RuntimeError, match="shapes do not match"):
        list(batches(RuntimeError("shapes do not match"), []))


def test_batches_run_at_once_each_with_its_share_of_threads():
    meeting = Barrier(2, timeout=60)
    threads = torch.get_num_threads()

    def run(items):
        meeting.wait()  # for the other batch
        return items, [torch.get_num_threads()]

    torch.set_num_threads(2)
    try:
        found = in_batches([0, 1, 2, 3], [1] * 4, run, budget=1, name="m")
        assert [values for _, values in found] == [[1]] * 4
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


@pytest.fixture(params=["hidden", "encode"])
def model_and_step(request, toy_model, tiny_t5):
    """A model, and the method of its body that needs most memory."""
    if request.param == "encode":
        return tiny_t5(), request.param
    table = {
        " Kenya": {" Nairobi": 0.8, " Mombasa": 0.2},
        " Nairobi": {".": 1.0},
    }
    return toy_model(table), request.param


def scarce(inner, most):
    """A step that takes so many rows at most."""

    def step(rows, *rest):
        if len(getattr(rows, "ids", rows)) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return inner(rows, *rest)

    return step


def test_all_is_answered_with_scarce_memory(model_and_step, monkeypatch):
    model, step = model_and_step
    inner = getattr(model.body, step)
    prompts = ["??" * i + " Kenya" for i in range(12)]
    answers = [" Nairobi.", " Mombasa"] * 6

    plenty = everything(model, prompts, answers)
    monkeypatch.setattr(model.body, step, scarce(inner, 2))
    for tokens, logits in ((2048, 64), (20, 5)):
        model.tokens_per_batch = tokens
        model.logits_per_batch = logits
        assert_alike(everything(model, prompts, answers), plenty, 1e-4)
    monkeypatch.setattr(model.body, step, scarce(inner, 0))
    with pytest.raises(ModelError, match="one prompt alone does not fit into memory; shorten it"):
        model.generate(prompts)


def test_ids_of_another_vocabulary(toy_model):
    toy = toy_model({" a": {" b": 1.0}}, name="mine")
    [score] = toy.score([" a"], [[15]])  # the vocabulary holds 16
    assert len(score) == 1
    prompts = [" a", " a", " a"]
    answers = [" b", [3], [2, 16, 4]]
    foreign = "mine: 16 is no token id of this model, whose vocab"
    with pytest.raises(ModelError, match=foreign):
        toy.score(prompts, answers)
    with pytest.raises(ModelError, match=foreign):
        toy.temper(prompts, answers, [1.0])


def test_longer_than_the_context(toy_model):
    toy = toy_model({" a": {" a": 1.0}})
    toy.body.config.max_position_embeddings = 20
    fifteen = " a" * 15
    [answer] = toy.generate([fifteen])
    assert len(answer.token_ids) == 5
    with pytest.raises(ModelError, match=r"21 tokens in generate, more than the model's context"):
        toy.generate([" a", " a" * 16])
    with pytest.raises(ModelError, match=r"21 tokens in score, .* of 20; shorten the prompt"):
        toy.score([" a" * 20], [" a"])
