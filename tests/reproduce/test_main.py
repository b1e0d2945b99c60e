"""python -m factrobust.reproduce on a tiny repository whose notebooks really run."""

import fcntl
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from jupyter_client.channels import HBChannel

from factrobust.models.cluster import connect
from factrobust.reproduce.__main__ import main

SCALED = "import toyscale\nfrom toysave import save"
SAVE_SCALED = "save('scaled.csv', f'x\\n{toyscale.SCALE}\\n')\nprint(toyscale.SCALE)"
PLAIN = "from toysave import save\nsave('plain.csv', 'x\\n1.5\\n')"


def files(root: Path) -> dict[str, bytes]:
    """What a commit would hold."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "build" not in path.parts and "__pycache__" not in path.parts
    }


def ran(text: str) -> list[str]:
    return [line.split()[1] for line in text.splitlines() if line.startswith("[")]


@pytest.fixture
def run(root, capsys):
    """The command line in the repository: its status, and what it says on stdout and stderr."""
    return lambda *arguments: (main([*arguments], root=root), *capsys.readouterr())


def test_runs_what_it_is_asked_for_and_says_what_moved(root, write, run):
    write("1/a.ipynb", SCALED, SAVE_SCALED, "open('../../data/rows.csv').readline()")
    write("1/b.ipynb", PLAIN)
    status, out, _ = run()
    assert (status, ran(out)) == (0, ["notebooks/1/a.ipynb", "notebooks/1/b.ipynb"])
    assert (root / "figures/scaled.csv").read_text() == "x\n2.0\n"
    first = files(root)
    assert b"2.0" in first["notebooks/1/a.ipynb"]
    assert b"x,y" in first["notebooks/1/a.ipynb"]  # a kernel runs in its notebook's folder
    # No client goes on sending heartbeats to ports that a later kernel may be given.
    assert not any(isinstance(thread, HBChannel) for thread in threading.enumerate())

    # A rerun gives the same bytes, also two at once.
    status, out, _ = run("--replay")
    assert (status, ran(out)) == (0, ["notebooks/1/a.ipynb", "notebooks/1/b.ipynb"])
    assert "2 tables.\nNo number moved by more than 1e-06 (relative)." in out
    assert files(root) == first

    (root / "lib/toyscale.py").write_text("SCALE = 2.5\n")
    status, out, _ = run("--only", "*/a.ipynb")
    assert (status, ran(out)) == (0, ["notebooks/1/a.ipynb"])
    assert "figures/scaled.csv: row 1, column x: 2 -> 2.5 (0.25 relative)" in out


def test_a_failure_names_the_cell_and_leaves_everything_as_it_was(root, write, run):
    path = write("1.ipynb", PLAIN, "# the culprit\n1 / 0", "print('never')")
    earlier = nbformat.read(path, as_version=4)
    earlier.cells[-1].outputs = [nbformat.v4.new_output("stream", text="of an earlier run")]
    nbformat.write(earlier, path)
    write("2.ipynb", PLAIN)
    before = files(root)
    status, out, error = run()
    assert "FAILED notebooks/1.ipynb, In [2]: # the culprit" in error
    assert "ZeroDivisionError: division by zero" in error
    assert "\x1b[" not in error
    assert (status, ran(out)) == (1, ["notebooks/1.ipynb"])
    assert files(root) == before  # no figure, though cell 2 saved one
    failed = (root / "build/failed/laptop/notebooks/1.ipynb").read_text()
    assert "ZeroDivisionError" in failed
    assert "earlier" not in failed
    # When two run at once, the second may have ended first: its results count for nothing, too.
    assert run("--replay")[0] == 1
    assert files(root) == before
    assert run("--only", "*2*")[0] == 0
    assert (root / "figures/plain.csv").exists()


def test_what_says_nothing_of_other_notebooks_leaves_out_one_alone(root, write, run):
    """A model that cannot do it, too few cases; under a profile that is not committed any error."""
    for name in ("LacksError", "TooFewError"):
        write("1.ipynb", f"class {name}(ValueError):\n    pass\n\nraise {name}('m: no logits')")
        write("2.ipynb", PLAIN)
        status, out, error = run()
        assert (status, ran(out)) == (1, ["notebooks/1.ipynb", "notebooks/2.ipynb"])
        assert f"FAILED notebooks/1.ipynb, In [1]: class {name}" in error
        assert f"\n{name}: m: no logits\nThe notebook with" in error  # no traceback
        assert error.endswith("Left out, for the reasons above: notebooks/1.ipynb.\n")
        assert (root / "figures/plain.csv").exists()

    (root / "profiles/tiny.yaml").write_text("{}")
    for cell, stops in {"1 / 0": False, "raise ModelError('no weights')": True}.items():
        write("1.ipynb", f"class ModelError(ValueError):\n    pass\n\n{cell}")
        status, out, error = run("--profile", "tiny")
        assert (status, len(ran(out))) == (1, 1 if stops else 2)
        assert ("Left out" in error) is not stops
    assert run()[0] == 1  # the committed profile stops at the first


def test_a_dead_kernel_and_a_broken_notebook_are_failures_too(root, write, run):
    write("1.ipynb", "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)")
    status, _, error = run()
    assert status == 1
    assert "FAILED notebooks/1.ipynb, the kernel died" in error
    (root / "notebooks/1.ipynb").write_text("<<<<<<< HEAD\n")
    status, _, error = run()
    assert status == 1
    assert "1.ipynb is not a Jupyter notebook" in error


def test_a_notebook_edited_while_it_runs_is_not_overwritten(root, write, run):
    edit = "from pathlib import Path\np = Path('1.ipynb')\np.write_text(p.read_text().replace('# A', '# My'))"
    path = write("1.ipynb", PLAIN, edit)
    status, _, error = run()
    assert status == 1
    assert "was edited while it ran" in error
    assert "# My notebook" in path.read_text()
    assert not (root / "figures").exists()


def test_a_profile_hands_over_parameters_and_leaves_the_committed_files(root, write, run):
    (root / "profiles/tiny.yaml").write_text("defaults:\n  n: 3\n")
    variables = [f"FACTROBUST_{name}" for name in ("NOTEBOOK", "RECORDS", "PROFILE", "OUT")]
    show = f"import os\nprint(n, *(os.environ[name] for name in {variables}))"
    write("1.ipynb", PLAIN, show, parameters="n: int = 1")
    before = files(root)
    status, out, _ = run("--profile", "tiny")
    assert status == 0
    assert "build/tiny/" in out
    assert files(root) == before
    executed = (root / "build/tiny/notebooks/1.ipynb").read_text()
    assert f"3 notebooks/1.ipynb fresh tiny {root}/build/running" in executed
    assert "injected-parameters" in executed
    assert (root / "build/tiny/figures/plain.csv").exists()
    assert run("--replay")[0] == 0
    assert "1 notebooks/1.ipynb replay laptop" in (root / "notebooks/1.ipynb").read_text()


def test_progress_is_shown_while_a_notebook_runs(write, run, monkeypatch):
    monkeypatch.setattr("factrobust.reproduce.__main__.SHOW_SECONDS", 0.2)
    tell = "import os, time\nfrom pathlib import Path\nfile = Path(os.environ['FACTROBUST_OUT'], 'progress.txt')"
    line = "file.write_text('\\rsample 1/9\\rsample 2/9, 1 min left')"
    write("1.ipynb", f"{tell}\n{line}\ntime.sleep(1)")
    status, out, _ = run()
    assert status == 0
    assert re.search(r"^ +00:0\d  sample 2/9, 1 min left$", out, re.MULTILINE)


def test_bad_requests(root, write, run):
    write("1.ipynb", PLAIN)
    for asked, sentence in {
        ("--only", "nothing*"): "matches 'nothing*'",
        ("--profile", "papr"): "There is no profile 'papr'",
        ("--cluster", "nowhere"): "no Dask scheduler answered at nowhere",
    }.items():
        status, _, error = run(*asked)
        assert (status, sentence in error) == (2, True), error
    with (root / "build/reproduce.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        status, _, error = run()
    assert status == 2
    assert "is at work in this folder: wait for it." in error


ASK = """
from pathlib import Path
from factrobust import load_model
from factrobust.models.records import Records
model = load_model({folder!r}, records=Records(Path("answers.sqlite").resolve()))
print([g.text for g in model.generate(["why?", "who?"])])
"""


def test_a_notebook_is_answered_by_the_workers(root, write, toy_model, threads, capfd):
    """Its kernel commits the answers, and shows nothing but them; a cluster of others goes on."""
    toy, folder = toy_model({"?": {" a": 1.0}, " a": {".": 1.0}}), root / "toy"
    toy.body.network.save_pretrained(folder)
    toy.tokenizer.save_pretrained(folder)
    path = write("1.ipynb", ASK.format(folder=str(folder)))
    address = threads(1).scheduler_address
    capfd.readouterr()
    assert main(["--cluster", address], root=root) == 0
    assert capfd.readouterr().err == ""
    connect(address).close()
    assert (root / "notebooks" / "answers.sqlite").is_file()
    [output] = nbformat.read(path, as_version=4).cells[1].outputs
    assert output.text == "[' a.', ' a.']\n"


RUN = "import sys; from pathlib import Path; from factrobust.reproduce.__main__ import main; sys.exit(main([], root=Path(sys.argv[1])))"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stop_in_the_middle_leaves_no_trace_and_no_kernel(root, write, number):
    wait = "import os, time\nfrom pathlib import Path\nbuild = Path('../build')\n(build / 'pid').write_text(str(os.getpid()))"
    write("1.ipynb", PLAIN, wait, "if not (build / 'go').exists(): time.sleep(60)")
    before = files(root)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", RUN, str(root)], **pipes)
    pid = root / "build/pid"
    while not (pid.exists() and pid.read_text()):
        time.sleep(0.1)
    time.sleep(0.2)  # the cell that sleeps has begun or is about to
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert err == ""
        assert out.splitlines()[-1].startswith("Stopped.")
    assert files(root) == before
    deadline = time.monotonic() + 10
    while alive(int(pid.read_text())) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(int(pid.read_text()))

    (root / "build/go").touch()
    assert main([], root=root) == 0
    assert (root / "figures/plain.csv").exists()


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie, which waits to be reaped, does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
