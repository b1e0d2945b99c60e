"""An endpoint that takes a fixed time a request, in a process of its own, and counts that time.

    python -m measuring.server 0.1     # in benchmarks/; seconds a request; prints its port

POST /v1/completions waits and answers with five tokens of ten alternatives, as servers do. GET
/busy gives the seconds from the arrival of each request to its reply, summed, and begins anew."""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKENS = [" one", " two", " three", " four", " five"]
REPLY = {
    "choices": [
        {
            "index": 0,
            "text": "".join(TOKENS),
            "finish_reason": "length",
            "logprobs": {
                "tokens": TOKENS,
                "token_logprobs": [-0.5] * len(TOKENS),
                "top_logprobs": [
                    {t: -0.5} | {f" other{k}": -1.0 - k for k in range(9)} for t in TOKENS
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 40, "completion_tokens": 5, "total_tokens": 45},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seconds = 0.1  # a request
    busy = 0.0
    lock = threading.Lock()

    def do_POST(self) -> None:
        start = time.perf_counter()
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.seconds)
        self.send(REPLY)
        with self.lock:
            Handler.busy += time.perf_counter() - start

    def do_GET(self) -> None:
        if self.path == "/busy":
            with self.lock:
                busy, Handler.busy = self.busy, 0.0
            self.send({"seconds": busy})
        else:
            self.send({"data": []})

    def send(self, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    Handler.seconds = float(sys.argv[1])
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
