"""What a language model is to this project: four operations, and the records of their results.

A model answers a `Job` batch by batch, so that the record store can commit each batch as it
arrives. The public methods check the input, run the job and put the results in the order of the
prompts."""

import copy
import json
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Self

import numpy as np
from filelock import FileLock

from factrobust.models import memory
from factrobust.models.records import (
    Batches,
    Call,
    Records,
    ask,
    collected,
    progress_file,
    tell,
)
from factrobust.paths import BUILD

Answer = str | Sequence[int]  # a text, or token ids
Answers = Sequence[Answer]
HALVES = re.compile("[\ud800-\udfff]")  # of signs in JSON
FILTERED = "content_filter"  # in `Generation.refused`, as OpenAI calls it


class ModelError(ValueError):
    """A model that cannot be loaded, or that cannot do what it was asked for."""


class LacksError(ModelError):
    """This kind of model has no such operation (`Model.lacks`); others may work."""


@dataclass(frozen=True)
class Generation:
    """One generated answer.

    `text` ends before the stop string and the space in front of it, or before the end token.
    `token_ids` are the fewest tokens that cover it. Log-probabilities and entropies are in nats.

    Greedy answers have `top_logprobs`: at each position the ten likeliest (token, log-probability)
    pairs, best first. With temperatures they also have the `curve`, log P_t of the whole answer at
    each temperature t, and the `entropies` of the whole distribution at each position. Samples have
    `tempered_logprobs`, under the distribution that they were drawn from. `refused` are options
    that an endpoint's server does not take (see `endpoint.SERVERS`), and FILTERED where its filter
    let no answer through."""

    prompt: str
    text: str
    token_ids: list[int]
    logprobs: list[float]
    top_logprobs: Sequence[list[tuple[str, float]]] = field(default_factory=list)
    tempered_logprobs: list[float] = field(default_factory=list)
    curve: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def filtered(self) -> bool:
        return FILTERED in self.refused


@dataclass(frozen=True)
class Job:
    """One operation on many prompts. Each has a request; all share the settings."""

    operation: str
    requests: list[dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)

    def subset(self, indices: Sequence[int]) -> "Job":
        return Job(self.operation, [self.requests[i] for i in indices], self.settings)


