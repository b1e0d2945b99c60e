"""The records as users see them: keys, values as text, asking, the store's modes, committed
files."""

import contextlib
import copy
import math
import multiprocessing
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust import paths
from factrobust.models import records
from factrobust.models.records import Call, Records, RecordsError, decode, encode


def test_every_field_is_part_of_the_key():
    call = Call("m", "o", "p", "{}")
    for field in ("model", "operation", "prompt", "parameters"):
        assert records.key_of(call._replace(**{field: "other"})) != records.key_of(call)
    assert records.key_of(Call("a", "bc", "", "")) != records.key_of(Call("ab", "c", "", ""))
    # A change of keys needs a change of schema. sha256sum of: [2, "m", "o", "p", "{}"]
    expected = "416c4eaa9f38534f70610a35af2bfec333e8a3351d7a7d47c6fa6878f278375f"
    assert records.key_of(call).hex() == expected


class Lengths:
    """Computes the length of each prompt, two calls a batch, last ones first."""

    def __init__(self, prompts: list[str], fail_at: int | None = None) -> None:
        self.calls = [Call("m", "length", prompt, "{}") for prompt in prompts]
        self.computed: list[str] = []
        self.fail_at = fail_at

    def __call__(self, missing: list[int]) -> records.Batches:
        missing = missing[::-1]
        for start in range(0, len(missing), 2):
            if start // 2 == self.fail_at:
                raise KeyboardInterrupt
            batch = missing[start : start + 2]
            self.computed += [self.calls[i].prompt for i in batch]
            yield batch, [float(len(self.calls[i].prompt)) for i in batch]

    def run(self, store: Records | None) -> list[float]:
        return records.ask_all(store, self.calls, self, label="lengths")


PROMPTS = ["a", "bb", "a", "ccc", "dddd", "bb"]
VALUES = [1, 2, 1, 3, 4, 2]


def test_equal_calls_are_computed_once_and_found_ones_never(path):
    unstored = Lengths(PROMPTS)
    assert unstored.run(None) == VALUES
    assert sorted(unstored.computed) == ["a", "bb", "ccc", "dddd"]
    assert Lengths([]).run(None) == []
    assert Lengths(["bb", "dddd"]).run(Records(path)) == [2, 4]
    for missing in (["a", "ccc"], []):
        again = Lengths(PROMPTS)
        assert again.run(Records(path)) == VALUES
        assert sorted(again.computed) == missing


def test_an_interrupted_run_keeps_what_it_had(path):
    with pytest.raises(KeyboardInterrupt):
        Lengths(PROMPTS, fail_at=1).run(Records(path))
    again = Lengths(PROMPTS)
    assert again.run(Records(path)) == VALUES
    assert sorted(again.computed) == ["a", "bb"]


def test_a_runner_reads_the_latest_line_in_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path))
    file = tmp_path / "progress.txt"
    clock = iter([10.0, 12.0])
    monkeypatch.setattr(records.time, "monotonic", lambda: next(clock))
    with records.progress_bar("gemma sample", 1200) as advance:
        assert file.read_text() == "gemma sample: 0 of 1,200\n"
        advance(300)  # recorded, or while the model was loaded: no forecast from this
        assert file.read_text() == "gemma sample: 300 of 1,200\n"
        advance(100)  # 100 in two seconds, so 800 in 16
        assert file.read_text() == "gemma sample: 400 of 1,200, 00:16 left\n"
    records.tell("gemma: loading")
    assert file.read_text() == "gemma: loading\n"
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
    assert records.keys_in(file) == {records.key_of(call) for call in toy.calls(3)}


