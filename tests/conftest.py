"""Fixtures that several folders of tests share; real models are loaded once a session."""

import json
import logging
import runpy
from contextlib import ExitStack
from pathlib import Path

import pytest
from export_records import export

from factrobust import load_model
from factrobust.models.records import Call, Records

NOTEBOOK = "notebooks/1-decoding/1.1-known-facts.ipynb"
OTHER = "notebooks/other.ipynb"
MODEL = "sha256:a5fd3b62230aa5ec float32"


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


class Toy:
    """Calls 0, 1, 2... of a model, and a store that holds some."""

    @staticmethod
    def calls(n: int, model: str = MODEL, operation: str = "score") -> list[Call]:
        return [
            Call(model, operation, f"Question {i}:\nÄ\x00\t", json.dumps({"i": i}))
            for i in range(n)
        ]

    def filled(self, path: Path, n: int) -> Records:
        store = Records(path)
        store.put(self.calls(n), [{"text": f"value {i}", "logprobs": [i / 7]} for i in range(n)])
        return store


@pytest.fixture
def toy():
    return Toy()


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A working file that does not exist yet, in a folder that does not either."""
    for name in ("FACTROBUST_NOTEBOOK", "FACTROBUST_PROFILE", "FACTROBUST_RECORDS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "a folder" / "records.sqlite"


@pytest.fixture
def base(path, toy, monkeypatch):
    """A committed folder with 50 score and 30 generate calls, values 0, 1, 2..."""
    store = Records(path)
    store.put(toy.calls(99, operation="unused"), [0] * 99)  # by nobody's notebook
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    store.put(toy.calls(50), list(range(50)))
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", OTHER)
    store.put(toy.calls(30, operation="generate"), list(range(30)))
    store.get(toy.calls(5))
    monkeypatch.delenv("FACTROBUST_NOTEBOOK")
    folder = path.parent / "committed"
    export(path, folder)
    return folder
