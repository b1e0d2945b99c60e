"""Save figures and tables with what is needed to trace them and to draw them again.

NAME.json beside them says where they come from: notebook, parameters, models, input files and their
SHA-256, the SHA-256 of each file written, the git commit with its dirty flag, and package versions.

Files depend on their content alone: they hold no dates and no versions. The committed NAME.json
stays as it is if the new one differs only in commit, dirty flag and versions: these describe the
run that first made exactly these files from these inputs, unless that run's code was not committed.
"""

import io
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from factrobust import paths
from factrobust.paths import write_atomically

PACKAGES = ("factrobust", "numpy", "pandas", "matplotlib", "torch", "transformers")
MODELS = "data/models.csv"  # always read; of each model that was asked, its fingerprint is told
OF_THE_RUN = ("git", "versions")  # what may differ between runs that made the same files
# A run rewrites these, and notebooks. Of the notebook that is running, the code is compared.
WRITTEN_BY_RUNS = (":(exclude)figures", ":(exclude)data/records")


@dataclass(frozen=True)
class Provenance:
    """Where what is saved comes from: a notebook's `parameters` (TypeError for one that JSON cannot
    hold), the `models` that were asked, or their names, and the place in `paths.files_read` from
    which on data files are inputs (0: all that this process read)."""

    parameters: Mapping[str, Any]
    models: Sequence[Any] = ()
    since: int = 0


# The PNGs of figures that have not changed since.
_drawn: WeakKeyDictionary[Figure, bytes] = WeakKeyDictionary()


def png(fig: Figure) -> bytes:
    """The PNG of a figure, 200 dots an inch, without a date. It is drawn anew only if the figure
    has changed since."""
    if fig.stale or fig not in _drawn:
        drawn = io.BytesIO()
        fig.savefig(
            drawn,
            format="png",
            dpi=200,
            metadata={"Software": None},
        )
        fig.stale = False
        _drawn[fig] = drawn.getvalue()
    return _drawn[fig]


def save_figure(
    fig: Figure,
    name: str,
    data: pd.DataFrame,
    *,
    provenance: Provenance,
) -> None:
    """Write a figure as NAME.pdf and NAME.png (200 dpi), and its data, a row a point, as NAME.csv.
    `name` is like "1-decoding/figure-01"."""
    from matplotlib import rc_context

    pdf = io.BytesIO()
    unversioned = {"Creator": None, "Producer": None, "CreationDate": None}
    # One layout for all formats. With a layout engine, each format would be laid out and drawn
    # again.
    with rc_context({"figure.constrained_layout.use": False}):
        layout = fig.get_layout_engine()
        if layout:
            layout.execute(fig)
            fig.set_layout_engine(None)
        fig.savefig(pdf, format="pdf", metadata=unversioned)
        picture = png(fig)
    files = {"pdf": pdf.getvalue(), "png": picture, "csv": _csv(data)}
    _save(name, files, provenance)


def save_table(
    df: pd.DataFrame,
    name: str,
    *,
    decimals: int = 3,
    provenance: Provenance,
) -> pd.DataFrame:
    """Write a table as NAME.csv (6 digits), NAME.md and NAME.tex (`decimals` places); return it. A
    named index becomes columns; an unnamed one is left out. Missing values are empty."""
    frame = _flat(df)
    # 1. Cells as texts: tabulate must not format numbers again.
    texts = frame.astype(object).map(lambda cell: _written(cell, decimals))
    texts = texts.mask(frame.isna(), "").rename(columns=str)
    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    # 2. Markdown and LaTeX.
    cells = texts.rename(columns=_one_cell).map(_one_cell)
    sides = None
    if len(cells):
        sides = ["right" if right else "left" for right in numeric]
    markdown = cells.to_markdown(
        index=False,
        disable_numparse=True,
        colalign=sides,
    )
    aligned = "".join("r" if right else "l" for right in numeric)
    latex = texts.to_latex(
        index=False,
        escape=True,
        column_format=aligned,
    )
    files = {
        "csv": _csv(df),
        "md": f"{markdown}\n".encode(),
        "tex": latex.encode(),
    }
    _save(name, files, provenance)
    return df


def _written(cell: Any, decimals: int) -> str:
    return f"{cell:.{decimals}f}" if isinstance(cell, float) else str(cell)


def _flat(df: pd.DataFrame) -> pd.DataFrame:
    return df.reset_index() if any(df.index.names) else df


def _csv(df: pd.DataFrame) -> bytes:
    text: str = _flat(df).to_csv(
        index=False,
        float_format="%.6g",
        lineterminator="\n",
    )
    return text.encode()


