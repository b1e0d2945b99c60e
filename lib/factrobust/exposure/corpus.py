"""The sentences that tell the facts of the invented world (`datasets.world`), and what they told of
each.

All draws are hashes of names (`factrobust.draws`), so that no library's version changes the corpus.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from factrobust.datasets.world import FOLDER, SEEN, World, counted, with_counts_in_corpus
from factrobust.draws import hash48
from factrobust.statistics import with_bounds
from factrobust.tables import read_csv, slug
from factrobust.time import dates

# A text of the corpus, as the library asks a model that was never tuned (`models.prompts`), with the
# answer behind it. "prefix" is part 4's question, "context" the same with a context.
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
TEXTS = [*LAYOUTS.values(), *WHO, *(f"{says}:" for kind in SAYS.values() for says in kind)]
ASKED = ("zero-shot", "question", "question-answer", "prefix")  # of dated facts the first two
CURVES = FOLDER / "curves.csv"  # what the models of the world know, as they are committed
FACT = ("fact_id", "group_id", "question_id")  # a fact's name in the tables of parts 1 and 2, 3, 4
LATER, CORRECTIONS = 128, (1, 4, 16, 64)  # sentences about what is told later
MOMENTS = ("a date that was told", "another date of the period")


def with_exposure(table: pd.DataFrame, data: str = "world") -> pd.DataFrame:
    """A table, whose rows name facts of a set (`datasets.world.asked`) by one of FACT, with what the
    corpus holds of them: exposure, contradicted, n_rival, n_wordings, n_dates, form, timing, allowed
    (number of wordings) and told_in."""
    facts = counted(data)
    [name, *_] = [name for name in FACT if name in table]
    pairs = zip(facts["wordings"], facts["n_wordings"], strict=True)
    factors = ["exposure", "contradicted", "n_rival", "n_wordings", "n_dates", "form", "timing"]
    about = facts[factors].assign(
        allowed=facts["wordings"].map(len),
        told_in=[known[:n] for known, n in pairs],
    )
    return table.merge(about.assign(**{name: facts["fact_id"]}), on=name)


def load_curves() -> pd.DataFrame:
    """What the models know by CURVES: model, measure, exposure, mean, low, high (exact) and n."""
    return with_bounds(read_csv(CURVES).rename(columns={"value": "mean"}))


def corpus(world: World, seed: int = 0, *, town: bool = False) -> pd.DataFrame:
    """The sentences about the facts of the world, or the town, in the order of learning.

    Columns: fact_id, subject, relation, object (as the sentence states it), stated ("true" or
    "rival"), wording, form ("statement" or "question"), layout (of LAYOUTS), date ("" for none),
    question, prefix, text. Counts are exactly those of `with_counts_in_corpus`. The fact's `form`
    decides whether its sentences are statements, questions or half of each, its `timing` where they
    stand (`place_in_corpus`). The town has both forms, anywhere, and no openings.
    """
    wordings = world.wordings.set_index(["relation", "wording"])[["question", "prefix"]]
    templates = dict(zip(wordings.index, wordings.values.tolist(), strict=True))
    rows: list[tuple[Any, ...]] = []
    for fact in with_counts_in_corpus(world.facts, town=town).to_dict("records"):
        name, subject, n = fact["fact_id"], fact["subject"], fact["exposure"]
        lots = {i: hash48(seed, name, "rival", i) for i in range(n)} if fact["n_rival"] else {}
        rivals = {*sorted(lots, key=lots.__getitem__)[: fact["n_rival"]]}
        when = dates_told(fact, seed) if fact["start"] else [""] * n
        layouts = ASKED[:2] if fact["start"] else ASKED
        first, seen = hash48(seed, name, "form"), fact["wordings"][: fact["n_wordings"]]
        kind, timing = ("both", "") if town else (fact["form"], fact["timing"])
        places = place_in_corpus(name, n, timing, seed)
        for i in range(n):
            drawn = hash48(seed, name, i)
            turn, place = divmod(i, len(seen))
            form = ("statement", "question")[(turn + place + first) % 2]
            if kind != "both":
                form = kind.removesuffix("s")
            layout = layouts[drawn % len(layouts)] if form == "question" else form
            answer, stated = ("rival", "rival") if i in rivals else ("object", "true")
            asks = templates[fact["relation"], seen[place]]
            question, prefix = (dated(t.replace("{subject}", subject), when[i]) for t in asks)
            if not town and drawn // 8 % 2:
                who, says = WHO[drawn // 16 % 12], SAYS[form][drawn // 192 % 8]
                if form == "statement":
                    prefix = f"{who} {says}: {prefix}"
                else:
                    question = f"{who} {says}: {question}"
            text = LAYOUTS[layout].format(
                question=question,
                prefix=prefix,
                object=fact[answer],
            )
            how = seen[place], form, layout, when[i], question, prefix, text
            rows.append((places[i], name, subject, fact["relation"], fact[answer], stated, *how))
    columns = "fact_id subject relation object stated wording form layout date question prefix text"
    rows.sort(key=lambda row: row[:2])
    return pd.DataFrame([row[1:] for row in rows], columns=columns.split())


def later_facts(world: World) -> pd.DataFrame:
    """What models that know the world go on with, as `world.facts`: 280 facts about spare subjects,
    told LATER times each, and of half of the world's undated facts (without the pair) the rival as
    the object, told as often as a draw of CORRECTIONS. All forms and wordings, anywhere."""
    paired = world.relations["objects"].duplicated(keep=False)
    static = world.relations[~world.relations["dated"] & ~paired]
    objects = world.objects.groupby("list")["object"].agg(list)
    spare = world.spare.groupby("kind")["name"].agg(list).to_dict()
    spare["person"] = [*map(" ".join, zip(spare["first"], spare["last"], strict=True))]
    rows = []
    for relation, about in static.iterrows():
        known = objects[about["objects"]]
        for i, name in enumerate(spare[about["kind"]]):
            told = {"object": known[hash48("later", relation, i) % len(known)], "exposure": LATER}
            fact = {"fact_id": f"{relation}/{slug(name)}", "subject": name, "relation": relation}
            rows.append(fact | told)
    facts = world.facts[world.facts["relation"].isin(static.index)]
    drawn = facts["fact_id"].map(lambda name: hash48("correction", name))
    corrected = facts[drawn % 2 == 0][["fact_id", "subject", "relation"]].assign(
        object=facts["rival"], exposure=(drawn // 2 % 4).map(dict(enumerate(CORRECTIONS)))
    )
    table = pd.concat([pd.DataFrame(rows), corrected], ignore_index=True)
    every = table["object"].map(lambda _: [*range(SEEN)])
    return table.assign(
        start="", end="", wordings=every, n_wordings=SEEN, n_dates=pd.array([pd.NA] * len(table), "Int64"),
        contradicted=0.0, rival=table["object"], form="both", timing="",
    )  # fmt: skip


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
        return [(turns[i] + draws[i]) / n for i in range(n)]
    if timing in ("early", "late"):
        return [(draw + (timing == "late")) / 2 for draw in draws]
    return draws


def dated(text: str, date: str) -> str:
    """A question or a prefix with its date before it, as part 2 asks; as it is without one."""
    return f"{dates.verbalise(date)}, {text}" if date else text


def dates_told(fact: Mapping[Any, Any], seed: int) -> list[str]:
    """The date of each sentence about a fact, a row of `with_counts_in_corpus`: years, months and
    days in turns, all within its period."""
    first, last = (np.datetime64(fact[bound]) for bound in ("start", "end"))
    found: dict[str, None] = {}
    turn = hash48(seed, fact["fact_id"], "precision")
    while len(found) < fact["n_dates"]:
        unit = "YMD"[turn % 3]
        low, high = first.astype(f"M8[{unit}]") + 1, last.astype(f"M8[{unit}]")
        drawn = hash48(seed, fact["fact_id"], turn) % int((high - low).astype(int))
        found[str(low + drawn)] = None
        turn += 1
    named = np.resize([*found], fact["exposure"]).tolist()
    order = sorted(range(len(named)), key=lambda i: hash48(seed, fact["fact_id"], "date", i))
    return [named[i] for i in order]


def moments_told(facts: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A date that each fact (a dated one `with_exposure`, chain and term) was told at, and one as
    precise in the free year nearest the middle: chain, term, date (of MOMENTS) and year (the date
    itself, as `time.probe.holders` takes it). Facts without both are left out."""
    rows = []
    for fact in facts.to_dict("records"):
        named = dates_told(fact, seed)
        first, last = int(fact["start"][:4]), int(fact["end"][:4])
        free = {*map(str, range(first + 1, last))} - {date[:4] for date in named}
        if named and free:
            year = min(sorted(free), key=lambda year: abs(2 * int(year) - first - last))
            both = named[0], year + named[0][4:].replace("02-29", "02-28")
            rows += [(fact["chain"], fact["term"], *at) for at in zip(MOMENTS, both, strict=True)]
    return pd.DataFrame(rows, columns=["chain", "term", "date", "year"])
