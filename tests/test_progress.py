"""Progress for a runner, and silence where it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from factrobust import records as progress


def test_a_runner_reads_the_latest_line_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path))
    monkeypatch.setenv("TQDM_DISABLE", "1")  # as in the runner's kernels
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0)
    with progress.progress_bar("gemma sample", 1200) as advance:
        advance(300)
        advance(900)
    lines = (tmp_path / "progress.txt").read_text().splitlines()
    assert lines[-1].strip() == "gemma sample 1200/1200, 00:00 left"
    progress.announce("2 requests to come")
    assert (tmp_path / "progress.txt").read_text() == "2 requests to come\n"


def test_work_that_does_not_last_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path / "no folder"))  # work goes on all the same
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    with progress.progress_bar("quick work", 10) as advance:
        advance(10)
    assert capsys.readouterr() == ("", "")
    progress.announce("to a person")
    assert capsys.readouterr().err == "to a person\n"
