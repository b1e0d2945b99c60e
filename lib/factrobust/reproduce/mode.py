"""What is run and where its results go: a profile, its parameters, and the notebooks in order."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

LAPTOP = "laptop"
LOCAL = "local"  # the cluster that a run starts on its own machine
FIRST = "notebooks/0-start-here.ipynb"


@dataclass(frozen=True)
class Mode:
    """One way of running the notebooks of the repository at `root`.

    The laptop profile runs with the notebooks' own parameters and replaces the committed notebooks,
    figures and tables; every other profile writes to build/<profile>/. `replay` serves the model
    calls from the committed records instead of computing them; otherwise a scheduler's address as
    `cluster` has its workers compute them.
    """

    root: Path
    profile: str = LAPTOP
    replay: bool = False
    cluster: str | None = None

    @property
    def name(self) -> str:
        """Names the folder of this mode's state: what one mode did says nothing about another."""
        return f"{self.profile}-replay" if self.replay else self.profile

    @property
    def place(self) -> Path:
        """Folder that receives notebooks/ and figures/ of a successful run."""
        return self.root if self.profile == LAPTOP else self.root / "build" / self.profile

    @property
    def records(self) -> str:
        """Value of FACTROBUST_RECORDS for the kernels: see factrobust.records.open_records."""
        return "replay" if self.replay else "fresh"

    def result(self, notebook: str) -> Path:
        """Where the executed form of a notebook (path relative to the root) goes."""
        return self.place / notebook


def find_notebooks(root: Path, only: str | None = None) -> list[str]:
    """Paths, relative to the root, of the notebooks in the order in which they run.

    `only` is a glob such as "notebooks/1-*" or "*frs*", matched with the whole path.
    """
    found = [
        path.relative_to(root).as_posix()
        for path in (root / "notebooks").glob("**/*.ipynb")
        if not any(part.startswith(".") for part in path.relative_to(root).parts)
    ]
    ordered = sorted(found, key=lambda notebook: (notebook != FIRST, notebook))
    return [notebook for notebook in ordered if only is None or fnmatch(notebook, only)]


def parameters(mode: Mode) -> dict[str, dict[str, Any]]:
    """What the mode's profile sets in each notebook: nothing in the laptop profile.

    Raises ProfileError (a ValueError) for a profile that is unknown or does not fit the notebooks.
    """
    notebooks = find_notebooks(mode.root)
    if mode.profile == LAPTOP:
        return {notebook: {} for notebook in notebooks}
    from factrobust.profiles import load_profile, resolve  # reads YAML: only when needed

    found = resolve(load_profile(mode.profile), [mode.root / notebook for notebook in notebooks])
    return {path.relative_to(mode.root).as_posix(): values for path, values in found.items()}


def write_atomically(path: Path, text: str) -> None:
    """Write a text file so that no reader and no kill ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
