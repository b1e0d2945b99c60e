"""Progress with a forecast, for people at a terminal, in a notebook, or behind a runner."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tqdm.std import tqdm

QUIET_SECONDS = 2.0


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield `advance(n)`; show a bar on stderr once the work has lasted over two seconds.

    A notebook runner has no terminal: when FACTROBUST_PROGRESS names a file, the latest line
    ("label 340/1200, 2 min left") is written there instead, for the runner to show. TQDM_DISABLE
    silences the bar, as everywhere.
    """
    target = os.environ.get("FACTROBUST_PROGRESS")
    if target:
        yield _file_reporter(Path(target), label, total)
        return
    # tqdm.std, not tqdm.auto: notebook widgets would make the outputs differ from run to run.
    with tqdm(total=total, desc=label, delay=QUIET_SECONDS, leave=False, file=sys.stderr) as bar:

        def advance(n: int) -> None:
            bar.update(n)

        yield advance


def _file_reporter(target: Path, label: str, total: int) -> Callable[[int], None]:
    start, done, last = time.monotonic(), 0, 0.0

    def advance(n: int) -> None:
        nonlocal done, last
        done += n
        elapsed = time.monotonic() - start
        if elapsed < QUIET_SECONDS or (elapsed - last < 1 and done < total):
            return
        last = elapsed
        left = elapsed / max(done, 1) * (total - done)
        with suppress(OSError):  # a full disk must not end the work over its progress
            target.write_text(f"{label} {done}/{total}, {_duration(left)} left", encoding="utf-8")

    return advance


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
