"""Pieces of work timed in turns, and what is printed and written of them."""

import argparse
import json
import os
import platform
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from timeit import timeit
from typing import Any

import pandas as pd
import torch

from factrobust.models.interface import Model
from factrobust.paths import DATA

# By name, each piece of work.
Works = Mapping[str, Callable[[], object]]


def options(about: str | None, **defaults: Any) -> argparse.Namespace:
    """What the command line says: numbers and names that have these `defaults`, and the folder of
    the result."""
    parser = argparse.ArgumentParser(description=about)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--out", type=Path, default=DATA / "benchmarks")
    return parser.parse_args()


def in_turns(works: Works, rounds: int) -> pd.DataFrame:
    """Seconds of each piece of work, a row a round; all in every round, after one to warm up.

    Whatever else the machine does slows all of a round alike, so ratios are taken within rounds.
    """
    rows = []
    for _ in range(rounds + 1):
        rows.append({name: timeit(work, number=1) for name, work in works.items()})
    return pd.DataFrame(rows[1:])


def ratio(
    first: str,
    second: str,
    ratios: pd.Series,
    bound: str,
    target: float,
    digits: int = 2,
) -> dict[str, Any]:
    """Lowest, median and highest of some ratios, and whether the median is "at least" or "at most"
    (`bound`) its target. Nothing fails when it is not: a busy machine is no bug."""
    middle = ratios.median()
    return {
        "ratio": f"{first} : {second}",
        "lowest": rounded(ratios.min(), digits),
        "median": rounded(middle, digits),
        "highest": rounded(ratios.max(), digits),
        "target": f"{bound} {target:g}",
        "reached": bool(middle >= target if bound == "at least" else middle <= target),
    }


def speed_up(
    works: Works,
    rounds: int,
    target: float,
) -> dict[str, Any]:
    """The `ratio` of the seconds of two ways, the usual one and ours."""
    usual, ours = works
    seconds = in_turns(works, rounds)
    return ratio(usual, ours, seconds[usual] / seconds[ours], "at least", target)


def rounded(value: Any, digits: int = 2) -> float:
    """A number rounded to significant digits: timings tell no more than two."""
    return float(f"{value:.{digits}g}")


def about(model: Model) -> dict[str, str]:
    """Which model was measured."""
    return {"name": model.name, "fingerprint": model.fingerprint}


def report(
    given: argparse.Namespace,
    name: str,
    comparisons: list[dict[str, Any]],
    **found: Any,
) -> None:
    """Print the ratios, and write all into the folder that is `given`, with the machine (its kind,
    not its name) and versions."""
    print(pd.DataFrame(comparisons).to_markdown(index=False))
    machine = {
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "architecture": platform.machine(),
    }
    versions = {"python": platform.python_version()}
    for package in ("numpy", "pandas", "torch", "transformers"):
        versions[package] = metadata.version(package)
    found |= {"comparisons": comparisons, "machine": machine, "versions": versions}
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
