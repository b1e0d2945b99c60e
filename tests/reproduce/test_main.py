"""python -m factrobust.reproduce on a tiny repository whose notebooks really run."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import nbformat
import psutil
import pytest
from export_records import export, stored
from frames import cells
from jupyter_client.channels import HBChannel
from jupyter_client.manager import start_new_kernel
from jupyter_client.provisioning import KernelProvisionerFactory

import factrobust.reproduce.__main__ as runner
from factrobust.models.cluster import connect
from factrobust.models.interface import RecordedModel
from factrobust.models.records import Records, key_of
from factrobust.reproduce import again, forks
from factrobust.reproduce.notebook import kernel_environment
from factrobust.reproduce.profiles import Mode

SCALED = "import toyscale\nfrom toysave import save"
SAVE_SCALED = "save('scaled.csv', f'x\\n{toyscale.SCALE}\\n')\nprint(toyscale.SCALE)"
PLAIN = "from toysave import save\nsave('plain.csv', 'x\\n1.5\\n')"


def files(root: Path) -> dict[str, bytes]:
    """What a commit would hold."""
    found = {}
    for path in root.rglob("*"):
        is_made = not {"build", "__pycache__"}.isdisjoint(path.parts)
        if path.is_file() and not is_made:
            found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


def ran(text: str) -> list[str]:
    """The notebooks that did."""
    return re.findall(r"^\[\S+ (\S+)", text, re.MULTILINE)


@pytest.fixture
def run(root, capfd, monkeypatch):
    """The command line in the repository, which has no records: its status, and what it says on
    stdout and stderr."""
    monkeypatch.setattr(runner, "places", lambda: (root / "new.sqlite", root / "data" / "records"))

    def printed(*arguments):
        capfd.readouterr()
        return runner.main([*arguments], root=root), *capfd.readouterr()

    return printed


def test_runs_what_it_is_asked_for_and_says_what_moved(root, write, run):
    write("1/a.ipynb", SCALED, SAVE_SCALED, "open('../../data/rows.csv').readline()")
    write("1/b.ipynb", PLAIN)
    status, out, _ = run()
    assert status == 0
    assert ran(out) == ["notebooks/1/a.ipynb", "notebooks/1/b.ipynb"]
    assert (root / "figures/scaled.csv").read_text() == "x\n2.0\n"
    first = files(root)
    assert b"2.0" in first["notebooks/1/a.ipynb"]
    assert b"x,y" in first["notebooks/1/a.ipynb"]  # a kernel runs in its notebook's folder
    # No client goes on sending heartbeats to ports that a later kernel may be given.
    assert not any(isinstance(thread, HBChannel) for thread in threading.enumerate())

    # A rerun gives the same bytes, also two at once.
    status, out, _ = run("--ask", "0")
    assert status == 0
    assert ran(out) == ["notebooks/1/a.ipynb", "notebooks/1/b.ipynb"]
    assert out.endswith(
        "2 notebooks, 0 tables and 0 figures were made anew from recorded answers; the numbers "
        "were compared with nothing.\n"
    )
    assert "Nothing is compared: git says 'fatal: not a git repository" in out
    assert files(root) == first

    for arguments in (["init", "-q"], ["add", "figures", "notebooks"]):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    (root / "lib/toyscale.py").write_text("SCALE = 2.5\n")
    status, out, _ = run("--only", "a")
    assert status == 0
    assert ran(out) == ["notebooks/1/a.ipynb"]
    assert "Compared with what git holds: 2 numbers in 2 tables." in out
    assert "figures/scaled.csv: row 1, column x: 2 -> 2.5 (0.25 relative)" in out
    assert out.endswith("from recorded answers; 1 of 2 numbers moved.\n")


def test_a_failure_names_the_cell_and_leaves_everything_as_it_was(root, write, run):
    path = write("1.ipynb", PLAIN, "# the culprit\n1 / 0", "print('never')")
    earlier = nbformat.read(path, as_version=4)
    output = nbformat.v4.new_output("stream", text="of an earlier run")
    earlier.cells[-1].outputs.append(output)
    nbformat.write(earlier, path)
    write("2.ipynb", PLAIN)
    before = files(root)
    status, out, error = run()
    assert "FAILED notebooks/1.ipynb, In [2]: # the culprit" in error
    assert "ZeroDivisionError: division by zero" in error
    assert "\x1b[" not in error
    assert status == 1
    assert ran(out) == ["notebooks/1.ipynb"]
    assert files(root) == before  # no figure, though cell 2 saved one
    failed = (root / "build/failed/laptop/notebooks/1.ipynb").read_text()
    assert "ZeroDivisionError" in failed
    assert "earlier" not in failed
    # When two run at once, the second may have ended first: its results count for nothing, too.
    assert run("--ask", "0")[0] == 1
    assert files(root) == before
    assert run("--only", "2")[0] == 0
    assert (root / "figures/plain.csv").exists()


def test_what_says_nothing_of_other_notebooks_leaves_out_one_alone(root, write, run):
    """A model that cannot do it, too few cases; under a profile that is not committed any error
    but the library's own."""
    raises = "class {0}(ValueError):\n    pass\n\nraise {0}('m: no logits')"
    write("1.ipynb", raises.format("LacksError"))
    write("2.ipynb", raises.format("TooFewError"), parameters="models: list = ['a', 'b']")
    write("3.ipynb", PLAIN)
    status, out, error = run()
    assert status == 1
    assert len(ran(out)) == 3
    assert "FAILED notebooks/1.ipynb, In [1]: class LacksError" in error
    assert "\nLacksError: m: no logits\nThe notebook with" in error  # no traceback
    assert "\nTooFewError: m: no logits\nIts models: a, b\nThe notebook with" in error
    left_out = "Left out, for the reasons above: notebooks/1.ipynb, notebooks/2.ipynb.\n"
    assert error.endswith(left_out)
    assert (root / "figures/plain.csv").exists()

    (root / "profiles/tiny.yaml").write_text("{}")
    write("1.ipynb", "1 / 0")
    write("2.ipynb", "class ModelError(ValueError):\n    pass\n\nraise ModelError('no weights')")
    status, out, error = run("--profile", "tiny")
    assert status == 1
    assert ran(out) == ["notebooks/1.ipynb", "notebooks/2.ipynb"]
    assert "FAILED notebooks/1.ipynb" in error
    assert "FAILED notebooks/2.ipynb" in error


