"""Jobs on a Dask cluster: the same results as in one process, whatever happens to its parts."""

import functools
import json
import os
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import dask
import dask.system
import pytest
import torch
from whole import assert_alike, everything, saved, texts

import factrobust
from factrobust.models import cluster
from factrobust.models.cluster import answer_slice, connect, slices
from factrobust.models.interface import Job, ModelError
from factrobust.models.records import Records, opened

TABLE = {
    "?": {" a": 0.5, " b": 0.3, " c": 0.2},
    " a": {".": 0.7, "!": 0.3},
}
PROMPTS = [f"{'x' * i}?" for i in range(1, 9)]
ANSWERS = [" a.", " b", " a!", " c"] * 2


@pytest.fixture(scope="module")
def folder(toy_model, tmp_path_factory):
    """A toy model as a folder, which workers can load."""
    return saved(toy_model(TABLE), tmp_path_factory.mktemp("toy"))


single = pytest.fixture(lambda folder: factrobust.load_model(str(folder)), scope="module")


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    """A slice a prompt."""
    monkeypatch.setattr(cluster, "REQUESTS", 1)


@pytest.fixture
def on_cluster(folder, tmp_path, monkeypatch):
    """The model of a new process that runs on a cluster, with the records of the test."""

    def load(address):
        monkeypatch.setenv("FACTROBUST_CLUSTER", address)
        return factrobust.load_model(str(folder), records=Records(tmp_path / "records.sqlite"))

    return load


noted = pytest.fixture(lambda tmp_path_factory: tmp_path_factory.mktemp("noted"), scope="module")


@pytest.fixture(scope="module")
def processes(noted):
    """The address of a cluster of two processes that note their slices."""
    worker = str(Path(__file__).with_name("noting_worker.py"))
    preloaded = {"distributed.worker.preload": [worker]}
    with pytest.MonkeyPatch.context() as environment, ExitStack() as stack:
        environment.setenv("NOTED", str(noted))
        with dask.config.set(preloaded):
            address = stack.enter_context(cluster.cluster("local", 2))
        yield address  # without the setting, which is not for the workers of other tests


def test_workers_share_the_cores_and_this_process_keeps_its_own(tmp_path, monkeypatch, capfd):
    script = tmp_path / "script.py"
    script.write_text("import torch")
    caller = SimpleNamespace(__file__=str(script), __spec__=None)
    monkeypatch.setitem(sys.modules, "__main__", caller)  # workers repeat its imports
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setattr("dask.system.cpu_count", lambda: 6)
    with cluster.cluster("local", 2) as address, connect(address) as client:

        def on_each(function, *arguments):
            return [*client.run(function, *arguments).values()]

        assert on_each(os.getenv, "OMP_NUM_THREADS") == ["3", "3"]
        assert on_each(lambda: "torch" in sys.modules) == [True, True]
        # Ctrl-C ends the run, which ends them.
        assert on_each(signal.getsignal, signal.SIGINT) == [signal.SIG_IGN] * 2
        workers = client.scheduler_info()["workers"]
        for name, worker in workers.items():
            assert worker["nthreads"] == 1
            # In the thread that answers.
            asked = client.submit(
                torch.get_num_threads,
                workers=name,
                pure=False,
            )
            assert asked.result() == 3
        assert os.environ["OMP_NUM_THREADS"] == "7"
        assert "MALLOC_TRIM_THRESHOLD_" not in os.environ
    assert capfd.readouterr() == ("", "")


