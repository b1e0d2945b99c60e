"""The papers' own data sets and those like them, as tables of ours: a line of data/official.csv.

PopQA (Mallen et al. 2023), PopQA-TP (Rabinovich et al. 2023), TimeStress and TREC (Li and Roth 2002)
are read in this module, the sets with passages in `closed_book`. No set is embedded. This project's
tests cannot reach the hub: the downloads are untried.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust import schemas, tables
from factrobust.datasets import closed_book, temporal, wordings
from factrobust.datasets import dates as dating
from factrobust.datasets import facts as fact_tables
from factrobust.paths import DATA

SUFFIXES = (".parquet", ".json", ".jsonl", ".csv", ".tsv", ".label")


def local_files(path: Path) -> list[Path]:
    """The file at the path, or the data files of a folder and those below it."""
    if not path.is_dir():
        return [path]
    return [file for file in sorted(path.rglob("*")) if file.suffix in SUFFIXES]


def fetch(repo: str, revision: str, pattern: str) -> tuple[list[Path], str]:
    """The files of a data set on the hub whose paths match the pattern, and the commit they are of.

    Its cache serves where the hub cannot be reached, with a branch or short commit as it was when it
    was fetched. Raises ConnectionError when neither has the files.
    """
    from huggingface_hub import snapshot_download

    remedy = f"go online once, or download its {pattern} and give its path instead."
    try:
        which: dict[str, Any] = {"revision": revision, "allow_patterns": pattern}
        folder = Path(snapshot_download(repo, repo_type="dataset", **which))
    except Exception as error:  # the hub's client raises a dozen unrelated types
        raise ConnectionError(
            f"Could not fetch {repo} at {revision} from the hub ({_first_sentence(error)}): {remedy}"
        ) from error
    # rglob, as the hub's client lets * stand for folders too
    files = [path for path in sorted(folder.rglob(pattern)) if path.is_file()]
    parts = [int(n) for file in files for n in re.findall(r"-of-(\d+)", file.name)]
    if len(files) < max(parts, default=1):
        raise ConnectionError(
            f"Neither the hub nor its cache has all of {pattern} of {repo} at {revision}: {remedy}"
        )
    return files, folder.name


def _first_sentence(error: Exception) -> str:
    """The first sentence of an error, on one line."""
    return shorten(f"{type(error).__name__}: {error}".split(". ")[0], 120)


@contextmanager
def reading(path: object, name: str) -> Iterator[None]:
    """Raises FactsError, which names the file, for what is not as in the files of the set `name`."""
    try:
        yield
    except (tables.FactsError, ConnectionError):
        raise
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise tables.FactsError(
            f"{path} cannot be read as {name} ({_first_sentence(error)}); give the set's own file, with "
            "answers, unpacked, or fetch it anew."
        ) from error


def read_rows(path: Path, checks: Mapping[str, Any]) -> pd.DataFrame:
    """The columns of a CSV, TSV or parquet file that have a check, as texts, by line or row."""
    schema = tables.csv_schema(checks, **checks)
    if path.suffix != ".parquet":
        return tables.read_checked(path, schema)[[*checks]]
    rows = pd.read_parquet(path, columns=[*checks]).astype("str").fillna("")
    rows.index = pd.RangeIndex(1, len(rows) + 1, name="row")
    tables.check_table(rows, schema, path)
    return rows


POPQA_FILES = ("popQA.tsv", "test.tsv")  # as PopQA's authors and the hub call it
# Around some answers stand marks that nobody sees ("Norvège" and U+200F), and no model writes.
BLANK = " \t\n\r\xa0\u200b\u200e\u200f\ufeff"
# What Mac OS Roman makes of the first bytes of the letters that are common in names: é becomes √©.
GARBLED = "¬√ƒ≈∆»·‚"


def _texts(cell: str) -> list[str]:
    """The different texts of a JSON list, without blanks around them."""
    return [text for text in dict.fromkeys(text.strip(BLANK) for text in json.loads(cell)) if text]


_FILLED = tables.filled("remove the row")
_KNOWN = pa.Check(
    lambda cells: cells.str.replace(" ", "_").isin(wordings.load_paraphrases()["relation"]),
    error="is none of PopQA's 16; remove the row",
)
_SHARED = {"id": _FILLED, "prop": _KNOWN, "possible_answers": _FILLED}
# What is read of PopQA's 17 columns; the others are ids, titles and aliases on Wikidata.
_POPQA = _SHARED | dict.fromkeys(("subj", "obj", "question"), _FILLED) | {"s_pop": None}
_POPQA_TP = _SHARED | dict.fromkeys(("paraphrase", "template_id"), _FILLED)


def popqa(files: list[Path], source: str) -> tables.Loaded:
    """PopQA as facts: a table `schemas.AskedFacts`, and log_popularity.

    fact_id is the relation and PopQA's id ("place_of_birth/4222362"), question PopQA's own, prefix
    the embedded relation's with PopQA's subject; aliases are the possible answers without obj;
    popularity is the subject's page views a month, log_popularity its natural logarithm (NaN where
    they are 0 or missing).
    """
    (path,) = files
    rows = read_rows(path, _POPQA)
    tables.check_unique(rows, ["id"], path)
    relations = fact_tables.load_relations()
    relation = rows["prop"].str.replace(" ", "_")
    views = pd.to_numeric(rows["s_pop"]).astype(float)
    answers = zip(rows["possible_answers"].map(_texts), rows["obj"], strict=True)
    facts = rows.rename(columns={"subj": "subject", "obj": "object"}).assign(
        fact_id=relation + "/" + rows["id"],
        relation=relation,
        answer_type=relation.map(relations["answer_type"]),
        domain=relation.map(relations["domain"]),
        popularity=views,
        popularity_source="PopQA: page views a month",
        log_popularity=wordings.log_or_nan(views),
        source=source,
    )
    facts["aliases"] = [[text for text in texts if text != first] for texts, first in answers]
    facts = fact_tables.questions(facts).assign(question=rows["question"])
    facts = facts[[*schemas.AskedFacts.columns, "log_popularity"]].reset_index(drop=True)
    return tables.Loaded(facts, {"no_popularity": int(facts["log_popularity"].isna().sum())})


def popqa_tp(files: list[Path], source: str) -> tables.Loaded:
    """PopQA-TP (118,643 questions in 14,267 groups): a table `schemas.Questions`.

    It has neither subjects nor popularity: prefix and popularity are PopQA's, of the hub or its cache,
    and for a file those of popQA.tsv (or test.tsv) in the same folder, which then also chooses the
    groups; without one prefix is empty and popularity NaN.

    Two things in the published file harm what is measured, and are mended: letters beyond ASCII are
    garbled (UTF-8 read as Mac OS Roman: "Deti√®ge" for Detiège), in questions and answers, and
    template 4 of `country` is the original question again. variant is the template_id. The counts:
    garbled_questions, repeated_questions, not_in_facts and no_popularity (groups).
    """
    (path,) = files
    rows = read_rows(path, _POPQA_TP)
    tables.check_unique(rows, ["prop", "id", "template_id"], path)
    rows["relation"] = rows["prop"].str.replace(" ", "_")
    rows["group_id"] = rows["relation"] + "/" + rows["id"]
    rows["variant"] = rows["template_id"].astype(int)
    wordings.check_agreement(rows, ["possible_answers"], path)
    beside = [path.with_name(name) for name in POPQA_FILES if path.with_name(name).is_file()][:1]
    facts = pd.DataFrame({"prefix": ""}, index=rows["group_id"].unique())
    if beside or "@" in source.partition(",")[0]:  # of the hub
        facts = load_official("popqa", *beside).table.set_index("fact_id")
    facts = facts.reindex(columns=["prefix", "popularity", "log_popularity"])
    known = rows["group_id"].isin(facts.index)
    if not known.any():
        such = f"such as {facts.index[0]!r}"
        raise tables.FactsError(f"{path} has none of the facts of PopQA, {such}.")
    counts = {"not_in_facts": int(rows.loc[~known, "group_id"].nunique())}
    rows = rows[known].join(facts, on="group_id")
    rows["question"] = rows["paraphrase"].map(_mended)
    counts["garbled_questions"] = int((rows["question"] != rows["paraphrase"]).sum())
    rows["answers"] = [[*map(_mended, _texts(cell))] for cell in rows["possible_answers"]]
    loaded = wordings.grouped(rows)
    return loaded._replace(counts=counts | loaded.counts, files=beside)


def _mended(text: str) -> str:
    """UTF-8 that was read as Mac OS Roman, read rightly.

    The whole text must be such, and have a typical letter or at least three wrong ones, since a few
    right texts would pass too ("L’État").
    """
    try:
        whole = text.encode("mac_roman").decode()
    except UnicodeError:
        return text
    is_garbled = len(text) - len(whole) >= 3 or any(letter in text for letter in GARBLED)
    return whole if is_garbled else text


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
_STRESS: dict[str, Any] = dict.fromkeys((*TIMESTRESS, *IDS, "FactPop"), _FILLED)
_STRESS |= {"Time": None, "IsCorrect": _LABEL}

# The paper's six relations, and how many facts of each it takes, the most popular ones (4.2).
PAPER_RELATIONS = (
    "employer", "head_of_government", "head_of_state", "member_of", "member_of_sports_team",
    "position_held",
)  # fmt: skip
PAPER_FACTS = 100


def timestress(files: list[Path], source: str, *, as_paper: bool = False) -> tables.Loaded:
    """The facts and the dates of TimeStress (2,003 facts of 86 relations, CC BY-SA 4.0).

    With `as_paper`, of the paper's six relations the (up to) 100 most popular facts each; the set was
    published later, so that they need not be the paper's own 600.

    A table `schemas.TemporalFacts`, with question, the authors' wording, which varies from fact to
    fact, to be put after a date, and prefix (empty). Relations are their labels with underscores
    ("member_of_sports_team"); popularity is log10 of FactPop, their geometric mean of the visits to
    the subject's and the object's page.

    The dates are a table `schemas.Dates`, with the authors' labels (rule "published"). Left out and
    counted: "no context" (a question without a date), "discarded" (the month and day of a year that
    is transitional), "before year 1" (in the date or a bound).
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
    rows["fact"] = rows.groupby([*IDS, *temporal.REQUIRED], sort=False).ngroup()
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
    return tables.Loaded(facts.drop(columns="fact"), counts, dates=dates)


