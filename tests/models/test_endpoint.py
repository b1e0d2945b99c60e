"""A model behind an endpoint: what it asks, what it makes of the replies, what it does with faults.

The server is the tests' own and can do whatever servers do; nothing may be lost or made up.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factrobust import load_model
from factrobust.models.endpoint import TURN, WIDE, EndpointModel, read_endpoint
from factrobust.models.interface import ModelError
from factrobust.models.load import RecordedModel
from factrobust.records import Records

spec = importlib.util.spec_from_file_location(
    "faulty", Path(__file__).with_name("faulty_server.py")
)
assert spec is not None
assert spec.loader is not None
faulty = importlib.util.module_from_spec(spec)
sys.modules["faulty"] = faulty
spec.loader.exec_module(faulty)
completion, error, in_turn, Reply = faulty.completion, faulty.error, faulty.in_turn, faulty.Reply

PROMPTS = [f"question {i}" for i in range(8)]


@pytest.fixture
def server() -> Iterator[Any]:
    with faulty.faulty_server() as running:
        yield running


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "records.sqlite")


def line(server: Any, more: str = "", api: str = "completions") -> str:
    return f"{server.url} llama api={api} {more}".strip()


def model(server: Any, more: str = "", api: str = "completions") -> EndpointModel:
    return EndpointModel(read_endpoint(line(server, more, api)))


def echo(body: dict[str, Any]) -> Any:
    """Every prompt has an answer of its own, so that a mix-up would show."""
    return completion(f" to {body['prompt']}")


def texts(made: list[Any]) -> list[str]:
    return [g.text for g in made]


def logprobs(*texts: str, k: int = 10) -> dict[str, Any]:
    """Parallel lists, k alternatives each, the first of them chosen."""
    tops = [{t: -0.5} | {f"other{i}": -1.0 - i for i in range(k - 1)} for t in texts]
    return {"tokens": list(texts), "token_logprobs": [-0.5] * len(texts), "top_logprobs": tops}


def with_logprobs(k: int = 10) -> Any:
    choice = {"index": 0, "text": " Nai robi", "logprobs": logprobs(" Nai", " robi", k=k)}
    return Reply({"choices": [choice]})


# -- what is asked -----------------------------------------------------------------------------------


def test_greedy_through_completions(server: Any) -> None:
    server.answer = lambda body: with_logprobs()
    [made] = model(server).generate(["Kenya:"], max_new_tokens=7, stop=["\n"], alternatives=10)
    assert (made.prompt, made.text, made.token_ids) == ("Kenya:", " Nai robi", [])
    assert made.logprobs == [-0.5, -0.5]
    assert [top[0] for top in made.top_logprobs] == [(" Nai", -0.5), (" robi", -0.5)]
    assert [len(top) for top in made.top_logprobs] == [10, 10]
    [body] = server.asked
    assert body == WIDE | {
        "model": "llama", "prompt": "Kenya:", "max_tokens": 7, "temperature": 0.0,
        "stop": ["\n"], "logprobs": 10,
    }  # fmt: skip
    assert server.paths == ["/v1/completions"]


def test_greedy_through_chat(server: Any) -> None:
    top = [{"token": "Nai", "logprob": -0.5}] + [{"token": str(i), "logprob": -9} for i in range(9)]
    content = [{"token": "Nai", "logprob": -0.5, "top_logprobs": top}]
    choice = {"message": {"content": "Nai"}, "logprobs": {"content": content}}
    server.answer = lambda body: Reply({"choices": [choice]})
    made = model(server, api="chat").generate([f"Who?{TURN}", "two-shot: A:"], alternatives=10)
    assert [(g.prompt, g.text, g.logprobs) for g in made] == [
        (f"Who?{TURN}", "Nai", [-0.5]), ("two-shot: A:", "Nai", [-0.5]),
    ]  # fmt: skip
    assert server.prompts == ["Who?", "two-shot: A:"]
    assert set(server.paths) == {"/v1/chat/completions"}
    body = server.asked[0]
    assert body["messages"] == [{"role": "user", "content": "Who?"}]
    assert (body["logprobs"], body["top_logprobs"]) == (True, 10)


def test_a_begun_answer_is_refused_before_anything_is_asked(server: Any) -> None:
    with pytest.raises(ModelError, match=r"no answer can be begun .*asked: \.\.\.'Who\?.*It is'"):
        model(server, api="chat").generate(["Who?", f"Who?{TURN}It is"])
    assert server.asked == []
    # A text to be continued may hold whatever marks its model knows.
    made = model(server).generate([f"Who?{TURN}It is"])
    assert texts(made) == [" yes"]


def test_servers_take_four_stop_strings_and_we_cut_at_all(server: Any) -> None:
    server.answer = lambda body: completion(" Nairobi (Kenya)")
    stop = [".", ",", "\n", ";", "("]
    assert texts(model(server).generate(["a"], stop=stop)) == [" Nairobi "]
    assert server.asked[0]["stop"] == stop[:4]


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_samples(server: Any, api: str) -> None:
    def answer(body: dict[str, Any]) -> Any:
        made = [f" {body['temperature']} {i}\n" for i in range(body.get("n", 1))]
        if api == "completions":
            return completion(*made)
        return Reply(
            {"choices": [{"index": i, "message": {"content": t}} for i, t in enumerate(made)]}
        )

    server.answer = answer
    made = model(server, api=api).sample(
        ["a", "b"], temperature=[0.5, 2.0], n=3, stop=["\n"], seed=1, top_k=7, top_p=0.9
    )
    assert [texts(g) for g in made] == [[f" {t} {i}" for i in range(3)] for t in (0.5, 2.0)]
    assert all(g.logprobs == g.tempered_logprobs == [] for group in made for g in group)
    for body, t in zip(server.asked, (0.5, 2.0), strict=True):
        assert (body["n"], body["temperature"], body["top_k"], body["top_p"]) == (3, t, 7, 0.9)
        assert "logprobs" not in body


def test_seeds_depend_on_what_determines_a_sample(server: Any) -> None:
    def seeds(**changes: Any) -> list[int]:
        server.asked.clear()
        asked = {"prompts": ["a"], "temperature": 1.0, "n": 2, "seed": 1} | changes
        model(server).sample(asked.pop("prompts"), **asked)  # one sample a request
        return [body["seed"] for body in server.asked[1:]]  # the first asked for both

    usual = seeds()
    assert usual == seeds()
    assert all(0 <= seed < 2**31 for seed in usual)
    others = [seeds(prompts=["b"]), seeds(temperature=1.1), seeds(seed=2), seeds(n=3)[1:]]
    assert len({*usual, *(seed for made in others for seed in made)}) == len(usual) + 4


@pytest.mark.parametrize(
    ("most", "asked"),
    [(5, [5]), (1, [5, None, None, None, None]), (2, [5, None, None, None])],
)
def test_n_samples_from_servers_that_give_fewer(server: Any, most: int, asked: list[Any]) -> None:
    count = iter(range(100))
    server.answer = lambda body: completion(
        *(f" {next(count)}" for _ in range(min(most, body.get("n", 1))))
    )
    asking = model(server)
    [made] = asking.sample(["a"], temperature=1.0, n=5)
    assert texts(made) == [f" {i}" for i in range(5)]
    assert [body.get("n") for body in server.asked] == asked
    server.asked.clear()
    asking.sample(["b"], temperature=1.0, n=5)  # it is remembered
    assert len(server.asked) == (1 if most == 5 else 5)


def test_more_samples_than_asked_are_not_kept(server: Any) -> None:
    server.answer = lambda body: completion(" a", " b", " c", " d")
    [made] = model(server).sample(["p"], temperature=1.0, n=3)
    assert texts(made) == [" a", " b", " c"]


def test_temperature_zero_is_asked_once(server: Any) -> None:
    """vLLM refuses several greedy answers to one request."""
    [made] = model(server).sample(["a"], temperature=0, n=4)
    assert texts(made) == [" yes"] * 4
    assert len(server.asked) == 1
    assert "n" not in server.asked[0]


# -- what servers refuse -----------------------------------------------------------------------------


def refusing(*names: str) -> Any:
    """A server that knows nothing of these parameters, and says so of one after the other."""

    def answer(body: dict[str, Any]) -> Any:
        for name in names:
            if name in body:
                return error(400, f"Unrecognized request argument supplied: {name}")
        return echo(body)

    return answer


def test_what_a_server_does_not_know_is_left_out(server: Any) -> None:
    server.answer = refusing("min_p", "top_k", "seed")
    asking = model(server)
    made = asking.sample(PROMPTS[:3], temperature=1.0, n=1)
    assert [texts(g) for g in made] == [[f" to {p}"] for p in PROMPTS[:3]]
    # Found out by the first prompt alone: two for WIDE, one for the seed; then one request each.
    assert server.prompts == [PROMPTS[0]] * 4 + sorted(server.prompts[4:])
    assert len(server.asked) == 6
    assert "min_p" not in server.asked[-1]
    assert server.asked[-1]["repetition_penalty"] == 1.0


def test_a_server_that_takes_no_limit_for_none(server: Any) -> None:
    """TGI's top_p must be below 1, also when nothing shall be cut."""
    refusal = error(422, "Input validation error: `top_p` must be > 0.0 and < 1.0")
    server.answer = lambda body: refusal if body.get("top_p") == 1 else echo(body)
    assert texts(model(server).generate(["a"])) == [" to a"]
    model(server).sample(["a"], temperature=1.0, n=1, top_p=0.9)
    assert [body.get("top_p") for body in server.asked] == [1.0, None, 0.9]


