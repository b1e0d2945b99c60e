"""Fixtures that several folders of tests share; real models are loaded once a session."""

import gc
import json
import logging
import runpy
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from export_records import export

from factrobust import load_model
from factrobust.datasets.world import load_world
from factrobust.exposure.corpus import corpus
from factrobust.models import records
from factrobust.models.records import Call, Records, key_of
from factrobust.paths import ROOT
from factrobust.plots import style
from factrobust.reproduce.compare import held_by_git

NOTEBOOK = "notebooks/1-decoding/1.1-known-facts.ipynb"
OTHER = "notebooks/other.ipynb"
MODEL = "sha256:a5fd3b62230aa5ec float32"
MUCH = 1.5e9  # bytes of this process


@pytest.fixture(autouse=True, scope="module")
def models_are_let_go():
    """A network is a circle of objects, which Python frees when it next looks for circles: on 3.14
    that can be gigabytes later. To look takes half a second, and pays where much is held."""
    yield
    if psutil.Process().memory_info().rss > MUCH:
        gc.collect()


gemma = pytest.fixture(lambda: load_model("gemma-3-270m"), scope="session")
smollm = pytest.fixture(lambda: load_model("smollm2-135m-instruct"), scope="session")


@pytest.fixture(scope="session", autouse=True)
def figures_style():
    """Figures are drawn as a study's notebook draws them."""
    style.setup()


@pytest.fixture
def new_records(tmp_path, monkeypatch):
    """A store of records that no earlier run has filled, and that no later one finds."""
    monkeypatch.setenv("FACTROBUST_RECORDS", "fresh")
    monkeypatch.setattr(records, "asked_again", lambda: tmp_path / "again.sqlite")
    records._shared.cache_clear()
    yield
    records._shared.cache_clear()


@pytest.fixture
def notebook(monkeypatch):
    """A function for a notebook's parameters, which a study takes; records are replayed."""
    monkeypatch.setenv("FACTROBUST_RECORDS", "replay")

    def variables(**parameters):
        models = ["gemma-3-270m", "smollm2-135m-instruct"]
        return {"models": models, "seed": 0} | parameters

    return variables


@pytest.fixture(scope="session")
def toy_model():
    """Builder of a model with known probabilities: see tests/models/toy.py."""
    return runpy.run_path(str(Path(__file__).parent / "models" / "toy.py"))["toy_model"]


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """A folder with the data and provenance of all figures and tables as git holds them: those of
    the working tree may be of a run on another processor."""
    folder = tmp_path_factory.mktemp("held")
    for path, text in held_by_git(ROOT).items():
        if path.startswith("figures/"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    return folder


world = pytest.fixture(lambda: load_world(), scope="session")


@pytest.fixture(scope="session")
def world_sentences(world):
    """All 219,384 that tell its facts."""
    return corpus(world)


@pytest.fixture(scope="session")
def tokenizer(world):
    """The tokenizer of the models that are grown in it."""
    from factrobust.exposure.corpus import TEXTS
    from factrobust.models import grow

    return grow.tokenizer_of(world, TEXTS)


@pytest.fixture
def threads(tmp_path):
    """Dask clusters of so many workers, threads of this process, whose schedulers listen on a
    port."""
    import dask
    from distributed import LocalCluster

    options = {
        "processes": False,
        "threads_per_worker": 1,
        "protocol": "tcp://",
        "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
        "dashboard_address": None,
        "local_directory": str(tmp_path),
        "silence_logs": logging.CRITICAL,
    }
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


toy = pytest.fixture(lambda: Toy())


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A working file that does not exist yet, in a folder that does not either."""
    for name in ("FACTROBUST_NOTEBOOK", "FACTROBUST_USED", "FACTROBUST_RECORDS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "a folder" / "records.sqlite"


@pytest.fixture
def base(path, toy):
    """A committed folder with 50 score and 30 generate calls, values 0, 1, 2..., used by two
    notebooks."""
    store = Records(path)
    store.put(toy.calls(99, operation="unused"), [0] * 99)  # by nobody's notebook
    store.put(toy.calls(50), list(range(50)))
    store.put(toy.calls(30, operation="generate"), list(range(30)))
    both = [*toy.calls(30, operation="generate"), *toy.calls(5)]
    used = {NOTEBOOK: set(map(key_of, toy.calls(50))), OTHER: set(map(key_of, both))}
    folder = path.parent / "committed"
    export(
        folder,
        new=path,
        again=path.with_name("again.sqlite"),
        used=used,
        there=[*used],
    )
    return folder


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """put(repo, commit, name, content, ref) lays bytes, or a table as parquet, into an offline hub
    cache; `ref` is a branch that is this commit."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    def put(repo, commit, name, content, ref=""):
        folder = tmp_path / "hub" / f"datasets--{repo.replace('/', '--')}"
        file = folder / "snapshots" / commit / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = content.to_parquet()
        file.write_bytes(content)
        if ref:
            (folder / "refs").mkdir(exist_ok=True)
            (folder / "refs" / ref).write_text(commit)
        return file

    return put


@pytest.fixture(scope="session")
def browser():
    """Debian's chromium, or the system's, driven by playwright; what is missing skips a test and is
    named."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is in 'book'")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with playwright.sync_playwright() as running:
        yield running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
