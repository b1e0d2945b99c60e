"""install.py: what it tells of pip's lines, and a whole set-up with a package of our own, without a
network."""

import importlib.util
import json
import os
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
    ("lines", "told"),
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
def test_a_line_says_what_pip_does_and_how_far_it_is(lines, told):
    assert install.doing(SAID[:lines], fetched=31.4, installed=2) == told


@pytest.mark.parametrize("index", ["https://a.org/cu130", ""])
def test_torch_comes_from_the_index_that_is_named_or_from_none(index, monkeypatch):
    monkeypatch.setenv("TORCH_INDEX", index)
    where = ["--extra-index-url", index, "--retries", "2", "--timeout", "10"] if index else []
    wanted = ["-c", "constraints.txt", "torch"]
    assert install.steps_of("models")[0].words == ["--no-deps", *where, *wanted]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The folder that one stands in: a package, `tiny`, lies there in a wheel, and there is no
    network."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": ".",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_CONSTRAINT": "",
        "PIP_NO_CACHE_DIR": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with zipfile.ZipFile("tiny-1.0-py3-none-any.whl", "w") as file:
        about = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
        file.writestr("tiny.py", "")
        file.writestr("tiny-1.0.dist-info/METADATA", about)
        wheel = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        file.writestr("tiny-1.0.dist-info/WHEEL", wheel)
        file.writestr("tiny-1.0.dist-info/RECORD", "")
    return tmp_path


def ask_for(package, monkeypatch):
    step = install.Step("a tiny package", [package], 1, 2)
    monkeypatch.setattr(install, "steps_of", lambda kind: [step])
    install.main(Path("an environment"), "book")


def test_an_environment_is_made_a_line_a_step(project, monkeypatch, capsys):
    """And kept when a later step fails; what was made by the one that fails is gone."""
    monkeypatch.setattr(install, "SHOW_SECONDS", 0.2)
    with pytest.raises(install.SetupError, match="No matching distribution found for huge") as why:
        ask_for("huge", monkeypatch)
    assert len(str(why.value).splitlines()) < install.SHOWN
    assert [path.name for path in project.iterdir() if path.is_dir()] == ["build"]

    capsys.readouterr()
    ask_for("tiny", monkeypatch)
    said = capsys.readouterr().out.splitlines()
    told = [line for line in said if line.startswith("[setup]")]
    assert [re.sub(r"in \d+ s", "in N s", line) for line in told] == [
        "[setup] an environment takes about 2 s, the time to download 1 MB, and 0.2 GB more of disk",
        f"[setup] making an environment with Python {sys.version.split()[0]}",
        "[setup] 1/1 a tiny package: 1 MB, then about 2 s",
        "[setup] done in N s",
    ]
    progress = [line for line in said if line not in told]
    assert progress
    assert all(re.fullmatch(r" {8}[ \d]{3} s  (pip is starting|\S.*)", x) for x in progress)
    python = project / "an environment" / "bin" / "python"
    subprocess.run([python, "-c", "import tiny"], check=True)
    settings = "share/jupyter/lab/settings/overrides.json"
    held = json.loads((project / "an environment" / settings).read_text())
    assert held == install.SETTINGS

    with pytest.raises(install.SetupError):
        ask_for("huge", monkeypatch)
    subprocess.run([python, "-c", "import tiny"], check=True)


# ---- GPUs ------------------------------------------------------------------------------------------

LISTED = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n"


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A function that installs an `nvidia-smi` which says this and ends so."""

    def made(says: str = LISTED, status: int = 0) -> None:
        folder = tmp_path / "driver"
        folder.mkdir()
        file = folder / "nvidia-smi"
        file.write_text(f"#!/bin/sh\nprintf '{says}'\nexit {status}\n")
        file.chmod(0o755)
        monkeypatch.setenv("PATH", os.pathsep.join([str(folder), os.environ["PATH"]]))
        monkeypatch.delenv("TORCH_INDEX", raising=False)
        monkeypatch.setattr(install, "CPU_INDEX", CPU)  # that of Linux

    return made


CPU = "https://download.pytorch.org/whl/cpu"


def test_where_there_is_a_gpu_torch_comes_with_cuda(driver, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    monkeypatch.setattr(install, "CPU_INDEX", CPU)
    assert install.gpus() == []
    assert CPU in install.torch("torch").words
    monkeypatch.undo()
    driver()
    assert install.gpus() == ["NVIDIA H100 80GB HBM3"] * 2
    step = install.torch("torch")
    assert step.words == ["--no-deps", "torch"]
    assert step.megabytes == 3000
    install.tell_of_gpus(install.torch_index())
    monkeypatch.setenv("TORCH_INDEX", CPU)
    assert install.torch("torch").megabytes == 190
    install.tell_of_gpus(install.torch_index())
    told = capsys.readouterr().out.splitlines()
    start = "[setup] 2 GPUs (NVIDIA H100 80GB HBM3): "
    assert told[0].startswith(
        f"{start}torch comes with CUDA, 3 GB more; for the CPU alone TORCH_INDEX="
    )
    assert told[1] == f"{start}but torch for the CPU alone is installed, as TORCH_INDEX says"


def test_torch_that_does_not_see_the_gpu_is_told(driver, capsys):
    driver()
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
        assert (project / "an environment" / ".torch-index").read_text().strip() == (
            index or install.CPU_INDEX
        )
        given.clear()