@dataclass(kw_only=True, eq=False, repr=False)
class Model(ABC):
    """A language model. Subclasses answer jobs; the four operations are the same for all."""

    name: str  # it was loaded by
    fingerprint: str  # what its numbers depend on: hash of the weights or hub revision, and dtype
    prompt_format: str = "prefix"  # its default, a key of `factrobust.models.prompts.FORMATS`
    # Text around the user's message in its chat template, if any.
    chat: tuple[str, str] | None = None
    listed_chat: bool = False  # `chat` is of data/models.csv, and not its tokenizer's template
    weight_bytes: float = 0.0  # in this process's memory: 0 of a model elsewhere, inf if not known
    stored_as: str = ""  # the form of the numbers in its file, if that is not the dtype
    # The operations that it does not have, or "token_ids", each with a sentence about it.
    lacks: Mapping[str, str] = field(default_factory=dict)

    @abstractmethod
    def answer(self, job: Job) -> Batches:
        """Yield the answers batch by batch: indices of requests, and their results."""

    def as_listed(self, listed: bool) -> Self:
        """This model with another `listed_chat`, which decides whether a tokenizer's own tokens
        stand before a chat: its answers are recorded apart."""
        if listed == self.listed_chat:
            return self
        other = copy.copy(self)
        other.listed_chat = listed
        other.fingerprint += " chat as listed" if listed else " chat as its tokenizer's"
        return other

    def require(self, *needs: str) -> None:
        """Raise LacksError if the model lacks one of these (keys of `lacks`). Asks it nothing."""
        for need in needs:
            if need in self.lacks:
                raise LacksError(f"{self.name}: {self.lacks[need]}")

    def generate(
        self,
        prompts: Sequence[str],
        *,
        max_new_tokens: int = 5,
        stop: Sequence[str] = (),
        skip_blank: bool = False,
        alternatives: int = 0,
        temperatures: Sequence[float] = (),
    ) -> list[Generation]:
        """Greedy answers, one `Generation` a prompt. Generation ends at any string of `stop`; with
        `skip_blank` only after something other than white space was said. With `temperatures` each
        answer has its `curve` (`temper`). The caller needs `alternatives` likeliest tokens at each
        position, at most ten: ModelError from a model that gives fewer."""
        settings = _decoding(max_new_tokens, stop, skip_blank)
        if temperatures:
            self.require("temper")
            settings["temperatures"] = _temperatures(temperatures, len(temperatures))
        requests = [{"prompt": prompt} for prompt in _texts(prompts)]
        return self._run(Job("generate", requests, settings), alternatives)

    def sample(
        self,
        prompts: Sequence[str],
        *,
        temperature: float | Sequence[float],
        n: int,
        max_new_tokens: int = 5,
        stop: Sequence[str] = (),
        skip_blank: bool = False,
        seed: int = 0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
    ) -> list[list[Generation]]:
        """`n` sampled answers a prompt, from softmax(logits / temperature) over the vocabulary.

        `temperature` is one number for all prompts, or one for each. Equal prompts share their
        computation, also at several temperatures. A sample depends on (seed, prompt, temperature,
        its index) alone: other batches or processors almost never change a draw (none of 10,600).
        Temperature 0 is greedy (equation 2 of paper 1 in the limit). `top_k`, `top_p` and `min_p`
        truncate (see `temper`)."""
        prompts = _texts(prompts)
        temperatures = _temperatures(temperature, len(prompts))
        _require(n >= 1, f"n must be at least 1 sample a prompt, not {n}")
        settings = _decoding(max_new_tokens, stop, skip_blank)
        # Plain numbers, not NumPy's: they are part of a record's key.
        settings["n"] = int(n)
        settings["seed"] = int(seed)
        # Keys of old records hold these two even where nothing is truncated.
        settings["top_k"] = None
        settings["top_p"] = None
        settings |= _cuts(top_k, top_p, min_p)
        requests = []
        for prompt, t in zip(prompts, temperatures, strict=True):
            requests.append({"prompt": prompt, "temperature": t})
        return self._run(Job("sample", requests, settings))

    def score(self, prompts: Sequence[str], answers: Answers) -> list[np.ndarray]:
        """log P of each token of an answer after its prompt: one float32 array an answer.

        An answer is a text or a list of token ids. Prompt and text are tokenised together (but by
        `Seq2SeqLM`). The answer's tokens are the smallest suffix that covers its characters (paper
        2, appendix D), so a token across the boundary counts. Token ids are put behind the
        prompt's."""
        return self._run(Job("score", _pairs(prompts, answers)))

    def temper(
        self,
        prompts: Sequence[str],
        answers: Answers,
        temperatures: Sequence[float],
        *,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
    ) -> np.ndarray:
        """log P_t(answer | prompt) at every temperature, array [prompt, temperature].

        Answers are as in `score`. Temperatures under 1e-4 count as 1e-4 (equation 2, paper 1).

        Example: a model continues with " Nairobi" in 80% and " Mombasa" in 20% of cases. Then

            temper(["The capital of Kenya"], [" Nairobi"], [1, 2])    # [[log 0.8, log 2/3]]

        since at t = 2 the odds of 4 to 1 become their square root, 2 to 1.

        Three options truncate the tempered distribution in the order of transformers' `generate`:
        `top_k` keeps so many likeliest tokens, of these `top_p` the fewest whose probabilities sum
        to it, and of these `min_p` those with at least that share of the largest probability. The
        rest is renormalised. An answer that needs a dropped token has log P = -inf."""
        grid = _temperatures(temperatures, len(temperatures))
        _require(bool(grid), "temperatures is empty; give at least one, such as 1.0")
        settings: dict[str, Any] = {"temperatures": grid}
        settings |= _cuts(top_k, top_p, min_p)
        rows = self._run(Job("temper", _pairs(prompts, answers), settings))
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(grid))

    def _run(self, job: Job, alternatives: int = 0) -> list[Any]:
        self.require(job.operation)
        if any(isinstance(request.get("answer"), list) for request in job.requests):
            self.require("token_ids")
        batches = self._checked(self.answer(job), alternatives)
        return collected(batches, len(job.requests), f"{self.name} {job.operation}")

    def _checked(self, batches: Batches, needed: int) -> Batches:
        """The same batches; ModelError if the first answer has nowhere as many alternatives as
        `needed` (a server merges tokens whose texts are equal)."""
        with closing(batches):  # type: ignore[type-var]
            for indices, answers in batches:
                counts: list[int] = []  # at each position of answers that have a text
                for answer in answers if needed else ():
                    if answer.text:
                        counts += map(len, answer.top_logprobs or [[]])
                if counts:
                    if max(counts) < needed:
                        raise ModelError(
                            f"{self.name} tells the log-probabilities of {max(counts)} likeliest "
                            f"tokens a position where {needed} are needed; take a model or server "
                            "that tells them (top_logprobs)"
                        )
                    needed = 0
                yield indices, answers


class RecordedModel(Model):
    """Answers from the store. For the first that is missing the model behind it is loaded: a run
    that finds everything in the records needs no weights, no torch, no server and no key."""

    def __init__(self, records: Records, load: Callable[..., Model], **description: Any) -> None:
        super().__init__(**description)
        self._records = records
        self.load = load

    def as_listed(self, listed: bool) -> Self:
        other = super().as_listed(listed)
        if other is not self:
            other.load = partial(self.load, listed_chat=listed, fingerprint=other.fingerprint)
        return other

    def answer(self, job: Job) -> Batches:
        # A record's key is what determines the answer.
        of_settings = json.dumps(job.settings, sort_keys=True)
        calls = []
        for request in job.requests:
            parameters = of_settings
            if len(request) > 1:  # more than its prompt
                further = {name: value for name, value in request.items() if name != "prompt"}
                parameters = json.dumps(further | job.settings, sort_keys=True)
            calls.append(Call(self.fingerprint, job.operation, request["prompt"], parameters))

        for positions, values in ask(self._records, calls, partial(self._compute, job)):
            answers = []
            for position, value in zip(positions, values, strict=True):
                answers.append(_from_record(calls[position].prompt, value))
            yield positions, answers

    def _compute(self, job: Job, missing: list[int]) -> Batches:
        """Ask the model the requests at these positions."""
        model = self.loaded()
        tell(f"{self.name} {job.operation}: {len(missing):,} to ask")
        for indices, values in model.answer(job.subset(missing)):
            yield [missing[i] for i in indices], [to_record(value) for value in values]

    def loaded(self) -> Model:
        """The model behind it, for which others may have to leave the memory."""
        if (model := memory.model_of(self)) is None:
            wait_for_turn()
            memory.make_room(self.weight_bytes)
            tell(f"{self.name}: loading")
            model = self.load()
            memory.holding[self] = model
        return model


