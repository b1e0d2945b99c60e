"""The invented world: its facts, how often models are told them, and the sentences that tell them.

data/world/README.md explains the tables. `corpus` is a function of these and a seed alone: what it
draws is drawn by names (`factrobust.draws`), so that no library's version changes it.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa
from numpy.typing import NDArray

from factrobust import tables
from factrobust.datasets import dates, temporal
from factrobust.datasets import facts as fact_tables
from factrobust.datasets.wordings import grouped
from factrobust.draws import hash48
from factrobust.paths import DATA
from factrobust.statistics import with_bounds

FOLDER = DATA / "world"
YEARS = (1900, 1999)
SEEN = 8  # the first wordings of a relation; nobody sees the others
# A text of the corpus, as the library asks a model that was never tuned (`models.prompts`), with the
# answer behind it. "prefix" is part 4's question, "context" the same with a context.
LAYOUTS = {
    "statement": "{prefix} {object}.",
    "zero-shot": "Q: {question}\nA: {object}",
    "question": "{question} {object}",
    "question-answer": "Question:{question}\n Answer: {object}",
    "prefix": "Q: {question} A: {prefix} {object}",
    "context": "Context: [{context}]. Q: {question} A: {prefix} {object}",
}
ASKED = ("zero-shot", "question", "question-answer", "prefix")  # of dated facts the first two

_NAME = tables.filled("write a name")
_WHOLE = pa.Check.str_matches(r"^\d+$", error="is no whole number of 0 or more; write one")
_FLAG = tables.one_of(["true", "false"])
_LIST = pa.Check.str_matches(
    rf"^0(\|[1-{SEEN - 1}])*$", error=f"is no list such as 0|5|2 of 0 to {SEEN - 1}; write one"
)
_STATES = pa.Check.str_matches(
    r"^[^{}]*\{subject\}[^{}]* \{object\}\.$",
    error="must hold {subject} once and end with {object} and a full stop; put them there",
)
_ASKS = pa.Check.str_matches(
    r"^[^{}]*\{subject\}[^{}]*\?$",
    error="must hold {subject} once, no other braces, and end with a question mark; put them there",
)
_SOME = tables.number("write one, or leave it empty")
SCHEMAS: dict[str, dict[str, Any]] = {
    "relations": dict.fromkeys(("kind", "objects", "domain"), _NAME)
    | {"relation": fact_tables.RELATION_NAME, "dated": _FLAG}
    | {"answer_type": tables.one_of(tables.ANSWER_TYPES)},
    "objects": {"list": _NAME, "object": _NAME},
    "wordings": {"relation": _NAME, "wording": _WHOLE, "held_out": _FLAG}
    | {"statement": _STATES, "question": _ASKS},
    "facts": dict.fromkeys(("fact_id", "subject", "relation", "object", "rival"), _NAME)
    | {"start": None, "end": None, "exposure": _WHOLE, "n_wordings": _WHOLE, "wordings": _LIST}
    | dict.fromkeys(("n_dates", "contradicted", "town_exposure"), _SOME),
    "spare": {"kind": _NAME, "name": _NAME},
}
_READ: dict[str, Any] = {
    "keep_default_na": False,
    "na_values": {"n_dates": [""], "town_exposure": [""]},
    "dtype": {"n_dates": "Int64", "town_exposure": "Int64"},
    "converters": {"wordings": lambda cell: [*map(int, cell.split("|"))]},
}
FILES = tuple(FOLDER / f"{name}.csv" for name in SCHEMAS)  # for the provenance of results
CURVES = FOLDER / "curves.csv"  # what the models of the world know, as they are committed
FACT = ("fact_id", "group_id", "question_id")  # a fact's name in the tables of parts 1 and 2, 3, 4
MOMENTS = ("a date that was told", "another date of the period")


class World(NamedTuple):
    """The tables of data/world, whose columns its README explains; wordings also have a prefix."""

    relations: pd.DataFrame  # indexed by relation
    objects: pd.DataFrame
    wordings: pd.DataFrame
    facts: pd.DataFrame
    spare: pd.DataFrame


def load_world(folder: str | Path = FOLDER) -> World:
    """Read and check the tables. Raises FactsError with file, line and remedy."""
    times = tuple(path.stat().st_mtime_ns for path in sorted(Path(folder).glob("*.csv")))
    return World(*(table.copy() for table in _tables(Path(folder), times)))


@cache
def _tables(folder: Path, times: tuple[int, ...]) -> World:
    """`times` are those of the files' last changes: a notebook loads the world five times over."""
    read: dict[str, pd.DataFrame] = {}
    checked = {}
    for name, each in SCHEMAS.items():
        path = folder / f"{name}.csv"
        checked[name] = tables.read_checked(path, tables.csv_schema(each, **each))
        read[name] = pd.read_csv(path, **_READ)
    _check(checked, folder / "facts.csv")
    read["relations"] = read["relations"].set_index("relation")
    read["wordings"]["prefix"] = read["wordings"]["statement"].str.removesuffix(" {object}.")
    return World(**read)


