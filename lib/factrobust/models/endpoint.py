"""A model behind an OpenAI-compatible endpoint. A mapping says where it is and how it is asked.

    {url: https://api.openai.com/v1, model: gpt-4o-mini-2024-07-18, key_env: OPENAI_API_KEY}
    {url: http://localhost:8000/v1, model: meta-llama/Llama-3.1-8B, api: completions, concurrency: 32}

Servers differ in what they can do, and few say so. So the first request of an operation goes alone and
asks for everything. What the server refuses by name is left out from then on, and each answer lists it
(`Generation.refused`). Randomness is the server's: a seed goes with each request, which servers use as
they like, and even greedy answers may depend on what else a server computes.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.pool import ThreadPool
from threading import Lock
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field, ValidationError, model_validator

from factrobust.draws import sample_key
from factrobust.models.interface import Generation, Job, Model, ModelError
from factrobust.models.prompts import FORMATS
from factrobust.models.tokens import cut

# Ends the user's message in a prompt of a chat format, as a template's marks do.
TURN = "<|assistant|>"
LACKS = {
    "temper": "an endpoint gives no logits; find breaking temperatures by sampling "
    "(decoding.probe.sampled)",
    "token_ids": "an endpoint tells tokens as texts and not as ids, which part 4 needs",
}
NO_SCORE = (
    "this endpoint tells no log-probabilities of given answers, for which it takes api: completions "
    "and a server that echoes prompts with theirs, such as vLLM; ask for answers or samples instead"
)
TOP = 10  # alternatives kept at each position
FEWER = 5  # for a server that refuses so many: legacy OpenAI and TGI tell five at most
STOPS = 4  # OpenAI takes no more; answers are cut at the others here
# Asks for the whole distribution, which vLLM and llama.cpp truncate by default. OpenAI knows only the
# first of these, and TGI takes no top_p of 1. A server that refuses one does not truncate by it.
WIDE: dict[str, Any] = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
TOPS = ("logprobs", "top_logprobs", "top_n_tokens")
NAMES = re.compile(
    rf"\b({'|'.join(('seed', 'echo', 'max_tokens', 'temperature', *WIDE, *TOPS))})\b"
)
# What servers say of a parameter that they do not take, or not with this value.
REFUSES = re.compile(
    r"unrecogni|unknown|unsupported|unexpected|\bextra|\binvalid\b|does not support|must be|at most|"
    r"greater than|not (?:\w+ )?(?:supported|permitted|allowed|recogni|valid|available)", re.I
)  # fmt: skip
NEAR = 40  # characters between a parameter's name and what is said of it

Word = Annotated[str, Field(pattern=r"^\S+$")]


class Endpoint(BaseModel, frozen=True, strict=True, extra="forbid"):
    """The settings of a mapping."""

    url: str = Field(pattern=r"^https?://[^\s/?#@]+[^\s?#@]*$")  # no user, no password
    model: Word  # its name at the server
    key_env: str | None = Field(None, pattern="^[A-Z_][A-Z0-9_]*$")  # the variable with the key
    # completions: the server continues the prompt as it stands (pretrained models).
    api: Literal["chat", "completions"] = "chat"
    # The default prompt format. In a chat, one without template is a single message (paper 1).
    format: Literal[*FORMATS] = "two-shot"  # type: ignore[valid-type]
    concurrency: int = Field(8, ge=1)  # requests at a time
    timeout: int = Field(120, ge=1)  # whole seconds until a request counts as lost
    retries: int = Field(8, ge=0)  # by openai's client, which waits longer each time
    budget_requests: int | None = Field(None, ge=1)  # of one loaded model; repeated ones count
    revision: Word | None = None  # any word for the version that is served now

    @property
    def name(self) -> str:
        """The model's name in tables: the mapping on one line."""
        words = [f"{k}={v}" for k, v in self.model_dump(exclude_unset=True).items()]
        return " ".join([self.url, self.model, *words[2:]])

    @property
    def fingerprint(self) -> str:
        """The part of a record's key that stands for the model: URL, model, api and revision.
        Nobody can check the weights behind an endpoint. If a server may change what it serves under
        a name, ask for a dated model ("gpt-4o-mini-2024-07-18"), or change `revision`."""
        words = [f"endpoint:{self.url.rstrip('/')}", self.model, self.api, self.revision]
        return " ".join(word for word in words if word)

    @property
    def chat(self) -> tuple[str, str] | None:
        """Text around a user's message: the server's own template writes the rest."""
        return ("", TURN) if self.api == "chat" else None

    @property
    def lacks(self) -> dict[str, str]:
        """What no server behind such an endpoint can do (see `Model.lacks`)."""
        return LACKS | ({"score": NO_SCORE} if self.api == "chat" else {})

    def key(self) -> str | None:
        """The key, read each time and stored nowhere; ModelError if its variable is not set."""
        if self.key_env is None:
            return None
        if value := os.environ.get(self.key_env, "").strip():
            return value
        raise ModelError(f"{self.url} needs a key: set the environment variable {self.key_env}")

    def redacted(self, said: str) -> str:
        """A text for people without the key, which some servers repeat in what they say."""
        key = self.key()
        return said.replace(key, "***") if key else said


