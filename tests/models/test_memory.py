"""One model at a time in memory, or several small ones."""

import gc
import shutil
from types import SimpleNamespace
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
    """`model` gives a recorded model of so many bytes; `loaded` are the names of those loaded."""
    store = Records(tmp_path / "records.sqlite")

    def model(name, size, weights="some"):
        def load():
            loaded.append(name)
            return toy_model({" Kenya": {" Nairobi": 1.0}})

        fingerprint = f"{weights} of {name}"
        return RecordedModel(store, load, name=name, fingerprint=fingerprint, weight_bytes=size)

    loaded = []
    return SimpleNamespace(model=model, loaded=loaded)


def ask(model, what):
    [answer] = model.generate([f"{what} Kenya"], max_new_tokens=1)
    assert answer.text == " Nairobi"


def in_memory():
    gc.collect()
    return [asking.name for asking in memory.holding]


def test_a_large_model_is_let_go_before_the_next_is_loaded(asked):
    first = asked.model("first", 3 * GB)
    second = asked.model("second", 3 * GB)
    ask(first, "a")
    behind = ref(memory.holding[first])
    ask(second, "a")
    assert in_memory() == ["second"]
    assert behind() is None  # nothing else holds it
    ask(first, "a")  # from the records
    assert in_memory() == ["second"]
    ask(first, "b")
    assert asked.loaded == ["first", "second", "first"]


def test_small_models_stay_together_and_the_longest_unused_goes(asked):
    one = asked.model("one", 0.9 * GB)
    two = asked.model("two", 0.9 * GB)
    three = asked.model("three", 0.9 * GB)
    ask(one, "a")
    ask(two, "a")
    ask(one, "b")
    assert in_memory() == ["two", "one"]
    ask(three, "a")
    assert in_memory() == ["one", "three"]
    assert asked.loaded == ["one", "two", "three"]


def test_two_studies_share_a_model_which_goes_with_the_last(asked):
    one = asked.model("m", 3 * GB)
    again = asked.model("m", 3 * GB)
    changed = asked.model("m", 3 * GB, "other")
    ask(one, "a")
    ask(again, "b")
    assert asked.loaded == ["m"]
    assert memory.holding[one] is memory.holding[again]
    ask(changed, "c")  # of one name, but with other weights
    assert asked.loaded == ["m", "m"]
    assert len(memory.holding) == 1
    del changed
    assert in_memory() == []


@pytest.mark.usefixtures("nothing_held")
def test_a_model_is_gone_before_the_next_is_read(folder, tmp_path, monkeypatch):
    """The whole way from folders: no cache, packed layer or prefix keeps a network or its weights."""
    before = []  # of each network that was read, references to it and its weights
    read = load.read_network

    def noted(*given, **options):
        for references in before:
            assert {reference() for reference in references} == {None}
        network, about = read(*given, **options)
        before.append([ref(network), *map(ref, network.parameters())])
        return network, about

    monkeypatch.setattr(load, "read_network", noted)
    store = Records(tmp_path / "records.sqlite")
    models = []
    for i in range(5):
        copy = shutil.copytree(folder, tmp_path / f"copy-{i}")
        models.append(load_model(str(copy), records=store))
    for i, model in enumerate(models):
        prompts = [f"{i} Kenya"]  # one each: their weights are the same
        [score] = model.score(prompts, [" Nairobi"])
        model.sample(prompts, temperature=1.0, n=2)
        model.temper(prompts, [" Nairobi"], [1.0])
        assert np.exp(score) == pytest.approx([0.8])
    assert len(before) == 5
    # Nor are all tokenizers kept, of which eighteen take as much as two models.
    assert load._tokenizer.cache_info().currsize == 4
