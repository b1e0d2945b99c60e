"""progress: what is shown while a notebook runs."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from factrobust.reproduce.progress import Watcher, spoken


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min"), (125, "2 min 5 s"), (4321, "1 h 12 min")],
)
def test_spoken(seconds: float, words: str) -> None:
    assert spoken(seconds) == words


def test_the_latest_line_is_shown_while_the_block_runs(tmp_path: Path) -> None:
    file, stream = tmp_path / "progress", io.StringIO()
    with Watcher(file, stream, every=0.05):
        time.sleep(0.2)
        file.write_text("sample 1/9\nsample 2/9, 1 min left\n")
        time.sleep(0.2)
    lines = stream.getvalue().splitlines()
    assert lines[0].split() == ["0", "s"]
    assert lines[-1].split() == ["0", "s", "sample", "2/9,", "1", "min", "left"]
