"""An OpenAI-compatible endpoint as a model: `endpoint_address` says how to name one.

What servers can do differs, and few say so. A request asks for everything that is wanted, and what
the server refuses by name is left out from then on: the first request of a kind goes alone to find
out. What every server of this kind lacks is in `Address.lacks`.

An endpoint's randomness is its own. A seed derived from (seed, prompt, temperature, index) goes with
each request, but servers treat it as they like, one request may bring many samples, and even greedy
answers may change with what else a server computes at the time. Kept answers do not change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import openai

from factrobust.models import endpoint_replies as replies
from factrobust.models.base import Generation, Job, Model, ModelError
from factrobust.models.endpoint_address import NO_ECHO, NO_PREFIX, TURN, Address
from factrobust.models.endpoint_calls import (
    Budget,
    announce,
    clean,
    explained,
    forecast,
    in_parallel,
    tokens_asked,
)

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
    samples have no log-probabilities (see `endpoint_replies.generation`). Temperature 0 is asked
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
        self._alternatives: int | None = replies.TOP
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
        got: list[replies.Choice] = []
        while len(got) < n:
            # vLLM refuses several greedy answers, which would be the same one.
            several = t > 0 and "n" not in self._refused
            seed = _seed(settings["seed"], prompt, t, len(got))
            asked = {"temperature": t, "seed": seed, "n": n - len(got) if several else 1}
            asked["alternatives"] = 0  # see `endpoint_replies.generation`
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
        if not replies.echoes(choice, prompt, answer):
            self.lacks = {**self.lacks, "score": NO_ECHO}
            self.require("score")
        try:
            return replies.scores(choice, prompt, answer)
        except replies.ReplyError as error:
            failure = str(error)
        raise self._unusable(failure, prompt)

    def _made(
        self, prompt: str, choice: replies.Choice, settings: dict[str, Any], *, greedy: bool
    ) -> Generation:
        try:
            return replies.generation(prompt, choice, settings["stop"], greedy=greedy)
        except replies.ReplyError as error:
            failure = str(error)
        raise self._unusable(failure, prompt)

    # -- one request, and what came of it ----------------------------------------------------------

    def client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            base_url=self.address.url,
            api_key=self.key or "none",  # else the client sends OPENAI_API_KEY to anybody
            max_retries=self.address.retries,
            timeout=openai.Timeout(self.address.timeout, connect=10),
        )

    async def _reply(
        self, client: openai.AsyncOpenAI, prompt: str, asked: dict[str, Any]
    ) -> list[replies.Choice]:
        """The answers to one prompt, asked again without what the server refuses to take."""
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
                made, used = replies.read_reply(raw.content)
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
            except replies.ReplyError as error:
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
