"""What is run, with which parameters, and where its results go.

A notebook's defaults are the laptop profile. Every other profile is a file profiles/NAME.yaml:

    description: one line
    defaults:                     # for every notebook that declares the parameter
      n_boot: 50
    notebooks:                    # by glob over the paths inside notebooks/; the last match wins
      1-decoding/1.2-*:
        n_samples: 4

A notebook declares its parameters as plain literals in the one cell tagged "parameters".
"""

from __future__ import annotations

import ast
import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

LAPTOP = "laptop"
FIRST = "notebooks/0-start-here.ipynb"
PARTS = ("description", "defaults", "notebooks")


class ProfileError(ValueError):
    """A profile, or a notebook's parameters, that cannot be used as they are."""


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

    @property
    def records(self) -> str:
        """Value of FACTROBUST_RECORDS for the kernels: see factrobust.records.open_records."""
        return "replay" if self.replay else "fresh"


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
    path, sections = _read_profile(root / "profiles", profile)
    declared = {notebook: declared_parameters(root / notebook) for notebook in notebooks}
    labels = {notebook.removeprefix("notebooks/"): notebook for notebook in notebooks}
    chosen: dict[str, dict[str, Any]] = {notebook: {} for notebook in notebooks}
    for section, glob, overrides in sections:
        fitting = [labels[label] for label in labels if fnmatchcase(label, glob)]
        if not fitting:
            raise ProfileError(
                f"{path}: no notebook fits {section!r}{_nearest(section, labels)}; paths are those "
                "inside notebooks/, * stands for anything."
            )
        known = {key for notebook in fitting for key in declared[notebook]}
        for key, value in overrides.items():
            if key not in known:
                raise ProfileError(
                    f"{path}, {section}: no notebook there declares a parameter "
                    f"{key!r}{_nearest(key, known)}; correct the name, or remove the line."
                )
            for notebook in (name for name in fitting if key in declared[name]):
                default = declared[notebook][key]
                if not _fits(value, default):
                    raise ProfileError(
                        f"{path}, {section}: {key!r} is {value!r}, but {notebook} needs a value "
                        f"like its default {default!r}."
                    )
                chosen[notebook][key] = float(value) if isinstance(default, float) else value
    return chosen


def declared_parameters(notebook: Path) -> dict[str, Any]:
    """The parameters of a notebook with their defaults: the literals assigned in the cell tagged
    "parameters", in order; empty without such a cell. Raises ProfileError for what is no literal.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    source = "\n".join(
        "".join(cell["source"])
        for cell in cells
        if "parameters" in cell["metadata"].get("tags", [])
    )
    declared = {}
    try:
        for statement in ast.parse(source).body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    declared[name] = ast.literal_eval(value)
    except (SyntaxError, ValueError) as error:
        raise ProfileError(
            f"{notebook}: the cell tagged 'parameters' cannot be read ({error}): leave only "
            "assignments of literals (number, string, list ...) there, so that a profile can "
            "override them."
        ) from error
    return declared


def _read_profile(folder: Path, name: str) -> tuple[Path, list[tuple[str, str, dict[str, Any]]]]:
    """A profile's file and its sections in the order of their force: name, glob, overrides."""
    known = [LAPTOP, *sorted(path.stem for path in folder.glob("*.yaml"))]
    if name not in known:
        raise ProfileError(
            f"There is no profile {name!r}{_nearest(name, known)}: known are {', '.join(known)}; "
            f"a new one is a file {name}.yaml in {folder}."
        )
    path = folder / f"{name}.yaml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        text = " ".join(str(error).split())
        raise ProfileError(f"{path} is not YAML: {text}; correct that line.") from error
    _require_mapping(path, "the file", content)
    for key in content:
        if key not in PARTS:
            raise ProfileError(
                f"{path} has an unknown part {key!r}{_nearest(key, PARTS)}: parts are "
                f"{', '.join(PARTS)}."
            )
    notebooks = content.get("notebooks") or {}
    _require_mapping(path, "notebooks", notebooks)
    sections = [("defaults", "*", content.get("defaults") or {})]
    sections += [(glob, glob, overrides) for glob, overrides in notebooks.items()]
    for section, _, overrides in sections:
        _require_mapping(path, section, overrides)
    return path, sections


def _fits(value: Any, default: Any) -> bool:
    if default is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, (int, float))
    if isinstance(default, (list, tuple)):
        # The first default stands for the others: parameters are lists of one kind. Among models, a
        # mapping is an endpoint.
        return isinstance(value, list) and all(
            isinstance(v, dict) or _fits(v, d) for v in value for d in default[:1]
        )
    return isinstance(value, type(default))


def _nearest(word: object, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(word), sorted(known), n=1)
    return f" (nearest: {near[0]})" if near else ""


def _require_mapping(path: Path, what: str, value: Any) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ProfileError(f"{path}: {what} must map names to values, like `name: value` lines.")
