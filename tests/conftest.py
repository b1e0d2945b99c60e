"""Fixtures that several folders of tests share; real models are loaded once a session."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    spec = importlib.util.spec_from_file_location(
        "toy", Path(__file__).parent / "models" / "toy.py"
    )
    assert spec is not None
    assert spec.loader is not None
    toy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(toy)
    build: Callable[..., Any] = toy.toy_model
    return build
