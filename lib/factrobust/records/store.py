"""The working store: one SQLite file, written batch by batch, shared by processes.

Each operation opens the file anew: it takes a millisecond, and nothing stays open across a fork, a
full disk or a killed cell. A batch is one transaction, so that a kill leaves all of it or nothing.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from factrobust.records import SCHEMA, Call, RecordsError, key_of

APPLICATION_ID = 0x46524F42  # "FROB": tells our SQLite files from anybody else's
BUSY_SECONDS = 60  # how long to wait while another process writes
TABLES = (
    """CREATE TABLE calls (key BLOB PRIMARY KEY, model TEXT, operation TEXT, prompt TEXT,
                           parameters TEXT, value TEXT, checksum BLOB)""",
    # which notebook used which call: those are exported
    "CREATE TABLE used (key BLOB, notebook TEXT, PRIMARY KEY (notebook, key)) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA}",
)
INSERT = "INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?)"

Row = tuple[bytes, str, str, str, str, str, bytes]


def row_of(call: Call, text: str) -> Row:
    """A call and its value's text as a row of the table `calls`."""
    key = key_of(call)
    return (
        key,
        call.model,
        call.operation,
        call.prompt,
        call.parameters,
        text,
        checksum(key, text),
    )


def is_sound(row: Sequence[Any]) -> bool:
    """Whether a row is as it was written."""
    try:
        return row_of(Call(*row[1:5]), row[5]) == row
    except TypeError:  # a damaged row may hold bytes for text
        return False


def checksum(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(key + str(text).encode(), digest_size=8).digest()


def find(path: Path, keys: Iterable[bytes]) -> dict[bytes, str]:
    """The texts of the values of those keys that the file holds; creates no file."""
    found: dict[bytes, str] = {}
    if not path.exists():
        return found
    with opened(path, "read") as db:
        db.execute("BEGIN")
        for key in keys:
            query = "SELECT value, checksum FROM calls WHERE key = ?"
            if row := db.execute(query, (key,)).fetchone():
                if checksum(key, row[0]) != row[1]:
                    raise damaged(path)
                found[key] = row[0]
    return found


def insert(path: Path, rows: Sequence[Row], notebook: str | None) -> None:
    """Store rows, all or none, and mark them as used by a notebook; what is there stays."""
    with writing(path) as db:
        db.executemany(INSERT, rows)
        _mark(db, [row[0] for row in rows], notebook)


def mark(path: Path, keys: Iterable[bytes], notebook: str) -> None:
    """Note that a notebook used calls which the file holds."""
    with writing(path) as db:
        _mark(db, keys, notebook)


def unmark(path: Path, notebook: str) -> None:
    """Drop a notebook's marks."""
    if path.exists():
        with writing(path) as db:
            db.execute("DELETE FROM used WHERE notebook = ?", (notebook,))


def _mark(db: sqlite3.Connection, keys: Iterable[bytes], notebook: str | None) -> None:
    if notebook:
        marks = [(key, notebook) for key in keys]
        db.executemany("INSERT OR IGNORE INTO used VALUES (?, ?)", marks)


# --- opening, and what can go wrong ---------------------------------------------------------------


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction, committed at the end of the block; an error drops it."""
    with opened(path, "write") as db:
        # IMMEDIATE waits for another writer here; a reader that turns writer could not wait.
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")


@contextmanager
def opened(path: Path, doing: str) -> Iterator[sqlite3.Connection]:
    """An open store, created if there is none; a file of another kind or version is refused."""
    with explained(path, doing):
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as db:
            _check(db, path)
            yield db


def _check(db: sqlite3.Connection, path: Path) -> None:
    if _pragma(db, "application_id") == 0:  # a new file, or another program's
        db.execute("BEGIN IMMEDIATE")  # one process creates the tables, others wait here
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in TABLES:
                db.execute(statement)
        db.execute("COMMIT")
    if _pragma(db, "application_id") != APPLICATION_ID:
        raise sqlite3.DatabaseError("another program's SQLite file: not a database of ours")
    if (version := _pragma(db, "user_version")) != SCHEMA:
        raise RecordsError(
            f"{path} holds records of schema {version}, but this library reads schema {SCHEMA}: "
            "move it away and run `make reproduce`, or use the library's version that wrote it."
        )


def _pragma(db: sqlite3.Connection, name: str) -> int:
    number: int = db.execute(f"PRAGMA {name}").fetchone()[0]
    return number


@contextmanager
def explained(path: Path, doing: str) -> Iterator[None]:
    """Turn what SQLite and the file system say into one sentence: what, where, how to mend it."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        said = str(error)
        if "locked" in said:
            problem = f"another process has kept {path} locked for over {BUSY_SECONDS} s"
            remedy = "what was committed stays; wait for it or end it, then run again"
        elif "not a database" in said:
            problem = f"{path} is not a records file ({said})"
            remedy = "move it away and run `make reproduce`"
        elif "malformed" in said or "decode" in said:
            problem = f"{path} is damaged ({said})"
            remedy = "run `python -m factrobust.records repair`, which saves its sound rows"
        else:
            problem = f"{path}: {said}"
            remedy = "what was committed stays; free disk space or make it writable, then run again"
        raise RecordsError(f"Cannot {doing} records: {problem}; {remedy}.") from error


def damaged(path: Path) -> RecordsError:
    """What is raised when a row is not as it was written."""
    return RecordsError(
        f"{path} is damaged: a row does not match its checksum; run `python -m factrobust.records "
        "repair`, which saves its sound rows, then run again."
    )
