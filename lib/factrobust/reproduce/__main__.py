"""Run the notebooks, ask a sample of the recorded answers again, and say what moved.

The notebooks take their answers from the committed records; what these lack is asked of the models.
Then a random share of the records (--ask) is asked again, to see whether they are what the models
say. With --ask 1 the notebooks themselves ask everything again, and with --ask 0 nothing is asked
at all.

Everything that a notebook makes is put in place at its end, or nothing is. A model call that was
computed is recorded at once, so a run that was interrupted goes on where it was."""

import argparse
import json
import logging
import re
import secrets
import shutil
import signal
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from tqdm.std import tqdm

from factrobust.models.cluster import cluster
from factrobust.models.records import Records, asked_again, places
from factrobust.paths import ROOT, write_atomically
from factrobust.reproduce import again, forks
from factrobust.reproduce.compare import NotHeldError, differences, held_by_git, present
from factrobust.reproduce.notebook import (
    USED,
    kernel_environment,
    normalise,
    read_canonical,
    say_whose_findings,
    to_text,
)
from factrobust.reproduce.profiles import (
    LAPTOP,
    Mode,
    declared_parameters,
    find_notebooks,
    parameters,
)

SHOW_SECONDS = 5  # between two lines of progress
AT_ONCE = 3  # notebooks whose answers are recorded; models that compute take all of a machine
ASK = 0.004  # of the recorded answers: one and a half to four minutes on two cores
# The library's errors, by name: one sentence that says it all, where others need their traceback.
OURS = ("ConnectionError", "FactsError", "LacksError", "ModelError", "RecordsError", "TooFewError")
# Those of one notebook alone: of a model that cannot do what it needs, or of cases.
OF_ONE = ("LacksError", "TooFewError")

logging.getLogger("papermill").setLevel(logging.CRITICAL)  # what goes wrong is told once, here


class NotebookError(Exception):
    """A notebook did not run to its end; the text tells a reader where and why."""

    alone = False  # True for a reason that says nothing of the other notebooks


class Manager(AsyncKernelManager):
    """A kernel's manager that keeps its client, whose channels nbclient leaves open: their
    heartbeats would reach a later kernel that is given one of these ports."""

    used: AsyncKernelClient | None = None

    def client(self, **how: Any) -> AsyncKernelClient:  # type: ignore[override]
        self.used = super().client(**how)
        return self.used


