"""Jobs on a Dask cluster: the same results as in one process, whatever happens to its parts."""

import functools
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import dask.system
import numpy as np
import pytest
import torch

import factrobust
from factrobust.models import cluster
from factrobust.models.cluster import ClusterModel, answer_slice, connect, slices
from factrobust.models.interface import Job, Model, ModelError
from factrobust.models.records import Records, opened

TABLE = {"?": {" a": 0.5, " b": 0.3, " c": 0.2}, " a": {".": 0.7, "!": 0.3}}
PROMPTS = [f"{'x' * i}?" for i in range(1, 9)]


@pytest.fixture(scope="module")
def folder(toy_model, tmp_path_factory):
    """A toy model as a folder, which workers can load."""
    toy = toy_model(TABLE)
    place = tmp_path_factory.mktemp("toy")
    toy.body.network.save_pretrained(place)
    toy.tokenizer.save_pretrained(place)
    return place


single = pytest.fixture(lambda folder: factrobust.load_model(str(folder)), scope="module")


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    """A slice a prompt."""
    monkeypatch.setattr(cluster, "REQUESTS", 1)


@pytest.fixture
def on_cluster(folder, tmp_path, monkeypatch):
    """The model of a new process that runs on a cluster, with the records of the test."""

    def load(address: str) -> Model:
        monkeypatch.setenv("FACTROBUST_CLUSTER", address)
        return factrobust.load_model(str(folder), records=Records(tmp_path / "records.sqlite"))

    return load


noted = pytest.fixture(lambda tmp_path_factory: tmp_path_factory.mktemp("noted"), scope="module")


@pytest.fixture(scope="module")
def processes(noted):
    """The address of a cluster of two processes that note their slices."""
    preload = {"distributed.worker.preload": [str(Path(__file__).with_name("noting_worker.py"))]}
    with ExitStack() as stack:
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        environment.setenv("NOTED", str(noted))
        with dask.config.set(preload):  # not for the workers of other tests
            address = stack.enter_context(cluster.cluster("local", 2))
        yield address


def test_workers_share_the_cores_and_this_process_keeps_its_own(tmp_path, monkeypatch, capfd):
    file = tmp_path / "script.py"
    file.write_text("import torch")
    caller = SimpleNamespace(__file__=str(file), __spec__=None)
    monkeypatch.setitem(sys.modules, "__main__", caller)  # workers repeat its imports
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setattr("dask.system.cpu_count", lambda: 6)
    with cluster.cluster("local", 2) as address, connect(address) as client:
        threads = client.run(os.getenv, "OMP_NUM_THREADS")
        imported = client.run(lambda: "torch" in sys.modules)
        interrupt = client.run(signal.getsignal, signal.SIGINT)
        workers = client.scheduler_info()["workers"].values()
        assert [*threads.values()] == ["3", "3"]
        assert [worker["nthreads"] for worker in workers] == [1, 1]
        assert [*imported.values()] == [True, True]
        asked = [client.submit(torch.get_num_threads, workers=w) for w in threads]
        assert client.gather(asked) == [3, 3]  # in the thread that answers
        assert set(interrupt.values()) == {signal.SIG_IGN}  # Ctrl-C ends the run, which ends them
        assert os.environ["OMP_NUM_THREADS"] == "7"
        assert "MALLOC_TRIM_THRESHOLD_" not in os.environ
    assert capfd.readouterr() == ("", "")


def test_every_gpu_has_a_worker_that_sees_no_other(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    with cluster.cluster("local") as address, connect(address) as client:
        seen = client.run(os.getenv, "CUDA_VISIBLE_DEVICES")
        workers = client.scheduler_info()["workers"]
        assert {workers[at]["name"]: gpus for at, gpus in seen.items()} == {0: "5", 1: "7"}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5,7"


def slices_of(noted: Path) -> list[tuple[int, str]]:
    """Process and prompt of each slice that was begun."""
    file = noted / "slices"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(pid, prompts[0]) for pid, prompts in map(json.loads, lines)]


def stored(path: Path) -> int:
    with opened(path) as db:
        return db.execute("SELECT count(*) FROM calls").fetchone()[0]


def wait_until(true: Callable[[], bool]) -> None:
    while not true():
        time.sleep(0.01)


def everything(model: Model) -> tuple[list[Any], list[Any]]:
    """What is said, and the numbers of the scores, by all operations."""
    answers = [" a.", " b", " a!", " c"] * 2
    said = model.generate(PROMPTS, stop=["!"])
    said += chain(
        *model.sample(
            PROMPTS,
            temperature=[0.5, 1.0] * 4,
            n=3,
            seed=1,
        )
    )
    curves = model.temper(PROMPTS, answers, [0.3, 1.0, 1.7])
    return said, [*model.score(PROMPTS, answers), *curves]


