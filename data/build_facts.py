"""Build data/facts.csv and data/relations.csv from data packages and data/sources/*.csv.

    python data/build_facts.py            write the two tables, and the counts in data/README.md
    python data/build_facts.py --check    write nothing; exit 1 if they differ from the sources

Facts that two sources hold are compared. A disagreement stops the build until the hand-typed value
is mended, or listed with a reason in data/sources/resolved.csv: then the hand-typed value stands.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
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
    questions,
    read_relations,
)
from factrobust.tables import ANSWER_TYPES, FactsError, slug

DATA = Path(__file__).resolve().parent
EXEMPLARS = ("Mona Lisa", "Red Planet")  # shown to the models as two-shot examples
MAX_ROWS = 55  # a relation's most popular subjects, so that no relation outweighs the others
OTHER_MAX_ROWS = {"capital": 90, "calling_code": 45, "continent": 45}
MAX_SAME_CURRENCY = 8  # or every fourth answer would be "euro"


def leaks(row: Row, relation: pd.Series) -> bool:
    """True if an accepted answer stands in the question or the prefix."""
    for column in ("question", "prefix"):
        asked = f" {plain(relation[column].replace('{subject}', row['subject']))} "
        if any(f" {plain(name)} " in asked for name in names(row["object"], row["aliases"])):
            return True
    return False


def popularity(subject: str) -> float:
    """Zipf frequency of a subject in English text, without a leading article.

    Several words count together as wordfreq combines them: 1/f = 1/f1 + 1/f2 + ..., so that the
    rarest word weighs most.
    """
    from wordfreq import zipf_frequency

    return zipf_frequency(re.sub(r"^(the|a|an) ", "", subject), "en")


def build(*, left_out: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the facts and the relations as they are written: all columns, sorted. With `left_out`
    the facts beyond the limits of their relations in their place: no notebook asks them."""
    for package, version in VERSIONS.items():
        if (found := importlib.metadata.version(package)) != version:
            raise FactsError(
                f"{package} is {found} but the tables were built with {version}; "
                f"pip install {package}=={version}, or change VERSIONS and review the difference."
            )
    relations = pd.concat([read_relations(path) for path in sorted(SOURCES.glob("relations*.csv"))])
    if (twice := relations.index.duplicated()).any():
        raise FactsError(f"two relations*.csv define {relations.index[twice][0]!r}; remove one.")
    checks = Checks(source("resolved"))
    rows = []
    for made, drop_leaks in (
        (country_facts(checks), True),
        (city_facts(checks), False),
        (element_facts(checks), False),
        (typed_facts(checks), False),
    ):
        for row in made:
            if row["relation"] not in relations.index:
                raise FactsError(f"relations*.csv in {SOURCES} lack {row['relation']!r}; add it.")
            leaky = leaks(row, relations.loc[row["relation"]])
            if leaky and drop_leaks:
                continue
            if leaky:
                checks.agree("leak", f"{row['relation']}/{slug(row['subject'])}", [], ["a leak"])
            rows.append(row)
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
    facts["fact_id"] = facts["relation"] + "/" + facts["subject"].map(slug)
    if (twice := facts["fact_id"].duplicated()).any():
        raise FactsError(f"two facts are called {facts['fact_id'][twice].iloc[0]}; remove one.")
    facts["answer_type"] = facts["relation"].map(relations["answer_type"])
    facts["domain"] = facts["relation"].map(relations["domain"])
    facts["popularity"] = facts["subject"].map(popularity)
    facts["popularity_source"] = f"wordfreq {VERSIONS['wordfreq']} zipf"
    facts = facts.sort_values(["popularity", "fact_id"], ascending=[False, True])
    same = facts.groupby(["relation", "object"]).cumcount()
    facts = facts[(facts["relation"] != "currency") | (same < MAX_SAME_CURRENCY)]
    limit = facts["relation"].map(OTHER_MAX_ROWS).fillna(MAX_ROWS)
    popular = facts.groupby("relation").cumcount() < limit
    facts = facts[~popular if left_out else popular]
    facts["place"] = facts["domain"].map(DOMAINS.index)
    return facts.sort_values(
        ["place", "relation", "popularity", "fact_id"], ascending=[True, True, False, True]
    )[list(COLUMNS)]


def describe_relations(facts: pd.DataFrame) -> pd.DataFrame:
    """One row a relation: domain, answer type, number of facts, different answers, an example."""
    groups = (
        questions(facts)
        .sort_values("popularity", ascending=False, kind="stable")
        .groupby("relation")
    )
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
    return (
        f"{len(facts)} facts of {facts['relation'].nunique()} relations.\n\n"
        f"{by_type.to_markdown()}\n\n{describe_relations(facts).to_markdown()}"
    )


def with_counts(readme: str, counts: str) -> str:
    """The README's text with the part between its two markers replaced."""
    begin, end = "<!-- counts: written by build_facts.py -->", "<!-- end of counts -->"
    head, rest = readme.split(begin)
    return f"{head}{begin}\n{counts}\n{end}{rest.split(end)[1]}"


def main(arguments: list[str] | None = None, folder: Path = DATA) -> int:
    return command_line(arguments, folder, update, __file__, __doc__)


def command_line(
    arguments: list[str] | None,
    folder: Path,
    update: Callable[[Path, bool], list[str]],
    script: str,
    about: str,
) -> int:
    """Run a builder's `update` as its command says; the exit status."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on difference")
    check = parser.parse_args(arguments).check
    try:
        changed = update(folder, check)
    except FactsError as error:
        print(error, file=sys.stderr)
        return 1
    if not changed:
        print("up to date")
    elif check:
        name = Path(script).name
        print(f"{', '.join(changed)} differ from data/sources; run python data/{name}")
    else:
        print(f"{', '.join(changed)} written")
    return 1 if check and changed else 0


def update(folder: Path, check: bool) -> list[str]:
    """Names of the files in `folder` that differ from a fresh build; written unless `check`."""
    facts, relations = build()
    relations = relations[list(RELATIONS_SCHEMA.columns)]
    changed = []

    def put(name: str, text: str) -> None:
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            changed.append(name)
            if not check:
                path.write_text(text, encoding="utf-8")

    put("relations.csv", relations.to_csv(index=False, lineterminator="\n"))
    put("facts.csv", facts.to_csv(index=False, lineterminator="\n", float_format="%.2f"))
    if not (check and changed):  # the counts are those of the table as users load it
        readme = (folder / "README.md").read_text(encoding="utf-8")
        put("README.md", with_counts(readme, counts_for_readme(folder / "facts.csv")))
    return changed


if __name__ == "__main__":
    sys.exit(main())
