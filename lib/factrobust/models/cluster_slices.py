"""A slice: some requests of one job, cut from it on the machine that asks, answered on a worker.

The slices depend on the job alone, not on the workers, so that any number of them gives the same
numbers; one process, which makes other batches, gives the same to 1e-4 nats.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import threading
from importlib import metadata
from pathlib import Path
from typing import Any

import factrobust
from factrobust.models.base import Job, Model, ModelError

# A job's slices: many enough for many workers, unless they would get so small that batches are
# poorly filled, and none so large that a dead worker costs minutes. Sizes are in tokens.
PIECES, LEAST, MOST = 64, 256, 8192
CHARACTERS = 4  # of a token, roughly: the tokenizer stays with the weights


def slices(job: Job) -> list[list[int]]:
    """Numbers of the requests of each slice, the costly prompts first.

    Requests that ask the same prompt share their computation, so they stay together; prompts of
    like cost go together, because a batch is padded to its longest. All slices cost about the same,
    and few slices are a power of two of them: equal shares for two or four workers.
    """
    prompts: dict[str, list[int]] = {}
    for i, request in enumerate(job.requests):
        prompts.setdefault(request["prompt"], []).append(i)
    shared = _common_length(min(prompts, default=""), max(prompts, default=""))
    costs = {
        prompt: (len(prompt) - shared) / CHARACTERS + sum(_cost(job, i) for i in numbers)
        for prompt, numbers in prompts.items()
    }
    total = sum(costs.values())
    pieces = 1
    while 2 * pieces <= min(total / LEAST, PIECES):
        pieces *= 2
    share = min(total / pieces, MOST)
    made: list[list[int]] = []
    done = 0.0
    for prompt in sorted(costs, key=lambda prompt: (-costs[prompt], prompt)):
        if done >= len(made) * share:
            made.append([])
        made[-1] += prompts[prompt]
        done += costs[prompt]
    return made


def _common_length(first: str, last: str) -> int:
    differ = (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return next(differ, min(len(first), len(last)))


def _cost(job: Job, number: int) -> float:
    """Tokens of an answer that pass through the network together with its prompt's."""
    answer = job.requests[number].get("answer")
    if answer is None:
        return float(job.settings.get("n", 1))  # what is generated comes later, token by token
    return len(answer) / (CHARACTERS if isinstance(answer, str) else 1)


# -- on the workers --------------------------------------------------------------------------------

_one_at_a_time = threading.Lock()  # a model keeps the beginning that prompts share
_loaded: dict[str, Model] = {}  # by fingerprint


def answer_slice(
    name: str, dtype: str, fingerprint: str, expected: dict[str, str], job: Job
) -> list[Any]:
    """The results of a slice's requests, in their order; runs on a worker.

    Raises ModelError if its `versions` are not the expected ones, or if the weights that it finds by
    that name have another fingerprint.
    """
    for what, version in versions().items():
        if version != expected.get(what):
            raise ModelError(
                f"the worker {_address()} has {what} {version}, and the run was started with "
                f"{expected.get(what)}; install the same there, or leave that worker out"
            )
    with _one_at_a_time:
        if fingerprint not in _loaded:
            _make_room()
            _take_threads()
            model = factrobust.load_model(name, dtype=dtype)
            if model.fingerprint != fingerprint:
                raise ModelError(
                    f"{name} on the worker {_address()} is another model ({model.fingerprint}) than "
                    f"here ({fingerprint}); give both the same files, or leave that worker out"
                )
            _loaded[fingerprint] = model
        results: list[Any] = [None] * len(job.requests)
        for numbers, values in _loaded[fingerprint].answer(job):
            for i, value in zip(numbers, values, strict=True):
                results[i] = value
        return results


def _make_room() -> None:
    """Let go of earlier models if half of the memory, the GPUs' where there are some, is taken."""
    import psutil
    import torch

    ram = psutil.virtual_memory()
    gpus = [torch.cuda.mem_get_info(i) for i in range(torch.cuda.device_count())]
    memory = gpus or [(ram.available, ram.total)]
    if _loaded and 2 * sum(free for free, _ in memory) < sum(total for _, total in memory):
        _loaded.clear()
        gc.collect()
        torch.cuda.empty_cache()


def _take_threads() -> None:
    """Compute with the threads that Dask gives a worker, even if torch was imported before."""
    import torch

    if given := os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(given))


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


@functools.cache
def versions() -> dict[str, str]:
    """What has to be the same everywhere, because numbers depend on it: name -> version."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    found = {"factrobust": f"{factrobust.__version__} (models {digest.hexdigest()[:8]})"}
    for package in ("torch", "transformers", "tokenizers"):
        # Without the local part: builds for the CPU and for CUDA may work together.
        found[package] = metadata.version(package).partition("+")[0]
    return found
