"""The command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from factrobust.records.__main__ import main


def test_command_line(path: Path, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--store", str(path), "--folder", str(base)]
    assert main([*where, "export"]) == 0
    assert capsys.readouterr().out.startswith("2 files, 0.0 MB, in ")
    assert main([*where, "verify"]) == 0
    assert f"{path}: 179 calls, all sound" in capsys.readouterr().out
    assert main([*where, "info"]) == 0
    shown = capsys.readouterr().out
    assert "sha256:a5fd3b62230aa5ec float32, score: 50 calls" in shown
    assert "notebooks/1-decoding/1.1-known-facts.ipynb: uses 50 calls" in shown
    assert "a5fd3b62230aa5ec-float32.generate.00.parquet: 30 calls" in shown
    assert main([*where, "repair"]) == 0
    assert capsys.readouterr().out.startswith("179 calls saved")
    path.write_text("nothing of the kind " * 300)
    assert main([*where, "verify"]) == 1
    assert "is not a records file" in capsys.readouterr().err


def test_the_package_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "factrobust.records", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "{export,verify,info,repair}" in done.stdout