def read_endpoint(mapping: Mapping[str, Any]) -> Endpoint:
    """The settings of a mapping; ModelError, which repeats no value (it may be a key), for wrong ones."""
    try:
        return Endpoint.model_validate(dict(mapping))
    except ValidationError as error:
        [fault, *_] = error.errors(include_input=False, include_url=False)
        setting = f"the endpoint of {mapping.get('model')!r}: {fault['loc'][0]}: {fault['msg']}"
    raise ModelError(f"{setting} (settings are {', '.join(Endpoint.model_fields)})")


class EndpointModel(Model):
    """A model behind an endpoint, whose answers are recorded as they arrive. `generate` asks for
    ten alternatives a token, `sample` for n answers at once, then for those that did not come;
    `score` needs a server that repeats prompts with log-probabilities (completions of vLLM)."""

    def __init__(self, endpoint: Endpoint, **about: Any) -> None:
        super().__init__(**about)
        self.endpoint, self.requests, self._lock = endpoint, 0, Lock()
        self._refused: set[str] = set()  # parameters that this server does not take
        self._alternatives = TOP  # as many as it gives
        self._answered: set[str] = set()  # operations that have worked

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        import openai

        self.require(job.operation)
        ask = getattr(self, f"_{job.operation}")
        failures: list[Exception] = []

        def attempt(number: int) -> tuple[int, Any] | None:
            call = job.settings | job.requests[number]
            try:
                if not failures:
                    return number, ask(client, call)
            except (openai.OpenAIError, ValidationError) as error:
                failures.append(self._explained(error, f"...{call['prompt'][-60:]!r}"))
            except Exception as error:
                failures.append(error)
            return None

        alone = min(job.operation not in self._answered, len(job.requests))
        # Its threads are daemons: Ctrl-C waits for no request.
        with self._connect() as client, ThreadPool(self.endpoint.concurrency) as pool:
            for numbers in range(alone), range(alone, len(job.requests)):
                for number, result in filter(None, pool.imap_unordered(attempt, numbers)):
                    self._answered.add(job.operation)
                    yield [number], [result]
                if failures:  # after the answers to requests under way, which are paid for
                    raise failures[0]

    # -- the operations; a call holds a job's settings and one request -----------------------------

    def _generate(self, client: Any, call: dict[str, Any]) -> Generation:
        [choice, *_], refused = self._reply(client, call | {"temperature": 0.0})
        return choice.generation(call, refused, greedy=True)

    def _sample(self, client: Any, call: dict[str, Any]) -> list[Generation]:
        prompt, n, t = call["prompt"], call["n"], call["temperature"]
        samples: list[Generation] = []
        while len(samples) < n:
            # vLLM refuses several greedy answers, which would be the same one.
            several = n - len(samples) if t > 0 and "n" not in self._refused else 1
            digest = hashlib.sha256(sample_key(call["seed"], prompt, t, len(samples))).digest()
            seed = int.from_bytes(digest[:4], "big") >> 1  # every server takes 31 bits
            asked = call | {"n": several, "seed": seed, "alternatives": 0}
            choices, refused = self._reply(client, asked)
            if len(choices) < several:
                self._refused.add("n")
            made = [c.generation(call, refused, greedy=False) for c in choices]
            samples += made if t > 0 else made[:1] * n
        return samples[:n]

    def _score(self, client: Any, call: dict[str, Any]) -> np.ndarray:
        prompt, answer = call["prompt"], call["answer"]
        # One new token: some servers refuse to make none.
        settings = {"max_new_tokens": 1, "temperature": 0.0, "echo": True, "alternatives": 1}
        [choice, *_], _ = self._reply(client, {"prompt": prompt + answer, **settings})
        # Servers that do not know `echo` may ignore it and answer with the new token alone.
        if prompt + answer not in choice.text or len(choice.tokens) < 2:
            self.lacks = {**self.lacks, "score": NO_SCORE}
            self.require("score")
        return choice.scores(prompt, answer)

    # -- one request, and what comes of it ---------------------------------------------------------

    def _connect(self) -> Any:
        import openai

        return openai.OpenAI(
            base_url=self.endpoint.url,
            # With none the client would send OPENAI_API_KEY to any server.
            api_key=self.endpoint.key() or "none",
            max_retries=self.endpoint.retries,
            timeout=openai.Timeout(self.endpoint.timeout, connect=10),
            http_client=openai.DefaultHttpxClient(event_hooks={"request": [self._count]}),
        )

    def _count(self, request: Any) -> None:
        """Count an attempt before it is sent; ModelError if the budget is used up."""
        with self._lock:
            if self.requests == self.endpoint.budget_requests:
                raise ModelError(
                    f"{self.name}: the budget of {self.requests} requests is used up; raise "
                    "budget_requests or run again, what is in the records is not asked again"
                )
            self.requests += 1

    def _reply(self, client: Any, call: dict[str, Any]) -> tuple[list["Choice"], list[str]]:
        """The answers to a call, asked again without what the server refuses; and what that was."""
        import httpx2
        import openai

        path = "/chat/completions" if self.endpoint.api == "chat" else "/completions"
        while True:
            body = self._body(call)
            try:
                reply = client.post(path, cast_to=httpx2.Response, body=body)
                choices = Reply.model_validate_json(reply.text).choices
                refused = ({*WIDE} | ({"seed"} & {*call})) - {*body}
                return sorted(choices, key=lambda choice: choice.index), sorted(refused)
            except ValidationError as error:
                error.add_note(reply.text)  # for `_explained`: the error itself may hold half a key
                raise
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if not self._leave_out(body, error.response.text):
                    raise

    def _body(self, call: dict[str, Any]) -> dict[str, Any]:
        """The request, without the options that this server has refused."""
        optional = WIDE | {key: call[key] for key in ("seed", "echo") if key in call}
        if call.get("n", 1) > 1:
            optional["n"] = call["n"]
        body = {key: value for key, value in optional.items() if key not in self._refused}
        body |= {key: call[key] for key in ("top_k", "top_p", "min_p") if call.get(key) is not None}
        body |= {"model": self.endpoint.model, "temperature": call["temperature"]}
        body["max_tokens"] = call["max_new_tokens"]
        if call.get("stop") and not call.get("skip_blank"):  # which no server knows
            body["stop"] = call["stop"][:STOPS]
        top = min(call.get("alternatives", TOP), self._alternatives)
        if self.endpoint.api == "completions":
            return body | {"prompt": call["prompt"]} | ({"logprobs": top} if top else {})
        message, _, prefix = call["prompt"].partition(TURN)
        if prefix:  # some servers would continue it, others not
            raise ModelError(
                f"{self.name}: no answer can be begun for a chat endpoint; ask in the format 'chat' "
                f"or 'instruction', or 'prefix' with api: completions (asked: ...{call['prompt'][-60:]!r})"
            )
        body["messages"] = [{"role": "user", "content": message}]
        return body | ({"logprobs": True, "top_logprobs": top} if top else {})

    def _leave_out(self, body: dict[str, Any], said: str) -> bool:
        """Note what in this request the server refuses; whether there is anything to leave out."""
        name = refused_option(said, body.get("prompt") or body["messages"][0]["content"])
        ours = name in body and name in ("seed", "echo", *WIDE)
        top = body.get("top_logprobs", body.get("logprobs"))
        if name and ours and body[name] == WIDE.get(name, body[name]):
            self._refused.add(name)
        elif top and name in TOPS:
            # Unless another request has found out meanwhile.
            self._alternatives = min(self._alternatives, FEWER if top > FEWER else 0)
        elif "n" in body:
            self._refused.add("n")
        else:
            return False
        return True

    def _explained(self, error: Exception, what: str) -> ModelError:
        """One sentence for what went wrong, raised where the error, which may hold the key, is no context."""
        said = f"{error} {error.__cause__ or ''}"
        if isinstance(error, ValidationError):
            [fault, *_] = error.errors(include_input=False, include_url=False)
            said = f"{'.'.join(map(str, fault['loc']))} {fault['msg']} in {error.__notes__[0]}"
        said = " ".join(self.endpoint.redacted(f"{type(error).__name__}: {said}").split())[:400]
        return ModelError(f"{self.name}: {said}; mend it, then run again (asked: {what})")


