"""How a job is cut, and what a worker keeps; the rest of answer_slice runs in test_cluster.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from factrobust.models import cluster
from factrobust.models.cluster import answer_slice, slices, versions
from factrobust.models.interface import Job


def test_slices_hold_prompts_of_like_cost_and_equal_prompts_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Beyond the shared "Q: ": 2, 6, 1, 2 and 6 tokens of 4 characters; an answer is 1, 1, 1, 2, 3.
    texts = ["a" * 8, "b" * 24, "c" * 4, "a" * 8, "d" * 24]
    answers = ["wxyz", [5], "wxyz", "wxyzwxyz", [5, 6, 7]]
    requests = [{"prompt": f"Q: {t}", "answer": a} for t, a in zip(texts, answers, strict=True)]
    job = Job("score", requests)
    # Costs: d 6 + 3, b 6 + 1, a 2 + 1 + 2, c 1 + 1; 23 in all.
    for least, expected in {
        1.0: [[4], [1], [0, 3], [2]],  # 16 pieces were allowed
        5.0: [[4], [1], [0, 3], [2]],  # 4 pieces of 5.75
        6.0: [[4, 1], [0, 3, 2]],  # 3 were allowed: 2 pieces of 11.5
        12.0: [[4, 1, 0, 3, 2]],
        99.0: [[4, 1, 0, 3, 2]],
    }.items():
        monkeypatch.setattr(cluster, "LEAST", least)
        assert slices(job) == expected
    monkeypatch.setattr(cluster, "LEAST", 1.0)
    monkeypatch.setattr(cluster, "PIECES", 2)
    assert slices(job) == [[4, 1], [0, 3, 2]]
    monkeypatch.setattr(cluster, "MOST", 8.0)  # done is 9, 16 and 21 after d, b and a
    assert slices(job) == [[4], [1], [0, 3, 2]]
    assert slices(Job("score", [])) == []


def test_samples_count_as_many_times_as_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LEAST", 10.0)
    requests = [{"prompt": prompt} for prompt in ("ka", "kb", "kc", "kd")]
    assert slices(Job("generate", requests, {"stop": []})) == [[0, 1, 2, 3]]  # 1.25 tokens each
    assert slices(Job("sample", requests, {"n": 5})) == [[0, 1], [2, 3]]  # 5.25 each


@pytest.mark.parametrize(("free", "kept"), [(60, ["one", "two"]), (40, ["two"])])
def test_a_worker_keeps_its_models_while_half_of_the_memory_is_free(
    monkeypatch: pytest.MonkeyPatch, free: int, kept: list[str]
) -> None:
    def load(name: str, dtype: str) -> Any:
        return SimpleNamespace(fingerprint=name, answer=lambda job: [([0], [f"{name} {dtype}"])])

    memory = SimpleNamespace(available=free, total=100)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(cluster.factrobust, "load_model", load, raising=False)
    monkeypatch.setattr(cluster, "_loaded", loaded := {})
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name in ("one", "two"):
        job = Job("score", [{"prompt": "?", "answer": "!"}])
        assert answer_slice(name, "float32", name, versions(), job) == [f"{name} float32"]
    assert list(loaded) == kept
