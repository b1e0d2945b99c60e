"""The folders of the repository, and where a run may write."""

import os
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSIDE = Path(__file__).resolve().parent / "data"  # of an installed wheel, which is no clone
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "factrobust"
DATA = INSIDE if INSIDE.is_dir() else ROOT / "data"
BUILD = CACHE / "build" if INSIDE.is_dir() else ROOT / "build"

# Data files that this process has read, in this order and each time, with their SHA-256: those that
# a module holds since its import, and all others.
files_of_modules: list[tuple[Path, str]] = []
files_read: list[tuple[Path, str]] = []


def noted(path: str | Path, *, at_import: bool = False) -> Path:
    """The path of a data file that is read now: what is saved from here on names it as an input.

    Whoever keeps what a file holds notes it at each use: a study names the files read since it was
    made, and those that a module reads when it is imported."""
    path = Path(path)
    read = files_of_modules if at_import else files_read
    if path.is_file():  # else the reader says what is wrong
        read.append((path.resolve(), sha256(path.read_bytes()).hexdigest()))
    return path


def output_root() -> Path:
    """The folder under which figures and tables are written.

    `make reproduce`, which puts results in place, and the tests name it: FACTROBUST_OUT, an
    absolute path. A notebook run by hand writes to build/by-hand, so that it overwrites no
    committed figure."""
    return Path(os.environ.get("FACTROBUST_OUT", BUILD / "by-hand"))


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that at any moment it holds the old or the new content, never a half."""
    half = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        half.write_bytes(data)
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)
