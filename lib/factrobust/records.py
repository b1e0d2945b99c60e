"""A store of model calls: what was computed once is never computed again.

A call is stored under the SHA-256 of everything that determines its result. New results go to a
working SQLite file, committed batch by batch; the results that the notebooks need are exported to
parquet files under data/records/, which are committed. `python -m factrobust.records --help` lists
the upkeep commands.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import hashlib
import json
import math
import os
import re
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from factrobust import paths

SCHEMA = 1  # bump when the meaning of a stored value changes (the model layer's numerics included)
APPLICATION_ID = 0x46524F42  # "FROB": tells our SQLite files from anybody else's
BUSY_SECONDS = 60  # how long to wait while another process writes
CHUNK_BYTES = 8_000_000  # text a parquet file: digits shrink to less than half, so it stays < 5 MB
COLUMNS = ("model", "operation", "prompt", "parameters", "value")
REBUILD = "`make reproduce && make records`"


class RecordsError(RuntimeError):
    """The store cannot be read or written, or lacks a call that may not be computed now."""


@dataclass(frozen=True, order=True)
class Call:
    """What determines the result of one model call; every field is text.

    `model` is the model's fingerprint (canonical JSON, or a short name), `parameters` the canonical
    JSON of the rest: answer, temperature, seed and the like.
    """

    model: str
    operation: str
    prompt: str
    parameters: str


def key_of(call: Call) -> bytes:
    """SHA-256 of the canonical JSON of [SCHEMA, model, operation, prompt, parameters]."""
    fields = [SCHEMA, call.model, call.operation, call.prompt, call.parameters]
    return hashlib.sha256(json.dumps(fields).encode()).digest()


# --- values as text -------------------------------------------------------------------------------


def encode(value: Any) -> str:
    """JSON text of nested dicts, lists, arrays, strings, numbers and None, keys sorted.

    A number that is a float32 is written with the fewest digits that give that float32 back
    (0.1 for np.float32(0.1)); any other double in full with a capital E (1.1E0), so that decode
    returns exactly the value given in both cases. Tuples and arrays come back as lists.
    Raises TypeError for anything else.
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (float, np.floating)):
        return _number(float(value))
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(encode, value)) + "]"
    if value is None or isinstance(value, (bool, np.bool_)):
        return json.dumps(None if value is None else bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, np.ndarray):
        return encode(value.tolist())  # float32 to double is exact
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return "{" + ",".join(f"{encode(k)}:{encode(value[k])}" for k in sorted(value)) + "}"
    raise TypeError(
        f"A record cannot hold {type(value).__name__!r}: give dicts with string keys, lists, "
        "NumPy arrays, strings, numbers, booleans or None."
    )


def decode(text: str) -> Any:
    """The value that `encode` wrote; every float equals the one encoded, bit for bit."""
    return _DECODER.decode(text)


def _single(number: float) -> float:
    return ctypes.c_float(number).value  # rounds to float32 without NumPy's cost or warnings


def _number(number: float) -> str:
    if not math.isfinite(number):
        return json.dumps(number)  # NaN, Infinity, -Infinity
    if _single(number) == number:
        text = str(np.float32(number))
        if _single(float(text)) == number:  # decode rounds twice: once in a billion that shows
            return text
    text = repr(number)
    return text.replace("e", "E") if "e" in text else text + "E0"


_DECODER = json.JSONDecoder(
    parse_float=lambda text: float(text) if "E" in text else _single(float(text))
)


# --- the working store ----------------------------------------------------------------------------

_TABLES = """
CREATE TABLE calls (key BLOB PRIMARY KEY, model TEXT, operation TEXT, prompt TEXT, parameters TEXT,
                    value TEXT, checksum BLOB);
CREATE TABLE used (key BLOB, notebook TEXT, PRIMARY KEY (key, notebook)) WITHOUT ROWID;
"""


def _checksum(key: bytes, value: str) -> bytes:
    # str: a damaged row may hold a value of another type
    return hashlib.blake2b(key + str(value).encode(), digest_size=8).digest()


