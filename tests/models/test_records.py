"""The records as users see them: keys, values as text, asking, the store's modes, committed
files."""

import contextlib
import copy
import json
import multiprocessing
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust import paths
from factrobust.models import records
from factrobust.models.records import Call, Records, RecordsError, decode, encode

MODEL = "sha256:a5fd3b62230aa5ec float32"  # of the toy's calls


def test_every_field_is_part_of_the_key():
    call = Call("m", "o", "p", "{}")
    calls = [call]
    for field in Call._fields:
        calls.append(call._replace(**{field: "x"}))
    calls.append(Call("a", "bc", "", ""))
    calls.append(Call("ab", "c", "", ""))
    keys = {*map(records.key_of, calls)}
    assert len(keys) == len(calls)
    # A change of keys needs a change of schema. sha256sum of: [2, "m", "o", "p", "{}"]
    expected = "416c4eaa9f38534f70610a35af2bfec333e8a3351d7a7d47c6fa6878f278375f"
    assert records.key_of(call).hex() == expected


PROMPTS = ["a", "bb", "a", "ccc", "dddd", "bb"]
VALUES = [1, 2, 1, 3, 4, 2]


def lengths(store, prompts, batches=99):
    """The length of each prompt, and the prompts whose lengths were computed: two a batch, the last
    first. After so many batches the run is interrupted."""
    calls = [Call("m", "length", prompt, "{}") for prompt in prompts]
    computed = []

    def compute(missing):
        missing = missing[::-1]
        for start in range(0, len(missing), 2):
            if start == 2 * batches:
                raise KeyboardInterrupt
            batch = missing[start : start + 2]
            new = [calls[i].prompt for i in batch]
            computed.extend(new)
            yield batch, [*map(len, new)]

    values = records.ask_all(
        store,
        calls,
        compute,
        label="lengths",
    )
    return values, sorted(computed)


def test_equal_calls_are_computed_once_and_found_ones_never(path):
    assert lengths(None, PROMPTS) == (VALUES, ["a", "bb", "ccc", "dddd"])
    assert lengths(None, []) == ([], [])
    store = Records(path)
    assert lengths(store, ["bb", "dddd"]) == ([2, 4], ["bb", "dddd"])
    assert lengths(store, PROMPTS) == (VALUES, ["a", "ccc"])
    assert lengths(Records(path), PROMPTS) == (VALUES, [])


def test_an_interrupted_run_keeps_what_it_had(path):
    with pytest.raises(KeyboardInterrupt):
        lengths(Records(path), PROMPTS, batches=1)
    assert lengths(Records(path), PROMPTS) == (VALUES, ["a", "bb"])


def test_a_runner_reads_the_latest_line_in_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path))
    read = (tmp_path / "progress.txt").read_text
    clock = iter([10.0, 11.0, 12.0])
    monkeypatch.setattr(records.time, "monotonic", lambda: next(clock))
    with records.progress_bar("gemma sample", 1200) as advance:
        assert read() == "gemma sample: 0 of 1,200\n"
        advance(300)  # recorded, or while the model was loaded: no forecast from this
        advance(0)
        assert read() == "gemma sample: 300 of 1,200\n"
        advance(100)  # 100 in two seconds, so 800 in 16
        assert read() == "gemma sample: 400 of 1,200, 00:16 left\n"
    records.tell("gemma: loading")
    assert read() == "gemma: loading\n"
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path / "none"))
    records.tell("nobody reads this")  # where no runner made a folder
    assert not (tmp_path / "none").exists()


def test_the_runner_learns_which_calls_were_used(path, toy, tmp_path, monkeypatch):
    store = toy.filled(path, 4)
    file = tmp_path / "used"
    store.get(toy.calls(2))
    assert not file.exists()  # in JupyterLab nobody asks for it
    monkeypatch.setenv("FACTROBUST_USED", str(file))
    store.get(toy.calls(2))
    store.get(toy.calls(3)[1:])  # a call that was used before, and one more
    used = records.keys_in(file)
    assert used == {*map(records.key_of, toy.calls(3))}


