"""Run the notebooks whose results are out of date, in order, and say what moved.

A notebook is out of date when its cells, its parameters, a file that its kernel read (library,
data, profiles, figures) or a file that it wrote is not what it was after its last run. `build/`
holds the memory of this, and everything else that a run needs.

While a notebook runs, its elapsed time and the latest line of the file named by the environment
variable FACTROBUST_PROGRESS are shown: library code that takes long writes there, for example
"gemma-3-270m sample 340/1200, 2 min left" (see factrobust.records.progress_bar).

With --cluster the models are asked on the workers of a Dask cluster (see factrobust.models.cluster);
their answers come back to this machine's records.
"""

from __future__ import annotations

import argparse
import fcntl
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from factrobust.paths import ROOT
from factrobust.reproduce import summary
from factrobust.reproduce.mode import LAPTOP, LOCAL, Mode, find_notebooks, parameters
from factrobust.reproduce.progress import spoken
from factrobust.reproduce.state import load_state, why_stale


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Command line. Exit status: 0 up to date, 1 a notebook failed, 2 bad request, 130 stopped."""
    given = _parser().parse_args(arguments)
    mode = Mode(root.resolve(), given.profile, given.replay)
    if given.cluster and given.replay:
        return _refuse("--replay asks no model, so there is nothing for a cluster: leave one out.")
    if given.workers is not None and (given.cluster != LOCAL or given.workers < 1):
        return _refuse(
            "--workers is how many processes (1 or more) --cluster starts on this machine: correct it, "
            "or leave it out."
        )
    handlers = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        notebooks = find_notebooks(mode.root, given.only)
        if given.only and not notebooks:
            return _refuse(f"No notebook under notebooks/ matches {given.only!r}.")
        values = parameters(mode)
        wanted = {notebook: values[notebook] for notebook in notebooks}
        if given.status:
            return _status(mode, wanted)
        with _alone(mode.root):
            return _run(mode, wanted, force=given.force, cluster=_cluster(given))
    except KeyboardInterrupt:
        print("\nStopped. Nothing was left half-done; the same command goes on from here.")
        return 130
    except (ValueError, KeyError, OSError) as error:
        # str() of a KeyError is the repr of its text.
        return _refuse(str(error.args[0] if isinstance(error, KeyError) else error))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m factrobust.reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--profile",
        default=LAPTOP,
        help="parameters from profiles/NAME.yaml, results to build/NAME/",
    )
    parser.add_argument(
        "--replay", action="store_true", help="take the model calls from the committed records"
    )
    parser.add_argument(
        "--cluster",
        nargs="?",
        const=LOCAL,
        metavar="ADDRESS",
        help="ask the models on Dask workers: those of the scheduler at ADDRESS, or else processes "
        "of this machine",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="how many processes --cluster starts (default: a core each, four at most; one with a GPU)",
    )
    parser.add_argument("--only", metavar="GLOB", help="only notebooks whose path matches")
    parser.add_argument("--status", action="store_true", help="say what would run, and why")
    parser.add_argument("--force", action="store_true", help="run also what is up to date")
    return parser


def _status(mode: Mode, wanted: dict[str, dict[str, Any]]) -> int:
    for notebook, values in wanted.items():
        print(f"{notebook}: {why_stale(mode, notebook, values) or 'up to date'}")
    return 0


def _run(
    mode: Mode,
    wanted: dict[str, dict[str, Any]],
    *,
    force: bool,
    cluster: AbstractContextManager[str | None],
) -> int:
    stale = [name for name in wanted if force or why_stale(mode, name, wanted[name])]
    if not stale:
        print(f"{_notebooks(len(wanted))} up to date")
        return 0
    print(f"{_notebooks(len(stale))} to run, {len(wanted) - len(stale)} up to date", flush=True)
    commit = summary.committed(mode.root)
    against, before = (
        ("the state before", summary.present(mode.root))
        if commit is None
        else (
            f"commit {commit[0]}",
            commit[1],
        )
    )
    with cluster as address:
        beyond = _run_stale(replace(mode, cluster=address), wanted, stale, force=force)
    if beyond is None:
        return 1
    if mode.place == mode.root:
        found = summary.summarise(before, summary.present(mode.root))
        print("\n".join(summary.describe(found, against)))
    else:
        print(f"Notebooks and figures are in {mode.place.relative_to(mode.root)}/.")
    if beyond:
        names = ", ".join(beyond)
        print(f"Left out, because they need more than the models can do: {names}.", file=sys.stderr)
    return int(bool(beyond))


def _cluster(given: argparse.Namespace) -> AbstractContextManager[str | None]:
    """What starts or finds the cluster that was asked for, when it is entered."""
    if not given.cluster:
        return nullcontext()
    from factrobust.models.cluster import cluster  # Dask, which takes a second

    return cluster(given.cluster, given.workers)


def _run_stale(
    mode: Mode, wanted: dict[str, dict[str, Any]], stale: list[str], *, force: bool
) -> list[str] | None:
    """Run one notebook after the other; None if one failed.

    Returns those that no model given to them can serve: that is no reason not to run the rest.
    """
    from factrobust.reproduce.kernel import kernels

    number, order, beyond = 0, list(wanted), []
    with kernels(mode) as take:
        take(stale[0], [])
        # Only now, because it takes seconds, as the start of a kernel does: what runs notebooks.
        from factrobust.reproduce.run import NotebookError, run_notebook

        for place, (notebook, values) in enumerate(wanted.items()):
            # Asked again: a notebook that ran meanwhile may have changed what this one reads.
            why = "forced" if force else why_stale(mode, notebook, values)
            if why is None:
                continue
            number += 1
            later = [name for name in order[place + 1 :] if name in stale]
            forecast = _forecast(mode, notebook, later)
            total = max(number, len(stale))
            print(f"[{number}/{total}] {notebook} ({why}{forecast})", flush=True)
            try:
                outcome = run_notebook(mode, notebook, values, take(notebook, later[:1]))
            except NotebookError as error:
                print(f"FAILED {error}", file=sys.stderr)
                if error.lacking:
                    beyond.append(notebook)
                    continue
                print("Its results are as before; later notebooks were not run.", file=sys.stderr)
                return None
            count = len(outcome.changed)
            what = f"{count} file{'s' * (count != 1)} changed" if count else "nothing changed"
            print(f"      done in {spoken(outcome.seconds)}, {what}", flush=True)
    return beyond


def _forecast(mode: Mode, notebook: str, later: list[str]) -> str:
    """What the last run took, and what all that is left took; nothing for a first run."""
    runs = {name: load_state(mode, name) for name in [notebook, *later]}
    known = {name: last.seconds for name, last in runs.items() if last}
    if notebook not in known:
        return ""
    left = f", all that is left {spoken(sum(known.values()))}" if len(known) > 1 else ""
    return f"; last time {spoken(known[notebook])}{left}"


def _notebooks(number: int) -> str:
    return f"{number} notebook{'' if number == 1 else 's'}"


def _refuse(why: str) -> int:
    print(why, file=sys.stderr)
    return 2


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Raises BlockingIOError while another process runs the notebooks of this folder."""
    path = root / "build" / "reproduce.lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(
                "Another `make reproduce` or `make replay` is at work in this folder: wait for it."
            ) from error
        yield


if __name__ == "__main__":
    sys.exit(main())
