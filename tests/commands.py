"""What a reader is told that they can run: every command of README, CONTRIBUTING and `make help`.

`make commands` runs them in a fresh clone of the last commit, in build/commands, with the
environment that is there already. What takes an hour or changes the environment is run elsewhere,
see ELSEWHERE. Each command must end as it says: well, or with its one sentence. About fifteen
minutes on two cores.

`make commands DEBIAN=FOLDER` sets up, reruns and tests a fresh clone in another system instead:
that of FOLDER, such as a Debian with a newer Python. As root, once:

    debootstrap --variant=minbase --include=python3-venv,python3-pip,make,git,ca-certificates sid FOLDER
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import standins
import yaml

from factrobust.models.load import EMBEDDED, FILE
from factrobust.paths import BUILD, ROOT

CLONE = BUILD / "commands"
SERVED = "smollm2-135m-instruct"
PROFILES = {
    "mine": """
defaults:
  models: [data/world/models/world-s]
  data: [data/mine.csv]
""",
    "served": """
defaults:
  models: [{url: %s, model: served, api: completions, budget_requests: 2000}]
  n_questions: 12
""",
}


class Command(NamedTuple):
    """A shell command, how it ends (its exit status) and a text that it must have printed."""

    run: str
    status: int = 0
    prints: str = ""


def reproduce(only: str, what: str = "") -> str:
    return f"make reproduce ONLY='{only}' {what}".rstrip()


COMMANDS = [
    Command("make help", prints="For maintainers"),
    *(
        Command(f"make plan PROFILE={name}", prints="calls")
        for name in ("laptop", "smoke", "world", "hub-small", "paper", "mine")
    ),
    Command("make reproduce PROFILE=smoke", prints="Notebooks and figures are in build/smoke/."),
    Command(reproduce("1.2", "SEED=5"), prints="by SEED=5"),
    Command(reproduce("0-start-here", "ASK=1"), prints="1 notebook, "),
    Command(reproduce("notebooks/0-s*", "CLUSTER=local WORKERS=2"), prints="1 notebook, "),
    *(
        Command(reproduce(only, "PROFILE=world"), prints="are in build/world/.")
        for only in ("notebooks/1-decoding/1.[1245]*", "2.2", "3.2", "4.2")
    ),
    Command(
        reproduce("notebooks/1-decoding/1.[12]*", "PROFILE=mine"),
        1,
        "none of the greedy answers is right",
    ),
    Command(reproduce("1.1", "PROFILE=served"), prints="are in build/served/."),
    # Without a network, or the account that a gated model needs, it says so in one sentence.
    Command("HF_HUB_OFFLINE=1 " + reproduce("1.1", "PROFILE=hub-small"), 1, "from the hub ("),
    Command("make reproduce PROFILE=papr", 2, "There is no profile 'papr'"),
    Command(reproduce("nothing"), 2, "No notebook is called 'nothing': there are "),
    Command("make reproduce ASK=2", 2, "2 is no share: give a number from 0 to 1"),
    Command("make grow MODEL=world-s", prints="world-s"),
    Command("make grow MODEL=world-x", 2, "world-x"),
    Command("make card MODEL=world-s", prints="are known"),
    Command("make card MODEL=world-x", 2, "no model is called 'world-x'"),
    Command("make card MODEL='$(touch made)'", 2, "$(touch made)"),
    Command("make card", 2, "make card needs MODEL: make card MODEL=gemma-3-270m"),
    Command(
        "make flips A=world-s B=world-s~round2 FAIL_IF='lost>0.9'", prints="lost, of the known"
    ),
    Command("make answers", prints="answers.csv"),
    Command("make reproduce ASK=0", prints="were made anew from recorded answers"),
    Command("make records", prints=" MB, in "),
    Command("make normalise"),
    Command("make clean"),
    Command("make course"),
    # `make read` opens JupyterLab and stays: its environment, and a notebook there.
    Command(
        "make .venv-read/.ready && .venv-read/bin/python -m papermill --cwd notebooks "
        "notebooks/0-start-here.ipynb build/read.ipynb"
    ),
]
# Profiles that ask the hub, on stand-ins for what they name (tests/standins.py), with their exit
# status. Random models know nothing, so that some notebooks are left out: each must say why, in a
# sentence that names a model.
STOOD_IN = {"hub-small": 0, "thesis": 0, "paper": 1}
ON_STAND_INS = [
    Command(f"make reproduce PROFILE={name}", status, f"are in build/{name}/.")
    for name, status in STOOD_IN.items()
]
OPENAI = "url: https://api.openai.com/v1, model: gpt-4o-mini-2024-07-18"
# By CI; by hand: bench, constraints (when packages are raised), lab (in a browser:
# tests/test_lab.py).
ELSEWHERE = {"env", "test", "lint", "bench", "constraints", "lab", "commands"}
ELSEWHERE |= {"read", "book", "sizes"}  # see above; tests/test_book.py; by hand, 1.6 GB


def prepare(url: str) -> None:
    """A fresh clone with the environment of this folder and a reader's own files."""
    shutil.rmtree(CLONE, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, CLONE], check=True)
    (CLONE / ".venv").symlink_to(Path(sys.prefix))
    for name, text in PROFILES.items():
        (CLONE / "profiles" / f"{name}.yaml").write_text(text.replace("%s", url), encoding="utf-8")
    rows = (ROOT / "data" / "facts.csv").read_text(encoding="utf-8").splitlines()
    (CLONE / "data" / "mine.csv").write_text("\n".join(rows[:13]) + "\n", encoding="utf-8")


