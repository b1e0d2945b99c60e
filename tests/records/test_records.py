"""The store as users see it: `Records` and the modes of `open_records`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from factrobust import paths
from factrobust.records import Records, RecordsError, open_records
from factrobust.records.export import export


def test_none_and_unequal_lengths_are_refused(path: Path, toy: Any) -> None:
    records = Records(path)
    with pytest.raises(ValueError, match="cannot be None"):
        records.put(toy.calls(2), [1, None])
    with pytest.raises(ValueError, match="zip"):
        records.put(toy.calls(2), [1])
    assert records.get(toy.calls(2)) == [None, None]


def test_committed_records_go_before_the_working_file(path: Path, base: Path, toy: Any) -> None:
    calls = toy.calls(52)
    both = Records(path.with_name("w.sqlite"), base)
    both.put([calls[0], calls[50]], ["working", "working"])
    assert both.get([calls[0], calls[50], calls[51]]) == [0, "working", None]


def test_committed_records_alone_are_read_only(base: Path, toy: Any) -> None:
    calls = toy.calls(60)
    with pytest.raises(RecordsError, match="read-only"):
        Records(None, base).put(calls[:1], [1])
    assert Records(None, base).get([calls[0], calls[59]]) == [0, None]


def test_other_profiles_and_interactive_use_leave_no_marks(
    path: Path, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = Records(path)
    records.put(toy.calls(1), [0])
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", "notebooks/any.ipynb")
    monkeypatch.setenv("FACTROBUST_PROFILE", "smoke")
    records.put(toy.calls(2), [0, 1])
    records.get(toy.calls(2))
    with pytest.raises(RecordsError, match="nothing to export"):
        export(path, path.parent / "committed")
    monkeypatch.setenv("FACTROBUST_PROFILE", "laptop")
    records.get(toy.calls(2))
    export(path, path.parent / "committed")
    assert Records(None, path.parent / "committed").get(toy.calls(2)) == [0, 1]


def test_modes_of_open_records(
    path: Path, base: Path, toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    (tmp_path / "data").mkdir()
    base.rename(tmp_path / "data" / "records")
    calls = toy.calls(52)
    two = [calls[0], calls[50]]
    open_records().put([calls[50]], ["new"])
    assert open_records().get(two) == [0, "new"]
    assert open_records() is open_records()
    monkeypatch.setenv("FACTROBUST_RECORDS", "fresh")
    assert open_records().get(two) == [None, "new"]
    monkeypatch.setenv("FACTROBUST_RECORDS", "replay")
    assert open_records().get(calls[:1]) == [0]
    with pytest.raises(RecordsError) as error:
        open_records().get([*calls, *toy.calls(1, operation="sample")])
    said = str(error.value)
    model = "sha256:a5fd3b62230aa5ec float32"
    assert f"2 of score by {model}, 1 of sample by {model}" in said
    assert "run `make reproduce && make records`" in said
    monkeypatch.setenv("FACTROBUST_RECORDS", "frehs")
    with pytest.raises(RecordsError, match="FACTROBUST_RECORDS is 'frehs'"):
        open_records()


def test_importing_the_store_loads_what_it_needs_and_no_more() -> None:
    code = (
        "import sys, factrobust.records\n"
        "unwanted = {'torch', 'pyarrow', 'pandas', 'factrobust.records.export',\n"
        "            'factrobust.records.export'}\n"
        "print(unwanted & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
