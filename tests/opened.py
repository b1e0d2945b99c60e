"""Run when a kernel starts: `opened.txt` tells which data files it reads, and when it saves a
result."""

import os
import sys
from pathlib import Path

from factrobust.paths import ROOT

OUT = Path(os.environ["FACTROBUST_OUT"])


def note(event: str, arguments: tuple[object, ...]) -> None:
    path = Path(str(arguments[0])) if event == "open" else ROOT
    found = [path.relative_to(ROOT).as_posix()] if path.is_relative_to(ROOT / "data") else []
    found += ["saved"] if path.is_relative_to(OUT / "figures") else []
    if found:
        with (OUT / "opened.txt").open("a", encoding="utf-8") as file:
            file.write(f"{found[0]}\n")


sys.addaudithook(note)
