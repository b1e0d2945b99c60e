"""A model on several machines: in the memory of a Dask cluster's workers.

Each worker loads the model once and answers one slice of a job after the other. A slice whose
worker dies goes to another one, and a worker may join late. Only the process that asks writes
records. The slices do not depend on the number of workers, nor do the numbers. One process without
a cluster makes other batches, and gives the same to 1e-4 nats."""

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
MOST_WORKERS = 4  # each has its own copy of the weights; other cores are their threads
# Ctrl-C reaches every process of a terminal, but only the caller may end the cluster.
NO_INTERRUPT = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
# A worker repeats the imports of the caller's script before OMP_NUM_THREADS is set, which torch
# reads.
THREADS = """import os, sys
if "torch" in sys.modules:
    sys.modules["torch"].set_num_threads(int(os.environ["OMP_NUM_THREADS"]))"""
# A worker sees its own GPUs alone. Workers are numbered, and keep their number when they start
# again.
OWN_GPUS = """import os
def dask_setup(worker):
    os.environ["CUDA_VISIBLE_DEVICES"] = {shares!r}[int(worker.name)]"""
REQUESTS = 48  # in a slice; with fewer, batches would be small


class ClusterModel(Model):
    """A model that the workers of the Dask scheduler at `address` load and ask. A job raises
    ModelError if the scheduler cannot be reached or is lost."""

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
                    if isinstance(values, CancelledError):  # which is returned, not raised
                        raise values
                    future.release()  # else its worker keeps the results
                    yield waiting[future.key], values
            except (KilledWorker, CancelledError, ImportError) as error:
                raise ModelError(
                    f"{self.name} on the Dask cluster at {self.address}: {type(error).__name__}: "
                    f"{error}; mend it, then run again: what came back before is in the records"
                ) from error


def connect(address: str, seconds: float = CONNECT_SECONDS) -> Any:
    """A client of the Dask scheduler at `address`; ModelError if none answers within so many
    seconds."""
    from distributed import Client

    # An error reports a lost connection once; these would repeat it.
    for logger in ("distributed", "distributed.client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    refused = ""
    try:
        with warnings.catch_warnings(action="ignore"):
            client = Client(
                address,
                timeout=seconds,
                set_as_default=False,
                asynchronous=False,
            )
    except (OSError, ValueError) as error:
        refused = str(error) or type(error).__name__
    if refused:
        # The client that failed closes when it is collected. Later that could happen in the thread
        # of another client's event loop, which would then wait for itself.
        gc.collect()
        raise ModelError(
            f"no Dask scheduler answered at {address} within {seconds:g} s ({refused}); start it, "
            "or correct the address (CLUSTER=), and run again"
        )
    if not client.scheduler_info()["workers"]:
        start = f"start one: `dask worker {address} --nthreads 1`"
        print(f"factrobust: {address} has no worker yet; {start}", file=sys.stderr)
    return client


@contextmanager
def cluster(where: str | None, workers: int | None = None) -> Iterator[str | None]:
    """The address of a scheduler for a block; None if `where` is None.

    `where` is the address of a running scheduler (ModelError if it cannot be reached). Or it is
    "local": a cluster of `workers` processes on this machine, which share its cores and its GPUs,
    and end with the block. By default there is one for each GPU; without any, one for each core,
    four at most. A model that is too large for one GPU needs fewer workers, each with more of them
    (`make plan` says how many)."""
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
    gpus = visible(torch.cuda.device_count())
    workers = workers or len(gpus) or min(cores, MOST_WORKERS)
    settings = {
        # Dask would set these in this process, too.
        "distributed.nanny.pre-spawn-environ": {},
        "distributed.worker.profile.enabled": False,
    }
    options: dict[str, Any] = {
        "threads_per_worker": 1,
        "memory_limit": 0,
        "dashboard_address": None,
        # Without this the dashboard's port, 8787, is taken although there is none.
        "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
        "local_directory": os.fspath(BUILD / "dask"),
        "silence_logs": logging.CRITICAL,
        "env": {"OMP_NUM_THREADS": str(max(cores // workers, 1))},
        "preload": [*dask.config.get("distributed.worker.preload", []), NO_INTERRUPT, THREADS],
    }
    if gpus:
        options["preload"].append(OWN_GPUS.format(shares=shares(gpus, workers)))
    with dask.config.set(settings), LocalCluster(n_workers=workers, **options) as started:
        yield started.scheduler_address


def visible(count: int) -> list[str]:
    """The GPUs that this process sees, as CUDA_VISIBLE_DEVICES names them; there are `count`."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    found = [name.strip() for name in named.split(",") if name.strip()]
    return (found or [str(number) for number in range(count)])[:count]


def shares(gpus: list[str], workers: int) -> list[str]:
    """The GPUs of each worker, as CUDA_VISIBLE_DEVICES takes them: equally many, or one that
    several workers share. Some are left over if they cannot be divided."""
    each = max(len(gpus) // workers, 1)
    starts = [number * each % len(gpus) for number in range(workers)]
    return [",".join(gpus[start : start + each]) for start in starts]


def slices(job: Job) -> list[list[int]]:
    """Slices of a job (numbers of requests), longest prompts first: equal prompts share their
    computation, and prompts of similar length need little padding."""
    prompts = [request["prompt"] for request in job.requests]
    order = sorted(range(len(prompts)), key=lambda i: (-len(prompts[i]), prompts[i]))
    return [order[i : i + REQUESTS] for i in range(0, len(order), REQUESTS)]


_one_at_a_time = threading.Lock()  # a model keeps the last job's prefix
_loaded: dict[str, Model] = {}  # by fingerprint


def answer_slice(job: Job, *, name: str, dtype: str, fingerprint: str) -> list[Any]:
    """The results of a slice in the order of its requests; runs on a worker."""
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
