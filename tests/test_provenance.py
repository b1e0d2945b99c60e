"""Figures and tables are saved the same way twice, with their origin beside them."""

import hashlib
import json
import shutil
import subprocess
import sys
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
    return subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


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
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setattr(paths, "files_read", [])
    monkeypatch.setattr(paths, "files_of_modules", [])
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path / "staged"))
    return root


def figure() -> Figure:
    fig = Figure(figsize=(2, 1))
    fig.subplots().plot([0.2, 2.0], [1, 0], label="smollm2")
    return fig


def save(**changes: object) -> dict[str, bytes]:
    about = {"parameters": {"seed": np.int64(0), "models": ("a", "b")}} | changes
    save_figure(figure(), NAME, DATA, provenance=Provenance(**about))
    folder = paths.output_root() / "figures" / "1-decoding"
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def sidecar(files: dict[str, bytes]) -> dict:
    return json.loads(files["figure-01.json"])


def test_a_figure_with_its_data_and_its_origin(root):
    toy = SimpleNamespace(name="toy", fingerprint="sha256:00 float32")
    paths.noted(root / "data" / "facts.csv")
    packed = SimpleNamespace(
        name="packed",
        fingerprint="sha256:11 float32",
        stored_as="4-bit (Q4_1)",
    )
    files = save(models=[toy, packed, "endpoint"])
    assert sorted(files) == [f"figure-01.{end}" for end in ("csv", "json", "pdf", "png")]
    assert files["figure-01.png"].startswith(b"\x89PNG")
    assert files["figure-01.pdf"].startswith(b"%PDF")
    assert files["figure-01.csv"] == b"temperature,accuracy,n\n0.2,0.333333,3\n2,,4\n"
    about = sidecar(files)
    assert about["notebook"] == NOTEBOOK
    assert about["parameters"] == {"seed": 0, "models": ["a", "b"]}
    assert about["models"] == [
        "toy sha256:00 float32",
        "packed sha256:11 float32, of 4-bit (Q4_1) weights",
        "endpoint",
    ]
    assert about["inputs"] == {"data/facts.csv": hashlib.sha256(b"fact_id\n").hexdigest()}
    csv = hashlib.sha256(files["figure-01.csv"]).hexdigest()
    assert about["files"]["figure-01.csv"] == csv
    assert about["git"] == {"commit": git(root, "rev-parse", "HEAD"), "dirty": False}
    assert about["versions"]["matplotlib"] == mpl.__version__
    assert about["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert not (root / "figures").exists()  # everything went to the staging folder


def test_saving_twice_gives_the_same_bytes(root, monkeypatch):
    first = save()
    monkeypatch.setattr(mpl, "__version__", "0.0.0")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    assert save() == first
    assert b"0.0.0" not in b"".join(first.values())
    assert b"Matplotlib" not in first["figure-01.pdf"] + first["figure-01.png"]
    assert provenance._version("no such package") == "none"  # as torch in `make read`


def test_an_unchanged_rerun_on_a_later_commit_keeps_the_committed_origin(root, monkeypatch):
    first = save()
    shutil.copytree(paths.output_root() / "figures", root / "figures")
    git(root, "add", ".")
    git(root, "commit", "-qm", "figures")
    (root / "new.py").write_text("unrelated")
    monkeypatch.setattr(provenance.platform, "python_version", lambda: "9.9.9")
    assert save() == first
    changed = sidecar(save(parameters={"seed": 1}))
    assert changed["versions"]["python"] == "9.9.9"
    assert changed["git"] == {"commit": git(root, "rev-parse", "HEAD"), "dirty": True}
    monkeypatch.setattr(sys.modules[__name__], "DATA", DATA.assign(accuracy=[0.5, 0.25]))
    about = sidecar(save())
    assert about["files"] != sidecar(first)["files"]
    # One that is damaged is replaced, and so is one of a tree that was not committed.
    monkeypatch.setattr(provenance.platform, "python_version", lambda: "8.8.8")
    for text in ("<<<<<<< HEAD", json.dumps(about)):
        (root / "figures" / "1-decoding" / "figure-01.json").write_text(text)
        assert sidecar(save())["versions"]["python"] == "8.8.8"


def test_what_makes_the_tree_dirty(root):
    def dirty() -> bool:
        return sidecar(save(parameters={}))["git"]["dirty"]

    (root / NOTEBOOK).write_text(notebook("1 + 1", output="2"))  # the run's own result
    (root / "figures").mkdir()
    (root / "figures" / "x.png").write_text("new")
    assert not dirty()
    (root / NOTEBOOK).write_text(notebook("1 + 2"))
    assert dirty()
    (root / NOTEBOOK).write_text(notebook("1 + 1"))
    assert not dirty()
    for file in ("data/facts.csv", "notebooks/1-decoding/1.9-new.ipynb"):
        (root / file).write_text("changed\n")
        assert dirty()
        git(root, "checkout", "data")


def test_outside_a_repository_the_commit_is_unknown(root, tmp_path, monkeypatch):
    inside_another = root / "unpacked"
    inside_another.mkdir()
    for place in (tmp_path, inside_another):
        monkeypatch.setattr(paths, "ROOT", place)
        paths.noted(root / "data" / "facts.csv")
        text = save()
        about = sidecar(text)
        assert about["git"] == {"commit": None, "dirty": None}
    # No path of the machine is told.
    assert list(about["inputs"]) == ["facts.csv"]
    assert str(tmp_path) not in text["figure-01.json"].decode()


def test_a_table_in_three_forms(root):
    numbers = {"FRS & co": [0.12345678, np.nan], "n": [3, 4], "shown": ["0.50", "1.00"]}
    df = pd.DataFrame({"model": ["a_1", "b|c"]} | numbers)
    assert save_table(df, "1-decoding/table-01", provenance=Provenance({})) is df
    folder = paths.output_root() / "figures" / "1-decoding"
    csv = "model,FRS & co,n,shown\na_1,0.123457,3,0.50\nb|c,,4,1.00\n"
    assert (folder / "table-01.csv").read_bytes() == csv.encode()
    lines = (folder / "table-01.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert cells[0] == ["model", "FRS & co", "n", "shown"]
    assert cells[2:] == [["a_1", "0.123", "3", "0.50"], ["b\\|c", "", "4", "1.00"]]
    latex = (folder / "table-01.tex").read_text()
    assert r"a\_1 & 0.123 & 3 & 0.50 \\" in latex
    assert r"model & FRS \& co & n & shown \\" in latex
    assert "{lrrl}" in latex
    files = json.loads((folder / "table-01.json").read_text())["files"]
    assert set(files) == {"table-01.csv", "table-01.md", "table-01.tex"}


def test_committed_results_come_from_commits(results):
    """Each .json names a commit that exists, of a tree without changes."""
    if git(REPOSITORY, "rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("a shallow clone holds no earlier commits")
    origins = {
        path.name: json.loads(path.read_text("utf-8"))["git"]
        for path in results.glob("figures/**/*.json")
    }
    assert origins
    assert [name for name, origin in origins.items() if origin["dirty"] is not False] == []
    known = set(git(REPOSITORY, "rev-list", "HEAD").split())
    assert [name for name, origin in origins.items() if origin["commit"] not in known] == []
