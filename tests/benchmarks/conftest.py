"""The scripts of benchmarks/, which are no package."""

import importlib
from pathlib import Path

import pytest


@pytest.fixture
def bench(request, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    name = request.path.stem.removeprefix("test_")
    return importlib.import_module("measuring.report" if name == "report" else name)
