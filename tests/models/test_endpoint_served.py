"""What a server says of its model: whether it has it, and whether it is the one of the records."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from factrobust import load_model
from factrobust.models.endpoint import open_endpoint, read_endpoint, told
from factrobust.models.interface import ModelError
from factrobust.records import Records

spec = importlib.util.spec_from_file_location(
    "faulty", Path(__file__).with_name("faulty_server.py")
)
assert spec is not None
assert spec.loader is not None
faulty = importlib.util.module_from_spec(spec)
sys.modules["faulty"] = faulty
spec.loader.exec_module(faulty)
error, Reply = faulty.error, faulty.Reply


@pytest.fixture
def server() -> Iterator[Any]:
    with faulty.faulty_server() as running:
        yield running


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "records.sqlite")


def llama_cpp(name: str = "llama", **meta: Any) -> Any:
    """As llama.cpp lists its model; `created` is the time of asking, n_ctx a setting."""
    facts = {"n_vocab": 9, "n_ctx": 1024, "n_embd": 4, "n_params": 100, "size": 50, "ftype": "Q4_1"}
    about = {"id": name, "aliases": ["other-name"], "created": 1795253510, "meta": facts | meta}
    return Reply({"object": "list", "data": [about]})


def line(server: Any, name: str = "llama", more: str = "retries=0") -> str:
    return f"{server.url} {name} {more}"


def ask(server: Any, name: str = "llama") -> dict[str, Any]:
    return told(open_endpoint(read_endpoint(line(server, name))))


def test_what_goes_with_the_weights(server: Any) -> None:
    server.models = llama_cpp()
    expected = {"n_params": 100, "size": 50, "n_vocab": 9, "n_embd": 4}
    assert ask(server) == ask(server, "other-name") == expected
    vllm = {"id": "llama", "created": 1, "root": "org/Llama", "max_model_len": 4096, "parent": None}
    server.models = Reply({"data": [{"id": "x"}, vllm]})
    assert ask(server) == {"root": "org/Llama"}


@pytest.mark.parametrize(
    "models",
    [
        error(404, "no such page"),
        Reply({"data": []}),
        Reply({"data": None}),
        Reply({"object": "list"}),
        Reply({"data": [{"id": "llama", "created": 1, "owned_by": "openai"}]}),
    ],
)
def test_servers_that_tell_nothing(server: Any, models: Any) -> None:
    server.models = models
    assert ask(server) == {}


def test_a_model_that_the_server_has_not(server: Any) -> None:
    """llama.cpp's server would answer under this name, too."""
    server.models = Reply({"data": [{"id": f"model-{i}"} for i in range(7)]})
    sentence = "the server has no model 'llama'; write the name of one .* model-0, .*, model-4 ...$"
    with pytest.raises(ModelError, match=sentence):
        ask(server)
    assert server.asked == []


@pytest.mark.parametrize(
    ("models", "sentence"),
    [
        (error(401, "who are you"), r"asks for a key \(401\)"),
        (error(500, "oops"), r"answered 500 at once \(oops\)"),
        (Reply(b"<html>"), r"/models is no JSON .*; check the URL, which usually ends in /v1"),
    ],
)
def test_one_sentence(server: Any, models: Any, sentence: str) -> None:
    server.models = models
    with pytest.raises(ModelError, match=sentence):
        ask(server)


def test_other_weights_under_the_same_name_do_not_mix(server: Any, records: Records) -> None:
    server.models = llama_cpp()
    asking = line(server)
    [made] = load_model(asking, records=records).generate(["a"])
    server.models = llama_cpp(n_ctx=2048, created=2)  # started anew with another setting
    load_model(asking, records=records).generate(["b"])
    server.models = llama_cpp(size=90, n_params=100)
    server.asked.clear()
    changed = load_model(asking, records=records)
    sentence = (
        r"another model than .* \({'size': 50} then, {'size': 90} now\); write another revision="
    )
    with pytest.raises(ModelError, match=sentence):
        changed.generate(["c"])
    assert server.asked == []
    assert changed.generate(["a"]) == [made]  # what is recorded is still that of the first one
    again = load_model(line(server, more="retries=0 revision=second"), records=records)
    assert again.generate(["c"])[0].text == " yes"


def test_a_server_that_stops_telling(server: Any, records: Records) -> None:
    server.models = llama_cpp()
    load_model(line(server), records=records).generate(["a"])
    server.models = error(404, "gone")
    assert load_model(line(server), records=records).generate(["b"])[0].text == " yes"
