"""Relations: how a fact is asked for. One row a relation; {subject} stands for the subject."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pandera.pandas as pa

from factrobust.datasets.tables import (
    ANSWER_TYPES,
    check_table,
    check_unique,
    filled,
    one_of,
    read_table,
)
from factrobust.paths import DATA

COLUMNS = ("relation", "question", "prefix", "answer_type", "domain", "popqa")
REQUIRED = COLUMNS[:4]
OWN_DOMAIN = "own"


def _has_subject(cells: pd.Series) -> pd.Series:
    return cells.str.count(r"\{subject\}").eq(1) & cells.str.count(r"[{}]").eq(2)


_SUBJECT = pa.Check(
    _has_subject, error="must hold {subject} exactly once, and no other braces; put it there"
)
SCHEMA = pa.DataFrameSchema(
    {
        "relation": pa.Column(
            str,
            pa.Check(
                lambda cells: cells.str.fullmatch(r"[a-z][a-z0-9_]*"),
                error="is no short name; write lower-case letters, digits and _ only",
            ),
        ),
        "question": pa.Column(str, _SUBJECT),
        "prefix": pa.Column(str, _SUBJECT),
        "answer_type": pa.Column(str, one_of(ANSWER_TYPES)),
        "domain": pa.Column(str, filled("name a domain"), required=False),
        "popqa": pa.Column(str, one_of(["true", "false"]), required=False),
    }
)


def load_relations(path: str | Path | None = None) -> pd.DataFrame:
    """Return the relations, indexed by name: question, prefix, answer_type, domain, popqa (bool).

    `path` names a CSV of your own whose rows join the embedded ones; a row with an embedded name
    replaces it. It needs the columns relation, question, prefix and answer_type; domain is "own"
    and popqa false where they are left out. Raises FactsError with file, line and remedy.
    """
    embedded = read_relations(DATA / "relations.csv")
    if path is None:
        return embedded
    own = read_relations(path)
    return pd.concat([embedded[~embedded.index.isin(own.index)], own])


def read_relations(path: str | Path) -> pd.DataFrame:
    """Read and check one relations file alone; columns and errors as in `load_relations`."""
    frame = read_table(path, required=REQUIRED, optional=COLUMNS[4:])
    check_table(frame, SCHEMA, path)
    check_unique(frame, ["relation"], path)
    defaults = {"domain": OWN_DOMAIN, "popqa": "false"}
    missing = {column: value for column, value in defaults.items() if column not in frame}
    frame = frame.assign(**missing)[list(COLUMNS)]
    return frame.assign(popqa=frame["popqa"].eq("true")).set_index("relation")
