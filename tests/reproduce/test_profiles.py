"""Profiles override what notebooks declare, and say what they got wrong."""

from typing import Any

import pytest
from frames import cells

from factrobust.paths import ROOT
from factrobust.reproduce import profiles
from factrobust.reproduce.profiles import ProfileError, declared_parameters, find_notebooks

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


@pytest.fixture
def resolve(root, write):
    """What the profile of this text sets in a repository of three notebooks."""
    for name in ("1-decoding/1.1-a", "1-decoding/1.2-a"):
        write(f"{name}.ipynb", parameters=CODE)
    write("0-start.ipynb", parameters="n_questions: int = 1")

    def resolved(text: str, name: str = "mine") -> dict[str, dict[str, Any]]:
        (root / "profiles" / "mine.yaml").write_text(text)
        found = profiles.parameters(root, name)
        return {k.removeprefix("notebooks/").removesuffix(".ipynb"): found[k] for k in found}

    return resolved


def test_declared_parameters_are_the_literals_of_the_tagged_cell(write):
    assert declared_parameters(write("a.ipynb", "x = 1", parameters=CODE)) == DECLARED
    assert declared_parameters(write("b.ipynb", CODE)) == {}
    with pytest.raises(ProfileError, match=r"c\.ipynb: .* leave only assignments of literals"):
        declared_parameters(write("c.ipynb", parameters="n: int = 2 * k"))


def test_defaults_globs_and_the_last_match(resolve):
    found = resolve(
        """
        defaults: {n_questions: 10, temperature: 2}
        notebooks:
          1-decoding/*: {n_questions: 5, exact: false}
          1-decoding/1.2-*: {n_questions: 2, revision: main, models: [gpt, {url: u}]}
        """
    )
    both = {"temperature": 2, "exact": False}
    other = {"n_questions": 2, "revision": "main", "models": ["gpt", {"url": "u"}]}
    assert found == {
        "0-start": {"n_questions": 10},
        "1-decoding/1.1-a": {"n_questions": 5} | both,
        "1-decoding/1.2-a": other | both,
    }
    assert resolve("defaults: {n_questions: 10}", "laptop") == {name: {} for name in found}


WRONG = cells(r"""
    defaults: {n_question: 3}                \*: .* parameter 'n_question'
    notebooks: {'*1.1-*': {exakt: no}}       1\.1-\*: .* parameter 'exakt'
    notebooks: {'1.2-a.ipynb': {exact: no}}  1\.2-a\.ipynb: .* parameter 'exact'
    default: {n_questions: 3}                default Extra inputs are not permitted
    defaults: [n_questions]                  defaults Input should be a valid dictionary
    just words                               should be a valid dictionary
    defaults: {n: [}                         line 1
""")


@pytest.mark.parametrize(("text", "sentence"), WRONG)
def test_a_wrong_profile_is_explained(resolve, text, sentence):
    with pytest.raises(ProfileError, match=rf"mine\.yaml.*{sentence}"):
        resolve(text)
    with pytest.raises(ProfileError, match="There is no profile 'mien': known are laptop, mine;"):
        resolve(text, "mien")


# What is asked for, and which of the four notebooks below it is.
ONLY = cells("""
    notebooks/1-*  1 2
    1.2            2
    1-decoding     1 2
    2              3
    0              0
    0-start-here   0
    1.1-a.ipynb    1
    2-time/2.1-c   3
    */1.1-*        1
""")


def test_notebooks_come_in_order_the_introduction_first(tmp_path):
    names = [
        "notebooks/0-start-here.ipynb",
        "notebooks/1-decoding/1.1-a.ipynb",
        "notebooks/1-decoding/1.2-b.ipynb",
        "notebooks/2-time/2.1-c.ipynb",
    ]
    checkpoint = "notebooks/1-decoding/.ipynb_checkpoints/1.1-a-checkpoint.ipynb"
    for name in [*reversed(names), checkpoint]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_notebooks(tmp_path) == names
    for only, places in ONLY:
        found = [names[int(place)] for place in places.split()]
        assert find_notebooks(tmp_path, only) == found, only
    fault = r"called '7': there are 0-start-here, 1-decoding/1\.1-a"
    with pytest.raises(ProfileError, match=fault):
        find_notebooks(tmp_path, "7")


def test_models_of_the_hub_are_asked_where_models_can_be_exchanged():
    """Not where they must have been told the world, or where answers are labelled."""
    chosen = profiles.parameters(ROOT, "hub-small")
    asked = set()
    for name, values in chosen.items():
        models = values.get("models", [])
        if len(models) == 5:
            asked.add(name.split("/")[1])
        if any(part in name for part in ("/0-", "/5-", "3.6-", "6.5-", "6.6-")):
            assert not [model for model in models if "/" in model], name
    assert asked == {"1-decoding", "2-time", "3-wording", "4-context", "6-together"}
