"""The records store: exact values, resume, two processes, kills, damage, export."""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from factrobust import paths, records
from factrobust.records import Call, Records, RecordsError, decode, encode, export
from hypothesis import given, settings
from hypothesis import strategies as st

NOTEBOOK = "notebooks/1-decoding/1.1-known-facts.ipynb"


def call(i: int, model: str = "toy", operation: str = "score") -> Call:
    return Call(model, operation, f"Question {i}:\nÄ\x00\t", json.dumps({"i": i}))


def calls(n: int, **fields: str) -> list[Call]:
    return [call(i, **fields) for i in range(n)]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("FACTROBUST_NOTEBOOK", "FACTROBUST_PROFILE", "FACTROBUST_RECORDS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "a folder" / "records.sqlite"


# --- values ---------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=300)
@given(st.floats(width=32, allow_nan=False))
def test_a_float32_comes_back_exactly(number: float) -> None:
    back = decode(encode(np.float32(number)))
    assert type(back) is float
    assert back == number
    assert math.copysign(1, back) == math.copysign(1, number)


@settings(deadline=None, max_examples=300)
@given(st.floats(allow_nan=False))
def test_a_double_comes_back_exactly(number: float) -> None:
    assert decode(encode(number)) == number


def test_texts_of_numbers_are_short() -> None:
    assert encode(np.float32(0.1)) == "0.1"
    assert encode(float(np.float32(0.1))) == "0.1"  # the same number, however it is held
    assert encode(0.1) == "0.1E0"  # this double is not a float32
    assert encode(1e-300) == "1E-300"
    assert encode([1.0, 1, True, None, -math.inf]) == "[1.0,1,true,null,-Infinity]"
    assert math.isnan(decode(encode(math.nan)))


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_nested_values_come_back_equal(value: object) -> None:
    assert decode(encode(value)) == value


def test_arrays_come_back_as_lists_of_the_same_numbers() -> None:
    array = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    back = decode(encode({"a": array, "n": np.int64(3)}))
    assert back == {"a": array.tolist(), "n": 3}
    assert np.array_equal(np.array(back["a"], dtype=np.float32), array)


@pytest.mark.parametrize("value", [{1: "a"}, {"a"}, object(), np.datetime64("2020")])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="A record cannot hold"):
        encode(value)


# --- the working store ----------------------------------------------------------------------------


def test_put_then_get_and_resume(path: Path) -> None:
    store = Records(path)
    assert store.get(calls(2)) == [None, None]
    assert not path.exists()  # reading creates nothing
    store.put(calls(2), [{"text": " Nairobi"}, [np.float32(0.1)]])
    store.close()
    again = Records(path)
    expected = [None, [float(np.float32(0.1))], {"text": " Nairobi"}, [float(np.float32(0.1))]]
    assert again.get([call(2), call(1), call(0), call(1)]) == expected


@pytest.mark.parametrize("field", ["model", "operation", "prompt", "parameters"])
def test_every_field_is_part_of_the_key(path: Path, field: str) -> None:
    store = Records(path)
    fields = {"model": "m", "operation": "o", "prompt": "p", "parameters": "{}"}
    store.put([Call(**fields)], [1])
    assert store.get([Call(**fields | {field: "other"})]) == [None]


def test_fields_do_not_run_into_each_other(path: Path) -> None:
    store = Records(path)
    store.put([Call("a", "bc", "", "")], [1])
    assert store.get([Call("ab", "c", "", "")]) == [None]


def test_first_value_stays(path: Path) -> None:
    store = Records(path)
    store.put([call(0)], [1])
    store.put([call(0), call(1)], [2, 2])
    assert store.get(calls(2)) == [1, 2]


def test_none_and_unequal_lengths_are_refused(path: Path) -> None:
    store = Records(path)
    with pytest.raises(ValueError, match="cannot be None"):
        store.put(calls(2), [1, None])
    with pytest.raises(ValueError, match="zip"):
        store.put(calls(2), [1])
    assert store.get(calls(2)) == [None, None]


def _write(path: Path, first: int, n: int) -> None:
    store = Records(path)
    for i in range(first, first + n):
        store.put([call(i)], [i])


