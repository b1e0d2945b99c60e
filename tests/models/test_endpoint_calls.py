"""Many requests at a time: bounded, nothing that was answered is dropped, one sentence at the end."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import openai
import pytest

from factrobust.models.endpoint import (
    Address,
    Budget,
    explained,
    forecast,
    in_parallel,
    read_endpoint,
    tokens_asked,
)
from factrobust.models.interface import Job, ModelError

URL = "http://localhost:8000/v1"


@pytest.fixture
def interrupted() -> Iterator[Callable[[float], None]]:
    """Ctrl-C in so many seconds, also where the shell had this process ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident

    def interrupt(after: float) -> None:
        threading.Timer(after, signal.pthread_kill, [main, signal.SIGINT]).start()

    yield interrupt
    signal.signal(signal.SIGINT, before)


class Line:
    """Counts what `ask` has under way; request i takes `seconds(i)`, and 13 fails."""

    def __init__(self, seconds: Callable[[int], float] = lambda i: 0.002) -> None:
        self.seconds = seconds
        self.begun: list[int] = []
        self.under_way = self.most = self.cancelled = self.closed = 0
        self.failed = asyncio.Event()
        self.late: set[int] = set()  # those that wait for 13 to fail
        self.alone = False  # whether the first had no company

    async def __aenter__(self) -> Line:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed += 1

    async def ask(self, client: Any, i: int) -> int:
        assert client is self
        self.begun.append(i)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.seconds(i))
            if i in self.late:
                await self.failed.wait()
            if i == 13:
                self.failed.set()
                raise ModelError("unlucky")
            if i == 0:
                self.alone = self.begun == [0]
            return i * i
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1

    def run(self, count: int, at_once: int, **more: Any) -> Any:
        return in_parallel(lambda: self, self.ask, count, at_once=at_once, **more)  # type: ignore[arg-type, return-value]


def collect(batches: Any, into: list[Any]) -> None:
    for batch in batches:
        into += batch


@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_every_result_once_and_never_more_than_asked_at_a_time(at_once: int) -> None:
    line = Line()
    results = [pair for batch in line.run(13, at_once) for pair in batch]
    assert sorted(results) == [(i, i * i) for i in range(13)]
    assert line.begun == list(range(13))
    assert line.most == min(at_once, 13)
    assert line.closed == 1


def test_the_first_goes_alone_to_find_out() -> None:
    line = Line()
    list(line.run(12, 4, first_alone=True))
    assert line.alone
    assert line.most == 4
    together = Line()
    list(together.run(12, 4))
    assert not together.alone


def test_nothing_to_do() -> None:
    assert list(Line().run(0, 4)) == []


def test_after_a_failure_those_under_way_are_handed_out_and_none_begun() -> None:
    line = Line()
    line.late = {11, 12, 14, 15}
    got: list[Any] = []
    with pytest.raises(ModelError, match="unlucky"):
        collect(line.run(100, 4), got)
    # 11 and 12 wait, 13 comes, or 14 before it: whatever is under way when it fails arrives.
    assert sorted(i for i, _ in got) == [i for i in line.begun if i != 13]
    assert {11, 12} <= {i for i, _ in got}
    assert len(line.begun) <= 13 + 1 + 4
    assert line.cancelled == 0


def test_an_interrupt_pays_nothing_twice(interrupted: Callable[[float], None]) -> None:
    """Ctrl-C: no more are begun, those under way are handed out, then it is raised."""
    line = Line(lambda i: 0.5)
    got: list[Any] = []
    interrupted(0.1)
    with pytest.raises(KeyboardInterrupt):
        collect(line.run(100, 3), got)
    assert sorted(i for i, _ in got) == line.begun == [0, 1, 2]
    assert line.cancelled == 0


def test_a_second_interrupt_gives_up(interrupted: Callable[[float], None]) -> None:
    line = Line(lambda i: 60.0)
    interrupted(0.1)
    interrupted(0.3)
    with pytest.raises(KeyboardInterrupt):
        list(line.run(100, 3))
    assert (line.cancelled, line.closed) == (3, 1)


def test_closing_cancels_what_is_under_way() -> None:
    line = Line(lambda i: 0.002 if i < 2 else 60.0)
    results = line.run(100, 2)
    next(results)
    results.close()
    assert line.under_way == 0
    assert line.closed == 1


def test_results_that_nobody_takes_hold_up_the_others() -> None:
    """What is asked ahead of the records is bounded, however slow they are."""
    line = Line(lambda i: 0.0)
    results = line.run(13, 2)
    taken = list(next(results))
    threading.Event().wait(0.3)
    ahead = len(line.begun) - len(taken)
    assert ahead <= 2 * 2
    for batch in results:
        taken += batch
    assert sorted(taken) == [(i, i * i) for i in range(13)]