def test_a_notebook_that_failed_is_at_work_no_more(root, write, run, monkeypatch):
    monkeypatch.setattr(runner, "SHOW_SECONDS", 0.2)
    (root / "profiles/tiny.yaml").write_text("{}")  # one notebook at a time
    write("1.ipynb", "1 / 0")
    write("2.ipynb", "import time", "time.sleep(1)")
    _, out, _ = run("--profile", "tiny")
    lines = [line.split()[:5] for line in out.splitlines() if " done; " in line]
    assert lines[0] == ["0", "of", "2", "done;", "1"]
    assert lines[-1] == ["0", "of", "2", "done;", "2"]


def test_a_dead_kernel_and_a_broken_notebook_are_failures_too(root, write, run):
    write("1.ipynb", "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)")
    status, _, error = run()
    assert status == 1
    assert "FAILED notebooks/1.ipynb, the kernel died" in error
    (root / "notebooks/1.ipynb").write_text("<<<<<<< HEAD\n")
    status, _, error = run()
    assert status == 1
    assert "1.ipynb is not a Jupyter notebook" in error


def test_a_profile_hands_over_parameters_and_leaves_the_committed_files(root, write, run):
    (root / "profiles/tiny.yaml").write_text("defaults:\n  n: 3\n")
    variables = [f"FACTROBUST_{name}" for name in ("NOTEBOOK", "RECORDS", "OUT")]
    show = f"import os\nprint(n, *(os.environ[name] for name in {variables}))"
    write("1.ipynb", PLAIN, show, parameters="n: int = 1")
    before = files(root)
    status, out, _ = run("--profile", "tiny")
    assert status == 0
    assert "build/tiny/" in out
    assert files(root) == before
    executed = (root / "build/tiny/notebooks/1.ipynb").read_text()
    assert f"3 notebooks/1.ipynb committed {root}/build/running" in executed
    assert "injected-parameters" in executed
    whose_findings, *_ = json.loads(executed)["cells"]
    assert whose_findings["source"][-1] == "| n | 1 | 3 |"
    assert (root / "build/tiny/figures/plain.csv").exists()
    status, *_ = run("--ask", "0")
    assert status == 0
    executed = (root / "notebooks/1.ipynb").read_text()
    assert "Whose findings" not in executed
    assert "1 notebooks/1.ipynb replay " in executed


