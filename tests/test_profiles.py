"""Profiles override what notebooks declare, and say what they got wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from factrobust import paths
from factrobust.profiles import (
    Profile,
    ProfileError,
    declared_parameters,
    load_profile,
    parameters_for,
    resolve,
)

CODE = '''"""Parameters."""
models: list[str] = ["gemma-3-270m"]  # names in the registry
n_questions = 300  # per domain
temperature: float = 1.0
exact = True
cutoff = -0.5
revision = None
'''
DECLARED = {
    "models": ["gemma-3-270m"],
    "n_questions": 300,
    "temperature": 1.0,
    "exact": True,
    "cutoff": -0.5,
    "revision": None,
}


def write_notebook(path: Path, *cells: str, tags: tuple[str, ...] = ("parameters",)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    code = [
        {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": cell.splitlines(True)}
        for cell in cells
    ]
    first = {"cell_type": "markdown", "metadata": {}, "source": "x = 1"}
    path.write_text(json.dumps({"cells": [first, *code]}))
    return path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "profiles")
    (tmp_path / "profiles").mkdir()
    return tmp_path


def profile(root: Path, text: str) -> Profile:
    (root / "profiles" / "mine.yaml").write_text(text)
    return load_profile("mine")


def test_declared_parameters_are_the_literals_of_the_tagged_cell(tmp_path: Path) -> None:
    assert declared_parameters(write_notebook(tmp_path / "a.ipynb", CODE)) == DECLARED
    untagged = write_notebook(tmp_path / "b.ipynb", CODE, tags=("other",))
    assert declared_parameters(untagged) == {}


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("n = 2 * k", r"parameter 'n' is `2 \* k`: give a literal"),
        ("import os", "`import os` in the cell tagged 'parameters' assigns no parameter"),
        ("a, b = 1, 2", "assigns no parameter"),
        ("n: int", "assigns no parameter"),
        ("n = 1\n%matplotlib inline", "not plain Python, line 2"),
    ],
)
def test_a_parameters_cell_that_cannot_be_read(tmp_path: Path, cell: str, sentence: str) -> None:
    with pytest.raises(ProfileError, match=sentence) as error:
        declared_parameters(write_notebook(tmp_path / "a.ipynb", cell))
    assert "a.ipynb" in str(error.value)


def test_two_tagged_cells_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="has 2 cells tagged"):
        declared_parameters(write_notebook(tmp_path / "a.ipynb", "n = 1", "m = 1"))


def test_the_laptop_profile_overrides_nothing(root: Path) -> None:
    notebook = write_notebook(root / "notebooks" / "1-decoding" / "1.1-a.ipynb", CODE)
    assert resolve(load_profile("laptop"), [notebook]) == {notebook: {}}


def test_defaults_globs_and_the_last_match(root: Path) -> None:
    mine = profile(
        root,
        """
        defaults: {n_questions: 10, temperature: 2}
        notebooks:
          1-decoding/*: {n_questions: 5, exact: false}
          1-decoding/1.2-*: {n_questions: 2, revision: main}
        """,
    )
    folder = root / "notebooks" / "1-decoding"
    one, two = (write_notebook(folder / f"1.{i}-a.ipynb", CODE) for i in (1, 2))
    other = write_notebook(root / "notebooks" / "0-start.ipynb", "n_questions = 1")
    assert resolve(mine, [one, two, other]) == {
        one: {"n_questions": 5, "temperature": 2.0, "exact": False},
        two: {"n_questions": 2, "temperature": 2.0, "exact": False, "revision": "main"},
        other: {"n_questions": 10},
    }
    assert type(parameters_for(mine, one, DECLARED)["temperature"]) is float
    assert parameters_for(mine, Path("notebooks/1-decoding/1.1-a.ipynb"), DECLARED) == (
        parameters_for(mine, one, DECLARED)
    )


@pytest.mark.parametrize(
    "value",
    ["n_questions: many", "n_questions: 1.5", "n_questions: true", "exact: 1", "models: gemma",
     "models: [1]", "temperature: '1'", "n_questions:"],
)  # fmt: skip
def test_a_value_of_the_wrong_type(root: Path, value: str) -> None:
    mine = profile(root, f"defaults: {{{value}}}" if ":" in value[:-1] else f"defaults:\n  {value}")
    notebook = write_notebook(root / "notebooks" / "1.1-a.ipynb", CODE)
    key = value.split(":")[0]
    sentence = rf"mine\.yaml, defaults: '{key}' is .*, but 1\.1-a\.ipynb needs a value like"
    with pytest.raises(ProfileError, match=sentence):
        resolve(mine, [notebook])


@pytest.mark.parametrize("value", ["[]", "[a, b]"])
def test_lists_may_have_any_length(root: Path, value: str) -> None:
    mine = profile(root, f"defaults: {{models: {value}}}")
    assert len(parameters_for(mine, Path("x.ipynb"), DECLARED)["models"]) in (0, 2)


def test_an_unknown_profile_names_the_nearest(root: Path) -> None:
    (root / "profiles" / "smoke.yaml").write_text("")
    assert load_profile("smoke").defaults == {}
    with pytest.raises(ProfileError, match=r"'smoek' \(nearest: smoke\): known are laptop, smoke;"):
        load_profile("smoek")
    with pytest.raises(ProfileError, match=r"no profile '\.\./smoke'"):
        load_profile("../smoke")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("defaults: {n_question: 3}", r"defaults: .* parameter 'n_question' \(nearest: n_quest"),
        ("notebooks: {'1.1-*': {exakt: no}}", r"1\.1-\*: .* parameter 'exakt' \(nearest: exact"),
        (
            "notebooks: {'1.2-a.ipynb': {exact: no}}",
            r"no notebook fits '1\.2-a\.ipynb' \(nearest: 1\.1-a",
        ),
        ("default: {n_questions: 3}", r"unknown part 'default' \(nearest: defaults\)"),
        ("defaults: [n_questions]", "defaults must map names to values"),
        ("notebooks: {'*': 3}", r"notebooks / \* must map"),
        ("just words", "the file must map"),
        ("defaults: {n: [}", r"is not YAML: .*line 1"),
    ],
)
def test_a_wrong_profile_is_explained(root: Path, text: str, sentence: str) -> None:
    notebook = write_notebook(root / "notebooks" / "1.1-a.ipynb", CODE)
    with pytest.raises(ProfileError, match=sentence) as error:
        resolve(profile(root, text), [notebook])
    assert "mine.yaml" in str(error.value)


def test_the_profiles_of_the_repository_load() -> None:
    names = [path.stem for path in paths.PROFILES.glob("*.yaml")]
    assert "smoke" in names
    for name in names:
        assert load_profile(name).defaults
