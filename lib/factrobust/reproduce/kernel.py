"""The surroundings of a notebook's kernel: the same under papermill, nbval and on any machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from factrobust.reproduce.mode import LAPTOP, write_atomically

CONFIG = """\
c = get_config()
c.IPKernelApp.log_level = 50  # ipykernel warns at every start that it listens on plain TCP
c.HistoryManager.enabled = False
c.InteractiveShell.colors = "nocolor"
"""


def ipython_folder(root: Path) -> Path:
    """Create build/ipython, the IPYTHONDIR of the kernels: no user's settings reach a notebook."""
    folder = root / "build" / "ipython"
    profile = folder / "profile_default"
    start_up = Path(__file__).with_name("kernel_startup.py").read_text(encoding="utf-8")
    write_atomically(profile / "ipython_kernel_config.py", CONFIG)
    write_atomically(profile / "startup" / "00-note-reads.py", start_up)
    return folder


@contextmanager
def kernel_environment(
    root: Path,
    notebook: str,
    *,
    out: Path,
    records: str,
    profile: str = LAPTOP,
    progress: Path | None = None,
    reads: Path | None = None,
) -> Iterator[None]:
    """Environment variables for a kernel that is started in this block.

    The library reads FACTROBUST_OUT (absolute folder that stands in for the root when figures and
    tables are saved), FACTROBUST_RECORDS ("fresh" or "replay"), FACTROBUST_NOTEBOOK (path relative
    to the root), FACTROBUST_PROFILE, and FACTROBUST_PROGRESS: a file for one line of progress.
    """
    old = dict(os.environ)
    changes = {
        "FACTROBUST_ROOT": str(root),
        "FACTROBUST_NOTEBOOK": notebook,
        "FACTROBUST_OUT": str(out.resolve()),
        "FACTROBUST_RECORDS": records,
        "FACTROBUST_PROFILE": profile,
        "IPYTHONDIR": str(ipython_folder(root)),
        "JUPYTER_PREFER_ENV_PATH": "1",  # not a "python3" kernel that a user installed for himself
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(root / "lib"), old.get("PYTHONPATH")])),
        "TQDM_DISABLE": "1",  # bars of other libraries: their widgets differ from run to run
    }
    changes |= {"FACTROBUST_PROGRESS": str(progress)} if progress else {}
    changes |= {"FACTROBUST_READS": str(reads)} if reads else {}
    try:
        for name in ("FACTROBUST_PROGRESS", "FACTROBUST_READS"):
            os.environ.pop(name, None)
        os.environ.update(changes)
        yield
    finally:
        os.environ.clear()
        os.environ.update(old)
