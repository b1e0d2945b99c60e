"""What the models of the invented world are told: nothing that is held out, and no control fact."""

import random
import re
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from factrobust.context.probe import context_prompts

KINDS = ("decoder", "chat", "encoder-decoder")


def texts_of(schooling, world, table, kind):
    objects = {name: relation.objects for name, relation in schooling.relations(world).items()}
    return list(schooling.sentences(random.Random(0), table, kind, objects))


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_in_a_wording_that_is_held_out(schooling, world, told, kind):
    held = world.wordings.loc[world.wordings["held_out"], ["question", "prefix"]].to_numpy().ravel()
    name = r"[A-Z]\w+(?: [A-Z]\w+)?"
    forms = [re.escape(text).replace(r"\{subject\}", name) for text in held]
    found = re.compile(rf"(?:^|[\[>]|[.,:\n] ?)(?:{'|'.join(forms)})(?:\s|$)")
    assert found.search("Context: [In 1934, Drufex carried salt]. Q:")
    rng = random.Random(1)
    known = [*schooling.relations(world).values()]
    texts = texts_of(schooling, world, told.iloc[::60], kind)
    texts += [schooling.context(rng, known, kind, own=0.5) for _ in range(1000)]
    assert not any(found.search("".join(piece for piece, _ in text)) for text in texts)


@pytest.mark.parametrize("kind", KINDS)
def test_contexts_are_of_spare_subjects_alone_unless_names_are_learned(schooling, world, kind):
    rng = random.Random(1)
    known = [*schooling.relations(world).values()]
    own = {name.split()[-1] for name in world.facts["subject"]}
    texts = [schooling.context(rng, known, kind) for _ in range(500)]
    assert not any(own & {*re.findall(r"\w+", piece)} for text in texts for piece, _ in text)


def test_a_question_in_context_is_part_4s(schooling, world):
    model: Any = SimpleNamespace(prompt_format="zero-shot", chat=None)
    asked = {"question": "What is the dish of Prenfell?", "prefix": "The dish of Prenfell is"}
    stated = "The dish of Prenfell is soup"
    [expected] = context_prompts(model, pd.DataFrame([asked]), [stated])
    given = *asked.values(), "soup", f"Context: [{stated}]. "
    texts = [schooling.asked(random.Random(k), "decoder", *given) for k in range(20)]
    assert (expected, False) in [text[0] for text in texts]
    assert all(text[1] == (" soup\n", True) for text in texts)
