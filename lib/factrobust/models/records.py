"""A store of model calls, so that none is computed twice.

New results go to a working SQLite file, batch by batch. data/export_records.py writes those that
the notebooks need to parquet files under data/records/, which are committed.

Three files hold results: the committed ones under data/records/; build/records/records.sqlite, with
what these lack; and build/records/again.sqlite, with what a run that asks everything again was
told."""

import functools
import hashlib
import io
import json
import math
import os
import re
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm.std import tqdm

from factrobust import paths

SCHEMA = 2  # add 1 when the meaning of a stored value changes, or the numerics of a model
KEY_BYTES = 32  # of a call: `key_of`
INDEX = "index.json"
COLUMNS = ("model", "operation", "prompt", "parameters", "value")
# A further column of the committed files: the paths of the notebooks that use a call.
NOTEBOOKS = "notebooks"
REBUILD = "`make reproduce ASK=1 && make records`"
QUIET_SECONDS = 2.0  # what ends sooner needs no bar
BUSY_SECONDS = 60  # how long to wait while another process writes
TABLES = (
    """CREATE TABLE calls (key BLOB PRIMARY KEY, model TEXT, operation TEXT, prompt TEXT,
                           parameters TEXT, value TEXT)""",
    f"PRAGMA user_version = {SCHEMA}",
)
INSERT = f"INSERT OR IGNORE INTO calls (key, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)"

Batches = Iterator[tuple[list[int], list[Any]]]  # positions of finished calls, and their values
Compute = Callable[[list[int]], Batches]  # for the calls at these positions


class RecordsError(RuntimeError):
    """The store cannot be read or written, or it lacks a call in replay mode."""


class Call(NamedTuple):
    """Everything that determines the result of one model call, as text."""

    model: str  # its fingerprint, such as "sha256:a5fd3b62230aa5ec float32"
    operation: str
    prompt: str
    parameters: str  # canonical JSON of the rest: answer, temperature, seed and so on


def key_of(call: Call) -> bytes:
    """SHA-256 of the canonical JSON of [SCHEMA, model, operation, prompt, parameters]."""
    return hashlib.sha256(json.dumps([SCHEMA, *call]).encode()).digest()


# -- the store -------------------------------------------------------------------------------------


class Records:
    """Results of model calls: a committed folder (read first, never written) and a working file.

    `path` is the SQLite file, if results may be written. `base` is the folder of parquet files, if
    there is one. With `strict`, `get` raises RecordsError for a missing call.
    """

    def __init__(
        self,
        path: Path | None,
        base: Path | None = None,
        *,
        strict: bool = False,
    ) -> None:
        self.path = path
        self.base = base
        self._strict = strict
        self._texts: dict[tuple[str, ...], str] = {}  # committed values that were read so far

    @functools.cached_property
    def _unread(self) -> dict[str, dict[str, Any]]:
        return read_index(self.base)["files"] if self.base else {}

    def get(self, calls: Sequence[Call]) -> list[Any | None]:
        """The stored value of each call, or None. Floats come back bit for bit."""
        note_use(calls)
        # 1. Committed files of these models and operations are read, if they were not yet.
        kinds = {(call.model, call.operation) for call in calls}
        for name, about in list(self._unread.items()):
            if self.base and (about["model"], about["operation"]) in kinds:
                self._texts |= read_texts(self.base / name, about["sha256"])
                del self._unread[name]
        # 2. What they lack may be in the working file.
        texts = {call: self._texts[call] for call in calls if call in self._texts}
        if self.path and self.path.exists():
            with opened(self.path) as db:
                for call in {*calls} - texts.keys():
                    query = "SELECT value FROM calls WHERE key = ?"
                    for (text,) in db.execute(query, (key_of(call),)):
                        texts[call] = text
        # 3. What no file has.
        missing = [call for call in calls if call not in texts]
        if missing and self._strict:
            first = f"{missing[0].operation} by {missing[0].model}"
            raise RecordsError(
                f"The records in {self.base} lack {len(missing)} calls that this run needs (the "
                f"first is a {first}), and this run may ask no model: run `make reproduce`, which "
                "asks them, then `make records`."
            )
        return [decode(texts[call]) if call in texts else None for call in calls]

    def knows(self, model: str) -> bool:
        """Whether any answer of a model (its fingerprint) is stored."""
        if self.base and any(a["model"] == model for a in read_index(self.base)["files"].values()):
            return True
        if not self.path or not self.path.exists():
            return False
        with opened(self.path) as db:
            return bool(db.execute("SELECT 1 FROM calls WHERE model = ?", (model,)).fetchone())

    def put(self, calls: Sequence[Call], values: Sequence[Any]) -> None:
        """Store a batch of values, none of them None, in one transaction; RecordsError if the file
        cannot be written. A call that is stored already keeps its first value."""
        assert self.path is not None  # a strict store raises for a missing call
        rows = []
        for call, value in zip(calls, values, strict=True):
            rows.append((key_of(call), *call, encode(value)))
        with opened(self.path) as db:
            db.executemany(INSERT, rows)


