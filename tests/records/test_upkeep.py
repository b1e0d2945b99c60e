"""Verify and repair."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from factrobust.records import Records, RecordsError
from factrobust.records.export import repair, verify


def test_repair_saves_all_but_the_damaged_row(
    path: Path, toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", "notebooks/any.ipynb")
    records = toy.filled(path, 500)
    path.write_bytes(path.read_bytes().replace(b'"value 77"', b'"value 78"'))
    with pytest.raises(RecordsError, match="does not match its checksum"):
        verify(path, path.parent)
    saved, aside = repair(path)
    assert saved == 499
    assert aside.exists()
    values = records.get(toy.calls(500))
    assert [i for i, value in enumerate(values) if value is None] == [77]
    assert values[78] == toy.value(78)


def test_repair_saves_the_rows_around_a_damaged_page(path: Path, toy: Any) -> None:
    toy.filled(path, 2000)
    data = bytearray(path.read_bytes())
    middle = data.index(b'"value 999"') // 4096 * 4096
    data[middle : middle + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    with pytest.raises(RecordsError, match="damaged"):
        verify(path, path.parent)
    saved, _ = repair(path)
    assert 1950 < saved < 2000
    assert verify(path, path.parent) == {str(path): saved}


def test_repair_saves_the_beginning_of_a_truncated_file(path: Path, toy: Any) -> None:
    toy.filled(path, 2000)
    os.truncate(path, path.stat().st_size * 3 // 4)
    saved, _ = repair(path)
    assert 1000 < saved < 2000
    assert verify(path, path.parent) == {str(path): saved}


def test_repair_of_a_sound_file_changes_nothing(path: Path, base: Path, toy: Any) -> None:
    before = verify(path, base)
    assert repair(path)[0] == 179
    assert verify(path, base) == before
    assert Records(path).get(toy.calls(50)) == list(range(50))


def test_repair_takes_no_file_of_another_kind(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("fact_id,subject\n" * 1000)
    with pytest.raises(RecordsError, match=r"records\.sqlite is not a records file"):
        repair(path)
    assert path.read_text().startswith("fact_id")
    with pytest.raises(RecordsError, match="there is no such file"):
        repair(path.with_name("none.sqlite"))
