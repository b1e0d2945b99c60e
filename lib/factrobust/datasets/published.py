"""What our tables are set beside: the papers' own numbers, as typed from them, and labels."""

from typing import Any

import pandas as pd

from factrobust.paths import DATA
from factrobust.tables import read_csv

# For `save_figure` and `save_table` of a table of theirs alone.
THEIRS: dict[str, Any] = {"parameters": {}, "models": ()}


def load_published(name: str, whose: str = "") -> pd.DataFrame:
    """data/published/<name>.csv, such as "1-decoding-table-1". To stand below ours, its models are
    `whose`: "llama-3.1-8B (thesis)"; then where (its place) and check are left out."""
    table = read_csv(DATA / "published" / f"{name}.csv", keep_default_na=False)
    if whose:
        table = table.drop(columns=["where", "check"])
        table["model"] += f" ({whose})"
    return table


def load_labels(name: str) -> pd.DataFrame:
    """data/labels/<name>.csv, such as "wording_pairs": rows that were read, and their labels.
    `label` is the first reading, `label_again` the second."""
    return read_csv(DATA / "labels" / f"{name}.csv", keep_default_na=False)
