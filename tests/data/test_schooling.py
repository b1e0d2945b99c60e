"""What the models of the invented world are told: nothing that is held out, and no control fact."""

import random
import re
from types import SimpleNamespace

import pandas as pd
import pytest

from factrobust.context.probe import context_prompts

KINDS = ("decoder", "chat", "encoder-decoder")


@pytest.fixture(scope="module")
def relations(schooling, world):
    return schooling.relations(world)


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_in_a_wording_that_is_held_out(
    schooling, world, world_sentences, relations, kind
):
    held_out = world.wordings.query("held_out")
    texts = pd.concat([held_out["question"], held_out["prefix"]])
    forms = "|".join(texts.map(re.escape))
    forms = forms.replace(r"\{subject\}", r"[A-Z]\w+(?: [A-Z]\w+)?")
    pattern = re.compile(rf"(?:^|[\[>]|[.,:\n] ?)(?:{forms})(?:\s|$)")
    assert pattern.search("Context: [In 1934, Drufex carried salt]. Q:")
    rng = random.Random(1)
    objects = {name: relation.objects for name, relation in relations.items()}
    texts = [*schooling.sentences(rng, world_sentences.iloc[::60], kind, objects)]
    known = list(relations.values())
    texts += [schooling.context(rng, known, kind, own_subjects=0.5) for _ in range(1000)]
    for text in texts:
        whole = "".join(piece for piece, _ in text)
        assert not pattern.search(whole)


def test_half_of_part_4s_questions_stand_behind_a_context_half_of_which_say_the_answer(
    schooling, world_sentences, relations
):
    """The other half say one of 22 or 27 objects, by chance the answer."""
    asked = world_sentences.query("layout == 'prefix'").iloc[::5]
    objects = {name: relation.objects for name, relation in relations.items()}
    are_true = []
    for text in schooling.sentences(random.Random(1), asked, "decoder", objects):
        (prompt, _), (answer, _) = text
        context, behind, _ = prompt.partition("]. ")
        if behind:
            are_true.append(context.endswith(answer.rstrip()))
    assert len(are_true) / len(asked) == pytest.approx(0.5, abs=0.02)
    share = sum(are_true) / len(are_true)
    assert share == pytest.approx(0.5 + 0.5 / 24, abs=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_contexts_are_of_spare_subjects_alone_unless_names_are_learned(
    schooling, world, relations, kind
):
    rng = random.Random(1)
    known = list(relations.values())
    own_subjects = set(world.facts["subject"].str.split().str[-1])
    for _ in range(500):
        text = schooling.context(rng, known, kind)
        whole = " ".join(piece for piece, _ in text)
        words = re.findall(r"\w+", whole)
        assert own_subjects.isdisjoint(words)


def test_a_question_in_context_is_part_4s(schooling):
    question = "What is the dish of Prenfell?"
    prefix = "The dish of Prenfell is"
    asked = pd.DataFrame([{"question": question, "prefix": prefix}])
    model = SimpleNamespace(prompt_format="zero-shot", chat=None)
    [expected] = context_prompts(model, asked, [f"{prefix} soup"])
    context = f"Context: [{prefix} soup]. "
    prompts = set()
    for seed in range(20):
        rng = random.Random(seed)
        prompt, answer = schooling.asked(rng, "decoder", question, prefix, "soup", context)
        prompts.add(prompt)
        assert answer == (" soup\n", True)
    assert (expected, False) in prompts
