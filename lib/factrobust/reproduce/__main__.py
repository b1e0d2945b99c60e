"""Run the notebooks that are asked for, in order, and say what moved.

While a notebook runs, its elapsed time and its progress are shown (see factrobust.records). A model
call that was computed is recorded at once, so a run that was interrupted goes on where it was.

With --cluster the models are asked on the workers of a Dask cluster (see factrobust.models.cluster);
their answers come back to this machine's records.
"""

from __future__ import annotations

import argparse
import fcntl
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from factrobust.paths import ROOT
from factrobust.reproduce.compare import committed, describe, present
from factrobust.reproduce.profiles import LAPTOP, Mode, find_notebooks, parameters
from factrobust.reproduce.run import NotebookError, run_all

LOCAL = "local"  # the cluster that a run starts on its own machine
REPLAYED_AT_ONCE = 2  # notebooks; models that compute take all of a machine, one at a time


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Command line. Exit status: 0 done, 1 a notebook failed, 2 bad request, 130 stopped."""
    options = _parser().parse_args(arguments)
    mode = Mode(root.resolve(), options.profile, options.replay)
    if options.cluster and options.replay:
        return _refuse("--replay asks no model, so there is nothing for a cluster: leave one out.")
    if options.workers is not None and (options.cluster != LOCAL or options.workers < 1):
        return _refuse(
            "--workers is how many processes (1 or more) --cluster starts on this machine: correct it, "
            "or leave it out."
        )
    handlers = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        values = parameters(mode.root, mode.profile)
        wanted = {name: values[name] for name in find_notebooks(mode.root, options.only)}
        if not wanted:
            return _refuse(f"No notebook under notebooks/ matches {options.only!r}.")
        with _alone(mode.root), _cluster(options.cluster, options.workers) as address:
            return _run(replace(mode, cluster=address), wanted)
    except KeyboardInterrupt:
        print(
            "\nStopped. No result is half-done and every model call so far is recorded: the same "
            "command goes on from here."
        )
        return 130
    except NotebookError as error:
        print(f"FAILED {error}", file=sys.stderr)
        print("Its results and those of later notebooks are as before.", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        return _refuse(str(error))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _run(mode: Mode, wanted: dict[str, dict[str, Any]]) -> int:
    commit = committed(mode.root)
    before = commit[1] if commit else present(mode.root)
    beyond = run_all(mode, wanted, REPLAYED_AT_ONCE if mode.replay else 1)
    if mode.place == mode.root:
        against = f"commit {commit[0]}" if commit else "the state before"
        print("\n".join(describe(before, present(mode.root), against)))
    else:
        print(f"Notebooks and figures are in {mode.place.relative_to(mode.root)}/.")
    if beyond:
        names = ", ".join(beyond)
        print(f"Left out, because they need more than the models can do: {names}.", file=sys.stderr)
    return int(bool(beyond))


@contextmanager
def _cluster(address: str | None, workers: int | None) -> Iterator[str | None]:
    """The address of the cluster that was asked for, started or found, if one was."""
    if address is None:
        yield None
        return
    from factrobust.models.cluster import cluster  # Dask, which takes a second

    with cluster(address, workers) as scheduler:
        yield scheduler


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


def _refuse(why: str) -> int:
    print(why, file=sys.stderr)
    return 2


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m factrobust.reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option = parser.add_argument
    option("--profile", default=LAPTOP, help="parameters: profiles/NAME.yaml; results: build/NAME/")
    option("--replay", action="store_true", help="take model calls from the committed records")
    option("--only", default="*", metavar="GLOB", help="only notebooks whose path matches")
    option(
        "--cluster",
        nargs="?",
        const=LOCAL,
        metavar="ADDRESS",
        help="ask the models on Dask workers: the scheduler's at ADDRESS, or processes of this machine",
    )
    option(
        "--workers",
        type=int,
        metavar="N",
        help="processes that --cluster starts (default: one a core, four at most; one with a GPU)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
