"""Build data/facts.csv and data/relations.csv from data packages and data/sources/*.csv.

    python data/build_facts.py            write the two tables, and the counts in data/README.md
    python data/build_facts.py --check    write nothing; exit 1 if they differ from the sources

Facts that two sources hold are compared. A disagreement stops the build until the hand-typed value
is mended, or listed with a reason in data/sources/resolved.csv: then the hand-typed value stands.
"""

import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from building import Files, command_line, with_counts
from fact_sources import (
    SOURCES,
    VERSIONS,
    Checks,
    Row,
    city_facts,
    compare_landmarks,
    country_facts,
    element_facts,
    names,
    plain,
    source,
    typed_facts,
)

from factrobust.datasets.facts import (
    COLUMNS,
    DOMAINS,
    RELATIONS_SCHEMA,
    load_facts,
    read_relations,
    with_questions,
)
from factrobust.tables import ANSWER_TYPES, FactsError, slug

DATA = Path(__file__).resolve().parent
EXEMPLARS = ("Mona Lisa", "Red Planet")  # shown to the models as two-shot examples
MAX_ROWS = 55  # a relation's most popular subjects, so that no relation outweighs the others
OTHER_MAX_ROWS = {"capital": 90, "calling_code": 45, "continent": 45}
MAX_SAME_CURRENCY = 8  # or every fourth answer would be "euro"


def leaks(row: Row, relations: pd.DataFrame) -> bool:
    """True if an accepted answer stands in the question or the prefix."""
    if row["relation"] not in relations.index:
        raise FactsError(f"relations*.csv in {SOURCES} lack {row['relation']!r}; add it.")
    accepted = names(row["object"], row["aliases"])
    relation: Any = relations.loc[row["relation"]]
    for template in (relation["question"], relation["prefix"]):
        text = template.replace("{subject}", row["subject"])
        asked = f" {plain(text)} "
        for name in accepted:
            if f" {plain(name)} " in asked:
                return True
    return False


def popularity(subject: str) -> float:
    """Zipf frequency of a subject in English text, without a leading article.

    Several words count together as wordfreq combines them: 1/f = 1/f1 + 1/f2 + ..., so that the
    rarest word weighs most.
    """
    from wordfreq import zipf_frequency

    bare = re.sub(r"^(the|a|an) ", "", subject)
    return zipf_frequency(bare, "en")


def check_version(package: str) -> None:
    """Raise FactsError for another version of a package than the one in VERSIONS."""
    version = VERSIONS[package]
    found = importlib.metadata.version(package)
    if found != version:
        raise FactsError(
            f"{package} is {found} but the tables were built with {version}; "
            f"pip install {package}=={version}, or change VERSIONS and review the difference."
        )


def build(*, left_out: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the facts and the relations as they are written: all columns, sorted. With `left_out`
    the facts beyond the limits of their relations in their place: no notebook asks them."""
    for package in VERSIONS:
        check_version(package)
    paths = sorted(SOURCES.glob("relations*.csv"))
    relations = pd.concat([read_relations(path) for path in paths])
    if (twice := relations.index.duplicated()).any():
        raise FactsError(f"two relations*.csv define {relations.index[twice][0]!r}; remove one.")
    checks = Checks(source("resolved"))
    of_countries = [row for row in country_facts(checks) if not leaks(row, relations)]
    typed = [*city_facts(checks), *element_facts(checks), *typed_facts(checks)]
    for row in typed:
        if leaks(row, relations):
            name = f"{row['relation']}/{slug(row['subject'])}"
            checks.agree("leak", name, [], ["a leak"])
    rows = of_countries + typed
    compare_landmarks(rows, checks)
    checks.finish()
    facts = pd.DataFrame(rows)
    if idle := sorted(set(relations.index) - set(facts["relation"])):
        raise FactsError(f"no fact of the relation {', '.join(idle)}; add some or remove it.")
    for words in EXEMPLARS:
        if (hit := facts["subject"].str.contains(words)).any():
            raise FactsError(f"{facts[hit].iloc[0]['subject']!r} is a two-shot example; remove it.")
    return finish(facts, relations, left_out=left_out), relations.reset_index()


def finish(facts: pd.DataFrame, relations: pd.DataFrame, *, left_out: bool = False) -> pd.DataFrame:
    """Add what the other columns determine, keep the most popular rows (or the others), sort."""
    slugs = facts["subject"].map(slug)
    facts["fact_id"] = facts["relation"] + "/" + slugs
    if (twice := facts["fact_id"].duplicated()).any():
        raise FactsError(f"two facts are called {facts['fact_id'][twice].iloc[0]}; remove one.")
    facts["answer_type"] = facts["relation"].map(relations["answer_type"])
    facts["domain"] = facts["relation"].map(relations["domain"])
    facts["popularity"] = facts["subject"].map(popularity)
    facts["popularity_source"] = f"wordfreq {VERSIONS['wordfreq']} zipf"
    facts = facts.sort_values(["popularity", "fact_id"], ascending=[False, True])
    same = facts.groupby(["relation", "object"]).cumcount()
    is_currency = facts["relation"] == "currency"
    facts = facts[~is_currency | (same < MAX_SAME_CURRENCY)]
    limit = facts["relation"].map(OTHER_MAX_ROWS).fillna(MAX_ROWS)
    popular = facts.groupby("relation").cumcount() < limit
    facts = facts[~popular if left_out else popular]
    facts["place"] = facts["domain"].map(DOMAINS.index)
    order = ["place", "relation", "popularity", "fact_id"]
    facts = facts.sort_values(order, ascending=[True, True, False, True])
    return facts[list(COLUMNS)]


def describe_relations(facts: pd.DataFrame) -> pd.DataFrame:
    """One row a relation: domain, answer type, number of facts, different answers, an example."""
    asked = with_questions(facts).sort_values("popularity", ascending=False, kind="stable")
    groups = asked.groupby("relation")
    table = pd.DataFrame(
        {
            "domain": groups["domain"].first(),
            "answer_type": groups["answer_type"].first(),
            "facts": groups.size(),
            "different_answers": groups["object"].nunique(),
            "example": groups["question"].first() + " " + groups["object"].first(),
        }
    )
    return table.sort_values(["domain", "answer_type", "relation"])


def counts_for_readme(facts_csv: Path) -> str:
    facts = load_facts(facts_csv)
    by_type = pd.crosstab(facts["domain"], facts["answer_type"], margins=True, margins_name="all")
    by_type = by_type.reindex(index=[*DOMAINS, "all"], columns=[*ANSWER_TYPES, "all"])
    relations = describe_relations(facts)
    parts = [
        f"{len(facts)} facts of {len(relations)} relations.",
        by_type.to_markdown(),
        relations.to_markdown(),
    ]
    return "\n\n".join(parts)


def files(folder: Path) -> Files:
    facts, relations = build()
    relations = relations[list(RELATIONS_SCHEMA.columns)]
    yield folder / "relations.csv", relations.to_csv(index=False, lineterminator="\n")
    path = folder / "facts.csv"
    yield path, facts.to_csv(index=False, lineterminator="\n", float_format="%.2f")
    # The counts are those of the table as users load it.
    yield with_counts(folder / "README.md", counts_for_readme(path), __file__)


def main(arguments: list[str] | None = None, folder: Path = DATA) -> int:
    return command_line(arguments, folder, files, __file__, __doc__)


if __name__ == "__main__":
    sys.exit(main())
