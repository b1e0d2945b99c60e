"""Temporal facts (subject, relation, object, start, end), their questions and counts; the wrong names
and subjects that a fact is set beside; holders of offices."""

from collections import defaultdict
from collections.abc import (
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust import schemas, tables
from factrobust.datasets import facts as fact_tables
from factrobust.datasets import named, world
from factrobust.datasets.official import FILLED, read_rows
from factrobust.draws import hash64, in_turns, need_count
from factrobust.paths import DATA
from factrobust.tables import FactsError, Loaded
from factrobust.temporal import dates as dating
from factrobust.temporal.dates import (
    LABELS,
    PRECISIONS,
    YEARS,
    even,
    is_date,
    parse,
)
from factrobust.text import normalise

FILES = (
    DATA / "temporal_facts.csv",
    DATA / "temporal_relations.csv",
)  # for provenance
REQUIRED = ("subject", "relation", "object", "start", "end")
POPULARITIES = ("subject_popularity", "object_popularity", "popularity")
_BOUND = [
    tables.filled("write when the fact began or ended; one that still holds has no place here"),
    pa.Check(
        lambda cells: cells.map(is_date) | (cells == ""),
        error="is no date of the calendar; write YYYY, YYYY-MM or YYYY-MM-DD",
    ),
]
COLUMNS = tuple(schemas.TemporalFacts.columns)
WORDING = ["question", "prefix"]
Spellings = dict[str, set[str]]  # of an object, or of all objects of a subject
# Of CSV files, all cells still strings. Which relations are known, `check_quintuples` checks besides.
_CHECKS = {name: column.checks for name, column in fact_tables.SCHEMA.columns.items()}
_CHECKS |= dict.fromkeys(POPULARITIES, _CHECKS["popularity"]) | {"start": _BOUND, "end": _BOUND}
SCHEMA = tables.csv_schema(
    REQUIRED,
    **{name: _CHECKS.get(name) for name in COLUMNS},
)
RELATIONS_SCHEMA = fact_tables.RELATIONS_SCHEMA.select_columns(["relation", "question", "prefix"])


def load_temporal_relations() -> pd.DataFrame:
    """How temporal facts are asked for, indexed by relation: question, prefix. Both hold {subject}
    once and go on after a date ("In 2019, ..."); the object continues the prefix."""
    return fact_tables.read_relations(FILES[1], RELATIONS_SCHEMA)


def with_wording(facts: pd.DataFrame) -> pd.DataFrame:
    """The facts with question and prefix: their own, or else those of their relation."""
    if "question" in facts:
        return facts
    relations = load_temporal_relations()
    for column in WORDING:
        pairs = zip(
            relations.loc[facts["relation"], column],
            facts["subject"],
            strict=True,
        )
        texts = [text.replace("{subject}", subject) for text, subject in pairs]
        facts = facts.assign(**{column: texts})
    return facts


def load_temporal_facts(
    path: str | Path | None = None,
) -> pd.DataFrame:
    """Return temporal facts, in the file's order: a table `schemas.TemporalFacts`.

    `path` is a CSV of your own (default: the embedded table) with at least subject, relation, object,
    start and end. fact_id is made of relation, subject and object (and start, if they repeat),
    popularity the mean of the other two where both count the same, else NaN; the rest is empty.

    Raises FactsError with file and line for a bad file: a bound that is missing or no date, an end
    before the start, a period without a whole calendar year inside, a repeated fact, a relation
    without a question.
    """
    path = FILES[0] if path is None else Path(path)
    frame = tables.read_checked(path, SCHEMA)
    check_quintuples(frame, load_temporal_relations().index, path)
    frame = complete(frame)
    tables.check_unique(frame, ["fact_id"], path)
    return frame.reset_index(drop=True)


def sample_facts(facts: pd.DataFrame, limit: int | None, seed: int) -> pd.DataFrame:
    """A seeded sample in the facts' order, spread evenly over relations; all of them for None."""
    if limit is None:
        return facts
    order = in_turns(facts, limit, seed, ["relation"])
    return facts.loc[order.index[:limit].sort_values()].reset_index(drop=True)


def whole_years(start: pd.Series, end: pd.Series) -> pd.Series:
    """How many calendar years lie wholly between the two bounds, which they may not touch."""
    years = end.str[:4].astype(int) - start.str[:4].astype(int)
    return (years - 1).clip(lower=0)


def check_quintuples(
    frame: pd.DataFrame,
    relations: Iterable[str],
    path: str | Path,
) -> None:
    """Raise FactsError for the first bad row of a table that `read_table` has read."""
    tables.check_table(
        frame,
        fact_tables.with_relations(SCHEMA, relations),
        path,
    )
    tables.check_unique(
        frame,
        ["relation", "subject", "object", "start"],
        path,
    )
    tables.refuse(
        frame, parse(frame["start"])[0] > parse(frame["end"])[1], path,
        "the period from {start} to {end} ends before it begins; swap the two, or mend the wrong one",
    )  # fmt: skip
    tables.refuse(
        frame, whole_years(frame["start"], frame["end"]) == 0, path,
        "the period from {start} to {end} has no whole calendar year surely inside, so that no year is "
        "correct; give the bounds more precisely, or delete the line",
    )  # fmt: skip


def complete(frame: pd.DataFrame) -> pd.DataFrame:
    """Fill in the columns that a table of quintuples may leave out, and give each its type."""
    frame = tables.complete_table(frame, SCHEMA, fact_id=_names(frame))
    for column in POPULARITIES:
        frame[column] = pd.to_numeric(frame[column]).astype(float)
    mean = (frame["subject_popularity"] + frame["object_popularity"]) / 2
    alike = frame["subject_counts"] == frame["object_counts"]
    frame["popularity"] = frame["popularity"].fillna(mean.where(alike))
    frame["aliases"] = tables.alias_lists(frame["aliases"], frame["object"])
    return frame


def popularities(facts: pd.DataFrame) -> pd.DataFrame:
    """The known popularities, a row a fact and what is popular: fact_id, what, popularity. what is
    "subject (views)", "object (people)", ...: different counts are not compared. "subject" and
    "object" stand where the table does not say what it counts; "fact" is the fact's own."""
    sides = facts.assign(
        fact_popularity=facts["popularity"],
        fact_counts="",
    )
    parts = [
        sides[["fact_id"]].assign(
            what=(side + " (" + sides[f"{side}_counts"] + ")").str.removesuffix(" ()"),
            popularity=sides[f"{side}_popularity"],
        )
        for side in ("subject", "object", "fact")
    ]
    return pd.concat(parts, ignore_index=True).dropna().reset_index(drop=True)


def popularities_with_means(facts: pd.DataFrame) -> pd.DataFrame:
    """`popularities`, and "fact (geometric mean)" of facts without one of their own (TimeStress's have
    one): the mean of the logarithms of subject and object, whatever these count."""
    sides = facts[["subject_popularity", "object_popularity"]]
    means = facts[["fact_id"]].assign(
        what="fact (geometric mean)",
        popularity=sides.mean(axis=1, skipna=False),
    )
    means = means[facts["popularity"].isna()].dropna()
    return pd.concat([popularities(facts), means], ignore_index=True)


def _names(frame: pd.DataFrame) -> pd.Series:
    subject, answer = (frame[name].map(tables.slug) for name in ("subject", "object"))
    names = frame["relation"] + "/" + subject + "/" + answer
    return names.where(
        ~names.duplicated(keep=False),
        names + "/" + frame["start"],
    )


def describe_dates(dates: pd.DataFrame) -> pd.DataFrame:
    """Table 2: average numbers of dates and tests a fact, a row a precision, and "overall", their
    mean.

    Columns: correct, incorrect, transitional, tests (correct times incorrect dates), n (facts). A
    fact without a date of a kind counts as 0. The paper's 1.74 transitional dates are no such mean:
    its rule leaves at most 2 of 3.
    """
    every = pd.MultiIndex.from_product(
        [dates["fact_id"].unique(), PRECISIONS],
        names=["fact_id", "precision"],
    )
    counts = pd.crosstab(
        [dates["fact_id"], dates["precision"]],
        dates["label"],
    )
    counts = counts.reindex(index=every, columns=list(LABELS), fill_value=0)
    counts["tests"] = counts["correct"] * counts["incorrect"]
    table = counts.groupby("precision").mean().reindex(PRECISIONS)
    table.loc["overall"] = table.mean()
    table["n"] = len(every) // len(PRECISIONS)
    return table.rename_axis(index="precision", columns=None)


def other_objects(facts: pd.DataFrame, n: int, *, seed: int = 0) -> pd.DataFrame:
    """`schemas.TemporalFacts` with a column `others`: n objects of other facts of the relation, or
    fewer, the wrong names. Never one that the fact's subject has in this relation, nor its alias. Drawn
    by a hash of the seed, the fact and the name, so that the facts' order does not count."""
    rows = facts.to_dict("records")
    owned = _owned(rows)
    spelled: dict[str, Spellings] = defaultdict(lambda: defaultdict(set))
    for fact in rows:
        spelled[fact["relation"]][fact["object"]] |= _spellings(fact)
    drawn = []
    for fact in rows:
        right = owned[fact["relation"]][fact["subject"]]
        names = spelled[fact["relation"]].items()
        free = [name for name, spellings in names if not spellings & right]
        drawn.append(_by_lot(free, n, seed, fact["fact_id"]))
    return facts.assign(others=pd.Series(drawn, index=facts.index, dtype=object))


def other_subjects(facts: pd.DataFrame, n: int, *, seed: int = 0) -> pd.DataFrame:
    """Facts with `others` and their wording, with two more columns: `other_subjects`, n other subjects
    of the relation (or fewer), and `other_wording`, the question and prefix of each. None of them has
    the fact's object or one of its `others` in this relation, under no alias."""
    rows = facts.to_dict("records")
    owned = _owned(rows)
    wording: dict[tuple[str, str], tuple[str, ...]] = {}
    for fact in rows:
        asked = tuple(fact[column] for column in WORDING)
        wording.setdefault((fact["relation"], fact["subject"]), asked)
    drawn = []
    questions = []
    for fact in rows:
        names = _spellings(fact) | set(map(normalise, fact["others"]))
        subjects = owned[fact["relation"]].items()
        free = [
            subject
            for subject, objects in subjects
            if subject != fact["subject"] and not names & objects
        ]
        chosen = _by_lot(free, n, seed, fact["fact_id"])
        drawn.append(chosen)
        questions.append([wording[fact["relation"], subject] for subject in chosen])
    return facts.assign(
        other_subjects=pd.Series(drawn, index=facts.index, dtype=object),
        other_wording=pd.Series(questions, index=facts.index, dtype=object),
    )


def of_all_subjects(facts: pd.DataFrame) -> pd.DataFrame:
    """Each fact with the question of its own subject (`asked_of` 0) and with those of its
    `other_subjects` (1, 2, ...): a row a fact and subject."""
    parts = [facts.assign(asked_of=0)]
    for place in range(int(facts["other_subjects"].map(len).max())):
        part = facts[facts["other_subjects"].map(len) > place]
        wording = part["other_wording"].str[place]
        asked = {column: wording.str[k] for k, column in enumerate(WORDING)}
        parts.append(part.assign(asked_of=place + 1, **asked))
    return pd.concat(parts, ignore_index=True)


def _spellings(fact: Mapping[Any, Any]) -> set[str]:
    """A fact's object in every spelling."""
    return {normalise(name) for name in (fact["object"], *fact["aliases"])}


def _owned(
    rows: Sequence[Mapping[Any, Any]],
) -> dict[str, Spellings]:
    """The objects of each relation and subject, in every spelling."""
    owned: dict[str, Spellings] = defaultdict(lambda: defaultdict(set))
    for fact in rows:
        owned[fact["relation"]][fact["subject"]] |= _spellings(fact)
    return owned


def _by_lot(names: Sequence[str], n: int, seed: int, fact: str) -> list[str]:
    return sorted(
        names,
        key=lambda name: hash64(f"{seed}/{fact}/{name}"),
    )[:n]


OFFICES = DATA / "successions.csv"  # for provenance
TERM_COLUMNS = tuple(schemas.Terms.columns)
_OF_TERMS = {
    "chain": tables.filled("write a short name, the same for all terms of an office"),
    "office": tables.filled("write what was held, such as the president of France"),
    "holder": tables.filled("write who held the office, or delete the line"),
    "start": SCHEMA.columns["start"].checks,
    "end": SCHEMA.columns["end"].checks[1:],  # it may be empty
}
_CELLS = {name: _OF_TERMS.get(name) for name in TERM_COLUMNS if name != "term"}
TERMS_SCHEMA = tables.csv_schema(_OF_TERMS, **_CELLS)


def load_successions(
    path: str | Path = OFFICES,
    offices: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the terms of `offices` (default: all), each in the order of time: `schemas.Terms`.

    `path` is a CSV of your own (default: the embedded table) with at least chain, office, holder,
    start and end. An empty end means that the term lasted beyond 2020. Gaps and returns are
    allowed. question and prefix are "who was {office}?" and "{office} was" where not given.

    Raises FactsError with file and line for a bound that is no date, or a term that ends before it
    begins or begins before the last one ends; ValueError for an unknown office.
    """
    frame = tables.read_checked(path, TERMS_SCHEMA)
    start = parse(frame["start"])
    end = parse(_ends(frame))
    ends = pd.Series(end[0], frame.index)
    last_end = ends.groupby(frame["chain"]).shift()  # of a first term NaT, which is after nothing
    tables.refuse(
        frame, start[0] > end[1], path,
        "the term of {holder!r} ends before it begins; swap the two dates, or mend the wrong one",
    )  # fmt: skip
    tables.refuse(
        frame, last_end > start[1], path,
        "the term of {holder!r} begins before the last one of its chain ends; mend a date, or put the "
        "terms in order",
    )  # fmt: skip
    known = frame["chain"].unique().tolist()
    for name in offices:
        if name not in known:
            raise ValueError(f"{path} has no office {name!r}; it has {', '.join(known)}.")
    frame = frame[frame["chain"].isin(offices or known)]
    frame = tables.complete_table(frame, TERMS_SCHEMA)
    usual = {
        "question": "who was " + frame["office"] + "?",
        "prefix": frame["office"] + " was",
    }
    for column, texts in usual.items():
        frame[column] = frame[column].mask(frame[column] == "", texts)
    frame["aliases"] = tables.alias_lists(frame["aliases"], frame["holder"])
    frame.insert(
        TERM_COLUMNS.index("term"),
        "term",
        frame.groupby("chain").cumcount(),
    )
    return frame.reset_index(drop=True)


def _ends(terms: pd.DataFrame) -> pd.Series:
    return terms["end"].replace("", str(YEARS[1] + 1))


def moments(terms: pd.DataFrame, n_years: int | None = None) -> pd.DataFrame:
    """The years to ask for the holder: chain, term, year and holder, in their order. At most
    `n_years` (None: all) of the calendar years wholly inside a term, evenly spaced; of one the
    middle year, or the later of two. Raises ValueError for a number that is no count."""
    need_count("n_years", n_years)
    inside = whole_years(terms["start"], _ends(terms))
    table = terms.loc[terms.index.repeat(inside)].reset_index(drop=True)
    term = [table["chain"], table["term"]]
    table["year"] = table["start"].str[:4].astype(int) + 1 + table.groupby(term).cumcount()
    kept = even(term, pd.Series(n_years, table.index, dtype=float))
    return table.loc[kept, ["chain", "term", "year", "holder"]].reset_index(drop=True)


# TimeStress's columns and ours. Their Alpha is computed anew, and a date's length is its precision.
TIMESTRESS = {
    "SubjectLabel": "subject", "RelationLabel": "relation", "ObjectLabel": "object",
    "StartDate": "start", "EndDate": "end", "Time": "date", "Statement": "statement",
    "IsCorrect": "label",
}  # fmt: skip
IDS = ("SubjectID", "RelationID", "ObjectID")  # on Wikidata
_LABEL = pa.Check(  # one that is not known would be asked for, and count as nothing
    lambda cells: cells.str.lower().isin([*dating.LABELS, "discarded", "no context"]),
    error="is not as TimeStress has it; mend or remove the row",
)
_STRESS: dict[str, Any] = dict.fromkeys((*TIMESTRESS, *IDS, "FactPop"), FILLED)
_STRESS |= {"Time": None, "IsCorrect": _LABEL}

# The paper's six relations, and how many facts of each it takes, the most popular ones (4.2).
PAPER_RELATIONS = (
    "employer", "head_of_government", "head_of_state", "member_of", "member_of_sports_team",
    "position_held",
)  # fmt: skip
PAPER_FACTS = 100


def timestress(
    files: list[Path],
    source: str,
    *,
    as_paper: bool = False,
) -> Loaded:
    """The facts and the dates of TimeStress (2,003 facts of 86 relations, CC BY-SA 4.0).

    With `as_paper`, of the paper's six relations the 100 most popular facts each: the set was
    published later, and they need not be the paper's own.

    The facts are `schemas.TemporalFacts` with the authors' question, to go on after a date, and an
    empty prefix; popularity is log10 of FactPop, the geometric mean of the visits to both pages. The
    dates are `schemas.Dates` with the authors' labels. Left out and counted: "no context" (without a
    date), "discarded" (month and day of a transitional year), "before year 1".
    """
    parts = [read_rows(path, _STRESS) for path in files]
    rows = pd.concat(parts, ignore_index=True).rename(columns=TIMESTRESS)
    rows["label"] = rows["label"].str.lower()
    rows["date"] = rows["date"].where(rows["label"] != "no context", "")
    left_out = {
        "no context": rows["date"] == "",
        "discarded": rows["label"] == "discarded",
        "before year 1": np.logical_or.reduce(  # -0044, 0000
            [rows[name].str.startswith(("-", "0000")) for name in ("start", "end", "date")]
        ),
    }
    rows["fact"] = rows.groupby([*IDS, *REQUIRED], sort=False).ngroup()
    # A question without a date comes first, where there is one.
    first = rows[~left_out["before year 1"]].sort_values("date", kind="stable")
    facts = _timestress_facts(first.drop_duplicates("fact").sort_index(), source)
    dated = rows[~np.logical_or.reduce([*left_out.values()])]
    dates = _timestress_dates(dated, facts.set_index("fact")["fact_id"])
    if as_paper:
        facts = facts[facts["relation"].isin(PAPER_RELATIONS)]
        rank = facts.groupby("relation")["popularity"].rank(method="first", ascending=False)
        facts = facts[rank <= PAPER_FACTS].reset_index(drop=True)
        dates = dates[dates["fact_id"].isin(facts["fact_id"])].reset_index(drop=True)
    counts = {reason: int(which.sum()) for reason, which in left_out.items()}
    return Loaded(facts.drop(columns="fact"), counts, dates=dates)


def _timestress_facts(first: pd.DataFrame, source: str) -> pd.DataFrame:
    """One row a fact, from one row of each."""
    wording = [
        (text.removeprefix(f"{dating.verbalise(date)}, ") if date else text).split("?")[0] + "?"
        for text, date in zip(first["statement"], first["date"], strict=True)
    ]
    facts = first[[*REQUIRED, "fact"]].assign(
        relation=[tables.slug(label).replace("-", "_") for label in first["relation"]],
        popularity=np.log10(pd.to_numeric(first["FactPop"])),
        popularity_source="log10 of TimeStress's FactPop",
        source=source,
        question=wording,
        prefix="",
    )
    facts = complete(facts.reset_index(drop=True))
    again = facts.groupby("fact_id").cumcount()  # different things of one name
    facts["fact_id"] += ("/" + (again + 1).astype(str)).where(again > 0, "")
    return facts


def _timestress_dates(rows: pd.DataFrame, names: pd.Series) -> pd.DataFrame:
    """The table of dates, sorted by fact, precision and date; names are the facts'."""
    span = dating.parse(rows["date"])
    alpha, years_off = dating.position(
        span,
        dating.parse(rows["start"]),
        dating.parse(rows["end"]),
    )
    length = rows["date"].str.len()
    dates = rows.assign(
        fact_id=rows["fact"].map(names),
        precision=length.map(
            dict(
                zip(
                    (4, 7, 10),
                    dating.PRECISIONS,
                    strict=True,
                )
            )
        ),
        year=rows["date"].str[:4].astype(int),
        alpha=alpha,
        years_off=years_off,
    )
    order = np.lexsort((span[0], length, rows["fact"]))
    return dates.iloc[order][list(dating.COLUMNS)].reset_index(drop=True)


LOADERS = {
    "timestress": timestress,
    "timestress_paper": partial(timestress, as_paper=True),
}
CENTURY = (1900, 1999)  # of the invented world


def _of_world(name: str) -> Loaded:
    """The dated facts of an invented world, with dates of its century. FactsError for a set without."""
    facts = world.asked(name, dated=True)
    if facts.empty:
        raise FactsError(f"the {name} has no facts with dates; write 'world', not '{name}'.")
    facts = complete(facts[facts.columns.intersection([*COLUMNS, "question", "prefix"])])
    dates = dating.sample_dates(facts)
    return Loaded(facts, {}, dates[dates["year"].between(*CENTURY)])


def load_named_temporal(
    name: str = named.EMBEDDED,
    *,
    sampling: str = "balanced",
    n_fine: int | None = None,
    limit: int | None = None,
    fact_ids: Collection[str] | None = None,
    n_others: int = 0,
    n_subjects: int = 0,
    seed: int = 0,
    **kept: Any,
) -> Loaded:
    """Return temporal facts (`schemas.TemporalFacts`) and the dates to ask about them with.

    TimeStress brings dates, for other facts they are sampled; both are `thinned` (`sampling`,
    `kept`). `limit` takes a seeded sample of facts, of `fact_ids` where these are named, spread evenly
    over relations. n_fine of them
    (None: all) keep months, days and transitional dates, the others only years that play matches.
    The facts have their question and prefix, and `n_others` wrong names and `n_subjects` wrong subjects
    (`other_objects`, `other_subjects`), drawn from all facts of the set.

    Raises ValueError for an unknown name, a bad limit, and a number of years that is no count.
    """
    loaded = named.load_set(
        name,
        lambda path: Loaded(load_temporal_facts(path), {}),
        _of_world,
        LOADERS,
    )
    every = other_objects(with_wording(loaded.table), n_others, seed=seed)
    every = other_subjects(every, n_subjects, seed=seed)
    named_facts = every if fact_ids is None else every[every["fact_id"].isin(fact_ids)]
    table = sample_facts(named_facts.reset_index(drop=True), limit, seed)
    sampled = dating.sample_dates(table, seed=seed) if loaded.dates.empty else loaded.dates
    sampled = sampled[sampled["fact_id"].isin(table["fact_id"])]
    sampled = dating.thinned(sampled, sampling=sampling, **kept)
    fine = sampled["fact_id"].isin(sample_facts(table, n_fine, seed)["fact_id"])
    tested = (sampled["precision"] == "year") & (sampled["label"] != "transitional")
    sampled = sampled[tested | fine]
    return loaded._replace(table=table, dates=sampled.reset_index(drop=True))
