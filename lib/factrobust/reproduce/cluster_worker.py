"""Preloaded by the worker processes of a local cluster: see `factrobust.models.cluster`."""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the one that ends the cluster."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
