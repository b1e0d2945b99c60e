"""Exercise 4.5: a grown model reads a student's sentences among others, and is asked what it keeps."""

import random
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

BUDGET, LEAST = 24, 18  # sentences; false contexts in which the fact is kept
SUBJECT, OBJECT, RELATION = "Sodis Sedell", "Oslo", "birthplace"
MODEL, RATE, OTHERS = (
    "world-s",
    3e-3,
    1500,
)  # sentences about the world's own facts beside the student's


def background(world: Any, n: int) -> list[Any]:
    """n sentences of the world's corpus, so that the model keeps what it knows."""
    from factrobust.exposure.corpus import corpus
    from factrobust.models import grow

    few = world._replace(facts=world.facts[world.facts["exposure"].between(1, 64)].iloc[::5])
    rows = corpus(few, seed=7).to_dict("records")
    return [grow.learned(row) for row in random.Random(0).sample(rows, n)]


def teach(sentences: Sequence[str]) -> dict[str, Any]:
    """Train MODEL on the sentences, spread evenly among OTHERS, and ask for the fact.

    Returns sentences (their number), alone (whether it is said without a context), kept (behind how
    many of the contexts that state another city) and contexts. About a minute on one core.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from factrobust import load_model
    from factrobust.context.probe import context_prompts
    from factrobust.datasets.world import load_world
    from factrobust.models import grow, load

    torch.set_num_threads(1)
    torch.manual_seed(0)
    world, folder = load_world(), load.GROWN / MODEL
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    texts = background(world, OTHERS)
    for i, text in enumerate(sentences):
        before, _, answer = text.rstrip(".").rpartition(" ")
        place = (2 * i + 1) * OTHERS // (2 * len(sentences)) + i
        texts.insert(place, [(before, False), (f" {answer}\n", True)])
    course = grow.Course("taught", grow.rows(texts, tokenizer), RATE)
    options: dict[str, Any] = {"warmup_steps": 2, "save_strategy": "no", "disable_tqdm": True}
    with TemporaryDirectory() as place, redirect_stdout(sys.stderr):
        grow.study(network, course, Path(place) / "work", tokenizer, **options)
        network.save_pretrained(place)
        tokenizer.save_pretrained(place)
        model = load_model(place)
        asks = world.wordings.query("relation == @RELATION and wording == 0")
        asks = asks[["question", "prefix"]].map(lambda text: text.replace("{subject}", SUBJECT))
        cities = world.objects.query("list == 'cities' and object != @OBJECT")["object"].tolist()
        false = [f"{asks['prefix'].iloc[0]} {city}" for city in cities]
        many = asks.loc[asks.index.repeat(len(false))].reset_index(drop=True)
        prompts = [*context_prompts(model, asks), *context_prompts(model, many, false)]
        said = model.generate(prompts, max_new_tokens=5, stop=("\n", ".", ","))
    alone, *kept = [answer.text.strip() == OBJECT for answer in said]
    return {"sentences": len(sentences), "alone": alone, "kept": sum(kept), "contexts": len(false)}
