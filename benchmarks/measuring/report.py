"""Pieces of work timed in turns, and their ratios as a table and as JSON."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

from factrobust.models.records import progress_bar
from factrobust.provenance import write_atomically


def in_turns(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of each piece of work [round]; all in every round, after one round to warm up.

    Whatever else the machine does slows all of a round alike, so ratios are taken within rounds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    with progress_bar("[bench]", (rounds + 1) * len(works)) as advance:
        for turn in range(rounds + 1):
            for name, work in works.items():
                start = time.perf_counter()
                work()
                if turn:
                    seconds[name].append(time.perf_counter() - start)
                advance(1)
    return {name: np.array(values) for name, values in seconds.items()}


def ratio(
    first: str, second: str, ratios: np.ndarray, bound: str = "", target: float | None = None
) -> dict[str, Any]:
    """Lowest, median and highest of some ratios, and whether the median reaches its target.

    `bound` is "at least" or "at most".
    """
    middle = float(np.median(ratios))
    reached = None
    if target is not None:
        reached = middle >= target if bound == "at least" else middle <= target
    return {
        "ratio": f"{first} : {second}",
        "lowest": two_digits(ratios.min()),
        "median": two_digits(middle),
        "highest": two_digits(ratios.max()),
        "target": None if target is None else f"{bound} {target:g}",
        "reached": reached,
    }


def print_ratios(compared: list[dict[str, Any]]) -> None:
    """A line a ratio."""
    print("\nRatios of seconds: median (lowest - highest)")
    for c in compared:
        spread = f"{c['median']:g} ({c['lowest']:g} - {c['highest']:g})"
        verdict = "reached" if c["reached"] else "NOT REACHED"
        goal = f"{c['target']}: {verdict}" if c["target"] else ""
        print(f"  {c['ratio']:<58} {spread:<26} {goal}")


def write_json(path: Path, about: Mapping[str, Any]) -> None:
    """What was measured, with the machine (its kind, not its name) and the versions."""
    told = dict(about) | {
        "machine": {
            "cpus": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "architecture": platform.machine(),
        },
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("numpy", "pandas", "torch", "transformers")},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(told, indent=2) + "\n").encode())


def two_digits(value: Any) -> float:
    """A number rounded to two significant digits: timings tell no more."""
    return float(f"{value:.2g}")
