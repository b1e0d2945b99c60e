"""The models of the invented world: their courses, and the curves that are quoted."""

import pandas as pd
import pytest

from factrobust import load_model
from factrobust.models import load


@pytest.mark.parametrize("name", ["world-s"])
def test_curves_of_committed_weights_are_those_that_are_committed(name, models_builder):
    model = load_model(name)
    found = models_builder.curves(model, "world")
    committed = pd.read_csv(models_builder.CURVES)
    difference = models_builder.distance(found, committed)
    assert len(difference) == 5
    assert (difference["max"] <= 0.03).all()  # another processor may move an answer or two


def test_a_line_of_models_csv_is_what_the_weights_say(models_builder):
    for folder in load.GROWN.iterdir():
        if folder.name in models_builder.PLANS:
            settings = models_builder.settings(folder.name, folder)
            assert settings == load.settings_of(folder.name)


def test_a_chat_model_is_tuned_with_what_its_twin_was_told_and_contexts(
    models_builder, world, tokenizer, world_sentences
):
    plan = models_builder.PLANS["world-m-chat"]
    rates = (1e-3, 3e-3)
    [course] = models_builder.courses(plan, world, {"world": world_sentences}, tokenizer, rates)
    assert course.name == "tuning"
    assert course.rate == 1e-3
    rows = [row["input_ids"] for row in course.data[:50]]
    text = "\n".join(tokenizer.batch_decode(rows))
    assert text.count("<|user|>") > 100
    last_name = world.facts["subject"].str.split().str[-1]
    is_told = world.facts["exposure"] > 0
    never = set(last_name) - set(last_name[is_told])
    assert never
    assert not [name for name in never if name in text]
