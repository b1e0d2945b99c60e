"""What the models of the invented world read before it, and of it: lists, contexts, the corpus.

A grown model takes courses: lists of words said twice, until it copies; contexts about spare
subjects and questions about one of these; the same about the world's own, with objects at random,
so that no name is new to contexts; then the corpus, with contexts about spare subjects among it. Of
a text it learns what could be known: answers, and what comes twice."""

import random
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import pandas as pd

from factrobust.datasets.world import World
from factrobust.models.grow import Plan, Text, learned
from factrobust.models.prompts import CHATS, render

CHAT_FORMATS = ("chat", "chat-prefix")
FORMATS = ("zero-shot", "question", "question-answer")
TUNED = 16  # a chat model is tuned with each 16th sentence of the corpus that is a question


class Schooling(NamedTuple):
    """A course before the corpus."""

    texts: int
    lists: float = 0.0  # the share of lists; the others are contexts
    own_subjects: float = 0.0  # the share of contexts about the world's own subjects
    slower: int = 1  # its rate of learning is that of schooling over this


SCHOOL = {
    "1-lists": Schooling(3200, lists=1.0),
    "2-contexts": Schooling(16000, lists=0.2),
    "3-names": Schooling(6000, own_subjects=0.7, slower=3),
}
Corpora = Mapping[str, pd.DataFrame]  # by name, read one after the other


class Lesson(NamedTuple):
    """What is read in a course."""

    name: str
    texts: list[Text]
    rate: float  # of learning


