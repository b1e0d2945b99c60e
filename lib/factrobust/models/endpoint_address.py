"""An OpenAI-compatible endpoint in one line: where it is, which model, how it is asked.

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

OpenAI, vLLM, SGLang, TGI and llama.cpp's server are such endpoints, and there are more. What they
offer differs: `factrobust.models.endpoint` finds out.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, get_type_hints
from urllib.parse import urlsplit

from factrobust.models.base import ModelError
from factrobust.models.prompts import FORMATS

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
        (`endpoint.open_endpoint`), but many tell nothing. Where a name can come to mean something
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


def is_address(name: str) -> bool:
    """Whether a model's name is meant as an endpoint."""
    return "://" in name


def parse_address(name: str) -> Address:
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
