"""python -m factrobust.reproduce on a tiny repository whose notebooks really run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture
def two(root: Path, write: Write) -> Path:
    """A repository with two notebooks, of which only the first reads toyscale."""
    write("1/a.ipynb", SCALED, "print(open('../../data/rows.csv').read())", SAVE_SCALED)
    write("1/b.ipynb", PLAIN)
    return root


def test_runs_what_changed_and_nothing_else(
    two: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], root=two) == 0
    assert ran(capsys.readouterr().out) == ["notebooks/1/a.ipynb", "notebooks/1/b.ipynb"]
    assert (two / "figures/scaled.csv").read_text() == "x\n2.0\n"
    first = files(two)
    assert b"2.0" in first["notebooks/1/a.ipynb"]

    # Nothing changed, whatever the clock says: nothing runs.
    for path in two.rglob("*.py"):
        os.utime(path)
    assert main([], root=two) == 0
    assert capsys.readouterr().out == "2 notebooks up to date\n"

    # A forced rerun gives the same bytes.
    assert main(["--force", "--only", "*a.ipynb"], root=two) == 0
    assert "nothing changed" in capsys.readouterr().out
    assert files(two) == first

    # A library file: only the notebook that imports it; the summary says what moved.
    (two / "lib/toyscale.py").write_text("SCALE = 2.5\n")
    assert main([], root=two) == 0
    out = capsys.readouterr().out
    assert ran(out) == ["notebooks/1/a.ipynb"]
    assert "lib/toyscale.py changed" in out
    assert "1 number in 1 table moved" in out
    assert "figures/scaled.csv, row 1, column x: 2 -> 2.5, 0.25 relative" in out

    # A data file that it opened, and a figure that somebody edited.
    (two / "data/rows.csv").write_text("x,y\n")
    (two / "figures/plain.csv").write_text("x\n9\n")
    assert main(["--status"], root=two) == 0
    assert capsys.readouterr().out.splitlines() == [
        "notebooks/1/a.ipynb: data/rows.csv changed",
        "notebooks/1/b.ipynb: figures/plain.csv was changed or removed",
    ]
    assert main([], root=two) == 0
    assert (two / "figures/plain.csv").read_text() == "x\n1.5\n"
    capsys.readouterr()

    # The notebook itself.
    write("1/b.ipynb", PLAIN, "print('more')")
    assert main([], root=two) == 0
    out = capsys.readouterr().out
    assert ran(out) == ["notebooks/1/b.ipynb"]
    assert "its cells changed" in out


def test_a_notebook_follows_the_figures_data_that_it_reads(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("1.ipynb", SCALED, SAVE_SCALED)
    write("2.ipynb", "print(open('../figures/scaled.csv').read())")
    assert main([], root=root) == 0
    (root / "lib/toyscale.py").write_text("SCALE = 2.0  # the same value\n")
    capsys.readouterr()
    assert main([], root=root) == 0
    assert ran(capsys.readouterr().out) == ["notebooks/1.ipynb"]  # early cut-off
    (root / "lib/toyscale.py").write_text("SCALE = 3.0\n")
    assert main([], root=root) == 0
    assert ran(capsys.readouterr().out) == ["notebooks/1.ipynb", "notebooks/2.ipynb"]


def test_a_notebook_whose_input_was_edited_while_it_ran_runs_again(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    edit = "from pathlib import Path\nrows = Path('../data/rows.csv')\nold = rows.read_text()"
    write("1.ipynb", edit, "rows.write_text('x\\n7\\n') if old != 'x\\n7\\n' else None")
    assert main([], root=root) == 0
    capsys.readouterr()
    assert main([], root=root) == 0
    assert "data/rows.csv changed" in capsys.readouterr().out
    assert main([], root=root) == 0
    assert capsys.readouterr().out == "1 notebook up to date\n"


def test_a_failure_names_the_cell_and_leaves_everything_as_it_was(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("1.ipynb", PLAIN, "# the culprit\n1 / 0", "print('never')")
    write("2.ipynb", PLAIN)
    before = files(root)
    assert main([], root=root) == 1
    captured = capsys.readouterr()
    assert "FAILED notebooks/1.ipynb, cell 3: # the culprit" in captured.err
    assert "ZeroDivisionError: division by zero" in captured.err
    assert "\x1b[" not in captured.err
    assert ran(captured.out) == ["notebooks/1.ipynb"]
    assert files(root) == before  # no figure, though cell 2 saved one
    failed = root / "build/failed/laptop/notebooks/1.ipynb"
    assert "ZeroDivisionError" in failed.read_text()
    assert main(["--only", "*2*"], root=root) == 0
    assert (root / "figures/plain.csv").exists()


def test_a_notebook_beyond_the_models_is_left_out(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    lacks = "class LacksError(ValueError):\n    pass\n\nraise LacksError('m: no logits')"
    write("1.ipynb", lacks)
    write("2.ipynb", PLAIN)
    assert main([], root=root) == 1
    captured = capsys.readouterr()
    assert "FAILED notebooks/1.ipynb, cell 2: class LacksError" in captured.err
    assert "\nLacksError: m: no logits\nThe notebook with" in captured.err  # no traceback
    assert captured.err.endswith(
        "Left out, because they need more than the models can do: notebooks/1.ipynb.\n"
    )
    assert ran(captured.out) == ["notebooks/1.ipynb", "notebooks/2.ipynb"]
    assert (root / "figures/plain.csv").exists()
    assert main(["--status"], root=root) == 0
    assert "notebooks/2.ipynb: up to date" in capsys.readouterr().out


def test_a_dead_kernel_and_a_broken_notebook_are_failures_too(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("1.ipynb", "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)")
    assert main([], root=root) == 1
    error = capsys.readouterr().err
    assert "cell 3: os.kill(os.getpid(), signal.SIGKILL)" in error
    assert "The kernel died" in error
    (root / "notebooks/1.ipynb").write_text("<<<<<<< HEAD\n")
    assert main([], root=root) == 1
    assert "1.ipynb is not a Jupyter notebook" in capsys.readouterr().err


def test_a_notebook_edited_while_it_runs_is_not_overwritten(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    edit = "from pathlib import Path\np = Path('1.ipynb')\np.write_text(p.read_text().replace('# A', '# My'))"
    path = write("1.ipynb", PLAIN, edit)
    assert main([], root=root) == 1
    assert "was edited while it ran" in capsys.readouterr().err
    assert "# My notebook" in path.read_text()
    assert not (root / "figures").exists()


def test_a_profile_hands_over_parameters_and_leaves_the_committed_files(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = root / "profiles/tiny.yaml"
    profile.parent.mkdir()
    profile.write_text("defaults:\n  n: 3\n")
    monkeypatch.setattr("factrobust.profiles.paths.PROFILES", profile.parent)
    show = "import os\nprint(n, os.environ['FACTROBUST_RECORDS'], os.environ['FACTROBUST_PROFILE'])"
    write("1.ipynb", PLAIN, show, parameters="n: int = 1")
    before = files(root)
    assert main(["--profile", "tiny"], root=root) == 0
    assert "build/tiny/" in capsys.readouterr().out
    assert files(root) == before
    executed = (root / "build/tiny/notebooks/1.ipynb").read_text()
    assert "3 fresh tiny" in executed
    assert "injected-parameters" in executed
    assert (root / "build/tiny/figures/plain.csv").exists()
    assert main(["--profile", "tiny"], root=root) == 0
    assert capsys.readouterr().out == "1 notebook up to date\n"
    profile.write_text("defaults:\n  n: 4\n")
    assert main(["--profile", "tiny", "--status"], root=root) == 0
    assert "its parameters changed" in capsys.readouterr().out


def test_the_kernel_knows_what_the_library_asks_for(root: Path, write: Write) -> None:
    names = ["NOTEBOOK", "RECORDS", "PROFILE", "PROGRESS", "OUT"]
    show = f"import os, json\nprint(json.dumps([os.environ['FACTROBUST_' + x] for x in {names}]))"
    path = write("0-start-here.ipynb", show, "import pathlib; pathlib.Path().resolve().name")
    (root / "data/records").mkdir()
    assert main(["--replay"], root=root) == 0
    cells = json.loads(path.read_text())["cells"]
    notebook, records, profile, progress, out = json.loads("".join(cells[1]["outputs"][0]["text"]))
    assert (notebook, records, profile) == ("notebooks/0-start-here.ipynb", "replay", "laptop")
    assert Path(progress).is_absolute()
    assert Path(out).is_relative_to(root / "build")
    assert cells[2]["outputs"][0]["data"]["text/plain"] == ["'notebooks'"]
    # Other committed records: a replay is out of date, as a whole.
    (root / "data/records/new.parquet").write_text("x")
    from factrobust.reproduce.mode import Mode
    from factrobust.reproduce.state import why_stale

    assert why_stale(Mode(root, replay=True), notebook, {}) == "data/records/ changed"


def test_bad_requests(root: Path, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("1.ipynb", PLAIN)
    assert main(["--only", "nothing*"], root=root) == 2
    assert "matches 'nothing*'" in capsys.readouterr().err
    assert main(["--profile", "papr"], root=root) == 2
    assert "There is no profile 'papr'" in capsys.readouterr().err


RUN = "import sys; from pathlib import Path; from factrobust.reproduce.__main__ import main; sys.exit(main([], root=Path(sys.argv[1])))"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stop_in_the_middle_leaves_no_trace_and_no_kernel(
    root: Path, write: Write, number: signal.Signals
) -> None:
    wait = "import os, time\nPath = __import__('pathlib').Path\nPath(os.environ['FACTROBUST_ROOT'], 'build', 'pid').write_text(str(os.getpid()))"
    write(
        "1.ipynb",
        PLAIN,
        wait,
        "if not Path(os.environ['FACTROBUST_ROOT'], 'build', 'go').exists(): time.sleep(60)",
    )
    before = files(root)
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pid = root / "build/pid"
    for _ in range(200):
        if pid.exists() and pid.read_text():
            break
        time.sleep(0.1)
    # The cell that sleeps has begun or is about to.
    time.sleep(0.2)
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
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
    try:  # no /proc: macOS
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
