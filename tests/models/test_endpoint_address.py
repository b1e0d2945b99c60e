"""One line names an endpoint; a wrong one is told in a sentence that repeats no secret."""

from __future__ import annotations

import pytest
import yaml

from factrobust.models.endpoint import (
    TURN,
    check_format,
    is_endpoint,
    read_endpoint,
)
from factrobust.models.interface import ModelError
from factrobust.models.prompts import render

URL = "http://localhost:8000/v1"


def test_the_whole_line() -> None:
    line = (
        f"{URL}/ org/Llama-3.1:8b api=completions key=MY_KEY concurrency=32 timeout=5 retries=0 "
        "budget_requests=1_000 budget_tokens=20000 revision=may"
    )
    address = read_endpoint(line)
    assert (address.name, address.url, address.model) == (line, URL, "org/Llama-3.1:8b")
    assert (address.api, address.key, address.revision) == ("completions", "MY_KEY", "may")
    assert (address.concurrency, address.timeout, address.retries) == (32, 5, 0)
    assert (address.budget_requests, address.budget_tokens) == (1000, 20000)


def test_defaults() -> None:
    address = read_endpoint(f"{URL} llama")
    assert (address.api, address.key, address.revision) == ("chat", None, "")
    assert (address.concurrency, address.timeout, address.retries) == (8, 120, 8)
    assert (address.budget_requests, address.budget_tokens) == (None, None)
    assert address.secret() is None


def test_what_answers_depend_on_is_the_fingerprint() -> None:
    line = f"{URL} llama key=K concurrency=2 timeout=9 retries=1 budget_requests=4"
    assert read_endpoint(line).fingerprint == f"endpoint:{URL} llama chat"
    made = {
        read_endpoint(f"{URL}{more}").fingerprint
        for more in (" llama", " lama", "/x llama", " llama api=completions", " llama revision=2")
    }
    assert len(made) == 5


def test_names_of_other_models_are_no_addresses() -> None:
    assert is_endpoint("https://api.openai.com/v1 gpt-4o-mini")
    for name in ("gemma-3-270m", "org/model@0123abc", "path/to/folder", "C:\\models\\x.gguf"):
        assert not is_endpoint(name)


SECRET = "sk-Proj-s3cret"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("ftp://host/v1 llama", "an endpoint begins with its URL, http:// or https://"),
        ("http:///v1 llama", "an endpoint begins with its URL"),
        (f"https://me:{SECRET}@host/v1 llama", "endpoint at host holds more than host and path"),
        (f"https://host/v1?key={SECRET} llama", "the key as the name of an environment variable"),
        (f"https://host/v1#{SECRET} llama", "holds more than host and path"),
        ("https://host/v1", "no model is named after the URL https://host/v1; write its name"),
        ("https://host/v1 key=K", "no model is named"),
        (
            "https://host/v1 llama conurrency=3",
            r"setting 'conurrency'; did you mean 'concurrency'\?",
        ),
        ("https://host/v1 llama zzz", "no setting 'zzz'; settings are key, api, format"),
        ("https://host/v1 llama name=x", "no setting 'name'"),
        (f"https://host/v1 llama {SECRET}", "no setting like one of the words; settings are key"),
        ("https://host/v1 llama api=tcp", "api= of the endpoint https://host/v1 must be chat or"),
        ("https://host/v1 llama concurrency=0", "concurrency= .* must be a number from 1 up"),
        ("https://host/v1 llama retries=-1", "retries= .* must be a number from 0 up"),
        ("https://host/v1 llama budget_tokens=1e6", "budget_tokens= .* must be a number from 1"),
        (
            "https://host/v1 llama format=3-shot",
            "the format '3-shot' is unknown; choose one of two-",
        ),
        ("https://host/v1 llama format=chat-prefix", "no answer can be begun for a chat endpoint"),
        ("https://host/v1 llama api=completions format=chat", "so it cannot be asked as 'chat'"),
        (f"https://host/v1 llama key={SECRET}", "is the name of an environment variable, in cap"),
        ("https://host/v1 llama key=gsk_abc", "never write a key itself here, change one that"),
    ],
)
def test_wrong_lines(line: str, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence) as caught:
        read_endpoint(line)
    assert SECRET not in str(caught.value)
    assert "gsk_abc" not in str(caught.value)


def test_the_key_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    address = read_endpoint(f"{URL} llama key=SOME_KEY")
    with pytest.raises(
        ModelError, match="key=SOME_KEY names, but this environment variable is not"
    ):
        address.secret()
    monkeypatch.setenv("SOME_KEY", f" {SECRET}\n")
    assert address.secret() == SECRET
    assert SECRET not in f"{address!r} {vars(address)} {address.fingerprint}"


def test_how_endpoints_are_asked() -> None:
    chat, text = (read_endpoint(f"{URL} llama api={api}") for api in ("chat", "completions"))
    assert chat.format == text.format == "two-shot"
    assert read_endpoint(f"{URL} llama format=instruction").format == "instruction"
    assert (chat.chat, text.chat) == (("", TURN), None)
    [prompt] = render("chat", ["Who?"], ["It is"], chat.chat)
    assert prompt == f"Who?{TURN}"
    for form in ("two-shot", "chat", "instruction"):
        check_format(chat, form)
    with pytest.raises(ModelError, match="no answer can be begun for a chat endpoint"):
        check_format(chat, "chat-prefix")
    with pytest.raises(
        ModelError, match=r"continues texts and has no chat template.*'instruction'"
    ):
        check_format(text, "instruction")


def test_it_is_one_item_of_a_profiles_list() -> None:
    line = f"{URL} org/llama:8b key=MY_KEY api=completions budget_tokens=2_000_000"
    assert yaml.safe_load(f"models: [gemma-3-270m, {line}]")["models"] == ["gemma-3-270m", line]


def test_what_no_server_can_do() -> None:
    chat, text = (read_endpoint(f"{URL} llama api={api}") for api in ("chat", "completions"))
    assert set(chat.lacks) == {"temper", "token_ids", "score"}
    assert set(text.lacks) == {"temper", "token_ids"}
