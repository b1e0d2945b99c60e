"""A store of model calls: what was computed once is never computed again.

A call is stored under the SHA-256 of everything that determines its result. New results go to a
working SQLite file, committed batch by batch; the results that the notebooks need are exported to
parquet files under data/records/, which are committed. `python -m factrobust.records --help` lists
the upkeep commands.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import math
import os
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.std import tqdm

from factrobust import paths

SCHEMA = 2  # bump when the meaning of a stored value changes (the model layer's numerics included)


class RecordsError(RuntimeError):
    """The store cannot be read or written, or lacks a call that may not be computed now."""


@dataclass(frozen=True, order=True)
class Call:
    """What determines the result of one model call; every field is text.

    `model` is the model's fingerprint ("sha256:a5fd3b62230aa5ec float32"), `parameters` the
    canonical JSON of the rest: answer, temperature, seed and the like.
    """

    model: str
    operation: str
    prompt: str
    parameters: str


def key_of(call: Call) -> bytes:
    """SHA-256 of the canonical JSON of [SCHEMA, model, operation, prompt, parameters]."""
    fields = [SCHEMA, call.model, call.operation, call.prompt, call.parameters]
    return hashlib.sha256(json.dumps(fields).encode()).digest()


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
            from factrobust.records import store

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
        from factrobust.records import store

        rows = [store.row_of(c, encode(value)) for c, value in zip(calls, values, strict=True)]
        store.insert(self.path, rows, _notebook())

    def forget_use(self, notebook: str) -> None:
        """Drop a notebook's marks, when its run begins, so that calls it no longer makes leave
        the next export; no result is deleted."""
        if self.path is not None:
            from factrobust.records import store

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


Computed = Iterator[tuple[list[int], list[float]]]  # numbers of the calls done, and their values


def once(
    records: Records | None,
    calls: Sequence[Call],
    compute: Callable[[list[int]], Computed],
    *,
    label: str,
) -> list[float]:
    """The value of each call: from the records, and what is missing from `compute`.

    `compute` is given the numbers of the calls that are missing, equal calls once, and yields them
    batch by batch with their values; each batch is committed as it arrives, so that an interrupted
    run keeps what it had. It is not called if nothing is missing. Without records everything is.
    `label` names the work in the progress bar.
    """
    known = records.get(calls) if records else [None] * len(calls)
    found: dict[Call, float] = {
        call: value for call, value in zip(calls, known, strict=True) if value is not None
    }
    missing: dict[Call, list[int]] = {}
    for i, call in enumerate(calls):
        if call not in found:
            missing.setdefault(call, []).append(i)
    with progress_bar(label, len(calls)) as advance:
        advance(len(calls) - sum(map(len, missing.values())))
        batches = compute([places[0] for places in missing.values()]) if missing else ()
        for numbers, values in batches:
            done = [calls[i] for i in numbers]
            if records:
                records.put(done, values)
            found |= zip(done, values, strict=True)
            advance(sum(len(missing[call]) for call in done))
    return [found[call] for call in calls]


INDEX = "index.json"
COLUMNS = ("model", "operation", "prompt", "parameters", "value")
REBUILD = "`make reproduce && make records`"


@dataclass(frozen=True)
class File:
    """What the index says about one parquet file."""

    model: str
    operation: str
    calls: int
    sha256: str


@dataclass(frozen=True)
class Index:
    """The notebooks that the records serve, and the files by name."""

    notebooks: list[str]
    files: dict[str, File]


def read_index(folder: Path) -> Index:
    """A folder's index; an empty one where there is none."""
    file = folder / INDEX
    if not file.is_file():
        return Index([], {})
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
        if given["schema"] != SCHEMA:
            raise RecordsError(
                f"{folder} holds records of schema {given['schema']}, but this library reads "
                f"schema {SCHEMA}: run {REBUILD}, or use the library's version that wrote it."
            )
        files = {name: File(**about) for name, about in given["files"].items()}
        return Index(given["notebooks"], files)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(file, f"{type(error).__name__}: {error}") from error


def write_index(folder: Path, index: Index) -> None:
    """Write what `read_index` reads; the same index gives the same bytes."""
    text = json.dumps({"schema": SCHEMA, **asdict(index)}, indent=1)
    (folder / INDEX).write_text(text + "\n", encoding="utf-8")