def _timestress_facts(first: pd.DataFrame, source: str) -> pd.DataFrame:
    """One row a fact, from one row of each."""
    wording = [
        (text.removeprefix(f"{dating.verbalise(date)}, ") if date else text).split("?")[0] + "?"
        for text, date in zip(first["statement"], first["date"], strict=True)
    ]
    facts = first[[*temporal.REQUIRED, "fact"]].assign(
        relation=[tables.slug(label).replace("-", "_") for label in first["relation"]],
        popularity=np.log10(pd.to_numeric(first["FactPop"])),
        popularity_source="log10 of TimeStress's FactPop",
        source=source,
        question=wording,
        prefix="",
    )
    facts = temporal.complete(facts.reset_index(drop=True))
    again = facts.groupby("fact_id").cumcount()  # different things of one name
    facts["fact_id"] += ("/" + (again + 1).astype(str)).where(again > 0, "")
    return facts


def _timestress_dates(rows: pd.DataFrame, names: pd.Series) -> pd.DataFrame:
    """The table of dates, sorted by fact, precision and date; names are the facts'."""
    span = dating.parse(rows["date"])
    alpha, years_off = dating.position(span, dating.parse(rows["start"]), dating.parse(rows["end"]))
    length = rows["date"].str.len()
    dates = rows.assign(
        fact_id=rows["fact"].map(names),
        precision=length.map(dict(zip((4, 7, 10), dating.PRECISIONS, strict=True))),
        year=rows["date"].str[:4].astype(int),
        alpha=alpha,
        years_off=years_off,
    )
    order = np.lexsort((span[0], length, rows["fact"]))
    return dates.iloc[order][list(dating.COLUMNS)].reset_index(drop=True)