def test_processes_share_a_store(path: Path) -> None:
    # Three at once, overlapping, from before the file exists: no lost row, no "locked".
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write, args=(path, 100 * i, 200)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert Records(path).get(calls(400)) == list(range(400))
    assert records.verify(path, None) == {str(path): 400}


def test_waiting_for_another_process_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "BUSY_SECONDS", 0.1)
    other = filled(path, 1)._database()
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RecordsError, match=r"kept .*records\.sqlite locked for over 0\.1 s; what"):
        Records(path).put([call(1)], [1])
    other.execute("COMMIT")


def test_a_store_can_be_used_after_a_fork(path: Path) -> None:
    store = Records(path)
    store.put([call(0)], [0])
    child = multiprocessing.get_context("fork").Process(target=store.put, args=([call(1)], [1]))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert store.get(calls(2)) == [0, 1]


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
        store = Records(path)
        batches = [
            store.get([Call("toy", "score", f"{batch}/{i}", "{}") for i in range(50)])
            for batch in range(done + 3)
        ]
        for batch, values in enumerate(batches):
            whole, nothing = [batch] * 50, [None] * 50
            assert values == whole if batch <= done else values in (whole, nothing)
        store.close()


# --- bad files ------------------------------------------------------------------------------------


def filled(path: Path, n: int = 500) -> Records:
    store = Records(path)
    store.put(calls(n), [{"text": f"value {i}", "logprobs": [i / 7]} for i in range(n)])
    store.close()
    return store


def test_a_flipped_byte_is_found_and_repaired(path: Path) -> None:
    store = filled(path)
    data = path.read_bytes()
    assert data.count(b'"value 77"') == 1
    path.write_bytes(data.replace(b'"value 77"', b'"value 78"'))
    assert store.get(calls(10))[9]["text"] == "value 9"
    with pytest.raises(RecordsError, match=r"records\.sqlite is damaged.*records repair"):
        store.get(calls(100))
    with pytest.raises(RecordsError, match="does not match its checksum"):
        records.verify(path, None)
    store.close()
    saved, aside = records.repair(path)
    assert saved == 499
    assert aside.exists()
    values = store.get(calls(500))
    assert [i for i, value in enumerate(values) if value is None] == [77]


def test_flipped_bytes_never_change_a_value(path: Path) -> None:
    filled(path, 100).close()
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.choice(len(data), size=300, replace=False):
        flipped = bytearray(data)
        flipped[position] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        store = Records(path)
        with contextlib.suppress(RecordsError):
            for i, value in enumerate(store.get(calls(100))):
                assert value in (None, {"text": f"value {i}", "logprobs": [i / 7]}), position
        store.close()


def test_a_truncated_file_is_found_and_most_rows_are_saved(path: Path) -> None:
    store = filled(path, 2000)
    size = path.stat().st_size
    os.truncate(path, size * 3 // 4)
    with pytest.raises(RecordsError, match=r"is damaged .*malformed.*records repair"):
        store.get(calls(3))
    store.close()
    saved, _ = records.repair(path)
    assert 1000 < saved < 2000
    assert records.verify(path, None) == {str(path): saved}


def test_repair_keeps_the_marks_and_the_write_ahead_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    store = Records(path)
    store.put(calls(3), [0, 1, 2])
    assert path.with_name(path.name + "-wal").stat().st_size > 0
    assert records.repair(path)[0] == 3
    store.close()
    assert Records(path).get(calls(3)) == [0, 1, 2]
    assert Records(path).notebooks() == {NOTEBOOK: 3}


def test_a_file_of_another_kind_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("fact_id,subject\n" * 1000)
    with pytest.raises(RecordsError, match=r"is not a records file.*move it away"):
        Records(path).get([call(0)])
    with pytest.raises(RecordsError, match=r"is not a records file"):
        records.repair(path)
    assert path.read_text().startswith("fact_id")
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (a)")
    other.close()
    with pytest.raises(RecordsError, match="another program's SQLite file"):
        Records(path).put([call(0)], [1])


def test_another_schema_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path)
    monkeypatch.setattr(records, "SCHEMA", 7)
    sentence = r"records\.sqlite holds records of schema 1, but this library reads schema 7: move"
    with pytest.raises(RecordsError, match=sentence):
        Records(path).get([call(0)])


