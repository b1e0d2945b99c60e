"""A model behind an OpenAI-compatible endpoint. A mapping says where it is and how it is asked.

    {url: https://api.openai.com/v1, model: gpt-4o-mini-2024-07-18, key_env: OPENAI_API_KEY}
    {url: https://api.openai.com/v1, model: o4-mini, key_env: OPENAI_API_KEY,
     server: openai-reasoning, thinks: 2000}
    {url: http://localhost:8000/v1, model: meta-llama/Llama-3.1-8B, api: completions, server: vllm}

Where one writes a model's name, 'URL NAME' says the same, with settings behind it:
'http://localhost:8000/v1 llama api=completions server=vllm'.

Servers differ in what they can do. `server` names a kind of them (SERVERS), which decides what a
request holds; `leave_out` drops options of it. Each answer lists those that are not sent
(`Generation.refused`). Nothing is guessed from what a server says: what it refuses is an error that
names these settings. Randomness is the server's: a seed goes with each request, which servers use
as they like, and even greedy answers may depend on what else a server computes.

A prompt that a server's filter refuses is an answer without text, marked as `filtered` and counted.
"""

import hashlib
import inspect
import json
import multiprocessing
import os
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.pool import IMapIterator, ThreadPool
from threading import Lock
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from factrobust.draws import sample_key
from factrobust.models.interface import FILTERED, Generation, Job, Model, ModelError
from factrobust.models.prompts import FORMATS
from factrobust.models.tokens import after_thought, cut

# Ends the user's message in a prompt of a chat format, as a template's marks do.
TURN = "<|assistant|>"
LACKS = {
    "temper": "an endpoint gives no logits; find breaking temperatures by sampling "
    "(decoding.probe.sampled_answers)",
    "token_ids": "an endpoint tells tokens as texts and not as ids, which part 4 needs",
}
NO_SCORE = (
    "this endpoint tells no log-probabilities of given answers, for which it takes api: "
    "completions and a server that echoes prompts with theirs, such as vLLM; ask for answers or "
    "samples instead"
)
TOP = 10  # alternatives kept at each position
STOPS = 4  # OpenAI takes no more; answers are cut at the others here
# Asks for the whole distribution, which vLLM and llama.cpp truncate by default.
WIDE: dict[str, Any] = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
}


class Server(NamedTuple):
    """What a kind of server takes: the name of a chat's limit, what asks for its whole
    distribution, the options that it does not know, and how many alternatives it tells."""

    limit: str = "max_tokens"
    wide: Mapping[str, Any] = MappingProxyType(WIDE)
    lacks: frozenset[str] = frozenset()
    alternatives: int = TOP


SERVERS = {
    "vllm": Server(),  # also what is taken for granted of others
    "llama.cpp": Server(
        wide={
            "top_p": 1.0,
            "top_k": -1,
            "min_p": 0.0,
            "repeat_penalty": 1.0,
        }
    ),
    "openai": Server("max_completion_tokens", {"top_p": 1.0}),
    # o3, o4-mini, gpt-5: they draw at temperature 1 alone
    "openai-reasoning": Server(
        "max_completion_tokens",
        {},
        frozenset(("temperature", "top_p", "stop", "logprobs")),
    ),
    "tgi": Server(wide={}, alternatives=5),  # takes no top_p of 1
}
OPTIONS = (
    "temperature",
    "stop",
    "seed",
    "n",
    "logprobs",
    "echo",
    *WIDE,
)  # that can be left out
# What servers call a prompt or an answer that their filter refuses: a word in a code without its
# signs ("content_filter", "DataInspectionFailed").
FILTERS = re.compile(
    "contentfilter|contentpolicy|contentblock|contentmoderat|policyviolation|invalidprompt|moderation|"
    "datainspection|safety|recitation|prohibited|blocklist|spii|toxic|refusal|sensitive|guardrail|"
    "promptflagged|promptblocked"
)
# Where replies hold such codes, and what they hold only where a filter refused.
CODES = ("code", "type", "status", "finish_reason", "blockReason", "block_reason")
FLAGS = ("flagged_input", "contentFilter")  # of OpenRouter, Zhipu
# Why an answer ended that its server could not finish.
FAILED = ("error", "insufficient_system_resource", "abort", "aborted", "cancelled", "timeout")
LENGTH = ("length", "max_tokens", "model_length")  # why one that was too long
THOUGHTS = ("thinking", "reasoning", "redacted_thinking", "thought")  # parts of a message
UNKNOWN = -9999.0  # OpenAI's log-probability of a token that it has none of
KEY = "OPENAI_API_KEY"  # of an endpoint that is named on the command line without another one
# Names of tokens that are no texts: of vLLM, SentencePiece, and OpenAI's completions.
TOKEN_ID = re.compile(r"token_id:\d+")
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
BYTES = re.compile(r"bytes:((?:\\x[0-9a-f]{2})+)")
BLANK_LINES = re.compile(r"\s*\n\s*")
HALF = "\ufffd"  # stands for a part of a letter

