"""The canonical form of a notebook: a rerun with the same results gives the same file.

python -m factrobust.reproduce.normalise NOTEBOOK...          rewrites what is not canonical
python -m factrobust.reproduce.normalise --check NOTEBOOK...  only says so, with exit status 1
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from factrobust.reproduce.mode import write_atomically
from factrobust.reproduce.state import INJECTED

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
CELL_METADATA = {"tags", "jupyter", "editable", "slideshow"}
WIDGET = "application/vnd.jupyter.widget-view+json"
NOISE = [
    (re.compile(r"\bT_[0-9a-f]{5}(?![0-9a-f])"), "T_00000"),  # pandas Styler: a table's random id
    (re.compile(r"\b0x[0-9a-f]{6,16}\b"), "0x0"),  # addresses of objects
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"), "uuid"),
]


def normalise(notebook: NotebookNode, *, keep_injected: bool = False) -> NotebookNode:
    """Bring a notebook into its canonical form, in place, and return it.

    Only the metadata that a reader needs stays; outputs lose what differs from run to run (see
    `clean_outputs`); execution counts rise from 1. The cell with injected parameters goes, unless
    `keep_injected`. Cell ids stay; a cell without one gets an id derived from its source.
    """
    notebook.metadata = NotebookNode(kernelspec=dict(KERNEL), language_info={"name": "python"})
    notebook.cells = [
        cell for cell in notebook.cells if keep_injected or INJECTED not in _tags(cell)
    ]
    used: set[str] = set()
    count = 0
    for cell in notebook.cells:
        cell["id"] = INJECTED if INJECTED in _tags(cell) else _cell_id(cell, used)
        used.add(cell["id"])
        cell.metadata = NotebookNode(
            {key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)}
        )
        if cell.cell_type != "code":
            continue
        ran = cell.execution_count is not None
        count += ran
        cell.execution_count = count if ran else None
        cell.outputs = clean_outputs(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = cell.execution_count
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def clean_outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """A cell's outputs without what differs between two equal runs.

    Dropped: stderr (progress bars, warnings), widgets, output metadata, and all of a traceback but
    the error itself. Rewritten: random ids and addresses. Chunks of one stream are merged.
    """
    cleaned: list[NotebookNode] = []
    for output in outputs:
        output = NotebookNode(output)
        if output.output_type == "stream":
            if output.name == "stderr":
                continue
            output.text = _clean_text(output.text)
            if cleaned and cleaned[-1].output_type == "stream":
                cleaned[-1].text += output.text
                continue
        elif output.output_type == "error":
            # The frames name line numbers and folders of one machine.
            output.traceback = [f"{output.ename}: {output.evalue}"]
        else:
            if WIDGET in output.data:
                continue
            output.data = NotebookNode({key: _clean(key, output.data[key]) for key in output.data})
            output.metadata = NotebookNode()
        cleaned.append(output)
    return cleaned


def to_text(notebook: NotebookNode) -> str:
    """A notebook as the text of its file, which ends in one newline."""
    return str(nbformat.writes(notebook)).rstrip("\n") + "\n"


def canonical(text: str) -> str:
    """The canonical form of the text of a notebook file."""
    # nbformat.reads would give cells without an id random ones.
    return to_text(normalise(nbformat.reader.reads(text)))


def _cell_id(cell: NotebookNode, used: set[str]) -> str:
    if (known := cell.get("id")) and known not in used:
        return str(known)
    for repeat in range(len(used) + 1):
        found = hashlib.sha256(f"{repeat}{cell.cell_type}{cell.source}".encode()).hexdigest()[:8]
        if found not in used:
            break
    return found


def _tags(cell: NotebookNode) -> list[str]:
    tags: list[str] = cell.metadata.get("tags", [])
    return tags


def _clean(mime: str, value: Any) -> Any:
    return _clean_text(value) if isinstance(value, str) and mime.startswith("text/") else value


def _clean_text(text: str) -> str:
    for pattern, replacement in NOISE:
        text = pattern.sub(replacement, text)
    return text


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Bring notebooks into their canonical form.")
    parser.add_argument("--check", action="store_true", help="change nothing, exit with 1 instead")
    parser.add_argument("notebooks", nargs="*", type=Path)
    given = parser.parse_args(arguments)
    different = 0
    for path in given.notebooks:
        old = path.read_text(encoding="utf-8")
        try:
            new = canonical(old)
        except (ValueError, KeyError, AttributeError) as error:
            print(f"{path} is not a notebook of format 4: {error}", file=sys.stderr)
            return 1
        if old == new:
            continue
        different += 1
        if given.check:
            print(f"{path} is not canonical: run `make normalise`.", file=sys.stderr)
        else:
            write_atomically(path, new)
            print(f"{path} rewritten")
    return int(given.check and different > 0)


if __name__ == "__main__":
    sys.exit(main())
