"""What it costs to have two Dask workers answer, against two plain processes, in one run.

    python benchmarks/cluster.py          # or `make bench`, a minute or two

Both get the same questions of part 1, greedy answers with exact curves; a plain process answers
every second one, all at once. Four processes hold the weights: 8 GB of memory with gemma-3-270m.
Writes data/benchmarks/cluster.json."""

import multiprocessing
import os
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import cache, partial
from typing import Any

import pandas as pd
import torch
from measuring.report import Works, about, in_turns, options, ratio, report

from factrobust import load_model
from factrobust.datasets.facts import load_facts, with_questions
from factrobust.decoding import probe
from factrobust.models.cluster import cluster
from factrobust.models.interface import Model
from factrobust.models.records import Records

WORKERS = 2
TARGET = 1.15  # times the seconds of the plain processes


@cache
def loaded(name: str) -> Model:
    return load_model(name)


def answered(name: str, facts: pd.DataFrame) -> pd.DataFrame:
    """Answers of this process."""
    return probe.greedy_answers(loaded(name), facts)


def in_parts(pool: Executor, name: str, facts: pd.DataFrame) -> pd.DataFrame:
    """Answers of the processes of a pool, each of which gets every n-th question."""
    parts = [facts.iloc[first::WORKERS] for first in range(WORKERS)]
    return pd.concat(pool.map(partial(answered, name), parts))


def main() -> None:
    given = options(__doc__, model="gemma-3-270m", questions=192, rounds=3)
    facts = with_questions(load_facts()).sample(given.questions, random_state=0)
    threads = max((os.cpu_count() or 1) // WORKERS, 1)
    spawn = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(WORKERS, spawn, torch.set_num_threads, (threads,)) as pool,
        cluster("local", WORKERS) as address,
    ):
        os.environ["FACTROBUST_CLUSTER"] = str(address)
        recorded: Any = load_model(given.model, records=Records(None))
        model = recorded.load()  # which asks the workers, and keeps nothing
        works: Works = {
            "Dask workers, exact curves": partial(probe.greedy_answers, model, facts),
            "plain processes, exact curves": partial(in_parts, pool, given.model, facts),
        }
        seconds = in_turns(works, given.rounds)
    dask, plain = works
    compared = [ratio(dask, plain, seconds[dask] / seconds[plain], "at most", TARGET)]
    report(
        given,
        "cluster",
        compared,
        model=about(model),
        questions=given.questions,
        workers=WORKERS,
    )


if __name__ == "__main__":
    main()
