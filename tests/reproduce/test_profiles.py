"""Profiles override what notebooks declare, and say what they got wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factrobust import paths
from factrobust.reproduce.profiles import (
    ProfileError,
    declared_parameters,
    find_notebooks,
    parameters,
)

CODE = '''"""Parameters."""
models: list[str] = ["gemma-3-270m"]  # names in the registry
n_questions: int = 300  # per domain
temperature: float = 1.0
exact: bool = True
cutoff: float = -0.5
revision: str = ""
'''
DECLARED = {"models": ["gemma-3-270m"], "n_questions": 300, "temperature": 1.0}
DECLARED |= {"exact": True, "cutoff": -0.5, "revision": ""}
Resolve = Callable[[str], dict[str, dict[str, Any]]]


def write_notebook(path: Path, cell: str, tag: str = "parameters") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    code = {
        "cell_type": "code",
        "metadata": {"tags": [tag]},
        "outputs": [],
        "execution_count": None,
        "source": cell.splitlines(True),
    }
    first = {"cell_type": "markdown", "metadata": {}, "source": "x = 1"}
    kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": ""}}
    form = {"nbformat": 4, "nbformat_minor": 4, "metadata": kernel}
    path.write_text(json.dumps(form | {"cells": [first, code]}))
    return path


@pytest.fixture
def resolve(tmp_path):
    """What the profile of this text sets in a repository of three notebooks."""
    for name in ("1-decoding/1.1-a", "1-decoding/1.2-a"):
        write_notebook(tmp_path / f"notebooks/{name}.ipynb", CODE)
    write_notebook(tmp_path / "notebooks/0-start.ipynb", "n_questions: int = 1")
    (tmp_path / "profiles").mkdir()

    def resolved(text: str, name: str = "mine") -> dict[str, dict[str, Any]]:
        (tmp_path / "profiles" / "mine.yaml").write_text(text)
        found = parameters(tmp_path, name)
        return {k.removeprefix("notebooks/").removesuffix(".ipynb"): found[k] for k in found}

    return resolved


def test_declared_parameters_are_the_literals_of_the_tagged_cell(tmp_path):
    assert declared_parameters(write_notebook(tmp_path / "a.ipynb", CODE)) == DECLARED
    assert declared_parameters(write_notebook(tmp_path / "b.ipynb", CODE, tag="other")) == {}


def test_a_parameters_cell_that_cannot_be_read(tmp_path):
    with pytest.raises(ProfileError, match=r"a\.ipynb: .* leave only assignments of literals"):
        declared_parameters(write_notebook(tmp_path / "a.ipynb", "n: int = 2 * k"))


def test_defaults_globs_and_the_last_match(resolve):
    found = resolve(
        """
        defaults: {n_questions: 10, temperature: 2}
        notebooks:
          1-decoding/*: {n_questions: 5, exact: false}
          1-decoding/1.2-*: {n_questions: 2, revision: main, models: [gpt, {url: u}]}
        """
    )
    assert found == {
        "0-start": {"n_questions": 10},
        "1-decoding/1.1-a": {"n_questions": 5, "temperature": 2, "exact": False},
        "1-decoding/1.2-a": {
            "n_questions": 2,
            "temperature": 2,
            "exact": False,
            "revision": "main",
            "models": ["gpt", {"url": "u"}],
        },
    }
    assert resolve("defaults: {n_questions: 10}", "laptop") == {name: {} for name in found}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("defaults: {n_question: 3}", r"\*: .* parameter 'n_question'"),
        ("notebooks: {'*1.1-*': {exakt: no}}", r"1\.1-\*: .* parameter 'exakt'"),
        ("notebooks: {'1.2-a.ipynb': {exact: no}}", r"1\.2-a\.ipynb: .* parameter 'exact'"),
        ("default: {n_questions: 3}", "default Extra inputs are not permitted"),
        ("defaults: [n_questions]", "defaults Input should be a valid dictionary"),
        ("just words", "should be a valid dictionary"),
        ("defaults: {n: [}", "line 1"),
    ],
)
def test_a_wrong_profile_is_explained(resolve, text, sentence):
    with pytest.raises(ProfileError, match=rf"mine\.yaml.*{sentence}"):
        resolve(text)
    with pytest.raises(ProfileError, match="There is no profile 'mien': known are laptop, mine;"):
        resolve(text, "mien")


def test_the_profiles_of_the_repository_fit_its_notebooks():
    for path in paths.PROFILES.glob("*.yaml"):
        assert any(parameters(paths.ROOT, path.stem).values())


def test_notebooks_come_in_order_the_introduction_first(root):
    names = ["1-decoding/1.2-b", "1-decoding/1.1-a", "0-start-here", "2-time/2.1-c"]
    for name in [*names, "1-decoding/.ipynb_checkpoints/1.1-a-checkpoint"]:
        path = root / f"notebooks/{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = find_notebooks(root)
    assert [name.removeprefix("notebooks/").removesuffix(".ipynb") for name in found] == [
        "0-start-here",
        "1-decoding/1.1-a",
        "1-decoding/1.2-b",
        "2-time/2.1-c",
    ]
    assert find_notebooks(root, "notebooks/1-*") == found[1:3]
