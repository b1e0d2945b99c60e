"""A store of model calls: what was computed once is never computed again.

A call is stored under the SHA-256 of everything that determines its result. New results go to a
working SQLite file, committed batch by batch; the results that the notebooks need are exported to
parquet files under data/records/, which are committed. `python -m factrobust.records --help` lists
the upkeep commands.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from factrobust import paths
from factrobust.records import store
from factrobust.records.call import SCHEMA, Call, RecordsError, key_of
from factrobust.records.codec import decode, encode
from factrobust.records.committed import REBUILD, File, read_index, read_rows

__all__ = ["SCHEMA", "Call", "Records", "RecordsError", "decode", "encode", "open_records"]


class Records:
    """Results of model calls: a committed folder (read first, never written) and a working file.

    `path` is the SQLite file (None: nothing can be written), `base` the folder of parquet files
    (None: none). With `strict`, `get` raises RecordsError where it would return None. While the
    environment variable FACTROBUST_NOTEBOOK names a notebook (and FACTROBUST_PROFILE is unset or
    "laptop"), calls of the working file are marked as used by it: `export` writes those.
    """

    def __init__(
        self, path: Path | None, base: Path | None = None, *, strict: bool = False
    ) -> None:
        self.path = path
        self.base = base
        self._strict = strict
        self._unread: dict[str, File] | None = None  # None: the index too
        self._texts: dict[bytes, str] = {}  # committed values by key, of the files read so far

    def get(self, calls: Sequence[Call]) -> list[Any | None]:
        """The stored value of each call, None where there is none; floats equal those stored."""
        self._read_base({(call.model, call.operation) for call in calls})
        keys = [key_of(call) for call in calls]
        texts = {key: self._texts[key] for key in keys if key in self._texts}
        if self.path is not None:
            found = store.find(self.path, dict.fromkeys(key for key in keys if key not in texts))
            if found and (notebook := _notebook()):
                store.mark(self.path, found, notebook)
            texts |= found
        missing = [call for call, key in zip(calls, keys, strict=True) if key not in texts]
        if missing and self._strict:
            raise RecordsError(_describe_missing(missing, self.base))
        return [decode(texts[key]) if key in texts else None for key in keys]

    def put(self, calls: Sequence[Call], values: Sequence[Any]) -> None:
        """Store a batch in one transaction; it survives a kill from the moment this returns.

        A call that is there already keeps its first value. Raises ValueError for a None value or
        unequal lengths, RecordsError when the file cannot be written: then nothing of this batch is
        stored and everything before it is.
        """
        if self.path is None:
            raise RecordsError(
                f"The records in {self.base} are read-only: open a store with a working file, for "
                "instance with FACTROBUST_RECORDS unset."
            )
        if any(value is None for value in values):
            raise ValueError("A record's value cannot be None, which means missing.")
        rows = [store.row_of(c, encode(value)) for c, value in zip(calls, values, strict=True)]
        store.insert(self.path, rows, _notebook())

    def forget_use(self, notebook: str) -> None:
        """Drop a notebook's marks, when its run begins, so that calls it no longer makes leave
        the next export; no result is deleted."""
        if self.path is not None:
            store.unmark(self.path, notebook)

    def _read_base(self, kinds: set[tuple[str, str]]) -> None:
        """Read the committed files of these (model, operation) pairs, once each."""
        if self.base is None:
            return
        if self._unread is None:
            self._unread = dict(read_index(self.base).files)
        for name, about in list(self._unread.items()):
            if (about.model, about.operation) in kinds:
                rows = read_rows(self.base / name, about.sha256)
                self._texts |= {key_of(call): text for call, text in rows}
                del self._unread[name]


def _notebook() -> str | None:
    # A run of another profile makes other calls; its marks must not reach the export.
    if os.environ.get("FACTROBUST_PROFILE", "laptop") != "laptop":
        return None
    return os.environ.get("FACTROBUST_NOTEBOOK") or None


def _describe_missing(missing: Sequence[Call], base: Path | None) -> str:
    counts = Counter((call.model, call.operation) for call in missing)
    what = ", ".join(f"{n} of {operation} by {model}" for (model, operation), n in counts.items())
    return (
        f"The records in {base} lack calls that this run needs ({what}), and no model may be run "
        f"in replay mode: run {REBUILD}."
    )


def places() -> tuple[Path, Path]:
    """The project's working file and its folder of committed records."""
    return paths.BUILD / "records" / "records.sqlite", paths.DATA / "records"


def open_records() -> Records:
    """The store that the environment variable FACTROBUST_RECORDS asks for.

    Unset: the committed records first, then the working file. "fresh": the working file only.
    "replay": the committed records only; a missing call raises RecordsError. One store per process
    and place is shared, so that the committed files are read once.
    """
    mode = os.environ.get("FACTROBUST_RECORDS", "")
    if mode not in ("", "fresh", "replay"):
        raise RecordsError(
            f"FACTROBUST_RECORDS is {mode!r}: leave it unset, or set it to 'fresh' or 'replay'."
        )
    return _shared(mode, *places())


@functools.cache
def _shared(mode: str, working: Path, committed: Path) -> Records:
    return Records(
        None if mode == "replay" else working,
        None if mode == "fresh" else committed,
        strict=mode == "replay",
    )
