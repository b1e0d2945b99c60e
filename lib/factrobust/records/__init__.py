"""A store of model calls: what was computed once is never computed again.

A call is stored under the SHA-256 of everything that determines its result. New results go to a
working SQLite file (`store`), committed batch by batch; the results that the notebooks need are
exported to parquet files under data/records/, which are committed (`export`). `ask` and `ask_all`
are how everything that runs a network asks the store first.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm.std import tqdm

from factrobust import paths

SCHEMA = 2  # bump when the meaning of a stored value changes (the model layer's numerics included)
INDEX = "index.json"
COLUMNS = ("model", "operation", "prompt", "parameters", "value")
REBUILD = "`make reproduce && make records`"
QUIET_SECONDS = 2.0  # what ends sooner needs no bar
PROGRESS_LINE = "{desc} {n_fmt}/{total_fmt}, {remaining} left"

Batches = Iterator[tuple[list[int], list[Any]]]  # positions of the calls done, and their values


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


# -- asking the store, and computing what is missing -----------------------------------------------


def ask(
    records: Records | None, calls: Sequence[Call], compute: Callable[[list[int]], Batches]
) -> Batches:
    """The values of calls, batch by batch: first what the store holds, then what is missing.

    `compute` is given the positions of the missing calls, equal calls once, and yields them batch
    by batch, in any order, with their values. Each batch is stored before it is handed on, so that
    an interrupted run keeps what it had. `compute` is not called if nothing is missing; without
    records everything is.

    Of calls [a, b, b, c] with a in the store, `compute([1, 3])` may yield ([3], ["C"]) and
    ([1], ["B"]); then `ask` yields ([0], ["A"]), ([3], ["C"]) and ([1, 2], ["B", "B"]).
    """
    known = records.get(calls) if records else [None] * len(calls)
    if found := [i for i, value in enumerate(known) if value is not None]:
        yield found, [known[i] for i in found]
    missing: dict[Call, list[int]] = {}
    for i, value in enumerate(known):
        if value is None:
            missing.setdefault(calls[i], []).append(i)
    batches = compute([places[0] for places in missing.values()]) if missing else ()
    for positions, values in batches:
        if records:
            records.put([calls[i] for i in positions], values)
        copies = [missing[calls[i]] for i in positions]
        yield (
            [place for places in copies for place in places],
            [value for places, value in zip(copies, values, strict=True) for _ in places],
        )


def ask_all(
    records: Records | None,
    calls: Sequence[Call],
    compute: Callable[[list[int]], Batches],
    *,
    label: str,
) -> list[Any]:
    """The value of each call, as `ask` finds them, with a progress bar of this label."""
    values: list[Any] = [None] * len(calls)
    with progress_bar(label, len(calls)) as advance:
        for positions, batch in ask(records, calls, compute):
            for i, value in zip(positions, batch, strict=True):
                values[i] = value
            advance(len(positions))
    return values


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[int], Any]]:
    """Yield `advance(n)`; show a bar on stderr once the work has lasted over two seconds.

    A notebook that the runner runs has no terminal: there "label 340/1200, 02:10 left" goes to
    progress.txt in FACTROBUST_OUT, for the runner to show. TQDM_DISABLE silences the bar, as everywhere, but not the file.
    """
    folder = os.environ.get("FACTROBUST_OUT")
    # tqdm.std, not tqdm.auto: notebook widgets would make the outputs differ from run to run.
    shared: dict[str, Any] = {"total": total, "desc": label, "delay": QUIET_SECONDS}
    if not folder or not Path(folder).is_dir():
        with tqdm(**shared, leave=False, file=sys.stderr) as bar:
            yield bar.update
        return
    with (
        Path(folder, "progress.txt").open("w", encoding="utf-8") as stream,
        tqdm(**shared, mininterval=1, bar_format=PROGRESS_LINE, file=stream, disable=False) as bar,
    ):
        yield bar.update


# -- the store -------------------------------------------------------------------------------------


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

            absent = dict.fromkeys(key for key in keys if key not in texts)
            texts |= store.find(self.path, absent, _notebook())
        missing = [call for call, key in zip(calls, keys, strict=True) if key not in texts]
        if missing and self._strict:
            counts = Counter(f"{call.operation} by {call.model}" for call in missing)
            what = ", ".join(f"{n} of {kind}" for kind, n in counts.items())
            raise RecordsError(
                f"The records in {self.base} lack calls that this run needs ({what}), and no model "
                f"may be run in replay mode: run {REBUILD}."
            )
        return [decode(texts[key]) if key in texts else None for key in keys]

    def put(self, calls: Sequence[Call], values: Sequence[Any]) -> None:
        """Store a batch in one transaction; it survives a kill from the moment this returns.

        A call that is there already keeps its first value; None would mean missing. Raises
        RecordsError when the file cannot be written: then nothing of this batch is stored and
        everything before it is.
        """
        from factrobust.records import store

        assert self.path is not None  # a strict store lacks nothing, so nothing is put into it
        rows = list(zip(calls, map(encode, values), strict=True))
        store.insert(self.path, rows, _notebook())

    def forget_use(self, notebook: str) -> None:
        """Drop a notebook's marks, when its run begins, so that calls it no longer makes leave
        the next export; no result is deleted."""
        if self.path is not None and self.path.exists():
            from factrobust.records import store

            with store.opened(self.path) as db:
                db.execute("DELETE FROM used WHERE notebook = ?", (notebook,))

    def _read_base(self, kinds: set[tuple[str, str]]) -> None:
        """Read the committed files of these (model, operation) pairs, once each."""
        if self.base is None:
            return
        if self._unread is None:
            self._unread = read_index(self.base).files
        for name, about in list(self._unread.items()):
            if (about.model, about.operation) in kinds:
                self._texts |= read_texts(self.base / name, about.sha256)
                del self._unread[name]


def _notebook() -> str | None:
    # A run of another profile makes other calls; its marks must not reach the export.
    if os.environ.get("FACTROBUST_PROFILE", "laptop") != "laptop":
        return None
    return os.environ.get("FACTROBUST_NOTEBOOK") or None


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


# -- the committed records: parquet files of one model and operation each, and an index ------------


class File(NamedTuple):
    """What the index says about one parquet file."""

    model: str
    operation: str
    calls: int
    sha256: str


class Index(NamedTuple):
    """The notebooks that the records serve, and the files by name."""

    notebooks: list[str]
    files: dict[str, File]


def read_index(folder: Path) -> Index:
    """A folder's index; an empty one where there is none."""
    file = folder / INDEX
    if not file.is_file():
        return Index([], {})
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if (schema := content["schema"]) != SCHEMA:
            raise RecordsError(
                f"{folder} holds records of schema {schema}, but this library reads schema {SCHEMA}: "
                f"run {REBUILD}."
            )
        files = {name: File(**about) for name, about in content["files"].items()}
        return Index(content["notebooks"], files)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(file, f"{type(error).__name__}: {error}") from error


def read_texts(file: Path, sha256: str) -> dict[bytes, str]:
    """The text of each value of a file by its call's key; RecordsError for another SHA-256."""
    import pyarrow.parquet as pq

    content = file.read_bytes() if file.exists() else b""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise _damaged(file, "it does not match its checksum in the index")
    table = pq.read_table(io.BytesIO(content))
    columns = [table.column(name).to_pylist() for name in COLUMNS]
    return {key_of(Call(*fields)): text for *fields, text in zip(*columns, strict=True)}


def _damaged(file: Path, why: str) -> RecordsError:
    return RecordsError(
        f"{file} is damaged ({why}): restore it with `git checkout -- '{file}'`, or run {REBUILD}."
    )


# -- values as text: compact JSON from which every float comes back bit for bit --------------------


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


_FLOAT32 = struct.Struct("f")


def _single(text: str) -> float:
    number: float = _FLOAT32.unpack(_FLOAT32.pack(float(text)))[0]
    return number


_DECODER = json.JSONDecoder(parse_float=lambda text: float(text) if "E" in text else _single(text))
