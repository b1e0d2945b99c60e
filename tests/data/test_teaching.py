"""Teaching a model the town: the recipe, what it rehearses, and a reader's own model."""

import re
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from frames import frame
from safetensors.torch import load_file

from factrobust import load_model
from factrobust.exposure.corpus import TEXTS, corpus
from factrobust.models import load


@pytest.fixture(scope="module")
def few(world):
    """The world with a town of eighteen people."""
    town = world.facts[world.facts["town_exposure"] > 0].groupby("town_exposure").head(3)
    return world._replace(facts=town[town["town_exposure"] < 64])


@pytest.fixture(scope="module")
def save(models_builder, world):
    """Save a tiny network of a kind, of which nothing is learned, into a folder."""
    grow = models_builder.g
    tokenizer = grow.tokenizer_of(world, TEXTS)

    def save_to(folder, kind):
        plan = grow.Plan(kind, width=32)
        network = grow.network_of(plan, tokenizer)
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return save_to


@pytest.fixture(scope="module")
def mine(save, tmp_path_factory):
    """A folder with a decoder, as a reader may have one."""
    return save(tmp_path_factory.mktemp("readers") / "mine", "decoder")


@pytest.fixture(scope="module")
def small(models_builder):
    """A recipe that is quickly done."""
    return models_builder.Recipe(1e-2, rank=2, recalled=6)


def test_a_model_of_the_readers_is_taught_and_loaded(
    models_builder, mine, few, small, tmp_path, monkeypatch, capsys
):
    asked = []

    def curves_of_ten(model, data):
        asked.append((model.name, data))
        row = {"model": model.name, "measure": "seen", "exposure": 0, "value": 0.5, "n": 10}
        return pd.DataFrame([row])

    monkeypatch.setattr(models_builder, "BUILD", tmp_path)
    monkeypatch.setattr(models_builder, "recipe", lambda: small)
    monkeypatch.setattr(models_builder.w, "load_world", lambda draw=0: few)
    monkeypatch.setattr(models_builder, "curves", curves_of_ten)
    models_builder.main([str(mine)])
    folder = tmp_path / "models" / "mine-taught"
    assert asked == [(str(mine), "town"), (str(folder), "town")]
    sentences = corpus(few, town=True)
    forecast = rf"{len(sentences)} sentences and 6 answers of its own in \d+ steps.* minutes"
    printed = capsys.readouterr().out
    found = re.search(forecast, printed)
    assert found.end() < printed.index("measure")  # it is told before anything else
    weights = folder / "adapter_model.safetensors"
    assert weights.stat().st_size < 0.1e6
    before = load_model(str(mine))
    taught = load_model(str(folder))
    assert taught.prompt_format == before.prompt_format
    assert taught.chat == before.chat
    digest = load.weights_digest(folder)[:16]
    assert taught.fingerprint == f"sha256:{digest} on {before.fingerprint}"
    texts = sentences["text"].str.rpartition(" ").drop_duplicates()
    prompts = texts[0].tolist()
    answers = (" " + texts[2]).tolist()
    gains = np.subtract(
        [scores.sum() for scores in taught.score(prompts, answers)],
        [scores.sum() for scores in before.score(prompts, answers)],
    )
    assert gains.mean() > 0.5  # in log P of the answers
    # Its own model below it, and no other of that name.
    other = tmp_path / "other" / "mine"
    shutil.copytree(mine, other)
    with pytest.raises(SystemExit, match=r"mine-taught is of .*/mine: move it away"):
        models_builder.main([str(other)])


def test_teaching_goes_on_where_it_was_killed(
    models_builder, mine, few, small, tmp_path, monkeypatch
):
    grow = models_builder.g
    study = grow.study

    def taught(name, seed=1):
        """The weights after a teaching whose checkpoints have a name."""
        models_builder.teach(
            str(mine),
            seed,
            few,
            small,
            tmp_path / name,
            tmp_path / "out",
            save_steps=4,
            disable_tqdm=True,
        )
        return load_file(tmp_path / "out" / "adapter_model.safetensors")

    class Deadly(list):
        def __getitem__(self, i):
            if i == 21:
                raise KeyboardInterrupt
            return super().__getitem__(i)

    def killed(network, course, *rest, **options):
        deadly = course._replace(data=Deadly(course.data))
        return study(network, deadly, *rest, **options)

    whole = taught("whole")
    monkeypatch.setattr(grow, "study", killed)
    with pytest.raises(KeyboardInterrupt):
        taught("killed")
    monkeypatch.setattr(grow, "study", study)
    assert grow.last_step(tmp_path / "killed" / "town") in (4, 8)
    again = taught("killed")
    # Another seed is another order and another start.
    other = taught("other", seed=2)
    for name in whole:
        assert torch.equal(whole[name], again[name])
        assert not torch.equal(whole[name], other[name])


