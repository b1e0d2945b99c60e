"""The papers' own numbers, as typed from them: what our tables are set beside."""

from __future__ import annotations

import pandas as pd

from factrobust.paths import DATA
from factrobust.tables import nearest


def load_published(name: str) -> pd.DataFrame:
    """Return data/published/<name>.csv, such as "1-decoding-table-1"; `where` says its place.

    Raises KeyError for a name that is not there, with the names that are.
    """
    folder = DATA / "published"
    known = sorted(path.stem for path in folder.glob("*.csv"))
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near!r}? " if near else ""
        raise KeyError(f"no published numbers {name!r}; {hint}there are {', '.join(known)}")
    return pd.read_csv(folder / f"{name}.csv", keep_default_na=False)
