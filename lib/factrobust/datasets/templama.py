"""TempLAMA (Dhingra et al. 2022): one row a question and year, turned into facts with two bounds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from factrobust.datasets.hub import read_lines
from factrobust.datasets.temporal import complete
from factrobust.tables import FactsError

BLANK = "_X_"
# Wikidata's property -> our name of the relation, and how TempLAMA words it. The relations of
# data/temporal_relations.csv are four of these; for others, write a relations file.
RELATIONS = {
    "P6": ("head_of_government", "_X_ is the head of the government of {subject}."),
    "P39": ("position_held", "{subject} holds the position of _X_."),
    "P54": ("member_of_sports_team", "{subject} plays for _X_."),
    "P69": ("educated_at", "{subject} attended _X_."),
    "P102": ("political_party", "{subject} is a member of the _X_."),
    "P108": ("employer", "{subject} works for _X_."),
    "P127": ("owned_by", "{subject} is owned by _X_."),
    "P286": ("head_coach", "_X_ is the head coach of {subject}."),
    "P488": ("chairperson", "_X_ is the chair of {subject}."),
}
FIELDS = ("query", "answer", "date", "relation")


def load_templama(
    path: str | Path, *, relations: Mapping[str, tuple[str, str]] | None = None
) -> pd.DataFrame:
    """Facts with years as bounds, from rows that say what held in some part of a year.

    `path` is a file of JSON lines, or a folder of them (.json, .jsonl; the splits share no subject,
    so that all belong together). A row has query ("Valentino Rossi plays for _X_."), answer (a list
    of {"name", "wikidata_id"}; a name may be a list, its first the answer and the others aliases,
    or original_name the answer), date ("2010") and relation ("P54"). `relations` adds relations, or
    replaces some of RELATIONS: id -> (our name, their wording with {subject} and _X_).

    Consecutive years of one query and answer are merged into a period; a gap makes two. Its first
    and last year are the bounds, known to the year. A period that reaches the first or the last year
    of the data is open: when it began or ended is not known. Left out and counted in
    attrs["dropped"]: "open" periods, "short" ones (under three years: no year is surely correct),
    and any "other" period of a query and answer that one of these belongs to, since the dates
    outside it are not surely incorrect. attrs["years"] holds the data's first and last year: what
    held outside them is not known either, so keep the dates with
    dates["year"].between(*facts.attrs["years"]).

    Columns as in `load_temporal_facts`. Raises FactsError, with file and line, for a row that is not
    as described, or a file without rows.
    """
    known = RELATIONS | dict(relations or {})
    held: dict[tuple[str, str, str], set[int]] = {}  # (relation, subject, answer's id) -> years
    names: dict[tuple[str, str, str], list[str]] = {}
    years: set[int] = set()
    for row, where in _rows(Path(path)):
        year, subject = _year(row, where), _subject(row, known, where)
        years.add(year)
        for answer, spellings in _answers(row, where):
            key = (known[row["relation"]][0], subject, answer)
            held.setdefault(key, set()).add(year)
            names.setdefault(key, spellings)
    if not years:
        raise FactsError(f"{path} has no rows; give a file of TempLAMA's JSON lines.")
    dropped = Counter({"open": 0, "short": 0, "other": 0})
    found = []
    for key, when in held.items():
        periods = _periods(when)
        faults = ["open" if {min(years), max(years)} & {*p} else _short(p) for p in periods]
        if any(faults):
            dropped.update(fault or "other" for fault in faults)
            continue
        found += [(*key[:2], *_spelled(names[key]), str(a), str(b)) for a, b in periods]
    columns = ["relation", "subject", "object", "aliases", "start", "end"]
    facts = complete(pd.DataFrame(found, columns=columns, dtype=str).assign(source="TempLAMA"))
    facts.attrs |= {"dropped": dict(dropped), "years": (min(years), max(years))}
    return facts


def _rows(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Each row, and where it stands."""
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".json", ".jsonl"))
    for file in files:
        for where, row in read_lines(file, "TempLAMA"):
            if missing := [name for name in FIELDS if name not in row]:
                raise FactsError(
                    f"{where}: the row has no {missing[0]!r}; it needs {', '.join(FIELDS)}."
                )
            yield row, where


def _year(row: Mapping[str, Any], where: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{3}", str(row["date"])):
        raise FactsError(f"{where}: the date {row['date']!r} is no year; write one such as 2010.")
    return int(row["date"])


def _subject(row: Mapping[str, Any], known: Mapping[str, tuple[str, str]], where: str) -> str:
    """What the query is about: the words at {subject} in the relation's wording."""
    if row["relation"] not in known:
        raise FactsError(
            f"{where}: the relation {row['relation']!r} has no wording; pass relations="
            f"{{{row['relation']!r}: (name, '{{subject}} ... {BLANK}.')}}, or remove the line."
        )
    wording = known[row["relation"]][1]
    before, after = (re.escape(part) for part in wording.split("{subject}"))
    match = re.fullmatch(f"{before}(.+){after}", str(row["query"]))
    if not match:
        raise FactsError(
            f"{where}: the query {row['query']!r} does not read {wording!r}; mend or remove the line."
        )
    return match[1]


def _answers(row: Mapping[str, Any], where: str) -> Iterator[tuple[str, list[str]]]:
    """The id of each answer, or its name without one, and its spellings, the usual one first."""
    given = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
    for answer in given:
        fields = answer if isinstance(answer, dict) else {}
        cells = [fields.get(name, []) for name in ("original_name", "name")]
        spellings = [s for cell in cells for s in (cell if isinstance(cell, list) else [cell])]
        if not spellings:
            raise FactsError(f"{where}: an answer has no name; mend or remove the line.")
        yield fields.get("wikidata_id") or spellings[0], list(dict.fromkeys(spellings))


def _periods(years: set[int]) -> list[tuple[int, int]]:
    """First and last year of each run of consecutive years."""
    firsts = sorted(year for year in years if year - 1 not in years)
    lasts = sorted(year for year in years if year + 1 not in years)
    return list(zip(firsts, lasts, strict=True))


def _short(period: tuple[int, int]) -> str:
    return "short" if period[1] - period[0] < 2 else ""


def _spelled(spellings: list[str]) -> tuple[str, str]:
    return spellings[0], "|".join(spellings[1:])
