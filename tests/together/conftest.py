"""Facts of one's own, and a store of records that no earlier run has filled."""

import runpy
from pathlib import Path

import pytest

from factrobust.models import records
from factrobust.together import card as cards

CAPITALS = runpy.run_path(str(Path(__file__).with_name("ruled.py")))["CAPITALS"]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setattr(cards, "SURVIVAL", tmp_path / "none.json")
    lines = [f"What is the capital of {name}?,{city},capital" for name, city in CAPITALS.items()]
    path = tmp_path / "mine.csv"
    path.write_text("question,answer,relation\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def new_records(tmp_path, monkeypatch):
    monkeypatch.setenv("FACTROBUST_RECORDS", "fresh")
    monkeypatch.setattr(records, "asked_again", lambda: tmp_path / "again.sqlite")
    records._shared.cache_clear()
    yield
    records._shared.cache_clear()
