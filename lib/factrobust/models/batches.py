"""Work in batches that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from factrobust.models.base import ModelError

Batch = tuple[list[int], list[Any]]  # numbers of the requests done, and their results


def in_batches(
    items: list[Any],
    sizes: list[int],
    run: Callable[[list[Any]], Batch],
    *,
    budget: int,
    name: str,
) -> Iterator[Batch]:
    """Run items in batches of like size, shortest first, and yield what each batch gives.

    A batch is padded to its largest item and holds at most `budget` tokens (`sizes`: tokens of each
    item); one that does not fit into memory is halved. Raises ModelError if one item alone does not;
    `name` is the model's, for the message.
    """
    batches: list[list[int]] = []
    for i in sorted(range(len(items)), key=lambda i: sizes[i]):
        if batches and (len(batches[-1]) + 1) * sizes[i] <= budget:
            batches[-1].append(i)
        else:
            batches.append([i])
    todo = batches[::-1]
    while todo:
        batch = todo.pop()
        try:
            # Around this call only: a generator would leave the mode on in its caller.
            with torch.inference_mode():
                done = run([items[i] for i in batch])
        except RuntimeError as error:
            if not _out_of_memory(error):
                raise
            if len(batch) == 1:
                raise ModelError(
                    f"{name}: one prompt alone does not fit into memory; shorten it, ask for fewer "
                    "samples at once, or load the model with a smaller dtype"
                ) from error
            done = None
        if done is not None:
            yield done
            continue
        half = len(batch) // 2
        todo += [batch[half:], batch[:half]]
        if torch.cuda.is_available():  # here, where the failed batch is no longer referred to
            torch.cuda.empty_cache()


def _out_of_memory(error: RuntimeError) -> bool:
    # The CPU's allocator raises a plain RuntimeError.
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)
