"""Run the notebooks that are asked for, in order, and say what moved.

While a notebook runs, its elapsed time and its progress are shown (see factrobust.records). A model
call that was computed is recorded at once, so a run that was interrupted goes on where it was.

With --cluster the models are asked on the workers of a Dask cluster (see factrobust.models.cluster);
their answers come back to this machine's records.
"""

from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from factrobust.models.cluster import cluster
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
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        values = parameters(mode.root, mode.profile)
        wanted = {name: values[name] for name in find_notebooks(mode.root, options.only)}
        if not wanted:
            raise ValueError(f"No notebook under notebooks/ matches {options.only!r}.")
        alone = FileLock(mode.root / "build" / "reproduce.lock", timeout=0)
        with alone, cluster(options.cluster, options.workers) as address:
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
    except Timeout:
        print(
            "Another `make reproduce` or `make replay` is at work in this folder: wait for it.",
            file=sys.stderr,
        )
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
    return 2


def _run(mode: Mode, wanted: dict[str, dict[str, Any]]) -> int:
    commit = committed(mode.root)
    before = present(mode.root) if commit is None else commit
    beyond = run_all(mode, wanted, REPLAYED_AT_ONCE if mode.replay else 1)
    if mode.place == mode.root:
        against = "the state before" if commit is None else "the last commit"
        print("\n".join(describe(before, present(mode.root), against)))
    else:
        print(f"Notebooks and figures are in {mode.place.relative_to(mode.root)}/.")
    if beyond:
        names = ", ".join(beyond)
        print(f"Left out, because they need more than the models can do: {names}.", file=sys.stderr)
    return int(bool(beyond))


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
