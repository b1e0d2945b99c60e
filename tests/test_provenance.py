"""Figures and tables are saved the same way twice, with their origin beside them."""

import hashlib
import json
import platform
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from factrobust import paths, provenance
from factrobust.provenance import Provenance, save_figure, save_table

REPOSITORY = paths.ROOT
NOTEBOOK = "notebooks/1-decoding/1.2-temperature.ipynb"
NAME = "1-decoding/figure-01"
DATA = pd.DataFrame({"temperature": [0.2, 2.0], "accuracy": [1 / 3, np.nan], "n": [3, 4]})


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(root), *who, *arguments]
    return subprocess.check_output(command, text=True).strip()


def commit(root: Path) -> None:
    git(root, "add", ".")
    git(root, "commit", "-qm", "a commit")


def notebook(code: str, output: str = "") -> str:
    cell = {"cell_type": "code", "source": [code], "outputs": [output]}
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "x"}, cell]})


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository whose one notebook and data file are committed, and a folder for the results."""
    root = tmp_path / "a repository"
    (root / NOTEBOOK).parent.mkdir(parents=True)
    (root / NOTEBOOK).write_text(notebook("1 + 1"))
    (root / "data").mkdir()
    (root / "data" / "facts.csv").write_text("fact_id\n")
    git(tmp_path, "init", "-q", str(root))
    commit(root)
    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setattr(paths, "files_read", [])
    monkeypatch.setattr(paths, "files_of_modules", [])
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path / "staged"))
    return root


def saved() -> dict[str, bytes]:
    """The bytes of the files that were saved, by the ends of their names."""
    folder = paths.output_root() / "figures" / "1-decoding"
    return {file.suffix: file.read_bytes() for file in folder.iterdir()}


def save(data: pd.DataFrame = DATA, seed: int = 0, **about: object) -> dict[str, bytes]:
    """A figure is saved; its files."""
    fig = Figure(figsize=(2, 1))
    fig.subplots().plot([0.2, 2.0], [1, 0], label="smollm2")
    parameters = {"seed": np.int64(seed), "models": ("a", "b")}
    save_figure(fig, NAME, data, provenance=Provenance(parameters, **about))
    return saved()


def origin(files: dict[str, bytes]) -> dict:
    return json.loads(files[".json"])


def test_a_figure_with_its_data_and_its_origin(root):
    toy = SimpleNamespace(name="toy", fingerprint="sha256:00 float32")
    packed = SimpleNamespace(name="packed", fingerprint="sha256:11", stored_as="4-bit (Q4_1)")
    paths.noted(root / "data" / "facts.csv")
    files = save(models=[toy, packed, "endpoint"])
    assert sorted(files) == [".csv", ".json", ".pdf", ".png"]
    assert files[".png"].startswith(b"\x89PNG")
    assert files[".pdf"].startswith(b"%PDF")
    assert files[".csv"] == b"temperature,accuracy,n\n0.2,0.333333,3\n2,,4\n"
    about = origin(files)
    digests = about.pop("files")
    assert digests["figure-01.csv"] == hashlib.sha256(files[".csv"]).hexdigest()
    versions = about.pop("versions")
    assert versions["matplotlib"] == mpl.__version__
    assert versions["python"] == platform.python_version()
    packed_as = "packed sha256:11, of 4-bit (Q4_1) weights"
    assert about == {
        "name": NAME,
        "notebook": NOTEBOOK,
        "parameters": {"seed": 0, "models": ["a", "b"]},
        "models": ["toy sha256:00 float32", packed_as, "endpoint"],
        "inputs": {"data/facts.csv": hashlib.sha256(b"fact_id\n").hexdigest()},
        "git": {"commit": git(root, "rev-parse", "HEAD"), "dirty": False},
    }
    assert not (root / "figures").exists()  # everything went to the staging folder


@pytest.mark.usefixtures("root")
def test_saving_twice_gives_the_same_bytes(monkeypatch):
    first = save()
    monkeypatch.setattr(mpl, "__version__", "0.0.0")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    assert save() == first
    assert b"0.0.0" not in b"".join(first.values())
    assert b"Matplotlib" not in first[".pdf"] + first[".png"]
    assert provenance._version("no such package") == "none"  # as torch in `make read`


def test_an_unchanged_rerun_on_a_later_commit_keeps_the_committed_origin(root, monkeypatch):
    def later(version: str) -> None:
        monkeypatch.setattr(provenance.platform, "python_version", lambda: version)

    def version(files: dict[str, bytes]) -> str:
        return origin(files)["versions"]["python"]

    first = save()
    shutil.copytree(paths.output_root() / "figures", root / "figures")
    commit(root)
    (root / "new.py").write_text("unrelated")
    later("9.9.9")
    assert save() == first
    changed = save(seed=1)
    assert version(changed) == "9.9.9"
    assert origin(changed)["git"] == {"commit": git(root, "rev-parse", "HEAD"), "dirty": True}
    other = DATA.assign(accuracy=[0.5, 0.25])
    assert version(save(other)) == "9.9.9"
    # One that is damaged is replaced, and so is one of a tree that was not committed.
    uncommitted = saved()[".json"]
    later("8.8.8")
    for text in (b"<<<<<<< HEAD", uncommitted):
        (root / "figures" / "1-decoding" / "figure-01.json").write_bytes(text)
        assert version(save(other)) == "8.8.8"


def test_what_makes_the_tree_dirty(root):
    def dirty() -> bool:
        return origin(save())["git"]["dirty"]

    (root / NOTEBOOK).write_text(notebook("1 + 1", output="2"))  # the run's own result
    (root / "figures").mkdir()
    (root / "figures" / "x.png").write_text("new")
    assert not dirty()
    for file in (NOTEBOOK, "data/facts.csv", "notebooks/1-decoding/1.9-new.ipynb"):
        (root / file).write_text(notebook("1 + 2"))
        assert dirty()
        git(root, "checkout", "data", "notebooks")
        git(root, "clean", "-q", "-f", "notebooks")
        assert not dirty()


def test_outside_a_repository_the_commit_is_unknown(root, tmp_path, monkeypatch):
    inside_another = root / "unpacked"
    inside_another.mkdir()
    paths.noted(root / "data" / "facts.csv")
    for place in (tmp_path, inside_another):
        monkeypatch.setattr(paths, "ROOT", place)
        files = save()
        assert origin(files)["git"] == {"commit": None, "dirty": None}
    # No path of the machine is told.
    assert [*origin(files)["inputs"]] == ["facts.csv"]
    assert str(tmp_path).encode() not in files[".json"]


@pytest.mark.usefixtures("root")
def test_a_table_in_three_forms():
    numbers = {"FRS & co": [0.12345678, np.nan], "n": [3, 4], "shown": ["0.50", "1.00"]}
    df = pd.DataFrame({"model": ["a_1", "b|c"]} | numbers)
    assert save_table(df, "1-decoding/table-01", provenance=Provenance({})) is df
    texts = {end: data.decode() for end, data in saved().items()}
    assert texts[".csv"] == "model,FRS & co,n,shown\na_1,0.123457,3,0.50\nb|c,,4,1.00\n"
    first, _, *rows = [re.sub(" +", " ", line) for line in texts[".md"].splitlines()]
    assert first == "| model | FRS & co | n | shown |"
    assert rows == ["| a_1 | 0.123 | 3 | 0.50 |", "| b\\|c | | 4 | 1.00 |"]
    assert r"a\_1 & 0.123 & 3 & 0.50 \\" in texts[".tex"]
    assert r"model & FRS \& co & n & shown \\" in texts[".tex"]
    assert "{lrrl}" in texts[".tex"]
    files = json.loads(texts[".json"])["files"]
    assert {*files} == {"table-01.csv", "table-01.md", "table-01.tex"}


def test_committed_results_come_from_commits(results):
    """Each .json names a commit that exists, of a tree without changes."""
    if git(REPOSITORY, "rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("a shallow clone holds no earlier commits")
    known = git(REPOSITORY, "rev-list", "HEAD").split()
    origins = {path: json.loads(path.read_text("utf-8")) for path in results.rglob("*.json")}
    assert origins
    for path, about in origins.items():
        assert about["git"]["dirty"] is False, path
        assert about["git"]["commit"] in known, path
