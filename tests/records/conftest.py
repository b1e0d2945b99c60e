"""A store in a folder of the test's own, and records of a toy model to put into it."""

import json
from pathlib import Path

import pytest
from export_records import export

from factrobust.records import Call, Records

NOTEBOOK = "notebooks/1-decoding/1.1-known-facts.ipynb"
OTHER = "notebooks/other.ipynb"
MODEL = "sha256:a5fd3b62230aa5ec float32"


class Toy:
    """Calls 0, 1, 2... of a model, and a store that holds some."""

    @staticmethod
    def calls(n: int, model: str = MODEL, operation: str = "score") -> list[Call]:
        return [
            Call(model, operation, f"Question {i}:\nÄ\x00\t", json.dumps({"i": i}))
            for i in range(n)
        ]

    def filled(self, path: Path, n: int) -> Records:
        store = Records(path)
        store.put(self.calls(n), [{"text": f"value {i}", "logprobs": [i / 7]} for i in range(n)])
        return store


@pytest.fixture
def toy():
    return Toy()


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A working file that does not exist yet, in a folder that does not either."""
    for name in ("FACTROBUST_NOTEBOOK", "FACTROBUST_PROFILE", "FACTROBUST_RECORDS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "a folder" / "records.sqlite"


@pytest.fixture
def base(path, toy, monkeypatch):
    """A committed folder with 50 score and 30 generate calls, values 0, 1, 2..."""
    store = Records(path)
    store.put(toy.calls(99, operation="unused"), [0] * 99)  # by nobody's notebook
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    store.put(toy.calls(50), list(range(50)))
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", OTHER)
    store.put(toy.calls(30, operation="generate"), list(range(30)))
    store.get(toy.calls(5))
    monkeypatch.delenv("FACTROBUST_NOTEBOOK")
    folder = path.parent / "committed"
    export(path, folder)
    return folder
