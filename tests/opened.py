"""Run when a kernel starts: `opened.txt` tells which data files it reads, and when it saves a
result."""

import os
import sys
from pathlib import Path

from factrobust.paths import ROOT

OUT = Path(os.environ["FACTROBUST_OUT"])


def note(event: str, arguments: tuple[object, ...]) -> None:
    if event != "open":
        return
    path = Path(str(arguments[0]))
    line = ""
    if path.is_relative_to(OUT / "figures"):
        line = "saved"
    if path.is_relative_to(ROOT / "data"):
        line = path.relative_to(ROOT).as_posix()
    if line:
        with (OUT / "opened.txt").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


sys.addaudithook(note)