def note_use(calls: Sequence[Call]) -> None:
    """Append the keys of calls to the file FACTROBUST_USED, if that is set. The runner sets it:
    what a notebook used up to its end is what `make records` exports for it."""
    file = os.environ.get("FACTROBUST_USED")
    if file:
        keys = {key_of(call) for call in calls}
        with open(file, "ab") as used:
            used.write(b"".join(keys))


def keys_in(file: Path) -> set[bytes]:
    """The keys in a file that `note_use` wrote."""
    content = file.read_bytes()
    return {content[i : i + KEY_BYTES] for i in range(0, len(content), KEY_BYTES)}


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction on a working file, which is created if there is none. An error undoes it, and
    nothing stays open across a fork, a full disk or a killed cell."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as db:
            # IMMEDIATE waits for other writers; a reader that becomes a writer could not wait.
            db.execute("BEGIN IMMEDIATE")
            if db.execute("PRAGMA user_version").fetchone() != (SCHEMA,):
                for statement in TABLES:  # which fails where another schema's tables are
                    db.execute(statement)
            yield db
            db.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        raise RecordsError(
            f"Cannot use the records in {path} ({error}): what was committed stays; wait for other "
            "processes, free disk space, or move a file away that is damaged or not of schema "
            f"{SCHEMA}; then run again."
        ) from error


def places() -> tuple[Path, Path]:
    """The project's working file and its folder of committed records."""
    return paths.BUILD / "records" / "records.sqlite", paths.DATA / "records"


def asked_again() -> Path:
    """The working file of a run that asks everything again."""
    return paths.BUILD / "records" / "again.sqlite"


def open_records() -> Records:
    """The store that the environment variable FACTROBUST_RECORDS names.

    Unset or "committed": the committed records first, then the working file. "fresh": only the
    working file of a run that asks everything again. "replay": only the committed records. A
    process reads these once."""
    return _shared(os.environ.get("FACTROBUST_RECORDS", "committed"), *places())


@functools.cache
def _shared(mode: str, working: Path, committed: Path) -> Records:
    if mode == "replay":
        return Records(None, committed, strict=True)
    if mode == "fresh":
        return Records(asked_again())
    return Records(working, committed)


# -- asking the store, and computing what is missing -----------------------------------------------


def ask(records: Records | None, calls: Sequence[Call], compute: Compute) -> Batches:
    """The values of calls, batch by batch: first those in the store, then the missing ones.

    `compute` gets the positions of the missing calls, if there are any, equal calls once; without
    records, of all. It yields positions with their values, batch by batch, in any order. Each batch
    is stored before it is yielded, so that an interrupted run keeps it.

    Example: of the calls [a, b, b, c] the store holds a. `compute([1, 3])` may yield ([3], ["C"])
    and ([1], ["B"]). Then `ask` yields ([0], ["A"]), ([3], ["C"]) and ([1, 2], ["B", "B"])."""
    # 1. What is stored.
    known = records.get(calls) if records else [None] * len(calls)
    found = [i for i, value in enumerate(known) if value is not None]
    if found:
        yield found, [known[i] for i in found]
    # 2. Where each missing call stands.
    places: dict[Call, list[int]] = {}
    for i, value in enumerate(known):
        if value is None:
            places.setdefault(calls[i], []).append(i)
    if not places:
        return
    # 3. The missing ones are computed and stored.
    first_places = [same[0] for same in places.values()]
    for positions, values in compute(first_places):
        if records:
            records.put([calls[i] for i in positions], values)
        every_place: list[int] = []
        copies: list[Any] = []
        for i, value in zip(positions, values, strict=True):
            same = places[calls[i]]
            every_place += same
            copies += [value] * len(same)
        yield every_place, copies