BAD = cells("""
    --only     nothing*  No notebook is called 'nothing*': there are 1.
    --profile  papr      There is no profile 'papr'
    --cluster  nowhere   no Dask scheduler answered at nowhere
""")


def test_bad_requests(root, write, run):
    write("1.ipynb", PLAIN)
    for option, value, sentence in BAD:
        status, _, error = run(option, value)
        assert status == 2
        assert sentence in error
    with (root / "build/reproduce.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        status, _, error = run()
    assert status == 2
    assert "is at work in this folder: wait for it." in error


def test_a_notebook_is_told_of_the_workers_and_they_go_on(write, run, threads):
    path = write("1.ipynb", "import os\nprint(os.environ['FACTROBUST_CLUSTER'])")
    address = threads(1).scheduler_address
    status, _, error = run("--cluster", address)
    assert status == 0
    assert error == ""
    connect(address).close()
    [output] = nbformat.read(path, as_version=4).cells[1].outputs
    assert output.text == f"{address}\n"


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone")
def test_a_kernel_listens_where_no_other_program_can(write, run):
    """On a port, another program could have come before it, between its choice and its use."""
    info = "from ipykernel.connect import get_connection_info"
    path = write("1.ipynb", info, "told = get_connection_info(unpack=True)\nprint(told['ip'])")
    assert run()[0] == 0
    [output] = nbformat.read(path, as_version=4).cells[2].outputs
    folder = Path(output.text.strip()).parent
    assert folder.name.startswith("kernel-")
    assert not folder.exists()


def test_a_stop_in_the_middle_leaves_no_trace_and_no_kernel(root, write, run):
    begin = "import os, time\nfrom pathlib import Path\nbuild = Path('../build')"
    tell = "(build / 'pid').write_text(str(os.getpid()))"
    wait = f"{tell}\nwhile not (build / 'go').exists(): time.sleep(0.1)"
    write("1.ipynb", PLAIN, begin, wait)
    before = files(root)
    handler = signal.getsignal(signal.SIGTERM)
    pid = root / "build/pid"

    def stop():
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()
    status, out, error = run()
    assert status == 130
    assert error == ""
    assert out.splitlines()[-1].startswith("Stopped.")
    assert files(root) == before
    assert signal.getsignal(signal.SIGTERM) is handler
    while alive(int(pid.read_text())):
        time.sleep(0.1)

    (root / "build/go").touch()
    assert run()[0] == 0
    assert (root / "figures/plain.csv").exists()


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie, which waits to be reaped, does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_wrong_record_is_an_error_at_the_end(root, write, run, monkeypatch, toy_model):
    """A record that holds another answer than the model gives: named, and all in a CSV."""
    chances = {
        "?": {" a": 0.9, " b": 0.1},
        " a": {".": 1.0},
        " b": {".": 1.0},
    }
    toy = toy_model(chances)
    show = "import os\nprint(os.environ['FACTROBUST_RECORDS'])"
    path = write("1.ipynb", PLAIN, show)
    new, folder = runner.places()
    store = Records(new)
    recorded = RecordedModel(store, lambda: toy, name="toy", fingerprint="sha256:0123 float32")
    recorded.generate(["who?", "why?"], max_new_tokens=2)
    calls = [*stored(new)]
    used = {"notebooks/1.ipynb": {key_of(call) for call in calls}}
    commit = partial(export, folder, used=used, there=[*used])
    commit(new=new, again=root / "none")
    with_toy = partial(again.ask_again, load=lambda _: toy)
    monkeypatch.setattr(again, "ask_again", with_toy)
    status, out, _ = run("--ask", "0.5", "--seed", "1")
    assert status == 0
    assert "Asked again: 1 of 2 recorded answers. 1 came out the same" in out
    assert "Drawn at random: 0.5 of the records, by SEED=1." in out

    wrong = [value | {"text": "nobody"} for value in store.get(calls)]
    Records(root / "wrong.sqlite").put(calls, wrong)
    commit(new=root / "none", again=root / "wrong.sqlite")
    status, out, _ = run("--ask", "0.5", "--seed", "1")
    assert status == 1
    assert "1 recorded answers are NOT what the models say now. The first is a generate" in out
    assert "'nobody', and now by ' a.'" in out
    assert "nobody" in (root / "build/asked-again.csv").read_text()
    assert run("--ask", "0")[0] == 0  # nothing is asked

    # A run that asks all anew is compared in whole, and the next one asks anew.
    asked = root / "again.sqlite"
    Records(asked).put(calls, store.get(calls))
    monkeypatch.setattr(runner, "asked_again", lambda: asked)
    status, out, _ = run("--ask", "1")
    assert status == 1
    assert "2 recorded answers are NOT what the models say now" in out
    assert not asked.exists()
    [output] = nbformat.read(path, as_version=4).cells[2].outputs
    assert output.text == "fresh\n"
    with pytest.raises(SystemExit):
        run("--ask", "2")


# ---- kernels that are forked against one that was started ----------------------------------------

TOLD = """
import os, pandas as pd, random, signal, sys
print(os.environ.get("MARK"), os.getcwd(), os.environ["PYTHONHASHSEED"], hash("a"), sys.argv[1:2])
print(pd.options.display.max_columns, pd.options.display.width, signal.getsignal(signal.SIGINT))
print("seaborn" in sys.modules, os.getpid() == os.getpgid(0))
print(*(name for name in sys.modules if name.startswith("factrobust")))
"""


def report_of(mark, root, monkeypatch):
    """What a kernel prints, and whether it is gone when it was shut down."""
    monkeypatch.setenv("MARK", mark)
    manager, client = start_new_kernel(cwd=str(root))
    texts = []

    def note(message):
        texts.append(message["content"].get("text", ""))

    try:
        client.execute_interactive(TOLD, timeout=60, output_hook=note)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert not manager.is_alive()
    return "".join(texts).splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone")
def test_a_fork_is_as_a_kernel_of_its_own(root, monkeypatch):
    """What a notebook can tell of them is the same."""
    environment = kernel_environment(Mode(root), "", root / "build")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    factory = KernelProvisionerFactory.instance()
    monkeypatch.setattr(factory, "default_provisioner_name", "local-provisioner")
    started = report_of("one", root, monkeypatch)
    forks.use(environment)
    one = report_of("one", root, monkeypatch)
    other = report_of("two", root, monkeypatch)
    assert one[:2] == started[:2]
    assert one[0].startswith(f"one {root} 0 ")
    assert other[0] == one[0].replace("one", "two", 1)
    assert started[2] == "False True"
    assert one[2] == "True True"
    assert {*one[3].split()} <= {"factrobust", "factrobust.reproduce"}  # which read nothing


def test_forms_of_a_model_that_is_not_there_share_a_line():
    left_out = {"a": "no weights of a", "a K 4": "no weights of a", "b": "no weights of b"}
    assert runner.not_asked(left_out) == [
        "Not asked again: a, changed or not (no weights of a).",
        "Not asked again: b (no weights of b).",
    ]
