"""Profiles: parameter files that override the defaults of the notebooks.

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
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from factrobust import paths

LAPTOP = "laptop"
PARTS = ("description", "defaults", "notebooks")


class ProfileError(ValueError):
    """A profile, or a notebook's parameters, that cannot be used as they are."""


@dataclass(frozen=True)
class Profile:
    """Overrides of one profile: `defaults` for all notebooks, `notebooks` by glob."""

    name: str
    path: Path | None = None  # None: the laptop profile, which overrides nothing
    defaults: Mapping[str, Any] = field(default_factory=dict)
    notebooks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def load_profile(name: str) -> Profile:
    """The profile `name`: "laptop", or a file of that name in profiles/.

    Raises ProfileError for an unknown name (listing the known ones) or a malformed file.
    """
    if name == LAPTOP:
        return Profile(LAPTOP)
    known = [LAPTOP, *sorted(path.stem for path in paths.PROFILES.glob("*.yaml"))]
    if name not in known:
        raise ProfileError(
            f"There is no profile {name!r}{_nearest(name, known)}: known are {', '.join(known)}; "
            f"a new one is a file {name}.yaml in {paths.PROFILES}."
        )
    path = paths.PROFILES / f"{name}.yaml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        raise ProfileError(f"{path} is not YAML: {said}; correct that line.") from error
    _require_mapping(path, "the file", content)
    for key in content:
        if key not in PARTS:
            raise ProfileError(
                f"{path} has an unknown part {key!r}{_nearest(key, PARTS)}: parts are "
                f"{', '.join(PARTS)}."
            )
    defaults, notebooks = content.get("defaults") or {}, content.get("notebooks") or {}
    _require_mapping(path, "defaults", defaults)
    _require_mapping(path, "notebooks", notebooks)
    for glob, parameters in notebooks.items():
        _require_mapping(path, f"notebooks / {glob}", parameters)
    return Profile(name, path, defaults, notebooks)


def declared_parameters(notebook: Path) -> dict[str, Any]:
    """The parameters of a notebook with their defaults: the literals assigned in the cell tagged
    "parameters", in order; empty without such a cell. Raises ProfileError for anything else there.
    """
    cells = [
        "".join(cell["source"])
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        if "parameters" in cell["metadata"].get("tags", [])
    ]
    if len(cells) > 1:
        raise ProfileError(f"{notebook} has {len(cells)} cells tagged 'parameters': keep one.")
    try:
        statements = ast.parse(cells[0] if cells else "").body
    except SyntaxError as error:
        raise ProfileError(
            f"{notebook}: the cell tagged 'parameters' is not plain Python, line {error.lineno}: "
            "leave only assignments of literals there."
        ) from error
    declared = {}
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case ast.Expr(value=ast.Constant()):
                continue  # a string used as a comment
            case _:
                raise ProfileError(
                    f"{notebook}: `{ast.unparse(statement)}` in the cell tagged 'parameters' "
                    "assigns no parameter: move it to another cell."
                )
        try:
            declared[name] = ast.literal_eval(value)
        except ValueError as error:
            raise ProfileError(
                f"{notebook}: parameter {name!r} is `{ast.unparse(value)}`: give a literal (number, "
                "string, list ...), so that a profile can override it."
            ) from error
    return declared


def parameters_for(profile: Profile, notebook: Path, declared: Mapping[str, Any]) -> dict[str, Any]:
    """What the profile sets in a notebook that declares `declared` (parameter -> default).

    Globs are matched with the path inside notebooks/. A value must be of its default's type (an
    integer may stand for a float; a default of None takes anything), else ProfileError. A parameter
    that the notebook does not declare is left out: `resolve` tells whether any notebook does.
    """
    label = _label(notebook)
    chosen: dict[str, Any] = {}
    sections = [("defaults", profile.defaults)]
    sections += [(glob, own) for glob, own in profile.notebooks.items() if fnmatchcase(label, glob)]
    for section, overrides in sections:
        for key, value in overrides.items():
            if key not in declared:
                continue
            if not _fits(value, declared[key]):
                raise ProfileError(
                    f"{profile.path}, {section}: {key!r} is {value!r}, but {label} needs a value "
                    f"like its default {declared[key]!r}."
                )
            chosen[key] = float(value) if isinstance(declared[key], float) else value
    return chosen


def resolve(profile: Profile, notebooks: Iterable[Path]) -> dict[Path, dict[str, Any]]:
    """What the profile sets in each notebook; give all notebooks, for nothing may go unused.

    Raises ProfileError for a parameter that no notebook declares, a glob that fits none, and as
    `parameters_for` does.
    """
    declared = {notebook: declared_parameters(notebook) for notebook in notebooks}
    for section, overrides in [("defaults", profile.defaults), *profile.notebooks.items()]:
        glob = "*" if section == "defaults" else section
        fitting = [own for path, own in declared.items() if fnmatchcase(_label(path), glob)]
        if section != "defaults" and not fitting:
            labels = [_label(path) for path in declared]
            raise ProfileError(
                f"{profile.path}: no notebook fits {section!r}{_nearest(section, labels)}; paths "
                "are those inside notebooks/, * stands for anything."
            )
        known = {key for own in fitting for key in own}
        for key in overrides:
            if key not in known:
                raise ProfileError(
                    f"{profile.path}, {section}: no notebook there declares a parameter "
                    f"{key!r}{_nearest(key, known)}; correct the name, or remove the line."
                )
    return {path: parameters_for(profile, path, own) for path, own in declared.items()}


def _fits(value: Any, default: Any) -> bool:
    if default is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, (int, float))
    if isinstance(default, (list, tuple)):
        # The first default stands for the others: parameters are lists of one kind.
        return isinstance(value, list) and all(_fits(v, d) for v in value for d in default[:1])
    return isinstance(value, type(default))


def _label(notebook: Path) -> str:
    """Path inside notebooks/, or as given when it lies elsewhere."""
    folder = paths.ROOT / "notebooks"
    path = paths.ROOT / notebook
    return (path.relative_to(folder) if path.is_relative_to(folder) else notebook).as_posix()


def _nearest(word: object, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(word), sorted(known), n=1)
    return f" (nearest: {near[0]})" if near else ""


def _require_mapping(path: Path, what: str, value: Any) -> None:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ProfileError(f"{path}: {what} must map names to values, like `name: value` lines.")
