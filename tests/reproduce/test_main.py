"""python -m factrobust.reproduce on a tiny repository whose notebooks really run."""

import fcntl
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import psutil
import pytest

from factrobust.reproduce.__main__ import main

Write = Callable[..., Path]

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
    """The notebooks that a run says it ran."""
    return [line.split()[1] for line in text.splitlines() if line.startswith("[")]


def test_runs_what_it_is_asked_for_and_says_what_moved(root, write, capsys):
    write("1/a.ipynb", SCALED, SAVE_SCALED, "open('../../data/rows.csv').readline()")
    write("1/b.ipynb", PLAIN)
    assert main([], root=root) == 0
    assert ran(capsys.readouterr().out) == ["notebooks/1/a.ipynb", "notebooks/1/b.ipynb"]
    assert (root / "figures/scaled.csv").read_text() == "x\n2.0\n"
    first = files(root)
    assert b"2.0" in first["notebooks/1/a.ipynb"]
    assert b"x,y" in first["notebooks/1/a.ipynb"]  # a kernel runs in its notebook's folder

    # A rerun gives the same bytes.
    assert main(["--only", "*a.ipynb"], root=root) == 0
    out = capsys.readouterr().out
    assert "2 tables.\nNo number moved by more than 1e-06 (relative)." in out
    assert files(root) == first

    # Two at once, too.
    assert main(["--replay"], root=root) == 0
    assert files(root) == first
    assert ran(capsys.readouterr().out) == ["notebooks/1/a.ipynb", "notebooks/1/b.ipynb"]

    (root / "lib/toyscale.py").write_text("SCALE = 2.5\n")
    assert main(["--only", "*/a.ipynb"], root=root) == 0
    out = capsys.readouterr().out
    assert ran(out) == ["notebooks/1/a.ipynb"]
    assert "figures/scaled.csv: row 1, column x: 2 -> 2.5 (0.25 relative)" in out


def test_a_failure_names_the_cell_and_leaves_everything_as_it_was(root, write, capsys):
    path = write("1.ipynb", PLAIN, "# the culprit\n1 / 0", "print('never')")
    earlier = nbformat.read(path, as_version=4)
    earlier.cells[-1].outputs = [nbformat.v4.new_output("stream", text="of an earlier run")]
    nbformat.write(earlier, path)
    write("2.ipynb", PLAIN)
    before = files(root)
    assert main([], root=root) == 1
    captured = capsys.readouterr()
    assert "FAILED notebooks/1.ipynb, In [2]: # the culprit" in captured.err
    assert "ZeroDivisionError: division by zero" in captured.err
    assert "\x1b[" not in captured.err
    assert ran(captured.out) == ["notebooks/1.ipynb"]
    assert files(root) == before  # no figure, though cell 2 saved one
    failed = root / "build/failed/laptop/notebooks/1.ipynb"
    assert "ZeroDivisionError" in failed.read_text()
    assert "earlier" not in failed.read_text()
    # When two run at once, the second may have ended first: its results count for nothing, too.
    assert main(["--replay"], root=root) == 1
    assert files(root) == before
    assert main(["--only", "*2*"], root=root) == 0
    assert (root / "figures/plain.csv").exists()


def test_a_notebook_beyond_the_models_is_left_out(root, write, capsys):
    lacks = "class LacksError(ValueError):\n    pass\n\nraise LacksError('m: no logits')"
    write("1.ipynb", lacks)
    write("2.ipynb", PLAIN)
    assert main([], root=root) == 1
    captured = capsys.readouterr()
    assert "FAILED notebooks/1.ipynb, In [1]: class LacksError" in captured.err
    assert "\nLacksError: m: no logits\nThe notebook with" in captured.err  # no traceback
    assert captured.err.endswith(
        "Left out, because they need more than the models can do: notebooks/1.ipynb.\n"
    )
    assert ran(captured.out) == ["notebooks/1.ipynb", "notebooks/2.ipynb"]
    assert (root / "figures/plain.csv").exists()