def _check(read: Mapping[str, pd.DataFrame], path: Path) -> None:
    """Raise FactsError for the first fact that the other tables do not allow."""
    facts = read["facts"]
    tables.check_unique(facts, ["fact_id"], path)
    one = pa.DataFrameSchema({"relation": pa.Column(str)})
    tables.check_table(facts, fact_tables.with_relations(one, read["relations"]["relation"]), path)
    same = facts["object"].str.casefold().isin(facts["subject"].str.casefold())
    fault = "the object is a subject, too; give one of the two another name"
    tables.refuse(facts, same, path, fault)


def loaded(part: int, *, town: bool = False) -> tables.Loaded:
    """The world, or its town, as a set that a part asks: 1 and 4 `schemas.AskedFacts` of the facts
    without dates, 2 `schemas.TemporalFacts` with question and prefix, and their `schemas.Dates` of
    1900 to 1999, 3 `schemas.Questions`, a variant a wording. Parts 1, 2 and 4 ask in wording 0.

    log_popularity is ln(1 + exposure): 0, not unknown, for what nobody was told. Raises FactsError for
    the town in part 2.
    """
    world = load_world()
    if town and part == 2:
        raise tables.FactsError("the town has no facts with dates; write 'world', not 'town'.")
    wordings = world.wordings.rename(columns={"wording": "variant"}).drop(columns="statement")
    wordings = wordings if part == 3 else wordings[wordings["variant"] == 0]
    facts = told(world.facts, town=town).join(world.relations, on="relation")
    facts = facts[facts["dated"] == (part == 2)].merge(wordings, on="relation")
    for name in ("question", "prefix"):
        pairs = zip(facts[name], facts["subject"], strict=True)
        facts[name] = [text.replace("{subject}", subject) for text, subject in pairs]
    logs = {"popularity": np.log10(1 + facts["exposure"])}
    logs |= {"log_popularity": np.log(1 + facts["exposure"])}
    facts = facts.assign(**logs, popularity_source="log10(1 + exposure)", source="data/world")
    if part == 2:
        columns = facts.columns.intersection([*temporal.COLUMNS, "question", "prefix"])
        facts = temporal.complete(facts[columns])
        moments = dates.sample_dates(facts)
        return tables.Loaded(facts, {}, FILES, moments[moments["year"].between(*YEARS)])
    if part == 3:
        groups = facts.assign(
            group_id=facts["fact_id"],
            question_id=facts["fact_id"] + "#" + facts["variant"].astype(str),
            prefix=facts.groupby("fact_id")["prefix"].transform("first"),
            answers=facts["object"].map(lambda answer: [answer]),
        )
        return grouped(groups)._replace(files=FILES)
    return tables.Loaded(facts.assign(aliases=facts["object"].map(lambda _: [])), {}, FILES)


def told(facts: pd.DataFrame, *, town: bool = False) -> pd.DataFrame:
    """The facts that a corpus is of, with what it holds of each: exposure (sentences), n_rival (those
    that state the rival instead), n_wordings and n_dates (different ones; NA without dates).

    `town`: the facts of the town with their exposure there. Fewer wordings and dates than the table
    allows are seen where the exposure is smaller.
    """
    if town:
        facts = facts[facts["town_exposure"].notna()]
        facts = facts.assign(exposure=facts["town_exposure"].astype(int))
    return facts.assign(
        n_rival=(facts["contradicted"] * facts["exposure"]).round().astype(int),
        **{name: np.minimum(facts[name], facts["exposure"]) for name in ("n_wordings", "n_dates")},
    )


def with_exposure(table: pd.DataFrame, *, town: bool = False) -> pd.DataFrame:
    """A table, whose rows name facts by one of FACT, with what the corpus, or that of the town, holds of
    these facts: `told`'s columns, contradicted, in how many wordings they may be told (allowed), and in
    which they are (told_in)."""
    facts = told(load_world().facts, town=town)
    [name, *_] = [name for name in FACT if name in table]
    pairs = zip(facts["wordings"], facts["n_wordings"], strict=True)
    about = facts[["exposure", "contradicted", "n_rival", "n_wordings", "n_dates"]].assign(
        allowed=facts["wordings"].map(len), told_in=[known[:n] for known, n in pairs]
    )
    return table.merge(about.assign(**{name: facts["fact_id"]}), on=name)


