"""The working store: one SQLite file, written batch by batch, shared by processes.

Each operation opens the file anew: it takes a millisecond, and nothing stays open across a fork, a
full disk or a killed cell. A batch is one transaction, so that a kill leaves all of it or nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from factrobust.records import SCHEMA, Call, RecordsError, key_of

BUSY_SECONDS = 60  # how long to wait while another process writes
TABLES = (
    """CREATE TABLE calls (key BLOB PRIMARY KEY, model TEXT, operation TEXT, prompt TEXT,
                           parameters TEXT, value TEXT)""",
    # which notebook used which call: those are exported
    "CREATE TABLE used (key BLOB, notebook TEXT, PRIMARY KEY (notebook, key)) WITHOUT ROWID",
    f"PRAGMA user_version = {SCHEMA}",
)
# The columns by name: a file of an earlier version has a seventh.
INSERT = """INSERT OR IGNORE INTO calls (key, model, operation, prompt, parameters, value)
            VALUES (?, ?, ?, ?, ?, ?)"""


def find(path: Path, keys: Iterable[bytes], notebook: str | None) -> dict[bytes, str]:
    """The texts of the values that the file holds for these keys, marked as used by the notebook;
    creates no file."""
    found: dict[bytes, str] = {}
    if path.exists():
        with opened(path) as db:
            for key in keys:
                if row := db.execute("SELECT value FROM calls WHERE key = ?", (key,)).fetchone():
                    found[key] = row[0]
            _mark(db, found, notebook)
    return found


def insert(path: Path, rows: Sequence[tuple[Call, str]], notebook: str | None) -> None:
    """Store calls and the texts of their values, all or none; what is there stays. They are marked
    as used by the notebook."""
    keys = [key_of(call) for call, _ in rows]
    with opened(path) as db:
        db.executemany(
            INSERT,
            [
                (key, call.model, call.operation, call.prompt, call.parameters, text)
                for key, (call, text) in zip(keys, rows, strict=True)
            ],
        )
        _mark(db, keys, notebook)


def _mark(db: sqlite3.Connection, keys: Iterable[bytes], notebook: str | None) -> None:
    if notebook:
        marks = [(key, notebook) for key in keys]
        db.executemany("INSERT OR IGNORE INTO used VALUES (?, ?)", marks)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction on the store, created if there is none; committed at the end of the block.

    An error drops it. Raises RecordsError for a file that SQLite cannot use or of another schema.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as db:
            # IMMEDIATE waits for another writer here; a reader that turns writer could not wait.
            db.execute("BEGIN IMMEDIATE")
            _check(db, path)
            yield db
            db.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        raise RecordsError(
            f"Cannot use the records in {path} ({error}): what was committed stays; wait for other "
            "processes, free disk space, or move a file away that is damaged; then run again."
        ) from error


def _check(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file; refuse another schema."""
    if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
        for statement in TABLES:
            db.execute(statement)
    (schema,) = db.execute("PRAGMA user_version").fetchone()
    if schema != SCHEMA:
        raise RecordsError(
            f"{path} holds records of schema {schema}, but this library reads schema {SCHEMA}: move "
            "it away and run `make reproduce`."
        )
