"""An OpenAI-compatible endpoint as a model: where it is, which model, how it is asked.

    https://api.openai.com/v1 gpt-4o-mini key=OPENAI_API_KEY
    http://localhost:8000/v1 meta-llama/Llama-3.1-8B api=completions concurrency=32

The base URL (it usually ends in /v1), the model's name there, then what differs from the defaults:

    key=VARIABLE          environment variable that holds the key; without it none is sent
    api=chat              or completions: the prompt as it stands, continued (pretrained models)
    format=two-shot       how it is asked unless a notebook says otherwise: a key of `prompts.FORMATS`.
                          A chat gets a format without template as one message, as in paper 1
    concurrency=8         requests at a time
    timeout=120           seconds until a request counts as lost
    retries=8             after 408, 409, 429, 5xx, a timeout or a dropped connection, each time longer
    budget_requests=...   stop before more requests than this, counted from `load_model` on
    budget_tokens=...     stop before more tokens than this, prompts and answers together
    revision=...          any word for what is served there now, see `Address.fingerprint`

What servers can do (OpenAI, vLLM, SGLang, TGI, llama.cpp's, and there are more) differs, and few
say so. A request asks for everything that is wanted, and what
the server refuses by name is left out from then on: the first request of a kind goes alone to find
out. What every server of this kind lacks is in `Address.lacks`.

An endpoint's randomness is its own. A seed derived from (seed, prompt, temperature, index) goes with
each request, but servers treat it as they like, one request may bring many samples, and even greedy
answers may change with what else a server computes at the time. Kept answers do not change.
"""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import json
import math
import os
import re
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints
from urllib.parse import urlsplit

import numpy as np

from factrobust.models.interface import Generation, Job, Model, ModelError
from factrobust.models.prompts import FORMATS
from factrobust.models.tokens import cut
from factrobust.records import Call, Records, announce

if TYPE_CHECKING:
    import openai

# Ends the user's message in a prompt of a chat format, where a template would write its marks.
TURN = "<|assistant|>"
EXAMPLE = "'https://api.openai.com/v1 gpt-4o-mini key=OPENAI_API_KEY'"
NO_LOGITS = (
    "an endpoint gives no logits, so that an answer cannot be tempered; find breaking temperatures "
    "by sampling (probes.decoding.sampled, or bisected with fewer requests)"
)
NO_IDS = (
    "an endpoint tells tokens as texts and not as ids, so that generated answers cannot be scored "
    "again token by token (part 4), nor compared so; use a model in memory for that, the other parts "
    "need no ids"
)
NO_SCORE = (
    "a chat endpoint tells no log-probabilities of given answers; use api=completions if the server "
    "echoes prompts with theirs, as vLLM does, or ask for what does without: answers and samples"
)
NO_ECHO = (
    "this server tells no log-probabilities of given answers (it does not echo the prompt with them); "
    "take one that does, such as vLLM, or ask for what does without: answers, samples and their "
    "accuracies"
)
NO_PREFIX = (
    "no answer can be begun for a chat endpoint, since servers differ in whether they go on from "
    "it; ask in the format 'chat' or 'instruction', or 'prefix' with api=completions"
)


