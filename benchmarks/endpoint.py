"""What asking an endpoint costs over the server's own time, on loopback, in one run.

    python benchmarks/endpoint.py          # or `make bench`, a minute or two

The server is a process of its own that takes a fixed time a request, whatever else it is asked, and
adds up the time from each request's arrival to its reply. That sum, shared among as many requests
as are asked at a time, is what the server needs; what the run takes longer is ours: writing and
reading requests, and committing every answer to the records. Greedy answers of five tokens with ten
alternatives. Writes data/benchmarks/endpoint.json."""

from __future__ import annotations

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
from measuring.report import options, print_ratios, ratio, write_json

from factrobust import load_model
from factrobust.models.records import Records

SECONDS = (0.1, 0.3)  # a request
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
    seconds: float,
    concurrency: int,
    requests: int,
    rounds: int,
    folder: Path,
) -> np.ndarray:
    """Wall time of each round over the server's own time, after one round to warm up [round]."""
    found = []
    with serving(seconds) as url:
        endpoint = {
            "url": f"{url}/v1",
            "model": "fixed",
            "api": "completions",
            "concurrency": concurrency,
        }
        model = load_model(endpoint, records=Records(folder / f"{seconds}.sqlite"))
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
    given = options(__doc__, concurrency=8, requests=320, rounds=3)

    settings = {"concurrency": given.concurrency, "requests": given.requests}
    compared: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for seconds in SECONDS:
            print(f"[bench] {given.requests} requests of {seconds:g} s", flush=True)
            found = measure(
                seconds,
                given.concurrency,
                given.requests,
                given.rounds,
                Path(folder),
            )
            named = f"endpoint, {seconds:g} s a request", "the server's own time"
            compared.append(ratio(*named, found, "at most", TARGET))
            # Two digits would hide what is asked: so many hundredths over 1.
            compared[-1] |= {
                "lowest": round(found.min(), 3),
                "median": round(np.median(found), 3),
                "highest": round(found.max(), 3),
            }
    print_ratios(compared)
    write_json(given.out / "endpoint.json", {**settings, "comparisons": compared})


if __name__ == "__main__":
    main()