def test_what_the_caller_asked_for_is_not_left_out(server: Any) -> None:
    server.answer = refusing("top_k")
    with pytest.raises(
        ModelError, match=r"answered 400 \(Unrecognized .* top_k\); mend.*\.\.\.'a'"
    ):
        model(server).sample(["a"], temperature=1.0, n=1, top_k=5)


def test_a_server_that_refuses_many_alternatives(server: Any) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if body["logprobs"] > 5:
            return error(400, "logprobs must be at most 5")
        return with_logprobs(body["logprobs"])

    server.answer = answer
    [made] = model(server).generate(["a"])
    assert [len(top) for top in made.top_logprobs] == [5, 5]
    with pytest.raises(ModelError, match="of 5 likeliest tokens a position where 10 are needed"):
        model(server).generate(["a"], alternatives=10)


def test_a_server_that_refuses_logprobs_altogether(server: Any) -> None:
    server.answer = refusing("logprobs")
    asking = model(server)
    assert asking.generate(["a"])[0].logprobs == []
    assert [body.get("logprobs") for body in server.asked] == [10, 5, None]
    with pytest.raises(ModelError, match="of 0 likeliest tokens a position where 10 are needed"):
        asking.generate(["a"], alternatives=10)


def test_a_server_that_refuses_several_samples(server: Any) -> None:
    server.answer = lambda body: error(400, "just one") if "n" in body else echo(body)
    [made] = model(server).sample(["a"], temperature=1.0, n=3)
    assert texts(made) == [" to a"] * 3
    assert len(server.asked) == 4