def test_modes_of_open_records(path, base, toy, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    (tmp_path / "data").mkdir()
    base.rename(tmp_path / "data" / "records")
    calls = toy.calls(52)
    two = [calls[0], calls[50]]  # the first is committed

    def opened(mode):
        monkeypatch.setenv("FACTROBUST_RECORDS", mode)
        return records.open_records()

    records.open_records().put(two, ["working", "new"])
    assert records.open_records().get(two) == [0, "new"]  # committed records go first
    assert records.open_records() is opened("committed")
    assert opened("fresh").get(two) == [None, None]  # a store of its own
    opened("fresh").put(two, ["again", "again"])
    assert opened("fresh").get(two) == ["again", "again"]
    assert opened("committed").get(two) == [0, "new"]
    assert opened("replay").get(calls[:1]) == [0]
    missing = rf"lack 3 calls .*the first is a score by {MODEL}.* may ask no model: run `make repro"
    with pytest.raises(RecordsError, match=missing):
        opened("replay").get([*calls, *toy.calls(1, operation="sample")])


def test_put_then_get_and_resume(path, toy):
    first = Records(path)
    zero, one, two = toy.calls(3)
    assert first.get([zero, one]) == [None, None]
    assert not path.exists()  # reading creates nothing
    tenth = np.float32(0.1)
    text = {"text": " Nairobi"}
    first.put([zero, one], [text, [tenth]])
    number = [float(tenth)]
    assert Records(path).get([two, one, zero, one]) == [None, number, text, number]
    first.put([one, two], [1, 2])  # the first value stays
    assert Records(path).get([two, one]) == [2, number]


def write(path, calls, first):
    for i, call in enumerate(calls, first):
        store = Records(path)
        store.put([call], [i])


def test_processes_share_a_store(path, toy):
    """Three at once, overlapping, from before the file exists: no lost row, no "locked"."""
    calls = toy.calls(80)
    fork = multiprocessing.get_context("fork")
    workers = []
    for start in (0, 20, 40):
        some = calls[start : start + 40]
        worker = fork.Process(target=write, args=(path, some, start))
        worker.start()
        workers.append(worker)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert Records(path).get(calls) == list(range(80))


KILLED = """
import sys
from pathlib import Path
from factrobust.models.records import Call, Records
store = Records(Path(sys.argv[1]))
for batch in range(100_000):
    calls = [Call("toy", "score", f"{batch}/{i}", "{}") for i in range(50)]
    store.put(calls, [batch] * 50)
    print(batch, flush=True)
"""


@pytest.mark.parametrize("kill_after", [0.0, 0.05, 0.2])
def test_sigkill_loses_no_finished_batch_and_leaves_no_half(path, kill_after):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = [process.stdout.readline()]
    time.sleep(kill_after)
    process.send_signal(signal.SIGKILL)
    lines += process.stdout.read().splitlines()
    process.wait()
    done = int(lines[-1])
    for batch in range(done + 3):
        calls = []
        for i in range(50):
            calls.append(Call("toy", "score", f"{batch}/{i}", "{}"))
        [found] = {*Records(path).get(calls)}
        if batch <= done:
            assert found == batch
        else:
            assert found in (batch, None)


def test_a_damaged_file_and_one_of_another_schema_are_refused(path, toy):
    store = toy.filled(path, 500)
    content = path.read_bytes()
    most = len(content) * 3 // 4
    os.truncate(path, most)
    with pytest.raises(RecordsError, match=r"malformed.*move a file away that is damaged"):
        store.get(toy.calls(500))
    path.write_bytes(content)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 1")
    with pytest.raises(RecordsError, match=r"already exists.* not of schema 2; then run again"):
        store.put(toy.calls(1), [1])


def test_a_full_disk_keeps_what_was_committed(path, toy):
    records = toy.filled(path, 100)
    new = toy.calls(2000, model="another")
    texts = ["x" * 100] * 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The kernel refuses to let the file grow, at the commit, as a full disk does.
    most = path.stat().st_size + 50_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        with pytest.raises(RecordsError, match=r"records\.sqlite.*stays;.*free disk space"):
            records.put(new, texts)
        assert records.get(new) == [None] * 2000
        assert None not in records.get(toy.calls(100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    records.put(new, texts)  # the same object goes on once there is room
    assert None not in records.get(new)


DAMAGED = r"{} is damaged .*git checkout"


def assert_refused(base, toy, sentence):
    with pytest.raises(RecordsError, match=sentence):
        Records(None, base).get(toy.calls(1))


def test_every_flipped_byte_of_a_committed_file_is_found(base, toy):
    [file] = base.glob("*.score.*")
    content = file.read_bytes()
    damaged = DAMAGED.format(file.name)
    for place in range(0, len(content), len(content) // 20):
        flipped = bytearray(content)
        flipped[place] ^= 1
        file.write_bytes(flipped)
        assert_refused(base, toy, damaged)
    file.unlink()
    assert_refused(base, toy, damaged)


def test_an_index_of_another_schema_or_damaged_is_named(base, toy):
    file = base / records.INDEX
    index = file.read_text()
    file.write_text(index.replace('"schema": 2', '"schema": 7'))
    other = "of schema 7, but this library reads schema 2: run `make reproduce ASK=1"
    assert_refused(base, toy, other)
    file.write_text(index[:-9])
    assert_refused(base, toy, DAMAGED.format(file.name))


NUMBERS = st.floats(allow_nan=False) | st.floats(width=32, allow_nan=False)
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(deadline=None, max_examples=300)
@given(NESTED)
def test_values_come_back_bit_for_bit(value):
    """Also the sign of 0.0, and whether a number is an integer: json writes all digits."""
    back = decode(encode(value))
    assert json.dumps(back, sort_keys=True) == json.dumps(value, sort_keys=True)


TENTH = float(np.float32(-0.1))  # of 32 bits


@pytest.mark.parametrize(
    ("number", "token"),
    [
        (-0.1, "Nairobi"),
        (TENTH, "Nairobi"),
        (TENTH, "3E0"),
    ],
)
def test_alternatives_are_read_when_they_are_looked_at(number, token):
    mark = ',"top_logprobs":['
    first = [(token, number), (f'a "{mark}', -2.5)]
    value = {
        "logprobs": [-0.1],
        "text": mark,
        "top_logprobs": [first, []],
    }
    back = decode(encode(value))
    assert "_list" not in vars(back["top_logprobs"])
    assert back["text"] == mark
    assert [*back["top_logprobs"]] == [first, []]
    assert encode(back) == encode(value)  # they can be written again


@pytest.mark.parametrize(
    "take",
    [
        itemgetter(slice(1)),
        itemgetter(-1),
        copy.copy,
        copy.deepcopy,
    ],
)
def test_alternatives_are_taken_apart_and_copied_as_a_list_is(take):
    tops = [[("Nairobi", -0.5)], [("Lagos", -2.5)]]
    back = decode(encode({"text": "", "top_logprobs": tops}))
    assert list(take(back["top_logprobs"])) == take(tops)
