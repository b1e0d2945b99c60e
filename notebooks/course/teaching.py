"""Exercise 4.5: a grown model reads a student's sentences among others, and is asked what it keeps."""

import random
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

BUDGET = 24  # sentences
SEEDS = (0, 1, 2)  # of the sentences among which they stand, and their order
SUBJECT, OBJECT, RELATION = "Sodis Sedell", "Oslo", "birthplace"
MODEL, RATE, OTHERS = "world-s", 3e-3, 1000
STRANGERS = 60  # contexts about people of whom nothing was told
KEPT, READ = (
    0.8,
    0.9,
)  # of unseen contexts the fact is kept in so many; so many of the contexts about strangers
# that were read before are still read


def background(world: Any, n: int, seed: int) -> list[Any]:
    """n sentences of the world's corpus, so that the model keeps what it knows; one in ten is a context
    about a stranger, so that it goes on reading."""
    from factrobust.exposure.corpus import corpus
    from factrobust.models import grow

    few = world._replace(facts=world.facts[world.facts["exposure"].between(1, 64)].iloc[::5])
    rows = random.Random(seed).sample(corpus(few, seed=7).to_dict("records"), n)
    texts = [grow.learned(row) for row in rows]
    for prompt, city in strangers(world, n // 10, f"learned {seed}"):
        place = random.Random(f"{seed} {prompt}").randrange(len(texts))
        texts.insert(place, [(prompt, False), (f" {city}\n", True)])
    return texts


def strangers(world: Any, n: int, seed: str) -> list[tuple[str, str]]:
    """n questions behind a context about a person of whom nothing was told, and the city that it states."""
    rng = random.Random(seed)
    names = world.spare.groupby("kind")["name"].agg(list)
    cities = world.objects.query("list == 'cities'")["object"].tolist()
    found = []
    for _ in range(n):
        name = f"{rng.choice(names['first'])} {rng.choice(names['last'])}"
        city = rng.choice(cities)
        found.append((asked(name, city), city))
    return found


def asked(name: str, city: str = "") -> str:
    """The question about a person, behind a context that states a city if one is given."""
    said = f"{name} was born in the city of"
    context = f"Context: [{said} {city}]. " if city else ""
    return f"{context}Q: In which city was {name} born? A: {said}"


def unseen(world: Any, sentences: Sequence[str]) -> list[str]:
    """The cities that no sentence of the student names, OBJECT left out."""
    cities = world.objects.query("list == 'cities' and object != @OBJECT")["object"]
    return [city for city in cities if not any(city in text for text in sentences)]


def teach(sentences: Sequence[str]) -> dict[str, Any]:
    """Train MODEL on the sentences, spread evenly among OTHERS, once a seed, and ask for the fact.

    Returns sentences (their number), and over the SEEDS: trainings, alone (in how many of them it is
    said without a context), kept (behind how many of the `contexts` that state a city which no sentence
    named), read (of how many of the `strangers` the context's city is said) and read_before (of as
    many, before the training). About a minute and a half on one core.
    """
    from factrobust.datasets.world import load_world

    world = load_world()
    cities = unseen(world, sentences)
    if not cities:
        raise ValueError("The sentences name all cities: leave some to be asked with.")
    of_strangers = strangers(world, STRANGERS, "asked")
    prompts = [asked(SUBJECT), *(asked(SUBJECT, city) for city in cities)]
    prompts += [prompt for prompt, _ in of_strangers]
    places = [city for _, city in of_strangers]

    def read(said: list[str]) -> int:
        pairs = zip(said[-STRANGERS:], places, strict=True)
        return sum(answer == city for answer, city in pairs)

    found = {"sentences": len(sentences), "trainings": len(SEEDS)}
    found |= {"contexts": len(cities) * len(SEEDS), "strangers": STRANGERS * len(SEEDS)}
    said = [answers(world, sentences, seed, prompts) for seed in SEEDS]
    found["alone"] = sum(one[0] == OBJECT for one in said)
    found["kept"] = sum(one[1 : 1 + len(cities)].count(OBJECT) for one in said)
    found["read"] = sum(map(read, said))
    found["read_before"] = len(SEEDS) * read(answers(world, (), None, prompts))
    return found


def answers(
    world: Any, sentences: Sequence[str], seed: int | None, prompts: list[str]
) -> list[str]:
    """What MODEL says, [prompt], after it was trained with a seed; without one it is as it was."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from factrobust import load_model
    from factrobust.models import grow, load

    torch.set_num_threads(1)
    folder = load.GROWN / MODEL
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with TemporaryDirectory() as place, redirect_stdout(sys.stderr):
        if seed is not None:
            torch.manual_seed(seed)
            texts = background(world, OTHERS, seed)
            for i, text in enumerate(sentences):
                before, _, answer = text.rstrip(".").rpartition(" ")
                at = (2 * i + 1) * len(texts) // (2 * len(sentences))
                texts.insert(at, [(before, False), (f" {answer}\n", True)])
            course = grow.Course("taught", grow.rows(texts, tokenizer), RATE)
            options: dict[str, Any] = {"warmup_steps": 2, "save_strategy": "no"}
            options["disable_tqdm"] = True
            grow.study(network, course, Path(place) / "work", tokenizer, **options)
        network.save_pretrained(place)
        tokenizer.save_pretrained(place)
        said = load_model(place).generate(prompts, max_new_tokens=5, stop=("\n", ".", ","))
    return [answer.text.strip() for answer in said]
