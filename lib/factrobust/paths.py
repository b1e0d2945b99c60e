"""The folders of the repository, and where a run may write."""

import os
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
BUILD = ROOT / "build"

files_read: dict[Path, str] = {}  # data files that this process has read, with their SHA-256


def noted(path: str | Path) -> Path:
    """The path of a data file that is read now: what is saved from here on names it as an input."""
    path = Path(path)
    if path.is_file():  # else the reader says what is wrong
        files_read[path.resolve()] = sha256(path.read_bytes()).hexdigest()
    return path


def output_root() -> Path:
    """The folder under which figures and tables are written: FACTROBUST_OUT (an absolute path), so that
    a test or an unfinished notebook overwrites no committed figure, or else the repository."""
    return Path(os.environ.get("FACTROBUST_OUT", ROOT))


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that at any moment it holds the old or the new content, never a half."""
    half = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        half.write_bytes(data)
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)