def test_works_where_an_event_loop_is_running() -> None:
    """A notebook's thread has one."""

    async def cell() -> list[Any]:
        return [pair for batch in Line().run(5, 2) for pair in batch]

    assert sorted(asyncio.run(cell())) == [(i, i * i) for i in range(5)]


# -- budget and forecast -----------------------------------------------------------------------------


def test_a_budget_of_requests() -> None:
    spent = Budget(read_endpoint(f"{URL} llama budget_requests=3"))
    spent.reserve(10)
    spent.repeated(1)
    spent.reserve(10)
    with pytest.raises(
        ModelError, match="budget of 3 requests is used up by 3 requests with 20 tok"
    ):
        spent.reserve(10)
    assert (spent.requests, spent.tokens) == (3, 20)


def test_a_budget_of_tokens_counts_what_the_server_counted() -> None:
    spent = Budget(read_endpoint(f"{URL} llama budget_tokens=100"))
    spent.reserve(60)
    spent.settle(60, 20)
    spent.reserve(60)
    spent.settle(60, None)  # the server does not say: the guess stays
    assert spent.tokens == 80
    with pytest.raises(
        ModelError, match=r"budget of 100 tokens .*raise budget_tokens or run again"
    ):
        spent.reserve(21)
    spent.reserve(20)


def test_the_forecast() -> None:
    address = read_endpoint(f"{URL} llama")
    prompts = [{"prompt": "x" * 40}, {"prompt": "x" * 41}]
    settings = {"max_new_tokens": 5, "stop": []}
    assert tokens_asked("x" * 41, 5) == 16
    line = forecast(Job("generate", prompts, settings), address)
    assert line.endswith("generate, 2 requests, about 21 tokens to read and at most 10 to write")
    line = forecast(Job("sample", prompts, settings | {"n": 1000}), address)
    assert "2 requests (or 2,000, if the server gives one sample at a time)" in line
    assert line.endswith("at most 10,000 to write")
    scored = [{"prompt": "x" * 36, "answer": "yes!"}]
    assert "about 10 tokens to read" in forecast(Job("score", scored), address)


# -- sentences --------------------------------------------------------------------------------------

REQUEST = httpx2.Request("POST", f"{URL}/completions", headers={"Authorization": "Bearer s3cret"})
PLAIN = read_endpoint(f"{URL} llama retries=2 timeout=7")
KEYED = read_endpoint(f"{URL} llama key=SOME_KEY retries=0")


def status(kind: type[openai.APIStatusError], code: int, body: Any) -> openai.APIStatusError:
    response = httpx2.Response(code, request=REQUEST, json=body)
    return kind("said", response=response, body=body)


@pytest.mark.parametrize(
    ("error", "address", "sentence"),
    [
        (
            status(openai.AuthenticationError, 401, {"message": "bad key s3cret"}),
            KEYED,
            "refuses the key that SOME_KEY holds (401); put one there",
        ),
        (
            status(openai.PermissionDeniedError, 403, {}),
            PLAIN,
            "asks for a key (403); name its variable, key=...",
        ),
        (
            status(openai.NotFoundError, 404, {"message": "no llama"}),
            KEYED,
            f"knows no model 'llama', or nothing lies at {URL} (404: no llama); check the URL",
        ),
        (
            status(openai.RateLimitError, 429, {"message": "quota of s3cret exceeded"}),
            PLAIN,
            "still refuses (429: quota of *** exceeded); lower concurrency=",
        ),
        (
            status(openai.InternalServerError, 503, {"detail": "out\nof memory"}),
            PLAIN,
            "answered 503 after 3 tries (out of memory); mend what it names",
        ),
        (
            status(openai.BadRequestError, 400, "max_tokens is 0"),
            PLAIN,
            "answered 400 (max_tokens is 0); mend what it names",
        ),
        (openai.APITimeoutError(request=REQUEST), PLAIN, "did not answer within 7 s after 3 tries"),
        (
            openai.APIConnectionError(request=REQUEST),
            KEYED,
            "cannot be reached or dropped the conn",
        ),
    ],
)
def test_one_sentence_each_without_the_key(
    error: openai.OpenAIError, address: Address, sentence: str
) -> None:
    said = explained(error, address, "s3cret")
    assert said.startswith(f"{address.name}: the server ")
    assert sentence in said
    assert "s3cret" not in said
    assert "\n" not in said


def test_a_long_page_is_cut() -> None:
    error = status(openai.BadRequestError, 400, {"message": "x" * 5000})
    assert len(explained(error, PLAIN, None)) < 400
