"""Memory and time by hand, on a model of 1,000 parameters."""

from __future__ import annotations

import dataclasses

import pytest

from factrobust.models.load import Settings, Size
from factrobust.plan import cost
from factrobust.plan.cost import Device, memory, seconds
from factrobust.plan.demands import Demand

SIZE = Size(
    encoder_decoder=False,
    parameters=1000,
    layers=2,
    key_value_heads=1,
    head_size=4,
    width=10,
    vocabulary=20,
    tied=True,
)
SETTINGS = Settings("m", "bfloat16", "auto", 60, "two-shot", "no", SIZE, "")
# A prompt of 12 tokens, of which 4 are shared, has answers of 5 tokens.
GENERATE = Demand("facts", "generate", 12, 12, 12, 4, 5)
SCORE = Demand("facts", "score", 12, 12, 12, 4, 2)
SAMPLE = Demand("facts", "sample", 20, 10, 12, 4, 5, samples=3)
LOGITS = 3 * 64 * 20 * 4


def test_memory_of_generated_answers() -> None:
    # 8 + 1 tokens a prompt: 60 // 9 = 6 prompts a batch, each with 12 + 5 keys and values of
    # 2 layers x (key + value) x 4 numbers x 2 bytes.
    assert memory(GENERATE, SETTINGS, SIZE) == 2000 + 6 * 17 * 32 + LOGITS


def test_memory_of_scored_answers() -> None:
    # 8 + 2 tokens a prompt: 6 prompts a batch with 14 keys each; twice as much in float32.
    assert memory(SCORE, SETTINGS, SIZE) == 2000 + 6 * 14 * 32 + LOGITS
    float32 = dataclasses.replace(SETTINGS, dtype="float32")
    assert memory(SCORE, float32, SIZE) == 4000 + 6 * 14 * 64 + LOGITS


def test_memory_of_samples() -> None:
    # 2 calls of 3 samples a prompt: 8 + 6 tokens, 4 prompts a batch, each 12 + 6 x 5 keys.
    assert memory(SAMPLE, SETTINGS, SIZE) == 2000 + 4 * 42 * 32 + LOGITS


def test_memory_of_an_encoder_decoder() -> None:
    # Each of the 6 answers has a copy of the prompt: (12 + 1) x 6 tokens are more than a batch may
    # have, so it is 1 prompt, with 6 x (12 + 5) keys.
    size = dataclasses.replace(SIZE, encoder_decoder=True)
    assert memory(SAMPLE, SETTINGS, size) == 2000 + 102 * 32 + LOGITS


def test_a_batch_has_one_prompt_at_least_and_no_more_than_there_are() -> None:
    tiny = dataclasses.replace(SETTINGS, tokens_per_batch=3)
    assert memory(SCORE, tiny, SIZE) == 2000 + 14 * 32 + LOGITS
    large = dataclasses.replace(SETTINGS, tokens_per_batch=10**6)
    assert memory(SCORE, large, SIZE) == 2000 + 12 * 14 * 32 + LOGITS


def test_time_of_arithmetic() -> None:
    # The body has 1000 - 20 x 10 parameters. It reads 12 x 8 tokens and makes 12 x 5 with the head.
    slow = Device(tflops=1e-9, bandwidth=1e9)  # 1,000 operations a second
    expected = 2 * 800 * 96 / 1000 + 2 * 1000 * 60 / 1000
    assert seconds(GENERATE, SETTINGS, SIZE, slow) == pytest.approx(expected)
    # An embedding of its own is no arithmetic: the body has 600, the head 200 as before.
    untied = dataclasses.replace(SIZE, tied=False)
    expected = 2 * 600 * 96 / 1000 + 2 * 800 * 60 / 1000
    assert seconds(GENERATE, SETTINGS, untied, slow) == pytest.approx(expected)
    # The encoder (half the body) reads whole prompts, the decoder (the other half) makes answers.
    size = dataclasses.replace(SIZE, encoder_decoder=True)
    expected = 2 * 400 * 144 / 1000 + 2 * 600 * 60 / 1000
    assert seconds(GENERATE, SETTINGS, size, slow) == pytest.approx(expected)


def test_time_of_fetching_weights() -> None:
    # Two batches of 6 prompts: a pass each to read them, and 4 more each for 5 tokens. A pass
    # fetches 2,000 bytes at 1,000 a second.
    narrow = Device(tflops=1e6, bandwidth=1e-6)
    assert seconds(GENERATE, SETTINGS, SIZE, narrow) == pytest.approx((2 + 8) * 2)
    # Scoring is reading: 2 batches.
    assert seconds(SCORE, SETTINGS, SIZE, narrow) == pytest.approx(2 * 2)


def test_a_pass_takes_its_time_on_any_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LAYER", 0.5)
    fast = Device(tflops=1e6, bandwidth=1e6)
    assert seconds(GENERATE, SETTINGS, SIZE, fast) == pytest.approx((2 + 8) * 2 * 0.5)
