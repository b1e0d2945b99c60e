"""An OpenAI-compatible server on loopback that does what a test tells it to, faults included."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass
class Reply:
    """What the server sends: a status, a body (JSON or bytes as they are), headers.

    `cut` closes the connection in the middle of the body, `delay` waits before it.
    """

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    delay: float = 0.0


def completion(*texts: str, delay: float = 0.0) -> Reply:
    """Plain answers without log-probabilities."""
    choices = []
    for i, text in enumerate(texts):
        choices.append({"index": i, "text": text, "finish_reason": "length"})
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return Reply({"choices": choices, "usage": usage}, delay=delay)


def error(status: int, message: str, **headers: str) -> Reply:
    return Reply({"error": {"message": message}}, status, headers)


class FaultyServer:
    def __init__(self) -> None:
        self.answer: Callable[[Body], Reply] = lambda body: completion(" yes")
        self.asked: list[Body] = []
        self.paths: list[str] = []
        self.authorisations: list[str | None] = []
        self.under_way = 0
        self.most_at_once = 0
        self.lock = threading.Lock()
        self.url = ""

    @property
    def prompts(self) -> list[str]:
        """The prompts asked, in their order: those of chats are the user's messages."""
        return [b["prompt"] if "prompt" in b else b["messages"][0]["content"] for b in self.asked]

    def reply(self, path: str, body: Body, authorisation: str | None) -> Reply:
        with self.lock:
            self.authorisations.append(authorisation)
            self.paths.append(path)
            self.asked.append(body)
            self.under_way += 1
            self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            reply = self.answer(body)
            time.sleep(reply.delay)
            return reply
        finally:
            with self.lock:
                self.under_way -= 1


def in_turn(*given: Reply) -> Callable[[Body], Reply]:
    """These replies one after the other, the last one again and again."""
    left = list(given)
    return lambda body: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def faulty_server() -> Iterator[FaultyServer]:
    server = FaultyServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send(server.reply(self.path, body, self.headers.get("Authorization")))

        def send(self, reply: Reply) -> None:
            data = reply.body
            if not isinstance(data, bytes):
                data = json.dumps(data).encode()
            self.send_response(reply.status)
            headers = {"Content_Type": "application/json"} | reply.headers
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if reply.cut:
                self.wfile.write(data[: len(data) // 2])
                self.close_connection = True
            else:
                self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

        log_error = log_message

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        handle_error = Handler.log_message  # of a client that went away

    with Quiet(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        yield server
        http.shutdown()
