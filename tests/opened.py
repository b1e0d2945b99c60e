"""Run at the start of a kernel: notes in `opened.txt` of its output folder which data files it reads."""

import os
import sys
from pathlib import Path

from factrobust.paths import DATA


def note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and str(arguments[0]).startswith(f"{DATA}{os.sep}"):
        with Path(os.environ["FACTROBUST_OUT"], "opened.txt").open("a", encoding="utf-8") as file:
            file.write(f"{Path(str(arguments[0])).relative_to(DATA.parent).as_posix()}\n")


sys.addaudithook(note)
