"""Fixtures that several folders of tests share; real models are loaded once a session."""

import logging
import runpy
from contextlib import ExitStack
from pathlib import Path

import pytest

from factrobust import load_model
from factrobust.paths import ROOT
from factrobust.reproduce.compare import held_by_git


@pytest.fixture(scope="session")
def gemma():
    return load_model("gemma-3-270m")


@pytest.fixture(scope="session")
def smollm():
    return load_model("smollm2-135m-instruct")


@pytest.fixture(scope="session")
def toy_model():
    """Builder of a model with known probabilities: see tests/models/toy.py."""
    return runpy.run_path(str(Path(__file__).parent / "models" / "toy.py"))["toy_model"]


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """A folder with the data and provenance of all figures and tables as git holds them: those of the
    working tree may be of a run on another processor."""
    folder = tmp_path_factory.mktemp("held")
    for path, text in (held_by_git(ROOT) or {}).items():
        if path.startswith("figures/"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    return folder if any(folder.iterdir()) else ROOT


@pytest.fixture(scope="session")
def world():
    """The invented world."""
    from factrobust.datasets.world import load_world

    return load_world()


@pytest.fixture(scope="session")
def tokenizer(world):
    """The tokenizer of the models that are grown in it."""
    from factrobust.datasets.world import LAYOUTS
    from factrobust.models import grow

    return grow.tokenizer_of(world, LAYOUTS.values())


@pytest.fixture
def threads(tmp_path):
    """Dask clusters of so many workers, threads of this process, whose schedulers listen on a port."""
    import dask
    from distributed import LocalCluster

    options = {"processes": False, "threads_per_worker": 1, "protocol": "tcp://"}
    options |= {"scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}, "dashboard_address": None}
    options |= {"local_directory": str(tmp_path), "silence_logs": logging.CRITICAL}
    # A scheduler that is gone is not waited for when its workers close.
    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}), ExitStack() as stack:
        yield lambda n: stack.enter_context(LocalCluster(n_workers=n, **options))