def serve() -> tuple[object, str]:
    """llama.cpp's server with an embedded model: while the first lives, it answers at the
    second."""
    import xllamacpp

    [(package, weights)] = EMBEDDED[SERVED].parts
    [folder] = find_spec(package).submodule_search_locations
    about = xllamacpp.CommonParams()
    about.model.path = os.fspath(Path(folder) / weights)
    about.model_alias = {"served"}
    about.hostnames = ["127.0.0.1"]
    about.port = 0
    about.n_ctx = 4096
    about.n_parallel = 4
    about.verbosity = 0
    server = xllamacpp.Server(about)
    return server, f"{server.listening_address}/v1"


def put_stand_ins(url: str) -> dict[str, str]:
    """Lay stand-ins for models, data and OpenAI into the clone; the variables by which they are
    found."""
    hub = CLONE / "build" / "hub"
    hub.mkdir(parents=True)
    standins.main(str(hub))
    standins.write_thesis(CLONE / "thesis")
    (CLONE / "data" / "models.csv").write_text(standins.smaller(FILE), encoding="utf-8")
    paper = CLONE / "profiles" / "paper.yaml"
    ours = OPENAI.replace("https://api.openai.com/v1", url) + ", server: openai"
    text = paper.read_text(encoding="utf-8")
    if OPENAI not in text:
        sys.exit(f"{paper} names no {OPENAI}")
    paper.write_text(text.replace(OPENAI, ours), encoding="utf-8")
    for name in STOOD_IN:
        few = standins.few_questions(CLONE, name)
        (CLONE / "profiles" / f"{name}.yaml").write_text(yaml.safe_dump(few), encoding="utf-8")
    return {"HF_HUB_CACHE": str(hub), "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "sk-stand-in"}


def outside() -> dict[str, str]:
    """The environment without what `make commands` itself was given."""
    given = {"MAKEFLAGS", "MAKELEVEL", "PYTHON", "PROFILE", "JOBS", "DEBIAN", "CONDA_DEFAULT_ENV"}
    return {name: value for name, value in os.environ.items() if name not in given}


def tell(good: bool, began: float, what: str) -> None:
    print(f"{'ok  ' if good else 'FAIL'} {time.monotonic() - began:4.0f} s  {what}", flush=True)


def ends_as_it_should(
    command: Command, variables: Mapping[str, str] = MappingProxyType({})
) -> bool:
    """Run one in the clone and say how it ended; its output is told when that is not as it should
    be."""
    began = time.monotonic()
    # The clone's files are younger than the environment's stamp.
    words = command.run.replace("make ", "make -o .venv/.ready ", 1)
    known = outside() | {"PYTHONPATH": str(CLONE / "lib"), **variables}
    done = subprocess.run(
        words,
        env=known,
        shell=True,
        cwd=CLONE,
        capture_output=True,
        text=True,
    )
    printed = done.stdout + done.stderr
    status = int([*re.findall(r"Error (\d+)\s*$", printed), done.returncode][0])
    good = status == command.status and command.prints in printed and "Traceback" not in printed
    good = good and not (CLONE / "made").exists()
    tell(good, began, command.run)
    if not good:
        print(f"status {status}, should be {command.status} with {command.prints!r}:\n{printed}")
    return good


# In a space of its own for what is mounted, which nobody need unmount.
INSIDE = """
mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" \\
  env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 ${PIP_CERT:+PIP_CERT="$PIP_CERT"} \\
  sh -c 'cd "/srv/a clone" && python3 --version && "$@"' sh "$@"
"""


def in_another_system(folder: Path) -> int:
    """Set up, rerun and test a fresh clone in the system of a folder; how many of these failed."""
    place = folder / "srv" / "a clone"
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), place], check=True)
    for name in ("/etc/resolv.conf", "/etc/hosts", os.environ.get("PIP_CERT", "")):
        if name:  # certificates, where the network has its own
            (folder / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, folder / name[1:])
    failed = 0
    for target in ("env", "reproduce", "test"):
        began = time.monotonic()
        command = ["unshare", "--mount", "sh", "-c", INSIDE, str(folder), "make", target]
        status = subprocess.run(command, env=outside()).returncode
        tell(not status, began, f"make {target} in {folder}")
        failed += bool(status)
    return failed


def main(debian: str = "") -> None:
    if debian:
        sys.exit(in_another_system(Path(debian).resolve(strict=True)))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))
    run = {word for command in COMMANDS for word in re.findall(r"make ([a-z]+)", command.run)}
    if forgotten := targets - run - ELSEWHERE:
        sys.exit(f"Neither run here nor elsewhere: make {', make '.join(sorted(forgotten))}.")
    server, url = serve()
    prepare(url)
    wrong = [command.run for command in COMMANDS if not ends_as_it_should(command)]
    del server
    with standins.strict_server(standins.known_facts()) as url:
        found = put_stand_ins(url)
        wrong += [each.run for each in ON_STAND_INS if not ends_as_it_should(each, found)]
    sys.exit(
        f"{len(wrong)} of {len(COMMANDS) + len(ON_STAND_INS)} did not end as they should."
        if wrong
        else 0
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
