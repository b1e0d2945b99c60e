"""Run one notebook: everything that it makes is put in place at the end, or nothing is."""

from __future__ import annotations

import json
import logging
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from factrobust.records import Records, RecordsError
from factrobust.reproduce import state
from factrobust.reproduce.kernel import Kernel
from factrobust.reproduce.mode import LAPTOP, Mode, write_atomically
from factrobust.reproduce.normalise import normalise, to_text
from factrobust.reproduce.progress import Watcher

ANSI = re.compile(r"\x1b\[[0-9;]*m")
# The library's errors, by name: one sentence that says it all, where others need their traceback.
OURS = ("FactsError", "LacksError", "ModelError", "RecordsError")


class _SaveAtEnd(NBClientEngine):
    """papermill's engine, which writes the notebook when its cells have run or one has failed.

    It does so twice a cell otherwise, which takes longer than many a cell once there are figures.
    """

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> None:
        path, nb_man.output_path = nb_man.output_path, None
        try:
            super().execute_managed_notebook(nb_man, kernel_name, **options)
        finally:
            nb_man.output_path = path


papermill_engines.register("save at end", _SaveAtEnd)


class NotebookError(Exception):
    """A notebook did not run to its end; the text tells a reader where and why.

    `lacking`: because a model cannot do what this notebook needs, which says nothing of the others.
    """

    def __init__(self, text: str, *, lacking: bool = False) -> None:
        super().__init__(text)
        self.lacking = lacking


@dataclass(frozen=True)
class Outcome:
    """A successful run: its duration in seconds and the files that are not what they were."""

    seconds: float
    changed: list[str]


def run_notebook(mode: Mode, notebook: str, parameters: dict[str, Any], kernel: Kernel) -> Outcome:
    """Execute a notebook (path relative to the root) and put its results in place.

    `kernel` was started for it, and saves into its own folder under build/running/. When all cells
    have run, figures and tables are moved to the mode's place, the notebook is replaced by its
    canonical executed form, and its state is saved. Raises NotebookError when a cell fails, the
    kernel dies or the notebook was edited meanwhile: then nothing in place has changed, and the
    failed copy lies in build/failed/.
    """
    saved = kernel.saved
    try:
        source = state.source_hash(state.read_cells(mode.root / notebook))
        if mode.profile == LAPTOP and not mode.replay:
            # The run marks anew which records it uses: those are what `make records` exports.
            Records(mode.root / "build" / "records" / "records.sqlite").forget_use(notebook)
    except (ValueError, RecordsError) as error:
        raise NotebookError(str(error)) from error
    _write_input(mode.root / notebook, kernel.work / "input.ipynb")
    before = state.stamps(mode.root)
    start = time.monotonic()
    with Watcher(kernel.progress):
        executed = _execute(mode, notebook, kernel, parameters)
    seconds = time.monotonic() - start

    if state.source_hash(state.read_cells(mode.root / notebook)) != source:
        raise NotebookError(
            f"{notebook} was edited while it ran, so its results were not put in place: run again."
        )
    normalise(executed, keep_injected=mode.profile != LAPTOP)
    files = sorted(file.relative_to(saved) for file in saved.rglob("*") if file.is_file())
    outputs = {file.as_posix(): state.file_hash(saved / file) for file in files}
    write_atomically(saved / notebook, to_text(executed))
    done = state.State(
        source=source,
        parameters=state.parameters_text(parameters),
        inputs=_inputs(mode, _read_files(kernel.reads), before, outputs),
        outputs=outputs,
        results=state.results_hash(state.read_cells(saved / notebook)),
        seconds=round(seconds, 1),
    )
    with _signals_deferred():
        changed = _put_in_place(saved, mode.place)
        state.save_state(mode, notebook, done)
    _failed_copy(mode, notebook).unlink(missing_ok=True)
    return Outcome(seconds, changed)


def _write_input(notebook: Path, target: Path) -> None:
    """The notebook as papermill gets it: without outputs, and without old injected parameters,
    which papermill would run again when it has none to inject."""
    node = nbformat.read(notebook, as_version=4)
    normalise(node)
    for cell in node.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    target.write_text(to_text(node), encoding="utf-8")