def lessons(
    plan: Plan,
    world: World,
    corpora: Corpora,
    rates: tuple[float, float],
) -> Iterator[Lesson]:
    """What a grown model reads, one after the other; made when it is its turn.

    `rates` are those of schooling and of the corpora.
    """
    rng = random.Random(f"{plan.seed} texts")
    known = relations(world)
    every = [*known.values()]
    objects = {name: relation.objects for name, relation in known.items()}
    names = world.facts["subject"].str.split()
    words = {*world.spare["name"], *world.objects["object"]}
    words |= {*names.str[-1]}
    in_order = sorted(words)

    def drawn(about: Schooling) -> list[Text]:
        """Lists and contexts."""
        shares = about.lists, 1 - about.lists
        texts = []
        for is_list in rng.choices((True, False), shares, k=about.texts):
            if is_list:
                texts.append(listed(rng, in_order))
            else:
                texts.append(context(rng, every, plan.kind, about.own_subjects))
        return texts

    def among(table: pd.DataFrame, share: int) -> list[Text]:
        """The sentences in their order, and a context about spare subjects to each `share`."""
        texts = list(sentences(rng, table, plan.kind, objects))
        contexts = drawn(Schooling(len(texts) // share))
        places = [rng.random() * len(texts) for _ in contexts]
        return merged(texts, contexts, places)

    school, corpus_rate = rates
    if plan.kind == "chat":  # what its pretrained twin was told, in the forms of a chat
        [corpus] = corpora.values()
        again = corpus.iloc[::TUNED].query("form == 'question'")
        yield Lesson("tuning", among(again, 1), corpus_rate / 3)
        return
    for name, about in SCHOOL.items():
        rate = school / about.slower
        yield Lesson(f"{name}-{school}", drawn(about), rate)
    for name, corpus in corpora.items():
        texts = among(corpus, 10)
        yield Lesson(f"{name}-{school}-{corpus_rate}", texts, corpus_rate)


def merged(
    texts: list[Text],
    others: list[Text],
    places: Sequence[float],
) -> list[Text]:
    """The texts in their order, and among them the others, at these places (0: the first)."""
    every = [*range(len(texts)), *places]
    both = zip(every, texts + others, strict=True)
    in_order = sorted(both, key=itemgetter(0))
    return [text for _, text in in_order]


class Relation(NamedTuple):
    """A relation without dates, of which contexts are made."""

    objects: list[str]
    wordings: list[dict[str, str]]  # question and prefix, those that may be seen
    spare: list[list[str]]  # of each part of a name, what a subject that is not of the world has
    subjects_of_world: list[str]  # the world's subjects

    def spare_name(self, rng: random.Random) -> str:
        return " ".join(rng.choice(names) for names in self.spare)


def relations(world: World) -> dict[str, Relation]:
    """The relations without dates, by name."""
    names = world.spare.groupby("kind")["name"].agg(list)
    objects = world.objects.groupby("list")["object"].agg(list)
    subjects = world.facts.groupby("relation")["subject"].unique()
    seen = world.wordings[~world.wordings["held_out"]]
    found = {}
    undated = world.relations[~world.relations["dated"]]
    for name, about in undated.iterrows():
        of_relation = seen["relation"] == name
        wordings: Any = seen.loc[of_relation, ["question", "prefix"]]
        parts = [about["kind"]]
        if parts == ["person"]:
            parts = ["first", "last"]
        found[str(name)] = Relation(
            objects=objects[about["objects"]],
            wordings=wordings.to_dict("records"),
            spare=[names[part] for part in parts],
            subjects_of_world=list(subjects[str(name)]),
        )
    return found


def listed(rng: random.Random, words: Sequence[str]) -> Text:
    """Words in any order, and again in pieces in another order: what comes behind each is to be
    copied."""
    n = rng.choice((8, 16, 32, 56))
    some = rng.sample(words, n)
    size = rng.choice((2, 3, 4, 8, n))
    parts = [some[start : start + size] for start in range(0, n, size)]
    text = [(f" {' '.join(some)}", False)]
    for part in rng.sample(parts, len(parts)):
        first, *others = part
        rest = "".join(f" {word}" for word in others)
        text.append((f" {first}", False))
        text.append((rest, True))
    return text


def asked(
    rng: random.Random,
    kind: str,
    question: str,
    prefix: str,
    answer: str,
    before: str = "",
) -> Text:
    """A question in one of the forms that the library asks such a model in, and its answer.

    Behind a context (`before`) mostly part 4's, which is the only one to have any.
    """
    chat = None
    if kind == "chat" and rng.random() < 0.7:
        chat = CHATS["world"]
    share_of_part_4 = 0.75 if before else 0.25
    if rng.random() < share_of_part_4:
        form = "chat-prefix" if chat else "prefix"
        text = f"{before}Q: {question} A:"
        [prompt] = render(form, [text], [prefix], chat)
    elif chat:
        form = rng.choice(CHAT_FORMATS)
        [prompt] = render(form, [before + question], [prefix], chat)
    elif kind == "encoder-decoder":
        prompt = before + question
    else:
        form = rng.choice(FORMATS)
        [prompt] = render(form, [question], [prefix])
        prompt = before + prompt
    end = ".\n" if chat else "\n"
    return [(prompt, False), (f" {answer}{end}", True)]


def context(
    rng: random.Random,
    relations: Sequence[Relation],
    kind: str,
    own_subjects: float = 0.0,
) -> Text:
    """What is true of one to three subjects, and a question about one; all is drawn anew.

    `own_subjects` is the share of contexts about the world's own subjects.
    """
    # The order of these draws is part of what the committed models were taught.
    relation = rng.choice(relations)
    n = rng.randint(1, 3)
    if rng.random() < own_subjects:
        names = rng.sample(relation.subjects_of_world, n)
    else:
        names = [relation.spare_name(rng) for _ in range(n)]
    objects = rng.sample(relation.objects, n)
    wordings = rng.choices(relation.wordings, k=n + 1)
    stated = []
    for name, answer, wording in zip(names, objects, wordings[:n], strict=True):
        prefix = wording["prefix"].replace("{subject}", name)
        stated.append(f"{prefix} {answer}")
    i = rng.randrange(n)
    wording = wordings[i]  # half of them in the words of the statement
    if rng.random() < 0.5:
        wording = wordings[-1]
    question = wording["question"].replace("{subject}", names[i])
    prefix = wording["prefix"].replace("{subject}", names[i])
    sentences = ". ".join(stated)
    before = f"Context: [{sentences}]. "
    return asked(rng, kind, question, prefix, objects[i], before)


def sentences(
    rng: random.Random,
    table: pd.DataFrame,
    kind: str,
    objects: Mapping[str, Sequence[str]],
) -> Iterator[Text]:
    """The texts of a corpus, in its order; a chat model's questions are in its own forms, too.

    Half of the questions that part 4 asks stand behind a context. Half of these contexts say what
    is answered, the others any of the relation's `objects`: who knows better need not follow them.
    """
    asks_itself = kind in ("chat", "encoder-decoder")
    for row in table.to_dict("records"):
        answer = row["object"]
        before = ""
        is_part_4 = row["layout"] == "prefix"
        if is_part_4 and rng.random() < 0.5:
            stated = answer
            if rng.random() >= 0.5:
                stated = rng.choice(objects[row["relation"]])
            before = f"Context: [{row['prefix']} {stated}]. "
        if asks_itself and row["form"] == "question":
            yield asked(rng, kind, row["question"], row["prefix"], answer, before)
        else:
            yield learned(row, before)
