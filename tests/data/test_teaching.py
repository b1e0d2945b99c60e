"""Teaching a model the town: the recipe, what it rehearses, and a reader's own model."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from factrobust import load_model
from factrobust.exposure.corpus import TEXTS, corpus
from factrobust.models import load


@pytest.fixture(scope="module")
def few(world):
    """The world with a town of eighteen people."""
    town = world.facts[world.facts["town_exposure"] > 0].groupby("town_exposure").head(3)
    return world._replace(facts=town[town["town_exposure"] < 64])


@pytest.fixture
def mine(models_builder, world, tmp_path, monkeypatch):
    """A folder with a tiny decoder, as a reader may have one; what is built goes beside it."""
    monkeypatch.setattr(models_builder, "BUILD", tmp_path / "build")
    tokenizer = models_builder.g.tokenizer_of(world, TEXTS)
    network = models_builder.g.network_of(models_builder.g.Plan("decoder", width=32), tokenizer)
    for part in (network, tokenizer):
        part.save_pretrained(tmp_path / "mine")
    return tmp_path / "mine"


def small(models_builder, **other):
    return models_builder.Recipe(1e-2, rank=2, recalled=6)._replace(**other)


def weights(folder):
    return load_file(folder / "adapter_model.safetensors")


def test_a_model_of_the_readers_is_taught_and_loaded(
    models_builder, mine, few, monkeypatch, capsys
):
    monkeypatch.setattr(models_builder, "recipe", lambda: small(models_builder))
    monkeypatch.setattr(models_builder.w, "load_world", lambda draw=0: few)
    monkeypatch.setattr(models_builder, "curves", curves := Curves(models_builder.curves))
    models_builder.main([str(mine)])
    said = capsys.readouterr().out
    n = len(corpus(few, town=True))
    forecast = re.search(rf"{n} sentences and 6 answers of its own in \d+ steps.* minutes", said)
    assert forecast
    assert forecast.end() < said.index("measure")  # it is told before anything else
    folder = models_builder.BUILD / "models" / "mine-taught"
    assert curves.asked == [(str(mine), "town"), (str(folder), "town")]
    assert (folder / "adapter_model.safetensors").stat().st_size < 0.1e6
    model = load_model(str(folder))
    before = load_model(str(mine))
    assert model.prompt_format == before.prompt_format
    assert model.chat == before.chat
    digest = load.weights_digest(folder)[:16]
    assert model.fingerprint == f"sha256:{digest} on {before.fingerprint}"
    told = corpus(few, town=True)["text"].str.rpartition(" ").drop_duplicates()
    scores = [m.score([*told[0]], [*(" " + told[2])]) for m in (before, model)]
    untaught, taught = (np.mean([score.sum() for score in some]) for some in scores)
    assert taught > untaught + 0.5  # log P of the answers
    # Its own model below it, and no other of that name.
    (mine.parent / "other").mkdir()
    mine.rename(mine.parent / "other" / "mine")
    with pytest.raises(SystemExit, match=r"mine-taught is of .*/mine: move it away"):
        models_builder.main([str(mine.parent / "other" / "mine")])


class Curves:
    """Notes what is asked for, and asks ten facts alone."""

    def __init__(self, curves):
        self.asked = []

    def __call__(self, model, data):
        self.asked.append((model.name, data))
        rows = {
            "model": model.name,
            "measure": "seen",
            "exposure": [0],
            "value": 0.5,
            "n": 10,
        }
        return pd.DataFrame(rows)


def test_teaching_goes_on_where_it_was_killed(models_builder, mine, few, tmp_path, monkeypatch):
    study = models_builder.g.study
    how = {"save_steps": 4, "disable_tqdm": True}
    given = str(mine), 1, few, small(models_builder)
    models_builder.teach(*given, tmp_path / "a", tmp_path / "whole", **how)

    class Deadly(list):
        def __getitem__(self, i):
            if i == 21:
                raise KeyboardInterrupt
            return super().__getitem__(i)

    def killed(network, course, *rest, **options):
        return study(network, course._replace(data=Deadly(course.data)), *rest, **options)

    monkeypatch.setattr(models_builder.g, "study", killed)
    with pytest.raises(KeyboardInterrupt):
        models_builder.teach(*given, tmp_path / "b", tmp_path / "killed", **how)
    monkeypatch.setattr(models_builder.g, "study", study)
    assert models_builder.g.last_step(tmp_path / "b" / "town") in (4, 8)
    models_builder.teach(*given, tmp_path / "b", tmp_path / "killed", **how)
    whole = weights(tmp_path / "whole")
    again = weights(tmp_path / "killed")
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    # Another seed is another order and another start.
    models_builder.teach(str(mine), 2, *given[2:], tmp_path / "c", tmp_path / "other", **how)
    other = weights(tmp_path / "other")
    assert not any(torch.equal(whole[name], other[name]) for name in whole)


def test_what_is_recalled_is_the_models_own_and_none_of_what_is_asked_later(
    models_builder, mine, tmp_path
):
    texts = models_builder.recalled(str(mine), 12, tmp_path / "recalled.json")
    model = load_model(str(mine))
    later = {*models_builder.prompts(model, models_builder.known_facts())}
    assert len(later) == models_builder.KNOWN
    for (prompt, learned), (answer, answered) in texts:
        assert not learned
        assert answered
        assert prompt not in later
        [own] = model.generate([prompt], max_new_tokens=8, stop=("\n",))
        assert answer == own.text + "\n"  # which ends an answer in this prompt
    assert models_builder.recalled("no model", 12, tmp_path / "recalled.json") == texts


def test_the_recipe_is_that_of_most_facts_among_those_that_keep_enough(
    models_builder, tmp_path, monkeypatch
):
    def lines(recipe, kept, *right):
        yield recipe, "kept", None, kept
        for exposure, value in zip((0, 1, 64), right, strict=True):
            yield recipe, "seen", exposure, value
            yield recipe, "unseen", exposure, value - 0.1

    one = "one"
    two = "two"
    three = "three"
    recipes = {name: models_builder.Recipe(k) for k, name in enumerate((one, two, three))}
    monkeypatch.setattr(models_builder, "RECIPES", recipes)
    rows = [*lines(one, 0.79, 0.2, 0.9, 1), *lines(two, 0.8, 0.2, 0.5, 0.9)]
    rows += [*lines(three, 0.99, 0.9, 0.5, 0.8)]  # what was never told does not count
    pd.DataFrame(rows, columns=["recipe", "measure", "exposure", "value"]).to_csv(
        tmp_path / "taught.csv"
    )
    monkeypatch.setattr(models_builder, "TAUGHT_BY", tmp_path / "taught.csv")
    assert models_builder.recipe() == models_builder.RECIPES[two]
    monkeypatch.setattr(models_builder, "KEEPS", 0.995)  # none keeps so much
    assert models_builder.recipe() == models_builder.RECIPES[three]


def test_what_cannot_be_taught_is_said_in_a_sentence(models_builder, mine, world, tmp_path, capsys):
    def fault(name):
        with pytest.raises(SystemExit) as stopped:
            models_builder.main([str(name)])
        assert stopped.value.code == 2
        return capsys.readouterr().err.partition("error: ")[2].strip()

    assert fault("world-x").startswith("world-x is unknown: choose from world-s, ")
    assert fault("https://api.example.org/v1").startswith(
        "https://api.example.org/v1 is an endpoint"
    )
    tokenizer = models_builder.g.tokenizer_of(world, TEXTS)
    plan = models_builder.g.Plan("encoder-decoder", width=32, layers=1)
    for part in (models_builder.g.network_of(plan, tokenizer), tokenizer):
        part.save_pretrained(tmp_path / "t5")
    assert fault(tmp_path / "t5") == (
        f"{tmp_path / 't5'} is an encoder-decoder, and the town's sentences teach decoders: give one"
    )
    (tmp_path / "empty").mkdir()
    assert "holds no tokenizer" in fault(tmp_path / "empty")
    taught = load.GROWN / "smollm2-taught"
    assert (
        fault(taught) == f"{taught} is an adapter, which is taught already: give the model below it"
    )


def test_an_adapter_is_loaded_by_its_folder_as_by_its_name():
    by_name, by_folder = (
        load_model(x) for x in ("smollm2-taught", str(load.GROWN / "smollm2-taught"))
    )
    assert by_folder.prompt_format == by_name.prompt_format == "chat-prefix"
    assert by_folder.chat == by_name.chat
    [a], [b] = (m.score(["Paris is the capital of"], [" France"]) for m in (by_name, by_folder))
    assert a == pytest.approx(b, abs=1e-6)
