"""install.py: what it tells of pip's lines, and a whole set-up with a package of our own, without a
network."""

import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from factrobust.paths import ROOT

spec = importlib.util.spec_from_file_location("install", ROOT / "install.py")
install = importlib.util.module_from_spec(spec)
spec.loader.exec_module(install)

# As pip 23 printed them.
SAID = """\
Looking in indexes: https://pypi.org/simple, https://download.pytorch.org/whl/cpu
Obtaining file:///home/a/factrobust
  Preparing editable metadata (pyproject.toml): finished with status 'done'
Collecting numpy>=2 (from factrobust==0.1.0)
  Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (6.6 kB)
Collecting pandas>=3 (from factrobust==0.1.0)
  Downloading https://files.org/a/jupyterlab_pygments-0.3.0-py3-none-any.whl (12.4 MB)
  Using cached types_PyYAML-6.0.12-py3-none-any.whl (20 kB)
Installing collected packages: numpy, pandas, jupyterlab-pygments
""".splitlines()


@pytest.mark.parametrize(
    ("lines", "report"),
    [
        (0, "pip is starting"),
        (3, "Preparing editable metadata (pyproject.toml): finished with status 'done'"),
        (4, "looking up numpy: 1 packages so far"),
        (5, "looking up numpy: 1 packages so far"),  # what it is made of is no package
        (6, "looking up pandas: 2 packages so far"),
        (7, "fetching jupyterlab_pygments (12.4 MB): 31 MB so far"),
        (8, "fetching types_PyYAML (20 kB): 31 MB so far"),
        (9, "installing packages: 2 of 3"),
    ],
)
def test_a_line_says_what_pip_does_and_how_far_it_is(lines, report):
    assert install.doing(SAID[:lines], fetched=31.4, installed=2) == report


@pytest.mark.parametrize("index", ["https://a.org/cu130", ""])
def test_torch_comes_from_the_index_that_is_named_or_from_none(index, monkeypatch):
    monkeypatch.setenv("TORCH_INDEX", index)
    where = ["--extra-index-url", index, "--retries", "2", "--timeout", "10"] if index else []
    wanted = ["-c", "constraints.txt", "torch"]
    assert install.steps_of("models")[0].words == ["--no-deps", *where, *wanted]


TINY = {
    "tiny.py": "",
    "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
    "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "tiny-1.0.dist-info/RECORD": "",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The folder that one stands in: a package, `tiny`, lies there in a wheel, and there is no
    network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", ".")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_CONSTRAINT", "")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    with zipfile.ZipFile("tiny-1.0-py3-none-any.whl", "w") as file:
        for name, text in TINY.items():
            file.writestr(name, text)
    return tmp_path


def ask_for(package, monkeypatch):
    step = install.Step("a tiny package", [package], 1, 2)
    monkeypatch.setattr(install, "steps_of", lambda kind: [step])
    install.main(Path("an environment"), "book")


def test_an_environment_is_made_a_line_a_step(project, monkeypatch, capsys):
    """And kept when a later step fails; what was made by the one that fails is gone."""
    monkeypatch.setattr(install, "SHOW_SECONDS", 0.2)
    environment = project / "an environment"
    imports_tiny = [environment / "bin" / "python", "-c", "import tiny"]
    with pytest.raises(install.SetupError, match="No matching distribution found for huge") as why:
        ask_for("huge", monkeypatch)
    assert len(str(why.value).splitlines()) < install.SHOWN
    assert not environment.exists()

    capsys.readouterr()
    ask_for("tiny", monkeypatch)
    printed = re.sub(r"done in \d+ s", "done", capsys.readouterr().out)
    takes, making, step, *progress, done = printed.splitlines()
    assert takes.startswith("[setup] an environment takes about 2 s, the time to download 1 MB, ")
    assert takes.endswith("and 0.2 GB more of disk")
    assert making == f"[setup] making an environment with Python {platform.python_version()}"
    assert step == "[setup] 1/1 a tiny package: 1 MB, then about 2 s"
    assert done == "[setup] done"
    assert progress
    for line in progress:
        assert re.fullmatch(r" {8}[ \d]{3} s  (pip is starting|\S.*)", line)
    subprocess.run(imports_tiny, check=True)
    settings = environment / "share/jupyter/lab/settings/overrides.json"
    assert json.loads(settings.read_text()) == install.SETTINGS

    with pytest.raises(install.SetupError):
        ask_for("huge", monkeypatch)
    subprocess.run(imports_tiny, check=True)


