"""More than one machine: a model in the memory of a Dask cluster's workers.

A job is cut into slices on the machine that asks. Each worker loads the model once and answers one
slice after the other; a slice whose worker dies goes to another one, and a worker that joins late
takes part from then on. Results come back to the process that asked, slice by slice, and only this
process writes records. The slices depend on the job alone, not on the workers, so that any number
of them gives the same numbers; one process, which makes other batches, gives the same to 1e-4 nats.
"""

import gc
import logging
import os
import socket
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import factrobust
from factrobust.models.interface import Job, Model, ModelError
from factrobust.paths import BUILD

CONNECT_SECONDS = 10.0
MOST_WORKERS = 4  # each holds the weights in its own memory; the other cores become their threads
# Ctrl-C reaches every process of a terminal; it is for the one that ends the cluster.
NO_INTERRUPT = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
# A worker repeats the imports of the caller's script before it has OMP_NUM_THREADS, which torch reads.
THREADS = """import os, sys
if "torch" in sys.modules:
    sys.modules["torch"].set_num_threads(int(os.environ["OMP_NUM_THREADS"]))"""
REQUESTS = 48  # of a slice: fewer would fill batches poorly


class ClusterModel(Model):
    """A model that the workers of the Dask scheduler at `address` load and ask.

    They call `load_model(load_name, dtype=dtype)` and refuse weights of another fingerprint. Jobs
    raise ModelError when the scheduler cannot be reached or is lost; what was yielded before is not
    computed again by who kept it.
    """

    def __init__(self, address: str, *, load_name: str, dtype: str, **about: Any) -> None:
        super().__init__(**about)
        self.address = address
        self._loading = {"name": load_name, "dtype": dtype, "fingerprint": self.fingerprint}

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        with connect(self.address) as client:
            from distributed import CancelledError, KilledWorker, as_completed

            numbers = slices(job)
            # Not pure: a key of the arguments' hash would be shared with other runs' slices.
            jobs = [job.subset(some) for some in numbers]
            futures = client.map(answer_slice, jobs, pure=False, **self._loading)
            waiting = {future.key: some for future, some in zip(futures, numbers, strict=True)}
            try:
                for future, values in as_completed(futures, with_results=True, loop=client.loop):
                    if isinstance(values, CancelledError):  # handed out instead of raised
                        raise values
                    future.release()  # else its worker keeps the results
                    yield waiting[future.key], values
            except (KilledWorker, CancelledError, ImportError) as error:
                raise ModelError(
                    f"{self.name} on the Dask cluster at {self.address}: {type(error).__name__}: "
                    f"{error}; mend it, then run again: what came back before is in the records"
                ) from error


def connect(address: str, seconds: float = CONNECT_SECONDS) -> Any:
    """A client of the Dask scheduler at `address`, such as "tcp://10.0.0.1:8786".

    Says on stderr when it has no workers, for which everything then waits. Raises ModelError if
    none answers there within so many seconds.
    """
    from distributed import Client

    # Lost connections are told once, by an error.
    for logger in ("distributed", "distributed.client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(action="ignore"):
            client = Client(address, timeout=seconds, set_as_default=False, asynchronous=False)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"no Dask scheduler answered at {address} within {seconds:g} s ({error}); start it, or "
            "correct the address (CLUSTER=), and run again"
        ) from None
    if not client.scheduler_info()["workers"]:
        start = f"start one: `dask worker {address} --nthreads 1`"
        print(f"factrobust: {address} has no worker yet; {start}", file=sys.stderr)
    return client


@contextmanager
def cluster(where: str | None, workers: int | None = None) -> Iterator[str | None]:
    """The scheduler's address, while the block lasts; None if none is asked for.

    `where` is the address of a scheduler that others started and keep, or "local", for a cluster of
    `workers` processes on this machine that ends with the block. They share the cores. By default
    there are as many as cores, four at most, but one alone where there is a GPU: its device_map
    spreads a model over all GPUs. Raises ModelError if the scheduler cannot be reached.
    """
    if where != "local":
        if where is not None:
            connect(where).close()
        yield where
        return
    import dask
    import torch
    from dask.system import cpu_count
    from distributed import LocalCluster  # which brings the settings' defaults

    cores = cpu_count()
    workers = workers or (1 if torch.cuda.is_available() else min(cores, MOST_WORKERS))
    settings = {
        # What Dask would set also in this process, whose kernels are no workers.
        "distributed.nanny.pre-spawn-environ": {},
        "distributed.worker.profile.enabled": False,
    }
    options: dict[str, Any] = {
        "threads_per_worker": 1,
        "memory_limit": 0,
        "dashboard_address": None,
        # There is no dashboard, but without this its port, 8787, is taken all the same.
        "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
        "local_directory": os.fspath(BUILD / "dask"),
        "silence_logs": logging.CRITICAL,
        "env": {"OMP_NUM_THREADS": str(max(cores // workers, 1))},
        "preload": [*dask.config.get("distributed.worker.preload", []), NO_INTERRUPT, THREADS],
    }
    with dask.config.set(settings), LocalCluster(n_workers=workers, **options) as started:
        yield started.scheduler_address


def slices(job: Job) -> list[list[int]]:
    """Numbers of the requests of each slice, those with the longest prompts first.

    Requests that ask the same prompt share their computation, so they stand together; prompts of
    like length go together, because a batch is padded to its longest.
    """
    prompts = [request["prompt"] for request in job.requests]
    order = sorted(range(len(prompts)), key=lambda i: (-len(prompts[i]), prompts[i]))
    return [order[i : i + REQUESTS] for i in range(0, len(order), REQUESTS)]


_one_at_a_time = threading.Lock()  # a model keeps the beginning that prompts share
_loaded: dict[str, Model] = {}  # by fingerprint


def answer_slice(job: Job, *, name: str, dtype: str, fingerprint: str) -> list[Any]:
    """The results of a slice's requests, in their order; runs on a worker.

    Raises ModelError if the weights that it finds by that name have another fingerprint.
    """
    with _one_at_a_time:
        if fingerprint not in _loaded:
            _loaded.clear()  # its memory is for one model
            gc.collect()
            model = factrobust.load_model(name, dtype=dtype)
            if model.fingerprint != fingerprint:
                raise ModelError(
                    f"{name} on {socket.gethostname()} is another model ({model.fingerprint}) than "
                    f"here ({fingerprint}); give both the same files, or leave that worker out"
                )
            _loaded[fingerprint] = model
        results: dict[int, Any] = {}
        for numbers, values in _loaded[fingerprint].answer(job):
            results |= zip(numbers, values, strict=True)
        return [results[i] for i in range(len(job.requests))]