# Coarse label -> name in the paper.
COARSE = {"ABBR": "Abbreviation", "ENTY": "Entity", "DESC": "Description", "HUM": "Human"}
COARSE |= {"LOC": "Location", "NUM": "Numerical"}


def load_trec(path: str | Path) -> pd.DataFrame:
    """TREC's questions with their six coarse types: columns question, answer_type.

    `path` is an official file (train_5500.label: 5,452 questions, TREC_10.label: 500). The paper
    (appendix H) trains on all six types and leaves Abbreviation and Description out of its results.
    Raises FactsError for a malformed line or file.
    """
    with reading(path, "TREC"):
        # One stray byte 0xF0 ("sister city") stands for a space, as the hub's copy reads it.
        text = Path(path).read_bytes().replace(b"\xf0", b" ").decode("latin-1")
    # Lines end at \n only: splitlines() would also break at latin-1's 0x85.
    lines = pd.Series(text.removesuffix("\n").split("\n"))
    parts = lines.str.strip().str.extract(rf"^({'|'.join(COARSE)}):\S+ +(?P<question>\S.*)$")
    for n in lines.index[parts["question"].isna()][:1]:
        raise tables.FactsError(
            f"{path}, line {n + 1}: {lines[n][:60]!r} is not as 'HUM:ind Who ... ?', with a coarse "
            f"label of {', '.join(COARSE)}; mend or remove the line."
        )
    return parts[["question"]].assign(answer_type=parts[0].map(COARSE))