def test_a_dead_kernel_and_a_broken_notebook_are_failures_too(root, write, capsys):
    write("1.ipynb", "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)")
    assert main([], root=root) == 1
    error = capsys.readouterr().err
    assert "FAILED notebooks/1.ipynb, the kernel died" in error
    (root / "notebooks/1.ipynb").write_text("<<<<<<< HEAD\n")
    assert main([], root=root) == 1
    assert "1.ipynb is not a Jupyter notebook" in capsys.readouterr().err


def test_a_notebook_edited_while_it_runs_is_not_overwritten(root, write, capsys):
    edit = "from pathlib import Path\np = Path('1.ipynb')\np.write_text(p.read_text().replace('# A', '# My'))"
    path = write("1.ipynb", PLAIN, edit)
    assert main([], root=root) == 1
    assert "was edited while it ran" in capsys.readouterr().err
    assert "# My notebook" in path.read_text()
    assert not (root / "figures").exists()


def test_a_profile_hands_over_parameters_and_leaves_the_committed_files(root, write, capsys):
    profile = root / "profiles/tiny.yaml"
    profile.parent.mkdir()
    profile.write_text("defaults:\n  n: 3\n")
    variables = [f"FACTROBUST_{name}" for name in ("NOTEBOOK", "RECORDS", "PROFILE", "OUT")]
    show = f"import os\nprint(n, *(os.environ[name] for name in {variables}))"
    write("1.ipynb", PLAIN, show, parameters="n: int = 1")
    before = files(root)
    assert main(["--profile", "tiny"], root=root) == 0
    assert "build/tiny/" in capsys.readouterr().out
    assert files(root) == before
    executed = (root / "build/tiny/notebooks/1.ipynb").read_text()
    assert f"3 notebooks/1.ipynb fresh tiny {root}/build/running" in executed
    assert "injected-parameters" in executed
    assert (root / "build/tiny/figures/plain.csv").exists()
    assert main(["--replay"], root=root) == 0
    assert "1 notebooks/1.ipynb replay laptop" in (root / "notebooks/1.ipynb").read_text()


def test_progress_is_shown_while_a_notebook_runs(root, write, capsys, monkeypatch):
    monkeypatch.setattr("factrobust.reproduce.__main__.SHOW_SECONDS", 0.2)
    tell = "import os, time\nfrom pathlib import Path\nfile = Path(os.environ['FACTROBUST_OUT'], 'progress.txt')"
    line = "file.write_text('\\rsample 1/9\\rsample 2/9, 1 min left')"
    write("1.ipynb", f"{tell}\n{line}\ntime.sleep(1)")
    assert main([], root=root) == 0
    assert re.search(r"^ +00:0\d  sample 2/9, 1 min left$", capsys.readouterr().out, re.MULTILINE)


def test_bad_requests(root, write, capsys):
    write("1.ipynb", PLAIN)
    assert main(["--only", "nothing*"], root=root) == 2
    assert "matches 'nothing*'" in capsys.readouterr().err
    assert main(["--profile", "papr"], root=root) == 2
    assert "There is no profile 'papr'" in capsys.readouterr().err
    lock = root / "build/reproduce.lock"
    lock.parent.mkdir()
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert main([], root=root) == 2
    assert "is at work in this folder: wait for it." in capsys.readouterr().err


RUN = "import sys; from pathlib import Path; from factrobust.reproduce.__main__ import main; sys.exit(main([], root=Path(sys.argv[1])))"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stop_in_the_middle_leaves_no_trace_and_no_kernel(root, write, number):
    wait = "import os, time\nfrom pathlib import Path\nbuild = Path('../build')\n(build / 'pid').write_text(str(os.getpid()))"
    write("1.ipynb", PLAIN, wait, "if not (build / 'go').exists(): time.sleep(60)")
    before = files(root)
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
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
