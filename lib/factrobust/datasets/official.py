"""The papers' own data sets and those like them, as tables of ours: a line of data/official.csv.

PopQA (Mallen et al. 2023) and TREC (Li and Roth 2002) are read in this module, the sets with
passages in `closed_book`, TimeStress in `temporal.facts` and PopQA-TP (Rabinovich et al. 2023) in
`wording.facts`. No set is embedded. This project's tests cannot reach the hub: the downloads are
untried."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any

import pandas as pd
import pandera.pandas as pa

from factrobust import schemas, tables
from factrobust.datasets import closed_book
from factrobust.datasets import facts as fact_tables
from factrobust.paths import DATA, noted

SUFFIXES = (".parquet", ".json", ".jsonl", ".csv", ".tsv", ".label")


def local_files(path: Path) -> list[Path]:
    """The file at the path, or the data files of a folder and those below it."""
    if not path.is_dir():
        return [path]
    return [file for file in sorted(path.rglob("*")) if file.suffix in SUFFIXES]


def fetch(repo: str, revision: str, pattern: str) -> tuple[list[Path], str]:
    """The files of a data set on the hub whose paths match the pattern, and the commit they are of.
    Its cache serves where the hub cannot be reached; ConnectionError when neither has the files."""
    from huggingface_hub import snapshot_download

    remedy = f"go online once, or download its {pattern} and give its path instead."
    try:
        place = snapshot_download(
            repo,
            repo_type="dataset",
            revision=revision,
            allow_patterns=pattern,
        )
    except Exception as error:  # the hub's client raises a dozen unrelated types
        raise ConnectionError(
            f"Could not fetch {repo} at {revision} from the hub ({_first_sentence(error)}): "
            f"{remedy}"
        ) from error
    folder = Path(place)
    # rglob, as the hub's client lets * stand for folders too
    files = [path for path in sorted(folder.rglob(pattern)) if path.is_file()]
    parts = [int(n) for file in files for n in re.findall(r"-of-(\d+)", file.name)]
    if len(files) < max(parts, default=1):
        raise ConnectionError(
            f"Neither the hub nor its cache has all of {pattern} of {repo} at {revision}: {remedy}"
        )
    return files, folder.name


def _first_sentence(error: Exception) -> str:
    return shorten(f"{type(error).__name__}: {error}".split(". ")[0], 120)


@contextmanager
def as_facts_errors(path: object, name: str) -> Iterator[None]:
    """Raises FactsError, which names the file, for what is not as in the files of the set
    `name`."""
    try:
        yield
    except (tables.FactsError, ConnectionError):
        raise
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise tables.FactsError(
            f"{path} cannot be read as {name} ({_first_sentence(error)}); give the set's own file, "
            "with answers, unpacked, or fetch it anew."
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


def texts_of(cell: str) -> list[str]:
    """The different texts of a JSON list, without blanks around them. Around some stand marks that
    nobody sees ("Norvège" and U+200F), and no model writes."""
    texts = (text.strip(tables.BLANK) for text in json.loads(cell))
    return [text for text in dict.fromkeys(texts) if text]


FILLED = tables.filled("remove the row")


def _is_known(relations: pd.Series) -> pd.Series:
    table = fact_tables.load_relations()
    return relations.str.replace(" ", "_").isin(table.index[table["popqa"]])


SHARED = {
    "id": FILLED,
    "prop": pa.Check(_is_known, error="is none of PopQA's 16; remove the row"),
    "possible_answers": FILLED,
}
# What is read of PopQA's 17 columns; the others are ids, titles and aliases on Wikidata.
_POPQA = {
    **SHARED,
    "subj": FILLED,
    "obj": FILLED,
    "question": FILLED,
    "s_pop": None,
}


def popqa(files: list[Path], source: str) -> tables.Loaded:
    """PopQA as facts: `schemas.AskedFacts`, and log_popularity (natural). fact_id is the relation
    and PopQA's id ("place_of_birth/4222362"), prefix the embedded relation's with PopQA's subject,
    aliases the possible answers without obj, popularity the subject's page views a month."""
    (path,) = files
    rows = read_rows(path, _POPQA)
    tables.check_unique(rows, ["id"], path)
    relations = fact_tables.load_relations()
    relation = rows["prop"].str.replace(" ", "_")
    views = pd.to_numeric(rows["s_pop"]).astype(float)
    facts = rows.rename(columns={"subj": "subject", "obj": "object"}).assign(
        fact_id=relation + "/" + rows["id"],
        relation=relation,
        answer_type=relation.map(relations["answer_type"]),
        domain=relation.map(relations["domain"]),
        popularity=views,
        popularity_source="PopQA: page views a month",
        log_popularity=fact_tables.log_or_nan(views),
        source=source,
    )
    facts["aliases"] = [
        [text for text in texts_of(cell) if text != first]
        for cell, first in zip(rows["possible_answers"], rows["obj"], strict=True)
    ]
    facts = fact_tables.with_questions(facts).assign(question=rows["question"])
    facts = facts[[*schemas.AskedFacts.columns, "log_popularity"]].reset_index(drop=True)
    n_unknown = int(facts["log_popularity"].isna().sum())
    return tables.Loaded(facts, {"no_popularity": n_unknown})


