"""The plan of a tiny profile, by hand; the repository's own profiles; bad requests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from factrobust import paths
from factrobust.models import load
from factrobust.models.load import COLUMNS
from factrobust.plan.__main__ import main

NOTEBOOK = """models: list = ["tiny"]
data: str = "timestress"
n_facts: int = 72
n_correct: int = 3
n_incorrect: int = 6
seed: int = 0
"""
LINE = "tiny,float32,auto,512,two-shot,no,decoder,1000000000,4,2,64,1000,10000,yes,"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one notebook, one profile and a table of one model."""
    notebook = tmp_path / "notebooks" / "2-time" / "2.2-win-rate.ipynb"
    notebook.parent.mkdir(parents=True)
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": NOTEBOOK}
    notebook.write_text(json.dumps({"cells": [cell]}))
    (tmp_path / "profiles").mkdir()
    (tmp_path / "models.csv").write_text(f"{','.join(COLUMNS)}\n{LINE}\n")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "profiles")
    monkeypatch.setattr(load, "FILE", tmp_path / "models.csv")
    return tmp_path


def profile(root: Path, text: str) -> None:
    (root / "profiles" / "mine.yaml").write_text(text)


def row(out: str, name: str) -> list[str]:
    """The cells of a model's line."""
    [line] = [line for line in out.splitlines() if line.startswith(f"{name} ")]
    return re.split(r"\s{2,}", line)


def test_a_tiny_profile(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile(root, "defaults:\n  n_facts: 1000\n")
    assert main(["--profile", "mine", "--tflops", "0.01", "--bandwidth", "1e6"], root) == 0
    out = capsys.readouterr().out
    # 1,000 facts x 3 precisions x (3 + 6 + 1.74) dates, of (78 + 13) / 3.7 tokens.
    # Memory: 4 GB of weights; 512 // 24.6 = 20 prompts with 24.6 keys of 2 x 4 x 2 x 64 x 4 bytes
    # are 2 MB, 3 x 64 logits of 10,000 x 4 bytes are 8 MB.
    # Time: 2 x 0.99e9 x 32,220 x 21.08 operations and 2 x 1e9 x 32,220 x 3.51 at 1e10 a second
    # are 134,490 s and 22,641 s.
    assert row(out, "tiny") == ["tiny", "-", "-", "32,220", "-", "0.8 M", "4.0 GB", "44"]
    assert row(out, "all")[3:] == ["32,220", "-", "0.8 M", "44"]
    assert "a device that achieves 0.01 TFLOP/s and reads 1e+06 GB of memory a second" in out


def test_what_cannot_be_estimated(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    endpoint = "http://localhost:8000/v1 llama api=completions"
    profile(root, f"defaults:\n  models: [org/new, '{endpoint}']\n")
    assert main(["--profile", "mine"], root) == 0
    out = capsys.readouterr().out
    # 72 facts x 3 x 10.74
    assert row(out, "org/new")[3:] == ["2,320", "-", "0.1 M", "unknown", "unknown"]
    assert row(out, endpoint)[3:] == ["2,320", "-", "0.1 M", "unknown", "unknown"]
    assert (
        "- org/new: memory and hours are unknown, and tokens those of a two-shot prompt, for "
        "data/models.csv has no line for it; add one.\n"
    ) in out
    assert f"- {endpoint}: memory and hours are those of the server.\n" in out


def test_what_is_left_out(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = root / "models.csv"
    part = LINE.replace("tiny,", "part,").replace(",1000000000,", ",,")
    table.write_text(f"{table.read_text()}{part}\n")
    profile(root, "defaults:\n  models: [part]\n")
    notebook = root / "notebooks" / "2-time" / "2.2-win-rate.ipynb"
    (notebook.parent / "2.9-new.ipynb").write_text(notebook.read_text())
    text = notebook.read_text().replace("timestress", "mine")
    (notebook.parent / "2.3-robustness.ipynb").write_text(text)
    assert main(["--profile", "mine"], root) == 0
    out = capsys.readouterr().out
    assert "- part: memory and hours are unknown, for its sizes in data/models.csv are not c" in out
    assert "- notebooks/2-time/2.9-new.ipynb is left out: no rule says what it asks" in out
    assert "- notebooks/2-time/2.3-robustness.ipynb is left out: the size of 'mine' is not" in out
    assert row(out, "part")[3:] == ["2,320", "-", "0.1 M", "unknown", "unknown"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, r"There is no profile 'mine': known are laptop; a new one is a file mine\.yaml"),
        (
            "defaults:\n  n_fact: 9\n",
            r"declares a parameter 'n_fact' \(nearest: n_facts\); correct",
        ),
        ("defaults:\n  models: ['ftp://x llama']\n", "an endpoint begins with its URL"),
        (
            "defaults:\n  n_facts: many\n",
            "'n_facts' is 'many', but .* needs a value like its defau",
        ),
    ],
)
def test_bad_requests_are_one_sentence(
    root: Path, capsys: pytest.CaptureFixture[str], text: str | None, sentence: str
) -> None:
    if text:
        profile(root, text)
    assert main(["--profile", "mine"], root) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert re.search(sentence, told.err)
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("option", ["--tflops=0", "--bandwidth=fast", "--known=1.5"])
def test_bad_options(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([option])
    assert stopped.value.code == 2
    assert option.partition("=")[0] in capsys.readouterr().err


@pytest.mark.parametrize("name", ["laptop", *sorted(p.stem for p in paths.PROFILES.glob("*.yaml"))])
def test_the_repositorys_profiles_are_planned_whole(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--profile", name]) == 0
    out = capsys.readouterr().out
    assert "is left out" not in out
    assert "no line for it" not in out


def test_the_papers_models_are_all_there() -> None:
    import yaml

    sections = yaml.safe_load((paths.PROFILES / "paper.yaml").read_text())["notebooks"]
    counts = {glob: len(own["models"]) for glob, own in sections.items()}
    # Paper 1's fifth is an endpoint, which the notebooks that temper cannot ask.
    assert counts == {
        "1-decoding/*": 4,
        "1-decoding/1.[1-4]-*": 5,
        "2-time/*": 18,
        "3-wording/*": 5,
        "4-context/*": 4,
    }


def test_neither_torch_nor_transformers_is_imported() -> None:
    code = (
        "import sys; from factrobust.plan.__main__ import main; main([]); "
        "print([m for m in ('torch', 'transformers', 'huggingface_hub') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
