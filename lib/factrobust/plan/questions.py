"""How many questions a data set has, and how long they are: what is asked, before it is fetched.

Embedded data and CSV files are loaded and counted. For the official data sets there are their sizes
as published, before this library leaves out any, and mean lengths: so counts are "at most".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import pandas as pd

from factrobust.datasets import facts as fact_tables
from factrobust.datasets.contexts import facts_as_questions, load_context_questions
from factrobust.datasets.dates import sample_dates
from factrobust.datasets.facts import load_relations
from factrobust.datasets.named import EMBEDDED, load_named
from factrobust.datasets.published import load_published
from factrobust.datasets.temporal import load_temporal_facts
from factrobust.datasets.wordings import load_paraphrases, paraphrased, sample
from factrobust.probes.time import statements


class Texts(NamedTuple):
    """So many questions, and mean numbers of characters: of each, its answer's prefix, its answer."""

    n: float
    question: float
    prefix: float
    answer: float


class UnknownSize(ValueError):
    """A data set of which neither a file nor a size is at hand."""


# Questions of the validation splits; characters as in the official files (TriviaQA, HotpotQA: as in
# samples of 1,000 and of 100 questions).
OFFICIAL = {
    "squad": Texts(10_570, 60, 0, 17),
    "trivia_qa": Texts(11_313, 81, 0, 9),
    "hotpot_qa": Texts(7_405, 99, 0, 14),
}
POPQA = Texts(1, 50, 37, 11)  # of one question, as the embedded ones of its relations are
# Paper 2, table 2: 15.16 words a question with its date and answer; names take two of them.
TIMESTRESS = Texts(1, 78, 0, 12)


def spread(limit: int, sizes: Sequence[int]) -> list[int]:
    """How many of `limit` each group gives, if they give one each in turns, as far as they go."""
    given = [0] * len(sizes)
    while limit > 0 and (able := [i for i, size in enumerate(sizes) if given[i] < size]):
        turns = min(limit // len(able), *(sizes[i] - given[i] for i in able))
        for i in able[:limit]:
            given[i] += max(turns, 1)
            limit -= max(turns, 1)
    return given


def measured(table: pd.DataFrame, answer: str = "object") -> Texts:
    """The number of rows, and mean lengths of the columns question, prefix and `answer`."""
    columns = ("question", "prefix", answer)
    question, prefix, given = (float(table[c].fillna("").str.len().mean()) for c in columns)
    return Texts(len(table), question, prefix, given)


@cache
def decoding_facts(data: tuple[str, ...], limit: int) -> list[Texts]:
    """Part 1's facts, one entry a domain; raises UnknownSize, and for a file as its loader does."""
    domains: dict[str, Texts] = {}
    for name in data:
        known = _base(name)
        if known in OFFICIAL:
            domains[known] = OFFICIAL[known]
        elif known == "popqa":
            sizes = load_published("3-wording-table-1").set_index("relation")["questions"]
            relations = load_relations()["domain"].loc[sizes.index]
            for domain, n in sizes.astype(int).groupby(relations).sum().items():
                domains[f"popqa, {domain!s}"] = POPQA._replace(n=int(n))
        elif name == EMBEDDED or name.endswith(".csv"):
            for domain, part in load_named([name]).facts.groupby("domain"):
                domains[f"{name}, {domain!s}"] = measured(part)
        else:
            raise _unknown(name)
    counts = spread(limit, [int(part.n) for part in domains.values()])
    return [part._replace(n=n) for part, n in zip(domains.values(), counts, strict=True)]


@cache
def dated(data: str, n_facts: int, n_correct: int, n_incorrect: int, seed: int) -> Texts:
    """Part 2's dated questions about so many facts; raises UnknownSize."""
    if data == EMBEDDED:
        return measured(_statements(n_facts, n_correct, n_incorrect, seed))
    if _base(data) != "timestress":
        raise _unknown(data)
    return TIMESTRESS._replace(n=n_facts * 3 * _per_precision(n_correct, n_incorrect))


@cache
def dense_years(
    data: str,
    n_facts: int,
    n_correct: int,
    n_incorrect: int,
    seed: int,
    n_dense: int,
    n_years: int,
) -> Texts:
    """The years of `n_dense` facts, `n_years` incorrect ones each, that `dated` has not asked about."""
    if data == EMBEDDED:
        asked = _statements(n_facts, n_correct, n_incorrect, seed)
        years = _statements(n_dense, n_correct, n_years, seed)
        years = years[years["precision"] == "year"]
        again = pd.MultiIndex.from_frame(years[["fact_id", "date"]]).isin(
            pd.MultiIndex.from_frame(asked[["fact_id", "date"]])
        )
        return measured(years)._replace(n=int((~again).sum()))
    if _base(data) != "timestress":
        raise _unknown(data)
    more = _per_precision(n_correct, n_years) - _per_precision(n_correct, n_incorrect)
    return TIMESTRESS._replace(n=n_dense * max(more, 0))


@cache
def paraphrases(data: str, n_facts: int, seed: int) -> tuple[Texts, float]:
    """Part 3's questions with their paraphrases, and how many facts they are about."""
    if data == EMBEDDED:
        relations = load_paraphrases()["relation"].unique()
        table = sample(paraphrased(fact_tables.load_facts(relations=relations)), n_facts, seed)
        texts = measured(table.assign(answer=table["answers"].str[0]), "answer")
        return texts, table["group_id"].nunique()
    if _base(data) != "popqa_tp":
        raise _unknown(data)
    table = load_published("3-wording-table-1")[["questions", "total_questions"]].astype(int)
    counts = spread(n_facts, table["questions"].tolist())
    questions = (table["total_questions"] / table["questions"] * counts).sum()
    return POPQA._replace(n=float(questions)), sum(counts)


@cache
def context_questions(n_objects: int, seed: int) -> Texts:
    """Part 4's questions; their answers are the models' own, 30 characters in the embedded ones'."""
    table = load_context_questions(limit=n_objects, seed=seed)
    return measured(table.assign(answer="x" * 30), "answer")


@cache
def context_facts(n_facts: int, seed: int) -> Texts:
    """The embedded facts that part 4 asks with true, irrelevant and false contexts."""
    drawn = fact_tables.load_facts(limit=n_facts, seed=seed)
    table = facts_as_questions(fact_tables.load_facts())
    table = table[table["question_id"].isin(drawn["fact_id"])]
    return measured(table.assign(answer=table["answers"].str[0]), "answer")


@cache
def _statements(n_facts: int, n_correct: int, n_incorrect: int, seed: int) -> pd.DataFrame:
    facts = load_temporal_facts(limit=n_facts, seed=seed)
    dates = sample_dates(facts, n_correct=n_correct, n_incorrect=n_incorrect, seed=seed)
    return statements(facts, dates)


def _per_precision(n_correct: int, n_incorrect: int) -> float:
    """Dates of a fact at one precision, on average."""
    means = load_published("2-time-table-2").set_index("quantity")["value"].astype(float)
    kept = min(n_correct, means["correct_dates_per_fact"])
    kept += min(n_incorrect, means["incorrect_dates_per_fact"])
    return float(kept + means["transitional_dates_per_fact"])


def _base(name: str) -> str:
    """The data set of a name that may go on with @revision or :file."""
    return name.partition("@")[0].partition(":")[0]


def _unknown(name: str) -> UnknownSize:
    known = [EMBEDDED, *OFFICIAL, "popqa", "timestress", "popqa_tp"]
    return UnknownSize(f"the size of {name!r} is not known here (only of {', '.join(known)})")
