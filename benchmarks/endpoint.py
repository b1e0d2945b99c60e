"""What asking an endpoint costs over the server's own time, on loopback, in one run.

    python benchmarks/endpoint.py          # or `make bench`, a minute or two

The server is a process of its own that takes a fixed time a request, whatever else it is asked, and
adds up the time from each request's arrival to its reply. That sum, shared among as many requests
as are asked at a time, is what the server needs; what the run takes longer is ours: writing and
reading requests, and committing every answer to the records. Greedy answers of five tokens with ten
alternatives. Writes data/benchmarks/endpoint.json."""

import json
import multiprocessing
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from timeit import timeit
from typing import Any

import pandas as pd
from measuring.report import options, ratio, report

from factrobust import load_model
from factrobust.models.records import Records

SECONDS = (0.1, 0.3)  # a request
TARGET = 1.1  # times the server's own time
TOKENS = [" one", " two", " three", " four", " five"]
OTHERS = {f" other{k}": -1.0 - k for k in range(9)}
REPLY = {
    "choices": [
        {
            "index": 0,
            "text": "".join(TOKENS),
            "finish_reason": "length",
            "logprobs": {
                "tokens": TOKENS,
                "token_logprobs": [-0.5] * len(TOKENS),
                "top_logprobs": [{token: -0.5} | OTHERS for token in TOKENS],
            },
        }
    ]
}


class Handler(BaseHTTPRequestHandler):
    """Answers /v1/completions after a while."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seconds: float
    busy: Any  # seconds at work, shared with the process that asks

    def do_POST(self) -> None:
        start = time.perf_counter()
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.seconds)
        content = json.dumps(REPLY).encode()
        with self.busy.get_lock():  # before the reply, behind which it would be read
            self.busy.value += time.perf_counter() - start
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def serve(seconds: float, busy: Any, ports: Any) -> None:
    """Answer for ever, at a port that is told."""
    Handler.seconds = seconds
    Handler.busy = busy
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ports.put(server.server_port)
    server.serve_forever()


def measure(seconds: float, given: Any, store: Path) -> pd.Series:
    """Wall time of each round over the server's own time, after one round to warm up [round]."""
    busy = multiprocessing.Value("d")
    ports: Any = multiprocessing.SimpleQueue()
    server = multiprocessing.Process(target=serve, args=(seconds, busy, ports), daemon=True)
    server.start()
    endpoint = {
        "url": f"http://127.0.0.1:{ports.get()}/v1",
        "model": "fixed",
        "api": "completions",
        "concurrency": given.concurrency,
    }
    model = load_model(endpoint, records=Records(store))
    found = []
    for turn in range(given.rounds + 1):
        prompts = [f"Q: question {turn}-{i} of some length?\nA:" for i in range(given.requests)]
        busy.value = 0.0
        wall = timeit(lambda: model.generate(prompts, alternatives=10), number=1)  # noqa: B023
        found.append(wall * given.concurrency / busy.value)
    server.terminate()
    return pd.Series(found[1:])


def main() -> None:
    given = options(__doc__, concurrency=8, requests=320, rounds=3)
    compared = []
    with TemporaryDirectory() as folder:
        for seconds in SECONDS:
            ratios = measure(seconds, given, Path(folder, f"{seconds}.sqlite"))
            found = ratio(
                f"endpoint, {seconds:g} s a request",
                "the server's own time",
                ratios,
                "at most",
                TARGET,
                digits=4,  # what is asked are the hundredths over 1
            )
            compared.append(found)
    report(
        given,
        "endpoint",
        compared,
        concurrency=given.concurrency,
        requests=given.requests,
    )


if __name__ == "__main__":
    main()
