"""The root conftest.py: notebooks under nbval, in a copy of this repository's test set-up."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from factrobust.paths import ROOT
from factrobust.reproduce.__main__ import main

# Saves as the library does, and prints a number of which the environment can change a little.
NOISY = "import os\nx = 0.5 * float(os.environ.get('NOISE', 1))"
SAVE_NOISY = """from toysave import save
for name in ('noisy', 'other'):
    save(f'{name}.csv', f'x\\n{x}\\n')
    save(f'{name}.json', '{"notebook": "notebooks/1.ipynb"}')"""
SHOW = "print('x is', x)\nx"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Where the first test's repository is kept as it was at the beginning."""
    return tmp_path_factory.mktemp("made") / "repository"


@pytest.fixture
def reproduced(root, write, made):
    """The tiny repository with one notebook that was run, and this repository's pytest files."""
    if made.exists():
        shutil.rmtree(root)
        shutil.copytree(made, root)
        return root
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    write("1.ipynb", NOISY, SAVE_NOISY, SHOW, f"{SHOW}  # again")
    assert main([], root=root) == 0
    git(root, "init", "-q")
    git(root, "add", "figures", "notebooks")
    git(root, "commit", "-qm", "results")
    shutil.copytree(root, made)
    return root


def pytest_of(root: Path, **environment: str) -> tuple[int, str]:
    environment |= {"PYTHONPATH": os.pathsep.join([f"{root}/lib", f"{ROOT}/lib"])}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA"]
    done = subprocess.run(
        command,
        cwd=root,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def git(root: Path, *arguments: str) -> None:
    how = {"cwd": root, "check": True, "capture_output": True}
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], **how)


def test_notebooks_and_their_saved_data_are_compared(reproduced):
    # Jitter passes and does not reach the committed file.
    status, out = pytest_of(reproduced, NOISE="1.000000001")
    assert status == 0, out
    passed = [line for line in out.splitlines() if line.startswith("PASSED")]
    assert len(passed) == 5  # four cells, then the saved data
    assert "Cell 3" in passed[3]
    file = "figures/noisy.csv"
    assert (reproduced / "build/nbval/notebooks/1" / file).read_text() == "x\n0.5000000005\n"
    assert (reproduced / file).read_text() == "x\n0.5\n"

    # One per cent does not: in the cells that show it and in the data of the figure. Tables that
    # the notebook no longer saves, or that are not committed, are named.
    for end in ("csv", "json"):
        git(reproduced, "mv", f"figures/other.{end}", f"figures/old.{end}")
    status, out = pytest_of(reproduced, NOISE="1.01")
    assert status == 1
    assert "3 failed, 2 passed" in out
    assert "row 1, column x: 0.5 -> 0.505" in out
    assert "figures/old.csv is in git, but this notebook no longer saves it" in out
    assert "figures/other.csv is not in git: if this is meant" in out


def test_a_run_on_another_processor_is_no_failure_and_a_changed_one_is(reproduced, monkeypatch):
    """`make reproduce` there, then `make test`, which replays the records of here."""
    with monkeypatch.context() as patch:
        patch.setenv("NOISE", "1.00001")
        assert main([], root=reproduced) == 0
    moved = {name: (reproduced / name) for name in ("figures/noisy.csv", "notebooks/1.ipynb")}
    assert all("0.500005" in path.read_text() for path in moved.values())
    status, out = pytest_of(reproduced)
    assert status == 0, out

    # Committed numbers that are not the replay's: in a table, and in a notebook's output.
    git(reproduced, "checkout", "--", ".")
    for path, before in zip(moved.values(), ("\n0.", "x is 0."), strict=True):
        path.write_text(path.read_text().replace(f"{before}5", f"{before}6", 1))
    git(reproduced, "commit", "-qam", "tampered")
    status, out = pytest_of(reproduced)
    assert (status, "2 failed, 3 passed" in out) == (1, True), out
    assert "figures/noisy.csv is not what it was; if this is meant, `make reproduce ASK=0`" in out
    assert "x is 0.6" in out


def test_without_git_nothing_is_compared_with_itself(reproduced):
    shutil.rmtree(reproduced / ".git")
    status, out = pytest_of(reproduced)
    assert status != 0
    assert "Nothing is compared: git says" in out
