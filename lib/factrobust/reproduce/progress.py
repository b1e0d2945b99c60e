"""Shows how a running notebook gets on."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TextIO


def spoken(seconds: float) -> str:
    """A duration as one says it: "8 s", "2 min 5 s", "1 h 12 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Watcher:
    """While its block runs, shows the elapsed time and the latest line of a progress file.

    The file (FACTROBUST_PROGRESS in the kernel's environment) may be rewritten or appended to; its
    last line is shown. In place on a terminal; otherwise a new line every `every` seconds.
    """

    def __init__(self, file: Path, stream: TextIO | None = None, every: float = 15.0) -> None:
        self.file = file
        self.stream = stream or sys.stdout
        self.terminal = self.stream.isatty()
        self.every = 0.5 if self.terminal else every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def latest(self) -> str:
        """The last line of the progress file; empty if there is none yet."""
        try:
            lines = self.file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1] if lines else ""

    def _show(self) -> None:
        start = time.monotonic()
        while not self._stop.wait(self.every):
            line = f"      {spoken(time.monotonic() - start)}  {self.latest()}".rstrip()
            self.stream.write(f"\r{line[:100]}\x1b[K" if self.terminal else f"{line}\n")
            self.stream.flush()
        if self.terminal:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
