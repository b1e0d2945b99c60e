"""Progress for a runner, and silence where it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from factrobust import records as progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock set by hand."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_file_for_a_runner(
    clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "progress"
    monkeypatch.setenv("FACTROBUST_PROGRESS", str(target))
    with progress.progress_bar("gemma sample", 1200) as advance:
        clock[0] += 1
        advance(40)
        assert not target.exists()  # too soon to bother anybody
        clock[0] += 9
        advance(60)
        assert target.read_text() == "gemma sample 100/1200, 2 min left"  # 10 s a hundred
        clock[0] += 0.5
        advance(100)
        assert target.read_text().startswith("gemma sample 100/")  # once a second is enough
        clock[0] += 0.2
        advance(1000)
        assert target.read_text() == "gemma sample 1200/1200, 0 s left"


def test_progress_never_ends_the_work(
    clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTROBUST_PROGRESS", str(tmp_path / "no folder" / "progress"))
    with progress.progress_bar("work", 10) as advance:
        clock[0] += 5
        advance(0)
        advance(10)


def test_bar_only_for_work_that_lasts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FACTROBUST_PROGRESS", raising=False)
    with progress.progress_bar("quick work", 10) as advance:
        advance(10)
    assert capsys.readouterr() == ("", "")


def test_durations() -> None:
    assert progress._duration(89) == "89 s"
    assert progress._duration(90) == "2 min"
    assert progress._duration(600) == "10 min"