@dataclass(frozen=True)
class Address:
    """What the line says; `name` is the line itself. `key` is a variable's name, never a key."""

    name: str
    url: str
    model: str
    key: str | None = None
    api: str = "chat"
    format: str = "two-shot"
    concurrency: int = 8
    timeout: int = 120
    retries: int = 8
    budget_requests: int | None = None
    budget_tokens: int | None = None
    revision: str = ""

    @property
    def fingerprint(self) -> str:
        """What answers are kept under: URL, model, api and revision.

        The weights behind an endpoint cannot be verified: the same line counts as the same model.
        What a server tells of its model is kept with the first answer and compared later
        (`open_endpoint`), but many tell nothing. Where a name can come to mean something
        else, ask for a dated model ("gpt-4o-mini-2024-07-18"), or change `revision` when it did.
        """
        return " ".join(filter(None, [f"endpoint:{self.url}", self.model, self.api, self.revision]))

    @property
    def chat(self) -> tuple[str, str] | None:
        """Text around a user's message: the server's own template writes the rest."""
        return ("", TURN) if self.api == "chat" else None

    @property
    def lacks(self) -> MappingProxyType[str, str]:
        """See `Model.lacks`: what no server behind such an endpoint can do."""
        missing = {"temper": NO_LOGITS, "token_ids": NO_IDS}
        return MappingProxyType(missing | ({"score": NO_SCORE} if self.api == "chat" else {}))

    def secret(self) -> str | None:
        """The key itself, read when it is needed and kept nowhere else."""
        if self.key is None:
            return None
        if value := os.environ.get(self.key, "").strip():
            return value
        raise ModelError(
            f"{self.url} needs the key that key={self.key} names, but this environment variable is "
            "not set; set it before the run"
        )


def is_endpoint(name: str) -> bool:
    """Whether a model's name is meant as an endpoint."""
    return "://" in name


