"""summary: what a reader learns about moved numbers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from factrobust.reproduce.summary import committed, describe, main, present, summarise

TABLE = "figures/1/table-01.csv"
OTHER = "figures/1/figure-01.csv"
BOOK = "notebooks/1.ipynb"


def book(text: str) -> bytes:
    outputs = [{"output_type": "stream", "name": "stdout", "text": [text]}]
    return json.dumps({"cells": [{"cell_type": "code", "outputs": outputs}]}).encode()


OLD = {
    TABLE: b"model,frs\ngemma,0.5\nsmollm,10.0\n",
    OTHER: b"x\n1.0\n",
    BOOK: book("FRS 0.5\n"),
}


def test_the_largest_moves_are_found_and_placed() -> None:
    new = OLD | {TABLE: b"model,frs\ngemma,0.6\nsmollm,10.5\n", BOOK: book("FRS 0.6\n")}
    lines = describe(summarise(OLD, new), "commit abc")
    assert lines == [
        "Compared with commit abc: 3 numbers in 2 tables, 1 notebook.",
        f"2 numbers in 1 table moved by more than 1e-06 (relative): {TABLE}.",
        f"Largest relative move: {TABLE}, row 1 (gemma), column frs: 0.5 -> 0.6, 0.2 relative.",
        f"Largest absolute move: {TABLE}, row 2 (smollm), column frs: 10 -> 10.5, 0.05 relative.",
        f"Text outputs changed: {BOOK}.",
    ]


def test_jitter_is_no_move() -> None:
    new = OLD | {OTHER: b"x\n1.0000000001\n", BOOK: book("FRS 0.5000000001\n")}
    lines = describe(summarise(OLD, new), "commit abc")
    assert len(lines) == 2
    assert lines[1] == "No number moved by more than 1e-06 (relative)."


def test_new_lost_and_reshaped_tables_are_named() -> None:
    new = {TABLE: b"model,frs\ngemma,0.5\n", "figures/new.csv": b"x\n1\n", BOOK: OLD[BOOK]}
    text = "\n".join(describe(summarise(OLD, new), "x"))
    assert f"{TABLE}, rows: 2 -> 1." in text
    assert "New: figures/new.csv." in text
    assert f"No longer there: {OTHER}." in text


def test_the_baseline_is_the_last_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "my repo"
    for path, content in OLD.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    assert committed(root) is None
    assert main(root) == 1

    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=root, check=True
        )

    git("init", "-q")
    assert committed(root) is None  # a checkout without a commit
    git("add", ".")
    git("commit", "-q", "-m", "results")
    found = committed(root)
    assert found is not None
    assert found[1] == OLD == present(root)
    assert committed(root / "figures") is None  # not the top of the checkout
    (root / OTHER).write_text("x\n2.0\n")
    capsys.readouterr()
    assert main(root) == 0
    assert "column x: 1 -> 2" in capsys.readouterr().out
