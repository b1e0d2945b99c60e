"""More than one machine: a model in the memory of a Dask cluster's workers.

A job is cut into slices on the machine that asks. Each worker loads the model once and answers one
slice after the other; a slice whose worker dies goes to another one, and a worker that joins late
takes part from then on. Results come back to the process that asked, slice by slice, and only this
process writes records. The slices depend on the job alone, not on the workers, so that any number
of them gives the same numbers; one process, which makes other batches, gives the same to 1e-4 nats.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import logging
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import factrobust
from factrobust.models.interface import Job, Model, ModelError
from factrobust.paths import BUILD

if TYPE_CHECKING:
    from distributed import Client, Future

VARIABLE = "FACTROBUST_CLUSTER"  # names the scheduler that load_model(..., records=...) asks
CONNECT_SECONDS = 10.0
RESTART_SECONDS = 60.0  # how long a scheduler that was lost may take to come back


class ClusterModel(Model):
    """A model that the workers of the Dask scheduler at `address` load and ask.

    They call `load_model(load_name, dtype=dtype)` and refuse weights of another fingerprint. Jobs
    raise ModelError when the scheduler cannot be reached, or is lost for over RESTART_SECONDS; what
    was yielded before is not computed again by who kept it.
    """

    def __init__(
        self,
        address: str,
        *,
        name: str,
        load_name: str,
        dtype: str,
        fingerprint: str,
        prompt_format: str,
        chat: tuple[str, str] | None,
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.prompt_format, self.chat = prompt_format, chat
        self.address = address
        self._loading = (load_name, dtype, fingerprint)

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        todo = dict(enumerate(slices(job)))
        seconds = CONNECT_SECONDS
        while todo:
            for number, values in self._ask(_client(self.address, seconds), job, todo):
                yield todo.pop(number), values
            seconds = RESTART_SECONDS

    def _ask(
        self, client: Client, job: Job, todo: dict[int, list[int]]
    ) -> Iterator[tuple[int, list[Any]]]:
        """Slices as they are done, until all are or the scheduler is lost."""
        from distributed import as_completed

        waiting = {
            # Not pure: a key of the arguments' hash would be shared with other runs' slices.
            client.submit(
                answer_slice, *self._loading, versions(), job.subset(requests), pure=False
            ): number
            for number, requests in todo.items()
        }
        try:
            for future in as_completed(list(waiting), loop=client.loop):
                number = waiting.pop(future)
                values = self._result(future)
                if values is None:
                    return
                del future  # a worker keeps what a future refers to
                yield number, values
        finally:
            if client.status == "running":
                client.cancel(list(waiting))

    def _result(self, future: Future) -> list[Any] | None:
        """What a slice gave; None if that is lost, and the connection with it."""
        from distributed import CancelledError, KilledWorker

        try:
            error = future.exception() if future.status == "error" else None
            if error is None:
                values: list[Any] = future.result()
                return values
        except (CancelledError, OSError):  # what a slice itself raises is in `error`
            return None
        if isinstance(error, KilledWorker):
            raise ModelError(
                f"{self.name}: one worker after the other died over the same slice, most likely "
                "because the memory was used up; start fewer workers a machine, or larger machines, "
                "then run again: what came back before is in the records"
            ) from None
        if isinstance(error, ModelError):
            raise ModelError(str(error)) from None
        if isinstance(error, ImportError):
            raise ModelError(
                f"{self.name}: a worker of {self.address} cannot import what it needs ({error}); "
                "install there what is installed here, or leave that worker out"
            ) from None
        raise error


# -- the scheduler ---------------------------------------------------------------------------------

_clients: dict[str, Client] = {}  # by address: a notebook's models share one


def _client(address: str, seconds: float) -> Client:
    known = _clients.get(address)
    if known is None or known.status != "running":
        if known is not None:
            with suppress(TimeoutError):
                known.close(timeout=1)
        _clients[address] = known = connect(address, seconds)
    return known


def connect(address: str, seconds: float = CONNECT_SECONDS) -> Client:
    """A client of the Dask scheduler at `address`, such as "tcp://10.0.0.1:8786".

    Says on stderr when it has no workers, for which everything then waits. Raises ModelError if
    none answers there within so many seconds, or Dask is not installed.
    """
    require_dask()
    from distributed import Client
    from distributed.comm.addressing import get_address_host_port

    # Lost connections are told once, by an error; other versions are compared by answer_slice.
    for logger in ("distributed", "distributed.client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        # A client that fails to connect leaves threads behind which can block the next one.
        _wait_for(get_address_host_port(address), seconds)
        with warnings.catch_warnings(action="ignore"):
            client = Client(address, timeout=seconds, set_as_default=False, asynchronous=False)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"no Dask scheduler answered at {address} within {seconds:g} s ({error}); start it, or "
            f"correct the address (--cluster, {VARIABLE}), and run again: what came back before is "
            "in the records"
        ) from None
    if not client.scheduler_info()["workers"]:
        print(
            f"factrobust: {address} has no worker yet, and models wait until one joins: "
            f"`dask worker {address} --nthreads 1`, where this environment is installed",
            file=sys.stderr,
        )
    return client


def require_dask() -> None:
    """Raise ModelError if Dask is not installed."""
    if find_spec("distributed") is None:
        raise ModelError(
            "a cluster needs Dask, which is not installed: run `pip install distributed`, or leave "
            f"the cluster out (--cluster, {VARIABLE})"
        )


def _wait_for(place: tuple[str, int], seconds: float) -> None:
    """Return when something listens at that host and port; OSError if nothing does in time."""
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(place, max(end - time.monotonic(), 0.01)).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(min(0.1, seconds / 2))


# -- slices ----------------------------------------------------------------------------------------


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


# -- the cluster of a run --------------------------------------------------------------------------


LOCAL = "local"  # the cluster that a run starts on its own machine
MOST_WORKERS = 4  # each holds the weights in its own memory; the other cores become their threads


@contextmanager
def cluster(where: str, workers: int | None = None) -> Iterator[str]:
    """The scheduler's address, while the block lasts.

    `where` is "local", for a cluster of `workers` processes on this machine that ends with the
    block, or the address of a scheduler that others started and keep. Raises ModelError if it
    cannot be reached.
    """
    if where == LOCAL:
        with local_cluster(workers) as address:
            yield address
        return
    with connect(where) as client:
        count = len(client.scheduler_info(n_workers=-1)["workers"])
    print(
        f"{where}: {count} worker{'s' * (count != 1)} so far; more may join at any time", flush=True
    )
    yield where


@contextmanager
def local_cluster(workers: int | None = None) -> Iterator[str]:
    """The address of a scheduler with `workers` processes on this machine.

    They share the cores. By default there are as many as cores, four at most, but one alone where
    there is a GPU: its device_map spreads a model over all GPUs.
    """
    require_dask()
    import dask
    from distributed import LocalCluster  # which brings the settings' defaults

    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    workers = workers or (1 if _has_gpu() else min(cores, MOST_WORKERS))
    settings = {
        # What Dask would set also in this process, whose kernels are no workers.
        "distributed.nanny.pre-spawn-environ": {},
        "distributed.worker.preload": [
            *dask.config.get("distributed.worker.preload", []),
            "factrobust.reproduce.cluster_worker",
        ],
        "distributed.worker.profile.enabled": False,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            # There is no dashboard, but without this its port, 8787, is taken all the same.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            local_directory=os.fspath(BUILD / "dask"),
            silence_logs=logging.CRITICAL,
            env={"OMP_NUM_THREADS": str(max(cores // workers, 1))},
        ) as started,
    ):
        yield started.scheduler_address


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()
