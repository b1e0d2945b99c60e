"""One notebook: the surroundings of its kernel, its execution, its canonical form.

python -m factrobust.reproduce.notebook NOTEBOOK...          rewrites what is not canonical
python -m factrobust.reproduce.notebook --check NOTEBOOK...  only says so, with exit status 1
"""

import argparse
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from factrobust.paths import write_atomically
from factrobust.reproduce.profiles import LAPTOP, Mode

USED = "used"  # the file of the calls that a notebook made, in the folder of its run
WHOSE = "whose-findings"  # the id of the cell that `say_whose_findings` writes
INJECTED = "injected-parameters"  # papermill's tag on the cell with the parameters of one run
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
CELL_METADATA = {"tags", "jupyter", "editable", "slideshow"}
NOISE = [
    (re.compile(r"\bT_[0-9a-f]{5}(?![0-9a-f])"), "T_00000"),  # pandas Styler: a table's random id
    (re.compile(r"\b0x[0-9a-f]{6,16}\b"), "0x0"),  # addresses of objects
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"), "uuid"),
]
IPYTHON = """\
c = get_config()
c.IPKernelApp.log_level = 50  # ipykernel warns at every start that it listens on plain TCP
c.HistoryManager.enabled = False
c.InteractiveShell.colors = "nocolor"
"""


def kernel_environment(mode: Mode, notebook: str, out: Path) -> dict[str, str]:
    """Environment of a kernel: the same under `make reproduce`, nbval and on any machine.

    The library reads FACTROBUST_OUT (absolute folder that stands in for the root when figures and
    tables are saved), FACTROBUST_RECORDS (`Mode.records`), FACTROBUST_USED (a file for the keys of
    the calls that the notebook makes, or empty), FACTROBUST_NOTEBOOK (path relative to the root)
    and FACTROBUST_CLUSTER (a scheduler's address, or empty)."""
    settings = mode.root / "build" / "ipython" / "profile_default" / "ipython_kernel_config.py"
    settings.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(settings, IPYTHON.encode())
    path = [str(mode.root / "lib"), os.environ.get("PYTHONPATH")]
    # Another profile makes other calls, which are not exported; a replay cannot make new ones.
    noting = mode.profile == LAPTOP and mode.records != "replay"
    return os.environ | {
        "FACTROBUST_NOTEBOOK": notebook,
        "FACTROBUST_OUT": str(out.resolve()),
        "FACTROBUST_RECORDS": mode.records,
        "FACTROBUST_USED": str(out.resolve() / USED) if noting else "",
        "FACTROBUST_CLUSTER": mode.cluster or "",
        "IPYTHONDIR": str(settings.parents[1]),  # no user's settings reach a notebook
        "JUPYTER_PREFER_ENV_PATH": "1",  # not a "python3" kernel that a user installed for himself
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OPENBLAS_NUM_THREADS": "1",  # NumPy's matrices are small here: threads cost more
        "PYTHONDONTWRITEBYTECODE": "",  # to compile what is imported takes a third of a replay
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "THP_MEM_ALLOC_ENABLE": "1",  # large pages: torch's new tensors of logits cost half (Linux)
        "TQDM_DISABLE": "1",  # bars of other libraries: their widgets differ from run to run
    }


def normalise(notebook: NotebookNode, *, keep_injected: bool = False) -> NotebookNode:
    """Bring a notebook into its canonical form, in place, and return it: without most metadata,
    without the cell of injected parameters (unless `keep_injected`), with execution counts that
    rise from 1."""
    notebook.metadata = NotebookNode(kernelspec=dict(KERNEL), language_info={"name": "python"})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    if not keep_injected:
        notebook.cells = [c for c in notebook.cells if INJECTED not in c.metadata.get("tags", [])]
    count = 0
    for number, cell in enumerate(notebook.cells):
        cell.setdefault("id", f"cell-{number}")
        kept = {k: v for k, v in cell.metadata.items() if k in CELL_METADATA and v}
        cell.metadata = NotebookNode(kept)
        if cell.cell_type == "code":
            count += cell.execution_count is not None
            cell.execution_count = count if cell.execution_count is not None else None
            cell.outputs = clean_outputs(cell.outputs)
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = cell.execution_count
    return notebook