# Coarse label -> name in the paper.
COARSE = {
    "ABBR": "Abbreviation",
    "ENTY": "Entity",
    "DESC": "Description",
    "HUM": "Human",
    "LOC": "Location",
    "NUM": "Numerical",
}


def load_trec(path: str | Path) -> pd.DataFrame:
    """TREC's questions with their six coarse types: columns question, answer_type. `path` is an
    official file (train_5500.label: 5,452 questions, TREC_10.label: 500). The paper (appendix H)
    trains on all six types and leaves Abbreviation and Description out of its results."""
    with as_facts_errors(path, "TREC"):
        # One stray byte 0xF0 ("sister city") stands for a space, as the hub's copy reads it.
        text = noted(path).read_bytes().replace(b"\xf0", b" ").decode("latin-1")
    # Lines end at \n only: splitlines() would also break at latin-1's 0x85.
    lines = pd.Series(text.removesuffix("\n").split("\n"))
    labels = "|".join(COARSE)
    parts = lines.str.strip().str.extract(rf"^({labels}):\S+ +(?P<question>\S.*)$")
    for n in lines.index[parts["question"].isna()][:1]:
        raise tables.FactsError(
            f"{path}, line {n + 1}: {lines[n][:60]!r} is not as 'HUM:ind Who ... ?', with a coarse "
            f"label of {', '.join(COARSE)}; mend or remove the line."
        )
    return parts[["question"]].assign(answer_type=parts[0].map(COARSE))


# A reader of the files of a set, with the name of their source.
Reader = Callable[[list[Path], str], tables.Loaded]
# Of parts 1 and 4; parts 2 and 3 have their own.
LOADERS: dict[str, Reader] = {
    "squad": partial(closed_book.load_closed_book, "SQuAD", closed_book.squad),
    "trivia_qa": partial(closed_book.load_closed_book, "TriviaQA", closed_book.trivia_qa),
    "hotpot_qa": partial(closed_book.load_closed_book, "HotpotQA", closed_book.hotpot_qa),
    "popqa": popqa,
}
# By name: the part whose probe asks the questions, repository@revision, a pattern of paths there.
_LINES = pd.read_csv(noted(DATA / "official.csv", at_import=True))
SETS = {str(row.set): row for row in _LINES.itertuples()}


def load_official(
    name: str,
    path: str | Path | None = None,
    *,
    revision: str | None = None,
    loaders: Mapping[str, Reader] = LOADERS,
) -> tables.Loaded:
    """Return the set `name` of `SETS`, read by its loader of `loaders`: from the hub, or its cache,
    at the pinned or another revision.

    `path` is an official file (which is read whatever its split), a parquet copy, or a folder. The
    column source says which it was: "rajpurkar/squad@<commit>" or "rajpurkar/squad, dev-v1.1.json".
    Raises FactsError for a bad file, ConnectionError when the hub's copy cannot be fetched.
    """
    entry: Any = SETS[name]
    repo, _, pinned = entry.hub.partition("@")
    if path is None:
        files, commit = fetch(repo, revision or pinned, entry.files)
        source = f"{repo}@{commit}"
    else:
        files = local_files(Path(path))
        source = f"{repo}, {Path(path).name}"
    with as_facts_errors(path or files[0], name):
        return loaders[name]([*map(noted, files)], source)