class Run:
    """A notebook (path relative to the root) on its way: it saves into a folder under build/."""

    def __init__(self, mode: Mode, notebook: str, parameters: dict[str, Any]) -> None:
        self.mode, self.notebook, self.parameters = mode, notebook, parameters
        self.path = mode.root / notebook
        self.out = mode.root / "build" / "running" / mode.profile / Path(notebook).with_suffix("")
        self.started = self.seconds = 0.0
        self.cells = 0
        self.cell = ""  # that is running: its number, and under which heading it stands
        self.heading = ""  # the last one before that cell
        self.environment = kernel_environment(mode, notebook, self.out)
        # No kernel specs but that of this interpreter: a user may have installed another "python3".
        self.manager = Manager(
            kernel_name="python3",
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
        )

    def execute(self) -> None:
        """Run all cells, saving into `out` alone. Raises NotebookError when a cell fails, the
        kernel dies, or the notebook was edited meanwhile."""
        self.started = time.monotonic()
        shutil.rmtree(self.out, ignore_errors=True)
        (self.out / self.notebook).parent.mkdir(parents=True)
        try:
            source = read_canonical(self.path)
        except ValueError as error:
            raise NotebookError(str(error)) from error
        self.cells = len(json.loads(source)["cells"]) + bool(self.parameters)
        result = self.out / self.notebook
        result.write_text(source, encoding="utf-8")
        node = self._run_cells(result)
        if read_canonical(self.path) != source:
            raise NotebookError(
                f"{self.notebook} was edited while it ran, so its results were not put in place: "
                "run again."
            )
        normalise(node, keep_injected=self.mode.profile != LAPTOP)
        if self.mode.profile != LAPTOP:
            usual = declared_parameters(self.path)
            say_whose_findings(node, self.mode.profile, self.parameters, usual)
        result.write_text(to_text(node), encoding="utf-8")
        self.seconds = time.monotonic() - self.started

    def _run_cells(self, notebook: Path) -> NotebookNode:
        failed = self.mode.root / "build" / "failed" / self.mode.profile / self.notebook
        failed.parent.mkdir(parents=True, exist_ok=True)
        failed.unlink(missing_ok=True)  # of an earlier run
        import papermill  # slow, so while the first kernels start

        try:
            run_sync(self.manager.start_kernel)(
                cwd=str(self.path.parent),
                env=self.environment,
            )
            node = papermill.execute_notebook(
                notebook,
                failed,
                self.parameters,
                kernel_name="python3",
                km=self.manager,
                # Saved at its end: twice a cell takes longer than many a cell with figures.
                request_save_on_cell_execute=False,
                progress_bar=False,
                on_cell_start=self.show_cell,
            )
        except Exception as error:
            copy = f"The notebook with the error: {failed.relative_to(self.mode.root)}"
            name = getattr(error, "ename", None)
            lines = [f"{self.notebook}, {_explain(error)}"]
            if name == "TooFewError":  # it is raised where cases are counted, which know no model
                models = (declared_parameters(self.path) | self.parameters).get("models", [])
                lines.append(f"Its models: {', '.join(map(str, models))}")
            if failed.exists():
                lines.append(copy)
            failure = NotebookError("\n".join(lines))
            # No other profile is as well tried as the one that is committed, and may run for hours.
            tried = self.mode.profile == LAPTOP
            failure.alone = name in OF_ONE or not (tried or name is None or name in OURS)
            raise failure from error
        finally:
            # Nothing is left to save, and waiting for the kernel's goodbye can take seconds.
            run_sync(self.manager.shutdown_kernel)(now=True)
            if self.manager.used:
                self.manager.used.stop_channels()
        failed.unlink()
        return node

    def show_cell(self, cell: NotebookNode, cell_index: int) -> None:
        """A cell begins, of code or of prose: what the one before told of its progress is over."""
        if cell.cell_type == "markdown":
            headings = re.findall(r"^#+ *(.*)", cell.source, re.MULTILINE)
            [*_, self.heading] = [self.heading, *headings]
        self.cell = f"cell {cell_index + 1} of {self.cells}, {self.heading}".removesuffix(", ")
        (self.out / "progress.txt").unlink(missing_ok=True)

    def progress(self) -> str:
        """How long it has run, in which cell it is, and what that last told of its progress."""
        elapsed = tqdm.format_interval(time.monotonic() - self.started)
        try:
            message = (self.out / "progress.txt").read_text("utf-8").strip()
        except FileNotFoundError:
            message = ""
        doing = ": ".join(filter(None, [self.cell, message])) or "starting"
        return f"{elapsed}  {doing}"

    def kill(self) -> None:
        """End the kernel, if there is one, from another thread: `execute` then fails."""
        with suppress(RuntimeError):
            run_sync(self.manager.signal_kernel)(signal.SIGKILL)

    def put_in_place(self) -> None:
        """Move what was saved to the mode's place, each file in one step. Which calls the notebook
        made is kept for `make records`, now that it has come to its end."""
        if (self.out / USED).exists():
            used = self.mode.root / "build" / "records" / "used" / f"{self.notebook}.{USED}"
            used.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(used, (self.out / USED).read_bytes())
        for file in (path for path in self.out.glob("*/**/*") if path.is_file()):
            target = self.mode.place / file.relative_to(self.out)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)
        shutil.rmtree(self.out)


def at_work(runs: Sequence[Run]) -> str:
    """A line about the notebooks that are running now, and how many have ended."""
    now = [run for run in runs if run.started and not run.seconds]
    running = [f"{Path(run.notebook).stem.partition('-')[0]} {run.progress()}" for run in now]
    ended = sum(bool(run.seconds) for run in runs)
    return f"{ended} of {len(runs)} done; {'; '.join(running)}"