# ---- GPUs ------------------------------------------------------------------------------------------

CPU = "https://download.pytorch.org/whl/cpu"
# What NVIDIA's driver says of two GPUs.
NVIDIA_SMI = """#!/bin/sh
echo 'GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)'
echo 'GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)'
"""


@pytest.fixture
def linux(tmp_path, monkeypatch):
    """The empty folder of all programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    monkeypatch.setattr(install, "CPU_INDEX", CPU)
    return tmp_path


@pytest.fixture
def two_gpus(linux):
    driver = linux / "nvidia-smi"
    driver.write_text(NVIDIA_SMI)
    driver.chmod(0o755)


@pytest.mark.usefixtures("linux")
def test_without_a_gpu_torch_is_for_the_cpu():
    assert install.gpus() == []
    assert CPU in install.torch("torch").words


@pytest.mark.usefixtures("two_gpus")
def test_where_there_is_a_gpu_torch_comes_with_cuda(monkeypatch, capsys):
    assert install.gpus() == ["NVIDIA H100 80GB HBM3"] * 2
    step = install.torch("torch")
    assert step.words == ["--no-deps", "torch"]
    assert step.megabytes == 3000
    install.tell_of_gpus(install.torch_index())
    monkeypatch.setenv("TORCH_INDEX", CPU)
    assert install.torch("torch").megabytes == 190
    install.tell_of_gpus(install.torch_index())
    printed = capsys.readouterr().out.replace("[setup] 2 GPUs (NVIDIA H100 80GB HBM3): ", "")
    with_cuda, for_cpu = printed.splitlines()
    assert with_cuda.startswith("torch comes with CUDA, 3 GB more; for the CPU alone TORCH_INDEX=")
    assert for_cpu == "but torch for the CPU alone is installed, as TORCH_INDEX says"


@pytest.mark.usefixtures("two_gpus")
def test_torch_that_does_not_see_the_gpu_is_told(capsys):
    install.check_gpus(Path(sys.executable), CPU)  # as it was asked for
    assert capsys.readouterr().out == ""
    install.check_gpus(Path("/bin/false"), "")
    assert "WARNING: torch does not see the GPU" in capsys.readouterr().out
    install.check_gpus(Path("/bin/true"), "")
    assert capsys.readouterr().out == ""


def test_torch_of_another_index_is_installed_again(project, monkeypatch):
    """The environment keeps which one it has; the step of torch alone is forced."""
    given = []
    torch = install.Step("torch", ["--no-deps", "torch"], 1, 1)
    others = install.Step("others", ["tiny"], 1, 1)
    monkeypatch.setattr(install, "steps_of", lambda kind: [torch, others])
    monkeypatch.setattr(install, "pip", lambda python, step: given.append(step.words[0]))
    monkeypatch.setattr(install, "gpus", list)
    for index, forced in (("a", True), ("a", False), ("b", True), (None, True), (None, False)):
        # The first has no stamp, as those of earlier versions. The last are the CPU's.
        monkeypatch.delenv("TORCH_INDEX", raising=False)
        if index:
            monkeypatch.setenv("TORCH_INDEX", index)
        install.main(Path("an environment"), "models")
        assert given == ["--force-reinstall" if forced else "--no-deps", "tiny"]
        stamp = (project / "an environment" / ".torch-index").read_text()
        assert stamp.strip() == (index or install.CPU_INDEX)
        given.clear()
