"""What a user gives to make reaches the programs as it was written; what is missing is told
first."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from frames import cells

from factrobust import command
from factrobust.paths import ROOT
from factrobust.reproduce import plan

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TAKES = dict(re.findall(r"^takes-(\w+) *:= (.*)$", MAKEFILE, re.MULTILINE))
# Each makes a file if make reads it, or a shell: bare, in single quotes or in double quotes.
TEXTS = [
    """x'; touch made; ' "; touch made; " $(touch made) `touch made` $(shell touch made)""",
    "${shell touch made} $(eval x := $(shell touch made)) #y \\ $HOME $$ é ~ * && touch made",
    "x\ntouch made\n",
    "--x=$(touch made)",
]
SEVERAL = ("LAB", "PLAN", "B")  # hold several options, which spaces part
SEEN = ("PYTEST_ADDOPTS", "TORCH_INDEX")  # that programs read from the environment themselves

# In the place of Python: notes the words that it is given, and some of its environment.
RECORDER = """
import json, os, sys
with open("noted", "a") as noted:
    print(json.dumps([*sys.argv[1:], *map(os.environ.get, {seen})]), file=noted)
"""


@pytest.fixture
def folder(tmp_path):
    """The Makefile with two environments that are ready, whose Python notes what it is given."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "notebooks").mkdir()
    for name in ("pyproject.toml", "constraints.txt", "install.py"):
        (tmp_path / name).touch()
    recorder = shlex.join([sys.executable, "-I", "-c", RECORDER.format(seen=SEEN)])
    for environment in (".venv", ".venv-read"):
        (tmp_path / environment / "bin").mkdir(parents=True)
        program(tmp_path / environment / "bin" / "python", f'exec {recorder} "$@"')
        (tmp_path / environment / ".ready").touch()
    return tmp_path


