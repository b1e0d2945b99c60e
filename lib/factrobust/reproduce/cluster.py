"""The Dask cluster of a run: started for it on this machine, or one that runs already."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from factrobust.models.cluster import connect, require_dask
from factrobust.paths import BUILD
from factrobust.reproduce.mode import LOCAL

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
