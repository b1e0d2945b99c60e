"""Requests to an endpoint: many at a time, within a budget, with one sentence when one fails.

The openai client repeats a request after 408, 409, 429 (for as long as Retry-After says, up to two
minutes), 5xx, a timeout or a dropped connection, with growing pauses. Here is what it leaves open.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import openai

from factrobust.models.base import Job, ModelError
from factrobust.models.endpoint_address import Address

CHARACTERS_A_TOKEN = 4  # of English text, for forecasts; the server's own count replaces them
Result = TypeVar("Result")
Ask = Callable[[openai.AsyncOpenAI, int], Awaitable[Result]]


class Budget:
    """Requests and tokens spent, and where to stop. A request that is repeated counts again."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self.requests = self.tokens = 0

    def reserve(self, tokens: int) -> None:
        """Take a request of about so many tokens; ModelError if that were beyond the budget."""
        most = {"requests": self._address.budget_requests, "tokens": self._address.budget_tokens}
        for what, wanted in {
            "requests": self.requests + 1,
            "tokens": self.tokens + tokens,
        }.items():
            if (limit := most[what]) is not None and wanted > limit:
                raise ModelError(
                    f"{self._address.name}: the budget of {limit:,} {what} is used up by "
                    f"{self.requests:,} requests with {self.tokens:,} tokens; raise "
                    f"budget_{what} or run again, what is in the records is not asked again"
                )
        self.requests += 1
        self.tokens += tokens

    def repeated(self, times: int) -> None:
        self.requests += times

    def settle(self, reserved: int, used: int | None) -> None:
        """Replace the guess by what the server counted; None: it did not, and the guess stays."""
        if used is not None:
            self.tokens += used - reserved


