"""Fixtures that several folders of tests share; real models are loaded once a session."""

import runpy
from pathlib import Path

import pytest

from factrobust import load_model


@pytest.fixture(scope="session")
def gemma():
    return load_model("gemma-3-270m")


@pytest.fixture(scope="session")
def smollm():
    return load_model("smollm2-135m-instruct")


@pytest.fixture(scope="session")
def toy_model():
    """Builder of a model with known probabilities: see tests/models/toy.py."""
    return runpy.run_path(str(Path(__file__).parent / "models" / "toy.py"))["toy_model"]
