"""Kernels that are forks of one process, which has imported what every notebook imports.

A fork has the imports at once, and shares their memory. Only libraries of others are imported
before, so that what a notebook reads is noted as its own.

What plain kernels would cost: the imports take 5.6 seconds of a core (4.6 to 5.0 of them in the
process, the rest to start it), where all else of 1.2 or of 5.5 from recorded answers takes some 13.
So a replay would take about 40% longer, and eight seconds more a notebook where models run."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

SERVER = [sys.executable, "-m", __name__]


def use(env: dict[str, str]) -> None:
    """From here on this process forks its kernels, and the server begins to import. Only on Linux:
    Apple's own libraries cannot be forked. `env` holds what libraries read while they are
    imported."""
    if sys.platform == "linux":
        Forked.serve(env)
        factory = KernelProvisionerFactory.instance()
        factory.provisioners["forked"] = EntryPoint("forked", f"{__name__}:Forked", "")
        factory.default_provisioner_name = "forked"


class Forked(LocalProvisioner):
    """A kernel that the server forks, as jupyter_client asks for one."""

    servers: ClassVar[dict[str, subprocess.Popen[str]]] = {}  # by the folders that they import from
    lock = threading.Lock()

    @classmethod
    def serve(cls, env: dict[str, str]) -> subprocess.Popen[str]:
        """The server of such kernels, which is started if it does not run."""
        folders = env.get("PYTHONPATH", "")
        if folders not in cls.servers or cls.servers[folders].poll() is not None:
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            cls.servers[folders] = subprocess.Popen(SERVER, env=env, **pipes)
        return cls.servers[folders]

    async def pre_launch(self, **how: Any) -> dict[str, Any]:
        # Sockets that are files of this kernel alone. A port that was free when it was chosen can
        # be taken by another program before the kernel listens there, which then dies.
        self.sockets = tempfile.mkdtemp(prefix="kernel-")
        manager: Any = self.parent
        manager.transport = "ipc"
        manager.ip = str(Path(self.sockets, "socket"))
        return await super().pre_launch(**how)

    async def cleanup(self, restart: bool = False) -> None:
        await super().cleanup(restart)
        shutil.rmtree(self.sockets, ignore_errors=True)

    async def launch_kernel(self, cmd: list[str], **how: Any) -> KernelConnectionInfo:
        env, cwd = dict(how["env"]), str(how.get("cwd") or os.getcwd())
        with Forked.lock:
            server = self.serve(env)
            requests, replies = server.stdin, server.stdout
            print(
                json.dumps([cmd[3:], cwd, env]),
                file=requests,
                flush=True,
            )
            self.pid = self.pgid = int(replies.readline()) if replies else 0
        process: Any = Fork(self.pid)
        self.process = process
        self.cwd = cwd
        return self.connection_info


class Fork:
    """What jupyter_client wants of a process that it did not start itself. Its exit status is not
    known."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    wait = poll  # it is asked for after the end alone

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def main() -> None:
    """Fork a kernel for each line that is read, a JSON list of its arguments, folder and
    environment, and print its process. Ends with its input."""
    import matplotlib.backends.backend_pdf  # noqa: F401
    import matplotlib_inline.backend_inline  # noqa: F401
    import pandas.io.formats.style  # noqa: F401
    import pandera.backends.pandas.builtin_checks  # noqa: F401, what the first validation imports
    import pyarrow.parquet  # noqa: F401
    import scipy.stats  # noqa: F401
    import seaborn  # noqa: F401
    from ipykernel import kernelapp

    if os.environ.get("FACTROBUST_RECORDS") == "fresh" and find_spec("torch"):
        import transformers.models.gemma3.modeling_gemma3
        import transformers.models.llama.modeling_llama  # noqa: F401
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system buries kernels that ended
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's, which ends this
    gc.freeze()
    # From 3.12 on Python warns of threads, which could hold a lock in the copy. Those of the
    # numeric libraries wait for work, and hold none while this waits for a line.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    for line in sys.stdin:
        arguments, cwd, env = json.loads(line)
        if pid := os.fork():
            print(pid, flush=True)
            continue
        os.setsid()  # it is signalled with the processes that it starts
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(2, 1)  # the server's output is for numbers of processes
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        # As pandas decides where it is imported in a kernel, and not before.
        sys.modules["pandas"].set_option("display.max_columns", 20)
        watched = f"--IPKernelApp.parent_handle={os.getppid()}"  # with whose end it ends
        sys.argv[1:] = arguments
        kernelapp.launch_new_instance(argv=[*arguments, watched])
        return


if __name__ == "__main__":
    main()
