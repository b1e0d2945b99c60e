"""A forked kernel against one that was started: what a notebook can tell of them is the same."""

import os
import sys

import pytest
from jupyter_client.manager import start_new_kernel
from jupyter_client.provisioning import KernelProvisionerFactory

from factrobust.reproduce import forks

TOLD = """
import os, pandas as pd, random, signal, sys
print(os.environ.get("MARK"), os.getcwd(), os.environ["PYTHONHASHSEED"], hash("a"), sys.argv[1:2])
print(pd.options.display.max_columns, pd.options.display.width, signal.getsignal(signal.SIGINT))
print("seaborn" in sys.modules, os.getpid() == os.getpgid(0))
print(*(name for name in sys.modules if name.startswith("factrobust")))
"""


@pytest.fixture
def usual():
    factory = KernelProvisionerFactory.instance()
    before = factory.default_provisioner_name
    factory.default_provisioner_name = "local-provisioner"
    yield
    factory.default_provisioner_name = before


def told(tmp_path, mark, monkeypatch):
    """What a kernel prints, and whether it is gone when it was shut down."""
    monkeypatch.setenv("MARK", mark)
    manager, client = start_new_kernel(cwd=str(tmp_path))
    texts = []
    try:
        client.execute_interactive(
            TOLD, timeout=60, output_hook=lambda m: texts.append(m["content"].get("text", ""))
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert not manager.is_alive()
    return "".join(texts).splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone")
def test_a_fork_is_as_a_kernel_of_its_own(tmp_path, monkeypatch, usual):
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    started = told(tmp_path, "one", monkeypatch)
    forks.use(dict(os.environ))
    one, other = (told(tmp_path, mark, monkeypatch) for mark in ("one", "two"))
    assert one[:2] == started[:2]
    assert one[0].startswith(f"one {tmp_path} 0 ")
    assert other[0] == one[0].replace("one", "two", 1)
    assert started[2] == "False True"
    assert one[2] == "True True"
    assert {*one[3].split()} <= {"factrobust", "factrobust.reproduce"}  # which read nothing