def test_modes_of_open_records(path, base, toy, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    (tmp_path / "data").mkdir()
    base.rename(tmp_path / "data" / "records")
    calls = toy.calls(52)
    two = [calls[0], calls[50]]
    records.open_records().put(two, ["working", "new"])
    assert records.open_records().get(two) == [0, "new"]  # committed records go first
    assert records.open_records() is records.open_records()
    monkeypatch.setenv("FACTROBUST_RECORDS", "fresh")
    assert records.open_records().get(two) == [None, None]  # a store of its own
    records.open_records().put(two, ["again", "again"])
    assert records.open_records().get(two) == ["again", "again"]
    monkeypatch.setenv("FACTROBUST_RECORDS", "committed")
    assert records.open_records().get(two) == [0, "new"]
    monkeypatch.setenv("FACTROBUST_RECORDS", "replay")
    assert records.open_records().get(calls[:1]) == [0]
    model = "sha256:a5fd3b62230aa5ec float32"
    sentence = (
        rf"lack 3 calls .*the first is a score by {model}.* may ask no model: run `make repro"
    )
    with pytest.raises(RecordsError, match=sentence):
        records.open_records().get([*calls, *toy.calls(1, operation="sample")])


def test_put_then_get_and_resume(path, toy):
    first = Records(path)
    assert first.get(toy.calls(2)) == [None, None]
    assert not path.exists()  # reading creates nothing
    first.put(toy.calls(2), [{"text": " Nairobi"}, [np.float32(0.1)]])
    zero, one, two = toy.calls(3)
    expected = [None, [float(np.float32(0.1))], {"text": " Nairobi"}, [float(np.float32(0.1))]]
    assert Records(path).get([two, one, zero, one]) == expected
    first.put([one, two], [1, 2])  # the first value stays
    assert Records(path).get([two, one]) == [2, expected[1]]


def _write(path: Path, calls: list[Call], first: int) -> None:
    records = Records(path)
    for i, call in enumerate(calls, first):
        records.put([call], [i])


def test_processes_share_a_store(path, toy):
    # Three at once, overlapping, from before the file exists: no lost row, no "locked".
    calls = toy.calls(80)
    process = multiprocessing.get_context("fork").Process
    slices = [(path, calls[start : start + 40], start) for start in (0, 20, 40)]
    workers = [process(target=_write, args=args) for args in slices]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
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


def test_sigkill_loses_no_finished_batch_and_leaves_no_half(path):
    for kill_after in (0.0, 0.05, 0.2):
        command = [sys.executable, "-c", KILLED, str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = [process.stdout.readline()]
        time.sleep(kill_after)
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines()
        process.wait()
        done = int(lines[-1])
        for batch in range(done + 3):
            calls = [Call("toy", "score", f"{batch}/{i}", "{}") for i in range(50)]
            values = Records(path).get(calls)
            whole = [batch] * 50
            assert values == whole if batch <= done else values in (whole, [None] * 50)


def test_a_damaged_file_and_one_of_another_schema_are_refused(path, toy):
    store = toy.filled(path, 500)
    content = path.read_bytes()
    os.truncate(path, path.stat().st_size * 3 // 4)
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
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The kernel refuses to let the file grow, at the commit, as a full disk does.
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50_000, hard))
    try:
        with pytest.raises(RecordsError, match=r"records\.sqlite.*stays;.*free disk space"):
            records.put(new, ["x" * 100] * 2000)
        assert records.get(new) == [None] * 2000
        assert None not in records.get(toy.calls(100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    records.put(new, ["x" * 100] * 2000)  # the same object goes on once there is room
    assert None not in records.get(new)


def test_every_flipped_byte_of_a_committed_file_is_found(base, toy):
    file = next(base.glob("*.score.*"))
    content = file.read_bytes()
    rng = np.random.default_rng(0)
    for position in [*rng.choice(len(content), size=20, replace=False), None]:
        if position is None:
            file.unlink()
        else:
            flipped = bytearray(content)
            flipped[position] ^= 1 << rng.integers(8)
            file.write_bytes(flipped)
        with pytest.raises(RecordsError, match=rf"{file.name} is damaged .*git checkout"):
            Records(None, base).get(toy.calls(1))


def test_an_index_of_another_schema_or_damaged_is_named(base, toy):
    file = base / records.INDEX
    index = file.read_text()
    other = "of schema 7, but this library reads schema 2: run `make reproduce ASK=1"
    damaged = rf"{file.name} is damaged .*git checkout"
    newer = index.replace('"schema": 2', '"schema": 7')
    for text, sentence in {newer: other, index[:-9]: damaged}.items():
        file.write_text(text)
        with pytest.raises(RecordsError, match=sentence):
            Records(None, base).get(toy.calls(1))


@settings(deadline=None, max_examples=300)
@given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False))
def test_numbers_come_back_bit_for_bit(single, double):
    for number in (np.float32(single), double):
        back = decode(encode(number))
        assert type(back) is float
        assert back == number
        assert math.copysign(1, back) == math.copysign(1, number)


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(deadline=None)
@given(NESTED)
def test_nested_values_come_back_equal(value):
    assert decode(encode(value)) == value


def test_alternatives_are_read_when_they_are_looked_at():
    single = float(np.float32(-0.1))
    for number, token in ((-0.1, "Nairobi"), (single, "Nairobi"), (single, "3E0")):
        tops = [[(token, number), ('a ","top_logprobs":[', -2.5)], []]
        value = {"logprobs": [-0.1], "text": ',"top_logprobs":[', "top_logprobs": tops}
        back = decode(encode(value))
        assert "_list" not in vars(back["top_logprobs"])
        assert back["text"] == value["text"]
        assert [*back["top_logprobs"]] == tops
        assert encode(back) == encode(value)  # they can be written again


def test_alternatives_are_taken_apart_and_copied_as_a_list_is():
    tops = [[("Nairobi", -0.5)], [("Lagos", -2.5)]]
    for take in (lambda x: x[:1], lambda x: x[1:], copy.copy, copy.deepcopy, list):
        alternatives = decode(encode({"text": "", "top_logprobs": tops}))["top_logprobs"]
        assert list(take(alternatives)) == take(tops)