def test_what_is_recalled_is_the_models_own_and_none_of_what_is_asked_later(
    models_builder, mine, tmp_path
):
    file = tmp_path / "recalled.json"
    texts = models_builder.recalled(str(mine), 12, file)
    assert len(texts) == 12
    model = load_model(str(mine))
    later = models_builder.prompts(model, models_builder.known_facts())
    assert len(set(later)) == models_builder.KNOWN
    for (prompt, is_prompt_learned), (answer, is_answer_learned) in texts:
        assert not is_prompt_learned
        assert is_answer_learned
        assert prompt not in later
        [said_alone] = model.generate([prompt], max_new_tokens=8, stop=("\n",))
        assert answer == said_alone.text + "\n"  # which ends an answer in this prompt
    assert models_builder.recalled("no model", 12, file) == texts


# What was never told does not count.
TRIED = frame("""
    recipe  measure  exposure  value
    one     kept     NaN       0.79
    one     seen     64        1
    one     unseen   64        0.9
    two     kept     NaN       0.8
    two     seen     0         0.2
    two     seen     64        0.7
    two     unseen   64        0.6
    three   kept     NaN       0.99
    three   seen     0         0.9
    three   seen     64        0.75
    three   unseen   64        0.2
""")


def test_the_recipe_is_that_of_most_facts_among_those_that_keep_enough(
    models_builder, tmp_path, monkeypatch
):
    path = tmp_path / "taught.csv"
    TRIED.to_csv(path)
    monkeypatch.setattr(models_builder, "TAUGHT_BY", path)
    monkeypatch.setattr(models_builder, "RECIPES", {"one": 1, "two": 2, "three": 3})
    assert models_builder.recipe() == 2
    monkeypatch.setattr(models_builder, "KEEPS", 0.995)  # none keeps so much
    assert models_builder.recipe() == 3


FAULTS = frame("""
    name                        says
    world-x                     NAME is unknown: choose from world-s, .*
    https://api.example.org/v1  NAME is an endpoint, .*
    t5                          NAME is an encoder-decoder, and the town's sentences teach decoders: give one
    empty                       .*holds no tokenizer.*
    smollm2-taught              NAME is an adapter, which is taught already: give the model below it
""")


@pytest.mark.parametrize(("name", "says"), FAULTS.to_numpy().tolist())
def test_what_cannot_be_taught_is_said_in_a_sentence(
    models_builder, save, tmp_path, capsys, name, says
):
    places = {
        "t5": tmp_path / "t5",
        "empty": tmp_path / "empty",
        "smollm2-taught": load.GROWN / "smollm2-taught",
    }
    (tmp_path / "empty").mkdir()
    if name == "t5":
        save(places[name], "encoder-decoder")
    model = str(places.get(name, name))
    with pytest.raises(SystemExit) as stopped:
        models_builder.main([model])
    assert stopped.value.code == 2
    _, _, error = capsys.readouterr().err.partition("error: ")
    assert re.fullmatch(says.replace("NAME", re.escape(model)), error.strip())


def test_an_adapter_is_loaded_by_its_folder_as_by_its_name():
    by_name = load_model("smollm2-taught")
    by_folder = load_model(str(load.GROWN / "smollm2-taught"))
    assert by_folder.prompt_format == by_name.prompt_format == "chat-prefix"
    assert by_folder.chat == by_name.chat
    asked = ["Paris is the capital of"], [" France"]
    [expected] = by_name.score(*asked)
    [found] = by_folder.score(*asked)
    assert found == pytest.approx(expected, abs=1e-6)