def run_all(mode: Mode, wanted: dict[str, dict[str, Any]], at_once: int) -> list[str]:
    """Run notebooks with these parameters, and put their results in place in the given order.

    Returns those that failed for a reason of their own. Raises NotebookError for any other that
    fails; it and those after it are as they were."""
    runs = [Run(mode, notebook, parameters) for notebook, parameters in wanted.items()]
    halted, left_out = threading.Event(), []

    def attempt(run: Run) -> None:
        try:
            if not halted.is_set():
                run.execute()
        except NotebookError as error:
            run.started = 0.0  # it is at work no more
            if not error.alone:
                halted.set()
            raise

    # Files are moved in a thread of its own, which no signal interrupts half-way.
    with ThreadPoolExecutor(at_once) as pool, ThreadPoolExecutor(1) as mover:
        # Beside others the long ones, with many figures, begin first: none is then left to the end.
        largest = sorted(
            runs,
            key=lambda run: run.path.stat().st_size,
            reverse=True,
        )
        order = largest if at_once > 1 else runs
        futures = {run: pool.submit(attempt, run) for run in order}
        try:
            for number, run in enumerate(runs, start=1):
                future = futures[run]
                print(f"[{number}/{len(runs)}] {run.notebook}", flush=True)
                while wait([future], timeout=SHOW_SECONDS).not_done:
                    print(f"      {at_work(runs)}", flush=True)
                try:
                    future.result()
                    if not run.seconds:  # it did not begin, since another failed
                        continue
                except NotebookError as error:
                    if not error.alone:
                        raise
                    print(f"FAILED {error}", file=sys.stderr)
                    left_out.append(run.notebook)
                    continue
                mover.submit(run.put_in_place).result()
                print(f"      {tqdm.format_interval(run.seconds)}", flush=True)
        finally:
            halted.set()
            while wait(futures.values(), timeout=0.1).not_done:
                for run in runs:
                    run.kill()
    return left_out


