"""Save figures and tables with what is needed to trace them and to draw them again.

NAME.json beside them says where they come from: notebook, parameters, models, input files and their
SHA-256, the SHA-256 of each file written, the git commit with its dirty flag, and package versions.

Files depend on their content alone: they hold no dates and no versions. The committed NAME.json stays
as it is if the new one differs only in commit, dirty flag and versions: these describe the run that
first made exactly these files from these inputs, unless that run's code was not committed.
"""

import io
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

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


def save_figure(fig: Figure, name: str, data: pd.DataFrame, **about: Any) -> None:
    """Write a figure as NAME.pdf and NAME.png (200 dpi), and its data, a row a point, as NAME.csv.
    `name` is like "1-decoding/figure-01"; `about` are `parameters` (TypeError for one that JSON
    cannot hold), `models`, or their names, and `since`, the place in `paths.files_read` from which on
    data files are inputs (0: all that this process read)."""
    from matplotlib import rc_context

    pdf, png = io.BytesIO(), io.BytesIO()
    unversioned = {"Creator": None, "Producer": None, "CreationDate": None}
    # One layout for all formats. With a layout engine, each format would be laid out and drawn again.
    with rc_context({"figure.constrained_layout.use": False}):
        if layout := fig.get_layout_engine():
            layout.execute(fig)
            fig.set_layout_engine(None)
        fig.savefig(pdf, format="pdf", metadata=unversioned)
        fig.savefig(png, format="png", dpi=200, metadata={"Software": None})
    vars(fig)["png"], fig.stale = png.getvalue(), False  # for plots.style.sharp
    files = {"pdf": pdf.getvalue(), "png": png.getvalue(), "csv": _csv(data)}
    _save(name, files, **about)


def save_table(df: pd.DataFrame, name: str, *, decimals: int = 3, **about: Any) -> pd.DataFrame:
    """Write a table as NAME.csv (6 digits), NAME.md and NAME.tex (`decimals` places); return it. A
    named index becomes columns; an unnamed one is left out. Missing values are empty."""
    frame = _flat(df)
    number = f"{{:.{decimals}f}}".format
    texts = frame.astype(object).map(lambda c: number(c) if isinstance(c, float) else str(c))
    shown = texts.mask(frame.isna(), "").rename(columns=str)
    right = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    # Numbers are formatted already: tabulate must not format them again.
    cells = shown.rename(columns=_one_cell).map(_one_cell)
    sides = ["right" if r else "left" for r in right] if len(shown) else None
    markdown = cells.to_markdown(index=False, disable_numparse=True, colalign=sides)
    aligned = "".join("r" if r else "l" for r in right)
    latex = shown.to_latex(index=False, escape=True, column_format=aligned)
    files = {"csv": _csv(df), "md": f"{markdown}\n".encode(), "tex": latex.encode()}
    _save(name, files, **about)
    return df


def _flat(df: pd.DataFrame) -> pd.DataFrame:
    return df.reset_index() if any(df.index.names) else df


def _csv(df: pd.DataFrame) -> bytes:
    text: str = _flat(df).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return text.encode()


def _one_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _save(
    name: str,
    files: Mapping[str, bytes],
    parameters: Mapping[str, Any],
    models: Sequence[Any] = (),
    since: int = 0,
) -> None:
    # The runner names the notebook by its path in the repository, Jupyter's server by its whole path.
    named = (os.environ.get(name, "") for name in ("FACTROBUST_NOTEBOOK", "JPY_SESSION_NAME"))
    notebook = next((_label(path) for path in named if path.endswith(".ipynb")), None)
    target = paths.output_root() / "figures" / name
    noted = [*paths.files_of_modules, *paths.files_read[since:]]
    read = {_label(path): digest for path, digest in noted}
    about = {
        "name": name,
        "notebook": notebook,
        "parameters": parameters,
        "models": [m if isinstance(m, str) else _model(m) for m in models],
        "inputs": {label: digest for label, digest in read.items() if label != MODELS},
        "files": {f"{target.name}.{end}": sha256(data).hexdigest() for end, data in files.items()},
    }
    text = _json(about)
    try:
        committed = (paths.ROOT / "figures" / f"{name}.json").read_text(encoding="utf-8")
        old = json.loads(committed)
        clean = old["git"]["dirty"] is False
        old = {k: v for k, v in old.items() if k not in OF_THE_RUN}
    except (OSError, ValueError, KeyError):  # none yet, or damaged: replace it
        old = None
    if old == json.loads(text) and clean:
        text = committed
    else:
        versions = {package: _version(package) for package in PACKAGES}
        versions["python"] = platform.python_version()
        text = _json(about | {"git": _git(notebook), "versions": versions})
    target.parent.mkdir(parents=True, exist_ok=True)
    for end, data in {**files, "json": text.encode()}.items():
        write_atomically(target.with_name(f"{target.name}.{end}"), data)


def _model(model: Any) -> str:
    """ "gemma-3-270m sha256:00ff float32, of 4-bit (Q4_K_M) weights"."""
    form = getattr(model, "stored_as", "")
    return f"{model.name} {model.fingerprint}" + (f", of {form} weights" if form else "")


def _json(about: Mapping[str, Any]) -> str:
    return json.dumps(about, indent=2, sort_keys=True, ensure_ascii=False, default=_plain) + "\n"


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
    """The path of a file inside the repository; of others only the name, which tells of no machine."""
    path = paths.ROOT / path
    inside = path.is_relative_to(paths.ROOT)
    return path.relative_to(paths.ROOT).as_posix() if inside else path.name


def commit() -> str:
    """The commit of the code that runs now, "+" behind it if something differs from that; "unknown" outside
    a repository."""
    found = _git(None)
    if found["commit"] is None:
        return "unknown"
    return found["commit"][:12] + ("+" if found["dirty"] else "")


def _git(notebook: str | None) -> dict[str, Any]:
    """The commit, and whether code or data differ from it; both None outside a repository."""
    # --git-dir: the repository of this folder, and not one that contains it. No optional locks: a
    # status must not disturb what the user does with git.
    command = ["git", "--no-optional-locks", f"--git-dir={paths.ROOT / '.git'}"]

    def git(*arguments: str) -> str:
        how: dict[str, Any] = {"capture_output": True, "check": True, "encoding": "utf-8"}
        return str(subprocess.run([*command, *arguments], cwd=paths.ROOT, **how).stdout)

    try:
        commit = git("rev-parse", "HEAD").strip()
        changed = git("status", "--porcelain", "--", ".", *WRITTEN_BY_RUNS).splitlines()
        dirty = any(not line.startswith(" M notebooks/") for line in changed)
        if f" M {notebook}" in changed:  # by its own run, or by hand
            now = (paths.ROOT / str(notebook)).read_text(encoding="utf-8")
            dirty |= _code(now) != _code(git("show", f"HEAD:{notebook}"))
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": dirty}


def _code(text: str) -> list[str]:
    cells = json.loads(text)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
