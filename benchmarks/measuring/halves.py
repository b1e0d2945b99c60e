"""A job without Dask: plain processes that each answer their part of it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import torch

from factrobust import load_model
from factrobust.models.interface import Job, Model


def in_parts(executors: Sequence[Executor], name: str, threads: int, job: Job) -> list[Any]:
    """Results of a job's requests, in their order; each executor gets every n-th request."""
    n = len(executors)
    running = [
        executor.submit(answer, name, threads, job.subset(range(part, len(job.requests), n)))
        for part, executor in enumerate(executors)
    ]
    results: list[Any] = [None] * len(job.requests)
    for part, future in enumerate(running):
        results[part::n] = future.result()
    return results


def answer(name: str, threads: int, job: Job) -> list[Any]:
    """Results of a job's requests, in their order, by this process."""
    return collect(_model(name, threads), job)


def collect(model: Model, job: Job) -> list[Any]:
    """Results of a job's requests, in their order."""
    results: list[Any] = [None] * len(job.requests)
    for numbers, values in model.answer(job):
        for i, value in zip(numbers, values, strict=True):
            results[i] = value
    return results


@functools.cache
def _model(name: str, threads: int) -> Model:
    torch.set_num_threads(threads)
    return load_model(name)