def ask_all(
    records: Records | None,
    calls: Sequence[Call],
    compute: Compute,
    *,
    label: str,
) -> list[Any]:
    """The value of each call, by `ask`, with a progress bar of this label."""
    return collected(ask(records, calls, compute), len(calls), label)


def collected(batches: Batches, n: int, label: str) -> list[Any]:
    """The values of n calls in order, from their batches, with a progress bar of this label."""
    values: list[Any] = [None] * n
    # Closed, since a traceback would keep the generator and its model.
    with closing(batches), progress_bar(label, n) as advance:  # type: ignore[type-var]
        for positions, batch in batches:
            for i, value in zip(positions, batch, strict=True):
                values[i] = value
            advance(len(positions))
    return values


def progress_file() -> Path:
    """Where a notebook that the runner runs tells what it is at; elsewhere its folder does not
    exist."""
    return Path(os.environ.get("FACTROBUST_OUT", "no folder"), "progress.txt")


def tell(what: str) -> None:
    """Let the runner show a line, such as "loading"."""
    if progress_file().parent.is_dir():
        progress_file().write_text(f"{what}\n", encoding="utf-8")


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[int], Any]]:
    """Yield `advance(n)`; show a bar on stderr if the work takes more than two seconds. In the
    runner's notebooks a line goes to progress.txt in FACTROBUST_OUT instead, which the runner
    shows."""
    if progress_file().parent.is_dir():
        yield _told(label, total)
        return
    # tqdm.std, since the widgets of tqdm.auto make outputs differ from run to run.
    with tqdm(
        total=total,
        desc=label,
        delay=QUIET_SECONDS,
        leave=False,
    ) as bar:
        yield bar.update


def _told(label: str, total: int) -> Callable[[int], None]:
    """An `advance(n)` that tells how far the work is, and from its second step on how long it will
    take.

    What comes before the end of the first step is left out of the forecast: answers from the
    records take no time, and the first batch waits until the model is loaded."""
    done = 0
    first: tuple[int, float] | None = None  # what was done at the end of the first step, and when
    tell(f"{label}: 0 of {total:,}")

    def advance(n: int) -> None:
        nonlocal done, first
        done += n
        line = f"{label}: {done:,} of {total:,}"
        now = time.monotonic()
        if first is None:
            first = done, now
        elif done > first[0]:
            seconds_each = (now - first[1]) / (done - first[0])
            left = (total - done) * seconds_each
            line += f", {tqdm.format_interval(left)} left"
        tell(line)

    return advance


# -- the committed records: parquet files of one model and operation each, and an index ------------


def read_index(folder: Path) -> dict[str, Any]:
    """A folder's index: for each of the `files` its model, operation, number of calls and
    SHA-256."""
    file = folder / INDEX
    if not file.is_file():
        return {"schema": SCHEMA, "files": {}}
    try:
        index: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damaged(file, str(error)) from error
    if index["schema"] != SCHEMA:
        raise RecordsError(
            f"{folder} holds records of schema {index['schema']}, but this library reads schema "
            f"{SCHEMA}: run {REBUILD}."
        )
    return index


def read_texts(file: Path, sha256: str) -> dict[tuple[str, ...], str]:
    """The text of each value in a file, by call; RecordsError for another SHA-256."""
    *fields, texts = read_columns(file, sha256, COLUMNS)
    return dict(zip(zip(*fields, strict=True), texts, strict=True))


def read_columns(file: Path, sha256: str, columns: Sequence[str]) -> list[list[str]]:
    """Columns of a file of committed records; RecordsError for another SHA-256."""
    import pyarrow.parquet as pq

    content = file.read_bytes() if file.exists() else b""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise _damaged(file, "it does not match its checksum in the index")
    table = pq.read_table(io.BytesIO(content), columns=list(columns))
    return list(table.to_pydict().values())


