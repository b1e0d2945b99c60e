"""Where things lie: the repository's folders, and where a run may write."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
BUILD = ROOT / "build"


def output_root() -> Path:
    """Folder that stands in for the repository root when figures and tables are written.

    The environment variable FACTROBUST_OUT (absolute path) redirects a run, so that a test or a
    half-finished notebook never overwrites the committed figures.
    """
    return Path(os.environ.get("FACTROBUST_OUT", ROOT))


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that at any moment it holds the old content or the new, never half of it."""
    half = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        half.write_bytes(data)
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)
