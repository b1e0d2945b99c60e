"""What is run, with which parameters, and where its results go.

A notebook's defaults are the laptop profile. Every other profile is a file profiles/NAME.yaml:

    description: one line
    defaults:                     # for every notebook that declares the parameter
      n_boot: 50
    notebooks:                    # by glob over the paths inside notebooks/; the last match wins
      1-decoding/1.2-*:
        n_samples: 4

A notebook declares its parameters as annotated literals in the one cell tagged "parameters".
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

LAPTOP = "laptop"
FIRST = "notebooks/0-start-here.ipynb"


class ProfileError(ValueError):
    """A profile, or a notebook's parameters, that cannot be used as they are."""


class _Profile(BaseModel, extra="forbid"):
    """What a profile's file may hold."""

    description: str = ""
    defaults: dict[str, Any] = {}
    notebooks: dict[str, dict[str, Any]] = {}


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
        """Names the folders of this mode's work under build/."""
        return f"{self.profile}-replay" if self.replay else self.profile

    @property
    def place(self) -> Path:
        """Folder that receives notebooks/ and figures/ of a successful run."""
        return self.root if self.profile == LAPTOP else self.root / "build" / self.profile


def find_notebooks(root: Path, only: str = "*") -> list[str]:
    """Paths, relative to the root, of the notebooks in the order in which they run.

    `only` is a glob such as "notebooks/1-*" or "*frs*", matched with the whole path.
    """
    paths = [path.relative_to(root) for path in (root / "notebooks").glob("**/*.ipynb")]
    shown = [p.as_posix() for p in paths if not any(part.startswith(".") for part in p.parts)]
    ordered = sorted(shown, key=lambda notebook: (notebook != FIRST, notebook))
    return [notebook for notebook in ordered if fnmatchcase(notebook, only)]


def parameters(root: Path, profile: str) -> dict[str, dict[str, Any]]:
    """What a profile sets in each notebook (path relative to the root); nothing for "laptop".

    A value must be of its default's type (an integer may stand for a float; a default of None takes
    anything). Raises ProfileError for that, for an unknown or malformed profile, for a parameter
    that no notebook declares and a glob that fits none.
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
        if not fitting:
            raise ProfileError(f"{place}: no notebook's path inside notebooks/ fits {glob!r}.")
        for key, value in overrides.items():
            declaring = [notebook for notebook in fitting if key in declared[notebook]]
            if not declaring:
                raise ProfileError(
                    f"{place}, {glob}: no notebook there declares a parameter {key!r}; correct the "
                    "name, or remove the line."
                )
            for notebook in declaring:
                default = declared[notebook][key]
                try:
                    fitted = TypeAdapter(_kind(default)).validate_python(value, strict=True)
                except ValidationError as error:
                    raise ProfileError(
                        f"{place}, {glob}: {key!r} is {value!r}, but {notebook} needs a value like "
                        f"its default {default!r}."
                    ) from error
                chosen[notebook][key] = fitted
    return chosen


def _kind(default: Any) -> Any:
    """The type that a value must have in place of this default."""
    if default is None:
        return Any
    if isinstance(default, (list, tuple)):
        # Parameters are lists of one kind. Among models, a mapping is an endpoint.
        return list[type(default[0]) | dict] if default else list  # type: ignore[misc]
    return type(default)


def declared_parameters(notebook: Path) -> dict[str, Any]:
    """The parameters of a notebook with their defaults: the annotated literals (`n: int = 5`) in the
    cell tagged "parameters"; none without such a cell. Raises ProfileError for what is no literal."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    source = "\n".join(
        "".join(cell["source"])
        for cell in cells
        if "parameters" in cell["metadata"].get("tags", [])
    )
    try:
        return {
            ast.unparse(line.target): ast.literal_eval(line.value)
            for line in ast.parse(source).body
            if isinstance(line, ast.AnnAssign) and line.value
        }
    except (SyntaxError, ValueError) as error:
        raise ProfileError(
            f"{notebook}: the cell tagged 'parameters' cannot be read ({error}): leave only "
            "assignments of literals there, such as `n: int = 5`, so that a profile can override them."
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