# -- replies: what one lacks is not made up --------------------------------------------------------


class Token(BaseModel):
    """A token of a reply. The first one of a text has no log-probability."""

    token: str
    data: list[int] | None = Field(None, alias="bytes")
    # Rounding may lift that of a certain token above 0.
    logprob: Annotated[float, Field(le=1e-3)] | None
    top_logprobs: list["Token"] | None = None

    @property
    def text(self) -> bytes:
        return self.token.encode() if self.data is None else bytes(self.data)

    @property
    def best(self) -> list[tuple[str, float]]:
        """The alternatives, best first."""
        pairs = [(t.token, t.logprob) for t in self.top_logprobs or () if t.logprob is not None]
        return sorted(pairs, key=lambda pair: -pair[1])[:TOP]


def _tokens(logprobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tokens of either of the two shapes that servers send, in the second one.

    Completions of OpenAI and vLLM have parallel lists: {"tokens": [" Nai", "robi"], "token_logprobs":
    [-0.1, -0.2], "top_logprobs": [{" Nai": -0.1, ...}, ...]}. Chats and llama.cpp have a list of tokens
    as "content", each as `Token`.
    """
    if (content := logprobs.get("content")) is not None:
        return content
    texts, values = logprobs.get("tokens") or [], logprobs.get("token_logprobs") or []
    found = logprobs.get("top_logprobs") or [None] * len(texts)
    tops = [[{"token": x, "logprob": p} for x, p in (top or {}).items()] for top in found]
    names = ("token", "logprob", "top_logprobs")
    rows = zip(texts, values, tops, strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


class Choice(BaseModel):
    """One answer of a reply. Without log-probabilities it has no tokens."""

    index: int = 0
    text: str
    tokens: list[Token]

    @model_validator(mode="before")
    @classmethod
    def _of_any_server(cls, choice: dict[str, Any]) -> dict[str, Any]:
        message, logprobs = choice.get("message") or {}, choice.get("logprobs") or {}
        text = message.get("content", choice.get("text"))
        text = message.get("refusal") if text is None else text
        if not text and (message.get("reasoning_content") or message.get("reasoning")):
            raise ValueError("it ends in the model's reasoning; switch that off at the server")
        return {"index": choice.get("index") or 0, "text": text, "tokens": _tokens(logprobs)}

    def generation(
        self, call: Mapping[str, Any], refused: Sequence[str] = (), *, greedy: bool
    ) -> Generation:
        """The answer before the first stop string, with the log-probabilities of its tokens; not of
        samples: some servers send those before the temperature, others those after it."""
        prompt = call["prompt"]
        short = cut(self.text, call["stop"], call.get("skip_blank", False))
        text = self.text if short is None else short
        tokens = self.tokens[: covering(self.tokens, text)] if greedy else []
        logprobs = [token.logprob for token in tokens if token.logprob is not None]
        if len(logprobs) < len(tokens):
            raise ModelError(f"a token of the answer to {prompt[-60:]!r} lacks its log-probability")
        tops = [token.best for token in tokens]
        tops = tops if all(tops) else []
        return Generation(prompt, text, [], logprobs, tops, refused=[*refused])

    def scores(self, prompt: str, answer: str) -> np.ndarray:
        """log P of the answer's tokens, float32 [token], from a reply that repeats prompt and
        answer. The tokens are as in `Model.score`; one new token may follow them. Raises ModelError
        if they do not add up to the answer."""
        both, tokens = (prompt + answer).encode(), self.tokens
        ends_there = not self.text.partition(prompt + answer)[2]
        if not (ends_there and tokens and tokens[-1].text and both.endswith(tokens[-1].text)):
            tokens = tokens[:-1]
        values: list[float] = []
        text = b""
        for token in reversed(tokens):
            text = token.text + text
            if token.logprob is None or not both.endswith(text):
                break
            values.append(token.logprob)
            if len(text) >= len(answer.encode()):
                return np.array(values[::-1], dtype=np.float32)
        raise ModelError(f"the answer {answer!r} is repeated in tokens that do not add up to it")


def covering(tokens: Sequence[Token], text: str) -> int:
    """How many of the tokens cover `text`, the answer or its beginning. All of them if their texts
    do not add up to it, as where half a letter is a replacement character."""
    goal, whole = text.encode(), b"".join(token.text for token in tokens)
    start = whole.find(goal)
    if not goal:
        return 0
    if start < 0 or whole[:start].strip():
        return len(tokens)
    ends = np.cumsum([len(token.text) for token in tokens])
    return int(np.searchsorted(ends, start + len(goal))) + 1


def refused_option(said: str, prompt: str) -> str | None:
    """The parameter of which a server's error says that it is not taken, if there is one: that nearest
    to words of refusal in a sentence. Others may stand in a list of what is supported or in the prompt."""
    for form in (prompt, json.dumps(prompt)[1:-1], json.dumps(prompt, ensure_ascii=False)[1:-1]):
        if NAMES.search(form):
            said = said.replace(form, " ")
    found = [
        (max(word.start() - name.end(), name.start() - word.end()), name[0])
        for sentence in re.split(r"[.;!?]\s|\n|\\n", said)
        for word in REFUSES.finditer(sentence)
        for name in NAMES.finditer(sentence)
    ]
    gap, name = min(found, default=(NEAR, None))
    return name if gap < NEAR else None


class Reply(BaseModel):
    choices: Annotated[list[Choice], Field(min_length=1)]
