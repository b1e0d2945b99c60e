"""Pieces of work timed in turns, and their ratios as a table and as JSON."""

from __future__ import annotations

import argparse
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

from factrobust.models.interface import Model
from factrobust.models.records import progress_bar
from factrobust.paths import DATA
from factrobust.provenance import write_atomically


def options(about: str | None, **defaults: Any) -> argparse.Namespace:
    """What the command line says: numbers and names that have these `defaults`, and the folder of
    the result."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--out", type=Path, default=DATA / "benchmarks")
    return parser.parse_args()


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
    found = {
        "ratio": f"{first} : {second}",
        "lowest": two_digits(ratios.min()),
        "median": two_digits(middle),
        "highest": two_digits(ratios.max()),
        "target": None,
        "reached": None,
    }
    if target is not None:
        found["target"] = f"{bound} {target:g}"
        found["reached"] = middle >= target if bound == "at least" else middle <= target
    return found


def speed_up(
    seconds: Mapping[str, np.ndarray],
    usual: str,
    ours: str,
    target: float | None = None,
) -> dict[str, Any]:
    """The `ratio` of the seconds of two ways, which is to be at least the target."""
    return ratio(usual, ours, seconds[usual] / seconds[ours], "at least", target)


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
    versions = {"python": platform.python_version()}
    for name in ("numpy", "pandas", "torch", "transformers"):
        versions[name] = metadata.version(name)
    machine = {
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "architecture": platform.machine(),
    }
    told = {**about, "machine": machine, "versions": versions}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(told, indent=2) + "\n").encode())


def about(model: Model) -> dict[str, str]:
    """Which model was measured."""
    return {"name": model.name, "fingerprint": model.fingerprint}


def two_digits(value: Any) -> float:
    """A number rounded to two significant digits: timings tell no more."""
    return float(f"{value:.2g}")