def _explain(error: Exception) -> str:
    if isinstance(error, DeadKernelError):
        return "the kernel died, most likely because the memory was used up."
    from papermill.exceptions import PapermillExecutionError

    if not isinstance(error, PapermillExecutionError):
        return f"{type(error).__name__}: {error}"
    ours = f"{error.ename}: {error.evalue}"
    why = ours if error.ename in OURS else "\n".join(error.traceback)
    return f"In [{error.exec_count}]: {error.source.strip().splitlines()[0]}\n{why}"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Command line. Exit status: 0 done, 1 a notebook failed or an answer differs, 2 bad request,
    130 stopped."""
    options = _parser().parse_args(arguments)
    records = {0: "replay", 1: "fresh"}.get(options.ask, "committed")
    mode = Mode(root.resolve(), options.profile, records)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        values = parameters(mode.root, mode.profile)
        wanted = {name: values[name] for name in find_notebooks(mode.root, options.only)}
        forks.use(kernel_environment(mode, "", mode.root / "build"))
        alone = FileLock(mode.root / "build" / "reproduce.lock", timeout=0)
        with alone, cluster(options.cluster, options.workers) as address:
            return _run(replace(mode, cluster=address), wanted, options.ask, options.seed)
    except KeyboardInterrupt:
        kept = "No result is half-done and every model call so far is recorded"
        print(f"\nStopped. {kept}: the same command goes on from here.")
        return 130
    except NotebookError as error:
        status = 1
        why = f"FAILED {error}\nIts results and those of later notebooks are as before."
    except Timeout:
        status = 2
        why = "Another `make reproduce` is at work in this folder: wait for it."
    except (ValueError, OSError) as error:
        status, why = 2, str(error)
    finally:
        signal.signal(signal.SIGTERM, before)
    print(why, file=sys.stderr)
    return status


def _run(mode: Mode, wanted: dict[str, dict[str, Any]], share: float, seed: int) -> int:
    """Run the notebooks, ask again, report; the exit status."""
    # Of other profiles no answers are recorded: their models take all of a machine.
    recorded = mode.profile == LAPTOP and mode.records != "fresh"
    left_out = run_all(mode, wanted, AT_ONCE if recorded else 1)
    different = False
    if mode.place != mode.root:
        print(f"Notebooks and figures are in {mode.place.relative_to(mode.root)}/.")
    else:
        source = "answers asked now" if mode.records == "fresh" else "recorded answers"
        made = f"{_made(mode.root, wanted)} were made anew from {source}"
        report: list[str] = []
        asked = ""
        if share > 0:
            report, asked, different = _ask_again(mode, wanted, share, seed)
        try:
            lines, compared = differences(held_by_git(mode.root), present(mode.root))
            report += lines
        except NotHeldError as error:
            report.append(str(error))
            compared = "the numbers were compared with nothing"
        # The last line is the one that a reader of a paper may quote.
        print("\n".join([*report, f"{made}{asked}; {compared}."]))
    if left_out:
        print(f"Left out, for the reasons above: {', '.join(left_out)}.", file=sys.stderr)
    return int(bool(left_out) or different)


def _made(root: Path, notebooks: Collection[str]) -> str:
    """ "43 notebooks, 180 tables and 83 figures"."""
    made = []
    for about in (root / "figures").rglob("*.json"):
        if json.loads(about.read_text("utf-8"))["notebook"] in notebooks:
            made.append(about)
    figures = sum(path.with_suffix(".png").exists() for path in made)
    tables = len(made) - figures
    return (
        f"{_counted(len(notebooks), 'notebook')}, {_counted(tables, 'table')} and "
        f"{_counted(figures, 'figure')}"
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _ask_again(
    mode: Mode,
    notebooks: Collection[str],
    share: float,
    seed: int,
) -> tuple[list[str], str, bool]:
    """Lines about the recorded answers that were asked again, the same as part of a sentence, and
    whether one came out different."""
    _, committed = places()
    total = again.count(committed, notebooks)
    drawn_by: list[str] = []
    left_out: dict[str, str] = {}
    if mode.records == "fresh":
        asked = asked_again()
        compared = again.compare_stores(committed, Records(asked), notebooks)
        if asked.exists():
            asked.replace(asked.with_name("asked.sqlite"))  # the next run asks anew
    else:
        drawn = again.draw(committed, share, seed, notebooks)
        compared, left_out = again.ask_again(drawn, lambda line: print(f"      {line}", flush=True))
        drawn_by = [f"Drawn at random: {share:.3g} of the records, by SEED={seed}."]
    lines = [*again.summary(compared, total), *drawn_by, *not_asked(left_out)]
    file = mode.root / "build" / "asked-again.csv"
    again.save(compared, file)
    different = again.worst(compared)
    if different:
        [first, *_] = different
        call = first.recorded.call
        lines.append(
            f"{len(different):,} recorded answers are NOT what the models say now. The first is a "
            f"{call.operation} by {call.model} for {first.recorded.notebook}: "
            f"{call.prompt[-60:]!r} was answered by {again.words(first.recorded.value)!r}, and now "
            f"by {again.words(first.now)!r} (largest difference {first.difference:.3g}). All are "
            f"in {file.relative_to(mode.root)}."
        )
    same = len(compared) - len(different)
    asked_now = f", of which {len(compared):,} were asked again and {same:,} came out the same"
    return lines, asked_now if compared else "", bool(different)


def not_asked(left_out: Mapping[str, str]) -> list[str]:
    """A line a reason why models were left out, with the first name: changes of one model's weights
    share its reason."""
    names: dict[str, list[str]] = {}
    for name, why in left_out.items():
        names.setdefault(why, []).append(name)
    lines = []
    for why, (first, *others) in names.items():
        forms = ", changed or not" if others else ""
        lines.append(f"Not asked again: {first}{forms} ({why}).")
    return lines


def share_of(text: str) -> float:
    """A share from 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no share: give a number from 0 to 1")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m factrobust.reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option = parser.add_argument
    option("--profile", default=LAPTOP, help="parameters: profiles/NAME.yaml; results: build/NAME/")
    option(
        "--ask",
        type=share_of,
        default=ASK,
        metavar="SHARE",
        help="0: nothing, 1: everything",
    )
    option(
        "--seed",
        type=int,
        default=secrets.randbelow(1_000_000),
        metavar="N",
        help="the sample that is asked again; at random if it is not given",
    )
    option(
        "--only",
        default="*",
        metavar="NAME",
        help="1.2, 1-decoding, or a glob of paths",
    )
    option(
        "--cluster",
        nargs="?",
        const="local",
        metavar="ADDRESS",
        help="ask the models on Dask workers: the scheduler's at ADDRESS, or local ones",
    )
    option(
        "--workers",
        type=int,
        metavar="N",
        help="processes that --cluster starts (default: one a GPU, or one a core, four at most)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