Word = Annotated[str, Field(pattern=r"^\S+$")]


class Endpoint(BaseModel, frozen=True, strict=True, extra="forbid"):
    """The settings of a mapping."""

    url: str = Field(pattern=r"^https?://[^\s/?#@]+[^\s?#@]*$")  # no user, no password
    model: Word  # its name at the server
    key_env: str | None = Field(
        None,
        pattern="^[A-Z_][A-Z0-9_]*$",
    )  # the variable with the key
    # completions: the server continues the prompt as it stands (pretrained models).
    api: Literal["chat", "completions"] = "chat"
    # The default prompt format. In a chat, one without template is a single message (paper 1).
    format: Literal[*FORMATS] = "two-shot"  # type: ignore[valid-type]
    concurrency: int = Field(8, ge=1, le=1000)  # requests at a time
    timeout: int = Field(120, ge=1, le=1_000_000)  # whole seconds until a request counts as lost
    retries: int = Field(8, ge=0)  # by openai's client, which waits longer each time
    server: Literal[*SERVERS] | None = None  # type: ignore[valid-type]
    leave_out: list[Literal[*OPTIONS]] = []  # type: ignore[valid-type]  # options that are never sent
    alternatives: int = Field(TOP, ge=0, le=TOP)  # likeliest tokens at each position
    thinks: int = Field(0, ge=0)  # tokens that a thought before the answer may take
    budget_requests: int | None = Field(
        None,
        ge=1,
    )  # of one loaded model; repeated ones count
    revision: Word | None = None  # any word for the version that is served now

    @field_validator("url")
    @classmethod
    def _with_a_host(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            found = parts.hostname and (parts.port is None or parts.port > 0)
            (parts.hostname or "").encode("idna")
        except ValueError:  # of the port, of brackets, of a label
            found = None
        if not found or not url.isprintable() or "\\" in url:
            raise ValueError("it has no host, or a sign or a port that no address has")
        if url.rstrip("/").endswith("/completions"):
            raise ValueError("leave /completions or /chat/completions out, which `api` adds")
        return url

    @property
    def name(self) -> str:
        """The model's name in tables: the mapping on one line."""
        words = [self.url, self.model]
        for setting, value in self.model_dump(exclude={"url", "model"}, exclude_unset=True).items():
            text = ",".join(value) if isinstance(value, list) else value
            words.append(f"{setting}={text}")
        return " ".join(words)

    @property
    def fingerprint(self) -> str:
        """The part of a record's key that stands for the model: URL, model, api and revision, and
        what is said of its server. Nobody can check the weights behind an endpoint. If a server may
        change what it serves under a name, ask for a dated model ("gpt-4o-mini-2024-07-18"), or
        change `revision`."""
        url = self.url.rstrip("/")
        words = [
            f"endpoint:{url}",
            self.model,
            self.api,
            self.revision,
            self.server,
            ",".join(sorted(self.leave_out)),
        ]
        return " ".join(word for word in words if word)

    @property
    def chat(self) -> tuple[str, str] | None:
        """Text around a user's message: the server's own template writes the rest."""
        return ("", TURN) if self.api == "chat" else None

    @property
    def lacks(self) -> dict[str, str]:
        """What no server behind such an endpoint can do (see `Model.lacks`)."""
        return LACKS | ({"score": NO_SCORE} if self.api == "chat" else {})

    @property
    def takes(self) -> Server:
        """What its server takes, without what is to be left out."""
        at_openai = self.url.startswith("https://api.openai.com/")
        kind = SERVERS[self.server or ("openai" if at_openai else "vllm")]
        lacks = kind.lacks.union(self.leave_out)
        wide = {name: value for name, value in kind.wide.items() if name not in lacks}
        return kind._replace(
            lacks=lacks,
            wide=wide,
            alternatives=min(kind.alternatives, self.alternatives),
        )

    def key(self) -> str | None:
        """The key, read each time and stored nowhere; ModelError if its variable is not set, or to
        what no header can hold."""
        if self.key_env is None:
            return None
        value = os.environ.get(self.key_env, "").strip()
        if not value:
            raise ModelError(f"{self.url} needs a key: set the environment variable {self.key_env}")
        if not value.isascii() or not value.isprintable() or " " in value:
            raise ModelError(
                f"the key in {self.key_env} holds a space, a line break or a letter that no key "
                "has; set it to the key alone"
            )
        return value

    def redacted(self, text: str) -> str:
        """A text for people without the key, which some servers repeat in what they say."""
        key = self.key()
        return text.replace(key, "***") if key else text


def named_endpoint(text: str) -> dict[str, Any]:
    """The mapping of 'URL NAME' with settings behind it ("api=completions"). Without `key_env` the
    key is that of the variable KEY, if it is set. Wrong settings are found by `read_endpoint`."""
    url, *words = text.split()
    model = words.pop(0) if words and "=" not in words[0] else "model"
    mapping: dict[str, Any] = {"url": url, "model": model}
    for word in words:
        name, _, value = word.partition("=")
        mapping[name] = int(value) if value.isdecimal() else value
    if isinstance(options := mapping.get("leave_out"), str):
        mapping["leave_out"] = options.split(",")
    if os.environ.get(KEY, "").strip():
        mapping.setdefault("key_env", KEY)
    return mapping


def read_endpoint(mapping: Mapping[str, Any]) -> Endpoint:
    """The settings of a mapping; ModelError, which repeats no value (it may be a key), for wrong
    ones."""
    try:
        return Endpoint.model_validate(dict(mapping))
    except ValidationError as error:
        [fault, *_] = error.errors(include_input=False, include_url=False)
        setting, *_ = fault["loc"]
        reason = fault["msg"]
    known = ", ".join(Endpoint.model_fields)
    raise ModelError(
        f"the endpoint of {mapping.get('model')!r}: {setting}: {reason} (settings are {known})"
    )


def check_reached(mapping: Mapping[str, Any]) -> None:
    """ModelError if nothing answers at a mapping's URL; whatever answers, and how, is a server. No
    key is sent."""
    import openai

    url = read_endpoint(mapping).url
    hooks: dict[str, list[Any]] = {"request": [_without_a_key]}
    with openai.OpenAI(
        base_url=url,
        api_key="none",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(event_hooks=hooks, timeout=10),
    ) as client:
        try:
            client.models.with_raw_response.list()
        except openai.APIConnectionError as error:
            why = f"{error} {error.__cause__ or ''}".strip()
            raise ModelError(
                f"no server answers at {url} ({why}); start it, or mend the address"
            ) from error
        except openai.APIStatusError:
            return  # it has no list of models, or wants a key for it


def _without_a_key(request: Any) -> None:
    request.headers.pop("Authorization", None)


class EndpointModel(Model):
    """A model behind an endpoint, whose answers are recorded as they arrive. `generate` asks for
    ten alternatives a token, `sample` for n answers at once, then for those that did not come;
    `score` needs a server that repeats prompts with log-probabilities (completions of vLLM)."""

    def __init__(self, endpoint: Endpoint, **description: Any) -> None:
        super().__init__(**description)
        self.endpoint = endpoint
        self.requests = 0
        self._lock = Lock()
        self._one_at_a_time = "n" in endpoint.takes.lacks  # it gives one answer to a request
        self._answered: set[str] = set()  # operations that have worked

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        import openai

        self.require(job.operation)
        operations = {
            "generate": self._generate,
            "sample": self._sample,
            "score": self._score,
        }
        ask = operations[job.operation]
        failures: list[Exception] = []

        def attempt(number: int) -> tuple[int, Any] | None:
            call = job.settings | job.requests[number]
            try:
                if not failures:
                    return number, ask(client, call)
            except (openai.OpenAIError, ValidationError) as error:
                failures.append(self._explained(error, call["prompt"]))
            except Exception as error:
                failures.append(error)
            return None

        # The first request of an operation goes alone: what is refused is refused once.
        count = len(job.requests)
        alone = min(job.operation not in self._answered, count)
        filtered = 0
        # Its threads are daemons: Ctrl-C waits for no request.
        with self._connect() as client, ThreadPool(self.endpoint.concurrency) as pool:
            for numbers in range(alone), range(alone, count):
                for done in _arriving(pool.imap_unordered(attempt, numbers)):
                    if done is None:
                        continue
                    number, result = done
                    self._answered.add(job.operation)
                    filtered += _filtered(result)
                    yield [number], [result]
                if failures:  # after the answers to requests under way, which are paid for
                    raise failures[0]
        if filtered:
            print(
                f"{self.name}: the server's filter refused {filtered} of {count} prompts; their "
                "answers are empty",
                file=sys.stderr,
            )

    # -- the operations; a call holds a job's settings and one request -----------------------------

    def _generate(self, client: Any, call: dict[str, Any]) -> Generation:
        [choice, *_], missing = self._reply(client, call | {"temperature": 0.0})
        return choice.generation(call, missing, greedy=True, chat=self._chats)

    def _sample(self, client: Any, call: dict[str, Any]) -> list[Generation]:
        n = call["n"]
        t = call["temperature"]
        if t != 1 and "temperature" in self.endpoint.takes.lacks:
            raise ModelError(f"{self.name} draws at temperature 1 alone; ask for no other than {t}")
        samples: list[Generation] = []
        while len(samples) < n:
            # vLLM refuses several greedy answers, which would be the same one.
            several = n - len(samples)
            if t == 0 or self._one_at_a_time:
                several = 1
            key = sample_key(call["seed"], call["prompt"], t, len(samples))
            digest = hashlib.sha256(key).digest()
            seed = int.from_bytes(digest[:4], "big") >> 1  # every server takes 31 bits
            request = call | {"n": several, "seed": seed, "alternatives": 0}
            choices, missing = self._reply(client, request)
            answers = []
            for choice in choices:
                answers.append(choice.generation(call, missing, greedy=False, chat=self._chats))
            first = answers[0]
            if t == 0 or (first.filtered and not first.text):  # the others would be the same
                return [first] * n
            self._one_at_a_time |= len(choices) < several
            samples += answers
        return samples[:n]

    def _score(self, client: Any, call: dict[str, Any]) -> np.ndarray:
        prompt = call["prompt"]
        answer = call["answer"]
        both = prompt + answer
        request = {
            "prompt": both,
            "max_new_tokens": 1,  # since some servers refuse to make none
            "temperature": 0.0,
            "echo": True,
            "alternatives": 1,
        }
        [choice, *_], _ = self._reply(client, request)
        # Servers that do not know `echo` may ignore it and answer with the new token alone.
        if both not in choice.text or len(choice.tokens) < 2:
            self.lacks = {**self.lacks, "score": NO_SCORE}
            self.require("score")
        return choice.scores(prompt, answer)

    # -- one request, and what comes of it ---------------------------------------------------------

    @property
    def _chats(self) -> bool:
        return self.endpoint.api == "chat"

    def _connect(self) -> Any:
        import openai

        key = self.endpoint.key()
        hooks: dict[str, list[Any]] = {
            "request": [self._count],
            "response": [_with_its_status],
        }
        return openai.OpenAI(
            base_url=self.endpoint.url,
            # With none the client would send OPENAI_API_KEY to any server.
            api_key=key or "none",
            max_retries=self.endpoint.retries,
            timeout=openai.Timeout(self.endpoint.timeout, connect=10),
            http_client=openai.DefaultHttpxClient(event_hooks=hooks),
        )

    def _count(self, request: Any) -> None:
        """Count an attempt before it is sent, without a key's header where there is no key;
        ModelError if the budget is used up."""
        if not self.endpoint.key_env:
            _without_a_key(request)
        with self._lock:
            if self.requests == self.endpoint.budget_requests:
                raise ModelError(
                    f"{self.name}: the budget of {self.requests} requests is used up; raise "
                    "budget_requests or run again, what is in the records is not asked again"
                )
            self.requests += 1

    def _reply(
        self,
        client: Any,
        call: dict[str, Any],
    ) -> tuple[list["Choice"], list[str]]:
        """The answers to a call, and the options that did not go with it."""
        import openai

        # 1. The request, and what it lacks of what decides the answers.
        body = self._body(call)
        missing = {*WIDE, "temperature"} - {*body}
        if "seed" in call and "seed" not in body:
            missing.add("seed")
        if "repeat_penalty" in body:  # llama.cpp's name for it
            missing.discard("repetition_penalty")
        completions = client.chat.completions if self._chats else client.completions
        typed = inspect.signature(completions.create).parameters
        extra = {name: body.pop(name) for name in [*body] if name not in typed}
        # 2. The reply.
        try:
            reply = completions.with_raw_response.create(**body, extra_body=extra)
        except openai.APIStatusError as error:
            try:
                found = error.response.json()
            except ValueError:
                found = None
            if call.get("echo") or not _refused(found):
                raise
            return [Choice(text="", tokens=[], finish=FILTERED)], sorted(missing)
        try:
            body = reply.content.removeprefix(BOM_UTF8)
            choices = Reply.model_validate_json(body).choices
        except ValidationError as error:
            error.add_note(reply.text)  # for `_explained`: the error itself may hold half a key
            raise
        return sorted(choices, key=lambda choice: choice.index), sorted(missing)

    def _body(self, call: dict[str, Any]) -> dict[str, Any]:
        """The request, of what the server takes."""
        takes = self.endpoint.takes
        thinks = self.endpoint.thinks
        # 1. How the answers are drawn.
        options = {**takes.wide, "temperature": call["temperature"]}
        for name in ("seed", "echo"):
            if name in call:
                options[name] = call[name]
        for name in ("top_k", "top_p", "min_p"):
            if call.get(name) is None:
                continue
            if name in takes.lacks:
                raise ModelError(f"{self.name} takes no {name}; ask without")
            options[name] = call[name]
        if call.get("n", 1) > 1:
            options["n"] = call["n"]
        # 2. Where they end. No server knows `skip_blank`; a thought, or the lines before a chat's
        # answer, would end at once.
        stop = [s for s in call.get("stop", ()) if s.strip() or not self._chats]
        if stop and not call.get("skip_blank") and not thinks:
            options["stop"] = stop[:STOPS]
        # 3. Their alternatives.
        alternatives = min(call.get("alternatives", TOP), takes.alternatives)
        if alternatives and "logprobs" not in takes.lacks:
            if self._chats:
                options["logprobs"] = True
                options["top_logprobs"] = alternatives
            else:
                options["logprobs"] = alternatives
        body = {name: value for name, value in options.items() if name not in takes.lacks}
        # 4. The prompt.
        body["model"] = self.endpoint.model
        limit = takes.limit if self._chats else "max_tokens"
        body[limit] = call["max_new_tokens"] + thinks
        if not self._chats:
            body["prompt"] = call["prompt"]
            return body
        message, _, prefix = call["prompt"].partition(TURN)
        if prefix:  # some servers would continue it, others not
            raise ModelError(
                f"{self.name}: no answer can be begun for a chat endpoint; ask in the format "
                "'chat' or 'instruction', or 'prefix' with api: completions (asked: "
                f"...{call['prompt'][-60:]!r})"
            )
        body["messages"] = [{"role": "user", "content": message}]
        return body

    def _explained(self, error: Exception, prompt: str) -> ModelError:
        """One sentence for what went wrong, raised where the error, which may hold the key, is no
        context."""
        import openai

        if isinstance(error, ValidationError):
            [fault, *_] = error.errors(include_input=False, include_url=False)
            place = ".".join(map(str, fault["loc"]))
            reason = f"{place} {fault['msg']} in {error.__notes__[0]}"
        else:
            reason = f"{error} {error.__cause__ or ''}"
            body = getattr(error, "body", None)
            if isinstance(error, openai.APIStatusError) and not (
                isinstance(body, dict) and body.get("message")
            ):
                reason += f" - {error.response.text}"  # the client tells only messages
        redacted = self.endpoint.redacted(f"{type(error).__name__}: {reason}")
        shown = " ".join(redacted.split())[:400]
        status = getattr(error, "status_code", None)
        if status in (400, 422):
            kinds = ", ".join(SERVERS)
            remedy = (
                f"if it takes no such option, say which `server` it is ({kinds}) or `leave_out` "
                "the option"
            )
        elif status == 401 and not self.endpoint.key_env:
            remedy = f"set {KEY}, or name the variable with the key (key_env)"
        elif status == 404:
            remedy = "check the address, which mostly ends in /v1, and the model's name there"
        else:
            remedy = "mend it, then run again"
        end = prompt[-60:]
        return ModelError(f"{self.name}: {shown}; {remedy} (asked: ...{end!r})")


def _arriving(results: "IMapIterator[Any]") -> Iterator[Any]:
    """The results of a pool's threads as they arrive.

    A wait without an end may miss Ctrl-C: one that comes just before the wait begins is told only
    when it ends."""
    while True:
        try:
            result = results.next(timeout=1.0)
        except multiprocessing.TimeoutError:
            continue
        except StopIteration:
            return
        yield result


def _filtered(result: Any) -> bool:
    """Whether a filter refused a call's answer, or one of its answers."""
    several = result if isinstance(result, list) else [result]
    return any(isinstance(one, Generation) and one.filtered for one in several)


def _refused(found: Any) -> bool:
    """Whether a reply, or a part of one, says by one of its codes that a filter refused."""
    if isinstance(found, list):
        return any(_refused(part) for part in found)
    if isinstance(found, str) and found.startswith("{"):  # a provider's own reply within another's
        with suppress(ValueError):
            return _refused(json.loads(found))
    if not isinstance(found, dict):
        return False
    if any(flag in found for flag in FLAGS):
        return True
    if any(_is_filter(found.get(name)) for name in CODES):
        return True
    return any(_refused(part) for part in found.values())


def _is_filter(code: Any) -> bool:
    """Whether a code is a filter's."""
    letters = re.sub("[^a-z]", "", code.lower()) if isinstance(code, str) else ""
    return bool(FILTERS.search(letters))


def _with_its_status(response: Any) -> None:
    """Give an answer of status 200 that holds an error, or no choices, or one that its server could
    not finish, the status of that error: then the client asks again, as after any other of the
    kind."""
    if response.status_code != 200:
        return
    response.read()
    try:
        found = response.json()
    except (ValueError, RecursionError):  # told where it is read
        return
    if not isinstance(found, dict):
        return
    choices = found.get("choices") or []
    failed = [c for c in choices if isinstance(c, dict) and _ending(c) in FAILED]
    if failed:
        error = failed[0].get("error") or {}
    elif choices:
        return
    else:
        error = found if found.get("object") == "error" else found.get("error")
    if error is None and "choices" not in found:
        return
    code = str(error.get("code")) if isinstance(error, dict) else ""
    status = int(code) if code.isdecimal() else 0
    if not failed and _refused(found):
        status = 400
    elif not 400 <= status < 600:
        status = 503
    response.status_code = status


def _ending(choice: Mapping[str, Any]) -> str:
    """Why an answer ended, in small letters."""
    return str(choice.get("finish_reason")).lower()


# -- replies: what one lacks is not made up --------------------------------------------------------
#
# Not openai's own types: its client fills them without a check, and a checked one asks for fields
# that other servers do not send. These have only the fields that are needed, all checked.


class Token(BaseModel):
    """A token of a reply. The first one of a text has no log-probability."""

    token: str
    data: list[Annotated[int, Field(ge=0, le=255)]] | None = Field(None, alias="bytes")
    # Rounding may lift that of a certain token above 0.
    logprob: Annotated[float, Field(le=1e-3)] | None
    top_logprobs: list["Token"] | None = None

    @property
    def parts(self) -> list[bytes | None]:
        """Its bytes, with None in the place of those that are not told: parts of a letter, or all
        of a token that is told by its number."""
        found = BYTES.fullmatch(self.token)
        if found:
            return [bytes.fromhex(found[1].replace("\\x", ""))]
        found = BYTE.fullmatch(self.token)
        if found:
            return [bytes.fromhex(found[1])]
        if self.data is not None:
            content = bytes(self.data)
        elif TOKEN_ID.fullmatch(self.token):
            return [None]
        else:
            content = self.token.encode()
        first, *others = content.split(HALF.encode())
        parts: list[bytes | None] = [first]
        for other in others:
            parts += [None, other]
        return parts

    @property
    def text(self) -> str:
        """Its text, in which a part of a letter is U+FFFD; its name, if only that is told."""
        parts = self.parts
        if parts == [None]:
            return self.token
        as_bytes = [HALF.encode() if part is None else part for part in parts]
        return b"".join(as_bytes).decode(errors="replace")

    @property
    def best(self) -> list[tuple[str, float]]:
        """The alternatives, best first, each once, with the token itself."""
        pairs = []
        for alternative in self.top_logprobs or ():
            if alternative.logprob is None:
                continue
            pair = (alternative.text, alternative.logprob)
            if HALF in alternative.text or pair not in pairs:
                pairs.append(pair)
        known = HALF in self.text or self.text in dict(pairs)
        if pairs and self.logprob is not None and not known:
            pairs.append((self.text, self.logprob))
        pairs.sort(key=lambda pair: -pair[1])
        return pairs[:TOP]


def _tokens(logprobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tokens of either of the two shapes that servers send, in the second one.

    Completions of OpenAI and vLLM have parallel lists: {"tokens": [" Nai", "robi"],
    "token_logprobs": [-0.1, -0.2], "top_logprobs": [{" Nai": -0.1, ...}, ...]}. Chats and llama.cpp
    have a list of tokens as "content", each as `Token`."""
    content = _object(logprobs).get("content")
    if content is not None:
        return content
    texts = logprobs.get("tokens") or []
    values = logprobs.get("token_logprobs") or []
    tops = logprobs.get("top_logprobs") or [None] * len(texts)
    if not len(texts) == len(values) == len(tops):
        raise ValueError("its lists of tokens and of log-probabilities differ in length")
    tokens = []
    for text, value, top in zip(texts, values, tops, strict=True):
        pairs = _object(top or {}).items()
        alternatives = [{"token": name, "logprob": p} for name, p in pairs]
        tokens.append({"token": text, "logprob": value, "top_logprobs": alternatives})
    return tokens


def _object(found: Any) -> dict[str, Any]:
    """It, if it is an object of JSON; ValueError for other things."""
    if isinstance(found, dict):
        return found
    raise ValueError(f"{str(found)[:40]!r} stands where an object is expected")


def _joined(content: Any) -> Any:
    """The text of a message that is told in parts, without those of a thought; ValueError for a
    part that is no text."""
    if not isinstance(content, list):
        return content
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = _object(part).get("type", "text")
        text = part.get("refusal" if kind == "refusal" else "text")
        if kind not in THOUGHTS and not isinstance(text, str):
            raise ValueError(f"a part of its content ({kind!r}) holds no text")
        if kind not in THOUGHTS:
            texts.append(text)
    return "".join(texts)


class Choice(BaseModel):
    """One answer of a reply. Without log-probabilities it has no tokens."""

    index: int = 0
    text: str
    tokens: list[Token]
    finish: str | None = None  # why it ended

    @model_validator(mode="before")
    @classmethod
    def _of_any_server(cls, choice: Any) -> dict[str, Any]:
        if "tokens" in _object(choice):
            return choice
        message = _object(choice.get("message") or {})
        finish = _ending(choice)
        text = _joined(message.get("content", choice.get("text")))
        text = text or message.get("refusal") or text
        if text is None and _is_filter(finish):
            text = ""
        if text is None and "content" in message and finish == "stop":
            text = None if message.get("tool_calls") else ""  # it ended at once
        reasoned = message.get("reasoning_content") or message.get("reasoning")
        cut_off = finish in LENGTH and "message" in choice
        without_answer = not text and (reasoned or cut_off)
        unended = isinstance(text, str) and text and after_thought(text) is None
        if without_answer or unended:
            raise ValueError(
                "it ends in the model's reasoning; give that tokens (thinks: 2000), or switch it "
                "off at the server,"
            )
        return {
            "index": choice.get("index") or 0,
            "text": text,
            "tokens": _tokens(choice.get("logprobs") or {}),
            "finish": finish,
        }

    def generation(
        self,
        call: Mapping[str, Any],
        missing: Sequence[str] = (),
        *,
        greedy: bool,
        chat: bool = False,
    ) -> Generation:
        """The answer before the first stop string, after a thought and, in a chat, blank lines,
        with the log-probabilities of its tokens; not of samples: some servers send those before the
        temperature, others those after it. None where tokens do not add up to the answer."""
        # 1. Its text.
        begin = after_thought(self.text) or 0
        start = begin
        blank = BLANK_LINES.match(self.text, begin)
        if blank and (chat or begin):
            start = blank.end()
        rest = self.text[start:]
        short = cut(rest, call["stop"], call.get("skip_blank", False))
        text = rest if short is None else short
        # 2. Its tokens.
        tokens: list[Token] = []
        if greedy and text and self.tokens:
            before = covering(self.tokens, self.text[:begin], self.text)
            upto = covering(self.tokens, self.text[:start] + text, self.text)
            if before is not None and upto is not None:
                tokens = self.tokens[before:upto]
        logprobs = [token.logprob for token in tokens if token.logprob is not None]
        if len(logprobs) < len(tokens):
            prompt = call["prompt"][-60:]
            raise ModelError(f"a token of the answer to {prompt!r} lacks its log-probability")
        if any(logprob <= UNKNOWN for logprob in logprobs):
            prompt = call["prompt"][-60:]
            raise ModelError(
                f"a token of the answer to {prompt!r} has the log-probability {min(logprobs)}, "
                "though it was chosen; leave out logprobs, or mend the server"
            )
        alternatives = [token.best for token in tokens]
        if not all(alternatives):
            alternatives = []
        refused = [*missing]
        if _is_filter(self.finish):
            refused.append(FILTERED)
        return Generation(
            call["prompt"],
            text,
            token_ids=[],
            logprobs=logprobs,
            top_logprobs=alternatives,
            refused=refused,
        )

    def scores(self, prompt: str, answer: str) -> np.ndarray:
        """log P of the answer's tokens, float32 [token], from a reply that repeats prompt and
        answer. The tokens are as in `Model.score`; one new token may follow them. Raises ModelError
        if they do not add up to the answer."""
        both = (prompt + answer).encode()
        # 1. The last token is a new one, unless both texts end with it.
        tokens = self.tokens
        ends_there = not self.text.partition(prompt + answer)[2]
        last = tokens[-1].parts if tokens else []
        if not (ends_there and any(last) and both.endswith(tokens[-1].text.encode())):
            tokens = tokens[:-1]
        # 2. From the end, the fewest that cover the answer.
        with_logprob = [token for token in reversed(tokens) if token.logprob is not None]
        backwards = []
        for token in with_logprob:
            backwards.append([part and part[::-1] for part in reversed(token.parts)])
        n = _fewest(_reached(backwards, both[::-1]), len(answer.encode()))
        if n is None:
            raise ModelError(
                f"the answer {answer!r} is repeated in tokens that do not add up to it"
            )
        values = [token.logprob for token in reversed(with_logprob[:n])]
        logprobs = np.array(values, dtype=np.float32)
        if (logprobs <= UNKNOWN).any():
            raise ModelError(
                f"a token of the answer {answer!r} has the log-probability {logprobs.min()}, as if "
                "it were impossible; let the server tell those of its whole distribution"
            )
        return logprobs


def covering(tokens: Sequence[Token], text: str, whole: str) -> int | None:
    """How many of the tokens cover `text`, the beginning of the `whole` answer. None if they do not
    add up to it, or more than one number is possible."""
    return _fewest(
        _reached([token.parts for token in tokens], whole.encode()),
        len(text.encode()),
    )


def _fewest(reached: list[set[int]], goal: int) -> int | None:
    """How many tokens reach so many bytes, of `_reached`."""
    for n, places in enumerate(reached):
        if max(places) >= goal:
            return n if min(places) >= goal else None
    return None


def _reached(tokens: Sequence[list[bytes | None]], data: bytes) -> list[set[int]]:
    """The places of `data` that the first 0, 1, 2, ... tokens can reach, if the others go on from
    there. A part of a letter that is not told is one to three bytes of letters beyond ASCII, a
    token that is not told any bytes. White space before all may be missing in the data."""
    # 1. What each token can reach from what the one before can.
    reached: list[set[int]] = [{0}]
    for parts in tokens:
        places = _after(parts, reached[-1], data)
        if not places:
            break
        reached.append(places)
    if len(data) in reached[-1]:
        reached[-1] = {len(data)}
    # 2. Backwards: only the places from which the next token reaches one of its own.
    for n in range(len(reached) - 2, -1, -1):
        possible = set()
        for place in reached[n]:
            if _after(tokens[n], {place}, data) & reached[n + 1]:
                possible.add(place)
        reached[n] = possible
    return reached


def _after(parts: list[bytes | None], places: set[int], data: bytes) -> set[int]:
    """The places of `data` that a token of these parts can reach from one of `places`."""
    if parts == [None]:  # a token told by its number
        first = min(places, default=len(data) + 1)
        return set(range(first, len(data) + 1))
    for part in parts:
        found = set()
        if part is None:
            for place in places:
                for end, byte in enumerate(data[place : place + 3], start=place + 1):
                    if byte < 0x80:
                        break
                    found.add(end)
        else:
            for place in places:
                if data.startswith(part, place):
                    found.add(place + len(part))
            stripped = part.lstrip()
            if 0 in places and data.startswith(stripped):
                found.add(len(stripped))
        places = found
    return places


class Reply(BaseModel):
    choices: Annotated[list[Choice], Field(min_length=1)]
