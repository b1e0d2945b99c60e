"""What an OpenAI-compatible server replied, as generations and log-probabilities.

Log-probabilities come in two shapes. Completions of OpenAI and vLLM hold parallel lists,

    {"tokens": [" Nai", "robi"], "token_logprobs": [-0.1, -0.2], "top_logprobs": [{" Nai": -0.1, ...}, ...]}

chats, and llama.cpp's completions too, hold a list of tokens:

    {"content": [{"token": " Nai", "bytes": [32, ...], "logprob": -0.1, "top_logprobs": [...]}, ...]}

Nothing is made up here: what a reply lacks raises ReplyError, or stays empty where it may be left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from factrobust.models.base import Generation
from factrobust.models.tokens import cut

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
        said = _said(reply.get("error"))
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
        if text is None and _said(message.get("refusal")):
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


def _said(error: Any) -> str:
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""
