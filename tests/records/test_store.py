"""The working store: resume, two processes, kills, damage, a full disk."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factrobust.records import Call, Records, RecordsError, store


def test_put_then_get_and_resume(path: Path, toy: Any) -> None:
    first = Records(path)
    assert first.get(toy.calls(2)) == [None, None]
    assert not path.exists()  # reading creates nothing
    first.put(toy.calls(2), [{"text": " Nairobi"}, [np.float32(0.1)]])
    zero, one, two = toy.calls(3)
    expected = [None, [float(np.float32(0.1))], {"text": " Nairobi"}, [float(np.float32(0.1))]]
    assert Records(path).get([two, one, zero, one]) == expected
    first.put([one, two], [1, 2])  # the first value stays
    assert Records(path).get([two, one]) == [2, expected[1]]


# --- processes ------------------------------------------------------------------------------------


def _write(path: Path, calls: list[Call], first: int) -> None:
    records = Records(path)
    for i, call in enumerate(calls, first):
        records.put([call], [i])


def test_processes_share_a_store(path: Path, toy: Any) -> None:
    # Three at once, overlapping, from before the file exists: no lost row, no "locked".
    calls = toy.calls(200)
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=_write, args=(path, calls[start : start + 100], start))
        for start in (0, 50, 100)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert Records(path).get(calls) == list(range(200))


def test_waiting_for_another_process_ends(
    path: Path, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.1)
    records = toy.filled(path, 1)
    with (
        store.opened(path),
        pytest.raises(RecordsError, match=r"locked\): what was committed stays"),
    ):
        records.put(toy.calls(2), [1, 1])


KILLED = """
import sys
from pathlib import Path
from factrobust.records import Call, Records
store = Records(Path(sys.argv[1]))
for batch in range(100_000):
    calls = [Call("toy", "score", f"{batch}/{i}", "{}") for i in range(50)]
    store.put(calls, [batch] * 50)
    print(batch, flush=True)
"""


def test_sigkill_loses_no_finished_batch_and_leaves_no_half(path: Path) -> None:
    for kill_after in (0.0, 0.05, 0.2):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        time.sleep(kill_after)
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines()
        process.wait()
        done = int(lines[-1])
        records = Records(path)
        for batch in range(done + 3):
            values = records.get([Call("toy", "score", f"{batch}/{i}", "{}") for i in range(50)])
            whole, nothing = [batch] * 50, [None] * 50
            assert values == whole if batch <= done else values in (whole, nothing)


# --- files that cannot be read or written ---------------------------------------------------------


def test_a_damaged_file_and_one_of_another_schema_are_refused(path: Path, toy: Any) -> None:
    records = toy.filled(path, 500)
    os.truncate(path, path.stat().st_size * 3 // 4)
    with pytest.raises(RecordsError, match=r"malformed.*move a file away that is damaged"):
        records.get(toy.calls(500))
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (a)")
    with pytest.raises(RecordsError, match="holds records of schema 0, but this library reads"):
        records.put(toy.calls(1), [1])


def test_a_file_with_one_more_column_is_used(path: Path, toy: Any) -> None:
    """As earlier versions wrote it."""
    records = toy.filled(path, 1)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE calls ADD COLUMN checksum BLOB")
    records.put(toy.calls(2), [1, 1])
    assert records.get(toy.calls(2))[1] == 1


def test_a_full_disk_keeps_what_was_committed(path: Path, toy: Any) -> None:
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


def test_a_folder_that_cannot_be_written(path: Path, toy: Any) -> None:
    path.parent.write_text("in the way")
    with pytest.raises(RecordsError, match=r"Cannot use the records in .*move a file away"):
        Records(path).put(toy.calls(1), [1])