def program(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def make(folder, *words, **variables):
    """Run make, with an environment that knows nothing of what this test was started with."""
    return subprocess.run(
        ["make", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"]} | variables,
        capture_output=True,
        text=True,
    )


def runs(folder, *words, **variables):
    """Run make, which must end well and say nothing."""
    done = make(folder, *words, **variables)
    assert (done.returncode, done.stderr) == (0, "")


def noted(folder):
    """The words of all programs that were run, a list a program."""
    path = folder / "noted"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("target", TAKES)
def test_a_value_reaches_the_program_as_it_was_written(folder, target, text):
    """On the command line of make and in its environment, all that the target takes at once."""
    values = {name: f"{text}{name}" for name in TAKES[target].split()}
    for given, variables in (
        ([f"{name}={value}" for name, value in values.items()], {}),
        ([], values),
    ):
        (folder / "noted").unlink(missing_ok=True)
        runs(folder, target, *given, **variables)
        assert not (folder / "made").exists()
        words = {word for words in noted(folder) for word in words if word}
        words |= {word.partition("=")[2] for word in words}  # of --name=value
        for name, value in values.items():
            parts = value.split() if name in SEVERAL else [value]
            assert name == "ALL" or words.issuperset(parts), name  # ALL is but yes or no


@pytest.mark.parametrize("text", TEXTS)
def test_what_sets_up_an_environment_is_text_too(folder, text):
    (folder / ".venv" / ".ready").unlink()
    done = make(folder, "env", f"PYTHON={text}")
    assert done.returncode == 2
    assert done.stderr.startswith(f"There is no program '{text}': make PYTHON=")
    assert not (folder / ".venv" / ".ready").exists()
    runs(folder, "env", "PYTHON=.venv/bin/python", f"TORCH_INDEX={text}")
    assert noted(folder)[-1] == ["install.py", ".venv", "models", None, text]
    assert not (folder / "made").exists()


@pytest.mark.parametrize("text", TEXTS)
def test_no_name_of_a_variable_runs_what_it_holds(folder, text):
    """Not one that the Makefile has for itself, nor one that it does not know."""
    variables = re.findall(r"^(?:override | +)?(\w+) *:?=", MAKEFILE, re.MULTILINE)
    assert {"given", "goals", "PY"} <= {*variables}
    for name in (*variables, "NAME"):
        done = make(folder, "card", "MODEL=x", f"{name}={text}")
        assert done.returncode == 2, name
        assert " takes no " in done.stderr
    assert not (folder / "made").exists()
    assert noted(folder) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    cells("""
    card                make card needs MODEL: make card MODEL=gemma-3-270m
    card MODEL=         make card needs MODEL: make card MODEL=gemma-3-270m
    card NAME=x         make card takes no NAME: it takes ALL DATA MODEL OUT, see `make help`
    card model=x        make card takes no model: it takes ALL DATA MODEL OUT, see `make help`
    card MODEL=x DATA=  DATA is empty: give it a value, or leave it out
    flips A=x           make flips needs B: make flips A=gemma-3-270m B=gemma-3-270m~round4
    flips A= B=x        make flips needs A: make flips A=gemma-3-270m B=gemma-3-270m~round4
    reproduce ONLY=     ONLY is empty: give it a value, or leave it out
    lint flips B=x      make flips needs A: make flips A=gemma-3-270m B=gemma-3-270m~round4
    clean MODEL=x       make clean takes no MODEL: it takes no value, see `make help`
    """),
)
def test_what_is_missing_is_told_before_anything_is_run(folder, words, sentence):
    shutil.rmtree(folder / ".venv")  # nor is an environment made
    done = make(folder, *words.split())
    assert done.returncode == 2
    assert re.sub(r"^Makefile:\d+: ", "", done.stderr) == f"*** {sentence}.  Stop.\n"
    assert done.stdout == ""
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize(
    ("words", "n_programs"),
    [
        ("env", 0),
        ("env TORCH_INDEX=https://a.org/cu130", 0),
        ("env TORCH_INDEX=https://a.org/cpu", 2),
        ("env TORCH_INDEX=", 2),
    ],
)
def test_torch_of_another_index_is_set_up_again_and_else_is_kept(folder, words, n_programs):
    """Whoever names no index keeps what there is. The programs: which Python it is, install.py."""
    (folder / ".venv" / ".torch-index").write_text("https://a.org/cu130\n")
    runs(folder, "PYTHON=.venv/bin/python", *words.split())
    assert len(noted(folder)) == n_programs


@pytest.mark.parametrize("target", ["env", "read"])
@pytest.mark.parametrize(
    ("version", "fits"),
    [((3, 10, 9), False), ((3, 11, 0), True), ((3, 14, 9), True), ((3, 15, 0), False)],
)
def test_a_python_that_is_too_old_or_too_new_is_refused(folder, version, fits, target):
    """Before an environment is made of it."""
    pretend = (
        f"import sys; sys.version_info = {version}; sys.version = '{version}'; exec(sys.argv[1])"
    )
    program(
        folder / "python", f'if [ "$1" = -c ]; then exec "{sys.executable}" -c "{pretend}" "$2"; fi'
    )
    for environment in (".venv", ".venv-read"):
        (folder / environment / ".ready").unlink()
    done = make(folder, target, "PYTHON=./python")
    refused = "factrobust needs Python 3.11 to 3.14, and " in done.stderr
    assert (done.returncode == 0) == fits != refused
    assert ("have no wheels for it yet" in done.stderr) == (version > (3, 15))


def test_the_pythons_that_are_asked_for_are_those_that_are_named():
    """By the Makefile, pyproject.toml, environment.yml and README."""
    named = {
        "Makefile": "(3, 11) <= v < (3, 15)",
        "pyproject.toml": 'requires-python = ">=3.11,<3.15"',
        "environment.yml": "python>=3.11,<3.15",
        "README.md": "Python 3.11 to 3.14 ",
        "install.py": "(3, 11) <= sys.version_info < (3, 15)",
    }
    for name, words in named.items():
        assert words in (ROOT / name).read_text(encoding="utf-8"), name


def test_the_programs_themselves_take_a_name_for_a_name(tmp_path, monkeypatch, capsys):
    """They say it as it was written, and run nothing of it."""
    monkeypatch.chdir(tmp_path)
    text = TEXTS[0]
    assert plan.main(["--profile", text]) == 2
    with pytest.raises(SystemExit, match="2"):
        command.main(["card", "--", text])
    assert capsys.readouterr().err.count(repr(text)) == 2
    assert [*tmp_path.iterdir()] == []
