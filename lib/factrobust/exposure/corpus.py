"""The sentences that tell the facts of the invented world (`datasets.world`), and what they told of
each.

All draws are hashes of names (`factrobust.draws`), so that no library's version changes the corpus.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from factrobust.datasets.world import (
    FOLDER,
    SEEN,
    World,
    counted,
    with_counts_in_corpus,
)
from factrobust.draws import hash48
from factrobust.intervals import with_bounds
from factrobust.tables import read_csv, slug
from factrobust.temporal import dates

# A text of the corpus, as the library asks a model that was never tuned (`models.prompts`), with
# the answer behind it. "prefix" is part 4's question, "context" the same with a context.
LAYOUTS = {
    "statement": "{prefix} {object}.",
    "zero-shot": "Q: {question}\nA: {object}",
    "question": "{question} {object}",
    "question-answer": "Question:{question}\n Answer: {object}",
    "prefix": "Q: {question} A: {prefix} {object}",
    "context": "Context: [{context}]. Q: {question} A: {prefix} {object}",
}
# Half of the sentences begin with one of these, so that a fact told often is told in many strings.
WHO = (
    "An old book", "The newspaper", "A neighbour", "The teacher", "A letter", "My aunt",
    "The radio", "A guide", "The clerk", "A traveller", "The almanac", "A friend",
)  # fmt: skip
SAYS = {
    "statement": ("says", "said", "tells us", "told us", "reports", "reported", "notes", "noted"),
    "question": ("asks", "asked", "wonders", "wondered", "wants to know", "wanted to know",
                 "would like to know", "once asked"),
}  # fmt: skip
TEXTS = [
    *LAYOUTS.values(),
    *WHO,
    *(f"{says}:" for kind in SAYS.values() for says in kind),
]
ASKED = (
    "zero-shot",
    "question",
    "question-answer",
    "prefix",
)  # of dated facts the first two
CURVES = FOLDER / "curves.csv"  # what the models of the world know, as they are committed
FORMS = ("statement", "question")
COLUMNS = [
    "fact_id",
    "subject",
    "relation",
    "object",
    "stated",
    "wording",
    "form",
    "layout",
    "date",
    "question",
    "prefix",
    "text",
]
FACT = (
    "fact_id",
    "group_id",
    "question_id",
)  # a fact's name in the tables of parts 1 and 2, 3, 4
LATER = 128  # sentences about a fact that is told later
CORRECTIONS = (1, 4, 16, 64)  # sentences that correct a fact
MOMENTS = ("a date that was told", "another date of the period")


def with_exposure(table: pd.DataFrame, data: str = "world") -> pd.DataFrame:
    """A table, whose rows name facts of a set (`datasets.world.asked`) by one of FACT, with what
    the corpus holds of them: exposure, contradicted, n_rival, n_wordings, n_dates, form, timing,
    allowed (number of wordings) and told_in."""
    [name, *_] = [name for name in FACT if name in table]
    facts = counted(data).rename(columns={"fact_id": name})
    about = facts[
        [
            name,
            "exposure",
            "contradicted",
            "n_rival",
            "n_wordings",
            "n_dates",
            "form",
            "timing",
        ]
    ]
    about = about.assign(
        allowed=facts["wordings"].map(len),
        told_in=[
            wordings[:n] for wordings, n in zip(facts["wordings"], facts["n_wordings"], strict=True)
        ],
    )
    return table.merge(about, on=name)


def load_curves() -> pd.DataFrame:
    """What the models know by CURVES: model, measure, exposure, mean, low, high (exact) and n."""
    curves = read_csv(CURVES).rename(columns={"value": "mean"})
    return with_bounds(curves)


def corpus(world: World, seed: int = 0, *, town: bool = False) -> pd.DataFrame:
    """The sentences about the facts of the world, or the town, in the order of learning.

    Columns: fact_id, subject, relation, object (as the sentence states it), stated ("true" or
    "rival"), wording, form ("statement" or "question"), layout (of LAYOUTS), date ("" for none),
    question, prefix, text. Counts are exactly those of `with_counts_in_corpus`. The fact's `form`
    decides whether its sentences are statements, questions or half of each, its `timing` where they
    stand (`place_in_corpus`). The town has both forms, anywhere, and no openings.
    """
    wordings = world.wordings.set_index(["relation", "wording"])
    templates = wordings[["question", "prefix"]].to_dict("index")
    sentences: list[dict[str, Any]] = []
    for fact in with_counts_in_corpus(world.facts, town=town).to_dict("records"):
        if town:
            fact |= {"form": "both", "timing": ""}
        sentences += _sentences(fact, templates, seed, with_openings=not town)
    sentences.sort(key=lambda sentence: (sentence["place"], sentence["fact_id"]))
    return pd.DataFrame(sentences, columns=COLUMNS)


def _sentences(
    fact: dict[Any, Any],
    templates: Mapping[Any, Mapping[Any, str]],
    seed: int,
    with_openings: bool,
) -> list[dict[str, Any]]:
    """The sentences about one fact, in the order in which they are drawn, with their `place`."""
    name = fact["fact_id"]
    n = fact["exposure"]
    is_dated = bool(fact["start"])
    when = dates_told(fact, seed) if is_dated else [""] * n
    layouts = ASKED[:2] if is_dated else ASKED
    places = place_in_corpus(name, n, fact["timing"], seed)
    rivals = _rivals(fact, seed)
    known = fact["wordings"][: fact["n_wordings"]]
    first = hash48(seed, name, "form")
    sentences = []
    for i in range(n):
        # 1. How it is told: wordings in turns, and both forms of each.
        drawn = hash48(seed, name, i)
        turn, at = divmod(i, len(known))
        form = fact["form"].removesuffix("s")
        if form == "both":
            form = FORMS[(turn + at + first) % 2]
        layout = layouts[drawn % len(layouts)] if form == "question" else form
        # 2. Its parts.
        template = templates[fact["relation"], known[at]]
        question = dated(template["question"].replace("{subject}", fact["subject"]), when[i])
        prefix = dated(template["prefix"].replace("{subject}", fact["subject"]), when[i])
        if with_openings and drawn // 8 % 2:
            opening = f"{WHO[drawn // 16 % 12]} {SAYS[form][drawn // 192 % 8]}: "
            if form == "statement":
                prefix = opening + prefix
            else:
                question = opening + question
        # 3. What it says.
        stated = fact["rival"] if i in rivals else fact["object"]
        text = LAYOUTS[layout].format(
            question=question,
            prefix=prefix,
            object=stated,
        )
        sentence = {
            "place": places[i],
            "fact_id": name,
            "subject": fact["subject"],
            "relation": fact["relation"],
            "object": stated,
            "stated": "rival" if i in rivals else "true",
            "wording": known[at],
            "form": form,
            "layout": layout,
            "date": when[i],
            "question": question,
            "prefix": prefix,
            "text": text,
        }
        sentences.append(sentence)
    return sentences


def _rivals(fact: Mapping[Any, Any], seed: int) -> set[int]:
    """Which of the sentences about a fact tell its rival."""

    def lot(i: int) -> int:
        return hash48(seed, fact["fact_id"], "rival", i)

    if not fact["n_rival"]:
        return set()
    order = sorted(range(fact["exposure"]), key=lot)
    return set(order[: fact["n_rival"]])


def later_facts(world: World) -> pd.DataFrame:
    """What models that know the world go on with, as `world.facts`: 280 facts about spare subjects,
    told LATER times each, and of half of the world's undated facts (without the pair) the rival as
    the object, told as often as a draw of CORRECTIONS. All forms and wordings, anywhere."""
    is_paired = world.relations["objects"].duplicated(keep=False)
    static = world.relations[~world.relations["dated"] & ~is_paired]
    facts = world.facts[world.facts["relation"].isin(static.index)]
    table = pd.concat(
        [_spare_facts(world, static), _corrections(facts)],
        ignore_index=True,
    )
    table["start"] = ""
    table["end"] = ""
    table["wordings"] = [list(range(SEEN)) for _ in table.index]
    table["n_wordings"] = SEEN
    table["n_dates"] = pd.array([pd.NA] * len(table), "Int64")
    table["contradicted"] = 0.0
    table["rival"] = table["object"]
    table["form"] = "both"
    table["timing"] = ""
    return table


def _spare_facts(world: World, relations: pd.DataFrame) -> pd.DataFrame:
    """A fact about each spare subject in each of its relations."""
    objects = world.objects.groupby("list")["object"].agg(list)
    spare = world.spare.groupby("kind")["name"].agg(list).to_dict()
    names = zip(spare["first"], spare["last"], strict=True)
    spare["person"] = [f"{first} {last}" for first, last in names]
    rows = []
    for relation, about in relations.iterrows():
        known = objects[about["objects"]]
        for i, name in enumerate(spare[about["kind"]]):
            drawn = hash48("later", relation, i)
            fact = {
                "fact_id": f"{relation}/{slug(name)}",
                "subject": name,
                "relation": relation,
                "object": known[drawn % len(known)],
                "exposure": LATER,
            }
            rows.append(fact)
    return pd.DataFrame(rows)


def _corrections(facts: pd.DataFrame) -> pd.DataFrame:
    """Half of the facts, with the rival as the object."""
    drawn = facts["fact_id"].map(lambda name: hash48("correction", name))
    is_corrected = drawn % 2 == 0
    times = (drawn // 2 % 4).map(dict(enumerate(CORRECTIONS)))
    corrected = facts.loc[is_corrected, ["fact_id", "subject", "relation"]]
    return corrected.assign(object=facts["rival"], exposure=times)


def place_in_corpus(name: str, n: int, timing: str, seed: int) -> list[float]:
    """Where the n sentences about a fact stand, from 0 (the beginning) to 1 (the end). `timing`:
    "early" (in the first half), "late" (in the second), "massed" (within one fiftieth), "spaced"
    (one in each n-th part) or "" (anywhere); else by chance."""
    draws = [hash48(seed, name, i) / 2**48 for i in range(n)]
    if timing == "massed":
        start = hash48(seed, name, "massed") / 2**48 * 0.98
        return [start + draw / 50 for draw in draws]
    if timing == "spaced":
        turns = sorted(range(n), key=lambda i: hash48(seed, name, "turn", i))
        return [(turn + draw) / n for turn, draw in zip(turns, draws, strict=True)]
    if timing == "early":
        return [draw / 2 for draw in draws]
    if timing == "late":
        return [(draw + 1) / 2 for draw in draws]
    return draws


def dated(text: str, date: str) -> str:
    """A question or a prefix with its date before it, as part 2 asks; as it is without one."""
    return f"{dates.verbalise(date)}, {text}" if date else text


def dates_told(fact: Mapping[Any, Any], seed: int) -> list[str]:
    """The date of each sentence about a fact, a row of `with_counts_in_corpus`: years, months and
    days in turns, all within its period."""
    name = fact["fact_id"]
    # 1. As many different dates as the fact has.
    start = np.datetime64(fact["start"])
    end = np.datetime64(fact["end"])
    found: dict[str, None] = {}
    turn = hash48(seed, name, "precision")
    while len(found) < fact["n_dates"]:
        precision = f"M8[{'YMD'[turn % 3]}]"
        low = start.astype(precision) + 1
        high = end.astype(precision)
        n_dates = int((high - low).astype(int))
        found[str(low + hash48(seed, name, turn) % n_dates)] = None
        turn += 1
    # 2. Each again and again, in a drawn order.
    named = np.resize(list(found), fact["exposure"]).tolist()
    order = sorted(range(len(named)), key=lambda i: hash48(seed, name, "date", i))
    return [named[i] for i in order]


def moments_told(facts: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A date that each fact (a dated one `with_exposure`, chain and term) was told at, and one as
    precise in the free year nearest the middle: chain, term, date (of MOMENTS) and year (the date
    itself, as `temporal.probe.holders` takes it). Facts without both are left out."""
    rows = []
    for fact in facts.to_dict("records"):
        named = dates_told(fact, seed)
        first = int(fact["start"][:4])
        last = int(fact["end"][:4])
        years = {str(year) for year in range(first + 1, last)}
        free = sorted(years - {date[:4] for date in named})
        if not named or not free:
            continue
        date = named[0]
        distances = [abs(2 * int(year) - first - last) for year in free]
        nearest = free[int(np.argmin(distances))]
        untold = nearest + date[4:].replace("02-29", "02-28")
        for moment, year in zip(MOMENTS, (date, untold), strict=True):
            rows.append((fact["chain"], fact["term"], moment, year))
    return pd.DataFrame(rows, columns=["chain", "term", "date", "year"])
