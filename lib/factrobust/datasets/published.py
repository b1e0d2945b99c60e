"""What our tables are set beside: the papers' own numbers, as typed from them, and labels."""

import pandas as pd

from factrobust.paths import DATA


def load_published(name: str) -> pd.DataFrame:
    """Return data/published/<name>.csv, such as "1-decoding-table-1"; `where` says its place."""
    return pd.read_csv(DATA / "published" / f"{name}.csv", keep_default_na=False)


def load_labels(name: str) -> pd.DataFrame:
    """Return data/labels/<name>.csv, such as "wording_pairs": rows that were read, and their labels.

    `label` is the first reading, `label_again` the second; data/labels/README.md says what they mean.
    """
    return pd.read_csv(DATA / "labels" / f"{name}.csv", keep_default_na=False)
