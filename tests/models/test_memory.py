"""One model at a time in memory, or several small ones."""

import gc
import shutil
from typing import Any
from weakref import ref

import numpy as np
import pytest

from factrobust import load_model
from factrobust.models import load, memory
from factrobust.models.interface import RecordedModel
from factrobust.models.records import Records

GB = 1e9


@pytest.fixture
def nothing_held(monkeypatch):
    """As in a new process: what other tests hold does not count, and is not looked through each time
    that circles of objects are freed."""
    monkeypatch.setattr(memory, "holding", type(memory.holding)())
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def asked(toy_model, tmp_path, nothing_held):
    """A function that gives a recorded model of so many bytes, and notes each time that it is loaded."""
    store = Records(tmp_path / "records.sqlite")

    class Asked:
        def __init__(self) -> None:
            self.loaded: list[str] = []

        def model(self, name: str, size: float, fingerprint: str = "toy") -> RecordedModel:
            about = {"name": name, "fingerprint": f"{fingerprint} of {name}", "chat": None}
            about |= {"prompt_format": "prefix", "weight_bytes": size}

            def load() -> Any:
                self.loaded.append(name)
                return toy_model({" Kenya": {" Nairobi": 1.0}}, **about)

            return RecordedModel(store, load, **about)

        def ask(self, model: RecordedModel, what: str) -> None:
            [answer] = model.generate([f"{what} Kenya"], max_new_tokens=1)
            assert answer.text == " Nairobi"

    return Asked()


def in_memory() -> list[str]:
    gc.collect()
    return [asking.name for asking in memory.holding]


def test_a_large_model_is_let_go_before_the_next_is_loaded(asked):
    first = asked.model("first", 3 * GB)
    second = asked.model("second", 3 * GB)
    asked.ask(first, "a")
    behind = ref(memory.holding[first])
    asked.ask(second, "a")
    assert in_memory() == ["second"]
    assert behind() is None  # nothing else holds it
    asked.ask(first, "a")  # from the records
    assert in_memory() == ["second"]
    asked.ask(first, "b")
    assert asked.loaded == ["first", "second", "first"]


def test_small_models_stay_together_and_the_longest_unused_goes(asked):
    one, two, three = (asked.model(name, 0.9 * GB) for name in ("one", "two", "three"))
    asked.ask(one, "a")
    asked.ask(two, "a")
    asked.ask(one, "b")
    assert in_memory() == ["two", "one"]
    asked.ask(three, "a")
    assert in_memory() == ["one", "three"]
    assert asked.loaded == ["one", "two", "three"]


def test_two_studies_share_a_model_which_goes_with_the_last(asked):
    one, again, changed = (asked.model("m", 3 * GB, print_) for print_ in ("a", "a", "b"))
    asked.ask(one, "a")
    asked.ask(again, "b")
    assert asked.loaded == ["m"]
    assert memory.holding[one] is memory.holding[again]
    asked.ask(changed, "c")  # of one name, but with other weights
    assert asked.loaded == ["m", "m"]
    assert len(memory.holding) == 1
    del changed
    assert in_memory() == []


@pytest.mark.usefixtures("nothing_held")
def test_a_model_is_gone_before_the_next_is_read(folder, tmp_path, monkeypatch):
    """The whole way from folders: no cache, packed layer or prefix keeps a network or its weights."""
    before = []
    read = load.read_network

    def reading(*args: Any, **options: Any) -> Any:
        assert not [what for what in before if what() is not None]
        network, about = read(*args, **options)
        before.extend([ref(network), *map(ref, network.parameters())])
        return network, about

    monkeypatch.setattr(load, "read_network", reading)
    store = Records(tmp_path / "records.sqlite")
    copies = [shutil.copytree(folder, tmp_path / f"copy-{i}") for i in range(3)]
    models = [load_model(str(copy), records=store) for copy in copies]
    for i, model in enumerate(models):  # a prompt each: their weights are the same
        [score] = model.score([f"{i} Kenya"], [" Nairobi"])
        model.sample([f"{i} Kenya"], temperature=1.0, n=2)
        model.temper([f"{i} Kenya"], [" Nairobi"], [1.0])
        assert np.exp(score) == pytest.approx([0.8])
    assert len({id(what) for what in before}) > len(models)