def say_whose_findings(
    notebook: NotebookNode,
    profile: str,
    given: Mapping[str, Any],
    usual: Mapping[str, Any],
) -> None:
    """Put a first cell before a notebook that a profile ran, in place: its sentences were written
    about the committed run, with its `usual` parameters, and its tables and figures are of those
    `given`."""
    changed = {name: value for name, value in given.items() if value != usual.get(name)}
    if not changed:
        return
    lines = [f"| {name} | {_told(usual.get(name))} | {_told(changed[name])} |" for name in changed]
    text = (
        f"> **Whose findings these are.** The profile `{profile}` made this run. Its tables, "
        "figures and printed lines are of what stands at the right here. The sentences between "
        "them, and every number in a sentence, are of the committed run, at the left: read them "
        "as what was found there.\n\n| | the sentences | tables and figures |\n"
        "| --- | --- | --- |\n" + "\n".join(lines)
    )
    cell = nbformat.v4.new_markdown_cell(text, id=WHOSE)
    notebook.cells = [cell, *(cell for cell in notebook.cells if cell.get("id") != WHOSE)]


def _told(value: Any) -> str:
    """A parameter in a cell of a table: the models of a list by their names."""
    values = value if isinstance(value, list) else [value]
    names = [one["model"] if isinstance(one, dict) and "model" in one else one for one in values]
    return ", ".join(str(name) for name in names).replace("|", "\\|") or "none"


def clean_outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """A cell's outputs without what differs between two equal runs: stderr, metadata but a
    picture's size, random ids and addresses, all of a traceback but the error itself. Chunks of one
    stream are merged."""
    cleaned: list[NotebookNode] = []
    for output in outputs:
        output = NotebookNode(output)
        if output.output_type == "stream":
            if output.name == "stderr":
                continue
            output.text = _clean(output.text)
            if cleaned and cleaned[-1].output_type == "stream":
                cleaned[-1].text += output.text
                continue
        elif output.output_type == "error":
            # The frames name line numbers and folders of one machine.
            output.traceback = [f"{output.ename}: {output.evalue}"]
        else:
            texts = {k: _clean(v) for k, v in output.data.items() if k.startswith("text/")}
            output.data = NotebookNode(output.data | texts)
            size = {k: v for k, v in output.get("metadata", {}).items() if k == "image/png"}
            output.metadata = NotebookNode(size)  # a picture is shown at half of its pixels
        cleaned.append(output)
    return cleaned


def _clean(text: str) -> str:
    for pattern, replacement in NOISE:
        text = pattern.sub(replacement, text)
    return text


def to_text(notebook: NotebookNode) -> str:
    return str(nbformat.writes(notebook)).rstrip("\n") + "\n"


def read_canonical(path: Path) -> str:
    """The canonical form of a notebook file; ValueError naming the file if it is no notebook."""
    try:
        # nbformat.read would give cells without an id random ones.
        return to_text(normalise(nbformat.reader.reads(path.read_text(encoding="utf-8"))))
    except (ValueError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{path} is not a Jupyter notebook of format 4 ({type(error).__name__}: {error}): "
            "restore it with git, or save it again from JupyterLab."
        ) from error


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Bring notebooks into their canonical form.")
    parser.add_argument("--check", action="store_true", help="change nothing, exit with 1 instead")
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    texts = {path: read_canonical(path) for path in options.notebooks}
    different = [path for path, text in texts.items() if path.read_text("utf-8") != text]
    verdict = "is not canonical: run `make normalise`" if options.check else "rewritten"
    for path in different:
        if not options.check:
            write_atomically(path, texts[path].encode())
        print(f"{path} {verdict}.")
    return int(options.check and bool(different))


if __name__ == "__main__":
    sys.exit(main())