def test_a_full_disk_keeps_what_was_committed(path: Path) -> None:
    store = filled(path)
    database = store._database()
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages + 2}")
    new = calls(2000, model="another")
    with pytest.raises(RecordsError, match=r"records\.sqlite.*full.*stays; free disk space"):
        store.put(new, ["x" * 100] * 2000)
    assert store.get(new) == [None] * 2000
    assert None not in store.get(calls(500))
    store.put(new, ["x" * 100] * 2000)  # the same object goes on once there is room
    assert None not in store.get(new)


def test_a_folder_that_cannot_be_written(path: Path) -> None:
    path.parent.mkdir()
    (path.parent / "file").write_text("in the way")
    store = Records(path.parent / "file" / "records.sqlite")
    with pytest.raises(RecordsError, match=r"Cannot write records: .*make it writable"):
        store.put([call(0)], [1])
    with pytest.raises(RecordsError, match=r"Cannot write records: .*make it writable"):
        Records(Path("/proc/records.sqlite")).put([call(0)], [1])


# --- export and committed records -----------------------------------------------------------------


@pytest.fixture
def base(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed folder with 50 score and 30 generate calls, values 0, 1, 2..."""
    store = Records(path)
    store.put(calls(99, operation="unused"), [0] * 99)  # by nobody's notebook
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    store.put(calls(50), list(range(50)))
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", "notebooks/other.ipynb")
    store.put(calls(30, operation="generate"), list(range(30)))
    store.get(calls(5))
    monkeypatch.delenv("FACTROBUST_NOTEBOOK")
    folder = path.parent / "committed"
    export(store, folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_export_holds_what_was_used_readably(base: Path) -> None:
    import pandas as pd

    files = sorted(base.iterdir())
    assert [file.name.split(".")[:2] for file in files] == [["toy", "generate"], ["toy", "score"]]
    table = pd.read_parquet(files[1])
    assert list(table.columns) == ["model", "operation", "prompt", "parameters", "value"]
    assert len(table) == 50
    assert table.prompt.is_monotonic_increasing
    assert sum(records.verify(None, base).values()) == 80


def test_export_depends_on_the_records_alone(
    path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(base)
    export(Records(path), base)
    assert contents(base) == before
    # The same calls, stored in another order by another run, and in batches of other sizes.
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", "notebooks/other.ipynb")
    store = Records(path.with_name("second.sqlite"))
    for i in reversed(range(30)):
        store.put([call(i, operation="generate")], [i])
    store.put(calls(5), list(range(5)))
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    store.get(calls(5))
    store.put(calls(50)[::-1], list(range(50))[::-1])
    export(store, base)
    assert contents(base) == before


def test_export_splits_large_files(path: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "CHUNK_BYTES", 300)
    files = export(Records(path), base)
    assert len(files) > 4
    assert sorted(files) == sorted(base.iterdir())  # the two large ones are gone
    assert Records(None, base, strict=True).get(calls(50)) == list(range(50))


def test_export_refuses_to_drop_a_notebook_that_was_not_run(path: Path, base: Path) -> None:
    before = contents(base)
    store = Records(path, base)
    store.forget_use(NOTEBOOK)
    with pytest.raises(RecordsError, match=rf"drop the records of {NOTEBOOK}.*--allow-fewer"):
        export(store, base)
    assert contents(base) == before
    export(store, base, allow_fewer=True)
    assert sum(records.verify(None, base).values()) == 35
    assert store.get(calls(50)) == list(range(50))  # forgetting a use deletes no result
    with pytest.raises(RecordsError, match="nothing to export"):
        export(Records(path.with_name("none.sqlite")), base)


def test_export_keeps_committed_calls_that_were_only_read(
    path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    new = Records(path.with_name("new.sqlite"), base)
    new.get(calls(50))
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", "notebooks/other.ipynb")
    new.get(calls(30, operation="generate") + calls(5))
    before = contents(base)
    export(new, base)
    assert contents(base) == before


def test_other_profiles_and_interactive_use_leave_no_marks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Records(path)
    store.put([call(0)], [0])
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    monkeypatch.setenv("FACTROBUST_PROFILE", "smoke")
    store.put([call(1)], [1])
    store.get(calls(2))
    assert store.notebooks() == {}
    monkeypatch.setenv("FACTROBUST_PROFILE", "laptop")
    store.get(calls(2))
    assert store.notebooks() == {NOTEBOOK: 2}


def test_committed_records_go_before_the_working_file(path: Path, base: Path) -> None:
    both = Records(path.with_name("w.sqlite"), base)
    both.put([call(0), call(50)], ["working", "working"])
    assert both.get([call(0), call(50), call(51)]) == [0, "working", None]


def test_committed_records_alone_are_read_only(base: Path) -> None:
    with pytest.raises(RecordsError, match="read-only"):
        Records(None, base).put([call(99)], [1])
    assert Records(None, base).get([call(0), call(99)]) == [0, None]


def test_every_flipped_byte_of_a_committed_file_is_found(base: Path) -> None:
    file = next(base.glob("*.score.*"))
    data = file.read_bytes()
    rng = np.random.default_rng(0)
    expected = Records(None, base).get(calls(50))
    for position in rng.choice(len(data), size=200, replace=False):
        flipped = bytearray(data)
        flipped[position] ^= 1 << rng.integers(8)
        file.write_bytes(flipped)
        # Bytes that hold no record (Arrow's own copy of the schema, for instance) may differ.
        with contextlib.suppress(RecordsError):
            assert Records(None, base).get(calls(50)) == expected, position
    file.write_bytes(data[: len(data) // 2])
    with pytest.raises(RecordsError, match=rf"{file.name} is damaged .*git checkout"):
        Records(None, base).get(calls(1))


def test_another_schema_of_committed_records_is_named(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SCHEMA", 7)
    sentence = "holds records of schema 1, but this library reads schema 7: run `make reproduce"
    with pytest.raises(RecordsError, match=sentence):
        Records(None, base).get([call(0)])


# --- modes and command line -----------------------------------------------------------------------


def test_modes_of_open_records(
    path: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    (tmp_path / "data").mkdir()
    base.rename(tmp_path / "data" / "records")
    records.open_records().put([call(50)], ["new"])
    assert records.open_records().get([call(0), call(50)]) == [0, "new"]
    assert records.open_records() is records.open_records()
    monkeypatch.setenv("FACTROBUST_RECORDS", "fresh")
    assert records.open_records().get([call(0), call(50)]) == [None, "new"]
    monkeypatch.setenv("FACTROBUST_RECORDS", "replay")
    assert records.open_records().get([call(0)]) == [0]
    long = json.dumps({"name": "gemma-3-270m", "weights": "0" * 64})
    missing = [call(50), call(51), call(0, model=long, operation="sample")]
    with pytest.raises(RecordsError) as error:
        records.open_records().get([call(0), *missing])
    said = str(error.value)
    assert "2 of score by toy, 1 of sample by gemma-3-270m" in said
    assert "run `make reproduce && make records`" in said
    monkeypatch.setenv("FACTROBUST_RECORDS", "frehs")
    with pytest.raises(RecordsError, match="FACTROBUST_RECORDS is 'frehs'"):
        records.open_records()


def test_command_line(path: Path, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--store", str(path), "--folder", str(base)]
    assert records.main([*where, "export"]) == 0
    assert records.main([*where, "verify"]) == 0
    assert f"{path}: 179 calls, all sound" in capsys.readouterr().out
    assert records.main([*where, "info"]) == 0
    shown = capsys.readouterr().out
    assert "toy score: 50 calls" in shown
    assert f"{NOTEBOOK}: uses 50 calls" in shown
    where[1] = str(path.with_name("text.sqlite"))
    Path(where[1]).write_text("nothing of the kind " * 300)
    assert records.main([*where, "verify"]) == 1
    assert "is not a records file" in capsys.readouterr().err


def test_importing_the_store_is_light() -> None:
    code = (
        "import sys, factrobust.records; print({'torch', 'pyarrow', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
