"""A model whose answers are kept: asked once, then read from the records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from factrobust.models.base import Generation, Job, Model
from factrobust.records import Call, Records


class RecordedModel(Model):
    """Answers from the store; what is missing is computed, and committed batch by batch.

    The weights are loaded at the first missing answer and never before, so a run that finds
    everything in the records needs neither them nor torch.
    """

    def __init__(
        self,
        records: Records,
        load: Callable[[], Model],
        *,
        name: str,
        fingerprint: str,
        prompt_format: str,
        chat: tuple[str, str] | None,
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.prompt_format, self.chat = prompt_format, chat
        self._records, self._load = records, load
        self._loaded: Model | None = None

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        calls = [self._call(job, request) for request in job.requests]
        known = self._records.get(calls)
        hits = [i for i, value in enumerate(known) if value is not None]
        if hits:
            yield hits, [_from_record(job, i, known[i]) for i in hits]
        # Equal requests are one call: asked once, answered everywhere.
        missing: dict[Call, list[int]] = {}
        for i, value in enumerate(known):
            if value is None:
                missing.setdefault(calls[i], []).append(i)
        if not missing:
            return
        if self._loaded is None:
            self._loaded = self._load()
        todo = [positions[0] for positions in missing.values()]
        for indices, values in self._loaded.answer(job.subset(todo)):
            done = [calls[todo[i]] for i in indices]
            self._records.put(done, [_to_record(v) for v in values])
            everywhere = [
                (i, v) for call, v in zip(done, values, strict=True) for i in missing[call]
            ]
            yield [i for i, _ in everywhere], [v for _, v in everywhere]

    def _call(self, job: Job, request: dict[str, Any]) -> Call:
        parameters = {k: v for k, v in request.items() if k != "prompt"} | job.settings
        return Call(
            self.fingerprint,
            job.operation,
            request["prompt"],
            json.dumps(parameters, sort_keys=True),
        )


def _to_record(value: Any) -> Any:
    if isinstance(value, Generation):
        return value.to_record()
    return [v.to_record() if isinstance(v, Generation) else v for v in value]


def _from_record(job: Job, index: int, value: Any) -> Any:
    prompt = job.requests[index]["prompt"]
    if job.operation == "generate":
        return Generation.from_record(prompt, value)
    if job.operation == "sample":
        return [Generation.from_record(prompt, v) for v in value]
    return np.array(value, dtype=np.float32)
