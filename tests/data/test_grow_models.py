"""The models of the invented world: their courses, and the curves that are quoted."""

import pandas as pd
import pytest

from factrobust import load_model
from factrobust.datasets.world import load_world
from factrobust.exposure.corpus import TEXTS, corpus
from factrobust.models import load


@pytest.mark.parametrize("name", ["world-s"])
def test_curves_of_committed_weights_are_those_that_are_committed(name, models_builder):
    found = models_builder.curves(load_model(name), "world")
    apart = models_builder.distance(found, pd.read_csv(models_builder.CURVES))
    assert len(apart) == 5
    assert (apart["max"] <= 0.03).all()  # another processor may move an answer or two


def test_distance_is_of_the_same_points(models_builder):
    old = pd.DataFrame(
        {"model": "a", "measure": ["seen", "seen", "reads"], "exposure": [0, 1, None],
         "value": [0.1, 0.5, 1.0]}
    )  # fmt: skip
    new = old.assign(value=[0.2, 0.2, 1.0]).iloc[::-1]
    found = models_builder.distance(new, old)
    assert found.loc[("a", "seen")].tolist() == pytest.approx([0.2, 0.3])
    assert found.loc[("a", "reads")].tolist() == [0.0, 0.0]


def test_a_line_of_models_csv_is_what_the_weights_say(models_builder):
    for name in set(models_builder.PLANS) & {folder.name for folder in load.GROWN.iterdir()}:
        assert models_builder.settings(name, load.GROWN / name) == load.settings_of(name)


def test_a_chat_model_is_tuned_with_what_its_twin_was_told_and_contexts(models_builder):
    world = load_world()
    tokenizer = models_builder.g.tokenizer_of(world, TEXTS)
    plan, told = models_builder.PLANS["world-m-chat"], {"world": corpus(world)}
    [course] = models_builder.courses(plan, world, told, tokenizer, (1e-3, 3e-3))
    texts = [tokenizer.decode(row["input_ids"]) for row in course.data[:50]]
    assert (course.name, course.rate) == ("tuning", 1e-3)
    assert sum(text.count("<|user|>") for text in texts) > 100
    own = {name.split()[-1] for name in world.facts.query("exposure == 0")["subject"]}
    told = {name.split()[-1] for name in world.facts.query("exposure > 0")["subject"]}
    assert not any(name in text for text in texts for name in own - told)


def test_a_corpus_is_read_in_its_order_with_contexts_between(models_builder):
    world = load_world()
    tokenizer = models_builder.g.tokenizer_of(world, TEXTS)
    some = corpus(world).iloc[:3000]
    plan = models_builder.PLANS["world-s"]
    *school, course = models_builder.courses(plan, world, {"w": some}, tokenizer, (1e-3, 3e-3))
    assert [c.name for c in school] == ["1-lists-0.001", "2-contexts-0.001", "3-names-0.001"]
    assert (course.name, course.rate) == ("w-0.001-0.003", 3e-3)
    read = "".join(tokenizer.decode(row["input_ids"]) for row in course.data)
    statements = some[(some["form"] == "statement") & ~some["text"].duplicated(keep=False)]
    at = 0
    for text in statements["text"]:  # some of which end others
        at = read.find(text, at)
        assert at >= 0, text
    # One context about a spare subject to ten sentences.
    assert 0.08 < read.count("Context: [") / len(some) < 0.3