def read_rows(file: Path, sha256: str) -> list[tuple[Call, str]]:
    """Each call of a file with its value's text; RecordsError unless it has that SHA-256."""
    import pyarrow.parquet as pq

    try:
        data = file.read_bytes()
    except OSError as error:
        raise _damaged(file, error.strerror or str(error)) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise _damaged(file, "it does not match its checksum in the index")
    table = pq.read_table(io.BytesIO(data))
    columns = [table.column(name).to_pylist() for name in COLUMNS]
    return [(Call(*fields), text) for *fields, text in zip(*columns, strict=True)]


def _damaged(file: Path, why: str) -> RecordsError:
    return RecordsError(
        f"{file} is damaged ({why}): restore it with `git checkout -- '{file}'`, or run {REBUILD}."
    )


_FLOAT32 = struct.Struct("f")


def encode(value: Any) -> str:
    """JSON text of nested dicts, lists, arrays, strings, numbers and None, keys sorted.

    A number that is a float32 is written with the fewest digits that give that float32 back
    (0.1 for np.float32(0.1)); any other double in full with a capital E (1.1E0), so that decode
    returns exactly the value given in both cases. Tuples and arrays come back as lists.
    Raises TypeError for anything else.
    """
    with np.errstate(over="ignore"):  # a double beyond float32 is tried as one
        return _text(value)


def decode(text: str) -> Any:
    """The value that `encode` wrote; every float equals the one encoded, bit for bit."""
    return _DECODER.decode(text)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, (bool, int)) or value is None:
        return json.dumps(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return _text(value.tolist())  # float32 to double is exact
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return "{" + ",".join(f"{_text(k)}:{_text(value[k])}" for k in sorted(value)) + "}"
    raise TypeError(
        f"A record cannot hold {type(value).__name__!r}: give dicts with string keys, lists, "
        "NumPy arrays, strings, numbers, booleans or None."
    )


def _number(number: float) -> str:
    if not math.isfinite(number):
        return json.dumps(number)  # NaN, Infinity, -Infinity
    single = np.float32(number)
    # The second condition fails once in a billion: decode rounds twice, to double and to float32.
    if single == number and _single(text := str(single)) == number:
        return text
    text = repr(float(number))
    return text.replace("e", "E") if "e" in text else text + "E0"


def _single(text: str) -> float:
    number: float = _FLOAT32.unpack(_FLOAT32.pack(float(text)))[0]
    return number


_DECODER = json.JSONDecoder(parse_float=lambda text: float(text) if "E" in text else _single(text))


QUIET_SECONDS = 2.0  # what ends sooner needs no bar
PROGRESS_LINE = "{desc} {n_fmt}/{total_fmt}, {remaining} left"


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[int], Any]]:
    """Yield `advance(n)`; show a bar on stderr once the work has lasted over two seconds.

    A notebook that the runner runs has no terminal: there "label 340/1200, 02:10 left" goes to
    `progress_file` instead. TQDM_DISABLE silences the bar, as everywhere, but not the file.
    """
    file = progress_file()
    # tqdm.std, not tqdm.auto: notebook widgets would make the outputs differ from run to run.
    shared: dict[str, Any] = {"total": total, "desc": label, "delay": QUIET_SECONDS}
    if file is None:
        with tqdm(**shared, leave=False, file=sys.stderr) as bar:
            yield bar.update
        return
    with (
        file.open("w", encoding="utf-8") as stream,
        tqdm(**shared, mininterval=1, bar_format=PROGRESS_LINE, file=stream, disable=False) as bar,
    ):
        yield bar.update


def announce(line: str) -> None:
    """Show a line of your own where the bars are shown."""
    if file := progress_file():
        file.write_text(f"{line}\n", encoding="utf-8")
    elif not os.environ.get("TQDM_DISABLE"):
        print(line, file=sys.stderr)


def progress_file() -> Path | None:
    """Where a notebook that the runner runs (or a test) leaves its progress, for it to show."""
    folder = os.environ.get("FACTROBUST_OUT")
    return Path(folder, "progress.txt") if folder and Path(folder).is_dir() else None