def read_endpoint(name: str) -> Address:
    """What such a line says.

    Raises ModelError for one that cannot be used. No message repeats what may hold a password.
    """
    url, *words = name.split()
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ModelError(f"an endpoint begins with its URL, http:// or https://, as in {EXAMPLE}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ModelError(
            f"the URL of an endpoint at {parts.hostname} holds more than host and path; write the "
            "rest as words behind it, the key as the name of an environment variable, as in "
            f"{EXAMPLE}"
        )
    url = url.rstrip("/")
    if not words or "=" in words[0]:
        raise ModelError(f"no model is named after the URL {url}; write its name there: {EXAMPLE}")
    given: dict[str, Any] = {}
    for word in words[1:]:
        setting, equals, value = word.partition("=")
        if not equals or setting not in _KINDS:
            near = difflib.get_close_matches(setting, _KINDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"settings are {', '.join(_KINDS)}"
            shown = repr(setting) if re.fullmatch("[a-z_]+", setting) else "like one of the words"
            raise ModelError(f"the endpoint {url} has no setting {shown}; {hint}")
        given[setting] = _value(url, setting, value)
    address = Address(name, url, words[0], **given)
    check_format(address, address.format)
    return address


def check_format(address: Address, prompt_format: str) -> None:
    """Raise ModelError for a format that the endpoint cannot be asked in."""
    if prompt_format not in FORMATS:
        raise ModelError(
            f"{address.name}: the format {prompt_format!r} is unknown; choose one of "
            f"{', '.join(FORMATS)}"
        )
    form = FORMATS[prompt_format]
    if form.chat and address.api != "chat":
        raise ModelError(
            f"{address.name} continues texts and has no chat template, so it cannot be asked as "
            f"{prompt_format!r}; write api=chat, or take another format"
        )
    if form.chat and form.prefix:
        raise ModelError(f"{address.name}: {NO_PREFIX}")


# Names of settings and what they hold; the first three fields are the line itself.
_KINDS = {
    field.name: get_type_hints(Address)[field.name]
    for field in fields(Address)
    if field.name not in ("name", "url", "model")
}


def _value(url: str, setting: str, value: str) -> str | int:
    if setting == "key":
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", value):
            raise ModelError(
                f"key= of the endpoint {url} is the name of an environment variable, in capitals as "
                "in key=OPENAI_API_KEY; never write a key itself here, change one that you did"
            )
    elif setting == "api":
        if value not in ("chat", "completions"):
            raise ModelError(f"api= of the endpoint {url} must be chat or completions")
    elif _KINDS[setting] is not str:
        least = 0 if setting == "retries" else 1
        if not re.fullmatch(r"[0-9]+(_[0-9]+)*", value) or int(value) < least:
            raise ModelError(f"{setting}= of the endpoint {url} must be a number from {least} up")
        return int(value)
    return value


# -- requests: many at a time, within a budget, one sentence when one fails ------------------------


CHARACTERS_A_TOKEN = 4  # of English text, for forecasts; the server's own count replaces them
Result = TypeVar("Result")


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


def in_parallel(
    connect: Callable[[], openai.AsyncOpenAI],
    ask: Callable[[openai.AsyncOpenAI, int], Awaitable[Result]],
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
    import openai

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


# -- what a server replied -------------------------------------------------------------------------


TOP = 10  # alternatives kept at each position


class ReplyError(ValueError):
    """A reply that holds no answer, as the end of a sentence that names server and prompt."""


@dataclass(frozen=True)
class Token:
    """A token as a server tells it: its bytes, log-probability and alternatives, best first."""

    text: bytes
    logprob: float | None
    top: list[tuple[str, float]]


@dataclass(frozen=True)
class Choice:
    """One answer of a reply; `tokens` is None if it holds no log-probabilities."""

    text: str
    tokens: list[Token] | None


def read_reply(body: bytes) -> tuple[list[Choice], int | None]:
    """The answers in a reply, at least one, and the tokens that it took (None: it does not say)."""
    reply = decode_reply(body)
    usage = reply.get("usage")
    used = usage.get("total_tokens") if isinstance(usage, dict) else None
    return choices(reply), used if isinstance(used, int) else None


def decode_reply(body: bytes) -> dict[str, Any]:
    """The JSON object of a reply."""
    try:
        reply = json.loads(body)
    except ValueError as error:
        begins = body[:40].decode("utf-8", "replace")
        raise ReplyError(f"is no JSON ({error}; it begins {begins!r})") from None
    if not isinstance(reply, dict):
        raise ReplyError(f"is JSON of another kind ({type(reply).__name__})")
    return reply


def choices(reply: Mapping[str, Any]) -> list[Choice]:
    """The answers in a reply, in their order; at least one."""
    given = reply.get("choices")
    if not isinstance(given, list) or not given:
        said = _error_in(reply.get("error"))
        raise ReplyError(f"holds an error: {said}" if said else "holds no choices")
    if not all(isinstance(choice, dict) for choice in given):
        raise ReplyError("holds a choice that is no object")
    return [_choice(c) for c in sorted(given, key=lambda c: c.get("index") or 0)]


def generation(prompt: str, choice: Choice, stop: Sequence[str], *, greedy: bool) -> Generation:
    """An answer up to the first stop string, with the log-probabilities of the tokens that cover it.

    Without token ids, which servers do not tell. Samples come without log-probabilities: servers
    differ in whether they tell them before or after the temperature, and do not say which.
    """
    short = cut(choice.text, stop)
    text = choice.text if short is None else short
    tokens = choice.tokens if greedy else None
    if not tokens:
        return Generation(prompt, text, [], [])
    kept = tokens[: covering(tokens, text)]
    if any(token.logprob is None for token in kept):
        raise ReplyError("holds a token without its log-probability")
    logprobs = [token.logprob for token in kept if token.logprob is not None]
    top = [token.top for token in kept] if all(token.top for token in kept) else []
    return Generation(prompt, text, [], logprobs, top)


def covering(tokens: Sequence[Token], text: str) -> int:
    """How many of the tokens are needed to cover `text`, the answer or its beginning.

    All of them where their texts do not add up to it, as when a server tells half a letter as a
    replacement character. A chat server may have dropped white space before the answer.
    """
    goal, whole = text.encode(), b"".join(token.text for token in tokens)
    start = whole.find(goal)
    if not goal:
        return 0
    if start < 0 or whole[:start].strip():
        return len(tokens)
    ends = np.cumsum([len(token.text) for token in tokens])
    return int(np.searchsorted(ends, start + len(goal))) + 1


def scores(choice: Choice, prompt: str, answer: str) -> np.ndarray:
    """log P of the answer's tokens in a reply that repeats prompt and answer, float32 [token].

    They are the smallest suffix of the given tokens that covers the answer (paper 2, appendix D).
    The reply goes on with one new token, as asked, or with none. Raises ReplyError if the tokens do
    not add up to the answer.
    """
    given, tokens = (prompt + answer).encode(), choice.tokens or []
    ends_there = not choice.text.partition(prompt + answer)[2]
    if not (ends_there and tokens and tokens[-1].text and given.endswith(tokens[-1].text)):
        tokens = tokens[:-1]
    values: list[float] = []
    text = b""
    for token in reversed(tokens):
        text = token.text + text
        if token.logprob is None or not given.endswith(text):
            break
        values.append(token.logprob)
        if len(text) >= len(answer.encode()):
            return np.array(values[::-1], dtype=np.float32)
    raise ReplyError(f"repeats the answer {answer!r} in tokens that do not add up to it")


def echoes(choice: Choice, prompt: str, answer: str) -> bool:
    """Whether a reply repeats prompt and answer with log-probabilities, as it was asked to.

    Servers that do not know how leave the request aside and answer with the new token alone.
    """
    return (prompt + answer) in choice.text and len(choice.tokens or []) > 1


def _choice(given: Mapping[str, Any]) -> Choice:
    if isinstance(message := given.get("message"), dict):
        text = message.get("content")
        if not text and (message.get("reasoning_content") or message.get("reasoning")):
            raise ReplyError(
                "ends before the answer, in the model's reasoning, which takes more tokens than "
                "are asked for; switch reasoning off at the server or take another model"
            )
        if text is None and _error_in(message.get("refusal")):
            text = message["refusal"]
    else:
        text = given.get("text")
    if not isinstance(text, str):
        raise ReplyError(f"holds no text (it ended with {given.get('finish_reason')!r})")
    logprobs = given.get("logprobs")
    return Choice(text, _tokens(logprobs) if isinstance(logprobs, dict) else None)


def _tokens(given: Mapping[str, Any]) -> list[Token] | None:
    try:
        if isinstance(content := given.get("content"), list):
            return [_listed(token) for token in content]
        if isinstance(texts := given.get("tokens"), list):
            tops = given.get("top_logprobs") or [None] * len(texts)
            return [
                Token(text.encode(), _logprob(value), _best((top or {}).items()))
                for text, value, top in zip(texts, given["token_logprobs"], tops, strict=True)
            ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReplyError(
            f"holds log-probabilities in no known shape ({type(error).__name__}: {error})"
        ) from None
    return None


def _listed(token: Mapping[str, Any]) -> Token:
    spelled = token.get("bytes")
    text = bytes(spelled) if spelled is not None else token["token"].encode()
    top = [(other["token"], other["logprob"]) for other in token.get("top_logprobs") or []]
    return Token(text, _logprob(token["logprob"]), _best(top))


def _best(pairs: Any) -> list[tuple[str, float]]:
    told = [(str(text), p) for text, value in pairs if (p := _logprob(value)) is not None]
    return sorted(told, key=lambda pair: -pair[1])[:TOP]


def _logprob(value: Any) -> float | None:
    """None for the first token of a text, which nothing predicts."""
    if value is None:
        return None
    number = float(value)
    if math.isnan(number) or number > 1e-3:  # rounding may carry a certain token above 0
        raise ValueError(f"{number} is no log-probability")
    return number


def _error_in(error: Any) -> str:
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""


# -- the model -------------------------------------------------------------------------------------


STOPS = 4  # OpenAI takes no more; the others are cut off here
# The whole distribution, for some servers cut it unless told not to: vLLM as the model's makers suggest,
# llama.cpp to the 40 likeliest tokens. -1 is no limit for both. All but the first is unknown to
# OpenAI, and TGI takes no top_p of 1: who refuses one of these needs none.
WIDE = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
# Alternatives to ask for when a server refuses so many: legacy OpenAI and TGI tell five at most.
FEWER = {10: 5, 5: None}


class EndpointModel(Model):
    """A model behind an endpoint. Each answer is handed out, and recorded, as it arrives.

    `generate` asks at temperature 0, for ten alternatives a token; there are fewer or none if the
    server tells no more. `sample` asks for n answers at once, and again for those that did not come;
    samples have no log-probabilities (see `generation`). Temperature 0 is asked
    once. `score` works where prompts are echoed with their log-probabilities (completions of vLLM,
    older OpenAI models).
    """

    def __init__(self, address: Address, prompt_format: str | None = None) -> None:
        self.name, self.fingerprint = address.name, address.fingerprint
        self.prompt_format = prompt_format or address.format
        self.chat, self.lacks = address.chat, address.lacks
        self.address, self.spent = address, Budget(address)
        _ = self.key  # a missing one is told before anything else
        self._refused: set[str] = set()  # parameters that this server does not take
        self._alternatives: int | None = TOP
        self._tried: set[str] = set()  # operations that it has answered

    def __repr__(self) -> str:
        return f"EndpointModel({self.name!r})"

    @property
    def key(self) -> str | None:
        """The key, never kept here, where a pickle or a debugger would show it."""
        return self.address.secret()

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        self.require(job.operation)
        if not job.requests:
            return
        begun = [p for r in job.requests if (p := r["prompt"]).partition(TURN)[2] and self.chat]
        if begun:
            raise ModelError(f"{self.name}: {NO_PREFIX} (asked: ...{begun[0][-60:]!r})")
        announce(forecast(job, self.address))
        ask = {"generate": self._generate, "sample": self._sample, "score": self._score}

        def one(client: openai.AsyncOpenAI, number: int) -> Any:
            return ask[job.operation](client, job.requests[number], job.settings)

        for batch in in_parallel(
            self.client,
            one,
            len(job.requests),
            at_once=self.address.concurrency,
            first_alone=job.operation not in self._tried,
        ):
            self._tried.add(job.operation)
            yield [number for number, _ in batch], [value for _, value in batch]

    # -- the operations, one request each ----------------------------------------------------------

    async def _generate(
        self, client: openai.AsyncOpenAI, request: dict[str, Any], settings: dict[str, Any]
    ) -> Generation:
        prompt = request["prompt"]
        [choice, *_] = await self._reply(client, prompt, settings | {"temperature": 0.0})
        return self._made(prompt, choice, settings, greedy=True)

    async def _sample(
        self, client: openai.AsyncOpenAI, request: dict[str, Any], settings: dict[str, Any]
    ) -> list[Generation]:
        prompt, n, t = request["prompt"], settings["n"], request["temperature"]
        got: list[Choice] = []
        while len(got) < n:
            # vLLM refuses several greedy answers, which would be the same one.
            several = t > 0 and "n" not in self._refused
            seed = _seed(settings["seed"], prompt, t, len(got))
            asked = {"temperature": t, "seed": seed, "n": n - len(got) if several else 1}
            asked["alternatives"] = 0  # see `generation`
            made = await self._reply(client, prompt, settings | asked)
            if len(made) < asked["n"]:
                self._refused.add("n")
            got += made if t > 0 else made[:1] * n
        return [self._made(prompt, choice, settings, greedy=False) for choice in got[:n]]

    async def _score(
        self, client: openai.AsyncOpenAI, request: dict[str, Any], settings: dict[str, Any]
    ) -> Any:
        prompt, answer = request["prompt"], request["answer"]
        # One new token: some servers refuse to make none.
        asked = {"max_new_tokens": 1, "temperature": 0.0, "echo": True, "alternatives": 1}
        [choice, *_] = await self._reply(client, prompt + answer, asked)
        if not echoes(choice, prompt, answer):
            self.lacks = {**self.lacks, "score": NO_ECHO}
            self.require("score")
        try:
            return scores(choice, prompt, answer)
        except ReplyError as error:
            failure = str(error)
        raise self._unusable(failure, prompt)

    def _made(
        self, prompt: str, choice: Choice, settings: dict[str, Any], *, greedy: bool
    ) -> Generation:
        try:
            return generation(prompt, choice, settings["stop"], greedy=greedy)
        except ReplyError as error:
            failure = str(error)
        raise self._unusable(failure, prompt)

    # -- one request, and what came of it ----------------------------------------------------------

    def client(self) -> openai.AsyncOpenAI:
        import openai

        return openai.AsyncOpenAI(
            base_url=self.address.url,
            api_key=self.key or "none",  # else the client sends OPENAI_API_KEY to anybody
            max_retries=self.address.retries,
            timeout=openai.Timeout(self.address.timeout, connect=10),
        )

    async def _reply(
        self, client: openai.AsyncOpenAI, prompt: str, asked: dict[str, Any]
    ) -> list[Choice]:
        """The answers to one prompt, asked again without what the server refuses to take."""
        import openai

        while True:
            body = self._body(prompt, asked)
            create = (
                client.chat.completions.with_raw_response.create
                if self.address.api == "chat"
                else client.completions.with_raw_response.create
            )
            reserved = tokens_asked(prompt, asked["max_new_tokens"] * asked.get("n", 1))
            self.spent.reserve(reserved)
            try:
                raw = await create(**body)
                self.spent.repeated(raw.retries_taken)
                made, used = read_reply(raw.content)
                self.spent.settle(reserved, used)
                return made
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                self.spent.settle(reserved, 0)
                if self._leave_out(error.response.text, body):
                    continue
                failure = ModelError(
                    f"{explained(error, self.address, self.key)} (asked: ...{prompt[-60:]!r})"
                )
            except openai.OpenAIError as error:
                failure = ModelError(explained(error, self.address, self.key))
            except ReplyError as error:
                failure = self._unusable(str(error), prompt)
            # Out here the client's error is no context of ours: it may hold what the server said.
            raise failure

    def _body(self, prompt: str, asked: dict[str, Any]) -> dict[str, Any]:
        """The request: what every server takes, and what this one has not refused."""
        body: dict[str, Any] = {
            "model": self.address.model,
            "max_tokens": asked["max_new_tokens"],
            "temperature": asked["temperature"],
        }
        if stop := asked.get("stop"):
            body["stop"] = stop[:STOPS]
        if asked.get("n", 1) > 1 and "n" not in self._refused:
            body["n"] = asked["n"]
        if "seed" in asked and "seed" not in self._refused:
            body["seed"] = asked["seed"]
        if asked.get("echo") and "echo" not in self._refused:
            body["echo"] = True
        wide = {key: value for key, value in WIDE.items() if key not in self._refused}
        given = {key: asked[key] for key in ("top_k", "top_p") if asked.get(key) is not None}
        body["extra_body"] = wide | given
        told = asked.get("alternatives", self._alternatives)
        wanted: dict[str, Any] = {}
        if self.address.api == "chat":
            body["messages"] = [{"role": "user", "content": prompt.partition(TURN)[0]}]
            wanted = {"logprobs": True, "top_logprobs": told}
        else:
            body["prompt"] = prompt
            wanted = {"logprobs": told}
        return body | (wanted if told else {})

    def _leave_out(self, said: str, body: dict[str, Any]) -> bool:
        """Note what in this request the server refuses; whether there is anything to leave out.

        What it refuses it names, several samples aside. What the caller asked for stays.
        """
        ours = [k for k in WIDE if body["extra_body"].get(k) == WIDE[k]] + ["seed"] * (
            "seed" in body
        )
        if refused := {name for name in ours if re.search(rf"\b{name}\b", said)}:
            self._refused |= refused
            return True
        if "echo" in body:
            self._refused.add("echo")
            return "echo" in said or "logprobs" in said
        told = body.get("top_logprobs", body.get("logprobs"))
        if told and re.search("logprobs|top_n_tokens", said):
            if told == self._alternatives:  # else another request has found out meanwhile
                self._alternatives = FEWER[told]
            return True
        if "n" in body:
            self._refused.add("n")
            return True
        return False

    def _unusable(self, failure: str, prompt: str) -> ModelError:
        failure = clean(failure, self.key)
        return ModelError(
            f"{self.name}: the reply to ...{prompt[-60:]!r} {failure}; nothing of it is kept, check "
            "the URL and the server, then run again"
        )


def _seed(seed: int, prompt: str, temperature: float, index: int) -> int:
    """31 bits, which every server takes, from what determines a sample."""
    key = f"{seed}\n{temperature!r}\n{index}\n{prompt}".encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:4], "big") >> 1


# -- what the server tells of the model ------------------------------------------------------------


# Of what llama.cpp (in "meta") and vLLM tell, that which goes with the weights: "created" is the time
# of asking, "n_ctx" a setting.
TOLD = ("root", "n_params", "size", "n_vocab", "n_embd")


def open_endpoint(
    address: Address, prompt_format: str | None = None, records: Records | None = None
) -> EndpointModel:
    """The model behind an endpoint, once its server is known to have it.

    What the server tells of the weights (`TOLD`; many tell nothing) is kept in the records, and must
    be the same the next time. Raises ModelError if it is not, and as `told` does.
    """
    model = EndpointModel(address, prompt_format)
    facts = told(model)
    if records is not None and facts:
        call = Call(address.fingerprint, "told", address.model, "{}")
        [known] = records.get([call])
        if known is None:
            records.put([call], [facts])
        elif changed := [key for key in facts if known.get(key, facts[key]) != facts[key]]:
            was, now = ({key: said[key] for key in changed} for said in (known, facts))
            raise ModelError(
                f"{address.name}: the server has another model than the one whose answers are in the "
                f"records ({was} then, {now} now); write another revision= for it, or serve the old one"
            )
    return model


def told(model: EndpointModel) -> dict[str, Any]:
    """What the server tells of the model's weights; {} if it tells nothing.

    Raises ModelError if the server cannot be reached, refuses the key, or lists its models and this
    one is not among them: llama.cpp's server answers under any name.
    """
    import openai

    # The first word with a server: a wrong URL shall be told soon.
    address = replace(model.address, retries=min(model.address.retries, 2))

    async def ask(client: openai.AsyncOpenAI, _: int) -> dict[str, Any]:
        try:
            listing = client.with_options(max_retries=address.retries).models.with_raw_response
            raw = await listing.list()
            return decode_reply(raw.content)
        except (openai.NotFoundError, openai.BadRequestError, openai.UnprocessableEntityError):
            return {}  # a server without this page
        except openai.OpenAIError as error:
            failure = explained(error, address, model.key)
        except ReplyError as error:
            failure = (
                f"{model.name}: what lies at {address.url}/models {clean(str(error), model.key)}; "
                "check the URL, which usually ends in /v1"
            )
        raise ModelError(failure)

    [[(_, listed)]] = in_parallel(model.client, ask, 1, at_once=1)
    served = listed.get("data")
    served = [m for m in served if isinstance(m, dict) and m.get("id")] if served else []
    for about in served:
        if address.model in (about["id"], *(about.get("aliases") or ())):
            facts = about | (about.get("meta") or {})
            return {key: facts[key] for key in TOLD if facts.get(key) is not None}
    if served:
        names = ", ".join(str(m["id"]) for m in served[:5]) + (" ..." if len(served) > 5 else "")
        raise ModelError(
            f"{model.name}: the server has no model {address.model!r}; write the name of one that it "
            f"has after the URL: {clean(names, model.key)}"
        )
    return {}
