"""What our tables are set beside: the papers' own numbers, as typed from them, and labels."""

from typing import Any

import pandas as pd

from factrobust.paths import DATA


def load_published(name: str, whose: str = "") -> pd.DataFrame:
    """Return data/published/<name>.csv, such as "1-decoding-table-1"; `where` says its place.

    To stand below ours, its models are `whose`: "llama-3.1-8B (thesis)"; then where and check are left out.
    """
    table = pd.read_csv(DATA / "published" / f"{name}.csv", keep_default_na=False)
    if whose:
        table = table.drop(columns=["where", "check"])
        table["model"] += f" ({whose})"
    return table


def provenance_of(name: str) -> dict[str, Any]:
    """For `save_figure` and `save_table` of what is theirs alone: no model of ours, but their file."""
    return {"parameters": {}, "models": (), "inputs": [DATA / "published" / f"{name}.csv"]}


def load_labels(name: str) -> pd.DataFrame:
    """Return data/labels/<name>.csv, such as "wording_pairs": rows that were read, and their labels.

    `label` is the first reading, `label_again` the second; data/labels/README.md says what they mean.
    """
    return pd.read_csv(DATA / "labels" / f"{name}.csv", keep_default_na=False)
