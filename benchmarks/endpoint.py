"""What asking an endpoint costs over the server's own time, on loopback, in one run.

    python benchmarks/endpoint.py          # or `make bench`, a minute or two

The server is a process of its own that takes a fixed time a request, whatever else it is asked, and
adds up the time from each request's arrival to its reply. That sum, shared among as many requests
as are asked at a time, is what the server needs; what the run takes longer is ours: writing and
reading requests, and committing every answer to the records. Greedy answers of five tokens with ten
alternatives. Writes data/benchmarks/endpoint.json."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from measuring.report import print_ratios, ratio, write_json

from factrobust import load_model
from factrobust.models.records import Records
from factrobust.paths import DATA

TARGET = 1.1  # times the server's own time


@contextmanager
def serving(seconds: float) -> Iterator[str]:
    """The URL of a server that takes so long a request."""
    command = [sys.executable, "-m", "measuring.server", str(seconds)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=Path(__file__).parent, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def busy(url: str) -> float:
    """Seconds that the server was at work since it was last asked."""
    with urllib.request.urlopen(f"{url}/busy") as reply:
        seconds: float = json.load(reply)["seconds"]
    return seconds


def measure(
    seconds: float, concurrency: int, requests: int, rounds: int, folder: Path
) -> np.ndarray:
    """Wall time of each round over the server's own time, after one round to warm up [round]."""
    found = []
    with serving(seconds) as url:
        endpoint = {"url": f"{url}/v1", "model": "fixed", "api": "completions"}
        model = load_model(
            endpoint | {"concurrency": concurrency}, records=Records(folder / f"{seconds}.sqlite")
        )
        for turn in range(rounds + 1):
            prompts = [f"Q: question {turn}-{i} of some length?\nA:" for i in range(requests)]
            busy(url)
            start = time.perf_counter()
            made = model.generate(prompts, alternatives=10)
            wall = time.perf_counter() - start
            assert len(made) == requests
            if turn:
                found.append(wall * concurrency / busy(url))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.1, 0.3], help="a request")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--requests", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--out", type=Path, default=DATA / "benchmarks", help="folder of the result"
    )
    options = parser.parse_args()

    settings = {"concurrency": options.concurrency, "requests": options.requests}
    compared: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for seconds in options.seconds:
            print(f"[bench] {options.requests} requests of {seconds:g} s", flush=True)
            found = measure(seconds, rounds=options.rounds, folder=Path(folder), **settings)
            named = f"endpoint, {seconds:g} s a request", "the server's own time"
            compared.append(ratio(*named, found, "at most", TARGET))
            # Two digits would hide what is asked: so many hundredths over 1.
            marks = np.quantile(found, [0, 0.5, 1]).round(3).tolist()
            compared[-1] |= dict(zip(("lowest", "median", "highest"), marks, strict=True))
    print_ratios(compared)
    write_json(options.out / "endpoint.json", {**settings, "comparisons": compared})


if __name__ == "__main__":
    main()
