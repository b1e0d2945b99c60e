"""The papers' own numbers, as typed from them: what our tables are set beside."""

from __future__ import annotations

import pandas as pd

from factrobust.paths import DATA


def load_published(name: str) -> pd.DataFrame:
    """Return data/published/<name>.csv, such as "1-decoding-table-1"; `where` says its place."""
    return pd.read_csv(DATA / "published" / f"{name}.csv", keep_default_na=False)