# From files and the name of their source.
LOADERS: dict[str, Callable[[list[Path], str], tables.Loaded]] = {
    "squad": partial(closed_book.load, "SQuAD", closed_book.squad),
    "trivia_qa": partial(closed_book.load, "TriviaQA", closed_book.trivia_qa),
    "hotpot_qa": partial(closed_book.load, "HotpotQA", closed_book.hotpot_qa),
    "popqa": popqa,
    "timestress": timestress,
    "timestress_paper": partial(timestress, as_paper=True),
    "popqa_tp": popqa_tp,
}
# By name: the part whose probe asks the questions, repository@revision, a pattern of paths there.
SETS = {str(row.set): row for row in pd.read_csv(DATA / "official.csv").itertuples()}


def load_official(
    name: str, path: str | Path | None = None, *, revision: str | None = None
) -> tables.Loaded:
    """Return the set `name` of `SETS`: from the hub, or its cache, at the pinned or another revision.

    `path` is an official file (which is read whatever its split), a parquet copy, or a folder. The
    column source says which it was: "rajpurkar/squad@<commit>" or "rajpurkar/squad, dev-v1.1.json".
    Raises FactsError with place and remedy for a bad file, ConnectionError when the hub's copy cannot
    be fetched.
    """
    entry: Any = SETS[name]
    repo, _, pinned = entry.hub.partition("@")
    if path is None:
        files, commit = fetch(repo, revision or pinned, entry.files)
        source = f"{repo}@{commit}"
    else:
        files, source = local_files(Path(path)), f"{repo}, {Path(path).name}"
    with reading(path or files[0], name):
        loaded = LOADERS[name](files, source)
    return loaded._replace(files=[*files, *loaded.files] if path else ())
