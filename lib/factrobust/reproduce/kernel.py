"""A notebook's kernel: the same surroundings under papermill, nbval and on any machine."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync

from factrobust.reproduce.mode import LAPTOP, Mode, write_atomically

CONFIG = """\
c = get_config()
c.IPKernelApp.log_level = 50  # ipykernel warns at every start that it listens on plain TCP
c.HistoryManager.enabled = False
c.InteractiveShell.colors = "nocolor"
"""


@dataclass(frozen=True)
class Kernel:
    """A started kernel, and the folder that its notebook's run works in."""

    manager: AsyncKernelManager
    work: Path

    @property
    def saved(self) -> Path:
        """Stands in for the repository's root when figures and tables are saved."""
        return self.work / "saved"

    @property
    def progress(self) -> Path:
        """Holds one line of progress: see factrobust.records.progress_bar."""
        return self.work / "progress.txt"

    @property
    def reads(self) -> Path:
        """What the kernel read; see kernel_note_reads."""
        return self.work / "reads.json"


@contextmanager
def kernels(mode: Mode) -> Iterator[Callable[[str, list[str]], Kernel]]:
    """Hands out a kernel to one notebook (path relative to the root) after the other.

    The kernels of the notebooks that come next, the second argument, are started already: they
    import while this notebook runs. Whatever is left over is stopped.
    """
    started: dict[str, Kernel] = {}
    killed: list[Kernel] = []

    def take(notebook: str, following: list[str]) -> Kernel:
        while killed:
            _stop(killed.pop())
        for name in [name for name in started if name not in (notebook, *following)]:
            # A process takes a while to end: it is waited for when the next notebook has run.
            killed.append(started.pop(name))
            run_sync(killed[-1].manager.signal_kernel)(signal.SIGKILL)
        for name in (notebook, *following):
            if name not in started:
                started[name] = _start(mode, name)
        return started[notebook]

    try:
        yield take
    finally:
        for kernel in [*killed, *started.values()]:
            _stop(kernel)


def _start(mode: Mode, notebook: str) -> Kernel:
    """Start a kernel in its notebook's folder; it goes on importing when this returns."""
    work = mode.root / "build" / "running" / mode.name / Path(notebook).with_suffix("")
    shutil.rmtree(work, ignore_errors=True)
    # No kernel specs but that of this interpreter: a user may have installed another "python3".
    manager = AsyncKernelManager(
        kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[])
    )
    kernel = Kernel(manager, work)
    kernel.saved.mkdir(parents=True)
    environment = kernel_environment(
        mode.root, notebook, out=kernel.saved, records=mode.records, profile=mode.profile
    ) | {"FACTROBUST_PROGRESS": str(kernel.progress), "FACTROBUST_READS": str(kernel.reads)}
    if mode.cluster:
        environment["FACTROBUST_CLUSTER"] = mode.cluster
    run_sync(manager.start_kernel)(
        cwd=os.fspath((mode.root / notebook).parent), env=os.environ | environment
    )
    return kernel


def _stop(kernel: Kernel) -> None:
    """End a kernel. All is on disk by now, and waiting for its goodbye can take seconds."""
    run_sync(kernel.manager.shutdown_kernel)(now=True)
    shutil.rmtree(kernel.work, ignore_errors=True)


def kernel_environment(
    root: Path, notebook: str, *, out: Path, records: str, profile: str = LAPTOP
) -> dict[str, str]:
    """Environment variables that a kernel needs.

    The library reads FACTROBUST_OUT (absolute folder that stands in for the root when figures and
    tables are saved), FACTROBUST_RECORDS ("fresh" or "replay"), FACTROBUST_NOTEBOOK (path relative
    to the root) and FACTROBUST_PROFILE.
    """
    path = [str(root / "lib"), os.environ.get("PYTHONPATH")]
    return {
        "FACTROBUST_ROOT": str(root),
        "FACTROBUST_NOTEBOOK": notebook,
        "FACTROBUST_OUT": str(out.resolve()),
        "FACTROBUST_RECORDS": records,
        "FACTROBUST_PROFILE": profile,
        "IPYTHONDIR": str(_ipython_folder(root)),
        "JUPYTER_PREFER_ENV_PATH": "1",  # not a "python3" kernel that a user installed for himself
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OPENBLAS_NUM_THREADS": "1",  # NumPy's matrices are small here: threads cost more than they do
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "TQDM_DISABLE": "1",  # bars of other libraries: their widgets differ from run to run
    }


def _ipython_folder(root: Path) -> Path:
    """Create build/ipython, the IPYTHONDIR of the kernels: no user's settings reach a notebook."""
    folder = root / "build" / "ipython"
    profile = folder / "profile_default"
    write_atomically(profile / "ipython_kernel_config.py", CONFIG)
    scripts = {f"{i}0-{name}.py": name for i, name in enumerate(("warm_up", "note_reads"))}
    for file, name in scripts.items():
        text = Path(__file__).with_name(f"kernel_{name}.py").read_text(encoding="utf-8")
        write_atomically(profile / "startup" / file, text)
    for found in (profile / "startup").glob("*.py"):
        if found.name not in scripts:  # an earlier version's, which kernels would run as well
            found.unlink(missing_ok=True)
    return folder
