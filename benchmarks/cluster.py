"""What it costs to have two Dask workers answer, against two plain processes, in one run.

    python benchmarks/cluster.py          # or `make bench`, a minute or two

Both get the same questions of part 1, greedy answers and exact curves; a plain process answers
every second one, all at once. Weights are loaded before anything is timed, and ratios are taken
within rounds. Four processes hold the weights: 8 GB of memory with gemma-3-270m. Writes
data/benchmarks/cluster.json."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from measuring.halves import collect, in_parts
from measuring.report import (
    about,
    in_turns,
    options,
    print_ratios,
    ratio,
    two_digits,
    write_json,
)

from factrobust import load_model
from factrobust.datasets.facts import load_facts, with_questions
from factrobust.decoding import probe
from factrobust.models.cluster import ClusterModel, cluster, slices
from factrobust.models.interface import Job, Model
from factrobust.models.prompts import FORMATS
from factrobust.models.records import Records

WORKERS = 2
TARGET = 1.15  # times the seconds of the plain processes


def jobs(model: Model, n: int) -> dict[str, Job]:
    """Greedy answers to `n` questions, and the same with their curves."""
    facts = with_questions(load_facts()).sample(n, random_state=0)
    prompts = probe.prompts(model, facts)
    form = FORMATS[model.prompt_format]
    asked = [{"prompt": prompt} for prompt in prompts]
    decoding = {"max_new_tokens": probe.MAX_NEW_TOKENS, "stop": list(form.stop)}
    with_curves = decoding | {"temperatures": list(probe.GRID)}
    return {
        "greedy answers": Job("generate", asked, decoding),
        "exact curves": Job("generate", asked, with_curves),
    }


def measure(
    model: Model,
    executors: Sequence[Executor],
    threads: int,
    work: dict[str, Job],
    rounds: int,
) -> dict[str, Any]:
    """Ratios of seconds, slices of each job, and how far the results of the two ways differ."""
    compared = []
    gaps = []
    equal = True
    for name, job in work.items():
        dask, plain = f"Dask workers, {name}", f"plain processes, {name}"
        ways = {
            dask: partial(collect, model, job),
            plain: partial(in_parts, executors, model.name, threads, job),
        }
        seconds = in_turns(ways, rounds)
        compared.append(ratio(dask, plain, seconds[dask] / seconds[plain], "at most", TARGET))
        # Logits are divided by a temperature, and their rounding errors with them.
        scale = np.minimum(job.settings.get("temperatures", 1.0), 1.0)
        for one, other in zip(ways[dask](), ways[plain](), strict=True):
            equal = equal and one.text == other.text
            numbers = one.curve or one.logprobs
            if numbers:
                gap = np.abs(np.subtract(numbers, other.curve or other.logprobs))
                gaps.append(float(np.max(gap * scale)))
    return {
        "comparisons": compared,
        "slices": {name: len(slices(job)) for name, job in work.items()},
        "equal_texts": equal,
        "largest_difference": two_digits(max(gaps)),
    }


def main() -> None:
    given = options(__doc__, model="gemma-3-270m", questions=192, rounds=3)

    spawn = multiprocessing.get_context("spawn")
    executors = [ProcessPoolExecutor(1, mp_context=spawn) for _ in range(WORKERS)]
    threads = max((os.cpu_count() or 1) // WORKERS, 1)
    with cluster("local", WORKERS) as address:
        known = load_model(given.model, records=Records(None))  # loads nothing
        model = ClusterModel(
            address,
            name=known.name,
            load_name=given.model,
            dtype="float32",
            fingerprint=known.fingerprint,
            prompt_format=known.prompt_format,
            chat=known.chat,
        )
        work = jobs(model, given.questions)
        print(f"[bench] {model.name}: {given.questions} questions, {WORKERS} workers", flush=True)
        found = measure(model, executors, threads, work, given.rounds)
    for executor in executors:
        executor.shutdown()
    print_ratios(found["comparisons"])
    print(f"\nSlices: {found['slices']}")
    same = "equal" if found["equal_texts"] else "NOT EQUAL"
    print(
        f"Check: texts are {same}, numbers differ by at most {found['largest_difference']:g} nats"
    )
    told = {"model": about(model), "questions": given.questions, "workers": WORKERS}
    write_json(given.out / "cluster.json", told | found)


if __name__ == "__main__":
    main()
