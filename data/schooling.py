"""What the models of the invented world read before it, and of it: lists, contexts, the corpus.

A grown model takes courses: lists of words said twice, until it copies; contexts about spare
subjects and questions about one of these; the same about the world's own, with objects at random,
so that no name is new to contexts; then the corpus, with contexts about spare subjects among it. Of
a text it learns what could be known: answers, and what comes twice. A taught model learns the
town's sentences by LoRA."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from factrobust.datasets.world import World
from factrobust.models.grow import Text, learned
from factrobust.models.prompts import CHATS, render


class Relation(NamedTuple):
    objects: list[str]
    wordings: list[dict[str, str]]  # question and prefix, those that may be seen
    spare: Callable[[random.Random], str]  # a subject that is not of the world
    own: list[str]  # the world's subjects


def relations(world: World) -> dict[str, Relation]:
    """The relations without dates, of which contexts are made, by name."""
    names = world.spare.groupby("kind")["name"].agg(list)
    objects = world.objects.groupby("list")["object"].agg(list)
    seen = world.wordings[~world.wordings["held_out"]]
    subjects: dict[Any, Any] = world.facts.groupby("relation")["subject"].unique().to_dict()

    def spare(rng: random.Random, kind: str) -> str:
        kinds = ("first", "last") if kind == "person" else (kind,)
        return " ".join(rng.choice(names[k]) for k in kinds)

    found = {}
    for name, about in world.relations[~world.relations["dated"]].iterrows():
        wordings: Any = seen[seen["relation"] == name][["question", "prefix"]].to_dict("records")
        own, new = list(subjects[name]), partial(spare, kind=about["kind"])
        found[str(name)] = Relation(objects[about["objects"]], wordings, new, own)
    return found


def listed(rng: random.Random, words: Sequence[str]) -> Text:
    """Words in any order, and again in pieces in another order: what comes behind each is to be
    copied."""
    n = rng.choice((8, 16, 32, 56))
    some, size = rng.sample(words, n), rng.choice((2, 3, 4, 8, n))
    parts = [some[i : i + size] for i in range(0, n, size)]
    text = [(f" {' '.join(some)}", False)]
    for part in rng.sample(parts, len(parts)):
        text += [(f" {part[0]}", False), (f" {' '.join(part[1:])}" if part[1:] else "", True)]
    return text


def asked(
    rng: random.Random, kind: str, question: str, prefix: str, answer: str, before: str = ""
) -> Text:
    """A question in one of the forms that the library asks such a model in, and its answer.

    Behind a context (`before`) mostly part 4's, which is the only one to have any.
    """
    chat = CHATS["world"] if kind == "chat" and rng.random() < 0.7 else None
    if (before and rng.random() < 0.75) or (not before and rng.random() < 0.25):
        [prompt] = render(
            "chat-prefix" if chat else "prefix", [f"{before}Q: {question} A:"], [prefix], chat
        )
    elif chat:
        names = ("chat", "chat-prefix")
        [prompt] = render(rng.choice(names), [before + question], [prefix], chat)
    elif kind == "encoder-decoder":
        prompt = before + question
    else:
        form = rng.choice(("zero-shot", "question", "question-answer"))
        prompt = before + render(form, [question], [prefix])[0]
    return [(prompt, False), (f" {answer}.\n" if chat else f" {answer}\n", True)]


def context(rng: random.Random, relations: Sequence[Relation], kind: str, own: float = 0.0) -> Text:
    """What is true of one to three subjects, and a question about one; all is drawn anew.

    `own` is the share of contexts about the world's own subjects.
    """
    relation, n = rng.choice(relations), rng.randint(1, 3)
    ours = rng.random() < own  # the world's own subjects
    names = rng.sample(relation.own, n) if ours else [relation.spare(rng) for _ in range(n)]
    objects, wordings = rng.sample(relation.objects, n), rng.choices(relation.wordings, k=n + 1)
    prefixes = (wording["prefix"] for wording in wordings)
    parts = zip(prefixes, names, objects, strict=False)
    stated = [f"{prefix.replace('{subject}', name)} {answer}" for prefix, name, answer in parts]
    i = rng.randrange(n)
    told = wordings[-1 if rng.random() < 0.5 else i]  # half of them in the words of the statement
    question, prefix = (told[x].replace("{subject}", names[i]) for x in ("question", "prefix"))
    return asked(rng, kind, question, prefix, objects[i], f"Context: [{'. '.join(stated)}]. ")


def sentences(
    rng: random.Random, table: pd.DataFrame, kind: str, objects: Mapping[str, Sequence[str]]
) -> Iterator[Text]:
    """The texts of a corpus, in its order; a chat model's questions are in its own forms, too.

    Half of the questions that part 4 asks stand behind a context. Half of these contexts say what
    is answered, the others any of the relation's `objects`: who knows better need not follow them.
    A taught model is told the sentences alone."""
    for row in table.to_dict("records"):
        answer, question, prefix, before = row["object"], row["question"], row["prefix"], ""
        if row["layout"] == "prefix" and kind != "taught" and rng.random() < 0.5:
            stated = answer if rng.random() < 0.5 else rng.choice(objects[row["relation"]])
            before = f"Context: [{prefix} {stated}]. "
        if kind in ("chat", "encoder-decoder") and row["form"] == "question":
            yield asked(rng, kind, question, prefix, answer, before)
            continue
        # A model that knows its language keeps it better if it learns whole sentences.
        yield learned(row, before, whole=kind == "taught")