def _execute(mode: Mode, notebook: str, kernel: Kernel, parameters: dict[str, Any]) -> NotebookNode:
    for name in ("papermill", "asyncio"):  # what goes wrong is told below, once
        logging.getLogger(name).setLevel(logging.CRITICAL)
    running = kernel.work / "running.ipynb"
    try:
        with (kernel.work / "stderr.txt").open("w", encoding="utf-8") as stderr:
            return papermill.execute_notebook(
                kernel.work / "input.ipynb",
                running,
                parameters=parameters,
                cwd=(mode.root / notebook).parent,
                kernel_name="python3",
                engine_name="save at end",
                progress_bar=False,
                stderr_file=stderr,
                km=kernel.manager,
            )
    except Exception as error:
        if isinstance(error, PapermillExecutionError) and error.ename == "KeyboardInterrupt":
            raise KeyboardInterrupt from error
        failed = _failed_copy(mode, notebook)
        kept = running.exists()
        if kept:
            failed.parent.mkdir(parents=True, exist_ok=True)
            running.replace(failed)
        where = failed.relative_to(mode.root)
        raise NotebookError(
            _explain(notebook, error, failed if kept else None)
            + (f"\nThe notebook with the error: {where}" if kept else ""),
            lacking=isinstance(error, PapermillExecutionError) and error.ename == "LacksError",
        ) from error


def _explain(notebook: str, error: Exception, failed: Path | None) -> str:
    """Notebook, cell, the cell's first line and what went wrong."""
    cell = _failed_cell(failed) if failed else None
    place = notebook
    if cell is not None:
        number, node = cell
        first = next((line for line in node.source.splitlines() if line.strip()), "")
        place += f", cell {number}: {first.strip()}"
    if isinstance(error, PapermillExecutionError):
        trace = "" if error.ename in OURS else ANSI.sub("", "\n".join(error.traceback)).strip()
        return f"{place}\n{trace or f'{error.ename}: {error.evalue}'}"
    if isinstance(error, DeadKernelError):
        return f"{place}\nThe kernel died, most likely because the memory was used up."
    return f"{place}\n{type(error).__name__}: {error}"


def _failed_cell(failed: Path) -> tuple[int, NotebookNode] | None:
    """The last cell that papermill began, and its number (from 1) in the notebook as written."""
    found, number = None, 0
    for node in nbformat.read(failed, as_version=4).cells:
        tags = node.metadata.get("tags", [])
        if "papermill-error-cell-tag" in tags:  # the marks that papermill adds
            continue
        number += state.INJECTED not in tags
        if node.cell_type == "code" and node.metadata.papermill.get("start_time"):
            found = (number, node)
    return found


def _failed_copy(mode: Mode, notebook: str) -> Path:
    return mode.root / "build" / "failed" / mode.name / notebook


def _read_files(reads: Path) -> list[str]:
    """What the kernel read, as paths relative to the root; see kernel_note_reads."""
    if not reads.exists():  # a notebook without code
        return []
    paths: list[str] = json.loads(reads.read_text(encoding="utf-8"))
    return paths


def _inputs(
    mode: Mode, reads: list[str], before: dict[str, state.Stamp], outputs: dict[str, str]
) -> dict[str, str]:
    """Path -> SHA-256 of each file that the results depend on."""
    inputs = {
        path: state.unedited_hash(mode.root, path, before)
        for path in reads
        if state.is_input(Path(path)) and path not in outputs
    }
    if mode.replay:
        inputs[state.RECORDS] = state.input_hash(mode.root, state.RECORDS)
    return inputs


def _put_in_place(saved: Path, place: Path) -> list[str]:
    """Move every file under `saved` to `place`, each in one step; return those that differ."""
    changed = []
    for file in sorted(path for path in saved.rglob("*") if path.is_file()):
        path = file.relative_to(saved)
        target = place / path
        if state.file_hash(target) == state.file_hash(file):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
        changed.append(path.as_posix())
    return changed


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the block is done."""
    held: list[int] = []
    # Not a signal mask: the kernel client's threads would still receive the signal.
    old = {
        number: signal.signal(number, lambda received, _: held.append(received))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    if held:
        raise KeyboardInterrupt
