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

from factrobust import command
from factrobust.paths import ROOT
from factrobust.reproduce import plan

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TAKES = {
    target: names.split()
    for target, names in re.findall(r"^takes-(\w+) *:= (.*)$", MAKEFILE, re.MULTILINE)
}
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
    for environment in (".venv", ".venv-read"):
        program = tmp_path / environment / "bin" / "python"
        program.parent.mkdir(parents=True)
        words = shlex.join([sys.executable, "-I", "-c", RECORDER.format(seen=SEEN)])
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        program.chmod(0o755)
        (tmp_path / environment / ".ready").touch()
    return tmp_path


def make(folder, *words, **variables):
    """Run make, with an environment that knows nothing of what this test was started with."""
    names = {"MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL"}  # of the make that runs the tests
    names |= {"CONDA_DEFAULT_ENV", "PYTHON", "TORCH_INDEX"}
    names |= {name for takes in TAKES.values() for name in takes}
    outside = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.run(
        ["make", *words],
        cwd=folder,
        env=outside | variables,
        capture_output=True,
        text=True,
    )


def noted(folder):
    """The words of all programs that were run, a list a program."""
    path = folder / "noted"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("target", TAKES)
def test_a_value_reaches_the_program_as_it_was_written(folder, target, text):
    """On the command line of make and in its environment, all that the target takes at once."""
    values = dict.fromkeys(TAKES[target], text)
    for given in ([f"{name}={value}" for name, value in values.items()], []):
        (folder / "noted").unlink(missing_ok=True)
        done = make(folder, target, *given, **({} if given else values))
        assert done.returncode == 0
        assert done.stderr == ""
        assert not (folder / "made").exists()
        words = [word for program in noted(folder) for word in program if word]
        for name in values:
            for part in text.split() if name in SEVERAL else [text]:
                assert any(word == part or word.endswith(f"={part}") for word in words), name


@pytest.mark.parametrize("text", TEXTS)
def test_what_sets_up_an_environment_is_text_too(folder, text):
    (folder / ".venv" / ".ready").unlink()
    done = make(folder, "env", f"PYTHON={text}")
    assert done.returncode == 2
    assert done.stderr.startswith(f"There is no program '{text}': make PYTHON=")
    assert not (folder / ".venv" / ".ready").exists()
    recorder = ".venv/bin/python"
    done = make(folder, "env", f"PYTHON={recorder}", f"TORCH_INDEX={text}")
    assert done.returncode == 0
    assert done.stderr == ""
    assert noted(folder)[-1] == ["install.py", ".venv", "models", None, text]
    assert not (folder / "made").exists()


@pytest.mark.parametrize("text", TEXTS)
def test_no_name_of_a_variable_runs_what_it_holds(folder, text):
    """Not one that the Makefile has for itself, nor one that it does not know."""
    own = re.findall(r"^(?:override | +)?(\w+) *:?=", MAKEFILE, re.MULTILINE)
    assert {"given", "goals", "PY"} <= {*own}
    for name in (*own, "NAME"):
        done = make(folder, "card", "MODEL=x", f"{name}={text}")
        assert done.returncode == 2, name
        assert " takes no " in done.stderr
    assert not (folder / "made").exists()
    assert noted(folder) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("card", "make card needs MODEL: make card MODEL=gemma-3-270m"),
        ("card MODEL=", "make card needs MODEL: make card MODEL=gemma-3-270m"),
        ("card NAME=x", "make card takes no NAME: it takes ALL DATA MODEL OUT, see `make help`"),
        ("card model=x", "make card takes no model: it takes ALL DATA MODEL OUT, see `make help`"),
        ("card MODEL=x DATA=", "DATA is empty: give it a value, or leave it out"),
        ("flips A=x", "make flips needs B: make flips A=gemma-3-270m B=gemma-3-270m~round4"),
        ("flips A= B=x", "make flips needs A: make flips A=gemma-3-270m B=gemma-3-270m~round4"),
        ("reproduce ONLY=", "ONLY is empty: give it a value, or leave it out"),
        ("lint flips B=x", "make flips needs A: make flips A=gemma-3-270m B=gemma-3-270m~round4"),
        ("clean MODEL=x", "make clean takes no MODEL: it takes no value, see `make help`"),
    ],
)
def test_what_is_missing_is_told_before_anything_is_run(folder, words, sentence):
    shutil.rmtree(folder / ".venv")  # nor is an environment made
    done = make(folder, *words.split())
    assert done.returncode == 2
    assert re.sub(r"^Makefile:\d+: ", "", done.stderr) == f"*** {sentence}.  Stop.\n"
    assert done.stdout == ""
    assert not (folder / ".venv").exists()


def test_torch_of_another_index_is_set_up_again_and_else_is_kept(folder):
    """Whoever names no index keeps what there is."""
    (folder / ".venv" / ".torch-index").write_text("https://a.org/cu130\n")
    recorder = f"PYTHON={folder}/.venv/bin/python"
    for given, runs in (
        ([], 0),
        (["TORCH_INDEX=https://a.org/cu130"], 0),
        (["TORCH_INDEX=https://a.org/cpu"], 2),
        (["TORCH_INDEX="], 2),
    ):
        (folder / "noted").unlink(missing_ok=True)
        done = make(folder, "env", recorder, *given)
        assert done.returncode == 0
        assert done.stderr == ""
        assert len(noted(folder)) == runs, given  # which Python it is, and install.py


@pytest.mark.parametrize("target", ["env", "read"])
@pytest.mark.parametrize(
    ("version", "fits"),
    [((3, 10, 9), False), ((3, 11, 0), True), ((3, 14, 9), True), ((3, 15, 0), False)],
)
def test_a_python_that_is_too_old_or_too_new_is_refused(folder, version, fits, target):
    """Before an environment is made of it."""
    program = folder / "python"
    told = f"import sys; sys.version_info = {version}; sys.version = '{version}'; exec(sys.argv[1])"
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = -c ]; then exec "{sys.executable}" -c "{told}" "$2"; fi\n'
    )
    program.chmod(0o755)
    for environment in (".venv", ".venv-read"):
        (folder / environment / ".ready").unlink()
    done = make(folder, target, "PYTHON=./python")
    assert (done.returncode == 0) == fits
    needs = "factrobust needs Python 3.11 to 3.14, and "
    assert done.stderr.startswith("" if fits else needs)
    assert ("have no wheels for it yet" in done.stderr) == (version > (3, 15))


def test_the_pythons_that_are_asked_for_are_those_that_are_named():
    """By the Makefile, pyproject.toml, environment.yml and README."""
    assert "(3, 11) <= v < (3, 15)" in MAKEFILE
    for name, words in (
        ("pyproject.toml", 'requires-python = ">=3.11,<3.15"'),
        ("environment.yml", "python>=3.11,<3.15"),
        ("README.md", "Python 3.11 to 3.14 "),
        ("install.py", "(3, 11) <= sys.version_info < (3, 15)"),
    ):
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
