"""What a reader is told that they can run: every command of README, CONTRIBUTING and `make help`.

`make commands` runs them in a fresh clone of the last commit, in build/commands, with the environment
that is there already. What takes an hour or changes the environment is run elsewhere, see ELSEWHERE.
Each command must end as it says: well, or with its one sentence. About fifteen minutes on two cores.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from factrobust.models.load import EMBEDDED
from factrobust.paths import BUILD, ROOT

CLONE = BUILD / "commands"
SERVED = "smollm2-135m-instruct"
PROFILES = {
    "mine": """
description: facts of my own, asked of a model of my own
defaults:
  models: [data/world/models/world-s]
  data: [data/mine.csv]
  n_boot: 50
""",
    "served": """
description: an endpoint with a budget
defaults:
  models: [{url: %s, model: served, api: completions, budget_requests: 2000}]
  n_questions: 12
  n_boot: 50
""",
}


class Command(NamedTuple):
    """A shell command, how it ends (its exit status) and a text that it must have printed."""

    run: str
    status: int = 0
    prints: str = ""


def reproduce(what: str, only: str = "") -> str:
    return f"make reproduce {what}" + (f" ONLY='notebooks/{only}'" if only else "")


COMMANDS = [
    Command("make help", prints="reproduce"),
    *(
        Command(f"make plan PROFILE={name}", prints="calls")
        for name in ("laptop", "smoke", "world", "hub-small", "paper", "mine")
    ),
    Command(reproduce("PROFILE=smoke"), prints="Notebooks and figures are in build/smoke/."),
    Command(reproduce("", "0-*"), prints="numbers in"),
    Command(reproduce("CLUSTER=local WORKERS=2", "0-*"), prints="numbers in"),
    *(
        Command(reproduce("PROFILE=world", only), prints="are in build/world/.")
        for only in ("1-decoding/1.[1245]*", "2-time/2.2-*", "3-wording/3.2-*", "4-context/4.2-*")
    ),
    Command(reproduce("PROFILE=mine", "1-decoding/1.[12]*"), 1, "knows none"),
    Command(reproduce("PROFILE=served", "1-decoding/1.1*"), prints="are in build/served/."),
    # Without a network, or the account that a gated model needs, it says so in one sentence.
    Command("HF_HUB_OFFLINE=1 " + reproduce("PROFILE=hub-small", "1-decoding/1.1*"), 1, "Error: "),
    Command(reproduce("PROFILE=papr"), 2, "There is no profile 'papr'"),
    Command(reproduce("", "nothing*"), 2, "matches 'notebooks/nothing*'"),
    Command("make grow MODEL=world-s", prints="world-s"),
    Command("make grow MODEL=world-x", 2, "world-x"),
    Command("make records", 2, "run `make reproduce` first"),  # of all notebooks
    Command("make replay", prints="numbers in"), Command("make normalise"), Command("make clean"),
]  # fmt: skip
# By CI; by hand: reproduce whole, bench, constraints (when packages are raised), lab (in a browser).
ELSEWHERE = {"env", "test", "lint", "reproduce", "bench", "constraints", "lab", "commands"}
    how = {"shell": True, "cwd": CLONE, "capture_output": True, "text": True}
    done = subprocess.run(words, env=variables, **how)  # type: ignore[call-overload]
    said = done.stdout + done.stderr
    status = int(re.findall(r"Error (\d+)\s*$", said)[0]) if done.returncode else 0
    good = status == command.status and command.prints in said
    good &= "Traceback" not in said
    print(
        f"{'ok  ' if good else 'FAIL'} {time.monotonic() - began:4.0f} s  {command.run}", flush=True
    )
    if not good:
        print(f"status {status}, should be {command.status} with {command.prints!r}:\n{said}")
    return good


def main() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))
    run = {word for command in COMMANDS for word in re.findall(r"make ([a-z]+)", command.run)}
    if forgotten := targets - run - ELSEWHERE:
        sys.exit(f"Neither run here nor elsewhere: make {', make '.join(sorted(forgotten))}.")
    server, url = serve()
    prepare(url)
    wrong = [command.run for command in COMMANDS if not ends_as_it_should(command)]
    del server
    sys.exit(f"{len(wrong)} of {len(COMMANDS)} did not end as they should." if wrong else 0)


if __name__ == "__main__":
    main()