@cache
def wait_for_turn() -> FileLock | None:
    """Of the notebooks that the runner runs side by side, one at a time loads models: they take all
    of a machine. The lock is held until the notebook's process ends."""
    if not progress_file().parent.is_dir():
        return None
    BUILD.mkdir(exist_ok=True)
    lock = FileLock(BUILD / "models.lock")
    tell("waits until another notebook needs no model any more")
    lock.acquire()
    return lock


def need(found: object, models: Sequence[Model], why: str) -> None:
    """Raise LacksError if nothing is found of these models, and say why."""
    if models and not found:
        raise LacksError(f"{', '.join(model.name for model in models)}: {why}")


def to_record(value: Any) -> Any:
    """A result as JSON can hold it, without the prompt, which is part of the record's key."""
    if isinstance(value, list):
        return [to_record(one) for one in value]
    if not isinstance(value, Generation):
        return value
    record = {}
    for name, held in vars(value).items():
        always = name in ("text", "token_ids", "logprobs")
        if always or (held and name != "prompt"):
            record[name] = held
    return record


def _from_record(prompt: str, record: Any) -> Any:
    if isinstance(record, dict):
        return Generation(prompt, **record)
    if isinstance(record[0], dict):
        return [_from_record(prompt, sample) for sample in record]
    return np.array(record, dtype=np.float32)


def _require(true: bool, otherwise: str) -> None:
    if not true:
        raise ModelError(otherwise)


def _texts(prompts: Sequence[str]) -> list[str]:
    _require(not isinstance(prompts, str), "prompts must be a list; put the one prompt into a list")
    for i, prompt in enumerate(prompts):
        _require(isinstance(prompt, str) and prompt != "", f"prompt {i} is {prompt!r}, not a text")
        _require(
            prompt.isascii() or not HALVES.search(prompt),
            f"prompt {i} holds half a sign (a lone surrogate, such as \\ud83d), which no text file "
            "has; write the sign out",
        )
    return list(prompts)


def _pairs(prompts: Sequence[str], answers: Answers) -> list[dict[str, Any]]:
    prompts = _texts(prompts)
    _require(
        not isinstance(answers, str) and len(answers) == len(prompts),
        f"answers must be a list with one answer for each of {len(prompts)} prompts",
    )
    requests: list[dict[str, Any]] = []
    for i, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        if isinstance(answer, str):
            filled = answer.strip() != ""
        else:
            # Plain numbers, not NumPy's: they are part of a record's key.
            answer = [operator.index(token) for token in answer]
            filled = bool(answer)
        where = f"answer {i} (prompt {prompt[-60:]!r})"
        _require(filled, f"{where} is empty; leave such questions out before scoring")
        requests.append({"prompt": prompt, "answer": answer})
    return requests


def _temperatures(temperature: float | Sequence[float], n: int) -> list[float]:
    values = np.asarray(temperature, dtype=float)
    _require(
        values.ndim == 0 or len(values) == n,
        f"{values.size} temperatures for {n} prompts; give one number, or one each",
    )
    for t in values.flat:
        _require(0 <= t < np.inf, f"temperature {t} is out of range; it must be 0 or more")
    return np.broadcast_to(values, n).tolist()


def _cuts(top_k: int | None, top_p: float | None, min_p: float | None) -> dict[str, Any]:
    """The truncations that are given, as plain numbers."""
    cuts: dict[str, Any] = {}
    if top_k is not None:
        _require(top_k >= 1, f"top_k must be at least 1 token, not {top_k}")
        cuts["top_k"] = int(top_k)
    for name, share in (("top_p", top_p), ("min_p", min_p)):
        if share is not None:
            _require(0 < share <= 1, f"{name} must lie in (0, 1], not {share}")
            cuts[name] = float(share)
    return cuts


def _decoding(max_new_tokens: int, stop: Sequence[str], skip_blank: bool) -> dict[str, Any]:
    _require(max_new_tokens >= 1, f"max_new_tokens must be at least 1, not {max_new_tokens}")
    stops = [stop] if isinstance(stop, str) else list(stop)
    _require("" not in stops, "a stop string is empty and would end every answer at once")
    settings: dict[str, Any] = {"max_new_tokens": int(max_new_tokens), "stop": stops}
    if skip_blank:  # keys of old records lack it
        settings["skip_blank"] = True
    return settings