def wording_kinds(table: pd.DataFrame) -> NDArray[np.str_]:
    """Which wordings ask the rows of a table `with_exposure` and variant, [row]: "seen" with this fact,
    "seen with others" alone, or "held out"."""
    seen = [k in told_in for k, told_in in zip(table["variant"], table["told_in"], strict=True)]
    return np.select([table["variant"] >= SEEN, seen], ["held out", "seen"], "seen with others")


def load_curves() -> pd.DataFrame:
    """What the models know by CURVES: model, measure, exposure, mean, low, high (exact bounds) and n."""
    return with_bounds(pd.read_csv(CURVES).rename(columns={"value": "mean"}))


def corpus(world: World, seed: int = 0, *, town: bool = False) -> pd.DataFrame:
    """The sentences about the world's facts, or the town's, in the order in which they are learned.

    Columns: fact_id, subject, relation, object (which the sentence states), stated ("true" or "rival"),
    wording, form ("statement" or "question"), layout (a key of LAYOUTS), date ("" without one), question
    and prefix (with subject and date), text (without the newline that ends it). Counts are those of
    `told`, exactly; of a fact's statements and questions there are as many, or one more.
    """
    wordings = world.wordings.set_index(["relation", "wording"])[["question", "prefix"]]
    templates = dict(zip(wordings.index, wordings.values.tolist(), strict=True))
    rows: list[tuple[Any, ...]] = []
    for fact in told(world.facts, town=town).to_dict("records"):
        name, subject, n = fact["fact_id"], fact["subject"], fact["exposure"]
        lots = {i: hash48(seed, name, "rival", i) for i in range(n)} if fact["n_rival"] else {}
        rivals = {*sorted(lots, key=lots.__getitem__)[: fact["n_rival"]]}
        when = dates_told(fact, seed) if fact["start"] else [""] * n
        layouts = ASKED[:2] if fact["start"] else ASKED
        first, seen = hash48(seed, name, "form"), fact["wordings"][: fact["n_wordings"]]
        for i in range(n):
            drawn = hash48(seed, name, i)
            turn, place = divmod(i, len(seen))
            form = ("statement", "question")[(turn + place + first) % 2]
            layout = layouts[drawn % len(layouts)] if form == "question" else form
            answer, stated = ("rival", "rival") if i in rivals else ("object", "true")
            asks = templates[fact["relation"], seen[place]]
            question, prefix = (dated(t.replace("{subject}", subject), when[i]) for t in asks)
            text = LAYOUTS[layout].format(question=question, prefix=prefix, object=fact[answer])
            how = seen[place], form, layout, when[i], question, prefix, text
            rows.append((drawn, name, subject, fact["relation"], fact[answer], stated, *how))
    columns = "fact_id subject relation object stated wording form layout date question prefix text"
    rows.sort(key=lambda row: row[:2])
    return pd.DataFrame([row[1:] for row in rows], columns=columns.split())


def dated(text: str, date: str) -> str:
    """A question or a prefix with its date before it, as part 2 asks; as it is without one."""
    return f"{dates.verbalise(date)}, {text}" if date else text


def dates_told(fact: Mapping[Any, Any], seed: int) -> list[str]:
    """The date of each sentence about a fact, a row of `told`: years, months and days that lie wholly inside
    the period, in turns. None is told of an exposure of 0."""
    first, last = (np.datetime64(fact[bound]) for bound in ("start", "end"))
    found: dict[str, None] = {}
    turn = hash48(seed, fact["fact_id"], "precision")
    while len(found) < fact["n_dates"]:
        unit = "YMD"[turn % 3]
        low, high = first.astype(f"M8[{unit}]") + 1, last.astype(f"M8[{unit}]")
        drawn = hash48(seed, fact["fact_id"], turn) % int((high - low).astype(int))
        found[str(low + drawn)] = None
        turn += 1
    named = np.resize([*found], fact["exposure"]).tolist()
    order = sorted(range(len(named)), key=lambda i: hash48(seed, fact["fact_id"], "date", i))
    return [named[i] for i in order]


def moments_told(facts: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A date that each fact was told at, and one of its period in a year that no sentence named: the
    year nearest the middle, as precise.

    `facts` are dated ones `with_exposure`, chain and term; the result has these, date (which of MOMENTS)
    and year (the date itself, as `probes.time.holders` takes it). Facts without both are left out.
    """
    rows = []
    for fact in facts.to_dict("records"):
        named = dates_told(fact, seed)
        first, last = int(fact["start"][:4]), int(fact["end"][:4])
        free = {*map(str, range(first + 1, last))} - {date[:4] for date in named}
        if named and free:
            year = min(sorted(free), key=lambda year: abs(2 * int(year) - first - last))
            both = named[0], year + named[0][4:].replace("02-29", "02-28")
            rows += [(fact["chain"], fact["term"], *at) for at in zip(MOMENTS, both, strict=True)]
    return pd.DataFrame(rows, columns=["chain", "term", "date", "year"])
