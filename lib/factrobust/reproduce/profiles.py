"""What is run, with which parameters, and where its results go.

A notebook's defaults are the laptop profile. Every other profile is a file profiles/NAME.yaml:

    description: one line
    defaults:                     # for every notebook that declares the parameter
      n_boot: 50
    notebooks:                    # by glob over the paths inside notebooks/; the last match wins
      1-decoding/1.2-*:
        n_samples: 4

A notebook declares its parameters, literals, in the one cell tagged "parameters"; papermill reads
them, which knows annotations like `int` and `list[str]`, and none with a |.
"""

import ast
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from papermill import inspect_notebook
from pydantic import BaseModel

LAPTOP = "laptop"
NOT_RUN = ("course", "playground.ipynb")  # exercises and widgets


class ProfileError(ValueError):
    """A profile, or a notebook's parameters, that cannot be used as they are."""


class _Profile(BaseModel, extra="forbid"):
    description: str = ""
    defaults: dict[str, Any] = {}
    notebooks: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class Mode:
    """One way of running the notebooks of the repository at `root`.

    The laptop profile runs with the notebooks' own parameters and replaces the committed notebooks,
    figures and tables; every other profile writes to build/<profile>/.

    `records` says where answers come from, as `models.records.open_records` reads it: "committed"
    (a missing one is asked of the model), "fresh" (all are asked again), "replay" (none may be
    missing)."""

    root: Path
    profile: str = LAPTOP
    records: str = "committed"
    cluster: str | None = None  # the address of a scheduler whose workers compute

    @property
    def place(self) -> Path:
        """Folder that receives notebooks/ and figures/ of a successful run."""
        return self.root if self.profile == LAPTOP else self.root / "build" / self.profile


def find_notebooks(root: Path, only: str = "*") -> list[str]:
    """Paths, relative to the root, of the notebooks in the order in which they run.

    `only` is a section ("1.2"), a folder ("1-decoding"), a part ("1"), a notebook's name or a glob
    over whole paths ("notebooks/1-*"). ProfileError if it names none. Those of NOT_RUN wait for a
    reader."""
    names = []
    for file in (root / "notebooks").glob("**/*.ipynb"):
        path = file.relative_to(root)
        hidden = any(part.startswith(".") or part in NOT_RUN for part in path.parts)
        if not hidden:
            names.append(path.as_posix())
    names.sort()
    patterns = [
        only,
        f"{only}*.ipynb",
        f"*/{only}-*",
        f"*/{only}/*",
        f"*/{only}.ipynb",
        f"*/{only}",
    ]
    found = [name for name in names if any(fnmatchcase(name, glob) for glob in patterns)]
    if names and not found:
        known = [name.removeprefix("notebooks/").removesuffix(".ipynb") for name in names]
        raise ProfileError(f"No notebook is called {only!r}: there are {', '.join(known)}.")
    return found


def parameters(root: Path, profile: str) -> dict[str, dict[str, Any]]:
    """What a profile sets in each notebook (path relative to the root); nothing for "laptop".

    Raises ProfileError for an unknown or malformed profile.
    """
    notebooks = find_notebooks(root)
    if profile == LAPTOP:
        return {notebook: {} for notebook in notebooks}
    place = root / "profiles" / f"{profile}.yaml"
    read = _read_profile(place)
    declared = {notebook: declared_parameters(root / notebook) for notebook in notebooks}
    chosen: dict[str, dict[str, Any]] = {notebook: {} for notebook in notebooks}
    for glob, overrides in [("*", read.defaults), *read.notebooks.items()]:
        fitting = [name for name in notebooks if fnmatchcase(name.removeprefix("notebooks/"), glob)]
        for key, value in overrides.items():
            declaring = [notebook for notebook in fitting if key in declared[notebook]]
            if not declaring:
                raise ProfileError(
                    f"{place}, {glob}: no notebook there declares a parameter {key!r}; correct the "
                    "name, or remove the line."
                )
            for notebook in declaring:
                chosen[notebook][key] = value
    return chosen


def declared_parameters(notebook: Path) -> dict[str, Any]:
    """The parameters of a notebook with their defaults; ProfileError for one that is no literal."""
    declared = inspect_notebook(str(notebook))
    try:
        return {name: ast.literal_eval(about["default"]) for name, about in declared.items()}
    except (SyntaxError, ValueError) as error:
        raise ProfileError(
            f"{notebook}: the cell tagged 'parameters' cannot be read ({error}): leave only "
            "assignments of literals there, such as `n: int = 5`, so that a profile can override "
            "them."
        ) from error


def _read_profile(path: Path) -> _Profile:
    known = sorted(path.parent.glob("*.yaml"))
    if path not in known:
        raise ProfileError(
            f"There is no profile {path.stem!r}: known are "
            f"{', '.join([LAPTOP, *(other.stem for other in known)])}; a new one is a file {path}."
        )
    try:
        return _Profile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ProfileError(f"{path} cannot be read ({reason}): correct that line.") from error