def test_without_logprobs_a_probe_that_needs_them_stops_at_once(
    server: Any, records: Records
) -> None:
    """After one answer and those under way, all of which are kept; texts are still to be had."""
    server.answer = echo
    prompts = [f"question {i}" for i in range(30)]
    asking = load_model(line(server, "concurrency=2"), records=records)
    with pytest.raises(ModelError) as caught:
        asking.generate(prompts, alternatives=10)
    assert "of 0 likeliest tokens a position where 10 are needed; take a model or" in str(
        caught.value
    )
    assert "(top_logprobs), or ask for what does without: the texts of" in str(caught.value)
    assert len(server.asked) <= 1 + 2 + 4
    assert texts(asking.generate(prompts)) == [f" to {p}" for p in prompts]


# -- faults that pass --------------------------------------------------------------------------------

PASSING = {
    "too many requests": lambda: error(429, "slow down", Retry_After="0.01"),
    "broken server": lambda: error(500, "oops", Retry_After="0.01"),
    "busy server": lambda: error(503, "busy", Retry_After="0.01"),
    "cut connection": lambda: Reply({"choices": [{"text": " Na"}]}, cut=True),
    "slow": lambda: Reply({"choices": [{"text": " late"}]}, delay=2.5),
}


@pytest.mark.parametrize("fault", PASSING)
def test_passing_faults_leave_no_trace(server: Any, fault: str) -> None:
    faults = [PASSING[fault](), PASSING[fault]()] if fault != "slow" else [PASSING[fault]()]
    server.answer = in_turn(*faults, completion(" Nairobi"))
    asking = model(server, "timeout=2 retries=3")
    assert texts(asking.generate(["a"])) == [" Nairobi"]
    assert server.prompts == ["a"] * (len(faults) + 1)
    assert asking.spent.requests == len(faults) + 1


