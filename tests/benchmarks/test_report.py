"""Ratios and their targets; nothing here is about time."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("measuring.report")


def test_every_work_is_done_in_every_round_and_once_before(report: ModuleType) -> None:
    done: list[str] = []
    works = {name: lambda name=name: done.append(name) for name in ("a", "b")}  # type: ignore[misc]
    seconds = report.in_turns(works, rounds=2)
    assert done == ["a", "b"] * 3
    assert {name: len(values) for name, values in seconds.items()} == {"a": 2, "b": 2}


def test_the_median_decides(report: ModuleType) -> None:
    ratios = np.array([1.0, 3.14159, 10.0])
    reached = report.ratio("usual", "ours", ratios, "at least", 3)
    assert (reached["lowest"], reached["median"], reached["highest"]) == (1.0, 3.1, 10.0)
    assert reached["target"] == "at least 3"
    assert reached["reached"] is True
    assert report.ratio("usual", "ours", ratios, "at most", 3)["reached"] is False
    assert report.ratio("usual", "ours", ratios)["reached"] is None


def test_json_names_the_kind_of_machine_alone(report: ModuleType, tmp_path: Path) -> None:
    report.write_json(tmp_path / "deep" / "x.json", {"found": 1})
    told = json.loads((tmp_path / "deep" / "x.json").read_text())
    assert told["found"] == 1
    assert set(told["machine"]) == {"cpus", "threads", "architecture"}
