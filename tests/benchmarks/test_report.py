"""Ratios and their targets; nothing here is about time."""

import json

import numpy as np


def test_every_work_is_done_in_every_round_and_once_before(bench):
    done: list[str] = []
    works = {name: lambda name=name: done.append(name) for name in ("a", "b")}
    seconds = bench.in_turns(works, rounds=2)
    assert done == ["a", "b"] * 3
    assert {name: len(values) for name, values in seconds.items()} == {"a": 2, "b": 2}


def test_the_median_decides(bench):
    ratios = np.array([1.0, 3.14159, 10.0])
    reached = bench.ratio("usual", "ours", ratios, "at least", 3)
    assert (reached["lowest"], reached["median"], reached["highest"]) == (1.0, 3.1, 10.0)
    assert reached["target"] == "at least 3"
    assert reached["reached"] is True
    assert bench.ratio("usual", "ours", ratios, "at most", 3)["reached"] is False
    assert bench.ratio("usual", "ours", ratios)["reached"] is None


def test_json_names_the_kind_of_machine_alone(bench, tmp_path):
    bench.write_json(tmp_path / "deep" / "x.json", {"found": 1})
    told = json.loads((tmp_path / "deep" / "x.json").read_text())
    assert told["found"] == 1
    assert set(told["machine"]) == {"cpus", "threads", "architecture"}
