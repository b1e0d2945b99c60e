"""What is up to date: content hashes of everything a notebook's results depend on.

Hashes, not modification times, so that a fresh clone, a checkout or a touched file runs nothing
needlessly. This module decides before anything heavy is imported.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from factrobust.reproduce.mode import Mode, write_atomically

FOLDERS = ("lib", "data", "profiles", "figures")  # where a notebook's inputs lie
RECORDS = "data/records/"  # one input, as a whole: parquet readers bypass Python's open()
Stamp = tuple[int, int, int] | None  # a file's inode, size and time of its last change; None: gone
INJECTED = "injected-parameters"  # papermill's tag on the cell with the parameters of one run


@dataclass(frozen=True)
class State:
    """The last successful run of a notebook in one mode.

    `inputs` and `outputs` map paths (relative to the root and to the mode's place) to SHA-256;
    `source` and `results` are hashes of the notebook's cells and of their outputs.
    """

    source: str
    parameters: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    results: str
    seconds: float


def state_file(mode: Mode, notebook: str) -> Path:
    """build/state/<mode>/<notebook>.json"""
    return mode.root / "build" / "state" / mode.name / Path(notebook).with_suffix(".json")


def load_state(mode: Mode, notebook: str) -> State | None:
    """The last run's state; None if there was none, or if it cannot be read (then it runs)."""
    try:
        return State(**json.loads(state_file(mode, notebook).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def save_state(mode: Mode, notebook: str, state: State) -> None:
    """Remember a successful run."""
    text = json.dumps(asdict(state), indent=1, sort_keys=True) + "\n"
    write_atomically(state_file(mode, notebook), text)


def why_stale(mode: Mode, notebook: str, parameters: dict[str, Any]) -> str | None:
    """Why a notebook must run, in a few words; None when its results are up to date."""
    state = load_state(mode, notebook)
    if state is None:
        return "no earlier run is known"
    if state.source != source_hash(read_cells(mode.root / notebook)):
        return "its cells changed"
    if state.parameters != parameters_text(parameters):
        return "its parameters changed"
    for path, sha in state.inputs.items():
        if input_hash(mode.root, path) != sha:
            return f"{path} changed"
    for path, sha in state.outputs.items():
        if file_hash(mode.place / path) != sha:
            return f"{path} was changed or removed"
    try:
        results = results_hash(read_cells(mode.result(notebook)))
    except OSError:
        results = ""
    return None if results == state.results else "its outputs were changed or removed"


# --- hashes ---------------------------------------------------------------------------------------


def file_hash(path: Path) -> str:
    """SHA-256 of a file; an empty string if there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def input_hash(root: Path, path: str) -> str:
    """SHA-256 of an input: a file, or, if its name ends in a slash, all files of a folder."""
    if not path.endswith("/"):
        return file_hash(root / path)
    files = sorted(file for file in (root / path).rglob("*") if file.is_file())
    return _digest([(file.relative_to(root).as_posix(), file_hash(file)) for file in files])


def read_cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells of a notebook file, without those that papermill injected.

    Raises ValueError naming the file when it is not a notebook of format 4.
    """
    try:
        cells: list[dict[str, Any]] = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{notebook} is not a Jupyter notebook of format 4 ({type(error).__name__}: {error}): "
            "restore it with git, or save it again from JupyterLab."
        ) from error
    return [cell for cell in cells if INJECTED not in _tags(cell)]


def source_hash(cells: Iterable[dict[str, Any]]) -> str:
    """SHA-256 of what a notebook says: types, sources and tags of its cells, not their outputs."""
    return _digest(
        [(cell["cell_type"], _text(cell["source"]), sorted(_tags(cell))) for cell in cells]
    )


def results_hash(cells: Iterable[dict[str, Any]]) -> str:
    """SHA-256 of what a notebook shows: the outputs of its cells, not their execution counts."""
    return _digest([_text(cell["outputs"]) for cell in cells if cell["cell_type"] == "code"])


def parameters_text(parameters: dict[str, Any]) -> str:
    """Parameters as JSON, to tell whether they changed."""
    return json.dumps(parameters, sort_keys=True, default=str)


def stamps(root: Path) -> dict[str, Stamp]:
    """Stamps of the files that a notebook could read, taken before it runs: see `unedited_hash`."""
    files = (
        Path(place, name)
        for folder in FOLDERS
        for place, _, names in os.walk(root / folder)
        for name in names
    )
    return {file.relative_to(root).as_posix(): _stamp(file) for file in files}


def unedited_hash(root: Path, path: str, before: dict[str, Stamp]) -> str:
    """SHA-256 of an input if it has its stamp of `before`, or none; else a word that is no hash.

    So a notebook is stale when an input was edited while it ran.
    """
    if path in before and _stamp(root / path) != before[path]:
        return "edited"
    return file_hash(root / path)


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def is_input(path: Path) -> bool:
    """Whether a path relative to the root is a file whose content a notebook depends on."""
    parts = path.parts
    if parts[0] not in FOLDERS or parts[:2] == ("data", "records") or path.suffix == ".pyc":
        return False
    return not any(part.startswith(".") or part.endswith(".egg-info") for part in parts)


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _text(value: Any) -> Any:
    """A part of a notebook with lists of lines joined and what every run changes left out."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    if isinstance(value, list):
        return [_text(item) for item in value]
    if isinstance(value, dict):
        return {key: _text(item) for key, item in value.items() if key != "execution_count"}
    return value


def _tags(cell: dict[str, Any]) -> list[str]:
    tags: list[str] = cell.get("metadata", {}).get("tags", [])
    return tags
