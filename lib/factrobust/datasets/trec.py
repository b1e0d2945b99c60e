"""Typed questions: the TREC question classification data, and the typed questions embedded here."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pandera.pandas as pa

from factrobust.datasets.formats import check_format, is_parquet, read_records
from factrobust.datasets.hub import fetch
from factrobust.datasets.tables import (
    ANSWER_TYPES,
    FactsError,
    check_table,
    check_unique,
    one_of,
    read_table,
)
from factrobust.paths import DATA

# Coarse label -> name in the paper, in the order of the hub copy's integer labels.
COARSE = {
    "ABBR": "Abbreviation",
    "ENTY": "Entity",
    "DESC": "Description",
    "HUM": "Human",
    "LOC": "Location",
    "NUM": "Numerical",
}
OFFICIAL = {"train": "train_5500.label", "test": "TREC_10.label"}
HUB = "CogComp/trec"
REVISION = "65752bf53af25bc935a0dce92fb5b6c930728450"  # of refs/convert/parquet, the hub's own copy
SITE = "https://cogcomp.seas.upenn.edu/Data/QA/QC/"
TEST_EVERY = 5

SCHEMA = pa.DataFrameSchema(
    {
        "question": pa.Column(
            str,
            pa.Check(
                lambda cells: cells.str.endswith(("?", ".")),
                error="does not end as a question does; write ? or . after it",
            ),
        ),
        "answer_type": pa.Column(str, one_of(ANSWER_TYPES)),
        "relation": pa.Column(str, required=False),
    }
)


def load_trec(
    path: str | Path | None = None, split: str = "train", *, revision: str = REVISION
) -> pd.DataFrame:
    """Questions of Li and Roth (2002) with their six coarse types: columns question, answer_type.

    `path` is a folder with the official files (train_5500.label: 5,452 questions, TREC_10.label:
    500), or one file of that format, in latin-1 or converted to UTF-8, or a parquet copy, which is
    read whatever the split. None or "CogComp/trec" takes the hub's copy, or its cache; this project's tests cannot
    reach the hub: the download is untried. Types are Abbreviation, Description, Entity, Human,
    Location and Numerical; the paper (appendix H) trains on all six and leaves the first two out of
    its results. Raises ValueError for another split, FactsError (a ValueError) for a malformed line
    or a file of another data set, FileNotFoundError without a file, ConnectionError when the hub's
    copy cannot be fetched.
    """
    if split not in OFFICIAL:
        raise ValueError(f"TREC has no split {split!r}: ask for 'train' or 'test'.")
    if path is None or str(path) == HUB:
        return _copy(fetch(HUB, revision, f"default/{split}/*.parquet")[0])
    file = Path(path) / OFFICIAL[split] if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"There is no TREC file {file}: download {OFFICIAL[split]} from {SITE} and pass its "
            "folder."
        )
    check_format(file, "TREC")
    if is_parquet(file):
        return _copy([file])
    text = _decoded(file.read_bytes())
    # Lines end at \n only: splitlines() would also break at latin-1's 0x85.
    lines = text.removesuffix("\n").split("\n")
    rows = [_parse(line, f"{file}, line {number}") for number, line in enumerate(lines, 1)]
    return pd.DataFrame(rows, columns=["question", "answer_type"])


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")  # as copies are; latin-1's é before an ASCII letter is none
    except UnicodeDecodeError:
        # One stray byte 0xF0 ("sister city") stands for a space, as the hub's copy reads it.
        return data.replace(b"\xf0", b" ").decode("latin-1")


def _parse(line: str, where: str) -> tuple[str, str]:
    label, _, question = line.strip().partition(" ")
    coarse, colon, fine = label.partition(":")
    if coarse not in COARSE or not (colon and fine and question.strip()):
        raise FactsError(
            f"{where}: expected 'HUM:ind Who ... ?' with a coarse label of {', '.join(COARSE)}, "
            f"got {line[:60]!r}; mend or remove the line."
        )
    return question.strip(), COARSE[coarse]


def _copy(files: list[Path]) -> pd.DataFrame:
    rows = [row for file in files for row in read_records(file, "TREC", ("text", "coarse_label"))]
    names = list(COARSE.values())
    typed = [(row["text"].strip(), names[row["coarse_label"]]) for row in rows]
    return pd.DataFrame(typed, columns=["question", "answer_type"])


def load_question_types(
    split: str | None = None, *, path: str | Path | None = None
) -> pd.DataFrame:
    """The embedded trivia questions: columns question, answer_type, relation.

    503 questions written for this project, 125 or 126 a type, typed as TREC types them (a band, a
    firm or a people is Human; a planet, a river or a building is a Location; a date is Numerical),
    without Abbreviation and Description. `relation` names the relation of the facts table that a
    question asks in other words, else "": without these rows (334 are left), a classifier is tested
    on relations that it never saw. `split` is None for all, "test" for every fifth question of each
    type (100), "train" for the rest (403); the file lists each type in random order, so that the
    test part is a random stratified fifth. `path` names a file of your own, where relation may be
    left out. Raises ValueError for another split, FactsError (with file, line and remedy) for a bad
    file.
    """
    if split not in (None, "train", "test"):
        raise ValueError(f"The typed questions have no split {split!r}: ask for 'train' or 'test'.")
    path = DATA / "question_types.csv" if path is None else path
    frame = read_table(path, required=["question", "answer_type"], optional=["relation"])
    check_table(frame, SCHEMA, path)
    check_unique(frame, ["question"], path)
    frame = frame.reindex(columns=["question", "answer_type", "relation"], fill_value="")
    frame = frame.reset_index(drop=True)
    if split is None:
        return frame
    is_test = frame.groupby("answer_type").cumcount() % TEST_EVERY == TEST_EVERY - 1
    return frame[is_test if split == "test" else ~is_test].reset_index(drop=True)