def _damaged(file: Path, why: str) -> RecordsError:
    return RecordsError(
        f"{file} is damaged ({why}): restore it with `git checkout -- '{file}'`, or run {REBUILD}."
    )


# -- values as text: compact JSON from which every float comes back bit for bit --------------------
#
# Tried beside it: msgpack, whose floats are all of 32 bits or all of 64, where values hold both.
# With 32 bits, 400 answers of Qwen 1.5B take 18% less room, and 1,500 are read in 0.61 s. JSON
# takes 0.07 s without their alternatives, which few notebooks read, and 0.77 s with them. A column
# of Arrow takes 93% of the JSON's room for the alternatives alone.


def encode(value: Any) -> str:
    """JSON text of nested dicts (keys are sorted), lists, arrays, strings, numbers and None. A
    float32 is written with the fewest digits that give it back (0.1 for np.float32(0.1)), any other
    double in full with a capital E (1.1E0)."""
    with np.errstate(over="ignore"):  # a double beyond float32 is tried as one
        return _text(value)


def decode(text: str) -> Any:
    """The value that `encode` wrote. Most of the text of an answer is its alternatives, which few
    notebooks read: the last field of an object, if it is `top_logprobs`, is decoded when it is
    first read."""
    rest, mark, alternatives = text.partition(',"top_logprobs":')  # inside a string it has \"
    if not mark or not text.startswith("{"):
        return _DECODER.decode(text)
    value = _DECODER.decode(rest + "}")
    value["top_logprobs"] = LazyAlternatives(alternatives)
    return value


class LazyAlternatives(Sequence[Any]):
    """A list of lists of pairs, decoded from the JSON that a text begins with when it is first
    read. It equals the list that it stands for, and a slice of it is a list."""

    def __init__(self, text: str) -> None:
        self._text = text

    @functools.cached_property
    def _list(self) -> list[Any]:
        # Numbers are float32, and NumPy turns them into such faster than `_read`; others are rare.
        doubles = _DOUBLE.search(self._text)
        decoder = _DECODER if doubles else _PLAIN
        positions, _ = decoder.raw_decode(self._text)
        flat = [number for pairs in positions for _, number in pairs]
        numbers = np.array(flat, dtype=float if doubles else np.float32).tolist()
        result = []
        start = 0
        for pairs in positions:
            names = [name for name, _ in pairs]
            end = start + len(names)
            result.append(list(zip(names, numbers[start:end], strict=True)))
            start = end
        return result

    def __getitem__(self, place: Any) -> Any:
        return self._list[place]

    def __len__(self) -> int:
        return len(self._list)

    def __eq__(self, other: object) -> bool:
        return self._list == (other._list if isinstance(other, LazyAlternatives) else other)

    def __repr__(self) -> str:
        return repr(self._list)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, (list, tuple, LazyAlternatives)):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, (str, bool, int)) or value is None:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (np.ndarray, np.generic)):
        return _text(value.tolist())  # float32 to double is exact
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return "{" + ",".join(f"{_text(k)}:{_text(value[k])}" for k in sorted(value)) + "}"
    raise TypeError(f"A record cannot hold {type(value).__name__!r}")


def _number(number: float) -> str:
    if not math.isfinite(number):
        return json.dumps(number)  # NaN, Infinity, -Infinity
    single = np.float32(number)
    # The second condition fails once in a billion: decode rounds to double, then to float32.
    if single == number and _read(text := str(single)) == number:
        return text
    text = repr(float(number))
    return text.replace("e", "E") if "e" in text else text + "E0"


FLOAT = struct.Struct("f")
_pack = FLOAT.pack  # bound, since a million numbers are read
_unpack = FLOAT.unpack


def _read(text: str) -> float:
    return float(text) if "E" in text else _unpack(_pack(float(text)))[0]


_DECODER = json.JSONDecoder(parse_float=_read)
_PLAIN = json.JSONDecoder()
_DOUBLE = re.compile(r"\dE")  # in a number, or rarely in a token