def _one_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _save(name: str, files: Mapping[str, bytes], provenance: Provenance) -> None:
    target = paths.output_root() / "figures" / name
    notebook = _notebook()
    # 1. Where the files come from.
    inputs = {}
    for path, digest in [*paths.files_of_modules, *paths.files_read[provenance.since :]]:
        inputs[_label(path)] = digest
    inputs.pop(MODELS, None)
    digests = {}
    for ending, content in files.items():
        digests[f"{target.name}.{ending}"] = sha256(content).hexdigest()
    about = {
        "name": name,
        "notebook": notebook,
        "parameters": provenance.parameters,
        "models": list(map(_model, provenance.models)),
        "inputs": inputs,
        "files": digests,
    }
    # 2. The committed account stays if it says the same.
    text = _committed(name, _json(about))
    if text is None:
        versions = {package: _version(package) for package in PACKAGES}
        versions["python"] = platform.python_version()
        text = _json({**about, "git": _git(notebook), "versions": versions})
    # 3. Write.
    target.parent.mkdir(parents=True, exist_ok=True)
    for ending, content in {**files, "json": text.encode()}.items():
        write_atomically(target.with_name(f"{target.name}.{ending}"), content)


def _notebook() -> str | None:
    """The notebook that runs: the runner names it by its path in the repository, Jupyter's server
    by its whole path."""
    for variable in ("FACTROBUST_NOTEBOOK", "JPY_SESSION_NAME"):
        path = os.environ.get(variable, "")
        if path.endswith(".ipynb"):
            return _label(path)
    return None


def _committed(name: str, now: str) -> str | None:
    """The committed NAME.json, if it holds what `now` does, from a run of committed code; else
    None, as where there is none, or it is damaged."""
    try:
        text = (paths.ROOT / "figures" / f"{name}.json").read_text(encoding="utf-8")
        committed = json.loads(text)
        clean = committed["git"]["dirty"] is False
        same = {key: value for key, value in committed.items() if key not in OF_THE_RUN}
    except (OSError, ValueError, KeyError):
        return None
    return text if clean and same == json.loads(now) else None


def _model(model: Any) -> str:
    """ "gemma-3-270m sha256:00ff float32, of 4-bit (Q4_K_M) weights"; a name as it is."""
    if isinstance(model, str):
        return model
    form = getattr(model, "stored_as", "")
    return f"{model.name} {model.fingerprint}" + (f", of {form} weights" if form else "")


def _json(about: Mapping[str, Any]) -> str:
    return (
        json.dumps(
            about,
            indent=2,
            sort_keys=True,
            ensure_ascii=False,
            default=_plain,
        )
        + "\n"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"Provenance cannot record {value!r}: give numbers, strings, lists or dicts.")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"  # of a model's packages, in the environment of `make read`


def _label(path: str | Path) -> str:
    """The path of a file inside the repository; of others only the name, which tells of no
    machine."""
    path = paths.ROOT / path
    inside = path.is_relative_to(paths.ROOT)
    return path.relative_to(paths.ROOT).as_posix() if inside else path.name


def commit() -> str:
    """The commit of the code that runs now, "+" behind it if something differs from that; "unknown"
    outside a repository."""
    found = _git(None)
    if found["commit"] is None:
        return "unknown"
    return found["commit"][:12] + ("+" if found["dirty"] else "")


def _git(notebook: str | None) -> dict[str, Any]:
    """The commit, and whether code or data differ from it; both None outside a repository."""
    try:
        commit = _ask_git("rev-parse", "HEAD").strip()
        changed = _ask_git("status", "--porcelain", "--", ".", *WRITTEN_BY_RUNS).splitlines()
        dirty = any(not line.startswith(" M notebooks/") for line in changed)
        if f" M {notebook}" in changed:  # by its own run, or by hand
            now = (paths.ROOT / str(notebook)).read_text(encoding="utf-8")
            dirty |= _code(now) != _code(_ask_git("show", f"HEAD:{notebook}"))
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": dirty}


def _ask_git(*arguments: str) -> str:
    # --git-dir: the repository of this folder, and not one that contains it. No optional locks: a
    # status must not disturb what the user does with git.
    command = ["git", "--no-optional-locks", f"--git-dir={paths.ROOT / '.git'}", *arguments]
    found = subprocess.run(
        command,
        cwd=paths.ROOT,
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    return found.stdout


def _code(text: str) -> list[str]:
    cells = json.loads(text)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
