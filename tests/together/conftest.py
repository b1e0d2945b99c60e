"""Facts of one's own."""

import runpy
from pathlib import Path

import pytest

CAPITALS = runpy.run_path(str(Path(__file__).with_name("ruled.py")))["CAPITALS"]


@pytest.fixture
def mine(tmp_path):
    lines = [f"What is the capital of {name}?,{city},capital" for name, city in CAPITALS.items()]
    path = tmp_path / "mine.csv"
    path.write_text("question,answer,relation\n" + "\n".join(lines) + "\n")
    return path
