"""Run at the start of a kernel: `opened.txt` of its output folder tells which data files it reads, and
when it saves a result."""

import os
import sys
from pathlib import Path

from factrobust.paths import DATA

OUT = Path(os.environ["FACTROBUST_OUT"])


def note(event: str, arguments: tuple[object, ...]) -> None:
    path = str(arguments[0]) if event == "open" else ""
    if path.startswith((f"{DATA}{os.sep}", f"{OUT / 'figures'}{os.sep}")):
        inside = (
            Path(path).relative_to(DATA.parent).as_posix()
            if path.startswith(str(DATA))
            else "saved"
        )
        with (OUT / "opened.txt").open("a", encoding="utf-8") as file:
            file.write(f"{inside}\n")


sys.addaudithook(note)
