"""Typed questions: the TREC question classification data, and the typed questions embedded here."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from factrobust.datasets.formats import check_format, is_parquet, read_records
from factrobust.datasets.hub import fetch
from factrobust.tables import (
    FactsError,
)

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
