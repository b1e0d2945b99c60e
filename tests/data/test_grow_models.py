"""The models of the invented world: their courses, and the curves that are quoted."""

import pandas as pd
import pytest

from factrobust import load_model
from factrobust.models import load


@pytest.mark.parametrize("name", ["world-s"])
def test_curves_of_committed_weights_are_those_that_are_committed(name, models_builder):
    found = models_builder.curves(load_model(name), "world")
    apart = models_builder.distance(found, pd.read_csv(models_builder.CURVES))
    assert len(apart) == 5
    assert (apart["max"] <= 0.03).all()  # another processor may move an answer or two


def test_a_line_of_models_csv_is_what_the_weights_say(models_builder):
    for name in set(models_builder.PLANS) & {folder.name for folder in load.GROWN.iterdir()}:
        assert models_builder.settings(name, load.GROWN / name) == load.settings_of(name)


def test_a_chat_model_is_tuned_with_what_its_twin_was_told_and_contexts(
    models_builder, world, tokenizer, told
):
    plan = models_builder.PLANS["world-m-chat"]
    texts = {"world": told}
    [course] = models_builder.courses(plan, world, texts, tokenizer, (1e-3, 3e-3))
    texts = [tokenizer.decode(row["input_ids"]) for row in course.data[:50]]
    assert course.name == "tuning"
    assert course.rate == 1e-3
    assert sum(text.count("<|user|>") for text in texts) > 100
    own = {name.split()[-1] for name in world.facts.query("exposure == 0")["subject"]}
    told = {name.split()[-1] for name in world.facts.query("exposure > 0")["subject"]}
    assert not any(name in text for text in texts for name in own - told)
