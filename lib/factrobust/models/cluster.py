"""More than one machine: a model in the memory of a Dask cluster's workers.

A job is cut into slices (see `cluster_slices`). Each worker loads the model once and answers one
slice after the other; a slice whose worker dies goes to another one, and a worker that joins late
takes part from then on. Results come back to the process that asked, slice by slice, and only this
process writes records.
"""

from __future__ import annotations

import logging
import socket
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from factrobust.models.base import Job, Model, ModelError
from factrobust.models.cluster_slices import answer_slice, slices, versions

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