def test_retry_after_is_waited_for(server: Any) -> None:
    """The first pause of the client itself is at most half a second."""
    times = []

    def answer(body: dict[str, Any]) -> Any:
        times.append(time.monotonic())
        return error(429, "slow down", Retry_After="0.8") if len(times) == 1 else echo(body)

    server.answer = answer
    assert texts(model(server).generate(["a"])) == [" to a"]
    assert times[1] - times[0] >= 0.8


def test_faults_here_and_there_lose_and_invent_nothing(server: Any, records: Records) -> None:
    """Every third request fails, in turn by each of the quick faults."""
    faults = [PASSING[name] for name in PASSING if name != "slow"]

    def answer(body: dict[str, Any]) -> Any:
        number = len(server.asked)
        return echo(body) if number % 3 else faults[number // 3 % len(faults)]()

    server.answer = answer
    prompts = [f"question {i}" for i in range(12)]
    made = load_model(line(server, "concurrency=4"), records=records).generate(prompts)
    assert texts(made) == [f" to {p}" for p in prompts]
    assert len(server.asked) == 17  # the 3rd, 6th, 9th, 12th and 15th failed
    server.asked.clear()
    again = load_model(line(server), records=records).generate(prompts)
    assert again == made
    assert server.asked == []


# -- faults that stay --------------------------------------------------------------------------------

FATAL = {
    "malformed": (
        lambda: Reply(b'{"choices": [{"text": " Na'),
        r"the reply to \.\.\.'question 5' is no JSON \(Unterminated string.*; nothing of it is kept",
    ),
    "a page": (lambda: Reply(b"<html>"), r"is no JSON .* check the URL and the server, then run"),
    "empty choices": (
        lambda: Reply({"choices": []}),
        r"'question 5' holds no choices; nothing of it",
    ),
    "error in 200": (
        lambda: Reply({"error": {"message": "oom"}}),
        "'question 5' holds an error: oom",
    ),
    "wrong key": (
        lambda: error(401, "bad key"),
        r"the server asks for a key \(401\); name its var",
    ),
    "unknown model": (
        lambda: error(404, "The model `llama` does not exist"),
        r"knows no model 'llama', or nothing lies at .*404: The model `llama` does not exist\); check",
    ),
    "bad request": (
        lambda: error(400, "prompt too long"),
        r"answered 400 \(prompt too long\).*then run again \(asked: \.\.\.'question 5'\)",
    ),
    "broken": (lambda: error(500, "oops"), r"answered 500 at once \(oops\); mend what it names"),
    "cut": (lambda: Reply({"a": 1}, cut=True), r"dropped the connection at once \(RemoteProtocol"),
    "quota": (
        lambda: error(429, "no money"),
        r"still refuses \(429: no money\); lower con",
    ),
    "slow": (lambda: Reply({}, delay=2.5), "did not answer within 2 s at once; raise timeout="),
}


@pytest.mark.parametrize("fault", FATAL)
def test_one_sentence_and_what_was_answered_stays(
    server: Any, records: Records, fault: str
) -> None:
    make, sentence = FATAL[fault]
    failing = True
    server.answer = lambda body: make() if failing and body["prompt"] == PROMPTS[5] else echo(body)
    asking = line(server, "concurrency=2 retries=0 timeout=2")
    with pytest.raises(ModelError, match=sentence) as caught:
        load_model(asking, records=records).generate(PROMPTS)
    assert str(caught.value).startswith(asking)
    assert "\n" not in str(caught.value)
    answered = set(server.prompts) - {PROMPTS[5]}
    assert {*PROMPTS[:4]} <= answered  # it stopped when it failed, not before
    failing = False
    server.asked.clear()
    made = load_model(asking, records=records).generate(PROMPTS)
    assert texts(made) == [f" to {p}" for p in PROMPTS]
    assert set(server.prompts) == set(PROMPTS) - answered  # nothing was asked twice
    assert len(server.prompts) == len(PROMPTS) - len(answered)


def test_an_unreachable_server(records: Records) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    asking = load_model(f"{url} llama retries=0", records=records)
    with pytest.raises(
        ModelError, match=r"cannot be reached or dropped the connection at once \(Con"
    ):
        asking.generate(["a"])


def test_no_more_requests_at_a_time_than_set(server: Any) -> None:
    def answer(body: dict[str, Any]) -> Any:
        reply = echo(body)
        reply.delay = 0.03
        return reply

    server.answer = answer
    prompts = [f"question {i}" for i in range(20)]
    assert texts(model(server, "concurrency=3").generate(prompts)) == [f" to {p}" for p in prompts]
    assert server.most_at_once == 3


def test_a_budget_stops_and_a_larger_one_goes_on(server: Any, records: Records) -> None:
    server.answer = echo
    with pytest.raises(ModelError, match="the budget of 5 requests is used up by 5 requests with"):
        load_model(line(server, "budget_requests=5"), records=records).generate(PROMPTS)
    assert len(server.asked) == 5
    made = load_model(line(server, "budget_requests=3"), records=records).generate(PROMPTS)
    assert texts(made) == [f" to {p}" for p in PROMPTS]
    assert sorted(server.prompts) == PROMPTS


def test_a_budget_of_tokens_stops_before_it_is_exceeded(server: Any, records: Records) -> None:
    """A reply counts 12 tokens; a request is guessed at 3 for its prompt and 5 to come."""
    server.answer = echo
    with pytest.raises(
        ModelError, match="the budget of 40 tokens is used up by 3 requests with 36"
    ):
        load_model(line(server, "budget_tokens=40 concurrency=1"), records=records).generate(
            PROMPTS
        )
    assert len(server.asked) == 3


KILLED = """
import sys
from pathlib import Path
from factrobust import load_model
from factrobust.records import Records
line, path = sys.argv[1:]
load_model(line, records=Records(Path(path))).generate([f"question {i}" for i in range(40)])
"""


def test_killed_in_the_middle_what_was_recorded_is_not_asked_again(
    server: Any, records: Records
) -> None:
    def answer(body: dict[str, Any]) -> Any:
        reply = echo(body)
        reply.delay = 0.05
        return reply

    server.answer = answer
    asking = line(server, "concurrency=2")
    process = subprocess.Popen([sys.executable, "-c", KILLED, asking, str(records.path)])
    deadline = time.monotonic() + 60
    while len(server.asked) < 12 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = len(server.asked)
    assert 12 <= before < 40
    prompts = [f"question {i}" for i in range(40)]
    made = load_model(asking, records=records).generate(prompts)
    assert texts(made) == [f" to {p}" for p in prompts]
    # Lost: those under way, and those that arrived while the last ones were being written.
    assert 40 <= len(server.asked) <= 40 + 2 * 2 + 2
    assert set(server.prompts) == set(prompts)


# -- score, and what cannot be had -------------------------------------------------------------------


def scoring(body: dict[str, Any]) -> Any:
    """vLLM's echo: a word is a token, and the k-th has log-probability -k."""
    text = body["prompt"] + " END"
    words = re.findall(r"\s*\S+", text)
    values = [None, *(-float(k) for k in range(1, len(words)))]
    lists = {"tokens": words, "token_logprobs": values, "top_logprobs": [None] * len(words)}
    return Reply({"choices": [{"index": 0, "text": text, "logprobs": lists}]})


def test_score_where_prompts_are_echoed(server: Any) -> None:
    server.answer = scoring
    made = model(server).score(["one two", "one two"], [" three four", " x"])
    np.testing.assert_array_equal(made[0], np.array([-2, -3], dtype=np.float32))
    np.testing.assert_array_equal(made[1], np.array([-2], dtype=np.float32))
    body = server.asked[0]
    assert body["prompt"] == "one two three four"
    assert (body["echo"], body["max_tokens"], body["logprobs"]) == (True, 1, 1)


@pytest.mark.parametrize(
    "answer",
    [
        echo,  # llama.cpp: the parameter is not known, and passed over
        lambda body: error(400, "echo is not supported") if "echo" in body else echo(body),
    ],
)
def test_score_where_they_are_not(server: Any, answer: Any) -> None:
    server.answer = answer
    asking = model(server)
    sentence = "tells no log-probabilities of given answers .* such as vLLM, or ask for what does"
    with pytest.raises(ModelError, match=sentence):
        asking.score(PROMPTS, [" x"] * len(PROMPTS))
    assert set(server.prompts) == {f"{PROMPTS[0]} x"}  # found out by one
    server.asked.clear()
    with pytest.raises(ModelError, match=sentence):
        asking.score(PROMPTS, [" x"] * len(PROMPTS))
    assert server.asked == []


@pytest.mark.parametrize("recorded", [False, True])
def test_what_no_endpoint_can_do_is_said_before_anything_is_asked(
    server: Any, records: Records, recorded: bool
) -> None:
    asking = load_model(line(server, api="chat"), records=records if recorded else None)
    assert isinstance(asking, RecordedModel) == recorded
    with pytest.raises(
        ModelError, match=r"no logits, .* by sampling \(probes.decoding.sampled, or b"
    ):
        asking.temper(["a"], ["b"], [1.0])
    with pytest.raises(ModelError, match=r"a chat endpoint tells no .* use api=completions if the"):
        asking.score(["a"], ["b"])
    with pytest.raises(ModelError, match=r"texts and not as ids, so .* \(part 4\)"):
        asking.require("generate", "token_ids")
    asking = load_model(line(server), records=records if recorded else None)
    with pytest.raises(ModelError, match="texts and not as ids"):
        asking.score(["a"], [[1, 2]])
    assert server.asked == []


# -- the key ----------------------------------------------------------------------------------------

SECRET = "sk-s3cret-0123456789"


def test_the_key_is_sent_and_nothing_else_is(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-of-admin")
    monkeypatch.setenv("MY_KEY", SECRET)
    model(server, "key=MY_KEY").generate(["a"])
    assert server.authorisations == [f"Bearer {SECRET}"]
    server.authorisations.clear()
    model(server).generate(["a"])  # without key= no key goes out, OpenAI's least of all
    assert server.authorisations == ["Bearer none"]


@pytest.mark.parametrize("fault", [*FATAL, "none", "models"])
def test_the_key_reaches_nothing(
    server: Any,
    records: Records,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    fault: str,
) -> None:
    """Each fault is provoked, by a server that repeats the key in everything it says."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", SECRET)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)

    def repeating(reply: Any) -> Any:
        if isinstance(reply.body, bytes):
            reply.body = reply.body.replace(b"<html>", f"<html> {SECRET}".encode())
        elif "error" in reply.body:
            reply.body["error"]["message"] += f" (you sent Bearer {SECRET})"
        return reply

    server.answer = lambda body: repeating(FATAL[fault][0]()) if fault in FATAL else echo(body)
    if fault == "models":
        server.models = error(401, f"not with {SECRET}")
    asking = load_model(line(server, "key=MY_KEY retries=0 timeout=2"), records=records)
    said = ""
    if fault == "none":
        asking.generate(["a"])
    else:
        with pytest.raises(ModelError) as caught:
            asking.generate(["a"])
        assert caught.value.__context__ is caught.value.__cause__ is None
        shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        said = "".join(shown.format())
    loaded = asking._loaded  # type: ignore[attr-defined]
    captured = capfd.readouterr()
    written = records.path.read_bytes() if records.path and records.path.exists() else b""
    seen = [
        said, caplog.text, captured.out, captured.err, written.decode("latin-1"),
        repr(asking), repr(vars(asking)), repr(loaded), repr(vars(loaded) if loaded else ""),
        json.dumps(server.asked),
    ]  # fmt: skip
    assert not [text for text in seen if SECRET in text]
    assert any(f"Bearer {SECRET}" == sent for sent in server.authorisations)


def test_a_key_that_is_not_set_is_said_before_anything_is_asked(
    server: Any, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    asking = load_model(line(server, "key=MY_KEY"), records=records)
    with pytest.raises(
        ModelError, match="needs the key that key=MY_KEY names, but this environment"
    ):
        asking.generate(["a"])
    assert server.authorisations == []


def test_answers_in_the_records_need_neither_key_nor_server(
    server: Any, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    asking = line(server, "key=MY_KEY")
    made = load_model(asking, records=records).generate(PROMPTS)
    monkeypatch.delenv("MY_KEY")
    server.authorisations.clear()
    assert load_model(asking, records=records).generate(PROMPTS) == made
    assert server.authorisations == []
    assert os.environ.get("MY_KEY") is None