@contextmanager
def _explained(path: Path, doing: str) -> Iterator[None]:
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
            remedy = "run `python -m factrobust.records repair`, which keeps every sound row"
        else:
            problem = f"{path}: {said}"
            remedy = "what was committed stays; free disk space or make it writable, then run again"
        raise RecordsError(f"Cannot {doing} records: {problem}; {remedy}.") from error


def _damaged_row(path: Path) -> RecordsError:
    return RecordsError(
        f"{path} is damaged: a row does not match its checksum; run `python -m factrobust.records "
        "repair`, which keeps every sound row, then run again."
    )


def _connect(path: Path) -> sqlite3.Connection:
    """Open or create a working store; a file of another kind or version is refused."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        # One process creates the tables, others wait here. IMMEDIATE, because a transaction that
        # begins as a reader cannot wait: it fails at once when another has written meanwhile.
        db.execute("BEGIN IMMEDIATE")
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in _TABLES.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute("COMMIT")
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise sqlite3.DatabaseError("another program's SQLite file: not a database of ours")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA:
            raise RecordsError(
                f"{path} holds records of schema {version}, but this library reads schema "
                f"{SCHEMA}: move it away and run `make reproduce`, or use the library's version "
                "that wrote it."
            )
        db.execute("PRAGMA journal_mode = WAL")  # readers and a writer at the same time
        # A committed batch lies in the kernel's cache, so a killed process loses nothing; FULL
        # would only add safety against power cuts, at one fsync a batch.
        db.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        db.close()
        raise
    return db


class Records:
    """Results of model calls: a committed folder (read first, never written) and a working file.

    `path` is the SQLite file (None: nothing can be written), `base` the folder of parquet files
    (None: none). With `strict`, `get` raises RecordsError where it would return None. While the
    environment variable FACTROBUST_NOTEBOOK names a notebook (and FACTROBUST_PROFILE is unset or
    "laptop"), every call that is read or written is marked as used by it: `export` writes those.
    """

    def __init__(
        self, path: Path | None, base: Path | None = None, *, strict: bool = False
    ) -> None:
        self.path = path
        self.base = base
        self._strict = strict
        self._connection: tuple[int, sqlite3.Connection] | None = None
        self._files: dict[tuple[str, str], list[Path]] | None = None
        self._texts: dict[bytes, str] = {}  # committed values by key, of the files read so far

    def get(self, calls: Sequence[Call]) -> list[Any | None]:
        """The stored value of each call, None where there is none; floats equal those stored."""
        self._load_base({(call.model, call.operation) for call in calls})
        keys = [key_of(call) for call in calls]
        texts = {key: self._texts[key] for key in keys if key in self._texts}
        texts |= self._working([key for key in dict.fromkeys(keys) if key not in texts])
        missing = [call for call, key in zip(calls, keys, strict=True) if key not in texts]
        if missing and self._strict:
            raise RecordsError(_describe_missing(missing, self.base))
        if texts and self._notebook() and self.path is not None:
            with self._writing() as db:
                self._mark(db, texts)
        return [decode(texts[key]) if key in texts else None for key in keys]

    def put(self, calls: Sequence[Call], values: Sequence[Any]) -> None:
        """Store a batch in one transaction; it survives a kill from the moment this returns.

        A call that is there already keeps its first value. Raises ValueError for a None value or
        unequal lengths, RecordsError when the file cannot be written: then nothing of this batch is
        stored and everything before it is.
        """
        if any(value is None for value in values):
            raise ValueError("A record's value cannot be None, which means missing.")
        rows = []
        for call, value in zip(calls, values, strict=True):
            key, text = key_of(call), encode(value)
            fields = (call.model, call.operation, call.prompt, call.parameters)
            rows.append((key, *fields, text, _checksum(key, text)))
        with self._writing() as db:
            db.executemany("INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            self._mark(db, [row[0] for row in rows])

    def forget_use(self, notebook: str) -> None:
        """Drop a notebook's marks, when its run begins, so that calls it no longer makes leave
        the next export; no result is deleted."""
        if self.path is not None and self.path.exists():
            with self._writing() as db:
                db.execute("DELETE FROM used WHERE notebook = ?", (notebook,))

    def notebooks(self) -> dict[str, int]:
        """How many calls each notebook has used, by the working store's marks."""
        if self.path is None or not self.path.exists():
            return {}
        with _explained(self.path, "read"):
            query = "SELECT notebook, count(*) FROM used GROUP BY notebook ORDER BY notebook"
            return dict(self._database().execute(query).fetchall())

    def used(self) -> Iterator[tuple[Call, str, list[str]]]:
        """Each marked call with its value's text and its notebooks, in the order of the calls.

        A result in the working file goes before the committed one. Raises RecordsError when a
        marked call has no result any more.
        """
        if self.path is None or not self.path.exists():
            return
        base: dict[bytes, tuple[Call, str]] = {}
        for file in _parquet_files(self.base):
            base |= {key_of(call): (call, text) for call, text in _rows(file)}
        marked = defaultdict(list)
        found = {}
        with _explained(self.path, "read"):
            db = self._database()
            for key, notebook in db.execute("SELECT key, notebook FROM used ORDER BY notebook"):
                marked[key].append(notebook)
            query = "SELECT * FROM calls WHERE key IN (SELECT key FROM used)"
            for key, model, operation, prompt, parameters, text, checksum in db.execute(query):
                if _checksum(key, text) != checksum:
                    raise _damaged_row(self.path)
                found[key] = (Call(model, operation, prompt, parameters), text)
        if lost := len(marked.keys() - found.keys() - base.keys()):
            raise RecordsError(
                f"{self.path} lacks {lost} results that its notebooks used: run `make reproduce`."
            )
        rows = [(*(found.get(key) or base[key]), names) for key, names in marked.items()]
        yield from sorted(rows, key=lambda row: row[0])

    def close(self) -> None:
        """Close the working file; it opens again when needed."""
        if self._connection is not None and self._connection[0] == os.getpid():
            self._connection[1].close()
        self._connection = None

    @staticmethod
    def _notebook() -> str | None:
        # A run of another profile makes other calls; its marks must not reach the export.
        if os.environ.get("FACTROBUST_PROFILE", "laptop") != "laptop":
            return None
        return os.environ.get("FACTROBUST_NOTEBOOK") or None

    def _mark(self, db: sqlite3.Connection, keys: Sequence[bytes] | Mapping[bytes, str]) -> None:
        if notebook := self._notebook():
            rows = [(key, notebook) for key in keys]
            db.executemany("INSERT OR IGNORE INTO used VALUES (?, ?)", rows)

    def _database(self) -> sqlite3.Connection:
        assert self.path is not None
        # A connection must not cross a fork.
        if self._connection is None or self._connection[0] != os.getpid():
            self._connection = os.getpid(), _connect(self.path)
        return self._connection[1]

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        if self.path is None:
            raise RecordsError(
                f"The records in {self.base} are read-only: open a store with a working file, for "
                "instance with FACTROBUST_RECORDS unset."
            )
        with _explained(self.path, "write"):
            db = self._database()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                # Rolls back. A connection opened on a read-only disk would stay read-only for ever.
                self.close()
                raise

    def _working(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        if not keys or self.path is None or not self.path.exists():
            return {}
        found = {}
        with _explained(self.path, "read"):
            db = self._database()
            for start in range(0, len(keys), 1000):
                chunk = keys[start : start + 1000]
                marks = ",".join("?" * len(chunk))
                query = f"SELECT key, value, checksum FROM calls WHERE key IN ({marks})"
                for key, text, checksum in db.execute(query, chunk):
                    if _checksum(key, text) != checksum:
                        raise _damaged_row(self.path)
                    found[key] = text
        return found

    def _load_base(self, kinds: set[tuple[str, str]]) -> None:
        """Read the committed files of these (model, operation) pairs, once each."""
        if self._files is None:
            self._files = defaultdict(list)
            for file in _parquet_files(self.base):
                about = _about(file)
                self._files[about["model"], about["operation"]].append(file)
        for kind in sorted(kinds & self._files.keys()):
            for file in self._files.pop(kind):
                self._texts |= {key_of(call): text for call, text in _rows(file)}


def _describe_missing(missing: Sequence[Call], base: Path | None) -> str:
    counts = Counter((short_name(call.model), call.operation) for call in missing)
    what = ", ".join(f"{n} of {operation} by {model}" for (model, operation), n in counts.items())
    return (
        f"The records in {base} lack calls that this run needs ({what}), and no model may be run "
        f"in replay mode: run {REBUILD}."
    )


def short_name(model: str) -> str:
    """A model's name for messages and file names: the fingerprint's "name", else its beginning."""
    try:
        fingerprint = json.loads(model)
    except ValueError:
        fingerprint = None
    name = fingerprint.get("name") if isinstance(fingerprint, dict) else None
    return str(name or model)[:60]


def open_records() -> Records:
    """The store that the environment variable FACTROBUST_RECORDS asks for.

    Unset: the committed records first, then the working file. "fresh": the working file only.
    "replay": the committed records only; a missing call raises RecordsError. One store per process
    and place is shared, so that the committed files are read once.
    """
    mode = os.environ.get("FACTROBUST_RECORDS", "")
    working, committed = _places()
    if mode not in ("", "fresh", "replay"):
        raise RecordsError(
            f"FACTROBUST_RECORDS is {mode!r}: leave it unset, or set it to 'fresh' or 'replay'."
        )
    return _shared(
        None if mode == "replay" else working,
        None if mode == "fresh" else committed,
        mode == "replay",
    )


def _places() -> tuple[Path, Path]:
    return paths.BUILD / "records" / "records.sqlite", paths.DATA / "records"


@functools.cache
def _shared(path: Path | None, base: Path | None, strict: bool) -> Records:
    return Records(path, base, strict=strict)


# --- committed files ------------------------------------------------------------------------------


def _parquet_files(folder: Path | None) -> list[Path]:
    return [] if folder is None else sorted(folder.glob("*.parquet"))


@contextmanager
def _sound(file: Path) -> Iterator[None]:
    """Whatever pyarrow says about a file that it cannot read becomes one sentence."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:  # ArrowInvalid is a ValueError
        said = (str(error).splitlines() or ["unreadable"])[0][:200]
        raise RecordsError(
            f"{file} is damaged ({said}): restore it with `git checkout -- '{file}'`, or run "
            f"{REBUILD}."
        ) from error


def _about(file: Path) -> dict[str, Any]:
    """The metadata that `export` wrote into a file: schema, model, operation, notebooks."""
    import pyarrow.parquet as pq

    with _sound(file):
        metadata = pq.read_schema(file).metadata
        if hashlib.sha256(metadata[b"factrobust"]).hexdigest().encode() != metadata[b"sha256"]:
            raise ValueError("its metadata do not match their checksum")
        about: dict[str, Any] = json.loads(metadata[b"factrobust"])
    if about["schema"] != SCHEMA:
        raise RecordsError(
            f"{file} holds records of schema {about['schema']}, but this library reads schema "
            f"{SCHEMA}: run {REBUILD}, or use the library's version that wrote it."
        )
    return about


def _rows(file: Path) -> Iterator[tuple[Call, str]]:
    """Each call of a committed file with its value's text."""
    import pyarrow.parquet as pq

    about = _about(file)
    with _sound(file):
        table = pq.read_table(file, page_checksum_verification=True)
        columns = [table.column(name).to_pylist() for name in COLUMNS]
        digest = _digest(columns)
        if digest != about["sha256"]:
            raise ValueError("its rows do not match their checksum")
    for model, operation, prompt, parameters, text in zip(*columns, strict=True):
        yield Call(model, operation, prompt, parameters), text


def _digest(columns: Sequence[Sequence[str]]) -> str:
    sha = hashlib.sha256()
    for column in columns:
        sha.update("\0".join(column).encode())
    return sha.hexdigest()


def _write_file(file: Path, rows: Sequence[tuple[Call, str, list[str]]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    calls = [call for call, _, _ in rows]
    columns = [[getattr(call, name) for call in calls] for name in COLUMNS[:-1]]
    columns.append([text for _, text, _ in rows])
    about = {
        "schema": SCHEMA,
        "model": calls[0].model,
        "operation": calls[0].operation,
        "notebooks": sorted({name for _, _, names in rows for name in names}),
        "sha256": _digest(columns),
    }
    table = pa.table(dict(zip(COLUMNS, columns, strict=True)))
    text = json.dumps(about, sort_keys=True)
    sha = hashlib.sha256(text.encode()).hexdigest()
    table = table.replace_schema_metadata({"factrobust": text, "sha256": sha})
    pq.write_table(
        table, file, compression="zstd", compression_level=9, write_page_checksum=True,
        row_group_size=len(rows), use_dictionary=list(COLUMNS[:-1]),
    )  # fmt: skip


def _split(rows: Iterator[tuple[Call, str, list[str]]]) -> dict[str, list[Any]]:
    """File name -> rows: one model and operation a file, CHUNK_BYTES of text at most."""
    files: dict[str, list[Any]] = {}
    kind, size, part = None, 0, 0
    for row in rows:
        call, text, _ = row
        length = len(call.prompt.encode()) + len(call.parameters.encode()) + len(text.encode())
        size += length
        if kind != (call.model, call.operation):
            kind, size, part = (call.model, call.operation), length, 0
        elif size > CHUNK_BYTES:
            size, part = length, part + 1
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{short_name(call.model)}.{call.operation}")
        mark = hashlib.sha256(call.model.encode()).hexdigest()[:8]
        files.setdefault(f"{name}.{mark}.{part:02}.parquet", []).append(row)
    return files


def export(records: Records, folder: Path, *, allow_fewer: bool = False) -> list[Path]:
    """Write the calls that the notebooks used into a folder of parquet files; return the files.

    The files depend on the records alone: unchanged records give the same bytes. Files of an
    earlier export that are no longer needed are removed, after the new ones are in place. Raises
    RecordsError when nothing was used, or when a notebook that the folder's files serve has no
    marks in the working store (unless `allow_fewer`): its calls would be lost.
    """
    notebooks = records.notebooks()
    if not notebooks:
        raise RecordsError(f"{records.path} has nothing to export: run `make reproduce` first.")
    old = _parquet_files(folder)
    served = {name for file in old for name in ([] if allow_fewer else _about(file)["notebooks"])}
    if idle := sorted(served - notebooks.keys()):
        raise RecordsError(
            f"The export would drop the records of {', '.join(idle)}, which have not been run with "
            f"{records.path}: run `make reproduce` first, or export with --allow-fewer if these "
            "notebooks are gone."
        )
    files = _split(records.used())
    folder.mkdir(parents=True, exist_ok=True)
    halves = {name: folder / f".{name}.tmp" for name in files}
    try:
        with _explained(folder, "write"):
            for name, rows in files.items():
                _write_file(halves[name], rows)
            for name, half in halves.items():
                os.replace(half, folder / name)
            for file in old:
                if file.name not in files:
                    file.unlink()
    finally:
        for half in halves.values():
            half.unlink(missing_ok=True)
    return [folder / name for name in files]


# --- upkeep ---------------------------------------------------------------------------------------


def verify(path: Path | None, folder: Path | None) -> dict[str, int]:
    """Read every row of a working file and a committed folder; count them by place.

    Raises RecordsError at the first row or file that is not as it was written.
    """
    counts = {}
    if path is not None and path.exists():
        counts[str(path)] = 0
        with _explained(path, "read"), closing(_connect(path)) as db:
            if (said := db.execute("PRAGMA quick_check").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(f"malformed: {said.splitlines()[0]}")
            for row in db.execute("SELECT * FROM calls"):
                if not _is_sound(row):
                    raise _damaged_row(path)
                counts[str(path)] += 1
    for file in _parquet_files(folder):
        counts[str(file)] = sum(1 for _ in _rows(file))
    return counts


def repair(path: Path) -> tuple[int, Path]:
    """Move a damaged working file aside and leave its sound rows in a new one.

    Returns how many rows were saved and where the damaged file lies now. The marks of use are kept
    all or not at all: some of them would make an export that looks complete.
    """
    aside, new = (path.with_name(path.name + end) for end in (".damaged", ".repaired"))
    _unlink_store(new)
    saved = 0
    with _explained(path, "repair"):
        if not path.is_file():
            raise FileNotFoundError("there is no such file")
        with closing(_connect(new)) as good, closing(sqlite3.connect(path)) as bad:
            bad.execute("PRAGMA writable_schema = ON")  # else a truncated file is not even opened
            bad.execute("SELECT count(*) FROM sqlite_master")  # nothing can be read without it
            good.execute("BEGIN")
            # A row takes over 50 bytes; row numbers may have gaps, and the file may be cut short.
            for start in range(0, path.stat().st_size // 50 + 100_000, 1000):
                rows = [row for row in _salvage(bad, start, start + 999) if _is_sound(row)]
                marks = "INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?)"
                saved += good.executemany(marks, rows).rowcount if rows else 0
            with suppress(sqlite3.DatabaseError):
                uses = bad.execute("SELECT key, notebook FROM used").fetchall()
                good.executemany("INSERT OR IGNORE INTO used VALUES (?, ?)", uses)
            good.execute("COMMIT")
        # The write-ahead log belongs to its file: left behind, it would be played into the new one.
        _unlink_store(aside)
        for end in ("-wal", "-shm"):
            if path.with_name(path.name + end).exists():
                os.replace(path.with_name(path.name + end), aside.with_name(aside.name + end))
        os.replace(path, aside)
        os.replace(new, path)
    return saved, aside


def _unlink_store(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _salvage(db: sqlite3.Connection, low: int, high: int) -> list[Any]:
    """The readable rows numbered low to high: halve the range wherever it cannot be read."""
    try:
        query = "SELECT * FROM calls WHERE rowid BETWEEN ? AND ?"
        return db.execute(query, (low, high)).fetchall()
    except sqlite3.DatabaseError:
        if low == high:
            return []
        middle = (low + high) // 2
        return _salvage(db, low, middle) + _salvage(db, middle + 1, high)


def _is_sound(row: Sequence[Any]) -> bool:
    key, *fields, text, checksum = row
    try:
        return key_of(Call(*fields)) == key and _checksum(key, text) == checksum
    except (TypeError, AttributeError):  # a damaged row may hold values of other types
        return False


def info(records: Records) -> str:
    """A table of what the working file and the committed folder hold, and who used it."""
    lines = [f"working store {records.path}"]
    if records.path is not None and records.path.exists():
        with _explained(records.path, "read"), closing(_connect(records.path)) as db:
            query = """SELECT model, operation, count(*), sum(length(value)) FROM calls
                       GROUP BY model, operation ORDER BY model, operation"""
            for model, operation, count, size in db.execute(query):
                lines.append(f"  {short_name(model)} {operation}: {count} calls, {size} characters")
        lines += [f"  {name}: uses {count} calls" for name, count in records.notebooks().items()]
    lines.append(f"committed records {records.base}")
    for file in _parquet_files(records.base):
        lines.append(f"  {file.name}: {sum(1 for _ in _rows(file))} calls, {file.stat().st_size} B")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: `python -m factrobust.records export|verify|info|repair`; 1 on an error."""
    parser = argparse.ArgumentParser(prog="python -m factrobust.records", description=main.__doc__)
    parser.add_argument("--store", type=Path, default=_places()[0], help="working SQLite file")
    parser.add_argument("--folder", type=Path, default=_places()[1], help="committed parquet files")
    commands = parser.add_subparsers(dest="command", required=True)
    parser_export = commands.add_parser("export", help="write what the notebooks used to --folder")
    parser_export.add_argument("--allow-fewer", action="store_true", help="notebooks were removed")
    commands.add_parser("verify", help="read every row and compare it with its checksum")
    commands.add_parser("info", help="count what is stored")
    commands.add_parser("repair", help="save the sound rows of a damaged working file")
    given = parser.parse_args(arguments)
    records = Records(given.store, given.folder)
    try:
        if given.command == "export":
            files = export(records, given.folder, allow_fewer=given.allow_fewer)
            size = sum(file.stat().st_size for file in files) / 1e6
            print(f"{len(files)} files, {size:.1f} MB, in {given.folder}")
        elif given.command == "verify":
            for place, count in verify(given.store, given.folder).items():
                print(f"{place}: {count} calls, all sound")
        elif given.command == "repair":
            saved, aside = repair(given.store)
            print(f"{saved} calls saved in {given.store}; the damaged file is {aside}")
        else:
            print(info(records))
    except RecordsError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