def tokens_asked(prompt: str, new_tokens: int) -> int:
    """About how many tokens a request takes, its answers at their longest."""
    return -(-len(prompt) // CHARACTERS_A_TOKEN) + new_tokens


def forecast(job: Job, address: Address) -> str:
    """What a job will cost, in one line: requests, and tokens at four characters each."""
    n = job.settings.get("n", 1)
    new = job.settings.get("max_new_tokens", 1) * n
    read = sum(tokens_asked(r["prompt"] + str(r.get("answer", "")), 0) for r in job.requests)
    count = len(job.requests)
    many = f" (or {count * n:,}, if the server gives one sample at a time)" if n > 1 else ""
    return (
        f"{address.name}: {job.operation}, {count:,} requests{many}, about {read:,} tokens to read "
        f"and at most {count * new:,} to write"
    )


def announce(line: str) -> None:
    """Show a line where `factrobust.progress` shows its own."""
    if target := os.environ.get("FACTROBUST_PROGRESS"):
        with suppress(OSError):
            Path(target).write_text(line, encoding="utf-8")
    elif not os.environ.get("TQDM_DISABLE"):
        print(line, file=sys.stderr)


def in_parallel(
    connect: Callable[[], openai.AsyncOpenAI],
    ask: Ask[Result],
    count: int,
    *,
    at_once: int,
    first_alone: bool = False,
) -> Iterator[list[tuple[int, Result]]]:
    """What `ask(client, i)` gives for i < count, as it arrives: (i, result), one or several.

    `at_once` are under way, after the first one alone if that shall find out what the server can
    do. When one fails, or at Ctrl-C, no more are begun, those under way are still handed out, for
    they are paid for, and then the error is raised; a second Ctrl-C gives them up, as does closing
    this generator. Results that nobody takes hold up the others, so that little is lost if the
    process is killed.
    """
    arrived: deque[tuple[int, Result] | BaseException | None] = deque()  # None: the end
    more, ending = threading.Event(), threading.Event()
    numbers = iter(range(count))

    def hand_over(item: tuple[int, Result] | BaseException | None) -> None:
        arrived.append(item)
        more.set()

    async def work(client: openai.AsyncOpenAI, most: int) -> None:
        for _ in range(most):
            while len(arrived) > at_once and not ending.is_set():
                await asyncio.sleep(0.01)
            number = None if ending.is_set() else next(numbers, None)
            if number is None:
                return
            try:
                hand_over((number, await ask(client, number)))
            except Exception as error:
                ending.set()
                hand_over(error)

    async def everything() -> None:
        async with connect() as client:
            if first_alone:
                await work(client, 1)
            await asyncio.gather(*(work(client, count) for _ in range(min(at_once, count))))

    # A thread of its own: a notebook's thread has an event loop running already.
    loop = asyncio.new_event_loop()
    task = loop.create_task(everything())

    def run() -> None:
        with suppress(asyncio.CancelledError):
            try:
                loop.run_until_complete(task)
            except Exception as error:
                hand_over(error)
        loop.close()
        hand_over(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    failure: BaseException | None = None
    try:
        while True:
            try:
                more.wait(0.5)  # not for ever: Windows would not let Ctrl-C in
                more.clear()
                batch = list(arrived)
            except KeyboardInterrupt as interrupt:
                if failure:
                    raise
                failure = interrupt
                ending.set()
                continue
            failure = next((x for x in batch if isinstance(x, BaseException)), failure)
            if results := [x for x in batch if isinstance(x, tuple)]:
                yield results
            for _ in batch:  # now that they are taken care of
                arrived.popleft()
            if None in batch:
                break
    finally:
        if thread.is_alive():
            with suppress(RuntimeError):  # the loop has closed meanwhile
                loop.call_soon_threadsafe(task.cancel)
            thread.join()
    if failure:
        raise failure


def explained(error: openai.OpenAIError, address: Address, key: str | None) -> str:
    """What went wrong at an endpoint, in one sentence that holds no key."""
    where = f"{address.name}: the server"
    tries = f"after {address.retries + 1} tries" if address.retries else "at once"
    match error:
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            # Some servers repeat the key in what they say: it is left out.
            if address.key is None:
                return f"{where} asks for a key ({error.status_code}); name its variable, key=..."
            return (
                f"{where} refuses the key that {address.key} holds ({error.status_code}); put one "
                "there that is valid for this URL and model"
            )
        case openai.NotFoundError():
            return (
                f"{where} knows no model {address.model!r}, or nothing lies at {address.url} "
                f"(404: {_said(error, key)}); check the URL, which usually ends in /v1, and the name"
            )
        case openai.RateLimitError():
            return (
                f"{where} still refuses (429: {_said(error, key)}); lower concurrency=, or wait and "
                "run again"
            )
        case openai.APIStatusError():
            again = f" {tries}" if error.status_code >= 500 else ""
            return (
                f"{where} answered {error.status_code}{again} ({_said(error, key)}); mend what it "
                "names, then run again"
            )
        case openai.APITimeoutError():
            return (
                f"{where} did not answer within {address.timeout} s {tries}; raise timeout= or "
                "lower concurrency="
            )
        case openai.APIConnectionError():
            cause = type(error.__cause__).__name__
            return (
                f"{where} cannot be reached or dropped the connection {tries} ({cause}); check that "
                "it runs at this URL, then run again"
            )
    return f"{where} gave no answer ({type(error).__name__}); check the URL, then run again"


def _said(error: openai.APIStatusError, key: str | None) -> str:
    """What the server said, on one line, shortened, and without the key if it should repeat it."""
    return clean(_message(error.body) or error.response.text, key)


def clean(text: str, key: str | None) -> str:
    text = text.replace(key, "***") if key else text
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:200]} ..."


def _message(body: Any) -> str:
    """The message in an error's body: openai's {"message": ...}, FastAPI's {"detail": ...}, or none."""
    if isinstance(body, dict):
        said = body.get("message") or body.get("detail") or body.get("error")
        return said if isinstance(said, str) else str(said or "")
    return body if isinstance(body, str) else ""