def test_two_processes_give_what_one_gives(processes, noted, on_cluster, single):
    """And a rerun finds all of it in the records, which this process wrote."""
    made, numbers = everything(on_cluster(processes))
    expected, their_numbers = everything(single)
    for g, e in zip(made, expected, strict=True):
        assert g.text == e.text
        assert g.token_ids == e.token_ids
        np.testing.assert_allclose(g.logprobs, e.logprobs, atol=1e-5)
    for mine, theirs in zip(numbers, their_numbers, strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
    begun = slices_of(noted)
    assert len(begun) == 4 * len(PROMPTS)
    assert len({pid for pid, _ in begun}) == 2
    assert everything(on_cluster(processes))[0] == made
    assert slices_of(noted) == begun


def test_a_worker_killed_in_the_middle_costs_one_slice(processes, noted, on_cluster, single):
    (noted / "slices").unlink(missing_ok=True)
    (noted / "wait").touch()
    model = on_cluster(processes)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(model.generate, PROMPTS)
        wait_until(lambda: len(slices_of(noted)) == 2)
        pid, lost = slices_of(noted)[0]
        os.kill(pid, signal.SIGKILL)
        (noted / "wait").unlink()
        made = run.result()
    assert [g.text for g in made] == [g.text for g in single.generate(PROMPTS)]
    counts = Counter(prompt for _, prompt in slices_of(noted))
    assert counts == {prompt: 1 + (prompt == lost) for prompt in PROMPTS}


def test_workers_with_other_weights_are_refused(processes, folder):
    about = {
        "name": "toy",
        "load_name": str(folder),
        "dtype": "float32",
        "prompt_format": "prefix",
    }
    model = ClusterModel(processes, fingerprint="sha256:0123 float32", chat=None, **about)
    with pytest.raises(ModelError, match=r"is another model \(sha256:\w+ float32\) than here"):
        model.generate(["?"])


@pytest.fixture
def gate(monkeypatch):
    """Lets three slices through, or as many as `open_for` says; `prompts` of those that passed."""
    answer = cluster.answer_slice
    passed = SimpleNamespace(open_for=3, prompts=[])

    @functools.wraps(answer)  # also its name, by which the workers find it
    def gated(job: Job, **loading: Any) -> list[Any]:
        wait_until(lambda: len(passed.prompts) < passed.open_for)
        passed.prompts += [r["prompt"] for r in job.requests]
        return answer(job, **loading)

    monkeypatch.setattr(cluster, "answer_slice", gated)
    return passed


def test_what_a_slice_refuses_reaches_the_caller_as_it_is(threads, on_cluster, single):
    long = "?" * 3000
    with pytest.raises(ModelError) as here:
        single.generate([*PROMPTS, long])
    with pytest.raises(ModelError) as there:
        on_cluster(threads(1).scheduler_address).generate([*PROMPTS, long])
    assert str(there.value) == str(here.value)
    assert "shorten the prompt" in str(here.value)


def test_a_scheduler_that_is_gone_is_told_and_what_came_back_stays(
    threads, on_cluster, single, gate, tmp_path, monkeypatch
):
    started = threads(1)
    model = on_cluster(started.scheduler_address)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(model.generate, PROMPTS)
        wait_until(lambda: stored(tmp_path / "records.sqlite") == 3)
        started.sync(started.scheduler.close)
        with pytest.raises(ModelError, match=r"cluster at tcp://\S+: .*CancelledError"):
            run.result()
    gate.open_for = 99
    time.sleep(0.1)  # the slice in work may still be counted
    gate.prompts.clear()
    made = on_cluster(threads(1).scheduler_address).generate(PROMPTS)
    assert made == single.generate(PROMPTS)
    assert len(gate.prompts) == len(PROMPTS) - 3


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere"])
def test_a_wrong_address_is_one_sentence(address):
    with pytest.raises(ModelError, match=rf"^no Dask scheduler answered at {address} within 0.2 s"):
        connect(address, 0.2)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, [[4], [1], [0], [3], [2]]),
        (2, [[4, 1], [0, 3], [2]]),
        (99, [[4, 1, 0, 3, 2]]),
    ],
)
def test_slices_hold_prompts_of_like_length_and_equal_prompts_together(monkeypatch, size, expected):
    monkeypatch.setattr(cluster, "REQUESTS", size)
    texts = ["a" * 8, "b" * 24, "c" * 4, "a" * 8, "d" * 25]
    assert slices(Job("generate", [{"prompt": text} for text in texts])) == expected
    assert slices(Job("generate", [])) == []


def test_a_worker_loads_a_model_once_and_holds_no_other(monkeypatch):
    loads: list[str] = []

    def load(name: str, dtype: str) -> Any:
        loads.append(name)
        return SimpleNamespace(fingerprint=name, answer=lambda job: [([0], [f"{name} {dtype}"])])

    monkeypatch.setattr(cluster.factrobust, "load_model", load, raising=False)
    monkeypatch.setattr(cluster, "_loaded", loaded := {})
    for name in ("one", "one", "two"):
        job = Job("score", [{"prompt": "?", "answer": "!"}])
        done = answer_slice(
            job,
            name=name,
            fingerprint=name,
            dtype="float32",
        )
        assert done == [f"{name} float32"]
    assert loads == ["one", "two"]
    assert list(loaded) == ["two"]
