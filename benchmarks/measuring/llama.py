"""llama.cpp's own server in this process, on a GGUF file as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(file: Path, name: str, *, threads: int, at_once: int) -> Iterator[str]:
    """The URL under which the file's model is asked, `at_once` requests at a time."""
    import xllamacpp

    about = xllamacpp.CommonParams()
    about.model.path, about.model_alias = os.fspath(file), {name}
    about.hostnames, about.port = ["127.0.0.1"], 0
    about.n_ctx, about.n_parallel = 512 * at_once, at_once
    about.cpuparams.n_threads = about.cpuparams_batch.n_threads = threads
    about.warmup, about.verbosity = False, 0
    running = xllamacpp.Server(about)
    yield f"{running.listening_address}/v1"
    del running