def test_every_gpu_has_a_worker_that_sees_no_other(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    with cluster.cluster("local") as address, connect(address) as client:
        seen = client.run(os.getenv, "CUDA_VISIBLE_DEVICES")
        assert sorted(seen.values()) == ["5", "7"]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5,7"


def slices_of(noted):
    """Process and prompt of each slice that was begun."""
    file = noted / "slices"
    if not file.exists():
        return []
    slices = []
    for line in file.read_text().splitlines():
        process, [prompt] = json.loads(line)
        slices.append((process, prompt))
    return slices


def wait_until(true):
    while not true():
        time.sleep(0.01)


def test_two_processes_give_what_one_gives(processes, noted, on_cluster, single):
    """And a rerun finds all of it in the records, which this process wrote."""
    found = everything(on_cluster(processes), PROMPTS, ANSWERS, stop=["!"])
    expected = everything(single, PROMPTS, ANSWERS, stop=["!"])
    assert_alike(found, expected, 1e-5)
    for mine, theirs in zip(found[0], expected[0], strict=True):
        assert mine.token_ids == theirs.token_ids
    slices = slices_of(noted)
    assert len(slices) == 4 * len(PROMPTS)
    assert len({process for process, _ in slices}) == 2
    assert everything(on_cluster(processes), PROMPTS, ANSWERS, stop=["!"]) == found
    assert slices_of(noted) == slices


def test_a_worker_killed_in_the_middle_costs_one_slice(processes, noted, on_cluster, single):
    (noted / "slices").unlink(missing_ok=True)
    (noted / "wait").touch()
    model = on_cluster(processes)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(model.generate, PROMPTS)
        wait_until(lambda: len(slices_of(noted)) == 2)
        first, _ = slices_of(noted)
        process, lost = first
        os.kill(process, signal.SIGKILL)
        (noted / "wait").unlink()
        made = run.result()
    assert texts(made) == texts(single.generate(PROMPTS))
    counts = Counter(prompt for _, prompt in slices_of(noted))
    assert counts == {prompt: 1 + (prompt == lost) for prompt in PROMPTS}


@pytest.fixture
def gate(monkeypatch):
    """Lets three slices through, or as many as `open_for` says; `passed` is their number."""
    answer = cluster.answer_slice
    gate = SimpleNamespace(open_for=3, passed=0)

    @functools.wraps(answer)  # also its name, by which the workers find it
    def gated(job, **loading):
        wait_until(lambda: gate.passed < gate.open_for)
        gate.passed += 1
        return answer(job, **loading)

    monkeypatch.setattr(cluster, "answer_slice", gated)
    return gate


def test_what_a_slice_refuses_reaches_the_caller_as_it_is(threads, on_cluster, single):
    long = "?" * 3000
    served = on_cluster(threads(1).scheduler_address)
    sentences = []
    for model in (single, served):
        with pytest.raises(ModelError, match="shorten the prompt") as caught:
            model.generate([*PROMPTS, long])
        sentences.append(str(caught.value))
    here, there = sentences
    assert there == here


def test_a_scheduler_that_is_gone_is_told_and_what_came_back_stays(
    threads, on_cluster, single, gate, tmp_path, monkeypatch
):
    def stored():
        with opened(tmp_path / "records.sqlite") as db:
            [count] = db.execute("SELECT count(*) FROM calls").fetchone()
        return count

    started = threads(1)
    model = on_cluster(started.scheduler_address)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(model.generate, PROMPTS)
        wait_until(lambda: stored() == 3)
        started.sync(started.scheduler.close)
        with pytest.raises(ModelError, match=r"cluster at tcp://\S+: .*CancelledError"):
            run.result()
    gate.open_for = 99
    time.sleep(0.1)  # the slice in work may still be counted
    gate.passed = 0
    again = on_cluster(threads(1).scheduler_address)
    made = again.generate(PROMPTS)
    assert made == single.generate(PROMPTS)
    assert gate.passed == len(PROMPTS) - 3


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
    a = {"prompt": "a" * 8}
    b = {"prompt": "b" * 24}
    c = {"prompt": "c" * 8}
    d = {"prompt": "d" * 25}
    requests = [a, b, c, a, d]
    assert slices(Job("generate", requests)) == expected
    assert slices(Job("generate", [])) == []


def test_a_worker_loads_a_model_once_and_holds_no_other(monkeypatch):
    loads = []

    def load(name, dtype):
        loads.append(name)
        batch = [0], [f"{name} {dtype}"]
        return SimpleNamespace(fingerprint=name, answer=lambda job: [batch])

    loaded = {}
    monkeypatch.setattr(cluster.factrobust, "load_model", load, raising=False)
    monkeypatch.setattr(cluster, "_loaded", loaded)
    job = Job("score", [{"prompt": "?", "answer": "!"}])
    for name in ("one", "one", "two"):
        done = answer_slice(
            job,
            name=name,
            fingerprint=name,
            dtype="float32",
        )
        assert done == [f"{name} float32"]
    assert loads == ["one", "two"]
    assert [*loaded] == ["two"]
    with pytest.raises(ModelError, match=r"two on .* is another model \(two\) than here \(other"):
        answer_slice(job, name="two", fingerprint="other", dtype="float32")
