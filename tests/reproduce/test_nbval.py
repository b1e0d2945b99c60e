"""The root conftest.py: a notebook under nbval, in a repository with this one's test set-up."""

import os
import shutil
import subprocess
import sys

import pytest
from nbformat import v4, write

from factrobust.paths import ROOT
from factrobust.reproduce.notebook import KERNEL

# Saves a number as the library does, and shows it.
CELL = """from toysave import save
x = {now}
save('{name}.csv', f'x\\n{{x}}\\n')
save('{name}.json', '{about}')
print('x is', x)
x"""
ABOUT = '{"notebook": "notebooks/1.ipynb"}'
# What each cell finds now; git holds 0.5.
NOW = {"jitter": 0.5 * 1.000000001, "moved": 0.505, "elsewhere": 0.5, "new": 0.5}
OF_OTHER_PROCESSOR = "0.500005"


@pytest.fixture
def tested(root):
    """What pytest says of a notebook whose working tree is of a run on another processor."""
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    (root / "figures").mkdir()
    (root / "notebooks").mkdir()
    cells = []
    for name, now in NOW.items():
        outputs = [
            v4.new_output("stream", text="x is 0.5\n"),
            v4.new_output("execute_result", data={"text/plain": "0.5"}, execution_count=1),
        ]
        source = CELL.format(name=name, now=now, about=ABOUT)
        cells.append(v4.new_code_cell(source, id=name, outputs=outputs, execution_count=1))
        held = "old" if name == "new" else name
        (root / "figures" / f"{held}.csv").write_text("x\n0.5\n")
        (root / "figures" / f"{held}.json").write_text(ABOUT)
    notebook = v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    path = root / "notebooks" / "1.ipynb"
    write(notebook, path)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "figures", "notebooks"], cwd=root, check=True)
    for cell in notebook.cells:
        cell.outputs[0].text = f"x is {OF_OTHER_PROCESSOR}\n"
    write(notebook, path)
    for file in (root / "figures").glob("*.csv"):
        file.write_text(f"x\n{OF_OTHER_PROCESSOR}\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([f"{root}/lib", f"{ROOT}/lib"])},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_cells_and_saved_data_are_compared_with_what_git_holds(root, tested):
    status, out = tested
    assert status == 1
    assert "2 failed, 3 passed" in out, out
    passed = [line[-6:] for line in out.splitlines() if line.startswith("PASSED")]
    assert passed == ["Cell 0", "Cell 2", "Cell 3"]  # jitter is no failure, one per cent is
    assert "x is 0.505" in out
    assert "figures/moved.csv is not what it was; if this is meant, `make reproduce ASK=0`" in out
    assert "row 1, column x: 0.5 -> 0.505" in out
    assert "figures/old.csv is in git, but this notebook no longer saves it" in out
    assert "figures/new.csv is not in git: if this is meant" in out
    assert "jitter.csv is" not in out
    assert "elsewhere.csv is" not in out
    # What the run saved reached no committed file.
    saved = root / "build" / "nbval" / "notebooks" / "1" / "figures" / "jitter.csv"
    assert saved.read_text() == "x\n0.5000000005\n"
    assert (root / "figures" / "jitter.csv").read_text() == f"x\n{OF_OTHER_PROCESSOR}\n"


def test_without_git_nothing_is_compared_with_itself(tmp_path, monkeypatch, pytestconfig):
    set_up = pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    monkeypatch.setattr(set_up, "ROOT", tmp_path)
    with pytest.raises(pytest.fail.Exception, match="Nothing is compared: git says"):
        set_up.held.__wrapped__()
